//! What is to be said of a check: a sentence for each thing that fails or is to be known, with its place.

use super::cost::{Measure, Place};
use super::hold::{Checked, Held, Limit, Report, Verdict};
use crate::sim::{Finding, Kind, Position};

/// One thing to be said.
#[derive(Clone, Debug, PartialEq)]
pub struct Issue {
    /// Whether the check fails by it.
    pub level: Level,
    /// Which rule it is of.
    pub rule: Rule,
    /// The kernel and its case, or the launch.
    pub subject: String,
    /// The access or region, if it is about one.
    pub name: Option<String>,
    /// What is to be said, without either.
    pub message: String,
    /// Where.
    pub at: Option<Place>,
    /// The other place, where two are involved.
    pub other: Option<Place>,
    /// Why, and what to do about it.
    pub detail: Vec<String>,
}

/// Whether a check fails by an issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It does.
    Error,
    /// It is to be known.
    Note,
}

/// What an issue is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// What became of a budget.
    Budget(&'static str),
    /// A finding of the sanitizer.
    Finding(Kind),
    /// Something else that went wrong, of such a kind.
    Wrong(String),
}

const OVER: Rule = Rule::Budget("over-budget");
const GONE: Rule = Rule::Budget("budget-of-nothing");
const NEW: Rule = Rule::Budget("no-budget");
const UNDER: Rule = Rule::Budget("under-budget");

impl Rule {
    /// Its name for programs.
    #[must_use]
    pub fn id(&self) -> String {
        match self {
            Self::Budget(id) => (*id).to_owned(),
            Self::Finding(kind) => kind.name().replace(' ', "-"),
            Self::Wrong(kind) => format!("wrong-{}", kind.replace(' ', "-")),
        }
    }

    /// What it is, in a sentence.
    #[must_use]
    pub fn description(&self) -> String {
        match self {
            own if *own == OVER => "An access asks more of the memory system than its budget allows.".to_owned(),
            own if *own == GONE => "A budget is of an access, a kernel, a case or a launch that is gone.".to_owned(),
            own if *own == NEW => "An access has no budget.".to_owned(),
            Self::Budget(_) => "An access asks less of the memory system than its budget allows.".to_owned(),
            Self::Finding(kind) => format!("The sanitizer found this in a kernel: {}.", kind.name()),
            Self::Wrong(kind) => format!("A kernel could not be carried out, or is not right: {kind}."),
        }
    }
}

impl Issue {
    /// Who is to blame, and what is to be said of it.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { subject, message, .. } = self;
        match &self.name {
            Some(name) => format!("{subject}, {name}: {message}"),
            None => format!("{subject}: {message}"),
        }
    }
}

/// All that is to be said, in the order of the report. Kernels without any budget are said only if that fails.
#[must_use]
pub fn issues(report: &Report) -> Vec<Issue> {
    report.results.iter().flat_map(|checked| Saying { report, checked }.all()).collect()
}

struct Saying<'a> {
    report: &'a Report,
    checked: &'a Checked,
}

impl Saying<'_> {
    fn all(&self) -> Vec<Issue> {
        let Checked { findings, error, accesses, gone, budgeted, .. } = self.checked;
        let findings = findings.iter().map(|finding| self.finding(finding));
        let error = error.iter().map(|error| {
            self.issue(Rule::Wrong(error.kind.clone()), true, None, format!("{}: {}", error.kind, error.message))
        });
        let wrong = findings.chain(error);
        let rules = self.report.rules;
        if *gone {
            let what = match rules.gone_fails {
                true => "there is no such kernel, case or launch any more: `check --bless` removes its budgets",
                false => "there is no such kernel, case or launch any more",
            };
            return wrong.chain([self.issue(GONE, rules.gone_fails, None, what.to_owned())]).collect();
        }
        if !budgeted {
            let without = accesses.len();
            let what = "none of its accesses has a budget: `check --bless` writes them".to_owned();
            let unbudgeted = (without > 0 && rules.budgets_required).then(|| self.issue(NEW, true, None, what));
            return wrong.chain(unbudgeted).collect();
        }
        wrong.chain(accesses.iter().filter_map(|held| self.held(held))).collect()
    }

    fn issue(&self, rule: Rule, fails: bool, name: Option<String>, message: String) -> Issue {
        Issue {
            level: if fails { Level::Error } else { Level::Note },
            rule,
            subject: self.checked.subject.to_string(),
            name,
            message,
            at: self.checked.at.clone(),
            other: None,
            detail: Vec::new(),
        }
    }

    fn finding(&self, finding: &Finding) -> Issue {
        let place = |at: Position| Place { file: at.file.to_owned(), line: at.line, column: Some(at.column) };
        let own = self.issue(Rule::Finding(finding.kind), true, None, finding.to_string());
        Issue { at: finding.at.map(place).or(own.at), other: finding.other.map(place), ..own }
    }

    fn held(&self, held: &Held) -> Option<Issue> {
        let is_of_commit = self.report.against.is_some();
        let hint = |hint: &str| if is_of_commit { String::new() } else { format!(": `check --bless` {hint}") };
        let (rule, message) = match held.verdict {
            Verdict::Same => return None,
            Verdict::Over => (OVER, self.limits(held, Limit::is_over)),
            Verdict::Under => (UNDER, self.limits(held, Limit::is_under) + &hint("holds it to that")),
            Verdict::Gone => {
                let names = self.checked.accesses.iter().filter(|other| other.verdict != Verdict::Gone);
                let names: Vec<_> = names.map(|other| other.name.as_str()).collect();
                let has = match names.len() {
                    0 => String::new(),
                    1..8 => format!("; there is {}", names.join(", ")),
                    more => format!("; there is {} and {} more", names[..6].join(", "), more - 6),
                };
                (GONE, format!("there is no such access any more{has}{}", hint("removes its budget")))
            }
            Verdict::New => {
                let costs = self.limits(held, |_| true);
                let new = if is_of_commit { "it is new" } else { "it has no budget" };
                (NEW, format!("{new}, and costs {costs}{}", hint("gives it one")))
            }
        };
        let issue = self.issue(rule, held.verdict.fails(self.report.rules), Some(held.name.clone()), message);
        let why = (held.verdict == Verdict::Over).then(|| held.why.clone()).filter(|why| !why.is_empty());
        let advice = held.advice.iter().filter(|_| held.verdict == Verdict::Over).map(|advice| format!("→ {advice}"));
        Some(Issue { at: held.at.clone().or(issue.at), detail: why.into_iter().chain(advice).collect(), ..issue })
    }

    /// Those measures, now and before.
    fn limits(&self, held: &Held, which: impl Fn(&Limit) -> bool) -> String {
        let limits = held.limits.iter().filter(|limit| which(limit)).map(|limit| {
            let Limit { measure, budget, now } = *limit;
            let now = now.unwrap_or_default();
            let shown = shown(measure, now, budget.unwrap_or(now));
            let Some(budget) = budget else { return format!("{shown} {}", unit(measure)) };
            let before = self::shown(measure, budget, now);
            match &self.report.against {
                Some(rev) => format!("{shown} {} ({before} at {rev})", unit(measure)),
                None => format!("{shown} {} (budget {before})", unit(measure)),
            }
        });
        limits.collect::<Vec<_>>().join(", ")
    }
}

const fn unit(measure: Measure) -> &'static str {
    match measure {
        Measure::Requests => "requests",
        Measure::SectorsPerRequest => "sectors a request",
        Measure::BytesMoved => "bytes moved",
        Measure::Used => "used",
        Measure::Conflicts => "conflicts",
    }
}

/// A value with as many digits as tell it from the other.
fn shown(measure: Measure, value: f64, other: f64) -> String {
    let with = |digits: usize, value: f64| match measure {
        Measure::Used => format!("{:.digits$} %", 100.0 * value),
        _ if measure.is_count() => format!("{value}"),
        _ => format!("{value:.digits$}"),
    };
    let least = if measure == Measure::Used { 1 } else { 2 };
    let digits = (least..17).find(|digits| value == other || with(*digits, value) != with(*digits, other));
    with(digits.unwrap_or(17), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_differ_are_shown_to_differ() {
        assert_eq!(shown(Measure::SectorsPerRequest, 4.0, 32.0), "4.00");
        assert_eq!(shown(Measure::SectorsPerRequest, 4.000_123, 4.0), "4.0001");
        assert_eq!(shown(Measure::SectorsPerRequest, 4.0, 4.000_123), "4.0000");
        assert_eq!(shown(Measure::Used, 0.125, 1.0), "12.5 %");
        assert_eq!(shown(Measure::Used, 0.9999, 1.0), "99.99 %");
        assert_eq!(shown(Measure::BytesMoved, 33_554_432.0, 1.0), "33554432");
        assert_eq!(shown(Measure::Used, 1.0, 1.0), "100.0 %");
    }

    #[test]
    fn a_rule_has_a_name_and_a_sentence() {
        for rule in [OVER, GONE, NEW, UNDER, Rule::Finding(Kind::OutOfBounds), Rule::Wrong("not run".into())] {
            assert!(rule.id().chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", rule.id());
            assert!(rule.description().ends_with('.'), "{}", rule.description());
        }
        assert_eq!(Rule::Finding(Kind::OutOfBounds).id(), "out-of-bounds");
    }
}
