//! Where the results of a command go: files, the table, a progress bar.

use super::Usage;
use crate::cases::Run;
use crate::input;
use crate::provenance;
use crate::ptx::Ptx;
use crate::record::{Machine, Record, Report};
use crate::report::{self, Target};
use crate::results::{self, Results};
use anyhow::{Context, Result};
use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(super) fn json(matches: &ArgMatches) -> Result<Option<Target>, Usage> {
    json_as(matches, str::to_owned)
}

/// The same with a name made of the one that was given.
pub(super) fn json_as(matches: &ArgMatches, name: impl FnOnce(&str) -> String) -> Result<Option<Target>, Usage> {
    let target = matches.get_one::<String>("json");
    Ok(target.map(|target| Target::open("--json", &name(target))).transpose()?)
}

/// Where a report goes as it grows: to the JSON file as results come, and to the terminal at the end.
pub(super) struct Output {
    exports: Exports,
    pub(super) report: Report,
    /// Kernels and cases of which a run before this one has results.
    known: BTreeSet<(String, String)>,
    pub(super) progress: Progress,
    /// When the last result came.
    last: Instant,
}

impl Output {
    pub(super) fn new(command: &str, machine: Machine, ptx: &Ptx, exports: Exports, cases: usize) -> Self {
        let report = Report::new(command, machine, ptx.into());
        let progress = Progress::new(cases as u64, exports.verbosity);
        Self { exports, report, known: BTreeSet::new(), progress, last: Instant::now() }
    }

    /// The file that the JSON goes to, if it goes to one.
    pub(super) fn file(&self) -> Option<&Path> {
        self.exports.json.as_ref().and_then(Target::path)
    }

    /// Goes on with a report: its results are not to be had again.
    pub(super) fn go_on(&mut self, before: Report) {
        self.known = before.results.iter().map(|record| (record.kernel.clone(), record.case.clone())).collect();
        self.report.machine.copy_gbps = before.machine.copy_gbps;
        self.report.results = before.results;
    }

    /// Whether the report that is gone on with has a result of a run.
    pub(super) fn has(&self, run: &Run) -> bool {
        self.known.contains(&(run.kernel.name.to_owned(), run.case.to_string()))
    }

    /// Whether standard output is a file's alone.
    pub(super) fn quiet(&self) -> bool {
        self.exports.take_standard_output()
    }

    /// Says something to the person in front of the terminal.
    pub(super) fn say(&self, text: &str) -> Result<()> {
        if self.exports.verbosity.quiet {
            return Ok(());
        }
        let text = report::wrapped(text, report::width(), 0);
        self.show(&format!("{text}\n"))
    }

    /// Prints it, or says it where standard output is a file's alone.
    fn show(&self, text: &str) -> Result<()> {
        if self.quiet() {
            report::say(text);
            return Ok(());
        }
        report::print(text)
    }

    pub(super) fn push(&mut self, record: Record) {
        self.report.results.push(record);
        self.tell(self.report.results.len() - 1);
        self.progress.next();
        if let Some(json) = &self.exports.json {
            json.update(|| Ok(self.report.json()?));
        }
    }

    /// Adds results that took long to get: whatever ends this process, the file has them.
    pub(super) fn keep(&mut self, records: impl IntoIterator<Item = Record>) {
        let begun = self.report.results.len();
        self.report.results.extend(records);
        self.tell(begun);
        self.save();
    }

    /// Says what came since there were so many results, where that is asked for.
    fn tell(&mut self, begun: usize) {
        let took = std::mem::replace(&mut self.last, Instant::now()).elapsed();
        for record in &self.report.results[begun..] {
            self.progress.done(&record.kernel, &record.case, took, || report::outcome(record));
        }
    }

    /// Has the file hold what there is.
    pub(super) fn save(&self) {
        if let Some(json) = &self.exports.json {
            json.keep(|| Ok(self.report.json()?));
        }
    }

    /// Finishes the JSON and prints the table; false if a case failed.
    pub(super) fn finish(self) -> Result<bool> {
        self.finish_as(
            |report| Ok(report.json()?),
            |report| match report.command.as_str() {
                "verify" => report::verification_table(&report.results),
                _ => report::table(&report.results),
            },
        )
    }

    /// The same with JSON and a table of its own.
    pub(super) fn finish_as(
        mut self,
        json: impl FnOnce(&Report) -> Result<String>,
        table: impl FnOnce(&Report) -> String,
    ) -> Result<bool> {
        self.progress.finish();
        self.report.unfinished = false;
        let Self { exports, report, .. } = &self;
        let rows = || Ok(serde_json::to_value(&report.results)?);
        let written = exports.files(|| json(report), rows, || report::records_markdown(&report.results));
        let table = match exports.verbosity.quiet {
            true => {
                say_all(report.results.iter().filter_map(report::failure));
                Ok(())
            }
            false => self.show(&table(report)),
        };
        // What one of them cannot take, the others have.
        written.and(table)?;
        Ok(self.report.results.iter().all(|record| record.error.is_none()))
    }
}

/// How much is said.
#[derive(Clone, Copy, Default)]
pub(super) struct Verbosity {
    pub(super) quiet: bool,
    verbose: bool,
}

impl Verbosity {
    pub(super) fn of(matches: &ArgMatches) -> Self {
        let is_given = |flag| matches.try_get_one::<bool>(flag).ok().flatten().copied().unwrap_or_default();
        Self { quiet: is_given("quiet"), verbose: is_given("verbose") }
    }
}

/// A progress bar on a terminal, once the work has taken two seconds.
pub(super) struct Progress {
    verbosity: Verbosity,
    bar: ProgressBar,
    begun: Instant,
    shown: Mutex<bool>,
}

impl Progress {
    pub(super) fn new(cases: u64, verbosity: Verbosity) -> Self {
        let bar = ProgressBar::with_draw_target(Some(cases), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}").expect("a template that parses");
        Self { verbosity, bar: bar.with_style(style), begun: Instant::now(), shown: Mutex::new(false) }
    }

    /// Shows what runs, and how far it is.
    pub(super) fn at(&self, run: &Run, done: u64, of: u64) {
        self.named(&format!("{} on {}", run.kernel.name, run.case), done, of);
    }

    /// The same of anything that has a name.
    pub(super) fn named(&self, name: &str, done: u64, of: u64) {
        let mut shown = self.shown.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !*shown && !self.verbosity.quiet && self.begun.elapsed() > Duration::from_secs(2) {
            *shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let part = if of > 0 { format!(" {:.0} %", 100.0 * done as f64 / of as f64) } else { String::new() };
        self.bar.set_message(format!("{name}{part}"));
    }

    /// Says what came of a case, where that is asked for.
    pub(super) fn done(&self, kernel: &str, case: &str, took: Duration, outcome: impl FnOnce() -> String) {
        if self.verbosity.verbose {
            let line = format!("{kernel} on {case}, {:.2} s: {}", took.as_secs_f64(), outcome());
            self.bar.suspend(|| report::say(&line));
        }
    }

    pub(super) fn next(&self) {
        self.bar.inc(1);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Where results go besides the terminal: the files that the options of `options::exports` name.
#[derive(Default)]
pub(super) struct Exports {
    pub(super) verbosity: Verbosity,
    pub(super) json: Option<Target>,
    csv: Option<Target>,
    markdown: Option<Target>,
    html: Option<Target>,
}

impl Exports {
    pub(super) fn open(matches: &ArgMatches) -> Result<Self, Usage> {
        Self::open_as(matches, str::to_owned)
    }

    /// The same with names made of those that were given.
    pub(super) fn open_as(matches: &ArgMatches, name: impl Fn(&str) -> String) -> Result<Self, Usage> {
        let given = |option: &str| matches.try_get_one::<String>(option).ok().flatten();
        let open =
            |option: &str| given(option).map(|file| Target::open(&format!("--{option}"), &name(file))).transpose();
        let own = Self {
            verbosity: Verbosity::of(matches),
            json: open("json")?,
            csv: open("csv")?,
            markdown: open("markdown")?,
            html: open("html")?,
        };
        if own.all().filter(|target| target.is_standard_output()).count() > 1 {
            let taken = ["json", "csv", "markdown", "html"].into_iter();
            let taken = taken.filter(|option| given(option).is_some_and(|file| file == "-"));
            let taken = taken.map(|option| format!("--{option} -")).collect::<Vec<_>>().join(" ");
            return Err(anyhow::anyhow!("{taken}: standard output takes one of them, so name a file").into());
        }
        own.are_files_of_their_own([])?;
        if own.take_standard_output() {
            report::plain_tables();
        }
        Ok(own)
    }

    /// Those that were named, each with its option.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, &Target)> {
        let Self { json, csv, markdown, html, .. } = self;
        let named = [("--json", json), ("--csv", csv), ("--markdown", markdown), ("--html", html)];
        named.into_iter().filter_map(|(option, target)| Some((option, target.as_ref()?)))
    }

    fn all(&self) -> impl Iterator<Item = &Target> {
        self.named().map(|(_, target)| target)
    }

    /// The files that are written.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.all().filter_map(Target::path)
    }

    /// Refuses files that two options name, or that are read too.
    pub(super) fn are_files_of_their_own<'a>(&self, read: impl IntoIterator<Item = &'a String>) -> Result<(), Usage> {
        are_files_of_their_own(self.named(), read)
    }

    /// Whether standard output is taken by one of them.
    pub(super) fn take_standard_output(&self) -> bool {
        self.all().any(Target::is_standard_output)
    }

    /// Writes the files asked for, and prints the table unless one of them is standard output. `rows` are those of the JSON.
    pub(super) fn write(
        &self,
        json: &serde_json::Value,
        rows: &serde_json::Value,
        markdown: impl FnOnce() -> String,
        table: impl FnOnce() -> String,
    ) -> Result<()> {
        let files = self.files(|| Ok(provenance::json(json)?), || Ok(rows.clone()), markdown);
        let is_shown = !self.verbosity.quiet && !self.take_standard_output();
        let table = if is_shown { report::print(&table()) } else { Ok(()) };
        // What one of them cannot take, the others have.
        files.and(table)
    }

    /// Writes the page, if one is asked for.
    pub(super) fn page(&self, page: impl FnOnce() -> String) -> Result<()> {
        self.html.as_ref().map_or(Ok(()), |target| target.write(&page()))
    }

    /// Writes the files asked for.
    pub(super) fn files(
        &self,
        json: impl FnOnce() -> Result<String>,
        rows: impl FnOnce() -> Result<serde_json::Value>,
        markdown: impl FnOnce() -> String,
    ) -> Result<()> {
        let csv = || report::csv(rows()?.as_array().map_or(&[][..], Vec::as_slice));
        let json = self.json.as_ref().map(|target| target.write(&json()?));
        let csv = self.csv.as_ref().map(|target| target.write(&csv()?));
        let markdown = self.markdown.as_ref().map(|target| target.write(&markdown()));
        [json, csv, markdown].into_iter().flatten().collect()
    }
}

/// What `bench --json` wrote to `file`; `option` is what it was named by.
pub(super) fn read_results(option: &str, file: &str) -> Result<Results, Usage> {
    let text = input::text(file, input::RESULTS).map_err(|error| anyhow::anyhow!("{option}{error}"))?;
    Ok(results::bench(&text).with_context(|| format!("{option}{file}"))?)
}

/// Refuses files that are written twice, each with the option that names it, or that are read too: one of them would be lost.
pub(super) fn are_files_of_their_own<'a, 't>(
    written: impl IntoIterator<Item = (&'static str, &'t Target)>,
    read: impl IntoIterator<Item = &'a String>,
) -> Result<(), Usage> {
    let mut known: Vec<_> =
        read.into_iter().map(|file| (place(Path::new(file)), "it is read too".to_owned())).collect();
    for (option, path) in written.into_iter().filter_map(|(option, target)| Some((option, target.path()?))) {
        let place = place(path);
        if let Some((_, why)) = known.iter().find(|(other, _)| *other == place) {
            return Err(anyhow::anyhow!("{option} {}: {why}, so name another file", path.display()).into());
        }
        known.push((place, format!("{option} is written there")));
    }
    Ok(())
}

/// Where a file is or will be, by whatever name.
fn place(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        path.file_name().map_or_else(|| folder.clone(), |name| folder.join(name))
    })
}

/// Says what failed.
pub(super) fn say_all(failures: impl Iterator<Item = String>) {
    failures.for_each(|failure| report::say(&failure));
}

/// Says that a file is a part of what its run would have written.
pub(super) fn say_unfinished(file: &str) {
    report::say(&format!("warning: {file} is unfinished: the run that wrote it was ended before its last case"));
}
