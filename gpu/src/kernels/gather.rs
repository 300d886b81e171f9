//! Gather: every lane reads where an index sends it, and writes beside its neighbours.
//!
//! ```text
//!  random:        . ■ . . . ■ … ■ . . ■ .     up to 32 sectors in 32 lines, 4 bytes of each
//!  block-local:   ■ . ■ ■ . . ■ ■ | . . .     32 of 256 neighbours: most of their 32 sectors, all in 8 lines
//!  sorted:        ■ ■ ■ ■ … ■ | . . . . .     one line
//! ```

use crate::device::prelude::*;

/// An element a thread, from where its index says: `dst[i] = src[index[i]]`.
///
/// The launch contract: `index` holds `n` numbers below the length of `src`, which nothing here checks.
///
/// **Look for** 4 sectors a load of `src` with sorted or reversed indices, close to 32 with random ones, between the
/// two within blocks of 256. **Cost** random indices fetch a sector for 4 bytes of it, and nobody comes back for the
/// rest.
#[kernel]
pub unsafe fn gather_indexed(src: Global<f32>, index: Global<u32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        // The index and the result are a line each; the load between them goes wherever the indices point.
        dst.store(i, src.load(index.load(i) as usize));
    }
}

/// Like [`gather_indexed`], with four elements a thread: four indices in one load, four loads from where they point, and one
/// store.
///
/// **Look for** a quarter of the requests for indices and results, 16 sectors each; and 16 sectors a load of `src` with sorted
/// indices instead of 4, since its lanes are four elements apart. The next three loads find them in the L1. **Cost** alignment
/// to 16 bytes, and a tail of up to 3; of random indices nothing gets faster, for it is their sectors that take the time.
#[kernel]
pub unsafe fn gather_vec4(src: Global<f32>, index: Global<u32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n / 4 {
        // Four lines of indices a warp.
        let U32x4 { x, y, z, w } = index.cast::<U32x4>().load(i);
        // None of these loads waits for another.
        let (x, y) = (src.load(x as usize), src.load(y as usize));
        let (z, w) = (src.load(z as usize), src.load(w as usize));
        // Four lines of the result.
        dst.cast::<F32x4>().store(i, F32x4 { x, y, z, w });
    }
    if i < n % 4 {
        // The first lanes take what is left.
        let last = n - n % 4 + i;
        dst.store(last, src.load(index.load(last) as usize));
    }
}

family! {
    use core::ops::Range;

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "gather",
        summary: "indexed reads, sequential writes: random, sorted, block-local and reversed indices",
        axes: &[ELEMENTS, INDICES],
        kernels: &[
            Entry { kernel: gather_indexed::KERNEL, plan: |case| plan(case, 1) },
            Entry { kernel: gather_vec4::KERNEL, plan: |case| plan(case, 4) },
        ],
    };

    /// As many elements as 32-bit indices can name.
    pub(crate) const ELEMENTS: Axis = Axis { kind: AxisKind::Count { min: 1, max: 1 << 32 }, ..Axis::ELEMENTS };

    /// The orders of the indices: each is a permutation, so a gather reads every element once and a scatter writes it.
    pub(crate) const INDICES: Axis = Axis::chosen(
        "indices",
        "Orders of the indices, for gather and scatter; block-local is random within 256, sorted is i itself",
        &["random", "block-local", "reversed", "sorted"],
        &[Value::Choice("random"), Value::Choice("block-local"), Value::Choice("reversed"), Value::Choice("sorted")],
    );

    /// The `n` indices of a case, computed one by one from a seed, and backwards.
    #[derive(Clone, Copy)]
    pub(crate) struct Indices {
        n: u64,
        order: &'static str,
    }

    impl Indices {
        pub(crate) fn of(case: &Case) -> Self {
            Self { n: case.elements(), order: case.choice("indices") }
        }

        /// How many elements a block of a random order has. All blocks go by one permutation, each by its own variant of
        /// it, so that one of them tells what each costs; what is left of `n` is permuted by itself.
        fn block(self) -> u64 {
            if self.is_local() { 256 } else { 1 << 20 }
        }

        /// Whether an element stays in its block; otherwise it goes a random number of blocks on.
        fn is_local(self) -> bool {
            self.order == "block-local"
        }

        /// `index[i]`.
        pub(crate) fn index(self, i: u64) -> u64 {
            let (len, blocks) = (self.block(), self.n / self.block());
            let (block, place) = (i / len, i % len);
            match self.order {
                "sorted" => i,
                "reversed" => self.n - 1 - i,
                _ if block == blocks => block * len + permute(place, self.n % len),
                _ => {
                    let block = if self.is_local() { block } else { (block + noise(place) as u64) % blocks };
                    block * len + (permute(place, len) ^ variant(block, len))
                }
            }
        }

        /// The `i` whose index is `index`.
        pub(crate) fn position(self, index: u64) -> u64 {
            let (len, blocks) = (self.block(), self.n / self.block());
            let (block, place) = (index / len, index % len);
            match self.order {
                "sorted" => index,
                "reversed" => self.n - 1 - index,
                _ if block == blocks => block * len + unpermute(place, self.n % len),
                _ => {
                    let place = unpermute(place ^ variant(block, len), len);
                    let back = blocks - noise(place) as u64 % blocks;
                    let block = if self.is_local() { block } else { (block + back) % blocks };
                    block * len + place
                }
            }
        }

        /// Accesses to 4-byte elements at these indices: lanes take `vector` neighbours each, one a request, and the first
        /// lanes of the grid, in a request more, what is left.
        pub(crate) fn counts(self, vector: u64) -> Counts {
            let (whole, len) = (self.n / vector * vector, self.block());
            let at = |lanes: Range<u64>, step: u64| {
                scattered(lanes.step_by(step as usize).map(|i| 4 * self.index(i)), 4)
            };
            // Those of the warps that begin in a range, whose lanes may end before a whole warp does.
            let requests = |range: Range<u64>| -> Counts {
                let warp = |first: u64| range.end.min(first + 32 * vector);
                let warps = range.clone().step_by(32 * vector as usize);
                warps.flat_map(|first| (first..first + vector).map(move |k| (k, first))).map(|(k, first)| at(k..warp(first), vector)).sum()
            };
            let all = match self.order {
                // Warps follow one another by whole lines.
                "sorted" | "reversed" => warps(whole / vector, |warp, lanes| {
                    let first = 32 * vector * warp;
                    requests(first..first + lanes * vector)
                }),
                // Two elements of a block share a sector if both go equally many blocks on, and the permutation brings
                // them together: a variant, an exclusive or, moves sectors and lines whole. The number of the block
                // has no part in it.
                _ if self.n >= len => requests(0..len) * (self.n / len) + requests(self.n / len * len..whole),
                _ => requests(0..whole),
            };
            all + at(whole..self.n, 1)
        }
    }

    /// What sets the order within a block apart from that of other blocks.
    fn variant(block: u64, len: u64) -> u64 {
        noise(block) as u64 % len
    }

    /// The rounds of the random permutation: a product with an odd number, which has an inverse modulo every power of
    /// two, and an exclusive or of the upper half with the lower, which undoes itself.
    const ROUNDS: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xA076_1D64_78BD_642F];

    const SEED: u64 = 0x5851_F42D_4C95_7F2D;

    const INVERSES: [u64; 3] = [inverse(ROUNDS[0]), inverse(ROUNDS[1]), inverse(ROUNDS[2])];

    /// The inverse of an odd number modulo 2^64, by Newton's iteration, which doubles its correct bits each time.
    const fn inverse(odd: u64) -> u64 {
        let (mut inverse, mut correct) = (odd, 3);
        while correct < 64 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
            correct *= 2;
        }
        inverse
    }

    /// The mask of the smallest power of two that holds `n` numbers, and half its bits.
    fn domain(n: u64) -> (u64, u32) {
        let size = n.next_power_of_two();
        (size - 1, size.trailing_zeros().div_ceil(2).max(1))
    }

    /// Where a random permutation of the numbers below `n` sends `i`: what falls beyond them goes through once more.
    fn permute(i: u64, n: u64) -> u64 {
        let (mask, half) = domain(n);
        let round = |x: u64, &odd: &u64| {
            let x = (x.wrapping_mul(odd) ^ SEED) & mask;
            x ^ (x >> half)
        };
        let mut x = ROUNDS.iter().fold(i, round);
        while x >= n {
            x = ROUNDS.iter().fold(x, round);
        }
        x
    }

    /// What [`permute`] sends to `i`.
    fn unpermute(i: u64, n: u64) -> u64 {
        let (mask, half) = domain(n);
        let round = |x: u64, &inverse: &u64| (x ^ (x >> half) ^ (SEED & mask)).wrapping_mul(inverse) & mask;
        let mut x = INVERSES.iter().rev().fold(i, round);
        while x >= n {
            x = INVERSES.iter().rev().fold(x, round);
        }
        x
    }

    /// A line of elements side by side, or `vector` lines; the first lanes of the grid take what is left, in a request more.
    pub(crate) fn side_by_side(n: u64, vector: u64) -> [(u32, Counts); 2] {
        let (vectors, tail, width) = (n / vector, n % vector, 4 * vector);
        let whole = warps(vectors, |warp, lanes| Progression::linear(32 * warp * width, lanes, width).global());
        [(width as u32, whole), (4, Progression::linear(4 * (n - tail), tail, 4).global())]
    }

    fn plan(case: &Case, vector: u64) -> Result<Plan, PlanError> {
        let (n, indices) = (case.elements(), Indices::of(case));
        let plan = Plan::new(Launch::linear(n.div_ceil(vector), 256)?)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::input("index", n, move |i| indices.index(i) as u32)?)
            .buffer(Buffer::output("dst", n, move |i| noise(indices.index(i)))?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[12, n])?)
            .loads("src", 4, indices.counts(vector));
        Ok(side_by_side(n, vector).into_iter().fold(plan, |plan, (width, counts)| {
            plan.loads("index", width, counts).stores("dst", width, counts)
        }))
    }
}
