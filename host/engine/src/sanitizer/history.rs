//! The second look: for each 16 bytes of memory the accesses that later ones could race with, by byte and in order.

use super::order::{Moment, Order};
use crate::instruction::Instruction;
use gpu::suite::Operation;
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

/// Two accesses to a byte that nothing orders: the one that came first, and the byte's address.
pub(crate) struct Race {
    pub earlier: Touch,
    pub address: u64,
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
        initialized: bool,
    ) -> Option<Race> {
        let line = address / LINE;
        let bytes = (u16::MAX >> (LINE - instruction.width())) << (address % LINE);
        let touch = Touch { moment, instruction, bytes };
        let touches = self.lines.entry(line).or_default();
        touches.forget(moment);
        let unwritten = bytes & !touches.written();
        if instruction.operation != Operation::Store && !initialized && unwritten != 0 && self.early.len() < EARLY {
            self.early.push(Early { line, touch: Touch { bytes: unwritten, ..touch } });
        }
        let mut first = None;
        for earlier in touches.racing(&touch, order) {
            *self.raced.entry(line).or_default() |= earlier.bytes & bytes;
            first = first.or(Some(*earlier));
        }
        touches.enter(touch);
        let earlier = first?;
        let common = earlier.bytes & bytes;
        Some(Race { earlier, address: line * LINE + u64::from(common.trailing_zeros()) })
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

impl Line {
    /// What happened up to the last barrier is ordered within the block, and for other blocks one access of a kind to each
    /// byte stands for all.
    fn forget(&mut self, now: Moment) {
        let Some(last) = self.0.last() else { return };
        if (last.moment.turn, last.moment.interval) == (now.turn, now.interval) {
            return;
        }
        let mut covered = [0; 3];
        self.0.retain(|touch| {
            let covered = &mut covered[touch.instruction.operation as usize];
            let new = touch.bytes & !*covered;
            *covered |= touch.bytes;
            new != 0
        });
    }

    fn written(&self) -> u16 {
        let writes = self.0.iter().filter(|touch| touch.instruction.operation != Operation::Load);
        writes.fold(0, |bytes, touch| bytes | touch.bytes)
    }

    /// The accesses that race with `touch`, in order.
    fn racing(&self, touch: &Touch, order: &Order) -> impl Iterator<Item = &Touch> {
        self.0.iter().filter(|earlier| {
            let operations = [earlier.instruction.operation, touch.instruction.operation];
            earlier.bytes & touch.bytes != 0
                && operations != [Operation::Load; 2]
                && operations != [Operation::Atomic; 2]
                && order.unordered(earlier.moment, touch.moment)
        })
    }

    fn enter(&mut self, touch: Touch) {
        let same = |old: &&mut Touch| {
            let interval = |touch: &Touch| (touch.moment.turn, touch.moment.interval, touch.moment.thread);
            old.bytes == touch.bytes
                && old.instruction.operation == touch.instruction.operation
                && interval(old) == interval(&touch)
        };
        match self.0.iter_mut().find(same) {
            // What races with either races with the later.
            Some(old) => *old = touch,
            None => self.0.push(touch),
        }
    }
}
