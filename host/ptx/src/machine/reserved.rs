//! Shared memory that the system reserves in each block (`%reserved_smem_offset_1`), in which cooperative groups keep their barriers: it
//! is zero when a block begins, as if its threads had cleared it and passed a barrier.

use super::block::Runner;
use crate::program::RESERVED_BYTES;
use engine::{Instruction, Look, Request};
use gpu::suite::{Operation, Space};

const WIDTH: u64 = 16;

impl Runner {
    /// Clears it, if the program names it.
    pub(super) fn clear_reserved(&mut self) {
        let program = std::sync::Arc::clone(&self.job.program);
        let (Some(number), Some(first)) = (program.reserved, program.code.first()) else { return };
        let base = (u64::from(number) + 1) << 20;
        let instruction = Instruction::new(first.pc, Space::Shared, Operation::Store, WIDTH.trailing_zeros() as u8);
        let places: Vec<u64> = (0..RESERVED_BYTES / WIDTH)
            .filter_map(|index| {
                let element = self.worker.shared.resolve(base, index, WIDTH)?;
                let zero = [0u64; 2];
                // SAFETY: it was resolved for 16 bytes, and arrays of shared memory are aligned to as many.
                unsafe { element.store(WIDTH as usize, zero.as_ptr().cast()) };
                Some(element.address)
            })
            .collect();
        if self.worker.look() != Look::Away {
            let threads = (self.job.launch.plan.launch.block_threads() as usize).min(32);
            for places in places.chunks(threads) {
                let mut indices = [0; 32];
                indices.iter_mut().zip(places).for_each(|(index, place)| *index = place >> instruction.log_width());
                let mask = u32::MAX >> (32 - places.len());
                self.look(0, &Request::new(instruction, mask, None, 0, &indices));
            }
        }
        self.worker.pass_barrier(|| first.pc);
    }
}
