//! Simulated global memory: the buffers of a plan, each in one piece, filled page by page as they are touched.
//!
//! An address is a buffer and an offset in it, so that an index far outside cannot land in another buffer unseen, and a
//! report is the same bytes on every run. Blocks run on several threads: every access is a relaxed atomic of its width.

use super::SimulationError;
use super::pages::{PAGE, Pages};
use super::spare::Words;
use gpu::device::host;
use gpu::suite::{Before, Buffer, POISON, Plan};
use std::ops::Range;
use std::sync::Arc;

/// Bits of an address that hold the offset; the rest holds the buffer's number, from 1. Buffers are smaller, so that no
/// index leads from one to the next.
const OFFSET_BITS: u32 = 45;

/// The limit of offsets that pointers have, before and behind the begin of their buffers, of buffers and of indices.
const LIMIT: u64 = 1 << 40;

/// The address where the buffer that a pointer belongs to begins: a pointer may lead before it.
#[inline(always)]
fn begin(pointer: u64) -> u64 {
    pointer.wrapping_add(1 << (OFFSET_BITS - 1)) >> OFFSET_BITS << OFFSET_BITS
}

/// The offset of a pointer from the begin of its buffer.
#[inline(always)]
fn offset_of_pointer(pointer: u64) -> i64 {
    pointer.wrapping_sub(begin(pointer)).cast_signed()
}

/// The pointer `bytes` bytes behind `base`, of the same buffer.
pub(super) fn advance(base: u64, bytes: i64) -> u64 {
    let farthest = LIMIT.cast_signed() - 1;
    begin(base).wrapping_add_signed(offset_of_pointer(base).saturating_add(bytes).clamp(-farthest, farthest))
}

/// The offset in its buffer of element `index` of `width` bytes from `base` on. An index below zero has wrapped, as in the GPU's
/// own arithmetic.
fn offset(base: u64, index: u64, width: u64) -> i128 {
    i128::from(offset_of_pointer(base)) + i128::from(index.cast_signed()) * i128::from(width)
}

/// The offset of an address in its buffer.
#[inline(always)]
pub(super) fn offset_of(address: u64) -> u64 {
    address & ((1 << OFFSET_BITS) - 1)
}

/// The buffers of a plan.
pub(super) struct Memory {
    plan: Arc<Plan>,
    buffers: Vec<Bytes>,
}

/// A buffer's size, its bytes, and which pages of them are filled.
struct Bytes {
    count: u64,
    /// A page is written by who fills it, before anybody else gets to know where it is; from then on it is only accessed
    /// atomically.
    words: Words,
    filled: Pages,
}

impl Bytes {
    fn new(count: u64) -> Result<Self, SimulationError> {
        // Whole 16-byte cells.
        let words = Words::take(2 * count.div_ceil(16) as usize)?;
        Ok(Self { count, words, filled: Pages::new(count.div_ceil(PAGE) as usize) })
    }

    fn cell(&self, offset: u64) -> *mut u8 {
        self.words.start().cast::<u8>().wrapping_add(offset as usize)
    }
}

impl Memory {
    pub(super) fn new(plan: Arc<Plan>) -> Result<Self, SimulationError> {
        let buffers = plan.buffers.iter().map(|buffer| Bytes::new(buffer.bytes())).collect::<Result<_, _>>()?;
        Ok(Self { buffers, plan })
    }

    /// The address of a buffer's first element, aligned to 256 bytes and more.
    pub(super) fn base(buffer: usize) -> u64 {
        (buffer as u64 + 1) << OFFSET_BITS
    }

    /// The buffer that a resolved address lies in.
    #[inline(always)]
    pub(super) fn number(address: u64) -> usize {
        (address >> OFFSET_BITS) as usize - 1
    }

    /// The buffer that an address names; none for one that no kernel was given.
    pub(super) fn buffer_of(&self, address: u64) -> Option<usize> {
        let buffer = (address >> OFFSET_BITS).checked_sub(1)? as usize;
        (buffer < self.plan.buffers.len()).then_some(buffer)
    }

    /// Element `index` of `width` bytes from `base` on, or none if it lies outside the buffer. One that is not aligned may
    /// reach over the end.
    #[inline(always)]
    pub(super) fn resolve(&self, base: u64, index: u64, width: u64) -> Option<Element> {
        let address = match index < LIMIT && offset_of_pointer(base) >= 0 {
            true => base + index * width,
            false => begin(base) + u64::try_from(offset(base, index, width)).ok().filter(|offset| *offset < LIMIT)?,
        };
        self.element(address, width)
    }

    /// What an access that `resolve` refuses missed.
    #[cold]
    pub(super) fn missed(&self, base: u64, index: u64, width: u64) -> String {
        let Some(buffer) = self.buffer_of(begin(base)) else {
            return "memory through a pointer that is no buffer of the launch".into();
        };
        let buffer = &self.plan.buffers[buffer];
        let start = offset(base, index, width);
        format!("{width} bytes at byte {start} of `{}`, which has {}", buffer.name, buffer.bytes())
    }

    fn element(&self, address: u64, width: u64) -> Option<Element> {
        if !self.contains(address, width) {
            return None;
        }
        let (number, offset) = (Self::number(address), offset_of(address));
        let page = (offset / PAGE) as usize;
        self.buffers[number].filled.reach(page, |page| self.fill(number, page));
        Some(Element { address, cell: self.buffers[number].cell(offset) })
    }

    /// Fills a page as it stands before the kernel runs.
    fn fill(&self, number: usize, page: usize) {
        let (buffer, bytes) = (&self.plan.buffers[number], &self.buffers[number]);
        let words = page * PAGE as usize / 8..((page + 1) * PAGE as usize / 8).min(bytes.words.len());
        // SAFETY: the words belong to the buffer, and nobody else refers to them before they are filled.
        let words = unsafe { std::slice::from_raw_parts_mut(bytes.words.start().add(words.start), words.len()) };
        fill(buffer, page as u64, words);
    }

    /// The bytes of a filled buffer around a resolved address, as offsets: all of them in the end, and at least its page.
    fn filled_around(&self, address: u64) -> Range<u64> {
        let bytes = &self.buffers[Self::number(address)];
        if bytes.filled.are_ready() {
            return 0..bytes.count;
        }
        let page = (offset_of(address) / PAGE) as usize;
        let filled = |page: &usize| bytes.filled.is_ready(*page);
        let first = (page.saturating_sub(AROUND)..page).rev().take_while(filled).last().unwrap_or(page);
        let last = (page + 1..=page + AROUND).take_while(filled).last().unwrap_or(page);
        first as u64 * PAGE..((last as u64 + 1) * PAGE).min(bytes.count)
    }

    /// Has `expected`, an access of `width` bytes by an aligned pointer into the buffer of a resolved address, find what is
    /// filled around it at hand.
    pub(super) fn lay_at_hand(&self, expected: &mut host::Expected, address: u64, width: u64) {
        // Indices below zero are not at hand.
        let Ok(start) = u64::try_from(offset_of_pointer(expected.base())) else { return };
        let Range { start: first, end } = self.filled_around(address);
        let first = first.max(start);
        if end < first {
            return;
        }
        let elements = self.buffers[Self::number(address)].cell(start);
        // SAFETY: the elements are filled and lie in the buffer, which lives as long as the memory.
        unsafe { expected.lay_at_hand((first - start) / width, (end - first) / width, elements) };
    }

    /// Whether `width` bytes at `address` lie in a buffer.
    pub(super) fn contains(&self, address: u64, width: u64) -> bool {
        self.buffer_of(address).is_some_and(|number| offset_of(address) + width <= self.buffers[number].count)
    }

    /// The bits of element `i` of a buffer.
    pub(super) fn bits(&self, buffer: usize, i: u64) -> u64 {
        let size = self.plan.buffers[buffer].element.size();
        let address = Self::base(buffer) + i * size;
        let element = self.element(address, size).expect("an element of the buffer");
        let mut bits = 0u64;
        // SAFETY: elements of buffers are aligned to their size, which is at most 8.
        unsafe { element.load(size as usize, (&raw mut bits).cast()) };
        bits
    }
}

/// How many pages on either side of one are looked at.
const AROUND: usize = 16;

/// An element of a buffer or of shared memory, which lives as long as that.
#[derive(Clone, Copy)]
pub(super) struct Element {
    /// Its simulated address, or its place.
    pub(super) address: u64,
    pub(super) cell: *mut u8,
}

impl Element {
    /// Copies its `width` bytes to `value`.
    ///
    /// # Safety
    /// It was resolved for `width` and is aligned to it; `value` has room for as many.
    pub(super) unsafe fn load(self, width: usize, value: *mut u8) {
        let cell = self.cell;
        // SAFETY: cell and value are `width` bytes, aligned; the memory is only accessed atomically.
        unsafe {
            match width {
                1 => *value = host::read(cell),
                2 => *value.cast::<u16>() = host::read(cell.cast()),
                4 => *value.cast::<u32>() = host::read(cell.cast()),
                _ => {
                    for word in 0..width / 8 {
                        *value.cast::<u64>().add(word) = host::read(cell.cast::<u64>().add(word));
                    }
                }
            }
        }
    }

    /// Copies `width` bytes from `value` to it.
    ///
    /// # Safety
    /// As [`Element::load`].
    pub(super) unsafe fn store(self, width: usize, value: *const u8) {
        let cell = self.cell;
        // SAFETY: as in `load`.
        unsafe {
            match width {
                1 => host::write(cell, *value),
                2 => host::write(cell.cast(), *value.cast::<u16>()),
                4 => host::write(cell.cast(), *value.cast::<u32>()),
                _ => {
                    for word in 0..width / 8 {
                        host::write(cell.cast::<u64>().add(word), *value.cast::<u64>().add(word));
                    }
                }
            }
        }
    }
}

/// Fills the `words` of page `number` of a buffer as they stand before the kernel runs.
fn fill(buffer: &Buffer, number: u64, words: &mut [u64]) {
    let size = buffer.element.size();
    let first = number * PAGE / size;
    let elements = (PAGE / size).min(buffer.len - first);
    let blank = if let Before::Zero = buffer.before { 0 } else { POISON };
    // What is laid ends with a whole word, and a buffer with two.
    let laid = if let Before::Filled(_) = buffer.before { (elements * size).div_ceil(8) as usize } else { 0 };
    words[laid..].fill(u64::from_ne_bytes([blank; 8]));
    if let Before::Filled(fill) = &buffer.before {
        fill.lay(first..first + elements, &mut words[..laid]);
    }
}
