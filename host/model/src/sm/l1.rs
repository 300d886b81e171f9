//! An SM's L1: a sectored, set-associative cache with four tag banks.
//!
//! A line takes a way of its set, and one of its bank's places in the data. Ways are 4 in each of 128 sets of a bank (probe `sets`); places
//! are what shared memory leaves. Before a load is looked up lines are evicted, so that some places are free for fills (probe `left`).
//! Lines that loads wait for are pinned (probe `on_their_way`). Two lines of a set that were hit are retained while others come and go
//! (probe `staying`).

use super::super::constants::Constants;
use super::super::hash::{mix, tag};
use engine::coalesce::LINE;
use engine::trace::{TAG_BANKS, tag_bank};

/// Ways of a set at most.
const WAYS: usize = 4;

/// How far apart sets are that are searched one after another for a line to evict. It is odd, so that all have their turn; consecutive
/// lines are not evicted in the order in which they came.
const SEARCH_STRIDE: usize = 45;

/// A line that is cached, or whose fill is outstanding.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// When the last of its fills arrives.
    pub(super) ready: &'a mut f64,
    /// The sectors that are cached or outstanding.
    pub(super) valid: &'a mut u8,
}

/// A line that lost its way while loads waited for it, and how many these are.
#[derive(Debug)]
struct Orphan {
    tag: u32,
    pins: u16,
}

/// The lines of a set: first the retained ones, then the others, each the most recently used first. Each has a tag, when it is ready, its
/// valid sectors, and the loads that pin it. They fit one line of the machine that replays this, which waits for its memory most.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set {
    tags: [u32; WAYS],
    ready: [f64; WAYS],
    pins: [u16; WAYS],
    valid: [u8; WAYS],
    count: u8,
    retained: u8,
}

impl Set {
    fn way(&self, number: u64) -> Option<usize> {
        self.tags[..usize::from(self.count)].iter().position(|other| *other == tag(number))
    }

    fn line(&mut self, way: usize) -> Line<'_> {
        Line { ready: &mut self.ready[way], valid: &mut self.valid[way] }
    }

    /// Hits one of its lines. The lines that were hit last are retained, so many of them; the one that no longer is becomes the most recently
    /// used of the others.
    fn hit(&mut self, way: usize, most_retained: usize) -> Line<'_> {
        if way == 0 && self.retained > 0 {
            self.retained = 1;
            return self.line(0);
        }
        let is_retained = way < usize::from(self.retained);
        self.retained += u8::from(!is_retained && usize::from(self.retained) < most_retained);
        self.tags[..=way].rotate_right(1);
        self.ready[..=way].rotate_right(1);
        self.pins[..=way].rotate_right(1);
        self.valid[..=way].rotate_right(1);
        self.line(0)
    }

    fn remove(&mut self, way: usize) -> Orphan {
        let removed = Orphan { tag: self.tags[way], pins: self.pins[way] };
        self.tags.copy_within(way + 1.., way);
        self.ready.copy_within(way + 1.., way);
        self.pins.copy_within(way + 1.., way);
        self.valid.copy_within(way + 1.., way);
        self.count -= 1;
        self.retained -= u8::from(way < usize::from(self.retained));
        removed
    }

    /// Adds a line. There is a way left.
    fn add(&mut self, number: u64) -> Line<'_> {
        let first = usize::from(self.retained);
        self.tags.copy_within(first..WAYS - 1, first + 1);
        self.ready.copy_within(first..WAYS - 1, first + 1);
        self.pins.copy_within(first..WAYS - 1, first + 1);
        self.valid.copy_within(first..WAYS - 1, first + 1);
        (self.tags[first], self.ready[first], self.pins[first], self.valid[first]) = (tag(number), 0.0, 0, 0);
        self.count += 1;
        self.line(first)
    }
}

/// A tag bank.
#[derive(Debug)]
struct Bank {
    sets: Vec<Set>,
    orphans: Vec<Orphan>,
    /// Places taken by lines, and those of lines that have a way and are not pinned.
    taken: usize,
    evictable: usize,
    /// The set that is searched next for a line to evict.
    next_set: usize,
}

/// The L1 of an SM.
#[derive(Debug)]
pub(super) struct L1 {
    banks: [Bank; TAG_BANKS],
    ways: usize,
    /// Places of each bank.
    places: usize,
    free_places: usize,
    retained: usize,
}

impl L1 {
    /// An empty one of so many bytes.
    pub(super) fn new(bytes: u64, constants: &Constants) -> Self {
        let sets = vec![Set::default(); constants.l1_sets];
        let bank = || Bank { sets: sets.clone(), orphans: Vec::new(), taken: 0, evictable: 0, next_set: 0 };
        let places = ((bytes / LINE) as usize / TAG_BANKS).max(1);
        Self {
            banks: std::array::from_fn(|_| bank()),
            ways: constants.l1_ways,
            places,
            free_places: constants.l1_free_lines.min(places / 4).max(1),
            retained: constants.l1_retained_lines,
        }
    }

    /// The tag bank of a line, and its set.
    fn bank_and_set(&self, number: u64) -> (usize, usize) {
        (tag_bank(number), set(number) % self.banks[0].sets.len())
    }

    /// Reads what is looked at first of a line that is about to be accessed, so that the machine that replays this waits for the memory of
    /// several lines at a time.
    pub(super) fn prefetch(&self, number: u64) -> u32 {
        let (bank, set) = self.bank_and_set(number);
        self.banks[bank].sets[set].tags[0]
    }

    /// A line that is cached or whose fill is outstanding, unless it lost its way. That does not count as a use.
    pub(super) fn peek(&mut self, number: u64) -> Option<Line<'_>> {
        let (bank, set) = self.bank_and_set(number);
        let set = &mut self.banks[bank].sets[set];
        set.way(number).map(|way| set.line(way))
    }

    /// Whether a line that misses finds a place without one of another set being evicted for it.
    fn can_allocate(&self, number: u64) -> bool {
        let (bank, set) = self.bank_and_set(number);
        let bank = &self.banks[bank];
        let set = &bank.sets[set];
        bank.taken < self.places || usize::from(set.count) == self.ways && set.pins[self.ways - 1] == 0
    }

    /// Evicts lines of each bank until it has enough places free, as far as it finds some that are not pinned.
    pub(super) fn evict_to_reserve(&mut self) {
        let most = self.places - self.free_places;
        for bank in &mut self.banks {
            while bank.taken > most && bank.evict() {}
        }
    }

    /// Evicts lines until one that misses finds a place, and says whether it does.
    pub(super) fn make_room(&mut self, number: u64) -> bool {
        while !self.can_allocate(number) && self.banks[tag_bank(number)].evict() {}
        self.can_allocate(number)
    }

    /// Uses a line. If it misses it is allocated, and the last of its set loses its way if there is none left.
    pub(super) fn access(&mut self, number: u64) -> Line<'_> {
        let (bank, set) = self.bank_and_set(number);
        let bank = &mut self.banks[bank];
        let set = &mut bank.sets[set];
        if let Some(way) = set.way(number) {
            return set.hit(way, self.retained);
        }
        if usize::from(set.count) == self.ways {
            let removed = set.remove(self.ways - 1);
            if removed.pins > 0 {
                bank.orphans.push(removed);
            } else {
                bank.taken -= 1;
                bank.evictable -= 1;
            }
        }
        bank.taken += 1;
        bank.evictable += 1;
        set.add(number)
    }

    /// Pins a line that has a way, for a load that waits for it.
    pub(super) fn pin(&mut self, number: u64) {
        let (bank, set) = self.bank_and_set(number);
        let bank = &mut self.banks[bank];
        let set = &mut bank.sets[set];
        let way = set.way(number).expect("a line that is waited for is known");
        set.pins[way] += 1;
        bank.evictable -= usize::from(set.pins[way] == 1);
    }

    /// Unpins a line for a load: first for those that waited when it lost its way.
    pub(super) fn unpin(&mut self, number: u64) {
        let (bank, set) = self.bank_and_set(number);
        let bank = &mut self.banks[bank];
        if let Some(place) = bank.orphans.iter().position(|line| line.tag == tag(number)) {
            bank.orphans[place].pins -= 1;
            if bank.orphans[place].pins == 0 {
                bank.orphans.swap_remove(place);
                bank.taken -= 1;
            }
            return;
        }
        let set = &mut bank.sets[set];
        let way = set.way(number).expect("a line that is waited for is known");
        set.pins[way] -= 1;
        bank.evictable += usize::from(set.pins[way] == 0);
    }
}

impl Bank {
    /// Evicts a line that is not pinned, and says whether there was one.
    fn evict(&mut self) -> bool {
        if self.evictable == 0 {
            return false;
        }
        loop {
            let sets = self.sets.len();
            let set = &mut self.sets[self.next_set];
            self.next_set = (self.next_set + SEARCH_STRIDE) % sets;
            if let Some(way) = set.pins[..usize::from(set.count)].iter().rposition(|pins| *pins == 0) {
                set.remove(way);
                self.taken -= 1;
                self.evictable -= 1;
                return true;
            }
        }
    }
}

/// The masks of a line's number whose parities are the bits of its set.
const SET_MASKS: [u32; 7] = [0x0F3F_8804, 0x1E2D_B408, 0x0F92_AE10, 0x1AB9_6A20, 0x1691_DA40, 0x12DF_C080, 0x1F2A_D900];

/// What each byte of the lower half of a line's number makes of its set.
const SETS_OF_BYTES: [[u8; 256]; 4] = {
    let mut sets = [[0; 256]; 4];
    let mut i = 0;
    while i < 4 * 256 {
        let (byte, value) = (i / 256, i % 256);
        let mut bit = 0;
        while bit < SET_MASKS.len() {
            let parity = (SET_MASKS[bit] & (value as u32) << (8 * byte)).count_ones() & 1;
            sets[byte][value] |= (parity as u8) << bit;
            bit += 1;
        }
        i += 1;
    }
    sets
};

/// What decides the set of its bank that a line belongs to: modulo their number. Buffers begin at any.
fn set(number: u64) -> usize {
    let of_buffer = mix(number >> 33) as usize;
    let bytes = (number as u32).to_le_bytes();
    let of_bytes = SETS_OF_BYTES.iter().zip(bytes).fold(0, |set, (sets, byte)| set ^ sets[usize::from(byte)]);
    of_buffer ^ usize::from(of_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::super::chip::Chip;
    use super::*;

    fn l1() -> L1 {
        L1::new(224 << 10, &Constants::of(&Chip::load("h200").expect("is built in")))
    }

    #[test]
    fn a_set_is_the_parities_of_the_bits_of_a_line() {
        for bit in 0..33 {
            let parities = SET_MASKS.iter().enumerate().map(|(i, mask)| usize::from(*mask as u64 >> bit & 1 == 1) << i);
            assert_eq!(set(1 << bit) ^ set(0), parities.sum::<usize>(), "bit {bit}");
            assert_eq!(
                set(0x5A5A_5A5A ^ 1 << bit) ^ set(0x5A5A_5A5A),
                set(1 << bit) ^ set(0),
                "bit {bit} beside others"
            );
        }
    }

    /// Uses a line, and says whether it hit.
    fn hits(l1: &mut L1, number: u64) -> bool {
        l1.evict_to_reserve();
        let line = l1.access(number);
        std::mem::replace(line.valid, 1) != 0
    }

    /// Of 1536 lines read three times an H200 has 1024 after 8192 others.
    #[test]
    fn lines_that_were_hit_are_retained() {
        let (read, others) = (1536, 8192);
        let left = |rounds| {
            let mut l1 = l1();
            for number in (0..rounds).flat_map(|_| 0..read).chain(read..read + others) {
                hits(&mut l1, number);
            }
            (0..read).filter(|number| l1.peek(*number).is_some()).count() as u64
        };
        assert_eq!(left(3), 1024);
        assert_eq!(left(1), 0, "none was hit");
    }

    /// What the probe `retention` counted on an H200: of 32 lines that were loaded, so many lines apart and so many times, the share
    /// that misses after as many times 32 others were.
    #[test]
    fn lines_that_were_hit_stay_longer() {
        let missed = |apart: u64, times: u64, others: u64| {
            let (mut l1, mut missed, rounds) = (l1(), 0, 256);
            for round in 0..rounds {
                let numbers = |round: u64| (32 * round..32 * (round + 1)).map(move |i| i * apart);
                for number in (0..times).flat_map(|_| numbers(round)) {
                    hits(&mut l1, number);
                }
                for number in (others..=round).take(1).flat_map(|_| numbers(round - others)) {
                    missed += usize::from(!hits(&mut l1, number));
                }
            }
            missed as f64 / (32 * (rounds - others)) as f64
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
            let predicted = missed(apart, times, others);
            let error = (predicted - measured).abs();
            assert!(error < 0.07, "{apart} apart, {times} times, {others} others: {predicted:.2} for {measured}");
        }
    }
}
