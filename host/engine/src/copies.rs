//! Asynchronous copies (`cp.async`): from the addresses of both ends to sectors and wavefronts.
//!
//! Through the L1 (4 and 8 bytes a lane), a wavefront reads one word of each bank and writes one. So lanes that copy the same word take
//! turns, where a load would send it to all of them at once. Sectors are those of a load.
//!
//! Past the L1 (16 bytes a lane), sectors go as they are: one of global memory to one of shared memory, or its halves exchanged. A sector
//! comes from the L2 as often as there are others that it goes to, and once more if some lanes exchange halves and others do
//! not. In a wavefront, sectors go from one line to another, and all lanes move as far: by the same exclusive-or of their places in it.
//!
//! `results/nvidia-h200/copies.tsv` has 285 copies with what Nsight Compute counted of them on an H200. Sectors are all equal, and
//! wavefronts of 162 of the 165 copies whose lanes are in some order. The other 120 are at random: there the profiler, which computes
//! wavefronts from addresses, mostly says some more, and not what its counter of the pipe says.

use crate::banks::{self, BANKS};
use crate::coalesce::{LINE, SECTOR};
use arrayvec::ArrayVec;

/// A copy by one warp: where its lanes read and write, and which of them do. Lanes that only write bring zeros.
pub(crate) struct Copy<'a> {
    pub(crate) from: &'a [u64; 32],
    pub(crate) to: &'a [u64; 32],
    pub(crate) reading: u32,
    pub(crate) writing: u32,
    pub(crate) width: u64,
    pub(crate) past_l1: bool,
}

impl Copy<'_> {
    /// Sectors of global memory, if they are not those of a load.
    pub(crate) fn sectors(&self) -> Option<u64> {
        self.past_l1.then(|| self.distinct(SECTOR, self.reading))
    }

    /// Wavefronts of shared memory.
    pub(crate) fn wavefronts(&self) -> u64 {
        if self.past_l1 {
            return self.distinct(LINE, self.writing);
        }
        let lanes_together = (banks::WIDTH * BANKS as u64 / self.width).min(32) as usize;
        let of_bank = |addresses: &[u64; 32], mask: u32, first: usize| {
            banks::most_of_a_bank(&addresses[first..], mask >> first & (u32::MAX >> (32 - lanes_together)), self.width)
        };
        let groups = (0..32).step_by(lanes_together);
        groups.map(|first| of_bank(self.from, self.reading, first).max(of_bank(self.to, self.writing, first))).sum()
    }

    /// From how many units to how many, and how far in them, lanes in `mask` copy.
    fn distinct(&self, unit: u64, mask: u32) -> u64 {
        let way = |lane: usize| {
            let from = if self.reading >> lane & 1 == 1 { self.from[lane] } else { self.to[lane] % unit };
            (from / unit, self.to[lane] / unit, (from ^ self.to[lane]) % unit / self.width)
        };
        let mut ways: ArrayVec<_, 32> = (0..32).filter(|lane| mask >> lane & 1 == 1).map(way).collect();
        ways.sort_unstable();
        ways.chunk_by(|one, other| one == other).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Nsight Compute counted 285 copies on an H200: 165 regular ones, and 120 of lanes at random.
    #[test]
    fn copies_take_the_sectors_and_wavefronts_that_were_counted_on_an_h200() {
        let counted = include_str!("../../../results/nvidia-h200/copies.tsv");
        // As the probe launches them: of each width, 55 patterns in some order, then 40 at random.
        let [mut in_order, mut at_random] = [[0; 2]; 2];
        for (number_of_row, row) in counted.lines().skip(1).enumerate() {
            let [width, active, from, to, wavefronts, sectors, _] = row.split('\t').collect::<Vec<_>>()[..] else {
                panic!("no row of seven columns: {row}")
            };
            let number = |text: &str| text.parse::<u64>().expect("a number");
            let width = number(width);
            let mask = u32::from_str_radix(active.trim_start_matches("0x"), 16).expect("a mask");
            let [from, to] = [from, to].map(|elements| {
                let addresses: Vec<_> = elements.split(',').map(|element| width * number(element)).collect();
                <[u64; 32]>::try_from(addresses).expect("32 lanes")
            });
            let (reading, writing) = (mask, mask);
            let copy = Copy { from: &from, to: &to, reading, writing, width, past_l1: width == 16 };
            let mut read: Vec<_> =
                (0..32).filter(|lane| mask >> lane & 1 == 1).map(|lane| from[lane] / SECTOR).collect();
            read.sort_unstable();
            read.dedup();
            assert_eq!(copy.sectors().unwrap_or(read.len() as u64), number(sectors), "{row}");
            let kind = if number_of_row % 95 < 55 { &mut in_order } else { &mut at_random };
            kind[0] += 1;
            kind[1] += u32::from(copy.wavefronts() == number(wavefronts));
        }
        assert_eq!([in_order, at_random], [[165, 162], [120, 53]]);
    }

    /// A copy whose lanes bring zeros writes them as any other.
    #[test]
    fn zeros_are_written_without_being_read() {
        let places: [u64; 32] = std::array::from_fn(|lane| lane as u64);
        for (width, past_l1, wavefronts) in [(4, false, 1), (8, false, 2), (16, true, 4)] {
            let to = places.map(|place| place * width);
            let copy = |reading| Copy { from: &[0; 32], to: &to, reading, writing: u32::MAX, width, past_l1 };
            assert_eq!(copy(0).wavefronts(), wavefronts, "{width} bytes");
            assert_eq!(copy(0).sectors(), past_l1.then_some(0), "{width} bytes");
        }
    }
}
