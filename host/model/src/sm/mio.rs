//! Sub-partitions (SMSPs), their MIO queues, and the LSU's arbitration among them.
//!
//! Each sub-partition has issue slots and an MIO queue of some ten requests (probe `backlog`), which the warps of the oldest block enter
//! first (probe `queues`). From there requests are issued to the LSU's own queue of 24, of the sub-partitions in turn; the LSU serves that in
//! order (probe `arrivals`).

use super::super::constants::Constants;
use engine::trace::TAG_BANKS;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Sub-partitions of an SM.
pub(crate) const SUBPARTITIONS: usize = 4;

/// A stalled warp, by the age of its block and its arrival: block's slot and warp.
type Stalled = Reverse<(u64, u64, usize, usize)>;

/// How far the lookup of a load has come.
#[derive(Clone, Copy, Default)]
pub(super) struct TagProgress {
    /// The line that each tag bank looks up next, if it is that bank's.
    pub(super) next: [usize; TAG_BANKS],
    /// Lines looked up, and those of them that did not hit.
    pub(super) looked_up: usize,
    pub(super) misses: usize,
    /// When the last of these is filled.
    pub(super) filled: f64,
    pub(super) tag_wavefronts: u32,
    /// The lines that it pins, as bits.
    pub(super) pinned: u32,
}

/// A request in an MIO queue.
pub(crate) struct MioRequest {
    pub(crate) slot: usize,
    pub(crate) warp: usize,
    /// Its index among the warp's requests.
    pub(crate) index: usize,
    pub(super) progress: TagProgress,
    /// How many were issued to the LSU before it, once it has been.
    order: u64,
}

impl MioRequest {
    /// That of a warp, not issued to the LSU yet.
    pub(crate) fn new(slot: usize, warp: usize, index: usize) -> Self {
        Self { slot, warp, index, progress: TagProgress::default(), order: 0 }
    }
}

/// A sub-partition: issue slots and an MIO queue.
pub(crate) struct SubPartition {
    entries: usize,
    pub(crate) issue_free: f64,
    /// The MIO queue. The first of its requests are in the LSU's queue already.
    pub(crate) queue: VecDeque<MioRequest>,
    in_lsu: usize,
    /// Whether the first request waits until a line of the L1 is unpinned.
    pub(super) awaits_line: bool,
    /// Warps that stall on an issue slot (not selected), and those that stall on a queue entry as well (MIO throttle).
    pub(crate) not_selected: BinaryHeap<Stalled>,
    pub(crate) mio_throttled: BinaryHeap<Stalled>,
    /// When it selects a warp next.
    pub(crate) next_select: f64,
}

impl SubPartition {
    fn new(constants: &Constants) -> Self {
        let [not_selected, mio_throttled] = [(); 2].map(|()| BinaryHeap::new());
        let entries = constants.mio_queue_entries;
        Self {
            entries,
            issue_free: 0.0,
            queue: VecDeque::with_capacity(entries + constants.lsu_queue_entries),
            in_lsu: 0,
            awaits_line: false,
            not_selected,
            mio_throttled,
            next_select: f64::INFINITY,
        }
    }

    /// Whether the LSU can serve its first request.
    fn is_ready(&self) -> bool {
        self.in_lsu > 0 && !self.awaits_line
    }

    fn is_full(&self) -> bool {
        self.queue.len() - self.in_lsu >= self.entries
    }

    /// Whether a warp stalls before its next instruction, which goes through the MIO or not.
    pub(crate) fn stalls(&self, uses_mio: bool, now: f64) -> bool {
        self.issue_free > now || !self.not_selected.is_empty() || self.is_throttled(uses_mio)
    }

    /// Whether it stalls on an entry of the queue.
    pub(crate) fn is_throttled(&self, uses_mio: bool) -> bool {
        uses_mio && (self.is_full() || !self.mio_throttled.is_empty())
    }

    /// Selects the warp that issues now: its block's slot, and itself.
    pub(crate) fn select(&mut self, now: f64) -> Option<(usize, usize)> {
        if self.issue_free > now {
            return None;
        }
        let full = self.is_full();
        let throttled = self.mio_throttled.peek().filter(|_| !full);
        // What is reversed is the greater the older it is.
        let oldest =
            if throttled > self.not_selected.peek() { &mut self.mio_throttled } else { &mut self.not_selected };
        oldest.pop().map(|Reverse((_, _, slot, warp))| (slot, warp))
    }

    /// When a stalled warp can issue, as far as that is known.
    pub(crate) fn can_select(&self) -> Option<f64> {
        let throttled = !self.mio_throttled.is_empty() && !self.is_full();
        (throttled || !self.not_selected.is_empty()).then_some(self.issue_free)
    }
}

/// The sub-partitions, and the LSU's queue.
pub(crate) struct Mio {
    pub(crate) subpartitions: [SubPartition; SUBPARTITIONS],
    lsu_entries: usize,
    /// Requests issued to the LSU so far, those of them in its queue, and the sub-partition of the last.
    issued: u64,
    in_lsu: usize,
    last: usize,
}

impl Mio {
    pub(super) fn new(constants: &Constants) -> Self {
        Self {
            subpartitions: std::array::from_fn(|_| SubPartition::new(constants)),
            lsu_entries: constants.lsu_queue_entries,
            issued: 0,
            in_lsu: 0,
            last: 0,
        }
    }

    /// Whether the LSU has a request that it can serve.
    pub(crate) fn is_ready(&self) -> bool {
        self.subpartitions.iter().any(SubPartition::is_ready)
    }

    /// The sub-partition that the LSU serves next: of those whose first request it can serve, that whose was issued first.
    pub(crate) fn arbitrate(&self) -> Option<usize> {
        let ready = (0..SUBPARTITIONS).filter(|subpartition| self.subpartitions[*subpartition].is_ready());
        ready.min_by_key(|subpartition| self.subpartitions[*subpartition].queue[0].order)
    }

    /// Adds a request to the MIO queue of a sub-partition.
    pub(crate) fn add(&mut self, subpartition: usize, request: MioRequest) {
        self.subpartitions[subpartition].queue.push_back(request);
        self.issue_to_lsu();
    }

    /// Removes the first request of a sub-partition.
    pub(crate) fn remove(&mut self, subpartition: usize) {
        self.subpartitions[subpartition].queue.pop_front();
        self.subpartitions[subpartition].in_lsu -= 1;
        self.in_lsu -= 1;
        self.issue_to_lsu();
    }

    /// Issues requests to the LSU as long as it has room, of the sub-partitions in turn.
    fn issue_to_lsu(&mut self) {
        while self.in_lsu < self.lsu_entries {
            let mut next = (1..=SUBPARTITIONS).map(|further| (self.last + further) % SUBPARTITIONS);
            let Some(turn) = next.find(|turn| {
                let SubPartition { queue, in_lsu, .. } = &self.subpartitions[*turn];
                queue.len() > *in_lsu
            }) else {
                return;
            };
            let SubPartition { queue, in_lsu, .. } = &mut self.subpartitions[turn];
            self.issued += 1;
            queue[*in_lsu].order = self.issued;
            *in_lsu += 1;
            self.in_lsu += 1;
            self.last = turn;
        }
    }
}
