//! Approximate functions of single precision: one instruction of the special-function unit each, and few of arithmetic.
//!
//! How far they are off stands in the PTX ISA, by instruction. The simulator computes each exactly and rounds once:
//! nearer than the hardware comes, and not its bits.

use super::backend;

macro_rules! functions { ($($(#[$doc:meta])* $name:ident)*) => { $(
    $(#[$doc])*
    #[inline(always)]
    pub fn $name(x: f32) -> f32 {
        backend::$name(x)
    }
)* } }
functions! {
    /// `1 / x` (`rcp.approx.f32`): off by 1 unit in the last place at most.
    rcp
    /// The square root (`sqrt.approx.f32`).
    sqrt
    /// `1 / sqrt(x)` (`rsqrt.approx.f32`, CUDA's `rsqrtf`).
    rsqrt
    /// The sine of `x` radians (`sin.approx.f32`, CUDA's `__sinf`): good for -π to π.
    sin
    /// The cosine of `x` radians (`cos.approx.f32`, CUDA's `__cosf`): good for -π to π.
    cos
    /// 2 to the power of `x` (`ex2.approx.f32`, CUDA's `exp2f` with fast math).
    exp2
    /// The logarithm to the base 2 (`lg2.approx.f32`, CUDA's `__log2f`).
    log2
    /// The hyperbolic tangent (`tanh.approx.f32`).
    tanh
}
