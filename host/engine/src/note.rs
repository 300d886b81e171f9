//! What the compiler may make of an access, so that the hardware makes other requests than the source says.

use std::fmt;
use std::ops::BitOrAssign;

/// A change by the compiler.
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
}

impl BitOrAssign for Seen {
    fn bitor_assign(&mut self, other: Self) {
        self.left_apart |= other.left_apart;
        self.one_address |= other.one_address;
        self.several_addresses |= other.several_addresses;
    }
}

impl Seen {
    pub(crate) fn notes(self) -> Vec<Note> {
        let unrolled = self.left_apart.then_some(Note::UnrolledLoop);
        let reduced = (self.one_address && !self.several_addresses).then_some(Note::ReducedAtomic);
        unrolled.into_iter().chain(reduced).collect()
    }
}
