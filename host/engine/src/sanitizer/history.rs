//! The second look: for each 16 bytes of memory the accesses that later ones could race with, by byte and in order.

use super::handover::Handover;
use super::order::{Moment, Order};
use crate::instruction::Instruction;
use gpu::suite::{Operation, Scope, Space};
use rustc_hash::FxHashMap;

/// An access to some of a line's bytes.
#[derive(Clone, Copy)]
pub(crate) struct Touch {
    pub moment: Moment,
    pub instruction: Instruction,
    /// A bit for each byte.
    bytes: u16,
}

/// The bytes of a line.
const LINE: u64 = 16;

/// Reads of what nobody had written that are kept of a launch. If all of them turn out to be races, those are reported.
const EARLY: usize = 256;

/// Who touched what.
#[derive(Default)]
pub(super) struct History {
    lines: FxHashMap<u64, Line>,
    early: Vec<Early>,
    /// The bytes of lines that take part in a race.
    raced: FxHashMap<u64, u16>,
}

#[derive(Default)]
struct Line(Vec<Touch>);

/// A load, or an atomic, of bytes that nobody had written.
#[derive(Clone, Copy)]
struct Early {
    line: u64,
    touch: Touch,
}

/// Two accesses to a byte that nothing orders: the one that came first, the byte's address, and why.
pub(crate) struct Race {
    pub earlier: Touch,
    pub address: u64,
    pub why: Why,
}

/// Why nothing orders two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// They are of one block, and no barrier lies between them.
    Barrier,
    /// They are of two blocks.
    Blocks,
    /// The later one's thread, or its block, has heard of others by an atomic or a volatile access.
    Fence,
    /// Both are such accesses, and the scope of one does not reach the other.
    Scope,
}

/// A load, or an atomic, of a byte that nobody has written.
pub(crate) struct Uninitialized {
    pub moment: Moment,
    pub instruction: Instruction,
    pub address: u64,
}

impl History {
    /// Enters an access; returns the first race that it takes part in.
    pub(super) fn touch(
        &mut self,
        address: u64,
        instruction: Instruction,
        moment: Moment,
        order: &Order,
        handover: &Handover,
        initialized: bool,
    ) -> Option<Race> {
        let line = address / LINE;
        let bytes = (u16::MAX >> (LINE - instruction.width())) << (address % LINE);
        let touch = Touch { moment, instruction, bytes };
        let touches = self.lines.entry(line).or_default();
        touches.forget(moment, handover.is_used());
        let unwritten = bytes & !touches.written();
        if instruction.operation != Operation::Store && !initialized && unwritten != 0 && self.early.len() < EARLY {
            self.early.push(Early { line, touch: Touch { bytes: unwritten, ..touch } });
        }
        let mut first = None;
        for earlier in touches.racing(&touch, address, order, handover) {
            *self.raced.entry(line).or_default() |= earlier.bytes & bytes;
            first = first.or(Some(*earlier));
        }
        touches.enter(touch);
        let earlier = first?;
        let common = earlier.bytes & bytes;
        let why = match earlier.moment.turn == moment.turn {
            _ if earlier.instruction.scope.is_some() && instruction.scope.is_some() => Why::Scope,
            true if handover.listens(moment.thread) => Why::Fence,
            true => Why::Barrier,
            false if handover.has_heard() => Why::Fence,
            false => Why::Blocks,
        };
        Some(Race { earlier, address: line * LINE + u64::from(common.trailing_zeros()), why })
    }

    /// The reads so far of what nobody wrote. A write that is not ordered behind the read makes it a race instead.
    pub(super) fn take_uninitialized(&mut self) -> Vec<Uninitialized> {
        let left = |Early { line, touch }| {
            let bytes = touch.bytes & !self.raced.get(&line).copied().unwrap_or_default();
            let address = line * LINE + u64::from(bytes.trailing_zeros());
            (bytes != 0).then_some(Uninitialized { moment: touch.moment, instruction: touch.instruction, address })
        };
        std::mem::take(&mut self.early).into_iter().filter_map(left).collect()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.early.clear();
        self.raced.clear();
    }
}

/// Kinds of accesses: operations, plain ones and those of each scope.
const KINDS: usize = 12;

/// Accesses that are kept of a line where blocks hand on what they did.
const MOST: usize = 1024;

fn kind(instruction: Instruction) -> usize {
    4 * instruction.operation as usize + instruction.scope.map_or(0, |scope| 1 + scope as usize)
}

/// Whether two accesses may meet, since each is one for the other: both are atomics or volatile accesses, and their scopes reach each
/// other.
fn are_one_by_one(earlier: &Touch, touch: &Touch) -> bool {
    let reaches = |scope| scope != Scope::Block || earlier.moment.turn == touch.moment.turn;
    let scopes = [earlier.instruction.scope, touch.instruction.scope];
    scopes.into_iter().all(|scope| scope.is_some_and(reaches))
}

/// Whether the later access comes behind one by which its thread heard of the earlier, an atomic or a volatile store of another block.
fn has_heard(earlier: &Touch, touch: &Touch, address: u64, handover: &Handover) -> bool {
    earlier.moment.turn != touch.moment.turn
        && touch.instruction.space == Space::Global
        && earlier.instruction.operation != Operation::Load
        && earlier.instruction.scope.is_some_and(|scope| scope != Scope::Block)
        && handover.has_heard_at(touch.moment, address)
}

impl Line {
    /// What happened up to the last barrier is ordered within the block, and for other blocks one access of a kind to each
    /// byte stands for all; where fences hand on what blocks did, one of each block, its last.
    fn forget(&mut self, now: Moment, hands_over: bool) {
        let Some(last) = self.0.last() else { return };
        if (last.moment.turn, last.moment.interval) == (now.turn, now.interval) {
            return;
        }
        if hands_over {
            return self.forget_all_but_last();
        }
        let mut covered = [0; KINDS];
        self.0.retain(|touch| {
            let covered = &mut covered[kind(touch.instruction)];
            let new = touch.bytes & !*covered;
            *covered |= touch.bytes;
            new != 0
        });
    }

    /// Of the accesses of a kind and block to a byte those of the last interval stay.
    fn forget_all_but_last(&mut self) {
        let mut later: Vec<(u64, usize, u32, u16)> = Vec::new();
        let mut stay = vec![true; self.0.len()];
        for (touch, stays) in self.0.iter().zip(&mut stay).rev() {
            let (Moment { turn, interval, .. }, kind) = (touch.moment, kind(touch.instruction));
            let covered = later.iter().filter(|of| (of.0, of.1) == (turn, kind) && of.2 > interval);
            *stays = touch.bytes & !covered.fold(0, |bytes, of| bytes | of.3) != 0;
            match later.iter_mut().find(|of| (of.0, of.1, of.2) == (turn, kind, interval)) {
                Some(of) => of.3 |= touch.bytes,
                None => later.push((turn, kind, interval, touch.bytes)),
            }
        }
        let too_many = self.0.len().saturating_sub(MOST);
        let mut stay = stay.into_iter().enumerate().map(|(number, stays)| stays && number >= too_many);
        self.0.retain(|_| stay.next().unwrap_or(true));
    }

    fn written(&self) -> u16 {
        let writes = self.0.iter().filter(|touch| touch.instruction.operation != Operation::Load);
        writes.fold(0, |bytes, touch| bytes | touch.bytes)
    }

    /// The accesses that race with `touch`, which goes to `address`, in order.
    fn racing(&self, touch: &Touch, address: u64, order: &Order, handover: &Handover) -> impl Iterator<Item = &Touch> {
        self.0.iter().filter(move |earlier| {
            let operations = [earlier.instruction.operation, touch.instruction.operation];
            earlier.bytes & touch.bytes != 0
                && operations != [Operation::Load; 2]
                && !are_one_by_one(earlier, touch)
                && order.unordered(earlier.moment, touch.moment)
                && !handover.knows(touch.moment.thread, earlier.moment)
                && !has_heard(earlier, touch, address, handover)
        })
    }

    fn enter(&mut self, touch: Touch) {
        let same = |old: &&mut Touch| {
            let interval = |touch: &Touch| (touch.moment.turn, touch.moment.interval, touch.moment.thread);
            old.bytes == touch.bytes
                && kind(old.instruction) == kind(touch.instruction)
                && interval(old) == interval(&touch)
        };
        match self.0.iter_mut().find(same) {
            // What races with either races with the later.
            Some(old) => *old = touch,
            None => self.0.push(touch),
        }
    }
}
