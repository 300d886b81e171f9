//! Matrix: along the rows of a row-major matrix, or down its columns.
//!
//! ```text
//!  a thread a row:      ■ → →      a thread a column:   ■ ■ ■     a warp a row:   ■ ■ ■ → →
//!                       ■ → →                           ↓ ↓ ↓                     then shuffles
//!                       ■ → →   32 lines                ↓ ↓ ↓   1 line
//! ```

use crate::device::prelude::*;

/// The rows that a block of [`matrix_column_sums_block`] adds up.
const SLAB: usize = 256;

/// The sum of each row, a thread a row: each lane walks along its own.
///
/// **Look for** 32 sectors in 32 lines a load. **Cost** the rest of each sector is for the next seven loads, if the L1
/// still has it; as many threads as rows do not fill a GPU.
#[kernel]
pub unsafe fn matrix_row_sums_thread(src: Global<f32>, dst: GlobalMut<f32>, width: usize, height: usize) {
    let y = thread::index_x();
    if y < height {
        let mut sum = 0.0;
        for x in steps(0..width, 1) {
            // The warp reads one element of each of 32 rows.
            sum += src.load(y * width + x);
        }
        // The sums of neighbouring rows are one line.
        dst.store(y, sum);
    }
}

/// The same sums, a warp a row: its lanes walk along the row together, and shuffles add up their parts.
///
/// **Look for** 4 sectors a load. **Cost** five shuffles a row; the store uses 4 bytes of a sector.
#[kernel]
pub unsafe fn matrix_row_sums_warp(src: Global<f32>, dst: GlobalMut<f32>, width: usize, height: usize) {
    let y = thread::index_x() / 32;
    let lane = warp::lane_id();
    if y < height {
        let mut sum = 0.0;
        for first in steps(0..width, 32) {
            let x = first + lane as usize;
            if x < width {
                // The warp reads 32 neighbours of one row.
                sum += src.load(y * width + x);
            }
        }
        unroll!(for delta in [16, 8, 4, 2, 1] {
            sum += warp::shuffle_down(warp::FULL, sum, delta);
        });
        if lane == 0 {
            // One lane stores the row's sum.
            dst.store(y, sum);
        }
    }
}

/// The sum of each column, a warp a column: what was right for rows is wrong here.
///
/// **Look for** 32 sectors in 32 lines a load. **Cost** the warps of the seven next columns read the same sectors
/// again.
#[kernel]
pub unsafe fn matrix_column_sums_warp(src: Global<f32>, dst: GlobalMut<f32>, width: usize, height: usize) {
    let x = thread::index_x() / 32;
    let lane = warp::lane_id();
    if x < width {
        let mut sum = 0.0;
        for first in steps(0..height, 32) {
            let y = first + lane as usize;
            if y < height {
                // The warp reads one element of each of 32 rows.
                sum += src.load(y * width + x);
            }
        }
        unroll!(for delta in [16, 8, 4, 2, 1] {
            sum += warp::shuffle_down(warp::FULL, sum, delta);
        });
        if lane == 0 {
            // One lane stores the column's sum.
            dst.store(x, sum);
        }
    }
}

/// The same sums, a thread a column: the loop that was strided for rows is coalesced for columns.
///
/// **Look for** 4 sectors a load, with no shuffle at all. **Cost** as many threads as columns do not fill a GPU.
#[kernel]
pub unsafe fn matrix_column_sums_thread(src: Global<f32>, dst: GlobalMut<f32>, width: usize, height: usize) {
    let x = thread::index_x();
    if x < width {
        let mut sum = 0.0;
        for y in steps(0..height, 1) {
            // The warp reads 32 neighbours of one row.
            sum += src.load(y * width + x);
        }
        // The sums of neighbouring columns are one line.
        dst.store(x, sum);
    }
}

/// Like [`matrix_column_sums_thread`], with the rows dealt out in slabs of 256: eight warps a block share one, and
/// every block adds its part to the result.
///
/// **Look for** the same sectors, from enough blocks to fill a GPU. **Cost** a barrier, 1 KiB of shared memory, an
/// atomic addition a slab and column; `dst` must hold zeros, and the order of the additions is open.
#[kernel]
pub unsafe fn matrix_column_sums_block(src: Global<f32>, dst: GlobalMut<f32>, width: usize, height: usize) {
    let parts = shared!([f32; 8 * 32]);
    let (lane, row) = (thread::thread_idx_x(), thread::thread_idx_y());
    let x = thread::block_idx_x() as usize * 32 + lane as usize;
    let first = thread::block_idx_y() as usize * SLAB;
    let mut column = src.starting_at((first + row as usize) * width + x);
    let mut sum = 0.0;
    if x < width && first + SLAB <= height {
        // The slab is whole, and so the number of rows is known to compilers.
        for _ in steps(0..SLAB / 8, 1) {
            // The warp reads 32 neighbours of one row.
            sum += column.load(0);
            column = column.starting_at(8 * width);
        }
    } else if x < width {
        for y in steps(first + row as usize..height, 8) {
            // The same of what is left.
            sum += src.load(y * width + x);
        }
    }
    // A row of the array for each warp: 32 banks, one wavefront.
    parts.store(row * 32 + lane, sum);
    // The first warp adds up what the others stored.
    sync_threads();
    if row == 0 && x < width {
        let mut sum = 0.0;
        unroll!(for part in [0, 1, 2, 3, 4, 5, 6, 7] {
            sum += parts.load(part * 32 + lane);
        });
        // The warp's 32 columns are one line.
        dst.atomic_add(x, sum);
    }
}

/// A copy whose warps run down the columns, of the source and of the result.
///
/// **Look for** 32 sectors in 32 lines on both sides. **Cost** everything: neither side is coalesced, and nothing
/// would have to be turned round.
#[kernel]
pub unsafe fn matrix_column_copy(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let y = thread::block_idx_x() * 32 + thread::thread_idx_x();
    let x = thread::block_idx_y() * 8 + thread::thread_idx_y();
    if x < width && y < height {
        // The warp moves one element of each of 32 rows.
        dst.store(at(y, x, width), src.load(at(y, x, width)));
    }
}

/// A copy that reads down columns and writes along rows, four elements a thread: `dst` is `width` rows of `height`.
///
/// **Look for** 32 sectors a load, 4 a store. **Cost** the strided side alone; and the result is transposed, as reading
/// columns for rows always does, also where a square matrix hides it.
#[kernel]
pub unsafe fn matrix_strided_copy(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let x = thread::block_idx_x() * 32 + thread::thread_idx_x();
    let y = thread::block_idx_y() * 32 + thread::thread_idx_y();
    unroll!(for j in [0, 8, 16, 24] {
        if x < height && y + j < width {
            // The warp loads one element of each of 32 rows, and stores one line.
            dst.store(at(y + j, x, height), src.load(at(x, y + j, width)));
        }
    });
}

family! {
    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "matrix",
        summary: "row sums, column sums and copies of a row-major matrix: along the rows, or down the columns",
        axes: &[Axis::SHAPE],
        kernels: &[
            Entry { kernel: matrix_row_sums_thread::KERNEL, plan: |case| row_sums(case, false) },
            Entry { kernel: matrix_row_sums_warp::KERNEL, plan: |case| row_sums(case, true) },
            Entry { kernel: matrix_column_sums_warp::KERNEL, plan: |case| column_sums(case, true) },
            Entry { kernel: matrix_column_sums_thread::KERNEL, plan: |case| column_sums(case, false) },
            Entry { kernel: matrix_column_sums_block::KERNEL, plan: column_sums_block },
            Entry { kernel: matrix_column_copy::KERNEL, plan: column_copy },
            Entry { kernel: matrix_strided_copy::KERNEL, plan: strided_copy },
        ],
    };

    /// Rows, columns, and the elements there are.
    fn sizes(case: &Case) -> Result<(u64, u64, u64), PlanError> {
        let (rows, columns) = case.shape();
        let (rows, columns) = (u64::from(rows), u64::from(columns));
        Ok((rows, columns, product("the number of elements", &[rows, columns])?))
    }

    /// The largest of the whole numbers that are summed.
    const LARGEST: u32 = 15;

    fn small(i: u64) -> f32 {
        (noise(i) as u32 & LARGEST) as f32
    }

    /// A sum of small elements, in `f64`: exact.
    fn sum(elements: impl Iterator<Item = u64>) -> f32 {
        elements.map(|i| f64::from(small(i))).sum::<f64>() as f32
    }

    /// How far a sum of `terms` elements may be off in any order: nothing while `f32` holds every partial sum, and
    /// else half a unit of the last place of the largest possible sum for every addition.
    fn tolerance(terms: u64) -> f64 {
        let largest = terms as f64 * f64::from(LARGEST);
        if largest <= f64::from(1 << 24) { 0.0 } else { terms as f64 * largest * f64::from(f32::EPSILON) / 2.0 }
    }

    /// What all sums have in common: each element read once, each sum written.
    fn sums(case: &Case, launch: Launch, dst: Buffer) -> Result<Plan, PlanError> {
        let (rows, columns, n) = sizes(case)?;
        let moved = product("the number of bytes", &[4, n])? + 4 * dst.len;
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", n, small)?)
            .buffer(dst)
            .scalar("width", columns)
            .scalar("height", rows)
            .bytes(moved))
    }

    /// The stores of `n` sums: by one lane a warp, or by neighbouring lanes.
    fn stores(n: u64, a_warp_each: bool) -> Counts {
        if a_warp_each {
            Progression::linear(0, 1, 4).global() * n
        } else {
            warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global())
        }
    }

    fn row_sums(case: &Case, a_warp_each: bool) -> Result<Plan, PlanError> {
        let (rows, columns, _) = sizes(case)?;
        let launch = Launch::linear(if a_warp_each { 32 * rows } else { rows }, 256)?;
        let dst = Buffer::output("dst", rows, move |y| sum((0..columns).map(|x| y * columns + x)))?;
        Ok(sums(case, launch, dst.within(tolerance(columns)))?
            .loads("src", 4, if a_warp_each { along_rows(rows, columns, 4) } else { down_columns(rows, columns, 4) })
            .stores("dst", 4, stores(rows, a_warp_each)))
    }

    fn column_sums(case: &Case, a_warp_each: bool) -> Result<Plan, PlanError> {
        let (rows, columns, _) = sizes(case)?;
        let launch = Launch::linear(if a_warp_each { 32 * columns } else { columns }, 256)?;
        let dst = Buffer::output("dst", columns, move |x| sum((0..rows).map(|y| y * columns + x)))?;
        Ok(sums(case, launch, dst.within(tolerance(rows)))?
            .loads("src", 4, if a_warp_each { down_columns(rows, columns, 4) } else { along_rows(rows, columns, 4) })
            .stores("dst", 4, stores(columns, a_warp_each)))
    }

    fn column_sums_block(case: &Case) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        let (rows, columns, _) = sizes(case)?;
        let launch = Launch::covering(width, height, [32, SLAB as u32], [32, 8])?;
        let dst = Buffer::zeroed("dst", columns, move |x| sum((0..rows).map(|y| y * columns + x)))?;
        let slabs = rows.div_ceil(SLAB as u64);
        // Eight whole warps of each block store, and the first of them loads the eight parts of its columns.
        let parts = Progression::linear(0, 32, 4).shared() * (8 * launch.block_count());
        let added = warps(columns, |_, lanes| Progression::linear(0, lanes, 4).shared()) * (8 * slabs);
        Ok(sums(case, launch, dst.within(tolerance(rows)))?
            .loads("src", 4, along_rows(rows, columns, 4))
            .stores("parts", 4, parts)
            .loads("parts", 4, added)
            .atomics("dst", 4, stores(columns, false) * slabs))
    }

    /// What both copies have in common: a matrix in, and out of it the element that `source` names.
    fn copy(
        case: &Case,
        launch: Launch,
        source: impl Fn(u64) -> u64 + Send + Sync + 'static,
    ) -> Result<Plan, PlanError> {
        let ((height, width), (_, _, n)) = (case.shape(), sizes(case)?);
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::output("dst", n, move |i| noise(source(i)))?)
            .scalar("width", width)
            .scalar("height", height)
            .bytes(product("the number of bytes", &[8, n])?))
    }

    fn column_copy(case: &Case) -> Result<Plan, PlanError> {
        let ((height, width), (rows, columns, _)) = (case.shape(), sizes(case)?);
        Ok(copy(case, Launch::covering(height, width, [32, 8], [32, 8])?, |i| i)?
            .loads("src", 4, down_columns(rows, columns, 4))
            .stores("dst", 4, down_columns(rows, columns, 4)))
    }

    fn strided_copy(case: &Case) -> Result<Plan, PlanError> {
        let ((height, width), (rows, columns, _)) = (case.shape(), sizes(case)?);
        let launch = Launch::covering(height, width, [32, 32], [32, 8])?;
        Ok(copy(case, launch, move |i| i % rows * columns + i / rows)?
            .loads("src", 4, down_columns(rows, columns, 4))
            .stores("dst", 4, along_rows(columns, rows, 4)))
    }
}
