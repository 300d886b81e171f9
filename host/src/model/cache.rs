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
    /// The sectors all of whose bytes are here.
    pub(super) valid: u8,
    /// The sectors that memory does not have yet.
    pub(super) dirty: u8,
    /// Bytes written of each sector.
    pub(super) written: [u8; 4],
}

/// A set-associative cache that gives up the line touched longest ago.
#[derive(Debug)]
pub(super) struct Cache {
    /// The lines of each set, the one touched last first; 0 is none.
    tags: Vec<[u32; WAYS]>,
    /// Where each of them stands in `lines`.
    places: Vec<[u8; WAYS]>,
    lines: Vec<Line>,
}

impl Cache {
    /// An empty cache of so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let sets = (bytes / LINE / WAYS as u64).max(1) as usize;
        let places = std::array::from_fn(|way| way as u8);
        Self { tags: vec![[0; WAYS]; sets], places: vec![places; sets], lines: vec![Line::default(); sets * WAYS] }
    }

    /// Spreads lines over the sets, whatever power of two lies between them.
    fn set(&self, number: u64) -> usize {
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
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
        let mut cache = Cache::new(LINE * WAYS as u64);
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
    fn a_line_of_each_of_many_buffers_and_strides_finds_room() {
        for stride in [1, 32, 1 << 10, 1 << 33] {
            let mut cache = Cache::new(1 << 20);
            let lines = (1 << 20) / LINE / 4;
            for i in 0..lines {
                cache.touch(i * stride);
            }
            let here = (0..lines).filter(|i| cache.peek(i * stride).is_some()).count() as u64;
            assert!(here > lines * 97 / 100, "stride {stride}: {here} of {lines}");
        }
    }
}
