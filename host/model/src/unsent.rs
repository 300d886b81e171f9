//! Reads of a multiprocessor that are not sent yet, for its cluster has as many on their way as it can have, and the loads that wait for
//! them: when their lines are here is known once the last of these is sent.

use std::collections::{BTreeMap, VecDeque};

/// A load, by its slot, its warp and its place among the requests of that.
pub(super) type Load = (usize, usize, usize);

#[derive(Default)]
pub(super) struct Unsent {
    /// The loads that wait for each read, by line, those of one line in the order in which they are sent.
    reads: BTreeMap<u64, VecDeque<Vec<Load>>>,
    loads: BTreeMap<Load, Waits>,
}

/// How many reads a load waits for that are not sent, and when the lines of the others are here.
#[derive(Default)]
struct Waits {
    reads: usize,
    here: f64,
    looked_up: bool,
}

impl Unsent {
    /// Another read of a line is not sent.
    pub(super) fn add(&mut self, number: u64) {
        self.reads.entry(number).or_default().push_back(Vec::new());
    }

    /// Has a load wait for the last of the reads of a line that are not sent.
    pub(super) fn wait(&mut self, load: Load, number: u64) {
        let read = self.reads.get_mut(&number).and_then(VecDeque::back_mut);
        read.expect("of a line that comes nobody knows when, a read is not sent").push(load);
        self.loads.entry(load).or_default().reads += 1;
    }

    /// Says when the lines of a load are here, all of which are looked up by now, if those that it does not wait for are at `here`: infinitely
    /// late if that is not known.
    pub(super) fn looked_up(&mut self, load: Load, here: f64) -> f64 {
        let Some(waits) = self.loads.get_mut(&load) else { return here };
        let here = here.max(waits.here);
        if waits.reads == 0 {
            self.loads.remove(&load);
            return here;
        }
        (waits.here, waits.looked_up) = (here, true);
        f64::INFINITY
    }

    /// The first of the reads of a line is sent, and arrives then. Says whether it was the last, and of which loads it is known now when all
    /// lines are here, and when.
    pub(super) fn sent(&mut self, number: u64, arrives: f64) -> (bool, Vec<(Load, f64)>) {
        let reads = self.reads.get_mut(&number).expect("what is sent was not before");
        let loads = reads.pop_front().expect("what is sent was not before");
        let last = reads.is_empty();
        if last {
            self.reads.remove(&number);
        }
        let mut known = Vec::new();
        for load in loads {
            let waits = self.loads.get_mut(&load).expect("a load that waits for a read is known");
            waits.reads -= 1;
            waits.here = waits.here.max(arrives);
            if waits.reads == 0 && waits.looked_up {
                known.push((load, waits.here));
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
        let mut unsent = Unsent::default();
        unsent.add(7);
        unsent.wait(first, 7);
        unsent.add(8);
        unsent.wait(first, 8);
        assert_eq!(unsent.looked_up(first, 90.0), f64::INFINITY);
        // Another read of a line that one is not sent of, and a load that waits for neither.
        unsent.add(7);
        unsent.wait(second, 7);
        assert_eq!(unsent.looked_up(third, 50.0), 50.0);
        assert_eq!(unsent.sent(7, 100.0), (false, vec![]));
        assert_eq!(unsent.sent(8, 95.0), (true, vec![(first, 100.0)]));
        // All of its reads are sent before all of its lines are looked up.
        assert_eq!(unsent.sent(7, 120.0), (true, vec![]));
        assert_eq!(unsent.looked_up(second, 110.0), 120.0);
        assert!(unsent.reads.is_empty() && unsent.loads.is_empty());
    }
}
