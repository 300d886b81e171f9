//! What kernels may use, as a table.

use super::table::{Column, Layout};
use super::width::wrapped;
use gpu::device::primitives::PRIMITIVES;

/// What the column of counts means.
const LEGEND: &str = "\
Counts: a global access counts requests, lanes, sectors and lines, a shared one requests, lanes and wavefronts, a constant one requests, \
lanes and distinct addresses. A vector counts as the access that moves it. A shuffle of 64 bits is two instructions. What asks nothing of \
the memory system is not counted, nor is local memory: how much of it there is, ptxas decides.
";

/// The facade's primitives, in lines of so many columns.
pub fn primitives(width: usize) -> String {
    let mut layout = Layout::new([
        Column::key("primitive"),
        Column::text("PTX"),
        Column::text("CUDA"),
        Column::text("counts"),
        Column::text("requests under Nsight Compute").spare(1),
    ]);
    for primitive in PRIMITIVES {
        let counter = primitive.counts.counter().unwrap_or("-");
        let cells = [primitive.name, primitive.ptx, primitive.cuda, primitive.counts.name(), counter];
        layout.row(cells.map(str::to_owned));
    }
    layout.fit(width) + &wrapped(LEGEND, width, 0)
}
