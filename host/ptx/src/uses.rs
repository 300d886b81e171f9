//! Which registers of a warp each instruction reads and writes.

use crate::matrix::{Factor, Matrix};
use crate::program::{Action, Bulk, Call, Callee, External, Inst, NONE, Op, Passed, Program};
use crate::registers::{Class, OWN};

/// The registers that the instructions of a program use, all widths numbered through.
pub(crate) struct Uses {
    /// How many predicates there are, and how many narrow registers.
    sizes: [u32; 2],
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
        let count = (preds + narrow + wide) as usize;
        let mut uses = Self { sizes: [preds, narrow], registers: Vec::new(), of: Vec::new(), count };
        let sizes = uses.sizes;
        for inst in &program.code {
            let (reads, writes) = registers(program, inst);
            let begin = uses.registers.len() as u32;
            uses.registers.extend(reads.into_iter().filter_map(|part| number_of(sizes, part)));
            uses.of.push((begin, uses.registers.len() as u32 - begin));
            uses.registers.extend(writes.into_iter().filter_map(|part| number_of(sizes, part)));
        }
        uses.of.push((uses.registers.len() as u32, 0));
        uses
    }

    /// The number of a warp's register; none for what no instruction writes.
    pub(crate) fn number(&self, part: (Class, u32)) -> Option<u32> {
        number_of(self.sizes, part)
    }

    /// The bank and slot of the register of that number.
    pub(crate) fn place(&self, number: u32) -> (usize, u32) {
        let [preds, narrow] = self.sizes;
        match number {
            _ if number < preds => (0, number | OWN),
            _ if number < preds + narrow => (1, (number - preds) | OWN),
            _ => (2, (number - preds - narrow) | OWN),
        }
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

fn number_of([preds, narrow]: [u32; 2], (class, slot): (Class, u32)) -> Option<u32> {
    let before = match class {
        Class::Pred => 0,
        Class::Half | Class::Narrow => preds,
        Class::Wide => preds + narrow,
    };
    // What no instruction writes is no register of a warp.
    (slot != NONE && slot & OWN != 0).then_some(before + (slot & !OWN))
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
        Op::PartialBarrier { number, threads, reduction, .. } => {
            reads.extend([number, threads].map(narrow));
            if let Some((kind, target, source)) = reduction {
                reads.push((Class::Pred, source));
                writes.push((kind.class(), target));
            }
        }
        Op::Matrix(number) => match &program.matrices[number as usize] {
            Matrix::Multiply { a, b, c, d, .. } => {
                reads.extend([a, b, c].into_iter().flat_map(|fragment| &fragment.registers));
                writes.extend(&d.registers);
            }
            Matrix::Rows { rows, fragments, to_rows, .. } => {
                let (from, to) = if *to_rows { (&fragments[..], &rows[..]) } else { (&rows[..], &fragments[..]) };
                reads.extend(from.iter().map(|slot| narrow(*slot)));
                writes.extend(to.iter().map(|slot| narrow(*slot)));
            }
            Matrix::Transpose { target, source } => {
                reads.push(narrow(*source));
                writes.push(narrow(*target));
            }
            Matrix::Group { factors, sum, adds, .. } => {
                for factor in factors.iter().map(|described| &described.factor) {
                    match factor {
                        Factor::Registers(fragment) => reads.extend(&fragment.registers),
                        Factor::Memory(slot, _) => reads.push((Class::Wide, *slot)),
                    }
                }
                // Whether the sum is read too is known when it runs.
                reads.push((Class::Pred, *adds));
                writes.extend(&sum.registers);
            }
            Matrix::Together => {}
        },
        Op::Call(number) => {
            let Call { callee, arguments, returns } = &program.call_sites[number as usize];
            let register = |passed: &Passed| match passed {
                Passed::Register(class, slot) => Some((*class, *slot)),
                Passed::Nothing | Passed::Memory { .. } => None,
            };
            reads.extend(arguments.iter().filter_map(register));
            if let Callee::Address(slot) = callee {
                reads.push((Class::Wide, *slot));
            }
            writes.extend(returns.iter().filter_map(register));
        }
        Op::Bulk(number) => {
            let Bulk { load, store, size } = program.bulks[number as usize];
            let [load, store] = [load, store].map(|number| &program.accesses[number as usize]);
            reads.extend([load.address, store.address, narrow(size)]);
            writes.extend(load.parts.iter().flatten());
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
        Op::Copy(number) => {
            let copy = &program.copies[number as usize];
            let [load, store] = [copy.load, copy.store].map(|number| &program.accesses[number as usize]);
            reads.extend([load.address, store.address]);
            reads.extend(copy.size.map(narrow));
            reads.extend(copy.ignore.map(|slot| (Class::Pred, slot)));
            writes.extend(load.parts.iter().flatten());
        }
        Op::External(External::Print { format, arguments, printed }) => {
            reads.extend([format, arguments].map(|slot| (Class::Wide, slot)));
            writes.push(narrow(printed));
        }
        Op::External(External::Assert { message, file, line, function }) => {
            reads.extend([message, file, function].map(|slot| (Class::Wide, slot)));
            reads.push(narrow(line));
        }
        Op::Clock { class, slot } => writes.push((class, slot)),
        Op::ActiveMask { slot } => writes.push(narrow(slot)),
        Op::Branch { .. }
        | Op::Fence(_)
        | Op::Yield
        | Op::Phase
        | Op::Commit
        | Op::Await(_)
        | Op::Return
        | Op::Exit
        | Op::Trap => {}
    }
    reads.push((Class::Pred, inst.guard));
    (reads, writes)
}
