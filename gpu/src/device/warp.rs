//! The warp: its lanes and what they exchange.

use super::backend;

/// Every lane.
pub const FULL: u32 = u32::MAX;

/// The lane's number in its warp, 0 to 31 (`%laneid`).
#[inline(always)]
pub fn lane_id() -> u32 {
    backend::lane_id()
}

/// The value of the lane `delta` further up, or the lane's own where there is none (`shfl.sync.down`).
#[inline(always)]
#[track_caller]
pub fn shuffle_down(mask: u32, value: f32, delta: u32) -> f32 {
    f32::from_bits(backend::shuffle_down(mask, value.to_bits(), delta))
}

/// The value of the lane whose number differs in the bits of `xor` (`shfl.sync.bfly`).
#[inline(always)]
#[track_caller]
pub fn shuffle_xor(mask: u32, value: f32, xor: u32) -> f32 {
    f32::from_bits(backend::shuffle_xor(mask, value.to_bits(), xor))
}

/// The value of lane `source` (`shfl.sync.idx`).
#[inline(always)]
#[track_caller]
pub fn shuffle(mask: u32, value: f32, source: u32) -> f32 {
    f32::from_bits(backend::shuffle(mask, value.to_bits(), source))
}
