//! `simulate`: runs kernels on the CPU and counts what they ask of the memory system.

use super::options::{machine, selection, verbose};
use super::output::{Exports, Output};
use super::selection::{beside, fronts, on_ptx, runs, simulator_options};
use crate::bench;
use crate::cases::{Run, Sizes};
use crate::fit;
use crate::front::Front;
use crate::record::Machine;
use crate::report;
use crate::sim;
use crate::suite::Suite;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use std::collections::BTreeSet;
use system::interrupt::{Watch, end_by, name};

/// The command with its options.
pub(super) fn command(suite: &Suite) -> Command {
    let command = Command::new("simulate")
        .about("Run kernels on the CPU and count what they ask of the memory system")
        .long_about(
            "Runs kernels lane by lane and counts the requests, sectors, lines and wavefronts of each source line. It \
             reports accesses out of bounds or misaligned, races in shared and in global memory, loads of memory that \
             nobody wrote, divergent barriers, shuffles from inactive lanes, stack overflows, and kernels that do not \
             end.\n\n\
             A grid too large to simulate whole is sampled by blocks. Its row says so, its counts are those of the blocks \
             that ran, and it is not verified.\n\n\
             Of a kernel whose family states no counts for it, the counts are said not to be stated, and the closed form that fits \
             them at some sizes is shown where it is linear.\n\n\
             --machine ptx carries out what ships instead of the source: the built-in PTX, or that of --ptx, another build of \
             the suite's kernels, such as rust-cuda's or nvcc's of results/peers/peers.cu. Counts are then by its own lines, and \
             not held to the families' closed forms. What cannot be carried out is refused before anything runs.",
        )
        .after_help(
            "Examples:\n  \
             busload simulate --kernel strided_copy --stride 1,2,32  sectors a request, by source line\n  \
             busload simulate -k transpose --json out.json\n  \
             busload simulate -k copy --machine ptx --ptx other.ptx  what another build asks for\n  \
             busload simulate -k strided_copy --arch cc12            transactions of an old GPU too",
        )
        .args(machine("source"))
        .arg(
            Arg::new("arch")
                .long("arch")
                .value_name("ARCH")
                .help("Count the transactions of this compute capability too: 1.0, 1.2, 2.0, or 7.0 and later")
                .value_parser(PossibleValuesParser::new(sim::Arch::ALL.map(sim::Arch::name))),
        );
    selection(suite, command).arg(verbose())
}

/// Simulates what was asked for; false if a case failed.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    let [_, is_ptx] = fronts(matches, false)?;
    if !is_ptx {
        return simulate(suite, matches, "simulate", None);
    }
    let machine = Machine::simulator();
    let (front, runs) = on_ptx(suite, matches, runs(suite, matches, Sizes::Small, machine.sm_count)?)?;
    let output = Output::new(
        "simulate",
        machine,
        front.ptx().expect("it carries out a build"),
        Exports::open(matches)?,
        runs.len(),
    );
    simulated(matches, &front, &runs, output)
}

/// Simulates; `first` is said before anything else.
pub(super) fn simulate(suite: &Suite, matches: &ArgMatches, command: &str, first: Option<&str>) -> Result<bool> {
    let machine = Machine::simulator();
    let runs = runs(suite, matches, Sizes::Small, machine.sm_count)?;
    let output = Output::new(command, machine, &beside(suite), Exports::open(matches)?, runs.len());
    if let Some(first) = first {
        output.say(first)?;
    }
    simulated(matches, &Front::Source, &runs, output)
}

fn simulated(matches: &ArgMatches, front: &Front, runs: &[Run], mut output: Output) -> Result<bool> {
    let options = simulator_options(matches);
    simulate_all(front, runs, |run| bench::sampled(run, &options), &mut output);
    if matches!(front, Front::Source) {
        say_fits(runs, &options, &output)?;
    }
    output.finish()
}

/// Says of each kernel whose counts are not stated what fits them.
fn say_fits(runs: &[Run], options: &sim::Options, output: &Output) -> Result<()> {
    let mut said = BTreeSet::new();
    for (run, record) in runs.iter().zip(&output.report.results) {
        let is_unstated = record.simulated.as_ref().is_some_and(|simulated| !simulated.counts_stated);
        if is_unstated && record.error.is_none() && said.insert(run.kernel.name) {
            output.progress.named(run.kernel.name, 0, 0);
            if let Some(text) = fit::text(run, options) {
                output.say(&text)?;
            }
        }
    }
    Ok(())
}

/// Simulates the runs one after another. Asked to end, it writes what finished, and ends.
pub(super) fn simulate_all(front: &Front, runs: &[Run], options: impl Fn(&Run) -> sim::Options, output: &mut Output) {
    let watch = Watch::new();
    for run in runs {
        output.progress.at(run, 0, 0);
        let (record, _) = bench::simulate_on(front, run, &options(run), &|done, of| {
            output.progress.at(run, done, of);
            end_if_asked(&watch, output);
        });
        output.push(record);
        end_if_asked(&watch, output);
    }
}

fn end_if_asked(watch: &Watch, output: &Output) {
    if let Some(signal) = watch.signal() {
        output.save();
        output.progress.finish();
        let kept = output.file().map(|file| format!("what finished is in {}", file.display()));
        let kept = kept.unwrap_or_else(|| "nothing is kept without --json FILE".to_owned());
        report::say(&format!("ended by {}: {kept}", name(signal)));
        end_by(signal);
    }
}
