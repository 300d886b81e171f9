//! Reads of an SM that stall since its CPC can have no more outstanding, and the loads that depend on them.
//!
//! When the lines of such a load are filled is known once the last of its reads is sent.

use std::collections::{BTreeMap, VecDeque};

/// A load, by its slot, its warp and its index among the warp's requests.
pub(crate) type Load = (usize, usize, usize);

#[derive(Default)]
pub(super) struct StalledReads {
    /// The loads that depend on each read, by line; the reads of a line in the order in which they are sent.
    reads: BTreeMap<u64, VecDeque<Vec<Load>>>,
    loads: BTreeMap<Load, Dependence>,
}

/// How many stalled reads a load depends on, and when the lines of the others are filled.
#[derive(Default)]
struct Dependence {
    reads: usize,
    filled: f64,
    looked_up: bool,
}

impl StalledReads {
    /// Another read of a line stalls.
    pub(super) fn add(&mut self, number: u64) {
        self.reads.entry(number).or_default().push_back(Vec::new());
    }

    /// Has a load depend on the last stalled read of a line.
    pub(super) fn depend(&mut self, load: Load, number: u64) {
        let read = self.reads.get_mut(&number).and_then(VecDeque::back_mut);
        read.expect("of a line that is filled nobody knows when, a read stalls").push(load);
        self.loads.entry(load).or_default().reads += 1;
    }

    /// Says when the lines of a load are filled, all of which are looked up by now, if those that depend on no stalled read are at `filled`:
    /// infinitely late if that is not known.
    pub(super) fn looked_up(&mut self, load: Load, filled: f64) -> f64 {
        let Some(dependence) = self.loads.get_mut(&load) else { return filled };
        let filled = filled.max(dependence.filled);
        if dependence.reads == 0 {
            self.loads.remove(&load);
            return filled;
        }
        (dependence.filled, dependence.looked_up) = (filled, true);
        f64::INFINITY
    }

    /// The first stalled read of a line is sent, and arrives then. Says whether it was the last, and of which loads it is known now when all
    /// lines are filled, and when.
    pub(super) fn sent(&mut self, number: u64, arrives: f64) -> (bool, Vec<(Load, f64)>) {
        let reads = self.reads.get_mut(&number).expect("what is sent was stalled");
        let loads = reads.pop_front().expect("what is sent was stalled");
        let last = reads.is_empty();
        if last {
            self.reads.remove(&number);
        }
        let mut known = Vec::new();
        for load in loads {
            let dependence = self.loads.get_mut(&load).expect("a load that depends on a read is known");
            dependence.reads -= 1;
            dependence.filled = dependence.filled.max(arrives);
            if dependence.reads == 0 && dependence.looked_up {
                known.push((load, dependence.filled));
                self.loads.remove(&load);
            }
        }
        (last, known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_told_once_all_of_its_reads_are_sent_and_all_of_its_lines_looked_up() {
        let [first, second, third] = [(0, 0, 0), (0, 1, 0), (1, 0, 0)];
        let mut stalled = StalledReads::default();
        stalled.add(7);
        stalled.depend(first, 7);
        stalled.add(8);
        stalled.depend(first, 8);
        assert_eq!(stalled.looked_up(first, 90.0), f64::INFINITY);
        // Another read of a line that has one stalled, and a load that depends on neither.
        stalled.add(7);
        stalled.depend(second, 7);
        assert_eq!(stalled.looked_up(third, 50.0), 50.0);
        assert_eq!(stalled.sent(7, 100.0), (false, vec![]));
        assert_eq!(stalled.sent(8, 95.0), (true, vec![(first, 100.0)]));
        // All of its reads are sent before all of its lines are looked up.
        assert_eq!(stalled.sent(7, 120.0), (true, vec![]));
        assert_eq!(stalled.looked_up(second, 110.0), 120.0);
        assert!(stalled.reads.is_empty() && stalled.loads.is_empty());
    }
}
