//! Where a thread stands, and what it does together with others: barriers, shuffles, votes, matches, reductions.

use super::lane::{lane, machine};
use super::{Coordinates, Exchange};
use crate::device::Value;
use core::panic::Location;

#[inline]
#[track_caller]
pub(crate) fn sync_threads() {
    machine().sync_threads(Location::caller());
}

#[inline]
#[track_caller]
pub(crate) fn sync_warp(mask: u32) {
    machine().sync_warp(mask, Location::caller());
}

#[inline]
#[track_caller]
pub(crate) fn shuffle_up(mask: u32, value: u32, delta: u32) -> u32 {
    // The instruction takes five bits of the distance.
    let own = lane_id();
    shuffle(mask, value, own.checked_sub(delta & 31).unwrap_or(own))
}

#[inline]
#[track_caller]
pub(crate) fn shuffle_down(mask: u32, value: u32, delta: u32) -> u32 {
    // As above.
    let own = lane_id();
    let source = own + (delta & 31);
    shuffle(mask, value, if source < 32 { source } else { own })
}

#[inline]
#[track_caller]
pub(crate) fn shuffle_xor(mask: u32, value: u32, xor: u32) -> u32 {
    shuffle(mask, value, lane_id() ^ (xor & 31))
}

#[inline]
#[track_caller]
pub(crate) fn shuffle(mask: u32, value: u32, source: u32) -> u32 {
    machine().exchange(mask, value.into(), Exchange::Lane(source & 31), Location::caller()) as u32
}

#[inline]
#[track_caller]
pub(crate) fn ballot(mask: u32, predicate: bool) -> u32 {
    machine().exchange(mask, predicate.into(), Exchange::Ballot, Location::caller()) as u32
}

#[inline]
#[track_caller]
pub(crate) fn any(mask: u32, predicate: bool) -> bool {
    ballot(mask, predicate) != 0
}

#[inline]
#[track_caller]
pub(crate) fn all(mask: u32, predicate: bool) -> bool {
    ballot(mask, !predicate) == 0
}

#[inline]
#[track_caller]
pub(crate) fn match_any(mask: u32, value: u32) -> u32 {
    match_any_wide(mask, value.into())
}

#[inline]
#[track_caller]
pub(crate) fn match_any_wide(mask: u32, value: u64) -> u32 {
    machine().exchange(mask, value, Exchange::Match, Location::caller()) as u32
}

#[inline]
#[track_caller]
pub(crate) fn activemask() -> u32 {
    machine().active_mask(Location::caller())
}

/// An integer that a warp reduces.
pub trait ReduceBackend: Value {
    #[doc(hidden)]
    #[track_caller]
    fn reduce_add(mask: u32, value: Self) -> Self;
    #[doc(hidden)]
    #[track_caller]
    fn reduce_min(mask: u32, value: Self) -> Self;
    #[doc(hidden)]
    #[track_caller]
    fn reduce_max(mask: u32, value: Self) -> Self;
}

#[inline]
#[track_caller]
fn reduce(mask: u32, value: u32, exchange: Exchange) -> u32 {
    machine().exchange(mask, value.into(), exchange, Location::caller()) as u32
}

macro_rules! reduced { ($($ty:ident: $min:ident $max:ident)*) => { $(
    impl ReduceBackend for $ty {
        #[inline]
        fn reduce_add(mask: u32, value: Self) -> Self {
            reduce(mask, value as u32, Exchange::Add) as Self
        }

        #[inline]
        fn reduce_min(mask: u32, value: Self) -> Self {
            reduce(mask, value as u32, Exchange::$min) as Self
        }

        #[inline]
        fn reduce_max(mask: u32, value: Self) -> Self {
            reduce(mask, value as u32, Exchange::$max) as Self
        }
    }
)* } }
reduced! {
    u32: MinUnsigned MaxUnsigned
    i32: MinSigned MaxSigned
}

#[inline]
#[track_caller]
pub(crate) fn reduce_and(mask: u32, value: u32) -> u32 {
    reduce(mask, value, Exchange::And)
}

#[inline]
#[track_caller]
pub(crate) fn reduce_or(mask: u32, value: u32) -> u32 {
    reduce(mask, value, Exchange::Or)
}

#[inline]
#[track_caller]
pub(crate) fn reduce_xor(mask: u32, value: u32) -> u32 {
    reduce(mask, value, Exchange::Xor)
}

#[inline]
pub(crate) fn lane_id() -> u32 {
    // SAFETY: the lane is running.
    unsafe { (*lane()).number as u32 }
}

macro_rules! coordinates { ($($name:ident: $which:ident[$axis:literal])*) => { $(
    #[inline]
    pub(crate) fn $name() -> u32 {
        // SAFETY: the lane is running, and its place is read at once.
        unsafe { (*lane()).coordinates.$which[$axis] }
    }
)* } }
coordinates! {
    thread_idx_x: thread_idx[0]
    thread_idx_y: thread_idx[1]
    thread_idx_z: thread_idx[2]
    block_idx_x: block_idx[0]
    block_idx_y: block_idx[1]
    block_idx_z: block_idx[2]
    block_dim_x: block_dim[0]
    block_dim_y: block_dim[1]
    block_dim_z: block_dim[2]
    grid_dim_x: grid_dim[0]
    grid_dim_y: grid_dim[1]
    grid_dim_z: grid_dim[2]
}

/// `block_idx_x * block_dim_x + thread_idx_x`, all asked for at once.
#[inline]
pub(crate) fn index_x() -> usize {
    // SAFETY: as above.
    let Coordinates { thread_idx, block_idx, block_dim, .. } = unsafe { &(*lane()).coordinates };
    block_idx[0] as usize * block_dim[0] as usize + thread_idx[0] as usize
}

#[track_caller]
pub(crate) fn clock() -> u64 {
    machine().clock(Location::caller())
}

/// What the instruction for it is to come near, rounded once: of NaNs there is one.
fn rounded(value: f64) -> f32 {
    if value.is_nan() { f32::from_bits(0x7FFF_FFFF) } else { value as f32 }
}

pub(crate) fn rcp(x: f32) -> f32 {
    rounded(f64::from(1.0 / x))
}

pub(crate) fn sqrt(x: f32) -> f32 {
    rounded(f64::from(libm::sqrtf(x)))
}

macro_rules! functions { ($($name:ident: |$x:ident| $value:expr;)*) => { $(
    pub(crate) fn $name(x: f32) -> f32 {
        let $x = f64::from(x);
        rounded($value)
    }
)* } }
functions! {
    rsqrt: |x| 1.0 / libm::sqrt(x);
    sin: |x| libm::sin(x);
    cos: |x| libm::cos(x);
    exp2: |x| libm::exp2(x);
    log2: |x| libm::log2(x);
    tanh: |x| libm::tanh(x);
}

pub(crate) fn fma(a: f32, b: f32, c: f32) -> f32 {
    libm::fmaf(a, b, c)
}

pub(crate) fn byte_perm(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    u32::from_le_bytes(core::array::from_fn(|digit| {
        let byte = bytes[(selector >> (4 * digit) & 7) as usize];
        // The fourth bit of a digit asks for the sign in all bits.
        if selector >> (4 * digit) & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
    }))
}
