use crate::machine::tests::{finding, module, run, written};
use engine::Kind;

const TILE: &str = ".shared .align 16 .b8 e_tile[1024];";

/// Each thread copies its word, and `%r1` is where it goes; `%r2` is where the next thread's goes.
const PLACES: &str = "
cvt.u32.u64 %r5, %at; mov.u32 %r3, e_tile; add.u32 %r1, %r3, %r5; xor.b32 %r2, %r5, 8; add.u32 %r2, %r3, %r2;";

fn with_tile(body: &str) -> String {
    module(TILE, &format!("{PLACES}\n{body}"))
}

#[test]
fn a_tile_that_is_read_before_its_copy_arrives_is_found_with_both_lines() {
    let copy = "cp.async.ca.shared.global [%r1], [%in], 8; cp.async.commit_group;";
    let read = "ld.shared.b64 %d1, [%r1];";
    let other = "ld.shared.b64 %d1, [%r2];";
    for (body, who) in [
        // Nobody waits.
        (format!("{copy}\n{read} ret;"), "thread (0, 0, 0) is under way"),
        // For a group too few.
        (format!("{copy}\ncp.async.wait_group 1; {read} ret;"), "thread (0, 0, 0) is under way"),
        // A copy behind the last group is in none.
        (
            "cp.async.commit_group; cp.async.ca.shared.global [%r1], [%in], 8;\ncp.async.wait_group 0; ld.shared.b64 %d1, [%r1]; ret;"
                .to_owned(),
            "is under way",
        ),
        // A barrier waits for no copy.
        (format!("{copy}\nbar.sync 0; {other} ret;"), "thread (1, 0, 0) is under way"),
        // Another thread's, without a barrier behind the wait.
        (format!("{copy}\ncp.async.wait_all; {other} ret;"), "which thread (1, 0, 0) writes, and no barrier orders"),
        // Nor may it be overwritten.
        (format!("mov.b64 %d1, 1; {copy}\nst.shared.b64 [%r1], %d1; ret;"), "writes 8 bytes at byte 0 of `tile`"),
    ] {
        let found = finding(&with_tile(&body), 64);
        assert!(found.kind == Kind::Race && found.detail.contains(who), "{body}\n{found}");
        let [at, other] = [found.at, found.other].map(|at| at.expect("a line").line);
        assert_eq!(at, other + 1, "{found}");
    }
}

#[test]
fn copies_arrive_group_by_group() {
    let copy =
        |from: u32, to: u32| format!("cp.async.ca.shared.global [%r1+{to}], [%in+{from}], 8; cp.async.commit_group;");
    let [first, second] = [copy(0, 0), copy(512, 512)];
    let body = format!(
        "{first}\n{second}\ncp.async.wait_group 1; bar.sync 0; ld.shared.b64 %d1, [%r2]; cp.async.wait_all; bar.sync 0;
ld.shared.b64 %d2, [%r2+512]; add.s64 %d1, %d1, %d2; st.global.b64 [%out], %d1; ret;"
    );
    let input: Vec<u64> = (0..128).map(|i| 1 << (i / 64) << (i % 64 / 2)).collect();
    let expected: Vec<u64> = (0..64).map(|i| input[i ^ 1] + input[64 + (i ^ 1)]).collect();
    assert_eq!(written(&with_tile(&body), 64, &input), expected);
    let early = body.replace("cp.async.wait_all; ", "");
    assert!(finding(&with_tile(&early), 64).detail.contains("at byte 520 of `tile`"));
}

#[test]
fn bytes_that_a_copy_does_not_read_are_zero() {
    let body = |last: &str| {
        format!(
            "and.b32 %r6, %i, 1; shl.b32 %r6, %r6, 3; setp.eq.u32 %p1, %r6, 0;
cp.async.ca.shared.global [%r1], [%in], 8, {last};
cp.async.wait_all; ld.shared.b64 %d1, [%r1]; st.global.b64 [%out], %d1; ret;"
        )
    };
    let input: Vec<u64> = (0..32).map(|i| i + 0x0101_0101_0000_0000).collect();
    let odd: Vec<u64> = input.iter().map(|value| if value % 2 == 1 { *value } else { 0 }).collect();
    assert_eq!(written(&with_tile(&body("%r6")), 32, &input), odd);
    assert_eq!(written(&with_tile(&body("%p1")), 32, &input), odd);
    let low: Vec<u64> = input.iter().map(|value| value & 0xFF_FFFF).collect();
    assert_eq!(written(&with_tile(&body("3")), 32, &input), low);
    // What is not read need not be there.
    let past = "add.s64 %in, %in, 8192; cp.async.ca.shared.global [%r1], [%in], 8, 0; ret;";
    assert!(run(&with_tile(past), 1, 32, &[0; 32], 1).findings.is_empty());
    let past = past.replace(", 0; ret", ", 1; ret");
    assert_eq!(finding(&with_tile(&past), 32).kind, Kind::OutOfBounds);
}
