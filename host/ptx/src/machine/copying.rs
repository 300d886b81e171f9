//! Copies from global to shared memory that go on while the kernel does: what they bring is there when it is waited for.
//!
//! A thread puts its copies into groups, one after another, and waits for all groups but the last ones. Until then nobody may touch what
//! a copy is to bring, and from then on the copy is a store by its thread, which barriers order as any other.

use super::block::Runner;
use super::copies::Copy;
use super::region::store;
use crate::program::Ahead;
use engine::{Look, Pc, Request};
use gpu::suite::Space;
use std::sync::Arc;

/// Copies of a block that are kept under way, at most: of more the first arrives though nobody waits for it.
const MOST: usize = 1 << 14;

impl Runner {
    /// Begins a copy: false if that is a finding.
    pub(super) fn copy(&mut self, copy: Ahead, warp: usize, active: u32, pc: Pc) -> bool {
        let program = Arc::clone(&self.job.program);
        let [load, to] = [copy.load, copy.store].map(|number| &program.accesses[number as usize]);
        let width = load.width();
        let sizes = self.sizes(copy, active, width);
        let lanes = |is_it: &dyn Fn(u64) -> bool| {
            (0..32).filter(|lane| is_it(sizes[*lane])).fold(0u32, |lanes, lane| lanes | 1 << lane) & active
        };
        let whole = lanes(&|size| size == width);
        let mut data = [[0; 32]; 2];
        if whole != 0 {
            if !self.access(copy.load as usize, warp, whole) {
                return false;
            }
            self.collect(to, &mut data);
        }
        data.iter_mut().for_each(|word| {
            (0..32).filter(|lane| whole >> lane & 1 == 0).for_each(|lane| word[lane] = 0);
        });
        let addresses = self.addresses(load);
        let part = lanes(&|size| size != 0 && size != width);
        for lane in (0..32).filter(|lane| part >> lane & 1 == 1) {
            for at in 0..sizes[lane] {
                let Some(element) = self.job.memory().resolve(addresses[lane].wrapping_add(at), 0, 1) else {
                    let (kind, detail) = self.worker.outside(load.instructions[0], addresses[lane].wrapping_add(at), 0);
                    self.find(warp, 1 << lane, kind, pc, detail);
                    return false;
                };
                let mut byte = 0u8;
                // SAFETY: it was resolved for a byte.
                unsafe { element.load(1, &raw mut byte) };
                data[at as usize / 8][lane] |= u64::from(byte) << (8 * (at % 8));
            }
        }
        let instruction = to.instructions[1];
        let addresses = self.addresses(to);
        let Some(found) = self.resolved(copy.store as usize, warp, active, &addresses, instruction) else {
            return false;
        };
        let request = found.request(instruction, active);
        let places = request.addresses();
        if !self.tell(copy.store as usize, warp, &request) {
            return false;
        }
        if self.copies.copies.len() >= MOST {
            let first = self.copies.copies.remove(0);
            self.arrive(&first, first.lanes);
        }
        let groups = self.copies.groups[warp];
        self.copies.copies.push(Copy { warp, lanes: active, groups, cells: found.cells, places, data, instruction });
        if self.worker.look() != Look::Away {
            for lane in (0..32).filter(|lane| active >> lane & 1 == 1) {
                self.copies.under_way.watch(places[lane], width, Some(((32 * warp + lane) as u32, pc)));
            }
        }
        true
    }

    /// How many bytes each lane reads.
    fn sizes(&self, copy: Ahead, active: u32, width: u64) -> [u64; 32] {
        let ignored = copy.ignore.map_or(0, |slot| *self.registers.preds.get(slot));
        let sizes = copy.size.map(|slot| *self.registers.narrow.get(slot));
        std::array::from_fn(|lane| match (active & !ignored) >> lane & 1 {
            1 => sizes.map_or(width, |sizes| u64::from(sizes[lane]).min(width)),
            _ => 0,
        })
    }

    /// The lanes wait for their groups of copies, but for so many of the last ones.
    pub(super) fn await_copies(&mut self, warp: usize, active: u32, but: Option<u32>) {
        let mut copies = std::mem::take(&mut self.copies.copies);
        let groups = self.copies.groups[warp];
        for copy in copies.iter_mut().filter(|copy| copy.warp == warp) {
            let is_over = |lane: &usize| but.is_none_or(|but| copy.groups[*lane].saturating_add(but) < groups[*lane]);
            let lanes = (0..32).filter(is_over).fold(0, |lanes, lane| lanes | 1 << lane) & active & copy.lanes;
            copy.lanes &= !lanes;
            self.arrive(copy, lanes);
        }
        copies.retain(|copy| copy.lanes != 0);
        self.copies.copies = copies;
    }

    /// A copy of some lanes arrives.
    fn arrive(&mut self, copy: &Copy, lanes: u32) {
        if lanes == 0 {
            return;
        }
        let width = copy.instruction.width();
        let data = &copy.data[..width.div_ceil(8) as usize];
        // SAFETY: the cells of the lanes were resolved for the copy, and are aligned to its width.
        unsafe { store(width as usize, lanes, &|lane: usize| copy.cells[lane], data) };
        let indices = copy.places.map(|place| place >> copy.instruction.log_width());
        self.look(copy.warp, &Request::new(copy.instruction, lanes, None, 0, &indices));
        if self.copies.under_way.is_any() {
            for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
                self.copies.under_way.watch(copy.places[lane], width, None);
            }
        }
    }

    /// Whether a request goes where no copy is under way to: a finding if not.
    #[cold]
    #[inline(never)]
    pub(super) fn have_arrived(&mut self, warp: usize, request: &Request<'_>) -> bool {
        if request.instruction.space != Space::Shared {
            return true;
        }
        let width = request.instruction.width();
        let (under_way, mut found) = (&self.copies.under_way, None);
        request.each(request.mask, |lane, place| {
            found = found.or_else(|| under_way.find(place, width).map(|copy| (lane, place, copy)));
        });
        let Some((lane, place, copy)) = found else { return true };
        self.worker.find_under_way(32 * warp + lane, request.instruction, place, copy);
        false
    }
}

#[cfg(test)]
mod tests;
