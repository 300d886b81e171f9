//! Uninitialized: outputs and shared memory that are read before anybody has written them.

use gpu::device::prelude::*;

#[kernel]
pub unsafe fn global_sum_into_output(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let sum = dst.load(i) + src.load(i); // A: load
    dst.store(i, sum);
}

#[kernel]
pub unsafe fn global_sum_into_output_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, 1.0);
    let sum = dst.load(i) + src.load(i);
    dst.store(i, sum);
}

#[kernel]
pub unsafe fn global_atomic_on_output(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.atomic_add(i, src.load(i)); // A: atomic_add
}

#[kernel]
pub unsafe fn global_atomic_on_output_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, 1.0);
    dst.atomic_add(i, src.load(i));
}

#[kernel]
pub unsafe fn global_every_other(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    if i.is_multiple_of(2) {
        dst.store(i, src.load(i));
    }
    sync_threads();
    let value = dst.load(i); // A: load
    sync_threads();
    dst.store(i, value + 1.0);
}

#[kernel]
pub unsafe fn global_every_other_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, src.load(i));
    sync_threads();
    let value = dst.load(i);
    sync_threads();
    dst.store(i, value + 1.0);
}

#[kernel]
pub unsafe fn global_half_a_vector(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    if i % 4 < 2 {
        dst.store(i, src.load(i));
    }
    sync_threads();
    let vector = dst.cast::<F32x4>().load(i / 4); // A: load
    sync_threads();
    dst.store(i, vector.x);
}

#[kernel]
pub unsafe fn global_half_a_vector_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, src.load(i));
    sync_threads();
    let vector = dst.cast::<F32x4>().load(i / 4);
    sync_threads();
    dst.store(i, vector.x);
}

#[kernel]
pub unsafe fn shared_word_past_the_stores(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 33]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.load(lane + 1)); // A: load
}

#[kernel]
pub unsafe fn shared_word_past_the_stores_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 33]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    if lane == 0 {
        tile.store(32, 32.0);
    }
    sync_threads();
    dst.store(lane as usize, tile.load(lane + 1));
}

#[kernel]
pub unsafe fn shared_from_the_last_block(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let (lane, i) = (warp::lane_id(), thread::index_x());
    if thread::block_idx_x() != 2 {
        tile.store(lane, src.load(i));
    }
    sync_threads();
    dst.store(i, tile.load(lane)); // A: load
}

#[kernel]
pub unsafe fn shared_from_the_last_block_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let (lane, i) = (warp::lane_id(), thread::index_x());
    tile.store(lane, src.load(i));
    sync_threads();
    dst.store(i, tile.load(lane));
}

#[kernel]
pub unsafe fn shared_sum(src: Global<f32>, dst: GlobalMut<f32>) {
    let sums = shared!([f32; 32]);
    let lane = warp::lane_id();
    let sum = sums.load(lane) + src.load(lane as usize); // A: load
    sums.store(lane, sum);
    dst.store(lane as usize, sums.load(lane));
}

#[kernel]
pub unsafe fn shared_sum_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let sums = shared!([f32; 32]);
    let lane = warp::lane_id();
    sums.store(lane, 1.0);
    let sum = sums.load(lane) + src.load(lane as usize);
    sums.store(lane, sum);
    dst.store(lane as usize, sums.load(lane));
}

#[kernel]
pub unsafe fn shared_halo(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 33]);
    let (lane, i) = (warp::lane_id(), thread::index_x());
    tile.store(lane + 1, src.load(i));
    if lane == 0 && i > 0 {
        tile.store(0, src.load(i - 1));
    }
    sync_threads();
    dst.store(i, tile.load(lane)); // A: load
}

#[kernel]
pub unsafe fn shared_halo_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 33]);
    let (lane, i) = (warp::lane_id(), thread::index_x());
    tile.store(lane + 1, src.load(i));
    if lane == 0 {
        tile.store(0, if i > 0 { src.load(i - 1) } else { 0.0 });
    }
    sync_threads();
    dst.store(i, tile.load(lane));
}

host_only! {
    use crate::{Bug, Class, threads};

    /// The bugs of this file.
    pub static BUGS: &[Bug] = &[
        Bug {
            class: Class::UninitializedGlobal,
            kernel: global_sum_into_output::KERNEL,
            twin: global_sum_into_output_twin::KERNEL,
            plan: || threads(2, 32, |i| i as f32 + 1.0),
            report: "uninitialized: a thread reads byte 0 of `dst`, which no thread has written, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::UninitializedGlobal,
            kernel: global_atomic_on_output::KERNEL,
            twin: global_atomic_on_output_twin::KERNEL,
            plan: || threads(2, 32, |i| i as f32 + 1.0),
            report: "uninitialized: a thread updates byte 0 of `dst`, which no thread has written, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::UninitializedGlobal,
            kernel: global_every_other::KERNEL,
            twin: global_every_other_twin::KERNEL,
            plan: || threads(1, 64, |i| i as f32 + 1.0),
            report: "uninitialized: a thread reads byte 4 of `dst`, which no thread has written, at {A} \
                     (thread (1, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::UninitializedGlobal,
            kernel: global_half_a_vector::KERNEL,
            twin: global_half_a_vector_twin::KERNEL,
            plan: || threads(1, 64, |i| (i / 4 * 4) as f32),
            report: "uninitialized: a thread reads byte 8 of `dst`, which no thread has written, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::UninitializedShared,
            kernel: shared_word_past_the_stores::KERNEL,
            twin: shared_word_past_the_stores_twin::KERNEL,
            plan: || threads(1, 32, |i| i as f32 + 1.0),
            report: "uninitialized: a thread reads byte 128 of `tile`, which no thread has written, at {A} \
                     (thread (31, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::UninitializedShared,
            kernel: shared_from_the_last_block::KERNEL,
            twin: shared_from_the_last_block_twin::KERNEL,
            plan: || threads(4, 32, |i| i as f32),
            report: "uninitialized: a thread reads byte 0 of `tile`, which no thread has written, at {A} \
                     (thread (0, 0, 0), block (2, 0, 0))",
        },
        Bug {
            class: Class::UninitializedShared,
            kernel: shared_sum::KERNEL,
            twin: shared_sum_twin::KERNEL,
            plan: || threads(1, 32, |i| i as f32 + 1.0),
            report: "uninitialized: a thread reads byte 0 of `sums`, which no thread has written, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::UninitializedShared,
            kernel: shared_halo::KERNEL,
            twin: shared_halo_twin::KERNEL,
            plan: || threads(2, 32, |i| i.saturating_sub(1) as f32),
            report: "uninitialized: a thread reads byte 0 of `tile`, which no thread has written, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
    ];
}
