//! Shuffles that read from lanes which take no part, and masks that name such lanes.

use gpu::device::prelude::*;

#[kernel]
pub unsafe fn shuffle_out_of_mask(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let mut value = src.load(lane);
    if lane < 16 {
        value = warp::shuffle_xor(0xFFFF, value, 16); // A: warp::shuffle_xor
    }
    dst.store(lane, value);
}

#[kernel]
pub unsafe fn shuffle_out_of_mask_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let mut value = src.load(lane);
    if lane < 16 {
        value = warp::shuffle_xor(0xFFFF, value, 8);
    }
    dst.store(lane, value);
}

#[kernel]
pub unsafe fn shuffle_from_ended(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let lane = thread::index_x();
    if lane >= n {
        return;
    }
    let value = warp::shuffle_down(warp::FULL, src.load(lane), 1); // A: warp::shuffle_down
    dst.store(lane, value);
}

#[kernel]
pub unsafe fn shuffle_from_ended_twin(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let lane = thread::index_x();
    let value = warp::shuffle_down(warp::FULL, if lane < n { src.load(lane) } else { n as f32 }, 1);
    if lane >= n {
        return;
    }
    dst.store(lane, value);
}

#[kernel]
pub unsafe fn shuffle_in_branch(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let mut value = src.load(lane);
    if lane < 16 {
        value = warp::shuffle_xor(warp::FULL, value, 8); // A: warp::shuffle_xor
    }
    sync_threads(); // B: sync_threads
    dst.store(lane, value);
}

#[kernel]
pub unsafe fn shuffle_in_branch_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let mut value = src.load(lane);
    if lane < 16 {
        value = warp::shuffle_xor(0xFFFF, value, 8);
    }
    sync_threads();
    dst.store(lane, value);
}

#[kernel]
pub unsafe fn shuffle_without_oneself(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let value = warp::shuffle(0xFFFF, src.load(lane), 0); // A: warp::shuffle
    dst.store(lane, value);
}

#[kernel]
pub unsafe fn shuffle_without_oneself_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let value = warp::shuffle(warp::FULL, src.load(lane), 0);
    dst.store(lane, value);
}

#[kernel]
pub unsafe fn shuffle_from_the_other_branch(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let value = src.load(lane);
    let first = if lane.is_multiple_of(2) {
        warp::shuffle(0x5555_5555, value, 0)
    } else {
        warp::shuffle(0xAAAA_AAAA, value, 0) // A: warp::shuffle
    };
    dst.store(lane, first);
}

#[kernel]
pub unsafe fn shuffle_from_the_other_branch_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let value = src.load(lane);
    let first = if lane.is_multiple_of(2) {
        warp::shuffle(0x5555_5555, value, 0)
    } else {
        warp::shuffle(0xAAAA_AAAA, value, 1) - 1.0
    };
    dst.store(lane, first);
}

#[kernel]
pub unsafe fn shuffle_up_by_two_masks(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let mask = if lane < 8 { 0xFFFF } else { warp::FULL };
    dst.store(lane, warp::shuffle_up(mask, src.load(lane), 1)); // A: warp::shuffle_up
}

#[kernel]
pub unsafe fn shuffle_up_by_two_masks_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = thread::index_x();
    let mask = if lane < 8 { 0xFF } else { 0xFFFF_FF00 };
    // Lane 8 has its neighbour elsewhere.
    let delta = if lane == 8 { 0 } else { 1 };
    dst.store(lane, warp::shuffle_up(mask, src.load(lane), delta));
}

#[kernel]
pub unsafe fn shuffle_wide_from_ended(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let lane = thread::index_x();
    if lane >= n {
        return;
    }
    let value = warp::shuffle_xor(warp::FULL, f64::from(src.load(lane)), 16); // A: warp::shuffle_xor
    dst.store(lane, value as f32);
}

#[kernel]
pub unsafe fn shuffle_wide_from_ended_twin(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let lane = thread::index_x();
    let value = warp::shuffle_xor(warp::FULL, f64::from(if lane < n { src.load(lane) } else { 0.0 }), 16);
    if lane >= n {
        return;
    }
    dst.store(lane, value as f32);
}

host_only! {
    use crate::{Bug, Class, src, threads};
    use gpu::suite::Buffer;

    /// The bugs of this file.
    pub static BUGS: &[Bug] = &[
        Bug {
            class: Class::InactiveLane,
            kernel: shuffle_out_of_mask::KERNEL,
            twin: shuffle_out_of_mask_twin::KERNEL,
            plan: || threads(1, 32, |i| if i < 16 { (i ^ 8) as f32 } else { i as f32 }),
            report: "inactive lane: a shuffle reads from lane 16, which takes no part in it, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::InactiveLane,
            kernel: shuffle_from_ended::KERNEL,
            twin: shuffle_from_ended_twin::KERNEL,
            plan: || Ok(src(1, 32, 20)?.buffer(Buffer::output("dst", 20, |i| i as f32 + 1.0)?).scalar("n", 20u64)),
            report: "inactive lane: a shuffle reads from lane 20, which takes no part in it, at {A} \
                     (thread (19, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::InactiveLane,
            kernel: shuffle_in_branch::KERNEL,
            twin: shuffle_in_branch_twin::KERNEL,
            plan: || threads(1, 32, |i| if i < 16 { (i ^ 8) as f32 } else { i as f32 }),
            report: "divergent warp: the mask 0xffffffff names lane 16, which waits elsewhere, at {A} and {B} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::InactiveLane,
            kernel: shuffle_without_oneself::KERNEL,
            twin: shuffle_without_oneself_twin::KERNEL,
            plan: || threads(1, 32, |_| 0.0),
            report: "divergent warp: lane 16 is not in its own mask 0x0000ffff, at {A} \
                     (thread (16, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::InactiveLane,
            kernel: shuffle_from_the_other_branch::KERNEL,
            twin: shuffle_from_the_other_branch_twin::KERNEL,
            plan: || threads(1, 32, |_| 0.0),
            report: "inactive lane: a shuffle reads from lane 0, which takes no part in it, at {A} \
                     (thread (1, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::InactiveLane,
            kernel: shuffle_up_by_two_masks::KERNEL,
            twin: shuffle_up_by_two_masks_twin::KERNEL,
            plan: || threads(1, 32, |i| if i % 8 == 0 && i <= 8 { i as f32 } else { i as f32 - 1.0 }),
            report: "divergent warp: lane 8 names the mask 0xffffffff, and lane 0 0x0000ffff, which names both, at {A} \
                     (thread (8, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::InactiveLane,
            kernel: shuffle_wide_from_ended::KERNEL,
            twin: shuffle_wide_from_ended_twin::KERNEL,
            plan: || {
                let expected = |i: u64| if i < 4 { (i + 16) as f32 } else if i < 16 { 0.0 } else { (i - 16) as f32 };
                Ok(src(1, 32, 20)?.buffer(Buffer::output("dst", 20, expected)?).scalar("n", 20u64))
            },
            report: "inactive lane: a shuffle reads from lane 20, which takes no part in it, at {A} \
                     (thread (4, 0, 0), block (0, 0, 0))",
        },
    ];
}
