//! Planted faults: each is reported with its kind, its lines, its block and its thread, the same on every run, and a
//! kernel that differs only in the fault is reported as clean.
//!
//! A line of a kernel that a report must name ends in `// HERE: name`.

use busload::sim::{Finding, Kind, Limits, Options, Position};
use busload_tests::{checked, launch, on_threads, simulate};
use gpu::device::host::Parameter;
use gpu::device::prelude::*;
use gpu::suite::{Buffer, Kernel, Plan, PlanError, noise};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The line of this file that ends in the marker `name`.
fn line(name: &str) -> u32 {
    let marker = format!("// HERE: {name}");
    let lines = include_str!("faults.rs").lines().zip(1..);
    let mut found = lines.filter(|(text, _)| text.ends_with(&marker)).map(|(_, line)| line);
    let line = found.next().unwrap_or_else(|| panic!("no line ends in {marker}"));
    assert_eq!(found.next(), None, "{marker} stands twice");
    line
}

/// The line of a position in this file.
fn line_of(position: Option<Position>) -> Option<u32> {
    position.map(|position| {
        assert_eq!(position.file, file!());
        position.line
    })
}

/// How often each report must be the same.
const RUNS: usize = 5;

fn options() -> Options {
    let limits = Limits { calls: 1 << 14, barriers: 1 << 8, ..Limits::default() };
    Options { limits, ..on_threads(3) }
}

/// The findings of a kernel with a fault, after as many runs as `runs`, which must all report the same.
fn reported(kernel: Kernel, plan: Result<Plan, PlanError>, runs: usize) -> Vec<Finding> {
    let plan = Arc::new(plan.expect("a small plan"));
    let run = || simulate(kernel, &plan, &options());
    let first = run();
    assert!(!first.findings.is_empty(), "{} has a fault, and nothing was found", kernel.name);
    assert!(first.sites.is_empty(), "{}: counts of a run that went wrong", kernel.name);
    for _ in 1..runs {
        assert_eq!(run().findings, first.findings, "{}", kernel.name);
    }
    first.findings
}

/// The one finding of a kernel with a fault, the same on every run.
fn reported_once(kernel: Kernel, plan: Result<Plan, PlanError>) -> Finding {
    let findings = reported(kernel, plan, RUNS);
    let [finding] = findings.as_slice() else { panic!("{} has more than one fault: {findings:#?}", kernel.name) };
    finding.clone()
}

/// Holds the finding of a kernel to a kind, the lines marked `at` and `other`, a block and a thread along x.
fn expect(
    (kernel, plan): (Kernel, Result<Plan, PlanError>),
    kind: Kind,
    [at, other]: [Option<&str>; 2],
    block: u32,
    thread: u32,
) -> Finding {
    let finding = reported_once(kernel, plan);
    assert_eq!(finding.kind, kind, "{finding}");
    assert_eq!(line_of(finding.at), at.map(line), "{finding}");
    assert_eq!(line_of(finding.other), other.map(line), "{finding}");
    assert_eq!((finding.block, finding.thread), ([block, 0, 0], [thread, 0, 0]), "{finding}");
    finding
}

/// Holds the findings of a kernel to one race between two lines: each may be the later one for some thread.
fn expect_race(kernel: Kernel, plan: Result<Plan, PlanError>, lines: [&str; 2]) {
    for finding in reported(kernel, plan, RUNS) {
        assert_eq!((finding.kind, finding.block), (Kind::Race, [0; 3]), "{finding}");
        let found = BTreeSet::from([finding.at, finding.other].map(line_of));
        assert_eq!(found, BTreeSet::from(lines.map(|name| Some(line(name)))), "{finding}");
    }
}

/// Runs a kernel without a fault.
fn expect_clean((kernel, plan): (Kernel, Result<Plan, PlanError>)) {
    checked(kernel, &Arc::new(plan.expect("a small plan")), &options());
}

/// From 100 elements to 100 elements, by 4 blocks of a warp: 28 threads too many.
fn hundred() -> Result<Plan, PlanError> {
    Ok(Plan::new(launch([4, 1, 1], [32, 1, 1]))
        .buffer(Buffer::input("src", 100, noise)?)
        .buffer(Buffer::output("dst", 100, noise)?)
        .scalar("n", 100u64))
}

#[kernel]
unsafe fn read_past_the_end(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    let value = src.load(i); // HERE: read past the end
    if i < n {
        dst.store(i, value);
    }
}

#[kernel]
unsafe fn write_past_the_end(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    let value = if i < n { src.load(i) } else { 0.0 };
    dst.store(i, value); // HERE: write past the end
}

#[kernel]
unsafe fn within_bounds(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        dst.store(i, src.load(i));
    }
}

#[test]
fn a_read_and_a_write_past_the_end_of_a_buffer_name_the_element() {
    let read =
        expect((read_past_the_end::KERNEL, hundred()), Kind::OutOfBounds, [Some("read past the end"), None], 3, 4);
    assert_eq!(read.detail, "a thread reads 4 bytes at byte 400 of `src`, which has 400");
    let write =
        expect((write_past_the_end::KERNEL, hundred()), Kind::OutOfBounds, [Some("write past the end"), None], 3, 4);
    assert_eq!(write.detail, "a thread writes 4 bytes at byte 400 of `dst`, which has 400");
    expect_clean((within_bounds::KERNEL, hundred()));
}

/// One block of `threads` with `src`, whose elements are their indices, and `dst` as `expected` says.
fn one_block(threads: u32, expected: fn(u64) -> f32) -> Result<Plan, PlanError> {
    Ok(Plan::new(launch([1; 3], [threads, 1, 1]))
        .buffer(Buffer::input("src", threads.into(), |i| i as f32)?)
        .buffer(Buffer::output("dst", threads.into(), expected)?))
}

#[kernel]
unsafe fn shared_past_the_end(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.load(lane + 1)); // HERE: shared past the end
}

#[kernel]
unsafe fn shared_up_to_the_end(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.load((lane + 1) % 32));
}

#[kernel]
unsafe fn dynamic_past_the_end(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = dynamic_shared::<f32>();
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize)); // HERE: dynamic past the end
    sync_threads();
    dst.store(lane as usize, tile.load((lane + 1) % 32));
}

#[test]
fn an_access_past_the_end_of_shared_memory_names_the_array() {
    let next = |lane: u64| ((lane + 1) % 32) as f32;
    let dynamic = |shared_bytes| {
        let mut plan = one_block(32, next)?;
        plan.launch.shared_bytes = shared_bytes;
        Ok(plan)
    };
    let fault = (shared_past_the_end::KERNEL, one_block(32, next));
    let finding = expect(fault, Kind::OutOfBounds, [Some("shared past the end"), None], 0, 31);
    assert_eq!(finding.detail, "a thread reads 4 bytes at byte 128 of `tile`, which has 128");
    let at = [Some("dynamic past the end"), None];
    let finding = expect((dynamic_past_the_end::KERNEL, dynamic(64)), Kind::OutOfBounds, at, 0, 16);
    assert!(finding.detail.contains("byte 64 of `dynamic shared memory`"), "{finding}");
    expect((dynamic_past_the_end::KERNEL, dynamic(0)), Kind::OutOfBounds, at, 0, 0);
    expect_clean((shared_up_to_the_end::KERNEL, one_block(32, next)));
    expect_clean((dynamic_past_the_end::KERNEL, dynamic(128)));
}

#[kernel]
unsafe fn no_barrier(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.store(i, src.load(i as usize)); // HERE: race, the write
    dst.store(i as usize, tile.load(63 - i)); // HERE: race, the read
}

#[kernel]
unsafe fn with_barrier(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.store(i, src.load(i as usize));
    sync_threads();
    dst.store(i as usize, tile.load(63 - i));
}

#[test]
fn a_missing_barrier_is_a_race_that_names_both_lines() {
    let plan = || one_block(64, |i| (63 - i) as f32);
    expect_race(no_barrier::KERNEL, plan(), ["race, the write", "race, the read"]);
    let first = &reported(no_barrier::KERNEL, plan(), 1)[0];
    assert_eq!(
        first.detail,
        "a thread writes byte 128 of `tile`, which thread (31, 0, 0) reads, and no barrier orders the two"
    );
    assert_eq!((first.thread, line_of(first.at)), ([32, 0, 0], Some(line("race, the write"))));
    expect_clean((with_barrier::KERNEL, plan()));
}

#[kernel]
unsafe fn no_warp_barrier(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize)); // HERE: race in a warp, the write
    dst.store(lane as usize, tile.load(31 - lane)); // HERE: race in a warp, the read
}

#[kernel]
unsafe fn with_warp_barrier(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_warp(warp::FULL);
    dst.store(lane as usize, tile.load(31 - lane));
}

/// The tile is read in one iteration and written again in the next.
#[kernel]
unsafe fn no_second_barrier(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    for _ in steps(0..2u32, 1) {
        tile.store(i, src.load(i as usize)); // HERE: race in a loop, the write
        sync_threads();
        dst.store(i as usize, tile.load(63 - i)); // HERE: race in a loop, the read
    }
}

#[kernel]
unsafe fn with_second_barrier(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    for _ in steps(0..2u32, 1) {
        tile.store(i, src.load(i as usize));
        sync_threads();
        dst.store(i as usize, tile.load(63 - i));
        sync_threads();
    }
}

#[test]
fn a_race_within_a_warp_or_from_one_iteration_to_the_next_is_one_too() {
    let plan = |threads| match threads {
        32 => one_block(32, |i| (31 - i) as f32),
        _ => one_block(64, |i| (63 - i) as f32),
    };
    expect_race(no_warp_barrier::KERNEL, plan(32), ["race in a warp, the write", "race in a warp, the read"]);
    expect_clean((with_warp_barrier::KERNEL, plan(32)));
    expect_race(no_second_barrier::KERNEL, plan(64), ["race in a loop, the write", "race in a loop, the read"]);
    expect_clean((with_second_barrier::KERNEL, plan(64)));
}

#[kernel] // HERE: divergent barrier, the kernel
unsafe fn divergent_barrier(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x();
    if i < 16 {
        sync_threads(); // HERE: divergent barrier
    }
    dst.store(i as usize, src.load(i as usize));
}

#[kernel]
unsafe fn two_barriers(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x();
    if i < 48 {
        sync_threads(); // HERE: one of two barriers
    } else {
        sync_threads(); // HERE: the other of two barriers
    }
    dst.store(i as usize, src.load(i as usize));
}

#[kernel]
unsafe fn uniform_barrier(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x();
    if thread::block_dim_x() > 16 {
        sync_threads();
    }
    dst.store(i as usize, src.load(i as usize));
}

#[test]
fn a_barrier_that_not_all_threads_reach_is_reported() {
    let lines = [Some("divergent barrier"), Some("divergent barrier, the kernel")];
    let fault = (divergent_barrier::KERNEL, one_block(32, |i| i as f32));
    let finding = expect(fault, Kind::DivergentBarrier, lines, 0, 0);
    assert!(finding.detail.contains("thread (16, 0, 0) ended"), "{finding}");
    expect_clean((uniform_barrier::KERNEL, one_block(32, |i| i as f32)));
}

#[test]
fn two_barriers_that_threads_wait_at_at_once_are_both_named() {
    let lines = [Some("one of two barriers"), Some("the other of two barriers")];
    let fault = (two_barriers::KERNEL, one_block(64, |i| i as f32));
    let finding = expect(fault, Kind::DivergentBarrier, lines, 0, 0);
    assert!(finding.detail.contains("thread (48, 0, 0) waits at another"), "{finding}");
}

#[kernel]
unsafe fn nobody_wrote(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 33]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.load(lane + 1)); // HERE: nobody wrote
}

#[kernel]
unsafe fn somebody_wrote(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 33]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    if lane == 0 {
        tile.store(32, 32.0);
    }
    sync_threads();
    dst.store(lane as usize, tile.load(lane + 1));
}

#[test]
fn a_read_of_shared_memory_that_nobody_wrote_names_the_byte() {
    let fault = (nobody_wrote::KERNEL, one_block(32, |i| (i + 1) as f32));
    let finding = expect(fault, Kind::Uninitialized, [Some("nobody wrote"), None], 0, 31);
    assert_eq!(finding.detail, "a thread reads byte 128 of `tile`, which no thread has written");
    expect_clean((somebody_wrote::KERNEL, one_block(32, |i| (i + 1) as f32)));
}

/// What a block left in shared memory is not there for the next one.
#[kernel]
unsafe fn what_the_last_block_wrote(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let tile = shared!([f32; 32]);
    let (lane, i) = (warp::lane_id(), thread::index_x());
    if thread::block_idx_x() != 2 {
        tile.store(lane, if i < n { src.load(i) } else { 0.0 });
    }
    sync_threads();
    let value = tile.load(lane); // HERE: the last block wrote
    if i < n {
        dst.store(i, value);
    }
}

#[test]
fn shared_memory_does_not_last_from_block_to_block_and_the_first_faulty_block_is_named() {
    let fault = (what_the_last_block_wrote::KERNEL, hundred());
    expect(fault, Kind::Uninitialized, [Some("the last block wrote"), None], 2, 0);
}

/// The facade has no pointer arithmetic, so that only an address from outside can be off.
#[kernel]
unsafe fn four_at_once(address: u64, dst: GlobalMut<f32>) {
    let four = Global::<f32>::from_word(address).cast::<F32x4>().load(0); // HERE: misaligned
    dst.store(0, four.y);
}

#[test]
fn an_access_that_is_not_aligned_to_its_width_is_reported() {
    let plan = |offset: u64| {
        Ok(Plan::new(launch([1; 3], [1; 3]))
            .buffer(Buffer::input("dst", 8, |i| if i == 4 { 7.0f32 } else { 0.0 })?)
            .scalar("address", (1u64 << 40) + offset))
    };
    let finding = expect((four_at_once::KERNEL, plan(4)), Kind::Misaligned, [Some("misaligned"), None], 0, 0);
    assert!(finding.detail.contains("16 bytes at byte 4"), "{finding}");
    expect_clean((four_at_once::KERNEL, plan(16)));
}

#[kernel]
unsafe fn plain_loop(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x() as usize;
    let mut value = 0.0;
    for _ in 0..2 {
        value = src.load(i); // HERE: open grouping
    }
    dst.store(i, value);
}

#[kernel]
unsafe fn plain_loop_with_one_access_a_lane(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x() as usize;
    let mut value = 0.0;
    for k in 0..32 {
        if k == i {
            value = src.load(i);
        }
    }
    dst.store(i, value);
}

#[test]
fn an_access_in_a_loop_that_the_facade_does_not_see_has_no_certain_grouping() {
    let fault = (plain_loop::KERNEL, one_block(32, |i| i as f32));
    expect(fault, Kind::OpenGrouping, [Some("open grouping"), None], 0, 0);
    expect_clean((plain_loop_with_one_access_a_lane::KERNEL, one_block(32, |i| i as f32)));
}

#[kernel]
unsafe fn shuffle_from_inactive(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    let mut value = src.load(lane as usize);
    if lane < 16 {
        value = warp::shuffle_xor(0xFFFF, value, 16); // HERE: inactive lane
    }
    dst.store(lane as usize, value);
}

#[kernel]
unsafe fn shuffle_from_active(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    let mut value = src.load(lane as usize);
    if lane < 16 {
        value = warp::shuffle_xor(0xFFFF, value, 0);
    }
    dst.store(lane as usize, value);
}

#[test]
fn a_shuffle_from_a_lane_that_takes_no_part_is_reported() {
    let fault = (shuffle_from_inactive::KERNEL, one_block(32, |i| i as f32));
    let finding = expect(fault, Kind::InactiveLane, [Some("inactive lane"), None], 0, 0);
    assert!(finding.detail.contains("lane 16"), "{finding}");
    expect_clean((shuffle_from_active::KERNEL, one_block(32, |i| i as f32)));
}

#[kernel]
unsafe fn too_many_in_the_mask(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    if lane < 16 {
        sync_warp(warp::FULL); // HERE: divergent warp
    }
    sync_threads(); // HERE: divergent warp, the others
    dst.store(lane as usize, src.load(lane as usize));
}

#[kernel]
unsafe fn as_many_in_the_mask(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    if lane < 16 {
        sync_warp(0xFFFF);
    }
    sync_threads();
    dst.store(lane as usize, src.load(lane as usize));
}

#[test]
fn a_mask_that_names_a_lane_which_waits_elsewhere_is_reported_with_both_lines() {
    let lines = [Some("divergent warp"), Some("divergent warp, the others")];
    let fault = (too_many_in_the_mask::KERNEL, one_block(32, |i| i as f32));
    let finding = expect(fault, Kind::DivergentWarp, lines, 0, 0);
    assert!(finding.detail.contains("names lane 16"), "{finding}");
    expect_clean((as_many_in_the_mask::KERNEL, one_block(32, |i| i as f32)));
}

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

#[kernel]
unsafe fn endless_accesses(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x() as usize;
    for k in each(0..) {
        if src.load(i) < k as f32 - 1e6 {
            break;
        }
    }
    dst.store(i, src.load(i));
}

#[kernel]
unsafe fn accesses_that_end(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x() as usize;
    for k in each(0..) {
        if src.load(i) < k as f32 - 1e3 {
            break;
        }
    }
    dst.store(i, src.load(i));
}

#[kernel]
unsafe fn endless_barriers(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x() as usize;
    while src.load(i) >= 0.0 {
        sync_threads();
    }
    dst.store(i, src.load(i));
}

#[kernel]
unsafe fn endless_half_warps(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x() as usize;
    let half = if i < 16 { 0xFFFF } else { 0xFFFF_0000 };
    while core::hint::black_box(true) {
        sync_warp(half); // HERE: half warps
    }
    dst.store(i, src.load(i));
}

#[kernel]
unsafe fn barriers_that_end(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x() as usize;
    for _ in 0..100 {
        sync_threads();
    }
    dst.store(i, src.load(i));
}

#[test]
fn an_endless_loop_of_accesses_is_stopped() {
    let finding = reported_once(endless_accesses::KERNEL, one_block(32, |i| i as f32));
    assert_eq!((finding.kind, finding.thread), (Kind::NonTerminating, [0; 3]), "{finding}");
    assert!(line_of(finding.at).is_some(), "{finding}");
    expect_clean((accesses_that_end::KERNEL, one_block(32, |i| i as f32)));
}

#[test]
fn an_endless_loop_of_barriers_is_stopped() {
    let finding = reported_once(endless_barriers::KERNEL, one_block(32, |i| i as f32));
    assert_eq!((finding.kind, finding.block), (Kind::NonTerminating, [0; 3]), "{finding}");
    assert!(line_of(finding.at).is_some(), "{finding}");
    expect_clean((barriers_that_end::KERNEL, one_block(32, |i| i as f32)));
}

#[test]
fn an_endless_loop_of_half_warps_that_meet_is_stopped() {
    let outcome =
        simulate(endless_half_warps::KERNEL, &Arc::new(one_block(32, |i| i as f32).expect("small")), &options());
    let [finding] = outcome.findings.as_slice() else { panic!("{:#?}", outcome.findings) };
    assert_eq!((finding.kind, line_of(finding.at)), (Kind::NonTerminating, Some(line("half warps"))), "{finding}");
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
        assert_eq!((finding.kind, line_of(finding.at)), (Kind::NonTerminating, Some(line("silence"))), "{finding}");
        assert_eq!((finding.block, finding.thread), ([2, 0, 0], [6, 0, 0]), "{finding}");
    }
    ENOUGH.store(true, Relaxed);
    expect_clean((endless_silence::KERNEL, hundred()));
}

#[kernel]
unsafe fn too_much_shared(src: Global<f32>, dst: GlobalMut<f32>) {
    let small = shared!([f32; 32]);
    let large = shared!([f32; 12 * 1024 - 31]); // HERE: too much shared memory
    let lane = warp::lane_id();
    small.store(lane, src.load(lane as usize));
    large.store(lane, small.load(lane));
    dst.store(lane as usize, large.load(lane));
}

#[kernel]
unsafe fn as_much_shared(src: Global<f32>, dst: GlobalMut<f32>) {
    let small = shared!([f32; 32]);
    let large = shared!([f32; 12 * 1024 - 32]);
    let lane = warp::lane_id();
    small.store(lane, src.load(lane as usize));
    large.store(lane, small.load(lane));
    dst.store(lane as usize, large.load(lane));
}

#[test]
fn more_than_48_kib_of_static_shared_memory_is_reported() {
    let fault = (too_much_shared::KERNEL, one_block(32, |i| i as f32));
    let finding = expect(fault, Kind::SharedMemory, [Some("too much shared memory"), None], 0, 0);
    assert!(finding.detail.contains("`large` of 49028 bytes"), "{finding}");
    expect_clean((as_much_shared::KERNEL, one_block(32, |i| i as f32)));
}

#[test]
fn a_report_says_everything_in_one_line() {
    let finding = reported_once(read_past_the_end::KERNEL, hundred());
    let text = finding.to_string();
    let start = format!("out of bounds: {}, at {}:{}:", finding.detail, file!(), line("read past the end"));
    assert!(text.starts_with(&start) && text.ends_with("(thread (4, 0, 0), block (3, 0, 0))"), "{text}");
}

/// One thread of the first block is at fault, and every thread of the others.
#[kernel]
unsafe fn many_faults(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x() + 1000 * thread::block_idx_x() as usize;
    if thread::block_idx_x() == 0 {
        if i == 31 {
            dst.store(n, 0.0); // HERE: the first of many
        }
    } else {
        src.load(i);
    }
}

#[test]
fn of_many_faulty_blocks_the_first_is_reported() {
    let fault = (many_faults::KERNEL, hundred());
    expect(fault, Kind::OutOfBounds, [Some("the first of many"), None], 0, 31);
}
