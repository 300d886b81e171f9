//! From `.loc` to source positions.

use crate::ast::{Location, Module, Point};
use crate::error::Place;
use crate::intern::intern;
use engine::{Pc, Position};
use rustc_hash::FxHashMap;

/// How deep calls may be inlined in one another.
const DEEPEST: usize = 64;

/// Which positions instructions are given.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// What to call the module's own text, for instructions that the line table says nothing of.
    pub file: &'a str,
    /// An instruction that was inlined stands at several positions, from where its own code is to where it was called: it is given the
    /// innermost one whose file begins like this; the innermost one if there is none.
    pub within: &'a str,
}

/// The position that holds.
pub(super) struct Positions<'m, 'a> {
    module: &'m Module<'a>,
    lines: Lines<'m>,
    /// Where the code at a point was inlined.
    callers: FxHashMap<Point, Point>,
    files: FxHashMap<u32, &'static str>,
    own_file: &'static str,
    current: Option<Pc>,
}

impl<'m, 'a> Positions<'m, 'a> {
    pub(super) fn new(module: &'m Module<'a>, lines: Lines<'m>) -> Self {
        let own_file = intern(lines.file);
        Self { module, lines, callers: FxHashMap::default(), files: FxHashMap::default(), own_file, current: None }
    }

    /// The position of an instruction at `place` of the text.
    pub(super) fn at(&self, place: Place) -> Pc {
        let Place { line, column } = place;
        self.current.unwrap_or_else(|| Pc::of(Position { file: self.own_file, line, column }))
    }

    /// Nothing is said of what follows.
    pub(super) fn forget(&mut self) {
        self.current = None;
    }

    /// What was said before holds again.
    pub(super) fn resume(&mut self, pc: Pc) {
        self.current = Some(pc);
    }

    pub(super) fn locate(&mut self, location: &Location<'a>) {
        match location.inlined {
            Some((_, caller)) => self.callers.insert(location.at, caller),
            None => self.callers.remove(&location.at),
        };
        let mut points = Vec::new();
        let mut next = Some(location.at);
        while let Some(point) = next.filter(|_| points.len() < DEEPEST) {
            points.push(point);
            next = self.callers.get(&point).copied();
        }
        // A line of 0 belongs to several: what comes before holds on.
        points.retain(|point| point.line > 0 && self.module.files.contains_key(&point.file));
        let is_within = |point: &&Point| self.module.files[&point.file].starts_with(self.lines.within);
        if let Some(&point) = points.iter().find(is_within).or_else(|| points.first()) {
            let file = *self.files.entry(point.file).or_insert_with(|| intern(self.module.files[&point.file]));
            self.current = Some(Pc::of(Position { file, line: point.line, column: point.column }));
        }
    }
}
