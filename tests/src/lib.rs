//! What the tests in `tests/` share: running a kernel in the simulator, judging the outcome, and reading the tree.

pub mod on_ptx;

use busload::sim::{self, Options, Outcome};
use busload::{bench, verify};
use gpu::kernels::{COUNTEREXAMPLES, FAMILIES};
use gpu::suite::{Axis, AxisKind, Buffer, Case, Entry, Family, Kernel, Launch, Plan, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of the workspace")
}

/// Every kernel of every family, in the order of the curriculum.
///
/// # Panics
/// If there is none: a test over no kernels tests nothing.
pub fn kernels() -> Vec<(&'static Family, &'static Entry)> {
    let of = |family: &&'static Family| family.kernels.iter().map(|entry| (*family, entry)).collect::<Vec<_>>();
    let kernels: Vec<_> = FAMILIES.iter().flat_map(of).collect();
    assert!(!kernels.is_empty(), "no family has a kernel");
    kernels
}

/// Whether a family's kernels are to be tested: all are, unless `cargo xtask test --family` names one.
pub fn is_under_test(family: &Family) -> bool {
    std::env::var("BUSLOAD_TEST_FAMILY").map_or(true, |name| name == family.name)
}

/// The kernels to test, in the order of the curriculum.
///
/// # Panics
/// If there is none.
pub fn kernels_under_test() -> Vec<(&'static Family, &'static Entry)> {
    let kernels: Vec<_> = kernels().into_iter().filter(|(family, _)| is_under_test(family)).collect();
    assert!(!kernels.is_empty(), "no kernel is under test");
    kernels
}

/// Holds the committed PTX to having no `problems`. Where it was built from other sources, which only a machine with the
/// standard library's source can mend, they are warnings.
///
/// # Panics
/// If it has problems, and was built from the sources as they are.
pub fn expect_of_ptx(problems: &[String]) {
    let fresh = sources::is_fresh(&busload::ptx::Ptx::embedded()).expect("the sources can be read");
    if let Some(warning) = ptx_warning(problems, fresh) {
        // Past the harness, which shows nothing of a test that passes.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), warning.as_bytes());
    }
}

fn ptx_warning(problems: &[String], fresh: bool) -> Option<String> {
    assert!(problems.is_empty() || !fresh, "{}", problems.join("\n"));
    let many = problems.len();
    (many > 0).then(|| {
        format!("warning: the committed PTX is of other sources, and not theirs in {many} places: `cargo xtask ptx` rebuilds it\n")
    })
}

/// What one set has and the other lacks, in a sentence for each side.
pub fn set_difference<T: Ord + std::fmt::Debug>(
    (one, in_one): (&str, &BTreeSet<T>),
    (other, in_other): (&str, &BTreeSet<T>),
) -> Vec<String> {
    let side = |name: &str, a: &BTreeSet<T>, b: &BTreeSet<T>| {
        let alone: Vec<_> = a.difference(b).map(|element| format!("{element:?}")).collect();
        (!alone.is_empty()).then(|| format!("{name} alone: {}", alone.join(", ")))
    };
    [side(one, in_one, in_other), side(other, in_other, in_one)].into_iter().flatten().collect()
}

/// Every kernel that is wrong on purpose.
///
/// # Panics
/// If there is none.
pub fn counterexamples() -> Vec<(&'static Family, &'static Entry)> {
    let of = |(family, entries): &(&'static Family, &'static [Entry])| {
        entries.iter().map(|entry| (*family, entry)).collect::<Vec<_>>()
    };
    let entries: Vec<_> = COUNTEREXAMPLES.iter().flat_map(of).collect();
    assert!(!entries.is_empty(), "there is no counterexample");
    entries
}

/// A case with the SMs that the simulator's grids are made for.
pub fn case(values: Vec<(&'static str, Value)>) -> Case {
    Case { values, sm_count: busload::record::SIMULATED_SM_COUNT }
}

/// Square, rectangular, ragged, a row, a column, an element.
const SHAPES: [(u32, u32); 10] =
    [(64, 64), (256, 256), (96, 160), (160, 96), (97, 65), (65, 97), (1, 100), (100, 1), (1, 1), (33, 1024)];

/// Around a warp, a vector and a block.
const ELEMENTS: [u64; 8] = [1, 2, 3, 31, 32, 33, 1000, 4099];

/// The values of an axis that are worth a case each.
///
/// # Panics
/// If there is none.
fn values(axis: &Axis) -> Vec<Value> {
    let mut values: Vec<Value> = match axis.kind {
        AxisKind::Shape => SHAPES.map(|(rows, columns)| Value::Shape(rows, columns)).into(),
        AxisKind::Choice(names) => names.iter().copied().map(Value::Choice).collect(),
        AxisKind::Count { min, max } if axis.name == Axis::ELEMENTS.name => {
            ELEMENTS.into_iter().filter(|n| (min..=max).contains(n)).map(Value::Count).collect()
        }
        AxisKind::Count { min, max } => {
            let ends = [Some(min), min.checked_add(2), Some(max).filter(|max| *max <= 1024)];
            let ends = ends.into_iter().flatten().filter(|n| *n <= max).map(Value::Count);
            axis.in_simulator.iter().copied().chain(ends).collect()
        }
    };
    values.sort();
    values.dedup();
    assert!(!values.is_empty(), "the axis {} has no values", axis.name);
    values
}

/// Every combination of the values of a family's axes.
pub fn cases(family: &Family) -> Vec<Case> {
    let mut cases = vec![Vec::new()];
    for axis in family.axes {
        let values = values(axis);
        let with = |case: Vec<_>| values.iter().map(move |value| [&case[..], &[(axis.name, *value)]].concat());
        cases = cases.into_iter().flat_map(with).collect();
    }
    cases.into_iter().map(case).collect()
}

/// How to simulate on so many threads.
pub fn on_threads(threads: usize) -> Options {
    Options { threads, ..Options::default() }
}

/// Simulates a kernel.
///
/// # Panics
/// If the plan does not fit the kernel.
pub fn simulate(kernel: Kernel, plan: &Arc<Plan>, options: &Options) -> Outcome {
    match sim::simulate(kernel, Arc::clone(plan), options, &|_, _| ()) {
        Ok(outcome) => outcome,
        Err(error) => panic!("{error}"),
    }
}

/// Simulates a whole grid and holds it to its plan: nothing found, and every output element as its reference.
///
/// # Panics
/// If it is not so.
pub fn checked(kernel: Kernel, plan: &Arc<Plan>, options: &Options) -> Outcome {
    let outcome = simulate(kernel, plan, options);
    let name = kernel.name;
    assert!(outcome.findings.is_empty(), "{name}: {}", outcome.findings[0]);
    assert!(outcome.blocks.complete(), "{name}: only a sample ran");
    if let Err(mismatch) = verify::verify(plan, |buffer, i| outcome.actual(buffer, i).expect("the run ended")) {
        panic!("{name}: {mismatch}");
    }
    outcome
}

/// As [`checked`], and every count as the family's closed form has it.
///
/// # Panics
/// If it is not so.
pub fn checked_and_counted(kernel: Kernel, plan: &Arc<Plan>, options: &Options) -> Outcome {
    let outcome = checked(kernel, plan, options);
    assert_eq!(bench::count_differences(plan, &outcome), "", "{}", kernel.name);
    outcome
}

/// Every bit of every buffer after a run.
pub fn memory(plan: &Plan, outcome: &Outcome) -> Vec<Vec<u64>> {
    let elements = |(number, buffer): (usize, &Buffer)| {
        (0..buffer.len).map(|i| outcome.bits(number, i).expect("the run ended")).collect()
    };
    plan.buffers.iter().enumerate().map(elements).collect()
}

/// A launch of `grid` blocks of `block` threads.
pub fn launch(grid: [u32; 3], block: [u32; 3]) -> Launch {
    Launch { grid, block, shared_bytes: 0 }
}

/// A plan of one warp, for kernels of the tests.
pub fn one_warp() -> Plan {
    Plan::new(launch([1; 3], [32, 1, 1]))
}

/// The files under a folder of the workspace whose names end in `suffix`, each with its text; paths are relative to the
/// root and sorted. Hidden folders and build outputs are passed over.
///
/// # Panics
/// If there is none: a check that finds nothing to check fails.
pub fn files(folder: &str, suffix: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for path in entries.map(|entry| entry.expect("a readable folder").path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path);
            } else if path.is_file() && name.ends_with(suffix) {
                let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                found.push((path.strip_prefix(root()).expect("under the root").to_owned(), text));
            }
        }
    }
    assert!(!found.is_empty(), "no file under {folder} ends in {suffix}");
    found.sort();
    found
}

/// What a report says before it says where it comes from: that is another on every run.
///
/// # Panics
/// If it does not.
pub fn found(report: &str) -> &str {
    report.split_once("\"provenance\"").expect("it stands in every report").0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_a_stale_ptx_are_warnings() {
        let problems = ["in the PTX alone: a".to_owned()];
        let warning = ptx_warning(&problems, false).expect("a warning");
        assert!(warning.contains("`cargo xtask ptx`") && warning.contains("in 1 places"), "{warning}");
        assert_eq!(ptx_warning(&[], false), None);
        assert_eq!(ptx_warning(&[], true), None);
    }

    #[test]
    #[should_panic(expected = "in the PTX alone: a")]
    fn problems_of_a_fresh_ptx_are_failures() {
        ptx_warning(&["in the PTX alone: a".to_owned()], true);
    }

    #[test]
    fn of_two_sets_only_the_difference_is_said() {
        let sets = [BTreeSet::from([1, 2, 3]), BTreeSet::from([2, 3, 4])];
        assert_eq!(set_difference(("left", &sets[0]), ("right", &sets[1])), ["left alone: 1", "right alone: 4"]);
        assert_eq!(set_difference(("left", &sets[0]), ("right", &sets[0])), [""; 0]);
    }
}
