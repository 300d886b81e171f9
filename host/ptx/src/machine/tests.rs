use super::*;
use crate::{Lines, lower, parse};
use engine::Memory;
use engine::{Finding, Kind};
use gpu::suite::Buffer;
use gpu::suite::{Counts, Launch as Shape, Operation, Space};

mod faults;
mod fences;
mod fuzz;

pub(crate) const LINES: Lines<'static> = Lines { file: "test.ptx", within: "" };

/// A module with `globals`, and an entry of a buffer that is read and one that is written. Its body finds the thread's number within its
/// block in `%i`, and the addresses of the thread's words (of 64 bits) in `%in` and `%out`.
pub(crate) fn module(globals: &str, body: &str) -> String {
    format!(
        ".version 8.4\n.target sm_90\n.address_size 64\n{globals}
.visible .entry e(.param .u64 p_in, .param .u64 p_out)
{{
.reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<20>, %i; .reg .b64 %d<20>, %in, %out, %at;
ld.param.u64 %in, [p_in];
ld.param.u64 %out, [p_out];
mov.u32 %i, %tid.x;
mul.wide.u32 %at, %i, 8;
add.s64 %in, %in, %at;
add.s64 %out, %out, %at;
{body}
}}
"
    )
}

pub(crate) fn program(text: &str) -> Arc<Program> {
    let module = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Arc::new(lower(&module, "e", LINES).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

pub(crate) fn run(text: &str, blocks: u32, threads: u32, input: &[u64], workers: usize) -> Outcome {
    run_with(text, [blocks, threads], input, workers, 256)
}

/// The same with so many bytes of dynamic shared memory.
pub(crate) fn run_with(
    text: &str,
    [blocks, threads]: [u32; 2],
    input: &[u64],
    workers: usize,
    shared_bytes: u32,
) -> Outcome {
    let program = program(text);
    let input = input.to_vec();
    let buffers =
        [Buffer::input("in", input.len() as u64, move |i| input[i as usize]), Buffer::zeroed("out", 1024, |_| 0u64)];
    let shape = Shape { grid: [blocks, 1, 1], block: [threads, 1, 1], shared_bytes };
    let plan = buffers.into_iter().fold(Plan::new(shape), |plan, buffer| plan.buffer(buffer.expect("a small buffer")));
    let words = [Memory::base(0), Memory::base(1)];
    let options = Options { threads: workers, ..Options::default() };
    let outcome = simulate(&program, Arc::new(plan), &words, &[false, true], &options, &|_, _| ());
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

/// What the threads of a block write.
pub(crate) fn written(text: &str, threads: u32, input: &[u64]) -> Vec<u64> {
    let outcome = run(text, 1, threads, input, 1);
    assert!(outcome.findings.is_empty(), "{}\n{text}", outcome.findings[0]);
    (0..threads.into()).map(|i| outcome.bits(1, i).expect("the run ended")).collect()
}

pub(crate) fn finding(text: &str, threads: u32) -> Finding {
    let outcome = run(text, 1, threads, &[0; 1024], 2);
    outcome.findings.first().unwrap_or_else(|| panic!("nothing was found\n{text}")).clone()
}

#[test]
fn lanes_that_part_meet_behind_the_branch() {
    let body = "
and.b32 %r1, %i, 1;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ODD;
mov.b32 %r2, 100;
bra MEET;
ODD: mov.b32 %r2, 200;
MEET: activemask.b32 %r3;
mov.b64 %d1, {%r2, %r3};
st.global.b64 [%out], %d1;
ret;";
    let all = written(&module("", body), 33, &[0; 64]);
    assert_eq!(all[0], 0xFFFF_FFFF_0000_0064);
    assert_eq!(all[1], 0xFFFF_FFFF_0000_00C8);
    assert_eq!(all[32], 0x0000_0001_0000_0064);
}

#[test]
fn loops_of_different_lengths_and_early_ends_are_carried_out() {
    let body = "
setp.gt.u32 %p1, %i, 40;
@%p1 ret;
mov.b32 %r1, 0; mov.b32 %r2, 0;
LOOP: setp.ge.u32 %p2, %r1, %i;
@%p2 bra DONE;
add.u32 %r1, %r1, 1; add.u32 %r2, %r2, %r1;
bra LOOP;
DONE: bar.sync 0;
cvt.u64.u32 %d1, %r2;
st.global.b64 [%out], %d1;
ret;";
    let outcome = run(&module("", body), 1, 64, &[0; 64], 1);
    assert!(outcome.findings.is_empty(), "{}", outcome.findings[0]);
    for i in 0..64 {
        assert_eq!(outcome.bits(1, i), Some(if i > 40 { 0 } else { i * (i + 1) / 2 }));
    }
    let [site] = &outcome.sites[..] else { panic!("{:?}", outcome.sites) };
    let expected =
        Counts { requests: 2, lanes: 41, sectors: 8 + 3, lines: 2 + 1, sectors_ideal: 8 + 3, ..Counts::default() };
    assert_eq!((site.counts, site.width, site.operation), (expected, 8, Operation::Store));
}

#[test]
fn a_branch_by_a_table_sends_lanes_to_as_many_places() {
    let body = "
and.b32 %r1, %i, 3;
TABLE: .branchtargets A, B, C, A;
brx.idx %r1, TABLE;
A: mov.b32 %r2, 1; bra MEET;
B: mov.b32 %r2, 2; bra MEET;
C: mov.b32 %r2, 3;
MEET: vote.sync.ballot.b32 %r3, 1, -1;
mov.b64 %d1, {%r2, %r3};
st.global.b64 [%out], %d1;
ret;"
        .replace("vote.sync.ballot.b32 %r3, 1, -1", "setp.eq.u32 %p1, %i, %i; vote.sync.ballot.b32 %r3, %p1, -1");
    let all = written(&module("", &body), 32, &[0; 64]);
    assert_eq!(all[..4], [1, 2, 3, 1].map(|value| value | 0xFFFF_FFFF << 32));
}

#[test]
fn functions_are_called_with_registers_and_with_parameters() {
    let globals = "
.func (.param .b64 r) twice(.param .b64 a, .param .align 8 .b8 b[16])
{ .reg .b64 %x<4>; ld.param.b64 %x1, [a]; ld.param.b64 %x2, [b+8]; setp_free: add.s64 %x3, %x1, %x1; add.s64 %x3, %x3, %x2;
st.param.b64 [r], %x3; ret; }
.func (.reg .b64 r) less(.reg .b64 a)
{ .reg .pred %p; setp.lt.u64 %p, a, 10; mov.b64 r, 7; @%p ret; sub.s64 r, a, 1; ret; }";
    let body = "
ld.global.b64 %d1, [%in];
{ .param .b64 a; .param .align 8 .b8 b[16]; .param .b64 r;
st.param.b64 [a+0], %d1; st.param.b64 [b+0], 5; st.param.b64 [b+8], 6;
call.uni (r), twice, (a, b);
ld.param.b64 %d2, [r+0]; }
call (%d3), less, (%d2);
st.global.b64 [%out], %d3;
ret;";
    let input: Vec<u64> = (0..32).collect();
    let expected: Vec<_> = input.iter().map(|a| if 2 * a + 6 < 10 { 7 } else { 2 * a + 5 }).collect();
    assert_eq!(written(&module(globals, body), 32, &input), expected);
}

#[test]
fn generic_addresses_lead_to_each_state_space() {
    let globals = ".shared .align 8 .b8 e_tile[512];";
    let body = "
.local .align 8 .b8 depot[16];
.reg .b64 %SP, %SPL;
mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL;
mov.u64 %d1, e_tile; cvta.shared.u64 %d2, %d1; add.s64 %d2, %d2, %at;
ld.b64 %d3, [%in];
st.b64 [%SP+8], %d3; ld.local.b64 %d4, [%SPL+8];
st.b64 [%d2], %d4;
cvta.to.shared.u64 %d5, %d2; cvt.u32.u64 %r5, %d5; ld.shared.b64 %d6, [%r5];
isspacep.shared %p1, %d2; isspacep.global %p2, %in; isspacep.local %p3, %SP; isspacep.local %p4, %in;
and.pred %p1, %p1, %p2; and.pred %p1, %p1, %p3; not.pred %p4, %p4; and.pred %p1, %p1, %p4;
@%p1 st.b64 [%out], %d6;
ret;";
    let input: Vec<u64> = (0..64).map(|i| i * 3 + 1).collect();
    let text = module(globals, body);
    assert_eq!(written(&text, 64, &input), input);
    let outcome = run(&text, 1, 64, &input, 1);
    let spaces: Vec<_> = outcome.sites.iter().map(|site| (site.space, site.operation)).collect();
    let all = [Space::Global, Space::Shared].map(|space| [Operation::Load, Operation::Store].map(|op| (space, op)));
    assert!(all.iter().flatten().all(|kind| spaces.contains(kind)) && spaces.len() == 4, "{spaces:?}");
    assert!(outcome.regions.contains_key(&("tile".to_owned(), Operation::Store, 8)), "{:?}", outcome.regions.keys());
}

#[test]
fn copies_ahead_of_use_are_a_load_and_a_store() {
    let body = "
mov.u32 %r1, e_tile; cvt.u32.u64 %r2, %at; add.u32 %r1, %r1, %r2;
cp.async.ca.shared.global [%r1], [%in], 8;
cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
xor.b32 %r2, %r2, 8; mov.u32 %r3, e_tile; add.u32 %r3, %r3, %r2; ld.shared.b64 %d1, [%r3];
st.global.b64 [%out], %d1; ret;";
    let text = module(".shared .align 16 .b8 e_tile[512];", body);
    let input: Vec<u64> = (0..64).collect();
    assert_eq!(written(&text, 64, &input), (0..64).map(|i| i ^ 1).collect::<Vec<u64>>());
    let sites = run(&text, 1, 64, &input, 1).sites;
    let at: Vec<_> = sites.iter().map(|site| (site.space, site.operation, site.counts.requests)).collect();
    let copy = [(Space::Global, Operation::Load, 2), (Space::Shared, Operation::Store, 2)];
    assert!(copy.iter().all(|of_copy| at.contains(of_copy)) && at.len() == 4, "{at:?}");
}

#[test]
fn lanes_exchange_values() {
    let run = |instruction: &str| {
        let body = format!(
            "cvt.u64.u32 %d9, %i; add.u32 %r1, %i, 10; setp.lt.u32 %p1, %i, 4; and.b32 %r2, %i, 1; {instruction}
cvt.u64.u32 %d1, %r0; st.global.b64 [%out], %d1; ret;"
        );
        written(&module("", &body), 32, &[0; 32])
    };
    assert_eq!(
        run("shfl.sync.down.b32 %r0, %r1, 16, 31, -1;")[..17],
        [26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 26]
    );
    assert_eq!(run("shfl.sync.up.b32 %r0, %r1, 1, 0, -1;")[..3], [10, 10, 11]);
    assert_eq!(run("shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1;")[..4], [11, 10, 13, 12]);
    assert_eq!(run("shfl.sync.idx.b32 %r0, %r1, 5, 31, -1;")[9], 15);
    // Segments of 8 lanes.
    assert_eq!(run("shfl.sync.idx.b32 %r0, %r1, 5, 0x181f, -1;")[9], 23);
    assert_eq!(
        run("shfl.sync.down.b32 %r0|%p2, %r1, 4, 0x1807, -1; selp.b32 %r0, 1, 0, %p2;")[..8],
        [1, 1, 1, 1, 0, 0, 0, 0]
    );
    assert_eq!(run("vote.sync.ballot.b32 %r0, %p1, -1;")[0], 15);
    assert_eq!(run("vote.sync.any.pred %p2, %p1, -1; selp.b32 %r0, 1, 0, %p2;")[31], 1);
    assert_eq!(run("vote.sync.all.pred %p2, %p1, -1; selp.b32 %r0, 1, 0, %p2;")[31], 0);
    assert_eq!(run("match.any.sync.b32 %r0, %r2, -1;")[1], 0xAAAA_AAAA);
    assert_eq!(run("match.all.sync.b32 %r0|%p2, %r2, -1;")[1], 0);
    assert_eq!(run("redux.sync.add.u32 %r0, %i, -1;")[3], 496);
    assert_eq!(run("redux.sync.max.s32 %r0, %i, -1;")[3], 31);
    assert_eq!(run("elect.sync %r0|%p2, -1; selp.b32 %r0, 1, 0, %p2;")[..2], [1, 0]);
    assert_eq!(run("bar.red.popc.u32 %r0, 0, %p1;")[9], 4);
    assert_eq!(run("bar.red.and.pred %p2, 0, !%p1; selp.b32 %r0, 1, 0, %p2;")[9], 0);
    assert_eq!(run("mov.u32 %r0, %lanemask_lt;")[3], 7);
}

#[test]
fn atomics_happen_in_the_order_of_the_blocks_on_any_number_of_workers() {
    let body = "
ld.param.u64 %d1, [p_out];
setp.ne.u32 %p1, %i, 0; @%p1 ret;
mov.u32 %r1, %ctaid.x;
atom.global.exch.b32 %r2, [%d1+8], %r1;
atom.global.add.u32 %r3, [%d1], %r2;
red.global.max.u32 [%d1+16], %r1;
atom.global.cas.b32 %r4, [%d1+24], 0, %r1;
ret;";
    let results = |workers| {
        let outcome = run(&module("", body), 50, 32, &[0; 1], workers);
        assert!(outcome.findings.is_empty(), "{}", outcome.findings[0]);
        [0, 1, 2, 3].map(|i| outcome.bits(1, i).expect("the run ended"))
    };
    assert_eq!(results(1), [(0..49).sum::<u64>(), 49, 49, 1]);
    assert_eq!((results(2), results(5)), (results(1), results(1)));
}

#[test]
fn atomics_on_halves_and_on_vectors_change_each_element() {
    let single = |low: f32, high: f32| u64::from(low.to_bits()) | u64::from(high.to_bits()) << 32;
    for (start, instruction, expected) in [
        ([0x3C00, 0], "atom.global.add.noftz.f16 %h0, [%d9], %h9;", [0x4000, 0]),
        ([0x3C00_4000, 0], "red.global.add.noftz.f16x2 [%d9], %r9;", [0x4000_4200, 0]),
        ([0x3F80, 0], "atom.global.add.noftz.bf16 %h0, [%d9], %h8;", [0x4000, 0]),
        ([0x3C00_4000, 0], "red.global.max.noftz.v2.f16 [%d9], {%h9, %h9};", [0x3C00_4000, 0]),
        ([single(1.0, 2.0), 5], "red.global.v2.f32.add [%d9], {%r8, %r7};", [single(2.0, 4.0), 5]),
        (
            [single(1.0, 2.0), single(3.0, 4.0)],
            "atom.global.add.v4.f32 {%r1, %r2, %r3, %r4}, [%d9], {%r8, %r7, %r8, %r8}; mov.b64 %d5, {%r2, %r4}; st.global.b64 [%d9+16], %d5;",
            [single(2.0, 4.0), single(4.0, 5.0)],
        ),
        (
            [0x3C00, 0x3C00 << 48],
            "red.global.add.noftz.v4.f16x2 [%d9], {%r9, %r6, %r6, %r9};",
            [0x3C00_4000, 0x4000_3C00 << 32],
        ),
        (
            [1, 2],
            "atom.global.exch.b128 %q1, [%d9], %q0; mov.b128 {%d5, %d6}, %q1; st.global.b64 [%d9+16], %d6;",
            [7, 8],
        ),
    ] {
        let body = format!(
            ".reg .b128 %q<2>; ld.param.u64 %d9, [p_out]; ld.global.v2.b64 {{%d1, %d2}}, [%in]; st.global.v2.b64 [%d9], {{%d1, %d2}};
mov.b64 %d7, 7; mov.b64 %d8, 8; mov.b128 %q0, {{%d7, %d8}}; mov.b32 %r8, 0f3F800000; mov.b32 %r7, 0f40000000; mov.b32 %r6, 0;
mov.b32 %r9, 0x3C003C00; mov.b16 %h9, 0x3C00; mov.b16 %h8, 0x3F80; {instruction} ret;"
        );
        let outcome = run(&module("", &body), 1, 1, &start, 1);
        assert!(outcome.findings.is_empty(), "{instruction}: {}", outcome.findings[0]);
        let found = [0, 1].map(|i| outcome.bits(1, i).expect("the run ended"));
        assert_eq!(found, expected, "{instruction}");
        let old = outcome.bits(1, 2).expect("the run ended");
        match () {
            () if instruction.contains("v4.f32") => assert_eq!(old, single(2.0, 4.0)),
            () if instruction.contains("b128") => assert_eq!(old, 2),
            () => {}
        }
    }
}

#[test]
fn barriers_of_some_threads_wait_for_them_alone() {
    // Two warps write and arrive; two others wait for them and read. The writers go on at once, to their end.
    let body = "
mov.u32 %r1, tile; shl.b32 %r2, %i, 3; and.b32 %r2, %r2, 0x1FF; add.u32 %r1, %r1, %r2;
setp.ge.u32 %p1, %i, 64; @%p1 bra READ;
cvt.u64.u32 %d1, %i; st.shared.b64 [%r1], %d1; bar.arrive 3, 128; mov.b64 %d2, 7; st.global.b64 [%out], %d2; ret;
READ: barrier.cta.sync.aligned 3, 128; ld.shared.b64 %d2, [%r1]; st.global.b64 [%out], %d2;
bar.red.popc.u32 %r3, 4, 64, %p1; cvt.u64.u32 %d3, %r3; add.u64 %d2, %d2, %d3; st.global.b64 [%out], %d2; ret;";
    let text = module(".shared .align 8 .b8 tile[512];", body);
    let all = written(&text, 128, &[0; 128]);
    assert!(all[..64].iter().all(|value| *value == 7));
    assert_eq!(all[64..], (0..64).map(|i| i + 64).collect::<Vec<_>>());
    // As often as they like: what has arrived is counted once.
    let again = "mov.u32 %r1, 0; setp.ge.u32 %p1, %i, 32; L: @%p1 bar.sync 1, 64; @!%p1 bar.arrive 1, 64; @%p1 bar.arrive 2, 64;
@!%p1 bar.sync 2, 64; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 5; @%p2 bra L; cvt.u64.u32 %d1, %r1; st.global.b64 [%out], %d1; ret;";
    assert_eq!(written(&module("", again), 64, &[0; 64]), [5; 64]);
    for (body, says) in [
        ("setp.lt.u32 %p1, %i, 32; @%p1 bar.sync 1, 64; ret;", "barrier 1 waits for 64 threads, of which 32 come"),
        ("bar.sync 1, 40;", "barrier 1 is to wait for 40 threads, which is no multiple of 32"),
        ("bar.arrive 16, 64;", "a thread comes to barrier 16, and a block has 16"),
        ("setp.lt.u32 %p1, %i, 5; @%p1 bar.arrive 1, 64; ret;", "thread (5, 0, 0) of its warp does not come with it"),
    ] {
        let found = finding(&module("", body), 64);
        assert!(found.kind == Kind::DivergentBarrier && found.detail.contains(says), "{found}");
    }
}

#[test]
fn a_warp_that_waits_for_another_one_of_its_block_lets_it_go_on() {
    for wait in ["", "nanosleep.u32 100;"] {
        let body = format!(
            "setp.ge.u32 %p1, %i, 32; mov.u32 %r1, 0; @%p1 bra SET;
L: {wait} atom.shared.or.b32 %r2, [tile], 0; setp.eq.u32 %p2, %r2, 0; @%p2 bra L; bra END;
SET: mov.b32 %r2, 9; atom.shared.exch.b32 %r3, [tile], %r2;
END: cvt.u64.u32 %d1, %r2; st.global.b64 [%out], %d1; ret;"
        );
        let begin = "setp.eq.u32 %p3, %i, 0; mov.b32 %r9, 0; @%p3 st.shared.b32 [tile], %r9; bar.sync 0;";
        let text = module(".shared .align 4 .b8 tile[4];", &format!("{begin}{body}"));
        assert_eq!(written(&text, 64, &[0; 64]), [9; 64]);
    }
}

/// One warp writes and arrives, another one waits for it by the state or by the parity, round after round.
#[test]
fn threads_arrive_at_an_mbarrier_and_wait_for_its_phases() {
    for (token, wait) in [
        ("mbarrier.arrive.shared.b64 %d4, [full];", "mbarrier.test_wait.shared.b64 %p3, [full], %d4;"),
        (
            "mbarrier.arrive.release.cta.shared::cta.b64 _, [full], 1;",
            "mbarrier.try_wait.parity.shared.b64 %p3, [full], %r5, 1000;",
        ),
    ] {
        let body = format!(
            "setp.eq.u32 %p1, %i, 0; @%p1 mbarrier.init.shared.b64 [full], 64; @%p1 mbarrier.init.shared::cta.b64 [empty], 64; bar.sync 0;
mov.u32 %r3, 0; mov.u32 %r6, 0; mov.b64 %d6, 0; setp.ge.u32 %p2, %i, 32; mov.u32 %r1, tile; shl.b32 %r2, %i, 3; and.b32 %r2, %r2, 255; add.u32 %r1, %r1, %r2;
L: and.b32 %r5, %r3, 1; @%p2 bra READ;
add.u32 %r4, %i, %r3; cvt.u64.u32 %d1, %r4; st.shared.b64 [%r1], %d1; {token} mbarrier.arrive.shared.b64 %d5, [empty];
W: mbarrier.test_wait.shared.b64 %p3, [empty], %d5; @!%p3 bra W; bra NEXT;
READ: {token}
R: {wait} @!%p3 bra R; ld.shared.b64 %d1, [%r1]; add.u64 %d6, %d6, %d1; mbarrier.arrive.shared.b64 %d5, [empty];
E: mbarrier.test_wait.shared.b64 %p3, [empty], %d5; @!%p3 bra E;
NEXT: add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 5; @%p4 bra L; st.global.b64 [%out], %d6; ret;"
        );
        let text =
            module(".shared .align 8 .b8 tile[256]; .shared .align 8 .b64 full; .shared .align 8 .b64 empty;", &body);
        let all = written(&text, 64, &[0; 64]);
        assert_eq!(all[32..], (0..32).map(|i| 5 * i + 10).collect::<Vec<u64>>(), "{wait}");
    }
    let counts = "setp.eq.u32 %p1, %i, 0; mbarrier.init.shared.b64 [bar], 5; mbarrier.arrive.noComplete.shared.b64 %d1, [bar], 2;
mbarrier.arrive_drop.shared.b64 %d2, [bar]; mbarrier.pending_count.b64 %r1, %d1; mbarrier.pending_count.b64 %r2, %d2;
mbarrier.arrive.shared.b64 %d3, [bar], 2; mbarrier.arrive.shared.b64 %d4, [bar]; mbarrier.pending_count.b64 %r3, %d4;
shl.b32 %r2, %r2, 8; shl.b32 %r3, %r3, 16; or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3; mbarrier.inval.shared.b64 [bar];
cvt.u64.u32 %d1, %r1; st.global.b64 [%out], %d1; ret;";
    assert_eq!(written(&module(".shared .align 8 .b64 bar;", counts), 1, &[0]), [0x04_0305]);
    let alone = "mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 %d1, [bar];
W: mbarrier.test_wait.shared.b64 %p1, [bar], %d1; @!%p1 bra W; ret;";
    assert_eq!(finding(&module(".shared .align 8 .b64 bar;", alone), 1).kind, Kind::NonTerminating);
}

#[test]
fn copies_complete_on_an_mbarrier() {
    let begin = "setp.eq.u32 %p1, %i, 0; @%p1 mbarrier.init.shared.b64 [bar], COUNT; bar.sync 0; mov.u32 %r1, tile; mov.u32 %r9, 0;";
    let end = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], %r9; @!%p2 bra W;
shl.b32 %r2, %i, 3; xor.b32 %r2, %r2, 8; add.u32 %r2, %r1, %r2; ld.shared.b64 %d2, [%r2]; st.global.b64 [%out], %d2; ret;";
    let globals = ".shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar;";
    let input: Vec<u64> = (0..96).map(|i| i * 3).collect();
    let expected: Vec<u64> = (0..96).map(|i| (i ^ 1) * 3).collect();
    let bulk = "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 768;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in], 768, [bar];";
    let text = module(globals, &format!("{} {bulk} {end}", begin.replace("COUNT", "1")));
    assert_eq!(written(&text, 96, &input), expected);
    let sites = run(&text, 1, 96, &input, 1).sites;
    let copied = sites.iter().find(|site| site.space == Space::Global && site.operation == Operation::Load);
    let counts = copied.expect("the copy").counts;
    assert_eq!((counts.requests, counts.lanes, counts.sectors), (2, 48, 24));
    let each = "mad.lo.u32 %r3, %i, 8, %r1; cp.async.ca.shared.global [%r3], [%in], 8; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];";
    let text = module(globals, &format!("{} {each} {end}", begin.replace("COUNT", "96")));
    assert_eq!(written(&text, 96, &input), expected);
    let each = each.replace(".noinc", "") + "mbarrier.arrive.shared.b64 %d9, [bar];";
    let text = module(globals, &format!("{} {each} {end}", begin.replace("COUNT", "96")));
    assert_eq!(written(&text, 96, &input), expected);
    // Back to global memory.
    let back = "mov.u32 %r1, tile; shl.b32 %r2, %i, 3; add.u32 %r2, %r1, %r2; ld.global.b64 %d1, [%in]; st.shared.b64 [%r2], %d1;
fence.proxy.async.shared::cta; bar.sync 0; setp.eq.u32 %p1, %i, 0; @!%p1 ret;
cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; ret;";
    assert_eq!(written(&module(globals, back), 32, &input), input[..32]);
    let odd = "mov.u32 %r1, tile; cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 20; ret;";
    let found = finding(&module(globals, odd), 1);
    assert!(found.kind == Kind::Misaligned && found.detail.contains("20 bytes in bulk"), "{found}");
}

#[test]
fn shared_memory_that_the_system_reserves_is_zero_when_a_block_begins() {
    let body = "mov.u32 %r1, %reserved_smem_offset_1; shl.b32 %r3, %i, 2; add.u32 %r1, %r1, %r3; ld.shared.b32 %r2, [%r1+64];
add.u32 %r2, %r2, 5; st.shared.b32 [%r1+64], %r2; cvt.u64.u32 %d1, %r2; ld.param.u64 %d2, [p_out]; mov.u32 %r4, %ctaid.x;
mad.lo.u32 %r4, %r4, 40, %i; mad.wide.u32 %d2, %r4, 8, %d2; st.global.b64 [%d2], %d1; ret;";
    let outcome = run(&module("", body), 2, 40, &[0; 80], 1);
    assert!(outcome.findings.is_empty(), "{}", outcome.findings[0]);
    assert!((0..80).all(|i| outcome.bits(1, i) == Some(5)));
}

#[test]
fn what_is_not_exact_is_known_of_an_entry() {
    let body = "ex2.approx.ftz.f32 %r1, %r2; add.f32 %r1, %r1, %r1; prefetch.global.L1 [%in]; nanosleep.u32 20; mov.u32 %r3, %clock;
mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r3, %r4}, {%r1}, {%r1}, {%r2, %r2};
mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%r5, %r6, %r7, %r8}, {%r1, %r2}, {%r3}, {%r5, %r6, %r7, %r8};
sqrt.rn.f32 %r1, %r1; div.full.f32 %r1, %r1, %r1; mov.b32 %r1, %r2; ret;";
    let program = program(&module("", body));
    let of = |set: &std::collections::BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
    assert_eq!(
        of(&program.exactness().approximate),
        ["div.full.f32", "ex2.approx.ftz.f32", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", "mov %clock"]
    );
    assert_eq!(of(&program.exactness().ignored), ["nanosleep.u32", "prefetch.global.L1"]);
}

#[test]
fn positions_are_the_innermost_ones_within_a_folder() {
    let body = "
.loc 1 5 3
.loc 2 7 1, function_name $L, inlined_at 1 5 3
ld.global.b64 %d1, [%in];
.loc 2 0 0
st.global.b64 [%out], %d1;
ret;";
    let text = module("", body) + ".file 1 \"kernels/a.rs\"\n.file 2 \"core/ptr.rs\"\n";
    let parsed = parse(&text).expect("a module");
    let at = |within| {
        let program = lower(&parsed, "e", Lines { file: "test.ptx", within }).expect("a program");
        let pcs = program.accesses.iter().map(|access| access.instructions[0].pc.position());
        pcs.map(|at| (at.file, at.line)).collect::<Vec<_>>()
    };
    assert_eq!(at("kernels/"), [("kernels/a.rs", 5); 2]);
    assert_eq!(at(""), [("core/ptr.rs", 7); 2]);
}
