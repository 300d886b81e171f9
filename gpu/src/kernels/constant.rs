//! Constant: a table that every thread goes through, from global and from constant memory.
//!
//! ```text
//!  lanes   0 1 2 … 31       lanes   0 1 2 … 31
//!          \ | | … /                | | | … |
//!          table[k]  1 pass         table[k + lane]  constant memory: 32 passes
//! ```

use crate::device::prelude::*;

const TERMS: u32 = 64;

/// All lanes read the same element of a table in global memory, and then the next.
///
/// **Look for** 1 sector a request: one address for the whole warp. **Cost** each request goes through the L1's tags, as
/// any other load.
#[kernel]
pub unsafe fn constant_global(src: Global<f32>, table: Global<f32>, dst: GlobalMut<f32>, n: usize, terms: u32) {
    let i = thread::index_x();
    if i < n {
        // A warp reads one line, and stores one line.
        let (x, mut sum) = (src.load(i), 0.0);
        for k in steps(0..terms, 1) {
            // One word for the whole warp.
            sum = fma(table.load(k as usize), x, sum);
        }
        dst.store(i, sum);
    }
}

/// Like [`constant_global`], through the read-only path (`ld.global.nc`, CUDA's `__ldg`).
///
/// **Look for** the same counts. **Cost** the same: the path has been the L1's since compute capability 7.0.
#[kernel]
pub unsafe fn constant_nc(src: Global<f32>, table: Global<f32>, dst: GlobalMut<f32>, n: usize, terms: u32) {
    let i = thread::index_x();
    if i < n {
        // A warp reads one line, and stores one line.
        let (x, mut sum) = (src.load(i), 0.0);
        for k in steps(0..terms, 1) {
            // One word for the whole warp.
            sum = fma(table.load_nc(k as usize), x, sum);
        }
        dst.store(i, sum);
    }
}

/// Like [`constant_nc`], with the table in constant memory (`ld.const`, CUDA's `__constant__`).
///
/// **Look for** 1 pass a request, in a cache of its own: the L1 is left to the data. **Cost** 64 KiB for all constants of
/// a module, filled before the launch.
#[kernel]
pub unsafe fn constant_uniform(src: Global<f32>, dst: GlobalMut<f32>, n: usize, terms: u32) {
    let table = constant!([f32; TERMS as usize]);
    let i = thread::index_x();
    if i < n {
        // A warp reads one line, and stores one line.
        let (x, mut sum) = (src.load(i), 0.0);
        for k in steps(0..terms, 1) {
            // One word for the whole warp: one pass.
            sum = fma(table.load(k), x, sum);
        }
        dst.store(i, sum);
    }
}

/// Like [`constant_uniform`], with each lane starting at another element.
///
/// **Look for** 32 passes a request: constant memory serves one address at a time. **Cost** of what shared memory and the
/// L1 do in one.
#[kernel]
pub unsafe fn constant_divergent(src: Global<f32>, dst: GlobalMut<f32>, n: usize, terms: u32) {
    let table = constant!([f32; TERMS as usize]);
    let (i, lane) = (thread::index_x(), warp::lane_id());
    if i < n {
        // A warp reads one line, and stores one line.
        let (x, mut sum) = (src.load(i), 0.0);
        for k in steps(0..terms, 1) {
            // 32 words for the warp: 32 passes.
            sum = fma(table.load((k + lane) % TERMS), x, sum);
        }
        dst.store(i, sum);
    }
}

family! {
    const ELEMENTS: Axis = Axis { in_simulator: &[Value::Count(1 << 14)], ..Axis::ELEMENTS };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "constant",
        summary: "a table that all lanes read alike, through the L1, read-only and from constant memory; then not alike",
        axes: &[ELEMENTS],
        kernels: &[
            Entry { kernel: constant_global::KERNEL, plan: from_global },
            Entry { kernel: constant_nc::KERNEL, plan: from_global },
            Entry { kernel: constant_uniform::KERNEL, plan: |case| from_constant(case, |_| 1) },
            Entry { kernel: constant_divergent::KERNEL, plan: |case| from_constant(case, |lanes| lanes) },
        ],
    };

    /// A whole number below 256: every sum is exact.
    fn byte(i: u64) -> f32 {
        (noise(i) as u32 % 256) as f32
    }

    /// Element `k` of the table.
    fn term(k: u64) -> f32 {
        (k + 1) as f32
    }

    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        let terms = u64::from(TERMS);
        let line = |warp, lanes| Progression::linear(128 * warp, lanes, 4).global();
        Ok(Plan::new(Launch::linear(n, 256)?)
            .buffer(Buffer::input("src", n, byte)?)
            .buffer(Buffer::output("dst", n, move |i| byte(i) * (terms * (terms + 1) / 2) as f32)?)
            .scalar("n", n)
            .scalar("terms", TERMS)
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", 4, warps(n, line))
            .stores("dst", 4, warps(n, line)))
    }

    fn from_global(case: &Case) -> Result<Plan, PlanError> {
        let word = |_, lanes| Progression { first: 0, step: 0, lanes, width: 4 }.global();
        Ok(plan(case)?
            .buffer(Buffer::input("table", TERMS.into(), term)?)
            .loads("table", 4, warps(case.elements(), word) * TERMS.into()))
    }

    fn from_constant(case: &Case, addresses: fn(u64) -> u64) -> Result<Plan, PlanError> {
        let request = |_, lanes| constant(lanes, addresses(lanes));
        Ok(plan(case)?
            .buffer(Buffer::constant("table", TERMS.into(), term)?)
            .loads("table", 4, warps(case.elements(), request) * TERMS.into()))
    }
}
