//! Calls of functions, and returns from them: what is passed, and what an activation keeps.

use super::block::Runner;
use super::warp::{Activation, Frame, Kept};
use crate::program::{Call, Callee, FUNCTION_WINDOW, NONE, Passed, Routine};
use crate::registers::{Class, Half, Lanes, Narrow, OWN, Pred, Wide};
use engine::{Kind, Pc};
use std::sync::Arc;

/// Bytes of registers that the activations of a warp keep, at most.
const MOST_KEPT: usize = 8 << 20;

/// Something passed: the lanes of a register, or each lane's bytes.
enum Value {
    Lanes(Box<[u64; 32]>),
    Bytes(Vec<Vec<u8>>),
}

fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

impl Runner {
    /// The lanes in `mask`, which are those of the warp's top frame, call a function from the instruction at `at`: those of them that
    /// call the same one as the first, and the others next. False if that is a finding.
    pub(super) fn call(&mut self, number: u32, warp: usize, at: u32, mask: u32, pc: Pc) -> bool {
        let program = Arc::clone(&self.job.program);
        let call = &program.call_sites[number as usize];
        let Some([frame, top]) = program.stack else { return true };
        let first = mask.trailing_zeros() as usize % 32;
        let (function, together) = match call.callee {
            Callee::Function(function) => (u64::from(function), mask),
            Callee::Address(slot) => {
                let addresses = *self.registers.wide.get(slot);
                let address = addresses[first];
                let same =
                    lanes_of(mask).filter(|lane| addresses[*lane] == address).fold(0, |all, lane| all | 1 << lane);
                let behind = address.wrapping_sub(FUNCTION_WINDOW);
                (if behind.is_multiple_of(16) { behind / 16 } else { u64::MAX }, same)
            }
        };
        let known = usize::try_from(function).ok().and_then(|function| program.routines.get(function));
        let Some(routine) = known else {
            let detail = "a thread calls a function at an address where there is none".to_owned();
            self.find(warp, 1 << first, Kind::OutOfBounds, pc, detail);
            return false;
        };
        if let Some(detail) = unfit(call, routine) {
            self.find(warp, together, Kind::OutOfBounds, pc, detail);
            return false;
        }
        let stack = [frame, top].map(|slot| *self.registers.wide.get(slot));
        let ends = stack[1].map(|top| top.saturating_add(routine.bytes));
        let is_nested = self.warps[warp].calls.iter().any(|other| u64::from(other.function) == function);
        let kept = is_nested.then(|| self.kept(routine));
        let all_kept =
            self.warps[warp].calls.iter().filter_map(|other| other.kept.as_ref()).map(Kept::bytes).sum::<usize>();
        let is_over = |lane: &usize| ends[*lane] > program.local_bytes || all_kept > MOST_KEPT;
        if let Some(lane) = lanes_of(together).find(is_over) {
            let bytes = program.stack_bytes();
            let detail =
                format!("a thread calls `{}`, and its {bytes} bytes of stack have no room left for that", routine.name);
            self.find(warp, 1 << lane, Kind::StackOverflow, pc, detail);
            return false;
        }
        let arguments: Vec<_> =
            call.arguments.iter().map(|from| self.taken(*from, warp, together, &stack[0])).collect();
        Wide::set(&mut self.registers, frame, together, &stack[1]);
        Wide::set(&mut self.registers, top, together, &ends);
        // What other functions had there is not this one's.
        for lane in lanes_of(together) {
            let begin = (32 * warp + lane) as u64 * program.local_bytes + stack[1][lane];
            self.unmark_local(begin as usize, routine.bytes as usize);
        }
        for (to, value) in routine.parameters.iter().zip(arguments) {
            self.put(*to, value, warp, together, &stack[1]);
        }
        let frames = &mut self.warps[warp].frames;
        if let Some(frame) = frames.last_mut() {
            frame.at = at + 1;
        }
        if together != mask {
            frames.push(Frame { at, meet: at + 1, mask: mask & !together });
        }
        let depth = frames.len();
        frames.push(Frame { at: routine.entry, meet: NONE, mask: together });
        self.warps[warp].calls.push(Activation { function: function as u32, call: number, depth, stack, kept });
        true
    }

    /// The lanes of the warp's top frame return from the function that they called last.
    pub(super) fn return_from(&mut self, warp: usize) {
        let program = Arc::clone(&self.job.program);
        let Some(mask) = self.warps[warp].frames.last().map(|frame| frame.mask) else { return };
        let (Some(activation), Some(slots)) = (self.warps[warp].calls.pop(), program.stack) else { return };
        let (call, routine) =
            (&program.call_sites[activation.call as usize], &program.routines[activation.function as usize]);
        let own = *self.registers.wide.get(slots[0]);
        let results: Vec<_> = routine.returns.iter().map(|from| self.taken(*from, warp, mask, &own)).collect();
        if let Some(kept) = &activation.kept {
            self.bring_back(routine, kept, mask);
        }
        for (slot, values) in slots.into_iter().zip(&activation.stack) {
            Wide::set(&mut self.registers, slot, mask, values);
        }
        for (to, value) in call.returns.iter().zip(results) {
            self.put(*to, value, warp, mask, &activation.stack[0]);
        }
        let frames = &mut self.warps[warp].frames;
        frames.pop();
        // Lanes may return one after another.
        if frames.len() > activation.depth {
            self.warps[warp].calls.push(activation);
        }
    }

    fn kept(&self, routine: &Routine) -> Kept {
        let [preds, narrow, wide] = routine.registers.map(|(from, to)| from | OWN..to | OWN);
        Kept {
            preds: preds.map(|slot| *self.registers.preds.get(slot)).collect(),
            narrow: narrow.map(|slot| *self.registers.narrow.get(slot)).collect(),
            wide: wide.map(|slot| *self.registers.wide.get(slot)).collect(),
        }
    }

    fn bring_back(&mut self, routine: &Routine, kept: &Kept, mask: u32) {
        let [preds, narrow, wide] = routine.registers.map(|(from, to)| from | OWN..to | OWN);
        for (slot, lanes) in preds.zip(&kept.preds) {
            let target = self.registers.preds.get_mut(slot);
            *target = *target & !mask | lanes & mask;
        }
        narrow.zip(&kept.narrow).for_each(|(slot, lanes)| Narrow::set(&mut self.registers, slot, mask, lanes));
        wide.zip(&kept.wide).for_each(|(slot, lanes)| Wide::set(&mut self.registers, slot, mask, lanes));
    }

    /// Where a lane has what is passed in local memory.
    fn cell(&mut self, warp: usize, lane: usize, begin: u64, bytes: u64) -> Option<&mut [u8]> {
        let size = self.job.program.local_bytes;
        let end = begin.checked_add(bytes).filter(|end| *end <= size)?;
        let thread = (32 * warp + lane) as u64 * size;
        self.local.get_mut((thread + begin) as usize..(thread + end) as usize)
    }

    fn taken(&mut self, from: Passed, warp: usize, mask: u32, frames: &[u64; 32]) -> Value {
        match from {
            Passed::Nothing => Value::Lanes(Box::new([0; 32])),
            Passed::Register(Class::Pred, slot) => {
                let lanes = *self.registers.preds.get(slot);
                Value::Lanes(Box::new(std::array::from_fn(|lane| u64::from(lanes >> lane & 1))))
            }
            Passed::Register(Class::Wide, slot) => Value::Lanes(Box::new(*self.registers.wide.get(slot))),
            Passed::Register(_, slot) => Value::Lanes(Box::new(self.registers.narrow.get(slot).map(u64::from))),
            Passed::Memory { begin, bytes, is_framed } => {
                let of = |lane| {
                    let begin = if is_framed { frames[lane] + begin } else { begin };
                    self.cell(warp, lane, begin, bytes).map(|cell| cell.to_vec()).unwrap_or_default()
                };
                Value::Bytes(lanes_of(mask).map(of).collect())
            }
        }
    }

    fn put(&mut self, to: Passed, value: Value, warp: usize, mask: u32, frames: &[u64; 32]) {
        let registers = &mut self.registers;
        match (to, value) {
            (Passed::Register(Class::Pred, slot), Value::Lanes(lanes)) => {
                Pred::set(registers, slot, mask, &lanes.map(|value| value != 0));
            }
            (Passed::Register(Class::Half, slot), Value::Lanes(lanes)) => {
                Half::set(registers, slot, mask, &lanes.map(|value| value as u32));
            }
            (Passed::Register(Class::Narrow, slot), Value::Lanes(lanes)) => {
                Narrow::set(registers, slot, mask, &lanes.map(|value| value as u32));
            }
            (Passed::Register(Class::Wide, slot), Value::Lanes(lanes)) => Wide::set(registers, slot, mask, &lanes),
            (Passed::Memory { begin, bytes, is_framed }, Value::Bytes(all)) => {
                for (lane, own) in lanes_of(mask).zip(all) {
                    let begin = if is_framed { frames[lane] + begin } else { begin };
                    if let Some(cell) = self.cell(warp, lane, begin, bytes) {
                        cell.iter_mut().zip(own).for_each(|(to, from)| *to = from);
                        let thread = (32 * warp + lane) as u64 * self.job.program.local_bytes;
                        self.mark_local((thread + begin) as usize, bytes as usize);
                    }
                }
            }
            _ => {}
        }
    }
}

/// What is passed in a call that does not fit the function, if anything is.
fn unfit(call: &Call, routine: &Routine) -> Option<String> {
    let fits = |caller: &[Passed], own: &[Passed]| {
        caller.len() == own.len()
            && caller.iter().zip(own).all(|pair| match pair {
                (Passed::Nothing, _) => true,
                (Passed::Register(class, _), Passed::Register(own, _)) => class == own,
                (Passed::Memory { bytes, .. }, Passed::Memory { bytes: own, .. }) => bytes == own,
                _ => false,
            })
    };
    let is_fit = fits(&call.arguments, &routine.parameters) && fits(&call.returns, &routine.returns);
    (!is_fit).then(|| format!("a thread calls `{}` with other parameters or results than it has", routine.name))
}

#[cfg(test)]
mod tests;
