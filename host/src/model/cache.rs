//! A cache of 128-byte lines whose four sectors come and go one by one.

use crate::sim::coalesce::LINE;

/// Ways of a set.
const WAYS: usize = 16;

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
    /// Bytes written of each sector.
    pub(super) written: [u8; 4],
}

/// Which line of a set has to go for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// The one touched longest ago.
    Oldest,
    /// Any.
    Any,
}

/// A set-associative cache.
#[derive(Debug)]
pub(super) struct Cache {
    policy: Policy,
    /// Lines that had to go for another.
    replaced: u64,
    /// The lines of each set, the one touched last first if the oldest is to go; 0 is none.
    tags: Vec<[u32; WAYS]>,
    /// Where each of them stands in `lines`.
    places: Vec<[u8; WAYS]>,
    lines: Vec<Line>,
}

/// An odd number with its bits all over: the golden ratio in 64 bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl Cache {
    /// An empty cache of so many bytes.
    pub(super) fn new(bytes: u64, policy: Policy) -> Self {
        let sets = (bytes / LINE / WAYS as u64).max(1) as usize;
        let (tags, places) = (vec![[0; WAYS]; sets], vec![std::array::from_fn(|way| way as u8); sets]);
        Self { policy, replaced: 0, tags, places, lines: vec![Line::default(); sets * WAYS] }
    }

    /// Spreads lines over the sets as if at random, whatever lies between them.
    fn set(&self, number: u64) -> usize {
        let spread = (number ^ number.wrapping_mul(SPREAD) >> 29).wrapping_mul(SPREAD);
        ((u128::from(spread) * self.tags.len() as u128) >> 64) as usize
    }

    /// The line, if it is here. That does not count as a touch.
    pub(super) fn peek(&mut self, number: u64) -> Option<&mut Line> {
        let set = self.set(number);
        let way = self.tags[set].iter().position(|other| *other == tag(number))?;
        Some(&mut self.lines[set * WAYS + usize::from(self.places[set][way])])
    }

    /// The line; if it was not here, an empty one, and what had to go for it.
    pub(super) fn touch(&mut self, number: u64) -> (&mut Line, Option<Line>) {
        let set = self.set(number);
        let (tags, places) = (&mut self.tags[set], &mut self.places[set]);
        let known = tags.iter().position(|other| *other == tag(number));
        let (way, front) = match self.policy {
            Policy::Oldest => (known.unwrap_or(WAYS - 1), 0),
            Policy::Any => {
                let free = || tags.iter().position(|other| *other == 0);
                let any = (self.replaced.wrapping_mul(SPREAD) >> 60) as usize % WAYS;
                let way = known.or_else(free).unwrap_or(any);
                (way, way)
            }
        };
        let (old, place) = (tags[way], places[way]);
        tags.copy_within(front..way, front + 1);
        places.copy_within(front..way, front + 1);
        (tags[front], places[front]) = (tag(number), place);
        self.replaced += u64::from(known.is_none());
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
        let mut cache = Cache::new(LINE * WAYS as u64, Policy::Oldest);
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
    fn if_any_may_go_a_round_of_too_many_lines_finds_most_of_them() {
        let (lines, rounds) = (1 << 10, 20);
        let hits = |policy| {
            let mut cache = Cache::new(lines * LINE, policy);
            let round = lines * 9 / 8;
            let touches = (0..rounds * round).map(|i| std::mem::replace(&mut cache.touch(i % round).0.valid, 1));
            touches.map(u64::from).sum::<u64>() * 100 / (rounds * round)
        };
        let (oldest, any) = (hits(Policy::Oldest), hits(Policy::Any));
        assert!(oldest < 40, "{oldest} %: in a full set each line goes just before it is touched again");
        assert!((60..90).contains(&any), "{any} %");
    }

    #[test]
    fn a_line_of_each_of_many_buffers_and_strides_finds_room() {
        for stride in [1, 32, 1 << 10, 1 << 33] {
            let mut cache = Cache::new(1 << 20, Policy::Oldest);
            let lines = (1 << 20) / LINE / 4;
            for i in 0..lines {
                cache.touch(i * stride);
            }
            let here = (0..lines).filter(|i| cache.peek(i * stride).is_some()).count() as u64;
            assert!(here > lines * 97 / 100, "stride {stride}: {here} of {lines}");
        }
    }
}
