//! Which accesses of a block are ordered: by its barriers and, within a warp, by the meetings of its lanes.

/// What a thread did when, as far as order goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// How manieth block of the run.
    pub turn: u64,
    /// How manieth interval between barriers of all that the worker has seen, from 1.
    pub(super) interval: u32,
    /// Meetings that the thread had taken part in since it began.
    pub(super) meetings: u32,
    /// Fences that the thread had made since it began.
    pub(super) fences: u32,
    pub thread: u32,
}

/// The intervals between the barriers of a block, and what the lanes of its warps know of one another.
pub(super) struct Order {
    turn: u64,
    /// The block's first interval, and the one it is in.
    first_interval: u32,
    interval: u32,
    /// For each thread and each lane of its warp, how many of that lane's meetings lie before whatever the thread does
    /// next. A thread's own entry counts the meetings it took part in. All are 0 until lanes have met in this interval.
    known: Vec<[u32; 32]>,
    /// Whether lanes have met in this interval.
    met: bool,
    /// Fences that each thread has made; counted under the second look alone.
    fences: Vec<u32>,
}

impl Order {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            turn: 0,
            first_interval: 1,
            interval: 1,
            known: vec![[0; 32]; threads],
            met: false,
            fences: vec![0; threads],
        }
    }

    pub(super) fn begin(&mut self, turn: u64) {
        self.pass_barrier();
        (self.turn, self.first_interval) = (turn, self.interval);
        self.fences.fill(0);
    }

    /// The whole block has met: what lies before needs no telling apart any more.
    pub(super) fn pass_barrier(&mut self) {
        self.interval = self.interval.saturating_add(1);
        if std::mem::take(&mut self.met) {
            self.known.fill([0; 32]);
        }
    }

    /// A thread makes a fence.
    pub(super) fn fence(&mut self, thread: usize) {
        self.fences[thread] = self.fences[thread].saturating_add(1);
    }

    /// How many meetings of each lane of its warp a thread knows of, if lanes have met in this interval.
    pub(super) fn lanes(&self, thread: usize) -> Option<[u32; 32]> {
        self.met.then(|| self.known[thread])
    }

    /// The block's first interval.
    pub(super) fn first_interval(&self) -> u32 {
        self.first_interval
    }

    /// The interval it is in.
    pub(super) fn interval(&self) -> u32 {
        self.interval
    }

    /// The lanes in `mask` of the warp that begins at thread `first` have met: each knows what any of them knew, and that
    /// all were there.
    pub(super) fn meet(&mut self, first: usize, mask: u32) {
        let lanes = || (0..32).filter(|lane| mask >> lane & 1 == 1);
        let mut all = [0; 32];
        for lane in lanes() {
            all.iter_mut().zip(self.known[first + lane]).for_each(|(all, known)| *all = known.max(*all));
        }
        lanes().for_each(|lane| all[lane] += 1);
        lanes().for_each(|lane| self.known[first + lane] = all);
        self.met = true;
    }

    /// How many threads a block has.
    pub(super) fn threads(&self) -> usize {
        self.known.len()
    }

    /// The moment of what `thread` does next.
    pub(super) fn now(&self, thread: usize) -> Moment {
        Moment {
            turn: self.turn,
            interval: self.interval,
            meetings: if self.met { self.known[thread][thread % 32] } else { 0 },
            fences: self.fences[thread],
            thread: thread as u32,
        }
    }

    /// Whether what `other`, a lane of the same warp, did after so many meetings lies before what `thread` does next.
    pub(super) fn follows(&self, thread: u32, other: u32, meetings: u32) -> bool {
        meetings < self.known[thread as usize][other as usize % 32]
    }

    /// Whether nothing orders what was done at `earlier` before what a thread does `now`.
    pub(super) fn unordered(&self, earlier: Moment, now: Moment) -> bool {
        earlier.turn != now.turn
            || earlier.interval == now.interval
                && earlier.thread != now.thread
                && (earlier.thread / 32 != now.thread / 32
                    || !self.follows(now.thread, earlier.thread, earlier.meetings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_meet_are_ordered_and_those_that_do_not_are_not() {
        let mut order = Order::new(64);
        let [a, b, c, elsewhere] = [0, 1, 16, 32].map(|thread| order.now(thread));
        assert!(order.unordered(a, order.now(1)) && !order.unordered(a, order.now(0)));
        order.meet(0, 0xFFFF);
        assert!(!order.unordered(a, order.now(1)) && !order.unordered(b, order.now(0)));
        assert!(order.unordered(a, order.now(16)) && order.unordered(c, order.now(0)));
        assert!(order.unordered(elsewhere, order.now(0)));
        let after = order.now(0);
        assert!(order.unordered(after, order.now(1)), "nobody has met since");
        order.pass_barrier();
        assert!(!order.unordered(elsewhere, order.now(0)) && !order.unordered(after, order.now(16)));
        order.begin(1);
        assert!(order.unordered(after, order.now(0)), "nothing orders blocks");
    }

    #[test]
    fn what_a_lane_knows_is_handed_on() {
        let mut order = Order::new(32);
        let first = order.now(0);
        order.meet(0, 0b011);
        order.meet(0, 0b110);
        assert!(!order.unordered(first, order.now(2)), "lane 1 met lane 0, and then lane 2");
        assert!(order.unordered(order.now(2), order.now(0)));
    }
}
