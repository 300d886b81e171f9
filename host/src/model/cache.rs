//! A cache of 128-byte lines whose four sectors come and go one by one.

use crate::sim::coalesce::LINE;

/// Lines that lie together.
pub(super) const NEIGHBOURS: u64 = 32;

/// Ways of a set.
pub(super) const WAYS: usize = 16;

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
    /// Whether it is counted among the dirty lines.
    pub(super) counted: bool,
    /// Bytes written of each sector.
    pub(super) written: [u8; 4],
}

impl Line {
    /// Whether sectors were written of which some bytes are not here.
    pub(super) fn is_known_in_part(&self) -> bool {
        self.dirty & !self.valid != 0
    }
}

/// A set-associative cache. One of the last lines of a set goes for another.
#[derive(Debug)]
pub(super) struct Cache {
    /// Of so many blocks of neighbouring lines one is its own.
    partitions: u64,
    /// Lines of a set that may stay for having been touched again.
    staying: usize,
    /// How many do in each set.
    again: Vec<u8>,
    /// Any one of so many last lines of a set goes for another.
    leaving: u64,
    /// How often one of them was drawn.
    drawn: u64,
    /// The lines of each set, 0 being none: first those that stay, then the others, each the one touched last first.
    tags: Vec<[u32; WAYS]>,
    /// Where each of them stands in `lines`.
    places: Vec<[u8; WAYS]>,
    lines: Vec<Line>,
}

/// An odd number with its bits all over: the golden ratio in 64 bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A number whose bits say nothing of those of the next one.
pub(super) fn mixed(number: u64) -> u64 {
    let spread = |number: u64, shift: u32| (number ^ number >> shift).wrapping_mul(SPREAD);
    spread(spread(number.wrapping_mul(SPREAD), 32), 29)
}

impl Cache {
    /// An empty cache of so many bytes, one of so many partitions. So many lines of each set stay while others come and go, once
    /// they were touched again; for another any one goes of so many touched longest ago.
    pub(super) fn new(bytes: u64, partitions: u64, staying: usize, leaving: u64) -> Self {
        let sets = (bytes / LINE / WAYS as u64).max(1) as usize;
        let (tags, places) = (vec![[0; WAYS]; sets], vec![std::array::from_fn(|way| way as u8); sets]);
        let (again, lines) = (vec![0; sets], vec![Line::default(); sets * WAYS]);
        Self { partitions, staying, again, leaving, drawn: 0, tags, places, lines }
    }

    /// Lines that follow one another, but for those of other partitions, go to one set after another, as many as there are sets;
    /// where the first of them goes is as if at random.
    fn set(&self, number: u64) -> usize {
        let sets = self.tags.len() as u64;
        let number = number / (self.partitions * NEIGHBOURS) * NEIGHBOURS + number % NEIGHBOURS;
        let (turn, place) = (number / sets, number % sets);
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

    /// The line; if it was not here, an empty one, and what had to go for it.
    pub(super) fn touch(&mut self, number: u64) -> (&mut Line, Option<Line>) {
        let set = self.set(number);
        let (tags, places) = (&mut self.tags[set], &mut self.places[set]);
        let known = tags.iter().position(|other| *other == tag(number));
        let again = &mut self.again[set];
        let (way, front) = match known {
            Some(way) => {
                let more = way >= usize::from(*again) && usize::from(*again) < self.staying;
                *again += u8::from(more);
                (way, 0)
            }
            None => {
                self.drawn += 1;
                // What holds nothing is last.
                let before = if tags[WAYS - 1] == 0 { 0 } else { mixed(self.drawn) % self.leaving };
                (WAYS - 1 - before as usize, usize::from(*again))
            }
        };
        let (old, place) = (tags[way], places[way]);
        tags.copy_within(front..way, front + 1);
        places.copy_within(front..way, front + 1);
        (tags[front], places[front]) = (tag(number), place);
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
        let mut cache = Cache::new(LINE * WAYS as u64, 1, 0, 1);
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
    fn of_too_many_lines_the_one_touched_longest_ago_is_named() {
        let mut cache = Cache::new(LINE * WAYS as u64, 1, 0, 1);
        for number in 1..=6 {
            cache.touch(number).0.dirty = (number % 2) as u8;
        }
        cache.touch(1);
        let dirty = |line: &Line| line.dirty != 0;
        assert_eq!([1, 2, 3].map(|most| cache.beyond(9, most, dirty)), [Some(3), Some(3), None]);
    }

    #[test]
    fn any_one_of_those_touched_longest_ago_goes() {
        let mut cache = Cache::new(LINE * WAYS as u64, 1, 0, 5);
        for number in 0..WAYS as u64 {
            assert!(cache.touch(number).1.is_none(), "there is room");
        }
        let mut gone = Vec::new();
        for number in 16..216 {
            let mut here: Vec<u64> = cache.lines.iter().map(|line| line.number).collect();
            here.sort_unstable();
            // All but the first five are touched again.
            for again in &here[5..] {
                cache.touch(*again);
            }
            let left = cache.touch(number).1.expect("the set is full").number;
            gone.push(here.iter().position(|other| *other == left).expect("it was here"));
        }
        gone.sort_unstable();
        gone.dedup();
        assert_eq!(gone, [0, 1, 2, 3, 4]);
    }

    /// As on an H200: of 1536 lines that a warp read three times, 1024 are there after 8192 others.
    #[test]
    fn half_of_the_lines_stay_if_they_were_touched_again() {
        let (lines, read, others) = (2048, 1536, 1 << 14);
        let left = |staying, rounds| {
            let mut cache = Cache::new(lines * LINE, 1, staying, 1);
            for number in (0..rounds).flat_map(|_| 0..read).chain(lines..lines + others) {
                cache.touch(number);
            }
            (0..read).filter(|number| cache.peek(*number).is_some()).count() as u64
        };
        assert_eq!(left(WAYS / 2, 3), 1024);
        assert_eq!(left(WAYS / 2, 1), 0, "none was touched again");
        assert_eq!(left(0, 3), 0, "none may stay");
    }

    #[test]
    fn a_line_of_each_of_many_buffers_and_strides_finds_room() {
        for stride in [1, 32, 1 << 10, 1 << 33] {
            let mut cache = Cache::new(1 << 20, 1, 0, 1);
            let lines = (1 << 20) / LINE / 4;
            for i in 0..lines {
                cache.touch(i * stride);
            }
            let here = (0..lines).filter(|i| cache.peek(i * stride).is_some()).count() as u64;
            assert!(here > lines * 97 / 100, "stride {stride}: {here} of {lines}");
        }
    }
}
