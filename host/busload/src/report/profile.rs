//! Hardware and simulator side by side, on the terminal.

use super::table::new;
use crate::profile::{Pair, Profile, Profiled, Site};

/// The profile as a table: what the hardware counted of each kernel, and below it every count that differs.
pub fn profile_table(profile: &Profile) -> String {
    let header = [
        "kernel",
        "case",
        "requests",
        "sectors",
        "ideal",
        "lines",
        "shared\nrequests",
        "wavefronts",
        "ideal",
        "differ",
    ];
    let mut table = new(&header);
    for record in &profile.results {
        let requests = |space| {
            let of = record.requests.iter().filter(|requests| requests.space == space);
            sum(of.map(|requests| requests.pair))
        };
        let counter = |name: &str| sum(record.sites.iter().filter_map(|site: &Site| site.counters.get(name).copied()));
        table.add_row([
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
    let mut text =
        table.trim_fmt() + "\nCounted by the hardware; where the simulator counts otherwise, its count in brackets.\n";
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
    text + &format!("\n{compared} counts of {} launches compared; {differ} differ.\n", profile.results.len())
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
