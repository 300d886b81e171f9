//! Misaligned: vectors that begin where only a scalar may.

use gpu::device::prelude::*;

#[kernel]
pub unsafe fn global_vec4_from_one(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, src.starting_at(1).cast::<F32x4>().load(i).x); // A: load
}

#[kernel]
pub unsafe fn global_vec4_from_one_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, src.starting_at(4).cast::<F32x4>().load(i).x);
}

#[kernel]
pub unsafe fn global_vec4_from_two(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, src.starting_at(2).cast::<F32x4>().load(i).x); // A: load
}

#[kernel]
pub unsafe fn global_vec4_from_two_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, src.starting_at(4).cast::<F32x4>().load(i).x);
}

#[kernel]
pub unsafe fn global_vec2_in_odd_rows(src: Global<f32>, dst: GlobalMut<f32>) {
    let row = thread::index_x();
    dst.store(row, src.starting_at(3 * row).cast::<F32x2>().load(0).x); // A: load
}

#[kernel]
pub unsafe fn global_vec2_in_odd_rows_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let row = thread::index_x();
    dst.store(row, src.starting_at(4 * row).cast::<F32x2>().load(0).x);
}

#[kernel]
pub unsafe fn global_vec4_store(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let vector = src.cast::<F32x4>().load(i);
    dst.starting_at(3).cast::<F32x4>().store(i, vector); // A: store
}

#[kernel]
pub unsafe fn global_vec4_store_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let vector = src.cast::<F32x4>().load(i);
    dst.starting_at(4).cast::<F32x4>().store(i, vector);
}

#[kernel]
pub unsafe fn shared_vec4_from_one(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.starting_at(1).cast::<F32x4>().load(lane / 8).x); // A: load
}

#[kernel]
pub unsafe fn shared_vec4_from_one_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.starting_at(4).cast::<F32x4>().load(lane / 8).x);
}

#[kernel]
pub unsafe fn shared_vec2_at_every_word(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.starting_at(lane).cast::<F32x2>().load(0).x); // A: load
}

#[kernel]
pub unsafe fn shared_vec2_at_every_word_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    let pair = tile.starting_at(lane / 2 * 2).cast::<F32x2>().load(0);
    dst.store(lane as usize, if lane.is_multiple_of(2) { pair.x } else { pair.y });
}

#[kernel]
pub unsafe fn shared_vec4_in_padded_rows(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 8 * 9]);
    let lane = warp::lane_id();
    let (y, x) = (lane / 4, lane % 4);
    tile.store(9 * y + x, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.starting_at(9 * y).cast::<F32x4>().load(0).x); // A: load
}

#[kernel]
pub unsafe fn shared_vec4_in_padded_rows_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 8 * 12]);
    let lane = warp::lane_id();
    let (y, x) = (lane / 4, lane % 4);
    tile.store(12 * y + x, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.starting_at(12 * y).cast::<F32x4>().load(0).x);
}

#[kernel]
pub unsafe fn shared_vec4_store(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 130]);
    let lane = warp::lane_id();
    let x = src.load(lane as usize);
    tile.starting_at(2).cast::<F32x4>().store(lane, F32x4 { x, y: x, z: x, w: x }); // A: store
    dst.store(lane as usize, tile.load(4 * lane + 2));
}

#[kernel]
pub unsafe fn shared_vec4_store_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 132]);
    let lane = warp::lane_id();
    let x = src.load(lane as usize);
    tile.starting_at(4).cast::<F32x4>().store(lane, F32x4 { x, y: x, z: x, w: x });
    dst.store(lane as usize, tile.load(4 * lane + 4));
}

host_only! {
    use crate::{Bug, Class, src, threads};
    use gpu::suite::{Buffer, Plan, PlanError};

    /// Eight threads that take every fourth element of `src`, from the `first` on.
    fn every_fourth<const FIRST: u64>() -> Result<Plan, PlanError> {
        Ok(src(1, 8, 36)?.buffer(Buffer::output("dst", 8, |i| (4 * i + FIRST) as f32)?))
    }

    /// Eight vectors, stored behind four elements that are left alone.
    fn shifted() -> Result<Plan, PlanError> {
        let expected = |i: u64| i.checked_sub(4).map(|i| i as f32);
        Ok(src(1, 8, 32)?.buffer(Buffer::partial_output("dst", 36, expected)?))
    }

    /// The bugs of this file.
    pub static BUGS: &[Bug] = &[
        Bug {
            class: Class::MisalignedGlobal,
            kernel: global_vec4_from_one::KERNEL,
            twin: global_vec4_from_one_twin::KERNEL,
            plan: every_fourth::<4>,
            report: "misaligned: a thread reads 16 bytes at byte 4 of `src`, which is no multiple of 16, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MisalignedGlobal,
            kernel: global_vec4_from_two::KERNEL,
            twin: global_vec4_from_two_twin::KERNEL,
            plan: every_fourth::<4>,
            report: "misaligned: a thread reads 16 bytes at byte 8 of `src`, which is no multiple of 16, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MisalignedGlobal,
            kernel: global_vec2_in_odd_rows::KERNEL,
            twin: global_vec2_in_odd_rows_twin::KERNEL,
            plan: every_fourth::<0>,
            report: "misaligned: a thread reads 8 bytes at byte 12 of `src`, which is no multiple of 8, at {A} \
                     (thread (1, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MisalignedGlobal,
            kernel: global_vec4_store::KERNEL,
            twin: global_vec4_store_twin::KERNEL,
            plan: shifted,
            report: "misaligned: a thread writes 16 bytes at byte 12 of `dst`, which is no multiple of 16, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MisalignedShared,
            kernel: shared_vec4_from_one::KERNEL,
            twin: shared_vec4_from_one_twin::KERNEL,
            plan: || threads(1, 32, |i| (i / 8 * 4 + 4) as f32),
            report: "misaligned: a thread reads 16 bytes at byte 4 of `tile`, which is no multiple of 16, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MisalignedShared,
            kernel: shared_vec2_at_every_word::KERNEL,
            twin: shared_vec2_at_every_word_twin::KERNEL,
            plan: || threads(1, 32, |i| i as f32),
            report: "misaligned: a thread reads 8 bytes at byte 4 of `tile`, which is no multiple of 8, at {A} \
                     (thread (1, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MisalignedShared,
            kernel: shared_vec4_in_padded_rows::KERNEL,
            twin: shared_vec4_in_padded_rows_twin::KERNEL,
            plan: || threads(1, 32, |i| (i / 4 * 4) as f32),
            report: "misaligned: a thread reads 16 bytes at byte 36 of `tile`, which is no multiple of 16, at {A} \
                     (thread (4, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MisalignedShared,
            kernel: shared_vec4_store::KERNEL,
            twin: shared_vec4_store_twin::KERNEL,
            plan: || threads(1, 32, |i| i as f32),
            report: "misaligned: a thread writes 16 bytes at byte 8 of `tile`, which is no multiple of 16, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
    ];
}
