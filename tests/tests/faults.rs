//! Faults that the corpus has no class for, because no GPU's tools look for them or the kernel needs more than a GPU has:
//! each is reported with its kind, its lines, its block and its thread, the same on every run, and a kernel that differs
//! only in the fault is reported as clean.
//!
//! A line of a kernel that a report must name ends in `// HERE: name`.

use busload::sim::{Finding, Kind, Limits, Options, Position};
use busload_tests::{checked, launch, on_threads, simulate};
use gpu::device::host::Parameter;
use gpu::device::prelude::*;
use gpu::suite::{Buffer, Kernel, Plan, PlanError, noise};
use std::hint::black_box;
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

/// Why a kernel is not simulated.
fn refused(kernel: Kernel, plan: Result<Plan, PlanError>) -> String {
    let plan = Arc::new(plan.expect("a small plan"));
    let refused = busload::sim::simulate(kernel, plan, &options(), &|_, _| ());
    refused.err().expect("what no GPU takes").to_string()
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

/// One block of `threads` with `src`, whose elements are their indices, and `dst` as `expected` says.
fn one_block(threads: u32, expected: fn(u64) -> f32) -> Result<Plan, PlanError> {
    Ok(Plan::new(launch([1; 3], [threads, 1, 1]))
        .buffer(Buffer::input("src", threads.into(), |i| i as f32)?)
        .buffer(Buffer::output("dst", threads.into(), expected)?))
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
fn an_access_past_the_end_of_dynamic_shared_memory_names_the_byte() {
    let dynamic = |shared_bytes| {
        let mut plan = one_block(32, |lane| ((lane + 1) % 32) as f32)?;
        plan.launch.shared_bytes = shared_bytes;
        Ok(plan)
    };
    let at = [Some("dynamic past the end"), None];
    let finding = expect((dynamic_past_the_end::KERNEL, dynamic(64)), Kind::OutOfBounds, at, 0, 16);
    assert!(finding.detail.contains("at byte 64 of `dynamic shared memory`, which has 64"), "{finding}");
    expect((dynamic_past_the_end::KERNEL, dynamic(0)), Kind::OutOfBounds, at, 0, 0);
    expect_clean((dynamic_past_the_end::KERNEL, dynamic(128)));
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
unsafe fn null_pointer(dst: GlobalMut<f32>) {
    let null: Global<f32> = Parameter::from_word(0);
    dst.store(0, null.load(5)); // HERE: null
}

#[test]
#[should_panic(expected = "without a machine")]
fn a_load_where_no_lane_runs_panics() {
    let buffer = Global::<f32>::from_word(1 << 45);
    // SAFETY: it is not carried out.
    unsafe { buffer.load(0) };
}

#[test]
fn a_pointer_that_is_no_buffer_is_reported() {
    let plan = Buffer::output("dst", 1, |_| 0.0f32).map(|dst| Plan::new(launch([1; 3], [1; 3])).buffer(dst));
    let finding = expect((null_pointer::KERNEL, plan), Kind::OutOfBounds, [Some("null"), None], 0, 0);
    assert_eq!(finding.detail, "a thread reads memory through a pointer that is no buffer of the launch");
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
    let line = line("recursive load");
    let column =
        include_str!("faults.rs").lines().nth(line as usize - 1).and_then(|line| line.find("load(")).unwrap() + 1;
    let at = format!("{}:{line}:{column}", file!());
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
        .args(["--ignored", "--exact", "a_kernel_follows_a_wild_pointer"])
        .output()
        .expect("a process for the test");
    const SIGSEGV: i32 = 11;
    assert_eq!(child.status.signal(), Some(SIGSEGV), "{child:?}");
    let said = String::from_utf8_lossy(&child.stderr);
    let last = format!("the last access before it is at {}:{}:", file!(), line("before the wild pointer"));
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
        assert_eq!((finding.kind, line_of(finding.at)), (Kind::NonTerminating, Some(line("silence"))), "{finding}");
        assert_eq!((finding.block, finding.thread), ([2, 0, 0], [6, 0, 0]), "{finding}");
    }
    ENOUGH.store(true, Relaxed);
    expect_clean((endless_silence::KERNEL, hundred()));
}

#[kernel]
unsafe fn too_much_shared(src: Global<f32>, dst: GlobalMut<f32>) {
    let small = shared!([f32; 32]);
    let large = shared!([f32; 12 * 1024 - 31]);
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
fn more_than_48_kib_of_static_shared_memory_is_refused_whoever_touches_it() {
    let error = refused(too_much_shared::KERNEL, one_block(32, |i| i as f32));
    assert!(error.contains("`too_much_shared` declares 49156 bytes"), "{error}");
    expect_clean((as_much_shared::KERNEL, one_block(32, |i| i as f32)));
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

/// Each half of a warp meets on its own, and reads what the same half stored.
#[kernel]
unsafe fn half_warps_that_meet(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    let half = if lane < 16 { 0xFFFF } else { 0xFFFF_0000 };
    tile.store(lane, src.load(lane as usize));
    sync_warp(half);
    let value = tile.load(lane ^ 15);
    sync_warp(half);
    tile.store(lane, value);
    dst.store(lane as usize, tile.load(lane));
}

/// The lanes of a warp tell each other through global memory.
#[kernel]
unsafe fn lanes_that_meet_over_global_memory(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    dst.store(lane, src.load(lane));
    sync_warp(warp::FULL);
    let value = dst.load(lane ^ 15);
    sync_warp(warp::FULL);
    dst.store(lane, value);
}

/// Two threads store the halves of an element.
#[kernel]
unsafe fn halves_of_elements(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let halves = src.cast::<u16>();
    dst.cast::<u16>().store(i, halves.load(i));
    dst.cast::<u16>().store(i + 32, halves.load(i + 32));
}

#[test]
fn what_is_suspicious_at_first_and_ordered_after_all_is_not_reported() {
    expect_clean((half_warps_that_meet::KERNEL, one_block(32, |i| (i ^ 15) as f32)));
    expect_clean((lanes_that_meet_over_global_memory::KERNEL, one_block(32, |i| (i ^ 15) as f32)));
    expect_clean((halves_of_elements::KERNEL, one_block(32, |i| i as f32)));
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

/// An offset that would lead out of any buffer.
#[kernel]
unsafe fn far_away(src: Global<f32>, dst: GlobalMut<f32>, far: usize) {
    let i = thread::index_x();
    dst.store(i, src.starting_at(far).load(i)); // HERE: far away
}

#[test]
fn no_offset_leads_from_one_buffer_to_another() {
    // Buffers lie a tebibyte apart.
    for far in [32, 1u64 << 38, u64::MAX] {
        let plan = one_block(32, |i| i as f32).map(|plan| plan.scalar("far", far));
        let finding = expect((far_away::KERNEL, plan), Kind::OutOfBounds, [Some("far away"), None], 0, 0);
        assert!(finding.detail.contains("of `src`, which has 128"), "{finding}");
    }
    expect_clean((far_away::KERNEL, one_block(32, |i| i as f32).map(|plan| plan.scalar("far", 0u64))));
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

/// One thread stores, as a vector, what four others have read since the last barrier.
#[kernel]
unsafe fn wide_store_behind_reads(dst: GlobalMut<f32>, wide: GlobalMut<f32>) {
    let tile = shared!([f32; 4]);
    let lane = warp::lane_id();
    if lane < 2 {
        dst.store(lane as usize, wide.load(lane as usize) + tile.load(lane)); // HERE: the first reads
    } else if lane < 4 {
        dst.store(lane as usize, wide.load(lane as usize) + tile.load(lane));
    } else if lane == 4 {
        let value = F32x4 { x: 1.0, y: 2.0, z: 3.0, w: 4.0 };
        wide.cast::<F32x4>().store(0, value); // HERE: the wide store, global
        tile.cast::<F32x4>().store(0, value); // HERE: the wide store, shared
    }
}

#[test]
fn what_races_with_one_wide_store_is_a_race_and_not_uninitialized() {
    let plan = Ok(Plan::new(launch([1; 3], [32, 1, 1])));
    let plan = plan.and_then(|plan: Plan| {
        let dst = Buffer::output("dst", 4, |_| 0.0f32)?;
        Ok(plan.buffer(dst).buffer(Buffer::output("wide", 4, |i| i as f32 + 1.0)?))
    });
    let findings = reported(wide_store_behind_reads::KERNEL, plan, RUNS);
    let found: Vec<_> = findings.iter().map(|it| (it.kind, line_of(it.at), line_of(it.other))).collect();
    let reads = Some(line("the first reads"));
    let race = |store| (Kind::Race, Some(line(store)), reads);
    assert_eq!(found, [race("the wide store, global"), race("the wide store, shared")], "{findings:#?}");
}

#[kernel]
unsafe fn static_and_dynamic(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 1024]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    dynamic_shared::<f32>().store(lane, tile.load(lane));
    dst.store(lane as usize, dynamic_shared::<f32>().load(lane));
}

#[test]
fn more_static_and_dynamic_shared_memory_than_a_gpu_gives_a_block_is_refused() {
    let plan = |shared_bytes| {
        let mut plan = one_block(32, |i| i as f32)?;
        plan.launch.shared_bytes = shared_bytes;
        Ok(plan)
    };
    let most = (227 - 4) << 10;
    let error = refused(static_and_dynamic::KERNEL, plan(most + 4));
    assert!(error.contains("has 232452 bytes of shared memory a block, 228356 of them dynamic"), "{error}");
    assert!(error.contains("a GPU gives a block at most 232448"), "{error}");
    expect_clean((static_and_dynamic::KERNEL, plan(most)));
}
