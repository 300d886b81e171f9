//! Atomics as inline PTX.

use crate::device::{Change, Scope, Value};
use core::arch::asm;

/// A type that PTX has atomics of.
pub trait AtomicBackend: Value {
    #[doc(hidden)]
    unsafe fn global(address: u64, change: Change, scope: Scope, value: Self, compare: Self) -> Self;
    #[doc(hidden)]
    unsafe fn shared(address: u32, change: Change, value: Self, compare: Self) -> Self;
}

/// One instruction: what stood there before.
macro_rules! atom {
    (@operand $operand:ident) => { ", {}" };
    ($opcode:expr, $register:ident, $address:ident $of:ident, $($operand:ident),+) => {{
        let old;
        asm!(concat!($opcode, " {}, [{}]" $(, atom!(@operand $operand))+, ";"), out($register) old, in($of) $address,
            $(in($register) $operand,)+ options(nostack, preserves_flags));
        old
    }};
}

/// The instruction that makes a change to an integer in memory of that space and scope.
macro_rules! change_integer {
    ($space:literal, $add:literal $number:literal $bits:literal, $register:ident, $of:ident,
     $address:ident, $change:ident, $value:ident, $compare:ident) => {
        match $change {
            Change::Add => atom!(concat!("atom.", $space, ".add.", $add), $register, $address $of, $value),
            Change::Min => atom!(concat!("atom.", $space, ".min.", $number), $register, $address $of, $value),
            Change::Max => atom!(concat!("atom.", $space, ".max.", $number), $register, $address $of, $value),
            Change::And => atom!(concat!("atom.", $space, ".and.", $bits), $register, $address $of, $value),
            Change::Or => atom!(concat!("atom.", $space, ".or.", $bits), $register, $address $of, $value),
            Change::Xor => atom!(concat!("atom.", $space, ".xor.", $bits), $register, $address $of, $value),
            Change::Exch => atom!(concat!("atom.", $space, ".exch.", $bits), $register, $address $of, $value),
            Change::Cas => atom!(concat!("atom.", $space, ".cas.", $bits), $register, $address $of, $compare, $value),
            // Only `u32` has these.
            Change::Inc => atom!(concat!("atom.", $space, ".inc.", $number), $register, $address $of, $value),
            Change::Dec => atom!(concat!("atom.", $space, ".dec.", $number), $register, $address $of, $value),
        }
    };
}

/// The same of a floating-point number: it is added or exchanged.
macro_rules! change_float {
    ($space:literal, $add:literal $number:literal $bits:literal, $register:ident, $of:ident,
     $address:ident, $change:ident, $value:ident, $compare:ident) => {{
        let _ = $compare;
        match $change {
            Change::Exch => atom!(concat!("atom.", $space, ".exch.", $bits), $register, $address $of, $value),
            _ => atom!(concat!("atom.", $space, ".add.", $add), $register, $address $of, $value),
        }
    }};
}

macro_rules! atomics { ($($ty:ty: $change:ident $add:literal $number:literal $bits:literal $register:ident)*) => { $(
    impl AtomicBackend for $ty {
        #[inline(always)]
        unsafe fn global(address: u64, change: Change, scope: Scope, value: Self, compare: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe {
                match scope {
                    Scope::Block => {
                        $change!("cta.global", $add $number $bits, $register, reg64, address, change, value, compare)
                    }
                    // The scope that PTX takes where none is named.
                    Scope::Device => {
                        $change!("global", $add $number $bits, $register, reg64, address, change, value, compare)
                    }
                    Scope::System => {
                        $change!("sys.global", $add $number $bits, $register, reg64, address, change, value, compare)
                    }
                }
            }
        }

        #[inline(always)]
        unsafe fn shared(address: u32, change: Change, value: Self, compare: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { $change!("shared", $add $number $bits, $register, reg32, address, change, value, compare) }
        }
    }
)* } }
atomics! {
    u32: change_integer "u32" "u32" "b32" reg32
    i32: change_integer "u32" "s32" "b32" reg32
    u64: change_integer "u64" "u64" "b64" reg64
    i64: change_integer "u64" "s64" "b64" reg64
    f32: change_float "f32" "f32" "b32" reg32
    f64: change_float "f64" "f64" "b64" reg64
}

#[inline(always)]
pub(crate) unsafe fn global_atomic<T: AtomicBackend>(
    base: u64,
    index: usize,
    change: Change,
    scope: Scope,
    value: T,
    compare: T,
) -> T {
    // SAFETY: the caller's promise.
    unsafe { T::global(super::global_element::<T>(base, index), change, scope, value, compare) }
}

#[inline(always)]
pub(crate) unsafe fn shared_atomic<T: AtomicBackend>(
    address: u32,
    index: u32,
    change: Change,
    value: T,
    compare: T,
) -> T {
    // SAFETY: the caller's promise.
    unsafe { T::shared(super::shared_element::<T>(address, index), change, value, compare) }
}
