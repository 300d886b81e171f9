//! `run`: anybody's PTX, launched as a launch file says.

use super::Usage;
use super::options::{json_option, of_simulator};
use super::output::{Progress, Verbosity, json};
use super::selection::{idle, simulator_options};
use crate::cuda::Gpu;
use crate::foreign::describe::describe;
use crate::foreign::file::LaunchFile;
use crate::foreign::lines::Inlined;
use crate::foreign::prepare::{Ready, Source, prepare};
use crate::foreign::record::{PredictedRecord, RunRecord, RunReport};
use crate::foreign::{on_gpu, page};
use crate::input;
use crate::predict::{Chip, Effort, NotPredicted, Trust};
use crate::ptx::Ptx;
use crate::record::Machine;
use crate::report::{self, Target};
use crate::sim;
use crate::suite::Suite;
use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use ptx_machine::Module;
use std::path::{Path, PathBuf};

/// The command with its options.
pub(super) fn command(_: &Suite) -> Command {
    Command::new("run")
        .about("Run anybody's PTX on the CPU as a launch file says, and count what it asks of the memory system")
        .long_about(
            "Carries out entries of a PTX module on the CPU, an instruction for the 32 lanes of a warp at a time, as a launch \
             file says: grid, block, arguments, and what is to become of the outputs. It counts the requests, sectors, lines \
             and wavefronts of each source line (of each line of the PTX where it has no line table), and reports what the \
             sanitizer finds, with the lines. What it cannot carry out is refused before anything runs.\n\n\
             --on gpu launches the same on a GPU, compares its outputs with the simulated ones, and times it. They must be \
             equal bit for bit; where the kernel has approximate instructions or adds floating-point numbers by atomics, \
             whose order nothing says, numbers may be off by 1e-5 of the value and 1e-5 of the mean magnitude in \
             their buffer, or by what the launch file allows.",
        )
        .after_help(
            "Examples:\n  \
             busload run --describe kernels.ptx -o kernels.toml   every entry, to start from\n  \
             busload run kernels.toml                             the launches of that file\n  \
             busload run kernels.ptx --launch other.toml --chip h200\n  \
             busload run kernels.toml --entry scale --html scale.html\n  \
             busload run kernels.toml --on gpu\n\n\
             docs/running-your-ptx.md has every key of a launch file. Exit status 1 means that something was found, or that an \
             output is not what it should be; 2 that something asked for makes no sense, and nothing ran.",
        )
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .help("A launch file (.toml), or a PTX module, whose launch file has its name with .toml")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("launch")
                .long("launch")
                .value_name("FILE")
                .help("The launch file of a module")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(Arg::new("entry").long("entry").value_name("NAME").help("This entry alone"))
        .arg(
            Arg::new("describe")
                .long("describe")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["launch", "on", "chip", "html", "json", "samples"])
                .help("Print a launch file to start from: every entry of the module with its parameters"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .requires("describe")
                .help("Write what --describe prints to a file"),
        )
        .arg(
            Arg::new("on")
                .long("on")
                .value_name("MACHINE")
                .help("sim: on the CPU; gpu: on a GPU too, compared and timed")
                .value_parser(PossibleValuesParser::new(["sim", "gpu"]))
                .default_value("sim"),
        )
        .arg(
            Arg::new("samples")
                .long("samples")
                .value_name("N")
                .help("Samples of the time on a GPU, L2 flushed before each; 0 launches once and times nothing, as under a profiler")
                .value_parser(value_parser!(u32).range(0..=100_000))
                .default_value("30"),
        )
        .arg(
            Arg::new("chip")
                .long("chip")
                .value_name("CHIP")
                .help(format!("Predict the time on a chip: {}, or a file that describes one", Chip::names().join(", "))),
        )
        .arg(
            Arg::new("html")
                .long("html")
                .value_name("FILE")
                .help("Write a page that shows requests lane by lane, on the source if it is found, else on the PTX; - is standard output"),
        )
        .arg(json_option())
        .args(of_simulator())
        .arg(
            Arg::new("max-steps")
                .long("max-steps")
                .value_name("N")
                .help("Take a warp that branches back more often than that not to end [default: 16777216]")
                .help_heading("The simulator")
                .hide_short_help(true)
                .value_parser(value_parser!(u64).range(1..)),
        )
}

/// Runs what the launch file says; false if something was found, or an output is wrong.
pub(super) fn run(_: &Suite, matches: &ArgMatches) -> Result<bool> {
    let named: &PathBuf = matches.get_one("file").expect("is required");
    let entry = matches.get_one::<String>("entry").map(String::as_str);
    let is_launch_file = named.extension().is_some_and(|extension| extension == "toml");
    if matches.get_flag("describe") {
        return described(named, entry, matches.get_one::<String>("output")).map(|()| true);
    }
    let launches = match (matches.get_one::<PathBuf>("launch"), is_launch_file) {
        (None, true) => named.clone(),
        (None, false) => named.with_extension("toml"),
        (Some(launches), false) => launches.clone(),
        (Some(_), true) => {
            return Err(usage(format!(
                "--launch: {} is a launch file already: name a module beside it",
                named.display()
            )));
        }
    };
    if !is_launch_file && !launches.exists() {
        let (module, launches) = (named.display(), launches.display());
        return Err(usage(format!(
            "{module}: there is no launch file {launches}: write one with `busload run --describe {module} -o {launches}`, or name \
             one by --launch"
        )));
    }
    let file = LaunchFile::read(&launches).map_err(|error| Usage(error.into()))?;
    let ptx = match (&file.ptx, is_launch_file) {
        (_, false) => named.clone(),
        (Some(ptx), true) => file.beside(ptx.get_ref()),
        (None, true) => {
            return Err(usage(format!(
                "{}: it names no module: add `ptx = \"FILE\"`, or name one: `busload run FILE --launch {0}`",
                launches.display()
            )));
        }
    };
    let text = input::text(&ptx, input::SOURCE).map_err(|error| Usage(error.into()))?;
    let name = ptx.display().to_string();
    let module = parsed(&name, &text)?;
    let source = Source { file: &name, module: &module };
    let ready = prepare(&file, &source, entry).map_err(|error| Usage(error.into()))?;
    let chip = matches.get_one::<String>("chip").map(|chip| Chip::load(chip)).transpose();
    let chip = chip.map_err(|error| Usage(error.into()))?;
    if let Some(chip) = &chip {
        ready.iter().try_for_each(|ready| fits(ready, chip))?;
    }
    let on_gpu = matches.get_one::<String>("on").is_some_and(|on| on == "gpu");
    if let Some(idle) = idle(matches, &["samples"]).filter(|_| !on_gpu) {
        return Err(usage(format!("{idle} without --on gpu: nothing is timed")));
    }
    let gpu = on_gpu.then(|| Gpu::open(&text)).transpose();
    let gpu = gpu.map_err(|error| Usage(anyhow::Error::new(error).context("--on gpu")))?;
    let html = matches.get_one::<String>("html").map(|file| Target::open("--html", file)).transpose().map_err(Usage)?;
    let json = json(matches)?;
    if let (Some(Target::StandardOutput), Some(Target::StandardOutput)) = (&html, &json) {
        return Err(usage("--html - --json -: standard output takes one of them, so name a file".to_owned()));
    }
    let machine = gpu.as_ref().map_or_else(Machine::simulator, Machine::gpu);
    let mut options = simulator_options(matches);
    if let Some(steps) = matches.get_one::<u64>("max-steps") {
        options.limits.calls = *steps;
        options.limits.barriers = options.limits.barriers.min(*steps);
    }
    let asked = Asked {
        options,
        effort: Effort { threads: simulator_options(matches).threads, ..Effort::default() },
        chip,
        gpu,
        samples: *matches.get_one("samples").expect("has a default"),
        module: &module,
        inlined: Inlined::new(&module),
        text: &text,
        near: vec![ptx.clone(), launches.clone()],
        html,
        name: &name,
    };
    asked.all(ready, json, RunReport::new(machine, (&Ptx::new(text.as_str())).into()))
}

fn usage(what: String) -> anyhow::Error {
    Usage(anyhow::anyhow!(what)).into()
}

/// The module of a text.
fn parsed<'a>(name: &str, text: &'a str) -> Result<Module<'a>> {
    ptx_machine::parse(text).map_err(|error| usage(format!("{name}: {error}")))
}

/// Whether an SM of the chip has room for a block.
fn fits(ready: &Ready, chip: &Chip) -> Result<()> {
    let launch = ready.plan.launch;
    let shared_bytes = u64::from(launch.shared_bytes) + ready.program.shared_bytes();
    let warps = launch.block_threads().div_ceil(32).into();
    let room = chip.residency(warps, shared_bytes).with_context(|| format!("`{}`", ready.entry));
    room.map(|_| ()).map_err(|error| Usage(error).into())
}

/// Prints a launch file to start from, or writes it.
fn described(module: &Path, entry: Option<&str>, output: Option<&String>) -> Result<()> {
    let text = input::text(module, input::SOURCE).map_err(|error| Usage(error.into()))?;
    let name = module.display().to_string();
    let parsed = parsed(&name, &text)?;
    if parsed.entries().next().is_none() {
        return Err(usage(format!("{name}: it has no entry: a module of kernels has `.entry` functions with bodies")));
    }
    if let Some(entry) = entry.filter(|entry| parsed.entry(entry).is_none()) {
        let near = crate::foreign::file::nearest(entry, parsed.entries().map(|own| own.name));
        let near = near.map_or_else(String::new, |near| format!("; the nearest is `{near}`"));
        return Err(usage(format!("--entry {entry}: {name} has no such entry{near}")));
    }
    match output {
        None => report::print(&describe(&name, &parsed, entry)),
        Some(output) => {
            let target = Target::open("--output", output).map_err(Usage)?;
            // From the folder of the launch file, as far as that is plain.
            let beside = Path::new(output).parent() == module.parent();
            let base = module.file_name().map(|name| name.to_string_lossy().into_owned());
            let whole = || module.canonicalize().map_or(name.clone(), |path| path.display().to_string());
            let shown = if beside { base.unwrap_or_else(whole) } else { whole() };
            target.write(&describe(&shown, &parsed, entry))
        }
    }
}

/// What was asked for, and what it takes to do it.
struct Asked<'a> {
    options: sim::Options,
    effort: Effort,
    chip: Option<Chip>,
    gpu: Option<Gpu>,
    samples: u32,
    module: &'a Module<'a>,
    inlined: Inlined,
    text: &'a str,
    /// The files beside which sources are looked for.
    near: Vec<PathBuf>,
    html: Option<Target>,
    name: &'a str,
}

impl Asked<'_> {
    fn all(&self, ready: Vec<Ready>, json: Option<Target>, mut report: RunReport) -> Result<bool> {
        let progress = Progress::new(ready.len() as u64, Verbosity::default());
        let mut pages = Vec::new();
        let mut lost = false;
        for mut ready in ready {
            let at = |done, of| progress.named(&ready.name, done, of);
            at(0, 0);
            let options = self.options.clone();
            let record = match ready.simulate(&options, &at) {
                Err(ptx_machine::Error::Simulation(error)) => RunRecord::new(&ready).fail(error.kind(), error),
                Err(error) => RunRecord::new(&ready).fail("plan", error),
                Ok(outcome) => {
                    let is_whole = outcome.findings.is_empty() && outcome.blocks.complete();
                    let compared = if is_whole { ready.compare(&outcome) } else { Vec::new() };
                    let mut record = RunRecord::simulated(&ready, &outcome, &self.inlined, compared);
                    if outcome.findings.is_empty() {
                        record.predicted = self.chip.as_ref().map(|chip| self.predict(&ready, chip));
                        if let (Some(gpu), true) = (&self.gpu, is_whole) {
                            let done = match lost {
                                true => on_gpu::not_run(),
                                false => on_gpu::run(gpu, &ready, &outcome, self.samples),
                            };
                            (record.on_gpu, lost) = (Some(done.record), done.lost);
                        }
                    }
                    if is_whole {
                        match ready.write(&outcome) {
                            Ok(written) => record.written = written,
                            Err(error) => record = record.fail("output", format!("{error:#}")),
                        }
                    }
                    drop(outcome);
                    if self.html.is_some() && record.findings.is_empty() {
                        pages.extend(page::explanation(
                            &ready,
                            self.module,
                            self.name,
                            self.text,
                            &self.near,
                            &options,
                        )?);
                    }
                    record
                }
            };
            report.results.push(record);
            progress.next();
            if let Some(json) = &json {
                json.update(|| Ok(report.json()?));
            }
        }
        progress.finish();
        report.unfinished = false;
        let json_written = json.as_ref().map(|json| json.write(&report.json()?));
        let html_written = self.html.as_ref().map(|target| match pages.is_empty() {
            true => {
                report::say("--html: nothing is shown, since no launch ran to its end");
                Ok(())
            }
            false => target.write(&crate::explain::page(&pages, 0)?),
        });
        let is_taken = [&json, &self.html].into_iter().flatten().any(Target::is_standard_output);
        let table = report::launches(&report.results);
        let shown = if is_taken {
            report::say(&table);
            Ok(())
        } else {
            report::print(&table)
        };
        [json_written, html_written, Some(shown)].into_iter().flatten().collect::<Result<()>>()?;
        Ok(report.results.iter().all(RunRecord::is_well))
    }

    fn predict(&self, ready: &Ready, chip: &Chip) -> PredictedRecord {
        let simulate = |options: &sim::Options| ready.simulate(options, &|_, _| ()).map_err(|error| error.to_string());
        let subject = model::Subject { family: "", launch: ready.plan.launch, low: None, simulate: &simulate };
        let chip_name = chip.name.clone();
        match model::predict(&subject, chip, self.effort) {
            Ok(prediction) => PredictedRecord {
                chip: chip_name,
                trust: prediction.trust.clone(),
                prediction: Some(prediction),
                error: None,
            },
            Err(NotPredicted::NotModelled(reasons)) => {
                PredictedRecord { chip: chip_name, prediction: None, trust: Trust::none(reasons), error: None }
            }
            Err(error) => PredictedRecord {
                chip: chip_name,
                prediction: None,
                trust: Trust::default(),
                error: Some(error.to_string()),
            },
        }
    }
}
