//! Strided: neighbours in the warp are `stride` elements apart.
//!
//! ```text
//!  stride 2:   ■ . ■ . ■ . … ■ .     2 lines, 8 sectors, half of every sector unused
//!  stride 8:   ■ . . . . . . . ■ …   8 lines, 32 sectors, one element used of each: as bad as it gets
//! ```

use crate::device::prelude::*;

/// Twice every `stride`-th element of an input `stride` times as long.
///
/// **Look for** `min(4 * stride, 32)` sectors a request instead of 4. **Cost** the memory moves whole sectors, so from
/// stride 8 on it moves eight times the bytes that are used.
#[kernel]
pub unsafe fn strided_read(src: Global<f32>, dst: GlobalMut<f32>, n: usize, stride: usize) {
    let i = thread::index_x();
    if i < n {
        // The load spreads over `stride` lines, up to 32; the store fills one.
        dst.store(i, src.load(i * stride) * 2.0);
    }
}

/// Like [`strided_read`], as a grid-stride copy that reaches the same element through warp and lane.
///
/// **Look for** the same sectors: the formula is `i * stride` in other words. **Cost** its divisions by 32 are shifts; the
/// loop keeps fewer loads in flight.
#[kernel]
pub unsafe fn strided_copy(src: Global<f32>, dst: GlobalMut<f32>, n: usize, stride: usize) {
    for i in steps(thread::index_x()..n, thread::count_x()) {
        let from = (i % 32) * stride + (i / 32) * 32 * stride;
        if from < n * stride {
            // The load spreads over `stride` lines, up to 32; the store fills one.
            dst.store(i, src.load(from));
        }
    }
}

family! {
    const STRIDE: Axis = Axis::counted(
        "stride",
        "Strides in elements, from 1",
        1,
        u64::MAX,
        &[Value::Count(1), Value::Count(2), Value::Count(4), Value::Count(8), Value::Count(16), Value::Count(32)],
    );

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "strided",
        summary: "lanes a stride apart: from 4 sectors a request to 32",
        axes: &[Axis::ELEMENTS, STRIDE],
        kernels: &[
            Entry { kernel: strided_read::KERNEL, plan: |case| plan(case, Launch::linear(case.elements(), 256)?, 2.0) },
            Entry {
                kernel: strided_copy::KERNEL,
                plan: |case| plan(case, Launch::grid_stride(case.elements(), 256, 8 * case.sm_count)?, 1.0),
            },
        ],
    };

    fn plan(case: &Case, launch: Launch, factor: f32) -> Result<Plan, PlanError> {
        let (n, stride) = (case.elements(), case.count("stride"));
        let source = product("the input of elements times stride", &[n, stride])?;
        let loads = |warp, lanes| Progression { first: 128 * warp * stride, step: 4 * stride, lanes, width: 4 }.global();
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", source, noise)?)
            .buffer(Buffer::output("dst", n, move |i| noise(i * stride) * factor)?)
            .scalar("n", n)
            .scalar("stride", stride)
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", 4, warps(n, loads))
            .stores("dst", 4, warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global())))
    }
}
