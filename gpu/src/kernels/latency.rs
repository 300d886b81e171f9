//! Latency: how long one load takes when nothing hides it, by the SM's clock, and how often one can begin.
//!
//! ```text
//!  next[i] ─▶ i ─▶ next[i] ─▶ i ─▶ …    one lane, one load in flight: a ring in which each element names the next
//! ```
//!
//! A hop is a load and the arithmetic that makes an address of what it brought, a few cycles.

use crate::device::prelude::*;

/// Words of the ring in shared memory, and of the tile.
const TILE: u32 = 1024;

/// A chase through a ring larger than it has hops, so that no line is met twice.
///
/// **Look for** the cycles of a hop with a cold L2: the way to the memory and back. **Cost** a warp that has nothing else
/// to do waits as long; it takes many warps, or many loads of each, to keep the memory busy meanwhile.
#[kernel]
pub unsafe fn latency_global(next: Global<u32>, dst: GlobalMut<u32>, cycles: GlobalMut<f32>, hops: u32) {
    let mut i = 0;
    let start = clock();
    for _ in steps(0..hops, 1) {
        // One lane, one sector.
        i = next.load(i as usize);
    }
    cycles.store(0, (clock() - start) as f32);
    dst.store(0, i);
}

/// Like [`latency_global`], past the L1, through a ring that the chase has been through before.
///
/// **Look for** the cycles of a hop: an L2 that has the line answers sooner. **Cost** as there.
#[kernel]
pub unsafe fn latency_l2(next: Global<u32>, dst: GlobalMut<u32>, cycles: GlobalMut<f32>, hops: u32) {
    let mut i = 0;
    for _ in steps(0..hops, 1) {
        // Brings the line into the L2.
        i = next.load_cg(i as usize);
    }
    let start = clock();
    for _ in steps(0..hops, 1) {
        // One lane, one sector, from the L2 if the first time round was enough.
        i = next.load_cg(i as usize);
    }
    cycles.store(0, (clock() - start) as f32);
    dst.store(0, i);
}

/// Like [`latency_l2`], through the L1, in a smaller ring.
///
/// **Look for** the cycles of a hop: far fewer than to the L2. **Cost** as there.
#[kernel]
pub unsafe fn latency_l1(next: Global<u32>, dst: GlobalMut<u32>, cycles: GlobalMut<f32>, hops: u32) {
    let mut i = 0;
    for _ in steps(0..hops, 1) {
        // Brings the line into the L1.
        i = next.load(i as usize);
    }
    let start = clock();
    for _ in steps(0..hops, 1) {
        // One lane, one sector, from the L1 if the first time round was enough.
        i = next.load(i as usize);
    }
    cycles.store(0, (clock() - start) as f32);
    dst.store(0, i);
}

/// Like [`latency_l1`], with the ring in shared memory.
///
/// **Look for** the cycles of a hop: a few less than from the L1, which is the same memory, since there is no tag to look
/// up. **Cost** as there.
#[kernel]
pub unsafe fn latency_shared(next: Global<u32>, dst: GlobalMut<u32>, cycles: GlobalMut<f32>, hops: u32) {
    let ring = shared!([u32; TILE as usize]);
    for k in steps(0..TILE, 1) {
        // One lane, one sector in, one word out.
        ring.store(k, next.load(k as usize));
    }
    let mut i = 0;
    let start = clock();
    for _ in steps(0..hops, 1) {
        // One lane, one bank, one wavefront.
        i = ring.load(i);
    }
    cycles.store(0, (clock() - start) as f32);
    dst.store(0, i);
}

/// Not one load after another but as many as an SM takes: 32 warps load from shared memory without a conflict.
///
/// **Look for** the cycles of a request: 1, so 128 bytes a cycle, whatever the latency. **Cost** none: what a warp waits
/// for, 31 others hide.
#[kernel]
pub unsafe fn latency_shared_throughput(dst: GlobalMut<f32>, cycles: GlobalMut<f32>, times: u32) {
    let tile = shared!([f32; TILE as usize]);
    let thread = thread::thread_idx_x();
    tile.store(thread, thread as f32);
    let mut sum = 0.0;
    sync_threads();
    let start = clock();
    for _ in steps(0..times, 1) {
        unroll!(for k in [0, 32, 64, 96, 128, 160, 192, 224] {
            // Every warp reads 32 words side by side: one wavefront.
            sum += tile.load(warp::lane_id() + k);
        });
    }
    sync_threads();
    if thread == 0 {
        cycles.store(0, (clock() - start) as f32);
    }
    dst.store(thread as usize, sum);
}

/// Like [`latency_shared_throughput`], with lanes 32 words apart: all in one bank.
///
/// **Look for** 32 wavefronts a request, and as many cycles. **Cost** 31 of 32 banks idle.
#[kernel]
pub unsafe fn latency_shared_conflict(dst: GlobalMut<f32>, cycles: GlobalMut<f32>, times: u32) {
    let tile = shared!([f32; TILE as usize]);
    let thread = thread::thread_idx_x();
    tile.store(thread, thread as f32);
    let mut sum = 0.0;
    sync_threads();
    let start = clock();
    for _ in steps(0..times, 1) {
        unroll!(for k in [0, 1, 2, 3, 4, 5, 6, 7] {
            // Every warp reads 32 words of bank `k`: 32 wavefronts.
            sum += tile.load(32 * warp::lane_id() + k);
        });
    }
    sync_threads();
    if thread == 0 {
        cycles.store(0, (clock() - start) as f32);
    }
    dst.store(thread as usize, sum);
}

family! {
    const HOPS: Axis = Axis {
        on_gpu: &[Value::Count(4096)],
        in_simulator: &[Value::Count(256)],
        ..Axis::counted("hops", "Loads one after another, for latency", 1, 1 << 14, &[])
    };

    /// Words of a line: every hop of a ring in global memory goes to another one.
    const LINE: u64 = 32;

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "latency",
        summary: "cycles of one load from memory, L2, L1 and shared memory, and of one request among many",
        axes: &[HOPS],
        kernels: &[
            Entry { kernel: latency_global::KERNEL, plan: |case| chase(case, 1 << 24, LINE, 1) },
            Entry { kernel: latency_l2::KERNEL, plan: |case| chase(case, 1 << 15, LINE, 2) },
            Entry { kernel: latency_l1::KERNEL, plan: |case| chase(case, 1 << 11, LINE, 2) },
            Entry { kernel: latency_shared::KERNEL, plan: shared_chase },
            Entry { kernel: latency_shared_throughput::KERNEL, plan: |case| throughput(case, 1, 32) },
            Entry { kernel: latency_shared_conflict::KERNEL, plan: |case| throughput(case, 32, 1) },
        ],
    };

    /// The element that follows `i` in a ring of `words` words, `step` of them apart; both are powers of two. The factor
    /// is 1 more than a multiple of 4 and the summand is odd, so one ring goes through all.
    fn follower(i: u64, words: u64, step: u64) -> u64 {
        (i / step * 0x9E37_79B5 + 0x7F4A_7C15) % (words / step) * step
    }

    /// A launch of one thread, which comes to an end of the ring and says how long it took.
    fn ring(case: &Case, words: u64, step: u64, rounds: u64) -> Result<Plan, PlanError> {
        let hops = case.count("hops");
        let end = (0..hops * rounds).fold(0, |i, _| follower(i, words, step));
        let one = Progression::linear(0, 1, 4).global();
        Ok(Plan::new(Launch::linear(1, 1)?)
            .buffer(Buffer::input("next", words, move |i| follower(i, words, step) as u32)?)
            .buffer(Buffer::output("dst", 1, move |_| end as u32)?)
            .buffer(Buffer::clock("cycles", 1)?)
            .scalar("hops", hops as u32)
            .clocked("cycles", hops)
            .bytes(4 * hops)
            .stores("dst", 4, one)
            .stores("cycles", 4, one))
    }

    fn chase(case: &Case, words: u64, step: u64, rounds: u64) -> Result<Plan, PlanError> {
        let one = Progression::linear(0, 1, 4).global();
        Ok(ring(case, words, step, rounds)?.loads("next", 4, one * (case.count("hops") * rounds)))
    }

    fn shared_chase(case: &Case) -> Result<Plan, PlanError> {
        let (words, one) = (u64::from(TILE), Progression::linear(0, 1, 4));
        Ok(ring(case, words, 1, 1)?
            .loads("next", 4, one.global() * words)
            .stores("ring", 4, one.shared() * words)
            .loads("ring", 4, one.shared() * case.count("hops")))
    }

    /// A block whose lanes are `stride` words apart, and go on by `step` words eight times.
    fn throughput(case: &Case, stride: u64, step: u64) -> Result<Plan, PlanError> {
        let (times, threads) = (case.count("hops").div_ceil(8), u64::from(TILE));
        let requests = 8 * times * threads / 32;
        let request = Progression { first: 0, step: 4 * stride, lanes: 32, width: 4 }.shared();
        let line = |warp, lanes| Progression::linear(128 * warp, lanes, 4).global();
        Ok(Plan::new(Launch::linear(threads, TILE)?)
            .buffer(Buffer::output("dst", threads, move |i| (times * 8 * (i % 32 * stride) + times * 28 * step) as f32)?)
            .buffer(Buffer::clock("cycles", 1)?)
            .scalar("times", times as u32)
            .clocked("cycles", requests)
            .bytes(4 * threads)
            .stores("tile", 4, Progression::linear(0, 32, 4).shared() * (threads / 32))
            .loads("tile", 4, request * requests)
            .stores("cycles", 4, Progression::linear(0, 1, 4).global())
            .stores("dst", 4, warps(threads, line)))
    }
}
