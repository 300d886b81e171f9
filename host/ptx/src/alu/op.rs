//! An opcode with its modifiers.

use crate::ast::{Instruction, Type};

/// What an instruction is, without its operands.
pub(crate) struct Form<'a> {
    pub(crate) opcode: &'a str,
    pub(crate) modifiers: Vec<&'a str>,
    /// The types among the modifiers, in their order.
    pub(crate) types: Vec<Type>,
}

impl<'a> Form<'a> {
    pub(crate) fn of(instruction: &Instruction<'a>) -> Self {
        let modifiers: Vec<_> = instruction.modifiers().collect();
        let types = modifiers.iter().filter_map(|modifier| Type::named(modifier)).collect();
        Self { opcode: instruction.opcode, modifiers, types }
    }

    pub(crate) fn has(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// The last of its types.
    pub(crate) fn ty(&self) -> Option<Type> {
        self.types.last().copied()
    }

    /// How it rounds: to the nearest if it does not say.
    pub(crate) fn rounding(&self) -> Rounding {
        let modes = [
            ("rn", Rounding::Nearest),
            ("rna", Rounding::NearestAway),
            ("rz", Rounding::Zero),
            ("rm", Rounding::Down),
            ("rp", Rounding::Up),
        ];
        modes.into_iter().find(|(name, _)| self.has(name)).map_or(Rounding::Nearest, |(_, mode)| mode)
    }
}

/// Which of two neighbours a number becomes that lies between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// The nearer one; the even one of two that are as near.
    Nearest,
    /// The nearer one; the larger one in magnitude of two that are as near.
    NearestAway,
    /// The one nearer to zero.
    Zero,
    /// The lower one.
    Down,
    /// The higher one.
    Up,
}
