//! Attention: the scores Q·Kᵀ of one head. Both are stored a row a token; the product wants K by columns.
//!
//! ```text
//!  K   token 0   ■ . . … .      a warp's 32 keys, one dimension: 32 lines, one word of each
//!      token 1   ■ . . … .
//!      …         ■ . . … .      a warp's load of K as it lies:   ■ ■ ■ … ■   one line
//! ```

use crate::device::prelude::*;

/// Dimensions of the head: the length of a row of Q and K.
const HEAD: u32 = 64;

const TILE: u32 = 32;

/// A score a thread, keys along x: each lane walks along a row of K of its own.
///
/// **Look for** 32 sectors in 32 lines for a load of K. **Cost** each line gives the warp one word, and has to wait in the L1
/// for the next dimensions.
#[kernel]
pub unsafe fn attention_naive(q: Global<f32>, k: Global<f32>, scores: GlobalMut<f32>, tokens: u32) {
    let key = thread::block_idx_x() * TILE + thread::thread_idx_x();
    let query = thread::block_idx_y() * TILE + thread::thread_idx_y();
    if key < tokens && query < tokens {
        let mut score = 0.0;
        for d in steps(0..HEAD, 1) {
            // One word of Q for the whole warp; one word from each of 32 rows of K.
            score = fma(q.load(at(query, d, HEAD)), k.load(at(key, d, HEAD)), score);
        }
        // One line.
        scores.store(at(query, key, tokens), score);
    }
}

/// Like [`attention_naive`], with 32 rows of K brought to shared memory along their lines, and read there down the columns.
///
/// **Look for** 4 sectors a load of K, and 32 wavefronts a load of the tile: its rows are 64 words apart, so a column lies in
/// one bank. **Cost** that conflict, in the innermost loop.
#[kernel]
pub unsafe fn attention_tiled(q: Global<f32>, k: Global<f32>, scores: GlobalMut<f32>, tokens: u32) {
    let tile = shared!([f32; 64 * 32]);
    score_through::<64, _>(tile, q, k, scores, tokens);
}

/// Like [`attention_tiled`], with a pitch of 65 words: each row starts one bank further on.
///
/// **Look for** 1 wavefront a load of the tile instead of 32. **Cost** 128 bytes of shared memory.
#[kernel]
pub unsafe fn attention_padded(q: Global<f32>, k: Global<f32>, scores: GlobalMut<f32>, tokens: u32) {
    let tile = shared!([f32; 65 * 32]);
    score_through::<65, _>(tile, q, k, scores, tokens);
}

/// The body of both tiled kernels: `PITCH` is the distance between the rows of the tile, in words.
#[device]
unsafe fn score_through<const PITCH: u32, const N: usize>(
    tile: Shared<f32, N>,
    q: Global<f32>,
    k: Global<f32>,
    scores: GlobalMut<f32>,
    tokens: u32,
) {
    let (lane, row) = (thread::thread_idx_x(), thread::thread_idx_y());
    let first = thread::block_idx_x() * TILE;
    if first + row < tokens {
        unroll!(for d in [0, 32] {
            // A warp moves half a row of K, one line, into 32 banks.
            tile.store(row * PITCH + lane + d, k.load(at(first + row, lane + d, HEAD)));
        });
    }

    // The other rows were written by other warps.
    sync_threads();

    let (key, query) = (first + lane, thread::block_idx_y() * TILE + row);
    if key < tokens && query < tokens {
        let mut score = 0.0;
        for d in steps(0..HEAD, 1) {
            // One word of Q for the whole warp; a column of the tile, `PITCH` words a lane.
            score = fma(q.load(at(query, d, HEAD)), tile.load(lane * PITCH + d), score);
        }
        // One line.
        scores.store(at(query, key, tokens), score);
    }
}

family! {
    const TOKENS: Axis = Axis {
        name: "tokens",
        help: "Tokens of the sequence, 1 to 65536, for attention",
        kind: AxisKind::Count { min: 1, max: 1 << 16 },
        on_gpu: &[Value::Count(4096)],
        in_simulator: &[Value::Count(128), Value::Count(97)],
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "attention",
        summary: "scores of a head of 64: K read down its columns, from global memory and through shared memory",
        axes: &[TOKENS],
        kernels: &[
            Entry { kernel: attention_naive::KERNEL, plan: naive },
            Entry { kernel: attention_tiled::KERNEL, plan: |case| tiled(case, 64) },
            Entry { kernel: attention_padded::KERNEL, plan: |case| tiled(case, 65) },
        ],
    };

    /// Rows of whole numbers from -4 to 4: the scores are at most 64 * 16, and exact.
    fn rows(which: u64, tokens: u64) -> alloc::sync::Arc<[i8]> {
        let element = |i| (noise(which << 32 | i) as u32 % 9) as i8 - 4;
        (0..tokens * u64::from(HEAD)).map(element).collect()
    }

    /// What all have in common: Q, a word at a time for the whole warp, and the scores.
    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let (tokens, head) = (case.count("tokens"), u64::from(HEAD));
        let (q, k) = (rows(0, tokens), rows(1, tokens));
        let (rows_of_q, rows_of_k) = (q.clone(), k.clone());
        let score = move |i: u64| {
            let (query, key) = ((i / tokens * head) as usize, (i % tokens * head) as usize);
            let products = (0..HEAD as usize).map(|d| i32::from(q[query + d]) * i32::from(k[key + d]));
            products.sum::<i32>() as f32
        };
        let one_word = |_, lanes| Progression { first: 0, step: 0, lanes, width: 4 }.global();
        Ok(Plan::new(Launch::covering(tokens as u32, tokens as u32, [TILE, TILE], [32, 32])?)
            .buffer(Buffer::input("q", tokens * head, move |i| f32::from(rows_of_q[i as usize]))?)
            .buffer(Buffer::input("k", tokens * head, move |i| f32::from(rows_of_k[i as usize]))?)
            .buffer(Buffer::output("scores", tokens * tokens, score)?)
            .scalar("tokens", tokens as u32)
            .bytes(4 * (2 * tokens * head + tokens * tokens))
            .loads("q", 4, warps(tokens, one_word) * tokens * head)
            .stores("scores", 4, along_rows(tokens, tokens, 4)))
    }

    fn naive(case: &Case) -> Result<Plan, PlanError> {
        let (tokens, head) = (case.count("tokens"), u64::from(HEAD));
        // Every dimension has its place in the line, but a lane never shares a sector with another.
        let column = warps(tokens, |_, lanes| Progression { first: 0, step: 4 * head, lanes, width: 4 }.global());
        Ok(plan(case)?.loads("k", 4, column * tokens * head))
    }

    /// Every 32 queries bring all of K to shared memory once, two lines a row.
    fn tiled(case: &Case, pitch: u64) -> Result<Plan, PlanError> {
        let (tokens, head) = (case.count("tokens"), u64::from(HEAD));
        let moves = 2 * tokens * tokens.div_ceil(32);
        let column = warps(tokens, |_, lanes| Progression { first: 0, step: 4 * pitch, lanes, width: 4 }.shared());
        Ok(plan(case)?
            .loads("k", 4, Progression::linear(0, 32, 4).global() * moves)
            .stores("tile", 4, Progression::linear(0, 32, 4).shared() * moves)
            .loads("tile", 4, column * tokens * head))
    }
}
