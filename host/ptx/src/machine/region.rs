//! Accesses to global, shared and constant memory: where lanes go, what they move, and the request that they make.

use super::block::Runner;
use super::hand::Hand;
use crate::program::{Access, Action};
use crate::registers::{Class, Half, Lanes, Narrow, Pred, Wide, blend};
use engine::{Element, Instruction, Kind, Look, Request};
use gpu::suite::Space;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Where the lanes of an access go: their cells, and the request's parts.
struct Cells {
    cells: [*mut u8; 32],
    base: Option<u64>,
    start: u64,
    indices: [u64; 32],
}

impl Runner {
    /// Carries out an access of the lanes in `mask` to `addresses` of one state space, and counts the request; false if that is a
    /// finding.
    pub(super) fn in_region(
        &mut self,
        access: &Access,
        number: usize,
        warp: usize,
        mask: u32,
        addresses: &[u64; 32],
        instruction: Instruction,
    ) -> bool {
        let cells = match self.at_hand(number, mask, addresses, instruction) {
            Some(cells) => cells,
            None => match self.resolved(number, warp, mask, addresses, instruction) {
                Some(cells) => cells,
                None => return false,
            },
        };
        if let Action::Atomic(_) = access.action
            && instruction.space == Space::Global
        {
            self.job.launch.wait_for(self.worker.turn());
        }
        // SAFETY: each active lane's cell was found for the access's width, and is aligned to it.
        unsafe { self.transfer(access, mask, &cells.cells) };
        let request = Request::new(instruction, mask, cells.base, cells.start, &cells.indices);
        match self.worker.look() {
            Look::Away => {}
            Look::First => self.worker.look_first(&request, mask, 32 * warp),
            Look::Second => {
                let worker = &mut self.worker;
                request.each(mask, |lane, address| worker.look_second(32 * warp + lane, instruction, address));
            }
        }
        self.worker.count([0, number], warp as u32, &request);
        true
    }

    /// The cells of lanes that all go to what the access found at hand the last time.
    #[inline]
    fn at_hand(&self, number: usize, mask: u32, addresses: &[u64; 32], instruction: Instruction) -> Option<Cells> {
        let hand = &self.hands[number];
        let width = instruction.width();
        if hand.space != Some(instruction.space) || hand.bytes < width {
            return None;
        }
        let most = hand.bytes - width;
        let mut offsets = [hand.first; 32];
        let mut beyond = false;
        let mut odd = 0;
        for lane in 0..32 {
            let is_active = mask >> lane & 1 != 0;
            let offset = addresses[lane].wrapping_sub(hand.base);
            offsets[lane] = if is_active { offset } else { hand.first };
            beyond |= offsets[lane].wrapping_sub(hand.first) > most;
            odd |= if is_active { offset } else { 0 };
        }
        if beyond || odd & (width - 1) != 0 {
            return None;
        }
        let shift = instruction.log_width();
        Some(Cells {
            cells: offsets.map(|offset| hand.elements.wrapping_add(offset as usize)),
            base: Some(hand.base),
            start: hand.start,
            indices: offsets.map(|offset| offset >> shift),
        })
    }

    /// The cells of any lanes, one by one; none if one of them finds no memory.
    #[cold]
    fn resolved(
        &mut self,
        number: usize,
        warp: usize,
        mask: u32,
        addresses: &[u64; 32],
        instruction: Instruction,
    ) -> Option<Cells> {
        let width = instruction.width();
        let memory = self.job.memory();
        let shared = &self.worker.shared;
        let is_shared = instruction.space == Space::Shared;
        let base_of = |address| if is_shared { shared.base_of(address) } else { memory.base_of(address) };
        let (mut cells, mut indices) = ([ptr::null_mut(); 32], [0; 32]);
        let first = mask.trailing_zeros() as usize % 32;
        let base = base_of(addresses[first]);
        let mut together = true;
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            let found = match is_shared {
                true => shared.resolve(addresses[lane], 0, width),
                false => memory.resolve(addresses[lane], 0, width),
            };
            let outside = || self.worker.outside(instruction, addresses[lane], 0);
            let wrong = match found {
                None => Some(outside()),
                Some(Element { address, .. }) if address.is_multiple_of(width) => None,
                Some(Element { address, .. }) => {
                    let inside = is_shared || memory.contains(address, width);
                    Some(if inside { self.worker.misaligned(instruction, address) } else { outside() })
                }
            };
            if let Some((kind, detail)) = wrong {
                self.find(warp, 1 << lane, kind, instruction.pc, detail);
                return None;
            }
            let element = found?;
            together &= base_of(addresses[lane]) == base;
            (cells[lane], indices[lane]) = (element.cell(), element.address >> instruction.log_width());
        }
        let base = base.filter(|_| together);
        let mut start = 0;
        if let Some(base) = base {
            start = if is_shared { shared.place(base) } else { base };
            let begin = start >> instruction.log_width();
            indices.iter_mut().for_each(|index| *index = index.wrapping_sub(begin));
            let hand = match is_shared {
                true => shared.at_hand(base, width),
                false => memory.at_hand(base, addresses[first], width),
            };
            if let Some(hand) = hand {
                self.hands[number] = Hand {
                    space: Some(instruction.space),
                    base,
                    start,
                    first: hand.first * width,
                    bytes: hand.count * width,
                    elements: hand.elements,
                };
            }
        }
        Some(Cells { cells, base, start, indices })
    }

    /// Moves the data of an access.
    ///
    /// # Safety
    /// The cells of the lanes in `mask` are as wide as the access and aligned to it.
    unsafe fn transfer(&mut self, access: &Access, mask: u32, cells: &[*mut u8; 32]) {
        let width = access.width() as usize;
        let mut data = [[0u64; 32]; 4];
        // SAFETY: the caller's promise.
        unsafe {
            match access.action {
                Action::Load => {
                    load(width, mask, cells, &mut data);
                    self.deliver(access, mask, &data);
                }
                Action::Store => {
                    self.collect(access, &mut data);
                    store(width, mask, cells, &data);
                }
                Action::Atomic(change) => {
                    let [b, c] = access.operands.map(|operand| self.read(operand));
                    let kept = u64::MAX >> (64 - 8 * width.min(8));
                    for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
                        let lane_alone = 1 << lane;
                        load(width, lane_alone, cells, &mut data);
                        let old = data[0][lane];
                        data[0][lane] = change(old, b[lane] & kept, c[lane] & kept);
                        store(width, lane_alone, cells, &data);
                        data[0][lane] = old;
                    }
                    self.deliver(access, mask, &data);
                }
            }
        }
    }

    /// A register's lanes, in 64 bits each.
    #[inline(always)]
    fn read(&self, (class, slot): (Class, u32)) -> [u64; 32] {
        match class {
            Class::Wide => *self.registers.wide.get(slot),
            Class::Half | Class::Narrow => self.registers.narrow.get(slot).map(u64::from),
            Class::Pred => [0; 32],
        }
    }

    /// What was loaded, into the registers of the access.
    #[inline]
    pub(super) fn deliver(&mut self, access: &Access, mask: u32, data: &[[u64; 32]; 4]) {
        if let ([Some((Class::Narrow, slot))], 4) = (&access.parts[..], access.bytes) {
            return blend(self.registers.narrow.get_mut(*slot), mask, &data[0].map(|word| word as u32));
        }
        let bits = 8 * access.bytes;
        for (number, part) in access.parts.iter().enumerate() {
            let Some((class, slot)) = *part else { continue };
            let begin = number as u32 * bits;
            let (word, shift) = (&data[begin as usize / 64 % 4], begin % 64);
            let above = 64 - bits;
            let values = match access.is_signed {
                true => word.map(|word| ((word >> shift << above).cast_signed() >> above).cast_unsigned()),
                false => word.map(|word| word >> shift << above >> above),
            };
            let registers = &mut self.registers;
            match class {
                Class::Pred => Pred::set(registers, slot, mask, &values.map(|value| value != 0)),
                Class::Half => Half::set(registers, slot, mask, &values.map(|value| value as u32)),
                Class::Narrow => Narrow::set(registers, slot, mask, &values.map(|value| value as u32)),
                Class::Wide => Wide::set(registers, slot, mask, &values),
            }
        }
    }

    /// What is to be stored, from the registers of the access.
    #[inline]
    pub(super) fn collect(&self, access: &Access, data: &mut [[u64; 32]; 4]) {
        let bits = 8 * access.bytes;
        for (number, part) in access.parts.iter().enumerate() {
            let Some(part) = *part else { continue };
            let values = self.read(part);
            let begin = number as u32 * bits;
            let (word, shift) = (&mut data[begin as usize / 64 % 4], begin % 64);
            let kept = u64::MAX >> (64 - bits);
            for lane in 0..32 {
                word[lane] |= (values[lane] & kept) << shift;
            }
        }
    }

    /// A finding in memory that the engine does not know.
    #[cold]
    pub(super) fn missed(&mut self, warp: usize, lane: usize, instruction: Instruction, detail: String) {
        self.find(warp, 1 << lane, Kind::OutOfBounds, instruction.pc, detail);
    }
}

/// Loads what stands in the cells: in words, the first of each lane side by side.
///
/// # Safety
/// The cells of the lanes in `mask` are `width` bytes, aligned; their memory is only accessed atomically, or by this thread alone.
#[inline(always)]
unsafe fn load(width: usize, mask: u32, cells: &[*mut u8; 32], data: &mut [[u64; 32]; 4]) {
    for lane in 0..32 {
        if mask >> lane & 1 == 0 {
            continue;
        }
        let cell = cells[lane];
        // SAFETY: the caller's promise.
        unsafe {
            match width {
                1 => data[0][lane] = (*cell.cast::<AtomicU8>()).load(Relaxed).into(),
                2 => data[0][lane] = (*cell.cast::<AtomicU16>()).load(Relaxed).into(),
                4 => data[0][lane] = (*cell.cast::<AtomicU32>()).load(Relaxed).into(),
                _ => {
                    for word in 0..width / 8 {
                        data[word % 4][lane] = (*cell.cast::<AtomicU64>().add(word)).load(Relaxed);
                    }
                }
            }
        }
    }
}

/// Stores to the cells.
///
/// # Safety
/// As [`load`].
#[inline(always)]
unsafe fn store(width: usize, mask: u32, cells: &[*mut u8; 32], data: &[[u64; 32]; 4]) {
    for lane in 0..32 {
        if mask >> lane & 1 == 0 {
            continue;
        }
        let cell = cells[lane];
        // SAFETY: the caller's promise.
        unsafe {
            match width {
                1 => (*cell.cast::<AtomicU8>()).store(data[0][lane] as u8, Relaxed),
                2 => (*cell.cast::<AtomicU16>()).store(data[0][lane] as u16, Relaxed),
                4 => (*cell.cast::<AtomicU32>()).store(data[0][lane] as u32, Relaxed),
                _ => {
                    for word in 0..width / 8 {
                        (*cell.cast::<AtomicU64>().add(word)).store(data[word % 4][lane], Relaxed);
                    }
                }
            }
        }
    }
}
