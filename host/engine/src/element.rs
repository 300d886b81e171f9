//! An element of memory that several threads access: atomically, each access by its width up to 8 bytes.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// An element of a buffer or of shared memory, which lives as long as that.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// Its simulated address, or its place.
    pub address: u64,
    pub(crate) cell: *mut u8,
}

/// The elements of an access that lie in memory at hand: those from number `first` on, so many.
#[derive(Clone, Copy, Debug)]
pub struct AtHand {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Where element 0 would stand if it were at hand too.
    pub elements: *mut u8,
}

impl Element {
    /// Where it stands.
    #[inline(always)]
    pub fn cell(self) -> *mut u8 {
        self.cell
    }

    /// Copies its `width` bytes to `value`.
    ///
    /// # Safety
    /// It was resolved for `width` and is aligned to it; `value` has room for as many, aligned alike.
    #[inline]
    pub unsafe fn load(self, width: usize, value: *mut u8) {
        let cell = self.cell;
        // SAFETY: cell and value are `width` bytes, aligned; the memory is only accessed atomically.
        unsafe {
            match width {
                1 => *value = (*cell.cast::<AtomicU8>()).load(Relaxed),
                2 => *value.cast() = (*cell.cast::<AtomicU16>()).load(Relaxed),
                4 => *value.cast() = (*cell.cast::<AtomicU32>()).load(Relaxed),
                _ => {
                    for word in 0..width / 8 {
                        *value.cast::<u64>().add(word) = load_word(cell.cast::<u64>().add(word));
                    }
                }
            }
        }
    }

    /// Copies `width` bytes from `value` to it.
    ///
    /// # Safety
    /// As [`Element::load`].
    #[inline]
    pub unsafe fn store(self, width: usize, value: *const u8) {
        let cell = self.cell;
        // SAFETY: as in `load`.
        unsafe {
            match width {
                1 => (*cell.cast::<AtomicU8>()).store(*value, Relaxed),
                2 => (*cell.cast::<AtomicU16>()).store(*value.cast(), Relaxed),
                4 => (*cell.cast::<AtomicU32>()).store(*value.cast(), Relaxed),
                _ => {
                    for word in 0..width / 8 {
                        (*cell.cast::<AtomicU64>().add(word)).store(*value.cast::<u64>().add(word), Relaxed);
                    }
                }
            }
        }
    }
}

/// A word of memory.
///
/// # Safety
/// It is one, and is only accessed atomically.
#[inline(always)]
pub(crate) unsafe fn load_word(word: *const u64) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { (*word.cast::<AtomicU64>()).load(Relaxed) }
}
