//! What one load or store moves: scalars, and vectors of them.

use super::{bf16, f16};

/// A value that one load or store moves: 1, 2, 4, 8 or 16 bytes, one scalar or a vector of like scalars.
///
/// # Safety
///
/// The type is `Copy`, has no padding, is valid for every bit pattern, has the alignment of its size, and consists of
/// `COMPONENTS` scalars of equal size.
pub unsafe trait Value: Copy + 'static {
    /// How many scalars the value holds.
    const COMPONENTS: usize = 1;
}

macro_rules! scalar_values { ($($ty:ty)*) => { $(
    // SAFETY: a primitive of a power-of-two size, aligned to it, valid for every bit pattern.
    unsafe impl Value for $ty {}
)* } }
scalar_values!(i8 u8 i16 u16 f16 bf16 i32 u32 f32 i64 u64 f64);
