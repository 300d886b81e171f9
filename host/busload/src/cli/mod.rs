//! The commands, one a file, and what they share: options, what was asked for, where the results go.

mod bench;
mod check;
mod claims;
mod compare;
mod completions;
mod devices;
mod doctor;
mod explain;
mod fleet;
mod gpu;
mod list;
mod options;
mod output;
mod predict;
mod profile;
mod ptx;
mod report;
mod resume;
mod run;
mod sampling;
mod selection;
mod simulate;
mod spatter;
mod verify;

pub use completions::{write_completions, write_manual};
pub use doctor::run_doctor;

use crate::provenance;
use crate::report::{allow_colours, say};
use crate::suite::Suite;
use anyhow::Result;
use clap::{ArgMatches, Command};
use std::process::ExitCode;

/// Something asked for that makes no sense: exit status 2, and nothing was run.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Usage(#[from] pub anyhow::Error);

/// What `--help` says of a command, and what it does; false if a case failed.
type Entry = (fn(&Suite) -> Command, fn(&Suite, &ArgMatches) -> Result<bool>);

/// Every command, in the order of `--help`.
const COMMANDS: [Entry; 18] = [
    (bench::command, bench::run),
    (simulate::command, simulate::run),
    (verify::command, verify::run),
    (profile::command, profile::run),
    (predict::command, predict::run),
    (explain::command, explain::run),
    (run::command, run::run),
    (check::command, check::run),
    (spatter::command, spatter::run),
    (list::command, list::run),
    (claims::command, claims::run),
    (compare::command, compare::run),
    (fleet::command, fleet::run),
    (report::command, report::run),
    (doctor::command, doctor::run),
    (ptx::command, ptx::run),
    (completions::command, completions::run),
    (completions::manual_command, completions::manual),
];

/// Those of busload's own suite: its claims, and its kernels for patterns.
const OF_BUSLOAD: [&str; 2] = ["claims", "spatter"];

/// The commands over a suite.
fn commands(suite: &Suite) -> impl Iterator<Item = Entry> + use<'_> {
    let is_its = |(command, _): &Entry| suite.is_busload() || !OF_BUSLOAD.contains(&command(suite).get_name());
    COMMANDS.into_iter().filter(is_its)
}

/// What the program over a suite is called.
fn name(suite: &Suite) -> &'static str {
    if suite.is_busload() { "busload" } else { suite.name }
}

/// The program with all its commands over a suite.
pub fn command(suite: &Suite) -> Command {
    Command::new(name(suite))
        .version(env!("CARGO_PKG_VERSION"))
        .about("Shows, verifies and measures how memory-access patterns decide a GPU kernel's speed")
        .after_help(
            "Exit status: 0; 1 if a case failed, or a comparison came out worse; 2 if what was asked for makes no sense, \
             and nothing ran.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(commands(suite).map(|(command, _)| command(suite)))
}

/// Parses the arguments of this process, runs the command, and says how it went.
pub fn main(suite: &Suite) -> ExitCode {
    // What may grow no further (`ulimit -f`) fails like what finds no room, and does not end the process.
    #[cfg(target_os = "linux")]
    // SAFETY: nothing handles the signal.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
    };
    allow_colours();
    match parsed(command(suite), std::env::args_os()) {
        Ok(matches) => exit_code(run(suite, &matches)),
        Err(code) => code,
    }
}

/// The arguments of a command; or the exit status, once what is wrong with them, or the help, has been printed.
///
/// # Errors
/// If there is nothing to run.
pub fn parsed(
    command: Command,
    arguments: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
) -> Result<ArgMatches, ExitCode> {
    command.try_get_matches_from(arguments).map_err(|error| match error.print() {
        Err(failed) if !error.use_stderr() && failed.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::from(error.exit_code() as u8),
    })
}

/// The exit status of a command: 0, 1 if a case failed or something broke, 2 if what was asked for makes no sense.
pub fn exit_code(result: Result<bool>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

/// Runs a command of [`command`]; false if a case failed.
///
/// # Errors
/// If it cannot be run at all.
pub fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    // The command begins now.
    provenance::of(suite);
    let (name, matches) = matches.subcommand().expect("clap requires a command");
    let entry = commands(suite).find(|(command, _)| command(suite).get_name() == name);
    let (_, run) = entry.unwrap_or_else(|| unreachable!("clap knows no such command: {name}"));
    run(suite, matches)
}
