//! Bad input: modules that are mutated, and hostile ones. Each gives a result, a finding or an error, in bounded time and memory.

use super::*;
use crate::parse::tests::{Random, mutated, parts};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const GLOBALS: &str = ".shared .align 128 .b8 tile[2048]; .shared .align 8 .b64 bar; .extern .shared .align 16 .b8 dynamic[];
.global .align 8 .b64 word[4] = {1, 2, 3, 4}; .const .align 4 .b32 table[4] = {5, 6, 7, 8}; .global .u64 pointer = generic(word)+8;
.global .u64 addresses[2] = {double, square}; .global .align 1 .b8 text[4] = {37, 100, 10, 0};
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.func (.param .b32 r) double(.param .b32 n) { .reg .b32 %r1; ld.param.b32 %r1, [n]; shl.b32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) square(.param .b32 n) { .reg .b32 %r1; ld.param.b32 %r1, [n]; mul.lo.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
.func (.reg .b32 d) sum(.reg .b32 n) { .local .align 8 .b8 own[16]; .reg .pred %p; .reg .b32 %x<4>; st.local.b32 [own+4], n; mov.b32 d, 0;
setp.eq.u32 %p, n, 0; @%p ret; sub.u32 %x1, n, 1; call (%x2), sum, (%x1); ld.local.b32 %x3, [own+4]; add.u32 d, %x2, %x3; ret; }
";

/// Statements of every kind. Each may stand behind any other.
const STATEMENTS: &[&str] = &[
    "and.b32 %r1, %i, 3; setp.ne.u32 %p1, %r1, 0; @%p1 add.u32 %r2, %r2, 1; mov.u32 %r3, tile; shl.b32 %r4, %i, 3; add.u32 %r3, %r3, %r4;",
    "LABEL: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 4; @%p2 bra LABEL;",
    "ld.global.b64 %d1, [%in]; st.shared.b64 [%r3], %d1; bar.sync 0; ld.shared.v2.b32 {%r5, %r6}, [%r3];",
    "shfl.sync.down.b32 %r7|%p3, %r5, 1, 31, -1; vote.sync.ballot.b32 %r8, %p1, -1; match.any.sync.b32 %r9, %r1, -1; redux.sync.add.u32 %r1, %i, -1;",
    "atom.global.add.u32 %r8, [%out], %r7; red.global.add.noftz.f16x2 [%out], %r1; atom.global.v2.f32.add {%r1, %r2}, [%out], {%r5, %r6}; atom.cas.b32 %r1, [%out], 0, %r2;",
    "cvt.rn.f32.u32 %r9, %r8; fma.rn.f32 %r9, %r9, %r9, %r9; fma.rz.ftz.sat.f32 %r9, %r9, %r9, %r9; ex2.approx.f32 %r1, %r9; div.rn.f32 %r1, %r9, %r1;",
    "cvt.rn.satfinite.e4m3x2.f32 %h1, %r1, %r2; cvt.rn.f16x2.e4m3x2 %r1, %h1; cvt.pack.sat.u8.s32.b32 %r1, %r1, %r2, %r3; cvt.rzi.s32.f64 %r1, %d1;",
    "add.f16 %h1, %h2, %h3; fma.rn.bf16x2 %r1, %r2, %r5, %r6; setp.lt.f16x2 %p1|%p2, %r1, %r2; add.f64 %d1, %d2, %d1; sqrt.rp.f64 %d1, %d1;",
    "lop3.b32 %r1, %r2, %r5, %r6, 0x96; prmt.b32 %r1, %r2, %r5, 0x5410; bfe.u32 %r1, %r2, 4, 8; shf.l.wrap.b32 %r1, %r2, %r5, 3; dp4a.s32.u32 %r1, %r2, %r5, %r6;",
    "mad.wide.s32 %d1, %r1, %r2, %d2; add.cc.u32 %r1, %r2, %r5; addc.u32 %r2, %r5, 0; div.s32 %r1, %r2, %r5; rem.u64 %d1, %d2, %d1; slct.b32.s32 %r1, %r2, %r5, %r6;",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1, %r2, %r5, %r6}, {%r1, %r2}, {%r5}, {%r1, %r2, %r5, %r6};",
    "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r5, %r6}, [tile]; movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r6; stmatrix.sync.aligned.m8n8.x1.shared.b16 [tile], {%r5};",
    "wmma.load.c.sync.aligned.row.m8n8k4.shared.f64 {%d1, %d2}, [tile], 8; wmma.mma.sync.aligned.row.col.m8n8k4.rn.f64.f64.f64.f64 {%d1, %d2}, {%d1}, {%d2}, {%d1, %d2};",
    "cp.async.cg.shared.global [tile], [%in], 16, %r1; cp.async.commit_group; cp.async.wait_group 0;",
    "@%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0; mbarrier.arrive.shared.b64 %d4, [bar]; mbarrier.test_wait.shared.b64 %p1, [bar], %d4; mbarrier.expect_tx.shared.b64 [bar], 64;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], 64, [bar]; cp.async.bulk.commit_group;",
    "bar.arrive 1, 64; bar.red.popc.u32 %r1, 2, %p1; barrier.cta.sync 3, 64; bar.warp.sync -1; barrier.cluster.wait.acquire;",
    "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %i; call (v), square, (a); ld.param.b32 %r2, [v]; }",
    "and.b32 %r1, %i, 7; call (%r2), sum, (%r1);",
    "ld.global.b64 %d3, [addresses+8]; { .param .b32 a; .param .b32 v; st.param.b32 [a], %i; call (v), %d3, (a), LABEL; LABEL: .callprototype (.param .b32 _) _ (.param .b32 _); ld.param.b32 %r2, [v]; }",
    "{ .param .b64 f; .param .b64 a; .param .b32 v; st.param.b64 [f], %d1; st.param.b64 [a], %d2; call (v), vprintf, (f, a); }",
    "alloca.u64 %d1, 32; st.local.b64 [%d1], %d2; stacksave.u64 %d2; stackrestore.u64 %d2;",
    "LABEL_T: .branchtargets LABEL_A, LABEL_B, LABEL_A; rem.u32 %r1, %i, 3; brx.idx %r1, LABEL_T; LABEL_A: mov.b32 %r2, 1; LABEL_B: mov.b32 %r2, 3;",
    "cvta.shared.u64 %d1, %d2; isspacep.global %p1, %in; ld.u32 %r1, [%in]; st.u32 [%out], %r1; mov.u64 %d2, pointer; ld.global.u64 %d2, [%d2]; ld.global.u64 %d1, [%d2];",
    "ld.const.b32 %r1, [table+4]; ld.param.b64 %d1, [p_in]; mov.u32 %r1, %laneid; mov.u64 %d1, %clock64; activemask.b32 %r1; elect.sync %r1|%p1, -1;",
    ".reg .b128 %q; mov.b128 %q, {%d1, %d2}; st.shared.b128 [tile], %q; ld.global.nc.L1::no_allocate.v2.b64 {%d1, %d2}, [%in]; prefetch.global.L1 [%in]; nanosleep.u32 20;",
    "setp.gt.u32 %p1, %i, 40; @%p2 trap; @%p1 bra END; st.shared.b32 [dynamic], %r1; st.global.b32 [%out+4], %r1; @%p2 exit;",
];

/// A body of some of them, in any order.
fn body(random: &mut Random) -> String {
    let begin = "mov.b32 %r1, 1; mov.b32 %r2, 2; mov.u32 %r3, tile; mov.b32 %r5, 5; mov.b32 %r6, 6; mov.b32 %r7, 7; mov.b32 %r8, 8;
mov.b64 %d1, 1; mov.b64 %d2, 2; mov.b16 %h1, 1; mov.b16 %h2, 2; mov.b16 %h3, 3; setp.lt.u32 %p1, %i, 9; setp.lt.u32 %p2, %i, 0;\n";
    let statements: String = (0..1 + random.below(6))
        .map(|number| {
            // Each has labels of its own.
            STATEMENTS[random.below(STATEMENTS.len())].replace("LABEL", &format!("LABEL{number}")) + "\n"
        })
        .collect();
    module(GLOBALS, &format!("{begin}{statements}END: st.global.b64 [%out], %d1; ret;"))
}

/// A digit or letter of the body becomes another one of the text, or a word another word.
fn changed(text: &str, random: &mut Random) -> String {
    let begin = text.find("add.s64 %out").unwrap_or(0);
    let mut words: Vec<&str> = text[begin..].split(' ').collect();
    for _ in 0..random.below(3) {
        let [to, from] = [random.below(words.len()), random.below(words.len())];
        words[to] = words[from];
    }
    let mut bytes = (text[..begin].to_owned() + &words.join(" ")).into_bytes();
    let letters: Vec<_> = (begin..bytes.len()).filter(|at| bytes[*at].is_ascii_alphanumeric()).collect();
    for _ in 0..random.below(3) {
        let [to, from] = [letters[random.below(letters.len())], letters[random.below(letters.len())]];
        if bytes[to].is_ascii_digit() == bytes[from].is_ascii_digit() {
            bytes[to] = bytes[from];
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What became of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Became {
    NoModule,
    Refused,
    Found,
    Ran,
}

/// Parses, lowers and carries out the first entry of a text.
fn carried_out(text: &str) -> Became {
    let Ok(parsed) = parse(text) else { return Became::NoModule };
    let Some(entry) = parsed.entries().next().map(|entry| entry.name) else { return Became::Refused };
    let Ok(program) = lower(&parsed, entry, LINES) else { return Became::Refused };
    let shape = Shape { grid: [1, 1, 1], block: [64, 1, 1], shared_bytes: 256 };
    let buffers = [Buffer::input("in", 512, |i| i), Buffer::zeroed("out", 512, |_| 0u64)];
    let plan = buffers.into_iter().fold(Plan::new(shape), |plan, buffer| plan.buffer(buffer.expect("a small buffer")));
    let limits = engine::Limits { calls: 1000, barriers: 100, ..engine::Limits::default() };
    let options = Options { threads: 1, limits, ..Options::default() };
    let words: Vec<_> =
        (0..program.parameter_words()).map(|i| [Memory::base(0), Memory::base(1), 40, 7][i % 4]).collect();
    match simulate(&Arc::new(program), Arc::new(plan), &words, &[false, true], &options, &|_, _| ()) {
        Ok(outcome) if outcome.findings.is_empty() => Became::Ran,
        Ok(_) => Became::Found,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Became::Refused
        }
    }
}

#[test]
fn ten_thousand_mutations_give_results_findings_or_errors() {
    let (parts, mut random) = (parts(), Random(11));
    let mut counts = [0; 4];
    let mut longest = (Duration::ZERO, 0);
    for number in 0..10_000 {
        let text = match number % 4 {
            0 => mutated(&parts, &mut random),
            1 => body(&mut random),
            _ => changed(&body(&mut random), &mut random),
        };
        let begin = Instant::now();
        let became = catch_unwind(AssertUnwindSafe(|| carried_out(&text)));
        let became = became.unwrap_or_else(|_| panic!("mutation {number} makes it panic:\n{text}"));
        longest = longest.max((begin.elapsed(), number));
        counts[became as usize] += 1;
    }
    // None of the four is rare.
    assert!(counts.iter().all(|count| *count > 200), "{counts:?}");
    assert!(longest.0 < Duration::from_secs(5), "{longest:?}");
}

#[test]
fn hostile_modules_are_refused_or_carried_out_in_bounds() {
    let chain = |count: usize, of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<String>();
    for (globals, body, expected) in [
        ("", ".reg .b32 %x<4294967295>; mov.b32 %x4294967294, 1; ret;".to_owned(), Became::Ran),
        ("", ".reg .v4 .b32 %x<4294967295>; mov.b32 %x4294967294.w, 1; ret;".to_owned(), Became::Ran),
        (".shared .b8 huge[18446744073709551615];", "ld.shared.b32 %r1, [huge]; ret;".to_owned(), Became::Refused),
        (".shared .b8 huge[4294967296][4294967296];", "ld.shared.b32 %r1, [huge]; ret;".to_owned(), Became::Refused),
        (".global .b8 huge[1152921504606846976];", "ld.global.b32 %r1, [huge]; ret;".to_owned(), Became::Refused),
        ("", ".local .b8 huge[9223372036854775807]; ld.local.b8 %r1, [huge]; ret;".to_owned(), Became::Refused),
        ("", chain(40, &|i| format!(".local .b8 a{i}[500000]; ")) + "ret;", Became::Refused),
        // Two ways into a loop.
        ("", "setp.lt.u32 %p1, %i, 5; mov.u32 %r1, 0; @%p1 bra B; A: add.u32 %r1, %r1, 1; B: add.u32 %r1, %r1, 2; setp.lt.u32 %p2, %r1, 20; @%p2 bra A; ret;".to_owned(), Became::Ran),
        ("", "ret; bra X; X: bra X; ret;".to_owned(), Became::Ran),
        ("", "L: @%p1 bra L; setp.lt.u32 %p1, %i, 90; bra L;".to_owned(), Became::Found),
        ("", "bra L; L: bra L;".to_owned(), Became::Found),
        // Many branches, tables and values that come from one another.
        ("", "setp.lt.u32 %p1, %i, 5;".to_owned() + &chain(30_000, &|_| "@%p1 bra END;".to_owned()) + "END: ret;", Became::Ran),
        ("", "setp.lt.u32 %p1, %i, 5;".to_owned() + &chain(3000, &|i| format!("L{i}: @%p1 bra L{};", (i * 7919 + 13) % 3000)) + "ret;", Became::Found),
        ("", "T: .branchtargets ".to_owned() + &chain(9000, &|_| "A, ".to_owned()) + "A; A: " + &chain(9000, &|_| "brx.idx %i, T;".to_owned()), Became::Refused),
        ("", ".reg .b32 %x<30001>;".to_owned() + &chain(30_000, &|i| format!("mov.b32 %x{i}, %x{};", i + 1)) + "ret;", Became::Ran),
        ("", "mov.b64 %d1, 0; L: ld.local.b64 %d2, [%d1+-8]; bra L;".to_owned(), Became::Found),
    ] {
        let begin = Instant::now();
        let became = carried_out(&module(globals, &body));
        let shown: String = body.chars().take(80).collect();
        assert_eq!(became, expected, "{globals} {shown}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{globals} {shown}: {:?}", begin.elapsed());
    }
    for (globals, body, says) in [
        (
            ".func f() { .reg .b64 %x; call %x, (a); }",
            "call f; ret;",
            "line 4, column 27: `call`: there is no `a` here",
        ),
        (
            "",
            "add.s32 %r1, %r2; bogus; sub.s32 %d1, %r1, %r1;",
            "line 14, column 1: `add.s32`: it has 1 operands that are read, and takes 2; 2 other instructions",
        ),
    ] {
        let text = module(globals, body);
        let module = parse(&text).expect("a module");
        let said = lower(&module, "e", LINES).map(|_| ()).expect_err(body).to_string();
        assert!(said.contains(says), "{said}");
    }
}
