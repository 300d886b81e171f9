//! Asynchronous copies whose tiles are touched before they arrive, or before all know that they have; and such that go astray.

use gpu::device::prelude::*;

#[kernel]
pub unsafe fn copy_without_wait(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize); // A: copy_async
    copy_async::commit_group();
    dst.store(i as usize, tile.load(i)); // B: load
}

#[kernel]
pub unsafe fn copy_without_wait_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize);
    copy_async::commit_group();
    copy_async::wait_group::<0>();
    dst.store(i as usize, tile.load(i));
}

#[kernel]
pub unsafe fn copy_one_group_too_few(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 128]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize);
    copy_async::commit_group();
    tile.copy_async(64 + i, src, 63 - i as usize); // A: copy_async
    copy_async::commit_group();
    copy_async::wait_group::<1>();
    dst.store(i as usize, tile.load(i) + tile.load(64 + i)); // B: load(64
}

#[kernel]
pub unsafe fn copy_one_group_too_few_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 128]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize);
    copy_async::commit_group();
    tile.copy_async(64 + i, src, 63 - i as usize);
    copy_async::commit_group();
    copy_async::wait_group::<0>();
    dst.store(i as usize, tile.load(i) + tile.load(64 + i));
}

#[kernel]
pub unsafe fn copy_behind_its_group(src: Global<F32x4>, dst: GlobalMut<F32x4>) {
    let tile = shared!([F32x4; 64]);
    let i = thread::thread_idx_x();
    copy_async::commit_group();
    tile.copy_async(i, src, i as usize); // A: copy_async
    copy_async::wait_group::<0>();
    dst.store(i as usize, tile.load(i)); // B: load
}

#[kernel]
pub unsafe fn copy_behind_its_group_twin(src: Global<F32x4>, dst: GlobalMut<F32x4>) {
    let tile = shared!([F32x4; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize);
    copy_async::commit_group();
    copy_async::wait_group::<0>();
    dst.store(i as usize, tile.load(i));
}

#[kernel]
pub unsafe fn copy_barrier_alone(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize); // A: copy_async
    copy_async::commit_group();
    sync_threads();
    dst.store(i as usize, tile.load(63 - i)); // B: load
}

#[kernel]
pub unsafe fn copy_barrier_alone_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize);
    copy_async::commit_group();
    copy_async::wait_all();
    sync_threads();
    dst.store(i as usize, tile.load(63 - i));
}

#[kernel]
pub unsafe fn copy_overwritten(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize); // A: copy_async
    if i >= 32 {
        // What is not wanted of the tile.
        tile.store(i, 0.0); // B: store
    }
    copy_async::wait_all();
    dst.store(i as usize, tile.load(i));
}

#[kernel]
pub unsafe fn copy_overwritten_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize);
    copy_async::wait_all();
    if i >= 32 {
        tile.store(i, 0.0);
    }
    dst.store(i as usize, tile.load(i));
}

#[kernel]
pub unsafe fn copy_without_barrier(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize); // A: copy_async
    copy_async::wait_all();
    dst.store(i as usize, tile.load(63 - i)); // B: load
}

#[kernel]
pub unsafe fn copy_without_barrier_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize);
    copy_async::wait_all();
    sync_threads();
    dst.store(i as usize, tile.load(63 - i));
}

#[kernel]
pub unsafe fn copy_of_the_next_round(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    for _ in steps(0..2u32, 1) {
        tile.copy_async(i, src, i as usize); // A: copy_async
        copy_async::wait_all();
        sync_threads();
        dst.store(i as usize, tile.load(63 - i)); // B: load
    }
}

#[kernel]
pub unsafe fn copy_of_the_next_round_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    for _ in steps(0..2u32, 1) {
        tile.copy_async(i, src, i as usize);
        copy_async::wait_all();
        sync_threads();
        dst.store(i as usize, tile.load(63 - i));
        sync_threads();
    }
}

#[kernel]
pub unsafe fn copy_past_the_buffer(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize + 1); // A: copy_async
    copy_async::wait_all();
    dst.store(i as usize, tile.load(i));
}

#[kernel]
pub unsafe fn copy_past_the_buffer_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i, src, i as usize);
    copy_async::wait_all();
    dst.store(i as usize, tile.load(i));
}

#[kernel]
pub unsafe fn copy_past_the_tile(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 64]);
    let i = thread::thread_idx_x();
    tile.copy_async(i + 1, src, i as usize); // A: copy_async
    copy_async::wait_all();
    dst.store(i as usize, tile.load(i + 1));
}

#[kernel]
pub unsafe fn copy_past_the_tile_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let tile = shared!([f32; 65]);
    let i = thread::thread_idx_x();
    tile.copy_async(i + 1, src, i as usize);
    copy_async::wait_all();
    dst.store(i as usize, tile.load(i + 1));
}

#[kernel]
pub unsafe fn copy_to_padded_rows(src: Global<F32x4>, dst: GlobalMut<F32x4>) {
    let tile = shared!([f32; 33 * 16]);
    let i = thread::thread_idx_x();
    let row = tile.starting_at(33 * (i / 8)).cast::<F32x4>();
    row.copy_async(i % 8, src, i as usize); // A: copy_async
    copy_async::wait_all();
    dst.store(i as usize, row.load(i % 8));
}

#[kernel]
pub unsafe fn copy_to_padded_rows_twin(src: Global<F32x4>, dst: GlobalMut<F32x4>) {
    let tile = shared!([f32; 36 * 16]);
    let i = thread::thread_idx_x();
    let row = tile.starting_at(36 * (i / 8)).cast::<F32x4>();
    row.copy_async(i % 8, src, i as usize);
    copy_async::wait_all();
    dst.store(i as usize, row.load(i % 8));
}

host_only! {
    use crate::{Bug, Class, src, threads};
    use gpu::suite::Buffer;

    /// The bugs of this file.
    pub static BUGS: &[Bug] = &[
        Bug {
            class: Class::CopyUnderWay,
            kernel: copy_without_wait::KERNEL,
            twin: copy_without_wait_twin::KERNEL,
            plan: || threads(1, 64, |i| i as f32),
            report: "race: a thread reads 4 bytes at byte 0 of `tile`, to which a copy of thread (0, 0, 0) is under way: it arrives \
                     when that thread waits for its group (`cp.async.wait_group`), and for others behind a barrier, at {B} and {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::CopyUnderWay,
            kernel: copy_one_group_too_few::KERNEL,
            twin: copy_one_group_too_few_twin::KERNEL,
            plan: || threads(1, 64, |_| 63.0),
            report: "race: a thread reads 4 bytes at byte 256 of `tile`, to which a copy of thread (0, 0, 0) is under way: it arrives \
                     when that thread waits for its group (`cp.async.wait_group`), and for others behind a barrier, at {B} and {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::CopyUnderWay,
            kernel: copy_behind_its_group::KERNEL,
            twin: copy_behind_its_group_twin::KERNEL,
            plan: || Ok(src(1, 64, 256)?.buffer(Buffer::output("dst", 256, |i| i as f32)?)),
            report: "race: a thread reads 16 bytes at byte 0 of `tile`, to which a copy of thread (0, 0, 0) is under way: it arrives \
                     when that thread waits for its group (`cp.async.wait_group`), and for others behind a barrier, at {B} and {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::CopyUnderWay,
            kernel: copy_barrier_alone::KERNEL,
            twin: copy_barrier_alone_twin::KERNEL,
            plan: || threads(1, 64, |i| 63.0 - i as f32),
            report: "race: a thread reads 4 bytes at byte 252 of `tile`, to which a copy of thread (63, 0, 0) is under way: it arrives \
                     when that thread waits for its group (`cp.async.wait_group`), and for others behind a barrier, at {B} and {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::CopyUnderWay,
            kernel: copy_overwritten::KERNEL,
            twin: copy_overwritten_twin::KERNEL,
            plan: || threads(1, 64, |i| if i < 32 { i as f32 } else { 0.0 }),
            report: "race: a thread writes 4 bytes at byte 128 of `tile`, to which a copy of thread (32, 0, 0) is under way: it \
                     arrives when that thread waits for its group (`cp.async.wait_group`), and for others behind a barrier, at {B} and \
                     {A} (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MissingBarrier,
            kernel: copy_without_barrier::KERNEL,
            twin: copy_without_barrier_twin::KERNEL,
            plan: || threads(1, 64, |i| 63.0 - i as f32),
            report: "race: a thread writes byte 128 of `tile`, which thread (31, 0, 0) reads, and no barrier orders the two, at {A} and \
                     {B} (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::SharedRace,
            kernel: copy_of_the_next_round::KERNEL,
            twin: copy_of_the_next_round_twin::KERNEL,
            plan: || threads(1, 64, |i| 63.0 - i as f32),
            report: "race: a thread reads byte 124 of `tile`, which thread (31, 0, 0) writes, and no barrier orders the two, at {B} and \
                     {A} (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsGlobal,
            kernel: copy_past_the_buffer::KERNEL,
            twin: copy_past_the_buffer_twin::KERNEL,
            plan: || threads(1, 64, |i| i as f32),
            report: "out of bounds: a thread reads 4 bytes at byte 256 of `src`, which has 256, at {A} (thread (63, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsShared,
            kernel: copy_past_the_tile::KERNEL,
            twin: copy_past_the_tile_twin::KERNEL,
            plan: || threads(1, 64, |i| i as f32),
            report: "out of bounds: a thread writes 4 bytes at byte 256 of `tile`, which has 256, at {A} (thread (63, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MisalignedShared,
            kernel: copy_to_padded_rows::KERNEL,
            twin: copy_to_padded_rows_twin::KERNEL,
            plan: || Ok(src(1, 64, 256)?.buffer(Buffer::output("dst", 256, |i| i as f32)?)),
            report: "misaligned: a thread writes 16 bytes at byte 132 of `tile`, which is no multiple of 16, at {A} \
                     (thread (8, 0, 0), block (0, 0, 0))",
        },
    ];
}
