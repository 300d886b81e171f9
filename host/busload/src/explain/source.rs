//! The parts of a kernel's source in which it touches memory.

use crate::sim::Position;
use crate::texts;
use gpu::suite::Kernel;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A function, or a part of a file.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Excerpt {
    /// Its file.
    pub file: String,
    /// The number of its first line.
    pub line: u32,
    /// Its lines.
    pub lines: Vec<String>,
}

/// Lines before and after an access that are shown with it, and lines between two that are.
const AROUND: u32 = 3;
const BETWEEN: u32 = 24;

impl Excerpt {
    fn new(file: &str, line: u32, lines: &[&str]) -> Self {
        Self { file: file.to_owned(), line, lines: lines.iter().map(|line| (*line).to_owned()).collect() }
    }

    /// The parts of a file in which such lines stand, with some around them; without its text, a word in the place of each.
    pub fn of_file(file: &str, text: Option<&str>, of_interest: &BTreeSet<u32>) -> Vec<Self> {
        let lines: Vec<_> = text.unwrap_or_default().lines().collect();
        let mut parts: Vec<(u32, u32)> = Vec::new();
        let mut missing = Vec::new();
        for &line in of_interest {
            if line == 0 || line as usize > lines.len() {
                missing.push(Self::new(file, line, &["(the source is not at hand)"]));
                continue;
            }
            let (first, last) = (line.saturating_sub(AROUND).max(1), (line + AROUND).min(lines.len() as u32));
            match parts.last_mut() {
                Some((_, end)) if first <= *end + BETWEEN => *end = last,
                _ => parts.push((first, last)),
            }
        }
        let part = |(first, last): (u32, u32)| Self::new(file, first, &lines[first as usize - 1..last as usize]);
        parts.into_iter().map(part).chain(missing).collect()
    }

    /// Whether it contains a line of a file.
    pub fn contains(&self, file: &str, line: u32) -> bool {
        self.file == file && (self.line..self.line + self.lines.len() as u32).contains(&line)
    }
}

/// The kernel's function, and then every other one that a position stands in. Of a file that is not at hand the positions alone.
pub(super) fn excerpts(kernel: &Kernel, positions: impl Iterator<Item = Position>) -> Vec<Excerpt> {
    let mut texts = BTreeMap::new();
    let mut text_of = |file| texts.entry(file).or_insert_with(|| texts::of(kernel, file)).clone();
    // The kernel's item begins with its documentation.
    let own = text_of(kernel.file).and_then(|text| {
        let mut lines = text.lines().zip(1..).skip(kernel.line as usize - 1);
        lines.find(|(line, _)| is_function(line)).map(|(_, number)| (kernel.file, number))
    });
    let mut excerpts: Vec<Excerpt> = Vec::new();
    for (file, line) in own.into_iter().chain(positions.map(|position| (position.file, position.line))) {
        if !excerpts.iter().any(|excerpt| excerpt.contains(file, line)) {
            let text = text_of(file);
            let function = text.as_deref().and_then(|text| function(file, text, line));
            let around = || Excerpt::of_file(file, text.as_deref(), &BTreeSet::from([line]));
            excerpts.extend(function.map_or_else(around, |function| vec![function]));
        }
    }
    excerpts
}

/// Whether a line begins a function.
fn is_function(line: &str) -> bool {
    let is_qualifier = |word: &str| word.starts_with("pub") || ["const", "unsafe", "extern", "async"].contains(&word);
    let head = line.split_once("fn ").map(|(head, _)| head);
    head.is_some_and(|head| head.split_whitespace().all(is_qualifier))
}

/// Spaces before the first other character.
fn margin(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The function around a line; as the sources are formatted, it ends with the next brace at its margin.
fn function(file: &str, text: &str, line: u32) -> Option<Excerpt> {
    let lines: Vec<_> = text.lines().collect();
    let within = lines.get(..line as usize)?;
    let first = within.iter().rposition(|line| is_function(line))?;
    let end = format!("{}}}", " ".repeat(margin(lines[first])));
    let last = first + lines[first..].iter().position(|line| *line == end)?;
    (last + 1 >= line as usize).then(|| Excerpt::new(file, first as u32 + 1, &lines[first..=last]))
}
