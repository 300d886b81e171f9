//! Memory instructions, and where they stand in their program.

use gpu::suite::{AtomicKind, Operation, Scope, Space};
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// A source position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(schemars::JsonSchema, serde::Serialize))]
pub struct Position {
    /// The file, relative to the workspace.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A position in one word. Two are equal if their positions are: each position is kept once, for as long as the process runs.
#[derive(Clone, Copy, Debug)]
pub struct Pc(&'static Position);

impl Pc {
    /// That of a position.
    pub fn of(position: Position) -> Self {
        static KNOWN: Mutex<Option<HashSet<&'static Position>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let kept = known.get(&position).copied().unwrap_or_else(|| {
            let kept = Box::leak(Box::new(position));
            known.insert(kept);
            kept
        });
        Self(kept)
    }

    /// The position.
    #[inline]
    pub fn position(self) -> Position {
        *self.0
    }

    /// The line, from 1.
    #[inline]
    pub fn line(self) -> u32 {
        self.0.line
    }

    /// A number that no other position has while the process runs.
    #[inline]
    pub fn number(self) -> usize {
        ptr::from_ref(self.0).addr()
    }
}

impl PartialEq for Pc {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for Pc {}

impl Hash for Pc {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number().hash(state);
    }
}

/// A memory instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Where it stands.
    pub pc: Pc,
    /// Which memory it goes to.
    pub space: Space,
    /// What it does.
    pub operation: Operation,
    /// Whether it goes past the L1: a store, an atomic, and a load that says so.
    pub past_l1: bool,
    /// Whether it is one end of an asynchronous copy, which is two instructions here: the load, and right behind it the store.
    pub is_of_copy: bool,
    /// To whom it is one access that may meet others without a race: an atomic, or a volatile access of global memory. None of a
    /// plain one.
    pub scope: Option<Scope>,
    /// How the hardware carries it out, if it is an atomic.
    pub kind: AtomicKind,
    log_width: u8,
}

impl Instruction {
    /// One at `pc` that accesses `1 << log_width` bytes a lane.
    #[inline]
    pub fn new(pc: Pc, space: Space, operation: Operation, log_width: u8) -> Self {
        let past_l1 = operation != Operation::Load;
        let scope = (operation == Operation::Atomic).then_some(Scope::Device);
        Self { pc, space, operation, past_l1, is_of_copy: false, scope, kind: AtomicKind::Plain, log_width }
    }

    /// Values that each lane brings to its element: a compare-and-swap brings two, and takes as many wavefronts as two requests.
    #[inline]
    pub(crate) fn values(&self) -> u64 {
        if self.kind == AtomicKind::Swap { 2 } else { 1 }
    }

    /// Bytes a lane.
    #[inline(always)]
    pub fn width(&self) -> u64 {
        1 << self.log_width
    }

    /// The logarithm of that.
    #[inline(always)]
    pub fn log_width(&self) -> u32 {
        self.log_width.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_kept_once() {
        let at = |line| Pc::of(Position { file: "kernel.rs", line, column: 1 });
        assert_eq!(at(3), at(3));
        assert_ne!(at(3), at(4));
        assert_eq!((at(4).line(), at(4).position().file), (4, "kernel.rs"));
    }
}
