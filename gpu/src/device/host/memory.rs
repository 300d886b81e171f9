//! Loads, stores and atomics: by the lane itself where they are expected, else by its machine.

use super::lane::{lane, machine};
use super::{Access, Atomic, Expected, Number, Op, Site, Space};
use crate::device::{AtomicKind, Cache, Change, Scope, Value};
use core::mem::MaybeUninit;
use core::panic::Location;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

#[inline]
#[track_caller]
pub(crate) unsafe fn global_load<T: Value>(base: u64, index: usize, cache: Cache) -> T {
    let access = match cache {
        Cache::All | Cache::NonCoherent | Cache::Streaming => {
            const { Access::of::<T>(Space::Global, Op::Load(Cache::All)) }
        }
        Cache::Global => const { Access::of::<T>(Space::Global, Op::Load(Cache::Global)) },
        Cache::Volatile => const { Access::of::<T>(Space::Global, Op::Load(Cache::Volatile)) },
    };
    load(access, base, index as u64)
}

#[inline]
#[track_caller]
pub(crate) unsafe fn global_store<T: Value>(base: u64, index: usize, value: T) {
    store(const { Access::of::<T>(Space::Global, Op::Store) }, base, index as u64, value);
}

#[inline]
#[track_caller]
pub(crate) unsafe fn shared_load<T: Value>(address: u32, index: u32) -> T {
    load(const { Access::of::<T>(Space::Shared, Op::Load(Cache::All)) }, address.into(), index.into())
}

#[inline]
#[track_caller]
pub(crate) unsafe fn shared_store<T: Value>(address: u32, index: u32, value: T) {
    store(const { Access::of::<T>(Space::Shared, Op::Store) }, address.into(), index.into(), value);
}

#[inline]
#[track_caller]
pub(crate) unsafe fn constant_load<T: Value>(base: u64, index: u32) -> T {
    load(const { Access::of::<T>(Space::Constant, Op::Load(Cache::All)) }, base, index.into())
}

pub(crate) fn global_element<T>(base: u64, index: usize) -> u64 {
    machine().advance(Space::Global, base, (index as i64).saturating_mul(size_of::<T>() as i64))
}

pub(crate) fn shared_element<T>(address: u32, index: u32) -> u32 {
    machine().advance(Space::Shared, address.into(), i64::from(index.cast_signed()) * size_of::<T>() as i64) as u32
}

#[inline]
#[track_caller]
pub(crate) unsafe fn global_store_volatile<T: Value>(base: u64, index: usize, mut value: T) {
    let store = const { Access::of::<T>(Space::Global, Op::StoreVolatile) };
    // SAFETY: `value` is as wide and as aligned as the access.
    unsafe { unexpected(store, base, index as u64, (&raw mut value).cast(), Location::caller()) };
}

#[inline]
#[track_caller]
pub(crate) unsafe fn shared_load_relaxed<T: Value>(address: u32, index: u32) -> T {
    load(const { Access::of::<T>(Space::Shared, Op::Load(Cache::Volatile)) }, address.into(), index.into())
}

#[inline]
#[track_caller]
pub(crate) unsafe fn shared_store_relaxed<T: Value>(address: u32, index: u32, value: T) {
    store(const { Access::of::<T>(Space::Shared, Op::StoreVolatile) }, address.into(), index.into(), value);
}

#[inline]
#[track_caller]
pub(crate) unsafe fn global_atomic<T: AtomicBackend>(
    base: u64,
    index: usize,
    change: Change,
    scope: Scope,
    value: T,
    compare: T,
) -> T {
    let adds_integers = change == Change::Add && T::NUMBER.is_integer();
    let kind = if adds_integers { AtomicKind::AddsIntegers } else { AtomicKind::Plain };
    let access = Access::of::<T>(Space::Global, Op::Atomic { scope, kind });
    atomic(access, base, index as u64, change, value, compare)
}

#[inline]
#[track_caller]
pub(crate) unsafe fn shared_atomic<T: AtomicBackend>(
    address: u32,
    index: u32,
    change: Change,
    value: T,
    compare: T,
) -> T {
    let kind = match change {
        Change::Cas => AtomicKind::Swap,
        Change::Exch => AtomicKind::Plain,
        _ if size_of::<T>() == 8 || !T::NUMBER.is_integer() => AtomicKind::Loop,
        _ => AtomicKind::Plain,
    };
    let op = Op::Atomic { scope: Scope::Block, kind };
    let access = Access::of::<T>(Space::Shared, op);
    atomic(access, address.into(), index.into(), change, value, compare)
}

#[inline]
#[track_caller]
fn atomic<T: AtomicBackend>(access: Access, base: u64, index: u64, change: Change, mut value: T, compare: T) -> T {
    let atomic = Atomic { change, number: T::NUMBER, compare: compare.bits() };
    // SAFETY: `value` is as wide and as aligned as the access.
    unsafe { machine().atomic(access, atomic, base, index, (&raw mut value).cast(), Location::caller()) };
    value
}

#[inline]
#[track_caller]
pub(crate) fn fence(scope: Scope) {
    machine().fence(scope, Location::caller());
}

#[inline(always)]
#[track_caller]
fn load<T: Value>(access: Access, base: u64, index: u64) -> T {
    let at = Location::caller();
    if let Some(element) = expected(Site::new(at, access), base, index) {
        // SAFETY: it is at hand.
        return unsafe { read(element) };
    }
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: `value` is as wide and as aligned as the access, which fills it; every bit pattern is a `Value`.
    unsafe {
        unexpected(access, base, index, value.as_mut_ptr().cast(), at);
        value.assume_init()
    }
}

#[inline(always)]
#[track_caller]
fn store<T: Value>(access: Access, base: u64, index: u64, mut value: T) {
    let at = Location::caller();
    match expected(Site::new(at, access), base, index) {
        // SAFETY: it is at hand.
        Some(element) => unsafe { write(element, value) },
        // SAFETY: `value` is as wide and as aligned as the access.
        None => unsafe { unexpected(access, base, index, (&raw mut value).cast(), at) },
    }
}

/// Where the element stands, if the access is one that the running lane makes by itself.
#[inline(always)]
fn expected<T>(site: Site, base: u64, index: u64) -> Option<*mut T> {
    // SAFETY: the lane is running.
    let elements = unsafe { Expected::meet(lane(), site, base, index) }?;
    Some(elements.cast::<T>().wrapping_add(index as usize))
}

/// Has the machine carry out an access.
///
/// # Safety
/// As [`Machine::access`](super::machine::Machine::access).
#[cold]
#[inline(never)]
unsafe fn unexpected(access: Access, base: u64, index: u64, value: *mut u8, at: &'static Location<'static>) {
    // SAFETY: the caller's promise.
    unsafe { machine().access(access, base, index, value, at) };
}

/// Copies a value out of memory that other threads access too, atomically up to 8 bytes.
///
/// # Safety
/// `element` is memory of the machine, as wide as the value and aligned to it, and only accessed by these two functions.
#[inline(always)]
pub unsafe fn read<T: Value>(element: *const T) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let to = value.as_mut_ptr();
    // SAFETY: the caller's promise; every bit pattern is a `Value`.
    unsafe {
        match size_of::<T>() {
            1 => to.cast::<u8>().write((*element.cast::<AtomicU8>()).load(Relaxed)),
            2 => to.cast::<u16>().write((*element.cast::<AtomicU16>()).load(Relaxed)),
            4 => to.cast::<u32>().write((*element.cast::<AtomicU32>()).load(Relaxed)),
            bytes => {
                for word in 0..bytes / 8 {
                    to.cast::<u64>().add(word).write((*element.cast::<AtomicU64>().add(word)).load(Relaxed));
                }
            }
        }
        value.assume_init()
    }
}

/// Copies a value to memory that other threads access too, atomically up to 8 bytes.
///
/// # Safety
/// As [`read`].
#[inline(always)]
pub unsafe fn write<T: Value>(element: *mut T, value: T) {
    let from = &raw const value;
    // SAFETY: the caller's promise.
    unsafe {
        match size_of::<T>() {
            1 => (*element.cast::<AtomicU8>()).store(from.cast::<u8>().read(), Relaxed),
            2 => (*element.cast::<AtomicU16>()).store(from.cast::<u16>().read(), Relaxed),
            4 => (*element.cast::<AtomicU32>()).store(from.cast::<u32>().read(), Relaxed),
            bytes => {
                for word in 0..bytes / 8 {
                    (*element.cast::<AtomicU64>().add(word)).store(from.cast::<u64>().add(word).read(), Relaxed);
                }
            }
        }
    }
}

/// A type of which the machine knows atomics.
pub trait AtomicBackend: Value {
    /// What they compute with.
    const NUMBER: Number;

    /// Its bits, the lowest of the word.
    fn bits(self) -> u64;
}

macro_rules! atomics { ($($ty:ty: $number:ident |$value:ident| $bits:expr;)*) => { $(
    impl AtomicBackend for $ty {
        const NUMBER: Number = Number::$number;

        #[inline]
        fn bits(self) -> u64 {
            let $value = self;
            $bits
        }
    }
)* } }
atomics! {
    u32: U32 |value| value.into();
    i32: I32 |value| value.cast_unsigned().into();
    u64: U64 |value| value;
    i64: I64 |value| value.cast_unsigned();
    f32: F32 |value| value.to_bits().into();
    f64: F64 |value| value.to_bits();
}
