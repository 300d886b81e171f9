//! An argument at its place in a launch file.

use super::file::{ArgumentTable, Invalid, LaunchFile};
use std::ops::Range;
use toml::Spanned;

/// An argument at its place in a launch file.
pub struct At<'a> {
    /// The file.
    pub file: &'a LaunchFile,
    /// What is stated.
    pub table: &'a Spanned<ArgumentTable>,
    /// What it is, as in `argument 2 of `scale``.
    pub what: String,
}

impl At<'_> {
    /// What is wrong with it, at a place.
    pub(super) fn wrong<T>(&self, at: Range<usize>, what: impl std::fmt::Display) -> Result<T, Invalid> {
        Err(self.file.invalid(at, format!("{}: {what}", self.what)))
    }

    pub(super) fn table(&self) -> &ArgumentTable {
        self.table.get_ref()
    }

    /// The keys that are given, each with its place.
    fn given(&self) -> Vec<(&'static str, Range<usize>)> {
        let table = self.table();
        macro_rules! given { ($($key:ident)*) => {
            [$((stringify!($key), table.$key.as_ref().map(Spanned::span))),*]
        } }
        let all = given!(name value bytes buffer length fill range seed start step npy write expect absolute relative);
        all.into_iter().filter_map(|(key, span)| Some((key, span?))).collect()
    }

    /// Refuses keys that mean nothing beside what the argument is.
    pub(super) fn only(&self, what: &str, keys: &[&str]) -> Result<(), Invalid> {
        match self.given().into_iter().find(|(key, _)| !keys.contains(key)) {
            Some((key, span)) => self.wrong(span, format!("`{key}` means nothing for {what}: leave it out")),
            None => Ok(()),
        }
    }
}
