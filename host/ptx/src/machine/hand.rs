//! What an access found at hand the last time: lanes that go there again need not be resolved one by one.

use engine::Instruction;
use gpu::suite::Space;
use std::ptr;

/// The part of a buffer or shared array that an access found at hand the last time.
#[derive(Clone, Copy)]
pub(super) struct Hand {
    pub(super) space: Option<Space>,
    /// The address where the buffer or array begins.
    pub(super) base: u64,
    /// What the engine counts from: the same, or the place in shared memory.
    pub(super) start: u64,
    /// How many bytes are at hand.
    pub(super) bytes: u64,
    /// Where the first stands.
    pub(super) elements: *mut u8,
    /// Whether all of them are filled.
    pub(super) is_ready: bool,
}

impl Hand {
    pub(super) const NONE: Self =
        Self { space: None, base: 0, start: 0, bytes: 0, elements: ptr::null_mut(), is_ready: false };

    /// Where the lanes in `mask` go, in bytes from the first, if all of them go to what is at hand, and are aligned. Other lanes are said
    /// to go to the first byte.
    #[inline(always)]
    pub(super) fn offsets(&self, mask: u32, addresses: &[u64; 32], instruction: Instruction) -> Option<[u64; 32]> {
        let width = instruction.width();
        if self.space != Some(instruction.space) || self.bytes < width {
            return None;
        }
        let most = self.bytes - width;
        let mut offsets = addresses.map(|address| address.wrapping_sub(self.base));
        if mask != u32::MAX {
            for (lane, offset) in offsets.iter_mut().enumerate() {
                *offset = if mask >> lane & 1 != 0 { *offset } else { 0 };
            }
        }
        // The highest bit tells whether one of them is beyond the most, which is far below it.
        let beyond = offsets.iter().fold(0, |beyond, offset| beyond | *offset | most.wrapping_sub(*offset));
        let odd = offsets.iter().fold(0, |odd, offset| odd | *offset);
        if beyond >> 63 != 0 || odd & (width - 1) != 0 {
            return None;
        }
        Some(offsets)
    }
}
