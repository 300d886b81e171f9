//! What one worker keeps of the blocks that it runs: their shared memory, who touched what, what their requests cost, and what was
//! found.
//!
//! A front end tells it of each block, request, barrier and meeting of lanes; whose code asked for them does not matter here.

use crate::copies::Copy;
use crate::cost::{Cost, Costs, Region, Shape};
use crate::finding::{Finding, Kind, triple};
use crate::instruction::{Instruction, Pc, Position};
use crate::launch::Launch;
use crate::memory::{Memory, offset_of};
use crate::note::Seen;
use crate::outcome::Part;
use crate::request::Request;
use crate::sample::Sampler;
use crate::sanitizer::{Look, Race, Sanitizer, Uninitialized, Why};
use crate::shared::SharedMemory;
use crate::trace::{Flow, Trace, WHOLE_BLOCK, What};
use crate::{banks, coalesce};
use gpu::suite::{AtomicKind, Counts, Operation, Scope, Space};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// At most so many findings are kept of a launch.
const FINDINGS: usize = 16;

/// The load of an asynchronous copy: its place, and where its lanes go.
struct Copied {
    place: [usize; 2],
    instruction: Instruction,
    mask: u32,
    addresses: [u64; 32],
}

/// What a worker keeps.
pub struct Worker {
    launch: Arc<Launch>,
    /// The shared memory of the block that runs.
    pub shared: SharedMemory,
    /// `blockIdx` of that block.
    block_idx: [u32; 3],
    /// How manieth block of the run it is.
    turn: u64,
    /// Barriers that it has passed.
    barriers: u64,
    sanitizer: Sanitizer,
    costs: Costs,
    /// What an asynchronous copy reads, until it is known where it writes.
    copied: Option<Copied>,
    /// What else was seen of each instruction's requests.
    seen: FxHashMap<Instruction, Seen>,
    /// Whether requests are counted and nothing else is made of them.
    plain: bool,
    /// Looks at requests one by one, if asked to.
    sampler: Option<Sampler>,
    /// What this block asked for, if somebody observes.
    trace: Option<Trace>,
    /// What comes before the next request, where a front end knows it.
    pub flow: Flow,
    findings: Vec<Finding>,
}

impl Worker {
    /// One that has seen no block yet.
    pub fn new(launch: Arc<Launch>) -> Self {
        let threads = launch.plan.launch.block_threads() as usize;
        Self {
            shared: SharedMemory::new(launch.program.shared, launch.plan.launch.shared_bytes),
            block_idx: [0; 3],
            turn: 0,
            barriers: 0,
            sanitizer: Sanitizer::new(launch.look, threads),
            costs: Costs::default(),
            copied: None,
            seen: FxHashMap::default(),
            plain: launch.arch.is_none() && launch.sampling.is_none() && launch.observer.is_none(),
            sampler: launch.sampling.map(|sampling| Sampler::new(sampling, launch.blocks.count())),
            trace: launch.observer.as_ref().map(|observed| Trace::new(observed.observer.lines_a_warp())),
            flow: Flow::default(),
            findings: Vec::new(),
            launch,
        }
    }

    /// A block begins, the `turn`-th of the run.
    pub fn begin(&mut self, turn: u64) {
        self.turn = turn;
        self.block_idx = self.launch.block_of(turn);
        self.shared.reset();
        self.copied = None;
        self.sanitizer.begin(turn);
        self.barriers = 0;
    }

    /// `blockIdx` of the block that runs.
    pub fn block_idx(&self) -> [u32; 3] {
        self.block_idx
    }

    /// `threadIdx` of a thread of it.
    pub(crate) fn thread_idx(&self, thread: u32) -> [u32; 3] {
        self.launch.thread_idx(thread)
    }

    /// How manieth block of the run that is.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// How closely the sanitizer looks.
    #[inline(always)]
    pub fn look(&self) -> Look {
        self.sanitizer.look()
    }

    /// Has the sanitizer look for the first time at what `lanes` of a request did, a request of the warp that begins at thread
    /// `first`: once for each lane, and before lanes meet that did something to tell apart.
    #[inline(always)]
    pub fn look_first(&mut self, request: &Request<'_>, lanes: u32, first: usize) {
        self.sanitizer.look_first(&self.launch.shadows, request, lanes, first);
    }

    /// Has the sanitizer look for the second time at an access of `thread`; a race is a finding.
    pub fn look_second(&mut self, thread: usize, instruction: Instruction, address: u64) {
        if let Some(race) = self.sanitizer.look_second(&self.launch.shadows, thread, instruction, address) {
            let finding = self.race(thread, instruction, &race);
            self.record(finding);
        }
    }

    /// Counts a request of a warp, the one at `place` of all that were made on the way that the warp goes: warps mostly make the
    /// same requests in the same order.
    #[inline(always)]
    pub fn count(&mut self, place: [usize; 2], warp: u32, request: &Request<'_>) {
        if request.instruction.space == Space::Global && request.instruction.operation != Operation::Load {
            self.launch.memory.wrote(request);
        }
        if request.instruction.is_of_copy {
            self.count_of_copy(place, warp, request);
            return;
        }
        let shape = Shape::of(request);
        match shape {
            Some(shape) if self.plain && self.costs.add_alike(place, shape) => {}
            _ => self.count_otherwise(place, warp, request, shape, None),
        }
    }

    /// Counts one end of an asynchronous copy. What the load costs depends on where the store goes, which comes right behind it.
    #[inline(never)]
    fn count_of_copy(&mut self, place: [usize; 2], warp: u32, request: &Request<'_>) {
        let addresses = request.addresses();
        let Request { instruction, mask, .. } = *request;
        if instruction.operation == Operation::Load {
            self.copied = Some(Copied { place, instruction, mask, addresses });
            return;
        }
        // Where no lane reads, the copy brings zeros.
        let load = self.copied.take();
        let copy = Copy {
            from: load.as_ref().map_or(&[0; 32], |load| &load.addresses),
            to: &addresses,
            reading: load.as_ref().map_or(0, |load| load.mask),
            writing: mask,
            width: instruction.width(),
            past_l1: load.as_ref().is_some_and(|load| load.instruction.past_l1),
        };
        if let Some(Copied { place, instruction, mask, addresses }) = &load {
            let indices = addresses.map(|address| address >> instruction.log_width());
            self.count_otherwise(
                *place,
                warp,
                &Request::new(*instruction, *mask, None, 0, &indices),
                None,
                Some(&copy),
            );
        }
        self.count_otherwise(place, warp, request, None, Some(&copy));
    }

    /// Counts a request that is not like the last one at its place.
    #[inline(never)]
    fn count_otherwise(
        &mut self,
        place: [usize; 2],
        warp: u32,
        request: &Request<'_>,
        shape: Option<Shape>,
        copy: Option<&Copy<'_>>,
    ) {
        let Request { instruction, mask, step, .. } = *request;
        let (width, lanes) = (instruction.width(), u64::from(mask.count_ones()));
        let mut counts = Counts { requests: 1, lanes, ..Counts::default() };
        let mut used = 0;
        let region = match instruction.space {
            Space::Global => {
                let addresses;
                (counts.sectors, counts.lines, addresses) = match step {
                    Some(step) => coalesce::evenly_spaced(request.first(), step, lanes),
                    None => coalesce::touched(request.active(&mut [0; 32])),
                };
                // Accesses of one width, aligned to it, are the same bytes or have none in common.
                used = addresses * width;
                if let Some(copy) = copy {
                    let sectors = copy.sectors().unwrap_or(counts.sectors);
                    self.see_copy(instruction, mask, sectors > counts.sectors);
                    counts.sectors = sectors;
                }
                if lanes > 1 && instruction.kind == AtomicKind::AddsIntegers {
                    let seen = self.seen.entry(instruction).or_default();
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
                let told = step.and_then(|step| banks::evenly_spaced(step, width, instruction.operation));
                let mut once =
                    told.unwrap_or_else(|| banks::wavefronts(&request.addresses(), mask, width, instruction.operation));
                if let Some(copy) = copy {
                    let wavefronts = copy.wavefronts();
                    self.see_copy(instruction, mask, wavefronts > once);
                    once = wavefronts;
                }
                counts.wavefronts = once * instruction.values();
                counts.wavefronts_ideal = banks::ideal_wavefronts(once, lanes, width) * instruction.values();
                Region::Shared(self.shared.name(request.first()).0)
            }
        };
        let cost: &mut Cost = self.costs.add(place, shape, instruction, region, counts, used);
        if let (Space::Global, Some(arch)) = (instruction.space, self.launch.arch) {
            cost.transactions += arch.transactions(&request.addresses(), mask, width, instruction.past_l1);
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.look(self.turn, self.block_idx, warp, request, region, counts);
        }
        if let Some(trace) = &mut self.trace {
            trace.add(warp, request, copy.map(Copy::wavefronts), self.flow);
        }
    }

    /// Notes what sets one end of a copy apart: lanes that stay out, and that it costs more than another access would.
    fn see_copy(&mut self, instruction: Instruction, mask: u32, costs_more: bool) {
        if mask != u32::MAX || costs_more {
            let seen = self.seen.entry(instruction).or_default();
            seen.by_part |= mask != u32::MAX;
            seen.in_turns |= costs_more;
        }
    }

    /// Lanes that took fewer rounds of loops than others were missing from requests of this instruction.
    pub fn left_apart(&mut self, instruction: Instruction) {
        self.seen.entry(instruction).or_default().left_apart = true;
    }

    /// The lanes in `mask` of the warp that begins at thread `first` have met at a warp barrier.
    pub fn meet(&mut self, first: usize, mask: u32) {
        self.sanitizer.meet(first, mask);
    }

    /// A thread makes a fence: what it did before is ordered before what it does next, for the threads of a scope.
    pub fn fence(&mut self, thread: usize, scope: Scope) {
        self.sanitizer.fence(thread, scope);
    }

    /// The block has passed a barrier: false if it has passed too many, which is a finding.
    pub fn pass_barrier(&mut self, at: impl Fn() -> Pc) -> bool {
        self.sanitizer.pass_barrier();
        if let Some(trace) = &mut self.trace {
            trace.wait(WHOLE_BLOCK, What::Wait, at(), Flow::default());
        }
        self.count_barrier(0, at)
    }

    /// A warp's lanes have exchanged values.
    pub fn pass_exchange(&mut self, warp: usize, at: impl Fn() -> Pc) {
        if let Some(trace) = &mut self.trace {
            trace.wait(warp as u16, What::Wait, at(), self.flow);
        }
    }

    /// A warp has issued instructions since its last request that lead to none: to a barrier, the end, or many more of them.
    pub fn issue(&mut self, warp: usize, at: Pc) {
        if let Some(trace) = &mut self.trace {
            trace.wait(warp as u16, What::Instructions, at, self.flow);
        }
    }

    /// A warp has issued an access to shared memory that none of its lanes makes.
    pub fn skip(&mut self, warp: usize, at: Pc) {
        if let Some(trace) = &mut self.trace {
            trace.wait(warp as u16, What::SharedStore, at, self.flow);
        }
    }

    /// Counts a meeting of threads, of which `thread` is one: false if there were too many, which is a finding.
    pub fn count_barrier(&mut self, thread: usize, at: impl Fn() -> Pc) -> bool {
        self.barriers += 1;
        let most = self.launch.limits.barriers;
        if self.barriers > most {
            let detail = format!("the block has passed more than {most} barriers");
            self.find(thread, Kind::NonTerminating, Some(at().position()), None, detail);
        }
        self.barriers <= most
    }

    /// The block has ended.
    pub fn end(&mut self) {
        for load in self.sanitizer.uninitialized_shared() {
            let finding = self.uninitialized(&load);
            self.record(finding);
        }
    }

    /// Records a finding about a thread of this block; the same one at the same lines is recorded once.
    pub fn find(&mut self, thread: usize, kind: Kind, at: Option<Position>, other: Option<Position>, detail: String) {
        let thread = self.launch.thread_idx(thread as u32);
        self.record(Finding { kind, at, other, block: self.block_idx, thread, detail });
    }

    fn record(&mut self, finding: Finding) {
        // A race is one thing, from whichever side it is seen.
        let places = |finding: &Finding| (finding.at.min(finding.other), finding.at.max(finding.other));
        let known = |old: &Finding| old.kind == finding.kind && places(old) == places(&finding);
        if self.findings.len() < FINDINGS && !self.findings.iter().any(known) {
            self.findings.push(finding);
        }
    }

    /// What an access that finds no memory is: its kind, and a sentence.
    #[cold]
    pub fn outside(&self, instruction: Instruction, base: u64, index: u64) -> (Kind, String) {
        let width = instruction.width();
        let missed = match instruction.space {
            Space::Shared => self.shared.missed(base, index, width),
            Space::Global | Space::Constant => self.launch.memory.missed(base, index, width),
        };
        (Kind::OutOfBounds, format!("a thread {} {missed}", verb(instruction)))
    }

    /// The same of one whose `address` is no multiple of its width.
    #[cold]
    pub fn misaligned(&self, instruction: Instruction, address: u64) -> (Kind, String) {
        let ((name, offset), width) = (self.name(instruction.space, address), instruction.width());
        let verb = verb(instruction);
        let detail =
            format!("a thread {verb} {width} bytes at byte {offset} of `{name}`, which is no multiple of {width}");
        (Kind::Misaligned, detail)
    }

    /// The buffer or shared array that an address lies in, and the offset in it.
    fn name(&self, space: Space, address: u64) -> (&'static str, u64) {
        match space {
            Space::Shared => self.shared.name(address),
            Space::Global | Space::Constant => {
                (self.launch.plan.buffers[Memory::number(address)].name, offset_of(address))
            }
        }
    }

    /// The report of a race in which `thread`, at `instruction`, is the later one.
    #[cold]
    fn race(&self, thread: usize, instruction: Instruction, race: &Race) -> Finding {
        let earlier = &race.earlier;
        let (name, offset) = self.name(instruction.space, race.address);
        let other = triple(self.launch.thread_idx(earlier.moment.thread));
        let who = if earlier.moment.turn == self.turn {
            format!("thread {other}")
        } else {
            let block = triple(self.launch.block_of(earlier.moment.turn));
            format!("thread {other} of block {block}")
        };
        let nothing = match race.why {
            Why::Barrier => "no barrier orders the two",
            Why::Blocks => "nothing orders the blocks of a launch",
            Why::Fence => "no fence orders the two",
            Why::Scope => "an atomic of a block's scope excludes no other block",
        };
        let [verb, other_verb] = [instruction, earlier.instruction].map(verb);
        Finding {
            kind: Kind::Race,
            at: Some(instruction.pc.position()),
            other: Some(earlier.instruction.pc.position()),
            block: self.block_idx,
            thread: self.launch.thread_idx(thread as u32),
            detail: format!("a thread {verb} byte {offset} of `{name}`, which {who} {other_verb}, and {nothing}"),
        }
    }

    fn uninitialized(&self, load: &Uninitialized) -> Finding {
        let (name, offset) = self.name(load.instruction.space, load.address);
        let verb = verb(load.instruction);
        Finding {
            kind: Kind::Uninitialized,
            at: Some(load.instruction.pc.position()),
            other: None,
            block: self.launch.block_of(load.moment.turn),
            thread: self.launch.thread_idx(load.moment.thread),
            detail: format!("a thread {verb} byte {offset} of `{name}`, which no thread has written"),
        }
    }

    pub(crate) fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    pub(crate) fn take_trace(&mut self) -> Option<Trace> {
        self.trace.as_mut().map(Trace::take)
    }

    /// After the last block: what was counted, and what was `found` in some turn, of which the first alone counts, with the loads of
    /// global memory that nobody wrote.
    pub(crate) fn finish(&mut self, found: Option<(u64, Vec<Finding>)>) -> Part {
        let loads = self.sanitizer.uninitialized_global();
        let findings = match loads.first().map(|load| load.moment.turn) {
            None => found,
            Some(first) => {
                let found = found.filter(|(turn, _)| *turn <= first);
                let turn = found.as_ref().map_or(first, |(turn, _)| *turn);
                self.findings = found.map_or_else(Vec::new, |(_, findings)| findings);
                for load in loads.iter().filter(|load| load.moment.turn == turn) {
                    let finding = self.uninitialized(load);
                    self.record(finding);
                }
                Some((turn, self.take_findings()))
            }
        };
        Part {
            counts: self.costs.take(),
            seen: std::mem::take(&mut self.seen),
            sampler: self.sampler.take(),
            findings,
            claims: self.sanitizer.claims(),
        }
    }
}

fn verb(instruction: Instruction) -> &'static str {
    match instruction.operation {
        Operation::Load => "reads",
        Operation::Store => "writes",
        Operation::Atomic => "updates",
    }
}
