//! The CTA scheduler: which SM gets the next block, and when.
//!
//! One scheduler launches the blocks of the whole chip, at one rate in steady state; where many blocks end at a time it runs ahead of that
//! (probe `successors`). It is round-robin over the SMs that have room (probe `rounds`). Of a GPC's SMs the model numbers consecutive ones, whose TPCs belong to its CPCs in turn: blocks go to them in that
//! order by the probes `rounds` and `shares`.

use super::super::constants::Constants;
use super::events::key;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Launches blocks into slots: as many of each SM as it has room for.
pub(super) struct CtaScheduler {
    constants: Constants,
    slots: usize,
    /// Slots that become free, and when.
    pub(super) free: BinaryHeap<Reverse<(u64, usize)>>,
    /// Those of each SM that are, and how many that makes.
    room: Vec<Vec<usize>>,
    rooms: usize,
    last_sm: usize,
    /// When the next block can be launched, and when it could be without running ahead.
    next_launch: f64,
    steady_launch: f64,
    /// Blocks launched.
    pub(super) launched: u64,
}

impl CtaScheduler {
    /// That of so many SMs, all of whose slots are free.
    pub(super) fn new(sms: usize, slots: usize, constants: &Constants) -> Self {
        Self {
            constants: *constants,
            slots,
            free: (0..slots).map(|slot| Reverse((key(0.0), slot))).collect(),
            room: vec![Vec::new(); sms],
            rooms: 0,
            last_sm: sms - 1,
            next_launch: 0.0,
            steady_launch: 0.0,
            launched: 0,
        }
    }

    /// When the next block can be launched, as far as that is known.
    pub(super) fn next(&self) -> Option<f64> {
        if self.rooms > 0 {
            return Some(self.next_launch);
        }
        self.free.peek().map(|Reverse((since, _))| f64::from_bits(*since).max(self.next_launch))
    }

    /// Takes the slot for the next block: of the next SM that has room, after that of the last block.
    pub(super) fn take_slot(&mut self, now: f64) -> usize {
        let count = self.room.len();
        while let Some(Reverse((since, slot))) = self.free.peek().copied()
            && f64::from_bits(since) <= now
        {
            self.free.pop();
            self.room[slot % count].push(slot);
            self.rooms += 1;
        }
        let mut next = (1..=count).map(|further| (self.last_sm + further) % count);
        self.last_sm = next.find(|sm| !self.room[*sm].is_empty()).expect("one has room");
        self.rooms -= 1;
        self.room[self.last_sm].pop().expect("it has room")
    }

    /// A block is launched. The first wave is launched ahead without a bound.
    pub(super) fn launch(&mut self, now: f64) {
        if self.launched >= self.slots as u64 {
            self.steady_launch = self.steady_launch.max(now) + self.constants.cta_launch_cycles;
        }
        let ahead = self.constants.cta_run_ahead_blocks * self.constants.cta_launch_cycles;
        self.next_launch = (now + self.constants.cta_run_ahead_cycles).max(self.steady_launch - ahead);
        self.launched += 1;
    }

    /// A slot is free.
    pub(super) fn release(&mut self, slot: usize, now: f64) {
        self.free.push(Reverse((key(now), slot)));
    }
}

/// The CPC and the GPC of an SM.
pub(super) fn cpc_and_gpc(sm: usize, sms: usize, constants: &Constants) -> [usize; 2] {
    let (tpc, tpcs, gpcs) = (sm / 2, sms.div_ceil(2), constants.gpcs);
    let gpc = tpc * gpcs / tpcs;
    let first = (gpc * tpcs).div_ceil(gpcs);
    [gpc * constants.cpcs_per_gpc + (tpc - first) % constants.cpcs_per_gpc, gpc]
}
