//! Atomics beside plain accesses, of too small a scope, and where no atomic may go.

use gpu::device::prelude::*;

#[kernel]
pub unsafe fn atomic_on_what_is_zeroed(dst: GlobalMut<u32>) {
    let bins = shared!([u32; 32]);
    let i = thread::thread_idx_x();
    if i < 32 {
        bins.store(i, 0); // A: store
    }
    bins.atomic_add(i % 32, 1); // B: atomic_add
    sync_threads();
    if i < 32 {
        dst.store(i as usize, bins.load(i));
    }
}

#[kernel]
pub unsafe fn atomic_on_what_is_zeroed_twin(dst: GlobalMut<u32>) {
    let bins = shared!([u32; 32]);
    let i = thread::thread_idx_x();
    if i < 32 {
        bins.store(i, 0);
    }
    sync_threads();
    bins.atomic_add(i % 32, 1);
    sync_threads();
    if i < 32 {
        dst.store(i as usize, bins.load(i));
    }
}

#[kernel]
pub unsafe fn atomic_read_at_once(dst: GlobalMut<u32>) {
    let count = shared!([u32; 1]);
    let i = thread::thread_idx_x();
    if i == 0 {
        count.store(0, 0);
    }
    sync_threads();
    count.atomic_inc(0, 100); // A: atomic_inc
    dst.store(i as usize, count.load(0)); // B: load
}

#[kernel]
pub unsafe fn atomic_read_at_once_twin(dst: GlobalMut<u32>) {
    let count = shared!([u32; 1]);
    let i = thread::thread_idx_x();
    if i == 0 {
        count.store(0, 0);
    }
    sync_threads();
    count.atomic_inc(0, 100);
    sync_threads();
    dst.store(i as usize, count.load(0));
}

#[kernel]
pub unsafe fn atomic_max_read_at_once(src: Global<u32>, dst: GlobalMut<u32>, highest: GlobalMut<u32>) {
    let i = thread::thread_idx_x() as usize;
    highest.atomic_max(0, src.load(i)); // A: atomic_max
    if i == 32 {
        dst.store(0, highest.load(0)); // B: load
    }
}

#[kernel]
pub unsafe fn atomic_max_read_at_once_twin(src: Global<u32>, dst: GlobalMut<u32>, highest: GlobalMut<u32>) {
    let i = thread::thread_idx_x() as usize;
    highest.atomic_max(0, src.load(i));
    sync_threads();
    if i == 32 {
        dst.store(0, highest.load(0));
    }
}

#[kernel]
pub unsafe fn atomic_of_block_scope(dst: GlobalMut<u32>) {
    dst.atomic_add_block(0, 1); // A: atomic_add_block
}

#[kernel]
pub unsafe fn atomic_of_block_scope_twin(dst: GlobalMut<u32>) {
    dst.atomic_add(0, 1);
}

#[kernel]
pub unsafe fn atomic_past_the_end(dst: GlobalMut<u32>) {
    let bins = shared!([u32; 32]);
    let i = thread::thread_idx_x();
    if i < 32 {
        bins.store(i, 0);
    }
    sync_threads();
    bins.atomic_or(i, 1); // A: atomic_or
    sync_threads();
    if i < 32 {
        dst.store(i as usize, bins.load(i));
    }
}

#[kernel]
pub unsafe fn atomic_past_the_end_twin(dst: GlobalMut<u32>) {
    let bins = shared!([u32; 32]);
    let i = thread::thread_idx_x();
    if i < 32 {
        bins.store(i, 0);
    }
    sync_threads();
    bins.atomic_or(i % 32, 1);
    sync_threads();
    if i < 32 {
        dst.store(i as usize, bins.load(i));
    }
}

#[kernel]
pub unsafe fn atomic_on_half_of_two(dst: GlobalMut<u64>) {
    let words = shared!([u32; 64]);
    let i = thread::thread_idx_x();
    words.store(2 * i, 0);
    words.store(2 * i + 1, 0);
    sync_threads();
    let pairs = words.starting_at(i & 1).cast::<u64>();
    pairs.atomic_exch(i, 7); // A: atomic_exch
    sync_threads();
    dst.store(i as usize, words.cast::<u64>().load(i));
}

#[kernel]
pub unsafe fn atomic_on_half_of_two_twin(dst: GlobalMut<u64>) {
    let words = shared!([u32; 64]);
    let i = thread::thread_idx_x();
    words.store(2 * i, 0);
    words.store(2 * i + 1, 0);
    sync_threads();
    let pairs = words.cast::<u64>();
    pairs.atomic_exch(i, 7);
    sync_threads();
    dst.store(i as usize, words.cast::<u64>().load(i));
}

#[kernel]
pub unsafe fn atomic_on_half_of_two_global(dst: GlobalMut<u32>) {
    dst.starting_at(1).cast::<u64>().atomic_add(0, 1); // A: atomic_add
}

#[kernel]
pub unsafe fn atomic_on_half_of_two_global_twin(dst: GlobalMut<u32>) {
    dst.starting_at(2).cast::<u64>().atomic_add(0, 1);
}

#[kernel]
pub unsafe fn atomic_on_what_nobody_zeroed(dst: GlobalMut<u32>) {
    let count = shared!([u32; 1]);
    let i = thread::thread_idx_x();
    count.atomic_add(0, 1); // A: atomic_add
    sync_threads();
    if i == 0 {
        dst.store(0, count.load(0));
    }
}

#[kernel]
pub unsafe fn atomic_on_what_nobody_zeroed_twin(dst: GlobalMut<u32>) {
    let count = shared!([u32; 1]);
    let i = thread::thread_idx_x();
    if i == 0 {
        count.store(0, 0);
    }
    sync_threads();
    count.atomic_add(0, 1);
    sync_threads();
    if i == 0 {
        dst.store(0, count.load(0));
    }
}

host_only! {
    use crate::{Bug, Class, alone};
    use gpu::suite::{Buffer, Plan, PlanError};

    /// A block that finds the highest of 64 numbers.
    fn highest() -> Result<Plan, PlanError> {
        Ok(alone(1, 64, Buffer::input("src", 64, |i| 100 + i as u32)?)
            .buffer(Buffer::output("dst", 1, |_| 163u32)?)
            .buffer(Buffer::zeroed("highest", 1, |_| 163u32)?))
    }

    /// The bugs of this file.
    pub static BUGS: &[Bug] = &[
        Bug {
            class: Class::MissingBarrier,
            kernel: atomic_on_what_is_zeroed::KERNEL,
            twin: atomic_on_what_is_zeroed_twin::KERNEL,
            plan: || Ok(alone(1, 64, Buffer::output("dst", 32, |_| 2u32)?)),
            report: "race: a thread updates byte 0 of `bins`, which thread (0, 0, 0) writes, and no barrier orders the \
                     two, at {B} and {A} (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::SharedRace,
            kernel: atomic_read_at_once::KERNEL,
            twin: atomic_read_at_once_twin::KERNEL,
            plan: || Ok(alone(1, 64, Buffer::output("dst", 64, |_| 64u32)?)),
            report: "race: a thread updates byte 0 of `count`, which thread (0, 0, 0) reads, and no barrier orders the \
                     two, at {A} and {B} (thread (1, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::GlobalRace,
            kernel: atomic_max_read_at_once::KERNEL,
            twin: atomic_max_read_at_once_twin::KERNEL,
            plan: highest,
            report: "race: a thread reads byte 0 of `highest`, which thread (0, 0, 0) updates, and no barrier orders the \
                     two, at {B} and {A} (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::GlobalRace,
            kernel: atomic_of_block_scope::KERNEL,
            twin: atomic_of_block_scope_twin::KERNEL,
            plan: || Ok(alone(2, 32, Buffer::zeroed("dst", 1, |_| 64u32)?)),
            report: "race: a thread updates byte 0 of `dst`, which thread (0, 0, 0) of block (0, 0, 0) updates, and an \
                     atomic of a block's scope excludes no other block, at {A} and {A} (thread (0, 0, 0), block (1, 0, 0))",
        },
        Bug {
            class: Class::OutOfBoundsShared,
            kernel: atomic_past_the_end::KERNEL,
            twin: atomic_past_the_end_twin::KERNEL,
            plan: || Ok(alone(1, 64, Buffer::output("dst", 32, |_| 1u32)?)),
            report: "out of bounds: a thread updates 4 bytes at byte 128 of `bins`, which has 128, at {A} \
                     (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MisalignedShared,
            kernel: atomic_on_half_of_two::KERNEL,
            twin: atomic_on_half_of_two_twin::KERNEL,
            plan: || Ok(alone(1, 32, Buffer::output("dst", 32, |_| 7u64)?)),
            report: "misaligned: a thread updates 8 bytes at byte 12 of `words`, which is no multiple of 8, at {A} \
                     (thread (1, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::MisalignedGlobal,
            kernel: atomic_on_half_of_two_global::KERNEL,
            twin: atomic_on_half_of_two_global_twin::KERNEL,
            plan: || Ok(alone(1, 32, Buffer::zeroed("dst", 4, |i| if i == 2 { 32u32 } else { 0 })?)),
            report: "misaligned: a thread updates 8 bytes at byte 4 of `dst`, which is no multiple of 8, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::UninitializedShared,
            kernel: atomic_on_what_nobody_zeroed::KERNEL,
            twin: atomic_on_what_nobody_zeroed_twin::KERNEL,
            plan: || Ok(alone(1, 64, Buffer::output("dst", 1, |_| 64u32)?)),
            report: "uninitialized: a thread updates byte 0 of `count`, which no thread has written, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
    ];
}
