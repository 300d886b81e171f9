//! What threads hand on to one another by way of memory: fences, and the atomics and volatile accesses that tell of them.
//!
//! A thread *tells* of what lies before its last fence by a write that others may meet: an atomic, or a volatile store. Who
//! *hears* of it, by an atomic or a volatile load of the same element, knows it behind its own next fence or barrier. An atomic hands on
//! what those before it told; a store begins anew. Both sides' scopes must reach each other.
//!
//! It is PTX's causality order with three things taken more generously than PTX does, since kernels that are known to work rest on them:
//! a barrier stands in for the reader's fence; and what each thread fenced before a barrier, any thread tells of behind it. The third:
//! a thread that heard by any atomic heard of all that was told there before, whatever value it compared.
//!
//! Blocks run one after another while this is kept, so what is known is a set of fences, each with what lies before it.

use super::order::{Moment, Order};
use gpu::suite::{Operation, Scope, Space};
use rustc_hash::{FxHashMap, FxHashSet};

/// Fences and sets of them that are kept of a launch. Once there are more, all that blocks do is taken to be ordered.
const MOST: usize = 1 << 22;

/// A set of fences, by its number.
type Set = Option<u32>;

/// A fence, or none, and two sets of others.
struct Node {
    fence: Option<Fence>,
    more: [Set; 2],
}

/// What lies before a fence in its own block, or before all that the block's threads made up to a barrier.
struct Fence {
    turn: u64,
    /// All of the intervals before this one.
    interval: u32,
    threads: Threads,
    /// How many meetings of each lane of its warp the thread knew of, in this interval.
    lanes: Option<(u32, Box<[u32; 32]>)>,
}

/// How many fences of threads lie before, of the last ones.
enum Threads {
    One(u32, u32),
    All(Box<[u32]>),
}

impl Fence {
    fn covers(&self, earlier: Moment) -> bool {
        let is_fenced = || match &self.threads {
            Threads::One(thread, fences) => *thread == earlier.thread && earlier.fences < *fences,
            Threads::All(fences) => fences.get(earlier.thread as usize).is_some_and(|fences| earlier.fences < *fences),
        };
        let is_met = || {
            let lane = |(warp, lanes): &(u32, Box<[u32; 32]>)| {
                *warp == earlier.thread / 32 && earlier.meetings < lanes[earlier.thread as usize % 32]
            };
            earlier.interval == self.interval && self.lanes.as_ref().is_some_and(lane)
        };
        earlier.turn == self.turn && (earlier.interval < self.interval || is_fenced() || is_met())
    }
}

/// What a thread of the block knows and may tell, as far as the block does not.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// What it knows of others.
    known: Set,
    /// What it has heard of since its last fence, for the block alone and for the device.
    heard: [Set; 2],
    /// What it tells to the block, and to the device.
    fenced: [Set; 2],
    /// How many fences it had made with its last one for the device, and in which interval that was.
    last: (u32, u32),
    /// Whether it has read, by no atomic, what another thread of the block wrote for others to read.
    listens: bool,
}

/// What was told at an element, and of which sets that is put together.
#[derive(Default)]
struct Words {
    all: Set,
    parts: FxHashSet<u32>,
}

/// What was told at an element.
#[derive(Default)]
struct Told {
    /// To the block of that turn, and to the device.
    block: (u64, Words),
    device: Words,
    /// The block that wrote last, and its thread.
    by: (u64, u32),
    /// The block that heard last, in which interval first, and who of it did in that one.
    heard_by: (u64, u32, Vec<u32>),
}

/// What threads hand on.
#[derive(Default)]
pub(super) struct Handover {
    nodes: Vec<Node>,
    threads: Vec<Thread>,
    /// Whether a thread has something that a barrier makes known to the block.
    is_new: bool,
    turn: u64,
    /// What every thread of the block knows, and what each tells.
    known: Set,
    fenced: Set,
    /// Whether the block has heard of another one.
    has_heard: bool,
    global: FxHashMap<u64, Told>,
    shared: FxHashMap<u64, Told>,
}

/// Where a scope stands among what is kept for it: for the block alone, and for all.
fn reach(scope: Scope) -> usize {
    usize::from(scope != Scope::Block)
}

impl Handover {
    /// A block of so many threads begins, the `turn`-th of the run.
    pub(super) fn begin(&mut self, turn: u64, threads: usize) {
        self.threads.clear();
        self.threads.resize(threads, Thread::default());
        (self.turn, self.known, self.fenced, self.is_new, self.has_heard) = (turn, None, None, false, false);
        self.shared.clear();
    }

    /// Whether anything was fenced in the launch so far.
    pub(super) fn is_used(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// Whether the block has heard of another one.
    pub(super) fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Whether a thread waits for what others of its block write, as far as can be told.
    pub(super) fn listens(&self, thread: u32) -> bool {
        self.threads.get(thread as usize).is_some_and(|thread| thread.listens)
    }

    fn add(&mut self, fence: Option<Fence>, more: [Set; 2]) -> Set {
        if self.nodes.len() < MOST {
            self.nodes.push(Node { fence, more });
        }
        Some(self.nodes.len() as u32 - 1)
    }

    fn join(&mut self, a: Set, b: Set) -> Set {
        match (a, b) {
            // Who listens hears the same again and again.
            (Some(whole), Some(_)) if a == b || self.nodes[whole as usize].more.contains(&b) => a,
            (Some(_), Some(_)) => self.add(None, [a, b]),
            _ => a.or(b),
        }
    }

    /// A thread of the block makes a fence, which `order` has counted.
    pub(super) fn fence(&mut self, thread: usize, scope: Scope, order: &Order) {
        let now = order.now(thread);
        let Thread { mut known, heard, .. } = self.threads[thread];
        for heard in &heard[..=reach(scope)] {
            known = self.join(known, *heard);
        }
        let lanes = order.lanes(thread).map(|lanes| (now.thread / 32, Box::new(lanes)));
        let threads = Threads::One(now.thread, now.fences);
        let fence = Fence { turn: self.turn, interval: now.interval, threads, lanes };
        let fenced = self.add(Some(fence), [known, self.known]);
        let own = &mut self.threads[thread];
        own.known = known;
        own.heard[..=reach(scope)].fill(None);
        own.fenced[..=reach(scope)].fill(fenced);
        if scope != Scope::Block {
            own.last = (now.fences, now.interval);
        }
        self.is_new = true;
    }

    /// The lanes in `mask` of the warp that begins at thread `first` have met: each knows what any knew or heard of.
    pub(super) fn meet(&mut self, first: usize, mask: u32) {
        if !self.is_new {
            return;
        }
        let threads = first..self.threads.len().min(first + 32);
        let lanes = || threads.clone().filter(|thread| mask >> (thread - first) & 1 == 1);
        let mut all = None;
        for thread in lanes() {
            let Thread { known, heard: [of_block, of_device], .. } = self.threads[thread];
            for set in [known, of_block, of_device] {
                all = self.join(all, set);
            }
        }
        for thread in lanes() {
            (self.threads[thread].known, self.threads[thread].heard) = (all, [None; 2]);
        }
    }

    /// The whole block meets.
    pub(super) fn pass_barrier(&mut self) {
        if !std::mem::take(&mut self.is_new) {
            return;
        }
        let (mut known, mut met, mut last) = (self.known, None, 0);
        for number in 0..self.threads.len() {
            let Thread { known: own, heard: [of_block, of_device], fenced, .. } = self.threads[number];
            for set in [own, of_block, of_device] {
                known = self.join(known, set);
            }
            // What its warp's meetings ordered before the fence, the fence alone knows.
            let knows_lanes = |set: u32| {
                let fence = self.nodes[set as usize].fence.as_ref();
                fence.is_some_and(|fence| fence.lanes.is_some())
            };
            if fenced[1].is_some_and(knows_lanes) {
                met = self.join(met, fenced[1]);
            }
            last = last.max(self.threads[number].last.1);
        }
        self.known = known;
        if self.threads.iter().any(|thread| thread.fenced[1].is_some()) {
            let threads = Threads::All(self.threads.iter().map(|thread| thread.last.0).collect());
            let met = self.join(met, self.fenced.filter(|_| met.is_some()));
            let fence = Fence { turn: self.turn, interval: last, threads, lanes: None };
            self.fenced = self.add(Some(fence), [known, met]);
        }
        for thread in &mut self.threads {
            *thread = Thread { last: thread.last, ..Thread::default() };
        }
    }

    fn told(&mut self, space: Space) -> &mut FxHashMap<u64, Told> {
        if space == Space::Shared { &mut self.shared } else { &mut self.global }
    }

    /// A thread accesses an element: by an access of a `scope` that others may meet, or by a plain one.
    pub(super) fn access(
        &mut self,
        now: Moment,
        space: Space,
        address: u64,
        operation: Operation,
        scope: Option<Scope>,
    ) {
        let Some(scope) = scope else {
            if operation == Operation::Store && !self.told(space).is_empty() {
                self.told(space).remove(&address);
            }
            return;
        };
        let thread = now.thread as usize;
        let (turn, reach) = (self.turn, reach(scope));
        if operation == Operation::Load && !self.told(space).contains_key(&address) {
            return;
        }
        let told = self.told(space).entry(address).or_insert_with(|| Told {
            by: (turn, now.thread),
            heard_by: (u64::MAX, 0, Vec::new()),
            ..Told::default()
        });
        let of_block = told.block.1.all.filter(|_| told.block.0 == turn);
        let (of_device, by) = (told.device.all.filter(|_| reach == 1), told.by);
        if operation != Operation::Store {
            let (block, interval, threads) = &mut told.heard_by;
            if *block != turn {
                (*block, *interval) = (turn, now.interval);
                threads.clear();
            }
            // Behind the next barrier all have heard.
            if *interval == now.interval && !threads.contains(&now.thread) {
                threads.push(now.thread);
            }
            self.has_heard |= by.0 != turn;
            self.threads[thread].listens |= operation == Operation::Load && by != (turn, now.thread);
            let [mut block, mut device] = self.threads[thread].heard;
            block = self.join(block, of_block);
            device = self.join(device, of_device);
            self.threads[thread].heard = [block, device];
            self.is_new |= block.is_some() || device.is_some();
        }
        if operation != Operation::Load {
            let [own, for_device] = self.threads[thread].fenced;
            let device = self.join(for_device, self.fenced);
            let block = self.join(own, device);
            let Some(mut told) = self.told(space).remove(&address) else { return };
            let hands_on = operation == Operation::Atomic;
            if told.block.0 != turn || !hands_on {
                told.block = (turn, Words::default());
            }
            self.tell(&mut told.block.1, block);
            if reach == 1 {
                if !hands_on {
                    told.device = Words::default();
                }
                self.tell(&mut told.device, device);
            }
            told.by = (turn, now.thread);
            self.told(space).insert(address, told);
        }
    }

    /// Adds a set to what was told, unless it is in it.
    fn tell(&mut self, words: &mut Words, set: Set) {
        if set.is_some_and(|set| words.parts.insert(set)) {
            words.all = self.join(words.all, set);
        }
    }

    /// Whether a thread knows of what was done at `earlier` before what it does now.
    pub(super) fn knows(&self, thread: u32, earlier: Moment) -> bool {
        if self.nodes.len() >= MOST {
            return true;
        }
        let own = self.threads.get(thread as usize).and_then(|thread| thread.known);
        let mut waiting: Vec<u32> = own.into_iter().chain(self.known).collect();
        if waiting.is_empty() {
            return false;
        }
        let mut seen = FxHashSet::default();
        while let Some(set) = waiting.pop() {
            if !seen.insert(set) {
                continue;
            }
            let Node { fence, more } = &self.nodes[set as usize];
            if fence.as_ref().is_some_and(|fence| fence.covers(earlier)) {
                return true;
            }
            waiting.extend(more.iter().flatten());
        }
        false
    }

    /// Whether the thread at `now`, or its block before its last barrier, has heard at an element of all that other blocks did there
    /// before.
    pub(super) fn has_heard_at(&self, now: Moment, address: u64) -> bool {
        self.global.get(&address).is_some_and(|told| {
            let (block, interval, threads) = &told.heard_by;
            *block == now.turn && (*interval < now.interval || threads.contains(&now.thread))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAG: u64 = 64;

    /// Blocks of 64 threads, one after another.
    struct Blocks {
        order: Order,
        handover: Handover,
    }

    impl Blocks {
        fn new() -> Self {
            let mut blocks = Self { order: Order::new(64), handover: Handover::default() };
            blocks.begin(0);
            blocks
        }

        fn begin(&mut self, turn: u64) {
            self.order.begin(turn);
            self.handover.begin(turn, 64);
        }

        fn barrier(&mut self) {
            self.handover.pass_barrier();
            self.order.pass_barrier();
        }

        fn meet(&mut self) {
            self.handover.meet(0, u32::MAX);
            self.order.meet(0, u32::MAX);
        }

        fn fence(&mut self, thread: usize, scope: Scope) {
            self.order.fence(thread);
            self.handover.fence(thread, scope, &self.order);
        }

        fn access(&mut self, thread: usize, operation: Operation, scope: Scope) {
            let now = self.order.now(thread);
            self.handover.access(now, Space::Global, FLAG, operation, Some(scope));
        }

        fn atomic(&mut self, thread: usize) {
            self.access(thread, Operation::Atomic, Scope::Device);
        }

        fn knows(&self, thread: u32, earlier: Moment) -> bool {
            self.handover.knows(thread, earlier)
        }
    }

    #[test]
    fn what_is_fenced_and_counted_is_known_behind_a_barrier_or_a_fence() {
        for by_barrier in [true, false] {
            let mut blocks = Blocks::new();
            let (before, other) = (blocks.order.now(0), blocks.order.now(1));
            blocks.fence(0, Scope::Device);
            let behind = blocks.order.now(0);
            blocks.atomic(0);
            blocks.begin(1);
            blocks.atomic(5);
            assert!(!blocks.knows(5, before), "not yet");
            if by_barrier {
                blocks.barrier()
            } else {
                blocks.fence(5, Scope::Device)
            }
            assert!(blocks.knows(5, before) && !blocks.knows(5, other) && !blocks.knows(5, behind));
            assert_eq!(blocks.knows(6, before), by_barrier);
        }
    }

    #[test]
    fn a_fence_that_is_missing_or_of_the_block_alone_tells_other_blocks_nothing() {
        for scope in [None, Some(Scope::Block)] {
            let mut blocks = Blocks::new();
            let before = blocks.order.now(0);
            if let Some(scope) = scope {
                blocks.fence(0, scope);
            }
            blocks.atomic(0);
            blocks.atomic(40);
            blocks.fence(40, Scope::Block);
            assert_eq!(blocks.knows(40, before), scope.is_some(), "{scope:?}, in the block");
            blocks.begin(1);
            blocks.atomic(0);
            blocks.barrier();
            assert!(!blocks.knows(0, before), "{scope:?}");
        }
    }

    #[test]
    fn an_atomic_of_the_blocks_scope_tells_other_blocks_nothing() {
        for [tells, hears] in [[Scope::Block, Scope::Device], [Scope::Device, Scope::Block]] {
            let mut blocks = Blocks::new();
            let before = blocks.order.now(0);
            blocks.fence(0, Scope::Device);
            blocks.access(0, Operation::Atomic, tells);
            blocks.begin(1);
            blocks.access(0, Operation::Atomic, hears);
            blocks.barrier();
            assert!(!blocks.knows(0, before));
        }
    }

    #[test]
    fn atomics_hand_on_what_others_told_and_stores_do_not() {
        for (operation, handed_on) in [(Operation::Atomic, true), (Operation::Store, false)] {
            let mut blocks = Blocks::new();
            let before = blocks.order.now(0);
            blocks.fence(0, Scope::Device);
            blocks.atomic(0);
            blocks.begin(1);
            blocks.access(0, operation, Scope::System);
            blocks.begin(2);
            blocks.access(0, Operation::Load, Scope::System);
            blocks.fence(0, Scope::System);
            assert_eq!(blocks.knows(0, before), handed_on);
        }
    }

    #[test]
    fn who_heard_tells_of_it_behind_a_fence() {
        let mut blocks = Blocks::new();
        let before = blocks.order.now(0);
        blocks.fence(0, Scope::Device);
        blocks.atomic(0);
        blocks.begin(1);
        blocks.access(3, Operation::Load, Scope::System);
        blocks.fence(3, Scope::Device);
        blocks.access(3, Operation::Store, Scope::System);
        blocks.begin(2);
        blocks.access(0, Operation::Load, Scope::System);
        blocks.fence(0, Scope::Device);
        assert!(blocks.knows(0, before), "by way of block 1");
    }

    #[test]
    fn what_each_thread_fenced_before_a_barrier_any_thread_tells_of_behind_it() {
        let mut blocks = Blocks::new();
        let (fenced, not_fenced) = (blocks.order.now(33), blocks.order.now(34));
        let of_lane = blocks.order.now(7);
        blocks.meet();
        blocks.fence(33, Scope::Device);
        blocks.fence(0, Scope::Device);
        blocks.barrier();
        blocks.atomic(5);
        blocks.begin(1);
        blocks.atomic(5);
        blocks.barrier();
        assert!(blocks.knows(0, fenced) && !blocks.knows(0, not_fenced));
        assert!(blocks.knows(0, of_lane), "it met lane 0 before the fence");
    }

    #[test]
    fn what_others_wrote_at_an_element_is_behind_who_heard_there() {
        let mut blocks = Blocks::new();
        blocks.atomic(0);
        blocks.begin(1);
        assert!(!blocks.handover.has_heard_at(blocks.order.now(9), FLAG));
        blocks.atomic(9);
        assert!(blocks.handover.has_heard_at(blocks.order.now(9), FLAG) && blocks.handover.has_heard());
        assert!(!blocks.handover.has_heard_at(blocks.order.now(8), FLAG));
        blocks.barrier();
        assert!(blocks.handover.has_heard_at(blocks.order.now(8), FLAG));
    }
}
