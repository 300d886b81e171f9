//! Barriers of some of a block's threads: those that wait for a number of threads, and those that only arrive.
//!
//! The sanitizer takes a barrier that is passed as one of the whole block: what only some threads' barrier orders, it takes to be
//! ordered for all. It misses races by that, and names none that is none.

use super::block::Runner;
use super::warp::{Arrived, BARRIERS, State};
use crate::program::{NONE, Op};
use engine::{Kind, triple};

impl Runner {
    /// Lanes come to a barrier of some threads: false if that is a finding.
    pub(super) fn come(&mut self, warp: usize, at: u32, active: u32) -> bool {
        let inst = self.job.program.code[at as usize];
        let Op::PartialBarrier { number, threads, waits, .. } = inst.op else { return true };
        let missing = self.missing(warp, active);
        if missing != 0 {
            let who = triple(self.job.launch.thread_idx((32 * warp) as u32 + missing.trailing_zeros() % 32));
            let detail =
                format!("a thread comes to this barrier, to which thread {who} of its warp does not come with it");
            let there = self.stands(warp, missing);
            self.find_both(warp, active, Kind::DivergentBarrier, [inst.pc, there], detail);
            return false;
        }
        let lane = active.trailing_zeros() as usize % 32;
        let [number, threads] = [number, threads].map(|slot| self.registers.narrow.get(slot)[lane]);
        let wrong = if number as usize >= BARRIERS - 1 {
            Some(format!("a thread comes to barrier {number}, and a block has 16, from 0 on"))
        } else if threads == 0 || threads % 32 != 0 {
            Some(format!("barrier {number} is to wait for {threads} threads, which is no multiple of 32"))
        } else {
            None
        };
        if let Some(detail) = wrong {
            self.find(warp, active, Kind::DivergentBarrier, inst.pc, detail);
            return false;
        }
        if waits {
            self.warps[warp].state = State::WaitsFor { at, number, threads };
        } else {
            let arrived = &mut self.arrived.0[number as usize];
            *arrived = arrived.saturating_add(32);
        }
        true
    }

    pub(super) fn forget_arrivals(&mut self) {
        self.arrived = Arrived::default();
    }

    /// Lets warps go on that wait for some of the block's threads: whether the block goes on, or none if no warp waits so and none has
    /// stepped aside for others.
    pub(super) fn pass_partly(&mut self) -> Option<bool> {
        let all = self.job.launch.plan.launch.block_threads().next_multiple_of(32);
        let mut waiting = Vec::new();
        for (warp, state) in self.warps.iter().map(|warp| warp.state).enumerate() {
            match state {
                State::Waits { at, number } => waiting.push((warp, at, number, all, false)),
                State::WaitsFor { at, number, threads } => waiting.push((warp, at, number, threads, true)),
                State::Runs | State::Ended => {}
            }
        }
        let goes_on = self.warps.iter().any(|warp| warp.state == State::Runs);
        let Some(&(warp, at, number, threads, _)) = waiting.iter().find(|(.., is_partial)| *is_partial) else {
            return goes_on.then_some(true);
        };
        for number in 0..BARRIERS as u32 {
            let here: Vec<_> = waiting.iter().filter(|(_, _, other, ..)| *other == number).copied().collect();
            let Some(&(_, first, _, threads, _)) = here.iter().find(|(.., is_partial)| *is_partial) else { continue };
            let wait = 32 * here.len() as u32;
            let arrived = &mut self.arrived.0[number as usize];
            if *arrived + wait < threads {
                continue;
            }
            *arrived -= threads.saturating_sub(wait);
            let pc = self.job.program.code[first as usize].pc;
            if !self.worker.pass_barrier(|| pc) {
                return Some(false);
            }
            let here: Vec<_> = here.into_iter().map(|(warp, at, number, ..)| (warp, at, number)).collect();
            self.reduce(&here);
            for (warp, ..) in here {
                let warp = &mut self.warps[warp];
                (warp.state, warp.last) = (State::Runs, NONE);
            }
            return Some(true);
        }
        if goes_on {
            return Some(true);
        }
        let came =
            self.arrived.0[number as usize] + 32 * waiting.iter().filter(|other| other.2 == number).count() as u32;
        let pc = self.job.program.code[at as usize].pc;
        let detail = format!("barrier {number} waits for {threads} threads, of which {came} come");
        self.find(warp, self.warps[warp].live, Kind::DivergentBarrier, pc, detail);
        Some(false)
    }
}
