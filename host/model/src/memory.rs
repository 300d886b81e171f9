//! The memory system behind the SMs: crossbar, L2 and DRAM, as reads, stores and atomics pass them.
//!
//! The L2 has partitions. A line of DRAM belongs to one; an SM reads through the one it is at, which caches what it gets from the far one
//! as well (probe `partitions`). DRAM is read two sectors at a time.

mod address;
mod atomics;
mod crossbar;
mod dram;
mod l2_cache;
mod l2_slices;
#[cfg(test)]
mod tests;
mod write_back;

use super::chip::Chip;
use super::constants::Constants;
use super::timeline::{Kind, Log, Track};
use super::traffic::{Busy, Traffic};
use address::AddressMap;
use atomics::{Atomics, OnLine};
use crossbar::Crossbar;
use dram::Dram;
use engine::coalesce::{LINE, SECTOR};
use engine::trace::Line;
use l2_cache::L2Cache;
use l2_slices::Slices;

/// The first of the lines that a flush writes. No buffer has them.
const FLUSH_LINES: u64 = 1 << 56;

/// All sectors of a line.
const ALL_SECTORS: u8 = 0b1111;

/// Crossbar, L2 and DRAM.
pub(super) struct Memory {
    constants: Constants,
    map: AddressMap,
    crossbar: Crossbar,
    /// The partitions of the L2.
    l2: Vec<L2Cache>,
    slices: Slices,
    atomics: Atomics,
    dram: Dram,
    /// When the request arrived that is served.
    now: f64,
    /// When it is served.
    served: f64,
    /// When the last atomic is done.
    atomics_done: f64,
    dirty_lines: usize,
    pub(super) traffic: Traffic,
    /// Sectors read from DRAM to complete partially written ones: some of those of the traffic.
    pub(super) completed_sectors: f64,
    /// What slices and channels do, while anybody looks.
    pub(super) log: Log,
}

impl Memory {
    /// That of a chip, with an empty L2.
    pub(super) fn new(chip: &Chip, constants: &Constants) -> Self {
        let (partitions, slices) = (chip.l2_partitions as usize, chip.dram_channels);
        let bytes = (constants.l2_capacity_share * (chip.l2_bytes / chip.l2_partitions) as f64) as u64;
        let map = AddressMap::new(chip, constants);
        let l2 = |_| L2Cache::new(bytes, constants.l2_ways, chip.l2_partitions, constants.l2_turn_share);
        Self {
            constants: *constants,
            atomics: Atomics::new(partitions * slices, slices, constants),
            map,
            crossbar: Crossbar::new(constants, partitions, slices),
            l2: (0..partitions).map(l2).collect(),
            slices: Slices::new(partitions, slices, constants.far_read_queues),
            dram: Dram::new(constants, chip.dram_channels),
            now: 0.0,
            served: 0.0,
            atomics_done: 0.0,
            dirty_lines: 0,
            traffic: Traffic::default(),
            completed_sectors: 0.0,
            log: Log::default(),
        }
    }

    /// The same, with the L2 full of the dirty lines of a flush, which wrote to as many lines as it has.
    pub(super) fn flushed(chip: &Chip, constants: &Constants) -> Self {
        let mut before = Self::new(chip, constants);
        for i in 0..chip.l2_bytes / LINE {
            let line = Line { number: FLUSH_LINES + i, bytes: [SECTOR as u8; 4] };
            before.write(i as usize, &line, ALL_SECTORS, 0.0);
        }
        let Self { l2, dirty_lines, .. } = before;
        Self { l2, dirty_lines, ..Self::new(chip, constants) }
    }

    /// See [`L2Cache::prefetch`].
    pub(super) fn prefetch(&self, number: u64) -> u32 {
        self.l2.iter().fold(0, |all, partition| all ^ partition.prefetch(number))
    }

    /// When all is done that was asked for.
    pub(super) fn done(&self) -> f64 {
        self.slices.free.max(self.dram.free).max(self.atomics_done)
    }

    /// How long its units were busy.
    pub(super) fn busy(&self) -> Busy {
        Busy { dram: self.dram.busy_cycles, l2: self.slices.busy_cycles, ..Busy::default() }
    }

    /// Sectors of the L2 that are dirty, about.
    pub(super) fn dirty_sectors(&self) -> f64 {
        4.0 * self.dirty_lines as f64
    }

    /// Reads sectors of a line for an SM of a CPC and a GPC, once the slice has a credit for the CPC. Says when the read is sent, and when it
    /// arrives.
    pub(super) fn read_for(&mut self, [cpc, gpc]: [usize; 2], number: u64, wanted: u8, at: f64) -> (f64, f64) {
        let (partition, slice) = (self.map.near(gpc), self.map.slice(number));
        let sent = self.crossbar.credits(cpc, partition, slice).available(at);
        let arrives = self.read(gpc, number, wanted, sent);
        self.take_credit(cpc, partition, slice, sent);
        (sent, arrives)
    }

    /// Writes to a line for an SM, once the slice has a credit for its CPC, and says when that is.
    pub(super) fn write_for(&mut self, [cpc, gpc]: [usize; 2], line: &Line, alone: u8, at: f64) -> f64 {
        if alone == 0 {
            self.write(gpc, line, alone, at);
            return at;
        }
        let (partition, slice) = (self.map.home(line.number), self.map.slice(line.number));
        let sent = self.crossbar.credits(cpc, partition, slice).available(at);
        self.write(gpc, line, alone, sent);
        self.take_credit(cpc, partition, slice, sent);
        sent
    }

    /// The request that was just sent holds a credit until it is served, if the L2 had to serve it.
    fn take_credit(&mut self, cpc: usize, partition: usize, slice: usize, sent: f64) {
        if self.served > sent {
            self.crossbar.credits(cpc, partition, slice).take(self.served);
        }
    }

    /// Has the slice of a line serve a request for so many of its sectors, for which all slices together take so many cycles at least, and
    /// says when that is done.
    fn serve_slice(&mut self, partition: usize, number: u64, sectors: u8, cycles: f64) -> f64 {
        let cycles = (f64::from(sectors.count_ones()) / self.constants.l2_sectors_per_cycle).max(cycles);
        let slice = self.map.slice(number);
        let done = self.slices.serve(partition, slice, cycles, self.now);
        let kind = Kind::Serve { units: sectors.count_ones() };
        self.log.push(Track::Slice { partition, slice }, kind, done - self.slices.alone(partition, cycles), done);
        done
    }

    /// Reads sectors of a line for a GPC, and says when they arrive.
    pub(super) fn read(&mut self, gpc: usize, number: u64, wanted: u8, sent: f64) -> f64 {
        let near = self.map.near(gpc);
        self.now = sent;
        self.served = self.serve_slice(near, number, wanted, 0.0);
        self.traffic.l2_read_sectors += f64::from(wanted.count_ones());
        let ready = self.fetch(near, number, wanted, self.served);
        let path = self.crossbar.gpc_path(self.map.slice(number), gpc, ready <= self.served);
        ready + self.constants.l2_latency + path
    }

    /// An atomic on sectors of a line, `waiting` lanes behind others, for an SM of a CPC once the slice has a credit for that. It is carried
    /// out once the one before on the line is done. Says when it is sent.
    pub(super) fn atomic(&mut self, cpc: usize, number: u64, touched: u8, waiting: f64, at: f64) -> f64 {
        let (home, slice) = (self.map.home(number), self.map.slice(number));
        let sent = self.crossbar.credits(cpc, home, slice).available(at);
        self.now = sent;
        let arrived = self.serve_slice(home, number, touched, 0.0);
        let missing = touched & !self.l2[home].peek(number).map_or(0, |line| line.valid);
        let [slice_of_all, adder] = self.map.atomic_slice_and_adder(number);
        let (sectors, missing) = (touched.count_ones(), missing.count_ones());
        let done = self.atomics.serve(OnLine { slice: slice_of_all, adder, sectors, missing, waiting }, arrived);
        self.traffic.l2_write_sectors += f64::from(sectors);
        // It holds its credit until the line is there.
        self.served = self.fetch(home, number, touched, arrived).max(done);
        if let Some(mut line) = self.l2[home].peek(number) {
            line.atomics_done = done.max(line.ready).max(line.atomics_done) + self.constants.l2_atomic_cycles;
            self.atomics_done = self.atomics_done.max(line.atomics_done);
        }
        self.mark_dirty(number, touched, self.constants.dirty_lines_on_partial_store);
        self.take_credit(cpc, home, slice, sent);
        sent
    }

    /// Writes to a line from a GPC: to some of its sectors `alone`, to others merged with an earlier store. Fully written lines that belong
    /// to the far partition are cached in the near one as well; partially written ones are taken not to be.
    fn write(&mut self, gpc: usize, line: &Line, alone: u8, sent: f64) {
        let partial = (0..4).filter(|sector| alone >> sector & 1 == 1 && line.bytes[*sector] < SECTOR as u8).count();
        let cycles = self.constants.l2_store_cycles + partial as f64 * self.constants.l2_partial_store_cycles;
        let [home, near] = [self.map.home(line.number), self.map.near(gpc)];
        self.now = sent;
        self.served = sent;
        if alone != 0 {
            self.served = self.serve_slice(home, line.number, alone, cycles);
        }
        self.traffic.l2_write_sectors += f64::from(alone.count_ones());
        let most = match (self.write_at(home, line), partial) {
            (false, _) => self.constants.dirty_lines_on_allocate,
            (true, 0) => self.constants.dirty_lines_on_full_store,
            (true, _) => self.constants.dirty_lines_on_partial_store,
        };
        if near != home && line.bytes.iter().all(|bytes| bytes % SECTOR as u8 == 0) {
            self.write_at(near, line);
        }
        self.mark_dirty(line.number, sectors(line), most);
    }

    /// Has a partition of the L2 cache what is written to a line, and says whether that hit.
    fn write_at(&mut self, partition: usize, line: &Line) -> bool {
        let now = self.now;
        let (mut cached, hit, evicted) = self.l2[partition].access(line.number);
        cached.stored(now);
        for sector in 0..4 {
            cached.written[sector] = cached.written[sector].saturating_add(line.bytes[sector]).min(SECTOR as u8);
            cached.valid |= u8::from(cached.written[sector] == SECTOR as u8) << sector;
        }
        drop(cached);
        self.evict(evicted);
        hit
    }

    /// Has a partition of the L2 cache sectors of a line, and says when they are ready.
    fn fetch(&mut self, partition: usize, number: u64, wanted: u8, at: f64) -> f64 {
        let home = self.map.home(number);
        let (mut ready, mut lacks) = (at, wanted);
        if partition != home {
            let (mut line, _, evicted) = self.l2[partition].access(number);
            (lacks, ready) = (sector_pairs(wanted & !line.valid) & !line.valid, line.ready.max(at));
            line.valid |= lacks;
            drop(line);
            self.evict(evicted);
        }
        if lacks != 0 {
            ready = self.fetch_home(partition, number, lacks, at);
            if let Some(mut line) = self.l2[partition].peek(number) {
                line.ready = ready;
            }
        }
        if partition == home {
            return ready;
        }
        self.slices.complete_far_read(partition, self.map.slice(number), number, ready)
    }

    /// Has the home partition of a line cache sectors that `partition` asks it for, and says when they are ready.
    fn fetch_home(&mut self, partition: usize, number: u64, wanted: u8, at: f64) -> f64 {
        let home = self.map.home(number);
        let (mut line, _, evicted) = self.l2[home].access(number);
        let lacks = sector_pairs(wanted & !line.valid) & !line.valid;
        line.valid |= lacks;
        let mut ready = line.ready.max(at);
        drop(line);
        if lacks != 0 {
            self.traffic.dram_read_sectors += f64::from(lacks.count_ones());
            let bank = self.map.bank(number);
            let begins = self.dram.read(bank, number, lacks.count_ones(), at, self.now);
            let kind = Kind::Serve { units: lacks.count_ones() };
            self.log.push(
                Track::Channel(bank / self.constants.dram_banks),
                kind,
                begins,
                begins + self.dram.held_cycles,
            );
            let latency = self.constants.dram_latency * self.distance(partition, home);
            ready = begins + latency + self.dram.slow_line_cycles(number);
            if let Some(mut line) = self.l2[home].peek(number) {
                line.ready = ready;
            }
        }
        self.evict(evicted);
        ready
    }

    /// The DRAM latency of a partition's lines from a partition, relative to the mean: its own DRAM is near, the other far.
    fn distance(&self, partition: usize, home: usize) -> f64 {
        let share = if self.l2.len() > 1 { self.constants.far_partition_share } else { 0.0 };
        1.0 + if home == partition { -share } else { share }
    }
}

/// The sectors of a line that are asked for.
pub(super) fn sectors(line: &Line) -> u8 {
    (0..4).filter(|sector| line.bytes[*sector] != 0).fold(0, |mask, sector| mask | 1 << sector)
}

/// The pairs of sectors that any of these belongs to: DRAM is read 64 bytes at a time.
fn sector_pairs(sectors: u8) -> u8 {
    let either = (sectors | sectors >> 1) & 0b0101;
    either | either << 1
}
