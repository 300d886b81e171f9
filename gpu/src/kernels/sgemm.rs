//! Matrix multiplication in single precision, SGEMM: what is loaded from shared memory is used again, out of registers.
//!
//! ```text
//!  a thread's 8×8 of C     lanes 2×16: 2 + 4 wavefronts     lanes 8×4: 2 + 2
//!    ■■■■ . ■■■■             0 1 2 … 15                       0 1 4 5
//!    ■■■■ . ■■■■             16 17 … 31                       2 3 6 7
//!     . .  .  . .                                             8 9 …
//!    ■■■■ . ■■■■
//! ```
//!
//! A has `m` rows and `depth` columns, B `depth` rows and `n` columns. A block of 256 threads computes 128×128 elements of C, from
//! tiles that are 16 deep. Blocks are numbered down the columns of C, the last column first.

use crate::device::prelude::*;

pub(super) const TILE: u32 = 128;
pub(super) const DEEP: u32 = 16;
/// Of a tile of A that is kept transposed. Four words more than rows: its columns are stored without a conflict.
pub(super) const PITCH: u32 = 132;

/// Like [`matmul_tiled`](super::matmul::matmul_tiled), with 8×8 elements of C in a thread's registers, 16 rows and 16 columns apart.
///
/// **Look for** 16 shared loads for 64 products, instead of five for four. **Cost** 64 registers, so that fewer warps are there to hide
/// what each waits for.
#[kernel]
pub unsafe fn sgemm_register_tile(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let a_tile = shared!([f32; 128 * 16]);
    let b_tile = shared!([f32; 16 * 128]);
    let ([first_row, first_column], [y, x]) = (corner(), [thread::thread_idx_x() / 16, thread::thread_idx_x() % 16]);
    let mut sums = [[0.0; 8]; 8];
    for first in steps(0..depth, DEEP) {
        fill::<DEEP, 1>(a_tile.cast(), b_tile.cast(), a, b, first, [m, n, depth]);
        sync_threads();
        for k in steps(0..DEEP, 1) {
            let (mut rows, mut columns) = ([0.0; 8], [0.0; 8]);
            unroll!(for i in [0, 1, 2, 3, 4, 5, 6, 7] {
                // Two words of A, each for half of the warp; 16 neighbours of B, for both halves.
                rows[i as usize] = a_tile.load((y + 16 * i) * DEEP + k);
                columns[i as usize] = b_tile.load(k * TILE + x + 16 * i);
            });
            outer_product(&mut sums, rows, columns);
        }
        // Other warps may still read what the next step overwrites.
        sync_threads();
    }
    unroll!(for i in [0, 1, 2, 3, 4, 5, 6, 7] {
        unroll!(for j in [0, 1, 2, 3, 4, 5, 6, 7] {
            let (row, column) = (first_row + y + 16 * i, first_column + x + 16 * j);
            if row < m && column < n {
                // 64 bytes of two rows.
                c.store(at(row, column, n), sums[i as usize][j as usize]);
            }
        });
    });
}

/// Like [`sgemm_register_tile`], with A's tile kept transposed, and a thread's rows and columns four neighbours at two places: the
/// loads take 16 bytes.
///
/// **Look for** 4 shared loads for 64 products; those of B still take 4 wavefronts, for the 256 bytes that a warp wants. **Cost** each
/// store of C leaves three words out of four to the next ones.
#[kernel]
pub unsafe fn sgemm_vec4_shared(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let a_tile = shared!([f32; 16 * 132]);
    let b_tile = shared!([f32; 16 * 128]);
    let (row, column) = (thread::thread_idx_x() / 16 * 4, thread::thread_idx_x() % 16 * 4);
    tiled::<64, 64>(a_tile.cast(), b_tile.cast(), a, b, c, [row, column], [m, n, depth]);
}

/// Like [`sgemm_vec4_shared`], with the lanes of a warp in 8 rows of 4: together they compute 64×32 elements.
///
/// **Look for** 2 wavefronts for each shared load. Lanes `n` and `n ^ 1` want the same of A, `n` and `n ^ 2` the same of B: only such
/// pairs let a wavefront serve 16 lanes. **Cost** a store of C reaches 8 rows instead of 2.
#[kernel]
pub unsafe fn sgemm_warp_tile(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let a_tile = shared!([f32; 16 * 132]);
    let b_tile = shared!([f32; 16 * 128]);
    tiled::<32, 16>(a_tile.cast(), b_tile.cast(), a, b, c, place_in_warp_tile(), [m, n, depth]);
}

/// The block's first row and column. The last column's blocks may have few columns, and then they take little time. They come first:
/// where a few blocks are left for the end, that is shorter.
#[device]
pub(super) fn corner() -> [u32; 2] {
    [thread::block_idx_x() * TILE, (thread::grid_dim_y() - 1 - thread::block_idx_y()) * TILE]
}

/// A thread's first row and column in the block, whose warps are 2 rows of 4.
#[device]
pub(super) fn place_in_warp_tile() -> [u32; 2] {
    let (warp, lane) = (thread::thread_idx_x() / 32, thread::thread_idx_x() % 32);
    let (y, x) = (lane / 2 % 2 + lane / 8 * 2, lane % 2 + lane / 4 % 2 * 2);
    [warp / 4 * 64 + y * 4, warp % 4 * 32 + x * 4]
}

/// Adds the products of 8 rows and 8 columns, to and fro: from one to the next a thread goes on with the row or the column that
/// it has, and reads two registers instead of three.
#[device]
fn outer_product(sums: &mut [[f32; 8]; 8], rows: [f32; 8], columns: [f32; 8]) {
    for j in 0..8 {
        for i in 0..8 {
            let i = if j % 2 == 0 { i } else { 7 - i };
            sums[i][j] = fma(rows[i], columns[j], sums[i][j]);
        }
    }
}

/// Adds the products of two tiles: four rows and another four `ROWS` further, and so the columns.
#[device]
pub(super) unsafe fn multiply<const ROWS: u32, const COLUMNS: u32>(sums: &mut [[f32; 8]; 8], a: Shared<F32x4, 0>, b: Shared<F32x4, 0>) {
    unroll!(for k in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] {
        let ([x, y], [z, w]) = (
            // Each for the lanes of one row of threads.
            [a.load(k * PITCH / 4).to_array(), a.load((k * PITCH + ROWS) / 4).to_array()],
            // Each for those of one column.
            [b.load(k * TILE / 4).to_array(), b.load((k * TILE + COLUMNS) / 4).to_array()],
        );
        let rows = [x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3]];
        let columns = [z[0], z[1], z[2], z[3], w[0], w[1], w[2], w[3]];
        outer_product(sums, rows, columns);
    });
}

/// The body of the kernels with one tile of each.
#[device]
unsafe fn tiled<const ROWS: u32, const COLUMNS: u32>(
    a_tile: Shared<f32, 0>,
    b_tile: Shared<f32, 0>,
    a: Global<f32>,
    b: Global<f32>,
    c: GlobalMut<f32>,
    [row, column]: [u32; 2],
    [m, n, depth]: [u32; 3],
) {
    let mut sums = [[0.0; 8]; 8];
    for first in steps(0..depth, DEEP) {
        fill::<1, PITCH>(a_tile, b_tile, a, b, first, [m, n, depth]);
        sync_threads();
        multiply::<ROWS, COLUMNS>(&mut sums, a_tile.starting_at(row).cast(), b_tile.starting_at(column).cast());
        // Other warps may still read what the next step overwrites.
        sync_threads();
    }
    store::<1, ROWS, COLUMNS>(c, &sums, [row, column], m, n);
}

/// Fills both tiles, with zeros where the matrices end: A's element in row `y` at step `k` goes to `y * Y + k * K`.
#[device]
unsafe fn fill<const Y: u32, const K: u32>(
    a_tile: Shared<f32, 0>,
    b_tile: Shared<f32, 0>,
    a: Global<f32>,
    b: Global<f32>,
    first: u32,
    [m, n, depth]: [u32; 3],
) {
    let (thread, [first_row, first_column]) = (thread::thread_idx_x(), corner());
    unroll!(for i in [0, 32, 64, 96] {
        unroll!(for j in [0, 8] {
            // 32 bytes of 4 rows.
            let (y, k) = (thread / 8 + i, thread % 8 + j);
            let is_inside = first_row + y < m && first + k < depth;
            a_tile.store(y * Y + k * K, if is_inside { a.load(at(first_row + y, first + k, depth)) } else { 0.0 });
        });
    });
    unroll!(for i in [0, 2, 4, 6, 8, 10, 12, 14] {
        // A line.
        let (k, x) = (thread / TILE + i, thread % TILE);
        let is_inside = first + k < depth && first_column + x < n;
        b_tile.store(k * TILE + x, if is_inside { b.load(at(first + k, first_column + x, n)) } else { 0.0 });
    });
}

/// Stores a thread's elements, `V` at a time.
#[device]
pub(super) unsafe fn store<const V: u32, const ROWS: u32, const COLUMNS: u32>(
    c: GlobalMut<f32>,
    sums: &[[f32; 8]; 8],
    [row, column]: [u32; 2],
    m: u32,
    n: u32,
) {
    let [first_row, first_column] = corner();
    unroll!(for i in [0, 1, 2, 3, 4, 5, 6, 7] {
        unroll!(for j in [0, 4] {
            let row = first_row + row + i / 4 * ROWS + i % 4;
            let column = first_column + column + j / 4 * COLUMNS;
            // The addition of nothing leaves ptxas free to keep the sums where they do not meet B's words in a register bank: a
            // store of 16 bytes wants four registers in a row.
            let four = [0, 1, 2, 3].map(|k| sums[i as usize][j as usize + k] + 0.0);
            if V == 4 {
                if row < m && column < n {
                    c.cast::<F32x4>().store(at(row, column, n) / 4, F32x4::from_array(four));
                }
            } else {
                unroll!(for k in [0, 1, 2, 3] {
                    if row < m && column + k < n {
                        c.store(at(row, column + k, n), four[k as usize]);
                    }
                });
            }
        });
    });
}

family! {
    use super::matmul::{DEPTH, SHAPE, plan as product_plan, sizes};

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "sgemm",
        summary: "a matrix product out of registers: a tile for each thread, shared loads of 16 bytes, a tile for each warp",
        axes: &[SHAPE, DEPTH],
        kernels: &[
            Entry { kernel: sgemm_register_tile::KERNEL, plan: register_tile },
            Entry { kernel: sgemm_vec4_shared::KERNEL, plan: |case| one_tile(case, [2, 16], [2, 4]) },
            Entry { kernel: sgemm_warp_tile::KERNEL, plan: |case| one_tile(case, [8, 4], [2, 2]) },
        ],
    };

    /// What all have in common, with the sizes and the numbers of blocks down and across.
    pub(super) fn plan(case: &Case) -> Result<(Plan, [u64; 3], [u64; 2]), PlanError> {
        let ((rows, columns), [m, n, depth]) = (case.shape(), sizes(case));
        let plan = product_plan(case, Launch::covering(rows, columns, [TILE, TILE], [256, 1])?)?;
        let library = Library::Product { a: "a", b: "b", c: "c", m: rows, n: columns, k: depth as u32 };
        Ok((plan.beside(library), [m, n, depth], [m.div_ceil(128), n.div_ceil(128)]))
    }

    /// One request of a full warp to shared memory that takes so many wavefronts.
    pub(super) fn shared(width: u64, wavefronts: u64) -> Counts {
        Counts { requests: 1, lanes: 32, wavefronts, wavefronts_ideal: wavefronts.min(width / 4), ..Counts::default() }
    }

    /// The loads of A by one column of blocks, `v` words a lane: warps take 8 steps of 4 * `v` rows, first those before `head`,
    /// then those behind it. Rows lie alike in their lines after 32, steps after 32.
    pub(super) fn loads_of_a(m: u64, depth: u64, head: u64, v: u64) -> Counts {
        let group = |y: u64, first: u64, steps: u64| {
            let row = |y| (0..steps / v).map(move |q| 4 * (y * depth + first + q * v));
            scattered((y..m.min(y + 4 * v)).flat_map(row), 4 * v)
        };
        let span = |y, first, steps: u64| {
            let whole = periodic(steps / 8, 4, |i| group(y, first + 8 * i, 8));
            whole + group(y, first + steps / 8 * 8, steps % 8)
        };
        let rows = |y| span(y, 0, head) + span(y, head, depth - head);
        let whole = m / (4 * v);
        periodic(whole, 8 / v, |i| rows(4 * v * i)) + rows(4 * v * whole)
    }

    /// The stores of C, `v` words a lane, by warps of `down` rows of `across` lanes: neighbouring lanes are `apart` rows and columns
    /// apart, and what lies between is stored by as many requests.
    pub(super) fn stores_of_c([m, n]: [u64; 2], [down, across]: [u64; 2], apart: u64, v: u64) -> Counts {
        let request = |row: u64, column: u64| {
            let inside = |first, lanes, end| (0..lanes).map(move |i| first + i * apart).take_while(move |&place| place < end);
            let rows = inside(row, down, m);
            scattered(rows.flat_map(|row| inside(column, across, n).map(move |x| 4 * (row * n + x))), 4 * v)
        };
        let (height, width) = (down * apart, across * apart);
        let square = |row: u64, column: u64| {
            let requests = (row..row + apart).flat_map(|row| (column..column + apart).step_by(v as usize).map(move |x| (row, x)));
            requests.map(|(row, column)| request(row, column)).sum::<Counts>()
        };
        let across = |row| {
            periodic(n / width, 32u64.div_ceil(width), |i| square(row, width * i)) + square(row, n / width * width)
        };
        periodic(m / height, 32u64.div_ceil(height), |i| across(height * i)) + across(m / height * height)
    }

    /// Tiles that are filled through registers, which a warp stores to A's in so many wavefronts.
    fn filled(plan: Plan, [m, n, depth]: [u64; 3], [down, across]: [u64; 2], wavefronts: u64) -> Plan {
        let stores = 64 * down * across * depth.div_ceil(16);
        plan.loads("a", 4, loads_of_a(m, depth, 0, 1) * across)
            .loads("b", 4, along_rows(depth, n, 4) * down)
            .stores("a_tile", 4, shared(4, wavefronts) * stores)
            .stores("b_tile", 4, shared(4, 1) * stores)
    }

    fn register_tile(case: &Case) -> Result<Plan, PlanError> {
        let (plan, [m, n, depth], blocks) = plan(case)?;
        let loads = shared(4, 1) * (8 * 8 * 16 * blocks[0] * blocks[1] * depth.div_ceil(16));
        // 4 rows of 8 words, 16 words apart: two by two they meet.
        Ok(filled(plan, [m, n, depth], blocks, 2)
            .loads("a_tile", 4, loads)
            .loads("b_tile", 4, loads)
            .stores("c", 4, stores_of_c([m, n], [2, 16], 1, 1)))
    }

    fn one_tile(case: &Case, lanes: [u64; 2], [of_a, of_b]: [u64; 2]) -> Result<Plan, PlanError> {
        let (plan, [m, n, depth], blocks) = plan(case)?;
        let loads = 8 * 2 * 16 * blocks[0] * blocks[1] * depth.div_ceil(16);
        Ok(filled(plan, [m, n, depth], blocks, 1)
            .loads("a_tile", 16, shared(16, of_a) * loads)
            .loads("b_tile", 16, shared(16, of_b) * loads)
            .stores("c", 4, stores_of_c([m, n], lanes, 4, 1)))
    }
}
