//! Vectorize: the same bytes in fewer, wider accesses.
//!
//! ```text
//!  bytes a lane       2    4    8   16
//!  bytes a request   64  128  256  512     every sector used by all four: only the number of requests differs
//! ```
//!
//! The buffers are those of the first kernel, elements of 2 bytes; the others see them as elements 2, 4 and 8 times as
//! wide, and move what is left at the end as the first does.

use crate::device::prelude::*;

/// An element of 2 bytes a thread.
///
/// **Look for** 2 sectors a request, both of them ideal: the counts of one request show no waste. **Cost** twice the
/// requests of 4-byte elements, each with an instruction and an address of its own for every lane.
#[kernel]
pub unsafe fn vectorize_2_bytes(src: Global<f16>, dst: GlobalMut<f16>, n: usize) {
    let i = thread::index_x();
    if i < n {
        // A warp moves half a line.
        dst.store(i, src.load(i));
    }
}

/// Like [`vectorize_2_bytes`], with 4 bytes a thread: two elements at once.
///
/// **Look for** half the requests, 4 sectors each. **Cost** alignment to 4 bytes, and an odd element is left over.
#[kernel]
pub unsafe fn vectorize_4_bytes(src: Global<f16>, dst: GlobalMut<f16>, n: usize) {
    let i = thread::index_x();
    if i < n / 2 {
        // A warp moves one line.
        dst.cast::<f32>().store(i, src.cast::<f32>().load(i));
    }
    rest::<2>(src, dst, n, i);
}

/// Like [`vectorize_4_bytes`], with 8 bytes a thread.
///
/// **Look for** a quarter of the requests, 8 sectors each. **Cost** alignment to 8 bytes, and up to 3 elements are left
/// over.
#[kernel]
pub unsafe fn vectorize_8_bytes(src: Global<f16>, dst: GlobalMut<f16>, n: usize) {
    let i = thread::index_x();
    if i < n / 4 {
        // A warp moves two lines.
        dst.cast::<F32x2>().store(i, src.cast::<F32x2>().load(i));
    }
    rest::<4>(src, dst, n, i);
}

/// Like [`vectorize_8_bytes`], with 16 bytes a thread: the widest access.
///
/// **Look for** an eighth of the requests, 16 sectors each. **Cost** alignment to 16 bytes, up to 7 elements left over,
/// and a quarter of the threads of 4-byte accesses, each with four registers for its data.
#[kernel]
pub unsafe fn vectorize_16_bytes(src: Global<f16>, dst: GlobalMut<f16>, n: usize) {
    let i = thread::index_x();
    if i < n / 8 {
        // A warp moves four lines.
        dst.cast::<F32x4>().store(i, src.cast::<F32x4>().load(i));
    }
    rest::<8>(src, dst, n, i);
}

/// The elements that fill no vector of `PARTS`.
#[device]
unsafe fn rest<const PARTS: usize>(src: Global<f16>, dst: GlobalMut<f16>, n: usize, i: usize) {
    if i < n % PARTS {
        // The first warp's first lanes move what is left.
        let last = n - n % PARTS + i;
        dst.store(last, src.load(last));
    }
}

family! {
    /// As many bytes by default as the copies of 4-byte elements move.
    const ELEMENTS: Axis =
        Axis { on_gpu: &[Value::Count(1 << 27)], in_simulator: &[Value::Count(1 << 20)], ..Axis::ELEMENTS };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "vectorize",
        summary: "the same bytes copied by 2, 4, 8 and 16 bytes a thread",
        axes: &[ELEMENTS],
        kernels: &[
            Entry { kernel: vectorize_2_bytes::KERNEL, plan: |case| plan(case, 1) },
            Entry { kernel: vectorize_4_bytes::KERNEL, plan: |case| plan(case, 2) },
            Entry { kernel: vectorize_8_bytes::KERNEL, plan: |case| plan(case, 4) },
            Entry { kernel: vectorize_16_bytes::KERNEL, plan: |case| plan(case, 8) },
        ],
    };

    fn plan(case: &Case, parts: u64) -> Result<Plan, PlanError> {
        let n = case.elements();
        let launch = Launch::linear(n / parts, 256)?;
        let (width, tail) = (2 * parts, n % parts);
        let whole = warps(n / parts, |warp, lanes| Progression::linear(32 * warp * width, lanes, width).global());
        let rest = Progression::linear(2 * (n - tail), tail, 2).global();
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", n, noise_f16)?)
            .buffer(Buffer::output("dst", n, noise_f16)?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[4, n])?)
            .loads("src", width as u32, whole)
            .stores("dst", width as u32, whole)
            .loads("src", 2, rest)
            .stores("dst", 2, rest))
    }
}
