//! What one load or store moves: scalars and vectors of them.

use super::f16;

/// A value that one load or store moves: 1, 2, 4, 8 or 16 bytes, one scalar or a vector of like scalars.
///
/// # Safety
///
/// The type is `Copy`, has no padding, is valid for every bit pattern, has the alignment of its size, and consists of
/// `COMPONENTS` scalars of equal size.
pub unsafe trait Value: Copy + 'static {
    /// How many scalars the value holds: the `n` of PTX's `.vn`.
    const COMPONENTS: usize = 1;
}

macro_rules! scalar_values { ($($ty:ty)*) => { $(
    // SAFETY: a primitive of a power-of-two size, aligned to it, valid for every bit pattern.
    unsafe impl Value for $ty {}
)* } }
scalar_values!(i8 u8 i16 u16 f16 i32 u32 f32 i64 u64 f64);

/// Two `f32`, moved by one 8-byte access.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(8))]
pub struct F32x2 {
    /// The element at the lower address.
    pub x: f32,
    /// The element at the higher address.
    pub y: f32,
}
// SAFETY: two `f32` without padding, aligned to 8 bytes.
unsafe impl Value for F32x2 {
    const COMPONENTS: usize = 2;
}

/// Four `f32`, moved by one 16-byte access.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(16))]
pub struct F32x4 {
    /// The element at the lowest address.
    pub x: f32,
    /// The second element.
    pub y: f32,
    /// The third element.
    pub z: f32,
    /// The element at the highest address.
    pub w: f32,
}
// SAFETY: four `f32` without padding, aligned to 16 bytes.
unsafe impl Value for F32x4 {
    const COMPONENTS: usize = 4;
}
