//! Names: the scopes of a function's blocks, and what stands in them.

use crate::ast::{Type, Variable};
use rustc_hash::FxHashMap;

/// What a name means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named<'m, 'a> {
    /// A register, or a row of them: the number of its declaration.
    Register { declaration: u32, ty: Type, vector: u32, range: Option<u32> },
    /// A variable of the thread's own: where it begins.
    Local(&'m Variable<'a>, u64),
    /// A variable of a function that is called: where it begins in the function's frame.
    Framed(&'m Variable<'a>, u64),
    /// A parameter of the entry: where it begins.
    Parameter(&'m Variable<'a>, u64),
    /// A label.
    Label(u32),
    /// The targets of a `brx`: the number of the table.
    Targets(u32),
}

/// A register: its declaration, its number among those, and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Register {
    pub(super) key: (u32, u32),
    pub(super) ty: Type,
    pub(super) vector: u32,
}

/// The names that are known at some place.
#[derive(Default)]
pub(super) struct Scopes<'m, 'a> {
    scopes: Vec<FxHashMap<&'a str, Named<'m, 'a>>>,
}

impl<'m, 'a> Scopes<'m, 'a> {
    pub(super) fn enter(&mut self) {
        self.scopes.push(FxHashMap::default());
    }

    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Takes the scopes of a function away, to lower one that it calls.
    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    pub(super) fn add(&mut self, name: &'a str, named: Named<'m, 'a>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, named);
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<Named<'m, 'a>> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name).copied())
    }

    /// The register of that name, which may be one of a row.
    pub(super) fn register(&self, name: &str) -> Option<Register> {
        if let Some(Named::Register { declaration, ty, vector, range: None }) = self.get(name) {
            return Some(Register { key: (declaration, 0), ty, vector });
        }
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        // The row's own name may end in digits: each split is tried, the longest number first.
        (stem.len()..name.len()).find_map(|split| {
            let (row, number) = name.split_at(split);
            if number.len() > 1 && number.starts_with('0') {
                return None;
            }
            let number: u32 = number.parse().ok()?;
            match self.get(row)? {
                Named::Register { declaration, ty, vector, range: Some(count) } if number < count => {
                    Some(Register { key: (declaration, number), ty, vector })
                }
                _ => None,
            }
        })
    }
}
