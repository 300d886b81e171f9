//! The committed PTX, carried out a warp at a time: against each kernel's reference, and against the counts of the same kernel carried
//! out from its source.

use busload::sim::{Options, Outcome, Position, Site, Transactions};
use busload::{arguments, ptx, verify};
use busload_tests::{cases, checked, kernels_under_test, memory, on_threads};
use engine::Memory;
use gpu::device::host::ParameterKind;
use gpu::suite::{Counts, Entry, Operation, Plan, Space};
use ptx_machine::{Lines, Module, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

const LINES: Lines<'static> = Lines { file: "busload_sm_80.ptx", within: "gpu/src/kernels/" };

fn module() -> Module<'static> {
    ptx_machine::parse(ptx::EMBEDDED).unwrap_or_else(|error| panic!("{error}"))
}

fn program(module: &Module<'_>, entry: &str) -> Arc<Program> {
    let program = ptx_machine::lower(module, entry, LINES);
    Arc::new(program.unwrap_or_else(|error| panic!("{entry}: {error}")))
}

fn run(program: &Arc<Program>, entry: &Entry, plan: &Arc<Plan>, options: &Options) -> Outcome {
    let words = arguments::words(&entry.kernel, plan, Memory::base).unwrap_or_else(|error| panic!("{error}"));
    let is_written = |name| {
        let mut parameters = entry.kernel.parameters.iter();
        parameters.any(|(own, kind)| *own == name && matches!(kind, ParameterKind::GlobalMut(_)))
    };
    let written: Vec<_> = plan.buffers.iter().map(|buffer| is_written(buffer.name)).collect();
    let outcome = ptx_machine::simulate(program, Arc::clone(plan), &words, &written, options, &|_, _| ());
    outcome.unwrap_or_else(|error| panic!("{}: {error}", entry.kernel.name))
}

type Key = (Position, &'static str, Operation, u64);

/// The counts of each position, memory, operation and width.
fn by_position(sites: &[Site]) -> BTreeMap<Key, (Counts, u64)> {
    let space = |space| match space {
        Space::Global => "global",
        Space::Shared => "shared",
        Space::Constant => "constant",
    };
    let counted =
        |site: &Site| ((site.position, space(site.space), site.operation, site.width), (site.counts, site.used));
    sites.iter().map(counted).collect()
}

fn differences(of_ptx: &Outcome, of_source: &Outcome) -> String {
    let [a, b] = [of_ptx, of_source].map(|outcome| by_position(&outcome.sites));
    let mut text = String::new();
    for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
        if a.get(key) != b.get(key) {
            let _ = write!(text, "\n  {key:?}\n    PTX    {:?}\n    source {:?}", a.get(key), b.get(key));
        }
    }
    let regions = |outcome: &Outcome| outcome.regions.clone();
    if regions(of_ptx) != regions(of_source) {
        let _ = write!(text, "\n  PTX    {:?}\n  source {:?}", of_ptx.regions, of_source.regions);
    }
    let transactions = |outcome: &Outcome| outcome.transactions.values().copied().collect::<Vec<Transactions>>();
    if transactions(of_ptx) != transactions(of_source) {
        text += "\n  transactions differ";
    }
    text
}

#[test]
fn the_committed_ptx_gives_each_kernels_reference_and_the_counts_of_its_source() {
    let module = module();
    let (mut failed, mut runs, mut lanes) = (Vec::new(), 0, 0);
    for (family, entry) in kernels_under_test() {
        let name = entry.kernel.name;
        let program = program(&module, name);
        for case in cases(family) {
            let plan = (entry.plan)(&case).unwrap_or_else(|error| panic!("{name} on {case}: {error}"));
            let plan = Arc::new(plan);
            let outcome = run(&program, entry, &plan, &on_threads(2));
            if let Some(finding) = outcome.findings.first() {
                failed.push(format!("{name} on {case}: {finding}"));
                break;
            }
            if let Err(mismatch) = verify::verify(&plan, |buffer, i| outcome.actual(buffer, i).expect("the run ended"))
            {
                failed.push(format!("{name} on {case}: {mismatch}"));
                break;
            }
            // The sanitizer looks at the source in a test of its own.
            let source = checked(entry.kernel, &plan, &Options { sanitize: false, ..on_threads(2) });
            let mut text = differences(&outcome, &source);
            if plan.clocked.is_none() && memory(&plan, &outcome) != memory(&plan, &source) {
                text += "\n  memory differs";
            }
            if !text.is_empty() {
                failed.push(format!("{name} on {case}: {text}"));
                break;
            }
            runs += 1;
            lanes += outcome.sites.iter().map(|site| site.counts.lanes).sum::<u64>();
        }
    }
    assert!(failed.is_empty(), "{} kernels:\n{}", failed.len(), failed.join("\n"));
    assert!(runs > 0 && lanes > 0, "nothing ran");
}

#[test]
fn counts_and_results_are_the_same_on_any_number_of_threads() {
    let module = module();
    for (family, entry) in kernels_under_test() {
        let program = program(&module, entry.kernel.name);
        let case = cases(family).into_iter().next_back().expect("a case");
        let plan =
            Arc::new((entry.plan)(&case).unwrap_or_else(|error| panic!("{} on {case}: {error}", entry.kernel.name)));
        let run = |threads| {
            let outcome = run(&program, entry, &plan, &on_threads(threads));
            assert!(!outcome.sites.is_empty(), "{} on {case} touches no memory", entry.kernel.name);
            (memory(&plan, &outcome), outcome.sites, outcome.regions)
        };
        let once = run(1);
        assert!(once == run(3), "{} on {case} differs on 3 threads", entry.kernel.name);
    }
}
