//! Template: say here in a sentence what this family of access patterns shows, and draw it.
//!
//! ```text
//!  a warp's load:   lane  0  1  2  …  31
//!                         ■  ■  ■  …  ■     one 128-byte line, 4 sectors, every byte used
//! ```

use crate::device::prelude::*;

/// A copy, an element a thread: say here in a sentence what this kernel does.
///
/// **Look for** 4 sectors a request: say which counts show it. **Cost** none: say what it takes in return.
#[kernel]
pub unsafe fn template_variant(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        // Each warp loads one line and stores one line.
        dst.store(i, src.load(i));
    }
}

family! {
    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "template",
        summary: "a copy so far, an element a thread",
        axes: &[Axis::ELEMENTS],
        kernels: &[
            Entry { kernel: template_variant::KERNEL, plan },
        ],
    };

    /// What the launch needs and what must come of it: each buffer and each value of the kernel has a line of its name.
    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        // Element `i` of the reference: what the CPU says that `dst` holds afterwards.
        let reference = |i| noise(i);
        // Warp by warp the bytes that its lanes touch: 128 from byte `128 * warp` on, fewer in the last one.
        let line = warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global());
        Ok(Plan::new(Launch::linear(n, 256)?)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::output("dst", n, reference)?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", 4, line)
            .stores("dst", 4, line))
    }
}
