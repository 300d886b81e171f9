//! `predict`: how long kernels take on a GPU that need not be there.

use super::Usage;
use super::options::{axes, chosen, exports, machine, threads, verbose};
use super::output::{Exports, Progress, are_files_of_their_own, say_all, say_unfinished};
use super::selection::{file_of_ptx, fronts, load_ptx, on_ptx, runs_on_gpu};
use crate::cases::{Run, Sizes};
use crate::front::Front;
use crate::input;
use crate::parallel;
use crate::predict::{self, About, Chip, Effort, Measured, NotPredicted, Prediction, Timeline, Window};
use crate::provenance;
use crate::ptx::Ptx;
use crate::record::SCHEMA;
use crate::report::{self, Target};
use crate::suite::Suite;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::sync::Mutex;
use std::time::Instant;

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
        .after_help(
            "Examples:\n  \
             busload predict --kernel transpose --chip h200\n  \
             busload predict -k '^transpose_tiled$' --shape 4096 --timeline out.json  for ui.perfetto.dev\n  \
             busload predict --chip h200 --measured bench.json                        and what was measured\n  \
             busload predict --describe a100-80 > my-gpu.json                         a chip to start from",
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
        );
    axes(suite, chosen(command.args(timeline())).args(exports()).arg(verbose()).args(machine("ptx")).arg(threads()))
}

/// Those of what happens on one SM.
fn timeline() -> [Arg; 3] {
    let window = |name: &'static str| Arg::new(name).long(name).value_name("N").requires("timeline");
    [
        Arg::new("timeline")
            .long("timeline")
            .value_name("FILE")
            .help("Write what happens on one SM during one wave of blocks as trace events, which Perfetto opens; - is standard output")
            .long_help(
                "Write what happens on one SM while the blocks of one wave are resident, as trace events, which Perfetto \
                 (https://ui.perfetto.dev) opens: what each warp stalls on, the issue slots and MIO queues of the sub-partitions, \
                 the LSU, the data stage and the port, and the L2 slices and DRAM channels that it reaches. One kernel on one case \
                 is predicted then.",
            ),
        window("timeline-sm").help("The SM [default: 0]").value_parser(value_parser!(u32)),
        window("timeline-wave")
            .help("The wave, from 0 [default: 1 of a launch that has two whole waves, else 0]")
            .value_parser(value_parser!(u64)),
    ]
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
        let left_out: Vec<_> = runs.extract_if(.., |run| !measured.knows(run)).collect();
        if runs.is_empty() {
            let files = files.map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(Usage(anyhow::anyhow!(
                "--measured {files}: nothing in it is of the {asked} runs asked for on {}: name the chip, the kernels and \
                 the sizes that were measured",
                chip.name
            ))
            .into());
        }
        say_left_out(&left_out, asked);
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
    let timeline = Asked::new(matches, &chip, &runs, &exports)?;
    let named = exports.named().chain(timeline.iter().map(|asked| ("--timeline", &asked.target)));
    are_files_of_their_own(named, matches.get_many("measured").into_iter().flatten())?;
    let threads = matches.get_one::<u32>("threads").map_or(Effort::default().threads, |threads| *threads as usize);
    let workers = threads.min(runs.len()).max(1);
    let most = matches.get_one::<u64>("replay").copied().expect("has a default");
    let effort = Effort { most, threads: threads / workers, ..Effort::default() };
    let progress = Progress::new(runs.len() as u64, exports.verbosity);
    let rows = Mutex::new(vec![None; runs.len()]);
    parallel::map(runs.iter().enumerate(), workers, |(place, run)| {
        progress.at(run, 0, 0);
        let begun = Instant::now();
        let best;
        let front = match &front {
            Some(front) => front,
            None => {
                best = Front::best(suite, &file, ptx.text(), &run.kernel);
                &best
            }
        };
        let row = measured.row(
            run,
            &chip,
            match &timeline {
                Some(timeline) => timeline.predict(front, run, &chip, effort),
                None => front.predict(run, &chip, effort),
            },
        );
        progress.done(&row.kernel, &row.case, begun.elapsed(), || report::prediction_outcome(&row));
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
    if let Some(timeline) = timeline {
        timeline.write()?;
    }
    exports.write(
        &object,
        &object["results"],
        || report::prediction_markdown(&chip.name, &rows),
        || report::prediction_table(&rows),
    )?;
    if exports.verbosity.quiet {
        say_all(rows.iter().filter_map(report::prediction_failure));
    }
    Ok(rows.iter().all(|row| row.error.is_none()))
}

/// So many kernels of which nothing was measured are named.
const NAMED: usize = 3;

/// Says which of the runs asked for are not predicted, since nothing was measured of them.
fn say_left_out(left_out: &[Run], asked: usize) {
    let mut names: Vec<_> = left_out.iter().map(|run| run.kernel.name).collect();
    names.dedup();
    let more = names.len().saturating_sub(NAMED);
    if names.is_empty() {
        return;
    }
    let first = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if more > 0 { format!(" and {more} more kernels") } else { String::new() };
    report::say(&format!(
        "--measured: {} of the {asked} runs asked for were not measured, and are left out: of {first}{more}",
        left_out.len()
    ));
}

/// The timeline that was asked for.
struct Asked {
    target: Target,
    window: Window,
    /// What came of it.
    kept: Mutex<Option<(About, Timeline)>>,
}

impl Asked {
    /// None if none was.
    fn new(matches: &ArgMatches, chip: &Chip, runs: &[Run], exports: &Exports) -> Result<Option<Self>, Usage> {
        let Some(file) = matches.get_one::<String>("timeline") else { return Ok(None) };
        if let [_, _, ..] = runs {
            return Err(anyhow::anyhow!(
                "--timeline {file}: {} runs were asked for, and a timeline is of one: name a kernel with --kernel '^NAME$', and one \
                 size",
                runs.len()
            )
            .into());
        }
        let sm = matches.get_one("timeline-sm").copied().unwrap_or(0);
        if sm >= chip.sm_count {
            return Err(anyhow::anyhow!("--timeline-sm {sm}: {} has SMs 0 to {}", chip.name, chip.sm_count - 1).into());
        }
        let window = Window { sm, wave: matches.get_one("timeline-wave").copied(), most: predict::MOST_EVENTS };
        let target = Target::open("--timeline", file)?;
        if target.is_standard_output() && exports.take_standard_output() {
            return Err(anyhow::anyhow!("--timeline -: standard output takes one of the files, so name another").into());
        }
        Ok(Some(Self { target, window, kept: Mutex::new(None) }))
    }

    /// The prediction, with the timeline kept.
    fn predict(&self, front: &Front, run: &Run, chip: &Chip, effort: Effort) -> Result<Prediction, NotPredicted> {
        let (prediction, timeline) = front.predict_with_timeline(run, chip, effort, self.window)?;
        let (kernel, case) = (run.kernel.name.to_owned(), run.case.to_string());
        let about = About { kernel, case, chip: chip.name.clone(), predicted_ms: prediction.predicted_ms };
        *self.kept.lock().expect("no panic under this lock") = Some((about, timeline));
        Ok(prediction)
    }

    /// Writes the timeline, and says what of it found no room.
    fn write(self) -> Result<()> {
        // Without a prediction the row says why.
        let Some((about, timeline)) = self.kept.into_inner().expect("no panic under this lock") else { return Ok(()) };
        let (sm, wave, [waves, replayed]) = (timeline.sm, timeline.wave, timeline.waves);
        if timeline.events.is_empty() {
            return Err(Usage(match wave {
                _ if wave >= waves => anyhow::anyhow!("--timeline-wave {wave}: the launch has waves 0 to {}", waves - 1),
                _ if wave >= replayed => anyhow::anyhow!(
                    "--timeline-wave {wave}: of {waves} waves {replayed} were replayed; name an earlier one, or give --replay more"
                ),
                _ => anyhow::anyhow!("--timeline-sm {sm}: it has no block of wave {wave}; name another SM, or another wave"),
            })
            .into());
        }
        if timeline.left_out > 0 {
            report::say(&format!(
                "The timeline holds the first {} events; {} more found no room.",
                timeline.events.len(),
                timeline.left_out
            ));
        }
        self.target.write(&predict::trace_events(&timeline, &about)?)
    }
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
