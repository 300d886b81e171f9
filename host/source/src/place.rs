//! Where lanes stand, and how the engine knows that.

use engine::{Pc, Position};
use gpu::device::host::Call;
use std::panic::Location;
use std::ptr;

/// Where a lane waits: a position, and the calls that lead there.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) at: &'static Location<'static>,
    pub(super) call: Call,
}

impl Place {
    /// Whether lanes at both wait for one another; mostly their positions are one.
    #[inline(always)]
    pub(super) fn is(self, other: Self) -> bool {
        self.call.path == other.call.path && is_same(self.at, other.at)
    }

    /// What tells it from another place: its position or, where both have the same, the call that leads there.
    pub(super) fn told_from(self, other: Self) -> Position {
        let call = self.call.at.filter(|_| is_same(self.at, other.at));
        position(call.unwrap_or(self.at))
    }
}

/// A position of Rust's as the engine knows it.
pub(super) fn position(at: &'static Location<'static>) -> Position {
    Position { file: at.file(), line: at.line(), column: at.column() }
}

/// The same in one word.
#[cold]
pub(super) fn pc(at: &'static Location<'static>) -> Pc {
    Pc::of(position(at))
}

/// Whether two positions are the same.
fn is_same(a: &'static Location<'static>, b: &'static Location<'static>) -> bool {
    ptr::eq(a, b) || a == b
}
