//! DRAM: its banks, row activates and queueing delay.
//!
//! A row activate costs a fixed time (probe `pages`). Reads of a region that was accessed not long ago hit an open row. Each bank serves its
//! requests in order, so that the last of many lines arrives late (probe `waits`), and some lines are slow, as if their bank were refreshed
//! (probe `lateness`).

use super::super::constants::Constants;
use super::super::hash::{place, uniform};
use super::address::{PARTITION_LINES, ROW_PIECES};

pub(super) struct Dram {
    constants: Constants,
    /// When each bank is free, those of a channel together.
    banks: Vec<f64>,
    /// When all would be if their work were shared equally.
    pub(super) free: f64,
    /// Busy cycles within the last window, decaying.
    load: f64,
    open_rows: OpenRows,
    pub(super) busy_cycles: f64,
    /// How long the last request holds its bank.
    pub(super) held_cycles: f64,
}

impl Dram {
    pub(super) fn new(constants: &Constants, channels: usize) -> Self {
        Self {
            constants: *constants,
            banks: vec![0.0; channels * constants.dram_banks],
            free: 0.0,
            load: 0.0,
            open_rows: OpenRows::new(constants.dram_row_region_lines, constants.dram_open_lines),
            busy_cycles: 0.0,
            held_cycles: 0.0,
        }
    }

    /// Reads sectors of a line, and says when the transfer begins, queueing delay included.
    pub(super) fn read(&mut self, bank: usize, number: u64, sectors: u32, at: f64, now: f64) -> f64 {
        let cycles = self.read_cycles(number, sectors);
        let begins = self.occupy(bank, cycles, at, now);
        // The queues grow long before the full bandwidth is reached.
        let share = (self.load / self.constants.dram_load_window_cycles).min(self.constants.dram_max_load);
        begins + self.constants.dram_queue_cycles * share * share / (1.0 - share)
    }

    /// Occupies a bank, from `at` on, with what all banks together would take so many cycles for, and says when that begins.
    pub(super) fn occupy(&mut self, bank: usize, cycles: f64, at: f64, now: f64) -> f64 {
        let idle = (at - self.free).max(0.0);
        self.load = self.load * (-(idle + cycles) / self.constants.dram_load_window_cycles).exp() + cycles;
        self.busy_cycles += cycles;
        self.free = self.free.max(at) + cycles;
        self.held_cycles = cycles * self.banks.len() as f64;
        let free = &mut self.banks[bank];
        let begins = at.max(*free);
        // A request of another slice that arrives before `at` does not queue behind this one.
        *free = now.max(*free) + self.held_cycles;
        begins
    }

    /// Cycles to read sectors of one line: with a row activate unless its row is open.
    pub(super) fn read_cycles(&mut self, number: u64, sectors: u32) -> f64 {
        let transfer = self.transfer_cycles(sectors);
        let activate = self.constants.dram_read_activate_cycles;
        if self.open_rows.hit(number) { transfer } else { self.overlapped(transfer, activate) }
    }

    /// Cycles beyond the transfer to write so many sectors each to lines of so many pieces of a row, to both lines of some. There are none
    /// if all pieces of the row are written: the bandwidth that is reached includes that.
    pub(super) fn write_activate_cycles(&self, sectors: u32, pieces: u32, pairs: u32) -> f64 {
        let transfer = self.transfer_cycles(sectors);
        let more = self.overlapped(transfer, self.constants.dram_write_activate_cycles) - transfer;
        let (pieces, pairs) = (f64::from(pieces), f64::from(pairs));
        let single = pieces - pairs * (1.0 - self.constants.dram_row_pair_share);
        single / pieces * more * (ROW_PIECES as f64 - pieces) / (ROW_PIECES - 1) as f64
    }

    /// Cycles to transfer so many sectors of one line.
    pub(super) fn transfer_cycles(&self, sectors: u32) -> f64 {
        f64::from(sectors).max(self.constants.dram_min_sectors) * self.constants.dram_sector_cycles
    }

    /// Cycles of a row activate and a transfer, most of which overlap.
    fn overlapped(&self, one: f64, other: f64) -> f64 {
        one.max(other) + self.constants.dram_exposed_share * one.min(other)
    }

    /// Cycles by which a line arrives late: few do.
    pub(super) fn slow_line_cycles(&self, number: u64) -> f64 {
        let share = uniform(number / PARTITION_LINES) / self.constants.dram_slow_line_share;
        self.constants.dram_slow_line_cycles * (1.0 - share).max(0.0)
    }
}

/// Regions of DRAM whose rows are open, of so many lines each: a direct-mapped table.
struct OpenRows {
    lines: u64,
    regions: Vec<u64>,
}

impl OpenRows {
    fn new(lines: u64, open_lines: u64) -> Self {
        Self { lines, regions: vec![u64::MAX; (open_lines / lines) as usize] }
    }

    /// Whether the row of a line is open. It is from now on.
    fn hit(&mut self, number: u64) -> bool {
        let region = number / self.lines;
        let place = place(region, self.regions.len());
        std::mem::replace(&mut self.regions[place], region) == region
    }
}
