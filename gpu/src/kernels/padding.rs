//! Padding: what a word more a row saves in wavefronts, and what it costs in blocks that fit an SM.
//!
//! ```text
//!  a tile of 248 rows of 32 words: 31 KiB; with 33 words: nearly 32 KiB
//!  164 KiB (sm_80), 1 KiB of each block reserved:   5 blocks of 31 KiB,   4 of 32
//!  228 KiB (sm_90):                                 7 blocks of 31 KiB,   6 of 32
//! ```
//!
//! Each block turns a stack of rows of 32 into columns, through a tile of dynamic shared memory.

use crate::device::prelude::*;

/// Words of a row.
const WIDTH: u32 = 32;
const BLOCK: u32 = 256;

/// The tile as it is: a pitch of 32 words.
///
/// **Look for** 32 wavefronts a shared load: a column lies in one bank. **Cost** of the conflicts.
#[kernel]
pub unsafe fn padding_none(src: Global<f32>, dst: GlobalMut<f32>, rows: u32) {
    let tile = dynamic_shared::<f32>();
    let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
    let first = thread::block_idx_x() as usize * (WIDTH * rows) as usize;
    for k in steps(thread..WIDTH * rows, BLOCK) {
        // A warp moves one row: one line, one wavefront.
        tile.store(k, src.load(first + k as usize));
    }
    // Each warp is about to read words of all rows.
    sync_threads();
    for x in steps(thread / 32..WIDTH, BLOCK / 32) {
        for y in steps(0..rows, 32) {
            if y + lane < rows {
                // 32 words of one bank, to one line.
                dst.store(first + at(x, y + lane, rows), tile.load((y + lane) * WIDTH + x));
            }
        }
    }
}

/// Like [`padding_none`], with a pitch of 33 words: each row starts one bank further on.
///
/// **Look for** 1 wavefront a shared load, and the occupancy. **Cost** 3.1 % more shared memory: a block less an
/// SM where the tiles just fitted.
#[kernel]
pub unsafe fn padding_word(src: Global<f32>, dst: GlobalMut<f32>, rows: u32) {
    let tile = dynamic_shared::<f32>();
    let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
    let first = thread::block_idx_x() as usize * (WIDTH * rows) as usize;
    for k in steps(thread..WIDTH * rows, BLOCK) {
        // A warp moves one row: one line, one wavefront.
        tile.store(k / WIDTH * (WIDTH + 1) + k % WIDTH, src.load(first + k as usize));
    }
    // Each warp is about to read words of all rows.
    sync_threads();
    for x in steps(thread / 32..WIDTH, BLOCK / 32) {
        for y in steps(0..rows, 32) {
            if y + lane < rows {
                // A word of each bank, to one line.
                dst.store(first + at(x, y + lane, rows), tile.load((y + lane) * (WIDTH + 1) + x));
            }
        }
    }
}

/// Like [`padding_none`], with each row's words exchanged among its banks: word `x` of row `y` stands at `x ^ y % 32`.
///
/// **Look for** 1 wavefront a shared load at the occupancy of the tile as it is. **Cost** an exclusive or an access.
#[kernel]
pub unsafe fn padding_swizzled(src: Global<f32>, dst: GlobalMut<f32>, rows: u32) {
    let tile = dynamic_shared::<f32>();
    let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
    let first = thread::block_idx_x() as usize * (WIDTH * rows) as usize;
    for k in steps(thread..WIDTH * rows, BLOCK) {
        // A warp moves one row: one line, one wavefront.
        tile.store(k ^ (k / WIDTH % WIDTH), src.load(first + k as usize));
    }
    // Each warp is about to read words of all rows.
    sync_threads();
    for x in steps(thread / 32..WIDTH, BLOCK / 32) {
        for y in steps(0..rows, 32) {
            if y + lane < rows {
                // A word of each bank, to one line: `y` is a multiple of 32.
                dst.store(first + at(x, y + lane, rows), tile.load((y + lane) * WIDTH + (x ^ lane)));
            }
        }
    }
}

family! {
    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(1 << 13)],
        in_simulator: &[Value::Count(16)],
        ..Axis::counted("tiles", "Tiles, for padding", 1, 1 << 24, &[])
    };

    const ROWS: Axis = Axis::counted(
        "tile-rows",
        "Rows of a tile, 1 to 1700, for padding",
        1,
        1700,
        &[Value::Count(64), Value::Count(248)],
    );

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "padding",
        summary: "tiles of dynamic shared memory with and without padding: conflicts against blocks an SM",
        axes: &[BLOCKS, ROWS],
        kernels: &[
            Entry { kernel: padding_none::KERNEL, plan: |case| plan(case, WIDTH, 32) },
            Entry { kernel: padding_word::KERNEL, plan: |case| plan(case, WIDTH + 1, 33) },
            Entry { kernel: padding_swizzled::KERNEL, plan: |case| plan(case, WIDTH, 33) },
        ],
    };

    /// Rows `pitch` words apart; the lanes that read a column are as good as `step` words apart.
    fn plan(case: &Case, pitch: u32, step: u64) -> Result<Plan, PlanError> {
        let (tiles, rows) = (case.count("tiles"), case.count("tile-rows"));
        let n = product("the number of elements", &[tiles, rows, WIDTH.into()])?;
        let launch = Launch { shared_bytes: 4 * pitch * rows as u32, ..Launch::linear(tiles * u64::from(BLOCK), BLOCK)? };
        let row = Progression::linear(0, 32, 4);
        let column = |_, lanes| Progression { first: 0, step: 4 * step, lanes, width: 4 }.shared();
        let tile = "dynamic shared memory";
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::output("dst", n, move |i| {
                let (block, x, y) = (i / (32 * rows), i / rows % 32, i % rows);
                noise(block * 32 * rows + 32 * y + x)
            })?)
            .scalar("rows", rows as u32)
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", 4, row.global() * (tiles * rows))
            .stores(tile, 4, row.shared() * (tiles * rows))
            .loads(tile, 4, warps(rows, column) * (tiles * 32))
            .stores("dst", 4, along_rows(tiles * 32, rows, 4)))
    }
}
