//! Copy: the pattern that every other one is measured against.
//!
//! ```text
//!  a warp's load:   lane  0  1  2  …  31
//!                         ■  ■  ■  …  ■     one 128-byte line, 4 sectors, every byte used
//! ```

use crate::device::prelude::*;

/// An element a thread: neighbours in the warp are neighbours in memory.
///
/// **Look for** 4 sectors a request at 4 bytes a lane, the ideal. **Cost** a request moves only 128 bytes: on a fast
/// memory the number of requests in flight, not the memory, can set the speed.
#[kernel]
pub unsafe fn copy_coalesced(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        // Each warp loads one line and stores one line.
        dst.store(i, src.load(i));
    }
}

/// Like [`copy_coalesced`], with a grid that fills the GPU once and strides over the rest.
///
/// **Look for** the same sectors a request. **Cost** each thread waits for its load before the next iteration's, so
/// fewer bytes are in flight.
#[kernel]
pub unsafe fn copy_grid_stride(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    for i in steps(thread::index_x()..n, thread::count_x()) {
        // Each iteration moves one line a warp.
        dst.store(i, src.load(i));
    }
}

/// Like [`copy_coalesced`], with 8 bytes a lane.
///
/// **Look for** half the requests, 8 sectors each. **Cost** the buffers must be aligned to 8 bytes, and a tail is left
/// where 2 does not divide the size.
#[kernel]
pub unsafe fn copy_vec2(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n / 2 {
        // Each warp loads two lines and stores two.
        dst.cast::<F32x2>().store(i, src.cast::<F32x2>().load(i));
    }
    if i < n % 2 {
        // The first warp's first lane moves the odd element.
        let last = n - n % 2 + i;
        dst.store(last, src.load(last));
    }
}

/// Like [`copy_vec2`], with 16 bytes a lane: the widest access.
///
/// **Look for** a quarter of the requests, 16 sectors each. **Cost** alignment to 16 bytes, and a tail of up to 3.
#[kernel]
pub unsafe fn copy_vec4(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n / 4 {
        // Each warp loads four lines and stores four.
        dst.cast::<F32x4>().store(i, src.cast::<F32x4>().load(i));
    }
    if i < n % 4 {
        // The first warp's first lanes move what is left.
        let last = n - n % 4 + i;
        dst.store(last, src.load(last));
    }
}

family! {
    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "copy",
        summary: "consecutive lanes, consecutive elements: an element a thread, grid-stride, 8 and 16 bytes a lane",
        axes: &[Axis::ELEMENTS],
        kernels: &[
            Entry { kernel: copy_coalesced::KERNEL, plan: |case| plan(case, Launch::linear(case.elements(), 256)?, 1) },
            Entry {
                kernel: copy_grid_stride::KERNEL,
                plan: |case| plan(case, Launch::grid_stride(case.elements(), 256, 8 * case.sm_count)?, 1),
            },
            Entry { kernel: copy_vec2::KERNEL, plan: |case| plan(case, Launch::linear(case.elements() / 2, 256)?, 2) },
            Entry { kernel: copy_vec4::KERNEL, plan: |case| plan(case, Launch::linear(case.elements() / 4, 256)?, 4) },
        ],
    };

    fn plan(case: &Case, launch: Launch, vector: u64) -> Result<Plan, PlanError> {
        let n = case.elements();
        let (vectors, tail) = (n / vector, n % vector);
        let width = 4 * vector;
        let whole = warps(vectors, |warp, lanes| Progression::linear(32 * warp * width, lanes, width).global());
        let rest = Progression::linear(4 * (n - tail), tail, 4).global();
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::output("dst", n, noise)?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", width as u32, whole)
            .stores("dst", width as u32, whole)
            .loads("src", 4, rest)
            .stores("dst", 4, rest))
    }
}
