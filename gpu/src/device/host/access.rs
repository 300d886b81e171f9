//! What an access is: the memory it goes to, what it does there, how wide it is, and where in the source it stands.

use crate::device::{AtomicKind, Cache, Change, Scope};
use crate::suite::Operation;
use core::panic::Location;

/// A state space of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// The memory of the whole grid.
    Global,
    /// The memory of one block.
    Shared,
    /// Memory that the host fills before a launch and kernels only read.
    Constant,
}

impl Space {
    /// Its name in PTX, written out.
    pub const fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Constant => "constant",
        }
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Reads, by a path through the caches.
    Load(Cache),
    /// Writes.
    Store,
    /// Writes for others to see while the kernel runs.
    StoreVolatile,
    /// Reads what an asynchronous copy brings, by a path through the caches.
    CopyFrom(Cache),
    /// Writes it.
    CopyTo,
    /// Reads, changes and writes in one indivisible step.
    Atomic {
        /// To whom it is indivisible.
        scope: Scope,
        /// How the hardware carries it out.
        kind: AtomicKind,
    },
}

impl Op {
    /// A number for each.
    const fn code(self) -> u8 {
        match self {
            Op::Load(cache) => cache as u8,
            Op::Store => 16,
            Op::StoreVolatile => 17,
            Op::CopyFrom(cache) => 18 + cache as u8,
            Op::CopyTo => 31,
            Op::Atomic { scope, kind } => 32 + 4 * scope as u8 + kind as u8,
        }
    }

    /// What counts call it.
    #[inline(always)]
    pub const fn operation(self) -> Operation {
        match self {
            Op::Load(_) | Op::CopyFrom(_) => Operation::Load,
            Op::Store | Op::StoreVolatile | Op::CopyTo => Operation::Store,
            Op::Atomic { .. } => Operation::Atomic,
        }
    }

    /// To whom it is one access that may meet others: an atomic, or a volatile access. None of a plain one.
    pub const fn scope(self) -> Option<Scope> {
        match self {
            Op::Load(Cache::Volatile) | Op::StoreVolatile => Some(Scope::System),
            Op::Atomic { scope, .. } => Some(scope),
            Op::Load(_) | Op::Store | Op::CopyFrom(_) | Op::CopyTo => None,
        }
    }
}

/// What an atomic computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// `u32`.
    U32,
    /// `i32`.
    I32,
    /// `u64`.
    U64,
    /// `i64`.
    I64,
    /// `f32`, whose sum depends on the order of the additions.
    F32,
    /// `f64`, likewise.
    F64,
}

impl Number {
    /// Whether its sums depend on no order.
    pub const fn is_integer(self) -> bool {
        !matches!(self, Number::F32 | Number::F64)
    }
}

/// What an atomic does: to what, and with what else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomic {
    /// The change.
    pub change: Change,
    /// What it computes with.
    pub number: Number,
    /// What stands there if the value is to be exchanged, of [`Change::Cas`]: its bits.
    pub compare: u64,
}

/// What an access is: its kind and its width, in one byte that the compiler knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// How many kinds of access there are, and how many widths.
    const KINDS: usize = Self::EACH.len();
    /// 1 to 16 bytes a lane.
    const WIDTHS: usize = 5;

    /// The kinds. Every load through the L1 is of one kind to a machine.
    pub const EACH: [(Space, Op); 22] = [
        (Space::Global, Op::Load(Cache::All)),
        (Space::Global, Op::Load(Cache::Global)),
        (Space::Global, Op::Load(Cache::Volatile)),
        (Space::Global, Op::Store),
        (Space::Global, Op::StoreVolatile),
        (Space::Global, Op::Atomic { scope: Scope::Block, kind: AtomicKind::Plain }),
        (Space::Global, Op::Atomic { scope: Scope::Block, kind: AtomicKind::AddsIntegers }),
        (Space::Global, Op::Atomic { scope: Scope::Device, kind: AtomicKind::Plain }),
        (Space::Global, Op::Atomic { scope: Scope::Device, kind: AtomicKind::AddsIntegers }),
        (Space::Global, Op::Atomic { scope: Scope::System, kind: AtomicKind::Plain }),
        (Space::Global, Op::Atomic { scope: Scope::System, kind: AtomicKind::AddsIntegers }),
        (Space::Shared, Op::Load(Cache::All)),
        (Space::Shared, Op::Load(Cache::Volatile)),
        (Space::Shared, Op::Store),
        (Space::Shared, Op::StoreVolatile),
        (Space::Shared, Op::Atomic { scope: Scope::Block, kind: AtomicKind::Plain }),
        (Space::Shared, Op::Atomic { scope: Scope::Block, kind: AtomicKind::Swap }),
        (Space::Shared, Op::Atomic { scope: Scope::Block, kind: AtomicKind::Loop }),
        (Space::Constant, Op::Load(Cache::All)),
        (Space::Global, Op::CopyFrom(Cache::All)),
        (Space::Global, Op::CopyFrom(Cache::Global)),
        (Space::Shared, Op::CopyTo),
    ];

    /// The access of kind number `kind`, `1 << log_width` bytes wide.
    #[inline(always)]
    pub const fn new(kind: usize, log_width: usize) -> Self {
        assert!(kind < Self::KINDS && log_width < Self::WIDTHS, "no access of this kind and width");
        Self((kind << 3 | log_width) as u8)
    }

    /// The access of one `T`. In a constant, an access of no known kind does not compile.
    pub(super) const fn of<T>(space: Space, op: Op) -> Self {
        let op = match op {
            Op::Load(Cache::NonCoherent | Cache::Streaming) => Op::Load(Cache::All),
            op => op,
        };
        let mut kind = 0;
        while kind < Self::KINDS {
            let (known_space, known_op) = Self::EACH[kind];
            if known_space as u8 == space as u8 && known_op.code() == op.code() {
                return Self::new(kind, size_of::<T>().trailing_zeros() as usize);
            }
            kind += 1;
        }
        panic!("`Access::EACH` lacks this access")
    }

    /// The byte.
    #[inline(always)]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The access that has this byte.
    ///
    /// # Panics
    /// If none has.
    #[inline(always)]
    pub const fn from_code(code: u8) -> Self {
        Self::new(code as usize >> 3, code as usize & 7)
    }

    /// The number of its kind.
    const fn kind(self) -> usize {
        self.0 as usize >> 3
    }

    const fn log_width(self) -> usize {
        self.0 as usize & 7
    }

    /// Which memory.
    #[inline(always)]
    pub const fn space(self) -> Space {
        Self::EACH[self.kind()].0
    }

    /// What it does.
    #[inline(always)]
    pub const fn op(self) -> Op {
        Self::EACH[self.kind()].1
    }

    /// Bytes a lane.
    #[inline(always)]
    pub const fn width(self) -> usize {
        1 << self.log_width()
    }
}

/// A source position and the access made there, in one word: an address leaves its upper 16 bits free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site(pub(super) u64);

impl Site {
    /// The access at a position.
    #[inline(always)]
    pub fn new(at: &'static Location<'static>, access: Access) -> Self {
        Self(core::ptr::from_ref(at).expose_provenance() as u64 | u64::from(access.code()) << 48)
    }

    /// The position.
    pub fn at(self) -> &'static Location<'static> {
        let pointer = core::ptr::with_exposed_provenance::<Location<'static>>((self.0 & (u64::MAX >> 16)) as usize);
        // SAFETY: `new` took the address of a reference that lives for ever.
        unsafe { &*pointer }
    }

    /// What the access does.
    #[inline(always)]
    pub fn access(self) -> Access {
        Access::from_code((self.0 >> 48) as u8)
    }

    /// Which memory.
    #[inline(always)]
    pub fn space(self) -> Space {
        self.access().space()
    }

    /// What it does, as counts call it.
    #[inline(always)]
    pub fn operation(self) -> Operation {
        self.access().op().operation()
    }

    /// Bytes a lane.
    #[inline(always)]
    pub fn width(self) -> u64 {
        self.access().width() as u64
    }

    /// To whom it is one access that may meet others; none of a plain one.
    #[inline(always)]
    pub fn scope(self) -> Option<Scope> {
        self.access().op().scope()
    }

    /// Whether it bypasses the L1: a store, an atomic, or a load that says so.
    pub fn is_past_l1(self) -> bool {
        !matches!(self.access().op(), Op::Load(Cache::All) | Op::CopyFrom(Cache::All))
    }

    /// Whether it is one end of an asynchronous copy.
    pub fn is_of_copy(self) -> bool {
        matches!(self.access().op(), Op::CopyFrom(_) | Op::CopyTo)
    }

    /// The key of this access on a path ([`Lane::path`](super::Lane::path)).
    #[inline(always)]
    pub(super) fn on(self, path: u64) -> u64 {
        self.0 ^ path
    }
}
