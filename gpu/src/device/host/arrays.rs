//! Arrays in shared and constant memory.

use super::lane::machine;
use crate::device::{Constant, Shared, Value};
use core::panic::Location;

/// On the host an array needs no item of its own.
#[macro_export]
#[doc(hidden)]
macro_rules! __no_array {
    ($symbol:ident, $ty:ty) => {};
}
#[doc(hidden)]
pub use crate::__no_array as shared_array;
#[doc(hidden)]
pub use crate::__no_array as constant_array;

/// A static array in shared memory: `let tile = shared!([f32; 33 * 32]);`.
#[macro_export]
#[doc(hidden)]
macro_rules! __shared {
    ($symbol:ident, $name:ident, [$element:ty; $length:expr]) => {
        $crate::device::host::shared_array_of::<$element, { $length }>(stringify!($name))
    };
    ($($type:tt)*) => {
        compile_error!(
            "shared memory is a kernel's: write `let tile = shared!([f32; 256]);` in the function under #[kernel], and give `tile` to \
             other functions as a parameter"
        )
    };
}
#[doc(hidden)]
pub use crate::__shared as shared;

#[doc(hidden)]
#[inline]
#[track_caller]
pub fn shared_array_of<T: Value, const N: usize>(name: &'static str) -> Shared<T, N> {
    Shared::from_address(machine().shared_array(name, Location::caller()))
}

/// A static array in constant memory: `let table = constant!([f32; 64]);`.
#[macro_export]
#[doc(hidden)]
macro_rules! __constant {
    ($symbol:ident, $name:ident, [$element:ty; $length:expr]) => {
        $crate::device::host::constant_array_of::<$element, { $length }>(stringify!($name))
    };
    ($($type:tt)*) => {
        compile_error!(
            "constant memory is a kernel's: write `let table = constant!([f32; 64]);` in the function under #[kernel], and give `table` \
             to other functions as a parameter"
        )
    };
}
#[doc(hidden)]
pub use crate::__constant as constant;

#[doc(hidden)]
#[inline]
#[track_caller]
pub fn constant_array_of<T: Value, const N: usize>(name: &'static str) -> Constant<T, N> {
    Constant::from_address(machine().constant_array(name, N * size_of::<T>(), Location::caller()))
}

#[track_caller]
pub(crate) fn dynamic_shared() -> u32 {
    machine().dynamic_shared(Location::caller())
}
