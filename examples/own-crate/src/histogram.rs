//! Histogram: how often each of 64 values occurs.
//!
//! ```text
//!  values of a warp:  5 5 5 5 9 9 9 9 …   eight bins, four lanes each:  the four additions to a bin are made one after another
//! ```

use busload::prelude::*;

/// Values that are told apart.
pub const BINS: u32 = 64;

/// Each lane adds to its bin in global memory.
///
/// **Look for** an atomic to global memory for each element. **Cost** all blocks add to the same few lines.
#[kernel]
pub unsafe fn histogram_global(src: Global<u32>, bins: GlobalMut<u32>, n: usize) {
    for i in steps(thread::index_x()..n, thread::count_x()) {
        // A warp loads one line, and adds to eight bins.
        bins.atomic_add(src.load(i) as usize, 1);
    }
}

/// Like [`histogram_global`], with bins of the block's own in shared memory, which are added to the global ones at its end.
///
/// **Look for** 64 global atomics a block. **Cost** 256 bytes of shared memory and two barriers.
#[kernel]
pub unsafe fn histogram_shared(src: Global<u32>, bins: GlobalMut<u32>, n: usize) {
    let own = shared!([u32; 64]);
    let thread = thread::thread_idx_x();
    if thread < BINS {
        own.store(thread, 0);
    }
    sync_threads();
    for i in steps(thread::index_x()..n, thread::count_x()) {
        own.atomic_add(src.load(i), 1);
    }
    sync_threads();
    if thread < BINS {
        bins.atomic_add(thread as usize, own.load(thread));
    }
}

/// Like [`histogram_shared`], with bins of each warp's own.
///
/// **Look for** as many requests; the warps of a block no longer wait for one another at a bin. **Cost** 2 KiB of shared memory.
#[kernel]
pub unsafe fn histogram_warps(src: Global<u32>, bins: GlobalMut<u32>, n: usize) {
    let own = shared!([u32; 64 * 8]);
    let thread = thread::thread_idx_x();
    let first = thread / 32 * BINS;
    for bin in steps(thread..8 * BINS, 256) {
        own.store(bin, 0);
    }
    sync_threads();
    for i in steps(thread::index_x()..n, thread::count_x()) {
        own.atomic_add(first + src.load(i), 1);
    }
    sync_threads();
    if thread < BINS {
        let mut sum = 0;
        for warp in steps(0..8, 1) {
            sum += own.load(thread + warp * BINS);
        }
        bins.atomic_add(thread as usize, sum);
    }
}

family! {
    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "histogram",
        summary: "how often each of 64 values occurs: bins in global memory, of the block, of the warp",
        axes: &[Axis::ELEMENTS],
        kernels: &[
            Entry { kernel: histogram_global::KERNEL, plan },
            Entry { kernel: histogram_shared::KERNEL, plan },
            Entry { kernel: histogram_warps::KERNEL, plan },
        ],
    };

    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        Ok(Plan::new(Launch::grid_stride(n, 256, 8 * case.sm_count)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::zeroed("bins", BINS.into(), move |bin| occurrences(bin, n))?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[4, n])?))
    }

    /// Element `i` of the input: four neighbours are alike.
    pub fn value(i: u64) -> u32 {
        (i / 4 % u64::from(BINS)) as u32
    }

    /// How many of the first `n` elements are `bin`.
    pub fn occurrences(bin: u64, n: u64) -> u32 {
        let (round, bins) = (4 * u64::from(BINS), n / (4 * u64::from(BINS)));
        (4 * bins + (n % round).saturating_sub(4 * bin).min(4)) as u32
    }
}
