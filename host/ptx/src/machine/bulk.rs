//! Copies in bulk: what one thread asks for, as requests of 16 bytes for each lane of its warp.

use super::block::Runner;
use crate::program::{Bulk, Where};
use engine::{Kind, Pc};
use std::sync::Arc;

/// Bytes of a lane, and what sizes are a multiple of.
const WIDTH: u64 = 16;

impl Runner {
    /// Copies what each lane in `active` asks for: false if that is a finding.
    pub(super) fn bulk(&mut self, bulk: Bulk, warp: usize, active: u32, pc: Pc) -> bool {
        let program = Arc::clone(&self.job.program);
        let [load, store] = [bulk.load, bulk.store].map(|number| &program.accesses[number as usize]);
        let [from, to] = [load, store].map(|access| self.addresses(access));
        // The last warp may have fewer than 32.
        let threads = u64::from(self.job.launch.plan.launch.block_threads());
        let lanes = (threads - 32 * warp as u64).min(32);
        let sizes = *self.registers.narrow.get(bulk.size);
        for lane in (0..32).filter(|lane| active >> lane & 1 == 1) {
            let size = u64::from(sizes[lane]);
            if !size.is_multiple_of(WIDTH) {
                let detail = format!("a thread copies {size} bytes in bulk, which is no multiple of {WIDTH}");
                self.find(warp, 1 << lane, Kind::Misaligned, pc, detail);
                return false;
            }
            for begin in (0..size).step_by((lanes * WIDTH) as usize) {
                let count = ((size - begin) / WIDTH).min(lanes);
                let mask = u32::MAX >> (32 - count);
                let at = |base: u64| std::array::from_fn(|number| base.wrapping_add(begin + WIDTH * number as u64));
                self.warps[warp].steps += 1;
                for (access, number, base) in [(load, bulk.load, from[lane]), (store, bulk.store, to[lane])] {
                    let [global, shared, _] = access.instructions;
                    let instruction = if access.space == Where::Shared { shared } else { global };
                    if !self.in_region(access, number as usize, warp, mask, &at(base), instruction) {
                        return false;
                    }
                }
            }
        }
        true
    }
}
