//! What inputs hold: numbers that differ from their neighbours.

use super::{bf16, f16};

/// A finite number that differs from its neighbours: 23 random bits of element `i`, exactly a `f32`.
pub fn noise(i: u64) -> f32 {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (z >> 41) as f32
}

/// As [`noise`], of 8 bits: any value.
pub fn noise_i8(i: u64) -> i8 {
    noise(i) as u32 as i8
}

/// As [`noise`], of 16 bits: a finite, positive number.
pub fn noise_f16(i: u64) -> f16 {
    f16::from_bits((noise(i) as u32 % u32::from(f16::INFINITY.to_bits())) as u16)
}

/// As [`noise_f16`], of the other 16-bit format.
pub fn noise_bf16(i: u64) -> bf16 {
    bf16::from_bits((noise(i) as u32 % u32::from(bf16::INFINITY.to_bits())) as u16)
}

/// As [`noise`], of 64 bits, any of them: for integers of every width.
pub fn noise_bits(i: u64) -> u64 {
    [0, 1, 2].into_iter().fold(0, |bits, part| bits << 23 ^ noise(3 * i + part) as u64)
}

/// As [`noise`], of 64 bits, 46 of them random, so that neither half of an element tells the other.
pub fn noise_f64(i: u64) -> f64 {
    f64::from(noise(2 * i)) + f64::from(noise(2 * i + 1)) / f64::from(1 << 23)
}
