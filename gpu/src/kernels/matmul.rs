//! Matrix multiplication, C = A·B: the same products, and who stands next to whom in the warp.
//!
//! ```text
//!  lanes along a column of C         lanes along a row of C
//!    A  ■ . .     B  ■ . .             A  ■ . .     B  ■ ■ ■
//!       ■ . .        . . .                . . .        . . .
//!       ■ . .        . . .                . . .        . . .
//!    32 lines     1 word for all       1 word       1 line
//! ```
//!
//! A has `m` rows and `depth` columns, B `depth` rows and `n` columns.

use crate::device::prelude::*;

const TILE: u32 = 32;

/// An element of C a thread, in blocks of 32×32: the row goes with x, so neighbours in the warp are a row apart.
///
/// **Look for** 32 sectors in 32 lines for a load of A and for a store of C. **Cost** each of those lines gives the warp one
/// word, and has to wait in the L1 for the next steps of the loop.
#[kernel]
pub unsafe fn matmul_uncoalesced(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let row = thread::block_idx_x() * TILE + thread::thread_idx_x();
    let column = thread::block_idx_y() * TILE + thread::thread_idx_y();
    multiply(a, b, c, row, column, [m, n, depth]);
}

/// Like [`matmul_uncoalesced`], with 1024 threads in a row that are placed by hand, and along the wrong axis: `x % 32` is
/// taken for the row.
///
/// **Look for** the same counts: a warp is 32 threads with consecutive x, so what changes with x decides. **Cost** the same.
#[kernel]
pub unsafe fn matmul_swapped(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let row = thread::block_idx_x() * TILE + thread::thread_idx_x() % TILE;
    let column = thread::block_idx_y() * TILE + thread::thread_idx_x() / TILE;
    multiply(a, b, c, row, column, [m, n, depth]);
}

/// Like [`matmul_uncoalesced`], with the column along x, as CUDA's numbering suggests.
///
/// **Look for** 4 sectors a load of B, and 1 a load of A: the whole warp wants the same word. **Cost** each element is
/// loaded again for every row or column of C that needs it.
#[kernel]
pub unsafe fn matmul_naive(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let row = thread::block_idx_y() * TILE + thread::thread_idx_y();
    let column = thread::block_idx_x() * TILE + thread::thread_idx_x();
    multiply(a, b, c, row, column, [m, n, depth]);
}

/// Like [`matmul_swapped`], along the right axis: `x % 32` is the column, `x / 32` the row.
///
/// **Look for** the counts of [`matmul_naive`]: the same mapping, now written down. **Cost** the same.
#[kernel]
pub unsafe fn matmul_remapped(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let row = thread::block_idx_y() * TILE + thread::thread_idx_x() / TILE;
    let column = thread::block_idx_x() * TILE + thread::thread_idx_x() % TILE;
    multiply(a, b, c, row, column, [m, n, depth]);
}

/// The body of all that load from global memory alone: the element at `row`, `column`, if there is one.
#[device]
unsafe fn multiply(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, row: u32, column: u32, shape: [u32; 3]) {
    let [m, n, depth] = shape;
    if row < m && column < n {
        let mut sum = 0.0;
        for k in steps(0..depth, 1) {
            // Lanes along a row: one word of A for all, one line of B. Along a column: 32 lines of A, one word of B.
            sum = fma(a.load(at(row, k, depth)), b.load(at(k, column, n)), sum);
        }
        // One line, or 32.
        c.store(at(row, column, n), sum);
    }
}

/// Like [`matmul_naive`], through tiles of 32×32 in shared memory, that of B kept transposed.
///
/// **Look for** a thirty-second of the global loads, and 32 wavefronts for each access to B's tile: neighbours are 32 words
/// apart. **Cost** two barriers a tile, and that conflict in the innermost loop.
#[kernel]
pub unsafe fn matmul_tiled_transposed(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let a_tile = shared!([f32; 32 * 32]);
    let b_tile = shared!([f32; 32 * 32]);
    multiply_tiled::<32, 1, _>(a_tile, b_tile, a, b, c, [m, n, depth]);
}

/// Like [`matmul_tiled_transposed`], with a pitch of 33 words.
///
/// **Look for** 1 wavefront for each access to B's tile. **Cost** 128 bytes of shared memory.
#[kernel]
pub unsafe fn matmul_tiled_padded(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let a_tile = shared!([f32; 32 * 32]);
    let b_tile = shared!([f32; 33 * 32]);
    multiply_tiled::<33, 1, _>(a_tile, b_tile, a, b, c, [m, n, depth]);
}

/// Like [`matmul_tiled_padded`], with B's tile kept as B is: it is read along its rows, and needs no padding.
///
/// **Look for** the same wavefronts without the padding. **Cost** two shared loads for each product still: a faster one keeps
/// several elements of C in a thread's registers.
#[kernel]
pub unsafe fn matmul_tiled(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, m: u32, n: u32, depth: u32) {
    let a_tile = shared!([f32; 32 * 32]);
    let b_tile = shared!([f32; 32 * 32]);
    multiply_tiled::<1, 32, _>(a_tile, b_tile, a, b, c, [m, n, depth]);
}

/// The body of the tiled kernels: B's element at step `k`, column `x` of the tile stands at `x * X + k * K`.
#[device]
unsafe fn multiply_tiled<const X: u32, const K: u32, const N: usize>(
    a_tile: Shared<f32, { 32 * 32 }>,
    b_tile: Shared<f32, N>,
    a: Global<f32>,
    b: Global<f32>,
    c: GlobalMut<f32>,
    [m, n, depth]: [u32; 3],
) {
    let (x, y) = (thread::thread_idx_x(), thread::thread_idx_y());
    let (row, column) = (thread::block_idx_y() * TILE + y, thread::block_idx_x() * TILE + x);
    let mut sum = 0.0;
    for first in steps(0..depth, TILE) {
        // A warp moves a line of A into 32 banks, and one of B to lanes `X` words apart; zeros where the matrices end.
        let a_is_inside = row < m && first + x < depth;
        let b_is_inside = first + y < depth && column < n;
        a_tile.store(y * TILE + x, if a_is_inside { a.load(at(row, first + x, depth)) } else { 0.0 });
        b_tile.store(x * X + y * K, if b_is_inside { b.load(at(first + y, column, n)) } else { 0.0 });

        // The tiles' other rows were written by other warps.
        sync_threads();
        for k in steps(0..TILE, 4) {
            // Four words of A for all lanes at once, and one at a time of B for each, `X` words apart.
            let a = a_tile.cast::<F32x4>().load((y * TILE + k) / 4);
            let a = [a.x, a.y, a.z, a.w];
            unroll!(for j in [0, 1, 2, 3] {
                sum = fma(a[j as usize], b_tile.load(x * X + (k + j) * K), sum);
            });
        }
        // Other warps may still read what the next step overwrites.
        sync_threads();
    }
    if row < m && column < n {
        // One line.
        c.store(at(row, column, n), sum);
    }
}

family! {
    pub(crate) const SHAPE: Axis = Axis {
        on_gpu: &[Value::Shape(2048, 2048)],
        in_simulator: &[Value::Shape(96, 96)],
        ..Axis::SHAPE
    };

    pub(crate) const DEPTH: Axis = Axis {
        name: "depth",
        help: "Columns of A and rows of B, 1 to 262144, for products of matrices",
        // Beyond that the elements of C are no longer exactly f32.
        kind: AxisKind::Count { min: 1, max: 1 << 18 },
        on_gpu: &[Value::Count(2048)],
        in_simulator: &[Value::Count(64)],
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "matmul",
        summary: "a matrix product: the warp along the wrong and the right axis, then tiled with and without conflicts",
        axes: &[SHAPE, DEPTH],
        kernels: &[
            Entry { kernel: matmul_uncoalesced::KERNEL, plan: |case| down_a_column(case, [32, 32]) },
            Entry { kernel: matmul_swapped::KERNEL, plan: |case| down_a_column(case, [1024, 1]) },
            Entry { kernel: matmul_naive::KERNEL, plan: |case| along_a_row(case, [32, 32]) },
            Entry { kernel: matmul_remapped::KERNEL, plan: |case| along_a_row(case, [1024, 1]) },
            Entry { kernel: matmul_tiled_transposed::KERNEL, plan: |case| tiled(case, 32) },
            Entry { kernel: matmul_tiled_padded::KERNEL, plan: |case| tiled(case, 33) },
            Entry {
                kernel: matmul_tiled::KERNEL,
                plan: |case| {
                    let [m, n, k] = sizes(case).map(|size| size as u32);
                    Ok(tiled(case, 1)?.beside(Library::Product { a: "a", b: "b", c: "c", m, n, k }))
                },
            },
        ],
    };

    /// A whole number from -4 to 4, by a matrix's number and a row or column of it.
    fn small(which: u64, i: u64) -> i64 {
        (noise(which << 32 | i) as i64) % 9 - 4
    }

    /// Rows and columns of C, and the depth.
    pub(crate) fn sizes(case: &Case) -> [u64; 3] {
        let (m, n) = case.shape();
        [m.into(), n.into(), case.count("depth")]
    }

    /// What all have in common. An element of A is `p(row) + q(k)` and one of B `r(k) + s(column)`, so that their product
    /// has a closed form; at magnitudes of 8 at most, every sum on the way to it is a whole number below 2^24.
    pub(crate) fn plan(case: &Case, launch: Launch) -> Result<Plan, PlanError> {
        let [m, n, depth] = sizes(case);
        // No count below is larger.
        product("32 times rows times columns times depth", &[32, m.max(32), n.max(32), depth])?;
        let (q, r) = (|k| small(1, k), |k| small(2, k));
        let [sum_q, sum_r, sum_qr] = (0..depth).fold([0; 3], |[a, b, c], k| [a + q(k), b + r(k), c + q(k) * r(k)]);
        let element = move |i: u64| {
            let (p, s) = (small(0, i / n), small(3, i % n));
            (p * sum_r + p * s * depth as i64 + sum_qr + s * sum_q) as f32
        };
        Ok(Plan::new(launch)
            .buffer(Buffer::input("a", m * depth, move |i| (small(0, i / depth) + q(i % depth)) as f32)?)
            .buffer(Buffer::input("b", depth * n, move |i| (r(i / n) + small(3, i % n)) as f32)?)
            .buffer(Buffer::output("c", m * n, element)?)
            .scalar("m", m as u32)
            .scalar("n", n as u32)
            .scalar("depth", depth as u32)
            .bytes(4 * (m * depth + depth * n + m * n)))
    }

    /// A request of lanes that all want the same word.
    fn one_word(lanes: u64) -> Progression {
        Progression { first: 0, step: 0, lanes, width: 4 }
    }

    fn along_a_row(case: &Case, block: [u32; 2]) -> Result<Plan, PlanError> {
        let ((rows, columns), [m, n, depth]) = (case.shape(), sizes(case));
        Ok(plan(case, Launch::covering(columns, rows, [TILE, TILE], block)?)?
            .loads("a", 4, warps(n, |_, lanes| one_word(lanes).global()) * m * depth)
            .loads("b", 4, along_rows(depth, n, 4) * m)
            .stores("c", 4, along_rows(m, n, 4)))
    }

    fn down_a_column(case: &Case, block: [u32; 2]) -> Result<Plan, PlanError> {
        let ((rows, columns), [m, n, depth]) = (case.shape(), sizes(case));
        Ok(plan(case, Launch::covering(rows, columns, [TILE, TILE], block)?)?
            .loads("a", 4, down_columns(m, depth, 4) * n)
            .loads("b", 4, warps(m, |_, lanes| one_word(lanes).global()) * n * depth)
            .stores("c", 4, down_columns(m, n, 4)))
    }

    /// Each block moves the tiles of its rows of A and of its columns of B; its 32 warps fill both tiles whole, zeros
    /// included, and read them 32 times over.
    fn tiled(case: &Case, pitch: u64) -> Result<Plan, PlanError> {
        let ((rows, columns), [m, n, depth]) = (case.shape(), sizes(case));
        let launch = Launch::covering(columns, rows, [TILE, TILE], [32, 32])?;
        let fills = 32 * launch.block_count() * depth.div_ceil(32);
        let b_tile = Progression { first: 0, step: 4 * pitch, lanes: 32, width: 4 }.shared() * fills;
        Ok(plan(case, launch)?
            .loads("a", 4, along_rows(m, depth, 4) * n.div_ceil(32))
            .loads("b", 4, along_rows(depth, n, 4) * m.div_ceil(32))
            .stores("a_tile", 4, Progression::linear(0, 32, 4).shared() * fills)
            .loads("a_tile", 16, Progression { first: 0, step: 0, lanes: 32, width: 16 }.shared_load() * fills * 8)
            .stores("b_tile", 4, b_tile)
            .loads("b_tile", 4, b_tile * 32)
            .stores("c", 4, along_rows(m, n, 4)))
    }
}
