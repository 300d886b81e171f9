//! Faults that the corpus has no class for, because no GPU's tools look for them or the kernel needs more than a GPU has:
//! each is reported with its kind, its lines, its block and its thread, the same on every run, and a kernel that differs
//! only in the fault is reported as clean.
//!
//! A line of a kernel that a report must name ends in `// HERE: name`.

mod ending;
mod memory;
mod order;

use busload::sim::{Finding, Kind, Limits, Options, Position};
use busload_tests::{checked, launch, on_threads, simulate};
use gpu::suite::{Buffer, Kernel, Plan, PlanError, noise};
use std::sync::Arc;

/// A file with kernels: its name in a report, and its text.
type Source = (&'static str, &'static str);

/// A file and a line of it.
type Place = (&'static str, u32);

/// The place of the line that ends in the marker `name`.
fn place(name: &str) -> Place {
    let marker = format!("// HERE: {name}");
    let in_file = |(file, text): Source| text.lines().zip(1..).map(move |(text, line)| (text, (file, line)));
    let lines = [ending::SOURCE, memory::SOURCE, order::SOURCE].into_iter().flat_map(in_file);
    let mut found = lines.filter(|(text, _)| text.ends_with(&marker)).map(|(_, place)| place);
    let place = found.next().unwrap_or_else(|| panic!("no line ends in {marker}"));
    assert_eq!(found.next(), None, "{marker} stands twice");
    place
}

/// The place of a position in a report.
fn place_of(position: Option<Position>) -> Option<Place> {
    position.map(|position| (position.file, position.line))
}

/// How often each report must be the same.
const RUNS: usize = 5;

fn options() -> Options {
    let limits = Limits { calls: 1 << 14, barriers: 1 << 8, ..Limits::default() };
    Options { limits, ..on_threads(3) }
}

/// The findings of a kernel with a fault, after as many runs as `runs`, which must all report the same.
fn reported(kernel: Kernel, plan: Result<Plan, PlanError>, runs: usize) -> Vec<Finding> {
    let plan = Arc::new(plan.expect("a small plan"));
    let run = || simulate(kernel, &plan, &options());
    let first = run();
    assert!(!first.findings.is_empty(), "{} has a fault, and nothing was found", kernel.name);
    assert!(first.sites.is_empty(), "{}: counts of a run that went wrong", kernel.name);
    for _ in 1..runs {
        assert_eq!(run().findings, first.findings, "{}", kernel.name);
    }
    first.findings
}

/// The one finding of a kernel with a fault, the same on every run.
fn reported_once(kernel: Kernel, plan: Result<Plan, PlanError>) -> Finding {
    let findings = reported(kernel, plan, RUNS);
    let [finding] = findings.as_slice() else { panic!("{} has more than one fault: {findings:#?}", kernel.name) };
    finding.clone()
}

/// Holds the finding of a kernel to a kind, the lines marked `at` and `other`, a block and a thread along x.
fn expect(
    (kernel, plan): (Kernel, Result<Plan, PlanError>),
    kind: Kind,
    [at, other]: [Option<&str>; 2],
    block: u32,
    thread: u32,
) -> Finding {
    let finding = reported_once(kernel, plan);
    assert_eq!(finding.kind, kind, "{finding}");
    assert_eq!(place_of(finding.at), at.map(place), "{finding}");
    assert_eq!(place_of(finding.other), other.map(place), "{finding}");
    assert_eq!((finding.block, finding.thread), ([block, 0, 0], [thread, 0, 0]), "{finding}");
    finding
}

/// Why a kernel is not simulated.
fn refused(kernel: Kernel, plan: Result<Plan, PlanError>) -> String {
    let plan = Arc::new(plan.expect("a small plan"));
    let refused = busload::sim::simulate(kernel, plan, &options(), &|_, _| ());
    refused.err().expect("what no GPU takes").to_string()
}

/// Runs a kernel without a fault.
fn expect_clean((kernel, plan): (Kernel, Result<Plan, PlanError>)) {
    checked(kernel, &Arc::new(plan.expect("a small plan")), &options());
}

/// From 100 elements to 100 elements, by 4 blocks of a warp: 28 threads too many.
fn hundred() -> Result<Plan, PlanError> {
    Ok(Plan::new(launch([4, 1, 1], [32, 1, 1]))
        .buffer(Buffer::input("src", 100, noise)?)
        .buffer(Buffer::output("dst", 100, noise)?)
        .scalar("n", 100u64))
}

/// One block of `threads` with `src`, whose elements are their indices, and `dst` as `expected` says.
fn one_block(threads: u32, expected: fn(u64) -> f32) -> Result<Plan, PlanError> {
    Ok(Plan::new(launch([1; 3], [threads, 1, 1]))
        .buffer(Buffer::input("src", threads.into(), |i| i as f32)?)
        .buffer(Buffer::output("dst", threads.into(), expected)?))
}
