//! What the requests of a warp are counted as, once its lanes are together.

use crate::context::Context;
use crate::place::{Place, pc, position};
use crate::requests::Twice;
use crate::thread::{Lane, State};
use engine::{Kind, Look, SharedMemory, triple};
use gpu::suite::Space;
use std::panic::Location;

impl Context {
    /// Counts the requests of a warp whose lanes have met, all that are left. Those that have ended may have run on to where the
    /// others come later.
    pub(super) fn count_at(&mut self, at: &'static Location<'static>) {
        match self.ended_lanes() {
            0 => {
                self.count();
                self.requests.go_on(Some(at));
            }
            ended => self.count_passed(!ended),
        }
    }

    /// The lanes of the running warp that have ended.
    pub(super) fn ended_lanes(&self) -> u32 {
        let is_done = |lane: &Lane| matches!(lane.state, State::Done);
        (0..).zip(&self.lanes[self.warp.clone()]).fold(0, |ended, (i, lane)| ended | u32::from(is_done(lane)) << i)
    }

    /// Counts the requests of a warp whose lanes have come together.
    pub(super) fn count(&mut self) {
        let made = self.requests.made(&mut self.running);
        self.requests.left_apart(u32::MAX, |instruction| self.worker.left_apart(instruction));
        for place in 0..made {
            if self.job.launch.is_exhausted() {
                break;
            }
            self.count_request(place);
        }
        self.requests.restart();
    }

    /// The same at the end of the warp, or at the block's barrier.
    pub(super) fn count_at_barrier(&mut self) {
        // Alone, a warp knows what it does at its barriers.
        if self.lanes.len() > 32 || self.at_barrier.is_some() {
            let (ended, first) = (self.ended_lanes(), self.warp.start as u32);
            if ended != 0 {
                for place in 0..self.requests.made(&mut self.running) {
                    let (site, path, lanes) = self.requests.passed(place);
                    if lanes & ended != 0 {
                        self.ended.push((site, path, first + (lanes & ended).trailing_zeros()));
                    }
                }
            }
        }
        self.count();
    }

    /// Threads wait at a barrier, and all others have ended.
    pub(super) fn pass_by(&mut self, barrier: Place) {
        for (site, path, thread) in self.ended.drain(..) {
            self.passed_by.entry((site, path)).or_insert((thread, barrier));
        }
    }

    /// Whether threads that waited at a barrier come to the request at `place`, to which others came that did not and ended: then
    /// they passed the barrier by.
    #[cold]
    pub(super) fn find_passed_by(&mut self, place: usize) {
        let (site, path, lanes) = self.requests.passed(place);
        let Some(&(ended, barrier)) = self.passed_by.get(&(site, path)) else { return };
        let detail = format!(
            "a thread waits at this barrier, which thread {} passed by on its way to an access that both make",
            triple(self.thread_idx(ended as usize))
        );
        let thread = self.warp.start + lanes.trailing_zeros() as usize % 32;
        self.find(thread, Kind::DivergentBarrier, Some(position(barrier.at)), Some(position(site.at())), detail);
        // Once is enough.
        self.passed_by.clear();
        self.stopped = true;
    }

    /// Counts those requests that a lane in `lanes` takes part in: all of them have come to the same place in a loop, and
    /// what one of them has passed none will come by again.
    pub(super) fn count_passed(&mut self, lanes: u32) {
        let made = self.requests.made(&mut self.running);
        self.requests.left_apart(lanes, |instruction| self.worker.left_apart(instruction));
        for place in 0..made {
            if self.requests.lanes(place) & lanes != 0 {
                self.count_request(place);
            }
        }
        self.requests.forget(lanes);
    }

    #[inline(always)]
    pub(super) fn count_request(&mut self, place: usize) {
        if !self.passed_by.is_empty() {
            self.find_passed_by(place);
        }
        let first_look = self.worker.look() == Look::First;
        let unseen = if first_look { self.requests.see(place, u32::MAX) } else { 0 };
        let request = self.requests.get(place, |space, base| start(&self.worker.shared, space, base));
        if first_look {
            self.worker.look_first(&request, unseen, self.warp.start);
        }
        self.worker.count(self.requests.place(place), (self.warp.start / 32) as u32, &request);
    }

    /// Has the sanitizer look at what those of `lanes` did that take part in the request at `place`, if it is to look for the
    /// first time and has not.
    #[inline(always)]
    pub(super) fn look_first(&mut self, place: usize, lanes: u32) {
        if self.worker.look() == Look::First {
            let lanes = self.requests.see(place, lanes);
            let request = self.requests.get(place, |space, base| start(&self.worker.shared, space, base));
            self.worker.look_first(&request, lanes, self.warp.start);
        }
    }

    /// The same for all lanes and requests.
    pub(super) fn look_first_at_all(&mut self) {
        for place in 0..self.requests.made(&mut self.running) {
            self.look_first(place, u32::MAX);
        }
    }

    /// Closes the stretch of the running lane, which then jumps or meets others alone: whatever it does later is looked at later.
    pub(super) fn close_alone(&mut self) -> Result<(), Twice> {
        for place in self.requests.close_alone(&self.running)? {
            self.look_first(place, 1 << self.running.number);
        }
        Ok(())
    }

    /// The block has passed a barrier; too many stop it.
    pub(super) fn pass_barrier(&mut self, at: &'static Location<'static>) {
        self.phase = Some(at);
        if !self.worker.pass_barrier(|| pc(at)) {
            self.stopped = true;
        }
    }

    /// Counts a meeting of threads, of which `thread` is one; too many stop the block.
    pub(super) fn count_barrier(&mut self, thread: usize, at: &'static Location<'static>) {
        if !self.worker.count_barrier(thread, || pc(at)) {
            self.stopped = true;
        }
    }
}

/// The address that an access by the pointer `base` counts its indices from: in shared memory, the place.
#[inline(always)]
pub(super) fn start(shared: &SharedMemory, space: Space, base: u64) -> u64 {
    match space {
        Space::Shared => shared.place(base),
        Space::Global | Space::Constant => base,
    }
}
