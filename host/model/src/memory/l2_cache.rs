//! A partition of the L2: a set-associative cache of 128-byte lines with four sectors each, replaced least recently used first.
//!
//! Of the sets of a real L2 little is known but how well they spread lines (probe `in_step`), so a hash decides.

use super::super::hash::{mix, tag};
use super::address::PARTITION_LINES;
use engine::coalesce::LINE;
use std::ops::{Deref, DerefMut};

/// Ways of a set at most.
const WAYS: usize = 16;

/// A line that is cached. Sets of sectors are bits, the lowest sector's first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    /// Its address, divided by its size.
    pub(super) number: u64,
    /// When the last of its fills arrives.
    pub(super) ready: f64,
    /// When the last atomic on it is done.
    pub(super) atomics_done: f64,
    /// The sectors all of whose bytes are cached.
    pub(super) valid: u8,
    /// The sectors that DRAM does not have yet.
    pub(super) dirty: u8,
    /// Whether the activate of its row for the write of another line also serves its own.
    pub(super) row_activated: bool,
    /// When it was stored to last, in units of so many cycles.
    stored_at: u16,
    /// Bytes written of each sector.
    pub(super) written: [u8; 4],
}

/// Cycles of a unit of the time of stores, and units within which two lines are stored to together.
const UNIT: f64 = 64.0;
const TOGETHER: u16 = 4;

impl Line {
    /// It is stored to.
    pub(super) fn stored(&mut self, now: f64) {
        self.stored_at = (now / UNIT) as u64 as u16;
    }

    /// Whether another was stored to at about the same time.
    pub(super) fn is_stored_with(&self, other: &Self) -> bool {
        self.stored_at.wrapping_sub(other.stored_at).wrapping_add(TOGETHER) <= 2 * TOGETHER
    }

    /// Whether it has partially written sectors: dirty ones that are not valid.
    pub(super) fn is_partial(&self) -> bool {
        self.dirty & !self.valid != 0
    }
}

/// What is asked of a set's lines most, in one piece: replaying a launch mostly waits for the memory of the machine that does it.
#[derive(Clone, Debug)]
#[repr(align(128))]
struct Set {
    /// The tag of each line, 0 being none, the most recently used first.
    tags: [u32; WAYS],
    /// The way that each of them is in.
    ways: [u8; WAYS],
    /// The ways of dirty lines and of partial ones, as bits.
    dirty: u16,
    partial: u16,
}

impl Set {
    /// How recently used a line is, the most recent being 0.
    fn age(&self, number: u64) -> Option<usize> {
        let tag = tag(number);
        let found = (0..WAYS).fold(0, |found, age| found | u32::from(self.tags[age] == tag) << age);
        (found != 0).then(|| found.trailing_zeros() as usize)
    }
}

/// A cached line, borrowed. Its set is brought up to date when it is dropped.
pub(super) struct LineMut<'a> {
    set: &'a mut Set,
    line: &'a mut Line,
    way: u8,
}

impl Deref for LineMut<'_> {
    type Target = Line;

    fn deref(&self) -> &Line {
        self.line
    }
}

impl DerefMut for LineMut<'_> {
    fn deref_mut(&mut self) -> &mut Line {
        self.line
    }
}

impl Drop for LineMut<'_> {
    fn drop(&mut self) {
        let put = |ways: u16, is: bool| ways & !(1 << self.way) | u16::from(is) << self.way;
        self.set.dirty = put(self.set.dirty, self.line.dirty != 0);
        self.set.partial = put(self.set.partial, self.line.is_partial());
    }
}

/// Lines of a set that are bounded in number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bounded {
    Dirty,
    Partial,
}

/// One partition's cache.
#[derive(Debug)]
pub(super) struct L2Cache {
    partitions: u64,
    /// Ways of a set.
    ways: usize,
    /// Consecutive lines of which no two go to the same set.
    turn: u64,
    sets: Vec<Set>,
    lines: Vec<Line>,
}

impl L2Cache {
    /// An empty one of so many bytes and ways, of one of so many partitions. Consecutive lines fill this share of its sets before any has two
    /// of them.
    pub(super) fn new(bytes: u64, ways: usize, partitions: u64, turn_share: f64) -> Self {
        let count = (bytes / LINE / ways as u64).max(1) as usize;
        let set = Set { tags: [0; WAYS], ways: std::array::from_fn(|way| way as u8), dirty: 0, partial: 0 };
        let turn = (count as f64 * turn_share).ceil() as u64;
        Self { partitions, ways, turn, sets: vec![set; count], lines: vec![Line::default(); count * WAYS] }
    }

    /// The set of a line. The partition's blocks of lines go to consecutive sets, in a turn to nearly all there are; a hash says where a
    /// turn starts, and which line of a block goes to which of its sets.
    fn set(&self, number: u64) -> usize {
        let sets = self.sets.len() as u64;
        let (block, line) = (number / (self.partitions * PARTITION_LINES), number % PARTITION_LINES);
        let number = block * PARTITION_LINES + (line ^ (mix(!block) % PARTITION_LINES));
        let (turn, place) = (number / self.turn, number % self.turn);
        let begin = (u128::from(mix(turn)) * u128::from(sets)) >> 64;
        let set = place + begin as u64;
        (if set < sets { set } else { set - sets }) as usize
    }

    /// Reads what is looked at first of a line that is about to be accessed, so that the machine that replays this waits for the memory of
    /// several lines at a time.
    pub(super) fn prefetch(&self, number: u64) -> u32 {
        let set = &self.sets[self.set(number)];
        set.tags[0] ^ u32::from(set.dirty)
    }

    /// The line, if it is cached. That does not count as a use.
    pub(super) fn peek(&mut self, number: u64) -> Option<LineMut<'_>> {
        let index = self.set(number);
        let set = &mut self.sets[index];
        let way = set.ways[set.age(number)?];
        Some(LineMut { set, line: &mut self.lines[index * WAYS + usize::from(way)], way })
    }

    /// The least recently used among the bounded lines of the set of `number`, if there are more than `most`.
    pub(super) fn beyond(&self, number: u64, most: usize, bounded: Bounded) -> Option<u64> {
        let index = self.set(number);
        let set = &self.sets[index];
        let ways = match bounded {
            Bounded::Dirty => set.dirty,
            Bounded::Partial => set.partial,
        };
        if ways.count_ones() as usize <= most {
            return None;
        }
        let oldest = set.ways.iter().rev().find(|way| ways >> **way & 1 == 1)?;
        Some(self.lines[index * WAYS + usize::from(*oldest)].number)
    }

    /// Uses a line, and says whether it hit; if it missed, an empty one is allocated, and the evicted one returned.
    pub(super) fn access(&mut self, number: u64) -> (LineMut<'_>, bool, Option<Line>) {
        let index = self.set(number);
        let set = &mut self.sets[index];
        let hit = set.age(number);
        // What holds nothing is last.
        let age = hit.unwrap_or(self.ways - 1);
        let (old, way) = (set.tags[age], set.ways[age]);
        set.tags.copy_within(..age, 1);
        set.ways.copy_within(..age, 1);
        (set.tags[0], set.ways[0]) = (tag(number), way);
        let line = &mut self.lines[index * WAYS + usize::from(way)];
        let evicted = hit.is_none().then(|| std::mem::replace(line, Line { number, ..Line::default() }));
        (LineMut { set, line, way }, hit.is_some(), evicted.filter(|_| old != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(bytes: u64) -> L2Cache {
        L2Cache::new(bytes, WAYS, 1, 0.97)
    }

    #[test]
    fn the_least_recently_used_line_is_evicted() {
        let mut cache = cache(LINE * WAYS as u64);
        for number in 0..WAYS as u64 {
            let (mut line, hit, evicted) = cache.access(number);
            assert!(!hit && evicted.is_none() && line.valid == 0);
            line.valid = number as u8;
        }
        assert_eq!(cache.access(0).0.valid, 0, "still cached, and now the most recent");
        assert_eq!(cache.access(99).2.expect("the set is full").valid, 1);
        assert!(cache.peek(1).is_none() && cache.peek(0).is_some() && cache.peek(99).is_some());
    }

    #[test]
    fn of_too_many_bounded_lines_the_least_recently_used_is_named() {
        let mut cache = cache(LINE * WAYS as u64);
        for number in 1..=6 {
            cache.access(number).0.dirty = (number % 2) as u8;
        }
        cache.access(1);
        assert_eq!([1, 2, 3].map(|most| cache.beyond(9, most, Bounded::Dirty)), [Some(3), Some(3), None]);
        assert_eq!([2, 3].map(|most| cache.beyond(9, most, Bounded::Partial)), [Some(3), None]);
        cache.peek(3).expect("it is cached").valid = 1;
        assert_eq!([1, 2].map(|most| cache.beyond(9, most, Bounded::Partial)), [Some(5), None], "all of it is valid");
        // As many as there are ways, and the oldest dirty one is evicted.
        let evicted = (20..33).filter_map(|number| cache.access(number).2).map(|line| line.number);
        assert_eq!(evicted.collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!([1, 2].map(|most| cache.beyond(9, most, Bounded::Dirty)), [Some(5), None]);
    }

    #[test]
    fn lines_of_many_buffers_and_strides_spread_over_the_sets() {
        for stride in [1, 32, 1 << 10, 1 << 33] {
            let mut cache = cache(1 << 20);
            let lines = (1 << 20) / LINE / 4;
            for i in 0..lines {
                cache.access(i * stride);
            }
            let cached = (0..lines).filter(|i| cache.peek(i * stride).is_some()).count() as u64;
            assert!(cached > lines * 97 / 100, "stride {stride}: {cached} of {lines}");
        }
    }
}
