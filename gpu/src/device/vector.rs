//! Vectors: like scalars side by side, moved by one access. Their names are those of their scalars, with how many there are.
//!
//! | scalars of | 2 | 4 | 8 | 16 |
//! | --- | --- | --- | --- | --- |
//! | 1 byte | [`I8x2`] [`U8x2`] | [`I8x4`] [`U8x4`] | [`I8x8`] [`U8x8`] | [`I8x16`] [`U8x16`] |
//! | 2 bytes | [`I16x2`] [`U16x2`] [`F16x2`] [`Bf16x2`] | [`I16x4`] [`U16x4`] [`F16x4`] [`Bf16x4`] | [`I16x8`] [`U16x8`] [`F16x8`] [`Bf16x8`] | |
//! | 4 bytes | [`I32x2`] [`U32x2`] [`F32x2`] | [`I32x4`] [`U32x4`] [`F32x4`] | | |
//! | 8 bytes | [`I64x2`] [`U64x2`] [`F64x2`] | | | |
//!
//! No access is wider than 16 bytes. What counts of a vector is its size alone: a `U8x16` makes the requests of an `F32x4`.

use super::{Value, bf16, f16};

/// A vector's type: its scalar, how many, and the names of its fields where it has names for them.
macro_rules! vectors {
    ($($vector:ident: $scalar:ty, $count:literal, $align:literal $(, $x:ident $y:ident $($z:ident $w:ident)?)?;)*) => { $(
        vectors!(@$vector $scalar, $count, $align $(, $x $y $($z $w)?)?);

        // SAFETY: like scalars, of which every bit pattern is valid, without padding and aligned to the whole.
        unsafe impl Value for $vector {
            const COMPONENTS: usize = $count;
        }

        super::host_only! {
            impl super::host::Pointee for $vector {
                const ELEMENT: crate::suite::Element = <$scalar as crate::suite::ElementType>::ELEMENT;
            }
        }

        const _: () = assert!(size_of::<$vector>() == $align && align_of::<$vector>() == $align);

        impl From<[$scalar; $count]> for $vector {
            #[inline(always)]
            fn from(scalars: [$scalar; $count]) -> Self {
                Self::from_array(scalars)
            }
        }

        impl From<$vector> for [$scalar; $count] {
            #[inline(always)]
            fn from(vector: $vector) -> Self {
                vector.to_array()
            }
        }
    )* };
    (@$vector:ident $scalar:ty, $count:literal, $align:literal, $x:ident $y:ident) => {
        #[doc = concat!("Two `", stringify!($scalar), "`, moved by one access of ", stringify!($align), " bytes.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(C, align($align))]
        pub struct $vector {
            /// The element at the lower address.
            pub $x: $scalar,
            /// The element at the higher address.
            pub $y: $scalar,
        }

        impl $vector {
            /// The vector of these scalars, the first at the lowest address.
            #[inline(always)]
            pub const fn from_array([$x, $y]: [$scalar; $count]) -> Self {
                Self { $x, $y }
            }

            /// Its scalars, that at the lowest address first.
            #[inline(always)]
            pub const fn to_array(self) -> [$scalar; $count] {
                [self.$x, self.$y]
            }

            /// The same scalar throughout.
            #[inline(always)]
            pub const fn splat(scalar: $scalar) -> Self {
                Self { $x: scalar, $y: scalar }
            }
        }
    };
    (@$vector:ident $scalar:ty, $count:literal, $align:literal, $x:ident $y:ident $z:ident $w:ident) => {
        #[doc = concat!("Four `", stringify!($scalar), "`, moved by one access of ", stringify!($align), " bytes.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(C, align($align))]
        pub struct $vector {
            /// The element at the lowest address.
            pub $x: $scalar,
            /// The second element.
            pub $y: $scalar,
            /// The third element.
            pub $z: $scalar,
            /// The element at the highest address.
            pub $w: $scalar,
        }

        impl $vector {
            /// The vector of these scalars, the first at the lowest address.
            #[inline(always)]
            pub const fn from_array([$x, $y, $z, $w]: [$scalar; $count]) -> Self {
                Self { $x, $y, $z, $w }
            }

            /// Its scalars, that at the lowest address first.
            #[inline(always)]
            pub const fn to_array(self) -> [$scalar; $count] {
                [self.$x, self.$y, self.$z, self.$w]
            }

            /// The same scalar throughout.
            #[inline(always)]
            pub const fn splat(scalar: $scalar) -> Self {
                Self { $x: scalar, $y: scalar, $z: scalar, $w: scalar }
            }
        }
    };
    (@$vector:ident $scalar:ty, $count:literal, $align:literal) => {
        #[doc = concat!(stringify!($count), " `", stringify!($scalar), "`, moved by one access of ", stringify!($align), " bytes.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(C, align($align))]
        pub struct $vector(
            /// The elements, that at the lowest address first.
            pub [$scalar; $count],
        );

        impl $vector {
            /// The vector of these scalars, the first at the lowest address.
            #[inline(always)]
            pub const fn from_array(scalars: [$scalar; $count]) -> Self {
                Self(scalars)
            }

            /// Its scalars, that at the lowest address first.
            #[inline(always)]
            pub const fn to_array(self) -> [$scalar; $count] {
                self.0
            }

            /// The same scalar throughout.
            #[inline(always)]
            pub const fn splat(scalar: $scalar) -> Self {
                Self([scalar; $count])
            }
        }
    };
}

vectors! {
    I8x2: i8, 2, 2, x y;
    I8x4: i8, 4, 4, x y z w;
    I8x8: i8, 8, 8;
    I8x16: i8, 16, 16;
    U8x2: u8, 2, 2, x y;
    U8x4: u8, 4, 4, x y z w;
    U8x8: u8, 8, 8;
    U8x16: u8, 16, 16;
    I16x2: i16, 2, 4, x y;
    I16x4: i16, 4, 8, x y z w;
    I16x8: i16, 8, 16;
    U16x2: u16, 2, 4, x y;
    U16x4: u16, 4, 8, x y z w;
    U16x8: u16, 8, 16;
    F16x2: f16, 2, 4, x y;
    F16x4: f16, 4, 8, x y z w;
    F16x8: f16, 8, 16;
    Bf16x2: bf16, 2, 4, x y;
    Bf16x4: bf16, 4, 8, x y z w;
    Bf16x8: bf16, 8, 16;
    I32x2: i32, 2, 8, x y;
    I32x4: i32, 4, 16, x y z w;
    U32x2: u32, 2, 8, x y;
    U32x4: u32, 4, 16, x y z w;
    F32x2: f32, 2, 8, x y;
    F32x4: f32, 4, 16, x y z w;
    I64x2: i64, 2, 16, x y;
    U64x2: u64, 2, 16, x y;
    F64x2: f64, 2, 16, x y;
}
