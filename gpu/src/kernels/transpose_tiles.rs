//! Tiles of the transpose: smaller, without padding, and wide enough for 16-byte accesses on all sides.
//!
//! ```text
//!  XOR swizzle, 8 banks:   row 0   0 1 2 3 4 5 6 7     column 2 lies in banks 2 3 0 1 6 7 4 5:
//!  element (y, x) lies     row 1   1 0 3 2 5 4 7 6     no two of its elements share one,
//!  in bank x ^ y           row 2   2 3 0 1 6 7 4 5     and no row is longer than before
//!                          row 3   3 2 1 0 7 6 5 4
//! ```

use crate::device::prelude::*;

/// Like `transpose_tiled`, with a tile of 16x16 and an element a thread: a warp is two rows of the tile.
///
/// **Look for** 8 wavefronts a shared load: two rows fill the banks, so every second element of a column shares its
/// bank. **Cost** a global access of two halves of a line, in as many sectors as a whole one, but two lines.
#[kernel]
pub unsafe fn transpose_tiles_16x16(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let tile = shared!([f32; 16 * 16]);
    through_16x16::<16, _>(tile, src, dst, width, height);
}

/// Like [`transpose_tiles_16x16`], with a pitch of 17 words.
///
/// **Look for** 2 wavefronts a shared access, loads and stores: a warp's two rows, or two columns, overlap in one bank.
/// The padding that suits a warp of one row does not suit one of two, and no other frees both sides: the stores want
/// rows 16 banks apart, the loads 2 or 6 and so on. **Cost** 64 bytes, and that conflict.
#[kernel]
pub unsafe fn transpose_tiles_16x16_padded(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let tile = shared!([f32; 17 * 16]);
    through_16x16::<17, _>(tile, src, dst, width, height);
}

/// The body of both: `PITCH` is the distance between the rows of the tile, in words.
#[device]
unsafe fn through_16x16<const PITCH: u32, const N: usize>(
    tile: Shared<f32, N>,
    src: Global<f32>,
    dst: GlobalMut<f32>,
    width: u32,
    height: u32,
) {
    let (column, row) = (thread::thread_idx_x(), thread::thread_idx_y());
    let (x, y) = (thread::block_idx_x() * 16 + column, thread::block_idx_y() * 16 + row);
    if x < width && y < height {
        // A warp moves half a line of each of two rows into two rows of the tile.
        tile.store(row * PITCH + column, src.load(at(y, x, width)));
    }

    // The columns read below were written by other warps.
    sync_threads();

    let (x, y) = (thread::block_idx_y() * 16 + column, thread::block_idx_x() * 16 + row);
    if x < height && y < width {
        // A warp reads two columns of the tile and stores two halves of lines.
        dst.store(at(y, x, height), tile.load(column * PITCH + row));
    }
}

/// A tile of 32x32 without padding: element (y, x) lies at `x ^ y` in its row.
///
/// **Look for** 1 wavefront a shared access: along a row as down a column, the XOR with what is fixed permutes the
/// banks. **Cost** an XOR an address; the tile is as small as an unpadded one, and its rows keep their alignment.
#[kernel]
pub unsafe fn transpose_tiles_swizzled(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let tile = shared!([f32; 32 * 32]);
    let (lane, row) = (thread::thread_idx_x(), thread::thread_idx_y());
    let (x, y) = (thread::block_idx_x() * 32 + lane, thread::block_idx_y() * 32 + row);
    unroll!(for j in [0, 8, 16, 24] {
        if x < width && y + j < height {
            // A warp moves one line into one row of the tile, its 32 words in another order.
            tile.store((row + j) * 32 + (lane ^ (row + j)), src.load(at(y + j, x, width)));
        }
    });

    // The columns read below were written by other warps.
    sync_threads();

    let (x, y) = (thread::block_idx_y() * 32 + lane, thread::block_idx_x() * 32 + row);
    unroll!(for j in [0, 8, 16, 24] {
        if x < height && y + j < width {
            // A warp reads one column of the tile, each element from a bank of its own, and stores one line.
            dst.store(at(y + j, x, height), tile.load(lane * 32 + (lane ^ (row + j))));
        }
    });
}

/// Like [`transpose_tiles_swizzled`], with a tile of 64x64 and 16 bytes an access: a thread transposes a block of 4x4
/// in its registers, and the XOR permutes pieces of 4 words. Blocks that are neighbours in the grid write neighbours in
/// a row.
///
/// **Look for** 16 sectors a global request and 4 wavefronts a shared one, both ideal, and a quarter of the requests of
/// each. **Cost** 16 KiB of shared memory a block; where rows or columns are no multiple of 4, element by element
/// instead.
#[kernel]
pub unsafe fn transpose_tiles_vec4_swizzled(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let tile = shared!([f32; 64 * 64]);
    if width.is_multiple_of(4) && height.is_multiple_of(4) {
        // Every row begins at 16 bytes, and every block of 4x4 lies inside the matrix or outside.
        by_vectors(tile.cast(), src.cast(), dst.cast(), width / 4, height / 4);
    } else {
        by_elements(tile, src, dst, width, height);
    }
}

/// 256 threads, 16 a row of the tile. All sizes count vectors of 4.
#[device]
unsafe fn by_vectors(tile: Shared<F32x4, 0>, src: Global<F32x4>, dst: GlobalMut<F32x4>, width: u32, height: u32) {
    let (column, row) = (thread::thread_idx_x() % 16, thread::thread_idx_x() / 16);
    let (x, y) = (thread::block_idx_y() * 16 + column, thread::block_idx_x() * 16 + row);
    if x < width && y < height {
        let mut rows = [F32x4 { x: 0.0, y: 0.0, z: 0.0, w: 0.0 }; 4];
        unroll!(for k in [0, 1, 2, 3] {
            // A warp loads 256 bytes of each of two rows.
            rows[k as usize] = src.load(at(4 * y + k, x, width));
        });
        let [a, b, c, d] = rows;
        let columns = [[a.x, b.x, c.x, d.x], [a.y, b.y, c.y, d.y], [a.z, b.z, c.z, d.z], [a.w, b.w, c.w, d.w]];
        unroll!(for k in [0, 1, 2, 3] {
            let [x, y, z, w] = columns[k as usize];
            // Eight lanes a wavefront, each into four banks of its own: rows lie a multiple of 32 banks apart.
            tile.store((4 * column + k) * 16 + (row ^ column), F32x4 { x, y, z, w });
        });
    }

    // The rows read below were written by other warps.
    sync_threads();

    let (x, y) = (thread::block_idx_x() * 16 + column, thread::block_idx_y() * 16 + row);
    if x < height && y < width {
        unroll!(for k in [0, 1, 2, 3] {
            // A warp reads two rows of the tile, permuted, and stores 256 bytes into each of two rows.
            dst.store(at(4 * y + k, x, height), tile.load((4 * row + k) * 16 + (column ^ row)));
        });
    }
}

/// The same tile by the same threads, 64 a row, in single elements: as [`transpose_tiles_swizzled`], in twice the
/// width.
#[device]
unsafe fn by_elements<const N: usize>(
    tile: Shared<f32, N>,
    src: Global<f32>,
    dst: GlobalMut<f32>,
    width: u32,
    height: u32,
) {
    let (column, row) = (thread::thread_idx_x() % 64, thread::thread_idx_x() / 64);
    let (x, y) = (thread::block_idx_y() * 64 + column, thread::block_idx_x() * 64 + row);
    unroll!(for j in [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60] {
        if x < width && y + j < height {
            // A warp moves one line into half a row of the tile.
            tile.store((row + j) * 64 + (column ^ (row + j)), src.load(at(y + j, x, width)));
        }
    });

    // The columns read below were written by other warps.
    sync_threads();

    let (x, y) = (thread::block_idx_x() * 64 + column, thread::block_idx_y() * 64 + row);
    unroll!(for j in [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60] {
        if x < height && y + j < width {
            // A warp reads half a column of the tile and stores one line.
            dst.store(at(y + j, x, height), tile.load(column * 64 + (column ^ (row + j))));
        }
    });
}

family! {
    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "transpose_tiles",
        summary: "the transpose by tiles of 16x16, and by swizzled ones of 32x32 and, in 16-byte accesses, of 64x64",
        axes: &[Axis::SHAPE],
        kernels: &[
            Entry { kernel: transpose_tiles_16x16::KERNEL, plan: |case| tiles_of_16(case, 16) },
            Entry { kernel: transpose_tiles_16x16_padded::KERNEL, plan: |case| tiles_of_16(case, 17) },
            Entry { kernel: transpose_tiles_swizzled::KERNEL, plan: swizzled },
            Entry { kernel: transpose_tiles_vec4_swizzled::KERNEL, plan: vec4_swizzled },
        ],
    };

    /// What all have in common, with the numbers of rows and columns.
    pub(crate) fn plan(case: &Case, launch: Launch) -> Result<(Plan, u64, u64), PlanError> {
        let (height, width) = case.shape();
        let (rows, columns) = (u64::from(height), u64::from(width));
        let n = product("the number of elements", &[rows, columns])?;
        let plan = Plan::new(launch)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::output("dst", n, move |i| noise((i % rows) * columns + i / rows))?)
            .scalar("width", width)
            .scalar("height", height)
            .bytes(product("the number of bytes", &[8, n])?);
        Ok((plan, rows, columns))
    }

    /// The counts of warps of two rows of 16, over `rows` by `columns`: those of a warp whose first row and column are
    /// `(y, x)`, and of which `(r, c)` rows and columns exist. What lies 32 rows or 32 columns further lies alike.
    fn two_rows(rows: u64, columns: u64, warp: impl Fn((u64, u64), (u64, u64)) -> Counts) -> Counts {
        let across = |y, r| {
            let rest = columns % 16;
            let last = if rest == 0 { Counts::default() } else { warp((y, columns - rest), (r, rest)) };
            periodic(columns / 16, 2, |tile| warp((y, 16 * tile), (r, 16))) + last
        };
        let last = if rows.is_multiple_of(2) { Counts::default() } else { across(rows - 1, 1) };
        periodic(rows / 2, 16, |pair| across(2 * pair, 2)) + last
    }

    /// Such warps' accesses to global memory, at row `every * y + skip` of a matrix, elements of `width` bytes.
    fn global(rows: u64, columns: u64, width: u64, every: u64, skip: u64) -> Counts {
        two_rows(rows, columns, |(y, x), (r, c)| {
            let row = |y| Progression::linear(width * ((every * y + skip) * columns + x), c, width);
            if r == 2 { row(y).global_with(row(y + 1)) } else { row(y).global() }
        })
    }

    /// One request to shared memory of `lanes` lanes and so many wavefronts.
    pub(crate) fn shared(lanes: u64, width: u64, wavefronts: u64) -> Counts {
        let wavefronts_ideal = wavefronts.min((lanes * width).div_ceil(128));
        Counts { requests: 1, lanes, wavefronts, wavefronts_ideal, ..Counts::default() }
    }

    fn tiles_of_16(case: &Case, pitch: u64) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        let (plan, rows, columns) = plan(case, Launch::covering(width, height, [16, 16], [16, 16])?)?;
        // A pitch of 16: two rows fill the banks, and a column's elements lie in two banks by turns. A pitch of 17: the
        // last element of the one row or column lies 32 banks behind the first of the other, and no others meet.
        let both_ends = |r, c| if (r, c) == (2, 16) { 2 } else { 1 };
        let store = |r, c| if pitch == 16 { 1 } else { both_ends(r, c) };
        let load = |r, c: u64| if pitch == 16 { c.div_ceil(2) } else { both_ends(r, c) };
        Ok(plan
            .loads("src", 4, global(rows, columns, 4, 1, 0))
            .stores("tile", 4, two_rows(rows, columns, |_, (r, c)| shared(r * c, 4, store(r, c))))
            .loads("tile", 4, two_rows(columns, rows, |_, (r, c)| shared(r * c, 4, load(r, c))))
            .stores("dst", 4, global(columns, rows, 4, 1, 0)))
    }

    fn swizzled(case: &Case) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        Ok(by_rows_of_warps(plan(case, Launch::covering(width, height, [32, 32], [32, 8])?)?))
    }

    /// The counts where a warp moves up to 32 elements of a row, and a swizzle permutes them over the banks.
    fn by_rows_of_warps((plan, rows, columns): (Plan, u64, u64)) -> Plan {
        plan.loads("src", 4, along_rows(rows, columns, 4))
            .stores("tile", 4, warps(columns, |_, lanes| shared(lanes, 4, 1)) * rows)
            .loads("tile", 4, warps(rows, |_, lanes| shared(lanes, 4, 1)) * columns)
            .stores("dst", 4, along_rows(columns, rows, 4))
    }

    fn vec4_swizzled(case: &Case) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        // The grid's x counts tiles down the source's columns, which is along the rows of the output.
        let (plan, rows, columns) = plan(case, Launch::covering(height, width, [64, 64], [256, 1])?)?;
        if !(rows.is_multiple_of(4) && columns.is_multiple_of(4)) {
            return Ok(by_rows_of_warps((plan, rows, columns)));
        }
        Ok(by_blocks(plan, 1, [rows, columns], 4, "tile"))
    }

    /// The counts where each thread turns a block of `n` by `n` elements, 16 bytes an access, in a tile of 16 by 16 of them;
    /// of so many matrices one behind the other.
    pub(crate) fn by_blocks(plan: Plan, matrices: u64, [rows, columns]: [u64; 2], n: u64, tile: &'static str) -> Plan {
        let (rows, columns) = (rows / n, columns / n);
        // A thread's rows of 16 bytes an element; the XOR keeps eight neighbours in eight places of four banks.
        let matrix = |of, rows, columns| (0..n).map(|k| global(rows, columns, 16, n, of * n * rows + k)).sum::<Counts>();
        let sides = |rows, columns| (0..matrices).map(|of| matrix(of, rows, columns)).sum();
        let pieces = |_, (r, c): (u64, u64)| shared(r * c, 16, r * c.div_ceil(8)) * n * matrices;
        plan.loads("src", 16, sides(rows, columns))
            .stores(tile, 16, two_rows(rows, columns, pieces))
            .loads(tile, 16, two_rows(columns, rows, pieces))
            .stores("dst", 16, sides(columns, rows))
    }
}
