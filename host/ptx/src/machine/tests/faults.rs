//! What is found in kernels that are wrong, and what is refused.

use super::{LINES, finding, module, run};
use crate::{lower, parse};
use engine::Kind;

#[test]
fn what_is_wrong_with_a_kernel_is_found() {
    let shared = ".shared .align 4 .b8 tile[256];";
    let near = "mul.lo.u32 %r1, %i, 4; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1;";
    for (globals, body, threads, kind, says) in [
        (
            "",
            "ld.global.b64 %d1, [%in+8192]; ret;",
            32,
            Kind::OutOfBounds,
            "reads 8 bytes at byte 8192 of `in`, which has 8192",
        ),
        ("", "ld.global.b64 %d1, [%in+-8]; ret;", 32, Kind::OutOfBounds, "8 bytes at byte -8 of `in`"),
        ("", "ld.global.b64 %d1, [%at]; ret;", 32, Kind::OutOfBounds, "a pointer that is no buffer of the launch"),
        (
            "",
            "ld.global.b64 %d1, [%in+4]; ret;",
            32,
            Kind::Misaligned,
            "8 bytes at byte 4 of `in`, which is no multiple of 8",
        ),
        (
            shared,
            "ld.shared.b32 %r1, [tile+256]; ret;",
            1,
            Kind::OutOfBounds,
            "4 bytes at byte 256 of `tile`, which has 256",
        ),
        (
            shared,
            "mov.u32 %r1, -1; ld.shared.b32 %r2, [%r1]; ret;",
            1,
            Kind::OutOfBounds,
            "4 bytes at byte -1 of `dynamic",
        ),
        (
            shared,
            "mov.u32 %r1, 0x7000000; ld.shared.b32 %r2, [%r1]; ret;",
            1,
            Kind::OutOfBounds,
            "where the block has none",
        ),
        (shared, "ld.shared.b32 %r1, [tile]; ret;", 1, Kind::Uninitialized, "which no thread has written"),
        ("", "setp.lt.u32 %p1, %i, 5; @%p1 bar.sync 0; ret;", 32, Kind::DivergentBarrier, "does not come with it"),
        (
            "",
            "mov.b64 %d1, 0; setp.ge.u32 %p1, %i, 32; @%p1 bra A; bar.sync 0; A: st.global.b64 [%out], %d1; ret;",
            64,
            Kind::DivergentBarrier,
            "which thread (32, 0, 0) passed by on its way to an access",
        ),
        (
            "",
            "setp.lt.u32 %p1, %i, 32; @%p1 bra A; bar.sync 0; ret; A: bar.sync 0; ret;",
            64,
            Kind::DivergentBarrier,
            "waits at another",
        ),
        (
            "",
            "setp.lt.u32 %p1, %i, 5; @%p1 bar.warp.sync -1; ret;",
            32,
            Kind::DivergentWarp,
            "names lane 5, which waits",
        ),
        (
            "",
            "setp.lt.u32 %p1, %i, 5; @!%p1 ret; shfl.sync.down.b32 %r1, %i, 1, 31, -1; ret;",
            32,
            Kind::InactiveLane,
            "lane 5",
        ),
        ("", "L: bra L;", 32, Kind::NonTerminating, "more than"),
        ("", "L: bar.sync 0; bra L;", 32, Kind::NonTerminating, "barriers"),
        ("", "trap;", 32, Kind::Panic, "a trap"),
        (
            "",
            ".local .b8 own[8]; mov.u64 %d1, own; ld.local.b64 %d2, [%d1+8]; ret;",
            1,
            Kind::OutOfBounds,
            "local memory, which has 8",
        ),
    ] {
        let finding = finding(&module(globals, body), threads);
        assert!(finding.kind == kind && finding.detail.contains(says), "{body}\n{finding}");
        assert_eq!(finding.at.map(|at| at.file), Some("test.ptx"), "{finding}");
    }
    // Two threads at the same word, with nothing between: both lines are named.
    let race = format!("{near} st.shared.b32 [%r2], %i;\nld.shared.b32 %r3, [tile+4]; ret;");
    let found = finding(&module(shared, &race), 32);
    assert_eq!(found.kind, Kind::Race, "{found}");
    let lines = [found.at, found.other].map(|at| at.expect("a line").line);
    assert_eq!(lines[0].abs_diff(lines[1]), 1, "{found}");
    let ordered = format!("{near} st.shared.b32 [%r2], %i;\nbar.warp.sync -1; ld.shared.b32 %r3, [tile+4]; ret;");
    assert!(run(&module(shared, &ordered), 1, 32, &[0; 32], 1).findings.is_empty());
}

#[test]
fn what_is_not_carried_out_is_said_before_anything_runs() {
    let error = |body: &str| {
        let text = module("", body);
        let module = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        lower(&module, "e", LINES).map(|_| ()).expect_err(body).to_string()
    };
    for (body, says) in [
        (
            "bogus.b32 %r1, %r2; tex.2d.f32 %r1, [%r2]; bogus.b32 %r1;",
            "`bogus.b32`: this instruction is not carried out; 2 other",
        ),
        ("add.s32 %r1, %d1, 4;", "line 14, column 1: `add.s32`: `%d1` has 64 bits, and what stands there has 32 bits"),
        ("add.s32 %r99, %r1, 4;", "`%r99` is no register that it could write"),
        ("add.s32 %r1, %r2;", "it has 1 operands that are read, and takes 2"),
        ("bra NOWHERE;", "there is no label `NOWHERE` here"),
        ("call printf, (%r1);", "`printf` has no body in this module"),
        ("ld.global.b32 %r1, [nothing];", "there is no `nothing` here"),
        ("mov.u32 %r1, %envreg3;", "`%envreg3` is neither declared"),
        ("ld.param.b64 %d1, [p_out+8];", "8 bytes at byte 8 of the parameter `p_out`, which has 8"),
        ("bar.arrive 0;", "it takes a barrier and a number of threads"),
    ] {
        let said = error(body);
        assert!(said.contains(says), "{said}\n{says}");
    }
    let clusters = module("", "ret;").replacen("p_out)", "p_out) .reqnctapercluster 2, 1, 1", 1);
    let parsed = parse(&clusters).expect("a module");
    let said = lower(&parsed, "e", LINES).map(|_| ()).expect_err("clusters").to_string();
    assert!(said.contains("`e` asks for clusters of [2, 1, 1] blocks"), "{said}");
    let text = module("", "ret;");
    let parsed = parse(&text).expect("a module");
    let said = lower(&parsed, "other", LINES).map(|_| ()).expect_err("no entry").to_string();
    assert_eq!(said, "the module has no entry `other`: it has `e`");
}
