//! A block's shared memory.
//!
//! An address is an array and an offset in it, so that an index past the end of an array cannot land in the next unseen.

use super::memory::Element;
use gpu::device::host;
use gpu::suite::{MOST_SHARED, MOST_STATIC_SHARED, POISON};
use std::cell::UnsafeCell;

/// Where dynamic shared memory begins: past every static array.
const DYNAMIC: u32 = 64 << 10;

/// Bits of an address that hold the offset; the rest holds the array's number.
pub(super) const OFFSET_BITS: u32 = 20;

/// A static array, or the dynamic one.
struct Array {
    name: &'static str,
    offset: u32,
    bytes: u32,
}

pub(super) struct SharedMemory {
    /// 16-byte cells, so that every offset is as aligned as in the real memory. Lanes hold pointers to them.
    cells: Box<[UnsafeCell<u128>]>,
    /// The dynamic array, and then the static ones.
    arrays: Vec<Array>,
    static_bytes: u32,
}

impl SharedMemory {
    pub(super) fn new(dynamic_bytes: u32) -> Self {
        let dynamic = Array { name: "dynamic shared memory", offset: DYNAMIC, bytes: dynamic_bytes };
        let bytes = if dynamic_bytes > 0 { DYNAMIC + dynamic_bytes } else { MOST_STATIC_SHARED };
        let cells = (0..bytes.div_ceil(16)).map(|_| UnsafeCell::new(BLANK)).collect();
        Self { cells, arrays: vec![dynamic], static_bytes: 0 }
    }

    /// Forgets everything a block wrote; arrays stay where they are.
    pub(super) fn reset(&mut self) {
        let [used, dynamic] = [self.static_bytes, DYNAMIC].map(|bytes| bytes.div_ceil(16) as usize);
        let dynamic = dynamic.min(self.cells.len());
        self.cells[..used].iter_mut().for_each(|cell| *cell.get_mut() = BLANK);
        self.cells[dynamic..].iter_mut().for_each(|cell| *cell.get_mut() = BLANK);
    }

    /// Bytes of the arrays that a block has used, and of the dynamic one.
    pub(super) fn used(&self) -> u64 {
        u64::from(self.static_bytes + self.arrays[0].bytes)
    }

    /// The address of the dynamic array.
    pub(super) fn dynamic(&self) -> u32 {
        0
    }

    /// The address of the static array `name`, placed at the first call.
    #[inline(always)]
    pub(super) fn array(&mut self, name: &'static str, bytes: usize) -> Result<u32, String> {
        match self.arrays.iter().position(|array| std::ptr::eq(array.name, name)) {
            Some(number) => Ok(Self::address(number)),
            None => self.place_array(name, bytes),
        }
    }

    fn address(number: usize) -> u32 {
        (number as u32) << OFFSET_BITS
    }

    /// The same if nobody has called it by this very name, which may stand in the program twice.
    #[cold]
    fn place_array(&mut self, name: &'static str, bytes: usize) -> Result<u32, String> {
        if let Some(number) = self.arrays.iter().position(|array| array.name == name) {
            return Ok(Self::address(number));
        }
        let offset = self.static_bytes.next_multiple_of(16);
        let end = u32::try_from(bytes).ok().and_then(|bytes| offset.checked_add(bytes));
        let Some(end) = end.filter(|end| *end <= MOST_STATIC_SHARED) else {
            return Err(format!(
                "the array `{name}` of {bytes} bytes takes the block past the {MOST_STATIC_SHARED} bytes of static shared \
                 memory that CUDA gives it"
            ));
        };
        let dynamic = self.arrays[0].bytes;
        if end + dynamic > MOST_SHARED {
            return Err(format!(
                "the array `{name}` of {bytes} bytes takes the block to {} bytes of shared memory, {dynamic} of them dynamic, \
                 and a GPU gives it at most {MOST_SHARED} (compute capability 9.0), others less",
                end + dynamic
            ));
        }
        self.arrays.push(Array { name, offset, bytes: end - offset });
        self.static_bytes = end;
        Ok(Self::address(self.arrays.len() - 1))
    }

    /// The array that an address names, and the offset in it.
    #[inline(always)]
    fn named(&self, address: u64) -> (&Array, u64) {
        (&self.arrays[(address >> OFFSET_BITS) as usize], address & ((1 << OFFSET_BITS) - 1))
    }

    /// The place in the block's memory of element `index` of `width` bytes from `base` on, or none if it lies outside the array.
    #[inline(always)]
    pub(super) fn resolve(&self, base: u64, index: u64, width: u64) -> Option<Element> {
        let (array, start) = self.named(base);
        // The index of shared memory has 32 bits: nothing overflows.
        let offset = start + index * width;
        let place = u64::from(array.offset) + offset;
        (offset + width <= array.bytes.into()).then(|| Element { address: place, cell: self.cell(place) })
    }

    /// What an access that `resolve` refuses missed.
    #[cold]
    pub(super) fn missed(&self, base: u64, index: u64, width: u64) -> String {
        let (Array { name, bytes, .. }, start) = self.named(base);
        if *bytes == 0 {
            return "dynamic shared memory, of which the launch gives the block none".into();
        }
        // An index has 32 bits, and one below zero has wrapped.
        let start = start.cast_signed() + i64::from(index as u32 as i32) * width.cast_signed();
        format!("{width} bytes at byte {start} of `{name}`, which has {bytes}")
    }

    /// The name of the array that a place lies in, and the offset within it.
    pub(super) fn name(&self, place: u64) -> (&'static str, u64) {
        let array = self.arrays.iter().find(|array| (place.wrapping_sub(array.offset.into())) < array.bytes.into());
        array.map_or(("shared memory", place), |array| (array.name, place - u64::from(array.offset)))
    }

    /// Where a place lies.
    fn cell(&self, place: u64) -> *mut u8 {
        UnsafeCell::raw_get(self.cells.as_ptr()).cast::<u8>().wrapping_add(place as usize)
    }

    /// Has `expected`, an access of `width` bytes by an aligned pointer into an array, find the array at hand.
    pub(super) fn lay_at_hand(&self, expected: &mut host::Expected, width: u64) {
        let (array, start) = self.named(expected.base());
        let elements = self.cell(u64::from(array.offset) + start);
        // SAFETY: the array lies in the memory, which stays where it is, and only the running lane accesses it.
        unsafe { expected.lay_at_hand(0, u64::from(array.bytes).saturating_sub(start) / width, elements) };
    }

    /// Where the first element that a pointer leads to stands.
    pub(super) fn place(&self, base: u64) -> u64 {
        let (array, start) = self.named(base);
        u64::from(array.offset) + start
    }
}

/// Shared memory that nobody wrote.
const BLANK: u128 = u128::from_ne_bytes([POISON; 16]);
