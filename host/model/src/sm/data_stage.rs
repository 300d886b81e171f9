//! The L1's data stage: hits, fills and shared memory, two requests at a time.
//!
//! A request occupies one of two slots for two cycles a wavefront (probes `conflicts` and `streams`). Fills go before hits (probe
//! `returns`); of fills the load that was looked up first is served first (probe `leaders`). Stores occupy both slots.

use super::super::constants::Constants;
use std::collections::{BTreeMap, VecDeque};

/// Requests that the data stage serves at a time.
const SLOTS: usize = 2;

/// A request for the data stage. So many cycles after it is served the warp has what it loads.
pub(crate) struct DataRequest {
    pub(crate) slot: usize,
    pub(crate) warp: usize,
    /// The number of the load in the block's trace, if it is one.
    pub(crate) load: Option<u32>,
    pub(crate) wavefronts: f64,
    pub(crate) latency: f64,
}

/// An entry of the pending-request table: what a load takes up until its lines are filled and the data stage has served it.
#[derive(Clone, Copy, Default)]
pub(crate) struct PendingEntry {
    /// How many loads that missed were looked up before.
    pub(super) order: u64,
    pub(super) tag_wavefronts: u32,
    /// The lines that it pins in the L1, as bits.
    pub(super) pinned: u32,
}

pub(crate) struct DataStage {
    queue_entries: usize,
    /// When each slot is free.
    slots: [f64; SLOTS],
    /// Requests that the LSU has served: hits and shared memory.
    hits: VecDeque<DataRequest>,
    /// Loads whose lines are filled, in the order in which they were looked up.
    fills: BTreeMap<u64, (DataRequest, PendingEntry)>,
    /// When the next request is served.
    pub(crate) next_event: f64,
}

impl DataStage {
    pub(super) fn new(constants: &Constants) -> Self {
        Self {
            queue_entries: constants.data_stage_queue,
            slots: [0.0; SLOTS],
            hits: VecDeque::new(),
            fills: BTreeMap::new(),
            next_event: f64::INFINITY,
        }
    }

    /// Whether the LSU stalls until a request is served.
    pub(crate) fn is_full(&self) -> bool {
        self.hits.len() > self.queue_entries
    }

    /// Queues a hit, or a request of shared memory.
    pub(crate) fn add_hit(&mut self, request: DataRequest) {
        self.hits.push_back(request);
    }

    /// Queues a load all of whose lines are filled.
    pub(crate) fn add_fill(&mut self, request: DataRequest, entry: PendingEntry) {
        self.fills.insert(entry.order, (request, entry));
    }

    /// Occupies both slots for so many cycles, and says from when on.
    pub(super) fn occupy(&mut self, now: f64, cycles: f64) -> [f64; SLOTS] {
        let starts = self.slots.map(|free| free.max(now));
        self.slots = starts.map(|start| start + cycles);
        starts
    }

    /// When a slot is free for the next request, after `now`.
    pub(crate) fn next_free(&self, now: f64) -> f64 {
        let waits = !self.hits.is_empty() || !self.fills.is_empty();
        let free = self.slots.iter().copied().filter(|free| waits && *free > now);
        free.fold(f64::INFINITY, f64::min)
    }

    /// Serves the next request, if a slot is free: says when it is served, and the entry that a fill gives back.
    pub(super) fn serve(&mut self, now: f64) -> Option<(DataRequest, f64, Option<PendingEntry>)> {
        let slot = self.slots.iter().position(|free| *free <= now)?;
        let (request, entry) = match self.fills.pop_first() {
            Some((_, (fill, entry))) => (fill, Some(entry)),
            None => (self.hits.pop_front()?, None),
        };
        let served = now + SLOTS as f64 * request.wavefronts;
        self.slots[slot] = served;
        Some((request, served, entry))
    }
}
