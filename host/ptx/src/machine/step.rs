//! Carries out a warp's instructions, each for the lanes under its mask.

use super::block::Runner;
use super::warp::State;
use crate::program::{Action, Inst, NONE, Op, Where};
use crate::registers::{Class, Lanes, Narrow, Wide};
use engine::{Kind, Look, Pc, triple};
use gpu::suite::Scope;
use std::sync::Arc;

impl Runner {
    /// Runs a warp to its end, to the block's barrier, or to a finding; `TRACED` if what its requests depend on is followed.
    pub(super) fn run_warp<const TRACED: bool>(&mut self, number: usize) {
        let program = Arc::clone(&self.job.program);
        let code = &program.code[..];
        let watches = self.watches();
        'frames: while let Some(frame) = self.warps[number].top() {
            let (mut at, meet, mut mask) = (frame.at, frame.meet, frame.mask);
            let mut clock = self.warps[number].clock;
            loop {
                if at == meet {
                    break;
                }
                let inst = &code[at as usize];
                let active = mask & self.guard(inst);
                clock += 1;
                if TRACED {
                    self.follow(number, at, mask, active);
                }
                if inst.watched && watches && !self.uses_registers(number, at, mask, active) {
                    return self.stop();
                }
                match inst.op {
                    Op::Alu { run, slots, .. } => {
                        if active != 0 {
                            // SAFETY: what was chosen for the processor's vectors was chosen since it has them.
                            unsafe { run(&mut self.registers, slots, active) };
                        }
                    }
                    Op::Access(access) => {
                        if active != 0 {
                            let warp = &mut self.warps[number];
                            (warp.steps, warp.last) = (warp.steps + 1, at);
                            if !self.access(access as usize, number, active) {
                                return self.stop();
                            }
                            if TRACED {
                                self.deliver_later(number, at, active);
                            }
                        }
                    }
                    Op::Branch { target, meet } => {
                        if active == mask {
                            if target <= at && !self.goes_round(number, inst.pc) {
                                return self.stop();
                            }
                            let is_due = target <= at && self.is_due(number);
                            at = target;
                            if is_due {
                                return self.save(number, at, mask, clock);
                            }
                            continue;
                        }
                        if active != 0 {
                            if target <= at && !self.goes_round(number, inst.pc) {
                                return self.stop();
                            }
                            self.save(number, at, mask, clock);
                            self.warps[number].part(active, target, at + 1, meet);
                            continue 'frames;
                        }
                    }
                    Op::Table { index, table, meet } => {
                        if active != 0 {
                            if !self.goes_round(number, inst.pc) {
                                return self.stop();
                            }
                            self.save(number, at, mask, clock);
                            if !self.spread(number, active, index, &program.tables[table as usize], meet, inst.pc) {
                                return self.stop();
                            }
                            continue 'frames;
                        }
                    }
                    Op::Call(call) => {
                        if active != 0 {
                            self.save(number, at, mask, clock);
                            if !self.goes_round(number, inst.pc) || !self.call(call, number, at, mask, inst.pc) {
                                return self.stop();
                            }
                            continue 'frames;
                        }
                    }
                    Op::Return => {
                        self.save(number, at, mask, clock);
                        self.return_from(number);
                        continue 'frames;
                    }
                    Op::Exit => {
                        self.warps[number].live &= !active;
                        mask &= !active;
                        if mask == 0 {
                            self.warps[number].clock = clock;
                            continue 'frames;
                        }
                    }
                    Op::Barrier { number: barrier, .. } => {
                        if active != 0 {
                            self.save(number, at + 1, mask, clock);
                            return self.wait(number, at, active, barrier, inst.pc);
                        }
                    }
                    Op::PartialBarrier { .. } => {
                        if active != 0 {
                            self.save(number, at + 1, mask, clock);
                            if !self.come(number, at, active) {
                                return self.stop();
                            }
                            if self.warps[number].state != State::Runs {
                                return;
                            }
                        }
                    }
                    Op::Bulk(bulk) => {
                        if active != 0 && !self.bulk(program.bulks[bulk as usize], number, active, inst.pc) {
                            return self.stop();
                        }
                    }
                    Op::Phase => {
                        if active != 0 && !self.worker.pass_barrier(|| inst.pc) {
                            return self.stop();
                        }
                    }
                    Op::Yield => {
                        if active != 0 {
                            if !self.goes_round(number, inst.pc) {
                                return self.stop();
                            }
                            return self.save(number, at + 1, mask, clock);
                        }
                    }
                    Op::Fence(scope) => self.fence(number, active, scope),
                    Op::WarpBarrier { mask: slot } => {
                        if active != 0 && !self.meet(number, active, slot, inst.pc) {
                            return self.stop();
                        }
                    }
                    Op::Exchange(exchange) => {
                        let exchange = &program.exchanges[exchange as usize];
                        if active != 0 && !self.exchange(exchange, number, active, inst.pc) {
                            return self.stop();
                        }
                        if TRACED {
                            self.deliver_later(number, at, active);
                        }
                    }
                    Op::Clock { class, slot } => match class {
                        Class::Wide => Wide::set(&mut self.registers, slot, active, &[clock; 32]),
                        _ => Narrow::set(&mut self.registers, slot, active, &[clock as u32; 32]),
                    },
                    Op::Matrix(matrix) => {
                        if active != 0 && !self.matrix(&program.matrices[matrix as usize], number, active, inst.pc) {
                            return self.stop();
                        }
                    }
                    Op::ActiveMask { slot } => Narrow::set(&mut self.registers, slot, active, &[active; 32]),
                    Op::Copy(copy) => {
                        if active != 0 {
                            self.warps[number].steps += 1;
                            if !self.copy(program.copies[copy as usize], number, active, inst.pc) {
                                return self.stop();
                            }
                            if let Some(dependence) = &mut self.dependence {
                                dependence.copy(number);
                            }
                        }
                    }
                    Op::Commit => self.copies.commit(number, active),
                    Op::Await(but) => {
                        if active != 0 {
                            self.await_copies(number, active, but);
                        }
                    }
                    Op::External(external) => {
                        if active != 0 && !self.external(external, number, active, inst.pc) {
                            return self.stop();
                        }
                    }
                    Op::Trap => {
                        if active != 0 {
                            let detail = "the kernel gave up: it came to a trap".to_owned();
                            self.find(number, active, Kind::Panic, inst.pc, detail);
                            return self.stop();
                        }
                    }
                }
                at += 1;
            }
            self.save(number, at, mask, clock);
        }
        self.warps[number].state = State::Ended;
    }

    /// Follows what an instruction that some lanes are about to carry out depends on, and tells the worker.
    fn follow(&mut self, number: usize, at: u32, mask: u32, active: u32) {
        let Some(dependence) = &mut self.dependence else { return };
        let program = &self.job.program;
        let inst = &program.code[at as usize];
        let live = self.warps[number].live;
        let is_request = active != 0;
        match inst.op {
            Op::Access(access) if is_request && program.accesses[access as usize].makes_requests() => {
                // ptxas issues what follows a store to shared memory before it: no global address is a shared one.
                let access = &program.accesses[access as usize];
                let deferred = access.space == Where::Shared && matches!(access.action, Action::Store);
                self.worker.flow = dependence.request(number, at, deferred);
            }
            Op::Exchange(_) | Op::WarpBarrier { .. } | Op::Copy(_) | Op::Bulk(_) if is_request => {
                self.worker.flow = dependence.request(number, at, false);
            }
            Op::Barrier { .. } | Op::PartialBarrier { .. } if is_request => {
                self.worker.flow = dependence.wait(number, at);
                self.worker.issue(number, inst.pc);
            }
            Op::Commit => dependence.commit(number),
            Op::Await(but) if is_request => dependence.await_copies(number, but.unwrap_or(0)),
            Op::Exit if active == live => {
                self.worker.flow = dependence.wait(number, at);
                self.worker.issue(number, inst.pc);
            }
            _ => {
                dependence.issue(number, at, active != live);
                if matches!(inst.op, Op::Branch { .. }) && (active == 0 || active == mask) {
                    // Without an active lane an access to shared memory takes its turn all the same.
                    for at in dependence.skipped(at, active == mask) {
                        dependence.skip(number, at);
                        let inst = &program.code[at as usize];
                        if let Op::Access(access) = inst.op
                            && program.accesses[access as usize].space == Where::Shared
                        {
                            self.worker.flow = dependence.skip_access(number);
                            self.worker.skip(number, inst.pc);
                        }
                    }
                }
                if dependence.is_long(number) {
                    self.worker.flow = dependence.so_far(number);
                    self.worker.issue(number, inst.pc);
                }
            }
        }
    }

    /// The lanes make a fence.
    fn fence(&mut self, number: usize, active: u32, scope: Scope) {
        if self.worker.look() == Look::Second {
            let lanes = (0..32).filter(|lane| active >> lane & 1 == 1);
            lanes.for_each(|lane| self.worker.fence(32 * number + lane, scope));
        }
    }

    /// What an access or an exchange brought is in its registers later.
    fn deliver_later(&mut self, number: usize, at: u32, active: u32) {
        let Some(dependence) = &mut self.dependence else { return };
        let inst = &self.job.program.code[at as usize];
        let latency = match inst.op {
            Op::Access(access) => {
                let access = &self.job.program.accesses[access as usize];
                if !access.makes_requests() {
                    return;
                }
                // When it arrives is not the program's to say.
                0
            }
            _ => inst.cost.latency.into(),
        };
        dependence.deliver(number, at, latency, active != self.warps[number].live);
    }

    #[inline(always)]
    fn guard(&self, inst: &Inst) -> u32 {
        if inst.guard == NONE {
            return u32::MAX;
        }
        let guard = *self.registers.preds.get(inst.guard);
        if inst.negated { !guard } else { guard }
    }

    /// Keeps where the lanes of the top frame are.
    fn save(&mut self, number: usize, at: u32, mask: u32, clock: u64) {
        let warp = &mut self.warps[number];
        warp.clock = clock;
        if let Some(frame) = warp.frames.last_mut() {
            (frame.at, frame.mask) = (at, mask);
        }
    }

    fn stop(&mut self) {
        self.stopped = true;
    }

    /// A finding about the lowest of some lanes.
    pub(super) fn find(&mut self, warp: usize, lanes: u32, kind: Kind, pc: Pc, detail: String) {
        let thread = 32 * warp + lanes.trailing_zeros() as usize % 32;
        self.worker.find(thread, kind, Some(pc.position()), None, detail);
    }

    /// The same, of two places.
    pub(super) fn find_both(&mut self, warp: usize, lanes: u32, kind: Kind, pcs: [Pc; 2], detail: String) {
        let thread = 32 * warp + lanes.trailing_zeros() as usize % 32;
        let [at, other] = pcs.map(|pc| Some(pc.position()));
        self.worker.find(thread, kind, at, other, detail);
    }

    /// The warp goes back in its program: false if it has done so too often, which is a finding.
    #[inline]
    fn goes_round(&mut self, number: usize, pc: Pc) -> bool {
        let warp = &mut self.warps[number];
        warp.steps += 1;
        let most = self.job.launch.limits.calls;
        if warp.steps > most {
            let (lanes, detail) =
                (warp.live, format!("a warp has taken more than {most} steps: accesses, and rounds of loops"));
            self.find(number, lanes, Kind::NonTerminating, pc, detail);
            return false;
        }
        !self.job.launch.is_exhausted()
    }

    /// Whether a warp has gone back in its program so often that others may go on first: it may wait for what they do.
    #[inline]
    fn is_due(&mut self, number: usize) -> bool {
        const TURN: u64 = 1 << 12;
        let warp = &mut self.warps[number];
        let is_due = warp.steps >= warp.due + TURN;
        if is_due {
            warp.due = warp.steps;
        }
        is_due
    }

    /// A branch by a table: lanes go to as many places.
    fn spread(&mut self, number: usize, active: u32, index: u32, table: &[u32], meet: u32, pc: Pc) -> bool {
        let indices = *self.registers.narrow.get(index);
        let mut rest = active;
        if rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            let Some(&target) = table.get(indices[lane] as usize) else {
                let detail = format!("a branch by a table of {} goes to number {}", table.len(), indices[lane]);
                self.find(number, 1 << lane, Kind::OutOfBounds, pc, detail);
                return false;
            };
            let together =
                (0..32).filter(|other| indices[*other] == indices[lane]).fold(0, |lanes, other| lanes | 1 << other)
                    & rest;
            rest &= !together;
            let Some(frame) = self.warps[number].frames.last_mut() else { return true };
            if together == frame.mask {
                frame.at = target;
            } else {
                // The others stay where the branch is, and take it next, or go on behind it.
                let next = frame.at + u32::from(rest == 0);
                self.warps[number].part(together, target, next, meet);
            }
            return true;
        }
        true
    }

    /// The lanes come to the block's barrier, which all of the warp's are to come to together.
    fn wait(&mut self, number: usize, at: u32, active: u32, barrier: u32, pc: Pc) {
        let missing = self.missing(number, active);
        if missing != 0 {
            let who = triple(self.job.launch.thread_idx((32 * number) as u32 + missing.trailing_zeros() % 32));
            let detail =
                format!("a thread waits at this barrier, to which thread {who} of its warp does not come with it");
            let there = self.stands(number, missing);
            self.find_both(number, active, Kind::DivergentBarrier, [pc, there], detail);
            return self.stop();
        }
        let barrier = self.registers.narrow.get(barrier)[active.trailing_zeros() as usize % 32];
        self.warps[number].state = State::Waits { at, number: barrier };
    }
}
