//! Where threads stand that others wait for, as a report names it.

use super::block::Runner;
use super::warp::State;
use crate::program::{NONE, Op, Program};
use engine::Pc;

/// How far ahead it is looked for the place where a thread comes to something that others see.
const FARTHEST: usize = 4096;

impl Runner {
    /// Where a lane of a warp stands, which is not one of those that run.
    fn stands_at(&self, warp: usize, lane: u32) -> u32 {
        // The last frame is that of the lanes that run.
        let mut frames = self.warps[warp].frames.iter().rev().skip(1);
        frames.find(|frame| frame.mask >> lane & 1 == 1).map_or(0, |frame| frame.at)
    }

    /// Where the lowest of some lanes of a warp stands, which are not those that run: the next access or meeting that it comes to.
    pub(super) fn stands(&self, warp: usize, lanes: u32) -> Pc {
        seen_next(&self.job.program, self.stands_at(warp, lanes.trailing_zeros() % 32))
    }

    /// The lanes of a warp that do not come with the active ones, and have something before them.
    pub(super) fn missing(&mut self, warp: usize, active: u32) -> u32 {
        match self.warps[warp].live & !active {
            0 => 0,
            missing => missing & !self.end_those_that_leave(warp, missing),
        }
    }

    /// Of some lanes that are not those that run, the ones that have nothing before them but their end: they end now, and are returned.
    #[cold]
    pub(super) fn end_those_that_leave(&mut self, warp: usize, lanes: u32) -> u32 {
        let leaves = |lane: &u32| lanes >> lane & 1 == 1 && leaves(&self.job.program, self.stands_at(warp, *lane));
        let ended = (0..32).filter(leaves).fold(0, |ended, lane| ended | 1 << lane);
        self.warps[warp].live &= !ended;
        ended
    }

    /// A warp that has ended without passing the barrier at that place, though it made an access that comes behind: the access.
    pub(super) fn passed_by(&mut self, barrier: u32) -> Option<(usize, Pc)> {
        let program = &self.job.program;
        let ended = self.warps.iter().enumerate().filter(|(_, warp)| warp.state == State::Ended && warp.last != NONE);
        for (number, warp) in ended {
            let is_behind = *self.behind.entry((barrier, warp.last)).or_insert_with(|| {
                reached(program, barrier)[warp.last as usize] && !reached(program, warp.last)[barrier as usize]
            });
            if is_behind {
                return Some((number, program.code[warp.last as usize].pc));
            }
        }
        None
    }
}

/// The first instruction from `at` on that others see, as far as that is certain.
fn seen_next(program: &Program, mut at: u32) -> Pc {
    let code = &program.code;
    let begin = code[(at as usize).min(code.len() - 1)].pc;
    for _ in 0..FARTHEST {
        let Some(inst) = code.get(at as usize) else { break };
        match inst.op {
            Op::Branch { target, .. } if inst.guard == NONE => at = target,
            Op::Branch { .. } | Op::Table { .. } => break,
            Op::Alu { .. } | Op::Clock { .. } | Op::ActiveMask { .. } | Op::Fence(_) => at += 1,
            Op::Exit if inst.guard != NONE => at += 1,
            _ => return inst.pc,
        }
    }
    begin
}

/// Whether a thread at that place does nothing any more.
fn leaves(program: &Program, mut at: u32) -> bool {
    for _ in 0..FARTHEST {
        match program.code.get(at as usize) {
            Some(inst) if inst.guard != NONE => return false,
            Some(inst) => match inst.op {
                Op::Branch { target, .. } => at = target,
                Op::Exit => return true,
                _ => return false,
            },
            None => return false,
        }
    }
    false
}

/// Which instructions a thread may come to from one on, without that itself unless it comes there again.
fn reached(program: &Program, from: u32) -> Vec<bool> {
    let code = &program.code;
    let mut reached = vec![false; code.len()];
    let mut waiting = vec![from];
    while let Some(at) = waiting.pop() {
        let Some(inst) = code.get(at as usize) else { continue };
        let mut targets = Vec::new();
        let goes_on = match inst.op {
            Op::Branch { target, .. } => {
                targets.push(target);
                inst.guard != NONE
            }
            Op::Table { table, .. } => {
                targets.extend(&program.tables[table as usize]);
                inst.guard != NONE
            }
            Op::Exit | Op::Return | Op::Trap => inst.guard != NONE,
            _ => true,
        };
        targets.extend(goes_on.then_some(at + 1));
        for target in targets {
            if let Some(known) = reached.get_mut(target as usize)
                && !std::mem::replace(known, true)
            {
                waiting.push(target);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests;
