//! Barriers that are missing, and barriers that not all threads reach.

use gpu::device::prelude::*;

#[kernel]
pub unsafe fn missing_before_reverse(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.store(i, src.load(i as usize)); // A: store
    dst.store(i as usize, tile.load(63 - i)); // B: load
}

#[kernel]
pub unsafe fn missing_before_reverse_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.store(i, src.load(i as usize));
    sync_threads();
    dst.store(i as usize, tile.load(63 - i));
}

#[kernel]
pub unsafe fn missing_in_warp(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize)); // A: store
    dst.store(lane as usize, tile.load(31 - lane)); // B: load
}

#[kernel]
pub unsafe fn missing_in_warp_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_warp(warp::FULL);
    dst.store(lane as usize, tile.load(31 - lane));
}

#[kernel]
pub unsafe fn missing_in_tree(src: Global<f32>, dst: GlobalMut<f32>) {
    let sums = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    sums.store(i, src.load(i as usize));
    sync_threads();
    for level in steps(0..6u32, 1) {
        let half = 32 >> level;
        if i < half {
            let own = sums.load(i);
            let other = sums.load(i + half); // A: load
            sums.store(i, own + other); // B: store
        }
    }
    if i == 0 {
        dst.store(0, sums.load(0));
    }
}

#[kernel]
pub unsafe fn missing_in_tree_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let sums = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    sums.store(i, src.load(i as usize));
    sync_threads();
    for level in steps(0..6u32, 1) {
        let half = 32 >> level;
        if i < half {
            let own = sums.load(i);
            let other = sums.load(i + half);
            sums.store(i, own + other);
        }
        sync_threads();
    }
    if i == 0 {
        dst.store(0, sums.load(0));
    }
}

#[kernel]
pub unsafe fn missing_between_warps(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let i = thread::thread_idx_x();
    if i < 32 {
        tile.store(i, src.load(i as usize)); // A: store
    }
    if i >= 32 {
        dst.store(i as usize - 32, tile.load(i - 32)); // B: load
    }
}

#[kernel]
pub unsafe fn missing_between_warps_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let i = thread::thread_idx_x();
    if i < 32 {
        tile.store(i, src.load(i as usize));
    }
    sync_threads();
    if i >= 32 {
        dst.store(i as usize - 32, tile.load(i - 32));
    }
}

#[kernel]
pub unsafe fn missing_before_broadcast(src: Global<f32>, dst: GlobalMut<f32>) {
    let first = shared!([f32; 1]);
    let i = thread::index_x();
    if i == 0 {
        first.store(0, src.load(1)); // A: store
    }
    dst.store(i, first.load(0)); // B: load
}

#[kernel]
pub unsafe fn missing_before_broadcast_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let first = shared!([f32; 1]);
    let i = thread::index_x();
    if i == 0 {
        first.store(0, src.load(1));
    }
    sync_threads();
    dst.store(i, first.load(0));
}

#[kernel]
pub unsafe fn missing_but_for_the_warp(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.store(i, src.load(i as usize)); // A: store
    sync_warp(warp::FULL);
    dst.store(i as usize, tile.load(63 - i)); // B: load
}

#[kernel]
pub unsafe fn missing_but_for_the_warp_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.store(i, src.load(i as usize));
    sync_threads();
    dst.store(i as usize, tile.load(63 - i));
}

#[kernel]
pub unsafe fn divergent_in_branch(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    if i < 16 {
        sync_threads(); // A: sync_threads
    }
    dst.store(i, src.load(i)); // B: load
}

#[kernel]
pub unsafe fn divergent_in_branch_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    if thread::block_dim_x() > 16 {
        sync_threads();
    }
    dst.store(i, src.load(i));
}

#[device]
fn everybody() {
    sync_threads(); // everybody: sync_threads
}

#[kernel]
pub unsafe fn divergent_in_calls(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    if i.is_multiple_of(2) {
        everybody(); // A: everybody
    } else {
        everybody(); // B: everybody
    }
    dst.store(i, src.load(i));
}

#[kernel]
pub unsafe fn divergent_in_calls_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    if i.is_multiple_of(2) {
        dst.store(i, src.load(i));
    }
    everybody();
    if i % 2 == 1 {
        dst.store(i, src.load(i));
    }
}

#[kernel]
pub unsafe fn divergent_two_barriers(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    if i < 48 {
        sync_threads(); // A: sync_threads
    } else {
        sync_threads(); // B: sync_threads
    }
    dst.store(i, src.load(i));
}

#[kernel]
pub unsafe fn divergent_two_barriers_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    if thread::block_dim_x() > 48 {
        sync_threads();
    }
    sync_threads();
    dst.store(i, src.load(i));
}

#[kernel]
pub unsafe fn divergent_in_loop(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x();
    for _ in steps(0..i / 32 + 1, 1) {
        sync_threads(); // A: sync_threads
    }
    dst.store(i as usize, src.load(i as usize)); // B: load, C: store
}

#[kernel]
pub unsafe fn divergent_in_loop_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::thread_idx_x();
    for _ in steps(0..2u32, 1) {
        sync_threads();
    }
    dst.store(i as usize, src.load(i as usize));
}

host_only! {
    use crate::{Bug, Class, src, threads};
    use gpu::suite::Buffer;

    /// The bugs of this file.
    pub static BUGS: &[Bug] = &[
        Bug {
            class: Class::MissingBarrier,
            kernel: missing_before_reverse::KERNEL,
            twin: missing_before_reverse_twin::KERNEL,
            plan: || threads(1, 64, |i| (63 - i) as f32),
            report: "race: a thread writes byte 128 of `tile`, which thread (31, 0, 0) reads, and no barrier orders the \
                     two, at {A} and {B} (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MissingBarrier,
            kernel: missing_in_warp::KERNEL,
            twin: missing_in_warp_twin::KERNEL,
            plan: || threads(1, 32, |i| (31 - i) as f32),
            report: "race: a thread writes byte 64 of `tile`, which thread (15, 0, 0) reads, and no barrier orders the \
                     two, at {A} and {B} (thread (16, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MissingBarrier,
            kernel: missing_in_tree::KERNEL,
            twin: missing_in_tree_twin::KERNEL,
            plan: || Ok(src(1, 64, 64)?.buffer(Buffer::output("dst", 1, |_| 2016.0f32)?)),
            report: "race: a thread writes byte 4 of `sums`, which thread (0, 0, 0) reads, and no barrier orders the \
                     two, at {B} and {A} (thread (1, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MissingBarrier,
            kernel: missing_between_warps::KERNEL,
            twin: missing_between_warps_twin::KERNEL,
            plan: || Ok(src(1, 64, 64)?.buffer(Buffer::output("dst", 32, |i| i as f32)?)),
            report: "race: a thread reads byte 0 of `tile`, which thread (0, 0, 0) writes, and no barrier orders the \
                     two, at {B} and {A} (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MissingBarrier,
            kernel: missing_before_broadcast::KERNEL,
            twin: missing_before_broadcast_twin::KERNEL,
            plan: || threads(1, 64, |_| 1.0),
            report: "race: a thread reads byte 0 of `first`, which thread (0, 0, 0) writes, and no barrier orders the \
                     two, at {B} and {A} (thread (1, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MissingBarrier,
            kernel: missing_but_for_the_warp::KERNEL,
            twin: missing_but_for_the_warp_twin::KERNEL,
            plan: || threads(1, 64, |i| (63 - i) as f32),
            report: "race: a thread writes byte 128 of `tile`, which thread (31, 0, 0) reads, and no barrier orders the \
                     two, at {A} and {B} (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::DivergentBarrier,
            kernel: divergent_in_branch::KERNEL,
            twin: divergent_in_branch_twin::KERNEL,
            plan: || threads(1, 32, |i| i as f32),
            report: "divergent barrier: a thread waits at this barrier, which thread (16, 0, 0) passed by on its way to an \
                     access that both make, at {A} and {B} (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::DivergentBarrier,
            kernel: divergent_in_calls::KERNEL,
            twin: divergent_in_calls_twin::KERNEL,
            plan: || threads(1, 64, |i| i as f32),
            report: "divergent barrier: a thread waits at the barrier of this call while thread (1, 0, 0) waits at that of \
                     another, at {A} and {B} (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::DivergentBarrier,
            kernel: divergent_two_barriers::KERNEL,
            twin: divergent_two_barriers_twin::KERNEL,
            plan: || threads(1, 64, |i| i as f32),
            report: "divergent barrier: a thread waits at this barrier while thread (48, 0, 0) waits at another, at {A} \
                     and {B} (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::DivergentBarrier,
            kernel: divergent_in_loop::KERNEL,
            twin: divergent_in_loop_twin::KERNEL,
            plan: || threads(1, 64, |i| i as f32),
            report: "divergent barrier: a thread waits at this barrier, which thread (0, 0, 0) passed by on its way to an \
                     access that both make, at {A} and {B} (thread (32, 0, 0), block (0, 0, 0))",
        },
    ];
}
