//! Every kernel of every family, in the simulator: against its reference, and against its family's closed form.
//!
//! Cases come from the families' own axes: a new family or kernel is covered without a line here.

use busload::sim::{Options, Outcome};
use busload_tests::{
    case, cases, checked_and_counted, counterexamples, kernels, kernels_under_test, memory, on_threads, simulate,
};
use gpu::suite::{Axis, AxisKind, Case, Counts, Entry, Operation, Plan, Value};
use proptest::prelude::*;
use std::sync::Arc;

fn plan(entry: &Entry, case: &Case) -> Arc<Plan> {
    let plan = (entry.plan)(case);
    Arc::new(plan.unwrap_or_else(|error| panic!("{} on {case}: {error}", entry.kernel.name)))
}

#[test]
fn every_kernel_gives_its_reference_and_its_closed_form_on_any_number_of_threads() {
    for (family, entry) in kernels_under_test() {
        let cases = cases(family);
        assert!(!cases.is_empty(), "{} has no case", family.name);
        for case in cases {
            let plan = plan(entry, &case);
            let run = |threads| {
                let outcome = checked_and_counted(entry.kernel, &plan, &on_threads(threads));
                assert!(!outcome.sites.is_empty(), "{} on {case} touches no memory", entry.kernel.name);
                (memory(&plan, &outcome), outcome.sites, outcome.regions)
            };
            let once = run(1);
            for threads in [2, 3] {
                assert!(once == run(threads), "{} on {case} differs on {threads} threads", entry.kernel.name);
            }
        }
    }
}

#[test]
fn every_counterexample_is_refused_and_both_lines_are_named() {
    for (family, entry) in counterexamples() {
        let name = entry.kernel.name;
        let case = case(family.axes.iter().map(|axis| (axis.name, axis.in_simulator[0])).collect());
        let outcome = simulate(entry.kernel, &plan(entry, &case), &on_threads(2));
        let finding = outcome.findings.first().unwrap_or_else(|| panic!("nothing was found in {name}"));
        let lines = [finding.at, finding.other].map(|position| {
            let position = position.unwrap_or_else(|| panic!("{name}: a line is missing: {finding}"));
            assert_eq!(position.file, entry.kernel.file, "{name}: {finding}");
            position.line
        });
        assert!(lines[0] != lines[1] && lines.iter().all(|line| *line > entry.kernel.line), "{name}: {finding}");
        assert!(outcome.sites.is_empty(), "{name} was given counts");
    }
}

#[test]
fn every_plan_has_an_output_and_says_what_to_expect_of_every_buffer() {
    for (family, entry) in kernels_under_test() {
        for case in cases(family) {
            let (name, plan) = (entry.kernel.name, plan(entry, &case));
            let outputs = plan.buffers.iter().filter(|buffer| buffer.after.is_some());
            assert!(outputs.count() > 0, "{name} on {case} writes nothing");
            assert!(plan.bytes > 0, "{name} on {case} moves nothing");
            for buffer in &plan.buffers {
                let expected = plan.expected.iter().any(|expected| expected.buffer == buffer.name);
                assert!(expected, "{name} on {case} expects nothing of `{}`", buffer.name);
            }
        }
    }
}

/// The kernel of that name.
fn named(name: &str) -> &'static Entry {
    kernels().into_iter().find(|(_, entry)| entry.kernel.name == name).expect(name).1
}

/// Some hundred blocks of a kernel's grid.
fn sampled(kernel: &str, values: &[(&'static str, Value)]) -> Outcome {
    let entry = named(kernel);
    let plan = plan(entry, &case(values.to_vec()));
    let outcome = simulate(entry.kernel, &plan, &Options { max_blocks: 300, ..on_threads(2) });
    assert!(outcome.findings.is_empty(), "{kernel}: {}", outcome.findings[0]);
    assert!(!outcome.blocks.complete(), "{kernel}: {} blocks are no sample", outcome.blocks.count());
    assert!((100..=301).contains(&outcome.blocks.count()), "{kernel}: {} blocks", outcome.blocks.count());
    outcome
}

/// What a request costs: sectors, lines, wavefronts. It must be the same for each.
fn a_request(outcome: &Outcome, region: &str, operation: Operation) -> [u64; 3] {
    let counts: Counts = outcome.regions[&(region.to_owned(), operation, 4)];
    assert!(counts.requests > 0);
    [counts.sectors, counts.lines, counts.wavefronts].map(|count| {
        assert_eq!(count % counts.requests, 0, "{region}: {counts:?}");
        count / counts.requests
    })
}

#[test]
fn an_aligned_transpose_costs_what_the_articles_say() {
    let square = [("shape", Value::Shape(4096, 4096))];
    for (kernel, region, operation, cost) in [
        ("transpose_naive", "src", Operation::Load, [4, 1, 0]),
        ("transpose_naive", "dst", Operation::Store, [32, 32, 0]),
        ("transpose_naive_strided_load", "src", Operation::Load, [32, 32, 0]),
        ("transpose_naive_strided_load", "dst", Operation::Store, [4, 1, 0]),
        ("transpose_tiled", "tile", Operation::Load, [0, 0, 32]),
        ("transpose_tiled", "tile", Operation::Store, [0, 0, 1]),
        ("transpose_padded", "tile", Operation::Load, [0, 0, 1]),
        ("transpose_padded", "tile", Operation::Store, [0, 0, 1]),
        ("transpose_padded", "dst", Operation::Store, [4, 1, 0]),
    ] {
        assert_eq!(
            a_request(&sampled(kernel, &square), region, operation),
            cost,
            "{kernel}: {operation:?} of {region}"
        );
    }
}

#[test]
fn a_read_with_stride_s_costs_4_s_sectors_up_to_32() {
    for stride in 1..=33 {
        let values = [("elements", Value::Count(1 << 18)), ("stride", Value::Count(stride))];
        let [sectors, lines, _] = a_request(&sampled("strided_read", &values), "src", Operation::Load);
        assert_eq!((sectors, lines), ((4 * stride).min(32), stride.min(32)), "stride {stride}");
    }
}

/// Any kernel, on any small case.
fn small_case() -> impl Strategy<Value = (usize, Case)> {
    (0..kernels_under_test().len()).prop_flat_map(|kernel| {
        let axes = kernels_under_test()[kernel].0.axes;
        let values: Vec<BoxedStrategy<Value>> = axes
            .iter()
            .map(|axis| match axis.kind {
                AxisKind::Shape => (1..=130u32, 1..=130u32).prop_map(|(y, x)| Value::Shape(y, x)).boxed(),
                AxisKind::Choice(names) => prop::sample::select(names).prop_map(Value::Choice).boxed(),
                AxisKind::Count { min, max } => {
                    let most = if axis.name == Axis::ELEMENTS.name { 5000 } else { 70 };
                    (min..=max.min(min.saturating_add(most))).prop_map(Value::Count).boxed()
                }
            })
            .collect();
        values.prop_map(move |values| (kernel, case(axes.iter().map(|axis| axis.name).zip(values).collect())))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_closed_forms_hold_on_random_cases((kernel, case) in small_case()) {
        let entry = kernels_under_test()[kernel].1;
        checked_and_counted(entry.kernel, &plan(entry, &case), &on_threads(1));
    }
}
