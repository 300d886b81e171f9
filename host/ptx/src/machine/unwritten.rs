//! Registers and local memory that are read before they are written.

use super::block::Runner;
use crate::program::Op;
use crate::watch::{Makes, Use};
use engine::{Kind, Look};

impl Runner {
    /// Whether what nobody wrote is looked for.
    pub(super) fn watches(&self) -> bool {
        self.worker.look() != Look::Away
    }

    /// Nothing is written yet.
    pub(super) fn forget_writes(&mut self) {
        self.assigned.fill(0);
        self.local_marks.fill(0);
    }

    /// An instruction that uses registers that are watched is carried out next, by the lanes in `active`, which are those of `mask` that
    /// its guard lets: false if one goes by what nobody wrote, which is a finding.
    #[cold]
    #[inline(never)]
    pub(super) fn uses_registers(&mut self, warp: usize, at: u32, mask: u32, active: u32) -> bool {
        let program = std::sync::Arc::clone(&self.job.program);
        let Some(Use { guard, reads, writes, makes }) = program.watch.uses.get(&at) else { return true };
        let count = program.watch.names.len();
        let assigned = &mut self.assigned[warp * count..][..count];
        let wrong = |register: u32, lanes: u32, assigned: &[u32]| {
            let lanes = lanes & !assigned[register as usize];
            (lanes != 0).then_some((register, lanes))
        };
        let mut found = guard.and_then(|guard| wrong(guard, mask, assigned));
        let mut good = u32::MAX;
        match makes {
            None | Some(Makes::Shuffled { .. }) => {
                found = found.or_else(|| reads.iter().find_map(|register| wrong(*register, active, assigned)))
            }
            Some(Makes::OfAll) => good = reads.iter().fold(good, |good, register| good & assigned[*register as usize]),
            Some(Makes::OfParts) => {
                good = reads.iter().fold(0, |good, register| good | assigned[*register as usize]);
                good |= if reads.is_empty() { u32::MAX } else { 0 };
            }
            Some(Makes::Chosen { predicate, of }) => {
                let Op::Alu { slots, .. } = program.code[at as usize].op else { return true };
                let chosen = *self.registers.preds.get(slots[3]);
                let [one, other, predicate] = [of[0], of[1], *predicate]
                    .map(|register| register.map_or(u32::MAX, |register| assigned[register as usize]));
                good = predicate & (chosen & one | !chosen & other);
            }
        }
        for register in writes {
            let assigned = &mut assigned[*register as usize];
            *assigned = *assigned & !active | active & good;
        }
        if let (Some(Makes::Shuffled { source, target }), Op::Exchange(number)) = (makes, program.code[at as usize].op)
        {
            let (exchange, sources) = (&program.exchanges[number as usize], assigned[*source as usize]);
            let is_good = |lane: &usize| sources >> self.source_lane(exchange, *lane).0 & 1 == 1;
            let good = (0..32).filter(is_good).fold(0, |good, lane| good | 1 << lane);
            let assigned = &mut self.assigned[warp * count..][*target as usize];
            *assigned = *assigned & !active | active & good;
        }
        let Some((register, lanes)) = found else { return true };
        let name = program.watch.names[register as usize];
        let detail = format!("a thread goes by `{name}`, which holds what no instruction has written");
        self.find(warp, lanes, Kind::Uninitialized, program.code[at as usize].pc, detail);
        false
    }

    /// A lane writes bytes of the threads' local memory, from number `begin` on.
    pub(super) fn mark_local(&mut self, begin: usize, bytes: usize) {
        for byte in begin..begin + bytes {
            if let Some(marks) = self.local_marks.get_mut(byte / 8) {
                *marks |= 1 << (byte % 8);
            }
        }
    }

    /// Bytes of the threads' local memory are as if nobody had written them.
    pub(super) fn unmark_local(&mut self, begin: usize, bytes: usize) {
        for byte in begin..begin + bytes {
            if let Some(marks) = self.local_marks.get_mut(byte / 8) {
                *marks &= !(1 << (byte % 8));
            }
        }
    }

    /// Whether any of some bytes of the threads' local memory has been written, as far as that is watched.
    pub(super) fn is_marked(&self, begin: usize, bytes: usize) -> bool {
        self.local_marks.is_empty()
            || (begin..begin + bytes).any(|byte| self.local_marks[byte / 8] >> (byte % 8) & 1 == 1)
    }
}

#[cfg(test)]
mod tests;
