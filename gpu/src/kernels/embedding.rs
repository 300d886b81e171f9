//! Embedding: rows of a table, looked up by index and laid side by side.
//!
//! ```text
//!  a thread a row:   lane 0  ■ → → →      a warp's load: an element of each of 32 rows, 32 sectors
//!                    lane 1  ■ → → →
//!  a warp a row:     ■ ■ ■ … ■ | ■ ■ …    a warp's load: 32 elements of one row, one line
//! ```
//!
//! The launch contract of every kernel here: `indices` holds `n` numbers below the rows of `table`, and the rows of
//! `table` and of `dst` begin a multiple of 4 elements apart, so that each can be read 16 bytes at a time.

use crate::device::prelude::*;

/// The rows that a block of [`embedding_half_warp_a_row_vec4`] copies: four of each of its 16 half warps.
const ROWS_A_BLOCK: usize = 64;

/// A thread a row: each lane copies the row that its index names, element by element.
///
/// **Look for** 32 sectors a load with random indices, and 32 a store with any. **Cost** the next element of each row
/// comes from the L1 if it is still there: 32 rows a warp compete for it.
#[kernel]
pub unsafe fn embedding_thread_a_row(
    table: Global<f32>,
    indices: Global<u32>,
    dst: GlobalMut<f32>,
    n: usize,
    width: usize,
    pitch: usize,
) {
    let i = thread::index_x();
    if i < n {
        // The warp's indices are one line.
        let row = indices.load(i) as usize;
        for x in steps(0..width, 1) {
            // The warp loads an element of each lane's row, and stores rows that are `pitch` apart.
            dst.store(i * pitch + x, table.load(row * pitch + x));
        }
    }
}

/// A warp a row: its lanes copy 32 neighbouring elements at a time.
///
/// **Look for** 4 sectors a request on both sides, in whatever order the rows come: a row is long enough to be
/// coalesced on its own. **Cost** the index is read by 32 lanes, one sector for 4 bytes.
#[kernel]
pub unsafe fn embedding_warp_a_row(
    table: Global<f32>,
    indices: Global<u32>,
    dst: GlobalMut<f32>,
    n: usize,
    width: usize,
    pitch: usize,
) {
    let i = thread::index_x() / 32;
    if i < n {
        // All lanes read the same index.
        let row = indices.load(i) as usize;
        for first in steps(0..width, 32) {
            let x = first + warp::lane_id() as usize;
            if x < width {
                // The warp moves up to one line of the row.
                dst.store(i * pitch + x, table.load(row * pitch + x));
            }
        }
    }
}

/// Like [`embedding_warp_a_row`], with 16 bytes a lane: a row of 128 floats in one access.
///
/// **Look for** a quarter of the requests, 16 sectors each. **Cost** whole vectors move, padding included; of a row of
/// 64 floats each access uses half the lanes.
#[kernel]
pub unsafe fn embedding_warp_a_row_vec4(
    table: Global<f32>,
    indices: Global<u32>,
    dst: GlobalMut<f32>,
    n: usize,
    vectors: usize,
) {
    let (table, dst) = (table.cast::<F32x4>(), dst.cast::<F32x4>());
    let i = thread::index_x() / 32;
    if i < n {
        // All lanes read the same index.
        let row = indices.load(i) as usize;
        for first in steps(0..vectors, 32) {
            let x = first + warp::lane_id() as usize;
            if x < vectors {
                // The warp moves up to four lines of the row.
                dst.store(i * vectors + x, table.load(row * vectors + x));
            }
        }
    }
}

/// Like [`embedding_warp_a_row_vec4`], with half a warp a row and four rows a half warp, all on their way at a time.
///
/// **Look for** all lanes in use also with rows of 64 floats, so half the requests for those, two rows each; and a request for
/// indices that serves two rows. **Cost** 16 registers a thread for the vectors under way, and a fourth of the threads.
#[kernel]
pub unsafe fn embedding_half_warp_a_row_vec4(
    table: Global<f32>,
    indices: Global<u32>,
    dst: GlobalMut<f32>,
    n: usize,
    vectors: usize,
) {
    let (table, dst) = (table.cast::<F32x4>(), dst.cast::<F32x4>());
    let (lane, half_warp) = (thread::thread_idx_x() as usize % 16, thread::thread_idx_x() as usize / 16);
    let first = thread::block_idx_x() as usize * ROWS_A_BLOCK + half_warp;
    let mut rows = [0; 4];
    unroll!(for k in [0, 1, 2, 3] {
        if first + 16 * (k as usize) < n {
            // The lanes of a half warp read the same index, and those of the other the next one.
            rows[k as usize] = indices.load(first + 16 * k as usize) as usize;
        }
    });
    for start in steps(0..vectors, 16) {
        let x = start + lane;
        let mut values = [F32x4::splat(0.0); 4];
        unroll!(for k in [0, 1, 2, 3] {
            if x < vectors && first + 16 * (k as usize) < n {
                // 256 bytes of each of two rows; nothing waits for them until all four loads are on their way.
                values[k as usize] = table.load(rows[k as usize] * vectors + x);
            }
        });
        unroll!(for k in [0, 1, 2, 3] {
            if x < vectors && first + 16 * (k as usize) < n {
                // 256 bytes of each of two neighbours.
                dst.store((first + 16 * k as usize) * vectors + x, values[k as usize]);
            }
        });
    }
}

family! {
    /// The numbers of lookups.
    const LOOKUPS: Axis = Axis {
        kind: AxisKind::Count { min: 1, max: 1 << 32 },
        on_gpu: &[Value::Count(1 << 20)],
        in_simulator: &[Value::Count(1 << 12)],
        ..Axis::ELEMENTS
    };

    const WIDTH: Axis = Axis::counted(
        "width",
        "Floats of a row, for embedding, 1 to 4096",
        1,
        4096,
        &[Value::Count(64), Value::Count(128)],
    );

    /// On a GPU a table that fits every L2 (8 MiB of rows of 128 floats) and one that fits none (512 MiB).
    const ROWS: Axis = Axis {
        on_gpu: &[Value::Count(1 << 14), Value::Count(1 << 20)],
        ..Axis::counted("rows", "Rows of the table, for embedding", 1, 1 << 32, &[Value::Count(1 << 10)])
    };

    const ORDER: Axis = Axis::chosen(
        "lookups",
        "Orders of the rows looked up, for embedding: random, or sorted (rising from the first row to the last)",
        &["random", "sorted"],
        &[Value::Choice("random"), Value::Choice("sorted")],
    );

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "embedding",
        summary: "rows looked up in a table: a thread a row, a warp a row, 16 bytes a lane, half a warp a row",
        axes: &[LOOKUPS, WIDTH, ROWS, ORDER],
        kernels: &[
            Entry { kernel: embedding_thread_a_row::KERNEL, plan: thread_a_row },
            Entry { kernel: embedding_warp_a_row::KERNEL, plan: |case| warp_a_row(case, 1) },
            Entry { kernel: embedding_warp_a_row_vec4::KERNEL, plan: |case| warp_a_row(case, 4) },
            Entry { kernel: embedding_half_warp_a_row_vec4::KERNEL, plan: half_warp_a_row },
        ],
    };

    /// A case: `n` lookups of rows of `width` elements, `pitch` apart.
    #[derive(Clone, Copy)]
    struct Lookups {
        n: u64,
        width: u64,
        pitch: u64,
        rows: u64,
        sorted: bool,
    }

    impl Lookups {
        fn of(case: &Case) -> Self {
            let width = case.count("width");
            let (pitch, sorted) = (width.next_multiple_of(4), case.choice("lookups") == "sorted");
            Self { n: case.elements(), width, pitch, rows: case.count("rows"), sorted }
        }

        /// The row that lookup `i` names. A random one may be named often, or never.
        fn row(self, i: u64) -> u64 {
            if self.sorted {
                // At most 2^32 lookups of 2^32 rows.
                i * self.rows / self.n
            } else {
                ((noise(2 * i) as u64) << 23 | noise(2 * i + 1) as u64) % self.rows
            }
        }

        /// What all kernels have in common; the first `written` elements of a row of `dst` are written.
        fn plan(self, launch: Launch, written: u64) -> Result<Plan, PlanError> {
            let element = move |at| noise(self.row(at / self.pitch) * self.pitch + at % self.pitch);
            let table = product("the table's number of elements", &[self.rows, self.pitch])?;
            let result = product("the result's number of elements", &[self.n, self.pitch])?;
            let moved = product("the number of bytes", &[8, self.width, self.n])?;
            Ok(Plan::new(launch)
                .buffer(Buffer::input("table", table, noise)?)
                .buffer(Buffer::input("indices", self.n, move |i| self.row(i) as u32)?)
                .buffer(Buffer::partial_output("dst", result, move |at| {
                    (at % self.pitch < written).then(|| element(at))
                })?)
                .scalar("n", self.n)
                .bytes(moved + 4 * self.n))
        }
    }

    fn thread_a_row(case: &Case) -> Result<Plan, PlanError> {
        let lookups = Lookups::of(case);
        let Lookups { n, width, pitch, .. } = lookups;
        let load = |first: u64, x: u64| {
            scattered((first..n.min(first + 32)).map(|i| 4 * (lookups.row(i) * pitch + x)), 4)
        };
        // Rows of a line or more share neither sector nor line, so every element of them costs what the first does.
        let loads = |first: u64| -> Counts {
            if pitch >= 32 { load(first, 0) * width } else { (0..width).map(|x| load(first, x)).sum() }
        };
        let step = 4 * pitch;
        let stores = periodic(width, 32, |x| {
            warps(n, |warp, lanes| Progression { first: 32 * warp * step + 4 * x, step, lanes, width: 4 }.global())
        });
        Ok(lookups
            .plan(Launch::linear(n, 256)?, width)?
            .scalar("width", width)
            .scalar("pitch", pitch)
            .loads("indices", 4, warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global()))
            .loads("table", 4, (0..n).step_by(32).map(loads).sum())
            .stores("dst", 4, stores))
    }

    fn warp_a_row(case: &Case, vector: u64) -> Result<Plan, PlanError> {
        let lookups = Lookups::of(case);
        let Lookups { n, width, pitch, .. } = lookups;
        let (bytes, items) = (4 * vector, if vector == 1 { width } else { pitch / vector });
        let row = |row: u64| {
            warps(items, |warp, lanes| Progression::linear(4 * row * pitch + 32 * warp * bytes, lanes, bytes).global())
        };
        let plan = lookups.plan(Launch::linear(32 * n, 256)?, if vector == 1 { width } else { pitch })?;
        let plan = if vector == 1 {
            plan.scalar("width", width).scalar("pitch", pitch)
        } else {
            plan.scalar("vectors", items)
        };
        Ok(plan
            .loads("indices", 4, Progression { first: 0, step: 0, lanes: 32, width: 4 }.global() * n)
            .loads("table", bytes as u32, (0..n).map(|i| row(lookups.row(i))).sum())
            .stores("dst", bytes as u32, periodic(n, 32, row)))
    }

    fn half_warp_a_row(case: &Case) -> Result<Plan, PlanError> {
        let lookups = Lookups::of(case);
        let Lookups { n, pitch, .. } = lookups;
        let vectors = pitch / 4;
        // A warp's two rows, 16 vectors of each at a time.
        let pair = |rows: [Option<u64>; 2]| -> Counts {
            let piece = |start: u64| {
                let lanes = |row: u64| (start..vectors.min(start + 16)).map(move |x| 16 * (row * vectors + x));
                scattered(rows.into_iter().flatten().flat_map(lanes), 16)
            };
            (0..vectors).step_by(16).map(piece).sum()
        };
        let of = |i: u64, row: fn(Lookups, u64) -> u64| pair([i, i + 1].map(|i| (i < n).then(|| row(lookups, i))));
        let index = warps(16 * n, |_, lanes| scattered((0..lanes).map(|lane| 4 * (lane / 16)), 4));
        Ok(lookups
            .plan(Launch::linear(n.div_ceil(4) * 16, 256)?, pitch)?
            .scalar("vectors", vectors)
            .loads("indices", 4, index)
            .loads("table", 16, (0..n).step_by(2).map(|i| of(i, Lookups::row)).sum())
            .stores("dst", 16, periodic(n / 2, 16, |i| of(2 * i, |_, i| i)) + pair([(n % 2 == 1).then(|| n - 1), None])))
    }
}
