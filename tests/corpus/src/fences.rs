//! What threads hand on by way of memory: a fence that is missing, or of too small a scope, and a flag that nobody sets.

use gpu::device::prelude::*;

/// Adds up the parts of all blocks if this block is the last one.
macro_rules! sum_if_last {
    ($last:ident, $parts:ident, $dst:ident) => {
        sync_threads();
        if $last.load(0) == thread::grid_dim_x() - 1 && thread::thread_idx_x() == 0 {
            let mut sum = 0;
            for block in each(0..thread::grid_dim_x() as usize) {
                sum += $parts.load(block);
            }
            $dst.store(0, sum);
        }
    };
}

#[kernel]
pub unsafe fn fence_missing_in_last_block(
    src: Global<u32>,
    parts: GlobalMut<u32>,
    done: GlobalMut<u32>,
    dst: GlobalMut<u32>,
) {
    let last = shared!([u32; 1]);
    if thread::thread_idx_x() == 0 {
        let block = thread::block_idx_x() as usize;
        parts.store(block, src.load(block)); // A: store
        last.store(0, done.atomic_inc(0, u32::MAX));
    }
    sum_if_last!(last, parts, dst); // B: sum_if_last
}

#[kernel]
pub unsafe fn fence_missing_in_last_block_twin(
    src: Global<u32>,
    parts: GlobalMut<u32>,
    done: GlobalMut<u32>,
    dst: GlobalMut<u32>,
) {
    let last = shared!([u32; 1]);
    if thread::thread_idx_x() == 0 {
        let block = thread::block_idx_x() as usize;
        parts.store(block, src.load(block));
        threadfence();
        last.store(0, done.atomic_inc(0, u32::MAX));
    }
    sum_if_last!(last, parts, dst);
}

#[kernel]
pub unsafe fn fence_of_block_scope(src: Global<u32>, parts: GlobalMut<u32>, done: GlobalMut<u32>, dst: GlobalMut<u32>) {
    let last = shared!([u32; 1]);
    if thread::thread_idx_x() == 0 {
        let block = thread::block_idx_x() as usize;
        parts.store(block, src.load(block)); // A: store
        threadfence_block();
        last.store(0, done.atomic_add(0, 1));
    }
    sum_if_last!(last, parts, dst); // B: sum_if_last
}

/// Every thread fences what it has written, a barrier, and one thread tells of all: as much as one fence behind the barrier.
#[kernel]
pub unsafe fn fence_of_block_scope_twin(
    src: Global<u32>,
    parts: GlobalMut<u32>,
    done: GlobalMut<u32>,
    dst: GlobalMut<u32>,
) {
    let last = shared!([u32; 1]);
    let block = thread::block_idx_x() as usize;
    if thread::thread_idx_x() == 32 {
        parts.store(block, src.load(block));
    }
    threadfence();
    sync_threads();
    if thread::thread_idx_x() == 0 {
        last.store(0, done.atomic_add(0, 1));
    }
    sum_if_last!(last, parts, dst);
    // Who has heard of all others may begin anew.
    if last.load(0) == thread::grid_dim_x() - 1 && thread::thread_idx_x() == 0 {
        done.store(0, 4);
    }
}

#[kernel]
pub unsafe fn fence_missing_before_flag(
    src: Global<u32>,
    flag: GlobalMut<u32>,
    data: GlobalMut<u32>,
    dst: GlobalMut<u32>,
) {
    match thread::thread_idx_x() {
        0 => {
            data.store(0, src.load(1)); // A: store
            flag.store_volatile(0, 1);
        }
        32 => {
            for _ in each(0..) {
                if flag.load_volatile(0) == 1 {
                    break;
                }
            }
            threadfence_block();
            dst.store(0, data.load(0)); // B: load
        }
        _ => {}
    }
}

#[kernel]
pub unsafe fn fence_missing_before_flag_twin(
    src: Global<u32>,
    flag: GlobalMut<u32>,
    data: GlobalMut<u32>,
    dst: GlobalMut<u32>,
) {
    match thread::thread_idx_x() {
        0 => {
            data.store(0, src.load(1));
            threadfence_block();
            flag.store_volatile(0, 1);
        }
        32 => {
            for _ in each(0..) {
                if flag.load_volatile(0) == 1 {
                    break;
                }
            }
            threadfence_block();
            dst.store(0, data.load(0));
        }
        _ => {}
    }
}

#[kernel]
pub unsafe fn fence_missing_behind_flag(
    src: Global<u32>,
    flag: GlobalMut<u32>,
    data: GlobalMut<u32>,
    dst: GlobalMut<u32>,
) {
    if thread::block_idx_x() == 0 {
        data.store(0, src.load(1)); // A: store
        threadfence();
        flag.atomic_exch(0, 1);
    } else {
        for _ in each(0..) {
            if flag.load_volatile(0) == 1 {
                break;
            }
        }
        dst.store(0, data.load(0)); // B: load
    }
}

#[kernel]
pub unsafe fn fence_missing_behind_flag_twin(
    src: Global<u32>,
    flag: GlobalMut<u32>,
    data: GlobalMut<u32>,
    dst: GlobalMut<u32>,
) {
    if thread::block_idx_x() == 0 {
        data.store(0, src.load(1));
        threadfence();
        flag.atomic_exch(0, 1);
    } else {
        for _ in each(0..) {
            if flag.load_volatile(0) == 1 {
                break;
            }
        }
        threadfence();
        dst.store(0, data.load(0));
    }
}

#[kernel]
pub unsafe fn fence_missing_in_shared(src: Global<u32>, dst: GlobalMut<u32>) {
    let data = shared!([u32; 1]);
    let flag = shared!([u32; 1]);
    let i = thread::thread_idx_x();
    if i == 0 {
        flag.store_relaxed(0, 0);
    }
    sync_threads();
    if i == 0 {
        data.store(0, src.load(1)); // A: store
        flag.atomic_exch(0, 1);
    }
    if i == 32 {
        for _ in each(0..) {
            if flag.load_relaxed(0) == 1 {
                break;
            }
        }
        threadfence_block();
        dst.store(0, data.load(0)); // B: load
    }
}

#[kernel]
pub unsafe fn fence_missing_in_shared_twin(src: Global<u32>, dst: GlobalMut<u32>) {
    let data = shared!([u32; 1]);
    let flag = shared!([u32; 1]);
    let i = thread::thread_idx_x();
    if i == 0 {
        flag.store_relaxed(0, 0);
    }
    sync_threads();
    if i == 0 {
        data.store(0, src.load(1));
        threadfence_block();
        flag.atomic_exch(0, 1);
    }
    if i == 32 {
        for _ in each(0..) {
            if flag.load_relaxed(0) == 1 {
                break;
            }
        }
        threadfence_block();
        dst.store(0, data.load(0));
    }
}

#[kernel]
pub unsafe fn fence_flag_read_plainly(flag: GlobalMut<u32>, dst: GlobalMut<u32>) {
    if thread::block_idx_x() == 0 {
        flag.store_volatile(0, 1); // A: store_volatile
    } else {
        for _ in each(0..) {
            // A plain load may take the value of the one before it, for ever.
            if flag.load(0) == 1 {
                // B: load
                break;
            }
        }
        dst.store(0, 1);
    }
}

#[kernel]
pub unsafe fn fence_flag_read_plainly_twin(flag: GlobalMut<u32>, dst: GlobalMut<u32>) {
    if thread::block_idx_x() == 0 {
        flag.store_volatile(0, 1);
    } else {
        for _ in each(0..) {
            if flag.load_volatile(0) == 1 {
                break;
            }
        }
        dst.store(0, 1);
    }
}

#[kernel]
pub unsafe fn endless_volatile(flag: GlobalMut<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    let forever = each(0..); // A: each
    for _ in forever {
        let flag = flag.load_volatile(i);
        if flag == 1 {
            // L: flag
            break;
        }
    }
    dst.store(i, 1);
}

#[kernel]
pub unsafe fn endless_volatile_twin(flag: GlobalMut<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    flag.store_volatile(i, 1);
    for _ in each(0..) {
        let flag = flag.load_volatile(i);
        if flag == 1 {
            break;
        }
    }
    dst.store(i, 1);
}

host_only! {
    use crate::{Bug, Class, alone};
    use gpu::suite::{Buffer, Plan, PlanError};

    /// Four blocks that add up a number each.
    fn parts() -> Result<Plan, PlanError> {
        Ok(alone(4, 64, Buffer::input("src", 4, |i| 1 + i as u32)?)
            .buffer(Buffer::output("parts", 4, |i| 1 + i as u32)?)
            .buffer(Buffer::zeroed("done", 1, |_| 4u32)?)
            .buffer(Buffer::output("dst", 1, |_| 10u32)?))
    }

    /// Blocks of which one thread hands a number on.
    fn handed_on(blocks: u32, threads: u32) -> Result<Plan, PlanError> {
        Ok(alone(blocks, threads, Buffer::input("src", 2, |i| 4 + i as u32)?)
            .buffer(Buffer::zeroed("flag", 1, |_| 1u32)?)
            .buffer(Buffer::output("data", 1, |_| 5u32)?)
            .buffer(Buffer::output("dst", 1, |_| 5u32)?))
    }

    /// So many blocks of a thread, each with a flag of its own or one for all.
    fn flags(blocks: u32, threads: u32) -> Result<Plan, PlanError> {
        let flag = Buffer::zeroed("flag", threads.into(), |_| 1u32)?;
        Ok(alone(blocks, threads, flag).buffer(Buffer::output("dst", threads.into(), |_| 1u32)?))
    }

    /// The bugs of this file.
    pub static BUGS: &[Bug] = &[
        Bug {
            class: Class::GlobalRace,
            kernel: fence_missing_in_last_block::KERNEL,
            twin: fence_missing_in_last_block_twin::KERNEL,
            plan: parts,
            report: "race: a thread reads byte 0 of `parts`, which thread (0, 0, 0) of block (0, 0, 0) writes, and no \
                     fence orders the two, at {B} and {A} (thread (0, 0, 0), block (3, 0, 0))",
        },
        Bug {
            class: Class::GlobalRace,
            kernel: fence_of_block_scope::KERNEL,
            twin: fence_of_block_scope_twin::KERNEL,
            plan: parts,
            report: "race: a thread reads byte 0 of `parts`, which thread (0, 0, 0) of block (0, 0, 0) writes, and no \
                     fence orders the two, at {B} and {A} (thread (0, 0, 0), block (3, 0, 0))",
        },
        Bug {
            class: Class::GlobalRace,
            kernel: fence_missing_before_flag::KERNEL,
            twin: fence_missing_before_flag_twin::KERNEL,
            plan: || handed_on(1, 64),
            report: "race: a thread reads byte 0 of `data`, which thread (0, 0, 0) writes, and no fence orders the two, \
                     at {B} and {A} (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::GlobalRace,
            kernel: fence_missing_behind_flag::KERNEL,
            twin: fence_missing_behind_flag_twin::KERNEL,
            plan: || handed_on(2, 1),
            report: "race: a thread reads byte 0 of `data`, which thread (0, 0, 0) of block (0, 0, 0) writes, and no \
                     fence orders the two, at {B} and {A} (thread (0, 0, 0), block (1, 0, 0))",
        },
        Bug {
            class: Class::SharedRace,
            kernel: fence_missing_in_shared::KERNEL,
            twin: fence_missing_in_shared_twin::KERNEL,
            plan: || Ok(alone(1, 64, Buffer::input("src", 2, |i| 4 + i as u32)?).buffer(Buffer::output("dst", 1, |_| 5u32)?)),
            report: "race: a thread reads byte 0 of `data`, which thread (0, 0, 0) writes, and no fence orders the two, \
                     at {B} and {A} (thread (32, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::GlobalRace,
            kernel: fence_flag_read_plainly::KERNEL,
            twin: fence_flag_read_plainly_twin::KERNEL,
            plan: || flags(2, 1),
            report: "race: a thread reads byte 0 of `flag`, which thread (0, 0, 0) of block (0, 0, 0) writes, and nothing \
                     orders the blocks of a launch, at {B} and {A} (thread (0, 0, 0), block (1, 0, 0))",
        },
        Bug {
            class: Class::NonTerminating,
            kernel: endless_volatile::KERNEL,
            twin: endless_volatile_twin::KERNEL,
            plan: || flags(1, 32),
            report: "does not end: a thread has made more than 16384 accesses and loop steps, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
    ];
}
