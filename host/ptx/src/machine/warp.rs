//! A warp: where its lanes stand. Those that a branch sends apart go one way after the other, to where they meet again.

use crate::program::NONE;

/// Lanes that go together, from where they are to where they meet others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) at: u32,
    /// Where they wait for others; nowhere if that is none.
    pub(super) meet: u32,
    pub(super) mask: u32,
}

/// What a warp does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Runs,
    /// Its lanes wait at the block's barrier, the instruction at that place, of that number.
    Waits {
        at: u32,
        number: u32,
    },
    /// They wait at a barrier of so many threads.
    WaitsFor {
        at: u32,
        number: u32,
        threads: u32,
    },
    Ended,
}

/// A warp of the block that runs.
#[derive(Debug)]
pub(super) struct Warp {
    pub(super) frames: Vec<Frame>,
    /// Calls that have not returned.
    pub(super) calls: Vec<Activation>,
    /// The lanes that have not ended.
    pub(super) live: u32,
    pub(super) state: State,
    /// Rounds of loops so far, and accesses.
    pub(super) steps: u64,
    /// When others may go on first.
    pub(super) due: u64,
    /// Instructions so far.
    pub(super) clock: u64,
    /// Where its last access since the block's last barrier stands; nowhere if there was none.
    pub(super) last: u32,
}

impl Warp {
    pub(super) fn new() -> Self {
        Self {
            frames: Vec::new(),
            calls: Vec::new(),
            live: 0,
            state: State::Ended,
            steps: 0,
            due: 0,
            clock: 0,
            last: NONE,
        }
    }

    /// Its lanes begin.
    pub(super) fn begin(&mut self, lanes: u32) {
        self.frames.clear();
        self.calls.clear();
        self.frames.push(Frame { at: 0, meet: NONE, mask: lanes });
        (self.live, self.state, self.steps, self.due) = (lanes, State::Runs, 0, 0);
        (self.clock, self.last) = (0, NONE);
    }

    /// The frame whose lanes go on, with those of them that have not ended and are not where they meet others; none if all have ended.
    pub(super) fn top(&mut self) -> Option<Frame> {
        while let Some(frame) = self.frames.last_mut() {
            frame.mask &= self.live;
            if frame.mask != 0 && frame.at != frame.meet {
                return Some(*frame);
            }
            self.frames.pop();
            // All lanes of a call may have ended.
            while self.calls.last().is_some_and(|call| self.frames.len() <= call.depth) {
                self.calls.pop();
            }
        }
        None
    }

    /// Of the lanes of the top frame, those in `taken` go to `target` and the others on to `next`; all meet at `meet`. Others that
    /// meet there already are met there too.
    pub(super) fn part(&mut self, taken: u32, target: u32, next: u32, meet: u32) {
        let Some(frame) = self.frames.last_mut() else { return };
        let others = frame.mask & !taken;
        if frame.meet == meet {
            self.frames.pop();
        } else {
            frame.at = meet;
        }
        for (at, mask) in [(target, taken), (next, others)] {
            if at != meet && mask != 0 {
                self.frames.push(Frame { at, meet, mask });
            }
        }
    }
}

/// The registers that a function had before it was called again.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) preds: Vec<u32>,
    pub(super) narrow: Vec<[u32; 32]>,
    pub(super) wide: Vec<[u64; 32]>,
}

impl Kept {
    pub(super) fn bytes(&self) -> usize {
        4 * self.preds.len() + 128 * self.narrow.len() + 256 * self.wide.len()
    }
}

/// A call that has not returned.
#[derive(Debug)]
pub(super) struct Activation {
    pub(super) function: u32,
    pub(super) call: u32,
    /// It has returned once the warp has no more frames than that.
    pub(super) depth: usize,
    /// Where the caller's frame begins, and the next one may.
    pub(super) stack: [[u64; 32]; 2],
    pub(super) kept: Option<Kept>,
}

/// Barriers that a block has.
pub(super) const BARRIERS: usize = 17;

/// The threads of a block that have arrived at each barrier without waiting there.
#[derive(Default)]
pub(super) struct Arrived(pub(super) [u32; BARRIERS]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_part_meet_again() {
        let mut warp = Warp::new();
        warp.begin(0b1111);
        warp.part(0b0011, 10, 1, 20);
        assert_eq!(warp.top(), Some(Frame { at: 1, meet: 20, mask: 0b1100 }));
        warp.frames.last_mut().expect("a frame").at = 20;
        assert_eq!(warp.top(), Some(Frame { at: 10, meet: 20, mask: 0b0011 }));
        // One of them ends.
        warp.live &= !1;
        warp.frames.last_mut().expect("a frame").at = 20;
        assert_eq!(warp.top(), Some(Frame { at: 20, meet: NONE, mask: 0b1110 }));
    }

    #[test]
    fn a_loop_that_lanes_leave_one_by_one_takes_no_more_frames() {
        let mut warp = Warp::new();
        warp.begin(u32::MAX);
        for lane in 0..31 {
            let frame = warp.top().expect("lanes in the loop");
            warp.part(frame.mask & !(1 << lane), 0, 5, 5);
            assert!(warp.frames.len() <= 2, "{:?}", warp.frames);
        }
        warp.frames.pop();
        assert_eq!(warp.top(), Some(Frame { at: 5, meet: NONE, mask: u32::MAX }));
    }
}
