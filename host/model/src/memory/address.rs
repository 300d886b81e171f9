//! Where a line lives: its L2 partition, L2 slice, DRAM channel, bank and row.
//!
//! The hashes of a GPU are not known. Each of these takes consecutive pieces of memory in turn, and a hash says where a turn starts.

use super::super::chip::Chip;
use super::super::constants::Constants;
use super::super::hash::mix;

/// Consecutive lines that belong to one L2 partition.
pub(super) const PARTITION_LINES: u64 = 32;

/// Consecutive lines that belong to one channel: a piece.
pub(super) const PIECE_LINES: u64 = 2;

/// Pieces of a channel in one DRAM row, as far as writes share its activate: by the probe `pages`.
pub(super) const ROW_PIECES: u64 = 4;

/// What a chip's address hash decides.
#[derive(Debug)]
pub(super) struct AddressMap {
    partitions: u64,
    channels: u64,
    banks: u64,
    /// Consecutive lines whose atomics one slice carries out.
    atomic_lines: u64,
}

impl AddressMap {
    pub(super) fn new(chip: &Chip, constants: &Constants) -> Self {
        Self {
            partitions: chip.l2_partitions,
            channels: chip.dram_channels as u64,
            banks: constants.dram_banks as u64,
            atomic_lines: constants.l2_atomic_lines,
        }
    }

    /// The L2 partition that a line of DRAM belongs to.
    pub(super) fn home(&self, number: u64) -> usize {
        let block = number / PARTITION_LINES;
        (block.wrapping_add(mix(block / self.partitions)) % self.partitions) as usize
    }

    /// The L2 partition that the SMs of a GPC read through. Two consecutive GPCs are taken to share one.
    pub(super) fn near(&self, gpc: usize) -> usize {
        gpc / 2 % self.partitions as usize
    }

    /// The DRAM channel of a line, and the slice of it in every partition.
    pub(super) fn slice(&self, number: u64) -> usize {
        in_turn(number / PIECE_LINES, self.channels) as usize
    }

    /// The slice, of all, that carries out the atomics on a line, and the adder that it shares.
    pub(super) fn atomic_slice_and_adder(&self, number: u64) -> [usize; 2] {
        [self.partitions * self.channels, self.channels].map(|of| in_turn(number / self.atomic_lines, of) as usize)
    }

    /// The DRAM bank of a line, of those of all channels.
    pub(super) fn bank(&self, number: u64) -> usize {
        self.slice(number) * self.banks as usize + in_turn(number / PIECE_LINES / self.channels, self.banks) as usize
    }

    /// The lines of a line's DRAM row: one each of consecutive pieces of its channel; a hash says which.
    pub(super) fn row(&self, number: u64) -> [u64; ROW_PIECES as usize] {
        let (of, channel, turn) = (self.channels, self.slice(number) as u64, number / PIECE_LINES / self.channels);
        let line = |turn: u64| mix(turn * of + channel) % PIECE_LINES;
        let which = number + line(turn);
        std::array::from_fn(|i| {
            let turn = turn / ROW_PIECES * ROW_PIECES + i as u64;
            let piece = turn * of + (channel + of - in_turn(turn * of, of)) % of;
            piece * PIECE_LINES + (which + line(turn)) % PIECE_LINES
        })
    }
}

/// Which of so many comes next: each once in turn, from a hashed start on.
fn in_turn(next: u64, of: u64) -> u64 {
    next.wrapping_add(mix(next / of)) % of
}
