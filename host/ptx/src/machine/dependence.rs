//! What a warp's requests depend on: how many instructions come before each, how long those take one after another, and which loads have to
//! have arrived.
//!
//! Registers are followed for the warp as a whole. Each has the loads that its value comes from, and when it is there if all loads arrived
//! at once; a load that arrives later moves what depends on it, and what is issued behind that.

use crate::cost::{Cost, Unit};
use crate::ptxas::{Kind, Schedule};
use engine::Flow;
use std::collections::VecDeque;
use std::sync::Arc;

/// Loads of a warp that are told apart. Older ones have arrived.
const LOADS: u64 = 64;

/// Issue slots without a request that are one.
const MOST_SLOTS: u32 = 256;

/// Cycles from a predicate to the first instruction behind the branch that it decides.
const BRANCH: u32 = 8;

/// What the warps of a block depend on.
pub(super) struct Dependence {
    schedule: Arc<Schedule>,
    warps: Vec<OfWarp>,
}

/// That of a warp. Cycles are counted from its begin, as if all loads arrived at once.
#[derive(Clone, Default)]
struct OfWarp {
    /// The loads that each register comes from, by their number, and when it is there.
    loads: Vec<u64>,
    ready: Vec<u32>,
    /// How many loads were issued, and when each of the last ones was.
    issued: u64,
    issued_at: Vec<u32>,
    /// The loads that some instruction of this block has used, and those of earlier blocks.
    used: u64,
    used_before: u64,
    /// Issue slots since an instruction used one of these.
    slots_since_use: u32,
    /// When the last request was issued, and issue slots and cycles of the limiting units since.
    clock: u32,
    slots: u32,
    units: [u32; 3],
    /// When the block that is carried out was known to be.
    front: u32,
    /// Rounds of a loop that are one so far, and where it ends.
    rounds: (u32, u8),
    /// The loads that the access makes that is carried out.
    making: u64,
    /// Those of copies to shared memory that are in no group yet, and those of the groups that are not waited for.
    copying: u64,
    groups: VecDeque<u64>,
}

impl Dependence {
    pub(super) fn new(schedule: Arc<Schedule>, warps: usize) -> Self {
        let count = schedule.uses.count();
        let warp = OfWarp {
            loads: vec![0; count],
            ready: vec![0; count],
            issued_at: vec![0; LOADS as usize],
            ..OfWarp::default()
        };
        Self { schedule, warps: vec![warp; warps] }
    }

    /// A warp begins.
    pub(super) fn begin(&mut self, warp: usize) {
        let OfWarp { mut loads, mut ready, issued_at, .. } = std::mem::take(&mut self.warps[warp]);
        loads.fill(0);
        ready.fill(0);
        self.warps[warp] = OfWarp { loads, ready, issued_at, ..OfWarp::default() };
    }

    /// A warp issues the instruction at `at`, which is no request.
    pub(super) fn issue(&mut self, warp: usize, at: u32, partial: bool) {
        let cost = self.schedule.costs[at as usize];
        let (reads, writes) = (self.schedule.uses.reads(at), self.schedule.uses.writes(at));
        let kind = self.schedule.kinds[at as usize];
        let warp = &mut self.warps[warp];
        warp.spend(self.schedule.costs[at as usize]);
        let (needs, ready) = warp.operands(reads);
        warp.use_loads(needs);
        let ready = ready.max(warp.front) + u32::from(cost.latency);
        warp.write(writes, needs, ready, partial);
        match kind {
            Kind::Inside => {}
            Kind::Ends => warp.end_block(ready),
            Kind::Loops(of) => {
                let rounds = if warp.rounds.0 == at { warp.rounds.1 + 1 } else { 1 };
                warp.rounds = (at, rounds % of);
                if rounds == of {
                    warp.end_block(ready);
                }
            }
        }
    }

    /// A warp issues an instruction that none of its lanes carries out.
    pub(super) fn skip(&mut self, warp: usize, at: u32) {
        self.warps[warp].spend(self.schedule.costs[at as usize]);
    }

    /// What comes before an access that none of a warp's lanes makes.
    pub(super) fn skip_access(&mut self, warp: usize) -> Flow {
        self.warps[warp].flow(0, 0)
    }

    /// What a warp that came to the branch at `at` issues without a lane, if all of its lanes took it, or none did.
    pub(super) fn skipped(&self, at: u32, all_took_it: bool) -> Vec<u32> {
        self.schedule.skipped(at, all_took_it).to_vec()
    }

    /// Whether a warp has issued so many instructions since its last request that they are told by themselves.
    pub(super) fn is_long(&self, warp: usize) -> bool {
        self.warps[warp].slots >= MOST_SLOTS
    }

    /// A warp comes to the request at `at`: what comes before that. Loads behind a `deferred` one need not wait for its operands.
    pub(super) fn request(&mut self, warp: usize, at: u32, deferred: bool) -> Flow {
        let reads = self.schedule.uses.reads(at);
        let warp = &mut self.warps[warp];
        warp.making = 0;
        warp.spend(self.schedule.costs[at as usize]);
        let (needs, ready) = warp.operands(reads);
        if deferred {
            warp.use_loads(needs);
            return warp.flow(0, 0);
        }
        warp.flow(needs, ready)
    }

    /// A warp waits for all that it has used, at a barrier or its end: what comes before that.
    pub(super) fn wait(&mut self, warp: usize, at: u32) -> Flow {
        let warp = &mut self.warps[warp];
        warp.spend(self.schedule.costs[at as usize]);
        warp.end_block(warp.front);
        warp.flow(0, 0)
    }

    /// What a warp issued since its last request.
    pub(super) fn so_far(&mut self, warp: usize) -> Flow {
        let warp = &mut self.warps[warp];
        warp.end_block(warp.front);
        warp.flow(0, 0)
    }

    /// The request is a load.
    pub(super) fn load(&mut self, warp: usize) {
        let warp = &mut self.warps[warp];
        let number = (warp.issued % LOADS) as usize;
        let bit = 1 << number;
        warp.loads.iter_mut().for_each(|loads| *loads &= !bit);
        (warp.used, warp.used_before) = (warp.used & !bit, warp.used_before & !bit);
        warp.issued_at[number] = warp.clock;
        warp.issued += 1;
        warp.making |= bit;
    }

    /// The request is a copy to shared memory, for which nothing waits yet.
    pub(super) fn copy(&mut self, warp: usize) {
        let warp = &mut self.warps[warp];
        warp.copying |= std::mem::take(&mut warp.making);
    }

    /// A warp's copies so far make up a group.
    pub(super) fn commit(&mut self, warp: usize) {
        let warp = &mut self.warps[warp];
        let group = std::mem::take(&mut warp.copying);
        warp.groups.push_back(group);
        // Older ones have arrived.
        if warp.groups.len() > LOADS as usize {
            warp.groups.pop_front();
        }
    }

    /// A warp waits for its groups of copies, but for so many of the last ones.
    pub(super) fn await_copies(&mut self, warp: usize, but: u32) {
        let warp = &mut self.warps[warp];
        while warp.groups.len() > but as usize {
            let group = warp.groups.pop_front().unwrap_or_default();
            warp.use_loads(group);
        }
        if but == 0 {
            let copying = std::mem::take(&mut warp.copying);
            warp.use_loads(copying);
        }
        warp.end_block(warp.front);
    }

    /// What the request at `at` brought is in its registers once its loads have arrived, and so many cycles more.
    pub(super) fn deliver(&mut self, warp: usize, at: u32, latency: u32, partial: bool) {
        let writes = self.schedule.uses.writes(at);
        let warp = &mut self.warps[warp];
        let loads = std::mem::take(&mut warp.making);
        warp.write(writes, loads, warp.clock + latency, partial);
    }
}

impl OfWarp {
    fn spend(&mut self, cost: Cost) {
        self.slots += u32::from(cost.slots);
        self.slots_since_use += u32::from(cost.slots);
        for (cycles, unit) in self.units.iter_mut().zip(Unit::LIMITING) {
            *cycles += if cost.unit == unit { unit.cycles() } else { 0 };
        }
    }

    /// The loads that registers come from, and when they are there.
    fn operands(&self, reads: &[u32]) -> (u64, u32) {
        let both = |(loads, ready): (u64, u32), register: &u32| {
            let register = *register as usize;
            (loads | self.loads[register], ready.max(self.ready[register]))
        };
        reads.iter().fold((0, 0), both)
    }

    fn use_loads(&mut self, loads: u64) {
        if loads & !self.used & !self.used_before != 0 {
            self.slots_since_use = 0;
        }
        self.used |= loads;
    }

    /// Registers are written; those of some lanes keep what they were for the others.
    fn write(&mut self, writes: &[u32], loads: u64, ready: u32, partial: bool) {
        for register in writes {
            let register = *register as usize;
            if partial {
                self.loads[register] |= loads;
                self.ready[register] = self.ready[register].max(ready);
            } else {
                (self.loads[register], self.ready[register]) = (loads, ready);
            }
        }
    }

    /// No load behind here is issued before what was used before here has arrived.
    fn end_block(&mut self, known: u32) {
        self.used_before |= std::mem::take(&mut self.used);
        self.front = self.front.max(known + BRANCH);
    }

    /// A request is issued that has to have these loads, and what is ready then.
    fn flow(&mut self, needs: u64, ready: u32) -> Flow {
        let issue = self.units.iter().fold(self.slots, |most, unit| most.max(*unit));
        let at = (self.clock + issue).max(ready).max(self.front);
        let all = needs | self.used_before;
        let last = (0..LOADS).filter(|load| needs >> load & 1 == 1).map(|load| self.issued_at[load as usize]).max();
        let after = last.map_or(0, |last| ready.saturating_sub(last));
        let after = after.max(if self.used_before != 0 { self.slots_since_use } else { 0 });
        if all != 0 {
            for (loads, ready) in self.loads.iter_mut().zip(&mut self.ready) {
                if *loads & all == 0 {
                    *ready = (*ready).min(at);
                }
                *loads &= !all;
            }
            (self.used, self.used_before) = (self.used & !all, 0);
        }
        let flow = Flow {
            issue: issue.min(u16::MAX.into()) as u16,
            chain: (at - self.clock).min(u16::MAX.into()) as u16,
            // The last load comes first.
            needs: all.rotate_right((self.issued % LOADS) as u32).reverse_bits(),
            after: after.min(u16::MAX.into()) as u16,
        };
        (self.clock, self.front) = (at, self.front.max(at));
        (self.slots, self.units) = (0, [0; 3]);
        flow
    }
}

#[cfg(test)]
mod tests;
