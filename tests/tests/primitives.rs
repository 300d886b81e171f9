//! The kernels of the facade's primitives, on both machines of the CPU: each gives its reference, its closed form, and from its PTX the
//! counts of its source.

use busload::ptx::Ptx;
use busload::sim::Options;
use busload::verify;
use busload_tests::on_ptx::{differences, module, program, run};
use busload_tests::{cases, checked, checked_and_counted, memory, on_threads, set_difference};
use gpu::suite::{Case, Entry, Family, Plan};
use primitives::FAMILIES;
use ptx_machine::Lines;
use std::collections::BTreeSet;
use std::sync::Arc;

const LINES: Lines<'static> = Lines { file: "primitives_sm_80.ptx", within: sources::PRIMITIVES.folder };

/// Every kernel on every case of its family.
fn runs() -> impl Iterator<Item = (&'static Entry, Case, Arc<Plan>)> {
    let of = |family: &&'static Family| {
        let cases = cases(family);
        assert!(!cases.is_empty() && !family.kernels.is_empty(), "{} has nothing to run", family.name);
        family.kernels.iter().flat_map(move |entry| cases.clone().into_iter().map(move |case| (entry, case)))
    };
    FAMILIES.iter().flat_map(of).map(|(entry, case)| {
        let plan = (entry.plan)(&case);
        let plan = Arc::new(plan.unwrap_or_else(|error| panic!("{} on {case}: {error}", entry.kernel.name)));
        (entry, case, plan)
    })
}

/// The committed PTX, if it is of the sources as they are: only a machine with the standard library's source can mend that.
fn committed() -> Option<&'static str> {
    let fresh = sources::PRIMITIVES.fresh().unwrap_or_else(|error| panic!("{error:#}"));
    if fresh.is_none() {
        let warning =
            "warning: the PTX of the primitives is of other sources (`cargo xtask ptx` rebuilds it): it was not run\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), warning.as_bytes());
    }
    fresh.map(|text| &*text.leak())
}

#[test]
fn every_kernel_gives_its_reference_and_its_closed_form_on_any_number_of_threads() {
    for (entry, case, plan) in runs() {
        let name = entry.kernel.name;
        assert!(plan.has_output() && !plan.expected.is_empty(), "{name} on {case} has nothing to be held to");
        let run = |threads| {
            let outcome = checked_and_counted(entry.kernel, &plan, &on_threads(threads));
            (memory(&plan, &outcome), outcome.sites, outcome.regions)
        };
        assert!(run(1) == run(3), "{name} on {case} differs on 3 threads");
    }
}

#[test]
fn the_committed_ptx_gives_each_kernels_reference_and_the_counts_of_its_source() {
    let Some(text) = committed() else { return };
    let module = module(text);
    let mut failed = Vec::new();
    for (entry, case, plan) in runs() {
        let name = entry.kernel.name;
        let outcome = run(&program(&module, name, LINES), &entry.kernel, &plan, &on_threads(2));
        if let Some(finding) = outcome.findings.first() {
            failed.push(format!("{name} on {case}: {finding}"));
            continue;
        }
        if let Err(mismatch) = verify::verify(&plan, |buffer, i| outcome.actual(buffer, i).expect("the run ended")) {
            failed.push(format!("{name} on {case}: {mismatch}"));
            continue;
        }
        let source = checked(entry.kernel, &plan, &Options { sanitize: false, ..on_threads(2) });
        let mut text = differences(&outcome, &source);
        if memory(&plan, &outcome) != memory(&plan, &source) {
            text += "\n  memory differs";
        }
        if !text.is_empty() {
            failed.push(format!("{name} on {case}: {text}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_families_and_the_committed_ptx_have_the_same_kernels() {
    let Some(text) = committed() else { return };
    let ptx = Ptx::new(text);
    let entries: BTreeSet<_> = ptx.entries().into_keys().collect();
    let kernels = FAMILIES.iter().flat_map(|family| family.kernels).map(|entry| entry.kernel.name);
    let differences = set_difference(("in the PTX", &entries), ("in the families", &kernels.collect()));
    assert_eq!(differences, [""; 0]);
}
