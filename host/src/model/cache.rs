//! The L2: a cache of 128-byte lines whose four sectors come and go one by one.

use crate::sim::coalesce::LINE;

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

/// A set-associative cache. The line of a set that was touched longest ago goes for another.
#[derive(Debug)]
pub(super) struct Cache {
    /// Of so many blocks of neighbouring lines one is its own; none has lines in one part.
    partitions: u64,
    /// Lines, of those whose neighbours follow them, that no two of go to the same set.
    turn: u64,
    /// The lines of each set, 0 being none, the one touched last first.
    tags: Vec<[u32; WAYS]>,
    /// Where each of them stands in `lines`.
    places: Vec<[u8; WAYS]>,
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
        let sets = (bytes / LINE / WAYS as u64).max(1) as usize;
        let (tags, places) = (vec![[0; WAYS]; sets], vec![std::array::from_fn(|way| way as u8); sets]);
        let turn = (sets as f64 * OF_A_TURN).ceil() as u64;
        Self { partitions, turn, tags, places, lines: vec![Line::default(); sets * WAYS] }
    }

    /// The set that a line goes to. Blocks of neighbours, but for those of other partitions, go one after another to as many sets, in a turn
    /// to nearly all there are; where the first of a turn goes, and which line of a block goes to which of its sets, is as if at random.
    fn set(&self, number: u64) -> usize {
        let sets = self.tags.len() as u64;
        let (block, line) = (number / (self.partitions * NEIGHBOURS), number % NEIGHBOURS);
        let number = block * NEIGHBOURS + (line ^ (mixed(!block) % NEIGHBOURS));
        let (turn, place) = (number / self.turn, number % self.turn);
        let begin = (u128::from(mixed(turn)) * u128::from(sets)) >> 64;
        let set = place + begin as u64;
        (if set < sets { set } else { set - sets }) as usize
    }

    /// The line, if it is here. That does not count as a touch.
    pub(super) fn peek(&mut self, number: u64) -> Option<&mut Line> {
        let set = self.set(number);
        let way = self.tags[set].iter().position(|other| *other == tag(number))?;
        Some(&mut self.lines[set * WAYS + usize::from(self.places[set][way])])
    }

    /// The number of the line touched longest ago among those of the set of `number` that are `such`, if these are more than
    /// `most`.
    pub(super) fn beyond(&self, number: u64, most: usize, such: impl Fn(&Line) -> bool) -> Option<u64> {
        let set = self.set(number);
        let ways = (0..WAYS).filter(|way| self.tags[set][*way] != 0);
        let lines = ways.map(|way| &self.lines[set * WAYS + usize::from(self.places[set][way])]);
        let mut such = lines.filter(|line| such(line));
        such.nth(most).map(|beyond| such.last().unwrap_or(beyond).number)
    }

    /// Has a line that is here be one of the so many and one of its set touched last.
    pub(super) fn make_younger(&mut self, number: u64, than: usize) {
        let set = self.set(number);
        let (tags, places) = (&mut self.tags[set], &mut self.places[set]);
        if let Some(way) = tags.iter().position(|other| *other == tag(number)).filter(|way| *way > than) {
            tags[than..=way].rotate_right(1);
            places[than..=way].rotate_right(1);
        }
    }

    /// The line; if it was not here, an empty one, and what had to go for it.
    pub(super) fn touch(&mut self, number: u64) -> (&mut Line, Option<Line>) {
        let set = self.set(number);
        let (tags, places) = (&mut self.tags[set], &mut self.places[set]);
        let known = tags.iter().position(|other| *other == tag(number));
        // What holds nothing is last.
        let way = known.unwrap_or(WAYS - 1);
        let (old, place) = (tags[way], places[way]);
        tags.copy_within(..way, 1);
        places.copy_within(..way, 1);
        (tags[0], places[0]) = (tag(number), place);
        let line = &mut self.lines[set * WAYS + usize::from(place)];
        let gone = known.is_none().then(|| std::mem::replace(line, Line { number, ..Line::default() }));
        (line, gone.filter(|_| old != 0))
    }
}

/// A line's number in 32 bits, never 0. A buffer has 2^33 lines at most: its number is folded into the upper bits.
fn tag(number: u64) -> u32 {
    (number as u32 ^ ((number >> 33) as u32).wrapping_mul(0x9E37_79B1)).wrapping_add(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_touched_longest_ago_goes() {
        let mut cache = Cache::new(LINE * WAYS as u64, 1);
        for number in 0..WAYS as u64 {
            let (line, gone) = cache.touch(number);
            assert!(gone.is_none() && line.valid == 0);
            line.valid = number as u8;
        }
        assert_eq!(cache.touch(0).0.valid, 0, "still here, and now the youngest");
        assert_eq!(cache.touch(99).1.expect("the set is full").valid, 1);
        assert!(cache.peek(1).is_none() && cache.peek(0).is_some() && cache.peek(99).is_some());
    }

    #[test]
    fn a_line_made_younger_goes_after_those_that_are_older_then() {
        let mut cache = Cache::new(LINE * WAYS as u64, 1);
        (0..WAYS as u64).for_each(|number| _ = cache.touch(number));
        cache.make_younger(0, 10);
        cache.make_younger(15, 10);
        let gone = (16..22).map(|number| cache.touch(number).1.expect("there is no room").number);
        assert_eq!(gone.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 0]);
    }

    #[test]
    fn of_too_many_lines_the_one_touched_longest_ago_is_named() {
        let mut cache = Cache::new(LINE * WAYS as u64, 1);
        for number in 1..=6 {
            cache.touch(number).0.dirty = (number % 2) as u8;
        }
        cache.touch(1);
        let dirty = |line: &Line| line.dirty != 0;
        assert_eq!([1, 2, 3].map(|most| cache.beyond(9, most, dirty)), [Some(3), Some(3), None]);
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
