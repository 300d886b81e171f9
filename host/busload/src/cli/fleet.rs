//! `fleet`: the results of many GPUs, and which of them are slow.

use super::Usage;
use super::options::exports;
use super::output::{Exports, read_results, say_all, say_unfinished};
use crate::fleet::{self, Fleet, Gpu, Rules};
use crate::plots;
use crate::record::SCHEMA;
use crate::report;
use crate::suite::Suite;
use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use std::path::{Path, PathBuf};

/// The command with its options.
pub(super) fn command(_: &Suite) -> Command {
    Command::new("fleet")
        .about("Rank the GPUs that `bench --out-dir` measured, and say which are slow")
        .long_about(
            "Reads every results file of a folder, one a GPU, and holds each case to the same case on the other GPUs of that name. A \
             GPU is to be looked at if a case is slower there than noise explains, if a case failed, if its run was not finished, or \
             if NVML says that it protects itself from heat or from its power supply. Exit status 1 means that there is such a GPU, \
             or that a process of the launcher left no results.",
        )
        .after_help(
            "Examples:\n  \
             srun --ntasks-per-node=8 --gpus-per-task=1 busload bench -k copy_vec4 --out-dir runs\n  \
             mpirun -n 8 busload bench -k copy_vec4 --out-dir runs\n  \
             busload fleet runs\n  \
             busload fleet runs --slower 5% --json fleet.json --html fleet.html",
        )
        .arg(
            Arg::new("folder")
                .value_name("DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The folder; its files that end in .json are read"),
        )
        .arg(
            Arg::new("slower")
                .long("slower")
                .value_name("PERCENT")
                .help("A case that takes so much longer than on the other GPUs is slow, if noise does not explain it")
                .value_parser(super::compare::percent)
                .default_value("3"),
        )
        .arg(
            Arg::new("z-score")
                .long("z-score")
                .value_name("Z")
                .help("What noise explains: robust z-scores up to this, where there are four GPUs or more")
                .value_parser(|text: &str| match text.parse::<f64>() {
                    Ok(z) if z.is_finite() && z >= 0.0 => Ok(z),
                    _ => Err("give a number from 0"),
                })
                .default_value("3.5"),
        )
        .arg(Arg::new("html").long("html").value_name("FILE").help("Write them as a page with plots; - is standard output"))
        .args(exports())
}

/// Judges a folder of results; false if there is something to look at.
pub(super) fn run(_: &Suite, matches: &ArgMatches) -> Result<bool> {
    let folder: &PathBuf = matches.get_one("folder").expect("is required");
    let files = files(folder)?;
    let all = files.iter().map(|file| Ok((file.clone(), read_results("", file)?)));
    let all = all.collect::<Result<Vec<_>, Usage>>()?;
    let exports = Exports::open(matches)?;
    if let Some(file) = exports.paths().find(|file| is_result_in(folder, file)) {
        return Err(Usage(anyhow::anyhow!(
            "{}: fleet reads each .json of {} as a GPU's results: write it into another folder",
            file.display(),
            folder.display()
        ))
        .into());
    }
    all.iter().filter(|(_, results)| results.unfinished).for_each(|(file, _)| say_unfinished(file));
    let rule = |name| *matches.get_one::<f64>(name).expect("has a default");
    let fleet = fleet::judge(&all, Rules { slower: rule("slower"), z_score: rule("z-score") });
    let object = serde_json::json!({ "schema": SCHEMA, "command": "fleet", "fleet": fleet });
    let page = exports.page(|| plots::fleet_page(&fleet));
    let written = exports.write(
        &object,
        &serde_json::Value::from(rows(&fleet)),
        || report::fleet_markdown(&fleet),
        || report::fleet_table(&fleet),
    );
    // What one of them cannot take, the others have.
    page.and(written)?;
    if exports.verbosity.quiet && !fleet.is_well() {
        say_all(report::alarms(&fleet).into_iter());
    }
    Ok(fleet.is_well())
}

/// Whether a file would be taken for results of the folder.
fn is_result_in(folder: &Path, file: &Path) -> bool {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_same =
        parent.canonicalize().ok().zip(folder.canonicalize().ok()).is_some_and(|(parent, folder)| parent == folder);
    is_same && file.extension().is_some_and(|extension| extension == "json")
}

/// What stands in a row of a table: the lists are counted.
fn rows(fleet: &Fleet) -> Vec<serde_json::Value> {
    let row = |gpu: &Gpu| {
        serde_json::json!({
            "file": gpu.file, "name": gpu.name, "id": gpu.id, "device": gpu.device, "process": gpu.process, "speed": gpu.speed,
            "cases": gpu.cases, "slow_cases": gpu.outliers.len(), "failed_cases": gpu.failed.len(), "discarded": gpu.discarded,
            "temperature_c": gpu.temperature_c, "throttled": gpu.throttled_by(), "unfinished": gpu.unfinished,
            "look_at_it": gpu.is_suspect(),
        })
    };
    fleet.gpus.iter().map(row).collect()
}

/// The files of results in a folder, in the order of their names.
fn files(folder: &Path) -> Result<Vec<String>, Usage> {
    let shown = folder.display();
    let entries = std::fs::read_dir(folder).with_context(|| format!("{shown}: no folder that can be read"))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| shown.to_string())?.path();
        if path.extension().is_some_and(|extension| extension == "json") && path.is_file() {
            files.push(path.to_string_lossy().into_owned());
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(anyhow::anyhow!(
            "{shown} holds no results: `busload bench --out-dir {shown}` writes a file a GPU there"
        )
        .into());
    }
    Ok(files)
}
