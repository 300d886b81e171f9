//! Writes the accesses of a kernel as patterns: requests that repeat, further on by a delta each time, are one.

use crate::explain::{Access, Explanation};
use crate::record::operation_name;
use crate::sim::{Outcome, Sample};
use gpu::device::host::Space;
use gpu::suite::Operation;
use serde_json::{Value, json};

/// Requests of a kernel that are looked at one by one, at most.
pub const MOST_REQUESTS: u64 = 1 << 18;

/// Patterns of an access at most: one that needs more is irregular.
pub const MOST_PATTERNS: usize = 256;

/// Threads of a block of Spatter's, and so indices of a pattern that begins with a new warp each time.
const MOST_INDICES: usize = 1024;

/// Bytes of an element of Spatter's.
const ELEMENT: u64 = 8;

/// Why an access was not written: what it is, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    /// There is none of that name.
    #[error("--access {asked}: {kernel} has no such access to global memory: name one of {has}")]
    NoAccess {
        /// What was asked for.
        asked: String,
        /// The kernel.
        kernel: String,
        /// Those that it has.
        has: String,
    },
    /// The kernel touches no global memory.
    #[error("--spatter: {kernel} touches no global memory, and a pattern file holds nothing else: name another kernel")]
    NoGlobal {
        /// The kernel.
        kernel: String,
    },
    /// Not all of the requests were seen.
    #[error(
        "--spatter: {name} makes {requests} requests, of which {seen} were looked at: choose a smaller size, of up to {MOST_REQUESTS} requests in all"
    )]
    TooMany {
        /// The access.
        name: String,
        /// Its requests.
        requests: u64,
        /// Those that are known one by one.
        seen: u64,
    },
    /// Its requests are no patterns.
    #[error(
        "--spatter: {name} is irregular: {requests} requests are more than {MOST_PATTERNS} patterns; choose a smaller size, or \
         leave it out by --access"
    )]
    Irregular {
        /// The access.
        name: String,
        /// Its requests.
        requests: usize,
    },
}

/// Requests that repeat: the indices of some in a row, `delta` further on each of `count` times.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Repeated {
    indices: Vec<u64>,
    delta: u64,
    count: usize,
}

/// The accesses of a kernel to global memory as the text of a pattern file: those of the name `access`, or all.
///
/// A pattern's elements are 8 bytes. Accesses of fewer are written as the elements that they lie in, those of more as all that they
/// cover, so that sectors stay the same; atomics are written as scatters.
///
/// # Errors
/// If there is nothing to write, or too much.
pub fn written(explanation: &Explanation, outcome: &Outcome, access: Option<&str>) -> Result<String, NotWritten> {
    let kernel = &explanation.kernel;
    let all = explanation.accesses.iter().zip(outcome.sites.iter().zip(&outcome.sampled));
    let global: Vec<_> = all.filter(|(_, (site, _))| site.space == Space::Global).collect();
    if global.is_empty() {
        return Err(NotWritten::NoGlobal { kernel: kernel.clone() });
    }
    let is_chosen = |of: &Access| access.is_none_or(|access| of.name == access);
    let names = || global.iter().map(|(of, _)| format!("\"{}\"", of.name)).collect::<Vec<_>>();
    if let Some(asked) = access.filter(|_| !global.iter().any(|(of, _)| is_chosen(of))) {
        return Err(NotWritten::NoAccess { asked: asked.to_owned(), kernel: kernel.clone(), has: names().join(", ") });
    }
    let mut entries = Vec::new();
    for (of, (site, sampled)) in global.into_iter().filter(|(of, _)| is_chosen(of)) {
        let (requests, seen) = (site.counts.requests, sampled.samples.len() as u64);
        if requests != seen || outcome.blocks.count() != outcome.blocks.total {
            return Err(NotWritten::TooMany { name: of.name.clone(), requests, seen });
        }
        let lists: Vec<_> = sampled.samples.iter().map(|sample| indices(sample, site.width)).collect();
        let patterns =
            repeated(&lists).ok_or_else(|| NotWritten::Irregular { name: of.name.clone(), requests: lists.len() })?;
        let kind = if site.operation == Operation::Load { "Gather" } else { "Scatter" };
        let (all, line) = (patterns.len(), site.position.line);
        for (number, Repeated { indices, delta, count }) in patterns.into_iter().enumerate() {
            let part = if all > 1 { format!(", {} of {all}", number + 1) } else { String::new() };
            let name = format!("{kernel} line {line}: {} {}{part}", operation_name(site.operation), of.region);
            entries.push(json!({ "name": name, "kernel": kind, "pattern": indices, "delta": delta, "count": count }));
        }
    }
    Ok(text(&entries))
}

/// A configuration a line, as Spatter's own files have it.
fn text(entries: &[Value]) -> String {
    let lines: Vec<_> = entries.iter().map(|entry| format!("    {entry}")).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// The elements that a request touches, lane by lane.
fn indices(sample: &Sample, width: u64) -> Vec<u64> {
    let lanes = (0..32).filter(|lane| sample.mask >> lane & 1 == 1);
    lanes
        .flat_map(|lane| (0..width.div_ceil(ELEMENT)).map(move |part| sample.addresses[lane] / ELEMENT + part))
        .collect()
}

/// The requests as patterns that repeat, in order; none if they are too many.
fn repeated(lists: &[Vec<u64>]) -> Option<Vec<Repeated>> {
    let (mut patterns, mut at) = (Vec::new(), 0);
    while at < lists.len() {
        if patterns.len() == MOST_PATTERNS {
            return None;
        }
        let (together, pattern) = longest(&lists[at..]);
        at += together * pattern.count;
        patterns.push(pattern);
    }
    Some(patterns)
}

/// How many requests in a row, from the first on, repeat for the longest, and what they are together.
fn longest(lists: &[Vec<u64>]) -> (usize, Repeated) {
    let once = Repeated { indices: lists[0].clone(), delta: 0, count: 1 };
    let mut best = (1, once);
    let mut indices = Vec::new();
    for together in 1..=lists.len() / 2 {
        // Another request begins with another warp.
        if !indices.len().is_multiple_of(32) || indices.len() + lists[together - 1].len() > MOST_INDICES {
            break;
        }
        indices.extend(&lists[together - 1]);
        let Some(delta) = lists[together].first().and_then(|next| next.checked_sub(indices[0])) else { continue };
        let follows = |at: &usize| {
            let (before, after) = (&lists[*at - together], &lists[*at]);
            before.len() == after.len() && before.iter().zip(after).all(|(before, after)| before + delta == *after)
        };
        let covered = together + (together..lists.len()).take_while(follows).count();
        let count = covered / together;
        if count > 1 && count * together > best.0 * best.1.count {
            best = (together, Repeated { indices: indices.clone(), delta, count });
        }
        if covered == lists.len() && count * together == covered {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side_by_side(first: u64) -> Vec<u64> {
        (first..first + 32).collect()
    }

    #[test]
    fn requests_that_move_on_alike_are_one_pattern() {
        let lists: Vec<_> = (0..100).map(|k| side_by_side(32 * k)).collect();
        let pattern = Repeated { indices: side_by_side(0), delta: 32, count: 100 };
        assert_eq!(repeated(&lists), Some(vec![pattern]));
    }

    #[test]
    fn requests_in_turns_are_one_longer_pattern_and_what_is_left_another() {
        let turns = (0..20).map(|k| side_by_side(1000 * (k / 4) + 3 * (k % 4) * (k % 4)));
        let lists: Vec<_> = turns.chain([vec![7; 5]]).collect();
        let patterns = repeated(&lists).expect("two patterns");
        let [first, last] = patterns.try_into().expect("two patterns");
        assert_eq!((first.indices.len(), first.delta, first.count), (128, 1000, 5));
        assert_eq!(last, Repeated { indices: vec![7; 5], delta: 0, count: 1 });
    }

    #[test]
    fn what_falls_begins_anew_and_what_never_repeats_is_irregular() {
        let falling: Vec<_> = (0..4).rev().map(|k| side_by_side(32 * k)).collect();
        assert_eq!(repeated(&falling).map(|patterns| patterns.len()), Some(4));
        let irregular: Vec<_> = (0..2 * MOST_PATTERNS as u64).map(|k| side_by_side(k * k * k % 9973)).collect();
        assert_eq!(repeated(&irregular), None);
    }
}
