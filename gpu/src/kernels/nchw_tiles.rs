//! Tiles of NCHW: its two transposes by 16-byte accesses on all sides, as `transpose_tiles` has them.

use crate::device::prelude::*;

/// Like `nchw_to_nhwc_tiled`, with a tile of 64x64 and 16 bytes an access: each of 128 threads turns two blocks of 4x4 in its
/// registers, and an XOR permutes pieces of 4 words. Blocks that are neighbours in the grid write neighbours of a pixel.
///
/// **Look for** 16 sectors a global request and 4 wavefronts a shared one, both ideal, and a quarter of the requests of each.
/// **Cost** 16 KiB of shared memory a block; where channels or pixels are no multiple of 4, element by element instead.
#[kernel]
pub unsafe fn nchw_tiles_to_nhwc(src: Global<f32>, dst: GlobalMut<f32>, pixels: usize, channels: u32) {
    let tile = shared!([f32; 64 * 64]);
    turn_image(tile, src, dst, channels as usize, pixels);
}

/// Like [`nchw_tiles_to_nhwc`], the other way. Blocks that are neighbours in the grid write neighbours of a plane.
///
/// **Look for** the same requests. **Cost** as there.
#[kernel]
pub unsafe fn nchw_tiles_from_nhwc(src: Global<f32>, dst: GlobalMut<f32>, pixels: usize, channels: u32) {
    let tile = shared!([f32; 64 * 64]);
    turn_image(tile, src, dst, pixels, channels as usize);
}

/// The block's tile of an image of `rows` by `columns`, and its place in the image. Blocks go down its columns.
#[device]
unsafe fn turn_image(tile: Shared<f32, 4096>, src: Global<f32>, dst: GlobalMut<f32>, rows: usize, columns: usize) {
    let image = thread::block_idx_z() as usize * rows * columns;
    let (src, dst) = (src.starting_at(image), dst.starting_at(image));
    // At least one, which the compiler cannot know.
    let down = (rows.div_ceil(64) as u32).max(1);
    let (first_row, first_column) = (thread::block_idx_x() % down, thread::block_idx_x() / down);
    if rows.is_multiple_of(4) && columns.is_multiple_of(4) {
        // Every row begins at 16 bytes, and every block of 4x4 lies inside the image or outside.
        let places = [16 * first_row as usize, 16 * first_column as usize];
        by_vectors(tile.cast(), src.cast(), dst.cast(), [rows / 4, columns / 4], places);
    } else {
        by_elements(tile, src, dst, [rows, columns], [64 * first_row as usize, 64 * first_column as usize]);
    }
}

/// 128 threads, 16 a row of the tile. All sizes count vectors of 4.
#[device]
unsafe fn by_vectors(
    tile: Shared<F32x4, 0>,
    src: Global<F32x4>,
    dst: GlobalMut<F32x4>,
    [rows, columns]: [usize; 2],
    [first_row, first_column]: [usize; 2],
) {
    let (column, row) = (thread::thread_idx_x() % 16, thread::thread_idx_x() / 16);
    let mut blocks = [[F32x4::splat(0.0); 4]; 2];
    unroll!(for b in [0, 1] {
        let (x, y) = (first_column + column as usize, first_row + (row + 8 * b) as usize);
        if x < columns && y < rows {
            unroll!(for k in [0, 1, 2, 3] {
                // A warp loads 256 bytes of each of two rows; nothing waits for them until all eight loads are on their way.
                blocks[b as usize][k as usize] = src.load((4 * y + k as usize) * columns + x);
            });
        }
    });
    unroll!(for b in [0, 1] {
        let (x, y) = (first_column + column as usize, first_row + (row + 8 * b) as usize);
        if x < columns && y < rows {
            let [p, q, r, s] = blocks[b as usize];
            let turned = [[p.x, q.x, r.x, s.x], [p.y, q.y, r.y, s.y], [p.z, q.z, r.z, s.z], [p.w, q.w, r.w, s.w]];
            unroll!(for k in [0, 1, 2, 3] {
                // Eight lanes a wavefront, each into four banks of its own: rows lie a multiple of 32 banks apart.
                tile.store((4 * column + k) * 16 + ((row + 8 * b) ^ column), F32x4::from_array(turned[k as usize]));
            });
        }
    });

    // The rows read below were written by other warps.
    sync_threads();

    unroll!(for b in [0, 1] {
        let (x, y) = (first_row + column as usize, first_column + (row + 8 * b) as usize);
        if x < rows && y < columns {
            unroll!(for k in [0, 1, 2, 3] {
                // A warp reads two rows of the tile, permuted, and stores 256 bytes into each of two rows.
                let value = tile.load((4 * (row + 8 * b) + k) * 16 + (column ^ (row + 8 * b)));
                dst.store((4 * y + k as usize) * rows + x, value);
            });
        }
    });
}

/// The same tile by the same threads, 64 a row, in single elements.
#[device]
unsafe fn by_elements(
    tile: Shared<f32, 4096>,
    src: Global<f32>,
    dst: GlobalMut<f32>,
    [rows, columns]: [usize; 2],
    [first_row, first_column]: [usize; 2],
) {
    let (column, first) = (thread::thread_idx_x() % 64, thread::thread_idx_x() / 64);
    for row in steps(first..64, 2) {
        let (x, y) = (first_column + column as usize, first_row + row as usize);
        if x < columns && y < rows {
            // A warp moves 32 neighbours into half a row of the tile, permuted.
            tile.store(row * 64 + (column ^ row), src.load(y * columns + x));
        }
    }

    // The columns read below were written by other warps.
    sync_threads();

    for row in steps(first..64, 2) {
        let (x, y) = (first_row + column as usize, first_column + row as usize);
        if x < rows && y < columns {
            // A warp reads half a column of the tile, each element from a bank of its own, and stores 32 neighbours.
            dst.store(y * rows + x, tile.load(column * 64 + (column ^ row)));
        }
    }
}

family! {
    use super::nchw::{CHANNELS, IMAGES, SHAPE, plan, sizes, transposed};
    use super::transpose_tiles::by_blocks;

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "nchw_tiles",
        summary: "images from NCHW to NHWC and back by swizzled tiles of 64x64, in 16-byte accesses",
        axes: &[SHAPE, CHANNELS],
        kernels: &[
            Entry { kernel: nchw_tiles_to_nhwc::KERNEL, plan: to_nhwc },
            Entry { kernel: nchw_tiles_from_nhwc::KERNEL, plan: from_nhwc },
        ],
    };

    /// Blocks of 128 threads, one for each 64 pixels by 64 channels, a layer of them for each image.
    fn tiles_of_64(case: &Case) -> Result<Launch, PlanError> {
        let [pixels, channels] = sizes(case)?;
        let mut launch = Launch::linear(pixels.div_ceil(64) * channels.div_ceil(64), 1)?;
        launch.grid[2] = IMAGES as u32;
        launch.block = [128, 1, 1];
        Ok(launch)
    }

    /// A transpose of `rows` by `columns` in each image, by vectors where both are multiples of 4.
    fn turned(plan: Plan, rows: u64, columns: u64) -> Plan {
        if rows.is_multiple_of(4) && columns.is_multiple_of(4) {
            by_blocks(plan, IMAGES, [rows, columns], 4, "tile")
        } else {
            transposed(plan, rows, columns, true)
        }
    }

    fn to_nhwc(case: &Case) -> Result<Plan, PlanError> {
        let [pixels, channels] = sizes(case)?;
        let plan = plan(case, tiles_of_64(case)?, move |i| i % channels * pixels + i / channels)?;
        Ok(turned(plan, channels, pixels))
    }

    fn from_nhwc(case: &Case) -> Result<Plan, PlanError> {
        let [pixels, channels] = sizes(case)?;
        let plan = plan(case, tiles_of_64(case)?, move |i| i % pixels * channels + i / pixels)?;
        Ok(turned(plan, pixels, channels))
    }
}
