//! Accesses that lead out of their memory, and shared memory beyond what a GPU has.

use super::{Source, expect, expect_clean, one_block, refused};
use busload::sim::Kind;
use busload_tests::launch;
use gpu::device::host::Parameter;
use gpu::device::prelude::*;
use gpu::suite::{Buffer, Plan};

/// This file, in which reports name lines.
pub(super) const SOURCE: Source = (file!(), include_str!("memory.rs"));

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
