//! `check`: budgets of kernels, held to what the simulator counts now.

use super::Usage;
use super::options::{axes, chosen, json_option, of_simulator};
use super::output::{Progress, Verbosity, json};
use super::selection::{idle, runs, simulator_options, values};
use crate::cases::{Run, Sizes};
use crate::check::{self, ANY_CASE, Budgets, Commit, Counted, Invalid, Launches, Rules, Subject};
use crate::provenance;
use crate::record::Machine;
use crate::report::{self, Target};
use crate::repository::Repository;
use crate::sim::Options;
use crate::suite::Suite;
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};
use regex::Regex;
use std::collections::BTreeSet;
use std::ffi::OsString;

/// The command with its options.
pub(super) fn command(suite: &Suite) -> Command {
    let arg = |name: &'static str| Arg::new(name).long(name);
    let command = Command::new("check")
        .about("Hold kernels to budgets: what each access may ask of the memory system, in a committed file")
        .long_about(
            "Simulates kernels and compares what each access asks for with its budget in a file, busload.toml. An access that asks \
             for more fails, with its line, the counts before and now, and why; so does a budget whose access is gone, and whatever \
             else is wrong with a kernel. One that asks for less passes, with a note. Counts have no noise: there is no tolerance. \
             Budgets name accesses as `explain` does, `load src`, so they go on to hold when lines move.\n\n\
             A kernel runs on the cases that it has budgets for, and without any on the defaults for the simulator; options for \
             cases choose others. --bless writes the file, of the selected kernels alone.",
        )
        .after_help(
            "Examples:\n  \
             busload check --bless                   write busload.toml\n  \
             busload check                           hold all kernels to it\n  \
             busload check --against main            compare with what another commit counts\n  \
             busload check --github --sarif f.sarif  in GitHub Actions\n  \
             busload check --launch kernels.toml     launches of your own PTX\n\n\
             docs/budgets.md has every key of the file, and a workflow to copy. Exit status 1 means that something fails; 2 that \
             something asked for, or in the file, makes no sense, and nothing ran.",
        )
        .arg(
            arg("budgets")
                .value_name("FILE")
                .help("The file of budgets")
                .default_value("busload.toml"),
        )
        .arg(
            arg("bless")
                .action(ArgAction::SetTrue)
                .help("Write what is counted now as the budgets of the selected kernels, instead of comparing")
                .conflicts_with_all(["against", "json", "sarif", "github", "quiet", "require-budgets"]),
        )
        .arg(
            arg("against")
                .value_name("REV")
                .help("Take what this commit counts as budgets, instead of a file's")
                .long_help(
                    "Take what this commit counts as budgets, instead of a file's: it is checked out beside, and this program is built \
                     and run there. What is gone since then, or new, is a note",
                )
                .conflicts_with("budgets"),
        )
        .arg(
            arg("launch")
                .value_name("FILE")
                .action(ArgAction::Append)
                .help("The launches of this launch file, as `run` takes them, instead of the families' kernels")
                .conflicts_with_all(["kernel", "sizes"]),
        )
        .arg(
            arg("require-budgets")
                .action(ArgAction::SetTrue)
                .help("Fail where an access has no budget, too"),
        )
        .arg(arg("quiet").short('q').action(ArgAction::SetTrue).help("Say what fails in a line each, and a summary"))
        .arg(
            arg("github")
                .action(ArgAction::SetTrue)
                .help("Print annotations for GitHub Actions, too"),
        )
        .arg(
            arg("sarif")
                .value_name("FILE")
                .help("Write what fails, and what is to be known, as SARIF 2.1.0; - is standard output"),
        );
    axes(suite, chosen(command).arg(json_option()).args(of_simulator()))
}

/// Holds kernels to their budgets, or writes these; false if something fails.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    let file: &String = matches.get_one("budgets").expect("has a default");
    let launches = matches.get_many::<String>("launch");
    let launches = launches.map(|files| launches_of(suite, files, matches)).transpose()?;
    if matches.get_flag("bless") {
        let budgets = Budgets::read(file).map_err(usage)?;
        let budgets = budgets.unwrap_or_else(|| Budgets { file: file.clone(), ..Budgets::default() });
        let target = Target::open("--budgets", file).map_err(Usage)?;
        let asked = Asked::new(suite, matches, &budgets, launches, true)?;
        return blessed(&asked, &budgets, &target);
    }
    let sarif =
        matches.get_one::<String>("sarif").map(|file| Target::open("--sarif", file)).transpose().map_err(Usage)?;
    let json = json(matches)?;
    if let (Some(Target::StandardOutput), Some(Target::StandardOutput)) = (&sarif, &json) {
        return Err(usage("--sarif - --json -: standard output takes one of them, so name a file"));
    }
    let rev = matches.get_one::<String>("against");
    let rules = Rules { gone_fails: rev.is_none(), budgets_required: matches.get_flag("require-budgets") };
    let (asked, budgets) = match rev {
        Some(rev) => {
            let asked = Asked::new(suite, matches, &Budgets::default(), launches, false)?;
            let commit = Commit::find(rev).map_err(usage)?;
            let budgets = commit.budgets(&same_subjects(suite, matches)).map_err(usage)?;
            (asked, budgets)
        }
        None => {
            let missing = || usage(format!("{file}: there is no such file: write it by `check --bless`"));
            let budgets = Budgets::read(file).map_err(usage)?.ok_or_else(missing)?;
            (Asked::new(suite, matches, &budgets, launches, false)?, budgets)
        }
    };
    let counted = asked.count();
    let report = check::hold(&budgets, counted, &|subject| asked.is_within(subject), rules);
    let issues = check::issues(&report);
    let repository = Repository::here();
    let json_written = json.as_ref().map(|target| target.write(&provenance::json(&report)?));
    let sarif_written = sarif.as_ref().map(|target| target.write(&report::sarif(&issues, &repository)?));
    let mut text = report::check(&report, matches.get_flag("quiet"));
    if matches.get_flag("github") {
        text = report::annotations(&issues, &repository) + &text;
    }
    let is_taken = [&json, &sarif].into_iter().flatten().any(Target::is_standard_output);
    let shown = match is_taken {
        true => {
            report::say(&text);
            Ok(())
        }
        false => report::print(&text),
    };
    // What one of them cannot take, the others have.
    [json_written, sarif_written, Some(shown)].into_iter().flatten().collect::<Result<()>>()?;
    Ok(report.passed)
}

fn usage(what: impl std::fmt::Display) -> anyhow::Error {
    Usage(anyhow::anyhow!("{what}")).into()
}

fn blessed(asked: &Asked, budgets: &Budgets, target: &Target) -> Result<bool> {
    let counted = asked.count();
    let blessed = check::bless(budgets, &counted, &|subject| asked.is_within(subject)).map_err(usage)?;
    if blessed.text != budgets.text {
        target.write(&blessed.text)?;
    }
    let mut passed = true;
    for own in counted {
        let what = own.findings.iter().map(ToString::to_string).chain(own.error.map(|error| error.message));
        let what: Vec<_> = what.collect();
        if !what.is_empty() {
            report::say(&format!(
                "{}: its budgets are left as they are, since it is wrong: {}",
                own.subject,
                what.join("\n")
            ));
            passed = false;
        }
    }
    let check::Blessed { changed, added, removed, .. } = blessed;
    let said = match (changed, added, removed) {
        (0, 0, 0) => format!("{}: every budget is what is counted now.\n", budgets.file),
        _ => format!("{}: {added} added, {changed} changed, {removed} removed.\n", budgets.file),
    };
    match target.is_standard_output() {
        true => report::say(&said),
        false => report::print(&said)?,
    }
    Ok(passed)
}

/// What is counted.
enum Job {
    Run(Box<Run>),
    Launch(usize, usize),
}

/// What was asked for.
struct Asked<'a> {
    suite: &'a Suite,
    jobs: Vec<Job>,
    launches: Vec<Launches>,
    options: Options,
    /// Which kernels; all without.
    kernels: Option<&'a String>,
    /// Whether it is said on which cases.
    chooses_cases: bool,
    /// Whether the families' kernels are among it.
    has_kernels: bool,
}

impl<'a> Asked<'a> {
    /// With cases that cannot be read left out if `lenient`: they are to be removed.
    fn new(
        suite: &'a Suite,
        matches: &'a ArgMatches,
        budgets: &Budgets,
        named: Option<Vec<Launches>>,
        lenient: bool,
    ) -> Result<Self> {
        let chooses_cases = !values(suite, matches).is_empty() || matches.contains_id("sizes");
        let kernels = matches.get_one::<String>("kernel");
        let mut has_kernels = named.is_none();
        let launches = match named {
            Some(launches) => launches,
            // A file says which launches it is about; if it is about launches alone, the families' kernels are none of it.
            None if kernels.is_none() && !chooses_cases => {
                let files = budgets.tables.keys().filter_map(|subject| match subject {
                    Subject::Launch { file, .. } => Some(file),
                    Subject::Kernel { .. } => None,
                });
                let files: BTreeSet<_> = files.collect();
                let has_budgets = budgets.tables.keys().any(|subject| matches!(subject, Subject::Kernel { .. }));
                has_kernels = has_budgets || files.is_empty();
                files
                    .into_iter()
                    .map(|file| Launches::read(file))
                    .collect::<Result<Vec<_>, Invalid>>()
                    .map_err(usage)?
            }
            None => Vec::new(),
        };
        let mut jobs = Vec::new();
        if has_kernels {
            let runs = runs(suite, matches, Sizes::Small, Machine::simulator().sm_count)?;
            let runs = if chooses_cases { runs } else { on_budgeted_cases(runs, budgets, lenient)? };
            jobs.extend(runs.into_iter().map(|run| Job::Run(Box::new(run))));
        }
        let launched = launches.iter().enumerate();
        jobs.extend(launched.flat_map(|(file, own)| (0..own.ready.len()).map(move |number| Job::Launch(file, number))));
        Ok(Self { suite, jobs, launches, options: simulator_options(matches), kernels, chooses_cases, has_kernels })
    }

    fn count(&self) -> Vec<Counted> {
        let progress = Progress::new(self.jobs.len() as u64, Verbosity::default());
        let counted = self.jobs.iter().map(|job| {
            let counted = match job {
                Job::Run(run) => {
                    progress.at(run, 0, 0);
                    check::of_run(run, &self.options, &|done, of| progress.at(run, done, of))
                }
                Job::Launch(file, number) => {
                    let Launches { file, ready } = &self.launches[*file];
                    let ready = &ready[*number];
                    progress.named(&ready.name, 0, 0);
                    check::of_launch(file, ready, &self.options, &|done, of| progress.named(&ready.name, done, of))
                }
            };
            progress.next();
            counted
        });
        let counted = counted.collect();
        progress.finish();
        counted
    }

    /// Whether budgets of something that was not counted are of something that is gone.
    fn is_within(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Launch { file, .. } => self.launches.iter().any(|launches| launches.file == *file),
            Subject::Kernel { kernel, case } => {
                let is_selected = || match self.kernels.map(|pattern| Regex::new(pattern)) {
                    Some(Ok(regex)) => regex.is_match(kernel),
                    _ => true,
                };
                // Of a kernel that there is, any other case was just not asked for.
                let is_asked = !self.chooses_cases || !self.suite.names().any(|name| name == *kernel);
                self.has_kernels && is_selected() && (is_asked || case == ANY_CASE)
            }
        }
    }
}

/// The launches of launch files.
fn launches_of<'a>(
    suite: &Suite,
    files: impl Iterator<Item = &'a String>,
    matches: &ArgMatches,
) -> Result<Vec<Launches>> {
    if let Some(axis) = values(suite, matches).keys().next() {
        return Err(usage(format!("--{axis} means nothing with --launch: a launch file says what is launched")));
    }
    let mut seen = BTreeSet::new();
    let files = files.filter(|file| seen.insert(*file));
    files.map(|file| Launches::read(file)).collect::<Result<_, _>>().map_err(usage)
}

/// Kernels that have budgets, on the cases that these are for; the others as they are.
fn on_budgeted_cases(runs: Vec<Run>, budgets: &Budgets, lenient: bool) -> Result<Vec<Run>> {
    let mut done = BTreeSet::new();
    let mut all = Vec::new();
    for run in runs {
        let cases = budgets.tables.keys().filter_map(|subject| match subject {
            Subject::Kernel { kernel, case } if *kernel == run.kernel.name && case != ANY_CASE => Some((subject, case)),
            _ => None,
        });
        let cases: Vec<_> = cases.collect();
        if cases.is_empty() {
            all.push(run);
            continue;
        }
        if !done.insert(run.kernel.name) {
            continue;
        }
        for (subject, case) in cases {
            match check::on_case(&run, case) {
                Ok(run) => all.push(run),
                Err(_) if lenient => {}
                Err(error) => return Err(usage(budgets.invalid_table(subject, error))),
            }
        }
    }
    Ok(all)
}

/// The arguments that select the same in the program of another commit.
fn same_subjects(suite: &Suite, matches: &ArgMatches) -> Vec<OsString> {
    let mut arguments = super::selection::same_runs(suite, matches);
    let launches = matches.get_many::<String>("launch").into_iter().flatten();
    arguments.extend(launches.map(|file| format!("--launch={file}").into()));
    for name in ["threads", "max-blocks"] {
        let given = idle(matches, &[name]).is_some();
        let value = matches.get_raw(name).and_then(|mut values| values.next());
        if let Some(value) = value.filter(|_| given) {
            let mut argument = OsString::from(format!("--{name}="));
            argument.push(value);
            arguments.push(argument);
        }
    }
    if matches.get_flag("no-sanitizer") {
        arguments.push("--no-sanitizer".into());
    }
    arguments
}
