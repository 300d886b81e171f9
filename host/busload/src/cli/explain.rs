//! `explain`: a kernel's source with the counts of each access, and why the worst costs what it costs.

use super::Usage;
use super::options::{axes, json_option, list, machine, of_simulator};
use super::output::{Progress, Verbosity, json};
use super::selection::{fronts, on_ptx, simulator_options, values};
use crate::bench;
use crate::cases::{self, Run, Selection, Sizes};
use crate::explain::{self, Explanation};
use crate::front::Front;
use crate::provenance;
use crate::record::{Machine, SCHEMA};
use crate::report::{self, Target};
use crate::sim::{self, Sampling};
use crate::spatter;
use crate::suite::Suite;
use anyhow::Result;
use clap::{Arg, ArgMatches, Command};

/// The command with its options.
pub(super) fn command(suite: &Suite) -> Command {
    let command = Command::new("explain")
        .about("Show a kernel's source with what each access asks of the memory system, and why")
        .long_about(
            "Simulates a kernel on one case, the first of the defaults if none is given, and shows its source with the \
             counts of each access, the worst one, and a sentence on why, made from the addresses. The worst has the most \
             bytes in excess: those of 32-byte sectors beyond the fewest that could hold a request's bytes, and 128 for \
             each wavefront beyond the ideal.",
        )
        .after_help(
            "Examples:\n  \
             busload explain strided_copy --stride 32          the source, and why it costs so much\n  \
             busload explain transpose_naive --html page.html  requests lane by lane, for a browser\n  \
             busload explain copy_coalesced --machine ptx      from its PTX",
        )
        .arg(Arg::new("name").value_name("KERNEL").required(true).help("The kernel's name"))
        .arg(Arg::new("html").long("html").value_name("FILE").help(
            "Write a page to look at requests lane by lane, with the kernels before and after; - is standard output",
        ))
        .arg(Arg::new("spatter").long("spatter").value_name("FILE").help(
            "Write its accesses to global memory as a pattern file of Spatter 2, for `busload spatter`; - is standard output",
        ))
        .arg(
            Arg::new("access")
                .long("access")
                .value_name("NAME")
                .requires("spatter")
                .help("Write this access alone, as in \"store dst\""),
        )
        .args(machine("source"))
        .arg(json_option())
        .args(of_simulator());
    axes(suite, command)
}

/// Explains a kernel; false if it is wrong.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    let Asked { run, html, json, spatter } = what_to_explain(suite, matches)?;
    let mut runs = vec![run];
    let mut shown = 0;
    if html.is_some() || json.is_some() {
        let run = &runs[0];
        let (before, after) = (run.neighbour(-1), run.neighbour(1));
        shown = usize::from(before.is_some());
        runs = before.into_iter().chain([run.clone()]).chain(after).collect();
    }
    let explained = runs[shown].kernel.name;
    let [_, is_ptx] = fronts(matches, false)?;
    let (front, runs) = if is_ptx { on_ptx(suite, matches, runs)? } else { (Front::Source, runs) };
    // A neighbour that the build lacks is left out.
    let shown = runs.iter().position(|run| run.kernel.name == explained).ok_or_else(|| {
        Usage(anyhow::anyhow!("--ptx: it has no kernel {explained}: name another build, or another kernel"))
    })?;
    let options = sim::Options { sampling: Some(explain::SAMPLING), ..simulator_options(matches) };
    let progress = Progress::new(runs.len() as u64, Verbosity::default());
    let mut records = Vec::new();
    let mut explanations = Vec::new();
    for run in &runs {
        progress.at(run, 0, 0);
        let options = bench::sampled(run, &options);
        let (record, outcome) = bench::simulate_on(&front, run, &options, &|done, of| progress.at(run, done, of));
        if let Some(outcome) = outcome {
            explanations.push(front.explain(run, outcome, &options)?);
        }
        records.push(record);
        progress.next();
    }
    progress.finish();
    // What is wrong is no use explaining.
    if records.iter().any(|record| record.error.is_some()) {
        report::say(&report::table(&records));
        return Ok(false);
    }
    let patterns = match &spatter {
        Some(_) => Some(patterns(matches, &front, &runs[shown], &explanations[shown], &options)?),
        None => None,
    };
    let spatter_written = spatter.as_ref().zip(patterns).map(|(target, patterns)| target.write(&patterns));
    let json_written = json.as_ref().map(|target| {
        let object =
            serde_json::json!({ "schema": SCHEMA, "command": "explain", "shown": shown, "kernels": explanations });
        target.write(&provenance::json(&object)?)
    });
    let html_written = html.as_ref().map(|target| target.write(&explain::page(&explanations, shown)?));
    let is_taken = [&json, &html, &spatter].into_iter().flatten().any(Target::is_standard_output);
    let text_written = (!is_taken).then(|| report::print(&in_width(&explain::text(&explanations[shown]))));
    [spatter_written, json_written, html_written, text_written].into_iter().flatten().collect::<Result<()>>()?;
    Ok(true)
}

/// The text with its sentences wrapped; lines of the source stay whole.
fn in_width(text: &str) -> String {
    let width = report::width();
    let lines = text.split('\n').map(|line| match line.contains('│') {
        true => line.to_owned(),
        false => report::wrapped(line, width, if line.trim_start().starts_with('→') { 2 } else { 0 }),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What a kernel was explained on, and where the results go.
struct Asked {
    run: Run,
    html: Option<Target>,
    json: Option<Target>,
    spatter: Option<Target>,
}

/// The accesses of the kernel as a pattern file: it is simulated again, to keep each request.
fn patterns(
    matches: &ArgMatches,
    front: &Front,
    run: &Run,
    explanation: &Explanation,
    options: &sim::Options,
) -> Result<String> {
    let requests: u64 = explanation.accesses.iter().map(|access| access.site.requests).sum();
    if requests > spatter::MOST_REQUESTS || options.max_blocks < run.plan.launch.block_count() {
        let most = spatter::MOST_REQUESTS;
        return Err(Usage(anyhow::anyhow!(
            "--spatter: {} on {} makes {requests} requests or more, and up to {most} of a whole grid can be written: choose a \
             smaller size",
            run.kernel.name,
            run.case
        ))
        .into());
    }
    let all = Sampling { blocks: u64::MAX, warps: u32::MAX, requests: u32::MAX };
    let options = sim::Options { sampling: Some(all), sanitize: false, ..options.clone() };
    let (_, outcome) = bench::simulate_on(front, run, &options, &|_, _| ());
    let outcome = outcome.ok_or_else(|| anyhow::anyhow!("--spatter: {} ran once, and not again", run.kernel.name))?;
    let access = matches.get_one::<String>("access").map(String::as_str);
    Ok(spatter::written(explanation, &outcome, access).map_err(|error| Usage(error.into()))?)
}

/// The kernel on the case asked for, or on the first of the defaults, and where the page and the JSON go.
fn what_to_explain(suite: &Suite, matches: &ArgMatches) -> Result<Asked, Usage> {
    let name = matches.get_one::<String>("name").expect("is required");
    let kernels = Some(cases::kernel(suite, name).map_err(anyhow::Error::from)?);
    let values = values(suite, matches);
    if let Some((axis, values)) = values.iter().find(|(_, values)| values.len() > 1) {
        return Err(
            anyhow::anyhow!("--{axis} {}: one case at a time is explained, so give one value", list(values)).into()
        );
    }
    let runs = Selection { kernels, values }.runs(suite, Sizes::Small, Machine::simulator().sm_count);
    let run = runs.map_err(anyhow::Error::from)?.swap_remove(0);
    let html = matches.get_one::<String>("html").map(|file| Target::open("--html", file)).transpose()?;
    let json = json(matches)?;
    let spatter = matches.get_one::<String>("spatter").map(|file| Target::open("--spatter", file)).transpose()?;
    let named = [("html", &html), ("json", &json), ("spatter", &spatter)];
    let taken = named.iter().filter(|(_, target)| target.as_ref().is_some_and(Target::is_standard_output));
    let taken: Vec<_> = taken.map(|(name, _)| format!("--{name} -")).collect();
    if taken.len() > 1 {
        let taken = taken.join(" ");
        return Err(anyhow::anyhow!("{taken}: standard output takes one of them, so name a file").into());
    }
    Ok(Asked { run, html, json, spatter })
}
