//! What was asked for: which machine, which kernels, which cases, and how to simulate them.

use super::Usage;
use crate::build::package;
use crate::cases::{self, Run, SelectError, Selection, Sizes};
use crate::front::{Build, Front};
use crate::input;
use crate::ptx::Ptx;
use crate::report;
use crate::sim;
use crate::suite::{Module, Suite};
use anyhow::Context;
use clap::ArgMatches;
use clap::parser::ValueSource;
use gpu::suite::Value;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Once;

/// The machine that the user chose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    Auto,
    Gpu,
    Sim,
    /// What stands for a GPU in tests: see [`crate::mock`].
    Mock,
}

pub(super) fn chosen_machine(matches: &ArgMatches) -> On {
    match matches.get_one::<String>("on").map(String::as_str) {
        Some("gpu") => On::Gpu,
        Some("sim") => On::Sim,
        Some("mock") => On::Mock,
        _ => On::Auto,
    }
}

/// The options of a GPU alone, and of the simulator alone.
pub(super) const OF_GPU: [&str; 12] = [
    "ptx",
    "hot",
    "samples",
    "stop",
    "max-noise",
    "min-samples",
    "max-time",
    "min-clock",
    "device",
    "parallel",
    "resume",
    "profile",
];

pub(super) const OF_SIMULATOR: [&str; 3] = ["threads", "max-blocks", "no-sanitizer"];

/// The options among `names` that were given, as in `--ptx and --hot mean nothing`; none if none was.
pub(super) fn idle(matches: &ArgMatches, names: &[&str]) -> Option<String> {
    let is_given = |name: &&&str| {
        matches.try_contains_id(name).is_ok_and(|has| has)
            && matches.value_source(name) == Some(ValueSource::CommandLine)
    };
    let given: Vec<_> = names.iter().filter(is_given).map(|name| format!("--{name}")).collect();
    let verb = if given.len() == 1 { "means" } else { "mean" };
    (!given.is_empty()).then(|| format!("{} {verb} nothing", given.join(" and ")))
}

/// The machines of the CPU that the user chose: for `verify` both without a choice, unless a file is named.
pub(super) fn fronts(matches: &ArgMatches, both: bool) -> Result<[bool; 2], Usage> {
    let (machine, file) = (matches.get_one::<String>("machine"), matches.get_one::<String>("ptx"));
    match (machine.map(String::as_str), file) {
        (Some("both"), _) => Ok([true, true]),
        // Beside the source machine a GPU may launch it.
        (Some("source"), Some(_)) if both && chosen_machine(matches) != On::Sim => Ok([true, false]),
        (Some("source"), Some(file)) => Err(anyhow::anyhow!(
            "--machine source --ptx {file}: the source machine takes no PTX: leave one of the two out"
        )
        .into()),
        (Some("source"), None) => Ok([true, false]),
        (Some(_), _) | (None, Some(_)) => Ok([false, true]),
        (None, None) => Ok([true, both]),
    }
}

/// The PTX machine on the build that the user chose, and those of the runs whose kernels it has.
pub(super) fn on_ptx(suite: &Suite, matches: &ArgMatches, runs: Vec<Run>) -> Result<(Front, Vec<Run>), Usage> {
    let kernels: Vec<_> = runs.iter().map(|run| run.kernel).collect();
    let ptx = load_ptx(suite, matches)?;
    let build = Build::new(suite, &file_of_ptx(suite, matches), ptx.text(), &kernels);
    let build = build.map_err(|error| anyhow::Error::new(error).context("--ptx"))?;
    let runs = held(&build.file, |run| build.has(&run.kernel), runs, true)?;
    Ok((Front::Ptx(Box::new(build)), runs))
}

/// Those of the runs whose kernels `ptx` has, if the user named it: all others are left out. The built-in PTX has them all.
pub(super) fn on_build(matches: &ArgMatches, ptx: &Ptx, runs: Vec<Run>) -> Result<Vec<Run>, Usage> {
    let Some(file) = matches.get_one::<String>("ptx").filter(|_| !runs.is_empty()) else { return Ok(runs) };
    let entries = ptx.entries();
    // A process that goes on after a fault leaves the same out, and its parent has said so.
    let is_first = !matches!(matches.try_get_one::<usize>("from"), Ok(Some(_)));
    held(file, |run| entries.contains_key(run.kernel.name), runs, is_first)
}

/// The runs that a file of PTX has; says how many it lacks, if it is to.
fn held(file: &str, has: impl Fn(&Run) -> bool, mut runs: Vec<Run>, says: bool) -> Result<Vec<Run>, Usage> {
    let names = |runs: &[Run]| runs.iter().map(|run| run.kernel.name).collect::<BTreeSet<_>>();
    let asked = names(&runs);
    runs.retain(has);
    let has = names(&runs);
    let lacks: Vec<_> = asked.difference(&has).copied().collect();
    if has.is_empty() {
        let shown = lacks[..lacks.len().min(3)].join(", ");
        let more = if lacks.len() > 3 { format!(" and {} more", lacks.len() - 3) } else { String::new() };
        return Err(anyhow::anyhow!("--ptx {file}: it has none of the kernels asked for: {shown}{more}").into());
    }
    if says && !lacks.is_empty() {
        let (count, all) = (lacks.len(), asked.len());
        report::say(&format!("{file} has {} of the {all} kernels asked for; {count} are left out.", has.len()));
    }
    Ok(runs)
}

/// Refuses options that mean nothing on the machine that was asked for by name; `of_gpu` are those of a GPU alone.
pub(super) fn refuse_idle(matches: &ArgMatches, of_gpu: &[&str]) -> Result<(), Usage> {
    let (on, names) = match chosen_machine(matches) {
        On::Auto => return Ok(()),
        On::Gpu | On::Mock => ("--on gpu: nothing is simulated", &OF_SIMULATOR[..]),
        On::Sim => ("--on sim: nothing is launched on a GPU", of_gpu),
    };
    match idle(matches, names) {
        Some(idle) => Err(anyhow::anyhow!("{idle} with {on}").into()),
        None => Ok(()),
    }
}

/// The file of [`load_ptx`], as reports name it.
pub(super) fn file_of_ptx(suite: &Suite, matches: &ArgMatches) -> String {
    let given = matches.try_get_one::<String>("ptx").ok().flatten();
    given.cloned().unwrap_or_else(|| suite.file().display().to_string())
}

/// The PTX beside the source that is carried out: nothing depends on it.
pub(super) fn beside(suite: &Suite) -> Ptx {
    match suite.module {
        Module::BuiltIn { text, .. } => Ptx::new(text),
        Module::Package { .. } => Ptx::new(input::text(suite.file(), input::SOURCE).unwrap_or_default()),
    }
}

/// The PTX that the user named, or the suite's, of the sources as they are.
pub(super) fn load_ptx(suite: &Suite, matches: &ArgMatches) -> Result<Ptx, Usage> {
    let Some(file) = matches.get_one::<String>("ptx") else {
        return match suite.module {
            Module::BuiltIn { text, .. } => Ok(Ptx::new(text)),
            Module::Package { folder } => Ok(package::fresh(suite, Path::new(folder), &report::say)?),
        };
    };
    let text = input::text(file, input::SOURCE).context("--ptx")?;
    Ok(Ptx::new(text))
}

/// Says once which kernels do not run, since no entry has them.
fn warn_of_unlisted(suite: &Suite, kernels: Option<&Regex>) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        for unlisted in cases::unlisted(suite, kernels) {
            report::say(&format!("warning: {unlisted}; it does not run"));
        }
    });
}

fn selected(suite: &Suite, matches: &ArgMatches) -> Result<Selection, Usage> {
    let pattern = matches.get_one::<String>("kernel");
    let kernels = pattern.map(|pattern| cases::kernels(suite, pattern)).transpose().map_err(anyhow::Error::from)?;
    warn_of_unlisted(suite, kernels.as_ref());
    Ok(Selection { kernels, values: values(suite, matches) })
}

/// What was given for each axis.
pub(super) fn values(suite: &Suite, matches: &ArgMatches) -> BTreeMap<String, Vec<Value>> {
    let mut values = BTreeMap::new();
    for axis in cases::axes(suite) {
        if let Some(given) = matches.get_many::<Value>(axis.name) {
            let mut values_of_axis: Vec<Value> = Vec::new();
            for value in given {
                // Asked for twice, it is still one case.
                if !values_of_axis.contains(value) {
                    values_of_axis.push(*value);
                }
            }
            values.insert(axis.name.to_owned(), values_of_axis);
        }
    }
    values
}

/// The runs asked for, by default of these sizes.
pub(super) fn runs(suite: &Suite, matches: &ArgMatches, sizes: Sizes, sm_count: u32) -> Result<Vec<Run>, Usage> {
    let sizes = match matches.get_one::<String>("sizes").map(String::as_str) {
        Some("large") => Sizes::Large,
        Some(_) => Sizes::Small,
        None => sizes,
    };
    Ok(selected(suite, matches)?.runs(suite, sizes, sm_count).map_err(anyhow::Error::from)?)
}

/// The same for a GPU, there or not, which is given no counterexample.
pub(super) fn runs_on_gpu(suite: &Suite, matches: &ArgMatches, sizes: Sizes, sm_count: u32) -> Result<Vec<Run>, Usage> {
    let runs = runs(suite, matches, sizes, sm_count)?;
    match runs.iter().find(|run| run.is_counterexample(suite)) {
        Some(run) => Err(anyhow::Error::from(SelectError::Counterexample(run.kernel.name)).into()),
        None => Ok(runs),
    }
}

/// The arguments that select the same runs in a child process.
pub(super) fn same_runs(suite: &Suite, matches: &ArgMatches) -> Vec<std::ffi::OsString> {
    let mut arguments = Vec::new();
    for name in ["kernel", "ptx", "sizes"] {
        // Some commands lack one of them.
        if let Ok(Some(value)) = matches.try_get_one::<String>(name) {
            arguments.push(format!("--{name}={value}").into());
        }
    }
    for axis in cases::axes(suite) {
        if let Some(values) = matches.get_many::<Value>(axis.name) {
            let values: Vec<_> = values.map(ToString::to_string).collect();
            arguments.push(format!("--{}={}", axis.name, values.join(",")).into());
        }
    }
    arguments
}

pub(super) fn simulator_options(matches: &ArgMatches) -> sim::Options {
    let mut options = sim::Options::default();
    if let Some(threads) = matches.get_one::<u32>("threads") {
        options.threads = *threads as usize;
    }
    // Only `simulate` has the option.
    if let Ok(Some(name)) = matches.try_get_one::<String>("arch") {
        options.arch = sim::Arch::ALL.into_iter().find(|arch| arch.name() == name);
    }
    if let Some(blocks) = matches.get_one::<u64>("max-blocks") {
        options.max_blocks = *blocks;
    }
    options.sanitize = !matches.get_flag("no-sanitizer");
    options
}
