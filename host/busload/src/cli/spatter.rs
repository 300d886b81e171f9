//! `spatter`: runs the patterns of a file of Spatter 2.

use super::Usage;
use super::gpu::{Work, on_gpu};
use super::options::{exports, from, of_simulator, on, ptx, verbose};
use super::output::{Exports, Output};
use super::selection::{OF_GPU, OF_SIMULATOR, On, chosen_machine, idle, load_ptx, refuse_idle, simulator_options};
use crate::bench::{self, Asked};
use crate::cases::Run;
use crate::cuda::Gpu;
use crate::measure::{Sampling, Series};
use crate::moved::Moved;
use crate::provenance;
use crate::record::{Machine, Report};
use crate::report;
use crate::sim::Options;
use crate::spatter::{self, Configured, Seen, TALLIED};
use crate::suite::Suite;
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::json;

/// The command with its options.
pub(super) fn command(_: &Suite) -> Command {
    Command::new("spatter")
        .about("Run the patterns of a Spatter file: counted and verified, on a GPU measured")
        .long_about(
            "Runs each configuration of a pattern file of Spatter 2 (github.com/hpcgarage/spatter): gathers and scatters of \
             8-byte elements by a pattern of indices that moves on by a delta. On a GPU each is verified, then measured, and its \
             bandwidth stands beside Spatter's own: bytes of all accesses over the shortest time. Without a GPU it is simulated.\n\n\
             The kernels take Spatter's CUDA back end's shape: an access a thread, blocks of as many threads as the pattern has \
             indices, up to 1024, whatever local-work-size says. Three things differ: the L2 is flushed before each sample, which \
             Spatter does not do (--hot does not either); a gather stores its last `wrap` rounds, and Spatter's none; of scatters that \
             meet, all write equal values. An index is not wrapped at 65 GB where no boundary is given, but refused where it does not \
             fit. `seed` means nothing, and `delta` may be a list, whose deltas take turns, as in Spatter 1.",
        )
        .after_help(
            "Examples:\n  \
             busload spatter amg.json                            every pattern: sectors a request, verified\n  \
             busload spatter amg.json --on gpu --hot             as Spatter measures\n  \
             busload explain transpose_naive --spatter out.json  a kernel's accesses as such a file\n\n\
             Exit status 1 means that a configuration failed; 2 that the file makes no sense, and nothing ran.",
        )
        .arg(Arg::new("file").value_name("FILE").required(true).help("The pattern file (.json)"))
        .arg(on())
        .arg(
            Arg::new("samples")
                .long("samples")
                .value_name("N")
                .help("Samples of each configuration's time [default: the most that an `nruns` of the file says, or 10]")
                .value_parser(value_parser!(u32).range(1..=100_000)),
        )
        .arg(
            Arg::new("hot")
                .long("hot")
                .action(ArgAction::SetTrue)
                .help("Leave in the L2 what the launch before left there, as Spatter does"),
        )
        .arg(
            Arg::new("local-work-size")
                .long("local-work-size")
                .action(ArgAction::SetTrue)
                .help("Launch blocks of the file's local-work-size threads, where it says one"),
        )
        .arg(ptx())
        .arg(from())
        .args(exports())
        .arg(verbose())
        .args(of_simulator())
}

/// Runs what the file says; false if a configuration failed.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    refuse_idle(matches, &OF_GPU)?;
    let file = matches.get_one::<String>("file").expect("is required");
    let mut configured = spatter::read(file).map_err(|error| Usage(error.into()))?;
    if matches.get_flag("local-work-size") {
        configured.iter_mut().for_each(|of| of.configuration.block = of.local_work_size);
    }
    let child = matches.get_one::<usize>("from").copied();
    if child.is_none() {
        let warnings = configured.iter().flat_map(|of| of.warnings.iter().map(move |warning| (of.number, warning)));
        warnings.for_each(|(number, warning)| report::say(&format!("warning: {file}: entry {number}: {warning}")));
    }
    let ptx = load_ptx(suite, matches)?;
    let gpu = match chosen_machine(matches) {
        On::Sim | On::Mock => Err("as asked for".to_owned()),
        On::Gpu => Ok(Gpu::open(ptx.text()).map_err(|error| Usage(anyhow::Error::new(error).context("--on gpu")))?),
        On::Auto => match Gpu::open(ptx.text()) {
            Err(error) if matches.contains_id("ptx") && !error.means_none() => return Err(error.into()),
            gpu => gpu.map_err(|error| format!("since there is no GPU to use ({error})")),
        },
    };
    let machine = gpu.as_ref().map_or_else(|_| Machine::simulator(), Machine::gpu);
    let runs = configured.iter().map(|of| {
        spatter::run(of, machine.sm_count).map_err(|error| Usage(anyhow::Error::new(error).context(file.clone())))
    });
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let exports = if child.is_some() { Exports::default() } else { Exports::open(matches)? };
    let options = simulator_options(matches);
    let mut output = Output::new("spatter", machine, &ptx, exports, runs.len());
    let mut seen = Vec::new();
    match gpu {
        Err(why) => {
            for (of, run) in configured.iter().zip(&runs) {
                fits(file, of, run, &bench::sampled(run, &of_run(of, &options)))?;
            }
            let idle = idle(matches, &OF_GPU).map_or_else(String::new, |idle| format!(" {idle} here."));
            output.say(&format!("Simulated: nothing was timed, {why}.{idle}"))?;
            for (of, run) in configured.iter().zip(&runs) {
                output.progress.at(run, 0, 0);
                let options = bench::sampled(run, &of_run(of, &options));
                let (record, outcome) = bench::simulate(run, &options, &|done, all| output.progress.at(run, done, all));
                seen.push(outcome.map(|outcome| spatter::seen(of.configuration.kind, &outcome)).unwrap_or_default());
                output.push(record);
            }
        }
        Ok(gpu) => {
            let nruns = configured.iter().filter_map(|of| of.runs).max().unwrap_or(10);
            let count = matches.get_one("samples").copied().unwrap_or(nruns);
            let l2 = if matches.get_flag("hot") { Series::Hot } else { Series::Cold };
            if child.is_none() {
                let (facts, state) =
                    (gpu.facts(), if l2 == Series::Cold { "flushed before" } else { "left as it was before" });
                let idle = idle(matches, &OF_SIMULATOR).map_or_else(String::new, |idle| format!(" {idle} on a GPU."));
                output.say(&format!("Measured on {}, L2 {state} each of {count} samples.{idle}", facts.name))?;
            }
            let sampling = Sampling::exactly(count, l2);
            output.report.sampling = Some(sampling);
            let asked = Asked::Measure(sampling);
            on_gpu(&Work { device: &gpu, runs: &runs, asked, from: child, moved: Moved::default() }, &mut output)?;
            if child.is_some() {
                return Ok(true);
            }
            // Counts of some blocks of each: what a GPU does not tell.
            for (of, run) in configured.iter().zip(&runs) {
                let options = Options {
                    max_blocks: SAMPLE.div_ceil(run.plan.launch.block_threads().into()),
                    ..of_run(of, &options)
                };
                let (_, outcome) = bench::simulate(run, &options, &|_, _| ());
                seen.push(outcome.map(|outcome| spatter::seen(of.configuration.kind, &outcome)).unwrap_or_default());
            }
        }
    }
    output.finish_as(
        |report| with_spatter(report, &configured, &seen),
        |report| {
            let records = report.results.iter().filter(|record| record.family == "spatter");
            let rows: Vec<_> =
                configured.iter().zip(records).zip(&seen).map(|((of, record), seen)| (of, record, *seen)).collect();
            report::spatter_table(&rows)
        },
    )
}

/// Threads of a grid that tell what a GPU does not, about.
const SAMPLE: u64 = 1 << 18;

/// How to simulate a configuration: nobody looks for races in one that says there are.
fn of_run(of: &Configured, options: &Options) -> Options {
    Options { sampling: Some(TALLIED), sanitize: options.sanitize && !of.races, ..options.clone() }
}

/// Whether a run that is simulated whole finds room in memory.
fn fits(file: &str, of: &Configured, run: &Run, options: &Options) -> Result<(), Usage> {
    let bytes: u64 = run.plan.buffers.iter().map(gpu::suite::Buffer::bytes).sum();
    let available = system::limits::available();
    match available.filter(|available| bytes > *available && options.max_blocks >= run.plan.launch.block_count()) {
        Some(available) => Err(anyhow::anyhow!(
            "{file}: entry {}: its buffers have {bytes} bytes, and {available} are available: choose a smaller count, delta or \
             pattern, or sample with --max-blocks",
            of.number
        )
        .into()),
        None => Ok(()),
    }
}

/// The report with what each configuration says, and what Spatter would say of it.
fn with_spatter(report: &Report, configured: &[Configured], seen: &[[Seen; 2]]) -> Result<String> {
    let mut all = serde_json::to_value(report)?;
    let records = all["results"].as_array_mut().into_iter().flatten().filter(|record| record["family"] == "spatter");
    for ((record, of), seen) in records.zip(configured).zip(seen) {
        let configuration = &of.configuration;
        let side = |seen: &Seen| {
            (seen.requests > 0)
                .then(|| json!({ "requests": seen.requests, "sectors": seen.sectors, "used": seen.used }))
        };
        let mbps = record["min_ms"].as_f64().map(|ms| configuration.bytes() as f64 / ms / 1e3);
        record["spatter"] = json!({
            "entry": of.number,
            "name": of.name,
            "kernel": spatter::kernel_name(configuration.kind),
            "pattern": of.pattern,
            "length": configuration.length,
            "count": configuration.count,
            "delta": configuration.delta,
            "delta_scatter": configuration.inner_delta(),
            "wrap": configuration.wrap,
            "elements": configuration.accesses().ok(),
            "bytes": configuration.bytes(),
            "mbps": mbps,
            "races": of.races,
            "loads": side(&seen[0]),
            "stores": side(&seen[1]),
        });
    }
    Ok(provenance::json(&all)?)
}
