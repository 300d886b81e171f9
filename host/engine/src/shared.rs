//! A block's shared memory: its kernel's static arrays in the order in which they are declared, and the dynamic one.
//!
//! An address is an array and an offset in it, so that an index past the end of an array cannot land in the next unseen. A
//! pointer may lead before the array's begin; the offset is then below zero.

use crate::element::{AtHand, Element};
use crate::error::SimulationError;
use gpu::suite::{MOST_SHARED, MOST_STATIC_SHARED, POISON};
use std::cell::UnsafeCell;

/// Where dynamic shared memory begins: past every static array.
const DYNAMIC: u32 = 64 << 10;

/// Bits of an address that hold the offset; the rest holds the array's number.
const OFFSET_BITS: u32 = 20;

/// A static array, or the dynamic one.
struct Array {
    name: &'static str,
    offset: u32,
    bytes: u32,
}

/// The shared memory of the block that runs.
pub struct SharedMemory {
    /// 16-byte cells, so that every offset is as aligned as in the real memory. Lanes hold pointers to them.
    cells: Box<[UnsafeCell<u128>]>,
    /// The dynamic array, and then the static ones.
    arrays: Vec<Array>,
    static_bytes: u32,
}

/// Bytes of shared memory that a block of `kernel` has: the static `arrays` that it declares, names with bytes, each of which begins
/// at a multiple of 16, and `dynamic` ones.
///
/// # Errors
/// If that is more than a GPU gives a block.
pub(crate) fn block_bytes(
    kernel: &'static str,
    arrays: &[(&'static str, u64)],
    dynamic: u32,
) -> Result<u64, SimulationError> {
    let end = |end: u64, (_, bytes): &(&str, u64)| end.next_multiple_of(16).saturating_add(*bytes);
    let of_arrays = arrays.iter().fold(0, end);
    let (bytes, dynamic) = (of_arrays.saturating_add(dynamic.into()), u64::from(dynamic));
    let detail = if of_arrays > MOST_STATIC_SHARED.into() {
        format!(
            "declares {of_arrays} bytes of static shared memory, and CUDA gives a block {MOST_STATIC_SHARED}: take what goes \
             beyond as dynamic shared memory"
        )
    } else if bytes > MOST_SHARED.into() {
        format!(
            "has {bytes} bytes of shared memory a block, {dynamic} of them dynamic, and a GPU gives a block at most \
             {MOST_SHARED} (compute capability 9.0), others less: choose smaller tiles"
        )
    } else {
        return Ok(bytes);
    };
    Err(SimulationError::SharedMemory { kernel, detail })
}

impl SharedMemory {
    /// That of a block with these static arrays, which fit.
    pub fn new(static_arrays: &[(&'static str, u64)], dynamic_bytes: u32) -> Self {
        let mut arrays = vec![Array { name: "dynamic shared memory", offset: DYNAMIC, bytes: dynamic_bytes }];
        let mut static_bytes = 0;
        for &(name, bytes) in static_arrays {
            let (offset, bytes) = (u32::next_multiple_of(static_bytes, 16), bytes as u32);
            arrays.push(Array { name, offset, bytes });
            static_bytes = offset + bytes;
        }
        let bytes = if dynamic_bytes > 0 { DYNAMIC + dynamic_bytes } else { static_bytes };
        let cells = (0..bytes.div_ceil(16)).map(|_| UnsafeCell::new(BLANK)).collect();
        Self { cells, arrays, static_bytes }
    }

    /// Forgets everything a block wrote.
    pub fn reset(&mut self) {
        let [used, dynamic] = [self.static_bytes, DYNAMIC].map(|bytes| bytes.div_ceil(16) as usize);
        let dynamic = dynamic.min(self.cells.len());
        self.cells[..used].iter_mut().for_each(|cell| *cell.get_mut() = BLANK);
        self.cells[dynamic..].iter_mut().for_each(|cell| *cell.get_mut() = BLANK);
    }

    /// The address of the dynamic array.
    #[inline]
    pub fn dynamic(&self) -> u32 {
        0
    }

    /// The address of the static array `name`.
    #[inline(always)]
    pub fn array(&self, name: &'static str) -> u32 {
        let is = |array: &Array| std::ptr::eq(array.name, name);
        let number = self.arrays.iter().position(is).unwrap_or_else(|| self.number(name));
        (number as u32) << OFFSET_BITS
    }

    /// The number of the array `name`, which may stand in the program twice.
    #[cold]
    fn number(&self, name: &str) -> usize {
        let number = self.arrays.iter().position(|array| array.name == name);
        number.expect("the front end asks for arrays that the kernel declares")
    }

    /// The array that an address names, and the offset in it; none for an address that no array has.
    #[inline(always)]
    fn named(&self, address: u64) -> Option<(&Array, i64)> {
        let number = (address as u32).wrapping_add(1 << (OFFSET_BITS - 1)) >> OFFSET_BITS;
        let offset = (address as u32).wrapping_sub(number << OFFSET_BITS).cast_signed();
        Some((self.arrays.get(number as usize)?, offset.into()))
    }

    /// The address where the array begins that an address leads into, or before; none if it leads into none.
    pub fn base_of(&self, address: u64) -> Option<u64> {
        let (_, offset) = self.named(address)?;
        Some(u64::from((address as u32).wrapping_add_signed(-(offset as i32))))
    }

    /// The address `bytes` bytes behind `base`, in the same array: no offset is far enough from it to lie in another one.
    pub fn advance(base: u32, bytes: i64) -> u32 {
        const FARTHEST: i64 = (1 << (OFFSET_BITS - 1)) - 1;
        let begin = base.wrapping_add(1 << (OFFSET_BITS - 1)) >> OFFSET_BITS << OFFSET_BITS;
        let offset = i64::from(base.wrapping_sub(begin).cast_signed());
        begin.wrapping_add((offset.saturating_add(bytes).clamp(-FARTHEST, FARTHEST) as i32).cast_unsigned())
    }

    /// The place in the block's memory of element `index` of `width` bytes from `base` on, or none if it lies outside the array.
    #[inline(always)]
    pub fn resolve(&self, base: u64, index: u64, width: u64) -> Option<Element> {
        let (array, start) = self.named(base)?;
        let offset = (start + signed(index) * width.cast_signed()).cast_unsigned();
        let inside = offset.checked_add(width).is_some_and(|end| end <= array.bytes.into());
        inside.then(|| {
            let place = u64::from(array.offset) + offset;
            Element { address: place, cell: self.cell(place) }
        })
    }

    /// What an access that `resolve` refuses missed.
    #[cold]
    pub fn missed(&self, base: u64, index: u64, width: u64) -> String {
        let Some((Array { name, bytes, .. }, start)) = self.named(base) else {
            return "shared memory at an address where the block has none".into();
        };
        if *bytes == 0 {
            return "dynamic shared memory, of which the launch gives the block none".into();
        }
        let start = start + signed(index) * width.cast_signed();
        format!("{width} bytes at byte {start} of `{name}`, which has {bytes}")
    }

    /// The name of the array that a place lies in, and the offset within it.
    #[inline]
    pub fn name(&self, place: u64) -> (&'static str, u64) {
        let array = self.arrays.iter().find(|array| (place.wrapping_sub(array.offset.into())) < array.bytes.into());
        array.map_or(("shared memory", place), |array| (array.name, place - u64::from(array.offset)))
    }

    /// Where a place lies.
    #[inline]
    fn cell(&self, place: u64) -> *mut u8 {
        UnsafeCell::raw_get(self.cells.as_ptr()).cast::<u8>().wrapping_add(place as usize)
    }

    /// The array that the aligned pointer `base` leads into, for accesses of `width` bytes. It stays where it is; only the threads of
    /// the block access it.
    #[inline]
    pub fn at_hand(&self, base: u64, width: u64) -> Option<AtHand> {
        let (array, start) = self.named(base)?;
        // Indices below zero are not at hand.
        let before = u64::try_from(start).ok()?;
        let elements = self.cell(u64::from(array.offset) + before);
        Some(AtHand { first: 0, count: u64::from(array.bytes).saturating_sub(before) / width, elements })
    }

    /// Where the first element that a pointer to an array leads to stands.
    #[inline]
    pub fn place(&self, base: u64) -> u64 {
        self.named(base).map_or(0, |(array, start)| u64::from(array.offset).wrapping_add_signed(start))
    }
}

/// An index, which has 32 bits: one below zero has wrapped, as in the GPU's own arithmetic.
#[inline(always)]
fn signed(index: u64) -> i64 {
    (index as u32).cast_signed().into()
}

/// Shared memory that nobody wrote.
const BLANK: u128 = u128::from_ne_bytes([POISON; 16]);
