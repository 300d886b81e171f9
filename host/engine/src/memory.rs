//! Simulated global memory: the buffers of a plan, each in one piece, filled page by page as they are touched.
//!
//! An address is a buffer and an offset in it, so that an index far outside cannot land in another buffer unseen, and a
//! report is the same bytes on every run. Blocks run on several threads: every access is a relaxed atomic of its width.

use crate::element::{AtHand, Element, load_word};
use crate::request::Request;
use gpu::suite::{Before, Buffer, POISON, Plan};
use plan::verify::{Actual, Written};
use std::ops::Range;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use system::pages::{PAGE, Pages};
use system::words::{Refused, Words};

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
pub fn advance(base: u64, bytes: i64) -> u64 {
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
pub fn offset_of(address: u64) -> u64 {
    address & ((1 << OFFSET_BITS) - 1)
}

/// The buffers of a plan.
pub struct Memory {
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
    /// Which of the bytes that hold [`POISON`] the kernel has written, as a bit for each byte of a word: all others tell by
    /// themselves. None if that need not be known. Those of a page are 0 from when it is filled on.
    marks: Option<Words>,
}

impl Bytes {
    fn new(buffer: &Buffer) -> Result<Self, Refused> {
        let count = buffer.bytes();
        // Whole 16-byte cells.
        let words = Words::take(2 * count.div_ceil(16) as usize)?;
        let marks = tells(buffer).then(|| Words::take(words.len().div_ceil(8))).transpose()?;
        Ok(Self { count, words, filled: Pages::new(count.div_ceil(PAGE) as usize), marks })
    }

    fn cell(&self, offset: u64) -> *mut u8 {
        self.words.start().cast::<u8>().wrapping_add(offset as usize)
    }

    /// The marks of each word.
    fn marks(&self) -> Option<&[AtomicU8]> {
        // SAFETY: a mark is a byte, whatever stands in it, and is only accessed atomically. There is one for each word.
        self.marks.as_ref().map(|marks| unsafe { slice::from_raw_parts(marks.start().cast(), self.words.len()) })
    }

    /// The kernel has written these bytes, which are filled.
    #[inline(always)]
    fn mark(&self, marks: &[AtomicU8], bytes: Range<u64>) {
        let mut start = bytes.start;
        while start < bytes.end {
            let end = bytes.end.min(start / 8 * 8 + 8);
            // SAFETY: the word belongs to the buffer, and is filled: it is only accessed atomically.
            let word = unsafe { load_word(self.words.start().add((start / 8) as usize)) };
            let marked = poisoned(word) & u8::MAX >> (8 - (end - start)) << (start % 8);
            if marked != 0 {
                marks[(start / 8) as usize].fetch_or(marked, Relaxed);
            }
            start = end;
        }
    }

    /// How much the kernel has written of an element of `size` bytes, which holds `bits`.
    #[inline]
    fn written(&self, place: u64, size: u64, bits: u64) -> Written {
        let Some(marks) = self.marks() else { return Written::All };
        let in_doubt = poisoned(bits) & u8::MAX >> (8 - size);
        if in_doubt == 0 {
            return Written::All;
        }
        let unwritten = in_doubt & !(marks[(place / 8) as usize].load(Relaxed) >> (place % 8));
        match u64::from(unwritten.count_ones()) {
            0 => Written::All,
            bytes if bytes == size => Written::Nothing,
            _ => Written::Part,
        }
    }
}

/// A bit for each byte of a word that holds [`POISON`].
#[inline(always)]
fn poisoned(word: u64) -> u8 {
    const POISONED: u64 = u64::from_ne_bytes([POISON; 8]);
    const LOW: u64 = u64::from_ne_bytes([0x7F; 8]);
    let differs = word ^ POISONED;
    // The highest bit of each byte in which nothing differs.
    let alike = !(((differs & LOW) + LOW) | differs | LOW);
    ((alike >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// Whether what the kernel writes to a buffer is remembered: the bytes of one that is to be written do not tell.
fn tells(buffer: &Buffer) -> bool {
    matches!(buffer.before, Before::Poison)
}

/// Bytes that the buffers of a plan take.
pub(crate) fn bytes(plan: &Plan) -> u64 {
    let of = |buffer: &Buffer| buffer.bytes() + if tells(buffer) { buffer.bytes().div_ceil(8) } else { 0 };
    plan.buffers.iter().map(of).sum()
}

impl Memory {
    /// Those of a plan, none of them filled yet.
    ///
    /// # Errors
    /// If the system gives no addresses for one.
    pub fn new(plan: Arc<Plan>) -> Result<Self, Refused> {
        let buffers = plan.buffers.iter().map(Bytes::new).collect::<Result<_, _>>()?;
        Ok(Self { buffers, plan })
    }

    /// The address of a buffer's first element, aligned to 256 bytes and more.
    pub fn base(buffer: usize) -> u64 {
        (buffer as u64 + 1) << OFFSET_BITS
    }

    /// The buffer that a resolved address lies in.
    #[inline(always)]
    pub fn number(address: u64) -> usize {
        (address >> OFFSET_BITS) as usize - 1
    }

    /// The buffer that an address names; none for one that no kernel was given.
    #[inline]
    pub fn buffer_of(&self, address: u64) -> Option<usize> {
        let buffer = (address >> OFFSET_BITS).checked_sub(1)? as usize;
        (buffer < self.plan.buffers.len()).then_some(buffer)
    }

    /// The address where the buffer begins that an address leads into, or before; none if it leads into none.
    pub fn base_of(&self, address: u64) -> Option<u64> {
        self.buffer_of(begin(address)).map(Self::base)
    }

    /// Element `index` of `width` bytes from `base` on, or none if it lies outside the buffer. One that is not aligned may
    /// reach over the end.
    #[inline(always)]
    pub fn resolve(&self, base: u64, index: u64, width: u64) -> Option<Element> {
        let address = match index < LIMIT && offset_of_pointer(base) >= 0 {
            true => base + index * width,
            false => begin(base) + u64::try_from(offset(base, index, width)).ok().filter(|offset| *offset < LIMIT)?,
        };
        self.element(address, width)
    }

    /// What an access that `resolve` refuses missed.
    #[cold]
    pub fn missed(&self, base: u64, index: u64, width: u64) -> String {
        let Some(buffer) = self.buffer_of(begin(base)) else {
            return "memory through a pointer that is no buffer of the launch".into();
        };
        let buffer = &self.plan.buffers[buffer];
        let start = offset(base, index, width);
        format!("{width} bytes at byte {start} of `{}`, which has {}", buffer.name, buffer.bytes())
    }

    #[inline]
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
        let words = unsafe { slice::from_raw_parts_mut(bytes.words.start().add(words.start), words.len()) };
        fill(buffer, page as u64, words);
        let marks = bytes.marks().into_iter().flatten();
        marks.skip(page * PAGE as usize / 8).take(PAGE as usize / 8).for_each(|mark| mark.store(0, Relaxed));
    }

    /// Remembers what the lanes of a request have written: stores to global memory, or additions.
    #[inline(always)]
    pub fn wrote(&self, request: &Request<'_>) {
        let width = request.instruction.width();
        let mark = |first: u64, count: u64| {
            let (buffer, start) = (&self.buffers[Self::number(first)], offset_of(first));
            if let Some(marks) = buffer.marks() {
                buffer.mark(marks, start..start + count * width);
            }
        };
        match request.step {
            Some(step) if step == width.cast_signed() && request.base.is_some() => mark(request.first(), 32),
            _ => request.each(request.mask, |_, address| mark(address, 1)),
        }
    }

    /// The bytes of a filled buffer around a resolved address, as offsets: all of them in the end, and at least its page.
    #[inline]
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

    /// What is filled around the buffer's resolved `address` of accesses of `width` bytes by the aligned pointer `base`.
    #[inline]
    pub fn at_hand(&self, base: u64, address: u64, width: u64) -> Option<AtHand> {
        // Indices below zero are not at hand.
        let start = u64::try_from(offset_of_pointer(base)).ok()?;
        let Range { start: first, end } = self.filled_around(address);
        let first = first.max(start);
        let elements = self.buffers[Self::number(address)].cell(start);
        (end >= first).then(|| AtHand { first: (first - start) / width, count: (end - first) / width, elements })
    }

    /// All elements of `width` bytes of the buffer that begins at `base`; those on pages that nobody has [reached](Self::reach) are
    /// not filled.
    pub fn whole(&self, base: u64, width: u64) -> Option<AtHand> {
        let buffer = &self.buffers[self.buffer_of(base)?];
        Some(AtHand { first: 0, count: buffer.count / width, elements: buffer.cell(0) })
    }

    /// Fills the pages that the lanes in `mask` go to, `offsets` bytes behind the begin of the buffer at `base`; whether all of the
    /// buffer is filled then. No lane goes beyond the buffer, or over the end of a page.
    #[inline(always)]
    pub fn reach(&self, base: u64, mask: u32, offsets: &[u64; 32]) -> bool {
        let first = offsets[mask.trailing_zeros() as usize % 32];
        // Mostly all lanes go to one page: the bits in which they differ tell, on several lanes at a time.
        let differs = |(lane, offset): (usize, &u64)| if mask >> lane & 1 == 1 { offset ^ first } else { 0 };
        let differ = offsets.iter().enumerate().map(differs).fold(0, |differ, bits| differ | bits);
        self.reach_pages(base, if differ < PAGE { mask & mask.wrapping_neg() } else { mask }, offsets)
    }

    fn reach_pages(&self, base: u64, mask: u32, offsets: &[u64; 32]) -> bool {
        let number = Self::number(base);
        let filled = &self.buffers[number].filled;
        let mut last = None;
        let mut rest = mask;
        while rest != 0 {
            let page = (offsets[rest.trailing_zeros() as usize % 32] / PAGE) as usize;
            if last.replace(page) != Some(page) {
                filled.reach(page, |page| self.fill(number, page));
            }
            rest &= rest - 1;
        }
        filled.are_ready()
    }

    /// Whether `width` bytes at `address` lie in a buffer.
    #[inline]
    pub fn contains(&self, address: u64, width: u64) -> bool {
        self.buffer_of(address).is_some_and(|number| offset_of(address) + width <= self.buffers[number].count)
    }

    /// Element `i` of a buffer, after a run of the whole grid.
    #[inline]
    pub fn actual(&self, buffer: usize, i: u64) -> Actual {
        let bits = self.bits(buffer, i);
        let size = self.plan.buffers[buffer].element.size();
        let written = self.buffers[buffer].written(i * size, size, bits);
        Actual { bits, written }
    }

    /// The bits of element `i` of a buffer.
    #[inline]
    pub fn bits(&self, buffer: usize, i: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use gpu::suite::noise;

    #[test]
    fn the_bytes_of_a_word_that_hold_poison_are_told() {
        for i in 0..10_000 {
            let bytes: [u8; 8] = std::array::from_fn(|byte| match noise(8 * i + byte as u64) as u32 % 5 {
                0 => POISON - 1,
                1 => POISON & 0x7F,
                2 => 0,
                _ => POISON,
            });
            let expected: u8 = (0..8).map(|byte| u8::from(bytes[byte] == POISON) << byte).sum();
            assert_eq!(poisoned(u64::from_le_bytes(bytes)), expected, "{bytes:x?}");
        }
    }
}
