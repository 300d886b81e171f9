//! The fast path. A lane is handed the list of the accesses that the lanes before it made; the ones it makes too, in the
//! same order, it makes by itself, inside the kernel's own code.
//!
//! That takes the element to be *at hand*: in memory that the lane reaches by a pointer, without a call of its machine.

use super::{Lane, Site};

/// An access that a lane is expected to make next, since the lanes before it did.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Expected {
    /// The access, and the path on which the lane comes to it.
    key: u64,
    /// The pointer that is accessed: a simulated address.
    base: u64,
    /// The first index that is at hand, counted from `base`, and how many are.
    first: u64,
    count: u64,
    /// Where element 0 would stand if it were at hand.
    elements: *mut u8,
    /// Which index each lane of the warp accessed.
    indices: [u64; 32],
}

impl Expected {
    /// Ends the list: equal to no access.
    pub const NONE: Self =
        Self { key: 0, base: 0, first: 0, count: 0, elements: core::ptr::null_mut(), indices: [0; 32] };

    /// An access at `site`, on `path`, of the pointer `base`, with no memory at hand yet.
    pub fn new(site: Site, path: u64, base: u64) -> Self {
        Self { key: site.on(path), base, ..Self::NONE }
    }

    /// The pointer that is accessed.
    #[inline(always)]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Which index, counted from [`Expected::base`], each lane accessed; for lanes that did not, it means nothing.
    #[inline(always)]
    pub fn indices(&self) -> &[u64; 32] {
        &self.indices
    }

    /// If an access is the one that `lane` is expected to make next, and its element is at hand: notes the lane's index,
    /// and returns where element 0 would stand.
    ///
    /// # Safety
    /// The lane is valid, and nobody refers to it or to what is expected of it.
    #[inline(always)]
    pub unsafe fn meet(lane: *mut Lane, site: Site, base: u64, index: u64) -> Option<*mut u8> {
        // SAFETY: `next` is one of the accesses expected of the lane or the end of the list, which has no element at hand.
        // The lane's number is below 32.
        unsafe {
            let next = (*lane).next;
            let at_hand = index.wrapping_sub((*next).first) < (*next).count;
            if (*next).key != site.on((*lane).path) || (*next).base != base || !at_hand {
                return None;
            }
            (*lane).watched.as_ref().tell(site);
            (&raw mut (*next).indices).cast::<u64>().add((*lane).number).write(index);
            (*lane).next = next.add(1);
            Some((*next).elements)
        }
    }

    /// Notes that a lane accessed an index.
    #[inline(always)]
    pub fn enter(&mut self, lane: usize, index: u64) {
        self.indices[lane] = index;
    }

    /// From now on, elements `first` to `first + count` are at hand; element 0 would stand at `elements`.
    ///
    /// # Safety
    /// As long as this access is expected, those elements are memory as wide as the access and aligned to it, which is
    /// accessed atomically or by one thread alone.
    pub unsafe fn lay_at_hand(&mut self, first: u64, count: u64, elements: *mut u8) {
        (self.first, self.count, self.elements) = (first, count, elements);
    }
}
