//! Ragged: the transpose of shapes whose rows begin anywhere in a sector.
//!
//! ```text
//!  rows of 9, sectors of 4:   row 0   0 1 2 3|4 5 6 7|8     a tile of columns 4 to 7 cuts a sector of rows 1 and 2 in two;
//!                             row 1   0 1 2|3 4 5 6|7 8     cut where sectors begin, it has 4 to 7, 3 to 6 and 2 to 5
//!                             row 2   0 1|2 3 4 5|6 7 8
//! ```

use crate::device::prelude::*;

/// Elements of a sector.
const SECTOR: u32 = 8;

/// The most elements by which rows of `height` elements, one behind the other, begin behind the begin of a sector.
#[inline(always)]
const fn most_shift(height: u32) -> u32 {
    let step = height & height.wrapping_neg();
    SECTOR.saturating_sub(step)
}

/// Like `transpose_tiles_vec4_swizzled` of such shapes, a tile of 64x64 in single elements; but each row of the result is cut where
/// a sector begins, not where the tile does. So its 64 elements begin up to 7 before the tile, which takes as many rows more.
///
/// **Look for** 4 sectors a store, all of them ideal, instead of nearly 5 of which 2 are not filled: those the L2 completes from
/// memory, if the rest comes late. **Cost** up to 71 rows are loaded for 64, from the L2; loads still touch nearly 5 sectors.
#[kernel]
pub unsafe fn transpose_ragged_whole_sectors(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let tile = shared!([f32; 72 * 64]);
    let above = most_shift(height);
    let (column, row) = (thread::thread_idx_x() % 64, thread::thread_idx_x() / 64);
    let (x, first) = (thread::block_idx_y() * 64 + column, thread::block_idx_x() * 64);
    let rows = if x < width { height } else { 0 };
    let mut values = [0.0; 18];
    for k in each(0..18) {
        let row = row + 4 * k as u32;
        // What lies before row 0 wraps, and is beyond the last as well.
        let y = (first + row).wrapping_sub(above);
        if y < rows && (k < 16 || row < 64 + above) {
            // A warp loads 32 neighbours; nothing waits for them until all loads are on their way.
            values[k] = src.load(at(y, x, width));
        }
    }
    for k in each(0..18) {
        let row = row + 4 * k as u32;
        // Half a row of the tile, permuted.
        tile.store(row * 64 + (column ^ (row % 32)), values[k]);
    }

    // The columns read below were written by other warps.
    sync_threads();

    // The row's piece begins with a sector: so many elements before the block's first.
    let shift = |y: u32| y.wrapping_mul(height) % SECTOR;
    let y = thread::block_idx_y() * 64 + row;
    let mut values = [0.0; 16];
    for k in each(0..16) {
        let down = column + above - shift(y + 4 * k as u32);
        // A warp reads 32 elements of a column, each from a bank of its own.
        values[k] = tile.load(down * 64 + ((row + 4 * k as u32) ^ (down % 32)));
    }
    for k in each(0..16) {
        let y = y + 4 * k as u32;
        let x = (first + column).wrapping_sub(shift(y));
        if (y < width) & (x < height) {
            // A warp stores four sectors.
            dst.store(at(y, x, height), values[k]);
        }
    }
}

family! {
    use super::transpose_tiles::{plan, shared};

    const SHAPE: Axis = Axis {
        on_gpu: &[Value::Shape(4095, 4097), Value::Shape(8191, 8193)],
        in_simulator: &[Value::Shape(509, 515)],
        ..Axis::SHAPE
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "transpose_ragged",
        summary: "the transpose of shapes that no sector divides, with whole sectors stored",
        axes: &[SHAPE],
        kernels: &[Entry { kernel: transpose_ragged_whole_sectors::KERNEL, plan: whole_sectors }],
    };

    fn whole_sectors(case: &Case) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        let above = most_shift(height);
        let down = height.checked_add(64 + above).ok_or_else(|| {
            PlanError(format!("{height} rows and the last tile's are more than 32 bits can number: choose fewer rows"))
        })?;
        let (plan, rows, columns) = plan(case, Launch::covering(down - 64, width, [64, 64], [256, 1])?)?;
        let blocks = plan.launch.block_count();
        // The last rows of 64 are loaded once more, by the block below.
        let loads = periodic(rows, 64, |y| {
            let row = warps(columns, |warp, lanes| Progression::linear(4 * (y * columns + 32 * warp), lanes, 4).global());
            row * (1 + u64::from(y >= 64 - u64::from(above)))
        });
        // The first warp of a row of the result stores what there is before it comes to 32 from a sector's begin on.
        let stores = periodic(columns, 32, |y| {
            let first = rows.min(32 - y * rows % u64::from(SECTOR));
            let piece = |at, lanes| Progression::linear(4 * (y * rows + at), lanes, 4).global();
            piece(0, first) + warps(rows - first, |warp, lanes| piece(first + 32 * warp, lanes))
        });
        Ok(plan
            .loads("src", 4, loads)
            .stores("tile", 4, shared(32, 4, 1) * (72 * 2 * blocks))
            .loads("tile", 4, shared(32, 4, 1) * (64 * 2 * blocks))
            .stores("dst", 4, stores))
    }
}
