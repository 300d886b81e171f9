//! Sync: threads that read what others wrote, round after round, and the barriers that this takes.
//!
//! ```text
//!  store | barrier | load the neighbour's | barrier | store the sum | barrier | …
//!          all is written                   all is read
//! ```
//!
//! Each round adds to every element of a block its right neighbour, `x[t] + x[t + 1]`, with zeros past the block's end. The
//! block's elements come out in reverse order.

use crate::device::prelude::*;

const BLOCK: u32 = 256;
const ROUNDS: u32 = 8;

/// The tile in one piece: a barrier after every store and after every load.
///
/// **Look for** two barriers a round. Without the first, a neighbour's store may still be missing; without the second, it
/// may already be the next round's. **Cost** the whole block waits for its slowest warp each time.
#[kernel]
pub unsafe fn sync_tiled(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let tile = shared!([f32; BLOCK as usize + 1]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    // Every thread stores, also where the elements end: a barrier is for the whole block.
    let mut value = if i < n { src.load(i) } else { 0.0 };
    tile.store(thread, value);
    if thread == 0 {
        // The neighbour of the last element.
        tile.store(BLOCK, 0.0);
    }
    for _ in steps(0..ROUNDS, 1) {
        // Each warp is about to read a word of the next one's.
        sync_threads();
        value += tile.load(thread + 1);
        // The warp before may still read the word that this one overwrites.
        sync_threads();
        tile.store(thread, value);
    }
    // The words read below were stored by other warps.
    sync_threads();
    if i < n {
        // A warp reads 32 words backwards, and stores one line.
        dst.store(i, tile.load(BLOCK - 1 - thread));
    }
}

/// Like [`sync_tiled`], with two tiles that take turns: what a round overwrites, nobody reads in it.
///
/// **Look for** one barrier a round, and the same wavefronts. **Cost** twice the shared memory.
#[kernel]
pub unsafe fn sync_double_buffered(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let tiles = shared!([f32; 2 * (BLOCK as usize + 1)]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    let mut value = if i < n { src.load(i) } else { 0.0 };
    tiles.store(thread, value);
    if thread < 2 {
        // The neighbour of the last element, in either tile.
        tiles.store(thread * (BLOCK + 1) + BLOCK, 0.0);
    }
    for round in steps(0..ROUNDS, 1) {
        let (from, to) = (round % 2 * (BLOCK + 1), (round + 1) % 2 * (BLOCK + 1));
        // All have stored this round's values, and so have read those of the round before, which stood in the other tile.
        sync_threads();
        value += tiles.load(from + thread + 1);
        tiles.store(to + thread, value);
    }
    sync_threads();
    if i < n {
        // A warp reads 32 words backwards from the tile stored last, and stores one line.
        dst.store(i, tiles.load(ROUNDS % 2 * (BLOCK + 1) + BLOCK - 1 - thread));
    }
}

host_only! {
    /// Like [`sync_tiled`] with a single round, and without the barrier between the store and the load.
    ///
    /// **Look for** the simulator's report: a race, and the lines of both accesses. **Cost** on a GPU, a wrong word now and
    /// then: wherever a warp is ahead of the one whose words it reads.
    #[kernel]
    pub unsafe fn sync_missing_barrier(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
        let tile = shared!([f32; BLOCK as usize]);
        let (i, thread) = (thread::index_x(), thread::thread_idx_x());
        tile.store(thread, if i < n { src.load(i) } else { 0.0 });
        if i < n {
            // Words of another warp, which may not have stored them.
            dst.store(i, tile.load(BLOCK - 1 - thread));
        }
    }

    /// Like [`sync_missing_barrier`], with a barrier in a branch that half of the threads do not take.
    ///
    /// **Look for** the simulator's report: a divergent barrier, and the lines of both places where threads wait. **Cost**
    /// on a GPU, anything: the halves meet at different barriers, or never.
    #[kernel]
    pub unsafe fn sync_divergent_barrier(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
        let tile = shared!([f32; BLOCK as usize]);
        let (i, thread) = (thread::index_x(), thread::thread_idx_x());
        tile.store(thread, if i < n { src.load(i) } else { 0.0 });
        if thread < BLOCK / 2 {
            // Half of the block waits for all of it.
            sync_threads();
        }
        // The other half waits here.
        sync_threads();
        if i < n {
            // Words of another warp.
            dst.store(i, tile.load(BLOCK - 1 - thread));
        }
    }
}

family! {
    const ELEMENTS: Axis = Axis { in_simulator: &[Value::Count(1 << 17)], ..Axis::ELEMENTS };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "sync",
        summary: "the tiled pattern with its barriers: load, wait, use, wait, store; then with one barrier a round",
        axes: &[ELEMENTS],
        kernels: &[
            Entry { kernel: sync_tiled::KERNEL, plan: |case| plan(case, "tile", 1) },
            Entry { kernel: sync_double_buffered::KERNEL, plan: |case| plan(case, "tiles", 2) },
        ],
    };

    /// Wrong on purpose.
    pub static COUNTEREXAMPLES: &[Entry] = &[
        Entry { kernel: sync_missing_barrier::KERNEL, plan: one_round },
        Entry { kernel: sync_divergent_barrier::KERNEL, plan: one_round },
    ];

    /// A whole number below 256: the sums, at most 2^8 times that, are exact.
    fn byte(i: u64) -> f32 {
        (noise(i) as u32 % 256) as f32
    }

    /// After `r` rounds, element `t` is the sum over `j` of `r` over `j` times what element `t + j` was at first: here that
    /// of the thread that mirrors `i`'s in its block.
    fn after(i: u64, n: u64) -> f32 {
        let block = u64::from(BLOCK);
        let (first, end) = (i / block * block, n.min((i / block + 1) * block));
        let i = first + block - 1 - i % block;
        let mut binomial = 1;
        let mut sum = 0;
        for j in 0..=u64::from(ROUNDS) {
            if i + j < end {
                sum += binomial * byte(i + j) as u64;
            }
            binomial = binomial * (u64::from(ROUNDS) - j) / (j + 1);
        }
        sum as f32
    }

    /// All of a block's threads go through every round; `zeros` of them store the last element's neighbour.
    fn plan(case: &Case, tile: &'static str, zeros: u64) -> Result<Plan, PlanError> {
        let n = case.elements();
        let launch = Launch::linear(n, BLOCK)?;
        let words = |lanes| Progression::linear(0, lanes, 4).shared();
        let all = words(32) * (launch.threads() / 32);
        let ends = Progression { first: 0, step: 4 * (u64::from(BLOCK) + 1), lanes: zeros, width: 4 }.shared();
        let line = |warp, lanes| Progression::linear(128 * warp, lanes, 4).global();
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", n, byte)?)
            .buffer(Buffer::output("dst", n, move |i| after(i, n))?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", 4, warps(n, line))
            .stores(tile, 4, all * (1 + u64::from(ROUNDS)) + ends * launch.block_count())
            .loads(tile, 4, all * ROUNDS.into() + warps(n, |_, lanes| words(lanes)))
            .stores("dst", 4, warps(n, line)))
    }

    /// A tile that is stored once, and comes out in reverse: what the counterexamples are meant to do.
    fn one_round(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, byte)?)
            .buffer(Buffer::output("dst", n, move |i| {
                let block = u64::from(BLOCK);
                let mirrored = i / block * block + block - 1 - i % block;
                if mirrored < n { byte(mirrored) } else { 0.0 }
            })?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[8, n])?))
    }
}
