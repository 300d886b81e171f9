//! What of an output a kernel has written: the simulator knows it, whatever the bytes look like, with the sanitizer and without.

use busload::sim::Options;
use busload::verify;
use busload_tests::{launch, on_threads, simulate};
use gpu::device::prelude::*;
use gpu::suite::{Buffer, ElementType, Kernel, POISON, Plan};
use std::sync::Arc;

/// More than a page of every type, and no multiple of a warp.
const N: u64 = 100_003;

/// One thread each of so many elements of `dst`, of which `expected` says what they become.
fn plan<T: ElementType + 'static>(expected: fn(u64) -> Option<T>) -> Plan {
    let blocks = N.div_ceil(128) as u32;
    let dst = Buffer::partial_output("dst", N, expected).expect("a small buffer");
    Plan::new(launch([blocks, 1, 1], [128, 1, 1])).buffer(dst).scalar("n", N)
}

/// What comes of the outputs, the same on any number of threads, with the sanitizer and without.
fn outcome(kernel: Kernel, plan: Plan) -> Result<(), String> {
    let plan = Arc::new(plan);
    let run = |threads, sanitize| {
        let outcome = simulate(kernel, &plan, &Options { sanitize, ..on_threads(threads) });
        assert!(outcome.findings.is_empty(), "{}: {}", kernel.name, outcome.findings[0]);
        let actual = |buffer, i| outcome.actual(buffer, i).expect("the run ended");
        verify::verify(&plan, actual).map_err(|mismatch| mismatch.to_string())
    };
    let first = run(1, true);
    for (threads, sanitize) in [(1, false), (2, true), (3, false)] {
        assert_eq!(run(threads, sanitize), first, "{} on {threads} threads, sanitizer: {sanitize}", kernel.name);
    }
    first
}

#[kernel]
unsafe fn ones_u32(dst: GlobalMut<u32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        dst.store(i, u32::MAX);
    }
}

#[kernel]
unsafe fn ones_i8(dst: GlobalMut<i8>, n: usize) {
    let i = thread::index_x();
    if i < n {
        dst.store(i, -1);
    }
}

#[kernel]
unsafe fn ones_u64_backwards(dst: GlobalMut<u64>, n: usize) {
    let i = thread::index_x();
    if i < n {
        dst.store(n - 1 - i, u64::MAX);
    }
}

#[kernel]
unsafe fn ones_f64(dst: GlobalMut<f64>, n: usize) {
    let i = thread::index_x();
    if i < n {
        dst.store(i, f64::from_bits(u64::MAX));
    }
}

#[kernel]
unsafe fn ones_by_vectors(dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    let one = f32::from_bits(u32::MAX);
    if i < n / 4 {
        dst.cast::<F32x4>().store(i, F32x4 { x: one, y: one, z: one, w: one });
    } else if i < n / 4 + n % 4 {
        dst.store(n / 4 * 3 + i, one);
    }
}

#[test]
fn values_that_look_like_poison_are_written() {
    assert_eq!(POISON, 0xFF);
    assert_eq!(outcome(ones_u32::KERNEL, plan(|_| Some(u32::MAX))), Ok(()));
    assert_eq!(outcome(ones_i8::KERNEL, plan(|_| Some(-1i8))), Ok(()));
    assert_eq!(outcome(ones_u64_backwards::KERNEL, plan(|_| Some(u64::MAX))), Ok(()));
    assert_eq!(outcome(ones_f64::KERNEL, plan(|_| Some(f64::from_bits(u64::MAX)))), Ok(()));
    assert_eq!(outcome(ones_by_vectors::KERNEL, plan(|_| Some(f32::from_bits(u32::MAX)))), Ok(()));
}

#[kernel]
unsafe fn ones_with_gaps(dst: GlobalMut<u32>, n: usize) {
    let i = thread::index_x();
    if i < n && i % 50_000 != 7 {
        dst.store(i, u32::MAX);
    }
}

#[kernel]
unsafe fn ones_by_halves(dst: GlobalMut<u32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        let halves = dst.cast::<u16>();
        halves.store(2 * i, u16::MAX);
        if i % 50_000 != 7 {
            halves.store(2 * i + 1, u16::MAX);
        }
    }
}

#[test]
fn what_is_not_written_is_wrong_even_if_its_poison_is_what_is_expected() {
    let text = outcome(ones_with_gaps::KERNEL, plan(|_| Some(u32::MAX))).expect_err("two are not written");
    assert_eq!(
        text,
        "2 of 100003 elements of `dst` are wrong: [7] is not written, expected 4294967295; [50007] is not written, \
         expected 4294967295\n2 of 100003 elements are not written, the first is [7]; the launch has 782 blocks of 128 threads"
    );
    let text = outcome(ones_by_halves::KERNEL, plan(|_| Some(u32::MAX))).expect_err("two are written in part");
    assert!(
        text.starts_with("2 of 100003 elements of `dst` are wrong: [7] is 4294967295, of which some bytes"),
        "{text}"
    );
}

#[test]
fn what_is_to_be_left_alone_is_not_written_even_with_its_own_poison() {
    let alone = |i: u64| (i % 50_000 != 7).then_some(u32::MAX);
    assert_eq!(outcome(ones_with_gaps::KERNEL, plan(alone)), Ok(()));
    let text = outcome(ones_u32::KERNEL, plan(alone)).expect_err("two are written");
    assert_eq!(
        text,
        "2 of 100003 elements of `dst` are wrong: [7] is 4294967295, expected left alone; [50007] is 4294967295, \
         expected left alone"
    );
}
