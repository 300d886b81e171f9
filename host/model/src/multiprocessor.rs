//! A multiprocessor, as a launch is replayed on it: its four parts, the load/store unit that they share, and its L1.

use super::cache::mixed;
use super::chip::Constants;
use super::l1::L1;
use super::memory::{Memory, sectors};
use super::unsent::{Load, Unsent};
use engine::trace::{Line, Lines, TAG_BANKS, Traced, What, tag_bank};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Lines of stores that wait for those of any warp.
const ON_THEIR_WAY: usize = 7;

/// Parts of a multiprocessor.
pub(super) const PARTS: usize = 4;

/// Requests of each of them that have not come to the load/store unit, beyond which its warps wait: by the probe `backlog`.
const QUEUE: usize = 10;

/// Cycles of the load/store unit that a load takes at least, fitted to `constant` and `batched`.
const LOAD: f64 = 1.15;

/// Requests that it serves in the order in which they came, of all parts: by the probe `arrivals`.
const IN_ORDER: usize = 24;

/// Those of others that have their turn after a pass through the tags that missed, none of them a store: by the probes `turns`, `leaders`
/// and `backlog`.
const AFTER_MISS: usize = PARTS - 1;

/// Loads that wait for places of lines, beyond which nothing is looked up, not even lines at hand.
const WAITING: usize = 2;

/// Requests that the load/store unit has served and that wait for the data, beyond which it waits as well: by the probe `streams`, in
/// which a warp that comes later passes beside one that has three more loads to pass.
const SERVED: usize = 2;

/// Wavefronts of loads that came back for each of one at hand, while both wait for the data: fitted to `matrix_column_sums_warp` and to
/// `shared_lines` of rows. By the probe `returns` it is not wavefronts that take turns, but presumably four lines of a load that came back
/// and one or three at hand.
const CAME_BACK: f64 = 1.0;

/// Cycles in which the tags look nothing up that they take to have a line of each bank go, for one to come: fitted to the probe `bursts`.
const CLEARING: f64 = 2.0;

/// Passes through the tags of loads that wait for lines, beyond which no load is looked up: by the probe `pending`.
const PENDING: u32 = 1024;

/// A warp that waits, by the age of its block and by when it came.
type Waiting = Reverse<(u64, u64, usize, usize)>;

/// A part of a multiprocessor, with issue slots of its own and a queue of its own to the load/store unit.
pub(super) struct Part {
    pub(super) issue_free: f64,
    pub(super) queue: VecDeque<Queued>,
    /// How many of these have come to the load/store unit.
    entered: usize,
    /// Whether the first of them waits until other loads give back what they take up.
    pub(super) waits: bool,
    /// Warps that wait for an issue slot, and those that wait for one and for room in the queue.
    pub(super) waiting: BinaryHeap<Waiting>,
    pub(super) throttled: BinaryHeap<Waiting>,
    /// When it looks next which of them goes on.
    pub(super) looks: f64,
}

impl Part {
    fn new() -> Self {
        let [waiting, throttled] = [(); 2].map(|()| BinaryHeap::new());
        let queue = VecDeque::with_capacity(QUEUE + IN_ORDER);
        Self { issue_free: 0.0, queue, entered: 0, waits: false, waiting, throttled, looks: f64::INFINITY }
    }

    /// Whether the load/store unit can turn to it.
    pub(super) fn has_turn(&self) -> bool {
        self.entered > 0 && !self.waits
    }

    fn is_full(&self) -> bool {
        self.queue.len() - self.entered >= QUEUE
    }

    /// Whether a warp's request, which is for the load/store unit or not, has to wait.
    pub(super) fn has_to_wait(&self, queued: bool, now: f64) -> bool {
        self.issue_free > now || !self.waiting.is_empty() || queued && (self.is_full() || !self.throttled.is_empty())
    }

    /// The warp that goes on now, and its block's slot.
    pub(super) fn next(&mut self, now: f64) -> Option<(usize, usize)> {
        if self.issue_free > now {
            return None;
        }
        let full = self.is_full();
        let throttled = self.throttled.peek().filter(|_| !full);
        // What is reversed is the greater the older it is.
        let from = if throttled > self.waiting.peek() { &mut self.throttled } else { &mut self.waiting };
        from.pop().map(|Reverse((_, _, slot, warp))| (slot, warp))
    }

    /// When one of those that wait can go on, as far as that is known.
    pub(super) fn room(&self) -> Option<f64> {
        let throttled = !self.throttled.is_empty() && !self.is_full();
        (throttled || !self.waiting.is_empty()).then_some(self.issue_free)
    }
}

/// A request in the queue to the load/store unit.
pub(super) struct Queued {
    pub(super) slot: usize,
    pub(super) warp: usize,
    /// Its place among the warp's requests.
    pub(super) place: usize,
    pub(super) load: Progress,
    /// Whether it is a store, in whose turn one of another part may come.
    pub(super) is_store: bool,
    /// How many came to the load/store unit before it, once it has.
    pub(super) order: u64,
}

/// What takes the data so many cycles. So many later what a warp waits for is there, if it is a load.
pub(super) struct Passing {
    pub(super) slot: usize,
    pub(super) warp: usize,
    pub(super) load: Option<u32>,
    pub(super) data: f64,
    pub(super) latency: f64,
}

/// What a load takes up until its lines are here and pass the data.
#[derive(Clone, Copy, Default)]
pub(super) struct Pending {
    /// How many loads that wait for lines were looked up before.
    order: u64,
    passes: u32,
    /// The lines that it waits for, as bits.
    holds: u32,
}

/// How far a load has come whose lines are looked up.
#[derive(Clone, Copy, Default)]
pub(super) struct Progress {
    /// The line that each bank of the tags takes next, if it is that bank's.
    next: [usize; TAG_BANKS],
    /// How many lines were looked up, and how many of those are not here.
    looked_up: usize,
    coming: usize,
    /// When the last of those is.
    here: f64,
    passes: u32,
    /// The lines that it waits for, as bits.
    holds: u32,
}

/// How a line of a load was found in the L1.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    Here,
    /// It is on its way, for another load.
    Coming,
    /// Some of it was neither, and was asked for.
    Missing,
}

/// What has become of a request.
pub(super) enum Served {
    /// Nothing comes back.
    Sent,
    /// It takes the data so many cycles; so many later what it loads is there.
    Passes { data: f64, latency: f64, is_load: bool },
    /// All of its lines are here then, and pass the data so often.
    Coming { here: f64, data: f64, pending: Pending },
}

/// What a multiprocessor serves requests with.
pub(super) struct Multiprocessor {
    /// Those whose reads the L2 serves with its own.
    pub(super) group: usize,
    number: usize,
    /// Those whose ways to the L2 are as long as its own.
    pair: usize,
    /// Those that have the same share of the L2 together.
    pub(super) cluster: usize,
    l1: L1,
    /// Loads all of whose lines were looked up and that wait for some: if there is none, nothing would give a place back, and every line
    /// has one.
    holding: usize,
    /// When the tags have last looked lines up, and for how long they have not since lines went for those to come.
    looked_up: f64,
    idle: f64,
    unsent: Unsent,
    /// The lines stored to last, and their sectors that are on their way to the L2.
    stored: VecDeque<(u64, u8)>,
    pub(super) parts: [Part; PARTS],
    /// Requests that have come to the load/store unit, how many of these wait, and the part of the last.
    order: u64,
    entered: usize,
    entered_last: usize,
    /// Those that have come since this was last emptied: the slot and the warp of each, and its place among the warp's.
    came: Vec<(usize, usize, usize)>,
    /// The part whose request has just missed, and how many of others have their turn before it goes on.
    missed: Option<(usize, usize)>,
    /// When it turns to the next.
    pub(super) turns: f64,
    pub(super) lsu_free: f64,
    /// When the data are free for one of two that pass them at a time, and the warp whose load has them until then if it did not come
    /// back.
    data: [(f64, Option<(usize, usize)>); 2],
    /// Wavefronts of loads that came back that have passed since one at hand did.
    came_back: f64,
    /// Loads that had to wait for lines, and passes of those that do.
    waited: u64,
    pending: u32,
    /// What waits for the data: requests that the load/store unit has served, and loads that came back, in the order in which they
    /// were looked up.
    pub(super) served: VecDeque<Passing>,
    pub(super) returned: BTreeMap<u64, (Passing, Pending)>,
    /// When the next of them passes.
    pub(super) passes: f64,
    pub(super) port_free: f64,
    pub(super) next_launch: f64,
    /// When the last warp that came to a barrier is there.
    pub(super) met: f64,
    /// What each was busy with so far.
    pub(super) issue_cycles: f64,
    pub(super) global_cycles: f64,
    pub(super) shared_cycles: f64,
}

impl Multiprocessor {
    /// An idle one of this number, of a cluster and a group, with so much L1. Those of a group share reads of the L2.
    pub(super) fn new(number: usize, cluster: usize, group: usize, l1_bytes: u64) -> Self {
        let [lsu_free, port_free, next_launch, issue_cycles, global_cycles, shared_cycles] = [0.0; 6];
        Self {
            group,
            number,
            pair: number / 2,
            cluster,
            l1: L1::new(l1_bytes),
            holding: 0,
            looked_up: 0.0,
            idle: 0.0,
            unsent: Unsent::default(),
            stored: VecDeque::with_capacity(ON_THEIR_WAY),
            parts: std::array::from_fn(|_| Part::new()),
            order: 0,
            entered: 0,
            entered_last: 0,
            came: Vec::new(),
            missed: None,
            turns: f64::INFINITY,
            lsu_free,
            data: [(0.0, None); 2],
            came_back: 0.0,
            waited: 0,
            pending: 0,
            served: VecDeque::new(),
            returned: BTreeMap::new(),
            passes: f64::INFINITY,
            port_free,
            next_launch,
            met: 0.0,
            issue_cycles,
            global_cycles,
            shared_cycles,
        }
    }

    /// The part that the load/store unit turns to: that whose first request came first. After a pass of it that missed a few others have
    /// their turn.
    pub(super) fn next_part(&mut self) -> Option<usize> {
        let missed = self.missed.take();
        if self.parts.iter().filter(|part| part.entered > 0 && part.waits).count() >= WAITING {
            return None;
        }
        let waiting = || (0..PARTS).filter(|part| self.parts[*part].has_turn());
        let came = |part: &usize| self.parts[*part].queue[0].order;
        let first = waiting().min_by_key(came)?;
        let is_load = |part: &usize| !self.parts[*part].queue[0].is_store;
        let next = waiting().filter(|part| *part != first && is_load(part)).min_by_key(came);
        let (Some((_, left)), Some(next)) = (missed.filter(|(part, _)| *part == first), next) else {
            return Some(first);
        };
        self.missed = (left > 1).then_some((first, left - 1));
        Some(next)
    }

    /// Adds a request to the queue of a part.
    pub(super) fn add(&mut self, part: usize, request: Queued) {
        self.parts[part].queue.push_back(request);
        self.enter();
    }

    /// Removes the first request of a part.
    pub(super) fn remove(&mut self, part: usize) {
        self.parts[part].queue.pop_front();
        self.parts[part].entered -= 1;
        self.entered -= 1;
        self.enter();
    }

    /// The requests that have come to the load/store unit since it was last asked for them.
    pub(super) fn came(&mut self) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        std::mem::take(&mut self.came).into_iter()
    }

    /// Has requests come to the load/store unit as long as it has room, of one part after another; but if it is a store's turn, of any part
    /// every second time, fitted to `embedding_thread_a_row`. If it never were, two warps that are abreast would stay so, which they do not
    /// by the probe `companions`.
    fn enter(&mut self) {
        while self.entered < IN_ORDER {
            let next = |last: usize| (1..=PARTS).map(move |further| (last + further) % PARTS);
            let has_more = |part: &usize| self.parts[*part].queue.len() > self.parts[*part].entered;
            let Some(part) = next(self.entered_last).find(has_more) else { return };
            let is_store = self.parts[part].queue[self.parts[part].entered].is_store;
            let drawn = mixed(self.order ^ (self.number as u64) << 32) as usize;
            // One bit says whether any part's turn it is, those below whose.
            let any = next(drawn % PARTS).find(|part| is_store && drawn & PARTS != 0 && has_more(part));
            let part = any.unwrap_or(part);
            let Part { queue, entered, .. } = &mut self.parts[part];
            self.order += 1;
            let request = &mut queue[*entered];
            request.order = self.order;
            self.came.push((request.slot, request.warp, request.place));
            *entered += 1;
            self.entered += 1;
            self.entered_last = part;
        }
    }

    /// Reads constants, and says when they are here.
    pub(super) fn read_constant(&mut self, request: Traced, issued: f64, constants: &Constants) -> f64 {
        // One address comes with the instruction; each of several takes a pass.
        let passes = if request.wavefronts > 1 { f64::from(request.wavefronts) } else { 0.0 };
        let done = issued + passes * constants.constant_pass;
        let issue_free = self.parts.iter().fold(0.0, |latest: f64, part| latest.max(part.issue_free));
        self.issue_cycles += (done - issue_free).max(0.0);
        self.parts.iter_mut().for_each(|part| part.issue_free = part.issue_free.max(done));
        done + constants.latency_shared
    }

    /// Whether the load/store unit has to wait until one of those passes the data that it has served.
    pub(super) fn is_held_up(&self) -> bool {
        self.served.len() > SERVED
    }

    /// Has a load whose lines are all here wait for the data.
    pub(super) fn come_back(&mut self, load: Passing, pending: Pending) {
        self.returned.insert(pending.order, (load, pending));
    }

    /// When there is room in the data for the next of those that wait, after `now`.
    pub(super) fn next_pass(&self, now: f64) -> f64 {
        let waits = !self.served.is_empty() || !self.returned.is_empty();
        let free = self.data.iter().map(|(free, _)| *free).filter(|free| waits && *free > now);
        free.fold(f64::INFINITY, f64::min)
    }

    /// Has the next of those that wait pass the data, if there is room, and says when it has. Loads at hand of one warp pass one after
    /// another. Of loads that came back that passes which was looked up first.
    pub(super) fn pass(&mut self, now: f64, lines_of: impl Fn(&Passing) -> Lines) -> Option<(Passing, f64)> {
        let place = self.data.iter().position(|(free, _)| *free <= now)?;
        let (until, other) = self.data[1 - place];
        let is_of_other = |load: &Passing| until > now && other == Some((load.slot, load.warp));
        let served = self.served.iter().position(|load| !is_of_other(load));
        let served =
            served.filter(|served| self.returned.is_empty() || self.came_back >= CAME_BACK * self.served[*served].data);
        let (next, warp) = if let Some(served) = served {
            let next = self.served.remove(served)?;
            self.came_back = (self.came_back - CAME_BACK * next.data).clamp(0.0, next.data);
            let warp = (next.slot, next.warp);
            (next, Some(warp))
        } else {
            let (_, (next, Pending { passes, holds, .. })) = self.returned.pop_first()?;
            self.came_back += next.data;
            self.pending -= passes;
            self.give_back(&lines_of(&next), holds);
            self.parts.iter_mut().for_each(|part| part.waits = false);
            (next, None)
        };
        let passed = now + 2.0 * next.data;
        self.data[place] = (passed, warp);
        Some((next, passed))
    }

    /// Has a load hold those of its lines no longer.
    fn give_back(&mut self, lines: &[Line], holds: u32) {
        self.holding -= usize::from(holds != 0);
        for (_, line) in lines.iter().enumerate().filter(|(i, _)| holds >> i & 1 == 1) {
            self.l1.give_back(line.number);
        }
    }

    /// Has lines go for those to come while the tags look nothing up, for so many cycles.
    fn clear(&mut self, cycles: f64) {
        self.idle += cycles.max(0.0);
        let count = (self.idle / CLEARING).floor();
        self.idle = (self.idle - count * CLEARING).max(0.0);
        self.l1.make_reserve(count.min(64.0) as u32);
    }

    /// Serves the first request of a part, which touches `lines`, as far as one turn goes. A store to lines that the warp has just
    /// stored to `with` goes to the L2 with that.
    pub(super) fn serve(
        &mut self,
        part: usize,
        request: Traced,
        lines: &[Line],
        with: &[Line],
        now: f64,
        constants: &Constants,
        memory: &mut Memory,
    ) -> Option<Served> {
        // Others would wait for each of these in turn.
        if lines.len() > 1 {
            let glances = lines.iter().map(|line| self.l1.glance(line.number) ^ memory.glance(line.number));
            std::hint::black_box(glances.fold(0, |all, one| all ^ one));
        }
        match request.what {
            What::SharedLoad | What::SharedStore => {
                let wavefronts = f64::from(request.wavefronts);
                memory.traffic.shared_wavefronts += wavefronts;
                // Without a lane it takes as long as one does.
                let cycles = wavefronts.max(1.0);
                self.shared_cycles += cycles;
                self.lsu_free = now + cycles;
                let is_load = request.what == What::SharedLoad;
                // The two cycles of a wavefront are in the latency.
                let latency = constants.latency_shared - 2.0;
                Some(Served::Passes { data: cycles, latency, is_load })
            }
            What::Load { past_l1 } => self.load(part, request, lines, past_l1, now, constants, memory),
            What::Store | What::Atomic => {
                if request.what == What::Atomic {
                    for line in lines {
                        memory.add(line.number, sectors(line), self.send(now, sectors(line), constants));
                    }
                } else {
                    self.store(lines, with, now, constants, memory);
                }
                let cycles = f64::from(request.wavefronts).max(lines.len() as f64);
                self.global_cycles += cycles;
                // They are not waited for, nor do they wait for what comes back.
                self.lsu_free = now + cycles;
                self.data.iter_mut().for_each(|(free, _)| *free = free.max(now) + cycles);
                Some(Served::Sent)
            }
            What::Wait | What::Constant => Some(Served::Sent),
        }
    }

    /// Looks the lines of a load up. In each pass every bank of the tags takes the next of its lines, if that is here or there is a
    /// place for it. A pass that finds one missing ends the turn. While others wait, one whose set is crowded is put off once.
    fn load(
        &mut self,
        part: usize,
        request: Traced,
        lines: &[Line],
        past_l1: bool,
        now: f64,
        constants: &Constants,
        memory: &mut Memory,
    ) -> Option<Served> {
        let Queued { slot, warp, place, mut load, .. } = self.parts[part].queue[0];
        let this = (slot, warp, place);
        let others = (0..PARTS).any(|other| other != part && !self.parts[other].queue.is_empty());
        let mut at = now;
        self.clear(now - self.looked_up);
        while load.looked_up < lines.len() {
            let (before, coming, mut missing, mut waits) = (load.looked_up, load.coming, 0, self.pending >= PENDING);
            let (banks, mut put_off) = (if waits { 0 } else { TAG_BANKS }, false);
            for bank in 0..banks {
                let of_bank = |i: &usize| tag_bank(lines[*i].number) == bank;
                load.next[bank] = (load.next[bank]..lines.len()).find(of_bank).unwrap_or(lines.len());
                let Some(line) = lines.get(load.next[bank]) else { continue };
                let number = line.number;
                if !past_l1 && self.l1.get(number).is_none() {
                    while !others && !self.l1.has_room(number) && self.l1.can_make_room(number) {
                        self.l1.make_reserve(1);
                    }
                    if !self.l1.has_room(number) {
                        let goes = self.l1.can_make_room(number);
                        if goes || self.holding > 0 {
                            (put_off, waits) = (put_off || goes, waits || !goes);
                            continue;
                        }
                    }
                }
                let (ready, found) = self.look_up(line, past_l1, at, constants, memory);
                if !past_l1 && found != Found::Here {
                    self.l1.hold(number);
                    load.holds |= 1 << load.next[bank];
                }
                load.next[bank] += 1;
                load.looked_up += 1;
                if ready.is_finite() {
                    load.here = load.here.max(ready);
                } else {
                    self.unsent.wait(this, number);
                }
                load.coming += usize::from(found != Found::Here);
                missing += u32::from(found == Found::Missing);
            }
            if put_off {
                self.l1.make_reserve(1);
            }
            load.passes += u32::from(load.looked_up > before);
            // Once it has to wait, its earlier passes count as well.
            self.pending += match (coming, load.coming) {
                (_, 0) => 0,
                (0, _) => load.passes,
                _ => u32::from(load.looked_up > before),
            };
            self.parts[part].waits = load.looked_up == before && !put_off;
            // It sends one read a cycle.
            at += f64::from(missing.max(1));
            if !others {
                self.clear(f64::from(missing.saturating_sub(1)));
            }
            self.looked_up = at;
            if waits || missing > 0 && others && load.looked_up < lines.len() {
                self.lsu_free = at;
                self.missed = Some((part, AFTER_MISS));
                self.parts[part].queue[0].load = load;
                return None;
            }
        }
        let Progress { coming, here, passes, holds, .. } = load;
        let (tags, more) = (f64::from(passes), f64::from(passes.saturating_sub(u32::from(request.tags))));
        let data = if 2 * coming < lines.len() {
            f64::from(request.wavefronts)
        } else {
            // The more lines wait for a place, the fewer conflicts there are in a pass: none with each line in its own.
            let missing = f64::from(request.wavefronts_missing);
            let [conflicts, most] = [missing, lines.len() as f64].map(|all| all - f64::from(request.tags));
            missing + if more > 0.0 { more * (1.0 - conflicts / most) } else { 0.0 }
        };
        // What is at hand does not wait for what is not.
        let data = data + f64::from(u8::from((1..lines.len()).contains(&coming)));
        memory.traffic.l1_wavefronts += data;
        memory.traffic.l1_tags += tags;
        self.global_cycles += data.max(tags).max(LOAD);
        self.lsu_free = at.max(now + LOAD);
        Some(if coming > 0 {
            self.holding += usize::from(holds != 0);
            self.waited += 1;
            Served::Coming {
                here: self.unsent.looked_up(this, here.max(at)),
                data: data.max(LOAD),
                pending: Pending { order: self.waited, passes, holds },
            }
        } else {
            let data = data.max(tags).max(LOAD);
            // One of the two cycles of a wavefront is in the latency: by the probe `conflicts`.
            Served::Passes { data, latency: constants.latency_l1 - 1.0, is_load: true }
        })
    }

    /// Looks a line of a load up, for which there is room, and says when it is here and how it was found.
    fn look_up(
        &mut self,
        line: &Line,
        past_l1: bool,
        at: f64,
        constants: &Constants,
        memory: &mut Memory,
    ) -> (f64, Found) {
        let wanted = sectors(line);
        if past_l1 {
            return (self.read(line.number, wanted, at, constants, memory), Found::Missing);
        }
        let known = self.l1.touch(line.number);
        let (lacks, ready) = (wanted & !*known.valid, *known.ready);
        if lacks == 0 {
            return (ready, if ready > at { Found::Coming } else { Found::Here });
        }
        *known.valid |= lacks;
        let arrives = self.read(line.number, lacks, at, constants, memory).max(ready);
        if let Some(known) = self.l1.get(line.number) {
            *known.ready = arrives;
        }
        (arrives, Found::Missing)
    }

    /// Reads sectors of a line, and says when they are here: infinitely late if that is not known yet.
    fn read(&mut self, number: u64, wanted: u8, at: f64, constants: &Constants, memory: &mut Memory) -> f64 {
        let sent = self.send(at, wanted, constants);
        let (sent, arrives) = memory.read_for(self.cluster, self.group, self.number, number, wanted, sent);
        self.wait_for_room(sent, wanted, constants);
        if let Some(arrives) = arrives {
            return arrives + self.way(number, constants, memory);
        }
        self.unsent.add(number);
        f64::INFINITY
    }

    /// How much longer than others the way is that a line comes.
    fn way(&self, number: u64, constants: &Constants, memory: &Memory) -> f64 {
        constants.way_of_pair * memory.way(number, constants.groups + self.pair)
    }

    /// The first of its reads of a line that were not sent is, and leaves the L2 at `leaves`. Says of which loads it is known now when all
    /// lines are here, and when.
    pub(super) fn sent(
        &mut self,
        number: u64,
        leaves: f64,
        constants: &Constants,
        memory: &Memory,
    ) -> Vec<(Load, f64)> {
        let arrives = leaves + self.way(number, constants, memory);
        let (last, known) = self.unsent.sent(number, arrives);
        if last && let Some(line) = self.l1.get(number).filter(|line| *line.ready == f64::INFINITY) {
            *line.ready = arrives;
        }
        known
    }

    /// Stores to `lines`. Sectors that the warp has just stored to `with`, or that any warp's store has on their way, go to the
    /// L2 together with those.
    fn store(&mut self, lines: &[Line], with: &[Line], start: f64, constants: &Constants, memory: &mut Memory) {
        for line in lines {
            let just = with.iter().find(|other| other.number == line.number).map_or(0, sectors);
            let stored = match self.stored.iter_mut().find(|(number, _)| *number == line.number) {
                Some((_, stored)) => stored,
                None => {
                    self.stored.truncate(ON_THEIR_WAY - 1);
                    self.stored.push_front((line.number, 0));
                    &mut self.stored[0].1
                }
            };
            let alone = sectors(line) & !just & !*stored;
            *stored |= sectors(line);
            let is_here = self.l1.get(line.number).is_some();
            if !is_here && !self.l1.has_room(line.number) {
                self.l1.make_reserve(1);
            }
            if is_here || self.l1.has_room(line.number) {
                self.l1.touch(line.number);
            }
            let sent = self.send(start, alone, constants);
            let sent = memory.write_for(self.cluster, self.group, line, alone, sent);
            self.wait_for_room(sent, alone, constants);
        }
    }

    /// Has the port wait with a request for sectors of one line until that is sent.
    fn wait_for_room(&mut self, sent: f64, sectors: u8, constants: &Constants) {
        self.port_free = self.port_free.max(sent + f64::from(sectors.count_ones()) / constants.port_sectors);
    }

    /// Sends a request for sectors of one line through the port to the L2, and says when it is there.
    fn send(&mut self, from: f64, sectors: u8, constants: &Constants) -> f64 {
        let sent = from.max(self.port_free);
        self.port_free = sent + f64::from(sectors.count_ones()) / constants.port_sectors;
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::super::chip::Chip;
    use super::*;
    use engine::trace::LinesEnd;

    #[test]
    fn lines_at_hand_pass_the_data_before_those_that_are_not() {
        let chip = Chip::load("h200").expect("is built in");
        let constants = Constants::of(&chip);
        let mut memory = Memory::new(&chip, constants);
        let mut sm = Multiprocessor::new(0, 0, 0, 1 << 16);
        let (load, at) = (What::Load { past_l1: false }, crate::pc());
        let request = Traced {
            warp: 0,
            what: load,
            at,
            wavefronts: 1,
            wavefronts_missing: 1,
            tags: 1,
            lines_end: LinesEnd::default(),
        };
        let lines = [3, 4].map(|number| Line { number, bytes: [32; 4] });
        let mut passes = |lines: &[Line], at: f64| {
            let before = memory.traffic.l1_wavefronts;
            sm.parts[0].queue.clear();
            sm.add(0, Queued { slot: 0, warp: 0, place: 0, load: Progress::default(), is_store: false, order: 0 });
            assert!(sm.serve(0, request, lines, &[], at, &constants, &mut memory).is_some());
            memory.traffic.l1_wavefronts - before
        };
        assert_eq!(passes(&lines[..1], 0.0), 1.0, "nothing is at hand");
        assert_eq!(passes(&lines, 10.0), 1.0, "one line is on its way, the other not even that");
        assert_eq!(passes(&lines, 1e5), 1.0, "both are at hand");
        let lines = [4, 5].map(|number| Line { number, bytes: [32; 4] });
        assert_eq!(passes(&lines, 2e5), 2.0, "one is at hand");
    }
}
