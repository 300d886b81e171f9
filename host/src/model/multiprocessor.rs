//! A multiprocessor, as a launch is replayed on it: its four parts, the load/store unit that turns to one after another, and its L1.

use super::cache::{self, Cache};
use super::chip::Constants;
use super::memory::{Memory, sectors};
use crate::sim::coalesce::LINE;
use crate::sim::trace::{Line, TAG_BANKS, Traced, What, tag_bank};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Lines of stores that wait for those of any warp.
const ON_THEIR_WAY: usize = 7;

/// Parts of a multiprocessor.
pub(super) const PARTS: usize = 4;

/// Requests that each of them takes for the load/store unit in advance: by the probe `queues`.
const QUEUE: usize = 16;

/// Cycles of the load/store unit that a load takes at least, fitted to `constant` and `batched`.
const LOAD: f64 = 1.15;

/// Requests that the load/store unit has served and that wait for the data, beyond which it waits as well: by the probes `turns`, of
/// which none would be too few, and `groups`, of which three would be too many.
const SERVED: usize = 1;

/// Passes through the tags of loads that wait for lines, beyond which no load is looked up: by the probe `pending`.
const PENDING: u32 = 1024;

/// A warp that waits, by the age of its block and by when it came.
type Waiting = Reverse<(u64, u64, usize, usize)>;

/// A part of a multiprocessor, with issue slots of its own and a queue of its own to the load/store unit.
pub(super) struct Part {
    pub(super) issue_free: f64,
    pub(super) queue: VecDeque<Queued>,
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
        let queue = VecDeque::with_capacity(QUEUE);
        Self { issue_free: 0.0, queue, waits: false, waiting, throttled, looks: f64::INFINITY }
    }

    /// Whether the load/store unit can turn to it.
    pub(super) fn has_turn(&self) -> bool {
        !self.queue.is_empty() && !self.waits
    }

    fn is_full(&self) -> bool {
        self.queue.len() >= QUEUE
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
    places: Places,
}

/// Places of the L1, of each bank of the tags.
pub(super) type Places = [usize; TAG_BANKS];

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
    /// The places that it holds.
    places: Places,
}

/// How a line of a load was found in the L1.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    Here,
    /// It is on its way, for another load.
    Coming,
    /// Some of it was neither, and was asked for. If nothing of it was, it has taken a place.
    Missing {
        takes_place: bool,
    },
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
    group: usize,
    /// Those whose ways to the L2 are as long as its own.
    pair: usize,
    l1: Cache,
    /// Places of each bank of the tags, those that loads hold, and how many of these are held by loads all lines of which were looked
    /// up: if none is, nothing would give one back, and there is a place for every line.
    places: usize,
    held: Places,
    held_by_flying: usize,
    /// The lines stored to last, and their sectors that are on their way to the L2.
    stored: VecDeque<(u64, u8)>,
    pub(super) parts: [Part; PARTS],
    /// The part that the load/store unit turned to last, and when it turns to the next.
    turned_to: usize,
    pub(super) turns: f64,
    pub(super) lsu_free: f64,
    pub(super) data_free: f64,
    /// Loads that had to wait for lines, and passes of those that do.
    waited: u64,
    pending: u32,
    /// What waits for the data: requests that the load/store unit has served, and loads that came back, in the order in which they
    /// were looked up.
    pub(super) served: VecDeque<Passing>,
    pub(super) returned: BTreeMap<u64, (Passing, Pending)>,
    is_turn_of_returned: bool,
    /// When the next of them passes.
    pub(super) passes: f64,
    port_free: f64,
    pub(super) next_launch: f64,
    /// When the last warp that came to a barrier is there.
    pub(super) met: f64,
    /// What each was busy with so far.
    pub(super) issue_cycles: f64,
    pub(super) global_cycles: f64,
    pub(super) shared_cycles: f64,
}

impl Multiprocessor {
    /// An idle one of this number with so much L1. Those of a group share reads of the L2.
    pub(super) fn new(number: usize, group: usize, l1_bytes: u64) -> Self {
        let l1 = Cache::of_l1(l1_bytes);
        let places = (l1_bytes / LINE) as usize / TAG_BANKS;
        let [lsu_free, data_free, port_free, next_launch, issue_cycles, global_cycles, shared_cycles] = [0.0; 7];
        Self {
            group,
            pair: number / 2,
            l1,
            places,
            held: Places::default(),
            held_by_flying: 0,
            stored: VecDeque::with_capacity(ON_THEIR_WAY),
            parts: std::array::from_fn(|_| Part::new()),
            turned_to: 0,
            turns: f64::INFINITY,
            lsu_free,
            data_free,
            waited: 0,
            pending: 0,
            served: VecDeque::new(),
            returned: BTreeMap::new(),
            is_turn_of_returned: false,
            passes: f64::INFINITY,
            port_free,
            next_launch,
            met: 0.0,
            issue_cycles,
            global_cycles,
            shared_cycles,
        }
    }

    /// The part that the load/store unit turns to: each in turn, of those that wait.
    pub(super) fn next_part(&mut self) -> Option<usize> {
        let next = (1..=PARTS).map(|further| (self.turned_to + further) % PARTS);
        let waits = |part: &usize| self.parts[*part].has_turn();
        let next = next.into_iter().find(waits)?;
        self.turned_to = next;
        Some(next)
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

    /// Has the next of those that wait pass the data, which is free, and says when it has: by turns one that the load/store unit has
    /// served and one that came back, which is the first after none waited.
    pub(super) fn pass(&mut self, now: f64) -> Option<(Passing, f64)> {
        let is_of_served = self.returned.is_empty() || !self.is_turn_of_returned && !self.served.is_empty();
        self.is_turn_of_returned = is_of_served;
        let next = if is_of_served {
            self.served.pop_front()?
        } else {
            let (_, (next, Pending { passes, places, .. })) = self.returned.pop_first()?;
            self.pending -= passes;
            for (held, places) in self.held.iter_mut().zip(places) {
                *held -= places;
                self.held_by_flying -= places;
            }
            self.parts.iter_mut().for_each(|part| part.waits = false);
            next
        };
        self.data_free = self.data_free.max(now) + next.data;
        Some((next, self.data_free))
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
        match request.what {
            What::SharedLoad | What::SharedStore => {
                let wavefronts = f64::from(request.wavefronts);
                memory.traffic.shared_wavefronts += wavefronts;
                // Without a lane it takes as long as one does.
                let cycles = wavefronts.max(1.0);
                self.shared_cycles += cycles;
                self.lsu_free = now + cycles;
                let is_load = request.what == What::SharedLoad;
                let latency = constants.latency_shared + (cycles - 1.0) * constants.wavefront;
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
                self.data_free = self.data_free.max(now) + cycles;
                Some(Served::Sent)
            }
            What::Wait | What::Constant => Some(Served::Sent),
        }
    }

    /// Looks the lines of a load up. In each pass every bank of the tags takes the next of its lines, if that is here or there is a
    /// place for it. After a pass that finds one missing it is another part's turn.
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
        let mut load = self.parts[part].queue[0].load;
        let others = (0..PARTS).any(|other| other != part && !self.parts[other].queue.is_empty());
        let mut at = now;
        while load.looked_up < lines.len() {
            let (before, coming, mut missing, mut waits) = (load.looked_up, load.coming, 0, self.pending >= PENDING);
            let banks = if waits { 0 } else { TAG_BANKS };
            for bank in 0..banks {
                let of_bank = |i: &usize| tag_bank(lines[*i].number) == bank;
                load.next[bank] = (load.next[bank]..lines.len()).find(of_bank).unwrap_or(lines.len());
                let Some(line) = lines.get(load.next[bank]) else { continue };
                let has_place = self.held[bank] < self.places || self.held_by_flying == 0;
                let Some((ready, found)) = self.look_up(line, past_l1, has_place, at, constants, memory) else {
                    waits = true;
                    continue;
                };
                let takes = usize::from(found == Found::Missing { takes_place: true });
                self.held[bank] += takes;
                load.places[bank] += takes;
                load.next[bank] += 1;
                load.looked_up += 1;
                load.here = load.here.max(ready);
                load.coming += usize::from(found != Found::Here);
                missing += u32::from(matches!(found, Found::Missing { .. }));
            }
            load.passes += u32::from(load.looked_up > before);
            // Once it has to wait, its earlier passes count as well.
            self.pending += match (coming, load.coming) {
                (_, 0) => 0,
                (0, _) => load.passes,
                _ => u32::from(load.looked_up > before),
            };
            self.parts[part].waits = load.looked_up == before;
            // It sends one read a cycle.
            at += f64::from(missing.max(1));
            if waits || load.coming > coming && others && load.looked_up < lines.len() {
                self.lsu_free = at;
                self.parts[part].queue[0].load = load;
                return None;
            }
        }
        let Progress { coming, here, passes, places, .. } = load;
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
            self.held_by_flying += places.iter().sum::<usize>();
            self.waited += 1;
            Served::Coming {
                here: here.max(at),
                data: data.max(LOAD),
                pending: Pending { order: self.waited, passes, places },
            }
        } else {
            let data = data.max(tags).max(LOAD);
            Served::Passes { data, latency: constants.latency_l1 + (data - 1.0) * constants.wavefront, is_load: true }
        })
    }

    /// Looks a line of a load up, and says when it is here and how it was found; nothing if it has to wait for a place.
    fn look_up(
        &mut self,
        line: &Line,
        past_l1: bool,
        has_place: bool,
        at: f64,
        constants: &Constants,
        memory: &mut Memory,
    ) -> Option<(f64, Found)> {
        let wanted = sectors(line);
        if past_l1 {
            let arrives = self.read(line.number, wanted, at, constants, memory);
            return Some((arrives, Found::Missing { takes_place: false }));
        }
        let needs_none = |known: &mut cache::Line| known.ready > at || wanted & !known.valid == 0;
        if !has_place && !self.l1.peek(line.number).is_some_and(needs_none) {
            return None;
        }
        let (known, _) = self.l1.touch(line.number);
        let (lacks, ready) = (wanted & !known.valid, known.ready);
        if lacks == 0 {
            return Some((ready, if ready > at { Found::Coming } else { Found::Here }));
        }
        known.valid |= lacks;
        let arrives = self.read(line.number, lacks, at, constants, memory).max(ready);
        if let Some(known) = self.l1.peek(line.number) {
            known.ready = arrives;
        }
        Some((arrives, Found::Missing { takes_place: ready <= at }))
    }

    /// Reads sectors of a line, and says when they are here.
    fn read(&mut self, number: u64, wanted: u8, at: f64, constants: &Constants, memory: &mut Memory) -> f64 {
        let sent = self.send(at, wanted, constants);
        memory.read(self.group, number, wanted, sent)
            + constants.way_of_pair * memory.way(number, constants.groups + self.pair)
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
            self.l1.touch(line.number);
            memory.write(self.group, line, alone, self.send(start, alone, constants));
        }
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
    use crate::sim::trace::LinesEnd;
    use std::panic::Location;

    #[test]
    fn lines_at_hand_pass_the_data_before_those_that_are_not() {
        let chip = Chip::load("h200").expect("is built in");
        let constants = Constants::of(&chip);
        let mut memory = Memory::new(&chip, constants);
        let mut sm = Multiprocessor::new(0, 0, 1 << 16);
        let (load, at) = (What::Load { past_l1: false }, Location::caller());
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
            sm.parts[0].queue = [Queued { slot: 0, warp: 0, place: 0, load: Progress::default() }].into();
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
