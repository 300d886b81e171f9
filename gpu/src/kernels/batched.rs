//! Batched: many small matrix products, and which axis of the thread numbering the batch is on.
//!
//! ```text
//!  batch on x:   lane 0 → matrix 0, lane 1 → matrix 1, …     4096 bytes apart: 32 lines
//!  batch last:   lane 0 → column 0, lane 1 → column 1, …     one row of one matrix: 1 line
//! ```
//!
//! Each kernel multiplies `batch` pairs of matrices of 32 by 32, `c = a * b`, an element of a result a thread.

use crate::device::prelude::*;

/// The batch on the fast axis: the lanes of a warp compute the same element of 32 products.
///
/// **Look for** 32 sectors in 32 lines for every access. **Cost** 64 such loads an element; the L1 would need a line
/// for each lane of each warp to use the rest of them.
#[kernel]
pub unsafe fn batched_batch_on_x(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, batch: usize) {
    let product = thread::block_idx_x() as usize * 32 + thread::thread_idx_x() as usize;
    let element = thread::block_idx_y() as usize * 8 + thread::thread_idx_y() as usize;
    if product < batch {
        let (first, row, column) = (product * 1024, element / 32, element % 32);
        let mut sum = 0.0;
        for k in steps(0..32usize, 1) {
            // Each lane reads from matrices of its own.
            sum = fma(a.load(first + row * 32 + k), b.load(first + k * 32 + column), sum);
        }
        // Each lane stores into a matrix of its own.
        c.store(first + element, sum);
    }
}

/// The batch on the slow axis: the lanes of a warp compute a row of one product.
///
/// **Look for** 1 sector a load of `a`, the same element for all lanes, and 4 of `b`. **Cost** none: the same threads
/// do the same work, numbered otherwise.
#[kernel]
pub unsafe fn batched_batch_last(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, batch: usize) {
    let i = thread::index_x();
    let (product, row, column) = (i / 1024, i / 32 % 32, i % 32);
    if product < batch {
        let (a, b) = (a.starting_at(product * 1024 + row * 32), b.starting_at(product * 1024 + column));
        let mut sum = 0.0;
        for k in steps(0..32usize, 1) {
            // The warp reads one element of `a` together, and a row of `b`.
            sum = fma(a.load(k), b.load(32 * k), sum);
        }
        // The warp stores a row of the product.
        c.store(i, sum);
    }
}

/// Like [`batched_batch_on_x`], with the matrices interleaved: the same element of all of them side by side.
///
/// **Look for** 4 sectors for every access where 8 divides the batch: the fast axis of the threads is that of the
/// memory. **Cost** no lane shares what another reads, so `a` takes four times the sectors of [`batched_batch_last`].
#[kernel]
pub unsafe fn batched_interleaved(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>, batch: usize) {
    let product = thread::block_idx_x() as usize * 32 + thread::thread_idx_x() as usize;
    let element = thread::block_idx_y() as usize * 8 + thread::thread_idx_y() as usize;
    if product < batch {
        let (row, column) = (element / 32, element % 32);
        let (mut a, mut b) = (a.starting_at(row * 32 * batch + product), b.starting_at(column * batch + product));
        let mut sum = 0.0;
        for _ in steps(0..32usize, 1) {
            // The warp reads 32 neighbours of each: one element of 32 matrices.
            sum = fma(a.load(0), b.load(0), sum);
            // An addition a step: no product for each address.
            (a, b) = (a.starting_at(batch), b.starting_at(32 * batch));
        }
        // The warp stores 32 neighbours.
        c.store(element * batch + product, sum);
    }
}

family! {
    const BATCH: Axis = Axis {
        on_gpu: &[Value::Count(1 << 13)],
        ..Axis::counted("batch", "Products of 32x32 matrices, for batched", 1, 1 << 30, &[Value::Count(64)])
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "batched",
        summary: "small matrix products by the batch: the batch on the wrong axis, on the right one, and interleaved",
        axes: &[BATCH],
        kernels: &[
            Entry {
                kernel: batched_batch_on_x::KERNEL,
                plan: |case| {
                    // Wherever the first lane is, no two share a line.
                    let apart = |_, lanes| Progression { first: 0, step: 4096, lanes, width: 4 }.global();
                    let one = warps(case.count("batch"), apart);
                    plan(case, on_x(case)?, false, [one * LOADS, one * LOADS, one * ELEMENTS])
                },
            },
            Entry {
                kernel: batched_batch_last::KERNEL,
                plan: |case| {
                    let batch = case.count("batch");
                    let a_row = Progression::linear(0, 32, 4).global() * batch;
                    let shared = Progression { first: 0, step: 0, lanes: 32, width: 4 }.global() * batch;
                    // A warp a row of each product.
                    let launch = Launch::linear(ELEMENTS * batch, 256)?;
                    plan(case, launch, false, [shared * (LOADS / 32), a_row * (LOADS / 32), a_row * (ELEMENTS / 32)])
                },
            },
            Entry {
                kernel: batched_interleaved::KERNEL,
                plan: |case| {
                    let all = along_rows(ELEMENTS, case.count("batch"), 4);
                    plan(case, on_x(case)?, true, [all * 32, all * 32, all])
                },
            },
        ],
    };

    /// Elements of a matrix.
    const ELEMENTS: u64 = 32 * 32;

    /// Loads of each factor for a product, 32 for an element.
    const LOADS: u64 = 32 * ELEMENTS;

    /// A thread for each product along x, and for each element along y.
    fn on_x(case: &Case) -> Result<Launch, PlanError> {
        Launch::covering(case.count("batch") as u32, ELEMENTS as u32, [32, 8], [32, 8])
    }

    /// A whole number so small that every sum of products of two is exact.
    fn small(i: u64) -> f32 {
        (noise(i) as u32 & 15) as f32
    }

    /// An element of `a * b`, where each matrix begins at the multiple of 1024 below `i`.
    fn product_element(i: u64) -> f32 {
        let (first, row, column) = (i & !(ELEMENTS - 1), i / 32 % 32, i % 32);
        (0..32).map(|k| small(first + 32 * row + k) * small(!(first + 32 * k + column))).sum()
    }

    /// What all kernels have in common; `counts` are those of `a`, `b` and `c`.
    fn plan(case: &Case, launch: Launch, interleaved: bool, counts: [Counts; 3]) -> Result<Plan, PlanError> {
        let batch = case.count("batch");
        let n = product("the number of elements", &[ELEMENTS, batch])?;
        let place = move |i: u64| if interleaved { i % batch * ELEMENTS + i / batch } else { i };
        Ok(Plan::new(launch)
            .buffer(Buffer::input("a", n, move |i| small(place(i)))?)
            .buffer(Buffer::input("b", n, move |i| small(!place(i)))?)
            .buffer(Buffer::output("c", n, move |i| product_element(place(i)))?)
            .scalar("batch", batch)
            .bytes(product("the number of bytes", &[12, n])?)
            .loads("a", 4, counts[0])
            .loads("b", 4, counts[1])
            .stores("c", 4, counts[2]))
    }
}
