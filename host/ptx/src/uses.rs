//! Which registers of a warp each instruction reads and writes.

use crate::program::{Action, Inst, NONE, Op, Program};
use crate::registers::{Class, OWN};

/// The registers that the instructions of a program use, all widths numbered through.
pub(crate) struct Uses {
    /// Those that an instruction reads, then those that it writes, instruction by instruction.
    registers: Vec<u32>,
    /// Where those of an instruction begin, and how many of them are read.
    of: Vec<(u32, u32)>,
    count: usize,
}

impl Uses {
    /// Those of all instructions of a program.
    pub(crate) fn of(program: &Program) -> Self {
        let [preds, narrow, wide] = program.sizes.map(|sizes| sizes.own);
        let mut uses = Self { registers: Vec::new(), of: Vec::new(), count: (preds + narrow + wide) as usize };
        let number = |(class, slot): (Class, u32)| {
            let before = match class {
                Class::Pred => 0,
                Class::Half | Class::Narrow => preds,
                Class::Wide => preds + narrow,
            };
            // What no instruction writes is no register of a warp.
            (slot != NONE && slot & OWN != 0).then_some(before + (slot & !OWN))
        };
        for inst in &program.code {
            let (reads, writes) = registers(program, inst);
            let begin = uses.registers.len() as u32;
            uses.registers.extend(reads.into_iter().filter_map(number));
            uses.of.push((begin, uses.registers.len() as u32 - begin));
            uses.registers.extend(writes.into_iter().filter_map(number));
        }
        uses.of.push((uses.registers.len() as u32, 0));
        uses
    }

    /// How many registers a warp has.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The registers that the instruction at that place reads, its guard among them.
    pub(crate) fn reads(&self, at: u32) -> &[u32] {
        let (begin, reads) = self.of[at as usize];
        &self.registers[begin as usize..(begin + reads) as usize]
    }

    /// Those that it writes.
    pub(crate) fn writes(&self, at: u32) -> &[u32] {
        let (begin, reads) = self.of[at as usize];
        &self.registers[(begin + reads) as usize..self.of[at as usize + 1].0 as usize]
    }
}

type Registers = Vec<(Class, u32)>;

/// The slots that an instruction reads and those that it writes.
fn registers(program: &Program, inst: &Inst) -> (Registers, Registers) {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    let narrow = |slot: u32| (Class::Narrow, slot);
    match inst.op {
        Op::Alu { slots, classes, .. } => {
            let mut all = classes.iter().zip(slots);
            writes.extend(all.next());
            reads.extend(all);
        }
        Op::Table { index, .. } => reads.push(narrow(index)),
        Op::Barrier { number, reduction } => {
            reads.push(narrow(number));
            if let Some((kind, target, source)) = reduction {
                reads.push((Class::Pred, source));
                writes.push((kind.class(), target));
            }
        }
        Op::WarpBarrier { mask } => reads.push(narrow(mask)),
        Op::Access(number) => {
            let access = &program.accesses[number as usize];
            reads.push(access.address);
            let parts = access.parts.iter().flatten();
            match access.action {
                Action::Load => writes.extend(parts),
                Action::Store => reads.extend(parts),
                Action::Atomic(_) => {
                    reads.extend(access.operands);
                    writes.extend(parts);
                }
            }
        }
        Op::Exchange(number) => {
            let exchange = &program.exchanges[number as usize];
            reads.push(exchange.source);
            reads.extend([exchange.lane, exchange.clamp, exchange.mask].map(narrow));
            writes.extend(exchange.target.into_iter().chain(exchange.predicate));
        }
        Op::Clock { class, slot } => writes.push((class, slot)),
        Op::ActiveMask { slot } => writes.push(narrow(slot)),
        Op::Branch { .. } | Op::Exit | Op::Trap => {}
    }
    reads.push((Class::Pred, inst.guard));
    (reads, writes)
}
