//! Hashes, for what a GPU decides by hashes nobody knows and for what it leaves to chance.

/// An odd number with its bits all over: the golden ratio in 64 bits.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A number whose bits say nothing of those of the next one.
pub(super) fn mix(number: u64) -> u64 {
    let spread = |number: u64, shift: u32| (number ^ number >> shift).wrapping_mul(GOLDEN);
    spread(spread(number.wrapping_mul(GOLDEN), 32), 29)
}

/// A share between 0 and 1, neither included, that says nothing of that of the next number.
pub(super) fn uniform(number: u64) -> f64 {
    ((mix(number) >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

/// The place of a number in a direct-mapped table of so many.
pub(super) fn place(number: u64, count: usize) -> usize {
    (number.wrapping_mul(GOLDEN) >> 32) as usize % count
}

/// A line's number in 32 bits, never 0. A buffer has 2^33 lines at most: its number is folded into the upper bits.
pub(super) fn tag(number: u64) -> u32 {
    (number as u32 ^ ((number >> 33) as u32).wrapping_mul(0x9E37_79B1)).wrapping_add(1).max(1)
}
