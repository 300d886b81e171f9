//! The first look: a word or two for each cell of memory say who touched it. It misses nothing, and may suspect too much:
//! where several threads share a word, in accesses narrower than a cell, and of lanes of a warp that share global memory.

use super::order::{Moment, Order};
use gpu::suite::{Before, Buffer, Operation};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use system::pages::{PAGE, Pages};
use system::parallel;
use system::words::{Refused, Words};

/// Bits of a thread's number, and of what stands in its place for several.
const THREAD_BITS: u32 = 11;
const THREADS: u64 = (1 << THREAD_BITS) - 1;

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
    fn lanes(&self) -> &[(u64, W)] {
        &self.lanes[..self.len.min(32)]
    }
}

/// How many cells of `1 << shift` bytes an access of `width` bytes touches, and whether it is narrower than a cell.
#[inline(always)]
fn cells(width: u64, shift: u32) -> (usize, bool) {
    let cells = (width >> shift) as usize;
    (cells.max(1), cells == 0)
}

/// The cells of a buffer that a kernel may write, one for each element, in one piece and blank page by page.
pub(crate) struct Shadow {
    /// Bytes of an element, as a power of two.
    shift: u32,
    initialized: bool,
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
    fn cells(&self) -> &[GlobalCell] {
        // SAFETY: a cell is a word, whatever stands in it, and is only accessed atomically.
        unsafe { std::slice::from_raw_parts(self.cells.start().cast(), self.cells.len()) }
    }

    /// Enters accesses of `width` bytes; says whether one is suspicious. Adds to `claims` how many cells nobody had touched
    /// before.
    pub(super) fn touch(&self, row: &Row<GlobalWord>, width: u64, operation: Operation, claims: &mut u64) -> bool {
        self.reach(row);
        // The common cases, each a loop of its own.
        match (operation, self.initialized) {
            (Operation::Load, true) => self.touch_cells(row, width, Operation::Load, true, claims),
            // It matters to loads alone.
            (Operation::Store, _) => self.touch_cells(row, width, Operation::Store, true, claims),
            (_, initialized) => self.touch_cells(row, width, operation, initialized, claims),
        }
    }

    /// Enters accesses of all lanes of a warp, each behind the one before it, from `place` on; `word` is the first lane's moment.
    pub(super) fn touch_side_by_side(
        &self,
        place: u64,
        width: u64,
        operation: Operation,
        word: GlobalWord,
        claims: &mut u64,
    ) -> bool {
        let (count, mut suspicious) = cells(width, self.shift);
        let first = (place >> self.shift) as usize;
        let last = ((place + 31 * width) >> self.shift) as usize + count - 1;
        for page in first / CELLS..=last / CELLS {
            self.pages.reach(page, |number| self.blank(number));
        }
        let initialized = self.initialized || operation == Operation::Store;
        let mut claimed = 0;
        for lane in 0..32 {
            let now = word.of_lane(lane);
            for cell in &self.cells()[((place + lane as u64 * width) >> self.shift) as usize..][..count] {
                let touched = cell.touch(operation, now, initialized);
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
        operation: Operation,
        initialized: bool,
        claims: &mut u64,
    ) -> bool {
        let (cells, mut suspicious) = cells(width, self.shift);
        let mut claimed = 0;
        for &(place, now) in row.lanes() {
            for cell in &self.cells()[(place >> self.shift) as usize..][..cells] {
                let touched = cell.touch(operation, now, initialized);
                claimed += u64::from(touched.claimed);
                suspicious |= touched.suspicious;
            }
        }
        *claims += claimed;
        suspicious
    }

    /// Sees to it that the pages of a row are blank, or have been.
    #[inline(always)]
    fn reach(&self, row: &Row<GlobalWord>) {
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
struct GlobalCell(AtomicU64);

/// A moment, in the places that it has in a [`GlobalCell`].
#[derive(Clone, Copy, Default)]
pub(super) struct GlobalWord(u64);

const KINDS: u32 = 3;
const THREAD: u32 = 2 * KINDS;
const INTERVAL: u32 = THREAD + THREAD_BITS;
const TURN: u32 = 32;

/// In a turn's place: several blocks.
const BLOCKS: u64 = (u32::MAX as u64) << TURN;

/// Stores and atomics.
const WRITES: u64 = 1 << Operation::Store as u64 | 1 << Operation::Atomic as u64;

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
    /// A cell that nobody has touched is claimed by a plain store. If another worker claims it at the same time, one does
    /// not see the other: but then both have counted it.
    #[inline(always)]
    fn touch(&self, operation: Operation, now: GlobalWord, initialized: bool) -> Touched {
        let before = self.0.load(Relaxed);
        if before == 0 && initialized {
            self.0.store(now.0 | 1 << operation as u64, Relaxed);
            return Touched { claimed: true, suspicious: false };
        }
        let after = before | 1 << operation as u64;
        let is_own = (before ^ now.0) >> THREAD == 0;
        if initialized
            && is_own
            && (before == after || self.0.compare_exchange(before, after, Relaxed, Relaxed).is_ok())
        {
            return Touched { claimed: false, suspicious: false };
        }
        self.touch_again(operation, now, initialized)
    }

    /// The same if somebody else may have touched it.
    #[inline(never)]
    fn touch_again(&self, operation: Operation, now: GlobalWord, initialized: bool) -> Touched {
        let mut before = self.0.load(Relaxed);
        loop {
            let (after, races) = enter(before, operation, now);
            let uninitialized =
                !initialized && operation != Operation::Store && (before | before >> KINDS) & WRITES == 0;
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
struct Touched {
    /// Whether nobody had touched the cell before.
    claimed: bool,
    suspicious: bool,
}

/// What a cell holds after an access, and whether the access may race with one before it.
#[inline(always)]
fn enter(before: u64, operation: Operation, GlobalWord(now): GlobalWord) -> (u64, bool) {
    let kind = 1 << operation as u64;
    if before == 0 {
        return (now | kind, false);
    }
    let (recent, all) = (before & ((1 << KINDS) - 1), (before | before >> KINDS) & ((1 << KINDS) - 1));
    let conflict = |kinds: u64| match operation {
        Operation::Load => kinds & WRITES != 0,
        Operation::Store => kinds != 0,
        Operation::Atomic => kinds & !(1 << Operation::Atomic as u64) != 0,
    };
    let difference = before ^ now;
    if difference >> TURN != 0 {
        (BLOCKS | all | kind, conflict(all))
    } else if difference >> INTERVAL != 0 {
        (now | all << KINDS | kind, false)
    } else if difference >> THREAD != 0 {
        (before | THREADS << THREAD | kind, conflict(recent))
    } else {
        (before | kind, false)
    }
}

/// The cells of a block's shared memory: as wide as the widest access, 16 bytes, until the first narrower one makes them as
/// narrow.
pub(super) struct SharedShadow {
    shift: u32,
    cells: Vec<SharedCell>,
}

impl SharedShadow {
    pub(super) fn new() -> Self {
        Self { shift: 4, cells: Vec::new() }
    }

    /// Enters accesses of `width` bytes; says whether one is suspicious.
    pub(super) fn touch(&mut self, row: &Row<SharedWord>, width: u64, operation: Operation, order: &Order) -> bool {
        let end = row.lanes().iter().fold(0, |end, (place, _)| end.max(*place)) + width;
        if width < 1 << self.shift || end > (self.cells.len() as u64) << self.shift {
            self.make_room(end, width);
        }
        match operation {
            Operation::Load => self.touch_cells(row, width, Operation::Load, order),
            Operation::Store | Operation::Atomic => self.touch_cells(row, width, operation, order),
        }
    }

    #[inline(always)]
    fn touch_cells(&mut self, row: &Row<SharedWord>, width: u64, operation: Operation, order: &Order) -> bool {
        let (cells, mut suspicious) = cells(width, self.shift);
        let [begin, last] = [order.first_interval(), order.interval()].map(SharedWord::first);
        for cell in 0..cells {
            for &(place, now) in row.lanes() {
                let cell = &mut self.cells[(place >> self.shift) as usize + cell];
                suspicious |= !cell.touch_plainly(operation, now, begin, last) && cell.touch(operation, now, order);
            }
        }
        suspicious
    }

    /// Enters accesses of all lanes of a warp, each behind the one before it, from `place` on.
    pub(super) fn touch_side_by_side(
        &mut self,
        place: u64,
        width: u64,
        operation: Operation,
        words: &[SharedWord; 32],
        order: &Order,
    ) -> bool {
        let end = place + 32 * width;
        if width < 1 << self.shift || end > (self.cells.len() as u64) << self.shift {
            self.make_room(end, width);
        }
        let [begin, last] = [order.first_interval(), order.interval()].map(SharedWord::first);
        let count = (width >> self.shift) as usize;
        let cells = &mut self.cells[(place >> self.shift) as usize..][..32 * count];
        let mut suspicious = false;
        for (cells, now) in cells.chunks_exact_mut(count).zip(words) {
            for cell in cells {
                suspicious |= !cell.touch_plainly(operation, *now, begin, last) && cell.touch(operation, *now, order);
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
        let Some(cells) = self.cells.get_mut(first..first + count).filter(|_| !is_part) else { return false };
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
            self.shift = width.trailing_zeros();
        }
        self.cells.resize(self.cells.len().max((end >> self.shift) as usize), SharedCell::default());
    }
}

/// Who touched a cell of shared memory last, by reading and by writing.
#[derive(Clone, Copy, Default)]
struct SharedCell {
    load: SharedWord,
    store: SharedWord,
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
    fn touch_plainly(&mut self, operation: Operation, now: SharedWord, begin: SharedWord, last: SharedWord) -> bool {
        let Self { load, store } = *self;
        // A store between two accesses of a thread at the same moment, or while several warps load, was suspicious itself.
        if operation != Operation::Load {
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
    fn touch(&mut self, operation: Operation, now: SharedWord, order: &Order) -> bool {
        let Self { load, store } = *self;
        if operation == Operation::Load {
            self.load = load.join(now, order);
            store.may_race(now, order) || store.interval() < order.first_interval()
        } else {
            self.store = now;
            store.may_race(now, order) || load.may_race(now, order)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu::suite::noise;

    const THREADS: usize = 64;

    /// Numbers below others, one after another.
    fn random(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut drawn = 1000 * seed;
        move |below| {
            drawn += 1;
            noise(drawn) as u64 % below
        }
    }

    /// Has threads meet, or pass a barrier, now and then.
    fn go_on(order: &mut Order, random: &mut impl FnMut(u64) -> u64) {
        match random(20) {
            0 => order.pass_barrier(),
            1 => order.meet(32 * random(2) as usize, [u32::MAX, 0xFF, 0xF0F0][random(3) as usize]),
            _ => {}
        }
    }

    /// An access to 64 bytes: offset, width and operation.
    fn access(least: u64, random: &mut impl FnMut(u64) -> u64) -> (u64, u64, Operation) {
        let width = least << random(3);
        let operation = [Operation::Load, Operation::Load, Operation::Store][random(3) as usize];
        (width * random(64 / width), width, operation)
    }

    /// What one thread does.
    fn row<W: Copy + Default>(place: u64, word: W) -> Row<W> {
        let mut row = Row::new();
        row.push(place, word);
        row
    }

    #[test]
    fn entered_plainly_or_not_and_in_cells_or_bytes_the_same_accesses_to_shared_memory_are_suspicious() {
        let (mut plain, mut suspicious) = (0, 0);
        for seed in 0..500 {
            let (mut order, mut random) = (Order::new(THREADS), random(seed));
            order.begin(0);
            let (mut shadow, mut bytes) = (SharedShadow::new(), [SharedCell::default(); 64]);
            for step in 0..40 {
                go_on(&mut order, &mut random);
                // Narrow accesses make narrow cells, which stay.
                let least = if step < 10 || seed % 2 == 0 { 4 } else { 1 };
                let ((offset, width, operation), thread) =
                    (access(least, &mut random), random(THREADS as u64) as usize);
                let now = SharedWord::new(order.now(thread));
                let found = shadow.touch(&row(offset, now), width, operation, &order);
                let touched = bytes[offset as usize..][..width as usize].iter_mut();
                let expected = touched.fold(false, |found, byte| byte.touch(operation, now, &order) | found);
                assert_eq!(found, expected, "seed {seed}");
                if found {
                    // What comes behind one that was suspicious may be so or not, up to the next barrier.
                    order.pass_barrier();
                }
                plain += u32::from(!found);
                suspicious += u32::from(found);
            }
        }
        assert!(plain > 500 && suspicious > 500, "{plain} plain, {suspicious} suspicious");
    }

    #[test]
    fn loads_of_one_word_are_entered_together_as_one_by_one() {
        let (mut together, mut one_by_one) = (0, 0);
        for seed in 0..500 {
            let (mut order, mut random) = (Order::new(THREADS), random(seed));
            order.begin(0);
            let mut shadow = SharedShadow::new();
            for _ in 0..40 {
                go_on(&mut order, &mut random);
                let (offset, width, operation) = access(4, &mut random);
                let first = 32 * random(2) as usize;
                let words: Vec<_> = (first..first + 32).map(|thread| SharedWord::new(order.now(thread))).collect();
                if operation != Operation::Load || !words.iter().all(|word| words[0].is_alike(*word)) {
                    let now = words[random(32) as usize];
                    shadow.touch(&row(offset, now), width, operation, &order);
                    continue;
                }
                let mut other = SharedShadow { shift: shadow.shift, cells: shadow.cells.clone() };
                if !shadow.touch_together(offset, width, words[0], &order) {
                    one_by_one += 1;
                    continue;
                }
                let mut all = Row::new();
                words.iter().for_each(|word| all.push(offset, *word));
                assert!(!other.touch(&all, width, Operation::Load, &order), "seed {seed}");
                let cells =
                    |shadow: &SharedShadow| shadow.cells.iter().map(|cell| (cell.load, cell.store)).collect::<Vec<_>>();
                assert!(cells(&shadow) == cells(&other), "seed {seed}");
                together += 1;
            }
        }
        assert!(together > 500 && one_by_one > 500, "{together} together, {one_by_one} one by one");
    }

    #[test]
    fn accesses_side_by_side_are_entered_as_one_by_one() {
        let mut counted = [0; 2];
        for seed in 0..300 {
            let (mut order, mut random) = (Order::new(THREADS), random(seed));
            let buffer = match seed % 2 {
                0 => Buffer::input("buffer", 256, noise),
                _ => Buffer::output("buffer", 256, noise),
            };
            let buffer = buffer.expect("a small buffer");
            let [beside, alone] = [0; 2].map(|_| Shadow::new(&buffer).expect("its shadow"));
            let (mut shared_beside, mut shared_alone) = (SharedShadow::new(), SharedShadow::new());
            let mut claims = [0; 2];
            for step in 0..20 {
                go_on(&mut order, &mut random);
                if step % 7 == 0 {
                    order.begin(random(3));
                }
                let (_, width, operation) = access(2, &mut random);
                let (place, first) = (width * random(1024 / width - 32 + 1), 32 * random(2) as usize);
                let word = GlobalWord::new(order.now(first));
                let (mut global, mut shared) = (Row::new(), Row::new());
                let words = std::array::from_fn(|lane| SharedWord::new(order.now(first + lane)));
                for (lane, now) in words.iter().enumerate() {
                    global.push(place + lane as u64 * width, word.of_lane(lane));
                    shared.push(place + lane as u64 * width, *now);
                }
                let found = beside.touch_side_by_side(place, width, operation, word, &mut claims[0]);
                assert_eq!(found, alone.touch(&global, width, operation, &mut claims[1]), "seed {seed}");
                counted[usize::from(found)] += 1;
                let found = shared_beside.touch_side_by_side(place, width, operation, &words, &order);
                assert_eq!(found, shared_alone.touch(&shared, width, operation, &order), "seed {seed}");
            }
            assert_eq!(claims[0], claims[1]);
            let cells = |shadow: &Shadow| shadow.cells().iter().map(|cell| cell.0.load(Relaxed)).collect::<Vec<_>>();
            assert!(cells(&beside) == cells(&alone), "seed {seed}");
        }
        assert!(counted[0] > 300 && counted[1] > 300, "{counted:?}");
    }

    #[test]
    fn a_cell_that_two_claim_without_seeing_one_another_is_counted_twice() {
        let shadow = Shadow::new(&Buffer::output("buffer", 32, noise).expect("a small buffer")).expect("its shadow");
        let now = GlobalWord::new(Order::new(THREADS).now(0));
        let mut warp = Row::new();
        (0..32).for_each(|lane| warp.push(4 * lane, now.of_lane(lane as usize)));
        let mut claims = 0;
        assert!(!shadow.touch(&warp, 4, Operation::Store, &mut claims));
        assert_eq!((claims, shadow.touched()), (32, 32), "every lane claims its own");
        // What another worker saw there before.
        shadow.cells()[7].0.store(0, Relaxed);
        assert!(!shadow.touch(&warp, 4, Operation::Store, &mut claims));
        assert_eq!((claims, shadow.touched()), (33, 32), "the others are taken");
    }

    #[test]
    fn entered_plainly_or_not_the_same_accesses_to_global_memory_are_suspicious() {
        let (mut plain, mut suspicious) = (0, 0);
        for seed in 0..500 {
            let (mut order, mut random) = (Order::new(THREADS), random(seed));
            let buffer = match seed % 2 {
                0 => Buffer::input("buffer", 16, noise),
                _ => Buffer::output("buffer", 16, noise),
            };
            let buffer = buffer.expect("a small buffer");
            let [short, long] = [0; 2].map(|_| Shadow::new(&buffer).expect("its shadow"));
            let mut claims = [0; 2];
            for step in 0..40 {
                go_on(&mut order, &mut random);
                if step % 10 == 0 {
                    order.begin(random(3));
                }
                let ((offset, width, operation), thread) = (access(2, &mut random), random(THREADS as u64) as usize);
                let now = GlobalWord::new(order.now(thread));
                let found = short.touch(&row(offset, now), width, operation, &mut claims[0]);
                long.reach(&row(offset, now));
                let (cells, mut expected) = cells(width, long.shift);
                for cell in &long.cells()[(offset >> long.shift) as usize..][..cells] {
                    let touched = cell.touch_again(operation, now, long.initialized);
                    claims[1] += u64::from(touched.claimed);
                    expected |= touched.suspicious;
                }
                assert_eq!(found, expected, "seed {seed}");
                plain += u32::from(!found);
                suspicious += u32::from(found);
            }
            assert_eq!(claims, [short.touched(), long.touched()], "each cell was claimed once");
        }
        assert!(plain > 500 && suspicious > 500, "{plain} plain, {suspicious} suspicious");
    }
}
