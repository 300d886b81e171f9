//! How many lane accesses a second the simulator carries out and counts, with the sanitizer and without, on one thread
//! and on two: `cargo bench --package busload`. The column `items/s` is that number: for some kernels at a size that makes
//! all else small, and for the whole suite at the sizes that are simulated unless others are asked for.

use busload::cases::{Selection, Sizes};
use busload::sim::{self, Options};
use busload::suite::BUSLOAD;
use divan::Bencher;
use divan::counter::ItemsCount;
use gpu::kernels::FAMILIES;
use gpu::suite::{Case, Value};
use std::sync::Arc;

const KERNELS: [&str; 6] =
    ["copy_coalesced", "copy_vec4", "strided_copy", "transpose_naive", "transpose_tiled", "transpose_padded"];

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 10, args = KERNELS, consts = [1, 2])]
fn counting<const THREADS: usize>(bencher: Bencher, kernel: &str) {
    lane_accesses(bencher, kernel, Options { threads: THREADS, sanitize: false, ..Options::default() });
}

#[divan::bench(sample_count = 10, args = KERNELS, consts = [1, 2])]
fn sanitizing<const THREADS: usize>(bencher: Bencher, kernel: &str) {
    lane_accesses(bencher, kernel, Options { threads: THREADS, ..Options::default() });
}

fn lane_accesses(bencher: Bencher, kernel: &str, options: Options) {
    let entries = FAMILIES.iter().flat_map(|family| family.kernels.iter().map(move |entry| (family, entry)));
    let (family, entry) =
        entries.into_iter().find(|(_, entry)| entry.kernel.name == kernel).expect("a kernel of the suite");
    let value = |name| match name {
        "elements" => Value::Count(1 << 22),
        "shape" => Value::Shape(2048, 2048),
        _ => Value::Count(2),
    };
    let values = family.axes.iter().map(|axis| (axis.name, value(axis.name))).collect();
    let case = Case { values, sm_count: 108 };
    let plan = Arc::new((entry.plan)(&case).expect("a case that can be launched"));
    let run = || sim::simulate(entry.kernel, Arc::clone(&plan), &options, &|_, _| ()).expect("a plan that fits");
    bencher.counter(ItemsCount::new(accesses(&run()))).bench(run);
}

/// Every kernel of the suite, one after another.
#[divan::bench(sample_count = 3, args = [false, true])]
fn suite(bencher: Bencher, sanitize: bool) {
    let options = Options { sanitize, ..Options::default() };
    let everything = Selection { kernels: None, values: Default::default() };
    let runs = everything.runs(&BUSLOAD, Sizes::Small, 108).expect("the suite can be launched");
    let run = || -> u64 {
        let outcomes = runs.iter().map(|run| sim::simulate(run.kernel, Arc::clone(&run.plan), &options, &|_, _| ()));
        outcomes.map(|outcome| accesses(&outcome.expect("a plan that fits"))).sum()
    };
    bencher.counter(ItemsCount::new(run())).bench(run);
}

fn accesses(outcome: &sim::Outcome) -> u64 {
    outcome.sites.iter().map(|site| site.counts.lanes).sum()
}
