//! The types of a buffer's elements, and plain values.

use super::{bf16, f16};
use core::fmt;

/// The type of a buffer's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Rust's own types")]
pub enum Element {
    I8,
    U8,
    I16,
    U16,
    F16,
    BF16,
    I32,
    U32,
    F32,
    I64,
    U64,
    F64,
}

impl Element {
    /// Bytes an element.
    pub const fn size(self) -> u64 {
        match self {
            Element::I8 | Element::U8 => 1,
            Element::I16 | Element::U16 | Element::F16 | Element::BF16 => 2,
            Element::I32 | Element::U32 | Element::F32 => 4,
            Element::I64 | Element::U64 | Element::F64 => 8,
        }
    }

    /// Its name in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            Element::I8 => "i8",
            Element::U8 => "u8",
            Element::I16 => "i16",
            Element::U16 => "u16",
            Element::F16 => "f16",
            Element::BF16 => "bf16",
            Element::I32 => "i32",
            Element::U32 => "u32",
            Element::F32 => "f32",
            Element::I64 => "i64",
            Element::U64 => "u64",
            Element::F64 => "f64",
        }
    }
}

/// A Rust type that buffers hold.
pub trait ElementType: Copy {
    /// Its name for the machines.
    const ELEMENT: Element;
    /// Its bits, zero-extended.
    fn bits(self) -> u64;
}

macro_rules! element_types { ($($ty:ty: $element:ident, $bits:expr;)*) => { $(
    impl ElementType for $ty {
        const ELEMENT: Element = Element::$element;
        fn bits(self) -> u64 {
            $bits(self)
        }
    }
)* } }
element_types! {
    i8: I8, |value| u64::from(value as u8);
    u8: U8, u64::from;
    i16: I16, |value| u64::from(value as u16);
    u16: U16, u64::from;
    f16: F16, |value: f16| value.to_bits().into();
    bf16: BF16, |value: bf16| value.to_bits().into();
    i32: I32, |value| u64::from(value as u32);
    u32: U32, u64::from;
    f32: F32, |value: f32| value.to_bits().into();
    i64: I64, |value| value as u64;
    u64: U64, |value| value;
    f64: F64, f64::to_bits;
}

/// A plain value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A whole number.
    Integer(i128),
    /// A floating-point number.
    F32(f32),
}

macro_rules! whole_scalars { ($($ty:ty)*) => { $(
    impl From<$ty> for Scalar {
        fn from(value: $ty) -> Self {
            Self::Integer(value as i128)
        }
    }
)* } }
whole_scalars!(u32 i32 u64 usize);

impl From<f32> for Scalar {
    fn from(value: f32) -> Self {
        Self::F32(value)
    }
}

impl Scalar {
    /// Its bits as a parameter of this type, zero-extended; none if that cannot hold it.
    pub fn bits(self, ty: Element) -> Option<u64> {
        match (self, ty) {
            (Self::F32(value), Element::F32) => Some(value.bits()),
            (Self::Integer(value), Element::U32) => u32::try_from(value).ok().map(u32::bits),
            (Self::Integer(value), Element::I32) => i32::try_from(value).ok().map(i32::bits),
            (Self::Integer(value), Element::U64) => u64::try_from(value).ok(),
            _ => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::F32(value) => write!(f, "{value:?}"),
        }
    }
}
