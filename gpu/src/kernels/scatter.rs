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

family! {
    use super::gather::{ELEMENTS, INDICES, Indices};

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "scatter",
        summary: "sequential reads, indexed writes: the gather turned round, with the same indices",
        axes: &[ELEMENTS, INDICES],
        kernels: &[Entry { kernel: scatter_indexed::KERNEL, plan }],
    };

    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let (n, indices) = (case.elements(), Indices::of(case));
        let line = warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global());
        Ok(Plan::new(Launch::linear(n, 256)?)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::input("index", n, move |i| indices.index(i) as u32)?)
            .buffer(Buffer::output("dst", n, move |i| noise(indices.position(i)))?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[12, n])?)
            .loads("src", 4, line)
            .loads("index", 4, line)
            .stores("dst", 4, indices.counts()))
    }
}
