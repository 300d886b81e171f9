//! Transpose: make both global accesses run along x.
//!
//! ```text
//!  src  ■ ■ … ■   a warp's load:      dst  ■ . … .   the naive warp's store:
//!       . . … .   one 128-byte line        ■ . … .   32 lines, one element of each
//!       . . … .                            ■ . … .
//! ```

use crate::device::prelude::*;

const TILE: u32 = 32;

/// No transpose at all: a copy by the same tiles, the ceiling of what follows.
///
/// **Look for** 4 sectors a request on both sides. **Cost** none.
#[kernel]
pub unsafe fn transpose_copy(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let x = thread::block_idx_x() * TILE + thread::thread_idx_x();
    let y = thread::block_idx_y() * TILE + thread::thread_idx_y();
    unroll!(for j in [0, 8, 16, 24] {
        if x < width && y + j < height {
            // A warp moves one row of the tile: one line.
            dst.store(at(y + j, x, width), src.load(at(y + j, x, width)));
        }
    });
}

/// An element a thread: reads along x, writes down a column.
///
/// **Look for** stores of 32 sectors in 32 lines. **Cost** each sector written holds one element of this warp's; the L2
/// must put them together again.
#[kernel]
pub unsafe fn transpose_naive(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let x = thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x();
    let y = thread::block_idx_y() * thread::block_dim_y() + thread::thread_idx_y();
    if x < width && y < height {
        // A warp loads one line and stores into 32.
        dst.store(at(x, y, height), src.load(at(y, x, width)));
    }
}

/// Like [`transpose_naive`] with the roles swapped: reads down a column, writes along x.
///
/// **Look for** loads of 32 sectors in 32 lines. **Cost** less than the strided store: the other warps of the block find the
/// rest of each sector in the L1.
#[kernel]
pub unsafe fn transpose_naive_strided_load(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let x = thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x();
    let y = thread::block_idx_y() * thread::block_dim_y() + thread::thread_idx_y();
    if x < height && y < width {
        // A warp loads from 32 lines and stores one.
        dst.store(at(y, x, height), src.load(at(x, y, width)));
    }
}

/// Through a tile in shared memory: both global accesses run along x, and the tile is read down its columns.
///
/// **Look for** 32 wavefronts a shared load: a row of 32 words begins in the same bank as the row above it, so a column
/// lies in one bank. **Cost** the tile, a barrier, and that conflict.
#[kernel]
pub unsafe fn transpose_tiled(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let tile = shared!([f32; 32 * 32]);
    transpose_through::<32, _>(tile, src, dst, width, height);
}

/// Like [`transpose_tiled`], with a pitch of 33 words: each row starts one bank further on.
///
/// **Look for** 1 wavefront a shared load instead of 32. **Cost** 128 bytes of shared memory; rows lose their 16-byte
/// alignment.
#[kernel]
pub unsafe fn transpose_padded(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let tile = shared!([f32; 33 * 32]);
    transpose_through::<33, _>(tile, src, dst, width, height);
}

/// The body of both tiled kernels: `PITCH` is the distance between the rows of the tile, in words.
#[device]
unsafe fn transpose_through<const PITCH: u32, const N: usize>(
    tile: Shared<f32, N>,
    src: Global<f32>,
    dst: GlobalMut<f32>,
    width: u32,
    height: u32,
) {
    let (lane, row) = (thread::thread_idx_x(), thread::thread_idx_y());
    let x = thread::block_idx_x() * TILE + lane;
    let y = thread::block_idx_y() * TILE + row;
    unroll!(for j in [0, 8, 16, 24] {
        if x < width && y + j < height {
            // A warp moves one line into one row of the tile: 32 banks, one wavefront.
            tile.store((row + j) * PITCH + lane, src.load(at(y + j, x, width)));
        }
    });

    // The columns read below were written by other warps.
    sync_threads();

    let x = thread::block_idx_y() * TILE + lane;
    let y = thread::block_idx_x() * TILE + row;
    unroll!(for j in [0, 8, 16, 24] {
        if x < height && y + j < width {
            // A warp reads one column of the tile, `PITCH` words a lane, and stores one line.
            dst.store(at(y + j, x, height), tile.load(lane * PITCH + row + j));
        }
    });
}

family! {
    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "transpose",
        summary: "a matrix transpose: strided on one side, then through shared memory with and without bank conflicts",
        axes: &[Axis::SHAPE],
        kernels: &[
            Entry { kernel: transpose_copy::KERNEL, plan: |case| copy(case) },
            Entry { kernel: transpose_naive::KERNEL, plan: |case| naive(case, false) },
            Entry { kernel: transpose_naive_strided_load::KERNEL, plan: |case| naive(case, true) },
            Entry { kernel: transpose_tiled::KERNEL, plan: |case| tiled(case, 32) },
            Entry {
                kernel: transpose_padded::KERNEL,
                plan: |case| {
                    let (rows, columns) = case.shape();
                    let library = Library::Transpose { src: "src", dst: "dst", rows, columns };
                    Ok(tiled(case, 33)?.beside(library))
                },
            },
        ],
    };

    /// What all have in common: a matrix in, and out of it the element that `source` names.
    fn plan(case: &Case, launch: Launch, source: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        let n = product("the number of elements", &[height.into(), width.into()])?;
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::output("dst", n, move |i| noise(source(i)))?)
            .scalar("width", width)
            .scalar("height", height)
            .bytes(product("the number of bytes", &[8, n])?))
    }

    fn transposed(case: &Case, launch: Launch) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        let (height, width) = (u64::from(height), u64::from(width));
        plan(case, launch, move |i| (i % height) * width + i / height)
    }

    fn copy(case: &Case) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        Ok(plan(case, Launch::covering(width, height, [TILE, TILE], [32, 8])?, |i| i)?
            .loads("src", 4, along_rows(height, width, 4))
            .stores("dst", 4, along_rows(height, width, 4)))
    }

    fn naive(case: &Case, strided_load: bool) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        Ok(if strided_load {
            transposed(case, Launch::covering(height, width, [32, 8], [32, 8])?)?
                .loads("src", 4, down_columns(height, width, 4))
                .stores("dst", 4, along_rows(width, height, 4))
        } else {
            transposed(case, Launch::covering(width, height, [32, 8], [32, 8])?)?
                .loads("src", 4, along_rows(height, width, 4))
                .stores("dst", 4, down_columns(width, height, 4))
        })
    }

    fn tiled(case: &Case, pitch: u64) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        let (rows, columns) = (u64::from(height), u64::from(width));
        let stores = warps(columns, |_, lanes| Progression::linear(0, lanes, 4).shared()) * rows;
        let loads = warps(rows, |_, lanes| Progression { first: 0, step: 4 * pitch, lanes, width: 4 }.shared()) * columns;
        Ok(transposed(case, Launch::covering(width, height, [TILE, TILE], [32, 8])?)?
            .loads("src", 4, along_rows(height, width, 4))
            .stores("tile", 4, stores)
            .loads("tile", 4, loads)
            .stores("dst", 4, along_rows(width, height, 4)))
    }
}
