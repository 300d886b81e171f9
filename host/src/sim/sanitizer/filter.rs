//! The first look: a word or two for each cell of memory say who touched it. It misses nothing, and may suspect too much:
//! where several threads share a word, in accesses narrower than a cell, and of lanes of a warp that share global memory.

use super::order::{Moment, Order};
use crate::sim::memory::PAGE;
use crate::sim::spare;
use gpu::suite::{Before, Buffer, Operation};
use rayon::prelude::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bits of a thread's number, and of what stands in its place for several.
const THREAD_BITS: u32 = 11;
const THREADS: u64 = (1 << THREAD_BITS) - 1;

/// The cells of a buffer that a kernel may write, one for each element, made page by page.
pub(in crate::sim) struct Shadow {
    /// Bytes of an element, as a power of two.
    shift: u32,
    initialized: bool,
    pages: Box<[OnceLock<Box<[GlobalCell]>>]>,
}

impl Shadow {
    /// Bytes it takes for each element of the buffer.
    pub(super) const BYTES: u64 = size_of::<GlobalCell>() as u64;

    /// Nobody has touched the buffer.
    pub(super) fn new(buffer: &Buffer) -> Self {
        let pages = (0..buffer.bytes().div_ceil(PAGE)).map(|_| OnceLock::new()).collect();
        let initialized = !matches!(buffer.before, Before::Poison);
        Self { shift: buffer.element.size().trailing_zeros(), initialized, pages }
    }

    /// Enters an access of `width` bytes at `offset` by the thread that is at `now`; says whether it is suspicious. Adds to
    /// `claims` how many cells nobody had touched before.
    #[inline(never)]
    pub(super) fn touch(
        &self,
        offset: u64,
        width: u64,
        operation: Operation,
        now: GlobalWord,
        claims: &mut u64,
    ) -> bool {
        let (first, cells) = (((offset % PAGE) >> self.shift) as usize, width >> self.shift);
        // An access narrower than a cell touches it, and is suspicious.
        let mut suspicious = cells == 0;
        for cell in &self.page(offset)[first..first + cells.max(1) as usize] {
            suspicious |= cell.touch(operation, now, self.initialized, claims);
        }
        suspicious
    }

    /// The cells of the page that `offset` lies in.
    fn page(&self, offset: u64) -> &[GlobalCell] {
        let page = &self.pages[(offset / PAGE) as usize];
        page.get_or_init(|| {
            let mut cells = spare::take(PAGE as usize >> self.shift);
            cells.fill(0);
            // SAFETY: a cell is a word.
            unsafe { Box::from_raw(Box::into_raw(cells) as *mut [GlobalCell]) }
        })
    }

    /// How many cells somebody has touched. If workers have claimed more, two have claimed the same one at the same time.
    pub(in crate::sim) fn touched(&self) -> u64 {
        let touched = |page: &OnceLock<Box<[GlobalCell]>>| {
            page.get().map_or(0, |cells| cells.iter().filter(|cell| cell.0.load(Relaxed) != 0).count() as u64)
        };
        self.pages.par_iter().map(touched).sum()
    }

    /// The same, and what they stand for.
    pub(super) fn cells(&self, offset: u64) -> Cells<'_> {
        Cells { cells: self.page(offset), shift: self.shift, initialized: self.initialized }
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        let pages = self.pages.iter_mut().filter_map(OnceLock::take);
        // SAFETY: a cell is a word.
        spare::keep(pages.map(|page| unsafe { Box::from_raw(Box::into_raw(page) as *mut [u64]) }));
    }
}

/// The cells of a page of global memory.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    cells: &'a [GlobalCell],
    shift: u32,
    initialized: bool,
}

impl Cells<'_> {
    /// Those of a page that the kernel only reads.
    pub(super) const NONE: Self = Self { cells: &[], shift: 0, initialized: true };

    /// Has the lanes of a warp, of which the first is at `now`, claim cells of the page that nobody has touched: those of
    /// `width` bytes, the first at `offset` and each `step` bytes behind the one before it. Returns the lanes that cannot, or
    /// not all of theirs. Adds to `claims` how many cells they claim.
    pub(super) fn claim_row(
        &self,
        offset: u64,
        step: i64,
        width: u64,
        operation: Operation,
        GlobalWord(now): GlobalWord,
        claims: &mut u64,
    ) -> u32 {
        let (first, step, each) = (offset >> self.shift, step >> self.shift, (width >> self.shift) as usize);
        if each == 0 || !self.initialized && operation != Operation::Store {
            return u32::MAX;
        }
        let (mut refused, mut claimed) = (0, 0);
        for lane in 0..32u32 {
            let place = first.wrapping_add_signed(step * i64::from(lane)) as usize;
            let word = (now | 1 << operation as u64) + (u64::from(lane) << THREAD);
            let untouched = |cell: &&GlobalCell| cell.0.load(Relaxed) == 0;
            let lane_claims = match self.cells.get(place..place.wrapping_add(each)) {
                Some(cells) => cells.iter().filter(untouched).map(|cell| cell.0.store(word, Relaxed)).count(),
                None => 0,
            };
            claimed += lane_claims as u64;
            refused |= u32::from(lane_claims < each) << lane;
        }
        *claims += claimed;
        refused
    }

    /// Enters an access of `width` bytes at `offset` of the page if it is plainly not suspicious; says whether it is not.
    /// Adds to `claims` how many cells nobody had touched before.
    #[inline(always)]
    pub(super) fn touch_plainly(
        &self,
        offset: u64,
        width: u64,
        operation: Operation,
        now: GlobalWord,
        claims: &mut u64,
    ) -> bool {
        let (first, cells) = ((offset >> self.shift) as usize, (width >> self.shift) as usize);
        match self.cells.get(first..first + cells) {
            Some(cells) if !cells.is_empty() => {
                cells.iter().all(|cell| cell.touch_plainly(operation, now, self.initialized, claims))
            }
            _ => self.cells.is_empty(),
        }
    }
}

/// Who touched an element of a buffer: the turn of the block (from 1; a word of 0 stands for nobody), the low bits of the
/// interval between barriers, the thread, what was done up to the last barrier, and what since.
#[repr(transparent)]
struct GlobalCell(AtomicU64);

/// A moment, in the places that it has in a [`GlobalCell`].
#[derive(Clone, Copy)]
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
    /// Enters an access if nobody but the same thread has touched the cell since the last barrier, as mostly nobody has, and
    /// what it loads is written; says whether it did.
    ///
    /// A cell that nobody has touched is claimed by a plain store. If another worker claims it at the same time, one does
    /// not see the other: but then both have counted it.
    #[inline(always)]
    fn touch_plainly(
        &self,
        operation: Operation,
        GlobalWord(now): GlobalWord,
        initialized: bool,
        claims: &mut u64,
    ) -> bool {
        let before = self.0.load(Relaxed);
        if before == 0 && (initialized || operation == Operation::Store) {
            self.0.store(now | 1 << operation as u64, Relaxed);
            *claims += 1;
            return true;
        }
        let written = initialized || operation == Operation::Store || (before | before >> KINDS) & WRITES != 0;
        if !written || (before ^ now) >> THREAD != 0 {
            return false;
        }
        let after = before | now | 1 << operation as u64;
        before == after || self.0.compare_exchange(before, after, Relaxed, Relaxed).is_ok()
    }

    /// Enters an access; says whether it may be one end of a race or, unless the memory is `initialized`, a load of what
    /// nobody wrote.
    #[inline(always)]
    fn touch(&self, operation: Operation, now: GlobalWord, initialized: bool, claims: &mut u64) -> bool {
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
            *claims += u64::from(before == 0);
            return races || uninitialized;
        }
    }
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

/// The cells of a block's shared memory: words, until the first narrower access makes them as narrow.
pub(super) struct SharedShadow {
    shift: u32,
    cells: Vec<SharedCell>,
}

impl SharedShadow {
    pub(super) fn new() -> Self {
        Self { shift: 2, cells: Vec::new() }
    }

    /// Enters an access of `width` bytes at `offset` if it is plainly not suspicious; says whether it is not. If it may be,
    /// some cells may know of it already, which makes no difference to [`SharedShadow::touch`].
    #[inline(always)]
    pub(super) fn touch_plainly(
        &mut self,
        offset: u64,
        width: u64,
        operation: Operation,
        now: SharedWord,
        order: &Order,
    ) -> bool {
        let (first, n) = ((offset >> self.shift) as usize, (width >> self.shift) as usize);
        let Some(cells) = self.cells.get_mut(first..first + n) else { return false };
        for cell in &mut *cells {
            if !cell.touch_plainly(operation, now, order) {
                return false;
            }
        }
        !cells.is_empty()
    }

    /// Enters an access of `width` bytes at `offset` by the thread that is at `now`; says whether it is suspicious.
    #[inline(never)]
    pub(super) fn touch(
        &mut self,
        offset: u64,
        width: u64,
        operation: Operation,
        now: SharedWord,
        order: &Order,
    ) -> bool {
        let mut end = (offset + width) >> self.shift;
        if width < 1 << self.shift || end as usize > self.cells.len() {
            self.make_room(offset, width);
            end = (offset + width) >> self.shift;
        }
        let cells = &mut self.cells[(offset >> self.shift) as usize..end as usize];
        cells.iter_mut().fold(false, |suspicious, cell| cell.touch(operation, now, order) | suspicious)
    }

    #[cold]
    fn make_room(&mut self, offset: u64, width: u64) {
        if width < 1 << self.shift {
            let parts = (1 << self.shift) / width as usize;
            self.cells = self.cells.iter().flat_map(|cell| std::iter::repeat_n(*cell, parts)).collect();
            self.shift = width.trailing_zeros();
        }
        let end = ((offset + width) >> self.shift) as usize;
        self.cells.resize(self.cells.len().max(end), SharedCell::default());
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
    /// Enters an access if nobody but the same thread has touched the cell since the last barrier, or others have only loaded
    /// what it loads and its warp is known to be among them; and if what it loads is written. Says whether it did.
    #[inline(always)]
    fn touch_plainly(&mut self, operation: Operation, now: SharedWord, order: &Order) -> bool {
        let Self { load, store } = *self;
        if operation != Operation::Load {
            if load.is_of_another(now) || store.is_of_another(now) {
                return false;
            }
            self.store = now;
            return true;
        }
        if store.is_of_another(now) || store.interval() < order.first_interval() {
            return false;
        }
        if !load.is_of_another(now) {
            self.load = now;
            return true;
        }
        load == now.of_warp() || load.thread() == WARPS
    }

    /// Enters an access; says whether it may be one end of a race, or a load of what nobody wrote.
    #[inline(always)]
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

    #[test]
    fn entered_plainly_or_not_the_same_accesses_to_shared_memory_are_suspicious() {
        let (mut plain, mut suspicious) = (0, 0);
        for seed in 0..500 {
            let (mut order, mut random) = (Order::new(THREADS), random(seed));
            order.begin(0);
            let (mut short, mut long) = (SharedShadow::new(), SharedShadow::new());
            for step in 0..40 {
                go_on(&mut order, &mut random);
                // Narrow accesses make narrow cells, which stay.
                let least = if step < 10 || seed % 2 == 0 { 4 } else { 1 };
                let ((offset, width, operation), thread) =
                    (access(least, &mut random), random(THREADS as u64) as usize);
                let now = SharedWord::new(order.now(thread));
                let entered = short.touch_plainly(offset, width, operation, now, &order);
                let found = !entered && short.touch(offset, width, operation, now, &order);
                assert_eq!(found, long.touch(offset, width, operation, now, &order), "seed {seed}");
                plain += u32::from(entered);
                suspicious += u32::from(found);
            }
        }
        assert!(plain > 500 && suspicious > 500, "{plain} plain, {suspicious} suspicious");
    }

    #[test]
    fn a_cell_that_two_claim_without_seeing_one_another_is_counted_twice() {
        let shadow = Shadow::new(&Buffer::output("buffer", 32, noise).expect("a small buffer"));
        let now = GlobalWord::new(Order::new(THREADS).now(0));
        let mut claims = 0;
        let mut claim = || shadow.cells(0).claim_row(0, 4, 4, Operation::Store, now, &mut claims);
        assert_eq!(claim(), 0, "every lane claims its own");
        // What another worker saw there before.
        shadow.cells(0).cells[7].0.store(0, Relaxed);
        assert_eq!(claim(), !(1 << 7), "the others are taken");
        assert_eq!((claims, shadow.touched()), (33, 32));
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
            let (short, long) = (Shadow::new(&buffer), Shadow::new(&buffer));
            let mut claims = [0; 2];
            for step in 0..40 {
                go_on(&mut order, &mut random);
                if step % 10 == 0 {
                    order.begin(random(3));
                }
                let ((offset, width, operation), thread) = (access(2, &mut random), random(THREADS as u64) as usize);
                let now = GlobalWord::new(order.now(thread));
                let entered = short.cells(offset).touch_plainly(offset, width, operation, now, &mut claims[0]);
                let found = !entered && short.touch(offset, width, operation, now, &mut claims[0]);
                assert_eq!(found, long.touch(offset, width, operation, now, &mut claims[1]), "seed {seed}");
                plain += u32::from(entered);
                suspicious += u32::from(found);
            }
            assert_eq!(claims, [short.touched(), long.touched()], "each cell was claimed once");
        }
        assert!(plain > 500 && suspicious > 500, "{plain} plain, {suspicious} suspicious");
    }
}
