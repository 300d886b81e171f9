//! The same bugs in the PTX that the compiler makes of them, carried out a warp at a time.

use super::{expected, options, placed, plan};
use busload::sim::{Kind, Options, Outcome};
use busload::{arguments, verify};
use busload_tests::on_threads;
use corpus::{Bug, bugs};
use engine::Memory;
use gpu::device::host::ParameterKind;
use gpu::suite::{Kernel, Plan};
use ptx_machine::{Lines, Module};
use std::collections::BTreeSet;
use std::sync::Arc;

const LINES: Lines<'static> = Lines { file: "corpus_sm_80.ptx", within: "tests/corpus/src/" };

/// The committed PTX, if it is of the sources as they are: else its lines are not theirs, and only a machine with the standard
/// library's source can mend that.
fn committed() -> Option<&'static str> {
    let fresh = sources::fresh_corpus().unwrap_or_else(|error| panic!("{error:#}"));
    if fresh.is_none() {
        let warning = "warning: the PTX of the planted bugs is of other sources (`cargo xtask ptx` rebuilds it): it was not run\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), warning.as_bytes());
    }
    fresh.map(|text| &*text.leak())
}

fn module(text: &'static str) -> Module<'static> {
    ptx_machine::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn run(module: &Module<'_>, kernel: Kernel, plan: &Arc<Plan>, options: &Options) -> Outcome {
    let name = kernel.name;
    let program = ptx_machine::lower(module, name, LINES).unwrap_or_else(|error| panic!("{name}: {error}"));
    let words = arguments::words(&kernel, plan, Memory::base).unwrap_or_else(|error| panic!("{error}"));
    let is_written = |name| {
        let mut parameters = kernel.parameters.iter();
        parameters.any(|(own, kind)| *own == name && matches!(kind, ParameterKind::GlobalMut(_)))
    };
    let written: Vec<_> = plan.buffers.iter().map(|buffer| is_written(buffer.name)).collect();
    let outcome = ptx_machine::simulate(&Arc::new(program), Arc::clone(plan), &words, &written, options, &|_, _| ());
    outcome.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn report(module: &Module<'_>, kernel: Kernel, plan: &Arc<Plan>, options: &Options) -> String {
    let outcome = run(module, kernel, plan, options);
    outcome.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn dump() {
    let Some(text) = committed() else { return };
    let module = module(text);
    for bug in bugs() {
        let got = report(&module, bug.kernel, &plan(bug), &options(2));
        let want = expected(bug);
        if got != want {
            println!("DIFF {}\n  want {want}\n  got  {got}", bug.kernel.name);
        }
        let twin = run(&module, bug.twin, &plan(bug), &options(2));
        for finding in &twin.findings {
            println!("TWIN {} {finding}", bug.twin.name);
        }
        if twin.findings.is_empty() && let Err(m) = verify::verify(&plan(bug), |buffer, i| twin.actual(buffer, i).expect("the run ended")) {
            println!("TWIN {} {m}", bug.twin.name);
        }
    }
    let _ = (Kind::Race, BTreeSet::from([1]), on_threads(1), placed as fn(&Bug, &str) -> String);
}
