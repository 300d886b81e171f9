//! The L1 of a multiprocessor: which lines it has, which are on their way, and what goes for others.

use super::cache::{mixed, tag};
use engine::coalesce::LINE;
use engine::trace::{TAG_BANKS, tag_bank};

/// Sets of each bank of the tags, and ways of each: by the probe `sets`.
const SETS: usize = 128;
const WAYS: usize = 4;

/// How many lines of each stay while others come and go: those that the last touches found that found one. By the probe `staying`.
const STAYING: usize = 2;

/// Places of each bank that are free for lines to come, as long as the tags have time to have others go, and sets of a bank of which one
/// line goes at a time: fitted to the probe `bursts`.
const RESERVE: usize = 12;
const TOGETHER: usize = 4;

/// How far apart these sets are: odd, so that all have their turn. Lines that follow one another do not go in the order in which they came.
const NEXT: usize = 45;

/// A line that the L1 has or that is on its way to it.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// When the last of its sectors that are on their way arrives.
    pub(super) ready: &'a mut f64,
    /// The sectors that are here or on their way.
    pub(super) valid: &'a mut u8,
}

/// A line that had to go for another, and how many loads wait for it all the same.
#[derive(Debug)]
struct Gone {
    tag: u32,
    held: u16,
}

/// The lines of a set: first those that stay, then the others, each the one touched last first. Each is a tag, when it is ready, which of
/// its sectors are valid, and how many loads hold it. They fit one line of the machine that replays this, which waits for its memory most.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set {
    tags: [u32; WAYS],
    ready: [f64; WAYS],
    held: [u16; WAYS],
    valid: [u8; WAYS],
    count: u8,
    /// How many of them stay.
    stay: u8,
}

impl Set {
    fn way(&self, number: u64) -> Option<usize> {
        self.tags[..usize::from(self.count)].iter().position(|other| *other == tag(number))
    }

    fn line(&mut self, way: usize) -> Line<'_> {
        Line { ready: &mut self.ready[way], valid: &mut self.valid[way] }
    }

    fn is_full(&self) -> bool {
        usize::from(self.count) == WAYS
    }

    /// Touches one of its lines again. The lines that the last two such touches found stay: one that does no longer is the first of those
    /// that come and go.
    fn touch_again(&mut self, way: usize) -> Line<'_> {
        if way == 0 && self.stay > 0 {
            self.stay = 1;
            return self.line(0);
        }
        let stays = way < usize::from(self.stay);
        self.stay += u8::from(!stays && usize::from(self.stay) < STAYING);
        self.tags[..=way].rotate_right(1);
        self.ready[..=way].rotate_right(1);
        self.held[..=way].rotate_right(1);
        self.valid[..=way].rotate_right(1);
        self.line(0)
    }

    fn remove(&mut self, way: usize) -> Gone {
        let gone = Gone { tag: self.tags[way], held: self.held[way] };
        self.tags.copy_within(way + 1.., way);
        self.ready.copy_within(way + 1.., way);
        self.held.copy_within(way + 1.., way);
        self.valid.copy_within(way + 1.., way);
        self.count -= 1;
        self.stay -= u8::from(way < usize::from(self.stay));
        gone
    }

    /// Adds a line, of which there are fewer than ways.
    fn add(&mut self, number: u64) -> Line<'_> {
        let first = usize::from(self.stay);
        self.tags.copy_within(first..WAYS - 1, first + 1);
        self.ready.copy_within(first..WAYS - 1, first + 1);
        self.held.copy_within(first..WAYS - 1, first + 1);
        self.valid.copy_within(first..WAYS - 1, first + 1);
        (self.tags[first], self.ready[first], self.held[first], self.valid[first]) = (tag(number), 0.0, 0, 0);
        self.count += 1;
        self.line(first)
    }
}

/// A bank of the tags.
#[derive(Debug)]
struct Bank {
    sets: Vec<Set>,
    /// Lines that loads wait for and that had to go for others.
    beyond: Vec<Gone>,
    /// Lines with a place, and how many of those no load waits for and have not gone.
    taken: usize,
    idle: usize,
    /// The set whose line goes next for one of another.
    next: usize,
}

/// An L1. A line has a place of its bank, and a way of its set as long as it does not go for another. If a set has a way left for a line,
/// but its bank no place, one of another set goes.
#[derive(Debug)]
pub(super) struct L1 {
    banks: [Bank; TAG_BANKS],
    /// Places of each bank.
    places: usize,
}

impl L1 {
    /// An empty one of so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let bank = || Bank { sets: vec![Set::default(); SETS], beyond: Vec::new(), taken: 0, idle: 0, next: 0 };
        Self { banks: std::array::from_fn(|_| bank()), places: ((bytes / LINE) as usize / TAG_BANKS).max(1) }
    }

    /// What is looked at first of a line: of lines that are about to be touched, so that the machine that replays this waits for the memory
    /// of all their sets at a time.
    pub(super) fn glance(&self, number: u64) -> u32 {
        let (bank, set) = place(number);
        self.banks[bank].sets[set].tags[0]
    }

    /// A line that is here or on its way, but for those that had to go for others: what comes of them is not found again.
    pub(super) fn get(&mut self, number: u64) -> Option<Line<'_>> {
        let (bank, set) = place(number);
        let set = &mut self.banks[bank].sets[set];
        set.way(number).map(|way| set.line(way))
    }

    /// Whether a line that is not here can come without one of another set going for it.
    pub(super) fn has_room(&self, number: u64) -> bool {
        let (bank, set) = place(number);
        let bank = &self.banks[bank];
        let set = &bank.sets[set];
        bank.taken < self.places || set.is_full() && set.held[WAYS - 1] == 0
    }

    /// Whether a line of the bank that another one belongs to can go, since no load waits for it.
    pub(super) fn can_make_room(&self, number: u64) -> bool {
        self.banks[tag_bank(number)].idle > 0
    }

    /// Has lines of each bank go, one at a time and that up to so often, until it has enough places free.
    pub(super) fn make_reserve(&mut self, times: u32) {
        let most = self.places - RESERVE.min(self.places / 4).max(1);
        for bank in &mut self.banks {
            let mut left = times;
            while left > 0 && bank.taken > most {
                bank.clear();
                left -= 1;
            }
        }
    }

    /// Touches a line. If it was not here, it comes, and one of its set goes if that has no way left.
    pub(super) fn touch(&mut self, number: u64) -> Line<'_> {
        let (bank, set) = place(number);
        let bank = &mut self.banks[bank];
        let set = &mut bank.sets[set];
        if let Some(way) = set.way(number) {
            return set.touch_again(way);
        }
        if set.is_full() {
            let gone = set.remove(WAYS - 1);
            if gone.held > 0 {
                bank.beyond.push(gone);
            } else {
                bank.taken -= 1;
                bank.idle -= 1;
            }
        }
        bank.taken += 1;
        bank.idle += 1;
        set.add(number)
    }

    /// Has a load wait for a line that is here or on its way.
    pub(super) fn hold(&mut self, number: u64) {
        let (bank, set) = place(number);
        let bank = &mut self.banks[bank];
        let set = &mut bank.sets[set];
        let way = set.way(number).expect("a line that is waited for is known");
        set.held[way] += 1;
        bank.idle -= usize::from(set.held[way] == 1);
    }

    /// Has a load that waited for a line do so no longer: first those that waited when it had to go.
    pub(super) fn give_back(&mut self, number: u64) {
        let (bank, set) = place(number);
        let bank = &mut self.banks[bank];
        if let Some(place) = bank.beyond.iter().position(|line| line.tag == tag(number)) {
            bank.beyond[place].held -= 1;
            if bank.beyond[place].held == 0 {
                bank.beyond.swap_remove(place);
                bank.taken -= 1;
            }
            return;
        }
        let set = &mut bank.sets[set];
        let way = set.way(number).expect("a line that is waited for is known");
        set.held[way] -= 1;
        bank.idle += usize::from(set.held[way] == 0);
    }
}

impl Bank {
    /// Has a line go that no load waits for, if the next sets have one.
    fn clear(&mut self) {
        for _ in 0..TOGETHER {
            let set = &mut self.sets[self.next];
            self.next = (self.next + NEXT) % SETS;
            if let Some(way) = set.held[..usize::from(set.count)].iter().rposition(|held| *held == 0) {
                set.remove(way);
                self.taken -= 1;
                self.idle -= 1;
                return;
            }
        }
    }
}

/// The masks whose parities are the bits of a line's set in its bank.
const BITS: [u32; 7] = [0x0F3F_8804, 0x1E2D_B408, 0x0F92_AE10, 0x1AB9_6A20, 0x1691_DA40, 0x12DF_C080, 0x1F2A_D900];

/// What each byte of the lower half of a line's number makes of its set.
const OF_BYTES: [[u8; 256]; 4] = {
    let mut sets = [[0; 256]; 4];
    let mut i = 0;
    while i < 4 * 256 {
        let (byte, value) = (i / 256, i % 256);
        let mut bit = 0;
        while bit < BITS.len() {
            let parity = (BITS[bit] & (value as u32) << (8 * byte)).count_ones() & 1;
            sets[byte][value] |= (parity as u8) << bit;
            bit += 1;
        }
        i += 1;
    }
    sets
};

/// The set of its bank that a line belongs to. Buffers begin at any.
pub(super) fn set(number: u64) -> usize {
    let of_buffer = mixed(number >> 33) as usize % SETS;
    let bytes = (number as u32).to_le_bytes();
    let of_bytes = OF_BYTES.iter().zip(bytes).fold(0, |set, (sets, byte)| set ^ sets[usize::from(byte)]);
    of_buffer ^ usize::from(of_bytes)
}

/// The bank of a line, and its set.
fn place(number: u64) -> (usize, usize) {
    (tag_bank(number), set(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_the_parities_of_the_bits_of_a_line() {
        for bit in 0..33 {
            let parities = BITS.iter().enumerate().map(|(i, mask)| usize::from(*mask as u64 >> bit & 1 == 1) << i);
            assert_eq!(set(1 << bit) ^ set(0), parities.sum::<usize>(), "bit {bit}");
            assert_eq!(
                set(0x5A5A_5A5A ^ 1 << bit) ^ set(0x5A5A_5A5A),
                set(1 << bit) ^ set(0),
                "bit {bit} beside others"
            );
        }
    }

    /// Touches a line, and says whether it was here.
    fn touch(l1: &mut L1, number: u64) -> bool {
        l1.make_reserve(64);
        let line = l1.touch(number);
        std::mem::replace(line.valid, 1) != 0
    }

    /// Of 1536 lines read three times an H200 has 1024 after 8192 others.
    #[test]
    fn lines_stay_if_they_were_touched_again() {
        let (read, others) = (1536, 8192);
        let left = |rounds| {
            let mut l1 = L1::new(224 << 10);
            for number in (0..rounds).flat_map(|_| 0..read).chain(read..read + others) {
                touch(&mut l1, number);
            }
            (0..read).filter(|number| l1.get(*number).is_some()).count() as u64
        };
        assert_eq!(left(3), 1024);
        assert_eq!(left(1), 0, "none was touched again");
    }

    /// What the probe `retention` counted on an H200: of 32 lines that were touched, so many lines apart and so many times, the share
    /// that is gone when as many times 32 others were.
    #[test]
    fn lines_touched_again_stay_longer() {
        let gone = |apart: u64, times: u64, others: u64| {
            let (mut l1, mut gone, rounds) = (L1::new(224 << 10), 0, 256);
            for round in 0..rounds {
                let numbers = |round: u64| (32 * round..32 * (round + 1)).map(move |i| i * apart);
                for number in (0..times).flat_map(|_| numbers(round)) {
                    touch(&mut l1, number);
                }
                for number in (others..=round).take(1).flat_map(|_| numbers(round - others)) {
                    gone += usize::from(!touch(&mut l1, number));
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
            assert!(error < 0.07, "{apart} apart, {times} times, {others} others: {predicted:.2} for {measured}");
        }
    }
}
