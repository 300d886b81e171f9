//! The crossbar between SMs and L2: credits at the slices, path lengths.
//!
//! Each CPC has the same share of a saturated L2, however many SMs it has (probe `shares`): the model bounds the requests that each slice
//! queues for it. Paths differ in length from GPC to GPC (probe `ways`).

use super::super::constants::Constants;
use super::super::hash::uniform;
use std::collections::VecDeque;

pub(super) struct Crossbar {
    constants: Constants,
    /// Credits by CPC, L2 partition and slice.
    credits: Vec<Credits>,
    partitions: usize,
    slices: usize,
}

impl Crossbar {
    pub(super) fn new(constants: &Constants, partitions: usize, slices: usize) -> Self {
        Self {
            constants: *constants,
            credits: vec![Credits::new(constants.slice_credits_per_cpc); constants.cpcs() * partitions * slices],
            partitions,
            slices,
        }
    }

    /// The credits of a CPC at a slice.
    pub(super) fn credits(&mut self, cpc: usize, partition: usize, slice: usize) -> &mut Credits {
        &mut self.credits[(cpc * self.partitions + partition) * self.slices + slice]
    }

    /// Cycles by which the path from a slice to a GPC deviates from the mean: a hash.
    pub(super) fn gpc_path(&self, slice: usize, gpc: usize, hits_l2: bool) -> f64 {
        let most = if hits_l2 { self.constants.path_l2_cycles } else { self.constants.path_dram_cycles };
        most * (2.0 * uniform((slice * 1024 + gpc) as u64) - 1.0)
    }
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
