//! The L2: a cache of 128-byte lines whose four sectors come and go one by one.

use engine::coalesce::LINE;
use std::ops::{Deref, DerefMut};

/// Lines that lie together.
pub(super) const NEIGHBOURS: u64 = 32;

/// Ways of a set.
const WAYS: usize = 16;

/// The share of the sets that lines one after another go to before any has two of them, fitted to `in_step`: as many lines as there is
/// just room for do not quite have it.
const OF_A_TURN: f64 = 0.97;

/// What a cache knows of a line that it holds. Sets of sectors are bits, the lowest sector's first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    /// Its address, divided by its size.
    pub(super) number: u64,
    /// When the last of its sectors that are on their way arrives.
    pub(super) ready: f64,
    /// When the last addition to it is done.
    pub(super) added: f64,
    /// The sectors all of whose bytes are here.
    pub(super) valid: u8,
    /// The sectors that memory does not have yet.
    pub(super) dirty: u8,
    /// Whether the memory has begun to write to its page.
    pub(super) page_begun: bool,
    /// When it was stored to last, in units of so many cycles.
    stored_at: u16,
    /// Bytes written of each sector.
    pub(super) written: [u8; 4],
}

/// Cycles of a unit of the time of stores, and units within which two are together.
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

    /// Whether sectors were written of which some bytes are not here.
    pub(super) fn is_known_in_part(&self) -> bool {
        self.dirty & !self.valid != 0
    }
}

/// The lines of a set, in one piece with what is asked of them most: replaying a launch mostly waits for the memory of the machine that
/// replays it.
#[derive(Clone, Debug)]
#[repr(align(128))]
struct Set {
    /// The tag of each line, 0 being none, the one touched last first.
    tags: [u32; WAYS],
    /// Where each of them stands among the lines of the set.
    places: [u8; WAYS],
    /// The places of lines that are dirty, and of those known in part, as bits.
    dirty: u16,
    known_in_part: u16,
}

impl Set {
    fn way(&self, number: u64) -> Option<usize> {
        let tag = tag(number);
        let ways = (0..WAYS).fold(0, |ways, way| ways | u32::from(self.tags[way] == tag) << way);
        (ways != 0).then(|| ways.trailing_zeros() as usize)
    }
}

/// A line that is here. What its set keeps of it is brought up to date once it is let go.
pub(super) struct Held<'a> {
    set: &'a mut Set,
    line: &'a mut Line,
    place: u8,
}

impl Deref for Held<'_> {
    type Target = Line;

    fn deref(&self) -> &Line {
        self.line
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Line {
        self.line
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let put = |places: u16, is: bool| places & !(1 << self.place) | u16::from(is) << self.place;
        self.set.dirty = put(self.set.dirty, self.line.dirty != 0);
        self.set.known_in_part = put(self.set.known_in_part, self.line.is_known_in_part());
    }
}

/// Lines of a set.
#[derive(Clone, Copy, Debug)]
pub(super) enum Such {
    Dirty,
    KnownInPart,
}

/// A set-associative cache. The line of a set that was touched longest ago goes for another.
#[derive(Debug)]
pub(super) struct Cache {
    /// Of so many blocks of neighbouring lines one is its own; none has lines in one part.
    partitions: u64,
    /// Lines, of those whose neighbours follow them, that no two of go to the same set.
    turn: u64,
    sets: Vec<Set>,
    lines: Vec<Line>,
}

/// An odd number with its bits all over: the golden ratio in 64 bits.
pub(super) const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A number whose bits say nothing of those of the next one.
pub(super) fn mixed(number: u64) -> u64 {
    let spread = |number: u64, shift: u32| (number ^ number >> shift).wrapping_mul(SPREAD);
    spread(spread(number.wrapping_mul(SPREAD), 32), 29)
}

/// A share, neither nothing nor all, that says nothing of that of the next number.
pub(super) fn share(number: u64) -> f64 {
    ((mixed(number) >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

impl Cache {
    /// An empty part of an L2, of so many bytes, one of so many.
    pub(super) fn new(bytes: u64, partitions: u64) -> Self {
        let count = (bytes / LINE / WAYS as u64).max(1) as usize;
        let places = std::array::from_fn(|way| way as u8);
        let set = Set { tags: [0; WAYS], places, dirty: 0, known_in_part: 0 };
        let turn = (count as f64 * OF_A_TURN).ceil() as u64;
        Self { partitions, turn, sets: vec![set; count], lines: vec![Line::default(); count * WAYS] }
    }

    /// The set that a line goes to. Blocks of neighbours, but for those of other partitions, go one after another to as many sets, in a turn
    /// to nearly all there are; where the first of a turn goes, and which line of a block goes to which of its sets, is as if at random.
    fn set(&self, number: u64) -> usize {
        let sets = self.sets.len() as u64;
        let (block, line) = (number / (self.partitions * NEIGHBOURS), number % NEIGHBOURS);
        let number = block * NEIGHBOURS + (line ^ (mixed(!block) % NEIGHBOURS));
        let (turn, place) = (number / self.turn, number % self.turn);
        let begin = (u128::from(mixed(turn)) * u128::from(sets)) >> 64;
        let set = place + begin as u64;
        (if set < sets { set } else { set - sets }) as usize
    }

    /// What is looked at first of a line: of lines that are about to be touched, so that the machine that replays this waits for the memory
    /// of all their sets at a time.
    pub(super) fn glance(&self, number: u64) -> u32 {
        let set = &self.sets[self.set(number)];
        set.tags[0] ^ u32::from(set.dirty)
    }

    /// The line, if it is here. That does not count as a touch.
    pub(super) fn peek(&mut self, number: u64) -> Option<Held<'_>> {
        let place_of_set = self.set(number);
        let set = &mut self.sets[place_of_set];
        let place = set.places[set.way(number)?];
        Some(Held { set, line: &mut self.lines[place_of_set * WAYS + usize::from(place)], place })
    }

    /// The number of the line touched longest ago among those of the set of `number` that are `such`, if these are more than
    /// `most`.
    pub(super) fn beyond(&self, number: u64, most: usize, such: Such) -> Option<u64> {
        let place_of_set = self.set(number);
        let set = &self.sets[place_of_set];
        let such = match such {
            Such::Dirty => set.dirty,
            Such::KnownInPart => set.known_in_part,
        };
        if such.count_ones() as usize <= most {
            return None;
        }
        let oldest = set.places.iter().rev().find(|place| such >> **place & 1 == 1)?;
        Some(self.lines[place_of_set * WAYS + usize::from(*oldest)].number)
    }

    /// Has a line that is here be one of the so many and one of its set touched last.
    pub(super) fn make_younger(&mut self, number: u64, than: usize) {
        let set = self.set(number);
        let set = &mut self.sets[set];
        if let Some(way) = set.way(number).filter(|way| *way > than) {
            set.tags[than..=way].rotate_right(1);
            set.places[than..=way].rotate_right(1);
        }
    }

    /// The line, and whether it was here; if it was not, an empty one, and what had to go for it.
    pub(super) fn touch(&mut self, number: u64) -> (Held<'_>, bool, Option<Line>) {
        let place_of_set = self.set(number);
        let set = &mut self.sets[place_of_set];
        let known = set.way(number);
        // What holds nothing is last.
        let way = known.unwrap_or(WAYS - 1);
        let (old, place) = (set.tags[way], set.places[way]);
        set.tags.copy_within(..way, 1);
        set.places.copy_within(..way, 1);
        (set.tags[0], set.places[0]) = (tag(number), place);
        let line = &mut self.lines[place_of_set * WAYS + usize::from(place)];
        let gone = known.is_none().then(|| std::mem::replace(line, Line { number, ..Line::default() }));
        (Held { set, line, place }, known.is_some(), gone.filter(|_| old != 0))
    }
}

/// A line's number in 32 bits, never 0. A buffer has 2^33 lines at most: its number is folded into the upper bits.
pub(super) fn tag(number: u64) -> u32 {
    (number as u32 ^ ((number >> 33) as u32).wrapping_mul(0x9E37_79B1)).wrapping_add(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_touched_longest_ago_goes() {
        let mut cache = Cache::new(LINE * WAYS as u64, 1);
        for number in 0..WAYS as u64 {
            let (mut line, was_here, gone) = cache.touch(number);
            assert!(!was_here && gone.is_none() && line.valid == 0);
            line.valid = number as u8;
        }
        assert_eq!(cache.touch(0).0.valid, 0, "still here, and now the youngest");
        assert_eq!(cache.touch(99).2.expect("the set is full").valid, 1);
        assert!(cache.peek(1).is_none() && cache.peek(0).is_some() && cache.peek(99).is_some());
    }

    #[test]
    fn a_line_made_younger_goes_after_those_that_are_older_then() {
        let mut cache = Cache::new(LINE * WAYS as u64, 1);
        (0..WAYS as u64).for_each(|number| _ = cache.touch(number));
        cache.make_younger(0, 10);
        cache.make_younger(15, 10);
        let gone = (16..22).map(|number| cache.touch(number).2.expect("there is no room").number);
        assert_eq!(gone.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 0]);
    }

    #[test]
    fn of_too_many_lines_the_one_touched_longest_ago_is_named() {
        let mut cache = Cache::new(LINE * WAYS as u64, 1);
        for number in 1..=6 {
            cache.touch(number).0.dirty = (number % 2) as u8;
        }
        cache.touch(1);
        assert_eq!([1, 2, 3].map(|most| cache.beyond(9, most, Such::Dirty)), [Some(3), Some(3), None]);
        assert_eq!([2, 3].map(|most| cache.beyond(9, most, Such::KnownInPart)), [Some(3), None]);
        cache.peek(3).expect("it is here").valid = 1;
        assert_eq!([1, 2].map(|most| cache.beyond(9, most, Such::KnownInPart)), [Some(5), None], "all of it is known");
        // As many as there are ways, and the oldest that is dirty goes.
        let gone = (20..33).filter_map(|number| cache.touch(number).2).map(|line| line.number);
        assert_eq!(gone.collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!([1, 2].map(|most| cache.beyond(9, most, Such::Dirty)), [Some(5), None]);
    }

    #[test]
    fn a_line_of_each_of_many_buffers_and_strides_finds_room() {
        for stride in [1, 32, 1 << 10, 1 << 33] {
            let mut cache = Cache::new(1 << 20, 1);
            let lines = (1 << 20) / LINE / 4;
            for i in 0..lines {
                cache.touch(i * stride);
            }
            let here = (0..lines).filter(|i| cache.peek(i * stride).is_some()).count() as u64;
            assert!(here > lines * 97 / 100, "stride {stride}: {here} of {lines}");
        }
    }
}
