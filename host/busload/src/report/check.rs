//! Budgets held to what was counted: what fails and why, and a summary.

use super::escape::terminal;
use super::width::{width, wrapped};
use crate::check::{Issue, Level, Report, Verdict, issues};
use std::fmt::Write;

/// What fails, and what is to be known; with `quiet` what fails, in a line each. The summary stands below.
pub fn check(report: &Report, quiet: bool) -> String {
    check_in(report, quiet, width())
}

fn check_in(report: &Report, quiet: bool, width: usize) -> String {
    let mut text = String::new();
    for issue in issues(report).iter().filter(|issue| !quiet || issue.level == Level::Error) {
        let _ = writeln!(text, "{}", line(issue, quiet));
        for detail in issue.detail.iter().filter(|_| !quiet) {
            let (indent, hang) = if detail.starts_with('→') { ("    ", 2) } else { ("  ", 0) };
            let _ = writeln!(text, "{}", wrapped(&format!("{indent}{}", terminal(detail)), width, hang));
        }
    }
    text + &wrapped(&summary(report), width, 0)
}

/// `file:line:column: what`, as compilers say it. A message of several lines keeps them unless each issue is to take one.
fn line(issue: &Issue, quiet: bool) -> String {
    let place = issue.at.as_ref().map_or_else(String::new, |at| match at.column {
        Some(column) => format!("{}:{}:{column}: ", at.file, at.line),
        None => format!("{}:{}: ", at.file, at.line),
    });
    let level = if issue.level == Level::Note { "note: " } else { "" };
    let sentence = issue.sentence();
    let lines: Vec<_> = sentence.lines().map(terminal).collect();
    let more = lines.len().saturating_sub(1);
    let said = match quiet && more > 0 {
        true => format!("{} (and {more} more)", lines[0]),
        false => lines.join("\n    "),
    };
    format!("{}{level}{said}", terminal(&place))
}

fn summary(report: &Report) -> String {
    let all = || report.results.iter().flat_map(|checked| checked.accesses.iter().map(move |held| (checked, held)));
    let count = |verdict| all().filter(|(checked, held)| checked.budgeted && held.verdict == verdict).count();
    let of = match (&report.budgets, &report.against) {
        (Some(file), _) => file.clone(),
        (None, Some(rev)) => format!("Against {rev}"),
        (None, None) => "Budgets".to_owned(),
    };
    let is_against = report.against.is_some();
    let [same, over, under, gone, new] =
        [Verdict::Same, Verdict::Over, Verdict::Under, Verdict::Gone, Verdict::New].map(count);
    let wrong = report.results.iter().filter(|own| own.error.is_some() || !own.findings.is_empty()).count();
    let hold = match (is_against, same) {
        (true, _) => format!("{same} cost the same"),
        (false, 1) => "1 budget holds".to_owned(),
        (false, _) => format!("{same} budgets hold"),
    };
    let mut parts = vec![hold];
    let mut part = |count: usize, of_budgets: &str, of_commit: &str| {
        if count > 0 {
            parts.push(format!("{count} {}", if is_against { of_commit } else { of_budgets }));
        }
    };
    part(over, "exceeded", "cost more");
    part(under, "could be lower", "cost less");
    part(gone, "of nothing", "gone");
    part(new, "missing", "new");
    let mut text = format!("{}: {}.", terminal(&of), parts.join(", "));
    if wrong > 0 {
        let _ = write!(text, " {wrong} of {} runs went wrong.", report.results.len());
    }
    let mut without: Vec<_> = report.results.iter().filter(|own| !own.budgeted && !own.accesses.is_empty()).collect();
    without.dedup_by_key(|own| own.subject.keys()[1].to_owned());
    if let Some(first) = without.first() {
        let name = terminal(first.subject.keys()[1]);
        let names = if without.len() == 1 { name } else { format!("{name} and {} more", without.len() - 1) };
        let _ = match is_against {
            true => write!(text, " New since then: {names}."),
            false => write!(text, " Without any budget: {names}; `check --bless` writes them."),
        };
    }
    text + "\n"
}
