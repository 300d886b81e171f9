//! Races where there is a barrier, but none that orders the two accesses; and races in global memory.

use gpu::device::prelude::*;

#[kernel]
pub unsafe fn shared_next_round(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    for _ in steps(0..2u32, 1) {
        tile.store(i, src.load(i as usize)); // A: store
        sync_threads();
        dst.store(i as usize, tile.load(63 - i)); // B: load
    }
}

#[kernel]
pub unsafe fn shared_next_round_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    for _ in steps(0..2u32, 1) {
        tile.store(i, src.load(i as usize));
        sync_threads();
        dst.store(i as usize, tile.load(63 - i));
        sync_threads();
    }
}

#[kernel]
pub unsafe fn shared_other_half_warp(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize)); // A: store
    sync_warp(if lane < 16 { 0xFFFF } else { 0xFFFF_0000 });
    dst.store(lane as usize, tile.load(lane ^ 16)); // B: load
}

#[kernel]
pub unsafe fn shared_other_half_warp_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    tile.store(lane, src.load(lane as usize));
    sync_warp(warp::FULL);
    dst.store(lane as usize, tile.load(lane ^ 16));
}

#[kernel]
pub unsafe fn shared_behind_a_shuffle(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    let value = src.load(lane as usize);
    tile.store(lane, value); // A: store
    let neighbour = warp::shuffle_xor(warp::FULL, value, 1);
    dst.store(lane as usize, neighbour + tile.load(lane ^ 2)); // B: load
}

#[kernel]
pub unsafe fn shared_behind_a_shuffle_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 32]);
    let lane = warp::lane_id();
    let value = src.load(lane as usize);
    tile.store(lane, value);
    let neighbour = warp::shuffle_xor(warp::FULL, value, 1);
    sync_warp(warp::FULL);
    dst.store(lane as usize, neighbour + tile.load(lane ^ 2));
}

#[kernel]
pub unsafe fn shared_same_value(src: Global<f32>, dst: GlobalMut<f32>) {
    let first = shared!([f32; 1]);
    let i = thread::index_x();
    first.store(0, src.load(1)); // A: store
    sync_threads();
    dst.store(i, first.load(0));
}

#[kernel]
pub unsafe fn shared_same_value_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let first = shared!([f32; 1]);
    let i = thread::index_x();
    if i == 0 {
        first.store(0, src.load(1));
    }
    sync_threads();
    dst.store(i, first.load(0));
}

#[kernel]
pub unsafe fn shared_half_a_word(dst: GlobalMut<f32>) {
    let words = shared!([u32; 32]);
    let lane = warp::lane_id();
    words.store(lane, 0); // A: store
    words.cast::<u16>().store(2 * ((lane + 1) % 32), 1); // B: store
    sync_threads();
    dst.store(lane as usize, words.load(lane) as f32);
}

#[kernel]
pub unsafe fn shared_half_a_word_twin(dst: GlobalMut<f32>) {
    let words = shared!([u32; 32]);
    let lane = warp::lane_id();
    words.cast::<u16>().store(2 * lane + 1, 0);
    words.cast::<u16>().store(2 * ((lane + 1) % 32), 1);
    sync_threads();
    dst.store(lane as usize, words.load(lane) as f32);
}

#[kernel]
pub unsafe fn global_from_another_block(src: Global<f32>, dst: GlobalMut<f32>, scratch: GlobalMut<f32>) {
    let i = thread::index_x();
    scratch.store(i, src.load(i)); // A: store
    sync_threads();
    dst.store(i, scratch.load(i ^ 63)); // B: load
}

#[kernel]
pub unsafe fn global_from_another_block_twin(src: Global<f32>, dst: GlobalMut<f32>, scratch: GlobalMut<f32>) {
    let i = thread::index_x();
    scratch.store(i, src.load(i));
    sync_threads();
    dst.store(i, scratch.load(i ^ 31));
}

#[kernel]
pub unsafe fn global_result_of_every_block(src: Global<f32>, dst: GlobalMut<f32>) {
    if thread::thread_idx_x() == 0 {
        dst.store(0, src.load(thread::block_idx_x() as usize)); // A: store
    }
}

#[kernel]
pub unsafe fn global_result_of_every_block_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    if thread::thread_idx_x() == 0 {
        let block = thread::block_idx_x() as usize;
        dst.store(block, src.load(block));
    }
}

#[kernel]
pub unsafe fn global_zeroed_by_one_block(dst: GlobalMut<u32>) {
    let i = thread::index_x();
    if i == 0 {
        dst.store(0, 0); // A: store
    }
    sync_threads();
    dst.atomic_add(0, 1); // B: atomic_add
}

#[kernel]
pub unsafe fn global_zeroed_by_one_block_twin(dst: GlobalMut<u32>) {
    sync_threads();
    dst.atomic_add(0, 1);
}

#[kernel]
pub unsafe fn global_in_place(data: GlobalMut<f32>) {
    let i = thread::index_x();
    let value = data.load((i + 1) % 64); // A: load
    data.store(i, value); // B: store
}

#[kernel]
pub unsafe fn global_in_place_twin(data: GlobalMut<f32>) {
    let i = thread::index_x();
    let value = data.load((i + 1) % 64);
    sync_threads();
    data.store(i, value);
}

#[kernel]
pub unsafe fn global_read_what_others_add(src: Global<f32>, dst: GlobalMut<f32>, sum: GlobalMut<f32>) {
    let i = thread::index_x();
    sum.atomic_add(0, src.load(i)); // A: atomic_add
    sync_threads();
    dst.store(i, sum.load(0)); // B: load
}

#[kernel]
pub unsafe fn global_read_what_others_add_twin(src: Global<f32>, dst: GlobalMut<f32>, sum: GlobalMut<f32>) {
    let i = thread::index_x();
    let value = src.load(i);
    sum.atomic_add(0, value);
    sync_threads();
    dst.store(i, value);
}

host_only! {
    use crate::{Bug, Class, alone, src, threads};
    use gpu::suite::{Buffer, Plan, PlanError};

    /// Two blocks of a warp, and memory for what they tell each other.
    fn with_scratch() -> Result<Plan, PlanError> {
        Ok(threads(2, 32, |i| (i ^ 31) as f32)?.buffer(Buffer::output("scratch", 64, |i| i as f32)?))
    }

    /// The same, and one sum.
    fn with_sum() -> Result<Plan, PlanError> {
        Ok(threads(2, 32, |i| i as f32)?.buffer(Buffer::zeroed("sum", 1, |_| 2016.0f32)?))
    }

    /// The bugs of this file.
    pub static BUGS: &[Bug] = &[
        Bug {
            class: Class::SharedRace,
            kernel: shared_next_round::KERNEL,
            twin: shared_next_round_twin::KERNEL,
            plan: || threads(1, 64, |i| (63 - i) as f32),
            report: "race: a thread reads byte 124 of `tile`, which thread (31, 0, 0) writes, and no barrier orders the \
                     two, at {B} and {A} (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::SharedRace,
            kernel: shared_other_half_warp::KERNEL,
            twin: shared_other_half_warp_twin::KERNEL,
            plan: || threads(1, 32, |i| (i ^ 16) as f32),
            report: "race: a thread reads byte 64 of `tile`, which thread (16, 0, 0) writes, and no barrier orders the \
                     two, at {B} and {A} (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::SharedRace,
            kernel: shared_behind_a_shuffle::KERNEL,
            twin: shared_behind_a_shuffle_twin::KERNEL,
            plan: || threads(1, 32, |i| ((i ^ 1) + (i ^ 2)) as f32),
            report: "race: a thread reads byte 8 of `tile`, which thread (2, 0, 0) writes, and no barrier orders the \
                     two, at {B} and {A} (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::SharedRace,
            kernel: shared_same_value::KERNEL,
            twin: shared_same_value_twin::KERNEL,
            plan: || threads(1, 64, |_| 1.0),
            report: "race: a thread writes byte 0 of `first`, which thread (0, 0, 0) writes, and no barrier orders the \
                     two, at {A} and {A} (thread (1, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::SharedRace,
            kernel: shared_half_a_word::KERNEL,
            twin: shared_half_a_word_twin::KERNEL,
            plan: || Ok(alone(1, 32, Buffer::output("dst", 32, |_| 1.0f32)?)),
            report: "race: a thread writes byte 4 of `words`, which thread (0, 0, 0) writes, and no barrier orders the \
                     two, at {A} and {B} (thread (1, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::GlobalRace,
            kernel: global_from_another_block::KERNEL,
            twin: global_from_another_block_twin::KERNEL,
            plan: with_scratch,
            report: "race: a thread writes byte 128 of `scratch`, which thread (31, 0, 0) of block (0, 0, 0) reads, and \
                     nothing orders the blocks of a launch, at {A} and {B} (thread (0, 0, 0), block (1, 0, 0))",
        },
        Bug {
            class: Class::GlobalRace,
            kernel: global_result_of_every_block::KERNEL,
            twin: global_result_of_every_block_twin::KERNEL,
            plan: || Ok(src(2, 32, 2)?.buffer(Buffer::output("dst", 2, |i| i as f32)?)),
            report: "race: a thread writes byte 0 of `dst`, which thread (0, 0, 0) of block (0, 0, 0) writes, and \
                     nothing orders the blocks of a launch, at {A} and {A} (thread (0, 0, 0), block (1, 0, 0))",
        },
        Bug {
            class: Class::GlobalRace,
            kernel: global_zeroed_by_one_block::KERNEL,
            twin: global_zeroed_by_one_block_twin::KERNEL,
            plan: || Ok(alone(2, 32, Buffer::zeroed("dst", 1, |_| 64u32)?)),
            report: "race: a thread updates byte 0 of `dst`, which thread (0, 0, 0) of block (0, 0, 0) writes, and \
                     nothing orders the blocks of a launch, at {B} and {A} (thread (0, 0, 0), block (1, 0, 0))",
        },
        Bug {
            class: Class::GlobalRace,
            kernel: global_in_place::KERNEL,
            twin: global_in_place_twin::KERNEL,
            plan: || Ok(alone(1, 64, Buffer::in_place("data", 64, |i| i as f32, |i| ((i + 1) % 64) as f32)?)),
            report: "race: a thread writes byte 4 of `data`, which thread (0, 0, 0) reads, and no barrier orders the \
                     two, at {B} and {A} (thread (1, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::GlobalRace,
            kernel: global_read_what_others_add::KERNEL,
            twin: global_read_what_others_add_twin::KERNEL,
            plan: with_sum,
            report: "race: a thread updates byte 0 of `sum`, which thread (0, 0, 0) of block (0, 0, 0) reads, and \
                     nothing orders the blocks of a launch, at {A} and {B} (thread (0, 0, 0), block (1, 0, 0))",
        },
    ];
}
