//! Out of bounds: indices one too far, below zero, vectors across the end, a pitch too wide.

use gpu::device::prelude::*;

#[kernel]
pub unsafe fn global_load_past_end(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    let value = src.load(i); // A: load
    if i < n {
        dst.store(i, value);
    }
}

#[kernel]
pub unsafe fn global_load_past_end_twin(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        let value = src.load(i);
        dst.store(i, value);
    }
}

#[kernel]
pub unsafe fn global_store_past_end(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    let value = if i < n { src.load(i) } else { 0.0 };
    dst.store(i, value); // A: store
}

#[kernel]
pub unsafe fn global_store_past_end_twin(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    let value = if i < n { src.load(i) } else { 0.0 };
    if i < n {
        dst.store(i, value);
    }
}

#[kernel]
pub unsafe fn global_load_right_of_end(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, src.load(i + 1)); // A: load
}

#[kernel]
pub unsafe fn global_load_right_of_end_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, src.load((i + 1) % 32));
}

#[kernel]
pub unsafe fn global_load_left_of_start(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, src.load(i.wrapping_sub(1))); // A: load
}

#[kernel]
pub unsafe fn global_load_left_of_start_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, src.load((i + 31) % 32));
}

#[kernel]
pub unsafe fn global_vector_across_end(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let vector = src.cast::<F32x4>().load(i); // A: load
    dst.store(i, vector.x);
}

#[kernel]
pub unsafe fn global_vector_across_end_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let first = if i < 25 { src.cast::<F32x4>().load(i).x } else { src.load(4 * i) };
    dst.store(i, first);
}

#[kernel]
pub unsafe fn global_atomic_past_end(dst: GlobalMut<u32>) {
    dst.atomic_add(thread::index_x() + 1, 1); // A: atomic_add
}

#[kernel]
pub unsafe fn global_atomic_past_end_twin(dst: GlobalMut<u32>) {
    dst.atomic_add((thread::index_x() + 1) % 32, 1);
}

#[kernel]
pub unsafe fn shared_load_past_end(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.load(lane + 1)); // A: load
}

#[kernel]
pub unsafe fn shared_load_past_end_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.load((lane + 1) % 32));
}

#[kernel]
pub unsafe fn shared_store_past_end(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(2 * lane, src.load(lane as usize)); // A: store
    dst.store(lane as usize, tile.load(2 * lane));
}

#[kernel]
pub unsafe fn shared_store_past_end_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let lane = warp::lane_id();
    tile.store(2 * lane, src.load(lane as usize));
    dst.store(lane as usize, tile.load(2 * lane));
}

#[kernel]
pub unsafe fn shared_vector_across_end(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 30]);
    let lane = warp::lane_id();
    if lane < 30 {
        tile.store(lane, src.load(lane as usize));
    }
    sync_threads();
    dst.store(lane as usize, tile.cast::<F32x4>().load(lane / 4).x); // A: load
}

#[kernel]
pub unsafe fn shared_vector_across_end_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.cast::<F32x4>().load(lane / 4).x);
}

#[kernel]
pub unsafe fn shared_pitch_too_wide(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 8 * 8]);
    let i = thread::thread_idx_x();
    let (y, x) = (i / 8, i % 8);
    tile.store(9 * y + x, src.load(i as usize)); // A: store
    sync_threads();
    dst.store(i as usize, tile.load(9 * x + y));
}

#[kernel]
pub unsafe fn shared_pitch_too_wide_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 9 * 8]);
    let i = thread::thread_idx_x();
    let (y, x) = (i / 8, i % 8);
    tile.store(9 * y + x, src.load(i as usize));
    sync_threads();
    dst.store(i as usize, tile.load(9 * x + y));
}

host_only! {
    use crate::{Bug, Class, src, threads};
    use gpu::suite::{Buffer, Launch, Plan, PlanError};

    /// From 100 elements to 100 elements, by 4 blocks of a warp: 28 threads too many.
    fn hundred() -> Result<Plan, PlanError> {
        Ok(src(4, 32, 100)?.buffer(Buffer::output("dst", 100, |i| i as f32)?).scalar("n", 100u64))
    }

    /// A count for each of 32 threads.
    fn counts() -> Result<Plan, PlanError> {
        let launch = Launch { grid: [1; 3], block: [32, 1, 1], shared_bytes: 0 };
        Ok(Plan::new(launch).buffer(Buffer::zeroed("dst", 32, |_| 1u32)?))
    }

    /// The bugs of this file.
    pub static BUGS: &[Bug] = &[
        Bug {
            class: Class::OutOfBoundsGlobal,
            kernel: global_load_past_end::KERNEL,
            twin: global_load_past_end_twin::KERNEL,
            plan: hundred,
            report: "out of bounds: a thread reads 4 bytes at byte 400 of `src`, which has 400, at {A} \
                     (thread (4, 0, 0), block (3, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsGlobal,
            kernel: global_store_past_end::KERNEL,
            twin: global_store_past_end_twin::KERNEL,
            plan: hundred,
            report: "out of bounds: a thread writes 4 bytes at byte 400 of `dst`, which has 400, at {A} \
                     (thread (4, 0, 0), block (3, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsGlobal,
            kernel: global_load_right_of_end::KERNEL,
            twin: global_load_right_of_end_twin::KERNEL,
            plan: || threads(1, 32, |i| ((i + 1) % 32) as f32),
            report: "out of bounds: a thread reads 4 bytes at byte 128 of `src`, which has 128, at {A} \
                     (thread (31, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsGlobal,
            kernel: global_load_left_of_start::KERNEL,
            twin: global_load_left_of_start_twin::KERNEL,
            plan: || threads(1, 32, |i| ((i + 31) % 32) as f32),
            report: "out of bounds: a thread reads 4 bytes at byte -4 of `src`, which has 128, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsGlobal,
            kernel: global_vector_across_end::KERNEL,
            twin: global_vector_across_end_twin::KERNEL,
            plan: || Ok(src(1, 26, 102)?.buffer(Buffer::output("dst", 26, |i| 4.0 * i as f32)?)),
            report: "out of bounds: a thread reads 16 bytes at byte 400 of `src`, which has 408, at {A} \
                     (thread (25, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsGlobal,
            kernel: global_atomic_past_end::KERNEL,
            twin: global_atomic_past_end_twin::KERNEL,
            plan: counts,
            report: "out of bounds: a thread updates 4 bytes at byte 128 of `dst`, which has 128, at {A} \
                     (thread (31, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsShared,
            kernel: shared_load_past_end::KERNEL,
            twin: shared_load_past_end_twin::KERNEL,
            plan: || threads(1, 32, |i| ((i + 1) % 32) as f32),
            report: "out of bounds: a thread reads 4 bytes at byte 128 of `tile`, which has 128, at {A} \
                     (thread (31, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsShared,
            kernel: shared_store_past_end::KERNEL,
            twin: shared_store_past_end_twin::KERNEL,
            plan: || threads(1, 32, |i| i as f32),
            report: "out of bounds: a thread writes 4 bytes at byte 128 of `tile`, which has 128, at {A} \
                     (thread (16, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsShared,
            kernel: shared_vector_across_end::KERNEL,
            twin: shared_vector_across_end_twin::KERNEL,
            plan: || threads(1, 32, |i| (i / 4 * 4) as f32),
            report: "out of bounds: a thread reads 16 bytes at byte 112 of `tile`, which has 120, at {A} \
                     (thread (28, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsShared,
            kernel: shared_pitch_too_wide::KERNEL,
            twin: shared_pitch_too_wide_twin::KERNEL,
            plan: || threads(1, 64, |i| (i % 8 * 8 + i / 8) as f32),
            report: "out of bounds: a thread writes 4 bytes at byte 256 of `tile`, which has 256, at {A} \
                     (thread (57, 0, 0), block (0, 0, 0))",
        },
    ];
}
