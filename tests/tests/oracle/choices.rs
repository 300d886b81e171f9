//! From random numbers to a program.

use super::program::{Access, Program, Region, Statement};
use gpu::suite::Operation;

/// Numbers that decide what a program looks like. Where there are no more, it is as simple as can be.
pub(super) struct Choices<'a>(pub(super) std::slice::Iter<'a, u16>);

/// What is known of the threads that come to a list of statements.
#[derive(Clone, Copy)]
struct Known {
    /// The lanes of each warp.
    lanes: u32,
    /// Whether these lanes come there together, and whether all of the block's threads do that have not returned.
    together: bool,
    block: bool,
    depth: u32,
}

impl Choices<'_> {
    fn below(&mut self, end: u16) -> u32 {
        self.0.next().map_or(0, |choice| u32::from(choice % end))
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u16) as usize]
    }

    pub(super) fn program(&mut self) -> Program {
        let (blocks, threads) = (1 + self.below(3), self.of(&[32, 64, 48, 96, 7]));
        let zeroed = self.below(2) == 1;
        let mut known = Known { lanes: u32::MAX, together: true, block: true, depth: 0 };
        Program { blocks, threads, zeroed, statements: self.list(&mut known, 6) }
    }

    fn list(&mut self, known: &mut Known, most: u16) -> Vec<Statement> {
        let count = 1 + self.below(most);
        (0..count).map(|_| self.statement(known)).collect()
    }

    fn statement(&mut self, known: &mut Known) -> Statement {
        let deeper = known.depth < 3;
        match self.below(10) {
            5 if deeper => {
                let lanes = self.of(&[0xFFFF, 0xFF, 0x5555_5555, 0xFFFF_0000, 1, 0x0FF0_F00F]);
                let [yes, no] = [lanes, !lanes].map(|part| Known {
                    lanes: known.lanes & part,
                    block: false,
                    depth: known.depth + 1,
                    ..*known
                });
                let mut first = self.list(&mut { yes }, 3);
                // At the top, some threads return for good.
                if known.depth == 0 && known.lanes & !lanes != 0 && self.below(4) == 3 {
                    first.push(Statement::Return);
                    known.lanes &= !lanes;
                    return Statement::If(lanes, first, Vec::new());
                }
                Statement::If(lanes, first, self.list(&mut { no }, 3))
            }
            6 if deeper => {
                let more = self.below(3);
                let mut inside = Known { depth: known.depth + 1, ..*known };
                if more > 0 {
                    (inside.together, inside.block) = (false, false);
                }
                Statement::Loop(1 + self.below(3), more, self.list(&mut inside, 3))
            }
            7 if known.block => Statement::Block,
            8 if known.together && known.lanes != 0 => Statement::Warp(known.lanes),
            9 if known.together && known.lanes != 0 => Statement::Shuffle(known.lanes),
            _ => Statement::Access(self.access()),
        }
    }

    fn access(&mut self) -> Access {
        let region = self.of(&[Region::Src, Region::Dst, Region::Tile, Region::Tile]);
        let operation = match region {
            Region::Src => Operation::Load,
            Region::Dst => self.of(&[Operation::Store, Operation::Load, Operation::Atomic]),
            Region::Tile => self.of(&[Operation::Store, Operation::Load]),
        };
        let words = if operation == Operation::Atomic { 1 } else { self.of(&[1, 1, 2]) };
        Access {
            region,
            operation,
            words,
            by_thread: self.of(&[1, 1, 2, 0, 3, 33]) * words,
            by_step: self.of(&[0, 96, 1]) * words,
            from: self.of(&[0, 0, 192, 5]),
            apart: self.below(2) == 1,
        }
    }
}
