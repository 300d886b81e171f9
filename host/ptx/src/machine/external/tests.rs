use crate::machine::tests::{LINES, finding, module, run};
use crate::{lower, parse};
use engine::Kind;

/// `%d %s %.1f %c\n` and a word, as nvcc writes them.
const TEXTS: &str = "
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 $format[13] = {37, 100, 32, 37, 115, 32, 37, 46, 49, 102, 33, 10, 0};
.global .align 1 .b8 $word[5] = {119, 111, 114, 100};";

fn printing(before: &str) -> String {
    let body = format!(
        "
.local .align 8 .b8 depot[24]; .reg .b64 %SP, %SPL;
mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL;
{before}
mov.u32 %r9, %ctaid.x; mad.lo.u32 %r1, %r9, 100, %i;
st.local.u32 [%SPL], %r1; mov.u64 %d1, $word; cvta.global.u64 %d1, %d1; st.local.u64 [%SPL+8], %d1;
mov.f64 %d2, 0d3FF8000000000000; st.local.f64 [%SPL+16], %d2;
mov.u64 %d3, $format; cvta.global.u64 %d4, %d3;
{{ .param .b64 param0; st.param.b64 [param0], %d4; .param .b64 param1; st.param.b64 [param1], %SP; .param .b32 retval0;
call.uni (retval0), vprintf, (param0, param1); ld.param.b32 %r2, [retval0]; }}
cvt.u64.u32 %d5, %r2; st.global.b64 [%out], %d5;
ret;"
    );
    module(TEXTS, &body)
}

#[test]
fn what_is_printed_comes_in_the_order_of_blocks_and_threads_on_any_number_of_workers() {
    let expected: String =
        (0..3).flat_map(|block| (0..40).map(move |i| format!("{} word 1.5!\n", 100 * block + i))).collect();
    for workers in [1, 3] {
        // What all blocks write is the same, and a race.
        let outcome = run(&printing("setp.ne.u32 %p1, %i, 100; @!%p1 ret;"), 3, 40, &[0; 40], workers);
        assert!(outcome.findings.iter().all(|finding| finding.kind == Kind::Race), "{}", outcome.findings[0]);
    }
    let quiet = printing("").replace("st.global.b64 [%out], %d5;", "");
    for workers in [1, 3] {
        let outcome = run(&quiet, 3, 40, &[0; 40], workers);
        assert!(outcome.findings.is_empty(), "{}", outcome.findings[0]);
        assert_eq!((outcome.printed.text.as_str(), outcome.printed.dropped), (expected.as_str(), 0));
    }
    let outcome = run(&printing(""), 1, 40, &[0; 40], 1);
    assert_eq!(outcome.bits(1, 39), Some(3), "so many were printed");
}

#[test]
fn what_is_printed_is_kept_up_to_the_block_with_a_finding() {
    let text = printing(
        "mov.u32 %r9, %ctaid.x; setp.eq.u32 %p1, %r9, 1; setp.eq.u32 %p2, %i, 33; and.pred %p1, %p1, %p2; @%p1 trap;",
    );
    let text = text.replace("st.global.b64 [%out], %d5;", "");
    for workers in [1, 3] {
        let outcome = run(&text, 3, 40, &[0; 40], workers);
        assert_eq!(outcome.findings[0].kind, Kind::Panic);
        assert_eq!(outcome.printed.text.lines().count(), 40 + 32, "the warp before the one that gave up");
    }
}

#[test]
fn more_than_a_mebibyte_is_dropped_and_said() {
    // `%4000d` and a new line.
    let begin = TEXTS.find("$format").expect("the format");
    let end = begin + TEXTS[begin..].find(';').expect("its end");
    let long = "$format[8] = {37, 52, 48, 48, 48, 100, 10, 0}";
    let text = printing("").replace("st.global.b64 [%out], %d5;", "").replace(&TEXTS[begin..end], long);
    let printed = run(&text, 9, 32, &[0; 32], 3).printed;
    assert_eq!((printed.text.len(), printed.dropped), (1 << 20, 9 * 32 * 4001 - (1 << 20)));
}

#[test]
fn an_assertion_that_fails_is_a_finding_with_its_words() {
    let body = "
setp.ne.u32 %p1, %i, 5; @%p1 bra DONE;
mov.u64 %d3, $word; cvta.global.u64 %d4, %d3;
{ .param .b64 param0; st.param.b64 [param0], %d4; .param .b64 param1; st.param.b64 [param1], %d4; .param .b32 param2;
st.param.b32 [param2], 42; .param .b64 param3; st.param.b64 [param3], %d4; .param .b64 param4; st.param.b64 [param4], 1;
call.uni __assertfail, (param0, param1, param2, param3, param4); }
DONE: ret;";
    let found = finding(&module(TEXTS, body), 32);
    assert_eq!((found.kind, found.thread), (Kind::Panic, [5, 0, 0]));
    assert_eq!(found.detail, "assertion failed: `word`, word:42, function `word`");
}

#[test]
fn texts_and_arguments_that_are_not_there_are_found() {
    let text = printing("").replace("st.global.b64 [%out], %d5;", "");
    let found = finding(&text.replace("[param0], %d4", "[param0], 64"), 32);
    assert!(found.detail.contains("by a format at 0x40, where there is no text"), "{found}");
    let found = finding(&text.replace("st.local.u64 [%SPL+8], %d1", "st.local.u64 [%SPL+8], 77"), 32);
    assert!(found.detail.contains("has not all its arguments"), "{found}");
    for (function, says) in [("malloc", "there is no heap on the device here"), ("puts", "has no body in this module")]
    {
        let body = format!(
            "{{ .param .b64 a; st.param.b64 [a], 8; .param .b64 r; call.uni (r), {function}, (a); ld.param.b64 %d1, [r]; }} ret;"
        );
        let text = module("", &body);
        let parsed = parse(&text).expect("a module");
        let error = lower(&parsed, "e", LINES).map(|_| ()).expect_err(function).to_string();
        assert!(error.contains(&format!("`{function}`")) && error.contains(says), "{error}");
    }
}
