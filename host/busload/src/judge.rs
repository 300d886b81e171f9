//! Whether a simulated run is right: nothing found by the sanitizer, every result its reference, and the counts the family's.

use crate::sim::{Outcome, Position};
use crate::verify;
use crate::why::operation_name;
use gpu::suite::{Counts, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// What was looked at: `findings`, `verification` or `counts`.
    pub kind: &'static str,
    /// What is wrong, with the lines or elements.
    pub message: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What is wrong with a simulated run: findings, then wrong results, then counts that are not the family's, if those are to hold.
#[must_use]
pub fn judge(plan: &Plan, outcome: &Outcome, holds_counts: bool) -> Option<Wrong> {
    let wrong = |kind, message: String| Some(Wrong { kind, message });
    if !outcome.findings.is_empty() {
        let mut lines: Vec<_> = outcome.findings.iter().map(ToString::to_string).collect();
        let kinds: BTreeSet<_> = outcome.findings.iter().map(|finding| finding.kind).collect();
        lines.extend(kinds.into_iter().filter_map(|kind| Some(format!("{}: {}", kind.name(), kind.remedy()?))));
        return wrong("findings", lines.join("\n"));
    }
    if !outcome.blocks.complete() {
        return None;
    }
    let actual = |buffer, i| outcome.actual(buffer, i).expect("without findings the memory is there");
    if let Err(mismatch) = verify::verify(plan, actual) {
        return wrong("verification", mismatch.to_string());
    }
    let differences = if holds_counts { count_differences(plan, outcome) } else { String::new() };
    (!differences.is_empty()).then(|| wrong("counts", differences + WHICH)).flatten()
}

/// What to do about counts that are not as stated.
const WHICH: &str = "Work out by hand which of the two is wrong: the closed form that is stated, or the kernel.";

/// Where the counts of a whole grid are not the closed form of its family: a line for each operation on a buffer, with the
/// source lines that make it and the counts that differ. Nothing if the plan states none.
pub fn count_differences(plan: &Plan, outcome: &Outcome) -> String {
    if plan.expected.is_empty() {
        return String::new();
    }
    let mut expected = BTreeMap::<_, Counts>::new();
    for part in &plan.expected {
        *expected.entry((part.buffer.to_owned(), part.operation, u64::from(part.width))).or_default() += part.counts;
    }
    let mut differences = String::new();
    for key in expected.keys().chain(outcome.regions.keys().filter(|key| !expected.contains_key(*key))) {
        let [model, counted] = [&expected, &outcome.regions].map(|counts| counts.get(key).copied().unwrap_or_default());
        let differ = model.named().into_iter().zip(counted.named()).filter(|(model, counted)| model != counted);
        let (model, counted): (Vec<_>, Vec<_>) = differ
            .map(|((name, model), (_, counted))| (format!("{model} {name}"), format!("{counted} {name}")))
            .unzip();
        if !model.is_empty() {
            let (buffer, operation, width) = key;
            let _ = writeln!(
                differences,
                "{}s of `{buffer}` at {width} bytes ({}): the family's closed form gives {}, the simulator counted {}",
                operation_name(*operation),
                places(outcome.lines.get(key)),
                model.join(", "),
                counted.join(", ")
            );
        }
    }
    differences
}

/// The lines of accesses, file by file.
fn places(positions: Option<&BTreeSet<Position>>) -> String {
    let mut places = String::new();
    let mut before = ("", 0);
    for position in positions.into_iter().flatten() {
        let (file, line) = (position.file, position.line);
        let _ = match before {
            (same, known) if same == file && known == line => Ok(()),
            (same, _) if same == file => write!(places, ", {line}"),
            ("", _) => write!(places, "{file}:{line}"),
            _ => write!(places, ", {file}:{line}"),
        };
        before = (file, line);
    }
    if places.is_empty() { "no line makes them".to_owned() } else { places }
}
