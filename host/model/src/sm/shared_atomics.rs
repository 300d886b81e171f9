//! Atomics in shared memory (probe `atomics`).
//!
//! One on 32-bit integers is a request of as many wavefronts as a bank has lanes, even where these go to one word. One on floats or 64 bits
//! is a loop: in each turn every bank serves one lane by a load and a compare-and-swap, whose wavefronts are the distinct words that are left.
//! Turns lost to other warps on the same words are not modelled.

use super::super::constants::Constants;

/// Cycles of the LSU and the data stage for an atomic of so many wavefronts, a lane of each bank in each. A loop's lanes want so many
/// distinct `words` of a bank at most; what is no loop has none.
pub(super) fn cycles(wavefronts: u16, words: u16, constants: &Constants) -> f64 {
    let (wavefronts, words) = (f64::from(wavefronts), f64::from(words));
    if words == 0.0 {
        return (wavefronts + constants.shared_atomic_cycles).max(constants.shared_atomic_min_cycles);
    }
    wavefronts * constants.shared_loop_lane_cycles + words * words * constants.shared_loop_word_cycles
}
