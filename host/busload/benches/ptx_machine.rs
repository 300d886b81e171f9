//! How many lane accesses a second are carried out and counted from the committed PTX, and from the kernels' source beside it, with the
//! sanitizer and without, on one thread: `cargo bench --package busload --bench ptx_machine`. The column `items/s` is that number.
//! Beside them, how long it takes to read the module.

use busload::sim::{self, Options, Outcome};
use busload::{arguments, ptx};
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use engine::Memory;
use gpu::device::host::ParameterKind;
use gpu::kernels::FAMILIES;
use gpu::suite::{Case, Entry, Plan, Value};
use ptx_machine::Lines;
use std::sync::Arc;

const KERNELS: [&str; 8] = [
    "copy_coalesced",
    "copy_vec4",
    "strided_copy",
    "transpose_naive",
    "transpose_tiled",
    "transpose_padded",
    "matmul_tiled",
    "reduce_partials",
];

fn main() {
    divan::main();
}

#[divan::bench]
fn parse(bencher: Bencher) {
    bencher.counter(BytesCount::of_str(ptx::EMBEDDED)).bench(|| ptx_machine::parse(ptx::EMBEDDED).map(|_| ()));
}

#[divan::bench(sample_count = 3, args = KERNELS, consts = [false, true])]
fn from_ptx<const SANITIZE: bool>(bencher: Bencher, kernel: &str) {
    let (entry, plan, options) = run_of(kernel, SANITIZE);
    let module = ptx_machine::parse(ptx::EMBEDDED).expect("the committed module");
    let lines = Lines { file: "busload_sm_80.ptx", within: "gpu/src/kernels/" };
    let program = Arc::new(ptx_machine::lower(&module, kernel, lines).expect("a kernel of the suite"));
    let words = arguments::words(&entry.kernel, &plan, Memory::base).expect("a plan that fits");
    let is_written = |name| {
        let mut parameters = entry.kernel.parameters.iter();
        parameters.any(|(own, kind)| *own == name && matches!(kind, ParameterKind::GlobalMut(_)))
    };
    let written: Vec<_> = plan.buffers.iter().map(|buffer| is_written(buffer.name)).collect();
    let run = || {
        let run = ptx_machine::simulate(&program, Arc::clone(&plan), &words, &written, &options, &|_, _| ());
        run.expect("a plan that fits")
    };
    bencher.counter(ItemsCount::new(accesses(&run()))).bench(run);
}

#[divan::bench(sample_count = 3, args = KERNELS, consts = [false, true])]
fn from_source<const SANITIZE: bool>(bencher: Bencher, kernel: &str) {
    let (entry, plan, options) = run_of(kernel, SANITIZE);
    let run = || sim::simulate(entry.kernel, Arc::clone(&plan), &options, &|_, _| ()).expect("a plan that fits");
    bencher.counter(ItemsCount::new(accesses(&run()))).bench(run);
}

/// A kernel at a size that makes all else small.
fn run_of(kernel: &str, sanitize: bool) -> (&'static Entry, Arc<Plan>, Options) {
    let entries = FAMILIES.iter().flat_map(|family| family.kernels.iter().map(move |entry| (family, entry)));
    let (family, entry) =
        entries.into_iter().find(|(_, entry)| entry.kernel.name == kernel).expect("a kernel of the suite");
    let value = |name| match name {
        "elements" => Value::Count(1 << 22),
        "shape" => Value::Shape(2048, 2048),
        "size" | "n" => Value::Count(256),
        _ => Value::Count(2),
    };
    let known = |axis: &gpu::suite::Axis| match axis.in_simulator[0] {
        // What is neither large nor small is as it is simulated.
        of_suite if !matches!(axis.name, "elements" | "shape" | "stride") => of_suite,
        _ => value(axis.name),
    };
    let values = family.axes.iter().map(|axis| (axis.name, known(axis))).collect();
    let case = Case { values, sm_count: 108 };
    let plan = Arc::new((entry.plan)(&case).expect("a case that can be launched"));
    (entry, plan, Options { threads: 1, sanitize, ..Options::default() })
}

fn accesses(outcome: &Outcome) -> u64 {
    outcome.sites.iter().map(|site| site.counts.lanes).sum()
}
