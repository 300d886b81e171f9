//! Reports for people and for programs: one exporter a file.

mod check;
mod claims;
mod colour;
mod compare;
mod csv;
pub mod escape;
mod fleet;
mod github;
mod launches;
mod predict;
mod primitives;
mod profile;
mod records;
mod sarif;
mod spatter;
mod table;
mod target;
mod timed;
mod verdict;
mod width;

pub(crate) use crate::why::percent;
pub use check::check;
pub use claims::{claims_markdown, claims_table};
pub use colour::{allow_colours, plain_tables};
pub use compare::{comparison_failures, comparison_markdown, comparison_table};
pub use csv::csv;
pub use fleet::{alarms, fleet_markdown, fleet_table};
pub(crate) use fleet::{called, verdicts};
pub use github::annotations;
pub use launches::launches;
pub(crate) use predict::signed;
pub use predict::{prediction_failure, prediction_markdown, prediction_outcome, prediction_table};
pub use primitives::primitives;
pub use profile::{profile_failure, profile_markdown, profile_table};
pub use records::{failure, outcome, records_markdown, table, verification_table};
pub use sarif::sarif;
pub use spatter::spatter_table;
pub use target::{Target, hold};
pub use width::{width, wrapped};

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};

/// Prints to standard output. Whoever closes it early has seen enough.
///
/// # Errors
/// If it cannot be written for another reason.
pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// The same of what is no text.
///
/// # Errors
/// If it cannot be written for another reason.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// Says a line, or some, on standard error. If nobody can hear it, the work goes on.
pub fn say(text: &str) {
    let lines: Vec<_> = text.trim_end().split('\n').map(|line| colour::of_line(&escape::terminal(line))).collect();
    let _ = writeln!(std::io::stderr(), "{}", lines.join("\n"));
}
