//! The event queue: what happens when. Of events at one time the one that was scheduled first happens first, so that a replay is the same on
//! any number of threads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens at some time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A warp is eligible to issue.
    Warp { slot: usize, warp: usize },
    /// A sub-partition selects a stalled warp, by its number on the chip.
    Select { subpartition: usize },
    /// The LSU of an SM serves a request.
    Lsu { sm: usize },
    /// The last line of a load is filled.
    Fill { slot: usize, warp: usize, number: u32 },
    /// The data stage of an SM serves a request.
    DataStage { sm: usize },
}

/// A time in cycles that can be a key: none is negative.
pub(super) fn key(time: f64) -> u64 {
    time.to_bits()
}

#[derive(Default)]
pub(super) struct EventQueue {
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
}

impl EventQueue {
    /// A number that is greater than those before.
    pub(super) fn number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub(super) fn schedule(&mut self, time: f64, event: Event) {
        let number = self.number();
        self.events.push(Reverse((key(time), number, event)));
    }

    /// When the next event happens.
    pub(super) fn next(&self) -> Option<f64> {
        self.events.peek().map(|Reverse((time, ..))| f64::from_bits(*time))
    }

    /// Takes the next event.
    pub(super) fn pop(&mut self) -> Option<(f64, Event)> {
        self.events.pop().map(|Reverse((time, _, event))| (f64::from_bits(time), event))
    }

    #[cfg(test)]
    pub(super) fn clear(&mut self) {
        self.events.clear();
    }
}
