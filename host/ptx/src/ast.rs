//! A module as it is written: directives, entries, functions, their statements and operands. It borrows the text.

use crate::error::Place;
use std::collections::BTreeMap;

/// A module.
#[derive(Clone, Debug, Default)]
pub struct Module<'a> {
    /// `.version`: major and minor.
    pub version: (u32, u32),
    /// `.target`: the architecture, and what else stands there.
    pub target: Vec<&'a str>,
    /// `.address_size`, in bits; 32 if the module does not say.
    pub address_size: u32,
    /// The files of the line table, by number.
    pub files: BTreeMap<u32, &'a str>,
    /// Variables of the module's scope.
    pub variables: Vec<Variable<'a>>,
    /// Entries and functions, in their order.
    pub functions: Vec<Function<'a>>,
}

impl<'a> Module<'a> {
    /// The entry of that name, with its body.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Function<'a>> {
        self.entries().find(|entry| entry.name == name)
    }

    /// Its entries that have bodies.
    pub fn entries(&self) -> impl Iterator<Item = &Function<'a>> {
        self.functions.iter().filter(|function| function.is_entry && function.body.is_some())
    }
}

/// A fundamental type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `.pred`
    Pred,
    /// `.b8` to `.b128`, by bits.
    Bits(u8),
    /// `.u8` to `.u64`
    Unsigned(u8),
    /// `.s8` to `.s64`
    Signed(u8),
    /// `.f16`, `.f32`, `.f64`
    Float(u8),
    /// `.f16x2`
    F16x2,
    /// `.bf16`
    Bf16,
    /// `.bf16x2`
    Bf16x2,
    /// `.u16x2`
    U16x2,
    /// `.s16x2`
    S16x2,
    /// `.tf32`
    Tf32,
}

impl Type {
    /// The type of that name, which stands behind a dot.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "pred" => Self::Pred,
            "b8" => Self::Bits(8),
            "b16" => Self::Bits(16),
            "b32" => Self::Bits(32),
            "b64" => Self::Bits(64),
            "b128" => Self::Bits(128),
            "u8" => Self::Unsigned(8),
            "u16" => Self::Unsigned(16),
            "u32" => Self::Unsigned(32),
            "u64" => Self::Unsigned(64),
            "s8" => Self::Signed(8),
            "s16" => Self::Signed(16),
            "s32" => Self::Signed(32),
            "s64" => Self::Signed(64),
            "f16" => Self::Float(16),
            "f32" => Self::Float(32),
            "f64" => Self::Float(64),
            "f16x2" => Self::F16x2,
            "bf16" => Self::Bf16,
            "bf16x2" => Self::Bf16x2,
            "u16x2" => Self::U16x2,
            "s16x2" => Self::S16x2,
            "tf32" => Self::Tf32,
            _ => return None,
        })
    }

    /// Its size in bits; 1 for a predicate.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Self::Pred => 1,
            Self::Bits(bits) | Self::Unsigned(bits) | Self::Signed(bits) | Self::Float(bits) => bits.into(),
            Self::Bf16 => 16,
            Self::F16x2 | Self::Bf16x2 | Self::U16x2 | Self::S16x2 | Self::Tf32 => 32,
        }
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        u64::from(self.bits().div_ceil(8))
    }

    /// Whether it is a floating-point number of 16 bits, or a pair of them.
    #[must_use]
    pub fn is_half(self) -> bool {
        matches!(self, Self::Float(16) | Self::F16x2 | Self::Bf16 | Self::Bf16x2)
    }

    /// Whether it is a signed integer.
    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Signed(_))
    }
}

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateSpace {
    /// `.reg`
    Register,
    /// `.param`
    Parameter,
    /// `.global`
    Global,
    /// `.shared`
    Shared,
    /// `.const`
    Constant,
    /// `.local`
    Local,
    /// `.tex` and others that nothing is known of.
    Other,
}

impl StateSpace {
    /// The state space of that name, which stands behind a dot.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "reg" | "sreg" => Self::Register,
            "param" | "param::entry" | "param::func" => Self::Parameter,
            "global" => Self::Global,
            "shared" | "shared::cta" | "shared::cluster" => Self::Shared,
            "const" => Self::Constant,
            "local" => Self::Local,
            "tex" => Self::Other,
            _ => return None,
        })
    }
}

/// A variable, a parameter, or registers.
#[derive(Clone, Debug)]
pub struct Variable<'a> {
    /// Its name; for `%r<8>`, what stands before the number.
    pub name: &'a str,
    /// The 8 of `%r<8>`.
    pub range: Option<u32>,
    /// Where it is kept.
    pub space: StateSpace,
    /// Its elements.
    pub ty: Type,
    /// Elements of a vector: 1, 2, 4 or 8.
    pub vector: u32,
    /// `.align`, or what its type asks for.
    pub align: u64,
    /// The dimensions of an array; the first is 0 where it is not stated.
    pub dimensions: Vec<u64>,
    /// What it holds at first, if that is stated.
    pub initializer: Option<Initializer<'a>>,
    /// Whether another module has it.
    pub is_extern: bool,
    /// Where it is declared.
    pub place: Place,
}

impl Variable<'_> {
    /// Its size in bytes; none if it passes what fits in an address.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let element = self.ty.bytes() * u64::from(self.vector);
        self.dimensions.iter().try_fold(element, |bytes, dimension| bytes.checked_mul(*dimension))
    }
}

/// What a variable holds at first.
#[derive(Clone, Debug, PartialEq)]
pub enum Initializer<'a> {
    /// `{…}`
    List(Vec<Initializer<'a>>),
    /// A constant.
    Value(Constant),
    /// The address of a variable, and bytes from it on.
    Address(&'a str, i64),
}

/// A constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// An integer: its 64 bits.
    Integer(u64),
    /// `0f…`: its bits.
    Single(u32),
    /// `0d…`, or a decimal fraction: its bits.
    Double(u64),
}

/// An entry or a function.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether the host launches it.
    pub is_entry: bool,
    /// What it returns.
    pub returns: Vec<Variable<'a>>,
    /// Its parameters, in their order.
    pub parameters: Vec<Variable<'a>>,
    /// `.maxntid`, `.reqntid` and their like, with their numbers.
    pub directives: Vec<(&'a str, Vec<u64>)>,
    /// What it does; none for a declaration.
    pub body: Option<Block<'a>>,
    /// Where it begins.
    pub place: Place,
}

/// Statements in braces: a scope of names.
#[derive(Clone, Debug, Default)]
pub struct Block<'a> {
    /// Registers and variables.
    pub variables: Vec<Variable<'a>>,
    /// What is done.
    pub statements: Vec<Statement<'a>>,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement<'a> {
    /// `name:`
    Label(&'a str, Place),
    /// `name: .branchtargets a, b;`
    BranchTargets(&'a str, Vec<&'a str>, Place),
    /// `name: .callprototype …;`, or `.calltargets`
    CallPrototype(&'a str, Place),
    /// `.loc`
    Location(Location<'a>),
    /// An instruction.
    Instruction(Instruction<'a>),
    /// `{…}`
    Block(Block<'a>),
}

/// `.loc`: where what follows stands in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// File, line and column.
    pub at: Point,
    /// The function inlined there, and where the call stands.
    pub inlined: Option<(&'a str, Point)>,
}

/// A file's number, a line and a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    /// The file, as [`Module::files`] has it.
    pub file: u32,
    /// The line, from 1; 0 for code of several lines.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Instruction<'a> {
    /// `@p`, or `@!p`: the predicate, and whether it is negated.
    pub guard: Option<(&'a str, bool)>,
    /// The opcode, without modifiers.
    pub opcode: &'a str,
    /// The modifiers as they stand there, with their dots.
    pub modifiers: &'a str,
    /// Its operands, in their order.
    pub operands: Vec<Operand<'a>>,
    /// Where it begins.
    pub place: Place,
}

impl<'a> Instruction<'a> {
    /// Its modifiers, without their dots.
    pub fn modifiers(&self) -> impl Iterator<Item = &'a str> + Clone {
        self.modifiers.split('.').map(str::trim).filter(|modifier| !modifier.is_empty())
    }

    /// Whether it has that modifier.
    #[must_use]
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers().any(|own| own == modifier)
    }
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand<'a> {
    /// A register, a variable, a label, a function.
    Name(&'a str),
    /// `a.x`: a component of a vector, or of a special register.
    Component(&'a str, &'a str),
    /// `variable+4`
    Sum(&'a str, i64),
    /// A constant.
    Constant(Constant),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `[base+offset]`; no base for a constant address. What follows the address within the brackets comes last.
    Address(Option<&'a str>, i64, Vec<Operand<'a>>),
    /// `a|b`
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `!p`
    Not(&'a str),
    /// `-r`
    Negated(&'a str),
    /// `(a, b)`: the parameters of a call.
    List(Vec<Operand<'a>>),
    /// `_`
    Sink,
}
