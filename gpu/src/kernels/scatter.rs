//! Scatter: every lane reads beside its neighbours, and writes where an index sends it.
//!
//! ```text
//!  a warp's load:    ■ ■ ■ ■ … ■     one line
//!  a warp's store:   . ■ . . ■ … ■   random: up to 32 sectors in 32 lines, 4 bytes of each
//! ```

use crate::device::prelude::*;

/// An element a thread, to where its index says: `dst[index[i]] = src[i]`.
///
/// The launch contract: `index` holds each number below `n` once, or two threads write the same element.
///
/// **Look for** the sectors of the gather with the same indices, now on the store. **Cost** more than the gather: a
/// sector of which 4 bytes are written is merged in the L2, and goes to memory whole.
#[kernel]
pub unsafe fn scatter_indexed(src: Global<f32>, index: Global<u32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        // The index and the value are a line each; the store goes wherever the indices point.
        dst.store(index.load(i) as usize, src.load(i));
    }
}

/// Like [`scatter_indexed`], with four elements a thread: four indices and four values in one load each, then four stores.
///
/// **Look for** a quarter of the requests for indices and values, 16 sectors each; and 16 sectors a store with sorted indices
/// instead of 4, since its lanes are four elements apart. **Cost** as of `gather_vec4`: alignment, a tail of up to 3, and
/// nothing gained with random indices.
#[kernel]
pub unsafe fn scatter_vec4(src: Global<f32>, index: Global<u32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n / 4 {
        // Four lines of each a warp.
        let (to, value) = (index.cast::<U32x4>().load(i), src.cast::<F32x4>().load(i));
        // Four stores to wherever the indices point.
        dst.store(to.x as usize, value.x);
        dst.store(to.y as usize, value.y);
        dst.store(to.z as usize, value.z);
        dst.store(to.w as usize, value.w);
    }
    if i < n % 4 {
        // The first lanes take what is left.
        let last = n - n % 4 + i;
        dst.store(index.load(last) as usize, src.load(last));
    }
}

family! {
    use super::gather::{ELEMENTS, INDICES, Indices, side_by_side};

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "scatter",
        summary: "sequential reads, indexed writes: the gather turned round, with the same indices",
        axes: &[ELEMENTS, INDICES],
        kernels: &[
            Entry { kernel: scatter_indexed::KERNEL, plan: |case| plan(case, 1) },
            Entry { kernel: scatter_vec4::KERNEL, plan: |case| plan(case, 4) },
        ],
    };

    fn plan(case: &Case, vector: u64) -> Result<Plan, PlanError> {
        let (n, indices) = (case.elements(), Indices::of(case));
        let plan = Plan::new(Launch::linear(n.div_ceil(vector), 256)?)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::input("index", n, move |i| indices.index(i) as u32)?)
            .buffer(Buffer::output("dst", n, move |i| noise(indices.position(i)))?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[12, n])?)
            .stores("dst", 4, indices.counts(vector));
        Ok(side_by_side(n, vector).into_iter().fold(plan, |plan, (width, counts)| {
            plan.loads("src", width, counts).loads("index", width, counts)
        }))
    }
}
