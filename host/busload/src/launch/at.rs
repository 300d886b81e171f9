//! Accesses of a launch, by name or by line, and assertions on their counts.

use crate::sim::{Outcome, Position, Site};
use crate::texts;
use crate::why::{self, operation_name, percent};
use gpu::suite::{Counts, Kernel, Plan, Space};
use std::fmt::{self, Write};

/// Counts a request differ where they are shown as others: to two digits.
const SHOWN: f64 = 0.005;

/// An access: a source position, with one operation on one memory.
pub(super) struct Access {
    pub(super) site: Site,
    name: String,
    /// Its line, as it stands in its file.
    text: Option<String>,
    why: String,
    advice: Vec<String>,
}

impl Access {
    /// The accesses of a run, in the order of the source.
    pub(super) fn all(kernel: &Kernel, plan: &Plan, outcome: &Outcome) -> Vec<Self> {
        let seen: Vec<_> = outcome.sites.iter().zip(&outcome.sampled).collect();
        let access = |n: usize| {
            let (site, sampled) = seen[n];
            let excess = why::excess(site, sampled);
            let remedies = if excess > 0 { why::remedies(&seen, n) } else { Vec::new() };
            Self {
                site: site.clone(),
                name: format!("{} {}", operation_name(site.operation), why::region(sampled)),
                text: text(kernel, site.position),
                why: why::why(site, sampled, plan.launch.block),
                advice: why::advice(site, excess, &remedies),
            }
        };
        (0..seen.len()).map(access).collect()
    }

    /// Those of this name; else those that stand in this part of a source line, or, where none stands in it, beside it.
    pub(super) fn find<'a>(accesses: &'a [Self], name: &str) -> Vec<&'a Self> {
        let those =
            |is_one: &dyn Fn(&Self) -> bool| accesses.iter().filter(|access| is_one(access)).collect::<Vec<_>>();
        let named = those(&|access| access.name == name);
        if !named.is_empty() || name.trim().is_empty() {
            return named;
        }
        let within = those(&|access| {
            let text = access.text.as_deref().unwrap_or_default();
            let column = access.site.position.column as usize;
            text.match_indices(name).any(|(start, part)| {
                // Columns count characters, from 1.
                let before = text[..start].chars().count();
                (before + 1..=before + part.chars().count()).contains(&column)
            })
        });
        match within.is_empty() {
            true => those(&|access| access.text.as_deref().is_some_and(|text| text.contains(name))),
            false => within,
        }
    }

    /// Whether its requests have wavefronts: those to shared and constant memory.
    pub(super) fn has_wavefronts(&self) -> bool {
        self.site.space != Space::Global
    }

    /// A count a request.
    fn average(&self, count: u64) -> f64 {
        count as f64 / self.site.counts.requests.max(1) as f64
    }

    /// What it asked for, in words.
    fn counts(&self) -> String {
        let Counts { requests, sectors, sectors_ideal, wavefronts, wavefronts_ideal, .. } = self.site.counts;
        let requests_shown = format!("{requests} request{}", if requests == 1 { "" } else { "s" });
        match self.has_wavefronts() {
            true => format!(
                "{requests_shown}, {:.2} wavefronts each (ideal {:.2})",
                self.average(wavefronts),
                self.average(wavefronts_ideal)
            ),
            false => format!(
                "{requests_shown}, {:.2} sectors each (ideal {:.2}), {} used",
                self.average(sectors),
                self.average(sectors_ideal),
                percent(self.site.used, 32 * sectors)
            ),
        }
    }
}

/// The line that a position names.
fn text(kernel: &Kernel, position: Position) -> Option<String> {
    let text = texts::of(kernel, position.file)?;
    text.lines().nth((position.line as usize).checked_sub(1)?).map(str::to_owned)
}

/// A source line with its place above and `note` under its column.
pub(super) fn line(kernel: &Kernel, position: Position, note: &str) -> String {
    let Position { file, line, column } = position;
    let Some(text) = text(kernel, position) else {
        return format!("\n  {file}:{line}:{column}: {note} (the source is not at hand)");
    };
    let margin = " ".repeat((column as usize).saturating_sub(1));
    format!("\n  {file}:{line}:{column}\n  {line:5} │ {text}\n        │ {margin}^ {note}")
}

/// Accesses of a launch. Each assertion holds for every one of them, and gives them back for the next.
pub struct Accesses<'a> {
    kernel: Kernel,
    accesses: Vec<&'a Access>,
}

impl<'a> Accesses<'a> {
    pub(super) fn new(kernel: Kernel, accesses: Vec<&'a Access>) -> Self {
        Self { kernel, accesses }
    }

    pub(super) fn len(&self) -> usize {
        self.accesses.len()
    }

    /// Their counts, summed.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.accesses.iter().map(|access| access.site.counts).sum()
    }

    /// Where they stand, in the order of the source.
    #[must_use]
    pub fn positions(&self) -> Vec<Position> {
        self.accesses.iter().map(|access| access.site.position).collect()
    }

    /// Asserts sectors of global memory a request, on average, to two digits.
    ///
    /// # Panics
    /// If they are others, or the access is not to global memory: with the line, its counts, and why.
    #[track_caller]
    pub fn assert_sectors_per_request(&self, expected: f64) -> &Self {
        self.assert_average("sectors", false, expected, |counts| counts.sectors)
    }

    /// Asserts wavefronts of shared memory a request, on average, to two digits; of constant memory, distinct addresses.
    ///
    /// # Panics
    /// If they are others, or the access is to global memory: with the line, its counts, and why.
    #[track_caller]
    pub fn assert_wavefronts_per_request(&self, expected: f64) -> &Self {
        self.assert_average("wavefronts", true, expected, |counts| counts.wavefronts)
    }

    /// Asserts requests, summed over the accesses.
    ///
    /// # Panics
    /// If there are more or fewer.
    #[track_caller]
    pub fn assert_requests(&self, expected: u64) -> &Self {
        let requests = self.counts().requests;
        assert!(
            requests == expected,
            "`{}`: {requests} requests, and {expected} were asserted\n{self}",
            self.kernel.name
        );
        self
    }

    /// Asserts that the accesses are to shared or constant memory, and every request needs no more wavefronts than its bytes do.
    ///
    /// # Panics
    /// If one needs more: with the line, its counts, and why.
    #[track_caller]
    pub fn assert_conflict_free(&self) -> &Self {
        self.assert_each("be free of conflicts", |access| {
            access.has_wavefronts() && access.site.counts.wavefronts == access.site.counts.wavefronts_ideal
        })
    }

    /// Asserts that the accesses are to global memory, and every request moves no more sectors than its bytes fill side by side.
    ///
    /// # Panics
    /// If one moves more: with the line, its counts, and why.
    #[track_caller]
    pub fn assert_coalesced(&self) -> &Self {
        self.assert_each("be coalesced", |access| {
            !access.has_wavefronts() && access.site.counts.sectors == access.site.counts.sectors_ideal
        })
    }

    /// Asserts that at least this share of the bytes in the sectors moved is wanted by lanes, from 0 to 1.
    ///
    /// # Panics
    /// If it is less, or the access is not to global memory: with the line, its counts, and why.
    #[track_caller]
    pub fn assert_used(&self, at_least: f64) -> &Self {
        self.assert_each(&format!("use {:.1} % of the bytes moved", 100.0 * at_least), |access| {
            !access.has_wavefronts() && access.site.used as f64 >= at_least * (32 * access.site.counts.sectors) as f64
        })
    }

    #[track_caller]
    fn assert_average(&self, unit: &str, of_wavefronts: bool, expected: f64, count: fn(&Counts) -> u64) -> &Self {
        let is_so = |access: &Access| {
            access.has_wavefronts() == of_wavefronts
                && (access.average(count(&access.site.counts)) - expected).abs() < SHOWN
        };
        self.assert_each(&format!("need {expected:.2} {unit} a request"), is_so)
    }

    #[track_caller]
    fn assert_each(&self, what: &str, is_so: impl Fn(&Access) -> bool) -> &Self {
        if let Some(access) = self.accesses.iter().find(|access| !is_so(access)) {
            panic!("`{}` of `{}` was to {what}{}", access.name, self.kernel.name, self.shown(access));
        }
        self
    }

    /// An access with its line, its counts, why it costs what it costs, and what would lower that.
    fn shown(&self, access: &Access) -> String {
        let note = format!("{}: {}", access.name, access.counts());
        let mut shown = format!("{}\n  {}", line(&self.kernel, access.site.position, &note), access.why);
        for advice in &access.advice {
            let _ = write!(shown, "\n    → {advice}");
        }
        shown
    }
}

/// The accesses, a line each, with their counts.
impl fmt::Display for Accesses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.accesses.iter().map(|access| access.name.len()).max().unwrap_or_default();
        for Access { site, name, text, .. } in self.accesses.iter().copied() {
            let Position { file, line, column } = site.position;
            writeln!(f, "  {name:width$}  {file}:{line}:{column}  {}", text.as_deref().unwrap_or_default().trim())?;
        }
        Ok(())
    }
}
