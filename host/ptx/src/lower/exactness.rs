//! How near an instruction comes to what a GPU does.

use crate::ast::{Instruction, Operand};
use crate::matrix::Number;

/// How an instruction is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bit for bit as the PTX ISA says.
    Exact,
    /// The ISA leaves its result open within bounds, and a GPU's differs in its last bits, or in what it counts.
    Approximate,
    /// It is passed over: it has no effect on results.
    Ignored,
}

/// Registers whose values are those of a GPU only in kind.
const OF_THE_MACHINE: [&str; 10] = [
    "%clock",
    "%clock_hi",
    "%clock64",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%smid",
    "%nsmid",
    "%gridid",
    "%warpid",
];

impl Kind {
    pub(super) fn of(instruction: &Instruction<'_>) -> Self {
        let has = |modifier| instruction.has(modifier);
        let is_float = |name| Number::named(name).is_some_and(|number| !number.is_integer() && number != Number::F64);
        match instruction.opcode {
            "prefetch" | "prefetchu" | "nanosleep" | "pmevent" | "brkpt" | "discard" | "applypriority"
            | "createpolicy" | "griddepcontrol" | "setmaxnreg" => Self::Ignored,
            "ex2" | "lg2" | "sin" | "cos" | "tanh" => Self::Approximate,
            "rcp" | "rsqrt" | "sqrt" | "div" if has("approx") || has("full") => Self::Approximate,
            "mma" | "wgmma" => match instruction.modifiers().any(is_float) {
                true => Self::Approximate,
                false => Self::Exact,
            },
            "wmma" if has("mma") && instruction.modifiers().any(is_float) => Self::Approximate,
            "mov" => match instruction.operands.get(1) {
                Some(Operand::Name(name)) if OF_THE_MACHINE.contains(name) => Self::Approximate,
                _ => Self::Exact,
            },
            _ => Self::Exact,
        }
    }
}

/// How an instruction is named in a report: what is read too, where that makes the difference.
pub(super) fn shown(instruction: &Instruction<'_>) -> String {
    match (instruction.opcode, instruction.operands.get(1)) {
        ("mov", Some(Operand::Name(name))) => format!("mov {name}"),
        _ => format!("{}{}", instruction.opcode, instruction.modifiers),
    }
}
