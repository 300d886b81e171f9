//! Types of the transpose: the padded tile for elements of 8, 2 and 1 bytes.
//!
//! ```text
//!  bytes an element                         8    4    2    1
//!  lanes a wavefront serves                16   32   32   32
//!  pitch without conflict, in elements     33   33   34   36
//!                          in words        66   33   17    9     odd, or twice odd where a lane takes two banks
//!  wavefronts a column, at a pitch of 32   32   32   16    8     2 ideal for 8 bytes, 1 for the others
//! ```
//!
//! A column is free of conflicts where the rows begin a whole, odd number of elements or words apart.

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

family! {
    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "transpose_types",
        summary: "the padded transpose of elements of 8, 2 and 1 bytes, each with the pitch that its banks want",
        axes: &[Axis::SHAPE],
        kernels: &[
            Entry { kernel: transpose_types_f64::KERNEL, plan: |case| plan(case, 33, noise_f64) },
            Entry { kernel: transpose_types_f16::KERNEL, plan: |case| plan(case, 34, noise_f16) },
            Entry { kernel: transpose_types_i8::KERNEL, plan: |case| plan(case, 36, noise_i8) },
        ],
    };

    fn plan<T: ElementType + 'static>(case: &Case, pitch: u64, value: fn(u64) -> T) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        let (rows, columns, size) = (u64::from(height), u64::from(width), T::ELEMENT.size());
        let n = product("the number of elements", &[rows, columns])?;
        let row = |_, lanes| Progression::linear(0, lanes, size).shared();
        let column = |_, lanes| Progression { first: 0, step: size * pitch, lanes, width: size }.shared();
        Ok(Plan::new(Launch::covering(width, height, [32, 32], [32, 8])?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, move |i| value((i % rows) * columns + i / rows))?)
            .scalar("width", width)
            .scalar("height", height)
            .bytes(product("the number of bytes", &[2, size, n])?)
            .loads("src", size as u32, along_rows(rows, columns, size))
            .stores("tile", size as u32, warps(columns, row) * rows)
            .loads("tile", size as u32, warps(rows, column) * columns)
            .stores("dst", size as u32, along_rows(columns, rows, size)))
    }
}
