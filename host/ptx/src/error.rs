//! What is wrong with PTX, and where.

use std::fmt;

/// A place in the text of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: u32,
    /// The column in bytes, from 1.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Text that is no PTX.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {detail}")]
pub struct ParseError {
    /// Where.
    pub place: Place,
    /// The token, and what should stand there.
    pub detail: String,
}

impl ParseError {
    pub(crate) fn new(place: Place, detail: impl Into<String>) -> Self {
        Self { place, detail: detail.into() }
    }
}

/// An entry that this machine does not carry out. Nothing of it has run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// There is no such entry.
    #[error("the module has no entry `{entry}`: it has {known}")]
    NoEntry {
        /// The name that was asked for.
        entry: String,
        /// Those that there are.
        known: String,
    },
    /// Something in it is wrong, or is not carried out.
    #[error("{place}: {detail}{}", counted(*.others))]
    At {
        /// Where.
        place: Place,
        /// What is there, and why it cannot be carried out.
        detail: String,
        /// How many other instructions of the entry cannot be carried out either.
        others: usize,
    },
    /// The parameters that are given are not those of the entry.
    #[error("`{entry}` takes {takes} parameters, and {given} are given: give a word for each, in their order")]
    Parameters {
        /// The entry.
        entry: String,
        /// How many it has.
        takes: usize,
        /// How many there are.
        given: usize,
    },
}

fn counted(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "; one other instruction of the entry is not carried out either".to_owned(),
        _ => format!("; {count} other instructions of the entry are not carried out either"),
    }
}

impl LowerError {
    pub(crate) fn at(place: Place, detail: impl Into<String>) -> Self {
        Self::At { place, detail: detail.into(), others: 0 }
    }
}
