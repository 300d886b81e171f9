//! Hardware and simulator side by side, on the terminal.

use super::escape::markdown;
use super::table::{Column, Layout};
use super::width::{width, wrapped};
use crate::profile::{Pair, Profile, Profiled, Site};

/// The profile as a table: what the hardware counted of each kernel, and below it every count that differs.
pub fn profile_table(profile: &Profile) -> String {
    let width = width();
    layout(profile).fit(width) + &wrapped(&below(profile), width, 2)
}

/// The same in Markdown.
pub fn profile_markdown(profile: &Profile) -> String {
    let failures = profile.results.iter().filter_map(profile_failure);
    let failures: String = failures.map(|failure| format!("- {}\n", markdown(&failure))).collect();
    format!("{}\n{failures}", layout(profile).markdown())
}

/// What went wrong with a launch, or which of its counts differ, in a line.
pub fn profile_failure(record: &Profiled) -> Option<String> {
    let all: Vec<_> = record.error.iter().cloned().chain(record.differences()).collect();
    (!all.is_empty()).then(|| format!("{} on {}: {}", record.kernel, record.case, all.join("; ")))
}

fn layout(profile: &Profile) -> Layout {
    let mut layout = Layout::new([
        Column::key("kernel"),
        Column::key("case"),
        Column::number("requests"),
        Column::number("sectors"),
        Column::number("ideal\nsectors").spare(1),
        Column::number("lines"),
        Column::number("shared\nrequests").apart(),
        Column::number("wavefronts").apart(),
        Column::number("ideal\nwavefronts").apart(),
        Column::text("differ"),
    ]);
    for record in &profile.results {
        let requests = |space| {
            let of = record.requests.iter().filter(|requests| requests.space == space);
            sum(of.map(|requests| requests.pair))
        };
        let counter = |name: &str| sum(record.sites.iter().filter_map(|site: &Site| site.counters.get(name).copied()));
        layout.row([
            record.kernel.clone(),
            record.case.clone(),
            requests("global"),
            counter("memory_l2_theoretical_sectors_global"),
            counter("memory_l2_theoretical_sectors_global_ideal"),
            counter("memory_l1_tag_requests_global"),
            requests("shared"),
            counter("memory_l1_wavefronts_shared"),
            counter("memory_l1_wavefronts_shared_ideal"),
            match &record.error {
                Some(_) => "not compared".to_owned(),
                None => format!("{} of {}", record.differences().len(), record.compared()),
            },
        ]);
    }
    layout
}

/// Every count that differs, and how many there are.
fn below(profile: &Profile) -> String {
    let mut text = "Counted by the hardware; where the simulator counts otherwise, its count in brackets.\n".to_owned();
    for record in &profile.results {
        let differences: Vec<_> = record.error.iter().cloned().chain(record.differences()).collect();
        if !differences.is_empty() {
            text += &format!("\n{} on {}\n  {}\n", record.kernel, record.case, differences.join("\n  "));
            let reasons = record.reasons();
            if !reasons.is_empty() {
                text += &format!("  The compiler changed:\n    {}\n", reasons.join("\n    "));
            }
        }
    }
    let compared: usize = profile.results.iter().map(Profiled::compared).sum();
    let differ: usize = profile.results.iter().map(|record| record.differences().len()).sum();
    text += &format!("\n{compared} counts of {} launches compared; {differ} differ.\n", profile.results.len());
    text
}

/// The hardware's sum, and the simulator's where it is another.
fn sum(pairs: impl Iterator<Item = Pair>) -> String {
    let (simulated, hardware) = pairs.fold((0, 0), |(a, b), pair| (a + pair.simulated, b + pair.hardware));
    match (simulated == hardware, hardware) {
        (true, 0) => "-".to_owned(),
        (true, _) => hardware.to_string(),
        (false, _) => format!("{hardware} ({simulated})"),
    }
}
