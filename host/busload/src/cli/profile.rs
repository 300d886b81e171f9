//! `profile`: Nsight Compute's counters beside the simulated counts.

use super::Usage;
use super::options::{ptx, selection};
use super::output::{Exports, Progress, say_all};
use super::selection::{OF_SIMULATOR, load_ptx, on_build, runs_on_gpu, same_runs, simulator_options};
use crate::cases::Sizes;
use crate::cuda::Gpu;
use crate::profile;
use crate::provenance;
use crate::report;
use crate::suite::Suite;
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;

/// The command with its options.
pub(super) fn command(suite: &Suite) -> Command {
    let command = Command::new("profile")
        .about("Put Nsight Compute's counters beside the simulated counts, on a GPU")
        .long_about(
            "Runs the kernels once on a GPU under Nsight Compute, and puts its counters beside the simulated counts: \
             requests of each kernel, and by source line lanes, sectors, ideal sectors, lines, wavefronts and ideal \
             wavefronts. Exit status 1 if any of them differs.",
        )
        .after_help(
            "Examples:\n  \
             busload profile --kernel transpose                             status 1 if a count differs\n  \
             busload profile --sizes large --counters-only --json out.json  for `predict --measured`\n  \
             busload profile --ncu /opt/nvidia/nsight-compute/ncu           where it is not in PATH",
        )
        .arg(
            Arg::new("counters-only")
                .long("counters-only")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(OF_SIMULATOR)
                .help("Simulate nothing: record the counters of whole launches, for `predict --measured`, at any size"),
        )
        .arg(
            Arg::new("ncu")
                .long("ncu")
                .value_name("PROGRAM")
                .help("Nsight Compute's program; without it the first `ncu` in PATH")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(ptx());
    selection(suite, command)
}

/// Counts on the GPU; false if a count differs from the simulated one.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    if matches.contains_id("max-blocks") {
        return Err(
            Usage(anyhow::anyhow!("--max-blocks: the hardware counts whole grids, so profile simulates them")).into()
        );
    }
    let ptx = load_ptx(suite, matches)?;
    let gpu = Gpu::open(ptx.text()).map_err(|error| Usage(anyhow::Error::new(error).context("profile needs a GPU")))?;
    let runs = on_build(matches, &ptx, runs_on_gpu(suite, matches, Sizes::Small, gpu.facts().sm_count)?)?;
    let exports = Exports::open(matches)?;
    let progress = Progress::new(runs.len() as u64, exports.verbosity);
    let profiled = profile::profile(
        &gpu,
        (&ptx).into(),
        &runs,
        matches.get_one::<PathBuf>("ncu").map(PathBuf::as_path),
        &same_runs(suite, matches),
        (!matches.get_flag("counters-only")).then(|| simulator_options(matches)).as_ref(),
        &|run| {
            progress.at(run, 0, 0);
            progress.next();
        },
    );
    progress.finish();
    let profiled = profiled?;
    let table = report::profile_table(&profiled);
    let written = exports.files(
        || Ok(provenance::json(&profiled)?),
        || Ok(serde_json::to_value(&profiled.results)?),
        || report::profile_markdown(&profiled),
    );
    let shown = match (exports.verbosity.quiet, exports.take_standard_output()) {
        (true, _) => {
            say_all(profiled.results.iter().filter_map(report::profile_failure));
            Ok(())
        }
        (false, true) => {
            report::say(&table);
            Ok(())
        }
        (false, false) => report::print(&table),
    };
    // What one of them cannot take, the others have.
    written.and(shown)?;
    let clean = |record: &profile::Profiled| record.error.is_none() && record.differences().is_empty();
    Ok(profiled.results.iter().all(clean))
}
