//! What threads hand on by way of memory, as kernels do that are known to work; and that it is told from what orders nothing.

use busload_tests::{checked, launch, on_threads, simulate};
use gpu::device::prelude::*;
use gpu::suite::{Buffer, Kernel, Plan};
use std::sync::Arc;

/// The first warp waits for what a later one says.
#[kernel]
unsafe fn a_later_warp(dst: GlobalMut<u32>) {
    let data = shared!([u32; 1]);
    let flag = shared!([u32; 1]);
    let t = thread::thread_idx_x();
    if t == 0 {
        flag.store(0, 0);
    }
    sync_threads();
    if t == 0 {
        for _ in each(0..) {
            if flag.load_relaxed(0) == 1 {
                break;
            }
        }
        threadfence_block();
        dst.store(0, data.load(0));
    } else if t == 40 {
        data.store(0, 7);
        threadfence_block();
        flag.store_relaxed(0, 1);
    }
    sync_threads();
    dst.store(t as usize + 1, data.load(0));
}

/// Each block adds its number to the sum up to the block before it, which it waits for.
#[kernel]
unsafe fn look_back(flags: GlobalMut<u32>, sums: GlobalMut<u32>) {
    let block = thread::block_idx_x() as usize;
    let mut sum = block as u32 + 1;
    if block > 0 {
        for _ in each(0..) {
            if flags.load_volatile(block - 1) == 1 {
                break;
            }
        }
        threadfence();
        sum += sums.load(block - 1);
    }
    sums.store(block, sum);
    threadfence();
    flags.store_volatile(block, 1);
}

/// A lock that a block holds while it counts.
#[kernel]
unsafe fn lock(lock: GlobalMut<u32>, count: GlobalMut<u32>) {
    for _ in each(0..) {
        if lock.atomic_cas(0, 0, 1) == 0 {
            break;
        }
    }
    threadfence();
    count.store(0, count.load(0) + 1);
    threadfence();
    lock.atomic_exch(0, 0);
}

/// Like [`lock`], which is given back before what was counted can be seen.
#[kernel]
unsafe fn lock_given_back_early(lock: GlobalMut<u32>, count: GlobalMut<u32>) {
    for _ in each(0..) {
        if lock.atomic_cas(0, 0, 1) == 0 {
            break;
        }
    }
    threadfence();
    count.store(0, count.load(0) + 1);
    lock.atomic_exch(0, 0);
}

/// Each warp counts into bins of its own.
#[kernel]
unsafe fn bins_of_a_warp(src: Global<u32>, dst: GlobalMut<u32>) {
    let bins = shared!([u32; 64]);
    let (t, i) = (thread::thread_idx_x(), thread::index_x());
    bins.store(t, 0);
    sync_warp(warp::FULL);
    bins.atomic_add(t / 32 * 32 + src.load(i) % 8, 1);
    sync_warp(warp::FULL);
    dst.store(i, bins.load(t));
}

fn block_of(threads: u32, blocks: u32) -> Plan {
    Plan::new(launch([blocks, 1, 1], [threads, 1, 1]))
}

fn run(kernel: Kernel, plan: Plan) {
    let plan = Arc::new(plan);
    for threads in [1, 3] {
        checked(kernel, &plan, &on_threads(threads));
    }
}

#[test]
fn a_warp_waits_for_a_later_one() {
    let dst = Buffer::output("dst", 65, |_| 7u32).expect("a small buffer");
    run(a_later_warp::KERNEL, block_of(64, 1).buffer(dst));
}

#[test]
fn blocks_hand_sums_on() {
    let flags = Buffer::zeroed("flags", 300, |_| 1u32).expect("a small buffer");
    let sums = Buffer::output("sums", 300, |i| ((i + 1) * (i + 2) / 2) as u32).expect("a small buffer");
    run(look_back::KERNEL, block_of(1, 300).buffer(flags).buffer(sums));
}

#[test]
fn a_lock_orders_what_it_guards_if_it_is_given_back_behind_a_fence() {
    let plan = || {
        let lock = Buffer::zeroed("lock", 1, |_| 0u32).expect("a small buffer");
        block_of(1, 50).buffer(lock).buffer(Buffer::zeroed("count", 1, |_| 50u32).expect("a small buffer"))
    };
    run(lock::KERNEL, plan());
    let outcome = simulate(lock_given_back_early::KERNEL, &Arc::new(plan()), &on_threads(2));
    let found: Vec<_> = outcome.findings.iter().map(ToString::to_string).collect();
    assert_eq!(outcome.findings.len(), 1, "{found:?}");
    assert!(
        found.iter().all(|text| text.contains("of `count`") && text.contains("no fence orders the two")),
        "{found:?}"
    );
}

#[test]
fn bins_of_a_warp_need_no_barrier_of_the_block() {
    let value = |i: u64| (i * i) as u32;
    let expected = move |i: u64| {
        let warp = i / 32 * 32;
        (warp..warp + 32).filter(|other| u64::from(value(*other) % 8) == i % 32).count() as u32
    };
    let src = Buffer::input("src", 128, value).expect("a small buffer");
    let dst = Buffer::output("dst", 128, expected).expect("a small buffer");
    run(bins_of_a_warp::KERNEL, block_of(64, 2).buffer(src).buffer(dst));
}
