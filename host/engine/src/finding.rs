//! What the sanitizer found: a kind, a sentence, and the source positions involved.

use crate::instruction::Position;
use std::fmt;

/// What is wrong with a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An access outside its buffer or shared array.
    OutOfBounds,
    /// An access that is not aligned to its width.
    Misaligned,
    /// A read of memory that nobody wrote: shared memory, or an output.
    Uninitialized,
    /// Two accesses of different threads to the same memory, one of them a write, with nothing to order them.
    Race,
    /// A block's barrier that some of its threads do not reach, or that they reach at different places.
    DivergentBarrier,
    /// A warp's barrier or shuffle that a lane named in its mask does not reach.
    DivergentWarp,
    /// A shuffle that reads from a lane which takes no part.
    InactiveLane,
    /// A thread that does not end.
    NonTerminating,
    /// An access that a lane passes twice in one iteration of the loops the facade sees, so that nobody can say which
    /// lanes make up a request.
    OpenGrouping,
    /// A thread that takes more stack than it has: endless recursion, or large arrays of its own.
    StackOverflow,
    /// The kernel panicked: an overflow, an index outside a Rust array.
    Panic,
}

impl Kind {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::OutOfBounds => "out of bounds",
            Kind::Misaligned => "misaligned",
            Kind::Uninitialized => "uninitialized",
            Kind::Race => "race",
            Kind::DivergentBarrier => "divergent barrier",
            Kind::DivergentWarp => "divergent warp",
            Kind::InactiveLane => "inactive lane",
            Kind::NonTerminating => "does not end",
            Kind::OpenGrouping => "open grouping",
            Kind::StackOverflow => "stack overflow",
            Kind::Panic => "panic",
        }
    }

    /// What to do about it, where that is one thing.
    pub const fn remedy(self) -> Option<&'static str> {
        match self {
            Kind::OutOfBounds => Some("let only those lanes make the access whose element there is, as in `if i < n`"),
            Kind::Uninitialized => Some("write it before, with a barrier between if another thread does"),
            Kind::Race => Some("put `sync_threads()` between the two, or make both atomic"),
            Kind::DivergentBarrier => Some(
                "take the barrier out of the branch: every thread of the block comes by `sync_threads()`, with nothing to do if need be",
            ),
            Kind::DivergentWarp => Some("name in the mask the lanes that come by, and no others"),
            Kind::InactiveLane => Some("let all lanes of the mask take part, each with a value"),
            _ => None,
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One thing the sanitizer found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(schemars::JsonSchema, serde::Serialize))]
pub struct Finding {
    /// What is wrong.
    #[cfg_attr(feature = "serde", schemars(with = "String"))]
    pub kind: Kind,
    /// Where, as far as a source line is to blame.
    pub at: Option<Position>,
    /// The other source line, where two are involved.
    pub other: Option<Position>,
    /// `blockIdx`.
    pub block: [u32; 3],
    /// `threadIdx`.
    pub thread: [u32; 3],
    /// What happened, in words.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.detail)?;
        if let Some(at) = self.at {
            write!(f, ", at {at}")?;
        }
        if let Some(other) = self.other {
            write!(f, " and {other}")?;
        }
        write!(f, " (thread {}, block {})", triple(self.thread), triple(self.block))
    }
}

/// `(x, y, z)`.
pub fn triple([x, y, z]: [u32; 3]) -> String {
    format!("({x}, {y}, {z})")
}
