//! A block: its threads, what the warp that runs has asked for, and what is kept of the blocks before.
//!
//! Its lanes run one at a time on one thread, each on a stack of its own. The scheduler and the running lane share the block
//! through a raw pointer: whoever runs borrows it for the length of one step, and no borrow lives across a switch between the two.

use crate::job::{Job, Pulse};
use crate::place::{Place, pc, position};
use crate::requests::{Phase, Requests, Twice};
use crate::stop::{Stop, twice};
use crate::thread::{Lane, State};
use corosensei::Yielder;
use engine::{AtHand, Element, Kind, Look, Position, SharedMemory, Worker, triple};
use gpu::device::host::{self, Access, Call, Coordinates, Number, Op, Site};
use gpu::suite::Space;
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
            worker: Worker::new(Arc::clone(&job.launch)),
            began: 0,
            yielder: ptr::null(),
            stack_end: 0,
            rested: false,
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
        self.requests.go_on(self.phase);
        self.warp = threads;
        self.rested = false;
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
        let (kind, detail, place) = *reason.0;
        self.find(self.current(), kind, place.or(at).map(position), None, detail);
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

    /// Carries out an access of the running lane.
    pub(super) fn access(
        &mut self,
        access: Access,
        base: u64,
        index: u64,
        value: *mut u8,
        at: &'static Location<'static>,
    ) -> Result<(), Stop> {
        let (site, width) = (Site::new(at, access), access.width());
        self.pulse.lane.tell(site);
        if self.job.launch.is_exhausted() {
            return Err(Stop::new(Kind::NonTerminating, "there is no memory left".to_owned()));
        }
        let element = match access.space() {
            Space::Global | Space::Constant => self.job.launch.memory.resolve(base, index, width as u64),
            Space::Shared => self.worker.shared.resolve(base, index, width as u64),
        };
        let outside = |block: &Self| Stop::of(block.worker.outside(block.requests.instruction(site), base, index));
        let Some(element) = element else { return Err(outside(self)) };
        let address = element.address;
        if !address.is_multiple_of(width as u64) {
            let inside = access.space() == Space::Shared || self.job.launch.memory.contains(address, width as u64);
            let misaligned = || Stop::of(self.worker.misaligned(self.requests.instruction(site), address));
            return Err(if inside { misaligned() } else { outside(self) });
        }
        // SAFETY: resolved and aligned; the facade's `value` is as wide as the access.
        unsafe {
            match access.op() {
                Op::Load(_) => element.load(width, value),
                Op::Store => element.store(width, value),
                Op::AtomicAdd(number) => self.atomic_add(number, element, width, value),
            }
        }
        if self.worker.look() == Look::Second {
            self.worker.look_second(self.current(), self.requests.instruction(site), address);
        }
        self.add_to_request(site, base, address).map_err(twice)
    }

    /// Enters an access of the running lane in the request that it belongs to. The next time, it finds its memory at hand.
    pub(super) fn add_to_request(&mut self, site: Site, base: u64, address: u64) -> Result<(), Twice> {
        let place = self.requests.find(&mut self.running, site, base);
        if self.requests.is_elsewhere(&self.running, place) {
            self.close_alone()?;
        }
        let width = site.width();
        let expected = self.requests.add(&mut self.running, place)?;
        let start = start(&self.worker.shared, site.space(), expected.base());
        expected.enter(self.running.number, (address.wrapping_sub(start).cast_signed() / width.cast_signed()) as u64);
        if expected.base() != base {
            self.requests.part(place);
            return Ok(());
        }
        let alone = matches!(site.access().op(), Op::AtomicAdd(_)) || self.worker.look() == Look::Second;
        if !alone && base.is_multiple_of(width) {
            let at_hand = match site.space() {
                Space::Shared => self.worker.shared.at_hand(base, width),
                Space::Global | Space::Constant => self.job.launch.memory.at_hand(base, address, width),
            };
            if let Some(AtHand { first, count, elements }) = at_hand {
                // SAFETY: they lie in memory that outlives the block, and are filled, as wide as the access and aligned. Those of
                // global memory are accessed atomically, those of shared memory by this thread alone.
                unsafe { expected.lay_at_hand(first, count, elements) };
            }
        }
        Ok(())
    }

    /// Adds `value` to an element, and leaves the old value in its place.
    ///
    /// # Safety
    /// As [`Element::store`].
    #[inline(never)]
    pub(super) unsafe fn atomic_add(&self, number: Number, element: Element, width: usize, value: *mut u8) {
        // Who waits for others is not silent.
        let thread = self.pulse.lane.thread.swap(0, Relaxed);
        self.job.launch.wait_for(self.worker.turn());
        self.pulse.lane.thread.store(thread, Relaxed);
        let (mut old, mut addend) = (0u64, 0u64);
        // SAFETY: the caller's promise; no value is wider than 8 bytes.
        unsafe {
            element.load(width, (&raw mut old).cast());
            ptr::copy_nonoverlapping(value, (&raw mut addend).cast(), width);
            let sum = add(number, old, addend);
            element.store(width, (&raw const sum).cast());
            ptr::copy_nonoverlapping((&raw const old).cast(), value, width);
        }
    }
}

/// The address that an access by the pointer `base` counts its indices from: in shared memory, the place.
#[inline(always)]
fn start(shared: &SharedMemory, space: Space, base: u64) -> u64 {
    match space {
        Space::Shared => shared.place(base),
        Space::Global | Space::Constant => base,
    }
}

fn add(number: Number, a: u64, b: u64) -> u64 {
    match number {
        Number::U32 => (a as u32).wrapping_add(b as u32).into(),
        Number::U64 => a.wrapping_add(b),
        Number::F32 => (f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits().into(),
    }
}
