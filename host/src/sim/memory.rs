//! Simulated global memory: the buffers of a plan, filled page by page as they are touched.
//!
//! An address is a buffer and an offset in it, so that an index far outside cannot land in another buffer unseen, and a
//! report is the same bytes on every run. Blocks run on several threads: every access is a relaxed atomic of its width.

use super::sanitizer::Cells;
use super::spare;
use gpu::suite::{Before, Buffer, POISON, Plan};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Bits of an address that hold the offset; the rest holds the buffer's number, from 1. Buffers are smaller, so that no
/// index leads from one to the next.
pub(super) const OFFSET_BITS: u32 = 45;

/// The limit of offsets that pointers have, of buffers and of indices.
pub(super) const LIMIT: u64 = 1 << 40;

/// Bytes of a page.
pub(super) const PAGE: u64 = 1 << 16;

type Page = Box<[AtomicU64]>;

/// The address of element `index` of `width` bytes from `base` on, or none if no buffer is as large.
#[inline(always)]
pub(super) fn address(base: u64, index: u64, width: u64) -> Option<u64> {
    (index < LIMIT).then_some(base + index * width)
}

/// The offset of an address in its buffer.
#[inline(always)]
pub(super) fn offset_of(address: u64) -> u64 {
    address & ((1 << OFFSET_BITS) - 1)
}

/// The buffers of a plan.
pub(super) struct Memory {
    plan: Arc<Plan>,
    buffers: Vec<Pages>,
}

/// A buffer's size, and its pages.
struct Pages {
    bytes: u64,
    pages: Box<[OnceLock<Page>]>,
    /// Which pages a worker has set out to fill.
    claimed: Box<[AtomicBool]>,
}

impl Memory {
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        let buffers = plan.buffers.iter().map(|buffer| {
            let pages = 0..buffer.bytes().div_ceil(PAGE);
            Pages {
                bytes: buffer.bytes(),
                pages: pages.clone().map(|_| OnceLock::new()).collect(),
                claimed: pages.map(|_| AtomicBool::new(false)).collect(),
            }
        });
        Self { buffers: buffers.collect(), plan }
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
    pub(super) fn resolve(&self, recent: &mut RecentPages, base: u64, index: u64, width: u64) -> Option<Element<'_>> {
        let address = address(base, index, width)?;
        let cells = match recent.get(address) {
            Some(page) => page.cells,
            None => self.find(recent, address, width)?,
        };
        Some(Element::new(address, cells))
    }

    /// Where a page begins that was not touched lately, and that holds `width` bytes at `address`.
    #[inline(never)]
    fn find(&self, recent: &mut RecentPages, address: u64, width: u64) -> Option<*const u8> {
        let cells = self.cells(address, width)?;
        if self.contains(address / PAGE * PAGE, PAGE) {
            *recent.place(address) = RecentPage { number: address / PAGE, cells, shadow: Cells::UNKNOWN };
        }
        Some(cells)
    }

    /// The cells of the page that holds `width` bytes at `address`, or none if they lie outside every buffer.
    fn cells(&self, address: u64, width: u64) -> Option<*const u8> {
        if !self.contains(address, width) {
            return None;
        }
        let (number, page) = (Self::number(address), (offset_of(address) / PAGE) as usize);
        let cells = match self.buffers[number].pages[page].get() {
            Some(cells) => cells,
            None => self.first_touch(number, page),
        };
        Some(cells.as_ptr().cast())
    }

    /// A page that nobody had touched. Who finds another worker filling it fills the next one meanwhile: blocks that run at
    /// the same time mostly lie side by side.
    #[cold]
    fn first_touch(&self, number: usize, page: usize) -> &Page {
        let Pages { pages, claimed, .. } = &self.buffers[number];
        let filled = |page: usize| pages[page].get_or_init(|| fill(&self.plan.buffers[number], page as u64));
        let claim = |page: usize| claimed.get(page).is_some_and(|claimed| !claimed.swap(true, Relaxed));
        if !claim(page) && claim(page + 1) {
            filled(page + 1);
        }
        filled(page)
    }

    /// Whether `width` bytes at `address` lie in a buffer.
    pub(super) fn contains(&self, address: u64, width: u64) -> bool {
        self.buffer_of(address).is_some_and(|number| offset_of(address) + width <= self.buffers[number].bytes)
    }

    /// The bits of element `i` of a buffer.
    pub(super) fn bits(&self, buffer: usize, i: u64) -> u64 {
        let size = self.plan.buffers[buffer].element.size();
        let address = Self::base(buffer) + i * size;
        let element = Element::new(address, self.cells(address, size).expect("an element of the buffer"));
        let mut bits = 0u64;
        // SAFETY: elements of buffers are aligned to their size, which is at most 8.
        unsafe { element.load(size as usize, (&raw mut bits).cast()) };
        bits
    }
}

/// The pages of a memory that a worker touched last: most accesses find theirs here. Only whole ones, so that what lies in
/// a page lies in the buffer. It must not outlive the memory.
pub(super) struct RecentPages([RecentPage; RECENT as usize]);

/// A page that was touched lately.
#[derive(Clone, Copy)]
pub(super) struct RecentPage {
    number: u64,
    cells: *const u8,
    /// What the sanitizer knows of it.
    pub(super) shadow: Cells,
}

impl RecentPage {
    /// Stands where no page is known.
    pub(super) const NONE: Self = Self { number: u64::MAX, cells: ptr::null(), shadow: Cells::UNKNOWN };

    /// Whether an address lies in it.
    #[inline(always)]
    pub(super) fn holds(&self, address: u64) -> bool {
        self.number == address / PAGE
    }
}

/// How many pages are remembered.
const RECENT: u64 = 64;

impl RecentPages {
    /// Knows no page yet.
    pub(super) fn new() -> Self {
        Self([RecentPage::NONE; RECENT as usize])
    }

    /// Where the page that an address lies in stands, if it is known. Pages at the same offset of different buffers do not push
    /// one another out.
    #[inline(always)]
    fn slot(address: u64) -> usize {
        (((address / PAGE) ^ (address >> OFFSET_BITS)) % RECENT) as usize
    }

    #[inline(always)]
    fn place(&mut self, address: u64) -> &mut RecentPage {
        &mut self.0[Self::slot(address)]
    }

    #[inline(always)]
    pub(super) fn get(&self, address: u64) -> Option<&RecentPage> {
        let page = &self.0[Self::slot(address)];
        page.holds(address).then_some(page)
    }

    /// Remembers what the sanitizer knows of the page that an address lies in, if that was touched lately.
    pub(super) fn shade(&mut self, address: u64, shadow: Cells) {
        let page = self.place(address);
        if page.holds(address) {
            page.shadow = shadow;
        }
    }
}

/// An element of a buffer.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    /// Its simulated address.
    pub(super) address: u64,
    cell: *const u8,
    memory: PhantomData<&'a Memory>,
}

impl Element<'_> {
    /// The one at `address`, which lies in `page`.
    #[inline(always)]
    pub(super) fn of_page(page: &RecentPage, address: u64) -> Self {
        Self::new(address, page.cells)
    }

    /// The one at `address`, in the page that begins at `cells`.
    #[inline(always)]
    fn new(address: u64, cells: *const u8) -> Self {
        Self { address, cell: cells.wrapping_add((address % PAGE) as usize), memory: PhantomData }
    }

    /// Copies its `width` bytes to `value`.
    ///
    /// # Safety
    /// It was resolved for `width` and is aligned to it; `value` has room for as many.
    #[inline(always)]
    pub(super) unsafe fn load(self, width: usize, value: *mut u8) {
        let cell = self.cell;
        // SAFETY: cell and value are `width` bytes, aligned; pages live as long as the memory and are only accessed
        // atomically.
        unsafe {
            match width {
                1 => *value = (*cell.cast::<AtomicU8>()).load(Relaxed),
                2 => *value.cast::<u16>() = (*cell.cast::<AtomicU16>()).load(Relaxed),
                4 => *value.cast::<u32>() = (*cell.cast::<AtomicU32>()).load(Relaxed),
                _ => {
                    for word in 0..width / 8 {
                        *value.cast::<u64>().add(word) = (*cell.cast::<AtomicU64>().add(word)).load(Relaxed);
                    }
                }
            }
        }
    }

    /// Copies `width` bytes from `value` to it.
    ///
    /// # Safety
    /// As [`Element::load`].
    #[inline(always)]
    pub(super) unsafe fn store(self, width: usize, value: *const u8) {
        let cell = self.cell;
        // SAFETY: as in `load`.
        unsafe {
            match width {
                1 => (*cell.cast::<AtomicU8>()).store(*value, Relaxed),
                2 => (*cell.cast::<AtomicU16>()).store(*value.cast::<u16>(), Relaxed),
                4 => (*cell.cast::<AtomicU32>()).store(*value.cast::<u32>(), Relaxed),
                _ => {
                    for word in 0..width / 8 {
                        (*cell.cast::<AtomicU64>().add(word)).store(*value.cast::<u64>().add(word), Relaxed);
                    }
                }
            }
        }
    }
}

/// Page `number` of a buffer, as it stands before the kernel runs.
fn fill(buffer: &Buffer, number: u64) -> Page {
    let size = buffer.element.size();
    let first = number * PAGE / size;
    let elements = (PAGE / size).min(buffer.len - first);
    let blank = if let Before::Zero = buffer.before { 0 } else { POISON };
    // Whole 16-byte cells.
    let mut words = spare::take((elements * size).div_ceil(16) as usize * 2, u64::from_ne_bytes([blank; 8]));
    if let Before::Filled(fill) = &buffer.before {
        fill.lay(first..first + elements, &mut words);
    }
    words.into_iter().map(AtomicU64::new).collect()
}

impl Drop for Memory {
    fn drop(&mut self) {
        let pages = self.buffers.iter_mut().flat_map(|buffer| &mut buffer.pages).filter_map(OnceLock::take);
        spare::keep(pages.map(|page| page.into_iter().map(AtomicU64::into_inner).collect()));
    }
}
