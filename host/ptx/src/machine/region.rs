//! Accesses to global, shared and constant memory: where lanes go, what they move, and the request that they make.

use super::block::Runner;
use super::hand::Hand;
use crate::program::{Access, Action};
use crate::registers::{Class, Half, Lanes, Narrow, Pred, Wide};
use engine::{Element, Instruction, Kind, Look, Request, offset_of};
use gpu::suite::{Operation, Space};
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Where the lanes of an access go that were found one by one: their cells, and the request's parts.
pub(super) struct Cells {
    pub(super) cells: [*mut u8; 32],
    base: Option<u64>,
    start: u64,
    indices: [u64; 32],
}

impl Cells {
    pub(super) fn request(&self, instruction: Instruction, mask: u32) -> Request<'_> {
        Request::new(instruction, mask, self.base, self.start, &self.indices)
    }
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
        #[cfg(target_arch = "x86_64")]
        if self.has_vectors {
            // SAFETY: the processor has what that is built for.
            return unsafe { self.in_region_by_vectors(access, number, warp, mask, addresses, instruction) };
        }
        self.in_region_by_any(access, number, warp, mask, addresses, instruction)
    }

    /// The same, built for processors that [`has_vectors`](crate::registers::has_vectors) tells of.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,lzcnt,popcnt")]
    fn in_region_by_vectors(
        &mut self,
        access: &Access,
        number: usize,
        warp: usize,
        mask: u32,
        addresses: &[u64; 32],
        instruction: Instruction,
    ) -> bool {
        self.in_region_by_any(access, number, warp, mask, addresses, instruction)
    }

    /// The same, as it is built for any processor.
    #[inline(always)]
    fn in_region_by_any(
        &mut self,
        access: &Access,
        number: usize,
        warp: usize,
        mask: u32,
        addresses: &[u64; 32],
        instruction: Instruction,
    ) -> bool {
        if instruction.scope.is_some() && instruction.space == Space::Global {
            self.job.launch.wait_for(self.worker.turn());
        }
        let hand = self.hands[number];
        if let Some(mut offsets) = hand.offsets(mask, addresses, instruction) {
            if !hand.is_ready {
                self.hands[number].is_ready = self.job.memory().reach(hand.base, mask, &offsets);
            }
            // SAFETY: each active lane's cell is at hand, as wide as the access and aligned to it.
            unsafe { self.transfer(access, mask, |lane| hand.elements.wrapping_add(offsets[lane] as usize)) };
            offsets.iter_mut().for_each(|offset| *offset >>= instruction.log_width());
            return self.tell(number, warp, &Request::new(instruction, mask, Some(hand.base), hand.start, &offsets));
        }
        let Some(found) = self.resolved(number, warp, mask, addresses, instruction) else { return false };
        // SAFETY: each active lane's cell was resolved for the access's width, and is aligned to it.
        unsafe { self.transfer(access, mask, |lane| found.cells[lane]) };
        self.tell(number, warp, &found.request(instruction, mask))
    }

    /// Has a request looked at, and counted; false if it goes where a copy has not arrived, which is a finding.
    #[inline(always)]
    pub(super) fn tell(&mut self, number: usize, warp: usize, request: &Request<'_>) -> bool {
        if self.copies.under_way.is_any() && !self.have_arrived(warp, request) {
            return false;
        }
        self.look(warp, request);
        self.worker.count([0, number], warp as u32, request);
        if let Some(dependence) = &mut self.dependence
            && request.instruction.operation == Operation::Load
        {
            dependence.load(warp);
        }
        true
    }

    /// Has the sanitizer look at a request.
    #[inline(always)]
    pub(super) fn look(&mut self, warp: usize, request: &Request<'_>) {
        match self.worker.look() {
            Look::Away => {}
            Look::First => self.worker.look_first(request, request.mask, 32 * warp),
            Look::Second => {
                let worker = &mut self.worker;
                request.each(request.mask, |lane, address| {
                    worker.look_second(32 * warp + lane, request.instruction, address);
                });
            }
        }
    }

    /// The cells of any lanes, one by one; none if one of them finds no memory.
    #[cold]
    pub(super) fn resolved(
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
                Some(Element { address, .. }) if address.is_multiple_of(width) => self.read_only(instruction, address),
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
                false => memory.whole(base, width),
            };
            if let Some(hand) = hand {
                self.hands[number] = Hand {
                    space: Some(instruction.space),
                    base,
                    start,
                    bytes: hand.count * width,
                    elements: hand.elements,
                    is_ready: is_shared,
                };
            }
        }
        Some(Cells { cells, base, start, indices })
    }

    /// What is wrong with a store to constant memory.
    fn read_only(&self, instruction: Instruction, address: u64) -> Option<(Kind, String)> {
        if instruction.operation == Operation::Load || instruction.space == Space::Shared {
            return None;
        }
        let buffer = &self.job.launch.plan.buffers[self.job.memory().buffer_of(address)?];
        buffer.constant.then(|| {
            let byte = offset_of(address);
            let detail = format!("a thread writes byte {byte} of `{}`, which is constant memory", buffer.name);
            (Kind::OutOfBounds, detail)
        })
    }

    /// Moves the data of an access.
    ///
    /// # Safety
    /// The cells of the lanes in `mask` are as wide as the access and aligned to it.
    #[inline(always)]
    unsafe fn transfer(&mut self, access: &Access, mask: u32, cell: impl Fn(usize) -> *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            match (access.action, &access.parts[..], access.bytes) {
                (Action::Load, [Some((Class::Narrow, slot))], 4) => {
                    let target = self.registers.narrow.get_mut(*slot);
                    lanes_of(mask, |lane| target[lane] = (*cell(lane).cast::<AtomicU32>()).load(Relaxed));
                }
                (Action::Store, [Some((Class::Narrow, slot))], 4) => {
                    let source = self.registers.narrow.get(*slot);
                    lanes_of(mask, |lane| (*cell(lane).cast::<AtomicU32>()).store(source[lane], Relaxed));
                }
                _ => match access.width() {
                    ..=8 => self.transfer_words::<1>(access, mask, cell),
                    16 => self.transfer_words::<2>(access, mask, cell),
                    _ => self.transfer_words::<4>(access, mask, cell),
                },
            }
        }
    }

    /// The same by way of so many words a lane.
    ///
    /// # Safety
    /// As [`Runner::transfer`].
    #[inline(always)]
    unsafe fn transfer_words<const WORDS: usize>(
        &mut self,
        access: &Access,
        mask: u32,
        cell: impl Fn(usize) -> *mut u8,
    ) {
        let width = access.width() as usize;
        let mut data = [[0u64; 32]; WORDS];
        // SAFETY: the caller's promise.
        unsafe {
            match access.action {
                Action::Load => {
                    load(width, mask, &cell, &mut data);
                    self.deliver(access, mask, &data);
                }
                Action::Store => {
                    self.collect(access, &mut data);
                    store(width, mask, &cell, &data);
                }
                Action::Atomic(change) => {
                    let operands = access.operands.map(|operand| self.read(operand));
                    let kept = u64::MAX >> (64 - 8 * width.min(8));
                    for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
                        load(width, 1 << lane, &cell, &mut data);
                        let old = data.map(|word| word[lane]);
                        let [b, c] = [0, 1].map(|number: usize| operands[number][lane] & kept);
                        for (number, word) in data.iter_mut().enumerate() {
                            // Of several words, each has an operand of its own.
                            word[lane] = if number == 0 { change(old[0], b, c) } else { change(old[number], c, 0) };
                        }
                        store(width, 1 << lane, &cell, &data);
                        data.iter_mut().zip(old).for_each(|(word, old)| word[lane] = old);
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
    #[inline(always)]
    pub(super) fn deliver(&mut self, access: &Access, mask: u32, data: &[[u64; 32]]) {
        let bits = 8 * access.bytes;
        for (number, part) in access.parts.iter().enumerate() {
            let Some((class, slot)) = *part else { continue };
            let begin = number as u32 * bits;
            let (word, shift) = (&data[begin as usize / 64], begin % 64);
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
    pub(super) fn collect(&self, access: &Access, data: &mut [[u64; 32]]) {
        let bits = 8 * access.bytes;
        for (number, part) in access.parts.iter().enumerate() {
            let Some(part) = *part else { continue };
            let values = self.read(part);
            let begin = number as u32 * bits;
            let (word, shift) = (&mut data[begin as usize / 64], begin % 64);
            let kept = u64::MAX >> (64 - bits);
            for lane in 0..32 {
                word[lane] |= (values[lane] & kept) << shift;
            }
        }
    }
}

/// Does something for each of some lanes.
#[inline(always)]
fn lanes_of(mask: u32, mut each: impl FnMut(usize)) {
    if mask == u32::MAX {
        return (0..32).for_each(each);
    }
    let mut rest = mask;
    while rest != 0 {
        each(rest.trailing_zeros() as usize % 32);
        rest &= rest - 1;
    }
}

/// Loads what stands in the cells: in words, the first of each lane side by side.
///
/// # Safety
/// The cells of the lanes in `mask` are `width` bytes, aligned; their memory is only accessed atomically, or by this thread alone.
#[inline(always)]
unsafe fn load(width: usize, mask: u32, cell: &impl Fn(usize) -> *mut u8, data: &mut [[u64; 32]]) {
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            1 => lanes_of(mask, |lane| data[0][lane] = (*cell(lane).cast::<AtomicU8>()).load(Relaxed).into()),
            2 => lanes_of(mask, |lane| data[0][lane] = (*cell(lane).cast::<AtomicU16>()).load(Relaxed).into()),
            4 => lanes_of(mask, |lane| data[0][lane] = (*cell(lane).cast::<AtomicU32>()).load(Relaxed).into()),
            _ => {
                for (word, data) in data.iter_mut().enumerate() {
                    lanes_of(mask, |lane| data[lane] = (*cell(lane).cast::<AtomicU64>().add(word)).load(Relaxed));
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
pub(super) unsafe fn store(width: usize, mask: u32, cell: &impl Fn(usize) -> *mut u8, data: &[[u64; 32]]) {
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            1 => lanes_of(mask, |lane| (*cell(lane).cast::<AtomicU8>()).store(data[0][lane] as u8, Relaxed)),
            2 => lanes_of(mask, |lane| (*cell(lane).cast::<AtomicU16>()).store(data[0][lane] as u16, Relaxed)),
            4 => lanes_of(mask, |lane| (*cell(lane).cast::<AtomicU32>()).store(data[0][lane] as u32, Relaxed)),
            _ => {
                for (word, data) in data.iter().enumerate() {
                    lanes_of(mask, |lane| (*cell(lane).cast::<AtomicU64>().add(word)).store(data[lane], Relaxed));
                }
            }
        }
    }
}
