//! `mbarrier`, and copies in bulk that complete on one.
//!
//! An `mbarrier` is a word of 64 bits of shared memory, which its instructions change by atomics: the parity of the phase in the highest
//! bit, and below it how many threads are expected, how many are pending, and how many bytes are. A wait that fails lets other warps go
//! on. What a phase that completes orders for the threads that wait for it, the sanitizer takes to be ordered for all.
//!
//! Copies in bulk take place at once, 32 times 16 bytes a request, as if each lane of the warp copied its own.

use super::memory::Place;
use super::{Failure, Lowering};
use crate::alu;
use crate::ast::{Instruction, Operand, StateSpace, Type};
use crate::program::{Action, Bulk, Op, Part, Value, Where};
use crate::registers::{Class, lanes};

const COUNT: u64 = (1 << 20) - 1;
const BYTES: u64 = (1 << 22) - 1;

/// What comes of a word when so many threads arrive (in the lower half of `b`), and so many more bytes are expected (in the upper one),
/// and when so many threads are expected no longer from the next phase on.
fn arrived(word: u64, b: u64, dropped: u64) -> u64 {
    let bytes = (word & BYTES).wrapping_add(b >> 32) & BYTES;
    let pending = (word >> 22 & COUNT).wrapping_sub(b & COUNT) & COUNT;
    let expected = (word >> 42 & COUNT).wrapping_sub(dropped) & COUNT;
    let phase = word >> 63;
    match (pending, bytes) {
        (0, 0) => (phase ^ 1) << 63 | expected << 42 | expected << 22,
        _ => phase << 63 | expected << 42 | pending << 22 | bytes,
    }
}

impl<'m, 'a> Lowering<'m, 'a> {
    pub(super) fn mbarrier(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let has = |modifier| instruction.has(modifier);
        let operands = instruction.operands.as_slice();
        let [zero, one] = [0, 1].map(|bits| self.holding(Class::Narrow, Value::Bits(bits)));
        match operands {
            [address, count] if has("init") => {
                let (space, place) = self.of_mbarrier(instruction, address)?;
                let count = self.source(count, Class::Narrow)?;
                let word = self.scratch(Class::Wide);
                let alu =
                    lanes!(Wide <- |a: Narrow| u64::from(a) << 42 & COUNT << 42 | u64::from(a) << 22 & COUNT << 22);
                self.emit_alu(alu, word, &[count])?;
                let parts = vec![Some((Class::Wide, word))];
                self.push_at(instruction, Action::Store, space, place, Type::Bits(64), parts, &[])
            }
            [address] if has("inval") => {
                let (space, place) = self.of_mbarrier(instruction, address)?;
                let word = self.holding(Class::Wide, Value::Bits(0));
                let parts = vec![Some((Class::Wide, word))];
                self.push_at(instruction, Action::Store, space, place, Type::Bits(64), parts, &[])
            }
            [address, bytes] if has("expect_tx") && !has("arrive") || has("complete_tx") => {
                let place = self.of_mbarrier(instruction, address)?;
                let bytes = self.source(bytes, Class::Narrow)?;
                let signed = self.scratch(Class::Narrow);
                let alu = match has("complete_tx") {
                    true => lanes!(Narrow <- |a: Narrow| a.wrapping_neg()),
                    false => alu::copy(Class::Narrow),
                };
                self.emit_alu(alu, signed, &[bytes])?;
                self.arrive(instruction, place, [zero, signed, zero], None)
            }
            [target, address, rest @ ..] if has("arrive") || has("arrive_drop") => {
                let target = self.any_target(target)?;
                let place = self.of_mbarrier(instruction, address)?;
                let number = match rest {
                    [] => one,
                    [number] => self.source(number, Class::Narrow)?,
                    _ => return Err("it takes an address and a count".to_owned()),
                };
                let (count, bytes) = if has("expect_tx") { (one, number) } else { (number, zero) };
                let dropped = if has("arrive_drop") { count } else { zero };
                self.arrive(instruction, place, [count, bytes, dropped], target)
            }
            [target, address, phase, ..] if has("test_wait") || has("try_wait") => {
                let (space, place) = self.of_mbarrier(instruction, address)?;
                let word = self.scratch(Class::Wide);
                let look = Action::Atomic(|old, _, _| old);
                let none = (Class::Wide, self.holding(Class::Wide, Value::Bits(0)));
                let parts = vec![Some((Class::Wide, word))];
                self.push_at(instruction, look, space, place, Type::Bits(64), parts, &[none])?;
                let done = self.scratch(Class::Pred);
                if has("parity") {
                    let parity = self.source(phase, Class::Narrow)?;
                    let alu = lanes!(Pred <- |word: Wide, parity: Narrow| (word >> 63) as u32 != parity & 1);
                    self.emit_alu(alu, done, &[word, parity])?;
                } else {
                    let state = self.source(phase, Class::Wide)?;
                    self.emit_alu(
                        lanes!(Pred <- |word: Wide, state: Wide| (word ^ state) >> 63 != 0),
                        done,
                        &[word, state],
                    )?;
                }
                let target = self.target(target, Class::Pred)?;
                self.emit_alu(alu::copy(Class::Pred), target, &[done])?;
                self.under(lanes!(Pred <- |a: Pred| !a), &[done])?;
                self.emit(Op::Yield);
                Ok(())
            }
            [target, state] if has("pending_count") => {
                let state = self.source(state, Class::Wide)?;
                let target = self.target(target, Class::Narrow)?;
                self.emit_alu(lanes!(Narrow <- |word: Wide| (word >> 22 & COUNT) as u32), target, &[state])
            }
            _ => Err("this instruction is not carried out".to_owned()),
        }
    }

    fn of_mbarrier(&mut self, instruction: &Instruction<'a>, address: &Operand<'a>) -> Result<Place, Failure> {
        let space = match instruction.modifiers().find_map(StateSpace::named) {
            None => Where::Generic,
            Some(_) => Where::Shared,
        };
        self.placed(instruction, space, address)
    }

    /// Threads arrive: how many, how many more bytes are expected, and how many threads are so no longer.
    fn arrive(
        &mut self,
        instruction: &Instruction<'a>,
        (space, place): Place,
        [count, bytes, dropped]: [u32; 3],
        target: Part,
    ) -> Result<(), Failure> {
        let [b, c, old] = [(); 3].map(|()| self.scratch(Class::Wide));
        self.emit_alu(lanes!(Wide <- |a: Narrow, b: Narrow| u64::from(a) | u64::from(b) << 32), b, &[count, bytes])?;
        self.emit_alu(alu::resized(Class::Narrow, Class::Wide, None), c, &[dropped])?;
        let parts = vec![Some((Class::Wide, old))];
        let values = [(Class::Wide, b), (Class::Wide, c)];
        self.push_at(instruction, Action::Atomic(arrived), space, place, Type::Bits(64), parts, &values)?;
        if let Some((class, slot)) = target {
            self.emit_alu(alu::resized(Class::Wide, class, None), slot, &[old])?;
        }
        let guard = self.guard;
        let completes = lanes!(Pred <- |old: Wide, b: Wide, c: Wide| (arrived(old, b, c) ^ old) >> 63 != 0);
        self.under(completes, &[old, b, c])?;
        self.emit(Op::Phase);
        self.guard = guard;
        Ok(())
    }

    /// `cp.async.mbarrier.arrive`: the copies of the thread arrive, and the thread if it counts.
    pub(super) fn copies_arrive(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let [address] = instruction.operands.as_slice() else { return Err("it takes an address".to_owned()) };
        self.emit(Op::Await(None));
        if !instruction.has("noinc") {
            // The arrival that it adds is one that it makes itself.
            return Ok(());
        }
        let place = self.of_mbarrier(instruction, address)?;
        let [zero, one] = [0, 1].map(|bits| self.holding(Class::Narrow, Value::Bits(bits)));
        self.arrive(instruction, place, [one, zero, zero], None)
    }

    /// `cp.async.bulk`, of what lies side by side.
    pub(super) fn bulk(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let has = |modifier| instruction.has(modifier);
        if has("commit_group") || has("wait_group") || has("prefetch") {
            return Ok(());
        }
        let refused = ["tensor", "reduce", "multicast::cluster", "cp_mask", "ignore_oob"];
        if !has("async") || refused.into_iter().any(has) {
            return Err("of copies in bulk, those of what lies side by side are carried out".to_owned());
        }
        let spaces: Vec<_> = instruction.modifiers().filter_map(StateSpace::named).collect();
        let (to_space, from_space) = match spaces[..] {
            [StateSpace::Shared, StateSpace::Global] => (Where::Shared, Where::Global),
            [StateSpace::Global, StateSpace::Shared] => (Where::Global, Where::Shared),
            _ => return Err("of copies in bulk, those between global and shared memory are carried out".to_owned()),
        };
        let [to, from, size, rest @ ..] = Self::without_policy(instruction) else {
            return Err("it takes two addresses and a size".to_owned());
        };
        let size = self.source(size, Class::Narrow)?;
        let parts: Vec<Part> = (0..4).map(|_| Some((Class::Narrow, self.scratch(Class::Narrow)))).collect();
        let load = self.part(instruction, Action::Load, from_space, from, parts.clone())?;
        let store = self.part(instruction, Action::Store, to_space, to, parts)?;
        self.bulks.push(Bulk { load, store, size });
        self.emit(Op::Bulk(self.bulks.len() as u32 - 1));
        match rest {
            [] => Ok(()),
            [address] => {
                let place = self.placed(instruction, Where::Shared, address)?;
                let zero = self.holding(Class::Narrow, Value::Bits(0));
                let done = self.scratch(Class::Narrow);
                self.emit_alu(lanes!(Narrow <- |a: Narrow| a.wrapping_neg()), done, &[size])?;
                self.arrive(instruction, place, [zero, done, zero], None)
            }
            _ => Err("its operands are none that it takes".to_owned()),
        }
    }
}
