//! Claims as a table: on the terminal, and as Markdown.

use super::escape::{markdown, terminal};
use super::width::{width, wrapped};
use crate::claims::{Judged, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What was judged, a paragraph a claim, and how many of each verdict.
pub fn claims_table(judged: &[Judged]) -> String {
    let mut text = String::new();
    let width = width();
    for claim in judged {
        let line = format!("{:9}  {}: {}", claim.verdict.name(), claim.id, claim.claim);
        let _ = writeln!(text, "{}", wrapped(&line, width, 11));
        for (what, value) in [("simulated", &claim.simulated), ("measured", &claim.measured)] {
            if let Some(value) = value {
                let line = format!("           {what} {}", terminal(value));
                let _ = writeln!(text, "{}", wrapped(&line, width, 2));
            }
        }
        if !claim.detail.is_empty() {
            let what = if claim.verdict == Verdict::Open { "settled by " } else { "" };
            let line = format!("           {what}{}", terminal(&claim.detail));
            let _ = writeln!(text, "{}", wrapped(&line, width, 2));
        }
    }
    let _ = writeln!(text, "\n{}", summary(judged));
    text
}

/// The same as a Markdown table.
pub fn claims_markdown(judged: &[Judged]) -> String {
    let mut text = format!("# Claims\n\n{}\n\n", summary(judged));
    text.push_str("| claim | says | simulated | measured | verdict | |\n| --- | --- | --- | --- | --- | --- |\n");
    for claim in judged {
        let cells = [
            claim.id.as_str(),
            &claim.claim,
            claim.simulated.as_deref().unwrap_or_default(),
            claim.measured.as_deref().unwrap_or_default(),
            claim.verdict.name(),
            &claim.detail,
        ];
        let _ = writeln!(text, "| {} |", cells.map(markdown).join(" | "));
    }
    text.push_str(
        "\nWhat is simulated is counted, the same on every machine. What is measured is a ratio on the GPU named: a figure \
         of one GPU is never held against another's absolute figure.\n",
    );
    text
}

fn summary(judged: &[Judged]) -> String {
    let mut verdicts = BTreeMap::<&str, usize>::new();
    for claim in judged {
        *verdicts.entry(claim.verdict.name()).or_default() += 1;
    }
    let parts = verdicts.iter().map(|(verdict, count)| format!("{count} {verdict}"));
    format!("{} claims: {}.", judged.len(), parts.collect::<Vec<_>>().join(", "))
}
