//! Which lanes make a request together: what decides it in a kernel's source, each as a GPU does it.

use busload_tests::{checked, launch, on_threads, one_warp};
use gpu::device::prelude::*;
use gpu::suite::{Buffer, Counts, Kernel, Operation, Plan, PlanError, noise};
use std::sync::Arc;

/// What the accesses of a kind to `name` cost, after a run that is right on 1 and on 3 threads.
fn counts(kernel: Kernel, plan: Result<Plan, PlanError>, name: &str, operation: Operation) -> Counts {
    let plan = Arc::new(plan.expect("a small plan"));
    let [first, second] = [1, 3].map(|threads| {
        let outcome = checked(kernel, &plan, &on_threads(threads));
        let of = outcome.regions.iter().filter(|((region, of, _), _)| region == name && *of == operation);
        of.map(|(_, counts)| *counts).sum::<Counts>()
    });
    assert_eq!(first, second, "{} counts otherwise on other threads", kernel.name);
    assert!(first.requests > 0, "{} makes no such request", kernel.name);
    first
}

fn requests(kernel: Kernel, plan: Result<Plan, PlanError>, name: &str, operation: Operation) -> u64 {
    counts(kernel, plan, name, operation).requests
}

/// One warp, with an element of `dst` for each lane.
fn plan(result: fn(u64) -> f32) -> Result<Plan, PlanError> {
    Ok(one_warp().buffer(Buffer::input("src", 128, |i| i as f32)?).buffer(Buffer::output("dst", 32, result)?))
}

#[device]
unsafe fn element(src: Global<f32>, i: usize) -> f32 {
    src.load(i)
}

#[kernel]
unsafe fn called_from_both_halves(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let value = if i.is_multiple_of(2) { element(src, i) } else { 2.0 * element(src, i + 64) };
    dst.store(i, value);
}

#[device]
unsafe fn sum_of_two(src: Global<f32>, i: usize) -> f32 {
    element(src, i) + element(src, i + 32)
}

#[kernel]
unsafe fn called_in_calls(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let first = sum_of_two(src, i);
    dst.store(i, first + sum_of_two(src, i + 64));
}

#[kernel]
unsafe fn called_closure(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let element = |i: usize| src.load(i);
    let value = if i.is_multiple_of(2) { element(i) } else { 2.0 * element(i + 64) };
    dst.store(i, value);
}

#[device]
fn twice(of: impl Fn(usize) -> f32, i: usize) -> f32 {
    if i.is_multiple_of(2) { of(i) } else { of(i + 64) }
}

#[kernel]
unsafe fn called_argument(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, twice(|i| src.load(i), i));
}

#[test]
fn each_call_of_a_device_function_or_a_closure_makes_requests_of_its_own() {
    let halves = || plan(|i| if i.is_multiple_of(2) { i as f32 } else { (2 * (i + 64)) as f32 });
    assert_eq!(requests(called_from_both_halves::KERNEL, halves(), "src", Operation::Load), 2);
    assert_eq!(requests(called_closure::KERNEL, halves(), "src", Operation::Load), 2);
    let sums = plan(|i| (4 * i + 32 + 64 + 96) as f32);
    assert_eq!(requests(called_in_calls::KERNEL, sums, "src", Operation::Load), 4);
    let argument = plan(|i| if i.is_multiple_of(2) { i as f32 } else { (i + 64) as f32 });
    assert_eq!(requests(called_argument::KERNEL, argument, "src", Operation::Load), 2);
}

#[kernel]
unsafe fn some_lanes_shuffle(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let mut value = src.load(i);
    if i < 16 {
        value = warp::shuffle_xor(0xFFFF, value, 8);
    }
    dst.store(i, value);
}

#[kernel]
unsafe fn some_lanes_meet(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let value = src.load(i);
    if i < 16 {
        sync_warp(0xFF);
        sync_warp(0xFFFF);
    }
    dst.store(i, value);
}

#[kernel]
unsafe fn some_lanes_shuffle_before_a_barrier(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let mut value = src.load(i);
    if i < 16 {
        value = warp::shuffle_xor(0xFFFF, value, 8);
    }
    dst.store(i, value);
    sync_threads();
}

#[test]
fn lanes_that_meet_alone_come_together_with_the_others_behind_it() {
    let shuffled = || plan(|i| if i < 16 { (i ^ 8) as f32 } else { i as f32 });
    let linear = Counts { requests: 1, lanes: 32, sectors: 4, sectors_ideal: 4, lines: 1, ..Counts::default() };
    assert_eq!(counts(some_lanes_shuffle::KERNEL, shuffled(), "dst", Operation::Store), linear);
    assert_eq!(counts(some_lanes_shuffle_before_a_barrier::KERNEL, shuffled(), "dst", Operation::Store), linear);
    // Lanes 8 to 15 are not in the first mask, and wait for those that are.
    let error = std::panic::catch_unwind(|| {
        counts(some_lanes_meet::KERNEL, plan(|i| i as f32), "dst", Operation::Store);
    });
    assert!(error.is_err(), "lane 8 is not in the mask that it meets at");
}

#[kernel]
unsafe fn some_lanes_meet_twice(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let value = src.load(i);
    if i < 16 {
        if i < 8 {
            sync_warp(0xFF);
        }
        sync_warp(0xFFFF);
    }
    dst.store(i, value);
}

#[test]
fn so_do_lanes_that_meet_within_a_part() {
    let linear = Counts { requests: 1, lanes: 32, sectors: 4, sectors_ideal: 4, lines: 1, ..Counts::default() };
    assert_eq!(counts(some_lanes_meet_twice::KERNEL, plan(|i| i as f32), "dst", Operation::Store), linear);
}

/// The lanes go through a loop by hand, and leave it at its end.
#[kernel]
#[allow(clippy::while_let_on_iterator)]
unsafe fn loop_by_hand(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let mut sum = 0.0;
    let mut offsets = steps(0..(i / 8) * 8 + 8, 8).into_iter();
    while let Some(offset) = offsets.next() {
        sum += src.load(offset);
    }
    dst.store(i, sum);
}

#[test]
fn an_iterator_that_outlives_its_loop_spoils_no_count_behind_it() {
    let sums = plan(|i| (0..=i / 8).map(|k| (8 * k) as f32).sum());
    let linear = Counts { requests: 1, lanes: 32, sectors: 4, sectors_ideal: 4, lines: 1, ..Counts::default() };
    assert_eq!(counts(loop_by_hand::KERNEL, sums, "dst", Operation::Store), linear);
}

#[kernel]
unsafe fn some_return_before_a_barrier(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let tile = shared!([f32; 64]);
    let i = thread::index_x();
    if i >= n {
        return;
    }
    tile.store(i as u32, src.load(i));
    sync_threads();
    dst.store(i, tile.load((n - 1 - i) as u32));
}

#[test]
fn a_barrier_waits_for_no_thread_that_has_returned() {
    for n in [8u64, 32, 40, 63] {
        let plan = || -> Result<Plan, PlanError> {
            Ok(Plan::new(launch([1; 3], [64, 1, 1]))
                .buffer(Buffer::input("src", n, |i| i as f32)?)
                .buffer(Buffer::output("dst", n, move |i| (n - 1 - i) as f32)?)
                .scalar("n", n))
        };
        let warps = n.div_ceil(32);
        assert_eq!(requests(some_return_before_a_barrier::KERNEL, plan(), "dst", Operation::Store), warps, "{n}");
    }
}

#[kernel]
unsafe fn back_from_further_on(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::index_x();
    let behind = src.starting_at(10).starting_at(0usize.wrapping_sub(12));
    tile.store(i as u32, behind.load(i + 2));
    tile.starting_at(64).store((i as u32).wrapping_sub(32), behind.load(i + 34));
    sync_threads();
    let before = tile.starting_at(0u32.wrapping_sub(3));
    dst.starting_at(32).store(i.wrapping_sub(32), before.load(i as u32 + 3) + tile.load(i as u32 + 32));
}

#[test]
fn pointers_and_indices_may_lead_back() {
    let plan = plan(|i| (2 * i + 32) as f32);
    assert_eq!(requests(back_from_further_on::KERNEL, plan, "dst", Operation::Store), 1);
}

#[kernel]
unsafe fn far_shuffles(dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    let value = warp::shuffle_down(warp::FULL, lane as f32, 33);
    dst.store(lane as usize, value);
}

#[test]
fn a_shuffle_takes_five_bits_of_its_distance() {
    let plan = one_warp().buffer(Buffer::output("dst", 32, |i| (i + 1).min(31) as f32).expect("a small buffer"));
    assert_eq!(requests(far_shuffles::KERNEL, Ok(plan), "dst", Operation::Store), 1);
}

/// Blocks touch one array or the other, and none touches the third.
#[kernel]
unsafe fn different_arrays(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let small = shared!([f32; 32]);
    let large = shared!([f32; 8000]);
    let unused = shared!([f32; 1000]);
    let i = thread::index_x();
    if i >= n {
        unused.store(0, 0.0);
    }
    let lane = warp::lane_id();
    if thread::block_idx_x().is_multiple_of(2) {
        small.store(lane, src.load(i));
        dst.store(i, small.load(lane));
    } else {
        large.store(lane + 16, src.load(i));
        dst.store(i, large.load(lane + 16));
    }
}

#[test]
fn shared_arrays_are_placed_as_they_are_declared_whoever_touches_them() {
    let n = 32 * 64;
    let plan = Plan::new(launch([64, 1, 1], [32, 1, 1]))
        .buffer(Buffer::input("src", n, noise).expect("a small buffer"))
        .buffer(Buffer::output("dst", n, noise).expect("a small buffer"))
        .scalar("n", n);
    let plan = Arc::new(plan);
    for threads in [1, 2, 8] {
        let outcome = checked(different_arrays::KERNEL, &plan, &on_threads(threads));
        assert_eq!(outcome.shared_bytes, 4 * (32 + 8000 + 1000), "{threads} threads");
    }
}

/// No loop of the two is long by itself.
#[kernel]
unsafe fn long_nest(src: Global<f32>, dst: GlobalMut<f32>, outer: u32, inner: u32) {
    let mut last = 0.0;
    for _ in steps(0..outer, 1) {
        for k in steps(0..inner, 1) {
            last = src.load((k % 128) as usize);
        }
    }
    dst.store(warp::lane_id() as usize, last);
}

/// Megabytes that this process has had at most.
#[cfg(target_os = "linux")]
fn most_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("how much memory there was");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

#[test]
#[cfg(target_os = "linux")]
fn accesses_of_nested_loops_are_counted_on_the_way() {
    let (outer, inner) = (1000u32, 2000u32);
    let plan = one_warp()
        .buffer(Buffer::input("src", 128, |i| i as f32).expect("a small buffer"))
        .buffer(Buffer::output("dst", 32, move |_| ((inner - 1) % 128) as f32).expect("a small buffer"))
        .scalar("outer", outer)
        .scalar("inner", inner);
    let before = most_megabytes();
    let counted = requests(long_nest::KERNEL, Ok(plan), "src", Operation::Load);
    assert_eq!(counted, u64::from(outer) * u64::from(inner));
    // Half a kilobyte for each access would be a gigabyte. Tests beside this one take some memory too.
    assert!(most_megabytes() < before + 500, "{} MB, {before} before", most_megabytes());
}
