//! What orders accesses: meetings of lanes, races, requests without a certain grouping, and blocks, of which the first is
//! reported.

use super::{RUNS, Source, expect, expect_clean, hundred, one_block, place, place_of, reported};
use busload::sim::Kind;
use busload_tests::launch;
use gpu::device::prelude::*;
use gpu::suite::{Buffer, Plan};

/// This file, in which reports name lines.
pub(super) const SOURCE: Source = (file!(), include_str!("order.rs"));

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
    let found: Vec<_> = findings.iter().map(|it| (it.kind, place_of(it.at), place_of(it.other))).collect();
    let reads = Some(place("the first reads"));
    let race = |store| (Kind::Race, Some(place(store)), reads);
    assert_eq!(found, [race("the wide store, global"), race("the wide store, shared")], "{findings:#?}");
}
