//! The committed PTX is that of the kernels in the list, and makes the accesses that the simulator counts.

use busload::ptx::{Access, Position, Ptx, Site};
use busload::record::operation_name;
use busload::sim;
use busload_tests::{
    case, checked, counterexamples, expect_of_ptx, files, kernels, kernels_under_test, on_threads, set_difference,
};
use gpu::suite::{Axis, AxisKind, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

#[test]
fn kernels_in_the_source_in_the_list_and_in_the_ptx_are_the_same() {
    let listed: Vec<_> = kernels().iter().map(|(_, entry)| entry.kernel.name).collect();
    let ptx = Ptx::embedded();
    let in_ptx: BTreeSet<_> = ptx.entries().into_keys().map(str::to_owned).collect();
    let in_source: BTreeSet<_> = files("gpu/src/kernels", ".rs").iter().flat_map(|(_, text)| marked(text)).collect();
    assert!(!in_source.is_empty(), "no function is marked #[kernel]");
    let mut in_list: BTreeSet<_> = listed.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(in_list.len(), listed.len(), "a kernel is listed twice");
    expect_of_ptx(&set_difference(("in the PTX", &in_ptx), ("in the families' lists", &in_list)));
    // Those are in the source alone.
    in_list.extend(counterexamples().iter().map(|(_, entry)| entry.kernel.name.to_owned()));
    let differences = set_difference(("in the source", &in_source), ("in the families' lists", &in_list));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The names of the functions under a `#[kernel]`.
fn marked(text: &str) -> Vec<String> {
    let after = text.split("#[kernel]\n").skip(1);
    let name = |rest: &str| {
        let (_, rest) = rest.split_once(" fn ").expect("a function under #[kernel]");
        rest.split('(').next().expect("a name").to_owned()
    };
    let names: Vec<_> = after.map(name).collect();
    assert_eq!(names.len(), text.matches("#[kernel]").count(), "#[kernel] stands on a line of its own");
    names
}

#[test]
fn the_ptx_makes_no_generic_or_local_access_and_has_no_function_or_text() {
    let violations: Vec<_> = Ptx::embedded().violations().iter().map(ToString::to_string).collect();
    expect_of_ptx(&violations);
}

#[test]
fn the_ptx_makes_the_accesses_that_the_simulator_counts_at_the_same_positions_and_widths() {
    let ptx = Ptx::embedded();
    let entries = ptx.sites();
    let mut differences = Vec::new();
    for (family, entry) in kernels_under_test() {
        let mut simulated = BTreeSet::new();
        for big in [true, false] {
            let value = |axis: &Axis| match axis.kind {
                AxisKind::Shape if big => Value::Shape(97, 65),
                AxisKind::Shape => Value::Shape(320, 64),
                AxisKind::Count { .. } if axis.name == Axis::ELEMENTS.name => {
                    Value::Count(if big { 4099 } else { 4096 })
                }
                AxisKind::Count { .. } | AxisKind::Choice(_) => axis.in_simulator[0],
            };
            let case = case(family.axes.iter().map(|axis| (axis.name, value(axis))).collect());
            let plan = Arc::new((entry.plan)(&case).expect("a small case"));
            let outcome = checked(entry.kernel, &plan, &on_threads(1));
            simulated.extend(outcome.sites.iter().map(site));
        }
        let name = entry.kernel.name;
        assert!(!simulated.is_empty(), "{name} touches no memory");
        // A kernel that is not in it is told of above.
        let Some(in_ptx) = entries.get(name) else { continue };
        let in_ptx: BTreeSet<_> = in_ptx.iter().copied().collect();
        let sides = set_difference(("in the PTX", &in_ptx), ("in the simulator", &simulated));
        differences.extend(sides.into_iter().map(|side| format!("{name}, {side}")));
    }
    expect_of_ptx(&differences);
}

/// A simulated site as the PTX has it.
fn site(site: &sim::Site) -> Site<'static> {
    let sim::Position { file, line, column } = site.position;
    Site {
        position: Some(Position { file, line, column }),
        access: Access { space: site.space.name(), operation: operation_name(site.operation), width: site.width },
    }
}

#[test]
fn the_header_says_what_the_ptx_was_built_from_and_by_whom() {
    let ptx = Ptx::embedded();
    let header = |name| ptx.header(name).unwrap_or_else(|| panic!("the header has no {name}"));
    assert_eq!((header("backend"), header("target")), ("llvm", "sm_80"));
    assert_eq!(ptx.target(), Some("sm_80"));
    assert!(header("compiler").starts_with("rustc "), "{}", header("compiler"));
    assert!(header("flags").contains("target-cpu=sm_80"), "{}", header("flags"));
    assert_eq!(header("line-table"), "gpu/src/kernels/");
    let hash = header("source-hash").strip_prefix("sha256:").expect("a SHA-256");
    assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
}
