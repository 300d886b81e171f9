//! Budgets held to what was counted: which accesses cost more than they may, which less, which are gone and which have none.

use super::budgets::{ANY_CASE, Budget, Budgets, Subject, Table};
use super::cost::{Access, Cost, Measure, Place};
use super::count::Counted;
use crate::record::{ErrorRecord, SCHEMA};
use crate::sim::Finding;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// What came of a check: the JSON that it writes.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Report {
    /// The version of this layout.
    pub schema: u32,
    /// `check`.
    pub command: &'static str,
    /// The file of budgets; none if those of a commit are held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budgets: Option<String>,
    /// The commit whose counts are the budgets, as it was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// What fails.
    #[serde(flatten)]
    pub rules: Rules,
    /// Whether nothing fails.
    pub passed: bool,
    /// What came of each kernel on each case, and of each launch.
    pub results: Vec<Checked>,
}

/// What fails, beside what costs more than its budget and what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Rules {
    /// A budget whose access is gone.
    pub gone_fails: bool,
    /// An access without a budget.
    pub budgets_required: bool,
}

/// What came of a subject.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Checked {
    /// The kernel and its case, or the launch.
    #[serde(flatten)]
    pub subject: Subject,
    /// Where it stands; the file of budgets where it is gone. None if it is gone since a commit.
    pub at: Option<Place>,
    /// Whether there is no such kernel, case or launch any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// Whether it has any budget.
    pub budgeted: bool,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRecord>,
    /// What the sanitizer found.
    pub findings: Vec<Finding>,
    /// What became of each budget, and the accesses that have none.
    pub accesses: Vec<Held>,
}

/// What became of a budget, or of an access that has none.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Held {
    /// The access, or what a region is called.
    pub name: String,
    /// What became of it.
    pub verdict: Verdict,
    /// Where the access stands now; of a region the one with the most bytes in excess; of what is gone its budget.
    pub at: Option<Place>,
    /// Each measure, before and now.
    pub limits: Vec<Limit>,
    /// Why it costs what it costs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
}

/// What a measure may be, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Limit {
    /// The measure.
    pub measure: Measure,
    /// What it may be; none without a budget.
    pub budget: Option<f64>,
    /// What it is; none where it is gone, or has no such measure any more.
    pub now: Option<f64>,
}

impl Limit {
    /// Whether it is worse than it may be.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.compared(|measure, budget, now| measure.is_worse(now, budget))
    }

    /// Whether it is better.
    #[must_use]
    pub fn is_under(&self) -> bool {
        self.compared(|measure, budget, now| measure.is_worse(budget, now))
    }

    fn compared(&self, holds: impl Fn(Measure, f64, f64) -> bool) -> bool {
        self.budget.zip(self.now).is_some_and(|(budget, now)| holds(self.measure, budget, now))
    }
}

/// What became of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A measure is worse than it may be.
    Over,
    /// There is no such access any more.
    Gone,
    /// There was no budget.
    New,
    /// A measure is better than it may be, and none is worse.
    Under,
    /// Every measure is what it may be; for any case, it may be better.
    Same,
}

/// Holds what was counted to the tables of a file of budgets, of subjects that are within `scope` if they are gone.
#[must_use]
pub fn hold(budgets: &Budgets, counted: Vec<Counted>, scope: &dyn Fn(&Subject) -> bool, rules: Rules) -> Report {
    let place = |line| rules.gone_fails.then(|| Place { file: budgets.file.clone(), line, column: None });
    let mut seen = BTreeSet::new();
    let mut results = Vec::new();
    for counted in counted {
        let tables = budgets.of(&counted.subject);
        seen.insert(counted.subject.clone());
        let is_own = |table: usize| table == 0;
        let mut accesses = Vec::new();
        if let Some(own) = &counted.accesses {
            for (number, table) in tables.iter().enumerate().filter_map(|(number, table)| Some((number, (*table)?))) {
                let held = table.budgets.iter().filter_map(|budget| match (held(budget, own), is_own(number)) {
                    (None, true) => Some(gone(budget, place(budget.line))),
                    (held, true) => held,
                    // Of any case, one may lack what another has, and cost less.
                    (held, false) => held.map(|held| match held.verdict {
                        Verdict::Under => Held { verdict: Verdict::Same, ..held },
                        _ => held,
                    }),
                });
                accesses.extend(held);
            }
            let budgets: Vec<_> = tables.into_iter().flatten().flat_map(|table| &table.budgets).collect();
            let has_budget = |access: &Access| budgets.iter().any(|budget| access.is_of(&budget.name));
            accesses.extend(own.iter().filter(|access| !has_budget(access)).map(without_budget));
        }
        results.push(Checked {
            at: Some(counted.at),
            gone: false,
            budgeted: tables.iter().any(Option::is_some),
            error: counted.error,
            findings: counted.findings,
            accesses,
            subject: counted.subject,
        });
    }
    let left: Vec<_> = budgets.tables.iter().filter(|(subject, _)| scope(subject) && !seen.contains(subject)).collect();
    let left = left.into_iter().filter_map(|(subject, table)| left_over(subject, table, &seen, &results, &place));
    let left: Vec<_> = left.collect();
    results.extend(left);
    let against = (!rules.gone_fails).then(|| budgets.file.clone());
    let file = rules.gone_fails.then(|| budgets.file.clone());
    let mut report = Report { schema: SCHEMA, command: "check", budgets: file, against, rules, passed: true, results };
    report.passed = !report.results.iter().any(|checked| checked.fails(rules));
    report
}

/// What became of a table that is of nothing that was counted; none if that is as it should be.
fn left_over(
    subject: &Subject,
    table: &Table,
    seen: &BTreeSet<Subject>,
    results: &[Checked],
    place: &dyn Fn(u32) -> Option<Place>,
) -> Option<Checked> {
    let is_same_kernel = |other: &Subject| other.on_any_case().as_ref() == Some(subject);
    let of_any_case = matches!(subject, Subject::Kernel { case, .. } if case == ANY_CASE);
    let (is_gone, budgets) = match of_any_case && seen.iter().any(is_same_kernel) {
        false => (true, table.budgets.iter().collect()),
        // Those that none of its cases had.
        true => {
            let runs: Vec<_> = results.iter().filter(|run| is_same_kernel(&run.subject)).collect();
            let is_held =
                |budget: &&Budget| runs.iter().any(|run| run.accesses.iter().any(|held| held.name == budget.name));
            let is_known = runs.iter().all(|run| run.findings.is_empty() && run.error.is_none());
            (false, table.budgets.iter().filter(|budget| is_known && !is_held(budget)).collect::<Vec<_>>())
        }
    };
    (is_gone || !budgets.is_empty()).then(|| Checked {
        subject: subject.clone(),
        at: place(table.line),
        gone: is_gone,
        budgeted: true,
        error: None,
        findings: Vec::new(),
        accesses: budgets.into_iter().map(|budget| gone(budget, place(budget.line))).collect(),
    })
}

/// What became of a budget; none if nothing is of its name.
fn held(budget: &Budget, accesses: &[Access]) -> Option<Held> {
    let of = || accesses.iter().filter(|access| access.is_of(&budget.name));
    // The first of those that are equal.
    let worst = of().rev().max_by_key(|access| access.excess)?;
    let cost: Cost = of().map(|access| access.cost).sum();
    let limit = |&(measure, limit): &(Measure, f64)| Limit { measure, budget: Some(limit), now: cost.measure(measure) };
    let limits: Vec<_> = budget.limits.iter().map(limit).collect();
    let verdict = match () {
        () if limits.iter().any(Limit::is_over) => Verdict::Over,
        () if limits.iter().any(Limit::is_under) => Verdict::Under,
        () => Verdict::Same,
    };
    let Access { why, advice, at, .. } = worst.clone();
    Some(Held { name: budget.name.clone(), verdict, at: Some(at), limits, why, advice })
}

fn gone(budget: &Budget, at: Option<Place>) -> Held {
    let limits = budget.limits.iter().map(|&(measure, limit)| Limit { measure, budget: Some(limit), now: None });
    let limits = limits.collect();
    Held { name: budget.name.clone(), verdict: Verdict::Gone, at, limits, why: String::new(), advice: Vec::new() }
}

fn without_budget(access: &Access) -> Held {
    let limits = access.cost.measures().into_iter();
    Held {
        name: access.name.clone(),
        verdict: Verdict::New,
        at: Some(access.at.clone()),
        limits: limits.map(|(measure, now)| Limit { measure, budget: None, now: Some(now) }).collect(),
        why: access.why.clone(),
        advice: access.advice.clone(),
    }
}

impl Verdict {
    /// Whether a check fails by it.
    #[must_use]
    pub fn fails(self, rules: Rules) -> bool {
        match self {
            Self::Over => true,
            Self::Gone => rules.gone_fails,
            Self::New => rules.budgets_required,
            Self::Under | Self::Same => false,
        }
    }
}

impl Checked {
    /// Whether a check fails by it.
    #[must_use]
    pub fn fails(&self, rules: Rules) -> bool {
        let is_wrong = self.error.is_some() || !self.findings.is_empty();
        is_wrong || self.gone && rules.gone_fails || self.accesses.iter().any(|held| held.verdict.fails(rules))
    }
}
