//! The functions of a kernel's source in which it touches memory. Their text is built in, so the sources need not be at
//! hand.

use crate::sim::Position;
use gpu::kernels::{FAMILIES, SOURCES};
use gpu::suite::Kernel;
use serde::Serialize;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// Its file.
    pub file: &'static str,
    /// The number of its first line.
    pub line: u32,
    /// Its lines.
    pub lines: Vec<&'static str>,
}

impl Excerpt {
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
    Some(Excerpt { file, line: first as u32 + 1, lines: lines[first..=last].to_vec() })
}
