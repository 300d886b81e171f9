//! The parts of a kernel's source in which it touches memory. The text of the suite's kernels is built in, so their sources need not be
//! at hand.

use crate::sim::Position;
use gpu::kernels::{FAMILIES, SOURCES};
use gpu::suite::Kernel;
use serde::Serialize;
use std::collections::BTreeSet;

/// A function, or a part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

/// The kernel's function, and then every other one that a position stands in.
pub(super) fn excerpts(kernel: &Kernel, positions: impl Iterator<Item = Position>) -> Vec<Excerpt> {
    // The kernel's item begins with its documentation.
    let text = text(kernel.file).unwrap_or_default();
    let lines = text.lines().zip(1..).skip(kernel.line as usize - 1);
    let own = lines.into_iter().find(|(line, _)| is_function(line)).map(|(_, number)| (kernel.file, number));
    let mut excerpts: Vec<Excerpt> = Vec::new();
    for (file, line) in own.into_iter().chain(positions.map(|position| (position.file, position.line))) {
        if !excerpts.iter().any(|excerpt| excerpt.contains(file, line)) {
            excerpts.extend(function(file, line));
        }
    }
    excerpts
}

/// The text of a family's file.
fn text(file: &str) -> Option<&'static str> {
    let stands_in = |kernels: &[gpu::suite::Entry]| kernels.iter().any(|entry| entry.kernel.file == file);
    FAMILIES.iter().zip(SOURCES).find(|(family, _)| stands_in(family.kernels)).map(|(_, text)| *text)
}

/// Whether a line begins a function outside every other item.
fn is_function(line: &str) -> bool {
    !line.starts_with([' ', '/', '#']) && line.contains("fn ")
}

/// The function around a line; as the sources are formatted, it ends with the next brace at the margin.
fn function(file: &'static str, line: u32) -> Option<Excerpt> {
    let lines: Vec<_> = text(file)?.lines().collect();
    let first = lines[..line as usize].iter().rposition(|line| is_function(line))?;
    let last = first + lines[first..].iter().position(|line| *line == "}")?;
    Some(Excerpt::new(file, first as u32 + 1, &lines[first..=last]))
}
