//! Families held to what they say of their kernels.

use super::{Report, run};
use crate::sim::Options;
use gpu::suite::{Case, Entry, Family, Value};
use std::sync::Arc;

/// SMs of the machine that the simulator stands for, where a launch asks.
const SM_COUNT: u32 = 108;

/// Runs every kernel of these families on every case of its defaults for the simulator: nothing may be found, every result must be its
/// reference, and the counts those that the family states. What the command `verify` does, as a test.
///
/// # Panics
/// If a kernel is wrong, a plan does not fit its kernel, or there is no kernel at all.
#[track_caller]
pub fn assert_families(families: &[&Family]) {
    let kernels = families.iter().flat_map(|family| family.kernels.iter().map(move |entry| (family, entry)));
    let mut cases = 0;
    for (family, entry) in kernels {
        for case in self::cases(family) {
            let report =
                report_of(entry, &case).unwrap_or_else(|reason| panic!("`{}` on {case}: {reason}", entry.kernel.name));
            if let Some(complaint) = report.complaint() {
                panic!("on {case}: {complaint}");
            }
            cases += 1;
        }
    }
    assert!(cases > 0, "the families have no kernel: enter each in its family's list");
}

fn report_of(entry: &Entry, case: &Case) -> Result<Report, String> {
    let plan = (entry.plan)(case).map_err(|error| error.to_string())?;
    run(entry.kernel, Arc::new(plan), Options::default()).map_err(|error| error.to_string())
}

/// Every combination of the defaults of a family's axes.
fn cases(family: &Family) -> Vec<Case> {
    let mut cases: Vec<Vec<(&'static str, Value)>> = vec![Vec::new()];
    for axis in family.axes {
        let with = |case: &Vec<_>| {
            let values = axis.in_simulator.iter();
            values.map(|value| [case.as_slice(), &[(axis.name, *value)]].concat()).collect::<Vec<_>>()
        };
        cases = cases.iter().flat_map(with).collect();
    }
    cases.into_iter().map(|values| Case { values, sm_count: SM_COUNT }).collect()
}
