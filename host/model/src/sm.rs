//! An SM: four sub-partitions, and the LSU, L1 and crossbar port that they share.

mod data_stage;
mod l1;
mod mio;
mod shared_atomics;
mod tag_stage;

pub(super) use data_stage::{DataRequest, DataStage, PendingEntry};
pub(super) use mio::{Mio, MioRequest, SUBPARTITIONS};

use super::constants::Constants;
use super::memory::{Memory, sectors};
use super::timeline::{Kind, Log, Track};
use engine::trace::{Line, Lines, Traced, What};
use l1::L1;
use std::collections::VecDeque;
use tag_stage::TagStage;

/// What has become of a request.
pub(super) enum Served {
    /// The warp does not wait for anything.
    Done,
    /// The data stage has so many wavefronts to serve: of a load that hit, or of shared memory.
    Hit { wavefronts: f64, latency: f64, is_load: bool },
    /// All lines are filled then; after that the data stage has so many wavefronts to serve.
    Miss { filled: f64, wavefronts: f64, entry: PendingEntry },
}

/// An SM.
pub(super) struct Sm {
    constants: Constants,
    pub(super) cpc: usize,
    gpc: usize,
    pub(super) mio: Mio,
    /// When the LSU serves a request next, and when it is free.
    pub(super) lsu_event: f64,
    pub(super) lsu_free: f64,
    tags: TagStage,
    l1: L1,
    pub(super) data_stage: DataStage,
    /// The lines stored to last, and their sectors on the way to the L2.
    store_coalescer: VecDeque<(u64, u8)>,
    /// When the port to the crossbar is free.
    pub(super) port_free: f64,
    /// When the next block can be launched.
    pub(super) next_launch: f64,
    /// When the last warp that arrived at a barrier is there.
    pub(super) barrier_free: f64,
    /// Cycles that its units were busy.
    pub(super) issue_cycles: f64,
    pub(super) global_cycles: f64,
    pub(super) shared_cycles: f64,
}

impl Sm {
    /// An idle one of a CPC and a GPC, with so much L1.
    pub(super) fn new([cpc, gpc]: [usize; 2], l1_bytes: u64, constants: &Constants) -> Self {
        let [lsu_free, port_free, next_launch, barrier_free, issue_cycles, global_cycles, shared_cycles] = [0.0; 7];
        Self {
            constants: *constants,
            cpc,
            gpc,
            mio: Mio::new(constants),
            lsu_event: f64::INFINITY,
            lsu_free,
            tags: TagStage::default(),
            l1: L1::new(l1_bytes, constants),
            data_stage: DataStage::new(constants),
            store_coalescer: VecDeque::with_capacity(constants.store_coalescer_lines),
            port_free,
            next_launch,
            barrier_free,
            issue_cycles,
            global_cycles,
            shared_cycles,
        }
    }

    /// Reads constants, and says when the warp has them. The first address comes with the instruction; each of several is replayed.
    pub(super) fn read_constant(&mut self, request: Traced, issued: f64) -> f64 {
        if request.wavefronts == 1 {
            return issued;
        }
        let done = issued + f64::from(request.wavefronts) * self.constants.constant_replay_cycles;
        let subpartitions = &mut self.mio.subpartitions;
        let issue_free = subpartitions.iter().fold(0.0, |latest: f64, other| latest.max(other.issue_free));
        self.issue_cycles += (done - issue_free).max(0.0);
        subpartitions.iter_mut().for_each(|other| other.issue_free = other.issue_free.max(done));
        done + self.constants.shared_latency
    }

    /// Has the data stage serve its next request, if it can, and says when that is done.
    pub(super) fn serve_data_stage(
        &mut self,
        now: f64,
        lines_of: impl Fn(&DataRequest) -> Lines,
    ) -> Option<(DataRequest, f64)> {
        let (request, served, entry) = self.data_stage.serve(now)?;
        if let Some(entry) = entry {
            self.release(entry, &lines_of(&request));
        }
        Some((request, served))
    }

    /// Has the LSU serve the first request of a sub-partition, which touches `lines`, as far as one turn goes. A store merges with one that
    /// the warp has just made to lines `before`.
    pub(super) fn serve(
        &mut self,
        subpartition: usize,
        request: Traced,
        lines: &[Line],
        before: &[Line],
        now: f64,
        memory: &mut Memory,
    ) -> Option<Served> {
        if lines.len() > 1 {
            let seen = lines.iter().map(|line| self.l1.prefetch(line.number) ^ memory.prefetch(line.number));
            std::hint::black_box(seen.fold(0, |all, one| all ^ one));
        }
        match request.what {
            What::SharedLoad | What::SharedStore => {
                let wavefronts = f64::from(request.wavefronts);
                memory.traffic.shared_wavefronts += wavefronts;
                // Without an active lane it takes as long as one wavefront.
                let wavefronts = wavefronts.max(1.0);
                self.shared_cycles += wavefronts;
                self.lsu_free = now + wavefronts;
                let is_load = request.what == What::SharedLoad;
                // The two cycles of a wavefront are in the latency.
                Some(Served::Hit { wavefronts, latency: self.constants.shared_latency - 2.0, is_load })
            }
            What::SharedAtomic { words } => {
                memory.traffic.shared_wavefronts += f64::from(request.wavefronts);
                let cycles = shared_atomics::cycles(request.wavefronts, words, &self.constants);
                self.shared_cycles += cycles;
                self.lsu_free = now + cycles;
                Some(Served::Hit { wavefronts: cycles, latency: self.constants.shared_latency - 2.0, is_load: false })
            }
            What::Load { past_l1 } => self.look_up_load(subpartition, request, lines, past_l1, now, memory),
            What::Store | What::Atomic { .. } => {
                if let What::Atomic { waiting } = request.what {
                    let waiting = f64::from(waiting) / lines.len() as f64;
                    for line in lines {
                        let at = now.max(self.port_free);
                        let sent = memory.atomic(self.cpc, line.number, sectors(line), waiting, at);
                        self.hold_port(sent, sectors(line), &mut memory.log);
                    }
                } else {
                    self.store(lines, before, now, memory);
                }
                let cycles = f64::from(request.wavefronts).max(lines.len() as f64);
                self.global_cycles += cycles;
                self.lsu_free = now + cycles;
                for start in self.data_stage.occupy(now, cycles) {
                    memory.log.push(Track::DataStage, Kind::Serve { units: cycles as u32 }, start, start + cycles);
                }
                Some(Served::Done)
            }
            What::Wait | What::Constant | What::Instructions => Some(Served::Done),
        }
    }

    /// Stores to `lines`. Sectors that the warp has just stored to `before`, or that the coalescer has on the way, go to the L2 with those.
    fn store(&mut self, lines: &[Line], before: &[Line], start: f64, memory: &mut Memory) {
        for line in lines {
            let merged = before.iter().find(|other| other.number == line.number).map_or(0, sectors);
            let coalescer = &mut self.store_coalescer;
            let stored = match coalescer.iter_mut().find(|(number, _)| *number == line.number) {
                Some((_, stored)) => stored,
                None => {
                    coalescer.truncate(self.constants.store_coalescer_lines - 1);
                    coalescer.push_front((line.number, 0));
                    &mut coalescer[0].1
                }
            };
            let alone = sectors(line) & !merged & !*stored;
            *stored |= sectors(line);
            let is_cached = self.l1.peek(line.number).is_some();
            if is_cached || self.l1.make_room(line.number) {
                self.l1.access(line.number);
            }
            let sent = memory.write_for([self.cpc, self.gpc], line, alone, start.max(self.port_free));
            self.hold_port(sent, alone, &mut memory.log);
        }
    }

    /// Reads sectors of a line, and says when they arrive.
    fn read(&mut self, number: u64, wanted: u8, at: f64, memory: &mut Memory) -> f64 {
        let at = at.max(self.port_free);
        let (sent, arrives) = memory.read_for([self.cpc, self.gpc], number, wanted, at);
        self.hold_port(sent, wanted, &mut memory.log);
        arrives
    }

    /// Holds the port from when sectors of a line, or a request for them, are sent until they have passed.
    fn hold_port(&mut self, sent: f64, sectors: u8, log: &mut Log) {
        self.port_free = sent + f64::from(sectors.count_ones()) / self.constants.sm_port_sectors;
        log.push(Track::Port, Kind::Serve { units: sectors.count_ones() }, sent, self.port_free);
    }
}

#[cfg(test)]
mod tests {
    use super::super::chip::Chip;
    use super::*;
    use engine::trace::{Flow, LinesEnd};

    #[test]
    fn hits_and_misses_of_a_load_have_data_wavefronts_of_their_own() {
        let chip = Chip::load("h200").expect("is built in");
        let constants = Constants::of(&chip);
        let mut memory = Memory::new(&chip, &constants);
        let mut sm = Sm::new([0, 0], 1 << 16, &constants);
        let (load, at) = (What::Load { past_l1: false }, crate::pc());
        let request = Traced {
            warp: 0,
            what: load,
            at,
            wavefronts: 1,
            miss_wavefronts: 1,
            tag_wavefronts: 1,
            lines_end: LinesEnd::default(),
            flow: Flow::default(),
        };
        let lines = [3, 4].map(|number| Line { number, bytes: [32; 4] });
        let mut wavefronts = |lines: &[Line], at: f64| {
            let before = memory.traffic.l1_data_wavefronts;
            sm.mio.subpartitions[0].queue.clear();
            sm.mio.add(0, MioRequest::new(0, 0, 0));
            assert!(sm.serve(0, request, lines, &[], at, &mut memory).is_some());
            memory.traffic.l1_data_wavefronts - before
        };
        assert_eq!(wavefronts(&lines[..1], 0.0), 1.0, "a miss");
        assert_eq!(wavefronts(&lines, 10.0), 1.0, "a hit on a miss and a miss");
        assert_eq!(wavefronts(&lines, 1e5), 1.0, "two hits");
        let lines = [4, 5].map(|number| Line { number, bytes: [32; 4] });
        assert_eq!(wavefronts(&lines, 2e5), 2.0, "a hit and a miss");
    }
}
