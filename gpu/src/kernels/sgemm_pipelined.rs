//! SGEMM with two tiles of each matrix: one is multiplied while the next is on its way.
//!
//! ```text
//!  B   global ── cp.async ──────────────────────→ tile 1   wait_all
//!  A   global ── ld → registers ······ st ──────→ tile 1   barrier
//!                       multiply tile 0                    multiply tile 1
//! ```
//!
//! A's tile is kept transposed, so A goes through registers; its loads are issued before the products and stored behind them.

use super::sgemm::{DEEP, PITCH, TILE, corner, multiply, place_in_warp_tile, store};
use crate::device::prelude::*;

/// Like [`sgemm_warp_tile`](super::sgemm::sgemm_warp_tile), with two tiles of each: while one is multiplied the next comes, A's by
/// way of registers, since it is transposed, and B's by asynchronous copies.
///
/// **Look for** one barrier a tile, and loads long before their stores. **Cost** twice the shared memory, 8 registers.
#[kernel]
pub unsafe fn sgemm_pipelined_scalar(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let a_tile = shared!([f32; 2 * 16 * 132]);
    let b_tile = shared!([f32; 2 * 16 * 128]);
    let mut sums = [[0.0; 8]; 8];
    pipelined::<1>(&mut sums, a_tile.cast(), b_tile.cast(), a, b, [m, n, depth]);
    store::<1, 32, 16>(c, &sums, place_in_warp_tile(), m, n);
}

/// Like [`sgemm_pipelined_scalar`], with 16 bytes a lane to and from global memory. Where a row is no multiple of that, it is
/// [`sgemm_pipelined_scalar`].
///
/// **Look for** a quarter of the requests to global memory. **Cost** rows that begin at 16 bytes; where they begin amid a sector, B's
/// copies read each sector twice.
#[kernel]
pub unsafe fn sgemm_pipelined_vec4(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let a_tile = shared!([f32; 2 * 16 * 132]);
    let b_tile = shared!([f32; 2 * 16 * 128]);
    let mut sums = [[0.0; 8]; 8];
    if (n | depth).is_multiple_of(4) {
        pipelined::<4>(&mut sums, a_tile.cast(), b_tile.cast(), a, b, [m, n, depth]);
    } else {
        pipelined::<1>(&mut sums, a_tile.cast(), b_tile.cast(), a, b, [m, n, depth]);
    }
    if n.is_multiple_of(4) {
        store::<4, 32, 16>(c, &sums, place_in_warp_tile(), m, n);
    } else {
        store::<1, 32, 16>(c, &sums, place_in_warp_tile(), m, n);
    }
}

/// The body of the kernels with two tiles of each, `V` words a lane. What `depth` has above a multiple of 16 comes first: of all
/// other tiles none is cut off, and nothing is asked.
#[device]
unsafe fn pipelined<const V: u32>(
    sums: &mut [[f32; 8]; 8],
    a_tile: Shared<f32, 0>,
    b_tile: Shared<f32, 0>,
    a: Global<f32>,
    b: Global<f32>,
    [m, n, depth]: [u32; 3],
) {
    let (thread, [first_row, first_column], [row, column]) = (thread::thread_idx_x(), corner(), place_in_warp_tile());
    let has_work = first_row + row / 64 * 64 < m && first_column + column / 32 * 32 < n;
    let (rows, head) = (m - first_row, (depth - 1) % DEEP + 1);
    // Behind B's last column lanes store zeros. To copy that column again would save the question, but copies of one word to 32
    // places take 32 wavefronts.
    let b_column = first_column + thread % (TILE / V) * V;
    let has_column = b_column < n;
    let mut a = a.starting_at(at(first_row + thread / (8 / V), thread % (8 / V) * V, depth));
    let mut b = b.starting_at(at(thread / (TILE / V), b_column, n));
    if has_column {
        copy_b::<V>(b_tile, b, n, head);
    } else {
        copy_b::<V>(b_tile, b, n, 0);
    }
    store_a::<V>(a_tile, load_a::<V>(a, depth, rows, head));
    (a, b) = (a.starting_at(head as usize), b.starting_at(at(head, 0, n)));
    let mut stage = 0;
    for next in steps(head..depth + 1, DEEP) {
        // This thread's copies are here, and behind the barrier those of all, whose reads of the other tiles are over.
        copy_async::wait_all();
        sync_threads();
        let mut words = [[0.0; 4]; 2];
        if next < depth {
            let b_tile = b_tile.starting_at((1 - stage) * DEEP * TILE);
            if has_column {
                copy_b::<V>(b_tile, b, n, DEEP);
            } else {
                copy_b::<V>(b_tile, b, n, 0);
            }
            words = load_a::<V>(a, depth, rows, DEEP);
            (a, b) = (a.starting_at(DEEP as usize), b.starting_at(at(DEEP, 0, n)));
        }
        if has_work {
            let a_rows = a_tile.starting_at(stage * DEEP * PITCH + row).cast();
            multiply::<32, 16>(sums, a_rows, b_tile.starting_at(stage * DEEP * TILE + column).cast());
        }
        stage = 1 - stage;
        if next < depth {
            store_a::<V>(a_tile.starting_at(stage * DEEP * PITCH), words);
        }
    }
}

/// A thread's words of a tile of A, zeros where there are none: 32 bytes of each row a warp, in two loads of each.
#[device]
unsafe fn load_a<const V: u32>(a: Global<f32>, depth: u32, rows: u32, deep: u32) -> [[f32; 4]; 2] {
    let (y, k) = (thread::thread_idx_x() / (8 / V), thread::thread_idx_x() % (8 / V) * V);
    let mut words = [[0.0; 4]; 2];
    unroll!(for j in [0, 1] {
        if V == 4 {
            if y < rows && k + 8 * j < deep {
                // 16 rows.
                words[j as usize] = a.cast::<F32x4>().load(2 * j as usize).to_array();
            }
        } else {
            unroll!(for i in [0, 1, 2, 3] {
                if y + 32 * i < rows && k + 8 * j < deep {
                    // 4 rows.
                    words[j as usize][i as usize] = a.load(at(32 * i, 8 * j, depth));
                }
            });
        }
    });
    words
}

/// Stores them, transposed: neighbours of a row `PITCH` words apart.
#[device]
unsafe fn store_a<const V: u32>(a_tile: Shared<f32, 0>, words: [[f32; 4]; 2]) {
    let (y, k) = (thread::thread_idx_x() / (8 / V), thread::thread_idx_x() % (8 / V) * V);
    unroll!(for j in [0, 1] {
        unroll!(for i in [0, 1, 2, 3] {
            // All 32 banks.
            let to = if V == 4 { (k + 8 * j + i) * PITCH + y } else { (k + 8 * j) * PITCH + y + 32 * i };
            a_tile.store(to, words[j as usize][i as usize]);
        });
    });
}

/// Begins to copy a thread's words of a tile of B; what is not there is zero at once.
#[device]
unsafe fn copy_b<const V: u32>(b_tile: Shared<f32, 0>, b: Global<f32>, n: u32, deep: u32) {
    // The remainder tells the compiler that a block has 256 threads: where `deep` is 16, nothing is asked.
    let (k, x) = (thread::thread_idx_x() % 256 / (TILE / V), thread::thread_idx_x() % (TILE / V) * V);
    let tile = b_tile.starting_at(k * TILE + x);
    if V == 4 {
        unroll!(for i in [0, 8] {
            if k + i < deep {
                // Four lines.
                tile.cast::<F32x4>().copy_async(i * TILE / 4, b.cast::<F32x4>(), at(i, 0, n) / 4);
            } else {
                tile.cast::<F32x4>().store(i * TILE / 4, F32x4::splat(0.0));
            }
        });
    } else {
        unroll!(for i in [0, 2, 4, 6, 8, 10, 12, 14] {
            if k + i < deep {
                // A line.
                tile.copy_async(i * TILE, b, at(i, 0, n));
            } else {
                tile.store(i * TILE, 0.0);
            }
        });
    }
}

family! {
    use super::matmul::{self, SHAPE, sizes};
    use super::sgemm::{loads_of_a, plan, shared, stores_of_c};

    /// In the simulator a multiple of 4 and none of 16: the first tile is cut off.
    const DEPTH: Axis = Axis { in_simulator: &[Value::Count(68)], ..matmul::DEPTH };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "sgemm_pipelined",
        summary: "a matrix product whose next tiles are on their way, by 4 and by 16 bytes a lane",
        axes: &[SHAPE, DEPTH],
        kernels: &[
            Entry { kernel: sgemm_pipelined_scalar::KERNEL, plan: |case| two_tiles(case, 1, 1) },
            Entry { kernel: sgemm_pipelined_vec4::KERNEL, plan: vec4 },
        ],
    };

    /// The loads of B and the stores to its tiles by one row of blocks, `v` words a lane: lanes that have a column copy, and store zeros where
    /// a tile has no row; the others store zeros.
    fn tiles_of_b(n: u64, depth: u64, v: u64) -> [Counts; 2] {
        let row = |columns: u64| warps(columns / v, |_, lanes| Progression::linear(0, lanes, 4 * v).shared_store());
        let (whole, rest, none) = (row(128) * (n / 128), row(n % 128), row(n.next_multiple_of(128) - n));
        let rows = depth.next_multiple_of(16);
        if v == 1 {
            return [along_rows(depth, n, 4), (whole + rest + none) * rows];
        }
        // A row begins anywhere in a line, and so does each tile's part of it.
        let copied = |end: usize| {
            let of_row = |k: u64| {
                let of_tile = |lanes| copied_past_l1(4 * k * n % 128, lanes)[end];
                of_tile(32) * (n / 128) + of_tile(n % 128 / 4)
            };
            periodic(depth, 8, of_row)
        };
        [copied(0), copied(1) + (whole + rest) * (rows - depth) + none * rows]
    }

    /// A warp multiplies only where it has elements of C, which are 64x32.
    fn two_tiles(case: &Case, v: u64, v_of_c: u64) -> Result<Plan, PlanError> {
        let (plan, [m, n, depth], [down, across]) = plan(case)?;
        let (tiles, width) = (depth.div_ceil(16), 4 * v as u32);
        let stores = 64 * down * across * tiles;
        let loads = shared(16, 2) * (2 * 16 * m.div_ceil(64) * n.div_ceil(32) * tiles);
        let [loads_of_b, stores_of_b] = tiles_of_b(n, depth, v);
        Ok(plan
            .loads("a", width, loads_of_a(m, depth, (depth - 1) % 16 + 1, v) * across)
            .loads("b", width, loads_of_b * down)
            .stores("a_tile", 4, shared(4, 1) * stores)
            .stores("b_tile", width, stores_of_b * down)
            .loads("a_tile", 16, loads)
            .loads("b_tile", 16, loads)
            .stores("c", 4 * v_of_c as u32, stores_of_c([m, n], [8, 4], 4, v_of_c)))
    }

    fn vec4(case: &Case) -> Result<Plan, PlanError> {
        let [_, n, depth] = sizes(case);
        let v = |is_whole| if is_whole { 4 } else { 1 };
        two_tiles(case, v((n | depth).is_multiple_of(4)), v(n.is_multiple_of(4)))
    }
}
