//! The simulator against a recorded profile: what it counts is what a GPU counted.

use busload::cases::Run;
use busload::profile::{self, Profile, Profiled};
use busload::record;
use busload_tests::{files, kernels, on_threads};
use gpu::suite::Case;
use std::path::Path;
use std::sync::Arc;

/// The recorded run, as the suite has it today.
fn run(recorded: &Profiled, sm_count: u32) -> Run {
    let name = &recorded.kernel;
    let (family, entry) = kernels()
        .into_iter()
        .find(|(_, entry)| entry.kernel.name == name)
        .unwrap_or_else(|| panic!("the suite has no kernel {name}: profile anew"));
    let value = |axis: &gpu::suite::Axis| {
        let value = recorded.params.get(axis.name).and_then(|json| record::value(axis.kind, json));
        (axis.name, value.unwrap_or_else(|| panic!("{name}: no value of the axis {}: profile anew", axis.name)))
    };
    let case = Case { values: family.axes.iter().map(value).collect(), sm_count };
    let plan = (entry.plan)(&case).unwrap_or_else(|error| panic!("{name} on {case}: {error}"));
    Run { family, kernel: entry.kernel, case, plan: Arc::new(plan) }
}

/// `profile.json`, and `profile_ragged.json` of cases that no warp divides.
fn is_profile(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("profile"))
}

#[test]
fn the_simulator_counts_what_the_recorded_profiles_counted() {
    let (mut compared, mut different) = (0, Vec::new());
    for (path, text) in files("results", ".json").iter().filter(|(path, _)| is_profile(path)) {
        let profile: Profile = serde_json::from_str(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for recorded in &profile.results {
            let run = run(recorded, profile.machine.sm_count);
            let again = profile::again(recorded, &run, &on_threads(2))
                .unwrap_or_else(|error| panic!("{} on {}: {error}: profile anew", recorded.kernel, recorded.case));
            compared += again.compared();
            let on = format!("{} on {}", recorded.kernel, recorded.case);
            different.extend(again.differences().into_iter().map(|difference| format!("{on}: {difference}")));
        }
    }
    assert!(compared > 0, "no count was compared");
    assert!(different.is_empty(), "{} of {compared} counts differ:\n{}", different.len(), different.join("\n"));
}
