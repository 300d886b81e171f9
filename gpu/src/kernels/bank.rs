//! Bank: 32 banks of 4 bytes serve one word each a wavefront, and lanes that want different words of one bank wait.
//!
//! ```text
//!  bank         0  1  2  3  …  31
//!  stride 1     ■  ■  ■  ■  …  ■      1 wavefront
//!  stride 2     2  .  2  .  …  .      2: lanes 0 and 16 want different words of bank 0
//!  stride 32    32 .  .  .  …  .      32
//!  stride 33    ■  ■  ■  ■  …  ■      1 again
//! ```
//!
//! Each access is repeated, so that on a GPU shared memory sets the time. GB/s are those of global memory: a result a
//! thread.

use crate::device::prelude::*;

/// How often each warp makes its access.
const TIMES: u32 = 64;

/// Loads of one address by all lanes, `words` words further on each time.
///
/// **Look for** 1 wavefront: a word that several lanes want is sent once. **Cost** none.
#[kernel]
pub unsafe fn bank_broadcast(dst: GlobalMut<f32>, n: usize, words: u32) {
    load_repeatedly(dst, n, TIMES * words, 0, words);
}

/// Like [`bank_broadcast`], with `words` addresses side by side; the lanes that are left all want the last.
///
/// **Look for** 1 wavefront, however many words there are and however many lanes share them. **Cost** none.
#[kernel]
pub unsafe fn bank_multicast(dst: GlobalMut<f32>, n: usize, words: u32) {
    load_repeatedly(dst, n, words + TIMES, warp::lane_id().min(words - 1), 1);
}

/// Like [`bank_multicast`], with the `words` addresses all in one bank.
///
/// **Look for** `words` wavefronts, up to 32: different words conflict, not lanes. **Cost** the SM sends one
/// wavefront a cycle, so a load of 32 holds up every other warp's.
#[kernel]
pub unsafe fn bank_multicast_one_bank(dst: GlobalMut<f32>, n: usize, words: u32) {
    // By 3 words each time: neighbours from an aligned word on would be put together into wider loads by ptxas.
    load_repeatedly(dst, n, 32 * 32 + 3 * TIMES, 32 * warp::lane_id().min(words - 1), 3);
}

/// Like [`bank_multicast`], with a word for each lane, `words` words apart.
///
/// **Look for** as many wavefronts as the greatest common divisor of `words` and 32: 1 at every odd stride. **Cost** a
/// wavefront for each way of the conflict.
#[kernel]
pub unsafe fn bank_load(dst: GlobalMut<f32>, n: usize, words: u32) {
    load_repeatedly(dst, n, 31 * words + TIMES, warp::lane_id() * words, 1);
}

/// The body of the 4-byte loads: word `first` of a tile of `size` words, and `step` words further on each time.
#[device]
unsafe fn load_repeatedly(dst: GlobalMut<f32>, n: usize, size: u32, first: u32, step: u32) {
    let tile = dynamic_shared::<f32>();
    for word in steps(thread::thread_idx_x()..size, thread::block_dim_x()) {
        // A warp fills 32 banks; each word holds its number.
        tile.store(word, word as f32);
    }

    // The words read below were written by other warps.
    sync_threads();

    let i = thread::index_x();
    if i < n {
        let mut sum = 0.0;
        for time in steps(0..TIMES, 1) {
            // All lanes move on together, so the banks turn and the conflict stays.
            sum += tile.load(first + time * step);
        }
        // Each warp stores one line.
        dst.store(i, sum);
    }
}

/// Like [`bank_load`], with 8 bytes a lane, lanes `words` such elements apart.
///
/// **Look for** 2 wavefronts at odd strides, one for each half of the warp. **Cost** none: they bring twice the bytes.
#[kernel]
pub unsafe fn bank_load_vec2(dst: GlobalMut<f32>, n: usize, words: u32) {
    let tile = dynamic_shared::<F32x2>();
    for element in steps(thread::thread_idx_x()..31 * words + TIMES, thread::block_dim_x()) {
        // A warp fills 64 words in 2 wavefronts.
        tile.store(element, F32x2 { x: element as f32, y: 1.0 });
    }
    sync_threads();
    let i = thread::index_x();
    if i < n {
        let mut sum = 0.0;
        for time in steps(0..TIMES, 1) {
            // Half a warp at a time: 16 elements in 16 pairs of banks, if the stride is odd.
            let F32x2 { x, y } = tile.load(warp::lane_id() * words + time);
            sum += x + y;
        }
        dst.store(i, sum);
    }
}

/// Like [`bank_load_vec2`], with 16 bytes a lane, lanes `words` such elements apart.
///
/// **Look for** 4 wavefronts at odd strides, one for each quarter of the warp, and 32 at every multiple of 8. **Cost** none:
/// they bring four times the bytes.
#[kernel]
pub unsafe fn bank_load_vec4(dst: GlobalMut<f32>, n: usize, words: u32) {
    let tile = dynamic_shared::<F32x4>();
    for element in steps(thread::thread_idx_x()..31 * words + TIMES, thread::block_dim_x()) {
        // A warp fills 128 words in 4 wavefronts.
        tile.store(element, F32x4 { x: element as f32, y: 1.0, z: 2.0, w: 3.0 });
    }
    sync_threads();
    let i = thread::index_x();
    if i < n {
        let mut sum = 0.0;
        for time in steps(0..TIMES, 1) {
            // A quarter of a warp at a time: 8 elements in 8 fours of banks, if the stride is odd.
            let F32x4 { x, y, z, w } = tile.load(warp::lane_id() * words + time);
            sum += (x + y) + (z + w);
        }
        dst.store(i, sum);
    }
}

/// Stores of 4 bytes, lanes `words` words apart, each warp into words of its own.
///
/// **Look for** the wavefronts of [`bank_load`]: a store conflicts like a load. **Cost** the same.
#[kernel]
pub unsafe fn bank_store(dst: GlobalMut<f32>, n: usize, words: u32) {
    let tile = dynamic_shared::<f32>();
    let (i, own) = (thread::index_x(), thread::thread_idx_x() * words);
    for time in steps(0..TIMES, 1) {
        if i < n {
            // The same words every time, with another value.
            tile.store(own, (own + time) as f32);
        }
        // Without it ptxas would keep only the last of several stores.
        sync_warp(warp::FULL);
    }
    if i < n {
        // The last value, with the conflicts of the stores.
        dst.store(i, tile.load(own));
    }
}

/// Like [`bank_store`], with 8 bytes a lane, lanes `words` such elements apart.
///
/// **Look for** the wavefronts of [`bank_load_vec2`]. **Cost** the same.
#[kernel]
pub unsafe fn bank_store_vec2(dst: GlobalMut<f32>, n: usize, words: u32) {
    let tile = dynamic_shared::<F32x2>();
    let (i, own) = (thread::index_x(), thread::thread_idx_x() * words);
    for time in steps(0..TIMES, 1) {
        if i < n {
            // Half a warp at a time.
            tile.store(own, F32x2 { x: own as f32, y: time as f32 });
        }
        sync_warp(warp::FULL);
    }
    if i < n {
        let F32x2 { x, y } = tile.load(own);
        dst.store(i, x + y);
    }
}

/// Like [`bank_store_vec2`], with 16 bytes a lane, lanes `words` such elements apart.
///
/// **Look for** the wavefronts of [`bank_load_vec4`]. **Cost** the same.
#[kernel]
pub unsafe fn bank_store_vec4(dst: GlobalMut<f32>, n: usize, words: u32) {
    let tile = dynamic_shared::<F32x4>();
    let (i, own) = (thread::index_x(), thread::thread_idx_x() * words);
    for time in steps(0..TIMES, 1) {
        if i < n {
            // A quarter of a warp at a time.
            tile.store(own, F32x4 { x: own as f32, y: time as f32, z: 1.0, w: 2.0 });
        }
        sync_warp(warp::FULL);
    }
    if i < n {
        let F32x4 { x, y, z, w } = tile.load(own);
        dst.store(i, (x + y) + (z + w));
    }
}

family! {
    const ELEMENTS: Axis = Axis {
        on_gpu: &[Value::Count(1 << 22)],
        in_simulator: &[Value::Count(1 << 11)],
        ..Axis::ELEMENTS
    };

    const WORDS: Axis = Axis::counted(
        "words",
        "Strides in shared memory, in words or vectors, 1 to 33, for bank",
        1,
        33,
        &[
            Value::Count(1),
            Value::Count(2),
            Value::Count(3),
            Value::Count(4),
            Value::Count(5),
            Value::Count(8),
            Value::Count(16),
            Value::Count(32),
            Value::Count(33),
        ],
    );

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "bank",
        summary: "shared memory: broadcast, multicast, loads and stores at every stride, 4 to 16 bytes a lane",
        axes: &[ELEMENTS, WORDS],
        kernels: &[
            Entry {
                kernel: bank_broadcast::KERNEL,
                plan: |case| {
                    let words = case.count("words");
                    load(case, 4, times() * words, |lanes| strided(0, lanes, 4).shared_load(), move |_| words * numbers())
                },
            },
            Entry { kernel: bank_multicast::KERNEL, plan: |case| multicast(case, case.count("words") + times(), 1, 1) },
            Entry { kernel: bank_multicast_one_bank::KERNEL, plan: |case| multicast(case, 32 * 32 + 3 * times(), 32, 3) },
            Entry { kernel: bank_load::KERNEL, plan: |case| load_strided(case, 4, 0) },
            Entry { kernel: bank_load_vec2::KERNEL, plan: |case| load_strided(case, 8, 1) },
            Entry { kernel: bank_load_vec4::KERNEL, plan: |case| load_strided(case, 16, 1 + 2 + 3) },
            Entry { kernel: bank_store::KERNEL, plan: |case| store_strided(case, 4, 0) },
            Entry { kernel: bank_store_vec2::KERNEL, plan: |case| store_strided(case, 8, 0) },
            Entry { kernel: bank_store_vec4::KERNEL, plan: |case| store_strided(case, 16, 1 + 2) },
        ],
    };

    /// The tile, by the simulator's name for it.
    const TILE: &str = "dynamic shared memory";

    fn times() -> u64 {
        TIMES.into()
    }

    /// 0 + 1 + … + (`TIMES` - 1).
    fn numbers() -> u64 {
        times() * (times() - 1) / 2
    }

    /// Lanes `stride` elements apart.
    fn strided(stride: u64, lanes: u64, width: u64) -> Progression {
        Progression { first: 0, step: stride * width, lanes, width }
    }

    /// What all have in common: a tile of `size` elements of `width` bytes for each block, and a result a thread, by its
    /// place in the block.
    fn plan(
        case: &Case,
        block: u32,
        size: u64,
        width: u64,
        result: impl Fn(u64) -> u64 + Send + Sync + 'static,
    ) -> Result<Plan, PlanError> {
        let (n, words) = (case.elements(), case.count("words") as u32);
        let launch = Launch { shared_bytes: (size * width) as u32, ..Launch::linear(n, block)? };
        Ok(Plan::new(launch)
            .buffer(Buffer::output("dst", n, move |i| result(i % u64::from(block)) as f32)?)
            .scalar("n", n)
            .scalar("words", words)
            .bytes(product("the number of bytes", &[4, n])?)
            .stores("dst", 4, warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global())))
    }

    /// Loads that each cost `request`, of which a lane adds up `result`.
    fn load(
        case: &Case,
        width: u64,
        size: u64,
        request: impl Fn(u64) -> Counts,
        result: impl Fn(u64) -> u64 + Send + Sync + 'static,
    ) -> Result<Plan, PlanError> {
        let plan = plan(case, 256, size, width, move |thread| result(thread % 32))?;
        let fill = warps(size, |_, lanes| strided(1, lanes, width).shared_store()) * plan.launch.block_count();
        Ok(plan
            .stores(TILE, width as u32, fill)
            .loads(TILE, width as u32, warps(case.elements(), |_, lanes| request(lanes)) * times()))
    }

    /// The first lanes want a word each, `stride` words apart, and the others the last of those; `step` words further on
    /// each time.
    fn multicast(case: &Case, size: u64, stride: u64, step: u64) -> Result<Plan, PlanError> {
        let words = case.count("words");
        let request = |lanes: u64| Counts { lanes, ..strided(stride, lanes.min(words), 4).shared_load() };
        load(case, 4, size, request, move |lane| times() * stride * lane.min(words - 1) + step * numbers())
    }

    /// A stride of `words` elements; a vector's further components add up to `rest`.
    fn load_strided(case: &Case, width: u64, rest: u64) -> Result<Plan, PlanError> {
        let words = case.count("words");
        let request = |lanes| strided(words, lanes, width).shared_load();
        load(case, width, 31 * words + times(), request, move |lane| times() * (lane * words + rest) + numbers())
    }

    fn store_strided(case: &Case, width: u64, rest: u64) -> Result<Plan, PlanError> {
        let words = case.count("words");
        let requests = |of: fn(Progression) -> Counts| {
            warps(case.elements(), |_, lanes| of(strided(words, lanes, width)))
        };
        Ok(plan(case, 64, 63 * words + 1, width, move |thread| thread * words + times() - 1 + rest)?
            .stores(TILE, width as u32, requests(Progression::shared_store) * times())
            .loads(TILE, width as u32, requests(Progression::shared_load)))
    }
}
