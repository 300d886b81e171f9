//! What came of a launch.

use super::at::{Access, Accesses};
use crate::judge::{Wrong, judge};
use crate::sim::{Finding, Outcome};
use gpu::suite::{Kernel, Plan};
use std::fmt;
use std::sync::Arc;

/// What came of a launch: findings, results beside their reference, and the counts of each access.
#[must_use = "what is wrong with a run stands in its report: `assert_clean` says it"]
pub struct Report {
    kernel: Kernel,
    plan: Arc<Plan>,
    outcome: Outcome,
    wrong: Option<Wrong>,
    accesses: Vec<Access>,
}

impl Report {
    pub(super) fn new(kernel: Kernel, plan: Arc<Plan>, outcome: Outcome) -> Self {
        let wrong = judge(&plan, &outcome, true);
        let accesses = Access::all(&kernel, &plan, &outcome);
        Self { kernel, plan, outcome, wrong, accesses }
    }

    /// What the sanitizer found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.outcome.findings
    }

    /// What is wrong with the run: findings, or results, or counts that are not those that its plan states; none if nothing is.
    #[must_use]
    pub fn wrong(&self) -> Option<&Wrong> {
        self.wrong.as_ref()
    }

    /// Everything that the simulator tells.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Asserts that the sanitizer found nothing, and that every element of every output is what it must be. [`Builder::run`](super::Builder::run)
    /// has done so already.
    ///
    /// # Panics
    /// If not.
    #[track_caller]
    pub fn assert_clean(&self) -> &Self {
        if let Some(complaint) = self.complaint() {
            panic!("{complaint}");
        }
        self
    }

    /// What is wrong, with the kernel and the source lines.
    pub(super) fn complaint(&self) -> Option<String> {
        let wrong = self.wrong.as_ref()?;
        let what = match wrong.kind {
            "findings" => "the sanitizer found",
            "verification" => "a result is wrong:",
            _ => "the counts are not those stated:",
        };
        Some(format!("`{}`: {what} {wrong}{}", self.kernel.name, self.source_of_findings()))
    }

    /// The source lines that findings name.
    fn source_of_findings(&self) -> String {
        let positions = self.outcome.findings.iter().flat_map(|finding| [finding.at, finding.other]).flatten();
        let mut positions: Vec<_> = positions.collect();
        positions.sort_unstable();
        positions.dedup();
        positions.iter().map(|position| super::at::line(&self.kernel, *position, "here")).collect()
    }

    /// The access of this name: its operation and its buffer, as in `load src` or `store tile`; or a part of its source line, such as
    /// `src.load(i + 1)`.
    ///
    /// # Panics
    /// If the run is not clean, no access has the name, or several have: with those there are.
    #[track_caller]
    pub fn at(&self, name: &str) -> Accesses<'_> {
        let found = self.all(name);
        if found.len() > 1 {
            panic!(
                "`{name}` names {} accesses of `{}`: name one by a part of its source line, or take them `all`\n{}",
                found.len(),
                self.kernel.name,
                found
            );
        }
        found
    }

    /// All accesses of this name: an assertion holds each of them to it.
    ///
    /// # Panics
    /// If the run is not clean, or no access has the name: with those there are.
    #[track_caller]
    pub fn all(&self, name: &str) -> Accesses<'_> {
        self.assert_clean();
        let found = Access::find(&self.accesses, name);
        if found.is_empty() {
            panic!("`{name}` names no access of `{}`, whose accesses are\n{self}", self.kernel.name);
        }
        Accesses::new(self.kernel, found)
    }

    /// The accesses that stand in this line of the kernel's file.
    ///
    /// # Panics
    /// If the run is not clean, or none stands there: with those there are.
    #[track_caller]
    pub fn at_line(&self, line: u32) -> Accesses<'_> {
        self.assert_clean();
        let stands =
            |access: &&Access| access.site.position.line == line && access.site.position.file == self.kernel.file;
        let found: Vec<_> = self.accesses.iter().filter(stands).collect();
        if found.is_empty() {
            panic!("no access of `{}` stands in line {line}; its accesses are\n{self}", self.kernel.name);
        }
        Accesses::new(self.kernel, found)
    }

    /// Asserts that no access to shared memory has a bank conflict.
    ///
    /// # Panics
    /// If the run is not clean, or one has: with its line, its counts, and why.
    #[track_caller]
    pub fn assert_conflict_free(&self) -> &Self {
        self.assert_clean();
        Accesses::new(self.kernel, self.accesses.iter().filter(|access| access.has_wavefronts()).collect())
            .assert_conflict_free();
        self
    }

    /// Asserts that every access to global memory moves as few sectors as its bytes fill.
    ///
    /// # Panics
    /// If the run is not clean, or one moves more: with its line, its counts, and why.
    #[track_caller]
    pub fn assert_coalesced(&self) -> &Self {
        self.assert_clean();
        Accesses::new(self.kernel, self.accesses.iter().filter(|access| !access.has_wavefronts()).collect())
            .assert_coalesced();
        self
    }

    /// The plan that was run.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Accesses::new(self.kernel, self.accesses.iter().collect()).fmt(f)
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report").field("kernel", &self.kernel.name).field("wrong", &self.wrong).finish_non_exhaustive()
    }
}
