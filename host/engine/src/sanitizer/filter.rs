//! The first look: a word or two for each cell of memory say who touched it. It misses nothing, and may suspect too much:
//! where several threads share a word, in accesses narrower than a cell, and of lanes of a warp that share global memory.

use super::order::Moment;
use crate::instruction::Instruction;
use gpu::suite::{Before, Buffer, Operation, Scope};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use system::pages::{PAGE, Pages};
use system::parallel;
use system::words::{Refused, Words};

/// Bits of a thread's number, and of what stands in its place for several.
pub(super) const THREAD_BITS: u32 = 11;
pub(super) const THREADS: u64 = (1 << THREAD_BITS) - 1;

/// What an access is to the first look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Load,
    Store,
    /// One that others may meet: an atomic, or a volatile access.
    Atomic,
    /// One that others of its block may meet.
    AtomicOfBlock,
}

impl Access {
    pub(super) fn of(instruction: Instruction) -> Self {
        match (instruction.scope, instruction.operation) {
            (Some(Scope::Block), _) => Self::AtomicOfBlock,
            (Some(_), _) | (None, Operation::Atomic) => Self::Atomic,
            (None, Operation::Load) => Self::Load,
            (None, Operation::Store) => Self::Store,
        }
    }

    /// A bit for each.
    #[inline(always)]
    const fn bit(self) -> u64 {
        1 << self as u64
    }
}

/// What the threads of a warp do next: where each goes, and a word for its moment.
pub(super) struct Row<W> {
    lanes: [(u64, W); 32],
    len: usize,
}

impl<W: Copy + Default> Row<W> {
    pub(super) fn new() -> Self {
        Self { lanes: [(0, W::default()); 32], len: 0 }
    }

    /// Nobody does anything.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    pub(super) fn push(&mut self, place: u64, word: W) {
        self.lanes[self.len % 32] = (place, word);
        self.len += 1;
    }

    #[inline(always)]
    pub(super) fn lanes(&self) -> &[(u64, W)] {
        &self.lanes[..self.len.min(32)]
    }
}

/// How many cells of `1 << shift` bytes an access of `width` bytes touches, and whether it is narrower than a cell.
#[inline(always)]
pub(super) fn cells(width: u64, shift: u32) -> (usize, bool) {
    let cells = (width >> shift) as usize;
    (cells.max(1), cells == 0)
}

/// The cells of a buffer that a kernel may write, one for each element, in one piece and blank page by page.
pub(crate) struct Shadow {
    /// Bytes of an element, as a power of two.
    pub(super) shift: u32,
    pub(super) initialized: bool,
    cells: Words,
    /// Which pages of the cells are blank, or have been.
    pages: Pages,
}

/// Cells of a page.
const CELLS: usize = PAGE as usize / size_of::<GlobalCell>();

/// Pages of cells that a thread looks at in one go.
const PAGES: usize = 16;

impl Shadow {
    /// Bytes it takes for each element of the buffer.
    pub(super) const BYTES: u64 = size_of::<GlobalCell>() as u64;

    /// Nobody has touched the buffer.
    pub(super) fn new(buffer: &Buffer) -> Result<Self, Refused> {
        let cells = Words::take(buffer.len as usize)?;
        let pages = Pages::new(cells.len().div_ceil(CELLS));
        let initialized = !matches!(buffer.before, Before::Poison);
        Ok(Self { shift: buffer.element.size().trailing_zeros(), initialized, cells, pages })
    }

    #[inline(always)]
    pub(super) fn cells(&self) -> &[GlobalCell] {
        // SAFETY: a cell is a word, whatever stands in it, and is only accessed atomically.
        unsafe { std::slice::from_raw_parts(self.cells.start().cast(), self.cells.len()) }
    }

    /// Enters accesses of `width` bytes; says whether one is suspicious. Adds to `claims` how many cells nobody had touched
    /// before.
    pub(super) fn touch(&self, row: &Row<GlobalWord>, width: u64, access: Access, claims: &mut u64) -> bool {
        self.reach(row);
        // The common cases, each a loop of its own.
        match (access, self.initialized) {
            (Access::Load, true) => self.touch_cells(row, width, Access::Load, true, claims),
            // It matters to loads alone.
            (Access::Store, _) => self.touch_cells(row, width, Access::Store, true, claims),
            (_, initialized) => self.touch_cells(row, width, access, initialized, claims),
        }
    }

    /// Enters accesses of all lanes of a warp, each behind the one before it, from `place` on; `word` is the first lane's moment.
    pub(super) fn touch_side_by_side(
        &self,
        place: u64,
        width: u64,
        access: Access,
        word: GlobalWord,
        claims: &mut u64,
    ) -> bool {
        let (count, mut suspicious) = cells(width, self.shift);
        let first = (place >> self.shift) as usize;
        let last = ((place + 31 * width) >> self.shift) as usize + count - 1;
        for page in first / CELLS..=last / CELLS {
            self.pages.reach(page, |number| self.blank(number));
        }
        let initialized = self.initialized || access == Access::Store;
        let mut claimed = 0;
        for lane in 0..32 {
            let now = word.of_lane(lane);
            for cell in &self.cells()[((place + lane as u64 * width) >> self.shift) as usize..][..count] {
                let touched = cell.touch(access, now, initialized);
                claimed += u64::from(touched.claimed);
                suspicious |= touched.suspicious;
            }
        }
        *claims += claimed;
        suspicious
    }

    #[inline(always)]
    fn touch_cells(
        &self,
        row: &Row<GlobalWord>,
        width: u64,
        access: Access,
        initialized: bool,
        claims: &mut u64,
    ) -> bool {
        let (cells, mut suspicious) = cells(width, self.shift);
        let mut claimed = 0;
        for &(place, now) in row.lanes() {
            for cell in &self.cells()[(place >> self.shift) as usize..][..cells] {
                let touched = cell.touch(access, now, initialized);
                claimed += u64::from(touched.claimed);
                suspicious |= touched.suspicious;
            }
        }
        *claims += claimed;
        suspicious
    }

    /// Sees to it that the pages of a row are blank, or have been.
    #[inline(always)]
    pub(super) fn reach(&self, row: &Row<GlobalWord>) {
        let page = |place: u64| (place >> self.shift) as usize / CELLS;
        let reach = |number| self.pages.reach(number, |number| self.blank(number));
        let [(first, _), ..] = row.lanes;
        let differ = row.lanes().iter().fold(0, |differ, (place, _)| differ | (place ^ first));
        match page(differ) {
            0 => reach(page(first)),
            _ => row.lanes().iter().for_each(|(place, _)| reach(page(*place))),
        }
    }

    /// Has nobody have touched page `number`.
    fn blank(&self, number: usize) {
        self.cells()[number * CELLS..].iter().take(CELLS).for_each(|cell| cell.0.store(0, Relaxed));
    }

    /// How many cells somebody has touched. If workers have claimed more, two have claimed the same one at the same time.
    pub(crate) fn touched(&self) -> u64 {
        let in_page = |cells: &[GlobalCell]| cells.iter().filter(|cell| cell.0.load(Relaxed) != 0).count() as u64;
        let in_piece = |(piece, cells): (usize, &[GlobalCell])| {
            let pages = (PAGES * piece..).zip(cells.chunks(CELLS)).filter(|(page, _)| self.pages.is_ready(*page));
            pages.map(|(_, cells)| in_page(cells)).sum::<u64>()
        };
        let pieces = self.cells().chunks(PAGES * CELLS).enumerate();
        parallel::map(pieces, parallel::threads(), in_piece).into_iter().sum()
    }
}

/// Who touched an element of a buffer: the turn of the block (from 1; a word of 0 stands for nobody), the low bits of the
/// interval between barriers, the thread, what was done up to the last barrier, and what since.
#[repr(transparent)]
pub(super) struct GlobalCell(pub(super) AtomicU64);

/// A moment, in the places that it has in a [`GlobalCell`].
#[derive(Clone, Copy, Default)]
pub(super) struct GlobalWord(u64);

const KINDS: u32 = 4;
const THREAD: u32 = 2 * KINDS;
const INTERVAL: u32 = THREAD + THREAD_BITS;
const TURN: u32 = 32;

/// In a turn's place: several blocks.
const BLOCKS: u64 = (u32::MAX as u64) << TURN;

/// Stores and atomics.
const WRITES: u64 = Access::Store.bit() | ATOMICS;

/// Atomics of any scope.
const ATOMICS: u64 = Access::Atomic.bit() | Access::AtomicOfBlock.bit();

impl GlobalWord {
    /// The same moment of the warp's lane number `lane`, if this one is of its first.
    #[inline(always)]
    pub(super) fn of_lane(self, lane: usize) -> Self {
        Self(self.0 + ((lane as u64) << THREAD))
    }

    pub(super) fn new(now: Moment) -> Self {
        Self((now.turn % u64::from(u32::MAX - 1) + 1) << TURN).at(now)
    }

    /// Another moment of the same block.
    pub(super) fn at(self, now: Moment) -> Self {
        let interval = u64::from(now.interval) & ((1 << (TURN - INTERVAL)) - 1);
        Self(self.0 >> TURN << TURN | interval << INTERVAL | u64::from(now.thread) << THREAD)
    }
}

impl GlobalCell {
    /// Enters an access. It is suspicious if it may be one end of a race or, unless the memory is `initialized`, a load of
    /// what nobody wrote.
    ///
    /// A cell that nobody has touched is claimed for a store by a plain one. If another worker claims it at the same time, one does
    /// not see the other: but then both have counted it, which is suspicious. Loads may well come at the same time, and see each
    /// other.
    #[inline(always)]
    fn touch(&self, access: Access, now: GlobalWord, initialized: bool) -> Touched {
        let before = self.0.load(Relaxed);
        if before == 0 && access == Access::Store {
            self.0.store(now.0 | access.bit(), Relaxed);
            return Touched { claimed: true, suspicious: false };
        }
        let after = before | access.bit();
        let is_own = (before ^ now.0) >> THREAD == 0;
        if initialized
            && is_own
            && (before == after || self.0.compare_exchange(before, after, Relaxed, Relaxed).is_ok())
        {
            return Touched { claimed: false, suspicious: false };
        }
        self.touch_again(access, now, initialized)
    }

    /// The same if somebody else may have touched it.
    #[inline(never)]
    pub(super) fn touch_again(&self, access: Access, now: GlobalWord, initialized: bool) -> Touched {
        let mut before = self.0.load(Relaxed);
        loop {
            let (after, races) = enter(before, access, now);
            let uninitialized = !initialized && access != Access::Store && (before | before >> KINDS) & WRITES == 0;
            // Blocks run at the same time: each access sees every earlier one, or is seen by it, but for claims.
            if before != after
                && let Err(changed) = self.0.compare_exchange_weak(before, after, Relaxed, Relaxed)
            {
                before = changed;
                continue;
            }
            return Touched { claimed: before == 0, suspicious: races || uninitialized };
        }
    }
}

/// What came of an access to a cell.
#[derive(Clone, Copy)]
pub(super) struct Touched {
    /// Whether nobody had touched the cell before.
    pub(super) claimed: bool,
    pub(super) suspicious: bool,
}

/// What a cell holds after an access, and whether the access may race with one before it.
#[inline(always)]
fn enter(before: u64, access: Access, GlobalWord(now): GlobalWord) -> (u64, bool) {
    let kind = access.bit();
    if before == 0 {
        return (now | kind, false);
    }
    let (recent, all) = (before & ((1 << KINDS) - 1), (before | before >> KINDS) & ((1 << KINDS) - 1));
    let conflict = |kinds: u64| match access {
        Access::Load => kinds & WRITES != 0,
        Access::Store => kinds != 0,
        Access::Atomic | Access::AtomicOfBlock => kinds & !ATOMICS != 0,
    };
    // An atomic of a block's scope meets none of another block.
    let scope = match access {
        Access::Load | Access::Store => 0,
        Access::Atomic => Access::AtomicOfBlock.bit(),
        Access::AtomicOfBlock => ATOMICS,
    };
    let difference = before ^ now;
    if difference >> TURN != 0 {
        (BLOCKS | all | kind, conflict(all) || all & scope != 0)
    } else if difference >> INTERVAL != 0 {
        (now | all << KINDS | kind, false)
    } else if difference >> THREAD != 0 {
        (before | THREADS << THREAD | kind, conflict(recent))
    } else {
        (before | kind, false)
    }
}
