//! Types of the transpose: elements of 8, 2 and 1 bytes, through the padded tile and 16 bytes at a time.
//!
//! ```text
//!  bytes an element                         8    4    2    1
//!  lanes a wavefront serves                16   32   32   32
//!  pitch without conflict, in elements     33   33   34   36
//!                          in words        66   33   17    9     odd, or twice odd where a lane takes two banks
//!  wavefronts a column, at a pitch of 32   32   32   16    8     2 ideal for 8 bytes, 1 for the others
//! ```
//!
//! A column is free of conflicts where the rows begin a whole, odd number of elements or words apart. The last three move 16 bytes
//! an access whatever the element, and turn what they hold of a column in registers.

use crate::device::Value;
use crate::device::prelude::*;

/// Elements of 8 bytes: like `transpose_padded`, with a pitch of 33 elements, which are 66 words.
///
/// **Look for** 2 wavefronts a shared access, the ideal of 256 bytes: 16 lanes at a time, each in two banks of its own.
/// **Cost** 8.25 KiB of shared memory for the tile, twice that of `f32`.
#[kernel]
pub unsafe fn transpose_types_f64(src: Global<f64>, dst: GlobalMut<f64>, width: u32, height: u32) {
    let tile = shared!([f64; 33 * 32]);
    through::<33, _, _>(tile, src, dst, width, height);
}

/// Like [`transpose_types_f64`], with 2 bytes an element and a pitch of 34: 17 words.
///
/// **Look for** 1 wavefront a shared access. At a pitch of 33 every second row would begin within a word, and a column
/// of odd number would meet one bank twice. **Cost** 2 sectors a global request: half a line.
#[kernel]
pub unsafe fn transpose_types_f16(src: Global<f16>, dst: GlobalMut<f16>, width: u32, height: u32) {
    let tile = shared!([f16; 34 * 32]);
    through::<34, _, _>(tile, src, dst, width, height);
}

/// Like [`transpose_types_f16`], with 1 byte an element and a pitch of 36: 9 words.
///
/// **Look for** 1 wavefront a shared access. At a pitch of 33 three columns of four would meet a bank twice, at 34 all
/// would. **Cost** 1 sector a global request: a quarter of a line, and four times the requests of `f32` a byte.
#[kernel]
pub unsafe fn transpose_types_i8(src: Global<i8>, dst: GlobalMut<i8>, width: u32, height: u32) {
    let tile = shared!([i8; 36 * 32]);
    through::<36, _, _>(tile, src, dst, width, height);
}

/// The body of all: `PITCH` is the distance between the rows of the tile, in elements.
#[device]
unsafe fn through<const PITCH: u32, const N: usize, T: Value>(
    tile: Shared<T, N>,
    src: Global<T>,
    dst: GlobalMut<T>,
    width: u32,
    height: u32,
) {
    let (lane, row) = (thread::thread_idx_x(), thread::thread_idx_y());
    let (x, y) = (thread::block_idx_x() * 32 + lane, thread::block_idx_y() * 32 + row);
    unroll!(for j in [0, 8, 16, 24] {
        if x < width && y + j < height {
            // A warp moves 32 neighbours into one row of the tile.
            tile.store((row + j) * PITCH + lane, src.load(at(y + j, x, width)));
        }
    });

    // The columns read below were written by other warps.
    sync_threads();

    let (x, y) = (thread::block_idx_y() * 32 + lane, thread::block_idx_x() * 32 + row);
    unroll!(for j in [0, 8, 16, 24] {
        if x < height && y + j < width {
            // A warp reads one column of the tile, a pitch a lane, and stores 32 neighbours.
            dst.store(at(y + j, x, height), tile.load(lane * PITCH + row + j));
        }
    });
}

/// Like [`transpose_types_f64`], with 16 bytes an access: a thread turns a block of 2x2 in its registers, and an XOR permutes
/// pieces of 16 bytes. Blocks that are neighbours in the grid write neighbours in a row.
///
/// **Look for** 16 sectors a global request and 4 wavefronts a shared one, both ideal, and half the requests of each. **Cost**
/// where rows or columns are no multiple of 2, element by element instead.
#[kernel]
pub unsafe fn transpose_types_f64_vec2(src: Global<f64>, dst: GlobalMut<f64>, width: u32, height: u32) {
    let tile = shared!([U32x4; 16 * 32]);
    if width.is_multiple_of(2) && height.is_multiple_of(2) {
        by_vectors(tile.cast(), src.cast(), dst.cast(), width / 2, height / 2, turn_f64);
    } else {
        by_elements::<32, 1, _>(tile.cast(), src, dst, width, height);
    }
}

/// Like [`transpose_types_f64_vec2`], with 2 bytes an element: a tile of 128x128, and blocks of 8x8 that
/// [`byte_perm`] turns, two elements of two rows at a time.
///
/// **Look for** 16 sectors a global request instead of 2, in an eighth of the requests of [`transpose_types_f16`]. **Cost**
/// 32 KiB of shared memory a block, half an instruction an element, and three times the registers.
#[kernel]
pub unsafe fn transpose_types_f16_packed(src: Global<f16>, dst: GlobalMut<f16>, width: u32, height: u32) {
    let tile = shared!([U32x4; 16 * 128]);
    if width.is_multiple_of(8) && height.is_multiple_of(8) {
        by_vectors(tile.cast(), src.cast(), dst.cast(), width / 8, height / 8, turn_f16);
    } else {
        by_elements::<128, 2, _>(tile.cast(), src, dst, width, height);
    }
}

/// Like [`transpose_types_f16_packed`], with 1 byte an element: a tile of 256x256, and blocks of 16x16.
///
/// **Look for** 16 sectors a global request instead of 1, in a sixteenth of the requests of [`transpose_types_i8`]. **Cost**
/// 64 KiB of shared memory, more than a static array may have, so three blocks an SM at most; half an instruction an element.
#[kernel]
pub unsafe fn transpose_types_i8_packed(src: Global<i8>, dst: GlobalMut<i8>, width: u32, height: u32) {
    let tile = dynamic_shared::<U32x4>();
    if width.is_multiple_of(16) && height.is_multiple_of(16) {
        by_vectors(tile, src.cast(), dst.cast(), width / 16, height / 16, turn_i8);
    } else {
        by_elements::<256, 4, _>(tile.cast(), src, dst, width, height);
    }
}

/// 256 threads, 16 vectors of `N` elements a row of the tile. All sizes count vectors.
#[device]
unsafe fn by_vectors<const N: usize>(
    tile: Shared<U32x4, 0>,
    src: Global<U32x4>,
    dst: GlobalMut<U32x4>,
    width: u32,
    height: u32,
    turn: impl Fn([U32x4; N]) -> [U32x4; N],
) {
    let n = N as u32;
    let (column, row) = (thread::thread_idx_x() % 16, thread::thread_idx_x() / 16);
    let (x, y) = (thread::block_idx_y() * 16 + column, thread::block_idx_x() * 16 + row);
    if x < width && y < height {
        let mut rows = [U32x4::splat(0); N];
        for k in each(0..N) {
            // A warp loads 256 bytes of each of two rows.
            rows[k] = src.load(at(n * y + k as u32, x, width));
        }
        let columns = turn(rows);
        for k in each(0..N) {
            // Eight lanes a wavefront, each into four banks of its own: rows lie a multiple of 32 banks apart.
            tile.store((n * column + k as u32) * 16 + (row ^ column), columns[k]);
        }
    }

    // The rows read below were written by other warps.
    sync_threads();

    let (x, y) = (thread::block_idx_x() * 16 + column, thread::block_idx_y() * 16 + row);
    if x < height && y < width {
        for k in each(0..n) {
            // A warp reads two rows of the tile, permuted, and stores 256 bytes into each of two rows.
            dst.store(at(n * y + k, x, height), tile.load((n * row + k) * 16 + (column ^ row)));
        }
    }
}

/// The same tile of `SIDE` by `SIDE` by the same threads, in single elements, of which `E` lie in a bank: the XOR permutes the
/// banks.
#[device]
unsafe fn by_elements<const SIDE: u32, const E: u32, T: Value>(
    tile: Shared<T, 0>,
    src: Global<T>,
    dst: GlobalMut<T>,
    width: u32,
    height: u32,
) {
    let (column, first) = (thread::thread_idx_x() % SIDE, thread::thread_idx_x() / SIDE);
    let place = |row: u32, column: u32| row * SIDE + ((column / E) ^ (row % 32)) * E + column % E;
    for row in steps(first..SIDE, 256 / SIDE) {
        let (x, y) = (thread::block_idx_y() * SIDE + column, thread::block_idx_x() * SIDE + row);
        if x < width && y < height {
            // A warp moves 32 neighbours into one row of the tile.
            tile.store(place(row, column), src.load(at(y, x, width)));
        }
    }

    // The columns read below were written by other warps.
    sync_threads();

    for row in steps(first..SIDE, 256 / SIDE) {
        let (x, y) = (thread::block_idx_x() * SIDE + column, thread::block_idx_y() * SIDE + row);
        if x < height && y < width {
            // A warp reads 32 elements of a column, each from a bank of its own, and stores 32 neighbours.
            dst.store(at(y, x, height), tile.load(place(column, row)));
        }
    }
}

/// The columns of a block of 2x2 elements of 8 bytes, given its rows.
#[inline(always)]
fn turn_f64([a, b]: [U32x4; 2]) -> [U32x4; 2] {
    [U32x4 { x: a.x, y: a.y, z: b.x, w: b.y }, U32x4 { x: a.z, y: a.w, z: b.z, w: b.w }]
}

/// The columns of a block of 8x8 elements of 2 bytes, given its rows.
#[inline(always)]
fn turn_f16(rows: [U32x4; 8]) -> [U32x4; 8] {
    let rows = rows.map(U32x4::to_array);
    // Column `c`: the lower or the upper halves of the words `c / 2` of two rows each.
    core::array::from_fn(|c| {
        let halves = [0x5410, 0x7632][c % 2];
        U32x4::from_array(core::array::from_fn(|i| byte_perm(rows[2 * i][c / 2], rows[2 * i + 1][c / 2], halves)))
    })
}

/// The columns of a block of 16x16 elements of 1 byte, given its rows.
#[inline(always)]
fn turn_i8(rows: [U32x4; 16]) -> [U32x4; 16] {
    let rows = rows.map(U32x4::to_array);
    core::array::from_fn(|c| {
        // First the bytes of two rows side by side, two columns a word, then one column of four rows.
        let (pairs, halves) = ([0x5140, 0x7362][c / 2 % 2], [0x5410, 0x7632][c % 2]);
        U32x4::from_array(core::array::from_fn(|i| {
            let word = |k: usize| rows[4 * i + k][c / 4];
            byte_perm(byte_perm(word(0), word(1), pairs), byte_perm(word(2), word(3), pairs), halves)
        }))
    })
}

family! {
    use super::transpose_tiles::by_blocks;

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "transpose_types",
        summary: "the transpose of elements of 8, 2 and 1 bytes: padded as each one's banks want, and 16 bytes an access",
        axes: &[Axis::SHAPE],
        kernels: &[
            Entry { kernel: transpose_types_f64::KERNEL, plan: |case| padded(case, 33, noise_f64) },
            Entry { kernel: transpose_types_f16::KERNEL, plan: |case| padded(case, 34, noise_f16) },
            Entry { kernel: transpose_types_i8::KERNEL, plan: |case| padded(case, 36, noise_i8) },
            Entry { kernel: transpose_types_f64_vec2::KERNEL, plan: |case| packed(case, "tile", noise_f64) },
            Entry { kernel: transpose_types_f16_packed::KERNEL, plan: |case| packed(case, "tile", noise_f16) },
            Entry {
                kernel: transpose_types_i8_packed::KERNEL,
                plan: |case| {
                    let mut plan = packed(case, "dynamic shared memory", noise_i8)?;
                    plan.launch.shared_bytes = 256 * 256;
                    Ok(plan)
                },
            },
        ],
    };

    /// What all have in common, with the numbers of rows and columns and the size of an element.
    fn transposed<T: ElementType + 'static>(
        case: &Case,
        launch: Launch,
        value: fn(u64) -> T,
    ) -> Result<(Plan, [u64; 3]), PlanError> {
        let (height, width) = case.shape();
        let (rows, columns, size) = (u64::from(height), u64::from(width), T::ELEMENT.size());
        let n = product("the number of elements", &[rows, columns])?;
        let plan = Plan::new(launch)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, move |i| value((i % rows) * columns + i / rows))?)
            .scalar("width", width)
            .scalar("height", height)
            .bytes(product("the number of bytes", &[2, size, n])?);
        Ok((plan, [rows, columns, size]))
    }

    /// The counts where a warp moves 32 elements of a row through a tile whose columns lie `pitch` elements a row apart, or
    /// one bank.
    fn by_rows(plan: Plan, [rows, columns, size]: [u64; 3], tile: &'static str, pitch: u64) -> Plan {
        let row = |_, lanes| Progression::linear(0, lanes, size).shared();
        let column = |_, lanes| Progression { first: 0, step: size * pitch, lanes, width: size }.shared();
        plan.loads("src", size as u32, along_rows(rows, columns, size))
            .stores(tile, size as u32, warps(columns, row) * rows)
            .loads(tile, size as u32, warps(rows, column) * columns)
            .stores("dst", size as u32, along_rows(columns, rows, size))
    }

    fn padded<T: ElementType + 'static>(case: &Case, pitch: u64, value: fn(u64) -> T) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        let (plan, sizes) = transposed(case, Launch::covering(width, height, [32, 32], [32, 8])?, value)?;
        Ok(by_rows(plan, sizes, "tile", pitch))
    }

    fn packed<T: ElementType + 'static>(
        case: &Case,
        tile: &'static str,
        value: fn(u64) -> T,
    ) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        let n = 16 / T::ELEMENT.size();
        // The grid's x counts tiles down the source's columns, which is along the rows of the output.
        let launch = Launch::covering(height, width, [16 * n as u32; 2], [256, 1])?;
        let (plan, [rows, columns, size]) = transposed(case, launch, value)?;
        if !(rows.is_multiple_of(n) && columns.is_multiple_of(n)) {
            // A bank further on a row, at whatever pitch.
            let pitch = (4 / size).max(1);
            return Ok(by_rows(plan, [rows, columns, size], tile, pitch));
        }
        Ok(by_blocks(plan, 1, [rows, columns], n, tile))
    }
}
