//! Registers that are watched while a program runs, since they may be read before they are written.

use rustc_hash::FxHashMap;

/// The registers of a warp that are watched.
#[derive(Default)]
pub(crate) struct Watch {
    /// By their place among the watched, what they are called.
    pub(crate) names: Vec<&'static str>,
    /// What the instructions that use one do to them, by the instruction's place.
    pub(crate) uses: FxHashMap<u32, Use>,
}

/// What an instruction does to registers that are watched.
#[derive(Default)]
pub(crate) struct Use {
    /// Its guard, if that is one.
    pub(crate) guard: Option<u32>,
    /// Those that it reads otherwise, and those that it writes.
    pub(crate) reads: Vec<u32>,
    pub(crate) writes: Vec<u32>,
    /// What it makes of those that it reads; none if it makes nothing of them, and may not read what nobody wrote.
    pub(crate) makes: Option<Makes>,
}

/// What is made of several registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Makes {
    /// A value that all of them go into.
    OfAll,
    /// One that is put together of them: it is as good as the best of them.
    OfParts,
    /// The one that a predicate chooses: the first where it is set. Those that are not watched are good.
    Chosen { predicate: Option<u32>, of: [Option<u32>; 2] },
    /// Each lane's value goes to others: it is as good there as it was.
    Shuffled { source: u32, target: u32 },
}
