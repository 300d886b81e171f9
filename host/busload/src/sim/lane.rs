//! What a lane sees: the [`Machine`] that the kernels' calls go to.
//!
//! A block's lanes run one at a time on one thread, each on a stack of its own. The scheduler and the running lane share
//! the block's [`Context`] through a raw pointer: whoever runs borrows it for the length of one step, and no borrow
//! lives across a switch between the two.

use super::banks;
use super::block::Thread;
use super::finding::{Finding, Kind, Position, triple};
use super::memory::{self, Element, Memory, offset_of};
use super::note::Seen;
use super::overflow::{self, Overflow};
use super::requests::{Phase, Request, Requests, Twice};
use super::sample::Sampler;
use super::sanitizer::{Look, Race, Sanitizer, Uninitialized};
use super::shared::SharedMemory;
use super::trace::{Trace, WHOLE_BLOCK};
use super::{Job, Pulse, Transactions, coalesce};
use corosensei::Yielder;
use gpu::device::host::{self, Access, Call, Coordinates, Machine, Number, Op, Site, Space};
use gpu::suite::{Buffer, Counts, Operation};
use rustc_hash::FxHashMap;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What a lane waits for.
#[derive(Clone, Copy)]
pub(super) enum State {
    /// It has what it waited for.
    Ready,
    /// The block's barrier.
    Block(Place),
    /// The other lanes, some way into a long loop, so that what all have asked for can be counted: the loop's path.
    Loop(u64),
    /// The lanes in a mask, perhaps to take the value of lane `source`.
    Warp { mask: u32, place: Place, source: Option<u32> },
    /// It has ended, or not begun: lanes begin in their order.
    Done,
}

/// Where a lane waits: a position, and the calls that lead there.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) at: &'static Location<'static>,
    call: Call,
}

impl Place {
    /// Whether lanes at both wait for one another; mostly their positions are one.
    #[inline(always)]
    pub(super) fn is(self, other: Self) -> bool {
        self.call.path == other.call.path && is_same(self.at, other.at)
    }

    /// What tells it from another place: its position or, where both have the same, the call that leads there.
    pub(super) fn told_from(self, other: Self) -> Position {
        let call = self.call.at.filter(|_| is_same(self.at, other.at));
        call.unwrap_or(self.at).into()
    }
}

/// Whether two positions are the same.
fn is_same(a: &'static Location<'static>, b: &'static Location<'static>) -> bool {
    ptr::eq(a, b) || a == b
}

/// A thread of the block.
pub(super) struct Lane {
    pub(super) state: State,
    /// The value it brings to a shuffle, and then the one it takes away.
    pub(super) value: u32,
    /// Calls it has made, as far as they are added up.
    calls: u64,
    /// Which iteration of which loops it is in, while it rests, and which calls.
    path: u64,
    call: Call,
    /// The stack that it waits on.
    pub(super) stack: Option<Thread>,
}

/// Which buffer or shared array a request went to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Region {
    Buffer(usize),
    Shared(&'static str),
}

/// What requests cost.
#[derive(Clone, Copy, Default)]
pub(super) struct Cost {
    pub(super) counts: Counts,
    /// Distinct bytes of global memory that the lanes of each request want.
    pub(super) used: u64,
    pub(super) transactions: Transactions,
}

/// What the requests of each site to each region cost.
#[derive(Default)]
pub(super) struct Costs {
    costs: Vec<(Site, Region, Cost)>,
    by_key: FxHashMap<(Site, Region), usize>,
    /// What the last request counted at each place of each list cost: warps mostly make the same requests in the same order.
    recent: Vec<Vec<Recent>>,
}

/// A request that was counted, and others that cost the same and are still to be added.
#[derive(Clone, Copy)]
struct Recent {
    shape: Option<Shape>,
    /// Which of the costs it belongs to.
    cost: usize,
    counts: Counts,
    used: u64,
    more: u64,
}

/// What decides the counts of a request of all lanes that are evenly spaced, and where it belongs to: its site, the pointer
/// that it came by, the bytes from lane to lane, and where in a line it begins, or in a bank.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    site: Site,
    base: u64,
    step: i64,
    offset: u64,
}

impl Shape {
    #[inline(always)]
    fn of(request: &Request<'_>) -> Option<Self> {
        let Request { site, step: Some(step), base: Some(base), .. } = *request else { return None };
        let unit = if site.space() == Space::Global { coalesce::LINE } else { banks::WIDTH };
        Some(Self { site, base, step, offset: request.first() % unit })
    }
}

impl Recent {
    /// Adds what is still to be added.
    fn settle(self, costs: &mut [(Site, Region, Cost)]) {
        if self.more > 0 {
            let cost = &mut costs[self.cost].2;
            cost.counts += self.counts * self.more;
            cost.used += self.used * self.more;
        }
    }
}

impl Costs {
    /// Adds a request at `place` among those of its warp if one of the same `shape` was the last one there.
    #[inline(always)]
    fn add_alike(&mut self, [list, place]: [usize; 2], shape: Shape) -> bool {
        match self.recent.get_mut(list).and_then(|recent| recent.get_mut(place)) {
            Some(recent) if recent.shape == Some(shape) => {
                recent.more += 1;
                true
            }
            _ => false,
        }
    }

    /// The costs that requests at `site` to `region` belong to.
    fn of(&mut self, site: Site, region: Region) -> usize {
        *self.by_key.entry((site, region)).or_insert_with(|| {
            self.costs.push((site, region, Cost::default()));
            self.costs.len() - 1
        })
    }

    /// Adds a request at `place`, of a `shape` if it has one, to its costs.
    fn add(
        &mut self,
        [list, place]: [usize; 2],
        shape: Option<Shape>,
        site: Site,
        region: Region,
        counts: Counts,
        used: u64,
    ) -> &mut Cost {
        if self.recent.len() <= list {
            self.recent.resize(list + 1, Vec::new());
        }
        let known = |recent: &&Recent| {
            let (known, of, _) = &self.costs[recent.cost];
            (*known, *of) == (site, region)
        };
        let cost = self.recent[list].get(place).filter(known).map(|recent| recent.cost);
        let cost = cost.unwrap_or_else(|| self.of(site, region));
        let recent = Recent { shape, cost, counts, used, more: 0 };
        match self.recent[list].get_mut(place) {
            Some(place) => std::mem::replace(place, recent).settle(&mut self.costs),
            None => self.recent[list].resize(place + 1, recent),
        }
        let cost = &mut self.costs[cost].2;
        cost.counts += counts;
        cost.used += used;
        cost
    }

    /// All of them, leaving none.
    pub(super) fn take(&mut self) -> Vec<(Site, Region, Cost)> {
        let Self { mut costs, recent, .. } = std::mem::take(self);
        recent.into_iter().flatten().for_each(|recent| recent.settle(&mut costs));
        costs
    }
}

impl Region {
    /// An address in bytes from the start of the buffer, or of the block's shared memory.
    pub(super) fn offset(self, address: u64) -> u64 {
        match self {
            Region::Buffer(_) => offset_of(address),
            Region::Shared(_) => address,
        }
    }
}

/// A block, and what is counted of all the blocks that ran here. What the facade knows of the running lane comes first, so
/// that a pointer to it is one to the whole.
#[repr(C)]
pub(super) struct Context {
    running: host::Lane,
    job: Arc<Job>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) lanes: Vec<Lane>,
    /// Where each of them stands in the block.
    thread_idx: Box<[[u32; 3]]>,
    /// The last barrier that the block has passed.
    phase: Phase,
    /// The threads of the warp that runs.
    warp: Range<usize>,
    /// How manieth block of the run this is.
    turn: u64,
    /// What the warp that is running has asked for.
    requests: Requests,
    shared: SharedMemory,
    sanitizer: Sanitizer,
    barriers: u64,
    pub(super) costs: Costs,
    /// What else was seen of each site's requests.
    pub(super) seen: FxHashMap<Site, Seen>,
    /// The calls that the running lane had made when it began or went on.
    began: u64,
    /// Whether requests are counted and nothing else is made of them.
    plain: bool,
    /// Looks at requests one by one, if asked to.
    pub(super) sampler: Option<Sampler>,
    /// What this block asked for, if somebody observes.
    pub(super) trace: Option<Trace>,
    pub(super) findings: Vec<Finding>,
    /// What leads from the running lane's stack back to the scheduler.
    pub(super) yielder: *const Yielder<(), ()>,
    /// Where the running lane's stack ends.
    pub(super) stack_end: usize,
    /// Whether a lane of the running warp has come to rest anywhere but at the block's barrier.
    pub(super) rested: bool,
    /// Where the first thread of the block has come to rest at its barrier, and how many have come to the same place.
    pub(super) at_barrier: Option<(Place, usize)>,
    /// What threads did that ended since the block's last barrier: accesses, their paths and the threads.
    ended: Vec<(Site, u64, u32)>,
    /// What threads did that ended while others waited at a barrier, with that barrier. Who comes by there after it shows that
    /// it stood on the way of those that ended.
    passed_by: FxHashMap<(Site, u64), (u32, Place)>,
    /// Whether the block cannot go on.
    pub(super) stopped: bool,
}

impl Context {
    /// A context in a box of its own, which its lanes and the scheduler share.
    pub(super) fn new(job: Arc<Job>, pulse: Arc<Pulse>) -> *mut Self {
        let threads = job.plan.launch.block_threads() as usize;
        let thread_idx = |thread| thread_idx(job.plan.launch.block, thread as u32);
        let watched = NonNull::from(&pulse.lane);
        let context = Box::into_raw(Box::new(Self {
            lanes: (0..threads)
                .map(|_| Lane { state: State::Done, value: 0, calls: 0, path: 0, call: Call::default(), stack: None })
                .collect(),
            thread_idx: (0..threads).map(thread_idx).collect(),
            pulse,
            phase: None,
            warp: 0..0,
            running: host::Lane::new(
                Coordinates {
                    block_dim: job.plan.launch.block,
                    grid_dim: job.plan.launch.grid,
                    ..Coordinates::default()
                },
                watched,
            ),
            turn: 0,
            requests: Requests::new(),
            shared: SharedMemory::new(&job.kernel, job.plan.launch.shared_bytes),
            sanitizer: Sanitizer::new(job.look, threads),
            barriers: 0,
            costs: Costs::default(),
            seen: FxHashMap::default(),
            began: 0,
            plain: job.arch.is_none() && job.sampling.is_none() && job.observer.is_none(),
            sampler: job.sampling.map(|sampling| Sampler::new(sampling, job.blocks.count())),
            trace: job.observer.as_ref().map(|observed| Trace::new(observed.observer.lines_a_warp())),
            findings: Vec::new(),
            yielder: ptr::null(),
            stack_end: 0,
            rested: false,
            at_barrier: None,
            ended: Vec::new(),
            passed_by: FxHashMap::default(),
            stopped: false,
            job,
        }));
        // SAFETY: it was just made.
        unsafe { (*context).running.machine = NonNull::new(context.cast::<Simulator>()).map(|machine| machine as _) };
        context
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

    /// Begins block number `block` of the grid, the `turn`-th of the run.
    pub(super) fn begin(&mut self, block: u64, turn: u64) {
        self.turn = turn;
        self.running.coordinates.block_idx = block_idx(self.job.plan.launch.grid, block);
        self.shared.reset();
        self.sanitizer.begin(turn);
        self.barriers = 0;
        self.phase = None;
        self.at_barrier = None;
        self.ended.clear();
        self.passed_by.clear();
        self.stopped = false;
    }

    fn block_idx(&self) -> [u32; 3] {
        self.running.coordinates.block_idx
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
    fn calls(&self) -> u64 {
        self.lanes[self.current()].calls + host::STEPS - self.running.left + self.requests.accesses(&self.running)
    }

    /// Steps of loops that the running lane has taken since it began or went on, and calls that are no accesses.
    fn steps(&self) -> u64 {
        self.lanes[self.current()].calls - self.began + host::STEPS - self.running.left
    }

    /// The running lane has ended: goes on as the next one of its warp, if that has not begun; the error is the reason to
    /// stop it.
    fn end_lane(&mut self) -> Result<bool, Stop> {
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
    fn stop(&mut self, reason: Stop, at: Option<&'static Location<'static>>) {
        let (kind, detail, place) = *reason.0;
        self.find(self.current(), kind, place.or(at).map(Position::from), None, detail);
        self.break_off();
    }

    /// The same once the kernel's code has been left for the reason, at the kernel's own position if `at` is unknown.
    #[cold]
    pub(super) fn fail(&mut self, kind: Kind, at: Option<Position>, detail: String) {
        let kernel = &self.job.kernel;
        let at = at.unwrap_or(Position { file: kernel.file, line: kernel.line, column: 1 });
        self.find(self.current(), kind, Some(at), None, detail);
        self.break_off();
    }

    /// The running lane does not go on, nor does the block.
    #[cold]
    fn break_off(&mut self) {
        // One that came by an access twice is stopped in any case.
        let _ = self.requests.close_alone(&self.running);
        self.stopped = true;
    }

    /// Records a finding about a thread of this block; the same one at the same lines is recorded once.
    pub(super) fn find(
        &mut self,
        thread: usize,
        kind: Kind,
        at: Option<Position>,
        other: Option<Position>,
        detail: String,
    ) {
        let finding = Finding { kind, at, other, block: self.block_idx(), thread: self.thread_idx(thread), detail };
        self.record(finding);
    }

    fn record(&mut self, finding: Finding) {
        // A race is one thing, from whichever side it is seen.
        let places = |finding: &Finding| (finding.at.min(finding.other), finding.at.max(finding.other));
        let known = |old: &Finding| old.kind == finding.kind && places(old) == places(&finding);
        if self.findings.len() < super::FINDINGS && !self.findings.iter().any(known) {
            self.findings.push(finding);
        }
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
    fn ended_lanes(&self) -> u32 {
        let is_done = |lane: &Lane| matches!(lane.state, State::Done);
        (0..).zip(&self.lanes[self.warp.clone()]).fold(0, |ended, (i, lane)| ended | u32::from(is_done(lane)) << i)
    }

    /// Counts the requests of a warp whose lanes have come together.
    pub(super) fn count(&mut self) {
        let made = self.requests.made(&mut self.running);
        self.requests.left_apart(u32::MAX, |site| self.seen.entry(site).or_default().left_apart = true);
        for place in 0..made {
            if self.job.exhausted.load(Relaxed) {
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
    fn find_passed_by(&mut self, place: usize) {
        let (site, path, lanes) = self.requests.passed(place);
        let Some(&(ended, barrier)) = self.passed_by.get(&(site, path)) else { return };
        let detail = format!(
            "a thread waits at this barrier, which thread {} passed by on its way to an access that both make",
            triple(self.thread_idx(ended as usize))
        );
        let thread = self.warp.start + lanes.trailing_zeros() as usize % 32;
        self.find(thread, Kind::DivergentBarrier, Some(barrier.at.into()), Some(site.at().into()), detail);
        // Once is enough.
        self.passed_by.clear();
        self.stopped = true;
    }

    /// Counts those requests that a lane in `lanes` takes part in: all of them have come to the same place in a loop, and
    /// what one of them has passed none will come by again.
    pub(super) fn count_passed(&mut self, lanes: u32) {
        let made = self.requests.made(&mut self.running);
        self.requests.left_apart(lanes, |site| self.seen.entry(site).or_default().left_apart = true);
        for place in 0..made {
            if self.requests.lanes(place) & lanes != 0 {
                self.count_request(place);
            }
        }
        self.requests.forget(lanes);
    }

    #[inline(always)]
    fn count_request(&mut self, place: usize) {
        if !self.passed_by.is_empty() {
            self.find_passed_by(place);
        }
        let first_look = self.sanitizer.look() == Look::First;
        let unseen = if first_look { self.requests.see(place, u32::MAX) } else { 0 };
        let request = self.requests.get(place, |site, base| start(&self.shared, site, base));
        if request.site.space() == Space::Global && request.site.operation() != Operation::Load {
            self.job.memory.wrote(&request);
        }
        if first_look {
            self.sanitizer.look_first(&self.job, &request, unseen, self.warp.start);
        }
        if self.plain
            && let Some(shape) = Shape::of(&request)
            && self.costs.add_alike(self.requests.place(place), shape)
        {
            return;
        }
        self.count_otherwise(place);
    }

    /// Counts a request that is not like the last one at its place.
    #[inline(never)]
    fn count_otherwise(&mut self, place: usize) {
        let (block_idx, warp) = (self.block_idx(), (self.warp.start / 32) as u32);
        let request = self.requests.get(place, |site, base| start(&self.shared, site, base));
        let shape = Shape::of(&request);
        let Request { site, mask, step, .. } = request;
        let Self { shared, costs, job, .. } = self;
        let (width, lanes) = (site.width(), u64::from(mask.count_ones()));
        let mut counts = Counts { requests: 1, lanes, ..Counts::default() };
        let mut used = 0;
        let region = match site.space() {
            Space::Global => {
                let addresses;
                (counts.sectors, counts.lines, addresses) = match step {
                    Some(step) => coalesce::evenly_spaced(request.first(), step, lanes),
                    None => coalesce::touched(request.active(&mut [0; 32])),
                };
                // Accesses of one width, aligned to it, are the same bytes or have none in common.
                used = addresses * width;
                if lanes > 1 && matches!(site.access().op(), Op::AtomicAdd(Number::U32 | Number::U64)) {
                    let seen = self.seen.entry(site).or_default();
                    *(if addresses == 1 { &mut seen.one_address } else { &mut seen.several_addresses }) = true;
                }
                counts.sectors_ideal = coalesce::ideal_sectors(counts.sectors, lanes, width);
                Region::Buffer(Memory::number(request.first()))
            }
            Space::Constant => {
                counts.wavefronts = banks::distinct(&request.addresses(), mask);
                counts.wavefronts_ideal = 1;
                Region::Buffer(Memory::number(request.first()))
            }
            Space::Shared => {
                let told = step.and_then(|step| banks::evenly_spaced(step, width));
                counts.wavefronts =
                    told.unwrap_or_else(|| banks::wavefronts(&request.addresses(), mask, width, site.operation()));
                counts.wavefronts_ideal = banks::ideal_wavefronts(counts.wavefronts, lanes, width);
                Region::Shared(shared.name(request.first()).0)
            }
        };
        let cost = costs.add(self.requests.place(place), shape, site, region, counts, used);
        if let (Space::Global, Some(arch)) = (site.space(), job.arch) {
            cost.transactions += arch.transactions(&request.addresses(), mask, width, site.is_past_l1());
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.look(self.turn, block_idx, warp, &request, region, counts);
        }
        if let Some(trace) = &mut self.trace {
            trace.add(warp, &request);
        }
    }

    /// Has the sanitizer look at what those of `lanes` did that take part in the request at `place`, if it is to look for the
    /// first time and has not.
    #[inline(always)]
    fn look_first(&mut self, place: usize, lanes: u32) {
        if self.sanitizer.look() == Look::First {
            let lanes = self.requests.see(place, lanes);
            let Self { requests, shared, sanitizer, .. } = self;
            let request = requests.get(place, |site, base| start(shared, site, base));
            sanitizer.look_first(&self.job, &request, lanes, self.warp.start);
        }
    }

    /// The same for all lanes and requests.
    pub(super) fn look_first_at_all(&mut self) {
        for place in 0..self.requests.made(&mut self.running) {
            self.look_first(place, u32::MAX);
        }
    }

    /// Closes the stretch of the running lane, which then jumps or meets others alone: whatever it does later is looked at later.
    fn close_alone(&mut self) -> Result<(), Twice> {
        for place in self.requests.close_alone(&self.running)? {
            self.look_first(place, 1 << self.running.number);
        }
        Ok(())
    }

    /// The lanes in `mask` of the warp that begins at thread `first` have met at a `sync_warp`.
    pub(super) fn meet(&mut self, first: usize, mask: u32) {
        self.sanitizer.meet(first, mask);
    }

    /// The block has passed a barrier.
    pub(super) fn pass_barrier(&mut self, at: &'static Location<'static>) {
        self.phase = Some(at);
        self.sanitizer.pass_barrier();
        if let Some(trace) = &mut self.trace {
            trace.wait(WHOLE_BLOCK, at);
        }
        self.count_barrier(0, at);
    }

    /// A warp's lanes have exchanged values.
    pub(super) fn pass_exchange(&mut self, warp: usize, at: &'static Location<'static>) {
        if let Some(trace) = &mut self.trace {
            trace.wait(warp as u16, at);
        }
    }

    /// How many cells of global memory the sanitizer was the first to see touched.
    pub(super) fn claims(&self) -> u64 {
        self.sanitizer.claims()
    }

    /// The block has ended.
    pub(super) fn end(&mut self) {
        for load in self.sanitizer.uninitialized_shared() {
            let finding = self.uninitialized(&load);
            self.record(finding);
        }
    }

    /// Counts a meeting of threads, of which `thread` is one; too many stop the block.
    pub(super) fn count_barrier(&mut self, thread: usize, at: &'static Location<'static>) {
        self.barriers += 1;
        if self.barriers > self.job.limits.barriers {
            let detail = format!("the block has passed more than {} barriers", self.job.limits.barriers);
            self.find(thread, Kind::NonTerminating, Some(at.into()), None, detail);
            self.stopped = true;
        }
    }

    /// Counts a call of the running lane; the error is the reason to stop it.
    #[inline(always)]
    fn call(&mut self) -> Result<(), Stop> {
        self.running.left -= 1;
        if self.running.left == 0 { self.ring() } else { Ok(()) }
    }

    #[cold]
    fn ring(&mut self) -> Result<(), Stop> {
        self.pulse.show();
        let current = self.current();
        self.lanes[current].calls += host::STEPS - self.running.left;
        self.running.left = host::STEPS;
        if self.calls() > self.job.limits.calls {
            let detail = format!("a thread has made more than {} accesses and loop steps", self.job.limits.calls);
            return Err(Stop::new(Kind::NonTerminating, detail));
        }
        Ok(())
    }

    /// Carries out an access of the running lane.
    fn access(
        &mut self,
        access: Access,
        base: u64,
        index: u64,
        value: *mut u8,
        at: &'static Location<'static>,
    ) -> Result<(), Stop> {
        let (site, width) = (Site::new(at, access), access.width());
        self.pulse.lane.tell(site);
        if self.job.exhausted.load(Relaxed) {
            return Err(Stop::new(Kind::NonTerminating, "there is no memory left".to_owned()));
        }
        let element = match access.space() {
            Space::Global | Space::Constant => self.job.memory.resolve(base, index, width as u64),
            Space::Shared => self.shared.resolve(base, index, width as u64),
        };
        let element = element.ok_or_else(|| self.outside(site, base, index))?;
        let address = element.address;
        if !address.is_multiple_of(width as u64) {
            let inside = access.space() == Space::Shared || self.job.memory.contains(address, width as u64);
            return Err(if inside { self.misaligned(site, address) } else { self.outside(site, base, index) });
        }
        // SAFETY: resolved and aligned; the facade's `value` is as wide as the access.
        unsafe {
            match access.op() {
                Op::Load(_) => element.load(width, value),
                Op::Store => element.store(width, value),
                Op::AtomicAdd(number) => self.atomic_add(number, element, width, value),
            }
        }
        if self.sanitizer.look() == Look::Second
            && let Some(race) = self.sanitizer.look_second(&self.job, self.current(), site, address)
        {
            let finding = self.race(site, &race);
            self.record(finding);
        }
        self.add_to_request(site, base, address).map_err(twice)
    }

    /// Enters an access of the running lane in the request that it belongs to. The next time, it finds its memory at hand.
    fn add_to_request(&mut self, site: Site, base: u64, address: u64) -> Result<(), Twice> {
        let place = self.requests.find(&mut self.running, site, base);
        if self.requests.is_elsewhere(&self.running, place) {
            self.close_alone()?;
        }
        let width = site.width();
        let expected = self.requests.add(&mut self.running, place)?;
        let start = start(&self.shared, site, expected.base());
        expected.enter(self.running.number, (address.wrapping_sub(start).cast_signed() / width.cast_signed()) as u64);
        if expected.base() != base {
            self.requests.part(place);
            return Ok(());
        }
        let alone = matches!(site.access().op(), Op::AtomicAdd(_)) || self.sanitizer.look() == Look::Second;
        if !alone && base.is_multiple_of(width) {
            match site.space() {
                Space::Shared => self.shared.lay_at_hand(expected, width),
                Space::Global | Space::Constant => self.job.memory.lay_at_hand(expected, address, width),
            }
        }
        Ok(())
    }

    /// Adds `value` to an element, and leaves the old value in its place.
    ///
    /// # Safety
    /// As [`Element::store`].
    #[inline(never)]
    unsafe fn atomic_add(&self, number: Number, element: Element, width: usize, value: *mut u8) {
        // Who waits for others is not silent.
        let thread = self.pulse.lane.thread.swap(0, Relaxed);
        self.job.turns.wait_for(self.turn);
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

    #[cold]
    fn outside(&self, site: Site, base: u64, index: u64) -> Stop {
        let missed = match site.space() {
            Space::Shared => self.shared.missed(base, index, site.width()),
            Space::Global | Space::Constant => self.job.memory.missed(base, index, site.width()),
        };
        Stop::new(Kind::OutOfBounds, format!("a thread {} {missed}", verb(site)))
    }

    #[cold]
    fn misaligned(&self, site: Site, address: u64) -> Stop {
        let ((name, offset), width) = (self.name(site.space(), address), site.width());
        let verb = verb(site);
        let detail =
            format!("a thread {verb} {width} bytes at byte {offset} of `{name}`, which is no multiple of {width}");
        Stop::new(Kind::Misaligned, detail)
    }

    /// The buffer or shared array that an address lies in, and the offset in it.
    fn name(&self, space: Space, address: u64) -> (&'static str, u64) {
        match space {
            Space::Shared => self.shared.name(address),
            Space::Global | Space::Constant => {
                (self.job.plan.buffers[Memory::number(address)].name, offset_of(address))
            }
        }
    }

    /// The report of a race in which the running thread, at `site`, is the later one.
    #[cold]
    fn race(&self, site: Site, race: &Race) -> Finding {
        let earlier = &race.earlier;
        let (name, offset) = self.name(site.space(), race.address);
        let thread = triple(thread_idx(self.job.plan.launch.block, earlier.moment.thread));
        let (who, nothing) = if earlier.moment.turn == self.turn {
            (format!("thread {thread}"), "no barrier orders the two")
        } else {
            let block = triple(self.block_of(earlier.moment.turn));
            (format!("thread {thread} of block {block}"), "nothing orders the blocks of a launch")
        };
        let [verb, other_verb] = [site, earlier.site].map(verb);
        Finding {
            kind: Kind::Race,
            at: Some(site.at().into()),
            other: Some(earlier.site.at().into()),
            block: self.block_idx(),
            thread: self.thread_idx(self.current()),
            detail: format!("a thread {verb} byte {offset} of `{name}`, which {who} {other_verb}, and {nothing}"),
        }
    }

    fn uninitialized(&self, load: &Uninitialized) -> Finding {
        let (name, offset) = self.name(load.site.space(), load.address);
        let verb = verb(load.site);
        Finding {
            kind: Kind::Uninitialized,
            at: Some(load.site.at().into()),
            other: None,
            block: self.block_of(load.moment.turn),
            thread: self.thread_idx(load.moment.thread as usize),
            detail: format!("a thread {verb} byte {offset} of `{name}`, which no thread has written"),
        }
    }

    fn block_of(&self, turn: u64) -> [u32; 3] {
        block_idx(self.job.plan.launch.grid, self.job.blocks.get(turn))
    }

    /// After the last block: adds the loads of global memory that nobody wrote to what was `found` in some turn, of which
    /// the first alone counts.
    pub(super) fn finish(&mut self, found: Option<(u64, Vec<Finding>)>) -> Option<(u64, Vec<Finding>)> {
        let loads = self.sanitizer.uninitialized_global();
        let Some(first) = loads.first().map(|load| load.moment.turn) else { return found };
        let found = found.filter(|(turn, _)| *turn <= first);
        let turn = found.as_ref().map_or(first, |(turn, _)| *turn);
        self.findings = found.map_or_else(Vec::new, |(_, findings)| findings);
        for load in loads.iter().filter(|load| load.moment.turn == turn) {
            let finding = self.uninitialized(load);
            self.record(finding);
        }
        Some((turn, std::mem::take(&mut self.findings)))
    }
}

/// The address that an access by the pointer `base` counts its indices from: in shared memory, the place.
#[inline(always)]
fn start(shared: &SharedMemory, site: Site, base: u64) -> u64 {
    match site.space() {
        Space::Shared => shared.place(base),
        Space::Global | Space::Constant => base,
    }
}

fn verb(site: Site) -> &'static str {
    match site.operation() {
        Operation::Load => "reads",
        Operation::Store => "writes",
        Operation::Atomic => "adds to",
    }
}

/// Blocks are numbered with x fastest, then y, then z.
pub(super) fn block_idx(grid: [u32; 3], block: u64) -> [u32; 3] {
    let [x, y, _] = grid.map(u64::from);
    [block % x, block / x % y, block / x / y].map(|i| i as u32)
}

/// Threads are numbered with x fastest, then y, then z.
pub(super) fn thread_idx([width, height, _]: [u32; 3], thread: u32) -> [u32; 3] {
    [thread % width, thread / width % height, thread / width / height]
}

#[cold]
fn twice(Twice(site): Twice) -> Stop {
    let detail = "a lane comes by this access twice in one iteration, so its requests cannot be told apart: run the loop \
                  around it through `steps`, `each` or `unroll!`, or make the function it stands in a `#[device]` one";
    Stop(Box::new((Kind::OpenGrouping, detail.into(), Some(site.at()))))
}

#[cold]
fn stack_overflow() -> Stop {
    Stop::new(Kind::StackOverflow, Overflow::detail())
}

fn add(number: Number, a: u64, b: u64) -> u64 {
    match number {
        Number::U32 => (a as u32).wrapping_add(b as u32).into(),
        Number::U64 => a.wrapping_add(b),
        Number::F32 => (f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits().into(),
    }
}

/// Why the running lane cannot go on, and where if that is elsewhere: boxed, so that going on costs nothing.
struct Stop(Box<(Kind, String, Option<&'static Location<'static>>)>);

impl Stop {
    #[cold]
    fn new(kind: Kind, detail: String) -> Self {
        Self(Box::new((kind, detail, None)))
    }
}

/// The machine that a block's lanes run on: the block itself. Only a lane that runs has a reference to it, and the scheduler
/// holds none into the block meanwhile.
#[repr(transparent)]
struct Simulator(UnsafeCell<Context>);

/// Lets the scheduler run until the lane may go on.
///
/// # Safety
/// `context` is the current block, a lane of it is running, and nobody holds a reference into it.
pub(super) unsafe fn suspend(context: *mut Context) {
    // SAFETY: the lane's coroutine keeps its yielder alive while it runs.
    unsafe {
        let (yielder, stack_end) = ((*context).yielder, (*context).stack_end);
        (*yielder).suspend(());
        // Other stacks have run meanwhile.
        ((*context).yielder, (*context).stack_end) = (yielder, stack_end);
    }
}

/// Records why the running lane stops, stops the block, and never comes back.
#[cold]
unsafe fn stop(context: *mut Context, reason: Stop, at: Option<&'static Location<'static>>) -> ! {
    // SAFETY: as the caller says; the borrow ends before the switch.
    unsafe {
        (*context).stop(reason, at);
        loop {
            suspend(context);
        }
    }
}

impl Simulator {
    /// Runs a step of the running lane, which stands at `at`, on the current block.
    #[inline(always)]
    fn step<T>(&self, at: Option<&'static Location<'static>>, step: impl FnOnce(&mut Context) -> Result<T, Stop>) -> T {
        let context = self.0.get();
        // SAFETY: nobody else refers to the block while a lane runs.
        let block = unsafe { &mut *context };
        let result = if overflow::stack_pointer() < block.stack_end { Err(stack_overflow()) } else { step(block) };
        match result {
            Ok(value) => value,
            // SAFETY: the step's borrow has ended.
            Err(reason) => unsafe { stop(context, reason, at) },
        }
    }

    /// Puts the running lane to rest in a state, with the value that it brings, until the scheduler makes it ready again.
    /// `alone` says that it does not meet its whole warp.
    #[inline(always)]
    fn rest(&self, state: impl Fn(Place) -> State, alone: bool, value: u32, at: &'static Location<'static>) {
        self.step(Some(at), |block| {
            block.call()?;
            let state = state(Place { at, call: block.running.call });
            match state {
                State::Block(place) => match block.at_barrier.get_or_insert((place, 0)) {
                    (first, threads) if first.is(place) => *threads += 1,
                    _ => {}
                },
                _ => block.rested = true,
            }
            let steps = block.steps();
            if alone {
                block.close_alone().map_err(twice)?;
                block.requests.step(block.running.number, steps);
            } else {
                block.requests.close(&mut block.running, steps).map_err(twice)?;
            }
            block.requests.rest(&block.running);
            let (calls, path, call) = (block.calls(), block.running.path, block.running.call);
            let lane = block.leave(state);
            (lane.value, lane.calls, lane.path, lane.call) = (value, calls, path, call);
            Ok(())
        });
        // SAFETY: no reference into the block is held across the switch.
        unsafe { suspend(self.0.get()) };
    }
}

impl Machine for Simulator {
    unsafe fn access(&self, access: Access, base: u64, index: u64, value: *mut u8, at: &'static Location<'static>) {
        self.step(Some(at), |block| block.access(access, base, index, value, at));
    }

    fn advance(&self, space: Space, base: u64, bytes: i64) -> u64 {
        match space {
            Space::Shared => SharedMemory::advance(base as u32, bytes).into(),
            Space::Global | Space::Constant => memory::advance(base, bytes),
        }
    }

    fn shared_array(&self, name: &'static str, at: &'static Location<'static>) -> u32 {
        self.step(Some(at), |block| {
            block.call()?;
            Ok(block.shared.array(name))
        })
    }

    fn constant_array(&self, name: &'static str, bytes: usize, at: &'static Location<'static>) -> u64 {
        self.step(Some(at), |block| {
            block.call()?;
            let of = |buffer: &Buffer| buffer.constant && buffer.name == name && buffer.bytes() == bytes as u64;
            match block.job.plan.buffers.iter().position(of) {
                Some(buffer) => Ok(Memory::base(buffer)),
                None => unreachable!("`arguments::words` matches the plan to the kernel's constant arrays"),
            }
        })
    }

    fn dynamic_shared(&self, at: &'static Location<'static>) -> u32 {
        self.step(Some(at), |block| {
            block.call()?;
            Ok(block.shared.dynamic())
        })
    }

    fn sync_threads(&self, at: &'static Location<'static>) {
        self.rest(State::Block, false, 0, at);
    }

    fn sync_warp(&self, mask: u32, at: &'static Location<'static>) {
        self.rest(|place| State::Warp { mask, place, source: None }, mask != u32::MAX, 0, at);
    }

    fn exchange(&self, mask: u32, value: u32, source: u32, at: &'static Location<'static>) -> u32 {
        self.rest(|place| State::Warp { mask, place, source: Some(source) }, mask != u32::MAX, value, at);
        // SAFETY: nobody else refers to the block while a lane runs.
        let block = unsafe { &*self.0.get() };
        block.lanes[block.current()].value
    }

    fn pause(&self, is_far: bool, at: &'static Location<'static>) {
        let path = self.step(Some(at), |block| {
            if block.running.left == 0 {
                block.ring()?;
            }
            Ok(block.running.path)
        });
        if is_far {
            self.rest(|_| State::Loop(path), false, 0, at);
        }
    }

    fn end(&self) -> bool {
        self.step(None, Context::end_lane)
    }

    fn clock(&self, at: &'static Location<'static>) -> u64 {
        self.step(Some(at), |block| {
            block.call()?;
            Ok(block.calls())
        })
    }
}
