//! What the simulator says of accesses that the compiler may change.

use busload::cases::Run;
use busload::sim::Note;
use busload_tests::{case, kernels, launch, on_threads, simulate};
use gpu::device::prelude::*;
use gpu::suite::{Axis, Buffer, Kernel, Plan, Value};
use std::sync::Arc;

/// Sums as many elements as `counts` has for each lane.
#[kernel]
unsafe fn a_row_each(counts: Global<u32>, src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let mut sum = 0.0;
    for k in steps(0..counts.load(i), 1) {
        sum += src.load(64 * (i % 32) + k as usize % 64);
    }
    dst.store(i, sum);
}

/// The same, with a loop that all lanes leave together.
#[kernel]
unsafe fn a_row_each_guarded(counts: Global<u32>, src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let count = counts.load(i);
    let mut sum = 0.0;
    for k in steps(0..64, 1) {
        if k < count {
            sum += src.load(64 * (i % 32) + k as usize);
        }
    }
    dst.store(i, sum);
}

/// The same between shuffles, in an inner loop.
#[kernel]
unsafe fn a_row_each_between_shuffles(counts: Global<u32>, src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let mut sum = 0.0;
    for _ in steps(0..2u32, 1) {
        for k in each(0..counts.load(i)) {
            sum += src.load(64 * (i % 32) + k as usize % 64);
        }
        sum += warp::shuffle_xor(u32::MAX, sum, 1);
    }
    dst.store(i, sum);
}

/// Counts into the element that `place` names for each lane; lanes without one do nothing.
#[kernel]
unsafe fn count(place: Global<u32>, dst: GlobalMut<u32>) {
    let place = place.load(thread::index_x());
    if place != u32::MAX {
        dst.atomic_add(place as usize, 1);
    }
}

/// The same in single precision.
#[kernel]
unsafe fn add(place: Global<u32>, dst: GlobalMut<f32>) {
    let place = place.load(thread::index_x());
    dst.atomic_add(place as usize, 1.0);
}

/// Copies an element that the lane names, if it names one, and stores it.
#[kernel]
unsafe fn copy_words(from: Global<u32>, src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    let from = from.load(i);
    tile.store(thread, 0.0);
    if from != u32::MAX {
        tile.copy_async(thread, src, from as usize);
    }
    copy_async::wait_all();
    dst.store(i, tile.load(thread));
}

/// The same of four elements side by side.
#[kernel]
unsafe fn copy_sectors(from: Global<u32>, src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([F32x4; 64]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    let from = from.load(i) as usize;
    tile.copy_async(thread, src.cast::<F32x4>(), from);
    copy_async::wait_all();
    dst.store(i, tile.load(thread).x);
}

/// The notes of each access of a kernel in blocks of two warps, in the order of the source.
fn notes(kernel: Kernel, blocks: u32, index: impl Fn(u64) -> u32 + Send + Sync + 'static) -> Vec<Vec<Note>> {
    let threads = 64 * u64::from(blocks);
    let plan = Plan::new(launch([blocks, 1, 1], [64, 1, 1]));
    let name = kernel.parameters[0].0;
    let plan = plan.buffer(Buffer::input(name, threads, index).expect("small"));
    let plan = match kernel.name {
        "add" => plan.buffer(Buffer::zeroed("dst", 64, |_| 0.0f32).expect("small")),
        "count" => plan.buffer(Buffer::zeroed("dst", 64, |_| 0u32).expect("small")),
        _ => plan
            .buffer(Buffer::input("src", 2048, |_| 1.0f32).expect("small"))
            .buffer(Buffer::output("dst", threads, |_| 0.0f32).expect("small")),
    };
    let plan = Arc::new(plan);
    let [one, four] = [1, 4].map(|threads| {
        let outcome = simulate(kernel, &plan, &on_threads(threads));
        assert!(outcome.findings.is_empty(), "{}", outcome.findings[0]);
        outcome.sites.into_iter().map(|site| site.notes).collect::<Vec<_>>()
    });
    assert_eq!(one, four, "on four threads");
    one
}

/// Of the accesses of the kernels with loops, that in the loop comes second.
#[test]
fn a_loop_that_lanes_leave_apart_is_noted_on_the_accesses_in_it() {
    let unrolled = [vec![], vec![Note::UnrolledLoop], vec![]];
    let ragged = |i: u64| i as u32 % 32;
    assert_eq!(notes(a_row_each::KERNEL, 2, ragged), unrolled);
    assert_eq!(notes(a_row_each::KERNEL, 8, |i| if i == 300 { 5 } else { 4 }), unrolled, "one lane of all");
    assert_eq!(notes(a_row_each::KERNEL, 1, |i| 5000 + i as u32), unrolled, "counted before all have left");
    assert_eq!(notes(a_row_each_between_shuffles::KERNEL, 2, ragged), unrolled);

    assert_eq!(notes(a_row_each::KERNEL, 2, |i| i as u32 / 32), [vec![], vec![], vec![]], "each warp as one");
    assert_eq!(notes(a_row_each::KERNEL, 1, |i| 3 * (i as u32 % 2)), [vec![], vec![], vec![]], "some never enter");
    assert_eq!(notes(a_row_each_guarded::KERNEL, 2, ragged), [vec![], vec![], vec![]], "left together");
}

#[test]
fn integers_that_all_lanes_add_to_one_address_are_noted() {
    let reduced = [vec![], vec![Note::ReducedAtomic]];
    assert_eq!(notes(count::KERNEL, 2, |_| 3), reduced);
    assert_eq!(notes(count::KERNEL, 2, |i| i as u32 / 32), reduced, "one for each warp");
    assert_eq!(notes(count::KERNEL, 2, |i| if i % 2 == 0 { 3 } else { u32::MAX }), reduced, "of the lanes that do");
    assert_eq!(notes(count::KERNEL, 2, |i| i as u32 % 2), [vec![], vec![]], "two addresses");
    assert_eq!(notes(count::KERNEL, 2, |i| if i < 32 { 3 } else { i as u32 % 2 }), [vec![], vec![]], "two in one warp");
    assert_eq!(notes(count::KERNEL, 2, |i| if i % 32 == 7 { 3 } else { u32::MAX }), [vec![], vec![]], "a lane alone");
    assert_eq!(notes(add::KERNEL, 2, |_| 3), [vec![], vec![]], "no integers");
}

/// The load and the store of the copy come second and third of `copy_sectors`, and third and fourth of `copy_words`.
#[test]
fn what_sets_an_asynchronous_copy_apart_is_noted() {
    let of = |copy: [&[Note]; 2], before: usize| {
        let none = |count| std::iter::repeat_n(&[][..], count);
        none(before).chain(copy).chain(none(2)).map(<[Note]>::to_vec).collect::<Vec<_>>()
    };
    let (turns, part): (&[Note], &[Note]) = (&[Note::CopyInTurns], &[Note::CopyByPart]);
    let words = |index: fn(u64) -> u32| notes(copy_words::KERNEL, 2, index);
    assert_eq!(words(|i| i as u32), of([&[]; 2], 2));
    assert_eq!(words(|i| i as u32 / 2), of([&[], turns], 2), "two lanes copy a word");
    assert_eq!(words(|i| 32 * (i as u32 % 32)), of([&[], turns], 2), "words of one bank");
    assert_eq!(words(|i| if i % 32 == 7 { u32::MAX } else { i as u32 }), of([part; 2], 2), "a lane stays out");
    let sectors = |index: fn(u64) -> u32| notes(copy_sectors::KERNEL, 2, index);
    assert_eq!(sectors(|i| i as u32), of([&[]; 2], 1));
    assert_eq!(sectors(|i| i as u32 + 2), of([&[], turns], 1), "to another place in the line");
    assert_eq!(sectors(|i| i as u32 + 1), of([turns; 2], 1), "to another half of the sector");
}

/// The kernels that were profiled count as simulated: on sizes that warps divide, none of them has anything to note.
#[test]
fn no_kernel_of_the_suite_has_a_note_on_even_sizes() {
    let value = |axis: &Axis| match axis.in_simulator[0] {
        Value::Shape(..) => Value::Shape(128, 128),
        Value::Count(_) if axis.name == Axis::ELEMENTS.name => Value::Count(4096),
        value => value,
    };
    for (family, entry) in kernels() {
        let case = case(family.axes.iter().map(|axis| (axis.name, value(axis))).collect());
        let plan = (entry.plan)(&case).unwrap_or_else(|error| panic!("{} on {case}: {error}", entry.kernel.name));
        let run = Run { family, kernel: entry.kernel, case, plan: Arc::new(plan) };
        for site in simulate(run.kernel, &run.plan, &on_threads(2)).sites {
            assert!(site.notes.is_empty(), "{}: {:?}: {:?}", run.kernel.name, site.position, site.notes);
        }
    }
}
