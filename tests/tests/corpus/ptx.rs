//! The same bugs in the PTX that the compiler makes of them, carried out a warp at a time.

use super::{expected, options, placed, plan};
use busload::sim::Options;
use busload::verify;
use busload_tests::on_ptx::{module, program, run};
use busload_tests::root;
use corpus::{Bug, bugs};
use gpu::suite::{Kernel, Plan};
use ptx_machine::{Lines, Module};
use std::collections::BTreeSet;
use std::sync::Arc;

const LINES: Lines<'static> = Lines { file: "corpus_sm_80.ptx", within: "tests/corpus/src/" };

/// The committed PTX, if it is of the sources as they are: else its lines are not theirs, and only a machine with the standard
/// library's source can mend that.
fn committed() -> Option<&'static str> {
    let fresh = sources::CORPUS.fresh().unwrap_or_else(|error| panic!("{error:#}"));
    if fresh.is_none() {
        let warning = "warning: the PTX of the planted bugs is of other sources (`cargo xtask ptx` rebuilds it): it was not run\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), warning.as_bytes());
    }
    fresh.map(|text| &*text.leak())
}

fn report(module: &Module<'_>, kernel: Kernel, plan: &Arc<Plan>, options: &Options) -> String {
    let outcome = run(&program(module, kernel.name, LINES), &kernel, plan, options);
    outcome.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// What is said of a bug in PTX, where that is not what is said of its source, and why.
struct Other {
    kernel: &'static str,
    report: &'static str,
    why: Why,
}

/// Why a report differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// A warp carries out an instruction for all its lanes, and then the next one: another of the accesses that race comes first.
    LanesTogether,
    /// Lanes of one warp that stand at two places are told from one another before warps are.
    WarpsFirst,
    /// The line table has the place of the barrier itself, and not of the call.
    Calls,
    /// The last access behind the barrier is named, and not the first.
    LastAccess,
    /// Of two branches the other one comes first.
    OtherBranch,
    /// The loop's own branch is named: PTX has no iterators.
    Loops,
}

const OTHERS: &[Other] = &[
    Other {
        kernel: "shared_half_a_word",
        report: "race: a thread writes byte 4 of `words`, which thread (1, 0, 0) writes, and no barrier orders the two, at {B} and {A} \
                 (thread (0, 0, 0), block (0, 0, 0))",
        why: Why::LanesTogether,
    },
    Other {
        kernel: "missing_in_warp",
        report: "race: a thread reads byte 124 of `tile`, which thread (31, 0, 0) writes, and no barrier orders the two, at {B} and {A} \
                 (thread (0, 0, 0), block (0, 0, 0))",
        why: Why::LanesTogether,
    },
    Other {
        kernel: "missing_in_tree",
        report: "race: a thread reads byte 64 of `sums`, which thread (16, 0, 0) writes, and no barrier orders the two, at {A} and {B} \
                 (thread (0, 0, 0), block (0, 0, 0))",
        why: Why::LanesTogether,
    },
    Other {
        kernel: "divergent_in_branch",
        report: "divergent barrier: a thread waits at this barrier, to which thread (16, 0, 0) of its warp does not come with it, at {A} \
                 and {B} (thread (0, 0, 0), block (0, 0, 0))",
        why: Why::WarpsFirst,
    },
    Other {
        kernel: "divergent_in_calls",
        report: "divergent barrier: a thread waits at this barrier, to which thread (0, 0, 0) of its warp does not come with it, at \
                 {everybody} and {everybody} (thread (1, 0, 0), block (0, 0, 0))",
        why: Why::Calls,
    },
    Other {
        kernel: "divergent_two_barriers",
        report: "divergent barrier: a thread waits at this barrier, to which thread (32, 0, 0) of its warp does not come with it, at {B} \
                 and {A} (thread (48, 0, 0), block (0, 0, 0))",
        why: Why::WarpsFirst,
    },
    Other {
        kernel: "divergent_in_loop",
        report: "divergent barrier: a thread waits at this barrier, which thread (0, 0, 0) passed by on its way to an access that both \
                 make, at {A} and {C} (thread (32, 0, 0), block (0, 0, 0))",
        why: Why::LastAccess,
    },
    Other {
        kernel: "atomic_read_at_once",
        report: "race: a thread reads byte 0 of `count`, which thread (1, 0, 0) updates, and no barrier orders the two, at {B} and {A} \
                 (thread (0, 0, 0), block (0, 0, 0))",
        why: Why::LanesTogether,
    },
    Other {
        kernel: "match_in_two_branches",
        report: "divergent warp: the mask 0xffffffff names lane 0, which waits elsewhere, at {B} and {A} (thread (1, 0, 0), block \
                 (0, 0, 0))",
        why: Why::OtherBranch,
    },
    Other { kernel: "endless_condition", report: ENDLESS, why: Why::Loops },
    Other { kernel: "endless_step", report: ENDLESS, why: Why::Loops },
    Other { kernel: "endless_flag", report: ENDLESS, why: Why::Loops },
    Other { kernel: "endless_volatile", report: ENDLESS, why: Why::Loops },
];

const ENDLESS: &str = "does not end: a warp has taken more than 16384 steps: accesses, and rounds of loops, at {L} \
                       (thread (0, 0, 0), block (0, 0, 0))";

#[test]
fn every_planted_bug_is_named_in_its_ptx() {
    let Some(text) = committed() else { return };
    let module = module(text);
    let mut wrong = Vec::new();
    for bug in bugs() {
        let (name, of_source) = (bug.kernel.name, expected(bug));
        let other = OTHERS.iter().find(|other| other.kernel == name);
        let expected = other.map_or_else(|| of_source.clone(), |other| placed(bug, other.report));
        let reported = report(&module, bug.kernel, &plan(bug), &options(2));
        if reported != expected {
            wrong.push(format!("{name}\n  reported {reported}\n  expected {expected}"));
        }
        if let Some(other) = other.filter(|_| of_source == expected) {
            wrong.push(format!("{name} is said to differ ({:?}), and is as in the source", other.why));
        }
        // Whatever the words, it is the same kind of bug.
        let kind = |report: &str| report.split(':').next().unwrap_or_default().to_owned();
        assert_eq!(kind(&expected), kind(&of_source), "{name}");
    }
    let same = bugs().count() - OTHERS.len();
    let docs = std::fs::read_to_string(root().join("docs/sanitizer.md")).expect("docs/sanitizer.md");
    assert!(
        docs.contains(&format!("Of {same} bugs the two reports")),
        "docs/sanitizer.md: they are the same of {same} bugs"
    );
    let names: BTreeSet<_> = bugs().map(|bug| bug.kernel.name).collect();
    wrong.extend(OTHERS.iter().filter(|other| !names.contains(other.kernel)).map(|other| other.kernel.to_owned()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_twin_is_reported_in_its_ptx_and_each_gives_its_reference() {
    let Some(text) = committed() else { return };
    let module = module(text);
    for Bug { twin, plan, .. } in bugs() {
        let plan = Arc::new(plan().expect("a small plan"));
        let outcome = run(&program(&module, twin.name, LINES), twin, &plan, &options(2));
        assert!(outcome.findings.is_empty(), "{}: {}", twin.name, outcome.findings[0]);
        if let Err(mismatch) = verify::verify(&plan, |buffer, i| outcome.actual(buffer, i).expect("the run ended")) {
            panic!("{}: {mismatch}", twin.name);
        }
    }
}

#[test]
fn reports_of_ptx_are_the_same_bytes_on_any_number_of_threads() {
    let Some(text) = committed() else { return };
    let module = module(text);
    for bug in bugs() {
        let plan = plan(bug);
        let first = report(&module, bug.kernel, &plan, &options(1));
        for threads in [1, 2, 5] {
            assert_eq!(
                report(&module, bug.kernel, &plan, &options(threads)),
                first,
                "{} on {threads}",
                bug.kernel.name
            );
        }
    }
}
