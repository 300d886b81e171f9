//! `predict`: how long kernels take on a GPU that need not be there.

use super::Usage;
use super::options::{axes, chosen, exports, machine, threads};
use super::output::{Exports, Progress, say_unfinished};
use super::selection::{file_of_ptx, fronts, load_ptx, on_ptx, runs_on_gpu};
use crate::cases::Sizes;
use crate::front::Front;
use crate::input;
use crate::parallel;
use crate::predict::{self, Chip, Effort, Measured};
use crate::provenance;
use crate::ptx::Ptx;
use crate::record::SCHEMA;
use crate::report;
use crate::suite::Suite;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::sync::Mutex;

/// The command with its options.
pub(super) fn command(suite: &Suite) -> Command {
    let command = Command::new("predict")
        .about("Predict from simulated counts how long kernels take on a GPU that need not be there")
        .long_about(
            "Simulates the kernels and replays what they ask for on the caches and the memory of a chip: wavefronts of \
             global loads in the L1, sectors read from the L2 and from memory, the time, and what it is bound by. Long \
             launches are replayed in part. With --measured the predictions are put beside measurements, and scored.\n\n\
             Each prediction carries a confidence. high: a family of the suite, on a GPU that measured it. medium: any \
             other kernel on such a GPU. low: another GPU, another build (--ptx), or a kernel that is not in the \
             built-in PTX and is carried out from its source. not modelled: no figure, and the row says why.",
        )
        .arg(
            Arg::new("chip")
                .long("chip")
                .value_name("CHIP")
                .help(format!("{}, or a file that describes one", Chip::names().join(", ")))
                .default_value("a100-80"),
        )
        .arg(
            Arg::new("describe")
                .long("describe")
                .value_name("CHIP")
                .help("Print the description of a chip, each figure with its source, and predict nothing")
                .exclusive(true)
                .value_parser(PossibleValuesParser::new(Chip::names())),
        )
        .arg(
            Arg::new("measured")
                .long("measured")
                .value_name("FILE")
                .action(ArgAction::Append)
                .help("What `bench --json` or `profile --json` wrote on such a chip: predict what it measured"),
        )
        .arg(
            Arg::new("replay")
                .long("replay")
                .value_name("LINES")
                .help("Replay so many lines and requests of a launch at most, or all")
                .long_help(
                    "Replay so many lines and requests of a launch at most, each of which takes some microseconds, or all: \
                     as many as tell anything, which takes up to some minutes a launch",
                )
                .default_value("4194304")
                .value_parser(lines_to_replay),
        )
        .arg(
            Arg::new("markdown")
                .long("markdown")
                .value_name("FILE")
                .help("Write the predictions as a Markdown table, with every column; - is standard output"),
        );
    axes(suite, chosen(command).args(exports()).args(machine("ptx")).arg(threads()))
}

/// Predicts; false if something could not be.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    if let Some(name) = matches.get_one::<String>("describe") {
        report::print(Chip::description(name).expect("clap knows the names"))?;
        return Ok(true);
    }
    let chip = Chip::load(matches.get_one::<String>("chip").expect("has a default"));
    let chip = chip.map_err(|error| Usage(error.into()))?;
    let mut measured = Measured::default();
    for file in matches.get_many::<String>("measured").into_iter().flatten() {
        let text = input::text(file, input::RESULTS).map_err(|error| Usage(anyhow::anyhow!("--measured {error}")))?;
        let unfinished = measured.add(&text, &chip);
        if unfinished.map_err(|reason| Usage(anyhow::anyhow!("--measured {file}: {reason}")))? {
            say_unfinished(file);
        }
    }
    let mut runs = runs_on_gpu(suite, matches, Sizes::Large, chip.sm_count)?;
    if let Some(files) = matches.get_many::<String>("measured") {
        let asked = runs.len();
        runs.retain(|run| measured.knows(run));
        if runs.is_empty() {
            let files = files.map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(Usage(anyhow::anyhow!(
                "--measured {files}: nothing in it is of the {asked} runs asked for on {}: name the chip, the kernels and \
                 the sizes that were measured",
                chip.name
            ))
            .into());
        }
    }
    let [_, is_ptx] = fronts(matches, false)?;
    let (front, runs) = match matches.contains_id("machine") {
        _ if is_ptx => on_ptx(suite, matches, runs).map(|(front, runs)| (Some(front), runs))?,
        true => (Some(Front::Source), runs),
        false => (None, runs),
    };
    // Without a machine that was asked for, what is in no PTX is carried out from its source.
    let file = file_of_ptx(suite, matches);
    let ptx = match &front {
        Some(_) => Ptx::new(""),
        None => load_ptx(suite, matches).unwrap_or_else(|error| {
            report::say(&format!("Predicted from the kernels' source: {error:#}."));
            Ptx::new("")
        }),
    };
    let exports = Exports::open(matches)?;
    let threads = matches.get_one::<u32>("threads").map_or(Effort::default().threads, |threads| *threads as usize);
    let workers = threads.min(runs.len()).max(1);
    let most = matches.get_one::<u64>("replay").copied().expect("has a default");
    let effort = Effort { most, threads: threads / workers, ..Effort::default() };
    let progress = Progress::new(runs.len() as u64);
    let rows = Mutex::new(vec![None; runs.len()]);
    parallel::map(runs.iter().enumerate(), workers, |(place, run)| {
        progress.at(run, 0, 0);
        let row = measured.row(
            run,
            &chip,
            match &front {
                Some(front) => front.predict(run, &chip, effort),
                None => Front::best(suite, &file, ptx.text(), &run.kernel).predict(run, &chip, effort),
            },
        );
        progress.next();
        let mut rows = rows.lock().expect("no panic under this lock");
        rows[place] = Some(row);
        if let Some(json) = &exports.json {
            json.update(|| predictions_so_far(&chip, &rows));
        }
    });
    let rows: Vec<_> = rows.into_inner().expect("no panic under this lock").into_iter().flatten().collect();
    progress.finish();
    let object = predictions(&chip, &rows);
    exports.write(
        &object,
        &object["results"],
        || report::prediction_markdown(&chip.name, &rows),
        || report::prediction_table(&rows),
    )?;
    Ok(rows.iter().all(|row| row.error.is_none()))
}

/// What `predict --json` writes.
fn predictions(chip: &Chip, rows: &[predict::Row]) -> serde_json::Value {
    let score = predict::Score::of(rows);
    serde_json::json!({ "schema": SCHEMA, "command": "predict", "chip": chip.name, "score": score, "results": rows })
}

/// What it writes while more rows are to come.
fn predictions_so_far(chip: &Chip, rows: &[Option<predict::Row>]) -> Result<String> {
    let rows: Vec<_> = rows.iter().flatten().cloned().collect();
    let mut object = predictions(chip, &rows);
    object["unfinished"] = true.into();
    Ok(provenance::json(&object)?)
}

/// How much to replay of a launch: `all` has no limit.
fn lines_to_replay(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 1 << 16;
    let lines = if text == "all" { Some(u64::MAX) } else { text.parse().ok() };
    lines.filter(|lines| *lines >= LEAST).ok_or_else(|| format!("it is neither all nor a number from {LEAST}"))
}
