use super::super::simulate;
use crate::machine::Error;
use crate::machine::tests::{LINES, finding, module, program, run, written};
use crate::{lower, parse};
use engine::{Kind, Memory, Options};
use gpu::suite::{Buffer, Launch, Plan, Space};
use std::sync::Arc;

/// What the first thread finds in so many words of 64 bits from a variable on.
fn words(globals: &str, variable: &str, count: usize) -> Vec<u64> {
    let loads: String = (0..count)
        .map(|i| format!("ld.global.b64 %d1, [%at+{}]; st.global.b64 [%out+{}], %d1;", 8 * i, 8 * i))
        .collect();
    let text = module(globals, &format!("mov.u64 %at, {variable}; {loads} ret;"));
    let outcome = run(&text, 1, 1, &[0], 1);
    assert!(outcome.findings.is_empty(), "{globals}: {}", outcome.findings[0]);
    (0..count as u64).map(|i| outcome.bits(1, i).expect("the run ended")).collect()
}

#[test]
fn variables_hold_what_the_module_says() {
    for (globals, expected) in [
        (".global .align 8 .b8 v[16];", [0, 0]),
        (".global .align 8 .b64 v[2] = {1, -2};", [1, u64::MAX - 1]),
        (".global .align 8 .b8 v[16] = {1, 2, 3};", [0x0003_0201, 0]),
        (".global .align 8 .b8 v[17] = {255, 0, 0, 0, 0, 0, 0, 0, 7};", [255, 7]),
        (".global .align 8 .s32 v[2][2] = {{-1}, {3, 4}};", [0xFFFF_FFFF, 4 << 32 | 3]),
        (".global .align 8 .s32 v[][2] = {{1, 2}, {3, 4}};", [2 << 32 | 1, 4 << 32 | 3]),
        (".global .align 8 .u16 v[] = {1, 2, 3, 4, 5, 6, 7, 8};", [0x4_0003_0002_0001, 0x8_0007_0006_0005]),
        (".global .align 8 .v2 .f32 v[2] = {{1.0, 2}, {0f40400000}};", [0x4000_0000_3F80_0000, 0x4040_0000]),
        (".global .align 8 .f64 v[2] = {1.0, 0f40000000};", [1f64.to_bits(), 2f64.to_bits()]),
        (".const .align 8 .b64 v[2] = {5, 6};", [5, 6]),
    ] {
        assert_eq!(words(globals, "v", 2), expected, "{globals}");
    }
}

#[test]
fn variables_hold_addresses_of_others() {
    let globals = "
.global .align 8 .u64 rows[3] = {row+8, generic(row), link};
.global .align 8 .u64 row[2] = {11, 12};
.global .align 8 .u64 link = rows;";
    let body = "
ld.global.u64 %d1, [rows]; ld.global.u64 %d2, [%d1]; ld.global.u64 %d3, [rows+16]; ld.global.u64 %d4, [%d3];
ld.global.u64 %d5, [%d4+8]; ld.u64 %d6, [%d5]; shl.b64 %d6, %d6, 8; or.b64 %d6, %d6, %d2; st.global.b64 [%out], %d6; ret;";
    assert_eq!(written(&module(globals, body), 1, &[0]), [11 << 8 | 12]);
    let program = program(&module(globals, body));
    assert_eq!(program.variables().collect::<Vec<_>>(), [("rows", 24), ("row", 16), ("link", 8)]);
}

#[test]
fn blocks_share_a_variable_and_its_bounds_and_kind_are_checked() {
    let globals = ".global .align 4 .u32 count; .const .align 4 .u32 fixed[2] = {1, 2};";
    let outcome = run(&module(globals, "red.global.add.u32 [count], 1; ret;"), 3, 32, &[0; 32], 2);
    assert!(outcome.findings.is_empty());
    assert_eq!(outcome.bits(2, 0), Some(96), "it stands behind the buffers of the plan");
    assert!(outcome.sites.iter().all(|site| site.space == Space::Global));
    for (body, kind, says) in [
        ("ld.global.u32 %r1, [count+4]; ret;", Kind::OutOfBounds, "byte 4 of `count`, which has 4"),
        ("ld.const.u32 %r1, [fixed+8]; ret;", Kind::OutOfBounds, "byte 8 of `fixed`, which has 8"),
        ("ld.const.u32 %r1, [fixed+2]; ret;", Kind::Misaligned, "byte 2 of `fixed`"),
        ("mov.u64 %d1, fixed; st.global.u32 [%d1], 1; ret;", Kind::OutOfBounds, "`fixed`, which is constant memory"),
        ("mov.u32 %r1, %ctaid.x; st.global.u32 [count], %i; ret;", Kind::Race, "byte 0 of `count`"),
    ] {
        let found = finding(&module(globals, body), 32);
        assert!(found.kind == kind && found.detail.contains(says), "{body}\n{found}");
    }
}

#[test]
fn a_buffer_of_its_name_stands_for_a_variable() {
    let text =
        module(".global .align 8 .b64 v[2] = {1, 2};", "ld.global.b64 %d1, [v+8]; st.global.b64 [%out], %d1; ret;");
    let buffers =
        [Buffer::zeroed("in", 1, |_| 0u64), Buffer::zeroed("out", 1, |_| 0u64), Buffer::input("v", 2, |i| i + 40)];
    let shape = Launch { grid: [1; 3], block: [1; 3], shared_bytes: 0 };
    let plan = buffers.into_iter().fold(Plan::new(shape), |plan, buffer| plan.buffer(buffer.expect("a small buffer")));
    let words = [Memory::base(0), Memory::base(1)];
    let program = program(&text);
    let outcome = simulate(&program, Arc::new(plan), &words, &[false, true, false], &Options::default(), &|_, _| ());
    assert_eq!(outcome.expect("it fits").bits(1, 0), Some(41));
}

#[test]
fn variables_that_cannot_be_made_are_refused_with_their_names() {
    let simulated = |globals: &str| -> Result<(), Error> {
        let shape = Launch { grid: [1; 3], block: [1; 3], shared_bytes: 0 };
        let buffers = [Buffer::zeroed("in", 1, |_| 0u64), Buffer::zeroed("out", 1, |_| 0u64)];
        let plan =
            buffers.into_iter().fold(Plan::new(shape), |plan, buffer| plan.buffer(buffer.expect("a small buffer")));
        let program = program(&module(globals, "ld.global.b8 %h1, [v]; ret;"));
        let words = [Memory::base(0), Memory::base(1)];
        simulate(&program, Arc::new(plan), &words, &[false, true], &Options::default(), &|_, _| ()).map(|_| ())
    };
    let says = |globals: &str| simulated(globals).expect_err(globals).to_string();
    assert!(says(".extern .global .b8 v[4];").contains("`v` of 4 bytes, which another module has"));
    assert!(says(".global .b8 v[1099511627776];").contains("`v` would have"));
    assert!(simulated(".global .b8 v[4];").is_ok());
    let lowered = |globals: &str| {
        let text = module(globals, "ld.global.b8 %h1, [v]; ret;");
        let parsed = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        lower(&parsed, "e", LINES).map(|_| ()).expect_err(globals).to_string()
    };
    assert!(lowered(".global .b8 v[2] = {1, 2, 3};").contains("`v` has 2 bytes, and is given more"));
    assert!(lowered(".global .u64 v = nothing;").contains("there is no `nothing` here"));
    assert!(lowered(".shared .b8 s[4]; .global .u64 v = s;").contains("`s` is in no memory whose addresses"));
    assert!(says(".global .b8 v[4][4611686018427387904] = {{1}, {2}};").contains("`v` would have"));
}
