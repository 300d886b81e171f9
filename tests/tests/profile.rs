//! The simulator against a recorded profile: what it counts is what a GPU counted.

use busload::cases::Run;
use busload::profile::{self, Profile, Profiled};
use busload::record;
use busload_tests::{files, is_under_test, kernels, on_threads};
use gpu::suite::Case;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to do where a kernel is no longer the one that was recorded.
const REMEDY: &str = "if its accesses were changed on purpose, record them anew on that GPU by `cargo xtask profile --json FILE`; \
     without one, take the kernel out of the file, whose other rows go on to count";

/// The recorded run, as the suite has it today, or the kernels of the facade's primitives.
fn run(recorded: &Profiled, sm_count: u32) -> Run {
    let name = &recorded.kernel;
    let of_primitives =
        primitives::FAMILIES.iter().flat_map(|family| family.kernels.iter().map(move |entry| (*family, entry)));
    let (family, entry) = kernels()
        .into_iter()
        .chain(of_primitives)
        .find(|(_, entry)| entry.kernel.name == name)
        .unwrap_or_else(|| panic!("the suite has no kernel {name}: {REMEDY}"));
    let value = |axis: &gpu::suite::Axis| {
        let value = recorded.params.get(axis.name).and_then(|json| record::value(axis.kind, json));
        (axis.name, value.unwrap_or_else(|| panic!("{name}: no value of the axis {}: {REMEDY}", axis.name)))
    };
    let case = Case { values: family.axes.iter().map(value).collect(), sm_count };
    let plan = (entry.plan)(&case).unwrap_or_else(|error| panic!("{name} on {case}: {error}"));
    Run { family, kernel: entry.kernel, case, plan: Arc::new(plan) }
}

/// `profile.json`, and others of more cases and kernels.
fn is_profile(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("profile"))
}

/// Every recorded profile.
fn profiles() -> Vec<(PathBuf, Profile)> {
    let profiles = files("results", ".json").into_iter().filter(|(path, _)| is_profile(path));
    let parse = |(path, text): (PathBuf, String)| match serde_json::from_str(&text) {
        Ok(profile) => (path, profile),
        Err(error) => panic!("{}: {error}", path.display()),
    };
    profiles.map(parse).collect()
}

#[test]
fn the_simulator_counts_what_the_recorded_profiles_counted() {
    let (mut compared, mut different) = (0, Vec::new());
    for (path, profile) in profiles() {
        for recorded in &profile.results {
            let on = format!("{}: {} on {}", path.display(), recorded.kernel, recorded.case);
            let run = run(recorded, profile.machine.sm_count);
            if !is_under_test(run.family) {
                continue;
            }
            match profile::again(recorded, &run, &on_threads(2)) {
                Ok(again) => {
                    compared += again.compared();
                    different.extend(again.differences().into_iter().map(|difference| format!("{on}: {difference}")));
                }
                Err(error) => different.push(format!("{on}: {error}")),
            }
        }
    }
    // Of one family that is new there is nothing recorded yet.
    assert!(compared > 0 || std::env::var_os("BUSLOAD_TEST_FAMILY").is_some(), "no count was compared");
    let many = different.len();
    assert!(different.is_empty(), "{many} of {compared} counts differ:\n{}\n{REMEDY}", different.join("\n"));
}

#[test]
fn lines_that_moved_since_they_were_recorded_are_the_same_lines() {
    let profile = profiles().swap_remove(0).1;
    // It makes its accesses in a helper that others share, some lines apart.
    let recorded =
        profile.results.iter().find(|recorded| recorded.kernel == "transpose_padded").expect("a recorded run");
    let run = run(recorded, profile.machine.sm_count);
    let again = |recorded: &Profiled| profile::again(recorded, &run, &on_threads(1));
    let mut moved = recorded.clone();
    moved.kernel_line += 30;
    let mut lines: Vec<_> = moved.sites.iter().filter_map(|site| site.line).collect();
    lines.dedup();
    assert!(lines.len() > 1, "{lines:?}");
    for site in &mut moved.sites {
        // The further down, the more was put above.
        site.line = site.line.map(|line| line + 10 * (1 + lines.iter().filter(|other| **other < line).count() as u32));
    }
    assert_eq!(again(&moved).expect("the same accesses").differences(), [""; 0]);
    // The check can fail.
    let pair = moved.sites[0].counters.values_mut().next().expect("a counter");
    pair.hardware += 1;
    assert_eq!(again(&moved).expect("the same lines").differences().len(), 1);
    let first = moved.sites[0].line;
    moved.sites.retain(|site| site.line != first);
    let error = again(&moved).expect_err("a line less");
    assert_eq!(error, format!("its accesses stand in {} lines, and were recorded in {}", lines.len(), lines.len() - 1));
}
