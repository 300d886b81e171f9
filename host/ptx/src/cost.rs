//! What an instruction costs a warp: issue slots, cycles of the unit that carries it out, and cycles until its result is there.
//!
//! An instruction of PTX is about as many of the hardware's as here. How many lanes a unit takes a cycle is in the CUDA C++ programming
//! guide's table of arithmetic throughput, for compute capability 9.0. A dependent chain of plain arithmetic takes four cycles an
//! instruction; all other latencies, and how many instructions a division or a root becomes, are estimates that no probe was held to.

use crate::alu::Form;
use crate::ast::{Instruction, Operand, Type};

/// What limits how often an instruction is issued, beside the issue slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A unit that takes a warp each cycle.
    #[default]
    Full,
    /// One that takes half a warp a cycle: that for doubles, and that for conversions of up to 32 bits.
    Half,
    /// One that takes an eighth: that for transcendental functions, and that for conversions of 64 bits.
    Special,
    /// The tensor core.
    Tensor,
}

impl Unit {
    /// Units that limit by themselves.
    pub(crate) const LIMITING: [Self; 3] = [Self::Half, Self::Special, Self::Tensor];

    /// Cycles of a sub-partition's unit that a warp's instruction takes.
    pub(crate) fn cycles(self) -> u32 {
        match self {
            Self::Full => 1,
            Self::Half => 2,
            Self::Special | Self::Tensor => 8,
        }
    }
}

/// What an instruction costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) slots: u8,
    pub(crate) latency: u8,
    pub(crate) unit: Unit,
}

/// A dependent chain of plain arithmetic takes so many cycles an instruction.
const PLAIN: u8 = 4;

impl Cost {
    const fn new(slots: u8, latency: u8, unit: Unit) -> Self {
        Self { slots, latency, unit }
    }

    /// What is no instruction on the hardware: an operand, an address that is known.
    const FREE: Self = Self::new(0, 0, Unit::Full);

    /// That of an instruction as it is written.
    pub(crate) fn of(instruction: &Instruction<'_>) -> Self {
        let form = Form::of(instruction);
        let bits = form.ty().map_or(32, Type::bits);
        let is_float = matches!(form.ty(), Some(Type::Float(_)));
        let plain = |slots: u8| Self::new(slots, PLAIN + slots - 1, Unit::Full);
        let special = |slots: u8| Self::new(slots, 20 + slots, Unit::Special);
        let exact = |slots: u8| Self::new(slots, 4 * slots, Unit::Special);
        match instruction.opcode {
            "ld" if form.has("param") => Self::FREE,
            "ld" if form.has("local") => Self::new(1, 35, Unit::Full),
            "cvta" => Self::FREE,
            "mov" => match instruction.operands.get(1) {
                Some(Operand::Name(name) | Operand::Component(name, _)) if is_read(name) => {
                    Self::new(1, 20, Unit::Full)
                }
                _ => Self::FREE,
            },
            "div" | "rem" if !is_float => {
                if bits == 64 {
                    Self::new(70, 250, Unit::Full)
                } else {
                    exact(16)
                }
            }
            "div" | "rcp" | "sqrt" | "rsqrt" if bits == 64 => Self::new(20, 160, Unit::Half),
            "div" if form.has("full") || form.has("approx") => special(3),
            "div" | "rcp" | "sqrt" if !form.has("approx") => exact(9),
            "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" => special(1),
            "popc" | "clz" | "bfind" | "brev" | "fns" => special(1),
            "cvt" => match form.types.as_slice() {
                [to, from] if is_number(*to) || is_number(*from) => {
                    let is_wide = to.bits() == 64 || from.bits() == 64;
                    Self::new(1, 10, if is_wide { Unit::Special } else { Unit::Half })
                }
                [Type::Unsigned(64), Type::Unsigned(_)] | [Type::Unsigned(_), Type::Unsigned(64)] => Self::FREE,
                _ => plain(1),
            },
            _ if is_float && bits == 64 => Self::new(1, 8, Unit::Half),
            // The addition of an address takes these in.
            "mul" if form.has("wide") => Self::FREE,
            "shl" if matches!(instruction.operands.get(2), Some(Operand::Constant(_))) => Self::FREE,
            "mad" if form.has("wide") => plain(1),
            "mul" | "mad" if bits == 64 && !is_float => plain(4),
            "mma" | "wmma" => Self::new(2, 34, Unit::Tensor),
            "bra" | "brx" | "ret" | "exit" => plain(1),
            "bar" | "barrier" if form.has("warp") => Self::FREE,
            // An SM shuffles a warp a cycle.
            "shfl" => Self::new(5, 24, Unit::Full),
            "vote" | "match" | "redux" => Self::new(2, 24, Unit::Full),
            "ld" | "st" | "atom" | "red" | "cp" | "bar" | "barrier" => plain(1),
            "setp" => Self::new(if bits == 64 { 2 } else { 1 }, 6, Unit::Full),
            _ if bits == 64 => plain(2),
            _ => plain(1),
        }
    }
}

fn is_number(ty: Type) -> bool {
    matches!(ty, Type::Float(_) | Type::Bf16 | Type::F16x2 | Type::Bf16x2)
}

/// Whether a special register is read by an instruction of its own.
fn is_read(name: &str) -> bool {
    ["%tid", "%ctaid", "%laneid", "%clock", "%warpid", "%smid", "%globaltimer", "%lanemask"]
        .iter()
        .any(|own| name.starts_with(own))
}
