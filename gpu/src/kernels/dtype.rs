//! Types: a request is as many sectors as its bytes fill, so the width of an element decides what a warp moves.
//!
//! ```text
//!            bytes a lane     1   2   4   8  16
//!  stride 1  sectors          1   2   4   8  16
//!            lines            1   1   1   2   4
//!  stride 2  sectors          2   4   8  16  32
//!            lines            1   1   2   4   8
//! ```

use crate::device::prelude::*;

/// Elements of 1 byte: every `stride`-th of an input `stride` times as long, one a thread.
///
/// **Look for** 1 sector a request, for 32 lanes; 2 at stride 2, still in one line. **Cost** the request moves a
/// quarter of a line: four times as many instructions as `f32` for the same bytes.
#[kernel]
pub unsafe fn dtype_i8(src: Global<i8>, dst: GlobalMut<i8>, n: usize, stride: usize) {
    let i = thread::index_x();
    if i < n {
        // A warp loads `stride` sectors and stores one.
        dst.store(i, src.load(i * stride));
    }
}

/// Like [`dtype_i8`], with 2 bytes an element.
///
/// **Look for** 2 sectors, at stride 2 all 4 of a line. **Cost** half a line a request.
#[kernel]
pub unsafe fn dtype_f16(src: Global<f16>, dst: GlobalMut<f16>, n: usize, stride: usize) {
    let i = thread::index_x();
    if i < n {
        // A warp loads from one line, 2 sectors at stride 1, and stores half a line.
        dst.store(i, src.load(i * stride));
    }
}

/// Like [`dtype_f16`], with 4 bytes: the width at which 32 lanes fill a line.
///
/// **Look for** 4 sectors, at stride 2 8 in 2 lines. **Cost** none at stride 1.
#[kernel]
pub unsafe fn dtype_f32(src: Global<f32>, dst: GlobalMut<f32>, n: usize, stride: usize) {
    let i = thread::index_x();
    if i < n {
        // A warp loads `stride` lines and stores one.
        dst.store(i, src.load(i * stride));
    }
}

/// Like [`dtype_f32`], with 8 bytes.
///
/// **Look for** 8 sectors in 2 lines, the ideal of 256 bytes; twice as much at stride 2. **Cost** none at stride 1: two
/// lines are no sign of waste, since the lanes want as much.
#[kernel]
pub unsafe fn dtype_f64(src: Global<f64>, dst: GlobalMut<f64>, n: usize, stride: usize) {
    let i = thread::index_x();
    if i < n {
        // A warp loads 2 lines at stride 1, 4 at stride 2, and stores 2.
        dst.store(i, src.load(i * stride));
    }
}

/// Like [`dtype_f64`], with 16 bytes, the most a lane can ask for at once.
///
/// **Look for** 16 sectors in 4 lines; at stride 2 32 in 8, every second half sector unused. **Cost** as for `f64`, and
/// from here on a stride of 2 is the worst there is: a sector a lane.
#[kernel]
pub unsafe fn dtype_f32x4(src: Global<F32x4>, dst: GlobalMut<F32x4>, n: usize, stride: usize) {
    let i = thread::index_x();
    if i < n {
        // A warp loads 4 lines at stride 1, 8 at stride 2, and stores 4.
        dst.store(i, src.load(i * stride));
    }
}

family! {
    /// Fewer than elsewhere on a GPU: the widest elements take 16 bytes each.
    const ELEMENTS: Axis =
        Axis { on_gpu: &[Value::Count(1 << 25)], in_simulator: &[Value::Count(1 << 18)], ..Axis::ELEMENTS };

    const STRIDE: Axis =
        Axis::counted("stride", "Strides in elements, 1 or 2, for dtype", 1, 2, &[Value::Count(1), Value::Count(2)]);

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "dtype",
        summary: "elements of 1, 2, 4, 8 and 16 bytes: lines and sectors by type, side by side and every second one",
        axes: &[ELEMENTS, STRIDE],
        kernels: &[
            Entry { kernel: dtype_i8::KERNEL, plan: |case| plan(case, 1, noise_i8) },
            Entry { kernel: dtype_f16::KERNEL, plan: |case| plan(case, 1, noise_f16) },
            Entry { kernel: dtype_f32::KERNEL, plan: |case| plan(case, 1, noise) },
            Entry { kernel: dtype_f64::KERNEL, plan: |case| plan(case, 1, noise_f64) },
            Entry { kernel: dtype_f32x4::KERNEL, plan: |case| plan(case, 4, noise) },
        ],
    };

    /// Elements of `parts` times `T`, of which the buffers hold `value`.
    fn plan<T: ElementType + 'static>(case: &Case, parts: u64, value: fn(u64) -> T) -> Result<Plan, PlanError> {
        let (n, stride) = (case.elements(), case.count("stride"));
        let width = parts * T::ELEMENT.size();
        let source = product("the input of elements times stride", &[parts, n, stride])?;
        let counts = |stride| {
            warps(n, |warp, lanes| {
                Progression { first: 32 * warp * stride * width, step: stride * width, lanes, width }.global()
            })
        };
        Ok(Plan::new(Launch::linear(n, 256)?)
            .buffer(Buffer::input("src", source, value)?)
            .buffer(Buffer::output("dst", parts * n, move |i| value(i / parts * stride * parts + i % parts))?)
            .scalar("n", n)
            .scalar("stride", stride)
            .bytes(product("the number of bytes", &[2, n, width])?)
            .loads("src", width as u32, counts(stride))
            .stores("dst", width as u32, counts(1)))
    }
}
