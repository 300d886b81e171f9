//! The committed PTX, carried out a warp at a time: against each kernel's reference, and against the counts of the same kernel carried
//! out from its source.

use busload::sim::{Options, Outcome, Position, Site};
use busload::{arguments, ptx, verify};
use busload_tests::{cases, checked, kernels_under_test, on_threads};
use engine::Memory;
use gpu::device::host::ParameterKind;
use gpu::suite::{Counts, Entry, Operation, Plan, Space};
use ptx_machine::{Lines, Module, Program};
use std::collections::BTreeMap;
use std::sync::Arc;

const LINES: Lines<'static> = Lines { file: "busload_sm_80.ptx", within: "gpu/src/kernels/" };

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

type Key = (&'static str, u32, &'static str, Operation, u64);

/// The counts of each line, memory, operation and width.
fn by_line(sites: &[Site]) -> BTreeMap<Key, Counts> {
    let mut lines = BTreeMap::<Key, Counts>::new();
    for Site { position: Position { file, line, .. }, space, operation, width, counts, .. } in sites {
        let space = match space {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Constant => "constant",
        };
        *lines.entry((file, *line, space, *operation, *width)).or_default() += *counts;
    }
    lines
}

#[test]
fn the_committed_ptx_gives_each_kernels_reference_and_the_counts_of_its_source() {
    let module = ptx_machine::parse(ptx::EMBEDDED).unwrap_or_else(|error| panic!("{error}"));
    let mut failed = Vec::new();
    for (family, entry) in kernels_under_test() {
        let name = entry.kernel.name;
        let program = match ptx_machine::lower(&module, name, LINES) {
            Ok(program) => Arc::new(program),
            Err(error) => {
                failed.push(format!("{name}: {error}"));
                continue;
            }
        };
        for case in cases(family) {
            let plan = (entry.plan)(&case).unwrap_or_else(|error| panic!("{name} on {case}: {error}"));
            let plan = Arc::new(plan);
            let outcome = run(&program, entry, &plan, &on_threads(2));
            if let Some(finding) = outcome.findings.first() {
                failed.push(format!("{name} on {case}: {finding}"));
                break;
            }
            if let Err(mismatch) = verify::verify(&plan, |buffer, i| outcome.actual(buffer, i).expect("the run ended")) {
                failed.push(format!("{name} on {case}: {mismatch}"));
                break;
            }
            let source = checked(entry.kernel, &plan, &on_threads(2));
            let [of_ptx, of_source] = [&outcome, &source].map(|outcome| by_line(&outcome.sites));
            if of_ptx != of_source {
                let mut text = format!("{name} on {case}:");
                for key in of_ptx.keys().chain(of_source.keys()).collect::<std::collections::BTreeSet<_>>() {
                    let [a, b] = [&of_ptx, &of_source].map(|of| of.get(key).copied().unwrap_or_default());
                    if a != b {
                        text += &format!("\n  {key:?}\n    PTX    {a:?}\n    source {b:?}");
                    }
                }
                failed.push(text);
                break;
            }
        }
    }
    assert!(failed.is_empty(), "{} kernels:\n{}", failed.len(), failed.join("\n"));
}
