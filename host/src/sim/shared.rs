//! A block's shared memory.
//!
//! An address is an array and an offset in it, so that an index past the end of an array cannot land in the next unseen.

use gpu::suite::POISON;

/// Static shared memory a block may declare.
const STATIC_LIMIT: u32 = 48 << 10;

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
    /// 16-byte cells, so that every offset is as aligned as in the real memory.
    bytes: Vec<u128>,
    /// The dynamic array, and then the static ones.
    arrays: Vec<Array>,
    static_bytes: u32,
}

impl SharedMemory {
    pub(super) fn new(dynamic_bytes: u32) -> Self {
        let dynamic = Array { name: "dynamic shared memory", offset: DYNAMIC, bytes: dynamic_bytes };
        let mut memory = Self { bytes: Vec::new(), arrays: vec![dynamic], static_bytes: 0 };
        if dynamic_bytes > 0 {
            memory.grow(DYNAMIC + dynamic_bytes);
        }
        memory
    }

    /// Forgets everything a block wrote; arrays stay where they are.
    pub(super) fn reset(&mut self) {
        self.bytes.fill(u128::from_ne_bytes([POISON; 16]));
    }

    fn grow(&mut self, bytes: u32) {
        let cells = (bytes.div_ceil(16) as usize).max(self.bytes.len());
        self.bytes.resize(cells, u128::from_ne_bytes([POISON; 16]));
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
    pub(super) fn array(&mut self, name: &'static str, bytes: usize) -> Result<u32, String> {
        if let Some(number) = self.arrays.iter().position(|array| array.name == name) {
            return Ok((number as u32) << OFFSET_BITS);
        }
        let offset = self.static_bytes.next_multiple_of(16);
        let end =
            u32::try_from(bytes).ok().and_then(|bytes| offset.checked_add(bytes)).filter(|end| *end <= STATIC_LIMIT);
        let Some(end) = end else {
            return Err(format!(
                "the array `{name}` of {bytes} bytes takes the block past the {STATIC_LIMIT} bytes of static shared memory"
            ));
        };
        self.arrays.push(Array { name, offset, bytes: end - offset });
        self.static_bytes = end;
        self.grow(end);
        Ok((self.arrays.len() as u32 - 1) << OFFSET_BITS)
    }

    /// The array that an address names, and the offset in it.
    #[inline(always)]
    fn named(&self, address: u64) -> (&Array, u64) {
        (&self.arrays[(address >> OFFSET_BITS) as usize], address & ((1 << OFFSET_BITS) - 1))
    }

    /// The place in the block's memory of element `index` of `width` bytes from `base` on, or none if it lies outside the array.
    #[inline(always)]
    pub(super) fn resolve(&self, base: u64, index: u64, width: u64) -> Option<u64> {
        let (array, start) = self.named(base);
        // The index of shared memory has 32 bits: nothing overflows.
        let offset = start + index * width;
        (offset + width <= array.bytes.into()).then_some(u64::from(array.offset) + offset)
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

    /// Copies from shared memory to `value`.
    ///
    /// # Safety
    /// `place` comes from [`SharedMemory::resolve`] for `width`; `value` has room for as many bytes.
    #[inline(always)]
    pub(super) unsafe fn load(&self, place: u64, width: usize, value: *mut u8) {
        // SAFETY: the range lies in the memory.
        unsafe { copy(self.bytes.as_ptr().cast::<u8>().add(place as usize), value, width) };
    }

    /// Copies from `value` to shared memory.
    ///
    /// # Safety
    /// As [`SharedMemory::load`].
    #[inline(always)]
    pub(super) unsafe fn store(&mut self, place: u64, width: usize, value: *const u8) {
        // SAFETY: the range lies in the memory.
        unsafe { copy(value, self.bytes.as_mut_ptr().cast::<u8>().add(place as usize), width) };
    }
}

/// Copies a value of `width` bytes.
///
/// # Safety
/// As `copy_nonoverlapping` of bytes.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, width: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            _ => std::ptr::copy_nonoverlapping(from, to, width),
        }
    }
}
