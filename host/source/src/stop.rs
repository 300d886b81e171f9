//! Why a lane cannot go on.

use crate::overflow::Overflow;
use crate::requests::Twice;
use engine::{Instruction, Kind, Pc};
use std::panic::Location;

/// Why the running lane cannot go on: boxed, so that going on costs nothing.
pub(super) struct Stop(pub(super) Box<Reason>);

/// The reason itself.
pub(super) enum Reason {
    /// A finding, and where if that is elsewhere.
    Found(Kind, String, Option<&'static Location<'static>>),
    /// It touches what a copy is under way to, by a thread that began it there.
    UnderWay { instruction: Instruction, address: u64, copy: (u32, Pc) },
}

impl Stop {
    /// For a kind of finding, and a sentence.
    #[cold]
    pub(super) fn of((kind, detail): (Kind, String)) -> Self {
        Self::new(kind, detail)
    }

    #[cold]
    pub(super) fn new(kind: Kind, detail: String) -> Self {
        Self(Box::new(Reason::Found(kind, detail, None)))
    }
}

#[cold]
pub(super) fn twice(Twice(site): Twice) -> Stop {
    let detail = "a lane comes by this access twice in one iteration, so its requests cannot be told apart: run the loop \
                  around it through `steps`, `each` or `unroll!`, or make the function it stands in a `#[device]` one";
    Stop(Box::new(Reason::Found(Kind::OpenGrouping, detail.into(), Some(site.at()))))
}

#[cold]
pub(super) fn stack_overflow() -> Stop {
    Stop::new(Kind::StackOverflow, Overflow::detail())
}
