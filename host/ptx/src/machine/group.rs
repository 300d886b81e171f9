//! `wgmma`: matrices in shared memory, as descriptors say where they are.
//!
//! A descriptor has 18 bits of an address: it leads to dynamic shared memory, or to the first static array of a block that has none.

use super::block::Runner;
use crate::matrix::{Described, Factor, Fragment, Product, Role};
use engine::{Instruction, Kind, Look, Pc, Request};
use gpu::suite::{Operation, Space};

/// Where a matrix in shared memory is, as its descriptor says.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    start: u64,
    /// Bytes from one tile to the next one.
    leading: u64,
    stride: u64,
    /// Bytes of the rows that are swizzled; 16 if they are not.
    row: u64,
}

impl Descriptor {
    fn of(word: u64) -> Self {
        let bytes = |shift: u32| (word >> shift & 0x3FFF) << 4;
        let row = [16, 128, 64, 32][(word >> 62) as usize];
        Self { start: bytes(0), leading: bytes(16), stride: bytes(32), row }
    }

    /// The address of a byte: of row `line` (or column, of the right matrix), and `along` bytes along `k`. Of a transposed matrix `line`
    /// is in bytes, and `along` a number.
    fn address(self, line: u64, along: u64, transposes: bool) -> u64 {
        let Self { start, leading, stride, row } = self;
        let behind = match (transposes, row) {
            (false, 16) => line % 8 * 16 + line / 8 * stride + along / 16 * leading + along % 16,
            (false, _) => line % 8 * row + line / 8 * stride + along,
            (true, 16) => line % 16 + line / 16 * stride + along % 8 * 16 + along / 8 * leading,
            (true, _) => line % row + line / row * leading + along % 8 * row + along / 8 * stride,
        };
        let address = start + behind;
        // The number of a row among eight turns its pieces of 16 bytes round.
        address ^ (address >> 7 & (row / 16 - 1)) << 4
    }
}

impl Runner {
    /// A warp's 16 rows of a product: false if that is a finding.
    pub(super) fn multiply_group(
        &mut self,
        product: Product,
        factors: &[Described; 2],
        sum: &Fragment,
        adds: u32,
        warp: usize,
        pc: Pc,
    ) -> bool {
        let mut all = Vec::new();
        for described in factors {
            let found = match &described.factor {
                Factor::Registers(fragment) => Some(self.gathered(fragment)),
                Factor::Memory(slot, transposes) => self.described(described, *slot, *transposes, warp, pc),
            };
            let Some(mut found) = found else { return false };
            if described.is_negative {
                found.iter_mut().for_each(|value| *value = -*value);
            }
            all.push(found);
        }
        let [left, right] = &all[..] else { return true };
        let mut to = match self.registers.preds.get(adds) & 1 {
            1 => self.gathered(sum),
            _ => vec![0.0; (sum.layout.rows * sum.layout.columns) as usize],
        };
        super::matrix::add_product(product, left, right, &mut to, [factors[0].layout.columns, sum.layout.columns]);
        self.scatter(product, sum, &to);
        true
    }

    /// The elements of a matrix in shared memory, row by row.
    fn described(
        &mut self,
        described: &Described,
        slot: u32,
        transposes: bool,
        warp: usize,
        pc: Pc,
    ) -> Option<Vec<f64>> {
        let layout = described.layout;
        let bytes = u64::from(layout.number.bits() / 8);
        let descriptor = Descriptor::of(self.registers.wide.get(slot)[0]);
        let base = if self.job.launch.plan.launch.shared_bytes > 0 { 0 } else { 1 << 20 };
        let instruction = Instruction::new(pc, Space::Shared, Operation::Load, bytes.trailing_zeros() as u8);
        let first = if layout.role == Role::Left { 16 * (warp as u64 % 4) } else { 0 };
        let mut places = Vec::new();
        let mut all = Vec::new();
        for (row, column) in (0..layout.rows).flat_map(|row| (0..layout.columns).map(move |column| (row, column))) {
            let (line, along) = match layout.role {
                Role::Right => (u64::from(column), u64::from(row)),
                _ => (u64::from(row) + first, u64::from(column)),
            };
            let address = match transposes {
                true => descriptor.address(line * bytes, along, true),
                false => descriptor.address(line, along * bytes, false),
            };
            let Some(element) = self.worker.shared.resolve(base + address, 0, bytes) else {
                let (kind, detail) = self.worker.outside(instruction, base + address, 0);
                self.find(warp, 1, kind, pc, detail);
                return None;
            };
            if !element.address.is_multiple_of(bytes) {
                let (kind, detail) = self.worker.misaligned(instruction, element.address);
                self.find(warp, 1, kind, pc, detail);
                return None;
            }
            let mut word = 0u64;
            // SAFETY: it was resolved for so many bytes, and is aligned to them.
            unsafe { element.load(bytes as usize, (&raw mut word).cast()) };
            all.push(layout.number.value(u64::from_le(word)));
            places.push(element.address);
        }
        self.looked_at(warp, instruction, &places).then_some(all)
    }

    /// Has the sanitizer look at what was read, as if each lane had read its part: false if that is a finding.
    fn looked_at(&mut self, warp: usize, instruction: Instruction, places: &[u64]) -> bool {
        if self.worker.look() == Look::Away {
            return true;
        }
        for places in places.chunks(32) {
            let mut indices = [0; 32];
            indices.iter_mut().zip(places).for_each(|(index, place)| *index = place >> instruction.log_width());
            let mask = u32::MAX >> (32 - places.len());
            let request = Request::new(instruction, mask, None, 0, &indices);
            if self.copies.under_way.is_any() && !self.have_arrived(warp, &request) {
                return false;
            }
            self.look(warp, &request);
        }
        true
    }

    /// All lanes of the warps that make a product together are to be there.
    pub(super) fn is_group(&mut self, warp: usize, pc: Pc) -> bool {
        let is_whole = self.warps.len() >= (warp / 4 + 1) * 4;
        if !is_whole {
            let detail = "four warps carry this out together, and the block ends before the fourth".to_owned();
            self.find(warp, u32::MAX, Kind::DivergentWarp, pc, detail);
        }
        is_whole
    }
}

#[cfg(test)]
mod tests;
