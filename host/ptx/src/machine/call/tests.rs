use crate::machine::tests::{finding, module, program, run, written};
use engine::Kind;

/// As nvcc writes it.
const FIBONACCI: &str = "
.func (.param .b32 r) fibonacci(.param .b32 n)
{
.reg .pred %p<2>; .reg .b32 %r<8>;
ld.param.u32 %r1, [n];
setp.lt.u32 %p1, %r1, 2; mov.b32 %r6, %r1; @%p1 bra DONE;
add.s32 %r2, %r1, -1;
{ .param .b32 a; st.param.b32 [a+0], %r2; .param .b32 v; call.uni (v), fibonacci, (a); ld.param.b32 %r3, [v+0]; }
add.s32 %r4, %r1, -2;
{ .param .b32 a; st.param.b32 [a+0], %r4; .param .b32 v; call.uni (v), fibonacci, (a); ld.param.b32 %r5, [v+0]; }
add.s32 %r6, %r3, %r5;
DONE: st.param.b32 [r+0], %r6;
ret;
}";

fn fibonacci(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

#[test]
fn a_function_that_calls_itself_keeps_its_registers() {
    let body = "and.b32 %r1, %i, 15; { .param .b32 a; .param .b32 v; st.param.b32 [a], %r1; call (v), fibonacci, (a); ld.param.b32 %r2, [v]; }
cvt.u64.u32 %d1, %r2; st.global.b64 [%out], %d1; ret;";
    let text = module(FIBONACCI, body);
    assert_eq!(written(&text, 40, &[0; 40]), (0..40).map(|i| fibonacci(i % 16)).collect::<Vec<_>>());
    // Only some lanes call it.
    let some = body.replace("call (v)", "setp.lt.u32 %p1, %r1, 9; st.param.b32 [v], %r1; @%p1 call (v)");
    let expected: Vec<_> = (0..32).map(|i| if i % 16 < 9 { fibonacci(i % 16) } else { i % 16 }).collect();
    assert_eq!(written(&module(FIBONACCI, &some), 32, &[0; 32]), expected);
}

#[test]
fn functions_that_call_one_another_pass_registers_and_pointers_to_what_is_their_own() {
    // Adds 1, and 2, by turns, to what the innermost activation's pointer leads to, which is the outermost one's variable.
    let globals = "
.func (.reg .b32 d) odd(.reg .b32 n, .reg .b64 at);
.func (.reg .b32 d) even(.reg .b32 n, .reg .b64 at)
{
.local .align 4 .b8 own[8]; .reg .pred %p; .reg .b32 %x<4>; .reg .b64 %a;
mov.u64 %a, own; st.local.b32 [own+4], n;
setp.eq.u32 %p, n, 0; mov.b32 d, 0; @%p ret;
ld.local.b32 %x1, [at]; add.u32 %x1, %x1, 1; st.local.b32 [at], %x1;
sub.u32 %x2, n, 1; call (%x3), odd, (%x2, at);
ld.local.b32 %x1, [%a+4]; add.u32 d, %x3, %x1; ret;
}
.func (.reg .b32 d) odd(.reg .b32 n, .reg .b64 at)
{
.reg .pred %p; .reg .b32 %x<4>;
setp.eq.u32 %p, n, 0; mov.b32 d, 0; @%p ret;
ld.local.b32 %x1, [at]; add.u32 %x1, %x1, 2; st.local.b32 [at], %x1;
sub.u32 %x2, n, 1; call (%x3), even, (%x2, at);
add.u32 d, %x3, n; ret;
}";
    let body = ".local .align 8 .b8 mine[8]; mov.u64 %d2, mine; mov.b32 %r4, 0; st.local.b32 [mine], %r4;
and.b32 %r1, %i, 7; call (%r2), even, (%r1, %d2); ld.local.b32 %r3, [mine]; mov.b64 %d1, {%r2, %r3}; st.global.b64 [%out], %d1; ret;";
    let expected: Vec<_> = (0..32u64).map(|i| i % 8).map(|n| (n * (n + 1) / 2) | ((n / 2 * 3 + n % 2) << 32)).collect();
    assert_eq!(written(&module(globals, body), 32, &[0; 32]), expected);
}

#[test]
fn each_lane_calls_the_function_whose_address_it_has() {
    let globals = "
.func (.param .b32 r) double(.param .b32 n) { .reg .b32 %r1; ld.param.b32 %r1, [n]; shl.b32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) square(.param .b32 n) { .reg .b32 %r1; ld.param.b32 %r1, [n]; mul.lo.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
.func wide(.param .b64 n) { ret; }";
    let call = "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %i;
prototype: .callprototype (.param .b32 _) _ (.param .b32 _); call (v), %d3, (a), prototype; ld.param.b32 %r2, [v]; }
activemask.b32 %r3; mov.b64 %d1, {%r2, %r3}; st.global.b64 [%out], %d1; ret;";
    let choose = "mov.u64 %d1, double; mov.u64 %d2, square; rem.u32 %r1, %i, 3; setp.eq.u32 %p1, %r1, 0; selp.b64 %d3, %d2, %d1, %p1;";
    let all = written(&module(globals, &format!("{choose} {call}")), 32, &[0; 32]);
    let expected = |i: u64| if i.is_multiple_of(3) { i * i } else { 2 * i };
    assert_eq!(all, (0..32).map(|i| expected(i) | 0xFFFF_FFFF << 32).collect::<Vec<_>>());
    for (choose, says) in [
        ("mov.u64 %d3, 4398046511110;", "calls a function at an address where there is none"),
        ("mov.u64 %d3, wide;", "calls `wide` with other parameters or results than it has"),
    ] {
        let found = finding(&module(globals, &format!("{choose} {call}")), 32);
        assert!(found.kind == Kind::OutOfBounds && found.detail.contains(says), "{found}");
    }
}

#[test]
fn lanes_that_end_within_a_call_return_from_none() {
    let globals = ".func down(.reg .b32 n) { .reg .pred %p; .reg .b32 %x; setp.eq.u32 %p, n, 9; @%p exit; setp.eq.u32 %p, n, 0; @%p ret;
sub.u32 %x, n, 1; call down, (%x); ret; }";
    let body = "call down, (%i); mov.b64 %d1, 1; st.global.b64 [%out], %d1; ret;";
    let all = written(&module(globals, body), 32, &[0; 32]);
    assert_eq!(all, (0..32).map(|i| u64::from(i < 9)).collect::<Vec<_>>());
}

#[test]
fn recursion_without_an_end_takes_more_stack_than_there_is() {
    let endless = ".func f() { call f; ret; }";
    let found = finding(&module(endless, "call f; ret;"), 32);
    assert!(
        found.kind == Kind::StackOverflow && found.detail.contains("calls `f`, and its 16384 bytes of stack"),
        "{found}"
    );
    let large = ".func f() { .local .b8 a[20000]; call f; ret; }";
    assert_eq!(finding(&module(large, "call f; ret;"), 1).kind, Kind::StackOverflow);
    // As many calls as two to the power of the functions, none of which does anything.
    let doubling: String =
        (0..70).rev().map(|i| format!(".func f{i}() {{ call f{}; call f{}; }}\n", i + 1, i + 1)).collect();
    let doubling = |first: u32| {
        module(
            &format!(".func f70() {{ ret; }}\n{doubling}"),
            &format!("call f{first}; mov.b64 %d1, 3; st.global.b64 [%out], %d1; ret;"),
        )
    };
    assert_eq!(written(&doubling(54), 1, &[0]), [3]);
    assert!(program(&doubling(0)).instructions() < 1 << 17);
}

#[test]
fn memory_is_taken_from_the_stack_and_given_back() {
    let globals = ".func (.reg .b64 d) sum(.reg .b64 n)
{ .reg .b64 %a, %b, %c; .reg .pred %p; alloca.u64 %a, 64, 64; st.local.b64 [%a], n; alloca.u64 %b, 8; st.local.b64 [%b], 5;
ld.local.b64 %c, [%a]; ld.local.b64 d, [%b]; add.u64 d, d, %c; and.b64 %a, %a, 63; add.u64 d, d, %a; ret; }";
    let body = "mov.u32 %r1, 0; mov.b64 %d2, 0; L: call (%d1), sum, (%d2); stacksave.u64 %d3; alloca.u64 %d4, 4096; st.local.b64 [%d4], %d1;
ld.local.b64 %d2, [%d4]; stackrestore.u64 %d3; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra L;
st.global.b64 [%out], %d2; ret;";
    assert_eq!(written(&module(globals, body), 3, &[0; 3]), [500; 3]);
    let leak = "L: alloca.u64 %d4, 4096; st.local.b64 [%d4], %d4; bra L;";
    let outcome = run(&module("", leak), 1, 32, &[0; 32], 1);
    assert_eq!(outcome.findings[0].kind, Kind::OutOfBounds);
}
