//! One request: what a warp asks for with one instruction.

use crate::instruction::Instruction;
use crate::pattern::even_step;

/// The lanes in `mask` go to elements at `indices` from the address `start` on. Addresses are simulated global ones, or places in
/// shared memory; those of lanes not in `mask` mean nothing.
#[derive(Debug)]
pub struct Request<'a> {
    /// The instruction.
    pub instruction: Instruction,
    /// The active lanes.
    pub mask: u32,
    /// Bytes from each lane's address to the next one's, if all lanes are active and those are the same throughout.
    pub step: Option<i64>,
    /// The pointer that all lanes came by, if it is the same.
    pub base: Option<u64>,
    start: u64,
    indices: &'a [u64; 32],
}

impl<'a> Request<'a> {
    /// A request whose lanes count their indices from `start` on.
    #[inline(always)]
    pub fn new(instruction: Instruction, mask: u32, base: Option<u64>, start: u64, indices: &'a [u64; 32]) -> Self {
        let shift = instruction.log_width();
        let step = if mask == u32::MAX { even_step(indices).map(|step| step << shift) } else { None };
        Self { instruction, mask, step, base, start, indices }
    }

    /// Where a lane goes.
    #[inline(always)]
    pub fn address(&self, lane: usize) -> u64 {
        self.start.wrapping_add(self.indices[lane] << self.instruction.log_width())
    }

    /// Where the lanes go.
    #[inline(always)]
    pub fn addresses(&self) -> [u64; 32] {
        std::array::from_fn(|lane| self.address(lane))
    }

    /// Tells `look` each of `lanes`, which are active, and where it goes.
    #[inline(always)]
    pub fn each(&self, lanes: u32, mut look: impl FnMut(usize, u64)) {
        if lanes == u32::MAX {
            for lane in 0..32 {
                look(lane, self.address(lane));
            }
            return;
        }
        let mut rest = lanes;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            look(lane, self.address(lane));
        }
    }

    /// Where the first active lane goes.
    #[inline(always)]
    pub fn first(&self) -> u64 {
        self.address(self.mask.trailing_zeros() as usize % 32)
    }

    /// The addresses of the active lanes, put side by side in `room`.
    pub fn active<'r>(&self, room: &'r mut [u64; 32]) -> &'r [u64] {
        let mut n = 0;
        for lane in 0..32 {
            room[n] = self.address(lane);
            n += (self.mask >> lane & 1) as usize;
        }
        &room[..n]
    }
}
