//! Lanes of a warp, and what they do together: shuffles, votes, matches, reductions. None of it touches memory.
//!
//! Each takes a mask of the lanes that come: every one of them that has not ended comes to the same call with the same mask, and is
//! in it itself. The simulator reports whoever does not, by both lines. A shuffle from a lane that takes no part is reported too.

use super::{Bf16x2, F16x2, I8x4, I16x2, U8x4, U16x2, Value, backend};
use core::mem::transmute_copy;

/// Every lane.
pub const FULL: u32 = u32::MAX;

/// The lane's number in its warp, 0 to 31 (`%laneid`).
#[inline(always)]
pub fn lane_id() -> u32 {
    backend::lane_id()
}

/// A value that shuffles move: 4 bytes by one, 8 bytes by two on a GPU, the lower half first.
///
/// # Safety
/// It is 4 or 8 bytes wide.
#[diagnostic::on_unimplemented(
    message = "no shuffle moves a `{Self}`",
    note = "shuffles move values of 32 and 64 bits: `u32`, `i32`, `f32`, `u64`, `i64`, `f64`, and narrow ones as vectors of 4 \
            bytes, such as `F16x2` and `U8x4`"
)]
pub unsafe trait Shuffle: Value {}

macro_rules! shuffle_types { ($($ty:ty)*) => { $(
    // SAFETY: it is so wide, or this does not compile.
    unsafe impl Shuffle for $ty {}
    const _: () = assert!(matches!(size_of::<$ty>(), 4 | 8));
)* } }
shuffle_types!(u32 i32 f32 u64 i64 f64 F16x2 Bf16x2 U16x2 I16x2 U8x4 I8x4);

/// Moves a value by as many shuffles of 32 bits as it takes. A macro, so that each has the caller's position.
macro_rules! by_words {
    ($T:ty, $value:expr, |$word:ident| $shuffle:expr) => {{
        let value = $value;
        // SAFETY: `T` is 4 or 8 bytes wide, and valid for every bit pattern.
        unsafe {
            if const { size_of::<$T>() == 4 } {
                let $word: u32 = transmute_copy(&value);
                transmute_copy(&$shuffle)
            } else {
                let [low, high] = transmute_copy::<$T, [u32; 2]>(&value);
                let $word = low;
                let low = $shuffle;
                let $word = high;
                transmute_copy(&[low, $shuffle])
            }
        }
    }};
}

/// The value of lane `source`, of which five bits count (`shfl.sync.idx`).
#[inline(always)]
#[track_caller]
pub fn shuffle<T: Shuffle>(mask: u32, value: T, source: u32) -> T {
    by_words!(T, value, |word| backend::shuffle(mask, word, source))
}

/// The value of the lane `delta` further down, or the lane's own where there is none (`shfl.sync.up`).
#[inline(always)]
#[track_caller]
pub fn shuffle_up<T: Shuffle>(mask: u32, value: T, delta: u32) -> T {
    by_words!(T, value, |word| backend::shuffle_up(mask, word, delta))
}

/// The value of the lane `delta` further up, or the lane's own where there is none (`shfl.sync.down`).
#[inline(always)]
#[track_caller]
pub fn shuffle_down<T: Shuffle>(mask: u32, value: T, delta: u32) -> T {
    by_words!(T, value, |word| backend::shuffle_down(mask, word, delta))
}

/// The value of the lane whose number differs in the bits of `xor` (`shfl.sync.bfly`).
#[inline(always)]
#[track_caller]
pub fn shuffle_xor<T: Shuffle>(mask: u32, value: T, xor: u32) -> T {
    by_words!(T, value, |word| backend::shuffle_xor(mask, word, xor))
}

/// The lanes of `mask` whose `predicate` holds, a bit each (`vote.sync.ballot`).
#[inline(always)]
#[track_caller]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    backend::ballot(mask, predicate)
}

/// Whether `predicate` holds in a lane of `mask` (`vote.sync.any`).
#[inline(always)]
#[track_caller]
pub fn any(mask: u32, predicate: bool) -> bool {
    backend::any(mask, predicate)
}

/// Whether `predicate` holds in every lane of `mask` (`vote.sync.all`).
#[inline(always)]
#[track_caller]
pub fn all(mask: u32, predicate: bool) -> bool {
    backend::all(mask, predicate)
}

/// A value that `match_any` compares, bit for bit.
///
/// # Safety
/// It is 4 or 8 bytes wide.
#[diagnostic::on_unimplemented(
    message = "no match compares values of type `{Self}`",
    note = "matches compare the bits of `u32`, `i32`, `f32`, `u64`, `i64` and `f64`"
)]
pub unsafe trait Match: Value {}

macro_rules! match_types { ($($ty:ty)*) => { $(
    // SAFETY: it is so wide, or this does not compile.
    unsafe impl Match for $ty {}
    const _: () = assert!(matches!(size_of::<$ty>(), 4 | 8));
)* } }
match_types!(u32 i32 f32 u64 i64 f64);

/// The lanes of `mask` that bring the same bits as this one, a bit each (`match.any.sync`).
#[inline(always)]
#[track_caller]
pub fn match_any<T: Match>(mask: u32, value: T) -> u32 {
    // SAFETY: `T` is 4 or 8 bytes wide.
    unsafe {
        if const { size_of::<T>() == 4 } {
            backend::match_any(mask, transmute_copy::<T, u32>(&value))
        } else {
            backend::match_any_wide(mask, transmute_copy::<T, u64>(&value))
        }
    }
}

/// The lanes that happen to be here together with this one (`activemask`): those that came by the same branches, as far as
/// the machine keeps them together.
///
/// It is no way to find out who will come: lanes that are elsewhere may come later. Where all are to come, name them.
#[inline(always)]
#[track_caller]
pub fn activemask() -> u32 {
    backend::activemask()
}

/// An integer that `reduce_add`, `reduce_min` and `reduce_max` take: `u32` and `i32`.
#[diagnostic::on_unimplemented(
    message = "no reduction of a warp takes values of type `{Self}`",
    note = "`redux.sync` takes `u32` and `i32`: reduce others by `shuffle_xor`, lane by lane"
)]
pub trait Reduce: Value + backend::ReduceBackend {}
impl Reduce for u32 {}
impl Reduce for i32 {}

/// The sum of the values of the lanes in `mask`, wrapping (`redux.sync.add`).
#[inline(always)]
#[track_caller]
pub fn reduce_add<T: Reduce>(mask: u32, value: T) -> T {
    T::reduce_add(mask, value)
}

/// The least value of the lanes in `mask` (`redux.sync.min`).
#[inline(always)]
#[track_caller]
pub fn reduce_min<T: Reduce>(mask: u32, value: T) -> T {
    T::reduce_min(mask, value)
}

/// The greatest value of the lanes in `mask` (`redux.sync.max`).
#[inline(always)]
#[track_caller]
pub fn reduce_max<T: Reduce>(mask: u32, value: T) -> T {
    T::reduce_max(mask, value)
}

/// The bits that are set in the values of all lanes in `mask` (`redux.sync.and`).
#[inline(always)]
#[track_caller]
pub fn reduce_and(mask: u32, value: u32) -> u32 {
    backend::reduce_and(mask, value)
}

/// The bits that are set in the value of a lane in `mask` (`redux.sync.or`).
#[inline(always)]
#[track_caller]
pub fn reduce_or(mask: u32, value: u32) -> u32 {
    backend::reduce_or(mask, value)
}

/// The bits that are set in the values of an odd number of the lanes in `mask` (`redux.sync.xor`).
#[inline(always)]
#[track_caller]
pub fn reduce_xor(mask: u32, value: u32) -> u32 {
    backend::reduce_xor(mask, value)
}
