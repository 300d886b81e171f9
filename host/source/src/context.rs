//! A block: its threads, what the warp that runs has asked for, and what is kept of the blocks before.
//!
//! Its lanes run one at a time on one thread, each on a stack of its own. The scheduler and the running lane share the block
//! through a raw pointer: whoever runs borrows it for the length of one step, and no borrow lives across a switch between the two.

use crate::copies::Copies;
use crate::job::{Job, Pulse};
use crate::place::{Place, position};
use crate::requests::{Phase, Requests};
use crate::stop::{Reason, Stop, twice};
use crate::thread::{Lane, State};
use corosensei::Yielder;
use engine::{Kind, Position, Worker};
use gpu::device::host::{self, Call, Coordinates, Site};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A block, and what is counted of all the blocks that ran here. What the facade knows of the running lane comes first, so
/// that a pointer to it is one to the whole.
#[repr(C)]
pub(super) struct Context {
    pub(super) running: host::Lane,
    pub(super) job: Arc<Job>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) lanes: Vec<Lane>,
    /// Where each of them stands in the block.
    pub(super) thread_idx: Box<[[u32; 3]]>,
    /// The last barrier that the block has passed.
    pub(super) phase: Phase,
    /// The threads of the warp that runs.
    pub(super) warp: Range<usize>,
    /// What the warp that is running has asked for.
    pub(super) requests: Requests,
    /// Copies of the block that have not arrived.
    pub(super) copies: Copies,
    /// What is kept of the blocks that ran here.
    pub(super) worker: Worker,
    /// The calls that the running lane had made when it began or went on.
    pub(super) began: u64,
    /// What leads from the running lane's stack back to the scheduler.
    pub(super) yielder: *const Yielder<(), ()>,
    /// Where the running lane's stack ends.
    pub(super) stack_end: usize,
    /// Whether a lane of the running warp has come to rest anywhere but at the block's barrier.
    pub(super) rested: bool,
    /// Whether a lane of it has read what others may write meanwhile.
    pub(super) listens: bool,
    /// Where the first thread of the block has come to rest at its barrier, and how many have come to the same place.
    pub(super) at_barrier: Option<(Place, usize)>,
    /// What threads did that ended since the block's last barrier: accesses, their paths and the threads.
    pub(super) ended: Vec<(Site, u64, u32)>,
    /// What threads did that ended while others waited at a barrier, with that barrier. Who comes by there after it shows that
    /// it stood on the way of those that ended.
    pub(super) passed_by: FxHashMap<(Site, u64), (u32, Place)>,
    /// Whether the block cannot go on.
    pub(super) stopped: bool,
}

impl Context {
    /// A context in a box of its own, which its lanes and the scheduler share. No machine serves it yet.
    pub(super) fn new(job: Arc<Job>, pulse: Arc<Pulse>) -> *mut Self {
        let threads = job.launch.plan.launch.block_threads() as usize;
        let thread_idx = |thread| job.launch.thread_idx(thread as u32);
        let watched = NonNull::from(&pulse.lane);
        Box::into_raw(Box::new(Self {
            lanes: (0..threads)
                .map(|_| Lane { state: State::Done, value: 0, calls: 0, path: 0, call: Call::default(), stack: None })
                .collect(),
            thread_idx: (0..threads).map(thread_idx).collect(),
            pulse,
            phase: None,
            warp: 0..0,
            running: host::Lane::new(
                Coordinates {
                    block_dim: job.launch.plan.launch.block,
                    grid_dim: job.launch.plan.launch.grid,
                    ..Coordinates::default()
                },
                watched,
            ),
            requests: Requests::new(),
            copies: Copies::default(),
            worker: Worker::new(Arc::clone(&job.launch)),
            began: 0,
            yielder: ptr::null(),
            stack_end: 0,
            rested: false,
            listens: false,
            at_barrier: None,
            ended: Vec::new(),
            passed_by: FxHashMap::default(),
            stopped: false,
            job,
        }))
    }

    /// Makes this block the one that kernels on this thread run in, or none if it is null.
    ///
    /// # Safety
    /// It is valid until another takes its place.
    pub(super) unsafe fn enter(context: *mut Self) {
        // SAFETY: the lane comes first in its block; while a kernel runs, nobody refers to the block.
        unsafe { host::run_as(NonNull::new(context.cast())) };
    }

    /// Forgets what the lanes of an abandoned block asked for.
    pub(super) fn forget(&mut self) {
        self.look_first_at_all();
        self.requests.clear();
    }

    /// Begins the `turn`-th block of the run.
    pub(super) fn begin(&mut self, turn: u64) {
        self.worker.begin(turn);
        self.running.coordinates.block_idx = self.worker.block_idx();
        self.phase = None;
        self.at_barrier = None;
        self.ended.clear();
        self.copies.clear();
        self.passed_by.clear();
        self.stopped = false;
    }

    pub(super) fn thread_idx(&self, thread: usize) -> [u32; 3] {
        self.thread_idx[thread]
    }

    /// The warp of these threads is the one that runs: all begin, or go on from the barrier that the block has passed.
    pub(super) fn begin_warp(&mut self, threads: Range<usize>) {
        self.running.thread_idx = self.thread_idx[threads.clone()].as_ptr();
        let lanes = self.lanes[threads.clone()].iter_mut();
        if self.phase.is_none() {
            // One after another on a stack.
            self.running.limit = threads.len();
            lanes.for_each(|lane| {
                (lane.state, lane.calls, lane.path, lane.call) = (State::Done, 0, 0, Call::default());
            });
        } else {
            self.running.limit = 0;
            // Those that have ended stay so.
            let waiting = lanes.filter(|lane| matches!(lane.state, State::Block(_)));
            waiting.for_each(|lane| lane.state = State::Ready);
        }
        self.take_up(threads);
    }

    /// The same of one that has stepped aside: its lanes go on from where they rest.
    pub(super) fn take_up_warp(&mut self, threads: Range<usize>) {
        self.running.thread_idx = self.thread_idx[threads.clone()].as_ptr();
        self.running.limit = 0;
        self.take_up(threads);
    }

    fn take_up(&mut self, threads: Range<usize>) {
        self.requests.go_on(self.phase);
        self.warp = threads;
        (self.rested, self.listens) = (false, false);
    }

    /// The number of the lane that runs, in its warp.
    pub(super) fn number(&self) -> usize {
        self.running.number
    }

    /// The thread that runs.
    pub(super) fn current(&self) -> usize {
        self.warp.start + self.running.number
    }

    /// Makes the first lane of the running warp, from number `from` on, that has something to do the one that runs.
    pub(super) fn select(&mut self, from: usize) -> Option<&mut Lane> {
        let (start, running) = (self.warp.start, &mut self.running);
        let is_ready =
            |number: &usize| *number < running.limit || matches!(self.lanes[start + number].state, State::Ready);
        let number = (from..self.warp.len()).find(is_ready)?;
        let lane = &mut self.lanes[start + number];
        self.pulse.lane.thread.store((start + number) as u64, Relaxed);
        running.begin(number);
        (running.path, running.call) = (lane.path, lane.call);
        self.began = lane.calls;
        self.requests.begin(running);
        Some(lane)
    }

    /// No lane of the running warp has anything to do any more, and all have begun.
    pub(super) fn deselect(&mut self) {
        self.running.limit = 0;
        self.pulse.lane.thread.store(0, Relaxed);
    }

    /// The running lane lets others run: it has ended, or waits.
    #[inline(always)]
    pub(super) fn leave(&mut self, state: State) -> &mut Lane {
        let current = self.current();
        let lane = &mut self.lanes[current];
        lane.state = state;
        lane
    }

    /// Calls of the running lane so far.
    pub(super) fn calls(&self) -> u64 {
        self.lanes[self.current()].calls + host::STEPS - self.running.left + self.requests.accesses(&self.running)
    }

    /// Steps of loops that the running lane has taken since it began or went on, and calls that are no accesses.
    pub(super) fn steps(&self) -> u64 {
        self.lanes[self.current()].calls - self.began + host::STEPS - self.running.left
    }

    /// The running lane has ended: goes on as the next one of its warp, if that has not begun; the error is the reason to
    /// stop it.
    pub(super) fn end_lane(&mut self) -> Result<bool, Stop> {
        let steps = self.steps();
        self.requests.close(&mut self.running, steps).map_err(twice)?;
        let next = self.running.number + 1;
        let goes_on = next < self.running.limit;
        if goes_on {
            self.running.begin(next);
            self.requests.begin(&mut self.running);
        }
        Ok(goes_on)
    }

    /// Records why the running lane stops, and stops the block.
    #[cold]
    pub(super) fn stop(&mut self, reason: Stop, at: Option<&'static Location<'static>>) {
        let thread = self.current();
        match *reason.0 {
            Reason::Found(kind, detail, place) => self.find(thread, kind, place.or(at).map(position), None, detail),
            Reason::UnderWay { instruction, address, copy } => {
                self.worker.find_under_way(thread, instruction, address, copy);
            }
        }
        self.break_off();
    }

    /// The same once the kernel's code has been left for the reason, at the kernel's own position if `at` is unknown.
    #[cold]
    pub(super) fn fail(&mut self, kind: Kind, at: Option<Position>, detail: String) {
        let at = at.unwrap_or_else(|| self.job.start());
        self.find(self.current(), kind, Some(at), None, detail);
        self.break_off();
    }

    /// The running lane does not go on, nor does the block.
    #[cold]
    pub(super) fn break_off(&mut self) {
        // One that came by an access twice is stopped in any case.
        let _ = self.requests.close_alone(&self.running);
        self.stopped = true;
    }

    /// Records a finding about a thread of this block.
    pub(super) fn find(
        &mut self,
        thread: usize,
        kind: Kind,
        at: Option<Position>,
        other: Option<Position>,
        detail: String,
    ) {
        self.worker.find(thread, kind, at, other, detail);
    }

    /// Counts a call of the running lane; the error is the reason to stop it.
    #[inline(always)]
    pub(super) fn call(&mut self) -> Result<(), Stop> {
        self.running.left -= 1;
        if self.running.left == 0 { self.ring() } else { Ok(()) }
    }

    #[cold]
    pub(super) fn ring(&mut self) -> Result<(), Stop> {
        self.pulse.show();
        let current = self.current();
        self.lanes[current].calls += host::STEPS - self.running.left;
        self.running.left = host::STEPS;
        if self.calls() > self.job.launch.limits.calls {
            let detail =
                format!("a thread has made more than {} accesses and loop steps", self.job.launch.limits.calls);
            return Err(Stop::new(Kind::NonTerminating, detail));
        }
        Ok(())
    }
}
