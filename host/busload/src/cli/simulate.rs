//! `simulate`: runs kernels on the CPU and counts what they ask of the memory system.

use super::options::selection;
use super::output::{Output, json};
use super::selection::{runs, simulator_options};
use crate::bench;
use crate::cases::{Run, Sizes};
use crate::ptx::Ptx;
use crate::record::Machine;
use crate::sim;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};

/// The command with its options.
pub(super) fn command() -> Command {
    let command = Command::new("simulate")
        .about("Run kernels on the CPU and count what they ask of the memory system")
        .long_about(
            "Runs kernels lane by lane and counts the requests, sectors, lines and wavefronts of each source line. It \
             reports accesses out of bounds or misaligned, races in shared and in global memory, loads of memory that \
             nobody wrote, divergent barriers, shuffles from inactive lanes, stack overflows, and kernels that do not \
             end.\n\n\
             A grid too large to simulate whole is sampled by blocks. Its row says so, its counts are those of the blocks \
             that ran, and it is not verified.",
        )
        .arg(
            Arg::new("arch")
                .long("arch")
                .value_name("ARCH")
                .help("Count the transactions of this compute capability too: 1.0, 1.2, 2.0, or 7.0 and later")
                .value_parser(PossibleValuesParser::new(sim::Arch::ALL.map(sim::Arch::name))),
        );
    selection(command)
}

/// Simulates what was asked for; false if a case failed.
pub(super) fn run(matches: &ArgMatches) -> Result<bool> {
    simulate(matches, "simulate", None)
}

/// Simulates; `first` is said before anything else.
pub(super) fn simulate(matches: &ArgMatches, command: &str, first: Option<&str>) -> Result<bool> {
    let machine = Machine::simulator();
    let runs = runs(matches, Sizes::Small, machine.sm_count)?;
    let mut output = Output::new(command, machine, &Ptx::embedded(), json(matches)?, runs.len());
    if let Some(first) = first {
        output.say(first)?;
    }
    let options = simulator_options(matches);
    simulate_all(&runs, |run| bench::sampled(run, &options), &mut output);
    output.finish()
}

/// Simulates the runs one after another.
pub(super) fn simulate_all(runs: &[Run], options: impl Fn(&Run) -> sim::Options, output: &mut Output) {
    for run in runs {
        output.progress.at(run, 0, 0);
        let (record, _) = bench::simulate(run, &options(run), &|done, of| output.progress.at(run, done, of));
        output.push(record);
    }
}
