//! A launch of an entry: what all workers share.

use crate::program::{FUNCTION_WINDOW, Program, Special, Value};
use crate::registers::Class;
use engine::{Launch, Memory};
use std::sync::Arc;

/// Everything the workers of a simulation share.
pub(crate) struct Job {
    pub(crate) launch: Arc<Launch>,
    pub(crate) program: Arc<Program>,
    /// The parameters, byte by byte.
    pub(crate) parameters: Vec<u8>,
    /// The addresses of the variables of global and constant memory.
    pub(crate) variables: Vec<u64>,
}

impl Job {
    pub(crate) fn new(launch: Arc<Launch>, program: Arc<Program>, words: &[u64], variables: Vec<u64>) -> Self {
        let end = program.parameters.last().map_or(0, |(begin, bytes)| begin + bytes);
        let mut parameters = vec![0; end as usize];
        let mut words = words.iter();
        for (begin, bytes) in &program.parameters {
            let own = words.by_ref().take(bytes.div_ceil(8) as usize).flat_map(|word| word.to_le_bytes());
            parameters[*begin as usize..].iter_mut().take(*bytes as usize).zip(own).for_each(|(to, from)| *to = from);
        }
        Self { launch, program, parameters, variables }
    }

    /// What a slot holds that no instruction writes, in each lane of a warp.
    pub(crate) fn value(&self, value: Value, class: Class, warp: usize, block_idx: [u32; 3]) -> [u64; 32] {
        let bits = match value {
            Value::Bits(bits) => bits,
            Value::Parameter { offset, bytes, is_signed } => {
                let mut word = [0; 8];
                let from = &self.parameters[offset as usize..][..bytes as usize];
                word[..from.len()].copy_from_slice(from);
                let (word, above) = (u64::from_le_bytes(word), 64 - 8 * bytes);
                if is_signed { ((word << above).cast_signed() >> above).cast_unsigned() } else { word }
            }
            // Arrays stand in the order of their numbers, behind the dynamic one.
            Value::Shared(number, offset) => ((u64::from(number) + 1) << 20).wrapping_add_signed(offset),
            Value::DynamicShared(offset) => 0u64.wrapping_add_signed(offset),
            Value::Variable(number, offset) => {
                let base = self.variables.get(number as usize).copied().unwrap_or_default();
                base.wrapping_add_signed(offset)
            }
            Value::Function(number) => FUNCTION_WINDOW + 16 * u64::from(number),
            Value::Stack => self.program.local_bytes - self.program.stack_bytes(),
            Value::Special(special) => return self.special(special, warp, block_idx),
        };
        let bits = match class {
            Class::Wide => bits,
            Class::Narrow => bits & 0xFFFF_FFFF,
            Class::Half => bits & 0xFFFF,
            Class::Pred => bits & 1,
        };
        [bits; 32]
    }

    fn special(&self, special: Special, warp: usize, block_idx: [u32; 3]) -> [u64; 32] {
        let launch = &self.launch.plan.launch;
        let threads = launch.block_threads();
        std::array::from_fn(|lane| {
            let value = match special {
                Special::Tid(axis) => self.launch.thread_idx((32 * warp + lane) as u32)[axis],
                Special::Ntid(axis) => launch.block[axis],
                Special::Ctaid(axis) => block_idx[axis],
                Special::Nctaid(axis) => launch.grid[axis],
                Special::Lane => lane as u32,
                Special::Warp => warp as u32,
                Special::Warps => threads.div_ceil(32),
                Special::LaneMask(0) => (1 << lane) - 1,
                Special::LaneMask(1) => u32::MAX >> (31 - lane),
                Special::LaneMask(2) => 1 << lane,
                Special::LaneMask(3) => u32::MAX << lane,
                Special::LaneMask(_) => (u32::MAX << lane) & !(1 << lane),
                Special::DynamicShared => launch.shared_bytes,
                Special::StaticShared => self.launch.shared_bytes as u32,
            };
            value.into()
        })
    }

    /// The plan's buffers.
    pub(crate) fn memory(&self) -> &Memory {
        &self.launch.memory
    }
}
