//! What a lane sees: the [`Machine`] that the kernels' calls go to.
//!
//! A block's lanes run one at a time on one thread, each on a stack of its own. The scheduler and the running lane share
//! the block's [`Context`] through a raw pointer: whoever runs borrows it for the length of one step, and no borrow
//! lives across a switch between the two.

use super::banks;
use super::finding::{Finding, Kind, Position, triple};
use super::memory::{self, Element, Memory, RecentPages, offset_of};
use super::overflow::{self, Overflow};
use super::requests::{OpenGrouping, Request, Requests, Site, made};
use super::sample::Sampler;
use super::sanitizer::{Look, Race, Sanitizer, Uninitialized};
use super::shared::{self, SharedMemory};
use super::trace::{Trace, WHOLE_BLOCK};
use super::{Job, Pulse, Transactions, coalesce};
use corosensei::Yielder;
use gpu::device::host::{self, Access, Accesses, CarryOut, Coordinates, Machine, Number, Op, Space};
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
    /// It has not begun.
    Fresh,
    /// It has what it waited for.
    Ready,
    /// The block's barrier.
    Block(&'static Location<'static>),
    /// The other lanes, some way into a long loop, so that what all have asked for can be counted: the loop's path.
    Loop(u64),
    /// The lanes in a mask, perhaps to take the value of lane `source`.
    Warp { mask: u32, at: &'static Location<'static>, source: Option<u32> },
    /// It has ended.
    Done,
}

/// A thread of the block.
pub(super) struct Lane {
    pub(super) state: State,
    /// The value it brings to a shuffle, and then the one it takes away.
    pub(super) value: u32,
    thread_idx: [u32; 3],
    /// Calls it has made, less those since the last sign of life.
    calls: u64,
    /// Where it is in its loops, while it rests.
    loops: Loops,
}

/// Where a lane is in its loops.
#[derive(Default)]
struct Loops {
    /// Which iteration of which loops, as a hash.
    path: u64,
    /// The path at the entry of the innermost loop: the one outside, and the loop's position; and the iteration's number.
    entry: u64,
    number: u64,
    /// The loops entered, the innermost last.
    entered: Vec<Entered>,
}

/// A loop that a lane has entered, and where it was outside of it.
struct Entered {
    at: &'static Location<'static>,
    path: u64,
    entry: u64,
    number: u64,
}

impl Loops {
    fn reset(&mut self) {
        self.path = 0;
        self.entered.clear();
    }

    #[inline(always)]
    fn enter(&mut self, at: &'static Location<'static>) {
        let Self { path, entry, number, .. } = *self;
        self.entered.push(Entered { at, path, entry, number });
        self.path = mix(path, ptr::from_ref(at).addr() as u64);
        (self.entry, self.number) = (self.path, 0);
    }

    #[inline(always)]
    fn next(&mut self) {
        self.number += 1;
        self.path = self.entry.wrapping_add(self.number.wrapping_mul(SPREAD));
    }

    #[inline(always)]
    fn exit(&mut self) {
        if let Some(Entered { path, entry, number, .. }) = self.entered.pop() {
            (self.path, self.entry, self.number) = (path, entry, number);
        }
    }
}

/// An odd number with its bits all over: the golden ratio in 64 bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Spreads the bits of a path and the next step of it.
fn mix(path: u64, step: u64) -> u64 {
    let mixed = (path ^ step.wrapping_mul(SPREAD)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 29)
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
    pub(super) transactions: Transactions,
}

/// What the requests of each site to each region cost.
#[derive(Default)]
pub(super) struct Costs {
    costs: Vec<(Site, Region, Cost)>,
    by_key: FxHashMap<(Site, Region), usize>,
    /// Which of them the last request counted at each place among those of its warp went to: warps mostly make the same
    /// requests in the same order.
    recent: Vec<usize>,
}

impl Costs {
    /// The costs that the request at `place` among those of its warp belongs to.
    #[inline(always)]
    fn of(&mut self, place: usize, site: Site, region: Region) -> &mut Cost {
        let known = |&i: &usize| (self.costs[i].0, self.costs[i].1) == (site, region);
        let i = match self.recent.get(place).copied().filter(known) {
            Some(i) => i,
            None => self.find(place, site, region),
        };
        &mut self.costs[i].2
    }

    #[inline(never)]
    fn find(&mut self, place: usize, site: Site, region: Region) -> usize {
        let i = *self.by_key.entry((site, region)).or_insert_with(|| {
            self.costs.push((site, region, Cost::default()));
            self.costs.len() - 1
        });
        if self.recent.len() <= place {
            self.recent.resize(place + 1, i);
        }
        self.recent[place] = i;
        i
    }

    /// All of them, leaving none.
    pub(super) fn take(&mut self) -> Vec<(Site, Region, Cost)> {
        std::mem::take(self).costs
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
    pub(super) current: usize,
    /// How many calls are left to the running lane until it is time to show a sign of life, or to see that it does not end.
    left: u64,
    /// Where the running lane is in its loops.
    loops: Loops,
    /// How manieth block of the run this is.
    turn: u64,
    /// What the warp that is running has asked for.
    requests: Requests,
    /// Where it mostly finds global memory.
    recent: RecentPages,
    shared: SharedMemory,
    sanitizer: Sanitizer,
    barriers: u64,
    pub(super) costs: Costs,
    /// Looks at requests one by one, if asked to.
    pub(super) sampler: Option<Sampler>,
    /// What this block asked for, if somebody observes.
    pub(super) trace: Option<Trace>,
    pub(super) findings: Vec<Finding>,
    /// What leads from the running lane's stack back to the scheduler.
    pub(super) yielder: *const Yielder<(), ()>,
    /// Where the running lane's stack ends.
    pub(super) stack_end: usize,
    /// Where the threads of the running warp end.
    warp_end: usize,
    /// Whether a lane of the running warp has come to rest anywhere but at the block's barrier.
    pub(super) rested: bool,
    /// Whether a thread of the block has come to rest at its barrier.
    pub(super) at_barrier: bool,
    /// Whether the block cannot go on.
    pub(super) stopped: bool,
}

impl Context {
    /// A context in a box of its own, which its lanes and the scheduler share.
    pub(super) fn new(job: Arc<Job>, pulse: Arc<Pulse>) -> *mut Self {
        let threads = job.plan.launch.block_threads() as usize;
        let lanes = (0..threads).map(|thread| Lane {
            state: State::Done,
            value: 0,
            thread_idx: thread_idx(job.plan.launch.block, thread as u32),
            calls: 0,
            loops: Loops::default(),
        });
        let context = Box::into_raw(Box::new(Self {
            lanes: lanes.collect(),
            pulse,
            current: 0,
            left: 0,
            loops: Loops::default(),
            running: host::Lane {
                coordinates: Coordinates {
                    block_dim: job.plan.launch.block,
                    grid_dim: job.plan.launch.grid,
                    ..Coordinates::default()
                },
                accesses: match job.look {
                    Look::Away => &UNSEEN,
                    Look::First => &SEEN,
                    Look::Second => &EXAMINED,
                },
                machine: None,
            },
            turn: 0,
            requests: Requests::new(),
            recent: RecentPages::new(),
            shared: SharedMemory::new(job.plan.launch.shared_bytes),
            sanitizer: Sanitizer::new(job.look, threads),
            barriers: 0,
            costs: Costs::default(),
            sampler: job.sampling.map(|sampling| Sampler::new(sampling, job.blocks.count())),
            trace: job.observer.as_ref().map(|observed| Trace::new(observed.observer.lines_a_warp())),
            findings: Vec::new(),
            yielder: ptr::null(),
            stack_end: 0,
            warp_end: 0,
            rested: false,
            at_barrier: false,
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

    /// Bytes of shared memory that a block has.
    pub(super) fn shared_bytes(&self) -> u64 {
        self.shared.used()
    }

    /// Forgets what the lanes of an abandoned block asked for, and which loops they were in.
    pub(super) fn forget(&mut self) {
        self.requests.clear();
        self.loops.reset();
        self.lanes.iter_mut().for_each(|lane| lane.loops.reset());
    }

    /// Begins block number `block` of the grid, the `turn`-th of the run.
    pub(super) fn begin(&mut self, block: u64, turn: u64) {
        self.turn = turn;
        self.running.coordinates.block_idx = block_idx(self.job.plan.launch.grid, block);
        self.shared.reset();
        self.sanitizer.begin(turn);
        self.barriers = 0;
        self.at_barrier = false;
        self.stopped = false;
        for lane in &mut self.lanes {
            lane.state = State::Fresh;
            lane.calls = 0;
        }
    }

    fn block_idx(&self) -> [u32; 3] {
        self.running.coordinates.block_idx
    }

    pub(super) fn thread_idx(&self, thread: usize) -> [u32; 3] {
        self.lanes[thread].thread_idx
    }

    /// The first of the threads that has something to do.
    pub(super) fn find_ready(&self, mut threads: Range<usize>) -> Option<usize> {
        threads.find(|&thread| matches!(self.lanes[thread].state, State::Fresh | State::Ready))
    }

    /// The warp of these threads is the one that runs.
    pub(super) fn begin_warp(&mut self, threads: Range<usize>) {
        self.warp_end = threads.end;
        self.rested = false;
    }

    /// Makes `thread` the one that runs.
    pub(super) fn select(&mut self, thread: usize) {
        self.begin_lane(thread);
        let lane = &mut self.lanes[thread];
        // One that begins is in no loop, and whoever ran before has left its own: it has ended, or taken them to its rest.
        if let State::Ready = lane.state {
            std::mem::swap(&mut self.loops, &mut lane.loops);
            self.requests.resume();
        }
        self.pulse.show();
    }

    /// Makes `thread` the one that runs, from its first call on.
    #[inline(always)]
    fn begin_lane(&mut self, thread: usize) {
        self.current = thread;
        self.left = SIGN_OF_LIFE;
        self.requests.begin(thread % 32);
        if self.sanitizer.is_looking() {
            self.sanitizer.select(thread);
        }
        self.pulse.thread.store(thread as u64 + 1, Relaxed);
        self.running.coordinates.thread_idx = self.lanes[thread].thread_idx;
    }

    /// No thread runs any more.
    pub(super) fn deselect(&mut self) {
        self.lanes[self.current].calls = self.calls();
        self.pulse.thread.store(0, Relaxed);
    }

    /// Calls of the running lane so far.
    fn calls(&self) -> u64 {
        self.lanes[self.current].calls + SIGN_OF_LIFE - self.left
    }

    /// The running lane has ended: goes on with the next one of its warp, if that has not begun.
    pub(super) fn end_lane(&mut self) -> bool {
        self.lanes[self.current].state = State::Done;
        let next = self.current + 1;
        let goes_on = next < self.warp_end && matches!(self.lanes[next].state, State::Fresh);
        if goes_on {
            self.begin_lane(next);
        }
        goes_on
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

    /// Counts the requests of a warp whose lanes have come together.
    pub(super) fn count(&mut self) {
        let complete = self.requests.take();
        self.count_requests(made(&complete));
        self.requests.give_back(complete);
    }

    /// Counts those requests that a lane in `lanes` takes part in: all of them have come to the same place in a loop, and
    /// what one of them has passed none will come by again.
    pub(super) fn count_passed(&mut self, lanes: u32) {
        let passed = self.requests.take_passed(lanes);
        self.count_requests(&passed);
    }

    fn count_requests(&mut self, requests: &[Request]) {
        let (block_idx, warp) = (self.block_idx(), self.current as u32 / 32);
        for (place, request) in requests.iter().enumerate() {
            let (site, width) = (request.site, request.site.width());
            let lanes = u64::from(request.mask.count_ones());
            let first = request.addresses[request.mask.trailing_zeros() as usize];
            let mut counts = Counts { requests: 1, lanes, ..Counts::default() };
            let region = match site.space() {
                Space::Global => {
                    (counts.sectors, counts.lines) = match request.mask {
                        u32::MAX => coalesce::sectors_and_lines(&request.addresses),
                        _ => coalesce::sectors_and_lines(request.active(&mut [0; 32])),
                    };
                    counts.sectors_ideal = coalesce::ideal_sectors(counts.sectors, lanes, width);
                    Region::Buffer(Memory::number(first))
                }
                Space::Constant => {
                    counts.wavefronts = banks::distinct(&request.addresses, request.mask);
                    counts.wavefronts_ideal = 1;
                    Region::Buffer(Memory::number(first))
                }
                Space::Shared => {
                    counts.wavefronts = banks::wavefronts(&request.addresses, request.mask, width);
                    counts.wavefronts_ideal = banks::ideal_wavefronts(counts.wavefronts, lanes, width);
                    Region::Shared(self.shared.name(first).0)
                }
            };
            let cost = self.costs.of(place, site, region);
            cost.counts += counts;
            if let (Space::Global, Some(arch)) = (site.space(), self.job.arch) {
                cost.transactions += arch.transactions(&request.addresses, request.mask, width, site.is_past_l1());
            }
            if let Some(sampler) = &mut self.sampler {
                sampler.look(self.turn, block_idx, warp, request, region, counts);
            }
            if let Some(trace) = &mut self.trace {
                trace.add(warp, request);
            }
        }
    }

    /// The lanes in `mask` of the warp that begins at thread `first` have met at a `sync_warp`.
    pub(super) fn meet(&mut self, first: usize, mask: u32) {
        self.sanitizer.meet(first, mask);
    }

    /// The block has passed a barrier.
    pub(super) fn pass_barrier(&mut self, at: &'static Location<'static>) {
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
        self.left -= 1;
        if self.left == 0 { self.ring() } else { Ok(()) }
    }

    #[cold]
    fn ring(&mut self) -> Result<(), Stop> {
        self.pulse.show();
        self.lanes[self.current].calls = self.calls();
        self.left = SIGN_OF_LIFE;
        if self.calls() > self.job.limits.calls {
            let detail = format!("a thread has made more than {} accesses and loop steps", self.job.limits.calls);
            return Err(Stop::new(Kind::NonTerminating, detail));
        }
        Ok(())
    }

    /// Carries out an access of the running lane that goes as most do: nothing is due, it touches a page touched lately, and
    /// belongs to the request that is expected next. Does nothing and returns false if it does not.
    #[inline(always)]
    fn access_expected<const SANITIZE: bool>(
        &mut self,
        access: Access,
        base: u64,
        index: u64,
        value: *mut u8,
        at: &'static Location<'static>,
    ) -> bool {
        // The value lies on the lane's stack.
        if value.addr() < self.stack_end {
            return false;
        }
        let (site, width) = (Site::new(at, access), access.width());
        match access.space() {
            Space::Global | Space::Constant => {
                let Some(address) = memory::address(base, index, width as u64) else { return false };
                if !address.is_multiple_of(width as u64) || matches!(access.op(), Op::AtomicAdd(_)) {
                    return false;
                }
                let page = self.requests.add_expected(site, &self.loops.path, address, Some(&self.recent));
                let Some(page) = page else { return false };
                let element = Element::of_page(page, address);
                // SAFETY: resolved and aligned; the facade's `value` is as wide as the access.
                unsafe {
                    match access.op() {
                        Op::Load(_) => element.load(width, value),
                        Op::Store | Op::AtomicAdd(_) => element.store(width, value),
                    }
                }
                let looks = SANITIZE && access.space() == Space::Global;
                if looks && !self.sanitizer.look_plainly(&page.shadow, access, address) {
                    self.look_closely(access, address);
                }
            }
            Space::Shared => {
                let Some(place) = self.shared.resolve(base, index, width as u64) else { return false };
                let aligned = place.is_multiple_of(width as u64);
                if !aligned || self.requests.add_expected(site, &self.loops.path, place, None).is_none() {
                    return false;
                }
                // SAFETY: resolved; the facade's `value` is as wide as the access.
                unsafe {
                    match access.op() {
                        Op::Load(_) => self.shared.load(place, width, value),
                        Op::Store | Op::AtomicAdd(_) => self.shared.store(place, width, value),
                    }
                }
                if SANITIZE {
                    self.sanitizer.look_first(&self.job, &mut self.recent, access, place);
                }
            }
        }
        self.pulse.at.store(ptr::from_ref(at).cast_mut(), Relaxed);
        true
    }

    /// Looks for the first time at an access to global memory that may be suspicious. What was entered of it is entered
    /// again, which makes no difference.
    #[inline(never)]
    fn look_closely(&mut self, access: Access, address: u64) {
        self.sanitizer.look_first(&self.job, &mut self.recent, access, address);
    }

    /// Carries out any access of the running lane.
    #[inline(always)]
    fn access(
        &mut self,
        access: Access,
        base: u64,
        index: u64,
        value: *mut u8,
        at: &'static Location<'static>,
    ) -> Result<(), Stop> {
        self.call()?;
        self.pulse.at.store(ptr::from_ref(at).cast_mut(), Relaxed);
        let (site, width) = (Site::new(at, access), access.width());
        let address = match access.space() {
            Space::Global | Space::Constant => {
                let Some(element) = self.job.memory.resolve(&mut self.recent, base, index, width as u64) else {
                    return Err(self.outside(site, base, index));
                };
                if !element.address.is_multiple_of(width as u64) {
                    return Err(match self.job.memory.contains(element.address, width as u64) {
                        true => self.misaligned(site, element.address),
                        false => self.outside(site, base, index),
                    });
                }
                // SAFETY: resolved and aligned; the facade's `value` is as wide as the access.
                unsafe {
                    match access.op() {
                        Op::Load(_) => element.load(width, value),
                        Op::Store => element.store(width, value),
                        Op::AtomicAdd(number) => self.atomic_add(number, element, width, value),
                    }
                }
                element.address
            }
            Space::Shared => {
                let Some(place) = self.shared.resolve(base, index, width as u64) else {
                    return Err(self.outside(site, base, index));
                };
                if !place.is_multiple_of(width as u64) {
                    return Err(self.misaligned(site, place));
                }
                // SAFETY: resolved; the facade's `value` is as wide as the access.
                unsafe {
                    match access.op() {
                        Op::Load(_) => self.shared.load(place, width, value),
                        Op::Store | Op::AtomicAdd(_) => self.shared.store(place, width, value),
                    }
                }
                place
            }
        };
        if let Some(race) = self.sanitizer.look(&self.job, &mut self.recent, site, access, address) {
            let finding = self.race(site, &race);
            self.record(finding);
        }
        self.requests.add(site, self.loops.path, address).map_err(open_grouping)
    }

    /// Adds `value` to an element, and leaves the old value in its place.
    ///
    /// # Safety
    /// As [`Element::store`].
    #[inline(never)]
    unsafe fn atomic_add(&self, number: Number, element: Element<'_>, width: usize, value: *mut u8) {
        // Who waits for others is not silent.
        let thread = self.pulse.thread.swap(0, Relaxed);
        self.job.turns.wait_for(self.turn);
        self.pulse.thread.store(thread, Relaxed);
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
        let width = site.width();
        let missed = match (site.space(), self.job.memory.buffer_of(base)) {
            (Space::Shared, _) => self.shared.missed(base, index, width),
            (Space::Global | Space::Constant, None) => {
                "memory through a pointer that is no buffer of the launch".into()
            }
            (Space::Global | Space::Constant, Some(buffer)) => {
                let buffer = &self.job.plan.buffers[buffer];
                // An index below zero has wrapped.
                let start = i128::from(index.cast_signed()) * i128::from(width) + i128::from(offset_of(base));
                format!("{width} bytes at byte {start} of `{}`, which has {}", buffer.name, buffer.bytes())
            }
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
            thread: self.thread_idx(self.current),
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
fn open_grouping(_: OpenGrouping) -> Stop {
    let detail = "a lane comes by this access twice in one iteration, so its requests cannot be told apart: run the loop \
                  around it through `steps`, `each` or `unroll!`, or mark the function it stands in `#[track_caller]`";
    Stop::new(Kind::OpenGrouping, detail.into())
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

/// Why the running lane cannot go on: boxed, so that going on costs nothing.
struct Stop(Box<(Kind, String)>);

impl Stop {
    #[cold]
    fn new(kind: Kind, detail: String) -> Self {
        Self(Box::new((kind, detail)))
    }
}

/// Iterations of an outermost loop between two pauses, which bound what is kept of requests not counted yet.
const PAUSE: u64 = 1 << 12;

/// Calls between two signs of life.
const SIGN_OF_LIFE: u64 = 1 << 12;

/// The machine that a block's lanes run on: the block itself. Only a lane that runs has a reference to it, and the scheduler
/// holds none into the block meanwhile.
#[repr(transparent)]
struct Simulator(UnsafeCell<Context>);

/// Carries out an access of the kind and width that are its parameters, under the sanitizer's first look or none.
unsafe fn carry_out<const KIND: usize, const LOG_WIDTH: usize, const SANITIZE: bool>(
    lane: *mut host::Lane,
    base: u64,
    index: u64,
    value: *mut u8,
    at: &'static Location<'static>,
) {
    let access = const { Access::new(KIND, LOG_WIDTH) };
    // SAFETY: the running lane is the first field of its context, which nobody else refers to.
    let block = unsafe { &mut *lane.cast::<Context>() };
    if !block.access_expected::<SANITIZE>(access, base, index, value, at) {
        // SAFETY: as for this function.
        return unsafe { carry_out_unexpected::<KIND, LOG_WIDTH>(lane, base, index, value, at) };
    }
    block.left -= 1;
    if block.left == 0 {
        // SAFETY: the borrow of the block has ended.
        unsafe { ring(lane, at) };
    }
}

/// The same for an access that does not go as most do, under any look.
#[inline(never)]
unsafe fn carry_out_unexpected<const KIND: usize, const LOG_WIDTH: usize>(
    lane: *mut host::Lane,
    base: u64,
    index: u64,
    value: *mut u8,
    at: &'static Location<'static>,
) {
    let access = const { Access::new(KIND, LOG_WIDTH) };
    // SAFETY: the running lane is the first field of its context, which is all of its machine.
    let simulator = unsafe { &*lane.cast::<Simulator>() };
    simulator.step(Some(at), |block| block.access(access, base, index, value, at));
}

/// It is time to show a sign of life.
#[cold]
#[inline(never)]
unsafe fn ring(lane: *mut host::Lane, at: &'static Location<'static>) {
    // SAFETY: as in `carry_out_unexpected`.
    unsafe { &*lane.cast::<Simulator>() }.step(Some(at), Context::ring);
}

macro_rules! accesses { ($carry_out:ident $(, $sanitize:literal)?) => {{
    const fn of<const KIND: usize>() -> [CarryOut; Access::WIDTHS] {
        [
            $carry_out::<KIND, 0 $(, $sanitize)?>,
            $carry_out::<KIND, 1 $(, $sanitize)?>,
            $carry_out::<KIND, 2 $(, $sanitize)?>,
            $carry_out::<KIND, 3 $(, $sanitize)?>,
            $carry_out::<KIND, 4 $(, $sanitize)?>,
        ]
    }
    [of::<0>(), of::<1>(), of::<2>(), of::<3>(), of::<4>(), of::<5>(), of::<6>(), of::<7>(), of::<8>()]
}} }

/// What carries out accesses under each of the sanitizer's looks.
static UNSEEN: Accesses = accesses!(carry_out, false);
static SEEN: Accesses = accesses!(carry_out, true);
static EXAMINED: Accesses = accesses!(carry_out_unexpected);

/// Lets the scheduler run until the lane may go on.
///
/// # Safety
/// `context` is the current block, a lane of it is running, and nobody holds a reference into it.
unsafe fn suspend(context: *mut Context) {
    // SAFETY: the lane's coroutine keeps its yielder alive while it runs.
    unsafe {
        let yielder = (*context).yielder;
        (*yielder).suspend(());
        // Other stacks have run meanwhile.
        (*context).yielder = yielder;
    }
}

/// Records why the running lane stops, stops the block, and never comes back.
#[cold]
unsafe fn stop(context: *mut Context, reason: Stop, at: Option<&'static Location<'static>>) -> ! {
    // SAFETY: as the caller says; the borrow ends before the switch.
    unsafe {
        let block = &mut *context;
        let (kind, detail) = *reason.0;
        block.find(block.current, kind, at.map(Position::from), None, detail);
        block.stopped = true;
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

    /// The running lane has begun an iteration of a loop in which it is time for a sign of life, or to let others catch up.
    #[cold]
    #[inline(never)]
    fn pause(&self) {
        // SAFETY: as in `step`; the borrow ends with the next statement.
        let Loops { path, number, ref entered, .. } = unsafe { &*self.0.get() }.loops;
        let (at, outermost) = (entered.last().map(|innermost| innermost.at), entered.len() == 1);
        self.step(at, |block| if block.left == 0 { block.ring() } else { Ok(()) });
        if let (true, Some(at)) = (outermost && number.is_multiple_of(PAUSE), at) {
            self.rest(State::Loop(path), 0, at);
        }
    }

    /// Puts the running lane to rest in `state`, until the scheduler makes it ready again.
    fn rest(&self, state: State, value: u32, at: &'static Location<'static>) -> u32 {
        self.step(Some(at), |block| {
            block.call()?;
            match state {
                State::Block(_) => block.at_barrier = true,
                _ => block.rested = true,
            }
            let lane = &mut block.lanes[block.current];
            lane.value = value;
            lane.state = state;
            std::mem::swap(&mut block.loops, &mut lane.loops);
            block.requests.rest();
            Ok(())
        });
        let context = self.0.get();
        // SAFETY: no reference into the block is held across the switch.
        unsafe {
            suspend(context);
            (&(*context).lanes)[(*context).current].value
        }
    }
}

impl Machine for Simulator {
    #[inline]
    fn lane_id(&self) -> u32 {
        // SAFETY: as in `step`.
        unsafe { (*self.0.get()).current as u32 % 32 }
    }

    fn advance(&self, space: Space, base: u64, bytes: u64) -> u64 {
        let (bits, limit) = match space {
            Space::Shared => (shared::OFFSET_BITS, 1 << shared::OFFSET_BITS),
            Space::Global | Space::Constant => (memory::OFFSET_BITS, memory::LIMIT),
        };
        let offset = base & ((1 << bits) - 1);
        base - offset + offset.saturating_add(bytes).min(limit - 1)
    }

    fn shared_array(&self, name: &'static str, bytes: usize, at: &'static Location<'static>) -> u32 {
        self.step(Some(at), |block| {
            block.call()?;
            block.shared.array(name, bytes).map_err(|detail| Stop::new(Kind::SharedMemory, detail))
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

    fn dynamic_shared(&self) -> u32 {
        self.step(None, |block| {
            block.call()?;
            Ok(block.shared.dynamic())
        })
    }

    fn sync_threads(&self, at: &'static Location<'static>) {
        self.rest(State::Block(at), 0, at);
    }

    fn sync_warp(&self, mask: u32, at: &'static Location<'static>) {
        self.rest(State::Warp { mask, at, source: None }, 0, at);
    }

    fn exchange(&self, mask: u32, value: u32, source: u32, at: &'static Location<'static>) -> u32 {
        self.rest(State::Warp { mask, at, source: Some(source) }, value, at)
    }

    fn loop_enter(&self, at: &'static Location<'static>) {
        self.step(Some(at), |block| {
            block.loops.enter(at);
            block.call()
        });
    }

    fn loop_next(&self) {
        // SAFETY: as in `step`. It takes next to no stack, and need not look how much is left.
        let block = unsafe { &mut *self.0.get() };
        block.loops.next();
        block.left -= 1;
        if block.left == 0 || block.loops.number.is_multiple_of(PAUSE) {
            self.pause();
        }
    }

    fn loop_exit(&self) {
        // SAFETY: as in `loop_next`.
        unsafe { &mut *self.0.get() }.loops.exit();
    }

    fn clock(&self) -> u64 {
        self.step(None, |block| {
            block.call()?;
            Ok(block.calls())
        })
    }
}
