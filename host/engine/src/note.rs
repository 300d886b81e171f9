//! What addresses alone do not tell of an access: what the compiler may make of it, and what asynchronous copies ask.

use std::fmt;
use std::ops::BitOrAssign;

/// Why the hardware may count otherwise than other accesses of the same addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(
    feature = "serde",
    derive(schemars::JsonSchema, serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum Note {
    /// Lanes of a warp leave a loop around the access after different numbers of iterations.
    UnrolledLoop,
    /// All lanes of each request add integers to one address.
    ReducedAtomic,
    /// Not all bytes of a wide load are used. The simulator does not see that; the hardware's counters show it.
    NarrowedLoad,
    /// An asynchronous copy moves more than a load or a store of the same addresses.
    CopyInTurns,
    /// Some lanes stay out of an asynchronous copy.
    CopyByPart,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnrolledLoop => {
                "lanes of a warp leave the loop around it after different numbers of iterations: where ptxas unrolls it, they \
                 make more requests"
            }
            Self::ReducedAtomic => {
                "all lanes of a request add integers to one address: where the compiler knows it, one lane adds their sum"
            }
            Self::NarrowedLoad => "not all bytes of it are used: the compiler loads fewer",
            Self::CopyInTurns => {
                "an asynchronous copy does not send a word to several lanes, as a load does, and of 16 bytes a lane it moves whole \
                 sectors: lanes take turns that copy one word, from one bank, or to another place in their sector or line"
            }
            Self::CopyByPart => {
                "some lanes stay out of an asynchronous copy: where ptxas keeps them out by a predicate, Nsight Compute counts their \
                 sectors and wavefronts too"
            }
        })
    }
}

/// What was seen of the requests of a source position.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    /// Lanes that took fewer steps of loops than others were missing from some.
    pub left_apart: bool,
    /// Some were integer additions of several lanes to one address.
    pub one_address: bool,
    /// Some were integer additions to several addresses.
    pub several_addresses: bool,
    /// Some took more as a copy than a load or a store of their addresses would.
    pub in_turns: bool,
    /// Some were copies of a part of the lanes.
    pub by_part: bool,
}

impl BitOrAssign for Seen {
    fn bitor_assign(&mut self, other: Self) {
        self.left_apart |= other.left_apart;
        self.one_address |= other.one_address;
        self.several_addresses |= other.several_addresses;
        self.in_turns |= other.in_turns;
        self.by_part |= other.by_part;
    }
}

impl Seen {
    pub(crate) fn notes(self) -> Vec<Note> {
        let unrolled = self.left_apart.then_some(Note::UnrolledLoop);
        let reduced = (self.one_address && !self.several_addresses).then_some(Note::ReducedAtomic);
        let in_turns = self.in_turns.then_some(Note::CopyInTurns);
        let by_part = self.by_part.then_some(Note::CopyByPart);
        [unrolled, reduced, in_turns, by_part].into_iter().flatten().collect()
    }
}
