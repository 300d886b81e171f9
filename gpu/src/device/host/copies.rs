//! Copies from global to shared memory that go on while the kernel does.

use super::lane::machine;
use super::{Access, Op, Space};
use crate::device::{Cache, Value};
use core::panic::Location;

#[inline]
#[track_caller]
pub(crate) unsafe fn copy_async<T: Value>(to: u32, index: u32, from: u64, at: usize) {
    // Of 16 bytes, past the L1.
    let load = const {
        let cache = if size_of::<T>() == 16 { Cache::Global } else { Cache::All };
        Access::of::<T>(Space::Global, Op::CopyFrom(cache))
    };
    let store = const { Access::of::<T>(Space::Shared, Op::CopyTo) };
    machine().copy_async(load, (from, at as u64), store, (to.into(), index.into()), Location::caller());
}

#[inline]
#[track_caller]
pub(crate) fn commit_copies() {
    machine().commit_copies(Location::caller());
}

#[inline]
#[track_caller]
pub(crate) fn wait_copies<const N: u32>() {
    machine().wait_copies(Some(N), Location::caller());
}

#[inline]
#[track_caller]
pub(crate) fn wait_all_copies() {
    machine().wait_copies(None, Location::caller());
}
