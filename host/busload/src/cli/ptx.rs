//! `ptx`: the build that the program holds.

use crate::ptx::Ptx;
use crate::report;
use anyhow::Result;
use clap::{ArgMatches, Command};

/// The command.
pub(super) fn command() -> Command {
    Command::new("ptx").about("Print the PTX that this program holds")
}

/// Prints it.
pub(super) fn run(_: &ArgMatches) -> Result<bool> {
    report::print(Ptx::embedded().text())?;
    Ok(true)
}
