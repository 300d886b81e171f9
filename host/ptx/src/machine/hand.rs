//! What an access found the last time.

use gpu::suite::Space;
use std::ptr;

/// The part of a buffer or shared array that an access found at hand the last time.
#[derive(Clone, Copy)]
pub(crate) struct Hand {
    pub(super) space: Option<Space>,
    /// The address where the buffer or array begins.
    pub(super) base: u64,
    /// What the engine counts from: the same, or the place in shared memory.
    pub(super) start: u64,
    /// The first byte at hand, and how many there are.
    pub(super) first: u64,
    pub(super) bytes: u64,
    /// Where byte 0 would stand.
    pub(super) elements: *mut u8,
}

impl Hand {
    pub(crate) const NONE: Self =
        Self { space: None, base: 0, start: 0, first: 0, bytes: 0, elements: ptr::null_mut() };
}
