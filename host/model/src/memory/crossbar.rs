//! The crossbar between SMs and L2: outstanding reads, credits at the slices, path lengths.
//!
//! Each CPC has the same share of a saturated L2, however many SMs it has (probe `shares`): the model bounds its outstanding reads, and the
//! requests that each slice queues for it. Paths differ in length from GPC to GPC and from TPC to TPC (probe `ways`).

use super::super::constants::Constants;
use super::super::hash::uniform;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Sectors of a line that an SM of a GPC is to read.
pub(super) struct Read {
    pub(super) sm: usize,
    pub(super) gpc: usize,
    pub(super) number: u64,
    pub(super) wanted: u8,
}

/// What a CPC has in the crossbar.
#[derive(Default)]
struct Cpc {
    /// When its outstanding reads arrive.
    outstanding: BinaryHeap<Reverse<u64>>,
    /// Reads that stall until one of these has.
    stalled: VecDeque<Read>,
}

pub(super) struct Crossbar {
    constants: Constants,
    cpcs: Vec<Cpc>,
    /// Credits by CPC, L2 partition and slice.
    credits: Vec<Credits>,
    partitions: usize,
    slices: usize,
}

impl Crossbar {
    pub(super) fn new(constants: &Constants, partitions: usize, slices: usize) -> Self {
        let cpcs = constants.cpcs();
        Self {
            constants: *constants,
            cpcs: (0..cpcs).map(|_| Cpc::default()).collect(),
            credits: vec![Credits::new(constants.slice_credits_per_cpc); cpcs * partitions * slices],
            partitions,
            slices,
        }
    }

    /// Whether a CPC can send a read, none of its reads being stalled.
    pub(super) fn is_free(&mut self, cpc: usize, at: f64) -> bool {
        self.cpcs[cpc].stalled.is_empty() && self.has_room(cpc, at)
    }

    /// Whether a CPC has fewer outstanding reads than it can have.
    fn has_room(&mut self, cpc: usize, at: f64) -> bool {
        let reads = &mut self.cpcs[cpc].outstanding;
        while reads.peek().is_some_and(|Reverse(first)| f64::from_bits(*first) <= at) {
            reads.pop();
        }
        reads.len() < self.constants.cpc_outstanding_reads
    }

    /// Stalls a read of a CPC.
    pub(super) fn stall(&mut self, cpc: usize, read: Read) {
        self.cpcs[cpc].stalled.push_back(read);
    }

    /// When the first stalled read of a CPC can be sent, if there is one.
    pub(super) fn next_send(&self, cpc: usize) -> Option<f64> {
        let Cpc { outstanding, stalled } = &self.cpcs[cpc];
        let first = outstanding.peek().filter(|_| !stalled.is_empty());
        first.map(|Reverse(first)| f64::from_bits(*first))
    }

    /// Takes the first stalled read of a CPC, if it can be sent.
    pub(super) fn unstall(&mut self, cpc: usize, now: f64) -> Option<Read> {
        if self.has_room(cpc, now) { self.cpcs[cpc].stalled.pop_front() } else { None }
    }

    /// A CPC's read is outstanding until it arrives.
    pub(super) fn add_outstanding(&mut self, cpc: usize, arrives: f64) {
        self.cpcs[cpc].outstanding.push(Reverse(arrives.to_bits()));
    }

    /// The credits of a CPC at a slice.
    pub(super) fn credits(&mut self, cpc: usize, partition: usize, slice: usize) -> &mut Credits {
        &mut self.credits[(cpc * self.partitions + partition) * self.slices + slice]
    }

    /// Cycles by which the path from a slice to a GPC deviates from the mean.
    pub(super) fn gpc_path(&self, slice: usize, gpc: usize, hits_l2: bool) -> f64 {
        let most = if hits_l2 { self.constants.path_l2_cycles } else { self.constants.path_dram_cycles };
        most * deviation(slice, gpc)
    }

    /// Cycles by which the path to a TPC deviates from that to its GPC.
    pub(super) fn tpc_path(&self, slice: usize, tpc: usize) -> f64 {
        self.constants.path_tpc_cycles * deviation(slice, self.constants.gpcs + tpc)
    }
}

/// How long the path from a slice to an endpoint is, from -1, the shortest, to 1: a hash.
fn deviation(slice: usize, endpoint: usize) -> f64 {
    2.0 * uniform((slice * 1024 + endpoint) as u64) - 1.0
}

/// The credits of a CPC at an L2 slice: when each request that holds one is served, in order.
#[derive(Clone)]
pub(super) struct Credits {
    most: usize,
    served: VecDeque<f64>,
}

impl Credits {
    pub(super) fn new(most: usize) -> Self {
        Self { most, served: VecDeque::new() }
    }

    /// When there is a credit, from `at` on.
    pub(super) fn available(&mut self, mut at: f64) -> f64 {
        while let Some(first) = self.served.front() {
            if *first > at {
                if self.served.len() < self.most {
                    break;
                }
                at = *first;
            }
            self.served.pop_front();
        }
        at
    }

    /// Takes a credit until `served`, or until the request before is served. There is one.
    pub(super) fn take(&mut self, served: f64) {
        let last = self.served.back().map_or(served, |last| last.max(served));
        self.served.push_back(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_queues_so_many_requests_of_a_cpc_and_another_once_the_first_is_served() {
        const MOST: usize = 60;
        let mut credits = Credits::new(MOST);
        for round in 0..3 {
            let begin = 1e3 * f64::from(round);
            for i in 1..=MOST {
                assert_eq!(credits.available(begin), begin, "number {i} of round {round}");
                // None is served before the one that came before it.
                credits.take(begin + if i % 2 == 1 { i as f64 } else { 0.0 });
            }
            assert_eq!(credits.available(begin), begin + 1.0, "it is full until the first two are served");
            assert_eq!(credits.served.len(), MOST - 2);
            credits.take(begin + 100.0);
            assert_eq!((credits.available(begin + 1.0), credits.served.len()), (begin + 1.0, MOST - 1));
            assert_eq!((credits.available(begin + 99.0), credits.served.len()), (begin + 99.0, 1));
        }
        assert_eq!((credits.available(1e4), credits.served.len()), (1e4, 0));
    }
}
