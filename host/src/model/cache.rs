//! A cache of 128-byte lines whose four sectors come and go one by one.

use crate::sim::coalesce::LINE;

/// Lines that lie together.
pub(super) const NEIGHBOURS: u64 = 32;

/// Ways of a set at most: those of the L2.
const WAYS: usize = 16;

/// Sets of the L1, and how many of the ways of each are for lines that were touched again: fitted to the probe `retention`. By the probes
/// `sets` and `staying` there are 512 sets of four ways, in which lines stay that the last two touches found.
const SETS_OF_L1: u64 = 256;
const STAYING: usize = 4;

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
    /// Loads that wait for it.
    pub(super) held: u16,
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
    /// Ways of a set.
    ways: usize,
    /// Of so many blocks of neighbouring lines one is its own; none has lines in one part.
    partitions: Option<u64>,
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
pub(super) const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A number whose bits say nothing of those of the next one.
pub(super) fn mixed(number: u64) -> u64 {
    let spread = |number: u64, shift: u32| (number ^ number >> shift).wrapping_mul(SPREAD);
    spread(spread(number.wrapping_mul(SPREAD), 32), 29)
}

impl Cache {
    /// An empty L1 of so many bytes. Lines that were touched again go to ways of their own, while others come and go.
    pub(super) fn of_l1(bytes: u64) -> Self {
        let lines = (bytes / LINE).max(1);
        let sets = (lines.next_power_of_two() / 8).max(1);
        let ways = lines.div_ceil(sets).min(WAYS as u64);
        Self::new(lines / ways, ways as usize, None, STAYING.min(ways as usize - 1), 1)
    }

    /// An empty part of an L2, of so many bytes, one of so many. For a line that comes any one goes of so many touched longest ago.
    pub(super) fn of_l2(bytes: u64, partitions: u64, leaving: u64) -> Self {
        Self::new((bytes / LINE / WAYS as u64).max(1), WAYS, Some(partitions), 0, leaving)
    }

    fn new(sets: u64, ways: usize, partitions: Option<u64>, staying: usize, leaving: u64) -> Self {
        let sets = sets as usize;
        let (tags, places) = (vec![[0; WAYS]; sets], vec![std::array::from_fn(|way| way as u8); sets]);
        let (again, lines) = (vec![0; sets], vec![Line::default(); sets * ways]);
        Self { ways, partitions, staying, again, leaving, drawn: 0, tags, places, lines }
    }

    /// The set that a line goes to. Lines that follow one another, at any distance that is a power of two, go to different ones in the
    /// L1. In the L2 neighbours, but for those of other partitions, go to one set after another, as many as there are sets; where the
    /// first of them goes is as if at random.
    fn set(&self, number: u64) -> usize {
        let sets = self.tags.len() as u64;
        let Some(partitions) = self.partitions else {
            return (u64::from(folded(number)) * sets / SETS_OF_L1) as usize;
        };
        let number = number / (partitions * NEIGHBOURS) * NEIGHBOURS + number % NEIGHBOURS;
        let (turn, place) = (number / sets, number % sets);
        let begin = (u128::from(mixed(turn)) * u128::from(sets)) >> 64;
        let set = place + begin as u64;
        (if set < sets { set } else { set - sets }) as usize
    }

    /// The line, if it is here. That does not count as a touch.
    pub(super) fn peek(&mut self, number: u64) -> Option<&mut Line> {
        let set = self.set(number);
        let way = self.tags[set].iter().position(|other| *other == tag(number))?;
        Some(&mut self.lines[set * self.ways + usize::from(self.places[set][way])])
    }

    /// The number of the line touched longest ago among those of the set of `number` that are `such`, if these are more than
    /// `most`.
    pub(super) fn beyond(&self, number: u64, most: usize, such: impl Fn(&Line) -> bool) -> Option<u64> {
        let set = self.set(number);
        let ways = (0..WAYS).filter(|way| self.tags[set][*way] != 0);
        let lines = ways.map(|way| &self.lines[set * self.ways + usize::from(self.places[set][way])]);
        let mut such = lines.filter(|line| such(line));
        such.nth(most).map(|beyond| such.last().unwrap_or(beyond).number)
    }

    /// The line; if it was not here, an empty one, and what had to go for it.
    pub(super) fn touch(&mut self, number: u64) -> (&mut Line, Option<Line>) {
        let set = self.set(number);
        let (tags, places) = (&mut self.tags[set], &mut self.places[set]);
        let known = tags.iter().position(|other| *other == tag(number));
        let again = &mut self.again[set];
        let last = self.ways - 1;
        let (way, front) = match known {
            Some(way) => {
                let stays = way < usize::from(*again);
                *again += u8::from(!stays && usize::from(*again) < self.staying);
                (way, 0)
            }
            None => {
                self.drawn += 1;
                // What holds nothing is last.
                let before = if tags[last] == 0 { 0 } else { mixed(self.drawn) % self.leaving };
                (last - before as usize, usize::from(*again))
            }
        };
        let (old, place) = (tags[way], places[way]);
        tags.copy_within(front..way, front + 1);
        places.copy_within(front..way, front + 1);
        (tags[front], places[front]) = (tag(number), place);
        let line = &mut self.lines[set * self.ways + usize::from(place)];
        let gone = known.is_none().then(|| std::mem::replace(line, Line { number, ..Line::default() }));
        (line, gone.filter(|_| old != 0))
    }
}

/// The eight bits that are left of a number divided by x^8 + x^4 + x^3 + x^2 + 1, each bit a coefficient of 0 or 1.
fn folded(number: u64) -> u8 {
    number.to_be_bytes().into_iter().fold(0, |rest, byte| TIMES_X8[usize::from(rest)] ^ byte)
}

/// What is left of each of 256 such numbers times x^8.
static TIMES_X8: [u8; 256] = {
    let mut table = [0; 256];
    let mut number = 0;
    while number < 256 {
        let (mut rest, mut bit) = (number as u8, 0);
        while bit < 8 {
            rest = rest << 1 ^ if rest >> 7 == 1 { 0x1D } else { 0 };
            bit += 1;
        }
        table[number] = rest;
        number += 1;
    }
    table
};

/// A line's number in 32 bits, never 0. A buffer has 2^33 lines at most: its number is folded into the upper bits.
fn tag(number: u64) -> u32 {
    (number as u32 ^ ((number >> 33) as u32).wrapping_mul(0x9E37_79B1)).wrapping_add(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_touched_longest_ago_goes() {
        let mut cache = Cache::of_l2(LINE * WAYS as u64, 1, 1);
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
        let mut cache = Cache::of_l2(LINE * WAYS as u64, 1, 1);
        for number in 1..=6 {
            cache.touch(number).0.dirty = (number % 2) as u8;
        }
        cache.touch(1);
        let dirty = |line: &Line| line.dirty != 0;
        assert_eq!([1, 2, 3].map(|most| cache.beyond(9, most, dirty)), [Some(3), Some(3), None]);
    }

    #[test]
    fn any_one_of_those_touched_longest_ago_goes() {
        let mut cache = Cache::of_l2(LINE * WAYS as u64, 1, 5);
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

    /// Of 1536 lines read three times an H200 has 1024 after 8192 others.
    #[test]
    fn lines_stay_if_they_were_touched_again() {
        let (read, others) = (1536, 8192);
        let left = |rounds| {
            let mut cache = Cache::of_l1(224 << 10);
            for number in (0..rounds).flat_map(|_| 0..read).chain(read..read + others) {
                cache.touch(number);
            }
            (0..read).filter(|number| cache.peek(*number).is_some()).count() as u64
        };
        assert_eq!(left(3), STAYING as u64 * SETS_OF_L1);
        assert_eq!(left(1), 0, "none was touched again");
    }

    /// What the probe `retention` counted on an H200: of 32 lines that were touched, so many lines apart and so many times, the share
    /// that is gone when as many times 32 others were.
    #[test]
    fn lines_touched_again_stay_longer() {
        let gone = |apart: u64, times: u64, others: u64| {
            let (mut cache, mut gone, rounds) = (Cache::of_l1(224 << 10), 0, 256);
            for round in 0..rounds {
                let numbers = |round: u64| (32 * round..32 * (round + 1)).map(move |i| i * apart);
                for number in (0..times).flat_map(|_| numbers(round)) {
                    cache.touch(number).0.valid = 1;
                }
                for number in (others..=round).take(1).flat_map(|_| numbers(round - others)) {
                    let line = cache.touch(number).0;
                    gone += usize::from(line.valid == 0);
                    line.valid = 1;
                }
            }
            gone as f64 / (32 * (rounds - others)) as f64
        };
        for (apart, times, others, measured) in [
            (1, 1, 8, 0.04),
            (1, 1, 12, 0.09),
            (1, 1, 16, 0.65),
            (1, 1, 28, 0.86),
            (1, 2, 16, 0.00),
            (1, 2, 28, 0.11),
            (1, 2, 32, 0.44),
            (1, 2, 48, 0.82),
            (512, 1, 8, 0.10),
            (512, 1, 12, 0.52),
            (512, 2, 28, 0.18),
            (512, 8, 32, 0.41),
            (132, 1, 4, 0.10),
            (132, 1, 8, 0.30),
            (132, 1, 16, 0.60),
            (132, 2, 16, 0.11),
            (132, 2, 32, 0.43),
            (132, 8, 48, 0.80),
        ] {
            let predicted = gone(apart, times, others);
            let error = (predicted - measured).abs();
            let bound = if (apart, times, others) == (512, 1, 12) { 0.46 } else { 0.14 };
            assert!(error < bound, "{apart} apart, {times} times, {others} others: {predicted:.2} for {measured}");
        }
    }

    #[test]
    fn a_line_of_each_of_many_buffers_and_strides_finds_room() {
        for stride in [1, 32, 1 << 10, 1 << 33] {
            let mut cache = Cache::of_l2(1 << 20, 1, 1);
            let lines = (1 << 20) / LINE / 4;
            for i in 0..lines {
                cache.touch(i * stride);
            }
            let here = (0..lines).filter(|i| cache.peek(i * stride).is_some()).count() as u64;
            assert!(here > lines * 97 / 100, "stride {stride}: {here} of {lines}");
        }
    }
}
