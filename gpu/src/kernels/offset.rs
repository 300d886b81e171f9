//! Offset: coalesced, but off the boundary of a line.
//!
//! ```text
//!  offset 4:   . . . . ■ ■ … ■ | ■ ■ ■ ■ . . … .     32 neighbours that touch two lines,
//!              line 0          | line 1              but hardly more sectors
//! ```

use crate::device::prelude::*;

/// Twice each element, read `offset` elements further on.
///
/// **Look for** 5 sectors and 2 lines a request where `offset` is no multiple of 8; 4 sectors in 2 lines where it is one of
/// 8 but not of 32. **Cost** little: the next warp finds the shared sector in the L1 or the L2.
#[kernel]
pub unsafe fn offset_read(src: Global<f32>, dst: GlobalMut<f32>, n: usize, offset: usize) {
    let i = thread::index_x();
    if i < n {
        // The load starts in the middle of a line and ends in the next; the store fills one line.
        dst.store(i, src.load(i + offset) * 2.0);
    }
}

family! {
    const OFFSET: Axis = Axis::counted(
        "offset",
        "Offsets in elements, 0 to 32",
        0,
        32,
        &[Value::Count(0), Value::Count(1), Value::Count(4), Value::Count(8), Value::Count(31), Value::Count(32)],
    );

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "offset",
        summary: "consecutive elements from an address off the line's boundary",
        axes: &[Axis::ELEMENTS, OFFSET],
        kernels: &[Entry { kernel: offset_read::KERNEL, plan }],
    };

    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let (n, offset) = (case.elements(), case.count("offset"));
        let source = n.checked_add(offset).ok_or_else(|| PlanError(format!("{n} elements at offset {offset} overflow 64 bits")))?;
        Ok(Plan::new(Launch::linear(n, 256)?)
            .buffer(Buffer::input("src", source, noise)?)
            .buffer(Buffer::output("dst", n, move |i| noise(i + offset) * 2.0)?)
            .scalar("n", n)
            .scalar("offset", offset)
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", 4, warps(n, |warp, lanes| Progression::linear(4 * (32 * warp + offset), lanes, 4).global()))
            .stores("dst", 4, warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global())))
    }
}
