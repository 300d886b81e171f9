//! Reduce: many numbers to one, first within the warp and the block, then across blocks.
//!
//! ```text
//!  interleaved, step 2:   ■ . ■ . ■ . ■ .     the lanes that go on lie 2, 4, 8, … words apart: conflicts
//!  sequential, step 4:    ■ ■ ■ ■ . . . .     the lanes that go on stay side by side: none
//! ```

use crate::device::prelude::*;

const BLOCK: u32 = 256;
/// The vectors of a tile of [`reduce_vec4_tiles`], four for each of a block's 512 threads.
const TILE: usize = 2048;

/// The sum of each block's 256 elements, in a tree whose steps double.
///
/// **Look for** shared accesses of up to 8 wavefronts: the lanes that go on lie ever further apart. **Cost** those conflicts,
/// and a barrier a step for ever fewer lanes.
#[kernel]
pub unsafe fn reduce_interleaved(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let tile = shared!([f32; BLOCK as usize]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    // Each warp loads one line into 32 banks.
    tile.store(thread, if i < n { src.load(i) } else { 0.0 });
    for step in each([1, 2, 4, 8, 16, 32, 64, 128]) {
        // What is added below other warps have written.
        sync_threads();
        let own = 2 * step * thread;
        if own < BLOCK {
            // Lanes `2 * step` words apart.
            tile.store(own, tile.load(own) + tile.load(own + step));
        }
    }
    if thread == 0 {
        // The sum stands in the first word, which this thread wrote last.
        dst.store(thread::block_idx_x() as usize, tile.load(0));
    }
}

/// Like [`reduce_interleaved`], with steps that halve: the first threads go on, side by side.
///
/// **Look for** 1 wavefront a shared access, and whole warps that are done. **Cost** a barrier a step still.
#[kernel]
pub unsafe fn reduce_sequential(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let tile = shared!([f32; BLOCK as usize]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    // Each warp loads one line into 32 banks.
    tile.store(thread, if i < n { src.load(i) } else { 0.0 });
    for step in each([128, 64, 32, 16, 8, 4, 2, 1]) {
        // What is added below other warps have written.
        sync_threads();
        if thread < step {
            // Lanes side by side: 32 banks.
            tile.store(thread, tile.load(thread) + tile.load(thread + step));
        }
    }
    if thread == 0 {
        // The sum stands in the first word, which this thread wrote last.
        dst.store(thread::block_idx_x() as usize, tile.load(0));
    }
}

/// The sum of all elements: a grid-stride loop, a tree of shuffles in each warp, and one atomic addition a warp.
///
/// **Look for** 4 sectors a load, and no shared memory at all. **Cost** the order of the atomic additions, and so the
/// rounding, differs from run to run; they all meet at one address.
#[kernel]
pub unsafe fn reduce_grid_stride(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let sum = warp_sum(strided_sum(src, n));
    if warp::lane_id() == 0 {
        // One lane a warp: one sector.
        dst.atomic_add(0, sum);
    }
}

/// Like [`reduce_grid_stride`], with 16 bytes a lane.
///
/// **Look for** a quarter of the load requests, 16 sectors each. **Cost** alignment to 16 bytes, and a tail of up to 3; the
/// atomic additions stay as many, and follow one another where all warps end at once.
#[kernel]
pub unsafe fn reduce_vec4(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let sum = warp_sum(strided_sum_vec4(src, n));
    if warp::lane_id() == 0 {
        // One lane a warp: one sector.
        dst.atomic_add(0, sum);
    }
}

/// Like [`reduce_vec4`], with the sums of a block's eight warps brought together first: one atomic addition a block.
///
/// **Look for** an eighth of the atomics. **Cost** a barrier and 32 bytes of shared memory a block.
#[kernel]
pub unsafe fn reduce_vec4_block(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let sums = shared!([f32; 8]);
    let sum = block_sum(sums, warp_sum(strided_sum_vec4(src, n)));
    if thread::thread_idx_x() == 0 {
        // One lane a block: one sector.
        dst.atomic_add(0, sum);
    }
}

/// Like [`reduce_vec4_block`], with a store in place of the atomic addition: the first of two passes.
///
/// **Look for** no atomic, and one store a block. **Cost** a second launch; in return every run adds in the same order.
#[kernel]
pub unsafe fn reduce_partials(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let sums = shared!([f32; 8]);
    let sum = block_sum(sums, warp_sum(strided_sum_vec4(src, n)));
    if thread::thread_idx_x() == 0 {
        dst.store(thread::block_idx_x() as usize, sum);
    }
}

/// The second pass: one block adds up the sums of [`reduce_partials`], of which there are `n`.
///
/// **Look for** the same requests as a grid of one block. **Cost** the launch: the work itself is small.
#[kernel]
pub unsafe fn reduce_final(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let sums = shared!([f32; 8]);
    let sum = block_sum(sums, warp_sum(strided_sum(src, n)));
    if thread::thread_idx_x() == 0 {
        dst.store(0, sum);
    }
}

/// Like [`reduce_vec4_block`], with four vectors a thread on their way: 512 threads a block take tiles of 8192 elements.
///
/// **Look for** the same requests, and half the atomics. **Cost** registers for the vectors, and a last tile for one block alone.
#[kernel]
pub unsafe fn reduce_vec4_tiles(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let sums = shared!([f32; 16]);
    let sum = block_sum(sums, warp_sum(tiled_sum_vec4(src, n)));
    if thread::thread_idx_x() == 0 {
        // One lane a block: one sector.
        dst.atomic_add(0, sum);
    }
}

/// The thread's share of the elements, a grid apart.
#[device]
unsafe fn strided_sum(src: Global<f32>, n: usize) -> f32 {
    let mut sum = 0.0;
    for i in steps(thread::index_x()..n, thread::count_x()) {
        // Each iteration loads one line a warp.
        sum += src.load(i);
    }
    sum
}

/// The thread's share of the elements, four at a time.
#[device]
unsafe fn strided_sum_vec4(src: Global<f32>, n: usize) -> f32 {
    let mut sum = 0.0;
    for i in steps(thread::index_x()..n / 4, thread::count_x()) {
        // Each iteration loads four lines a warp.
        let F32x4 { x, y, z, w } = src.cast::<F32x4>().load(i);
        sum += (x + y) + (z + w);
    }
    if thread::index_x() < n % 4 {
        // The first warp's first lanes add what is left.
        sum += src.load(n - n % 4 + thread::index_x());
    }
    sum
}

/// The thread's share of the elements, four vectors of each of the block's tiles.
#[device]
unsafe fn tiled_sum_vec4(src: Global<f32>, n: usize) -> f32 {
    let (thread, mut sum) = (thread::thread_idx_x() as usize, 0.0);
    for first in steps(TILE * thread::block_idx_x() as usize..n / 4, TILE * thread::grid_dim_x() as usize) {
        let mut vectors = [F32x4::splat(0.0); 4];
        unroll!(for k in [0, 1, 2, 3] {
            let i = first + k as usize * (TILE / 4) + thread;
            if i < n / 4 {
                // A warp loads four lines; nothing waits for them until all four loads are on their way.
                vectors[k as usize] = src.cast::<F32x4>().load(i);
            }
        });
        let [a, b, c, d] = vectors.map(|F32x4 { x, y, z, w }| (x + y) + (z + w));
        sum += (a + b) + (c + d);
    }
    if thread::index_x() < n % 4 {
        sum += src.load(n - n % 4 + thread::index_x());
    }
    sum
}

/// The sum of the warp's values, in its lane 0.
#[device]
fn warp_sum(mut sum: f32) -> f32 {
    for delta in each([16, 8, 4, 2, 1]) {
        sum += warp::shuffle_down(warp::FULL, sum, delta);
    }
    sum
}

/// The sum of the block's `N` warps, each of whose lanes 0 brings its own, in thread 0.
#[device]
unsafe fn block_sum<const N: usize>(sums: Shared<f32, N>, sum: f32) -> f32 {
    let thread = thread::thread_idx_x();
    if warp::lane_id() == 0 {
        // One lane a warp.
        sums.store(thread / 32, sum);
    }
    sync_threads();
    // The first lanes take a warp's sum each; every warp shuffles, so that no lane is missing.
    warp_sum(if thread < N as u32 { sums.load(thread) } else { 0.0 })
}

family! {
    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "reduce",
        summary: "a sum: through shared memory with and without conflicts, by shuffles and atomics, in two passes",
        axes: &[Axis::ELEMENTS],
        kernels: &[
            Entry { kernel: reduce_interleaved::KERNEL, plan: |case| in_blocks(case, |step| (128 / step, 2 * step)) },
            Entry { kernel: reduce_sequential::KERNEL, plan: |case| in_blocks(case, |step| (step, 1)) },
            Entry { kernel: reduce_grid_stride::KERNEL, plan: |case| atomic(case, 1) },
            Entry { kernel: reduce_vec4::KERNEL, plan: |case| atomic(case, 4) },
            Entry { kernel: reduce_vec4_block::KERNEL, plan: |case| atomic_a_block(case, grid(case, 4)?) },
            Entry { kernel: reduce_partials::KERNEL, plan: partials },
            Entry { kernel: reduce_final::KERNEL, plan: last },
            Entry { kernel: reduce_vec4_tiles::KERNEL, plan: |case| atomic_a_block(case, tiles(case)?) },
        ],
    };

    /// From 0 to 1, in steps of 2^-23: what the references add up in f64 is exact.
    fn fraction(i: u64) -> f32 {
        noise(i) / (1 << 23) as f32
    }

    /// The sum of some elements, rounded once.
    fn sum(elements: impl Iterator<Item = u64>) -> f32 {
        elements.map(|i| f64::from(fraction(i))).sum::<f64>() as f32
    }

    /// How far a sum of `n` elements below 1 may be off, if none goes through more than `d` additions, the rounding of the
    /// reference included: each rounds by a factor within 1 ± 2^-24, which makes `d * 2^-24 / (1 - d * 2^-24)` of the sum
    /// of all magnitudes, and that is less than `n`.
    fn bound(d: u64, n: u64) -> f64 {
        let rounding = d as f64 / f64::from(1 << 24);
        rounding / (1.0 - rounding) * n as f64
    }

    /// A request of one lane.
    const LANE: Progression = Progression::linear(0, 1, 4);

    /// A sum of each block's elements by a tree in shared memory, in whose step `step` some threads go on, so many words
    /// apart.
    fn in_blocks(case: &Case, active: fn(u64) -> (u64, u64)) -> Result<Plan, PlanError> {
        let (n, block) = (case.elements(), u64::from(BLOCK));
        let launch = Launch::linear(n, BLOCK)?;
        let blocks = launch.block_count();
        let step = |step| {
            let (threads, words) = active(step);
            warps(threads, |_, lanes| Progression { first: 0, step: 4 * words, lanes, width: 4 }.shared())
        };
        let tree: Counts = [1, 2, 4, 8, 16, 32, 64, 128].into_iter().map(step).sum();
        let fill = warps(block, |_, lanes| Progression::linear(0, lanes, 4).shared());
        // Of each element one addition a step, and the reference's rounding.
        let tolerance = bound(8 + 1, block);
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", n, fraction)?)
            .buffer(Buffer::output("dst", blocks, move |b| sum(b * block..n.min((b + 1) * block)))?.within(tolerance))
            .scalar("n", n)
            .bytes(product("the number of bytes", &[4, n])? + 4 * blocks)
            .loads("src", 4, warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global()))
            .stores("tile", 4, (fill + tree) * blocks)
            .loads("tile", 4, (tree * 2 + LANE.shared()) * blocks)
            .stores("dst", 4, LANE.global() * blocks))
    }

    /// A grid-stride sum of `n` elements, `vector` at a time, before its threads' sums come together.
    fn strided(n: u64, launch: Launch, vector: u64) -> Result<Plan, PlanError> {
        let (vectors, tail, width) = (n / vector, n % vector, 4 * vector);
        let whole = warps(vectors, |warp, lanes| Progression::linear(32 * warp * width, lanes, width).global());
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", n, fraction)?)
            .scalar("n", n)
            .loads("src", width as u32, whole)
            .loads("src", 4, Progression::linear(4 * (n - tail), tail, 4).global()))
    }

    /// The grid of a grid-stride sum, and the additions that an element goes through there and in its warp: one an
    /// iteration, two more within a vector, one for the tail, five shuffles, and the reference's rounding.
    fn grid(case: &Case, vector: u64) -> Result<(Launch, u64), PlanError> {
        let vectors = case.elements() / vector;
        let launch = Launch::grid_stride(vectors, BLOCK, 8 * case.sm_count)?;
        Ok((launch, vectors.div_ceil(launch.threads()) + 2 + 1 + 5 + 1))
    }

    fn atomic(case: &Case, vector: u64) -> Result<Plan, PlanError> {
        let n = case.elements();
        let (launch, additions) = grid(case, vector)?;
        let grid_warps = launch.threads() / 32;
        let tolerance = bound(additions + grid_warps, n);
        Ok(strided(n, launch, vector)?
            .buffer(Buffer::zeroed("dst", 1, move |_| sum(0..n))?.within(tolerance))
            .bytes(product("the number of bytes", &[4, n])? + 4)
            .atomics("dst", 4, LANE.global() * grid_warps))
    }

    /// What a block does to bring its warps' sums together.
    fn by_blocks(plan: Plan) -> Plan {
        let (blocks, warps) = (plan.launch.block_count(), u64::from(plan.launch.block_threads() / 32));
        plan.stores("sums", 4, LANE.shared() * warps * blocks)
            .loads("sums", 4, Progression::linear(0, warps, 4).shared() * blocks)
    }

    /// As [`grid`], of tiles: an element goes through four additions in its tile instead of two in its vector.
    fn tiles(case: &Case) -> Result<(Launch, u64), PlanError> {
        let launch = Launch::grid_stride((case.elements() / 4).div_ceil(4), TILE as u32 / 4, 4 * case.sm_count)?;
        Ok((launch, (case.elements() / 4).div_ceil(4 * launch.threads()) + 4 + 1 + 5 + 1))
    }

    fn atomic_a_block(case: &Case, (launch, additions): (Launch, u64)) -> Result<Plan, PlanError> {
        let (n, blocks) = (case.elements(), launch.block_count());
        Ok(by_blocks(strided(n, launch, 4)?)
            .buffer(Buffer::zeroed("dst", 1, move |_| sum(0..n))?.within(bound(additions + 5 + blocks, n)))
            .bytes(product("the number of bytes", &[4, n])? + 4)
            .atomics("dst", 4, LANE.global() * blocks))
    }

    fn partials(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        let (launch, additions) = grid(case, 4)?;
        let (blocks, threads, block) = (launch.block_count(), launch.threads(), u64::from(BLOCK));
        // Every `threads` vectors the block has its 256 again; the first one takes the tail.
        let partial = move |b: u64| {
            let vectors = (b * block..n / 4).step_by(threads as usize).flat_map(move |v| v..(n / 4).min(v + block));
            let tail = if b == 0 { n - n % 4..n } else { 0..0 };
            sum(vectors.flat_map(|v| 4 * v..4 * v + 4).chain(tail))
        };
        let most = (n / 4).div_ceil(threads) * 4 * block + 3;
        Ok(by_blocks(strided(n, launch, 4)?)
            .stores("dst", 4, LANE.global() * blocks)
            .buffer(Buffer::output("dst", blocks, partial)?.within(bound(additions + 5, most)))
            .bytes(product("the number of bytes", &[4, n])? + 4 * blocks))
    }

    fn last(case: &Case) -> Result<Plan, PlanError> {
        let n = grid(case, 4)?.0.block_count();
        let additions = n.div_ceil(BLOCK.into()) + 5 + 5 + 1;
        Ok(by_blocks(strided(n, Launch::linear(1, BLOCK)?, 1)?)
            .stores("dst", 4, LANE.global())
            .buffer(Buffer::output("dst", 1, move |_| sum(0..n))?.within(bound(additions, n)))
            .bytes(4 * n + 4))
    }
}
