//! Votes, matches and reductions that not all lanes come to which their masks name, or not with the same mask.

use gpu::device::prelude::*;

#[kernel]
pub unsafe fn vote_in_branch(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let value = src.load(lane);
    let mut lanes = 0;
    if lane < 16 {
        lanes = warp::ballot(warp::FULL, value > 3.0); // A: warp::ballot
    }
    sync_threads(); // B: sync_threads
    dst.store(lane, lanes as f32);
}

#[kernel]
pub unsafe fn vote_in_branch_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let value = src.load(lane);
    let mut lanes = 0;
    if lane < 16 {
        lanes = warp::ballot(0xFFFF, value > 3.0);
    }
    sync_threads();
    dst.store(lane, lanes as f32);
}

#[kernel]
pub unsafe fn vote_without_oneself(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let any = warp::any(0xFFFF_FFF0, src.load(lane) > 30.0); // A: warp::any
    dst.store(lane, if any { 1.0 } else { 0.0 });
}

#[kernel]
pub unsafe fn vote_without_oneself_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let any = warp::any(warp::FULL, src.load(lane) > 30.0);
    dst.store(lane, if any { 1.0 } else { 0.0 });
}

#[kernel]
pub unsafe fn vote_by_two_masks(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    // The lower half means the whole warp, the upper one itself.
    let mask = if lane < 16 { warp::FULL } else { 0xFFFF_0000 };
    let all = warp::all(mask, src.load(lane) < 32.0); // A: warp::all
    dst.store(lane, if all { 1.0 } else { 0.0 });
}

#[kernel]
pub unsafe fn vote_by_two_masks_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let mask = if lane < 16 { 0xFFFF } else { 0xFFFF_0000 };
    let all = warp::all(mask, src.load(lane) < 32.0);
    dst.store(lane, if all { 1.0 } else { 0.0 });
}

#[kernel]
pub unsafe fn match_in_two_branches(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let value = src.load(lane);
    let same = if lane.is_multiple_of(2) {
        warp::match_any(warp::FULL, value) // A: warp::match_any
    } else {
        warp::match_any(warp::FULL, value + 1.0) // B: warp::match_any
    };
    dst.store(lane, same.count_ones() as f32);
}

#[kernel]
pub unsafe fn match_in_two_branches_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let value = src.load(lane);
    let same = warp::match_any(warp::FULL, if lane.is_multiple_of(2) { value } else { value + 1.0 });
    dst.store(lane, same.count_ones() as f32);
}

#[kernel]
pub unsafe fn reduce_of_some(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let lane = thread::index_x();
    let mut sum = 0;
    if lane < n {
        sum = warp::reduce_add(warp::FULL, src.load(lane) as u32); // A: warp::reduce_add
    }
    sync_warp(warp::FULL); // B: sync_warp
    dst.store(lane, sum as f32);
}

#[kernel]
pub unsafe fn reduce_of_some_twin(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let lane = thread::index_x();
    let mask = warp::ballot(warp::FULL, lane < n);
    let mut sum = 0;
    if lane < n {
        sum = warp::reduce_add(mask, src.load(lane) as u32);
    }
    sync_warp(warp::FULL);
    dst.store(lane, sum as f32);
}

#[kernel]
pub unsafe fn reduce_by_active_mask(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let mut sum = 0;
    if !lane.is_multiple_of(4) {
        // Who is active here need not be who comes to the reduction.
        let mask = warp::activemask();
        if lane.is_multiple_of(2) {
            sum = warp::reduce_max(mask, src.load(lane) as u32); // A: warp::reduce_max
        }
    }
    sync_threads(); // B: sync_threads
    dst.store(lane, sum as f32);
}

#[kernel]
pub unsafe fn reduce_by_active_mask_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let mut sum = 0;
    if !lane.is_multiple_of(4) {
        let mask = warp::activemask();
        if lane.is_multiple_of(2) {
            sum = warp::reduce_max(mask & 0x4444_4444, src.load(lane) as u32);
        }
    }
    sync_threads();
    dst.store(lane, sum as f32);
}

host_only! {
    use crate::{Bug, Class, src, threads};
    use gpu::suite::Buffer;

    /// The bugs of this file.
    pub static BUGS: &[Bug] = &[
        Bug {
            class: Class::InactiveLane,
            kernel: vote_in_branch::KERNEL,
            twin: vote_in_branch_twin::KERNEL,
            plan: || threads(1, 32, |i| if i < 16 { 0xFFF0 as f32 } else { 0.0 }),
            report: "divergent warp: the mask 0xffffffff names lane 16, which waits elsewhere, at {A} and {B} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::InactiveLane,
            kernel: vote_without_oneself::KERNEL,
            twin: vote_without_oneself_twin::KERNEL,
            plan: || threads(1, 32, |_| 1.0),
            report: "divergent warp: lane 0 is not in its own mask 0xfffffff0, at {A} (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::InactiveLane,
            kernel: vote_by_two_masks::KERNEL,
            twin: vote_by_two_masks_twin::KERNEL,
            plan: || threads(1, 32, |_| 1.0),
            report: "divergent warp: lane 16 names the mask 0xffff0000, and lane 0 0xffffffff, which names both, at {A} \
                     (thread (16, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::InactiveLane,
            kernel: match_in_two_branches::KERNEL,
            twin: match_in_two_branches_twin::KERNEL,
            plan: || threads(1, 32, |i| if i == 0 || i == 31 { 1.0 } else { 2.0 }),
            report: "divergent warp: the mask 0xffffffff names lane 1, which waits elsewhere, at {A} and {B} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::InactiveLane,
            kernel: reduce_of_some::KERNEL,
            twin: reduce_of_some_twin::KERNEL,
            plan: || {
                let sums = |i| if i < 20 { 190.0f32 } else { 0.0 };
                Ok(src(1, 32, 20)?.buffer(Buffer::output("dst", 32, sums)?).scalar("n", 20u64))
            },
            report: "divergent warp: the mask 0xffffffff names lane 20, which waits elsewhere, at {A} and {B} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::InactiveLane,
            kernel: reduce_by_active_mask::KERNEL,
            twin: reduce_by_active_mask_twin::KERNEL,
            plan: || threads(1, 32, |i| if i % 4 == 2 { 30.0 } else { 0.0 }),
            report: "divergent warp: the mask 0xeeeeeeee names lane 1, which waits elsewhere, at {A} and {B} \
                     (thread (2, 0, 0), block (0, 0, 0))",
        },
    ];
}
