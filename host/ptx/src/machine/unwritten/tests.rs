use crate::machine::tests::{finding, module, program, run};
use engine::Kind;

fn clean(body: &str) {
    let outcome = run(&module("", body), 1, 64, &[0; 64], 1);
    assert!(outcome.findings.is_empty(), "{body}\n{}", outcome.findings[0]);
}

#[test]
fn a_register_that_nobody_wrote_is_found_where_a_thread_goes_by_it() {
    for (body, name, thread) in [
        ("st.global.b64 [%out], %d1; ret;", "%d1", 0),
        ("ld.global.b64 %d1, [%d2]; ret;", "%d2", 0),
        ("@%p1 bra A; A: ret;", "%p1", 0),
        // What is made of it is no better.
        ("mul.wide.u32 %d1, %r1, 8; add.s64 %d2, %in, %d1; ld.global.b64 %d3, [%d2]; ret;", "%d2", 0),
        ("add.u32 %r2, %r1, 1; mov.u32 %r3, %r2; setp.lt.u32 %p1, %r3, 5; @%p1 bra A; A: ret;", "%p1", 0),
        ("vote.sync.any.pred %p1, %p2, -1; ret;", "%p2", 0),
        ("shfl.sync.idx.b32 %r1, %i, %r2, 31, -1; ret;", "%r2", 0),
        // A shuffle hands it on.
        (
            "setp.lt.u32 %p1, %i, 4; @%p1 mov.u32 %r1, 5; shfl.sync.down.b32 %r2, %r1, 2, 31, -1; st.global.b32 [%out], %r2; ret;",
            "%r2",
            2,
        ),
        // Some lanes have written it, by one way of two or by a guard.
        ("setp.lt.u32 %p1, %i, 40; @%p1 mov.b64 %d1, 1; st.global.b64 [%out], %d1; ret;", "%d1", 40),
        ("setp.lt.u32 %p1, %i, 7; @!%p1 bra A; mov.b64 %d1, 1; A: st.global.b64 [%out], %d1; ret;", "%d1", 7),
        // In the first round of a loop.
        (
            "mov.u32 %r1, 0; L: setp.eq.u32 %p1, %r1, 0; @!%p1 mov.b64 %d1, 1; st.global.b64 [%out], %d1;
add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3; @%p2 bra L; ret;",
            "%d1",
            0,
        ),
        ("prmt.b32 %r1, %r2, %r3, 0x7604; st.global.b32 [%out], %r1; ret;", "%r1", 0),
        ("selp.b64 %d1, 1, %d2, %p1; st.global.b64 [%out], %d1; ret;", "%d1", 0),
        ("setp.lt.u32 %p1, %i, 9; selp.b64 %d1, 1, %d2, %p1; st.global.b64 [%out], %d1; ret;", "%d1", 9),
    ] {
        let found = finding(&module("", body), 64);
        let says = format!("goes by `{name}`, which holds what no instruction has written");
        assert!(found.kind == Kind::Uninitialized && found.detail.contains(&says), "{body}\n{found}");
        assert_eq!(found.thread, [thread, 0, 0], "{body}");
        assert!(found.at.is_some(), "{found}");
    }
}

#[test]
fn registers_that_are_written_in_time_are_not() {
    // By both ways; by guards that are alike; in a loop that is gone through at least once.
    clean(
        "setp.lt.u32 %p1, %i, 7; @%p1 bra A; mov.b64 %d1, 1; bra B; A: mov.b64 %d1, 2; B: st.global.b64 [%out], %d1; ret;",
    );
    clean("setp.lt.u32 %p1, %i, 7; @%p1 mov.b64 %d1, 1; @!%p1 mov.b64 %d1, 2; st.global.b64 [%out], %d1; ret;");
    clean("setp.lt.u32 %p1, %i, 7; @%p1 mov.b64 %d1, 1; @%p1 st.global.b64 [%out], %d1; ret;");
    clean(
        "mov.u32 %r1, 0; L: @%p2 bra X; X: mov.b64 %d1, 1; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3; @%p2 bra L;
st.global.b64 [%out], %d1; ret;"
            .replace("@%p2 bra X; X:", "")
            .as_str(),
    );
    // It is handed on, and nobody goes by it.
    clean("mov.b64 %d1, %d2; add.s64 %d3, %d1, 1; mov.b64 %d1, 5; st.global.b64 [%out], %d1; ret;");
    // Lanes that have none take part in a sum of which only the first lane's is used, as Triton has it.
    clean(
        "setp.lt.u32 %p1, %i, 4; @%p1 mov.u32 %r1, 5; shfl.sync.bfly.b32 %r2, %r1, 2, 31, -1; add.u32 %r3, %r1, %r2;
setp.eq.u32 %p2, %i, 0; @%p2 st.global.b32 [%out], %r3; ret;",
    );
    // Half of a pair.
    clean("mov.b32 %r1, 3; mov.b64 %d1, {%r1, %r2}; cvt.u32.u64 %r3, %d1; st.global.b32 [%out], %r3; ret;");
    // Bytes of which some are never looked at, as structures of three bytes are put together.
    clean("mov.b32 %r1, 3; prmt.b32 %r2, %r3, %r1, 0x7604; st.global.u8 [%out], %r2; ret;");
    clean("mov.b32 %r1, 3; bfi.b32 %r2, %r1, %r3, 0, 8; st.global.u8 [%out], %r2; ret;");
    clean("setp.ne.u32 %p1, %i, 99; selp.b64 %d1, 1, %d2, %p1; st.global.b64 [%out], %d1; ret;");
}

#[test]
fn registers_that_every_way_writes_are_not_watched() {
    let watched = |body: &str| program(&module("", body)).watch.names.clone();
    assert_eq!(watched("mov.b64 %d1, 1; st.global.b64 [%out], %d1; ret;"), [""; 0]);
    assert_eq!(watched("st.global.b64 [%out], %d1; ret;"), ["%d1"]);
    assert_eq!(watched("add.s64 %d1, %d2, 1; st.global.b64 [%out], %d1; ret;"), ["%d2", "%d1"]);
    let unreached = "ret; st.global.b64 [%out], %d1; ret;";
    assert_eq!(watched(unreached), [""; 0]);
}

#[test]
fn local_memory_is_read_behind_its_writes() {
    let local = ".local .align 16 .b8 own[64]; .reg .b64 %o; mov.u64 %o, own;";
    for (body, kind, says) in [
        (
            "ld.local.b32 %r1, [%o+4]; ret;",
            Kind::Uninitialized,
            "reads byte 4 of its local memory, which it has not written",
        ),
        (
            "mov.b32 %r1, 0; st.local.b32 [%o], %r1; ld.local.v2.b32 {%r1, %r2}, [%o]; ret;",
            Kind::Uninitialized,
            "reads byte 4",
        ),
        ("ld.local.b64 %d1, [%o+4]; ret;", Kind::Misaligned, "8 bytes at byte 4 of its local memory"),
        ("ld.local.b64 %d1, [%o+64]; ret;", Kind::OutOfBounds, "which has 64"),
        ("cvta.local.u64 %d1, %o; ld.b32 %r1, [%d1+8]; ret;", Kind::Uninitialized, "byte 8 of its local memory"),
    ] {
        let found = finding(&module("", &format!("{local} {body}")), 33);
        assert!(found.kind == kind && found.detail.contains(says), "{body}\n{found}");
    }
    // A word of which a part is written is what structures with padding are copied by.
    clean(&format!(
        "{local} mov.b32 %r1, 0; st.local.b32 [%o+8], %r1; ld.local.b64 %d1, [%o+8]; st.global.b64 [%out], %d1; ret;"
    ));
    // Each block has its own.
    let text = format!(
        "{local} mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @%p1 st.local.b32 [%o], %r1; ld.local.b32 %r2, [%o]; ret;"
    );
    let outcome = run(&module("", &text), 2, 1, &[0; 1], 1);
    assert_eq!(outcome.findings[0].block, [1, 0, 0]);
}
