//! The first look at shared memory.

use super::filter::{Access, Row, THREAD_BITS, THREADS, cells};
use super::order::{Moment, Order};

/// The cells of a block's shared memory: as wide as the widest access, 16 bytes, until the first narrower one makes them as
/// narrow.
pub(super) struct SharedShadow {
    pub(super) shift: u32,
    pub(super) cells: Vec<SharedCell>,
    /// For each cell its last atomics; none as long as there was none.
    pub(super) atomics: Vec<SharedWord>,
}

impl SharedShadow {
    pub(super) fn new() -> Self {
        Self { shift: 4, cells: Vec::new(), atomics: Vec::new() }
    }

    /// Enters accesses of `width` bytes; says whether one is suspicious.
    pub(super) fn touch(&mut self, row: &Row<SharedWord>, width: u64, access: Access, order: &Order) -> bool {
        let end = row.lanes().iter().fold(0, |end, (place, _)| end.max(*place)) + width;
        if width < 1 << self.shift || end > (self.cells.len() as u64) << self.shift {
            self.make_room(end, width);
        }
        if self.takes_atomics(access) {
            return self.touch_with_atomics(row, width, access, order);
        }
        match access {
            Access::Load => self.touch_cells(row, width, Access::Load, order),
            _ => self.touch_cells(row, width, Access::Store, order),
        }
    }

    /// Whether cells have atomics, of which this access may be the first.
    #[inline(always)]
    fn takes_atomics(&mut self, access: Access) -> bool {
        if matches!(access, Access::Atomic | Access::AtomicOfBlock) {
            self.atomics.resize(self.cells.len(), SharedWord::default());
        }
        !self.atomics.is_empty()
    }

    /// Enters accesses where there have been atomics.
    #[inline(never)]
    fn touch_with_atomics(&mut self, row: &Row<SharedWord>, width: u64, access: Access, order: &Order) -> bool {
        let (count, mut suspicious) = cells(width, self.shift);
        let begin = SharedWord::first(order.first_interval());
        for &(place, now) in row.lanes() {
            let first = (place >> self.shift) as usize;
            let cells = self.cells[first..first + count].iter_mut();
            for (SharedCell { load, store }, atomic) in cells.zip(&mut self.atomics[first..first + count]) {
                let is_written = (*store).max(*atomic) >= begin;
                suspicious |= store.may_race(now, order);
                match access {
                    Access::Load => {
                        suspicious |= atomic.may_race(now, order) || !is_written;
                        *load = load.join(now, order);
                    }
                    Access::Store => {
                        suspicious |= atomic.may_race(now, order) || load.may_race(now, order);
                        *store = now;
                    }
                    Access::Atomic | Access::AtomicOfBlock => {
                        suspicious |= load.may_race(now, order) || !is_written;
                        *atomic = atomic.join(now, order);
                    }
                }
            }
        }
        suspicious
    }

    #[inline(always)]
    fn touch_cells(&mut self, row: &Row<SharedWord>, width: u64, access: Access, order: &Order) -> bool {
        let (cells, mut suspicious) = cells(width, self.shift);
        let [begin, last] = [order.first_interval(), order.interval()].map(SharedWord::first);
        for cell in 0..cells {
            for &(place, now) in row.lanes() {
                let cell = &mut self.cells[(place >> self.shift) as usize + cell];
                suspicious |= !cell.touch_plainly(access, now, begin, last) && cell.touch(access, now, order);
            }
        }
        suspicious
    }

    /// Enters accesses of all lanes of a warp, each behind the one before it, from `place` on.
    pub(super) fn touch_side_by_side(
        &mut self,
        place: u64,
        width: u64,
        access: Access,
        words: &[SharedWord; 32],
        order: &Order,
    ) -> bool {
        let end = place + 32 * width;
        if width < 1 << self.shift || end > (self.cells.len() as u64) << self.shift {
            self.make_room(end, width);
        }
        if self.takes_atomics(access) {
            let mut row = Row::new();
            words.iter().zip((place..).step_by(width as usize)).for_each(|(now, place)| row.push(place, *now));
            return self.touch_with_atomics(&row, width, access, order);
        }
        let [begin, last] = [order.first_interval(), order.interval()].map(SharedWord::first);
        let count = (width >> self.shift) as usize;
        let cells = &mut self.cells[(place >> self.shift) as usize..][..32 * count];
        let mut suspicious = false;
        for (cells, now) in cells.chunks_exact_mut(count).zip(words) {
            for cell in cells {
                suspicious |= !cell.touch_plainly(access, *now, begin, last) && cell.touch(access, *now, order);
            }
        }
        suspicious
    }

    /// Enters loads of one word by all lanes of a warp at the same `moment`, which is the first lane's, if it is plain that they are not
    /// suspicious; says whether it did.
    pub(super) fn touch_together(&mut self, place: u64, width: u64, moment: SharedWord, order: &Order) -> bool {
        let [begin, last] = [order.first_interval(), order.interval()].map(SharedWord::first);
        let (count, is_part) = cells(width, self.shift);
        let first = (place >> self.shift) as usize;
        let Some(cells) = self.cells.get_mut(first..first + count).filter(|_| !is_part && self.atomics.is_empty())
        else {
            return false;
        };
        let is_plain = |cell: &SharedCell| {
            let is_of_warp = cell.load == moment.of_warp() || cell.load.thread() == WARPS;
            cell.store >= begin && cell.store < last && (cell.load < last || is_of_warp)
        };
        if !cells.iter().all(is_plain) {
            return false;
        }
        cells.iter_mut().filter(|cell| cell.load < last).for_each(|cell| cell.load = moment.of_warp());
        true
    }

    /// Makes cells no wider than `width`, up to the offset `end`.
    #[cold]
    fn make_room(&mut self, end: u64, width: u64) {
        if width < 1 << self.shift {
            let parts = (1 << self.shift) / width as usize;
            self.cells = self.cells.iter().flat_map(|cell| std::iter::repeat_n(*cell, parts)).collect();
            self.atomics = self.atomics.iter().flat_map(|word| std::iter::repeat_n(*word, parts)).collect();
            self.shift = width.trailing_zeros();
        }
        self.cells.resize(self.cells.len().max((end >> self.shift) as usize), SharedCell::default());
        if !self.atomics.is_empty() {
            self.atomics.resize(self.cells.len(), SharedWord::default());
        }
    }
}

/// Who touched a cell of shared memory last, by reading and by writing.
#[derive(Clone, Copy, Default)]
pub(super) struct SharedCell {
    pub(super) load: SharedWord,
    pub(super) store: SharedWord,
}

/// A moment in one word: the interval between barriers (from 1, so that 0 lies before all), the meetings of the thread
/// in it, and the thread. Where threads share a word, the thread's place says how far apart they are.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SharedWord(u64);

const MEETINGS: u32 = THREAD_BITS;
const MEETINGS_BITS: u32 = 32 - THREAD_BITS;

/// In a thread's place: several threads of one warp, whose number is added.
const ONE_WARP: u64 = 1024;
/// In a thread's place: threads of several warps.
const WARPS: u64 = THREADS;

impl SharedWord {
    pub(super) fn new(now: Moment) -> Self {
        let meetings = u64::from(now.meetings.min((1 << MEETINGS_BITS) - 1));
        Self(u64::from(now.interval) << 32 | meetings << MEETINGS | u64::from(now.thread))
    }

    /// Whether threads have taken part in as many meetings at the same time.
    pub(super) fn is_alike(self, other: Self) -> bool {
        (self.0 ^ other.0) & !THREADS == 0
    }

    /// Before all others of an interval.
    fn first(interval: u32) -> Self {
        Self(u64::from(interval) << 32)
    }

    /// The same moment, of several threads of the warp.
    #[inline(always)]
    fn of_warp(self) -> Self {
        Self(self.0 & !THREADS | (ONE_WARP + self.thread() / 32))
    }

    fn interval(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn thread(self) -> u64 {
        self.0 & THREADS
    }

    /// Whether an access at this moment may be unordered with one by the thread at `now`.
    #[inline(always)]
    fn may_race(self, now: Self, order: &Order) -> bool {
        self.is_of_another(now) && self.may_race_in_warp(now, order)
    }

    /// Whether another thread was there between the same barriers as the one at `now`.
    #[inline(always)]
    fn is_of_another(self, now: Self) -> bool {
        self.interval() == now.interval() && self.thread() != now.thread()
    }

    #[inline(never)]
    fn may_race_in_warp(self, now: Self, order: &Order) -> bool {
        let (thread, own) = (self.thread(), now.thread());
        let meetings = (self.0 >> MEETINGS) as u32 & ((1 << MEETINGS_BITS) - 1);
        let known = meetings < (1 << MEETINGS_BITS) - 1;
        let follows = |other| known && order.follows(own as u32, other as u32, meetings);
        match thread.checked_sub(ONE_WARP) {
            None => thread / 32 != own / 32 || !follows(thread),
            Some(warp) => warp != own / 32 || !(0..32).all(|lane| lane == own % 32 || follows(lane)),
        }
    }

    /// A word for both an access at this moment and one at `now`: the later alone where it is ordered behind the other.
    #[inline(always)]
    fn join(self, now: Self, order: &Order) -> Self {
        if !self.may_race(now, order) {
            return now;
        }
        let (thread, own) = (self.thread(), now.thread());
        let warp = if thread < ONE_WARP { thread / 32 } else { thread - ONE_WARP };
        if warp == own / 32 {
            // The later of the two, so that whoever follows it follows both.
            Self((self.max(now).0 & !THREADS) | (ONE_WARP + warp))
        } else {
            Self(now.0 | WARPS)
        }
    }
}

impl SharedCell {
    /// Enters an access if it is plain that it is not suspicious; says whether it did. The block has run since `begin`, and has
    /// passed its last barrier before `last`.
    #[inline(always)]
    fn touch_plainly(&mut self, access: Access, now: SharedWord, begin: SharedWord, last: SharedWord) -> bool {
        let Self { load, store } = *self;
        // A store between two accesses of a thread at the same moment, or while several warps load, was suspicious itself.
        if access != Access::Load {
            let plainly = store == now || store < last && (load < last || load == now);
            if plainly {
                self.store = now;
            }
            return plainly;
        }
        if load == now || load >= last && load.thread() == WARPS {
            return true;
        }
        if store < begin || store >= last {
            return false;
        }
        if load < last {
            self.load = now;
            return true;
        }
        load == now.of_warp()
    }

    /// Enters an access; says whether it may be one end of a race, or a load of what nobody wrote.
    #[inline(never)]
    pub(super) fn touch(&mut self, access: Access, now: SharedWord, order: &Order) -> bool {
        let Self { load, store } = *self;
        if access == Access::Load {
            self.load = load.join(now, order);
            store.may_race(now, order) || store.interval() < order.first_interval()
        } else {
            self.store = now;
            store.may_race(now, order) || load.may_race(now, order)
        }
    }
}
