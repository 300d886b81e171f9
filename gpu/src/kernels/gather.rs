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

family! {
    use core::ops::Range;

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "gather",
        summary: "indexed reads, sequential writes: random, sorted, block-local and reversed indices",
        axes: &[ELEMENTS, INDICES],
        kernels: &[Entry { kernel: gather_indexed::KERNEL, plan }],
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

        /// Accesses to 4-byte elements at these indices, 32 neighbours a request.
        pub(crate) fn counts(self) -> Counts {
            let (n, len) = (self.n, self.block());
            let request = |first: u64| scattered((first..n.min(first + 32)).map(|i| 4 * self.index(i)), 4);
            let requests = |range: Range<u64>| range.step_by(32).map(request).sum::<Counts>();
            match self.order {
                "sorted" => warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global()),
                "reversed" => {
                    warps(n, |warp, lanes| Progression::linear(4 * (n - 32 * warp - lanes), lanes, 4).global())
                }
                // Two elements of a block share a sector if both go equally many blocks on, and the permutation brings
                // them together: a variant, an exclusive or, moves sectors and lines whole. The number of the block
                // has no part in it.
                _ if n >= len => requests(0..len) * (n / len) + requests(n / len * len..n),
                _ => requests(0..n),
            }
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

    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let (n, indices) = (case.elements(), Indices::of(case));
        let line = warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global());
        Ok(Plan::new(Launch::linear(n, 256)?)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::input("index", n, move |i| indices.index(i) as u32)?)
            .buffer(Buffer::output("dst", n, move |i| noise(indices.index(i)))?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[12, n])?)
            .loads("index", 4, line)
            .loads("src", 4, indices.counts())
            .stores("dst", 4, line))
    }
}
