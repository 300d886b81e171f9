//! What an entry is lowered to: a register machine's instructions, one after another, with where their lanes meet again.

use crate::cost::Cost;
use crate::matrix::Matrix;
use crate::registers::{Class, Classes, Run, Sizes};
use crate::watch::Watch;
use engine::{Instruction, Pc};
use gpu::suite::Scope;
use std::collections::BTreeSet;

/// No instruction, no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// Where the generic addresses of a block's shared memory begin: below those of any buffer.
pub(crate) const SHARED_WINDOW: u64 = 1 << 40;

/// Where those of a thread's local memory begin.
pub(crate) const LOCAL_WINDOW: u64 = 2 << 40;

/// Where those of the entry's parameters begin.
pub(crate) const PARAMETER_WINDOW: u64 = 3 << 40;

/// Where the addresses of functions begin.
pub(crate) const FUNCTION_WINDOW: u64 = 4 << 40;

/// Bytes of a thread's stack, which functions take that are called and not inlined, and `alloca`.
pub(crate) const STACK: u64 = 16 << 10;

/// Bytes of shared memory that the system reserves in each block.
pub(crate) const RESERVED_BYTES: u64 = 1024;

/// Where those of global memory begin: half a buffer's range before the first, for pointers that lead before it.
pub(crate) const GLOBAL_BEGIN: u64 = 1 << 44;

/// An entry, ready to run.
pub struct Program {
    /// Its name.
    pub(crate) name: &'static str,
    pub(crate) code: Vec<Inst>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) matrices: Vec<Matrix>,
    /// Functions that are called and not inlined, and where they are.
    pub(crate) routines: Vec<Routine>,
    pub(crate) call_sites: Vec<Call>,
    /// The registers of where the frame of the function that runs begins, and the next one may.
    pub(crate) stack: Option<[u32; 2]>,
    pub(crate) copies: Vec<Ahead>,
    pub(crate) bulks: Vec<Bulk>,
    /// Where the branches of `brx` lead.
    pub(crate) tables: Vec<Vec<u32>>,
    /// What stands in slots that no instruction writes.
    pub(crate) fixed: Vec<Fixed>,
    /// Slots for predicates, narrow and wide registers.
    pub(crate) sizes: [Sizes; 3],
    pub(crate) exactness: Exactness,
    /// Static arrays in shared memory, and their bytes.
    pub(crate) shared: &'static [(&'static str, u64)],
    /// The number of the array that is reserved for the system, if the program names it.
    pub(crate) reserved: Option<u32>,
    /// Variables of global and constant memory that it names.
    pub(crate) variables: Vec<Variable>,
    /// Bytes of local memory of a thread.
    pub(crate) local_bytes: u64,
    /// Where each parameter begins, and how many bytes it has.
    pub(crate) parameters: Vec<(u64, u64)>,
    /// Registers that may be read before they are written.
    pub(crate) watch: Watch,
    /// The block that `.reqntid` asks for.
    pub(crate) block: Option<[u32; 3]>,
}

impl Program {
    /// The entry's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How many instructions it has.
    #[must_use]
    pub fn instructions(&self) -> usize {
        self.code.len()
    }

    /// How many words its parameters take: one for each 8 bytes that one begins.
    #[must_use]
    pub fn parameter_words(&self) -> usize {
        self.parameters.iter().map(|(_, bytes)| bytes.div_ceil(8) as usize).sum()
    }

    /// Bytes of its static arrays in shared memory.
    #[must_use]
    pub fn shared_bytes(&self) -> u64 {
        self.shared.iter().map(|(_, bytes)| *bytes).sum()
    }

    /// Bytes of a thread's stack, which is the end of its local memory.
    pub(crate) fn stack_bytes(&self) -> u64 {
        if self.stack.is_some() { STACK } else { 0 }
    }

    /// Which of its instructions are not carried out exactly.
    #[must_use]
    pub fn exactness(&self) -> &Exactness {
        &self.exactness
    }

    /// Variables of the module's global and constant memory that it names or they lead to, and their bytes: each may be a buffer of the
    /// plan, and is else made as the module says.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.variables.iter().map(|variable| (variable.name, variable.bytes))
    }
}

/// The instructions of an entry that are not carried out bit for bit as a GPU does, by their opcodes with modifiers, and by the special
/// registers that they read. All others are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exactness {
    /// Those whose results the PTX ISA leaves open within bounds: `ex2.approx`, the order of the sums in `mma`, the clock.
    pub approximate: BTreeSet<String>,
    /// Those that are passed over, since they have no effect on results: `prefetch`, `nanosleep`.
    pub ignored: BTreeSet<String>,
}

/// A variable of global or constant memory.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
    pub(crate) align: u64,
    pub(crate) is_constant: bool,
    /// Whether another module has it.
    pub(crate) is_extern: bool,
    /// What it holds at first, by where that begins; the rest is 0.
    pub(crate) initial: Vec<(u64, Initial)>,
}

/// An element of what a variable holds at first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Initial {
    pub(crate) bytes: u32,
    pub(crate) content: Content,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    Bits(u64),
    /// The address of a variable, and bytes behind it.
    Address(u32, i64),
}

/// An instruction.
#[derive(Clone, Copy)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    /// The predicate under which it is carried out, if there is one.
    pub(crate) guard: u32,
    pub(crate) negated: bool,
    pub(crate) cost: Cost,
    /// Whether it uses registers that are watched.
    pub(crate) watched: bool,
    pub(crate) pc: Pc,
}

/// What it does.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    /// Arithmetic.
    Alu { run: Run, slots: [u32; 5], classes: Classes },
    /// A branch, and where the lanes meet again.
    Branch { target: u32, meet: u32 },
    /// A branch by a table.
    Table { index: u32, table: u32, meet: u32 },
    /// A call of a function that is not inlined.
    Call(u32),
    /// The end of one.
    Return,
    /// The lanes end.
    Exit,
    /// The block's barrier; what its lanes hold up is made one.
    Barrier { number: u32, reduction: Option<(Reduction, u32, u32)> },
    /// A barrier of so many of the block's threads, at which the lanes wait or only arrive.
    PartialBarrier { number: u32, threads: u32, waits: bool, reduction: Option<(Reduction, u32, u32)> },
    /// A copy in bulk.
    Bulk(u32),
    /// A phase of an `mbarrier` is complete.
    Phase,
    /// The warp lets the others of its block go on first.
    Yield,
    /// A fence, for the threads of a scope.
    Fence(Scope),
    /// A warp's barrier.
    WarpBarrier { mask: u32 },
    /// An access.
    Access(u32),
    /// Lanes exchange values.
    Exchange(u32),
    /// What all lanes of a warp do to matrices.
    Matrix(u32),
    /// A copy from global to shared memory, which arrives when it is waited for.
    Copy(u32),
    /// A thread's copies so far make up a group.
    Commit,
    /// A thread waits for its groups of copies, but for so many of the last ones; for all copies if that is none.
    Await(Option<u32>),
    /// The clock, in a register of 32 or 64 bits.
    Clock { class: Class, slot: u32 },
    /// The active lanes, as a word.
    ActiveMask { slot: u32 },
    /// What the runtime does for a kernel.
    External(External),
    /// The kernel gives up.
    Trap,
}

/// What the GPU's runtime does for a kernel, and the slots of what it takes.
#[derive(Clone, Copy)]
pub(crate) enum External {
    /// Text is printed: by the format and the arguments at generic addresses. How many were printed goes to a register.
    Print { format: u32, arguments: u32, printed: u32 },
    /// An assertion failed: its text, file and function at generic addresses, and the line.
    Assert { message: u32, file: u32, line: u32, function: u32 },
}

/// What a barrier makes of predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    And,
    Or,
    Count,
}

impl Reduction {
    /// The width of what it makes.
    pub(crate) fn class(self) -> Class {
        if self == Self::Count { Class::Narrow } else { Class::Pred }
    }
}

/// What a slot holds that no instruction writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed {
    pub(crate) class: Class,
    pub(crate) slot: u32,
    pub(crate) value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    Bits(u64),
    /// Bytes of the parameters.
    Parameter {
        offset: u64,
        bytes: u32,
        is_signed: bool,
    },
    /// The address of a static array of shared memory, and bytes behind it.
    Shared(u32, i64),
    /// Of the dynamic one.
    DynamicShared(i64),
    /// Of a variable.
    Variable(u32, i64),
    /// Of a function.
    Function(u32),
    /// Where a thread's stack begins, as long as no function has been called.
    Stack,
    Special(Special),
}

impl Value {
    /// Whether each warp has its own.
    pub(crate) fn is_of_warp(self) -> bool {
        matches!(self, Self::Stack) || matches!(self, Self::Special(special) if special.is_of_warp())
    }

    /// Whether it is laid down anew for each block.
    pub(crate) fn is_of_block(self) -> bool {
        matches!(self, Self::Stack | Self::Special(Special::Ctaid(_)))
    }
}

/// A special register that does not change while a warp runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    Tid(usize),
    Ntid(usize),
    Ctaid(usize),
    Nctaid(usize),
    Lane,
    Warp,
    Warps,
    /// Lanes below, at and above: `lt`, `le`, `eq`, `ge`, `gt`.
    LaneMask(u8),
    StaticShared,
    DynamicShared,
}

impl Special {
    /// Whether each warp has its own.
    pub(crate) fn is_of_warp(self) -> bool {
        matches!(self, Self::Tid(_) | Self::Warp)
    }
}

/// What is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee {
    Function(u32),
    /// The function at the address in a register.
    Address(u32),
}

/// Where something is that is passed to a function, or comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// A result that is dropped.
    Nothing,
    Register(Class, u32),
    /// Local memory, in the frame of the function or from the begin on.
    Memory {
        begin: u64,
        bytes: u64,
        is_framed: bool,
    },
}

/// A call of a function that is not inlined.
pub(crate) struct Call {
    pub(crate) callee: Callee,
    pub(crate) arguments: Vec<Passed>,
    pub(crate) returns: Vec<Passed>,
}

/// A function that is called and not inlined.
pub(crate) struct Routine {
    pub(crate) name: &'static str,
    /// Its first instruction.
    pub(crate) entry: u32,
    pub(crate) parameters: Vec<Passed>,
    pub(crate) returns: Vec<Passed>,
    /// Its predicates, narrow and wide registers: the first of each, and the first behind them.
    pub(crate) registers: [(u32, u32); 3],
    /// Bytes of its frame.
    pub(crate) bytes: u64,
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    Global,
    Constant,
    Shared,
    Local,
    Parameter,
    Generic,
}

/// What an atomic makes of the old value and its operands.
pub(crate) type Atomic = fn(u64, u64, u64) -> u64;

#[derive(Clone, Copy)]
pub(crate) enum Action {
    Load,
    Store,
    Atomic(Atomic),
}

/// A register of an access; none where the value is dropped.
pub(crate) type Part = Option<(Class, u32)>;

/// An access.
pub(crate) struct Access {
    pub(crate) action: Action,
    pub(crate) space: Where,
    pub(crate) address: (Class, u32),
    pub(crate) offset: i64,
    /// Bytes of an element.
    pub(crate) bytes: u32,
    pub(crate) is_signed: bool,
    /// What is loaded to, or stored.
    pub(crate) parts: Vec<Part>,
    /// The operands of an atomic.
    pub(crate) operands: [(Class, u32); 2],
    /// What the engine knows it as: in global, shared and constant memory.
    pub(crate) instructions: [Instruction; 3],
}

impl Access {
    /// Whether it asks for memory that others can see.
    pub(crate) fn makes_requests(&self) -> bool {
        !matches!(self.space, Where::Local | Where::Parameter)
    }

    /// Bytes a lane.
    pub(crate) fn width(&self) -> u64 {
        u64::from(self.bytes) * self.parts.len().max(1) as u64
    }
}

/// A copy from global to shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    /// Its accesses: the load, and the store.
    pub(crate) load: u32,
    pub(crate) store: u32,
    /// The register that says how many bytes are read, the rest being 0.
    pub(crate) size: Option<u32>,
    /// The predicate under which none is.
    pub(crate) ignore: Option<u32>,
}

/// A copy in bulk: its accesses, of 16 bytes a lane, and the register that says how many bytes are copied.
#[derive(Clone, Copy)]
pub(crate) struct Bulk {
    pub(crate) load: u32,
    pub(crate) store: u32,
    pub(crate) size: u32,
}

/// What lanes exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchanged {
    Up,
    Down,
    Butterfly,
    Index,
    All,
    Any,
    Uniform,
    Ballot,
    MatchAny,
    MatchAll,
    Add,
    MinUnsigned,
    MaxUnsigned,
    MinSigned,
    MaxSigned,
    And,
    Or,
    Xor,
    Elect,
}

/// An exchange between the lanes of a warp.
pub(crate) struct Exchange {
    pub(crate) what: Exchanged,
    pub(crate) target: Part,
    pub(crate) predicate: Part,
    pub(crate) source: (Class, u32),
    /// The lane, or the distance to it.
    pub(crate) lane: u32,
    pub(crate) clamp: u32,
    /// The member mask; none for the active lanes.
    pub(crate) mask: u32,
}
