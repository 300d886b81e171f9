//! Dirty lines of the L2: which stay, when they are written back, and what that costs the DRAM.
//!
//! About half of a set's lines stay dirty (probe `in_step`). Of lines with partially written sectors only two do (probe `write_backs`);
//! before one is written back, the L2 reads the missing bytes of all its sectors from DRAM, at once. A row activate serves all dirty
//! lines of the row (probe `pages`).

use super::super::timeline::{Kind, Track};
use super::Memory;
use super::address::PIECE_LINES;
use super::l2_cache::{Bounded, Line};

impl Memory {
    /// Marks sectors of a line as dirty. If its set has too many partial lines then, or more than `most` dirty ones, the least recently used
    /// of these is written back.
    pub(super) fn mark_dirty(&mut self, number: u64, touched: u8, most: usize) {
        let home = self.map.home(number);
        let Some(mut line) = self.l2[home].peek(number) else { return };
        self.dirty_lines += usize::from(line.dirty == 0);
        line.dirty |= touched;
        let is_partial = line.is_partial();
        drop(line);
        let partial_lines = self.constants.l2_partial_lines;
        if is_partial && let Some(oldest) = self.l2[home].beyond(number, partial_lines, Bounded::Partial) {
            self.write_back(home, oldest);
        }
        if let Some(oldest) = self.l2[home].beyond(number, most, Bounded::Dirty) {
            self.write_back(home, oldest);
        }
    }

    /// Writes a dirty line back. It stays cached.
    fn write_back(&mut self, home: usize, number: u64) {
        let Some(mut line) = self.l2[home].peek(number) else { return };
        let written = *line;
        line.row_activated = false;
        line.valid |= line.dirty;
        line.dirty = 0;
        drop(line);
        self.evict(Some(written));
    }

    /// Writes the dirty sectors of an evicted line to DRAM. Partially written ones are completed first.
    pub(super) fn evict(&mut self, evicted: Option<Line>) {
        let Some(line) = evicted.filter(|line| line.dirty != 0) else { return };
        self.dirty_lines -= 1;
        let (dirty, partial) = (line.dirty.count_ones(), (line.dirty & !line.valid).count_ones());
        self.traffic.dram_read_sectors += f64::from(partial);
        self.traffic.dram_write_sectors += f64::from(dirty);
        self.completed_sectors += f64::from(partial);
        let home = self.map.home(line.number);
        // All that the line lacks at once.
        let completion = if partial != 0 { self.constants.l2_completion_cycles } else { 0.0 };
        self.serve_slice(home, line.number, 0, completion);
        let reading = if partial != 0 { self.dram.read_cycles(line.number, partial) } else { 0.0 };
        let activate = if line.row_activated { 0.0 } else { self.activate_row(&line) };
        let cycles = reading + self.dram.transfer_cycles(dirty) + activate;
        let bank = self.map.bank(line.number);
        let begins = self.dram.occupy(bank, cycles, self.now, self.now);
        let channel = Track::Channel(bank / self.constants.dram_banks);
        self.log.push(channel, Kind::WriteBack, begins, begins + self.dram.held_cycles);
    }

    /// Activates the row of a line for writing, and says how many cycles that takes: once for all lines of the row that are dirty now, and
    /// for the other lines of their pieces that were stored to together with them.
    fn activate_row(&mut self, evicted: &Line) -> f64 {
        let (mut pieces, mut pairs) = (0, 0);
        for number in self.map.row(evicted.number) {
            let line = if number == evicted.number { Some(*evicted) } else { self.share_activate(number, |_| true) };
            let Some(line) = line else { continue };
            let other = number ^ (PIECE_LINES - 1);
            pieces += 1;
            pairs += u32::from(self.share_activate(other, |other| other.is_stored_with(&line)).is_some());
        }
        self.dram.write_activate_cycles(evicted.dirty.count_ones(), pieces, pairs)
    }

    /// Has a row activate serve another line, if that is dirty and `such`, and returns it.
    fn share_activate(&mut self, number: u64, such: impl Fn(&Line) -> bool) -> Option<Line> {
        let home = self.map.home(number);
        let mut line = self.l2[home].peek(number)?;
        let shares = line.dirty != 0 && !line.row_activated && such(&line);
        line.row_activated |= shares;
        shares.then_some(*line)
    }
}
