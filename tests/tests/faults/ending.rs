//! Threads that do not end as they should: in a panic, on too little stack, by a signal, or never.

use super::{Source, expect, expect_clean, hundred, one_block, options, place, place_of, reported_once};
use busload::sim::{Kind, Limits, Options};
use busload_tests::{launch, simulate};
use gpu::device::prelude::*;
use gpu::suite::{Buffer, Kernel, Plan, PlanError};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// This file, in which reports name lines.
pub(super) const SOURCE: Source = (file!(), include_str!("ending.rs"));

#[kernel]
unsafe fn index_too_large(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x() as usize;
    let factors = [1.0; 20];
    dst.store(i, src.load(i) * factors[i]); // HERE: panic
}

#[kernel]
unsafe fn index_small_enough(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x() as usize;
    let factors = [1.0; 20];
    dst.store(i, src.load(i) * factors[i % 20]);
}

#[test]
fn a_kernel_that_panics_is_reported_with_what_it_said() {
    let fault = (index_too_large::KERNEL, one_block(32, |i| i as f32));
    let finding = expect(fault, Kind::Panic, [Some("panic"), None], 0, 20);
    assert_eq!(finding.detail, "index out of bounds: the len is 20 but the index is 20");
    expect_clean((index_small_enough::KERNEL, one_block(32, |i| i as f32)));
}

/// The sum of the numbers up to `depth`, by as many calls.
#[inline(never)]
fn sum_up_to(depth: u32) -> u32 {
    if depth == 0 { 0 } else { depth + black_box(sum_up_to(depth - 1)) }
}

#[kernel]
unsafe fn deep_recursion(src: Global<f32>, dst: GlobalMut<f32>, depth: u32) {
    let i = thread::index_x();
    let depth = if i == 70 { depth } else { 0 };
    dst.store(i, src.load(i) + sum_up_to(depth) as f32);
}

/// The sum of the elements from `i` on, by a call for each.
#[inline(never)]
unsafe fn sum_from(src: Global<f32>, i: usize, n: usize) -> f32 {
    let mut sum = 0.0;
    // A loop around the access, so that each call's is a request of its own.
    for _ in each(0..1) {
        if i < n {
            // SAFETY: the caller's launch contract.
            sum = unsafe { src.load(i) + sum_from(src, i + 1, n) }; // HERE: recursive load
        }
    }
    sum
}

#[kernel]
unsafe fn recursive_loads(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    dst.store(thread::index_x(), sum_from(src, 0, n));
}

#[kernel]
unsafe fn large_array(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id() as usize;
    let mut values = [0.0; 1 << 18];
    values[black_box(lane)] = src.load(lane);
    dst.store(lane, black_box(&values)[lane]);
}

#[kernel]
unsafe fn small_array(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id() as usize;
    let mut values = [0.0; 1 << 10];
    values[black_box(lane)] = src.load(lane);
    dst.store(lane, black_box(&values)[lane]);
}

/// Holds the report of a kernel that takes too much stack to every word.
fn expect_stack_overflow(kernel: Kernel, plan: Result<Plan, PlanError>, at: &str, who: &str) {
    let report = reported_once(kernel, plan).to_string();
    let expected = "stack overflow: a thread takes more than 64 KiB of stack: end its recursion sooner, or keep its \
                    arrays in shared or global memory";
    assert_eq!(report, format!("{expected}, at {at} ({who})"));
}

#[test]
fn a_thread_that_takes_too_much_stack_is_reported_and_the_process_goes_on() {
    let start = |kernel: Kernel| format!("{}:{}:1", kernel.file, kernel.line);
    let first = "thread (0, 0, 0), block (0, 0, 0)";

    let deep = |depth: u32| {
        Ok(Plan::new(launch([4, 1, 1], [32, 1, 1]))
            .buffer(Buffer::input("src", 128, |i| i as f32)?)
            .buffer(Buffer::output("dst", 128, |i| i as f32 + if i == 70 { 55.0 } else { 0.0 })?)
            .scalar("depth", depth))
    };
    let kernel = deep_recursion::KERNEL;
    expect_stack_overflow(kernel, deep(1 << 20), &start(kernel), "thread (6, 0, 0), block (2, 0, 0)");
    expect_clean((kernel, deep(10)));

    let loads = |n: u64| {
        Ok(Plan::new(launch([1; 3], [32, 1, 1]))
            .buffer(Buffer::input("src", n, |_| 1.0f32)?)
            .buffer(Buffer::output("dst", 32, move |_| n as f32)?)
            .scalar("n", n))
    };
    let (file, line) = place("recursive load");
    let column = SOURCE.1.lines().nth(line as usize - 1).and_then(|line| line.find("load(")).unwrap() + 1;
    let at = format!("{file}:{line}:{column}");
    expect_stack_overflow(recursive_loads::KERNEL, loads(4000), &at, first);
    expect_clean((recursive_loads::KERNEL, loads(40)));

    expect_stack_overflow(large_array::KERNEL, one_block(32, |i| i as f32), &start(large_array::KERNEL), first);
    expect_clean((small_array::KERNEL, one_block(32, |i| i as f32)));
}

#[kernel]
unsafe fn wild_pointer(dst: GlobalMut<f32>) {
    dst.store(0, 0.0); // HERE: before the wild pointer
    dst.store(0, *black_box(std::ptr::dangling::<f32>()));
}

#[test]
#[ignore = "ends its process: the test below runs it in one of its own"]
fn a_kernel_follows_a_wild_pointer() {
    let plan = Plan::new(launch([1; 3], [1; 3])).buffer(Buffer::output("dst", 1, |_| 0.0f32).unwrap());
    simulate(wild_pointer::KERNEL, &Arc::new(plan), &options());
}

#[cfg(target_os = "linux")]
#[test]
fn a_fault_that_is_no_overflow_still_ends_the_process_and_names_the_kernel_and_its_last_access() {
    use std::os::unix::process::ExitStatusExt;
    let this = std::env::current_exe().expect("the path of this test");
    let child = std::process::Command::new(this)
        .args(["--ignored", "--exact", "ending::a_kernel_follows_a_wild_pointer"])
        .output()
        .expect("a process for the test");
    const SIGSEGV: i32 = 11;
    assert_eq!(child.status.signal(), Some(SIGSEGV), "{child:?}");
    let said = String::from_utf8_lossy(&child.stderr);
    let (file, line) = place("before the wild pointer");
    let last = format!("the last access before it is at {file}:{line}:");
    assert!(said.contains("error: wild_pointer touched address 0x4 by itself") && said.contains(&last), "{said}");
}

/// Ends the loop below once it has been reported, so that no thread is left spinning behind the other tests.
static ENOUGH: AtomicBool = AtomicBool::new(false);

#[kernel]
unsafe fn endless_silence(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        dst.store(i, src.load(i)); // HERE: silence
    }
    while i == 70 && !ENOUGH.load(Relaxed) {
        core::hint::spin_loop();
    }
}

#[test]
fn an_endless_loop_without_a_call_is_stopped_and_named_by_the_access_before_it() {
    let plan = Arc::new(hundred().expect("a small plan"));
    let limits = Limits { silence: Duration::from_secs(1), ..Limits::default() };
    for _ in 0..2 {
        let outcome = simulate(endless_silence::KERNEL, &plan, &Options { limits, ..options() });
        let [finding] = outcome.findings.as_slice() else { panic!("{:#?}", outcome.findings) };
        assert_eq!((finding.kind, place_of(finding.at)), (Kind::NonTerminating, Some(place("silence"))), "{finding}");
        assert_eq!((finding.block, finding.thread), ([2, 0, 0], [6, 0, 0]), "{finding}");
    }
    ENOUGH.store(true, Relaxed);
    expect_clean((endless_silence::KERNEL, hundred()));
}

/// The first block waits for the second, which on a GPU may never begin.
#[kernel]
unsafe fn waits_for_the_next_block(dst: GlobalMut<u32>) {
    let block = thread::index_x();
    let forever = each(0..); // HERE: waits for the next block
    for _ in forever {
        if block == 1 || dst.load_cg(1) == 1 {
            break;
        }
    }
    dst.store(block, 1);
}

#[test]
fn a_block_that_waits_for_a_later_one_does_not_end_whether_or_not_the_two_run_at_once() {
    let plan = || Ok(Plan::new(launch([2, 1, 1], [1; 3])).buffer(Buffer::zeroed("dst", 2, |_| 1u32)?));
    let at = [Some("waits for the next block"), None];
    expect((waits_for_the_next_block::KERNEL, plan()), Kind::NonTerminating, at, 0, 0);
}

#[kernel]
unsafe fn waits_for_the_clock(dst: GlobalMut<f32>, ticks: u64) {
    let start = clock();
    // A loop that the facade does not see.
    while clock() < start + ticks {} // HERE: waits for the clock
    dst.store(0, 1.0);
}

#[kernel]
unsafe fn asks_for_dynamic_shared_memory(dst: GlobalMut<f32>, ticks: u64) {
    for _ in 0..ticks {
        black_box(&dynamic_shared::<f32>()); // HERE: asks for dynamic shared memory
    }
    dst.store(0, 1.0);
}

#[test]
fn an_endless_loop_over_a_call_that_is_no_access_is_named_by_the_call() {
    let plan = |ticks: u64| {
        let dst = Buffer::output("dst", 1, |_| 1.0f32)?;
        Ok(Plan::new(launch([1; 3], [1; 3])).buffer(dst).scalar("ticks", ticks))
    };
    for (kernel, at) in [
        (waits_for_the_clock::KERNEL, "waits for the clock"),
        (asks_for_dynamic_shared_memory::KERNEL, "asks for dynamic shared memory"),
    ] {
        expect((kernel, plan(u64::MAX >> 1)), Kind::NonTerminating, [Some(at), None], 0, 0);
        expect_clean((kernel, plan(100)));
    }
}
