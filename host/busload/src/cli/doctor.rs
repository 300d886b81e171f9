//! `doctor`: what this machine can do, and what is missing for the rest.

use super::options::ptx;
use super::selection::load_ptx;
use crate::doctor;
use crate::report;
use crate::suite::Suite;
use anyhow::Result;
use clap::{ArgMatches, Command};

/// The command with its options.
pub(super) fn command(_: &Suite) -> Command {
    Command::new("doctor")
        .about("Say what this machine can do, and what is missing for the rest")
        .after_help(
            "Examples:\n  \
             busload doctor\n  \
             busload doctor --ptx kernels.ptx  whether this GPU takes that build",
        )
        .arg(ptx())
}

/// Looks at this machine, and at nothing else.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    run_doctor(suite, matches, Vec::new())?;
    Ok(true)
}

/// Prints what this machine can do, and after it what the caller has looked at.
///
/// # Errors
/// If the file of `--ptx` cannot be read.
pub fn run_doctor(suite: &Suite, matches: &ArgMatches, more: Vec<doctor::Finding>) -> Result<()> {
    for finding in doctor::findings(&load_ptx(suite, matches)?).iter().chain(&more) {
        for line in finding.to_string().lines() {
            let indent = line.len() - line.trim_start().len();
            report::print(&(report::wrapped(line, report::width(), 5 - indent.min(5)) + "\n"))?;
        }
    }
    Ok(())
}
