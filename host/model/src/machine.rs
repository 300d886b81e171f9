//! Replays what blocks asked for, request by request, on the multiprocessors, caches and memory of a chip.
//!
//! Everything that serves requests serves them one after another, each at its own rate: the issue slots and the load/store
//! unit of a multiprocessor, its port to the L2, the L2, the memory. A warp goes on when what it waits for has arrived, and, of
//! several that could, one of the oldest block.

use super::cache::{mixed, share};
use super::chip::{Chip, Constants};
use super::instructions::{Instructions, MOST};
use super::memory::{CLUSTERS_OF_A_GROUP, Memory};
use super::multiprocessor::{Multiprocessor, PARTS, Part, Passing, Pending, Progress, Queued, Served};
use super::{Busy, Traffic};
use engine::trace::{Trace, Traced, WHOLE_BLOCK, What};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A block that a multiprocessor holds.
#[derive(Default)]
struct Resident {
    trace: Trace,
    warps: Vec<Warp>,
    sm: usize,
    /// How many blocks had begun before it.
    age: u64,
    /// Warps that have not ended.
    running: usize,
    /// Warps that wait at a barrier.
    waiting: usize,
    /// Requests that wait for the load/store unit.
    queued: usize,
}

#[derive(Default)]
struct Warp {
    /// The numbers of its requests in the block's trace, the barriers of the block among them.
    requests: Vec<u32>,
    next: usize,
    flying: Vec<Flying>,
    /// Loads that it made, and those of its round of a loop among them.
    made: usize,
    round: usize,
    /// Whether it waits for loads of which it is not known yet when they arrive: for how many of those in flight, the oldest first, and
    /// how long after that it goes on.
    waits: Option<(usize, f64)>,
    /// Stores that it made and whose registers are not read yet, and whether it waits until they are.
    stores: usize,
    waits_for_stores: bool,
    /// Loads that it made in loops that also store.
    looped: usize,
    /// Where it is among the warps of its block that wait for their turn: the one that came first goes on.
    came: Option<u64>,
}

/// A load on its way.
struct Flying {
    /// The position that it comes from, and its number in the trace.
    site: usize,
    number: u32,
    /// Loads that the warp made before.
    before: usize,
    /// How often it passes the data once its lines are here.
    data: f64,
    /// What it takes up until then.
    pending: Pending,
    /// When it arrives: infinite, if that is not known yet.
    arrives: f64,
}

/// What happens at some time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A warp goes on.
    Warp { slot: usize, warp: usize },
    /// A part of a multiprocessor looks which warp goes on.
    Look { part: usize },
    /// The load/store unit of a multiprocessor turns to a part.
    Turn { sm: usize },
    /// The last line of a load arrives at its multiprocessor.
    Back { slot: usize, warp: usize, number: u32 },
    /// A cluster of multiprocessors has room for another read on its way.
    Send { cluster: usize },
    /// The data of a multiprocessor are free for what waits for them.
    Pass { sm: usize },
}

/// A time in cycles that can be a key: none is negative.
pub(super) fn key(time: f64) -> u64 {
    time.to_bits()
}

/// How far the machine had come at some moment, all of its slots taken.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// Blocks that had begun, or requests made.
    pub(super) done: u64,
    /// Loads of global memory made, and stores and additions.
    pub(super) loads: u64,
    pub(super) stores: u64,
    /// When, in cycles.
    pub(super) at: f64,
    pub(super) traffic: Traffic,
    /// Sectors read from memory that were written in part: some of those of the traffic.
    pub(super) completed: f64,
    /// Sectors of the L2 that are dirty, about.
    pub(super) dirty: f64,
    pub(super) busy: Busy,
}

/// A chip at work on one launch.
pub(super) struct Machine {
    constants: Constants,
    instructions: Instructions,
    sms: Vec<Multiprocessor>,
    memory: Memory,
    /// Whether each cluster is to send reads that wait.
    sends: Vec<bool>,
    /// Blocks that no multiprocessor holds yet.
    pending: VecDeque<Trace>,
    slots: Vec<Option<Resident>>,
    /// Slots that will be without a block, and from when on; and those of each multiprocessor that are.
    free: BinaryHeap<Reverse<(u64, usize)>>,
    room: Vec<Vec<usize>>,
    rooms: usize,
    /// The multiprocessor that a block was launched on last.
    launched: usize,
    /// What happens when; of what does at the same time, first what came first.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    /// When the next block can be launched, on whichever multiprocessor, and when it could be if none had been launched ahead.
    next_launch: f64,
    in_the_long_run: f64,
    /// Lines and requests to replay at most.
    budget: u64,
    replayed: u64,
    begun: u64,
    ended: f64,
    /// Requests made, and the loads of global memory, and the stores and additions, among them.
    pub(super) made: u64,
    loads: u64,
    stores: u64,
    /// One for each wave of blocks, when the last of it began.
    pub(super) waves: Vec<Mark>,
    /// One for every so many requests.
    pub(super) marks: Vec<Mark>,
}

/// Cycles of work that a slice of the L2 takes in advance, fitted to `embedding`: by the probe `backlog` some 2600.
const SLICE_QUEUE: f64 = 4000.0;

/// Cycles of sending that the port of a multiprocessor takes in advance.
const PORT_QUEUE: f64 = 64.0;

/// Cycles from when the registers of a store are read to when its warp can use them again: about as many as a short instruction takes.
const READ: f64 = 20.0;

/// Lines of a store that wait for the warp's next one, to the same lines.
const COMBINED: usize = 4;

/// Accesses between two barriers that ptxas makes predicates of at most, rather than branch.
const SKIPPED: usize = 4;

/// However many loads a warp has in flight.
const ALL: usize = usize::MAX;

/// Requests between two marks.
const BETWEEN_MARKS: u64 = 256;

/// Blocks that take the place of others sooner than they would in the long run, where many end at a time: by the probe `successors`.
const AHEAD: f64 = 170.0;

/// Cycles by which the warps of the first blocks begin late at most, as if at random: fitted to `matrix_column_sums_warp`.
const LATE: f64 = 200.0;

/// Cycles for which what launches blocks is at a group of multiprocessors, before it turns to the next: fitted to `embedding`.
const AT_A_GROUP: f64 = 2.0;

impl Machine {
    /// An idle `chip` whose multiprocessors hold so many blocks at a time and have so much L1.
    pub(super) fn new(chip: &Chip, instructions: Instructions, blocks_per_sm: u64, l1_bytes: u64, budget: u64) -> Self {
        let constants = Constants::of(chip);
        let sm_count = chip.sm_count as usize;
        let slots = sm_count * blocks_per_sm as usize;
        let pairs = sm_count.div_ceil(2);
        Self {
            constants,
            instructions,
            sms: (0..sm_count)
                .map(|number| {
                    let [cluster, group] = cluster_and_group(number / 2, pairs, constants.groups);
                    Multiprocessor::new(number, cluster, group, l1_bytes)
                })
                .collect(),
            memory: Memory::new(chip, constants),
            sends: vec![false; constants.groups * CLUSTERS_OF_A_GROUP],
            pending: VecDeque::new(),
            slots: (0..slots).map(|_| None).collect(),
            free: (0..slots).map(|slot| Reverse((key(0.0), slot))).collect(),
            room: vec![Vec::new(); sm_count],
            rooms: 0,
            launched: sm_count - 1,
            events: BinaryHeap::new(),
            sequence: 0,
            next_launch: 0.0,
            in_the_long_run: 0.0,
            budget,
            replayed: 0,
            begun: 0,
            ended: 0.0,
            made: 0,
            loads: 0,
            stores: 0,
            waves: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Has the L2 be as a flush leaves it.
    pub(super) fn flush_l2(&mut self, chip: &Chip) {
        self.memory = Memory::flushed(chip, self.constants);
    }

    /// Takes the next block, and goes as far as the blocks that it was given allow.
    pub(super) fn take(&mut self, trace: Trace) {
        if self.replayed < self.budget {
            self.pending.push_back(trace);
            self.advance(false);
        }
    }

    /// No other block comes: goes on to the end, or to the end of the budget, and says where it stands.
    pub(super) fn finish(&mut self) -> Mark {
        self.advance(true);
        let memory = &self.memory;
        let at = self.ended.max(memory.l2_free).max(memory.dram_free).max(memory.added);
        self.mark(self.made, at)
    }

    /// Where it stands, with so much done.
    pub(super) fn mark(&self, done: u64, at: f64) -> Mark {
        let mut busy = self.memory.busy;
        // The busiest one is what a launch of few blocks waits for.
        for sm in &self.sms {
            busy.lsu_global = busy.lsu_global.max(sm.global_cycles);
            busy.lsu_shared = busy.lsu_shared.max(sm.shared_cycles);
            busy.issue = busy.issue.max(sm.issue_cycles);
        }
        let Self { loads, stores, memory: Memory { traffic, completed, dirty_lines, .. }, .. } = *self;
        Mark { done, loads, stores, at, traffic, completed, dirty: 4.0 * dirty_lines as f64, busy }
    }

    fn advance(&mut self, no_more: bool) {
        while self.replayed < self.budget {
            // What is launched before anything else happens is launched first.
            let next = self.events.peek().map(|Reverse((time, ..))| f64::from_bits(*time));
            if let Some(at) = self.launches()
                && next.is_none_or(|next| at <= next)
            {
                if let Some(trace) = self.pending.pop_front() {
                    let slot = self.next_slot(at);
                    self.begin(trace, slot, at, LATE);
                    continue;
                }
                if !no_more {
                    return;
                }
            }
            if self.happen().is_none() {
                return;
            }
        }
    }

    /// Has what is next happen, and says when that is.
    fn happen(&mut self) -> Option<f64> {
        let Reverse((time, _, event)) = self.events.pop()?;
        let now = f64::from_bits(time);
        match event {
            Event::Warp { slot, warp } => self.step(now, slot, warp, false),
            Event::Look { part } => self.wake(now, part),
            Event::Turn { sm } => self.turn(now, sm),
            Event::Back { slot, warp, number } => self.back(now, slot, warp, number),
            Event::Send { cluster } => self.send(now, cluster),
            Event::Pass { sm } => self.pass(now, sm),
        }
        Some(now)
    }

    /// When the next block can be launched, as far as that is known.
    fn launches(&self) -> Option<f64> {
        if self.rooms > 0 {
            return Some(self.next_launch);
        }
        self.free.peek().map(|Reverse((since, _))| f64::from_bits(*since).max(self.next_launch))
    }

    /// Takes the slot for the next block: of the next multiprocessor that has room, after that which the last block went to.
    fn next_slot(&mut self, now: f64) -> usize {
        while let Some(Reverse((since, slot))) = self.free.peek().copied()
            && f64::from_bits(since) <= now
        {
            self.free.pop();
            let number = slot % self.sms.len();
            self.room[number].push(slot);
            self.rooms += 1;
        }
        let count = self.sms.len();
        let mut next = (1..=count).map(|further| (self.launched + further) % count);
        self.launched = next.find(|number| !self.room[*number].is_empty()).expect("one has room");
        self.rooms -= 1;
        self.room[self.launched].pop().expect("it has room")
    }

    fn begin(&mut self, mut trace: Trace, slot: usize, turn: f64, late: f64) {
        let number = slot % self.sms.len();
        let sm = &mut self.sms[number];
        if self.begun >= self.slots.len() as u64 {
            self.in_the_long_run = self.in_the_long_run.max(turn) + self.constants.block_launch;
        }
        let ahead = AHEAD * self.constants.block_launch;
        self.next_launch = (turn + self.constants.block_launch_ahead).max(self.in_the_long_run - ahead);
        let launched = turn.max(sm.next_launch);
        let requests = by_warp(&mut trace);
        let count = requests.len();
        sm.next_launch = launched + self.constants.warp_launch * count as f64;
        let warp = |requests| Warp { requests, ..Warp::default() };
        let warps = requests.into_iter().map(warp).collect();
        let start = launched + self.constants.block_start;
        self.begun += 1;
        if self.begun.is_multiple_of(self.slots.len() as u64) {
            self.waves.push(self.mark(self.begun, start));
        }
        let age = self.begun - 1;
        self.slots[slot] = Some(Resident { trace, warps, sm: number, age, running: count, waiting: 0, queued: 0 });
        let late = if age < self.slots.len() as u64 { late } else { 0.0 };
        for warp in 0..count {
            self.schedule(start + late * share(age << 8 | warp as u64), Event::Warp { slot, warp });
        }
    }

    fn schedule(&mut self, time: f64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((key(time), self.sequence, event)));
    }

    /// Lets that warp of a part go on which belongs to the oldest block, of those that wait and can, and has the part look again.
    fn wake(&mut self, now: f64, number: usize) {
        let part = &mut self.sms[number / PARTS].parts[number % PARTS];
        // It has looked since it was to look now.
        if part.looks != now {
            return;
        }
        part.looks = f64::INFINITY;
        if let Some((slot, warp)) = part.next(now) {
            self.step(now, slot, warp, true);
        }
        self.look(number, now);
    }

    /// Has a part of a multiprocessor look again when it has room for one of the warps that wait.
    fn look(&mut self, number: usize, now: f64) {
        let part = &mut self.sms[number / PARTS].parts[number % PARTS];
        let looks = part.looks;
        if let Some(at) = part.room().map(|at| at.max(now)).filter(|at| *at < looks) {
            part.looks = at;
            self.schedule(at, Event::Look { part: number });
        }
    }

    /// Lets a warp make its next request, or wait for what that needs.
    fn step(&mut self, now: f64, slot: usize, warp: usize, chosen: bool) {
        let again = Event::Warp { slot, warp };
        let block = self.slots[slot].as_mut().expect("a warp that is ready has a block");
        let state = &mut block.warps[warp];
        state.flying.retain(|load| load.arrives > now);
        let all_here = state.here(ALL, now);
        let Some(number) = state.requests.get(state.next).map(|number| *number as usize) else {
            if all_here > now {
                return self.wait(ALL, 0.0, slot, warp, now);
            }
            block.running -= 1;
            self.ended = self.ended.max(now);
            return self.leave(now, slot);
        };
        let request = block.trace.requests[number];
        let site = request.at.number();
        let line = self.instructions.at(request.at);
        let loads = matches!(request.what, What::Load { .. } | What::SharedLoad | What::Constant);
        let in_rounds = loads && line.registers < MOST;
        if in_rounds && state.round == line.in_flight && all_here <= now {
            state.round = 0;
        }
        let waits_for = if loads {
            let of_line = state.flying.iter().filter(|load| load.site == site).count();
            let held = state.flying.first().map_or(0, |oldest| state.made - oldest.before);
            if line.dependent || of_line >= line.in_flight || in_rounds && state.round == line.in_flight {
                ALL
            } else {
                usize::from(held >= line.registers)
            }
        } else if request.what == What::SharedStore {
            // ptxas makes the loads that follow it first: no address in global memory is one in shared memory.
            0
        } else {
            ALL
        };
        if state.here(waits_for, now) > now {
            state.came = None;
            let after = self.constants.used_after * self.constants.instruction * line.instructions;
            return self.wait(waits_for, after, slot, warp, now);
        }
        let looped = loads && line.of_round > 0;
        if looped && state.stores > 0 && state.looped.is_multiple_of(line.of_round) {
            state.waits_for_stores = true;
            return;
        }
        // Warps take turns with the parts, from one block of the multiprocessor to the next.
        let (place, sms) = (slot / self.sms.len(), &mut self.sms);
        let part_number = (place + warp) % PARTS;
        let part = &mut sms[block.sm].parts[part_number];
        let meets = request.what == What::Wait && request.warp == WHOLE_BLOCK;
        let queued = meets || !matches!(request.what, What::Wait | What::Constant);
        if !chosen && part.has_to_wait(queued, now) {
            self.sequence += 1;
            // Having gone on, it is the last of them or as before, as if at random: fitted to `matrix_column_sums_warp`.
            let came = state.came.filter(|_| mixed(self.sequence) & 1 == 1).unwrap_or(self.sequence);
            state.came = Some(came);
            let waiting = Reverse((block.age, came, slot, warp));
            if queued {
                part.throttled.push(waiting)
            } else {
                part.waiting.push(waiting)
            }
            let number = block.sm * PARTS + part_number;
            return self.look(number, now);
        }
        state.next += 1;
        let next = state.requests.get(state.next).map(|number| block.trace.requests[*number as usize].at);
        let to_next = self.constants.instruction * next.map_or(0.0, |at| self.instructions.at(at).instructions);
        let issued = now.max(part.issue_free);
        let issue = self.constants.issue * line.instructions;
        part.issue_free = issued + issue * PARTS as f64;
        let sm = &mut self.sms[block.sm];
        sm.issue_cycles += issue;
        if request.what == What::Wait && !meets {
            return self.schedule(issued + self.constants.shuffle + to_next, again);
        }
        let before = state.made;
        state.made += usize::from(loads);
        state.round += usize::from(in_rounds);
        state.looped += usize::from(looped);
        state.stores += usize::from(request.what == What::Store);
        let flying =
            |arrives| Flying { site, number: number as u32, before, data: 0.0, pending: Pending::default(), arrives };
        if request.what == What::Constant {
            let arrives = sm.read_constant(request, issued, &self.constants);
            state.flying.push(flying(arrives));
        } else {
            if loads {
                state.flying.push(flying(f64::INFINITY));
            }
            let place = state.next - 1;
            let is_store = request.what == What::Store;
            sm.add(part_number, Queued { slot, warp, place, load: Progress::default(), is_store, order: 0 });
            block.queued += 1;
            let number = block.sm;
            self.read_registers(number, issued);
            self.take_turns(number, issued);
            if meets {
                return;
            }
        }
        self.schedule(issued + to_next, again);
    }

    /// The requests that have come to the load/store unit of a multiprocessor have their registers read: warps that wait for that go on.
    fn read_registers(&mut self, number: usize, now: f64) {
        for (slot, warp, place) in self.sms[number].came() {
            let block = self.slots[slot].as_mut().expect("a request that waits is a block's");
            let state = &mut block.warps[warp];
            if block.trace.requests[state.requests[place] as usize].what == What::Store {
                state.stores -= 1;
                if state.stores == 0 && std::mem::take(&mut state.waits_for_stores) {
                    self.schedule(now + READ, Event::Warp { slot, warp });
                }
            }
        }
    }

    /// Has a warp wait at a barrier, whose turn it is, for the others of its block; the last of them has all go on.
    fn meet(&mut self, now: f64, slot: usize, warp: usize) {
        let block = self.slots[slot].as_mut().expect("a warp at a barrier has a block");
        let met = &mut self.sms[block.sm].met;
        *met = met.max(now) + self.constants.barrier_warp;
        block.waiting += 1;
        // Warps that have ended are not waited for: none has, since all pass every barrier.
        if block.waiting == block.running {
            block.waiting = 0;
            let state = &block.warps[warp];
            let next = state.requests.get(state.next).map(|number| block.trace.requests[*number as usize].at);
            let to_next = next.map_or(0.0, |at| self.instructions.at(at).instructions);
            let at = *met + self.constants.barrier + self.constants.instruction * to_next;
            for warp in 0..block.running {
                self.schedule(at, Event::Warp { slot, warp });
            }
        }
    }

    /// Has a warp wait until so many of its loads are here, the oldest first, and some cycles more.
    fn wait(&mut self, count: usize, after: f64, slot: usize, warp: usize, now: f64) {
        let state = &mut self.slots[slot].as_mut().expect("a warp that waits has a block").warps[warp];
        let here = state.here(count, now);
        if here.is_finite() {
            return self.schedule(here + after, Event::Warp { slot, warp });
        }
        state.waits = Some((count, after));
    }

    /// Has a slot free if nothing of its block is left to do.
    fn leave(&mut self, now: f64, slot: usize) {
        if self.slots[slot].as_ref().is_some_and(|block| block.running + block.queued == 0) {
            self.slots[slot] = None;
            let group = self.sms[slot % self.sms.len()].group;
            self.free.push(Reverse((key(turn_of(group, self.constants.groups, now)), slot)));
        }
    }

    /// Has the load/store unit of a multiprocessor turn to one of the parts that wait, once it can.
    fn take_turns(&mut self, number: usize, now: f64) {
        let sm = &mut self.sms[number];
        if sm.is_held_up() {
            return;
        }
        let at = now.max(sm.lsu_free);
        if at < sm.turns && sm.parts.iter().any(Part::has_turn) {
            sm.turns = at;
            self.schedule(at, Event::Turn { sm: number });
        }
    }

    /// Serves the first request of a part, or as much of it as one turn takes.
    fn turn(&mut self, now: f64, number: usize) {
        let sm = &mut self.sms[number];
        // It was to turn before.
        if sm.turns != now {
            return;
        }
        sm.turns = f64::INFINITY;
        if let Some(part) = sm.next_part() {
            let Queued { slot, warp, place, .. } = sm.parts[part].queue[0];
            let block = self.slots[slot].as_mut().expect("a request that waits is a block's");
            let (trace, state) = (&block.trace, &mut block.warps[warp]);
            let of_trace = state.requests[place];
            let request = trace.requests[of_trace as usize];
            let lines = trace.lines_of(of_trace as usize);
            // The store before it, if that is the warp's last request: what goes to the same few lines goes with it.
            let before = place.checked_sub(1).map(|before| state.requests[before] as usize);
            let with = before.filter(|before| trace.requests[*before].what == What::Store);
            let with =
                with.map(|before| trace.lines_of(before)).filter(|with| with.len() <= COMBINED).unwrap_or_default();
            self.memory.slices_free = 0.0;
            let served = sm.serve(part, request, &lines, &with, now, &self.constants, &mut self.memory);
            // A slice of the L2 that has enough to do takes nothing more, and all that is in the queues of the load/store unit waits.
            sm.lsu_free = sm.lsu_free.max(self.memory.slices_free - SLICE_QUEUE);
            // So does it where the port to the L2 has more to send than it can wait with.
            sm.lsu_free = sm.lsu_free.max(sm.port_free - PORT_QUEUE);
            if let Some(served) = served {
                sm.remove(part);
                block.queued -= 1;
                let meets = request.what == What::Wait;
                // Not what a warp only passes.
                let counts = request.wavefronts > 0;
                self.made += u64::from(counts);
                self.loads += u64::from(matches!(request.what, What::Load { .. }));
                self.stores += u64::from(matches!(request.what, What::Store | What::Atomic));
                self.replayed += u64::from(counts) + lines.len() as u64;
                match served {
                    Served::Sent if meets => self.meet(now, slot, warp),
                    Served::Sent => {}
                    Served::Passes { data, latency, is_load } => {
                        let load = is_load.then_some(of_trace);
                        sm.served.push_back(Passing { slot, warp, load, data, latency });
                    }
                    Served::Coming { here, data, pending } => {
                        let load = state.flying.iter_mut().find(|load| load.number == of_trace);
                        let load = load.expect("a load that is served is on its way");
                        (load.data, load.pending) = (data, pending);
                        if here.is_finite() {
                            self.schedule(here, Event::Back { slot, warp, number: of_trace });
                        }
                    }
                }
                if counts
                    && self.made.is_multiple_of(BETWEEN_MARKS)
                    && (!self.pending.is_empty() || self.launches().is_none())
                {
                    self.marks.push(self.mark(self.made, now));
                }
                self.read_registers(number, now);
                self.leave(now, slot);
                self.look(number * PARTS + part, now);
            }
        } else {
            return;
        }
        self.let_send(self.sms[number].cluster);
        self.let_pass(number, now);
        self.take_turns(number, now);
    }

    /// Has a cluster send the first of its reads that wait, once it has room.
    fn let_send(&mut self, cluster: usize) {
        if !self.sends[cluster]
            && let Some(at) = self.memory.next_send(cluster)
        {
            self.sends[cluster] = true;
            self.schedule(at, Event::Send { cluster });
        }
    }

    /// Sends as many of the reads of a cluster that wait as it has room for.
    fn send(&mut self, now: f64, cluster: usize) {
        self.sends[cluster] = false;
        while let Some((sm, number, leaves)) = self.memory.send_next(cluster, now) {
            for ((slot, warp, place), here) in self.sms[sm].sent(number, leaves, &self.constants, &self.memory) {
                let block = self.slots[slot].as_ref().expect("a load on its way is a block's");
                let number = block.warps[warp].requests[place];
                self.schedule(here, Event::Back { slot, warp, number });
            }
        }
        self.let_send(cluster);
    }

    /// Passes the lines of a load, all of which are here, through the data.
    fn back(&mut self, now: f64, slot: usize, warp: usize, number: u32) {
        let block = self.slots[slot].as_ref().expect("a load on its way is a block's");
        let load = block.warps[warp].flying.iter().find(|load| load.number == number);
        let Flying { data, pending, .. } = *load.expect("a load that comes back was on its way");
        let (sm, load, latency) = (block.sm, Some(number), self.constants.latency_l1);
        self.sms[sm].come_back(Passing { slot, warp, load, data, latency }, pending);
        self.let_pass(sm, now);
        self.take_turns(sm, now);
    }

    /// Has what waits for the data of a multiprocessor pass them, once it can.
    fn let_pass(&mut self, number: usize, now: f64) {
        while let Some((Passing { slot, warp, load, latency, .. }, at)) =
            self.sms[number].pass(now, |load: &Passing| {
                let block = self.slots[load.slot].as_ref().expect("a load that came back is a block's");
                block.trace.lines_of(load.load.expect("what came back is a load") as usize)
            })
        {
            if let Some(load) = load {
                self.arrive(at + latency, slot, warp, load);
            }
        }
        let sm = &mut self.sms[number];
        let at = sm.next_pass(now);
        if at < sm.passes {
            sm.passes = at;
            self.schedule(at, Event::Pass { sm: number });
        }
    }

    /// Has the next of those that wait for the data of a multiprocessor pass them.
    fn pass(&mut self, now: f64, number: usize) {
        let sm = &mut self.sms[number];
        // It was to pass before.
        if sm.passes != now {
            return;
        }
        sm.passes = f64::INFINITY;
        self.let_pass(number, now);
        self.take_turns(number, now);
    }

    /// Has a warp that waits for a load know when it arrives.
    fn arrive(&mut self, arrives: f64, slot: usize, warp: usize, number: u32) {
        let block = self.slots[slot].as_mut().expect("a load that arrives is a block's");
        let state = &mut block.warps[warp];
        if let Some(load) = state.flying.iter_mut().find(|load| load.number == number) {
            load.arrives = arrives;
        }
        if let Some((count, after)) = state.waits {
            let here = state.here(count, arrives);
            if here.is_finite() {
                state.waits = None;
                self.schedule(here + after, Event::Warp { slot, warp });
            }
        }
    }
}

/// The cluster and the group of one of so many pairs of multiprocessors. Those of a group follow one another, and belong to its clusters by
/// turns: in an order in which blocks come to all pairs, which by the probe `rounds` is that of the groups, by `shares` that of the clusters.
fn cluster_and_group(pair: usize, pairs: usize, groups: usize) -> [usize; 2] {
    let group = pair * groups / pairs;
    let first = (group * pairs).div_ceil(groups);
    [group * CLUSTERS_OF_A_GROUP + (pair - first) % CLUSTERS_OF_A_GROUP, group]
}

/// When what launches blocks turns to one of so many groups next, `now` at the soonest: it goes round them.
fn turn_of(group: usize, groups: usize, now: f64) -> f64 {
    let (round, first) = (AT_A_GROUP * groups as f64, AT_A_GROUP * group as f64);
    ((now - first) / round).ceil() * round + first
}

/// The numbers of each warp's requests in a block's trace, the barriers of the block among them. Between two barriers, warps that skip a
/// few accesses to shared memory which others make pass them without a lane, as ptxas makes predicates of such branches: requests without
/// wavefronts, at the end of the trace.
fn by_warp(trace: &mut Trace) -> Vec<Vec<u32>> {
    let ours = trace.requests.iter().filter(|request| request.warp != WHOLE_BLOCK);
    let count = ours.map(|request| usize::from(request.warp) + 1).max().unwrap_or(1);
    let (mut all, mut begun, mut after) = (vec![Vec::new(); count], vec![0; count], false);
    for number in 0..trace.requests.len() {
        let Traced { warp, .. } = trace.requests[number];
        if warp != WHOLE_BLOCK {
            all[usize::from(warp)].push(number as u32);
            continue;
        }
        let made = |warp: usize| &all[warp][begun[warp]..];
        let most = (0..count).map(made).max_by_key(|made| made.len()).unwrap_or_default().to_vec();
        let is_shared =
            |number: &u32| matches!(trace.requests[*number as usize].what, What::SharedLoad | What::SharedStore);
        if after && most.len() <= SKIPPED && most.iter().all(is_shared) {
            for warp in (0..count).filter(|warp| all[*warp].len() == begun[*warp]).collect::<Vec<_>>() {
                for skipped in &most {
                    all[warp].push(trace.requests.len() as u32);
                    let (what, lines_end) = (What::SharedStore, trace.add_lines(&[]));
                    let of_others = trace.requests[*skipped as usize];
                    trace.requests.push(Traced { warp: warp as u16, what, wavefronts: 0, lines_end, ..of_others });
                }
            }
        }
        for (of_warp, begun) in all.iter_mut().zip(&mut begun) {
            of_warp.push(number as u32);
            *begun = of_warp.len();
        }
        after = true;
    }
    all
}

impl Warp {
    /// When so many of its loads in flight are here, the oldest first, from `now` on.
    fn here(&self, count: usize, now: f64) -> f64 {
        self.flying.iter().take(count).fold(now, |latest, load| latest.max(load.arrives))
    }
}

#[cfg(test)]
mod tests {
    use super::super::l1::set;
    use super::*;
    use engine::Pc;
    use engine::trace::{Line, Lines, TAG_BANKS, tag_bank};
    use gpu::suite::noise;
    use std::collections::BTreeMap;

    /// Has a warp load 4 bytes from each of so many lines, with a wavefront for each.
    fn load(trace: &mut Trace, at: Pc, warp: u16, lines: u16, number: impl Fn(u64) -> u64) {
        let numbers = (0..u64::from(lines)).map(number);
        let touched: Lines = numbers.map(|number| Line { number, bytes: [4, 0, 0, 0] }).collect();
        let mut banks = [0; TAG_BANKS];
        touched.iter().for_each(|line| banks[tag_bank(line.number)] += 1);
        let tags = banks.into_iter().max().expect("there are banks");
        let (what, lines_end) = (What::Load { past_l1: false }, trace.add_lines(&touched));
        let (wavefronts, wavefronts_missing) = (lines, lines);
        trace.requests.push(Traced { warp, what, at, wavefronts, wavefronts_missing, tags, lines_end });
    }

    /// Has all warps wait for each other.
    fn wait(trace: &mut Trace, at: Pc) {
        let (warp, what, lines_end) = (WHOLE_BLOCK, What::Wait, trace.add_lines(&[]));
        trace.requests.push(Traced { warp, what, at, wavefronts: 0, wavefronts_missing: 0, tags: 0, lines_end });
    }

    /// When a block begins that [`one_block`] makes: long after the L2 has its lines.
    const BEGIN: f64 = 1e7;

    /// A multiprocessor of an H200 with one block, each of whose warps has so many loads in flight, and an L2 that has so many lines.
    fn one_block(trace: Trace, at: Pc, in_flight: usize, known: u64) -> Machine {
        one_block_of(trace, Instructions::in_flight(at, in_flight, 1.0), 224, known)
    }

    /// The same with these instructions, and so many KiB of L1.
    fn one_block_of(trace: Trace, instructions: Instructions, l1_kib: u64, known: u64) -> Machine {
        blocks_of(vec![trace], instructions, l1_kib, known)
    }

    /// The same with these blocks.
    fn blocks_of(traces: Vec<Trace>, instructions: Instructions, l1_kib: u64, known: u64) -> Machine {
        let chip = Chip { sm_count: 1, ..Chip::load("h200").expect("is built in") };
        let mut machine = Machine::new(&chip, instructions, traces.len() as u64, l1_kib << 10, u64::MAX);
        for number in 0..known {
            machine.memory.read(0, number, 1, 0.0);
        }
        machine.free.clear();
        for (slot, trace) in traces.into_iter().enumerate() {
            machine.begin(trace, slot, BEGIN, 0.0);
        }
        machine
    }

    /// Of loads of lines that the L2 has, but for one, how many are made until that is here.
    #[test]
    fn without_a_register_left_a_warp_waits_for_its_oldest_load_and_after_a_round_for_all() {
        let at = crate::pc();
        let made = |of_memory: usize| {
            let mut trace = Trace::default();
            for i in 0..32 {
                load(&mut trace, at, 0, 1, |_| if i == of_memory { 1 << 20 } else { i as u64 });
            }
            let mut machine = one_block_of(trace, Instructions::in_rounds(at, 16, 13, 1.0), 224, 32);
            let mut made = 0;
            while let Some(now) = machine.happen()
                && let Some(block) = &machine.slots[0]
            {
                let warp = &block.warps[0];
                if warp.flying.iter().any(|load| load.before == of_memory && load.arrives > now) {
                    made = warp.next;
                }
            }
            made
        };
        assert_eq!([0, 1, 2, 3, 15, 16, 20].map(made), [13, 14, 15, 16, 16, 29, 32]);
    }

    #[test]
    fn stores_wait_for_the_l2_and_do_not_pile_up_before_it() {
        const WARPS: u16 = 8;
        let chip = Chip::load("h200").expect("is built in");
        let mut machine = Machine::new(&chip, Instructions::default(), 8, chip.l1_bytes, u64::MAX);
        let at = crate::pc();
        for block in 0..16 * u64::from(chip.sm_count) {
            let mut trace = Trace::default();
            // Each lane stores 4 bytes to a line of its own.
            for request in 0..16 * u64::from(WARPS) {
                let first = 32 * (16 * u64::from(WARPS) * block + request);
                let lines: Lines = (first..first + 32).map(|number| Line { number, bytes: [4, 0, 0, 0] }).collect();
                let (warp, lines_end) = ((request % u64::from(WARPS)) as u16, trace.add_lines(&lines));
                let what = What::Store;
                trace.requests.push(Traced {
                    warp,
                    what,
                    at,
                    wavefronts: 1,
                    wavefronts_missing: 1,
                    tags: 8,
                    lines_end,
                });
            }
            machine.take(trace);
        }
        let end = machine.finish();
        let last = machine.marks.last().expect("it was at work for long");
        assert!(end.busy.l2 > 0.9 * end.at, "the L2 is what they wait for: {} of {}", end.busy.l2, end.at);
        // Since the last mark some more were made, of which the last ones were taken in advance.
        let (rate, rest) = (last.at / last.stores as f64, (end.stores - last.stores) as f64);
        let behind = end.at - last.at - rate * rest;
        assert!(behind < 0.1 * end.at, "{behind} of {} cycles", end.at);
    }

    /// What the probe `bursts` counted on an H100: how often loads that come together pass the tags, of an L1 of so many KiB.
    #[test]
    fn lines_wait_where_their_set_has_a_way_left_but_no_line_a_place() {
        use Kind::{Any, Even, Quarter, Row};
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Kind {
            Any,
            Even,
            Row,
            Quarter,
        }
        const ROUNDS: u64 = 64;
        let at = crate::pc();
        for (kind, l1_kib, measured) in [
            (Any, 248, [10.87, 10.90, 11.03, 11.19, 11.99]),
            (Any, 240, [10.87, 11.00, 11.31, 11.57, 12.28]),
            (Any, 224, [10.93, 11.29, 12.01, 12.28, 12.76]),
            (Any, 192, [11.09, 11.99, 12.81, 13.09, 13.53]),
            (Any, 92, [11.78, 13.08, 14.27, 14.86, 16.23]),
            (Any, 28, [12.12, 13.72, 16.17, 17.08, 17.72]),
            (Even, 248, [8.00, 8.03, 8.62, 9.14, 9.98]),
            (Even, 240, [8.00, 8.37, 9.27, 9.82, 10.40]),
            (Even, 224, [8.02, 9.30, 10.29, 10.72, 11.05]),
            (Even, 192, [8.05, 10.09, 11.22, 11.71, 11.83]),
            (Even, 92, [8.41, 9.75, 10.61, 12.22, 15.87]),
            (Even, 28, [8.57, 11.27, 15.28, 17.25, 18.06]),
            (Row, 248, [8.00, 8.00, 8.00, 8.00, 8.00]),
            (Row, 240, [8.00, 8.00, 8.00, 8.00, 8.00]),
            (Row, 224, [8.01, 8.00, 8.00, 8.00, 8.00]),
            (Row, 192, [8.00, 8.00, 8.00, 8.00, 8.00]),
            (Row, 92, [8.00, 8.00, 8.00, 8.00, 8.00]),
            (Row, 28, [8.00, 8.00, 8.00, 8.00, 8.03]),
            (Quarter, 248, [10.96, 11.02, 11.01, 11.01, 10.98]),
            (Quarter, 240, [10.96, 11.02, 11.01, 11.01, 10.98]),
            (Quarter, 224, [10.96, 11.02, 11.01, 11.01, 10.98]),
            (Quarter, 192, [10.96, 11.02, 11.01, 11.01, 10.98]),
            (Quarter, 92, [10.96, 11.02, 11.01, 11.48, 13.25]),
            (Quarter, 28, [12.37, 14.04, 15.81, 16.77, 17.36]),
        ] {
            for (warps, measured) in [2, 4, 8, 16, 32].into_iter().zip(measured) {
                let mut trace = Trace::default();
                for round in 0..ROUNDS {
                    for warp in 0..warps {
                        let first = (round << 5 | warp) << 5;
                        load(&mut trace, at, warp as u16, 32, |lane| {
                            if kind == Row {
                                return noise(first) as u64 % (1 << 13) * 32 + lane;
                            }
                            let mut any = (0..).map(|other| noise(other << 32 | first | lane) as u64 % (1 << 18));
                            let fits = |number: &u64| match kind {
                                Even => tag_bank(*number) as u64 == lane % 4,
                                Quarter => set(*number).is_multiple_of(4),
                                _ => true,
                            };
                            any.find(fits).expect("there are many")
                        });
                    }
                    wait(&mut trace, at);
                }
                let mut machine = one_block_of(trace, Instructions::in_flight(at, 1, 1.0), l1_kib, 1 << 18);
                let before = machine.memory.traffic.l1_tags;
                while machine.happen().is_some() {}
                let predicted = (machine.memory.traffic.l1_tags - before) / (ROUNDS * warps) as f64;
                let error = predicted / measured - 1.0;
                assert!(error.abs() < 0.23, "{kind:?} {l1_kib} KiB, {warps} warps: {predicted:.2} for {measured}");
            }
        }
    }

    /// What the probe `on_their_way` counted on an H200: how often loads from lines at random pass the tags, by the KiB of the L1 and
    /// the warps of a multiprocessor, each of which has one of them on its way.
    #[test]
    fn lines_on_their_way_keep_their_places_and_others_wait() {
        const LOADS: u64 = 12;
        let chip = Chip::load("h200").expect("is built in");
        let at = crate::pc();
        let passes = |l1_kib: u64, warps: u64| {
            let mut machine = Machine::new(&chip, Instructions::default(), 2, l1_kib << 10, u64::MAX);
            for block in 0..2 * u64::from(chip.sm_count) {
                let mut trace = Trace::default();
                for (warp, i) in (0..warps / 2).flat_map(|warp| (0..LOADS).map(move |i| (warp, i))) {
                    let number = LOADS * (warps / 2 * block + warp) + i;
                    load(&mut trace, at, warp as u16, 32, |lane| noise(32 * number + lane) as u64 % (1 << 21));
                }
                machine.take(trace);
            }
            let end = machine.finish();
            end.traffic.l1_tags / end.loads as f64
        };
        for (l1_kib, warps, measured) in [
            (28, 4, 11.13),
            (28, 6, 11.70),
            (28, 8, 15.86),
            (28, 16, 18.45),
            (124, 16, 11.49),
            (124, 28, 12.38),
            (124, 32, 15.89),
            (124, 64, 17.98),
            (248, 40, 11.16),
            (248, 56, 11.77),
            (248, 60, 13.84),
            (248, 64, 15.40),
        ] {
            let predicted = passes(l1_kib, warps);
            let error = predicted / measured - 1.0;
            assert!(error.abs() < 0.10, "{l1_kib} KiB, {warps} warps: {predicted:.2} for {measured}");
        }
    }

    #[test]
    fn loads_of_more_lines_than_there_are_places_end() {
        let chip = Chip::load("h200").expect("is built in");
        let at = crate::pc();
        for l1_bytes in [128, 4 << 10] {
            let mut machine = Machine::new(&chip, Instructions::in_flight(at, 4, 1.0), 1, l1_bytes, u64::MAX);
            let mut trace = Trace::default();
            for (warp, i) in (0..8).flat_map(|warp| (0..16).map(move |i| (warp, i))) {
                load(&mut trace, at, warp, 32, |lane| 32 * (16 * u64::from(warp) + i) + lane);
            }
            machine.take(trace);
            assert_eq!(machine.finish().loads, 8 * 16, "{l1_bytes} bytes");
        }
    }

    /// What the probe `waits` measured on an H200: the mean cycles that loads of memory take, of so many warps of a multiprocessor each, all
    /// with 32 lines at random but for one of 16, which has one.
    #[test]
    fn the_last_of_many_lines_comes_much_later_than_most() {
        const LOADS: usize = 48;
        let chip = Chip::load("h200").expect("is built in");
        let at = crate::pc();
        let means = |warps: u64| {
            let (sms, resident) = (u64::from(chip.sm_count), warps / 8);
            let mut machine = Machine::new(&chip, Instructions::default(), resident, 224 << 10, u64::MAX);
            for block in 0..sms * resident {
                let mut trace = Trace::default();
                for (i, warp) in (0..LOADS as u64).flat_map(|i| (0..8).map(move |warp| (i, warp))) {
                    let number = LOADS as u64 * (8 * block + warp) + i;
                    let lines = if (8 * block + warp) % 16 == 0 { 1 } else { 32 };
                    load(&mut trace, at, warp as u16, lines, |lane| noise(32 * number + lane) as u64 % (1 << 23));
                }
                machine.begin(trace, block as usize, 0.0, 0.0);
            }
            machine.free.clear();
            // Of some multiprocessors, neither while all begin nor while they end.
            let slots: Vec<_> =
                (0..resident).flat_map(|place| (0..8).map(move |sm| (place * sms + sm) as usize)).collect();
            let (mut come, mut took) = (vec![[(0, 0.0); 8]; slots.len()], [(0.0, 0); 2]);
            while let Some(now) = machine.happen() {
                for (slot, come) in slots.iter().zip(&mut come) {
                    let Some(block) = &machine.slots[*slot] else { continue };
                    for (warp, (before, since)) in (0..).zip(come) {
                        let next = block.warps[warp].next;
                        if next > *before {
                            let (sum, count) = &mut took[usize::from((8 * slot + warp) % 16 == 0)];
                            if (LOADS / 4..3 * LOADS / 4).contains(before) {
                                (*sum, *count) = (*sum + now - *since, *count + 1);
                            }
                            (*before, *since) = (next, now);
                        }
                    }
                }
            }
            took.map(|(sum, count)| sum / f64::from(count))
        };
        for (warps, many, one) in [(8, 1599.0, 895.0), (16, 2669.0, 1322.0), (32, 5454.0, 2158.0)] {
            let predicted = means(warps);
            for (lines, predicted, measured, bound) in [(32, predicted[0], many, 0.26), (1, predicted[1], one, 0.61)] {
                let error = predicted / measured - 1.0;
                assert!(error.abs() < bound, "{warps} warps, {lines} lines: {predicted:.0} for {measured}");
            }
        }
    }

    /// As the probe `rounds` found on both GPUs, as far as blocks wait for being launched.
    #[test]
    fn blocks_go_round_the_multiprocessors_that_have_room() {
        let chip = Chip::load("h200").expect("is built in");
        let mut machine = Machine::new(&chip, Instructions::default(), 2, 224 << 10, u64::MAX);
        let launch = |machine: &mut Machine, at: f64| machine.next_slot(at) % 132;
        let first: Vec<_> = (0..2 * 132).map(|_| launch(&mut machine, 0.0)).collect();
        assert!(first.iter().copied().eq((0..132).chain(0..132)), "one on each, then another");
        assert_eq!(machine.launches(), None);
        for (end, slot) in [(20.0, 5), (10.0, 40), (10.0, 132 + 7), (10.0, 7)] {
            machine.free.push(Reverse((key(end), slot)));
        }
        assert_eq!(machine.launches(), Some(10.0), "as soon as one ends");
        assert_eq!([7, 40].map(|_| launch(&mut machine, 10.0)), [7, 40], "the next ones that have room");
        assert_eq!([7, 5].map(|_| launch(&mut machine, 20.0)), [5, 7], "from the first on again");
    }

    /// What the probe `successors` measured on an H100: how many cycles after those of its multiprocessor ended a block begins, in the
    /// median of each sixteenth of as many blocks as there is room for. The ends of a multiprocessor's blocks are so many cycles apart.
    /// Blocks of one warp begin ahead as well in the model.
    #[test]
    fn blocks_that_take_the_place_of_many_begin_ahead_and_then_at_one_rate() {
        let chip = Chip::load("h100-sxm").expect("is built in");
        #[rustfmt::skip]
        let cases = [
            (8, 8, 220.0, 150.0, [
                355, 400, 420, 433, 477, 526, 602, 676, 741, 805, 868, 932, 995, 1073, 1342, 1450,
            ]),
            (1, 32, 150.0, 550.0, [
                664, 953, 1266, 1610, 2099, 2196, 2462, 2762, 3047, 3355, 3666, 3980, 4292, 4605, 4917, 5221,
            ]),
        ];
        for (warps, each, apart, bound, measured) in cases {
            let mut machine = Machine::new(&chip, Instructions::default(), each, 224 << 10, u64::MAX);
            let (at, room, sms) = (crate::pc(), machine.slots.len(), machine.sms.len());
            machine.free.clear();
            machine.begun = room as u64;
            for slot in 0..room {
                let ended = Resident { sm: slot % sms, ..Resident::default() };
                machine.slots[slot] = Some(ended);
                let share = ((slot / sms) as f64 + 0.5) / each as f64;
                machine.leave(BEGIN + apart * (share - 0.5), slot);
            }
            let begins: Vec<f64> = (0..room)
                .map(|_| {
                    let mut trace = Trace::default();
                    (0..warps).for_each(|warp| load(&mut trace, at, warp, 1, |_| 0));
                    let turn = machine.launches().expect("there is room");
                    let slot = machine.next_slot(turn);
                    machine.begin(trace, slot, turn, 0.0);
                    let Reverse((begin, ..)) = machine.events.pop().expect("its warps begin");
                    machine.events.clear();
                    f64::from_bits(begin) - BEGIN
                })
                .collect();
            for (begins, measured) in begins.chunks(room / 16).zip(measured) {
                let predicted = median(begins);
                assert!(
                    (predicted - f64::from(measured)).abs() < bound,
                    "{warps} warps: {predicted:.0} for {measured}"
                );
            }
        }
    }

    fn median(of: &[f64]) -> f64 {
        let mut of = of.to_vec();
        of.sort_by(f64::total_cmp);
        of[of.len() / 2]
    }

    /// How far eight blocks of eight warps have come, each warp with so many loads of 32 lines in flight, when the oldest has made half of
    /// its loads, as a share of that. The lines are all the same, or each load has its own, which the L2 has.
    fn come_by_age(in_flight: usize, same: bool) -> Vec<f64> {
        const LOADS: u64 = 256;
        const KNOWN: u64 = 1 << 17;
        let at = crate::pc();
        let requests = |block: u64| {
            let mut trace = Trace::default();
            for (i, warp) in (0..LOADS).flat_map(|i| (0..8).map(move |warp| (i, warp))) {
                let own = noise((block * 8 + warp) * LOADS + i) as u64 * 32 % KNOWN;
                load(&mut trace, at, warp as u16, 32, |lane| if same { lane } else { own + lane });
            }
            trace
        };
        let instructions = Instructions::in_flight(at, in_flight, 1.0);
        let mut machine = blocks_of((0..8).map(requests).collect(), instructions, 224, KNOWN);
        let come = |machine: &Machine, slot: usize| {
            let block = machine.slots[slot].as_ref().expect("none has ended");
            block.warps.iter().map(|warp| warp.next as u64).sum::<u64>()
        };
        while come(&machine, 0) < 8 * LOADS / 2 {
            machine.happen().expect("it is at work");
        }
        (0..8).map(|slot| come(&machine, slot) as f64 / come(&machine, 0) as f64).collect()
    }

    /// As the probe `queues` measured on an H200, of lines that are at hand and of others that the L2 has.
    #[test]
    fn the_oldest_blocks_go_on_first() {
        for (in_flight, same, bound, measured) in [
            (1, true, 0.05, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.98, 0.96]),
            (2, true, 0.17, [1.0, 0.97, 0.93, 0.88, 0.69, 0.17, 0.06, 0.06]),
            (4, true, 0.18, [1.0, 0.88, 0.66, 0.19, 0.04, 0.0, 0.0, 0.0]),
            (1, false, 0.08, [1.0, 0.97, 0.96, 0.95, 0.95, 0.94, 0.94, 0.94]),
            (2, false, 0.16, [1.0, 0.94, 0.94, 0.88, 0.78, 0.33, 0.06, 0.06]),
            (4, false, 0.19, [1.0, 0.88, 0.67, 0.23, 0.0, 0.0, 0.0, 0.0]),
        ] {
            for (block, (predicted, measured)) in come_by_age(in_flight, same).into_iter().zip(measured).enumerate() {
                let error: f64 = predicted - measured;
                assert!(
                    error.abs() < bound,
                    "{in_flight} in flight, the same {same}, block {block}: {predicted:.2} for {measured}"
                );
            }
        }
    }

    /// What the probe `turns` measured on an H200: how many cycles more a load of so many lines takes, which the L2 has and the L1 has
    /// not, while so many other warps read lines that the L1 has, each of which passes the data so often. Fewer others are left out: in
    /// the model they keep the load/store unit busier.
    #[test]
    fn another_part_has_its_turn_after_each_pass_that_misses() {
        const LOADS: usize = 64;
        let at = crate::pc();
        let cycles = |lines: u16, others: u16, wide: u16| {
            let mut trace = Trace::default();
            for i in 1..=LOADS as u64 {
                load(&mut trace, at, 0, lines, |lane| 128 * i + 4 * lane);
            }
            for warp in (1..=others).flat_map(|warp| (0..16 * LOADS).map(move |_| warp)) {
                load(&mut trace, at, warp, wide, |lane| lane);
            }
            let mut machine = one_block(trace, at, 1, 128 * (LOADS as u64 + 1));
            let mut now = BEGIN;
            while machine.slots[0].as_ref().is_some_and(|block| block.warps[0].next < LOADS) {
                now = machine.happen().expect("it is at work");
            }
            (now - BEGIN) / LOADS as f64
        };
        for (lines, others, wide, measured) in [
            (1, 16, 32, 391.0),
            (1, 28, 32, 771.0),
            (8, 16, 32, 483.0),
            (8, 28, 32, 874.0),
            (32, 16, 32, 892.0),
            (32, 28, 32, 1277.0),
            (32, 16, 8, 130.0),
            (32, 28, 8, 239.0),
        ] {
            let predicted = cycles(lines, others, wide) - cycles(lines, 0, wide);
            let error = (predicted - measured).abs();
            assert!(
                error < f64::max(120.0, 0.25 * measured),
                "{lines} lines, {others} others, {wide} times: {predicted:.0} for {measured}"
            );
        }
    }

    /// What the probe `lookups` measured on an H200: how much later than after eight warps a line is there that the L1 has, after so many
    /// have begun to load 32 lines of memory, each its own or all the same.
    #[test]
    fn a_load_waits_while_lines_are_looked_up_that_are_not_here() {
        let at = crate::pc();
        let cycles = |others: u16, same: bool| {
            let (mut trace, last) = (Trace::default(), others + 3);
            load(&mut trace, at, last, 1, |_| 1 << 20);
            wait(&mut trace, at);
            for warp in 0..others {
                load(&mut trace, at, warp, 32, |lane| lane + if same { 0 } else { 32 * u64::from(warp) });
            }
            load(&mut trace, at, last, 1, |_| 1 << 20);
            let mut machine = one_block(trace, at, 1, 0);
            let (mut now, mut begun) = (0.0, 0.0);
            loop {
                let warps = &machine.slots[0].as_ref().expect("it is at work").warps;
                let [first, last] = [0, last].map(|warp| &warps[usize::from(warp)]);
                if first.next < 2 {
                    begun = now;
                }
                if last.next == 3 && last.here(ALL, now).is_finite() {
                    return last.here(ALL, now) - begun;
                }
                now = machine.happen().expect("it is at work");
            }
        };
        let after_eight = cycles(8, false);
        for (others, same, measured) in
            [(16, false, 247.0), (24, false, 505.0), (28, false, 636.0), (24, true, -48.0), (28, true, -16.0)]
        {
            let predicted = cycles(others, same) - after_eight;
            let error = (predicted - measured).abs();
            assert!(error < 40.0, "{others} others, the same {same}: {predicted:.0} for {measured}");
        }
    }

    /// As the probe `pending` found on both GPUs: once loads that wait for their lines have passed the tags 1024 times, a line that the
    /// L1 has waits for them, however many lines they wait for.
    #[test]
    fn a_line_at_hand_waits_once_loads_that_wait_have_passed_the_tags_1024_times() {
        const HITS: usize = 60;
        let at = crate::pc();
        let is_held_up = |loads: usize, lines: u16, number: fn(u64) -> u64| {
            let mut trace = Trace::default();
            load(&mut trace, at, 31, 1, |_| 1 << 20);
            wait(&mut trace, at);
            for i in 0..loads {
                load(&mut trace, at, (i % 31) as u16, lines, number);
            }
            for _ in 0..HITS {
                load(&mut trace, at, 31, 1, |_| 1 << 20);
            }
            let mut chip = Chip { sm_count: 1, ..Chip::load("h200").expect("is built in") };
            chip.latency[3] = 1e5;
            let mut machine = Machine::new(&chip, Instructions::in_flight(at, 12, 1.0), 1, 248 << 10, u64::MAX);
            machine.free.clear();
            machine.begin(trace, 0, BEGIN, 0.0);
            let now = std::iter::from_fn(|| machine.happen()).find(|now| *now > BEGIN + 1.5e5);
            now.expect("lines of memory are not here yet");
            machine.slots[0].as_ref().expect("it is at work").warps[31].next < HITS
        };
        let in_one_bank = |lane: u64| 3175 + 33 * lane;
        for (lines, number, most) in [
            (32, (|lane| lane) as fn(u64) -> u64, 128),
            (8, in_one_bank as fn(u64) -> u64, 128),
            (16, |lane| lane, 256),
        ] {
            let held_up = [most - 8, most, most + 8].map(|loads| is_held_up(loads, lines, number));
            assert_eq!(held_up, [false, true, true], "{lines} lines");
        }
    }

    /// What `shared_lines` of `counted.cu` counted on an H200: the sectors a load that a multiprocessor reads from the L2, by the KiB of
    /// its L1, the loads of a warp in flight, its warps, and how many of these load the same lines.
    #[test]
    fn lines_that_warps_share_are_read_again_by_some() {
        const LOADS: u64 = 512;
        let at = crate::pc();
        let reads = |l1_kib: u64, in_flight: usize, warps: u16, group: u16| {
            let mut trace = Trace::default();
            for (i, warp) in (0..LOADS).flat_map(|i| (0..warps).map(move |warp| (i, warp))) {
                let first = (u64::from(warp / group) * LOADS + i) * 32;
                let line = |lane| (first + lane) as u32;
                load(&mut trace, at, warp, 32, |lane| u64::from(line(lane).wrapping_mul(0x9E37_79B1) >> 15));
            }
            let mut machine = one_block_of(trace, Instructions::in_flight(at, in_flight, 10.0), l1_kib, 1 << 17);
            let before = machine.memory.traffic.l2_reads;
            while machine.happen().is_some() {}
            (machine.memory.traffic.l2_reads - before) / machine.loads as f64
        };
        let all = [
            (248, 1, 32, 8, 8.20),
            (248, 1, 32, 32, 1.03),
            (224, 4, 8, 8, 4.09),
            (240, 4, 16, 8, 4.59),
            (248, 4, 32, 8, 7.49),
            (248, 4, 32, 32, 1.26),
            (248, 2, 32, 8, 10.27),
            (124, 1, 32, 8, 17.55),
            (124, 1, 32, 32, 12.21),
            (124, 4, 8, 8, 5.92),
            (124, 4, 16, 8, 9.58),
            (124, 4, 32, 8, 12.37),
            (124, 4, 32, 32, 5.37),
            (124, 2, 32, 8, 15.50),
            (28, 1, 32, 8, 8.79),
            (28, 1, 32, 32, 7.31),
            (28, 4, 8, 8, 4.68),
            (28, 4, 16, 8, 12.72),
            (28, 4, 32, 8, 25.41),
            (28, 4, 32, 32, 13.07),
            (28, 2, 32, 8, 10.44),
        ];
        let off = |&(l1_kib, in_flight, warps, group, measured): &(u64, usize, u16, u16, f64)| {
            let predicted = reads(l1_kib, in_flight, warps, group);
            (predicted / measured).ln().abs()
        };
        let mean = (all.iter().map(off).sum::<f64>() / all.len() as f64).exp();
        assert!(mean < 1.57, "a factor of {mean:.2} in the mean");
    }

    /// What `shared_lines` of `counted.cu` counted on an H200 where the eight warps of each of so many blocks load the same rows of lines
    /// of memory: the sectors a load that a multiprocessor reads from the L2, by its blocks and the loads of a warp in flight.
    #[test]
    fn warps_of_more_blocks_read_more_of_what_they_share_again() {
        const LOADS: u64 = 128;
        let at = crate::pc();
        let requests = |block| {
            let mut trace = Trace::default();
            for (i, warp) in (0..LOADS).flat_map(|i| (0..8).map(move |warp| (i, warp))) {
                let first = (block * LOADS + i) * 32;
                load(&mut trace, at, warp, 32, |lane| first + lane);
            }
            trace
        };
        let reads = |blocks: u64, in_flight: usize| {
            let instructions = Instructions::in_flight(at, in_flight, 8.0);
            let mut machine = blocks_of((0..blocks).map(requests).collect(), instructions, 224, 0);
            while machine.happen().is_some() {}
            machine.memory.traffic.l2_reads / machine.loads as f64
        };
        let all = [
            (2, 4, 4.00),
            (3, 4, 4.02),
            (4, 4, 5.46),
            (5, 4, 8.38),
            (6, 4, 8.51),
            (8, 4, 9.44),
            (4, 2, 4.01),
            (5, 2, 4.22),
            (6, 2, 5.70),
            (8, 2, 8.77),
            (6, 1, 4.04),
            (8, 1, 4.70),
        ];
        let off = |&(blocks, in_flight, measured): &(u64, usize, f64)| (reads(blocks, in_flight) / measured).ln().abs();
        let mean = (all.iter().map(off).sum::<f64>() / all.len() as f64).exp();
        assert!(mean < 1.31, "a factor of {mean:.2} in the mean");
    }

    /// What the probe `conflicts` measured on an H200: the cycles that a load takes in as many ways, of shared memory and of lines that
    /// the L1 has, where one load of each of so many warps follows another.
    #[test]
    fn a_load_takes_two_cycles_for_each_wavefront_and_two_loads_share_them() {
        const LOADS: u64 = 256;
        let at = crate::pc();
        let cycles = |what: What, warps: u16, ways: u16| {
            let mut trace = Trace::default();
            for warp in (0..LOADS).flat_map(|_| 0..warps) {
                load(&mut trace, at, warp, ways, |line| 33 * line);
                trace.requests.last_mut().expect("it was added").what = what;
            }
            let mut machine = one_block(trace, at, 1, 1 << 10);
            let mut times = [0.0; 2];
            while let Some(now) = machine.happen()
                && let Some(block) = &machine.slots[0]
            {
                times[usize::from(block.warps[0].next as u64 > LOADS / 2)] = now;
            }
            (times[1] - times[0]) / (LOADS / 2) as f64
        };
        let of_l1 = What::Load { past_l1: false };
        for (what, warps, measured) in [
            (What::SharedLoad, 1, [29.0, 31.0, 35.0, 43.0, 59.0, 91.0]),
            (What::SharedLoad, 4, [29.0, 31.0, 35.0, 43.0, 64.0, 128.0]),
            (What::SharedLoad, 8, [29.0, 31.0, 35.0, 64.0, 128.0, 256.0]),
            (of_l1, 1, [42.8, 44.8, 48.8, 57.8, 75.9, 111.8]),
            (of_l1, 4, [42.8, 44.8, 48.8, 57.8, 75.9, 128.1]),
            (of_l1, 8, [43.1, 45.0, 49.7, 65.1, 128.1, 256.0]),
        ] {
            for (ways, measured) in [1, 2, 4, 8, 16, 32].into_iter().zip(measured) {
                let predicted = cycles(what, warps, ways);
                let error: f64 = predicted / measured - 1.0;
                assert!(error.abs() < 0.08, "{what:?} of {warps} warps, {ways} ways: {predicted:.1} for {measured}");
            }
        }
    }

    /// So many blocks on a multiprocessor of an H200 that is their own, each of which has `steps` begin and end at a barrier: the cycles of
    /// a step.
    fn cycles_between_barriers(blocks: usize, warps: u16, add_step: impl Fn(&mut Trace, Pc)) -> f64 {
        const STEPS: usize = 64;
        let at = crate::pc();
        let requests = |_| {
            let mut trace = Trace::default();
            (0..warps).for_each(|warp| load(&mut trace, at, warp, 1, |_| 0));
            wait(&mut trace, at);
            for _ in 0..STEPS {
                add_step(&mut trace, at);
                wait(&mut trace, at);
            }
            trace
        };
        let instructions = Instructions::in_flight(at, 2, 2.0);
        let mut machine = blocks_of((0..blocks).map(requests).collect(), instructions, 28, 0);
        let (mut begun, mut ended) = (0.0, 0.0);
        while let Some(now) = machine.happen() {
            // Once all have met for the first time.
            let is_first = |block: &Resident| block.warps.iter().any(|warp| warp.next <= 2);
            if machine.slots.iter().flatten().any(is_first) {
                begun = now;
            }
            ended = now;
        }
        (ended - begun) / STEPS as f64
    }

    /// What the probe `barriers` measured on an H200: the cycles from one barrier to the next of so many blocks of so many warps.
    #[test]
    fn one_warp_after_another_comes_to_a_barrier() {
        for (blocks, warps, measured) in [
            (1, 1, 15.3),
            (1, 2, 17.3),
            (1, 4, 21.3),
            (1, 8, 29.3),
            (1, 16, 45.3),
            (1, 32, 77.4),
            (2, 8, 33.2),
            (2, 16, 64.1),
            (2, 32, 117.5),
            (4, 4, 32.1),
            (4, 8, 58.7),
            (8, 2, 32.0),
            (8, 4, 53.9),
        ] {
            let predicted = cycles_between_barriers(blocks, warps, |_, _| ());
            let error = predicted / measured - 1.0;
            assert!(error.abs() < 0.25, "{blocks} blocks of {warps} warps: {predicted:.1} for {measured}");
        }
    }

    /// What it measured of a step of a tree in shared memory, by the blocks of eight warps, how many of these add, and the ways of their
    /// conflicts.
    #[test]
    fn warps_that_skip_a_step_take_the_load_store_unit_as_well() {
        for (blocks, adding, measured) in [
            (1, 8, [68.5, 79.5, 111.0, 195.8]),
            (1, 2, [66.2, 68.6, 75.9, 94.6]),
            (1, 1, [66.1, 67.3, 69.7, 85.0]),
            (2, 8, [73.8, 102.0, 202.0, 392.0]),
            (2, 4, [70.0, 80.4, 134.0, 231.0]),
            (2, 1, [70.0, 72.2, 76.8, 104.0]),
            (4, 8, [111.9, 197.7, 382.3, 732.1]),
            (4, 4, [110.2, 155.9, 251.7, 440.8]),
            (4, 2, [110.5, 133.4, 180.8, 279.4]),
            (4, 1, [110.7, 122.3, 145.6, 197.0]),
        ] {
            for (ways, measured) in [1, 2, 4, 8].into_iter().zip(measured) {
                let predicted = cycles_between_barriers(blocks, 8, |trace, at| {
                    for warp in 0..adding {
                        for what in [What::SharedLoad, What::SharedLoad, What::SharedStore] {
                            load(trace, at, warp, ways, |line| line);
                            trace.requests.last_mut().expect("it was added").what = what;
                        }
                    }
                });
                let error = predicted / measured - 1.0;
                assert!(
                    error.abs() < 0.3,
                    "{blocks} blocks, {adding} warps add, {ways} ways: {predicted:.1} for {measured}"
                );
            }
        }
    }

    #[test]
    fn warps_pass_what_they_skip_if_it_is_little_and_in_shared_memory() {
        let at = crate::pc();
        let passed = |what: What, requests: usize, after_a_barrier: bool| {
            let mut trace = Trace::default();
            load(&mut trace, at, 1, 1, |_| 0);
            if after_a_barrier {
                wait(&mut trace, at);
            }
            for _ in 0..requests {
                load(&mut trace, at, 0, 1, |_| 0);
                trace.requests.last_mut().expect("it was added").what = what;
            }
            wait(&mut trace, at);
            let made = trace.requests.len();
            let [adds, skips] = &by_warp(&mut trace)[..] else { panic!("there are two warps") };
            assert_eq!(adds.len(), requests + usize::from(after_a_barrier) + 1, "who makes them passes nothing else");
            assert!(trace.requests[made..].iter().all(|request| request.warp == 1 && request.wavefronts == 0));
            assert_eq!(skips.len(), 2 + usize::from(after_a_barrier) + trace.requests.len() - made);
            trace.requests.len() - made
        };
        assert_eq!([1, 4, 5].map(|requests| passed(What::SharedLoad, requests, true)), [1, 4, 0]);
        assert_eq!(passed(What::SharedStore, 3, true), 3);
        assert_eq!(passed(What::SharedLoad, 3, false), 0, "only between two barriers");
        assert_eq!(passed(What::Store, 3, true), 0);
    }

    /// A multiprocessor whose L1 has the first 128 lines, and when each of its warps begins.
    fn warps_that_begin(trace: Trace, instructions: Instructions, at: Pc, when: &[f64]) -> Machine {
        let mut first = Trace::default();
        (0..4).for_each(|i| load(&mut first, at, 0, 32, |lane| 32 * i + lane));
        let mut machine = one_block_of(first, instructions, 224, 1 << 10);
        while machine.happen().is_some() {}
        machine.free.clear();
        machine.begin(trace, 0, LATER, 0.0);
        machine.events.clear();
        for (warp, when) in when.iter().enumerate() {
            machine.schedule(LATER + when, Event::Warp { slot: 0, warp });
        }
        machine
    }

    /// When all that was before is over.
    const LATER: f64 = 2.0 * BEGIN;

    /// What the probe `streams` measured on an H200: the cycles that a load at hand of 32 wavefronts takes, by how many of a warp are in
    /// flight, how far these warps are apart, and how many there are.
    #[test]
    fn loads_of_one_warp_pass_one_after_another_and_those_of_two_share_the_data() {
        const LOADS: u64 = 128;
        let at = crate::pc();
        for (in_flight, apart, measured) in [
            (1, 1, [114.0, 114.0, 114.0, 128.0, 255.0]),
            (1, 4, [114.0, 114.0, 115.0, 128.0, 254.0]),
            (2, 1, [89.0, 89.0, 96.0, 126.0, 248.0]),
            (2, 4, [89.0, 89.0, 95.0, 123.0, 246.0]),
            (4, 1, [76.0, 76.0, 96.0, 127.0, 254.0]),
            (4, 4, [76.0, 76.0, 95.0, 126.0, 249.0]),
        ] {
            for (warps, measured) in [1, 2, 3, 4, 8].into_iter().zip(measured) {
                let mut trace = Trace::default();
                for (i, warp) in (0..LOADS).flat_map(|i| (0..warps).map(move |warp| (i, warp))) {
                    load(&mut trace, at, warp * apart, 32, |lane| i % 4 * 32 + lane);
                }
                let when = vec![0.0; usize::from((warps - 1) * apart + 1)];
                let mut machine = warps_that_begin(trace, Instructions::in_flight(at, in_flight, 1.0), at, &when);
                let ended = std::iter::from_fn(|| machine.happen()).last().expect("it is at work");
                let predicted = (ended - LATER) / LOADS as f64;
                let error = predicted / measured - 1.0;
                assert!(
                    error.abs() < 0.1,
                    "{in_flight} in flight, {warps} warps {apart} apart: {predicted:.0} for {measured}"
                );
            }
        }
    }

    /// What the probe `arrivals` measured on an H200: the cycles that a load of one line takes longer than alone, so many cycles after
    /// so many warps of other parts each made four loads of 32 wavefronts.
    #[test]
    fn requests_of_all_parts_are_served_in_the_order_in_which_they_come() {
        let at = crate::pc();
        let cycles = |others: u16, later: f64| {
            let is_other = |warp: &u16| warp % 4 != 3 && warp / 4 * 3 + warp % 4 < others;
            let mut trace = Trace::default();
            for warp in (0..32).filter(is_other) {
                (0..4).for_each(|i| load(&mut trace, at, warp, 32, |lane| 32 * i + lane));
            }
            load(&mut trace, at, 3, 1, |_| 0);
            let warps = usize::from((0..32).filter(is_other).max().unwrap_or(0).max(3) + 1);
            let when: Vec<_> = (0..warps).map(|warp| if warp == 3 { later } else { 0.0 }).collect();
            let mut machine = warps_that_begin(trace, Instructions::in_flight(at, 4, 1.0), at, &when);
            loop {
                machine.happen().expect("it is at work");
                let last = &machine.slots[0].as_ref().expect("it is at work").warps[3];
                if last.next == 1 && last.here(ALL, 0.0).is_finite() {
                    return last.here(ALL, 0.0) - LATER - later;
                }
            }
        };
        let alone = cycles(0, 50.0);
        for (others, measured) in [
            (3, [192.0, 204.0, 96.0, 0.0, 0.0]),
            (6, [587.0, 595.0, 518.0, 302.0, 0.0]),
            (12, [853.0, 852.0, 851.0, 847.0, 690.0]),
            (18, [851.0, 851.0, 852.0, 853.0, 846.0]),
        ] {
            for (later, measured) in [50.0, 100.0, 200.0, 400.0, 800.0].into_iter().zip(measured) {
                let predicted = cycles(others, later) - alone;
                let error: f64 = predicted - measured;
                assert!(error.abs() < 150.0, "{others} others, {later} later: {predicted:.0} for {measured}");
            }
        }
    }

    /// What the probe `leaders` measured on an H200: as which of all the loads of the first of so many warps are done, which begin 60
    /// cycles apart and load the same lines.
    #[test]
    fn loads_that_came_back_pass_in_the_order_in_which_they_were_looked_up() {
        let at = crate::pc();
        for (warps, measured) in [(2, [1.0, 3.1, 5.1, 7.1]), (3, [1.2, 3.5, 5.5, 7.5]), (4, [1.3, 3.6, 5.6, 7.6])] {
            let mut trace = Trace::default();
            for (i, warp) in (0..4).flat_map(|i| (0..warps).map(move |warp| (i, warp))) {
                load(&mut trace, at, warp, 32, |lane| 256 + 32 * i + lane);
            }
            let when: Vec<_> = (0..warps).map(|warp| 60.0 * f64::from(warp)).collect();
            let mut machine = warps_that_begin(trace, Instructions::in_flight(at, 4, 1.0), at, &when);
            let ends = when_loads_end(&mut machine, warps);
            for ((_, end), measured) in ends.range(..(1, 0)).zip(measured) {
                let predicted = 1.0 + ends.values().filter(|other| *other < end).count() as f64;
                let error: f64 = predicted - measured;
                assert!(error.abs() < 0.7, "{warps} warps: number {predicted} for {measured}");
            }
        }
    }

    /// What the probe `backlog` measured on an H200: the cycles that a load takes in the median, of a line that the L1 has and of one of the
    /// L2, while so many other warps of each multiprocessor store to 32 rows each, a lane a row.
    #[test]
    fn loads_wait_for_stores_that_the_l2_does_not_take() {
        const ROUNDS: u64 = 3;
        let chip = Chip::load("h200").expect("is built in");
        let at = crate::pc();
        let median = |storing: u16, lines: u16| {
            let mut machine = Machine::new(&chip, Instructions::default(), 1, 224 << 10, u64::MAX);
            for number in 0..1 << 14 {
                machine.memory.read(0, number, 1, 0.0);
                machine.memory.read(4, number, 1, 0.0);
            }
            let sms = u64::from(chip.sm_count);
            for sm in 0..sms {
                let mut trace = Trace::default();
                for i in 0..256 {
                    load(&mut trace, at, 0, lines.max(1), |lane| {
                        if lines == 0 { 0 } else { noise(32 * (256 * sm + i) + lane) as u64 % (1 << 14) }
                    });
                }
                for (round, warp) in
                    (0..ROUNDS).flat_map(|round| (0..u64::from(storing)).map(move |warp| (round, warp)))
                {
                    for x in 0..64 {
                        let first = (1 << 20) + ((round * sms + sm) * u64::from(storing) + warp) * 32 * 2 + x / 32;
                        let mut bytes = [0; 4];
                        bytes[x as usize / 8 % 4] = 4;
                        let rows: Lines = (0..32).map(|lane| Line { number: first + 2 * lane, bytes }).collect();
                        let (what, lines_end) = (What::Store, trace.add_lines(&rows));
                        let (wavefronts, wavefronts_missing) = (32, 32);
                        let warp = 1 + warp as u16;
                        trace.requests.push(Traced {
                            warp,
                            what,
                            at,
                            wavefronts,
                            wavefronts_missing,
                            tags: 8,
                            lines_end,
                        });
                    }
                }
                machine.begin(trace, sm as usize, BEGIN, 0.0);
            }
            machine.free.clear();
            let (mut took, mut come) = (Vec::new(), vec![(0, BEGIN); sms as usize]);
            while let Some(now) = machine.happen() {
                let store = |block: &Resident| block.warps.iter().skip(1).all(|warp| warp.next < warp.requests.len());
                for (block, (before, since)) in machine.slots.iter().zip(&mut come) {
                    let Some(block) = block.as_ref().filter(|block| store(block)) else { continue };
                    let next = block.warps[0].next;
                    if next > *before {
                        if next > 2 {
                            took.push(now - *since);
                        }
                        (*before, *since) = (next, now);
                    }
                }
            }
            took.sort_unstable_by(f64::total_cmp);
            took[took.len() / 2]
        };
        for (storing, measured) in
            [(1, [2907.0, 4190.0, 5348.0]), (3, [3038.0, 4339.0, 5599.0]), (7, [10185.0, 11792.0, 12358.0])]
        {
            for (lines, measured) in [0, 1, 32].into_iter().zip(measured) {
                let predicted = median(storing, lines);
                let error: f64 = predicted / measured - 1.0;
                assert!(error.abs() < 0.21, "{lines} lines beside {storing} warps: {predicted:.0} for {measured}");
            }
        }
    }

    /// When each load of the first warps is done, until the block is.
    fn when_loads_end(machine: &mut Machine, warps: u16) -> BTreeMap<(usize, u32), f64> {
        let mut ends = BTreeMap::new();
        while let Some(block) = &machine.slots[0] {
            let warps = block.warps.iter().take(usize::from(warps)).enumerate();
            let flying = warps.flat_map(|(warp, state)| state.flying.iter().map(move |load| (warp, load)));
            let done = flying.filter(|(_, load)| load.arrives.is_finite());
            ends.extend(done.map(|(warp, load)| ((warp, load.number), load.arrives)));
            machine.happen();
        }
        ends
    }

    /// What the probe `groups` measured on an H200: the cycles that a load takes, at so many percent of them, of lines that the L2 has,
    /// where eight warps each load the same ones and some find what others fetched.
    #[test]
    fn loads_that_find_what_others_fetched_are_not_behind_all_that_wait() {
        const LOADS: usize = 512;
        let at = crate::pc();
        let cycles = |warps: u16, in_flight: usize| {
            let mut trace = Trace::default();
            for i in 0..LOADS as u64 {
                for warp in 0..warps {
                    load(&mut trace, at, warp, 32, |lane| {
                        ((i * 32 + lane) * 513 + u64::from(warp / 8) * 131) % (1 << 17)
                    });
                }
            }
            let mut machine = one_block(trace, at, in_flight, 1 << 17);
            let (mut took, mut ended) = (Vec::new(), vec![(0, 0.0); usize::from(warps)]);
            while let Some(now) = machine.happen()
                && let Some(block) = &machine.slots[0]
            {
                for (warp, (come, at)) in block.warps.iter().zip(&mut ended) {
                    let loads = warp.next - warp.flying.iter().filter(|load| load.arrives > now).count();
                    if loads >= *come + in_flight {
                        took.extend((*come >= 32).then_some((now - *at) / in_flight as f64));
                        (*come, *at) = (*come + in_flight, now);
                    }
                }
            }
            took.sort_unstable_by(f64::total_cmp);
            move |percent: usize| took[percent * took.len() / 100]
        };
        for (warps, in_flight, bound, measured) in [
            (8, 2, 0.44, [225.0, 370.0, 393.0]),
            (8, 4, 0.12, [173.0, 312.0, 347.0]),
            (16, 1, 0.14, [519.0, 550.0, 588.0]),
            (16, 2, 0.14, [290.0, 461.0, 787.0]),
            (16, 4, 0.12, [465.0, 554.0, 611.0]),
            (32, 1, 0.65, [624.0, 983.0, 1457.0]),
            (32, 2, 0.12, [1041.0, 1120.0, 1178.0]),
            (32, 4, 0.12, [1071.0, 1122.0, 1161.0]),
        ] {
            let cycles = cycles(warps, in_flight);
            for (percent, measured) in [25, 50, 75].into_iter().zip(measured) {
                let predicted = cycles(percent);
                let error = predicted / measured - 1.0;
                assert!(
                    error.abs() < bound,
                    "{warps} warps, {in_flight} in flight, {percent} %: {predicted:.0} for {measured}"
                );
            }
        }
    }

    /// A whole H200 whose multiprocessors each have eight blocks of eight warps, each of which makes these requests, with an L2 that has so
    /// many lines.
    fn eight_blocks(instructions: Instructions, known: u64, requests: impl Fn(&mut Trace, u64, u16)) -> Machine {
        let chip = Chip::load("h200").expect("is built in");
        let mut machine = Machine::new(&chip, instructions, 8, 224 << 10, u64::MAX);
        for number in 0..known {
            machine.memory.read(0, number, 1, 0.0);
            machine.memory.read(4, number, 1, 0.0);
        }
        machine.free.clear();
        for slot in 0..8 * u64::from(chip.sm_count) {
            let mut trace = Trace::default();
            (0..8).for_each(|warp| requests(&mut trace, slot, warp));
            machine.begin(trace, slot as usize, BEGIN + slot as f64, 0.0);
        }
        machine
    }

    /// What the probe `shares` measured on an H200: how much more than the mean the multiprocessors of the smaller clusters do that read
    /// lines at random, of the L2 or of memory.
    #[test]
    fn clusters_have_the_same_share_whatever_they_have_of_multiprocessors() {
        let at = crate::pc();
        for (of, known, measured) in [(1 << 15, 1 << 15, 1.21), (1 << 26, 0, 1.35)] {
            let mut machine = eight_blocks(Instructions::in_flight(at, 1, 4.0), known, |trace, slot, warp| {
                for i in 0..256 {
                    let first = ((slot * 8 + u64::from(warp)) << 8 | i) << 5;
                    load(trace, at, warp, 32, |lane| noise(first | lane) as u64 * 3 % of);
                }
            });
            while machine.happen().is_some_and(|now| now < BEGIN + 60_000.0) {}
            let (sms, clusters) = (machine.sms.len(), machine.constants.groups * CLUSTERS_OF_A_GROUP);
            let mut made = vec![0.0; sms];
            for block in machine.slots.iter().flatten() {
                made[block.sm] += block.warps.iter().map(|warp| warp.next).sum::<usize>() as f64;
            }
            let mean = |of: &dyn Fn(usize) -> bool| {
                let of: Vec<f64> = (0..sms).filter(|sm| of(*sm)).map(|sm| made[sm]).collect();
                of.iter().sum::<f64>() / of.len() as f64
            };
            let cluster = |sm: usize| machine.sms[sm].cluster;
            let small = |sm: usize| (0..sms).filter(|other| cluster(*other) == cluster(sm)).count() < sms / clusters;
            let predicted = mean(&small) / mean(&|_| true);
            assert!((predicted - measured).abs() < 0.18, "of {of} lines: {predicted:.3} for {measured}");
        }
    }

    /// What the probe `rows` counted on an H200: how often each sector of a row of 64 floats is read from the L2 that so many lanes load,
    /// each of which copies it, so many floats a round.
    #[test]
    fn an_l1_loses_lines_to_stores() {
        let at = crate::pc();
        for (a_round, lanes, measured) in [(1, 32, 4.04), (1, 64, 1.56), (4, 32, 2.84), (4, 64, 1.80)] {
            let mut machine = eight_blocks(Instructions::of_round(at, a_round, 1, 6.0), 0, |trace, slot, warp| {
                let first = (slot * 8 + u64::from(warp)) * 32;
                for i in 0..64 {
                    let mut bytes = [0; 4];
                    bytes[i as usize / 8 % 4] = 4;
                    let lines =
                        |lines: Vec<u64>| lines.into_iter().map(|number| Line { number, bytes }).collect::<Lines>();
                    let request = |what, lines_end, tags, wavefronts| Traced {
                        warp,
                        what,
                        at,
                        wavefronts,
                        wavefronts_missing: wavefronts,
                        tags,
                        lines_end,
                    };
                    let row = lines(vec![first / lanes * 2 + i / 32]);
                    let lines_end = trace.add_lines(&row);
                    trace.requests.push(request(What::Load { past_l1: false }, lines_end, 1, 1));
                    let rows = lines((0..32).map(|lane| (1 << 21) + (first + lane) * 2 + i / 32).collect());
                    let lines_end = trace.add_lines(&rows);
                    trace.requests.push(request(What::Store, lines_end, 8, 32));
                }
            });
            while machine.happen().is_some() {}
            let sectors = machine.slots.len() as u64 * 256 / lanes * 8;
            let predicted = machine.memory.traffic.l2_reads / sectors as f64;
            let error = predicted / measured - 1.0;
            assert!(error.abs() < 0.12, "{a_round} a round, {lanes} lanes: {predicted:.2} for {measured}");
        }
    }
}
