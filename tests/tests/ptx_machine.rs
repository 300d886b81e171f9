//! The committed PTX, carried out a warp at a time: against each kernel's reference, and against the counts of the same kernel carried
//! out from its source.

use busload::sim::Options;
use busload::{ptx, verify};
use busload_tests::on_ptx::{differences, module, program, run};
use busload_tests::{cases, checked, kernels_under_test, memory, on_threads};
use ptx_machine::Lines;
use std::sync::Arc;

const LINES: Lines<'static> = Lines { file: "busload_sm_80.ptx", within: "gpu/src/kernels/" };

#[test]
fn the_committed_ptx_gives_each_kernels_reference_and_the_counts_of_its_source() {
    let module = module(ptx::EMBEDDED);
    let (mut failed, mut runs, mut lanes) = (Vec::new(), 0, 0);
    for (family, entry) in kernels_under_test() {
        let name = entry.kernel.name;
        let program = program(&module, name, LINES);
        for case in cases(family) {
            let plan = (entry.plan)(&case).unwrap_or_else(|error| panic!("{name} on {case}: {error}"));
            let plan = Arc::new(plan);
            let outcome = run(&program, &entry.kernel, &plan, &on_threads(2));
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
    let module = module(ptx::EMBEDDED);
    for (family, entry) in kernels_under_test() {
        let program = program(&module, entry.kernel.name, LINES);
        let case = cases(family).into_iter().next_back().expect("a case");
        let plan =
            Arc::new((entry.plan)(&case).unwrap_or_else(|error| panic!("{} on {case}: {error}", entry.kernel.name)));
        let run = |threads| {
            let outcome = run(&program, &entry.kernel, &plan, &on_threads(threads));
            assert!(!outcome.sites.is_empty(), "{} on {case} touches no memory", entry.kernel.name);
            (memory(&plan, &outcome), outcome.sites, outcome.regions)
        };
        let once = run(1);
        assert!(once == run(3), "{} on {case} differs on 3 threads", entry.kernel.name);
    }
}
