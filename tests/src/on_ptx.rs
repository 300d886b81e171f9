//! Running kernels from their PTX, and holding what came of it to a run from the source.

use busload::arguments;
use busload::sim::{Options, Outcome, Position, Site, Transactions};
use engine::Memory;
use gpu::device::host::ParameterKind;
use gpu::suite::{Counts, Kernel, Operation, Plan, Space};
use ptx_machine::{Lines, Module, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

/// PTX, parsed.
///
/// # Panics
/// If it cannot be.
pub fn module(text: &str) -> Module<'_> {
    ptx_machine::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// An entry of it, made ready to run.
///
/// # Panics
/// If it cannot be.
pub fn program(module: &Module<'_>, entry: &str, lines: Lines<'static>) -> Arc<Program> {
    let program = ptx_machine::lower(module, entry, lines);
    Arc::new(program.unwrap_or_else(|error| panic!("{entry}: {error}")))
}

/// Carries out a kernel's PTX.
///
/// # Panics
/// If the plan does not fit the kernel.
pub fn run(program: &Arc<Program>, kernel: &Kernel, plan: &Arc<Plan>, options: &Options) -> Outcome {
    let words = arguments::words(kernel, plan, Memory::base).unwrap_or_else(|error| panic!("{error}"));
    let is_written = |name| {
        let mut parameters = kernel.parameters.iter();
        parameters.any(|(own, kind)| *own == name && matches!(kind, ParameterKind::GlobalMut(_)))
    };
    let written: Vec<_> = plan.buffers.iter().map(|buffer| is_written(buffer.name)).collect();
    let outcome = ptx_machine::simulate(program, Arc::clone(plan), &words, &written, options, &|_, _| ());
    outcome.unwrap_or_else(|error| panic!("{}: {error}", kernel.name))
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

/// What the two runs counted unlike: by position, by buffer and array, and as transactions. Empty if nothing.
pub fn differences(of_ptx: &Outcome, of_source: &Outcome) -> String {
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
