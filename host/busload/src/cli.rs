//! The commands, and what they share: which machine, which kernels, which cases, where the results go.

use crate::bench::{self, L2, Samples};
use crate::cases::{self, Run, SelectError, Selection, Sizes};
use crate::claims;
use crate::compare;
use crate::cuda::Gpu;
use crate::doctor;
use crate::explain::{self, Explanation};
use crate::input;
use crate::model::{self, Chip, Effort, Measured};
use crate::parallel;
use crate::profile;
use crate::ptx::Ptx;
use crate::record::{Machine, Record, Report, SCHEMA};
use crate::report::{self, Target};
use crate::results::{self, Results};
use crate::sim;
use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use gpu::kernels::{COUNTEREXAMPLES, FAMILIES};
use gpu::suite::{Kernel, Value};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Something asked for that makes no sense: exit status 2, and nothing was run.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Usage(#[from] pub anyhow::Error);

/// The machine that the user chose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Auto,
    Gpu,
    Sim,
}

/// The program `busload` with all its commands.
pub fn command() -> Command {
    Command::new("busload")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Shows, verifies and measures how memory-access patterns decide a GPU kernel's speed")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            selection(Command::new("bench").about("Measure kernels on the GPU if there is one, else simulate them"))
                .arg(on())
                .arg(ptx())
                .arg(
                    Arg::new("samples")
                        .long("samples")
                        .value_name("N")
                        .help("Samples of each kernel's time, L2 flushed before each")
                        .value_parser(value_parser!(u32).range(1..=100_000))
                        .default_value("30"),
                )
                .arg(
                    Arg::new("hot")
                        .long("hot")
                        .action(ArgAction::SetTrue)
                        .help("Leave in the L2 what the launch before left there, instead of flushing it"),
                )
                .arg(resume()),
        )
        .subcommand(
            selection(
                Command::new("simulate").about("Run kernels on the CPU and count what they ask of the memory system"),
            )
            .arg(
                Arg::new("arch")
                    .long("arch")
                    .value_name("ARCH")
                    .help("Count the transactions of this compute capability too: 1.0, 1.2, 2.0, or 7.0 and later")
                    .value_parser(PossibleValuesParser::new(sim::Arch::ALL.map(sim::Arch::name))),
            ),
        )
        .subcommand(
            selection(
                Command::new("verify").about(
                    "Compare every result with its reference: in the simulator, and on the GPU where there is one",
                ),
            )
            .arg(on())
            .arg(ptx())
            .arg(resume())
            .arg(Arg::new("once").long("once").action(ArgAction::SetTrue).hide(true)),
        )
        .subcommand(
            selection(
                Command::new("profile")
                    .about("Put Nsight Compute's counters beside the simulated counts, on a GPU")
                    .long_about(
                        "Runs the kernels once on a GPU under Nsight Compute, and puts its counters beside the simulated \
                         counts: requests of each kernel, and by source line lanes, sectors, ideal sectors, lines, \
                         wavefronts and ideal wavefronts. Exit status 1 if any of them differs.",
                    ),
            )
            .arg(ptx())
            .arg(
                Arg::new("counters-only")
                    .long("counters-only")
                    .action(ArgAction::SetTrue)
                    .conflicts_with_all(OF_SIMULATOR)
                    .help(
                        "Simulate nothing: record the counters of whole launches, for `predict --measured`, at any size",
                    ),
            )
            .arg(
                Arg::new("ncu")
                    .long("ncu")
                    .value_name("PROGRAM")
                    .help("Nsight Compute's program; without it the first `ncu` in PATH")
                    .value_parser(value_parser!(std::path::PathBuf)),
            ),
        )
        .subcommand(
            chosen(
                Command::new("predict")
                    .about("Predict from simulated counts how long kernels take on a GPU that need not be there")
                    .long_about(
                        "Simulates the kernels and replays what they ask for on the caches and the memory of a chip: \
                         wavefronts of global loads in the L1, sectors read from the L2 and from memory, the time, and \
                         what it is bound by. Long launches are replayed in part. With --measured the predictions are \
                         put beside measurements, and scored.",
                    ),
            )
            .arg(threads())
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
                    .help("Replay so many lines and requests of a launch at most, each of which takes some microseconds, or all")
                    .long_help(
                        "Replay so many lines and requests of a launch at most, each of which takes some microseconds, or \
                         all: as many as tell anything, which takes up to some minutes a launch",
                    )
                    .default_value("4194304")
                    .value_parser(lines_to_replay),
            )
            .arg(
                Arg::new("markdown")
                    .long("markdown")
                    .value_name("FILE")
                    .help("Write the predictions as a Markdown table; - is standard output"),
            ),
        )
        .subcommand(
            simulated(axes(
                Command::new("explain")
                    .about("Show a kernel's source with what each access asks of the memory system, and why")
                    .long_about(
                        "Simulates a kernel on one case, the first of the defaults if none is given, and shows its source \
                         with the counts of each access, the worst one, and a sentence on why, made from the addresses. \
                         The worst has the most bytes in excess: those of 32-byte sectors beyond the fewest that could \
                         hold a request's bytes, and 128 for each wavefront beyond the ideal.",
                    )
                    .arg(Arg::new("name").value_name("KERNEL").required(true).help("The kernel's name")),
            ))
            .arg(json_option())
            .arg(
                Arg::new("html")
                    .long("html")
                    .value_name("FILE")
                    .help("Write a page to look at requests lane by lane, with the kernels before and after; - is standard output")
            ),
        )
        .subcommand(
            Command::new("list")
                .about("List the families and their kernels, in the order of the curriculum")
                .arg(Arg::new("names").long("names").action(ArgAction::SetTrue).help("Names alone, one a line")),
        )
        .subcommand(
            Command::new("claims")
                .about("Judge what the articles claim, by counts of the simulator and by results of a GPU")
                .arg(
                    Arg::new("results")
                        .long("results")
                        .value_name("FILE")
                        .action(ArgAction::Append)
                        .help(
                            "What `bench --json` wrote on a GPU, given again for more files of that GPU; without it \
                             claims about speed stay open",
                        ),
                )
                .args(exports()),
        )
        .subcommand(
            Command::new("compare")
                .about(
                    "Compare two results files of one GPU: the speed of each kernel and case, relative to a reference",
                )
                .arg(
                    Arg::new("reference")
                        .value_name("REFERENCE")
                        .required(true)
                        .help("What `bench --json` wrote: the speeds are relative to it"),
                )
                .arg(
                    Arg::new("results").value_name("RESULTS").required(true).help(
                        "What it wrote another time: with other kernels, another driver, or the twins in CUDA C++",
                    ),
                )
                .arg(
                    Arg::new("tolerance")
                        .long("tolerance")
                        .value_name("PERCENT")
                        .help("Speeds so close to the reference's are the same")
                        .value_parser(value_parser!(u8).range(0..=100))
                        .default_value("1"),
                )
                .args(exports()),
        )
        .subcommand(
            Command::new("doctor").about("Say what this machine can do, and what is missing for the rest").arg(ptx()),
        )
        .subcommand(Command::new("ptx").about("Print the PTX that this program holds"))
}

/// For the child process that goes on after a launch has failed.
fn resume() -> Arg {
    Arg::new("resume").long("resume").value_name("N").hide(true).value_parser(value_parser!(usize))
}

fn on() -> Arg {
    Arg::new("on")
        .long("on")
        .value_name("MACHINE")
        .help("Which machine to use; auto takes a GPU if there is one")
        .value_parser(PossibleValuesParser::new(["auto", "gpu", "sim"]))
        .default_value("auto")
}

fn ptx() -> Arg {
    Arg::new("ptx").long("ptx").value_name("FILE").help("Launch the kernels of this PTX instead of those built in")
}

/// For commands whose findings are no results of runs.
fn exports() -> [Arg; 2] {
    let arg = |name: &'static str, help| Arg::new(name).long(name).value_name("FILE").help(help);
    [
        arg("json", "Write what was found as JSON; - is standard output"),
        arg("markdown", "Write it as a Markdown table; - is standard output"),
    ]
}

/// The options that say which kernels, on which cases, and where the results go.
fn selection(command: Command) -> Command {
    simulated(chosen(command))
}

/// The same without the options of the simulator.
fn chosen(command: Command) -> Command {
    axes(
        command
            .arg(
                Arg::new("kernel")
                    .long("kernel")
                    .short('k')
                    .value_name("REGEX")
                    .help("Kernels whose names match; all without"),
            )
            .arg(
                Arg::new("sizes")
                    .long("sizes")
                    .value_name("SIZES")
                    .help(
                        "Which defaults to take where an option has two: large, those on a GPU, or small, those in the \
                         simulator; without it large where something is timed",
                    )
                    .value_parser(PossibleValuesParser::new(["large", "small"])),
            )
            .arg(json_option()),
    )
}

fn json_option() -> Arg {
    Arg::new("json").long("json").value_name("FILE").help("Write the results as JSON; - is standard output")
}

fn threads() -> Arg {
    Arg::new("threads")
        .long("threads")
        .value_name("N")
        .help("Threads of the simulator; its results do not depend on it")
        .value_parser(value_parser!(u32).range(1..=1024))
}

/// The options of the simulator.
fn simulated(command: Command) -> Command {
    command
        .arg(threads())
        .arg(
            Arg::new("max-blocks")
                .long("max-blocks")
                .value_name("N")
                .help("Simulate at most N blocks of a grid; counts are then of those alone, and nothing is verified")
                .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            Arg::new("no-sanitizer").long("no-sanitizer").action(ArgAction::SetTrue).help(
                "Simulate without looking for races and for loads of memory that nobody wrote: faster, same counts",
            ),
        )
}

/// An option for every axis.
fn axes(mut command: Command) -> Command {
    for axis in cases::axes() {
        let kind = axis.kind;
        let default = if axis.on_gpu == axis.in_simulator {
            format!("default: {}", list(axis.on_gpu))
        } else {
            format!("default: {} on a GPU, {} in the simulator", list(axis.on_gpu), list(axis.in_simulator))
        };
        command = command.arg(
            Arg::new(axis.name)
                .long(axis.name)
                .value_name("N,…")
                .help(format!("{} [{default}]", axis.help))
                .value_delimiter(',')
                .value_parser(ValueParser::new(move |text: &str| cases::parse(kind, text)))
                .action(ArgAction::Append),
        );
    }
    command
}

fn list(values: &[Value]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Parses the arguments of this process, runs the command, and says how it went.
pub fn main() -> ExitCode {
    // What may grow no further (`ulimit -f`) fails like what finds no room, and does not end the process.
    #[cfg(target_os = "linux")]
    // SAFETY: nothing handles the signal.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
    };
    match parsed(command(), std::env::args_os()) {
        Ok(matches) => exit_code(run(&matches)),
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
            report::say(&format!("error: {error:#}"));
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

/// Runs a command of [`command`]; false if a case failed.
///
/// # Errors
/// If it cannot be run at all.
pub fn run(matches: &ArgMatches) -> Result<bool> {
    match matches.subcommand() {
        Some(("bench", matches)) => bench(matches),
        Some(("simulate", matches)) => simulate(matches, "simulate", None),
        Some(("verify", matches)) => verify(matches),
        Some(("profile", matches)) => profile(matches),
        Some(("predict", matches)) => predict(matches),
        Some(("explain", matches)) => explain(matches),
        Some(("list", matches)) => {
            report::print(&list_kernels(matches.get_flag("names")))?;
            Ok(true)
        }
        Some(("claims", matches)) => claims(matches),
        Some(("compare", matches)) => compare(matches),
        Some(("doctor", matches)) => {
            run_doctor(matches, Vec::new())?;
            Ok(true)
        }
        Some(("ptx", _)) => {
            report::print(Ptx::embedded().text())?;
            Ok(true)
        }
        other => unreachable!("clap knows no such command: {other:?}"),
    }
}

fn claims(matches: &ArgMatches) -> Result<bool> {
    let files = matches.get_many::<String>("results").into_iter().flatten();
    let files = files.map(|file| Ok((file, read_results("--results ", file)?))).collect::<Result<Vec<_>, Usage>>()?;
    let machines: Vec<_> = files.iter().map(|(_, results)| results.machine.name.as_str()).collect();
    if let Some(pair) = machines.windows(2).find(|pair| pair[0] != pair[1]) {
        let [one, other] = [pair[0], pair[1]];
        return Err(Usage(anyhow::anyhow!(
            "--results: one file is of an {one}, another of an {other}: claims compare speeds of one GPU, so name its files alone"
        ))
        .into());
    }
    let exports = Exports::open(matches)?;
    files.iter().filter(|(_, results)| results.unfinished).for_each(|(file, _)| say_unfinished(file));
    let evidence = claims::Cached::new(files.into_iter().map(|(_, results)| results).collect());
    let judged = claims::judge(&evidence);
    if let Some(reason) = evidence.failed() {
        anyhow::bail!("no claim can be judged: {reason}");
    }
    let object = serde_json::json!({ "schema": SCHEMA, "command": "claims", "claims": judged });
    exports.write(&object, || report::claims_markdown(&judged), || report::claims_table(&judged))?;
    Ok(true)
}

/// Compares two results files; false if a row is slower or failed.
fn compare(matches: &ArgMatches) -> Result<bool> {
    let file = |name| matches.get_one::<String>(name).map(String::as_str).expect("is required");
    let (reference, results) = (file("reference"), file("results"));
    let reports = (read_results("", reference)?, read_results("", results)?);
    let exports = Exports::open(matches)?;
    let percent: u8 = *matches.get_one("tolerance").expect("has a default");
    let compared = compare::compare((reference, &reports.0), (results, &reports.1), f64::from(percent) / 100.0);
    let compared = compared.map_err(|error| Usage(error.into()))?;
    let object = serde_json::json!({ "schema": SCHEMA, "command": "compare", "comparison": compared });
    exports.write(&object, || report::comparison_markdown(&compared), || report::comparison_table(&compared))?;
    let worse = [compare::Verdict::Slower, compare::Verdict::Failed];
    Ok(!compared.rows.iter().any(|row| worse.contains(&row.verdict)))
}

/// What `bench --json` wrote to `file`; `option` is what it was named by.
fn read_results(option: &str, file: &str) -> Result<Results, Usage> {
    let text = input::text(file, input::RESULTS).map_err(|error| anyhow::anyhow!("{option}{error}"))?;
    Ok(results::bench(&text).with_context(|| format!("{option}{file}"))?)
}

/// Says that a file is a part of what its run would have written.
fn say_unfinished(file: &str) {
    report::say(&format!("warning: {file} is unfinished: the run that wrote it was ended before its last case"));
}

/// Where the findings of a command go that has the options of [`exports`].
struct Exports {
    json: Option<Target>,
    markdown: Option<Target>,
}

impl Exports {
    fn open(matches: &ArgMatches) -> Result<Self, Usage> {
        let open = |name| {
            let target = matches.get_one::<String>(name);
            target.map(|target| Target::open(&format!("--{name}"), target)).transpose()
        };
        Ok(Self { json: open("json")?, markdown: open("markdown")? })
    }

    /// Writes the files asked for, and prints the table unless one of them is standard output.
    fn write(
        &self,
        json: &serde_json::Value,
        markdown: impl FnOnce() -> String,
        table: impl FnOnce() -> String,
    ) -> Result<()> {
        let json = self.json.as_ref().map(|target| target.write(&(serde_json::to_string_pretty(json)? + "\n")));
        let markdown = self.markdown.as_ref().map(|target| target.write(&markdown()));
        let is_taken = [&self.json, &self.markdown].into_iter().flatten().any(Target::is_standard_output);
        let table = (!is_taken).then(|| report::print(&table()));
        // What one of them cannot take, the others have.
        [json, markdown, table].into_iter().flatten().collect()
    }
}

/// Prints what this machine can do, and after it what the caller has looked at.
///
/// # Errors
/// If the file of `--ptx` cannot be read.
pub fn run_doctor(matches: &ArgMatches, more: Vec<doctor::Finding>) -> Result<()> {
    for finding in doctor::findings(&load_ptx(matches)?).iter().chain(&more) {
        report::print(&format!("{finding}\n"))?;
    }
    Ok(())
}

fn list_kernels(names: bool) -> String {
    let mut text = String::new();
    for family in FAMILIES {
        if !names {
            text += &format!("{}: {}\n", family.name, family.summary);
        }
        for entry in family.kernels {
            let kernel = &entry.kernel;
            if names {
                text += &format!("{}\n", kernel.name);
            } else {
                text += &format!("  {:30} {}\n", kernel.name, sentence(kernel));
            }
        }
        if names {
            continue;
        }
        let counterexamples = COUNTEREXAMPLES.iter().filter(|(of, _)| of.name == family.name);
        for entry in counterexamples.flat_map(|(_, entries)| *entries) {
            let kernel = &entry.kernel;
            text +=
                &format!("  {:30} Wrong on purpose, for the simulator to refuse. {}\n", kernel.name, sentence(kernel));
        }
        text.push('\n');
    }
    text
}

/// The first sentence of a kernel's documentation, as plain text.
fn sentence(kernel: &Kernel) -> String {
    let sentence = kernel.documentation.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    sentence.replace("[`", "").replace("`]", "").replace('`', "")
}

fn chosen_machine(matches: &ArgMatches) -> On {
    match matches.get_one::<String>("on").map(String::as_str) {
        Some("gpu") => On::Gpu,
        Some("sim") => On::Sim,
        _ => On::Auto,
    }
}

/// The options of a GPU alone, and of the simulator alone.
const OF_GPU: [&str; 3] = ["ptx", "hot", "samples"];
const OF_SIMULATOR: [&str; 3] = ["threads", "max-blocks", "no-sanitizer"];

/// The options among `names` that were given, as in `--ptx and --hot mean nothing`; none if none was.
fn idle(matches: &ArgMatches, names: &[&str]) -> Option<String> {
    let is_given = |name: &&&str| {
        matches.try_contains_id(name).is_ok_and(|has| has)
            && matches.value_source(name) == Some(ValueSource::CommandLine)
    };
    let given: Vec<_> = names.iter().filter(is_given).map(|name| format!("--{name}")).collect();
    let verb = if given.len() == 1 { "means" } else { "mean" };
    (!given.is_empty()).then(|| format!("{} {verb} nothing", given.join(" and ")))
}

/// Refuses options that mean nothing on the machine that was asked for by name.
fn refuse_idle(matches: &ArgMatches) -> Result<(), Usage> {
    let (on, names) = match chosen_machine(matches) {
        On::Auto => return Ok(()),
        On::Gpu => ("--on gpu: nothing is simulated", OF_SIMULATOR),
        On::Sim => ("--on sim: nothing is launched on a GPU", OF_GPU),
    };
    match idle(matches, &names) {
        Some(idle) => Err(anyhow::anyhow!("{idle} with {on}").into()),
        None => Ok(()),
    }
}

fn load_ptx(matches: &ArgMatches) -> Result<Ptx, Usage> {
    let Some(file) = matches.get_one::<String>("ptx") else { return Ok(Ptx::embedded()) };
    let text = input::text(file, input::SOURCE).context("--ptx")?;
    Ok(Ptx::new(text))
}

fn selected(matches: &ArgMatches) -> Result<Selection, Usage> {
    let pattern = matches.get_one::<String>("kernel");
    let kernels = pattern.map(|pattern| cases::kernels(pattern)).transpose().map_err(anyhow::Error::from)?;
    Ok(Selection { kernels, values: values(matches) })
}

/// What was given for each axis.
fn values(matches: &ArgMatches) -> BTreeMap<String, Vec<Value>> {
    let mut values = BTreeMap::new();
    for axis in cases::axes() {
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
fn runs(matches: &ArgMatches, sizes: Sizes, sm_count: u32) -> Result<Vec<Run>, Usage> {
    let sizes = match matches.get_one::<String>("sizes").map(String::as_str) {
        Some("large") => Sizes::Large,
        Some(_) => Sizes::Small,
        None => sizes,
    };
    Ok(selected(matches)?.runs(sizes, sm_count).map_err(anyhow::Error::from)?)
}

/// The same for a GPU, there or not, which is given no counterexample.
fn runs_on_gpu(matches: &ArgMatches, sizes: Sizes, sm_count: u32) -> Result<Vec<Run>, Usage> {
    let runs = runs(matches, sizes, sm_count)?;
    match runs.iter().find(|run| run.is_counterexample()) {
        Some(run) => Err(anyhow::Error::from(SelectError::Counterexample(run.kernel.name)).into()),
        None => Ok(runs),
    }
}

fn json(matches: &ArgMatches) -> Result<Option<Target>, Usage> {
    Ok(matches.get_one::<String>("json").map(|target| Target::open("--json", target)).transpose()?)
}

/// Where a report goes as it grows: to the JSON file as results come, and to the terminal at the end.
struct Output {
    json: Option<Target>,
    report: Report,
    progress: Progress,
}

impl Output {
    fn new(command: &str, machine: Machine, ptx: &Ptx, json: Option<Target>, cases: usize) -> Self {
        let (command, ptx) = (command.to_owned(), ptx.into());
        let report = Report { schema: SCHEMA, command, machine, ptx, unfinished: true, results: Vec::new() };
        Self { json, report, progress: Progress::new(cases as u64) }
    }

    /// Whether standard output is the JSON's alone.
    fn quiet(&self) -> bool {
        self.json.as_ref().is_some_and(Target::is_standard_output)
    }

    /// Says something to the person in front of the terminal.
    fn say(&self, text: &str) -> Result<()> {
        if self.quiet() {
            report::say(text);
            return Ok(());
        }
        report::print(&format!("{text}\n"))
    }

    fn push(&mut self, record: Record) {
        self.report.results.push(record);
        self.progress.next();
        if let Some(json) = &self.json {
            json.update(|| Ok(self.report.json()?));
        }
    }

    /// Finishes the JSON and prints the table; false if a case failed.
    fn finish(mut self) -> Result<bool> {
        self.progress.finish();
        self.report.unfinished = false;
        let json = self.json.as_ref().map(|json| json.write(&self.report.json()?));
        let table = self.say(report::table(&self.report.results).trim_end());
        // What one of them cannot take, the other has.
        json.into_iter().chain([table]).collect::<Result<()>>()?;
        Ok(self.report.results.iter().all(|record| record.error.is_none()))
    }
}

/// A progress bar on a terminal, once the work has taken two seconds.
struct Progress {
    bar: ProgressBar,
    begun: Instant,
    shown: Mutex<bool>,
}

impl Progress {
    fn new(cases: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(cases), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}").expect("a template that parses");
        Self { bar: bar.with_style(style), begun: Instant::now(), shown: Mutex::new(false) }
    }

    /// Shows what runs, and how far it is.
    fn at(&self, run: &Run, done: u64, of: u64) {
        let mut shown = self.shown.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !*shown && self.begun.elapsed() > Duration::from_secs(2) {
            *shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let part = if of > 0 { format!(" {:.0} %", 100.0 * done as f64 / of as f64) } else { String::new() };
        self.bar.set_message(format!("{} on {}{part}", run.kernel.name, run.case));
    }

    fn next(&self) {
        self.bar.inc(1);
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn simulator_options(matches: &ArgMatches) -> sim::Options {
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

/// Simulates; `first` is said before anything else.
fn simulate(matches: &ArgMatches, command: &str, first: Option<&str>) -> Result<bool> {
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

fn simulate_all(runs: &[Run], options: impl Fn(&Run) -> sim::Options, output: &mut Output) {
    for run in runs {
        output.progress.at(run, 0, 0);
        let (record, _) = bench::simulate(run, &options(run), &|done, of| output.progress.at(run, done, of));
        output.push(record);
    }
}

/// What `predict --json` writes.
fn predictions(chip: &Chip, rows: &[model::Row]) -> serde_json::Value {
    let score = model::Score::of(rows);
    serde_json::json!({ "schema": SCHEMA, "command": "predict", "chip": chip.name, "score": score, "results": rows })
}

/// What it writes while more rows are to come.
fn predictions_so_far(chip: &Chip, rows: &[Option<model::Row>]) -> Result<String> {
    let rows: Vec<_> = rows.iter().flatten().cloned().collect();
    let mut object = predictions(chip, &rows);
    object["unfinished"] = true.into();
    Ok(serde_json::to_string_pretty(&object)? + "\n")
}

/// Predicts; false if something could not be.
fn predict(matches: &ArgMatches) -> Result<bool> {
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
    let mut runs = runs_on_gpu(matches, Sizes::Large, chip.sm_count)?;
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
    let exports = Exports::open(matches)?;
    let threads = matches.get_one::<u32>("threads").map_or(Effort::default().threads, |threads| *threads as usize);
    let workers = threads.min(runs.len()).max(1);
    let most = matches.get_one::<u64>("replay").copied().expect("has a default");
    let effort = Effort { most, threads: threads / workers, ..Effort::default() };
    let progress = Progress::new(runs.len() as u64);
    let rows = Mutex::new(vec![None; runs.len()]);
    parallel::map(runs.iter().enumerate(), workers, |(place, run)| {
        progress.at(run, 0, 0);
        let row = measured.row(run, &chip, model::predict(run, &chip, effort));
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
    exports.write(&object, || report::prediction_markdown(&chip.name, &rows), || report::prediction_table(&rows))?;
    Ok(rows.iter().all(|row| row.error.is_none()))
}

fn explain(matches: &ArgMatches) -> Result<bool> {
    let (run, html, json) = what_to_explain(matches)?;
    let mut runs = vec![run];
    let mut shown = 0;
    if html.is_some() || json.is_some() {
        let run = &runs[0];
        let (before, after) = (run.neighbour(-1), run.neighbour(1));
        shown = usize::from(before.is_some());
        runs = before.into_iter().chain([run.clone()]).chain(after).collect();
    }
    let options = sim::Options { sampling: Some(explain::SAMPLING), ..simulator_options(matches) };
    let progress = Progress::new(runs.len() as u64);
    let mut records = Vec::new();
    let mut explanations = Vec::new();
    for run in &runs {
        progress.at(run, 0, 0);
        let options = bench::sampled(run, &options);
        let (record, outcome) = bench::simulate(run, &options, &|done, of| progress.at(run, done, of));
        explanations.extend(outcome.map(|outcome| Explanation::new(run, &outcome)));
        records.push(record);
        progress.next();
    }
    progress.finish();
    // What is wrong is no use explaining.
    if records.iter().any(|record| record.error.is_some()) {
        report::say(&report::table(&records));
        return Ok(false);
    }
    let json_written = json.as_ref().map(|target| {
        let object =
            serde_json::json!({ "schema": SCHEMA, "command": "explain", "shown": shown, "kernels": explanations });
        target.write(&(serde_json::to_string_pretty(&object)? + "\n"))
    });
    let html_written = html.as_ref().map(|target| target.write(&explain::page(&explanations, shown)?));
    let is_taken = [&json, &html].into_iter().flatten().any(Target::is_standard_output);
    let text_written = (!is_taken).then(|| report::print(&explain::text(&explanations[shown])));
    [json_written, html_written, text_written].into_iter().flatten().collect::<Result<()>>()?;
    Ok(true)
}

/// How much to replay of a launch: `all` has no limit.
fn lines_to_replay(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 1 << 16;
    let lines = if text == "all" { Some(u64::MAX) } else { text.parse().ok() };
    lines.filter(|lines| *lines >= LEAST).ok_or_else(|| format!("it is neither all nor a number from {LEAST}"))
}

/// The kernel on the case asked for, or on the first of the defaults, and where the page and the JSON go.
fn what_to_explain(matches: &ArgMatches) -> Result<(Run, Option<Target>, Option<Target>), Usage> {
    let name = matches.get_one::<String>("name").expect("is required");
    let kernels = Some(cases::kernel(name).map_err(anyhow::Error::from)?);
    let values = values(matches);
    if let Some((axis, values)) = values.iter().find(|(_, values)| values.len() > 1) {
        return Err(
            anyhow::anyhow!("--{axis} {}: one case at a time is explained, so give one value", list(values)).into()
        );
    }
    let runs = Selection { kernels, values }.runs(Sizes::Small, Machine::simulator().sm_count);
    let run = runs.map_err(anyhow::Error::from)?.swap_remove(0);
    let html = matches.get_one::<String>("html").map(|file| Target::open("--html", file)).transpose()?;
    let json = json(matches)?;
    if let (Some(Target::StandardOutput), Some(Target::StandardOutput)) = (&html, &json) {
        return Err(anyhow::anyhow!("--html - --json -: standard output takes one of them, so name a file").into());
    }
    Ok((run, html, json))
}

fn bench(matches: &ArgMatches) -> Result<bool> {
    refuse_idle(matches)?;
    let ptx = load_ptx(matches)?;
    let gpu = match chosen_machine(matches) {
        On::Sim => return simulate(matches, "bench", Some("Simulated, as asked for: nothing was timed.")),
        On::Gpu => Gpu::open(ptx.text()).map_err(|error| Usage(anyhow::Error::new(error).context("--on gpu")))?,
        On::Auto => match Gpu::open(ptx.text()) {
            Ok(gpu) => gpu,
            // Whoever names a PTX wants it launched.
            Err(error) if matches.contains_id("ptx") && !error.means_none() => return Err(error.into()),
            Err(error) => {
                let idle = idle(matches, &OF_GPU).map_or_else(String::new, |idle| format!(" {idle} here."));
                let first = format!("Simulated: nothing was timed, since there is no GPU to use ({error}).{idle}");
                return simulate(matches, "bench", Some(&first));
            }
        },
    };
    let l2 = if matches.get_flag("hot") { L2::Hot } else { L2::Cold };
    let samples = Samples { warm_up: 3, count: *matches.get_one("samples").expect("has a default"), l2 };
    let runs = runs_on_gpu(matches, Sizes::Large, gpu.facts().sm_count)?;
    let child = matches.get_one::<usize>("resume").copied();
    let json = if child.is_some() { Some(Target::StandardOutput) } else { json(matches)? };
    let mut output = Output::new("bench", Machine::gpu(gpu.facts()), &ptx, json, runs.len());
    if child.is_none() {
        let facts = gpu.facts();
        let idle = idle(matches, &OF_SIMULATOR).map_or_else(String::new, |idle| format!(" {idle} on a GPU."));
        output.say(&format!(
            "Measured on {} (driver for CUDA {}), L2 {} each sample.{idle}",
            facts.name,
            facts.driver,
            if l2 == L2::Cold { "flushed before" } else { "left as it was before" }
        ))?;
    }
    on_gpu(&gpu, runs, child.unwrap_or(0), OnGpu::Measure(samples), &mut output);
    output.finish()
}

fn verify(matches: &ArgMatches) -> Result<bool> {
    refuse_idle(matches)?;
    let ptx = load_ptx(matches)?;
    let on = chosen_machine(matches);
    let gpu = match on {
        On::Sim => None,
        On::Gpu => Some(Gpu::open(ptx.text()).map_err(|error| Usage(anyhow::Error::new(error).context("--on gpu")))?),
        On::Auto => Gpu::open(ptx.text())
            .inspect_err(|error| {
                let idle = idle(matches, &OF_GPU).map_or_else(String::new, |idle| format!(" {idle} here."));
                report::say(&format!("Verified in the simulator alone, since there is no GPU to use ({error}).{idle}"));
            })
            .ok(),
    };
    let child = matches.get_one::<usize>("resume").copied();
    let machine = gpu.as_ref().map_or_else(Machine::simulator, |gpu| Machine::gpu(gpu.facts()));
    let simulated = match (on, child) {
        (On::Gpu, _) | (_, Some(_)) => Vec::new(),
        (On::Auto | On::Sim, None) => runs(matches, Sizes::Small, Machine::simulator().sm_count)?,
    };
    // The same cases on both machines: large sizes are for measuring.
    let on_gpu_too = gpu.as_ref().map(|gpu| runs_on_gpu(matches, Sizes::Small, gpu.facts().sm_count));
    let on_gpu_too = on_gpu_too.transpose()?.unwrap_or_default();
    let json = if child.is_some() { Some(Target::StandardOutput) } else { json(matches)? };
    let mut output = Output::new("verify", machine, &ptx, json, simulated.len() + on_gpu_too.len());
    // What is to be verified is not sampled.
    let options = simulator_options(matches);
    simulate_all(&simulated, |_| options.clone(), &mut output);
    if let Some(gpu) = &gpu {
        let how = if matches.get_flag("once") { OnGpu::Once } else { OnGpu::Verify };
        on_gpu(gpu, on_gpu_too, child.unwrap_or(0), how, &mut output);
    }
    output.finish()
}

fn profile(matches: &ArgMatches) -> Result<bool> {
    if matches.contains_id("max-blocks") {
        return Err(
            Usage(anyhow::anyhow!("--max-blocks: the hardware counts whole grids, so profile simulates them")).into()
        );
    }
    let ptx = load_ptx(matches)?;
    let gpu = Gpu::open(ptx.text()).map_err(|error| Usage(anyhow::Error::new(error).context("profile needs a GPU")))?;
    let runs = runs_on_gpu(matches, Sizes::Small, gpu.facts().sm_count)?;
    let json = json(matches)?;
    let progress = Progress::new(runs.len() as u64);
    let profiled = profile::profile(
        &gpu,
        (&ptx).into(),
        &runs,
        matches.get_one::<std::path::PathBuf>("ncu").map(std::path::PathBuf::as_path),
        &same_runs(matches),
        (!matches.get_flag("counters-only")).then(|| simulator_options(matches)).as_ref(),
        &|run| {
            progress.at(run, 0, 0);
            progress.next();
        },
    );
    progress.finish();
    let profiled = profiled?;
    let written = json.as_ref().map(|json| json.write(&(serde_json::to_string_pretty(&profiled)? + "\n")));
    let table = report::profile_table(&profiled);
    let shown = match json.is_some_and(|json| json.is_standard_output()) {
        true => {
            report::say(&table);
            Ok(())
        }
        false => report::print(&table),
    };
    written.into_iter().chain([shown]).collect::<Result<()>>()?;
    let clean = |record: &profile::Profiled| record.error.is_none() && record.differences().is_empty();
    Ok(profiled.results.iter().all(clean))
}

/// The arguments that select the same runs in a child process.
fn same_runs(matches: &ArgMatches) -> Vec<std::ffi::OsString> {
    let mut arguments = Vec::new();
    for name in ["kernel", "ptx", "sizes"] {
        if let Some(value) = matches.get_one::<String>(name) {
            arguments.push(format!("--{name}={value}").into());
        }
    }
    for axis in cases::axes() {
        if let Some(values) = matches.get_many::<Value>(axis.name) {
            let values: Vec<_> = values.map(ToString::to_string).collect();
            arguments.push(format!("--{}={}", axis.name, values.join(",")).into());
        }
    }
    arguments
}

/// What to do with kernels on a GPU.
#[derive(Clone, Copy)]
enum OnGpu {
    /// Launch each once, to be profiled.
    Once,
    Verify,
    Measure(Samples),
}

/// Runs the cases from the `first` on; the device's copy before those that are measured.
fn on_gpu(gpu: &Gpu, runs: Vec<Run>, first: usize, how: OnGpu, output: &mut Output) {
    let samples = if let OnGpu::Measure(samples) = how { Some(samples) } else { None };
    let mut copies = BTreeMap::new();
    if let Some(samples) = samples {
        let mut sizes: Vec<u64> = runs[first.min(runs.len())..].iter().map(|run| run.plan.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for bytes in sizes {
            // A copy that does not fit leaves its cases without a share of copy.
            let Ok(record) = bench::copy(gpu, bytes, samples) else { continue };
            let gbps = record.timed.as_ref().map(|timed| timed.gbps);
            copies.insert(bytes, gbps);
            let best = output.report.machine.copy_gbps.into_iter().chain(gbps).reduce(f64::max);
            output.report.machine.copy_gbps = best;
            if first == 0 {
                output.report.results.push(record);
            }
        }
    }
    for (i, run) in runs.iter().enumerate().skip(first) {
        output.progress.at(run, 0, 0);
        let copy_gbps = copies.get(&run.plan.bytes).copied().flatten();
        let mut done = match how {
            OnGpu::Once => bench::once_on_gpu(gpu, run),
            OnGpu::Verify | OnGpu::Measure(_) => bench::on_gpu(gpu, run, samples, copy_gbps),
        };
        if !done.lost
            && let Some(library) = bench::library_on_gpu(gpu, run, samples, copy_gbps)
        {
            done.lost = library.lost;
            output.report.results.push(library.record);
        }
        let bench::OnGpu { record, lost } = done;
        output.push(record);
        if lost && i + 1 < runs.len() {
            let records = rest(i + 1).unwrap_or_else(|error| {
                runs[i + 1..].iter().map(|run| bench::not_run(run, format!("{error:#}"))).collect()
            });
            for record in records {
                output.push(record);
            }
            break;
        }
    }
}

/// Runs the cases from the `first` on in a new process: a launch failed, and CUDA takes no more calls from this one.
fn rest(first: usize) -> Result<Vec<Record>> {
    let program = std::env::current_exe().context("the path of this program")?;
    let ours = |argument: &std::ffi::OsString| argument.to_string_lossy().starts_with("--resume=");
    let mut child = std::process::Command::new(program);
    child.args(std::env::args_os().skip(1).filter(|argument| !ours(argument))).arg(format!("--resume={first}"));
    let output = child.output().context("running the other cases in a new process")?;
    serde_json::from_slice(&output.stdout).map(|report: Report| report.results).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::anyhow!("the other cases did not run in a new process: {}", said.trim())
    })
}
