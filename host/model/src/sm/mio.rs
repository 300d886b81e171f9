//! Sub-partitions (SMSPs), their MIO queues, and the LSU's arbitration among them.
//!
//! Each sub-partition has issue slots and an MIO queue of some ten requests (probe `backlog`), which the warps of the oldest block enter
//! first (probe `queues`). From there requests are issued to the LSU's own queue of 24, of the sub-partitions in turn; the LSU serves that in
//! order (probe `arrivals`). After a tag-stage miss it arbitrates to up to three loads of other sub-partitions (probe `turns`).

use super::super::constants::Constants;
use super::super::hash::mix;
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
    pub(crate) is_store: bool,
    pub(super) progress: TagProgress,
    /// How many were issued to the LSU before it, once it has been.
    order: u64,
}

impl MioRequest {
    /// That of a warp, not issued to the LSU yet.
    pub(crate) fn new(slot: usize, warp: usize, index: usize, is_store: bool) -> Self {
        Self { slot, warp, index, is_store, progress: TagProgress::default(), order: 0 }
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
        let throttled = uses_mio && (self.is_full() || !self.mio_throttled.is_empty());
        self.issue_free > now || !self.not_selected.is_empty() || throttled
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
    sm: usize,
    lsu_entries: usize,
    grants_after_miss: usize,
    stalled_subpartitions: usize,
    /// Requests issued to the LSU so far, those of them in its queue, and the sub-partition of the last.
    issued: u64,
    in_lsu: usize,
    last: usize,
    /// The sub-partition whose load has just missed, and how many loads of others are served before it goes on.
    missed: Option<(usize, usize)>,
}

impl Mio {
    pub(super) fn new(sm: usize, constants: &Constants) -> Self {
        Self {
            subpartitions: std::array::from_fn(|_| SubPartition::new(constants)),
            sm,
            lsu_entries: constants.lsu_queue_entries,
            grants_after_miss: constants.grants_after_miss,
            stalled_subpartitions: constants.stalled_subpartitions,
            issued: 0,
            in_lsu: 0,
            last: 0,
            missed: None,
        }
    }

    /// Whether the LSU has a request that it can serve.
    pub(crate) fn is_ready(&self) -> bool {
        self.subpartitions.iter().any(SubPartition::is_ready)
    }

    /// The sub-partition that the LSU serves next: that whose first request was issued first, but for the grants after a miss.
    pub(crate) fn arbitrate(&mut self) -> Option<usize> {
        let missed = self.missed.take();
        let stalled = self.subpartitions.iter().filter(|other| other.in_lsu > 0 && other.awaits_line).count();
        if stalled >= self.stalled_subpartitions {
            return None;
        }
        let ready = || (0..SUBPARTITIONS).filter(|other| self.subpartitions[*other].is_ready());
        let order = |other: &usize| self.subpartitions[*other].queue[0].order;
        let first = ready().min_by_key(order)?;
        let is_load = |other: &usize| !self.subpartitions[*other].queue[0].is_store;
        let next = ready().filter(|other| *other != first && is_load(other)).min_by_key(order);
        let (Some((_, left)), Some(next)) = (missed.filter(|(other, _)| *other == first), next) else {
            return Some(first);
        };
        self.missed = (left > 1).then_some((first, left - 1));
        Some(next)
    }

    /// A tag-stage wavefront of a sub-partition's load missed.
    pub(super) fn miss(&mut self, subpartition: usize) {
        self.missed = Some((subpartition, self.grants_after_miss));
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

    /// Issues requests to the LSU as long as it has room, of the sub-partitions in turn; but in a store's turn, every second time, of any of
    /// them (fitted to `embedding_thread_a_row`). If it never were, two warps that are abreast would stay so, which they do not by the
    /// probe `companions`.
    fn issue_to_lsu(&mut self) {
        while self.in_lsu < self.lsu_entries {
            let next = |last: usize| (1..=SUBPARTITIONS).map(move |further| (last + further) % SUBPARTITIONS);
            let has_more = |other: &usize| {
                let SubPartition { queue, in_lsu, .. } = &self.subpartitions[*other];
                queue.len() > *in_lsu
            };
            let Some(turn) = next(self.last).find(has_more) else { return };
            let SubPartition { queue, in_lsu, .. } = &self.subpartitions[turn];
            let is_store = queue[*in_lsu].is_store;
            let drawn = mix(self.issued ^ (self.sm as u64) << 32) as usize;
            // One bit says whether it is any sub-partition's turn, those below whose.
            let any =
                next(drawn % SUBPARTITIONS).find(|other| is_store && drawn & SUBPARTITIONS != 0 && has_more(other));
            let turn = any.unwrap_or(turn);
            let SubPartition { queue, in_lsu, .. } = &mut self.subpartitions[turn];
            self.issued += 1;
            let request = &mut queue[*in_lsu];
            request.order = self.issued;
            *in_lsu += 1;
            self.in_lsu += 1;
            self.last = turn;
        }
    }
}
