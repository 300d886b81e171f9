use crate::machine::tests::{finding, module, run};
use engine::Kind;

/// The lines of a finding, from the first of the body on.
fn lines(body: &str, threads: u32, kind: Kind) -> [u32; 2] {
    let text = module("", body);
    let first = text.lines().position(|line| line == "BEGIN:").expect("the body") as u32 + 1;
    let found = finding(&text, threads);
    assert_eq!(found.kind, kind, "{found}");
    [found.at, found.other].map(|at| at.expect("a line").line - first)
}

#[test]
fn of_lanes_that_do_not_meet_both_lines_are_named() {
    let barrier = "BEGIN:
setp.lt.u32 %p1, %i, 5; mov.b64 %d1, 0; @!%p1 bra A;
bar.sync 0;
A: add.s64 %d1, %d1, 1;
st.global.b64 [%out], %d1;
ret;";
    assert_eq!(lines(barrier, 32, Kind::DivergentBarrier), [2, 4]);
    let two = "BEGIN:
setp.lt.u32 %p1, %i, 5; @%p1 bra A;
bar.sync 0;
bra B; A:
bar.sync 0;
B: ret;";
    assert_eq!(lines(two, 32, Kind::DivergentBarrier), [2, 4]);
    let mask = "BEGIN:
setp.lt.u32 %p1, %i, 5; @!%p1 bra A;
bar.warp.sync -1;
A: mov.b32 %r1, 1;
bar.sync 0; ret;";
    assert_eq!(lines(mask, 32, Kind::DivergentWarp), [2, 4]);
    let passed = "BEGIN:
mov.b64 %d1, 0; setp.ge.u32 %p1, %i, 32; @%p1 bra A;
bar.sync 0;
A: st.global.b64 [%out], %d1;
ret;";
    assert_eq!(lines(passed, 64, Kind::DivergentBarrier), [2, 3]);
}

#[test]
fn threads_that_end_before_a_barrier_are_not_waited_for() {
    for body in [
        "setp.ge.u32 %p1, %i, 32; @%p1 bra A; bar.sync 0; A: ret;",
        // In the same warp, whose lanes stand at the end that all come to.
        "setp.ge.u32 %p1, %i, 20; @%p1 bra A; bar.sync 0; bar.sync 0; A: ret;",
        "setp.ge.u32 %p1, %i, 20; @%p1 bra A; mov.u32 %r1, 1; shfl.sync.up.b32 %r2, %r1, 1, 0, -1; A: ret;",
        // Lanes with masks of their own meet by themselves.
        "mov.u32 %r3, %laneid; setp.lt.u32 %p1, %r3, 16; selp.b32 %r1, 0xffff, 0xffff0000, %p1; bar.warp.sync %r1;
shfl.sync.bfly.b32 %r2, %i, 8, 31, %r1; ret;",
        // They have made their accesses before.
        "mov.b64 %d1, 0; st.global.b64 [%out], %d1; setp.ge.u32 %p1, %i, 32; @%p1 bra A; bar.sync 0; A: ret;",
        // In the round of a loop that they leave.
        "mov.b64 %d1, 0; mov.u32 %r1, 0; shr.u32 %r2, %i, 5; L: st.global.b64 [%out], %d1; setp.eq.u32 %p1, %r1, %r2; @%p1 bra A;
bar.sync 0; add.u32 %r1, %r1, 1; bra L; A: ret;",
    ] {
        let outcome = run(&module("", body), 1, 64, &[0; 64], 1);
        assert!(outcome.findings.is_empty(), "{body}\n{}", outcome.findings[0]);
    }
}
