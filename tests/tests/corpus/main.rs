//! The sanitizer against the corpus: every planted bug is reported in full, the same bytes on any number of threads, and no
//! twin is.

mod ptx;

use busload::sim::{Limits, Options};
use busload_tests::{checked, on_threads, root, simulate};
use corpus::patterns::{Pattern, patterns};
use corpus::{Bug, Class, bugs};
use gpu::suite::{Kernel, Operation, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn options(threads: usize) -> Options {
    Options { limits: Limits { calls: 1 << 14, barriers: 1 << 8, ..Limits::default() }, ..on_threads(threads) }
}

fn plan(bug: &Bug) -> Arc<Plan> {
    Arc::new((bug.plan)().expect("a small plan"))
}

fn report(kernel: Kernel, plan: &Arc<Plan>, options: &Options) -> String {
    let outcome = simulate(kernel, plan, options);
    outcome.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A bug's report with the positions that its marks stand for.
fn expected(bug: &Bug) -> String {
    placed(bug, bug.report)
}

/// A report of a bug with the positions that marks stand for.
fn placed(Bug { kernel, .. }: &Bug, report: &str) -> String {
    let path = kernel.file;
    let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    // A comment alone marks what stands in the line before.
    let is_comment = |line: &str| line.trim_start().starts_with("// ");
    let before = std::iter::once("").chain(text.lines());
    let lines = text.lines().zip(before).zip(1u32..).map(|((line, before), number)| match is_comment(line) {
        true => (marks(line), before, number - 1),
        false => (marks(line), line, number),
    });
    let lines: Vec<_> = lines.collect();
    let body = lines.iter().skip(kernel.line as usize).take_while(|(_, line, _)| *line != "#[kernel]");
    // A word stands in a function that kernels call.
    let shared = lines.iter().filter(|(marks, ..)| marks.iter().any(|(mark, _)| mark.len() > 1));
    let mut report = report.replace("{kernel}", &format!("{path}:{}:1", kernel.line));
    for (marks, line, number) in body.chain(shared) {
        for (mark, token) in marks {
            let place = format!("{{{mark}}}");
            if report.contains(&place) {
                let found = line.find(&format!("{token}(")).or_else(|| line.find(token));
                let column = found.unwrap_or_else(|| panic!("{path}:{number}: no {token}")) + 1;
                report = report.replace(&place, &format!("{path}:{number}:{column}"));
            }
        }
    }
    assert!(!report.contains('{'), "{}: a mark is missing: {report}", kernel.name);
    report
}

/// The marks at the end of a line, as in `// A: load, B: store`: each with the text at whose begin it stands.
fn marks(line: &str) -> Vec<(&str, &str)> {
    let marks = line.rsplit_once("// ").map_or("", |(_, marks)| marks);
    marks.split(", ").filter_map(|mark| mark.split_once(": ")).collect()
}

#[test]
fn every_planted_bug_is_reported_in_full() {
    let wrong: Vec<_> = bugs()
        .map(|bug| (bug.kernel.name, report(bug.kernel, &plan(bug), &options(2)), expected(bug)))
        .filter(|(_, reported, expected)| reported != expected)
        .map(|(name, reported, expected)| format!("{name}\n  reported {reported}\n  expected {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_twin_is_reported_and_each_gives_its_reference() {
    for bug in bugs() {
        checked(bug.twin, &plan(bug), &options(2));
    }
}

#[test]
fn reports_are_the_same_bytes_on_any_number_of_threads_and_every_time() {
    for bug in bugs() {
        let plan = plan(bug);
        let first = report(bug.kernel, &plan, &options(1));
        for threads in [1, 2, 2, 2, 5, 5, 5] {
            assert_eq!(report(bug.kernel, &plan, &options(threads)), first, "{} on {threads}", bug.kernel.name);
        }
    }
}

#[test]
fn without_the_sanitizer_memory_is_still_safe_and_races_go_unseen() {
    let remembered = [Class::GlobalRace, Class::SharedRace, Class::MissingBarrier].into_iter().chain([
        Class::UninitializedGlobal,
        Class::UninitializedShared,
        Class::CopyUnderWay,
    ]);
    let remembered: BTreeSet<_> = remembered.collect();
    for bug in bugs() {
        let reported = report(bug.kernel, &plan(bug), &Options { sanitize: false, ..options(2) });
        let expected = if remembered.contains(&bug.class) { String::new() } else { expected(bug) };
        assert_eq!(reported, expected, "{}", bug.kernel.name);
    }
}

#[test]
fn there_are_at_least_four_bugs_of_every_class_and_no_kernel_stands_twice() {
    let mut classes = BTreeMap::from(Class::ALL.map(|class| (class, 0)));
    let mut names = BTreeSet::new();
    for bug in bugs() {
        *classes.entry(bug.class).or_default() += 1;
        assert_eq!(bug.twin.name, format!("{}_twin", bug.kernel.name));
        assert!(names.insert(bug.kernel.name), "{} is listed twice", bug.kernel.name);
    }
    assert!(classes.values().all(|bugs| *bugs >= 4), "{classes:#?}");
}

/// Whether a bug has been taken to a GPU.
fn was_run(recorded: &str, bug: &Bug) -> bool {
    recorded.lines().any(|line| line.split('\t').next() == Some(bug.kernel.name))
}

/// The table of who catches what, from what `run` of the corpus printed on a GPU. What the simulator catches, the tests
/// above say: all.
fn who_catches_what(recorded: &str) -> String {
    const TOOLS: [&str; 4] = ["memcheck", "racecheck", "initcheck", "synccheck"];
    let rows: Vec<Vec<&str>> = recorded.lines().map(|line| line.split('\t').collect()).collect();
    let caught = |kernel: &str, tool: &str| rows.iter().any(|row| row[..] == [kernel, row[1], tool, "caught"]);
    let mut table = "| planted bugs | | simulator | memcheck | racecheck | initcheck | synccheck |\n".to_owned();
    table += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for class in Class::ALL {
        let of: Vec<_> =
            bugs().filter(|bug| bug.class == class && was_run(recorded, bug)).map(|bug| bug.kernel.name).collect();
        let by = TOOLS.map(|tool| of.iter().filter(|kernel| caught(kernel, tool)).count());
        let [memcheck, racecheck, initcheck, synccheck] = by;
        let (name, all) = (class.name(), of.len());
        table += &format!("| {name} | {all} | {all} | {memcheck} | {racecheck} | {initcheck} | {synccheck} |\n");
    }
    table
}

#[test]
fn the_table_of_who_catches_what_is_that_of_the_recorded_runs() {
    let read =
        |path: &str| std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let recorded = read("results/nvidia-h200/sanitizer.tsv");
    let docs = read("docs/sanitizer.md");
    let (run, not_run): (Vec<_>, Vec<_>) = bugs().partition(|bug| was_run(&recorded, bug));
    let says = |name: &str| docs.contains(&format!("`{name}`"));
    let unsaid: Vec<_> = not_run.iter().map(|bug| bug.kernel.name).filter(|name| !says(name)).collect();
    assert!(unsaid.is_empty(), "run the corpus anew, or say in docs/sanitizer.md that these were not run: {unsaid:?}");
    for bug in run {
        for kernel in [bug.kernel.name, bug.twin.name] {
            let begin = format!("{kernel}\t{}\t", bug.class.name());
            let runs = recorded.lines().filter(|line| line.starts_with(&begin)).count();
            assert_eq!(runs, 5, "{kernel} was not run: run the corpus anew");
        }
    }
    let table = who_catches_what(&recorded);
    assert!(docs.contains(&table), "docs/sanitizer.md lacks this table:\n{table}");
}

/// What Nsight Compute counted of accesses to shared memory by any lanes, and what the simulator counts of the same kernels.
#[test]
fn patterns_take_as_many_wavefronts_as_were_counted_on_an_h100() {
    let path = root().join("results/nvidia-h100/patterns.tsv");
    let recorded = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // Lanes store to the same element: what else would be looked for there is not the matter here.
    let options = Options { sanitize: false, ..options(2) };
    let mut counted = String::new();
    for Pattern { name, kernel, plan } in patterns().expect("small plans") {
        let outcome = simulate(kernel, &Arc::new(plan), &options);
        assert_eq!(outcome.findings, [], "{name}");
        let of = |operation| {
            let sites = outcome.sites.iter().filter(|site| site.operation == operation);
            sites.map(|site| site.counts.wavefronts).sum::<u64>()
        };
        counted += &format!("{name}\t{}\t{}\n", of(Operation::Load), of(Operation::Store));
    }
    let differ: Vec<_> =
        recorded.lines().zip(counted.lines()).filter(|(recorded, counted)| recorded != counted).collect();
    assert!(differ.is_empty(), "recorded, and counted: {differ:#?}");
    assert_eq!((recorded.lines().count(), counted.lines().count()), (45 * 4 + 7 * 8 + 6 * 4, 45 * 4 + 7 * 8 + 6 * 4));
}
