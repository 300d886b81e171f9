//! An access: to which memory its lanes go, and those kinds of memory that make no request: a thread's own, and parameters.

use super::block::Runner;
use crate::program::{Access, Action, LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, Where};
use crate::registers::Class;
use engine::Kind;
use std::sync::Arc;

impl Runner {
    /// Carries out an access of the lanes in `mask`, which are some; false if that is a finding.
    pub(super) fn access(&mut self, number: usize, warp: usize, mask: u32) -> bool {
        let program = Arc::clone(&self.job.program);
        let access = &program.accesses[number];
        let addresses = self.addresses(access);
        let [global, shared, constant] = access.instructions;
        match access.space {
            Where::Global => self.in_region(access, number, warp, mask, &addresses, global),
            Where::Constant => self.in_region(access, number, warp, mask, &addresses, constant),
            Where::Shared => self.in_region(access, number, warp, mask, &addresses, shared),
            Where::Local => self.in_local(access, warp, mask, &addresses),
            Where::Parameter => self.in_parameters(access, warp, mask, &addresses),
            Where::Generic => {
                // Each kind of memory that lanes go to gets a request of its own.
                let lanes = |is_it: fn(u64) -> bool| {
                    (0..32).filter(|lane| is_it(addresses[*lane])).fold(0u32, |lanes, lane| lanes | 1 << lane) & mask
                };
                let of_shared = lanes(|address| address.wrapping_sub(SHARED_WINDOW) < 1 << 40);
                let of_local = lanes(|address| address.wrapping_sub(LOCAL_WINDOW) < 1 << 40);
                let of_parameters = lanes(|address| address.wrapping_sub(PARAMETER_WINDOW) < 1 << 40);
                let of_global = mask & !of_shared & !of_local & !of_parameters;
                let from = |begin: u64| addresses.map(|address| address.wrapping_sub(begin));
                (of_global == 0 || self.in_region(access, number, warp, of_global, &addresses, global))
                    && (of_shared == 0 || self.in_region(access, number, warp, of_shared, &from(SHARED_WINDOW), shared))
                    && (of_local == 0 || self.in_local(access, warp, of_local, &from(LOCAL_WINDOW)))
                    && (of_parameters == 0 || self.in_parameters(access, warp, of_parameters, &addresses))
            }
        }
    }

    /// Where all lanes go by an access.
    #[inline(always)]
    pub(super) fn addresses(&self, access: &Access) -> [u64; 32] {
        let offset = access.offset.cast_unsigned();
        match access.address {
            (Class::Wide, slot) => self.registers.wide.get(slot).map(|address| address.wrapping_add(offset)),
            (_, slot) => self.registers.narrow.get(slot).map(|address| u64::from(address.wrapping_add(offset as u32))),
        }
    }

    /// The threads' own memory, which nobody else sees.
    fn in_local(&mut self, access: &Access, warp: usize, mask: u32, addresses: &[u64; 32]) -> bool {
        let size = self.job.program.local_bytes;
        let width = access.width();
        let mut data = [[0u64; 32]; 4];
        if let Action::Store = access.action {
            self.collect(access, &mut data);
        }
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            let address = addresses[lane];
            let inside = address.checked_add(width).is_some_and(|end| end <= size);
            let what = format_args!("a thread accesses {width} bytes at byte {address} of its local memory");
            if !inside {
                self.wrong(warp, lane, access, Kind::OutOfBounds, format!("{what}, which has {size}"));
                return false;
            }
            if !address.is_multiple_of(width) {
                self.wrong(warp, lane, access, Kind::Misaligned, format!("{what}, which is no multiple of {width}"));
                return false;
            }
            let begin = (32 * warp + lane) as u64 * size + address;
            match access.action {
                Action::Load => {
                    let each = access.bytes as usize;
                    let elements = (0..width as usize).step_by(each);
                    if let Some(at) = elements.into_iter().find(|at| !self.is_marked(begin as usize + at, each)) {
                        let at = address + at as u64;
                        let detail = format!("a thread reads byte {at} of its local memory, which it has not written");
                        self.wrong(warp, lane, access, Kind::Uninitialized, detail);
                        return false;
                    }
                }
                _ => self.mark_local(begin as usize, width as usize),
            }
            let cell = &mut self.local[begin as usize..][..width as usize];
            match access.action {
                Action::Load => read(cell, lane, &mut data),
                Action::Store => write(cell, lane, &data),
                Action::Atomic(_) => {
                    let detail = "a thread changes its local memory by an atomic, which there are none for".to_owned();
                    self.wrong(warp, lane, access, Kind::OutOfBounds, detail);
                    return false;
                }
            }
        }
        if let Action::Load = access.action {
            self.deliver(access, mask, &data);
        }
        true
    }

    /// The entry's parameters, which are only read.
    fn in_parameters(&mut self, access: &Access, warp: usize, mask: u32, addresses: &[u64; 32]) -> bool {
        let width = access.width();
        let mut data = [[0u64; 32]; 4];
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            let address = addresses[lane].wrapping_sub(PARAMETER_WINDOW);
            if !address.is_multiple_of(u64::from(access.bytes)) {
                let (bytes, kind) = (access.bytes, Kind::Misaligned);
                let detail = format!(
                    "a thread accesses elements of {bytes} bytes at byte {address} of the parameters, which is no multiple of {bytes}"
                );
                self.wrong(warp, lane, access, kind, detail);
                return false;
            }
            let cell = usize::try_from(address)
                .ok()
                .and_then(|begin| self.job.parameters.get(begin..begin.checked_add(width as usize)?));
            match (cell, access.action) {
                (Some(cell), Action::Load) => read(cell, lane, &mut data),
                _ => {
                    let detail = format!(
                        "a thread accesses {width} bytes at byte {address} of the parameters, which are {} bytes and only read",
                        self.job.parameters.len()
                    );
                    self.wrong(warp, lane, access, Kind::OutOfBounds, detail);
                    return false;
                }
            }
        }
        self.deliver(access, mask, &data);
        true
    }
}

impl Runner {
    /// A finding in memory that the engine does not know.
    #[cold]
    fn wrong(&mut self, warp: usize, lane: usize, access: &Access, kind: Kind, detail: String) {
        self.find(warp, 1 << lane, kind, access.instructions[0].pc, detail);
    }
}

fn read(cell: &[u8], lane: usize, data: &mut [[u64; 32]; 4]) {
    for (word, bytes) in data.iter_mut().zip(cell.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        word[lane] = u64::from_le_bytes(whole);
    }
}

fn write(cell: &mut [u8], lane: usize, data: &[[u64; 32]; 4]) {
    for (word, bytes) in data.iter().zip(cell.chunks_mut(8)) {
        bytes.copy_from_slice(&word[lane].to_le_bytes()[..bytes.len()]);
    }
}

#[cfg(test)]
mod tests;
