//! Replays the requests of blocks on the SMs, caches and DRAM of a chip, event by event.
//!
//! Every unit serves its requests in order, at its own rate: issue slots, LSU, data stage, port, L2 slices, DRAM banks. A warp issues when
//! what it depends on has arrived.

mod block;
mod cta_scheduler;
mod events;
mod issue;
mod memory_path;
mod recording;
#[cfg(test)]
mod tests;

use super::chip::Chip;
use super::constants::Constants;
use super::hash::uniform;
use super::memory::Memory;
use super::sm::{SUBPARTITIONS, Sm};
use super::timeline::{Recorder, Timeline};
use super::traffic::{Busy, Traffic};
use block::Block;
use cta_scheduler::{CtaScheduler, cpc_and_gpc};
use engine::trace::Trace;
use events::{Event, EventQueue};
use std::collections::VecDeque;

/// How far a replay had come at some moment, all slots being taken.
#[derive(Clone, Copy)]
pub(super) struct Snapshot {
    /// Blocks launched, or requests served.
    pub(super) done: u64,
    /// Loads of global memory served, and stores and atomics.
    pub(super) loads: u64,
    pub(super) stores: u64,
    /// When, in cycles.
    pub(super) cycles: f64,
    pub(super) traffic: Traffic,
    /// Sectors read from DRAM to complete partially written ones: some of those of the traffic.
    pub(super) completed_sectors: f64,
    /// Sectors of the L2 that are dirty, about.
    pub(super) dirty_sectors: f64,
    pub(super) busy: Busy,
}

/// Requests between two snapshots.
const SNAPSHOT_REQUESTS: u64 = 256;

/// A chip at work on one launch.
pub(super) struct Machine {
    constants: Constants,
    sms: Vec<Sm>,
    memory: Memory,
    scheduler: CtaScheduler,
    /// Blocks that are not launched yet.
    pending: VecDeque<Trace>,
    slots: Vec<Option<Block>>,
    events: EventQueue,
    /// Lines and requests to replay at most, and those replayed.
    budget: u64,
    replayed: u64,
    /// When the last warp exited.
    ended: f64,
    /// Requests served, and the loads of global memory, and the stores and atomics, among them.
    pub(super) requests: u64,
    loads: u64,
    stores: u64,
    /// One for each wave of blocks, when the last of it was launched.
    pub(super) waves: Vec<Snapshot>,
    /// One for every so many requests.
    pub(super) snapshots: Vec<Snapshot>,
    /// What is kept of one SM and wave, if anybody asked for it.
    recorder: Option<Box<Recorder>>,
}

impl Machine {
    /// An idle `chip` whose SMs hold so many blocks at a time and have so much L1.
    pub(super) fn new(chip: &Chip, blocks_per_sm: u64, l1_bytes: u64, budget: u64) -> Self {
        let constants = Constants::of(chip);
        let sms = chip.sm_count as usize;
        let slots = sms * blocks_per_sm as usize;
        let sm = |number| Sm::new(cpc_and_gpc(number, sms, &constants), l1_bytes, &constants);
        Self {
            constants,
            sms: (0..sms).map(sm).collect(),
            memory: Memory::new(chip, &constants),
            scheduler: CtaScheduler::new(sms, slots, &constants),
            pending: VecDeque::new(),
            slots: (0..slots).map(|_| None).collect(),
            events: EventQueue::default(),
            budget,
            replayed: 0,
            ended: 0.0,
            requests: 0,
            loads: 0,
            stores: 0,
            waves: Vec::new(),
            snapshots: Vec::new(),
            recorder: None,
        }
    }

    /// Keeps a timeline.
    pub(super) fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(Box::new(recorder));
    }

    /// The timeline that was kept.
    pub(super) fn timeline(&mut self) -> Option<Timeline> {
        let waves = self.scheduler.launched.div_ceil(self.slots.len() as u64);
        self.recorder.take().map(|recorder| recorder.finish(waves))
    }

    /// Fills the L2 with the dirty lines of a flush.
    pub(super) fn flush_l2(&mut self, chip: &Chip) {
        self.memory = Memory::flushed(chip, &self.constants);
    }

    /// Takes the next block, and replays as far as the blocks that it was given allow.
    pub(super) fn take(&mut self, trace: Trace) {
        if self.replayed < self.budget {
            self.pending.push_back(trace);
            self.replay(false);
        }
    }

    /// No other block comes: replays to the end, or to the end of the budget.
    pub(super) fn finish(&mut self) -> Snapshot {
        self.replay(true);
        self.snapshot(self.requests, self.ended.max(self.memory.done()))
    }

    /// How far it has come, with so much done.
    pub(super) fn snapshot(&self, done: u64, cycles: f64) -> Snapshot {
        let mut busy = self.memory.busy();
        // The busiest one is what a launch of few blocks waits for.
        for sm in &self.sms {
            busy.lsu_global = busy.lsu_global.max(sm.global_cycles);
            busy.lsu_shared = busy.lsu_shared.max(sm.shared_cycles);
            busy.issue = busy.issue.max(sm.issue_cycles);
        }
        let Self { loads, stores, memory, .. } = self;
        Snapshot {
            done,
            loads: *loads,
            stores: *stores,
            cycles,
            traffic: memory.traffic,
            completed_sectors: memory.completed_sectors,
            dirty_sectors: memory.dirty_sectors(),
            busy,
        }
    }

    fn replay(&mut self, no_more: bool) {
        while self.replayed < self.budget {
            // What is launched before anything else happens is launched first.
            let next = self.events.next();
            if let Some(at) = self.scheduler.next()
                && next.is_none_or(|next| at <= next)
            {
                if let Some(trace) = self.pending.pop_front() {
                    let slot = self.scheduler.take_slot(at);
                    self.launch(trace, slot, at, self.constants.launch_skew_cycles);
                    continue;
                }
                if !no_more {
                    return;
                }
            }
            if self.happen().is_none() {
                return;
            }
        }
    }

    /// Has the next event happen, and says when.
    fn happen(&mut self) -> Option<f64> {
        let (now, event) = self.events.pop()?;
        match event {
            Event::Warp { slot, warp } => self.issue(now, slot, warp, false),
            Event::Select { subpartition } => self.select(now, subpartition),
            Event::Lsu { sm } => self.serve_lsu(now, sm),
            Event::Fill { slot, warp, number } => self.fill(now, slot, warp, number),
            Event::DataStage { sm } => self.data_stage(now, sm),
        }
        Some(now)
    }

    /// Launches a block in a slot. Warps of the first wave start late, by up to so many cycles.
    fn launch(&mut self, trace: Trace, slot: usize, now: f64, skew: f64) {
        let (number, age) = (slot % self.sms.len(), self.scheduler.launched);
        self.scheduler.launch(now);
        let sm = &mut self.sms[number];
        let launched = now.max(sm.next_launch);
        let block = Block::new(trace, number, age);
        let warps = block.warps.len();
        sm.next_launch = launched + self.constants.warp_launch_cycles * warps as f64;
        let start = launched + self.constants.block_start_cycles;
        let slots = self.slots.len() as u64;
        if (age + 1).is_multiple_of(slots) {
            self.waves.push(self.snapshot(age + 1, start));
        }
        self.slots[slot] = Some(block);
        if let Some(recorder) = &mut self.recorder {
            recorder.launch(slot, number, [age, slots], warps, launched);
        }
        let skew = if age < slots { skew } else { 0.0 };
        for warp in 0..warps {
            self.events.schedule(start + skew * uniform(age << 8 | warp as u64), Event::Warp { slot, warp });
        }
    }
}
