//! Pattern files of Spatter 2 (github.com/hpcgarage/spatter): read into runs of the family `spatter`, and written from what a
//! kernel was seen to access.

mod file;
mod write;

pub use file::{Configured, SpatterError, parse, read};
pub use write::{MOST_PATTERNS, MOST_REQUESTS, NotWritten, written};

use crate::cases::{Run, SelectError};
use crate::sim::{Outcome, Sampling};
use gpu::kernels::spatter::{self, Configuration, Kind};
use gpu::suite::{Case, Value};
use std::sync::Arc;

/// Spatter's name of a kernel.
#[must_use]
pub fn kernel_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Gather => "Gather",
        Kind::Scatter => "Scatter",
        Kind::Gs => "GS",
        Kind::MultiGather => "MultiGather",
        Kind::MultiScatter => "MultiScatter",
    }
}

/// The kernel of the family that a kind of configuration runs, with the buffers that go by the pattern: of a load, of a store.
fn kernel_of(kind: Kind) -> (&'static str, [Option<&'static str>; 2]) {
    match kind {
        Kind::Gather => ("spatter_gather", [Some("sparse"), None]),
        Kind::Scatter => ("spatter_scatter", [None, Some("sparse")]),
        Kind::Gs => ("spatter_gs", [Some("gathered"), Some("scattered")]),
        Kind::MultiGather => ("spatter_multi_gather", [Some("sparse"), None]),
        Kind::MultiScatter => ("spatter_multi_scatter", [None, Some("sparse")]),
    }
}

/// The run of a configuration; `sm_count` are the SMs of the machine.
///
/// # Errors
/// If no GPU could launch it.
pub fn run(configured: &Configured, sm_count: u32) -> Result<Run, SelectError> {
    let Configuration { kind, delta, delta_inner, count, wrap, .. } = configured.configuration;
    // Cases name their values by what lives as long as the program: some words for each entry of a bounded file.
    let named = |name: &str| Value::Choice(String::leak(name.to_owned()));
    let mut values = vec![("entry", Value::Count(configured.number as u64))];
    if !configured.name.is_empty() {
        values.push(("name", named(&configured.name)));
    }
    values.extend([("pattern", named(&configured.pattern)), ("delta", Value::Count(delta))]);
    if kind == Kind::Gs {
        values.push(("delta-scatter", Value::Count(delta_inner)));
    }
    values.extend([("count", Value::Count(count)), ("wrap", Value::Count(wrap))]);
    let case = Case { values, sm_count };
    let (name, _) = kernel_of(kind);
    let family = &spatter::FAMILY;
    let entry = family.kernels.iter().find(|entry| entry.kernel.name == name);
    let kernel = entry.unwrap_or_else(|| unreachable!("the family has no {name}")).kernel;
    let plan = spatter::plan(&configured.configuration);
    let plan = plan.map_err(|error| SelectError::Plan { kernel: name, case: case.to_string(), error })?;
    crate::arguments::check(&kernel, &plan).map_err(|error| SelectError::Unfit { case: case.to_string(), error })?;
    Ok(Run { family, kernel, case, plan: Arc::new(plan) })
}

/// What the accesses by a pattern were seen to cost: those of loads, those of stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Requests.
    pub requests: u64,
    /// Sectors.
    pub sectors: u64,
    /// Distinct bytes that the lanes of each request want, summed.
    pub used: u64,
}

/// What to look at for [`seen`]: no request by itself.
pub const TALLIED: Sampling = Sampling { blocks: 0, warps: 0, requests: 0 };

/// What a run that was simulated with [`TALLIED`] asked for by the pattern, or by both patterns.
#[must_use]
pub fn seen(kind: Kind, outcome: &Outcome) -> [Seen; 2] {
    let (_, buffers) = kernel_of(kind);
    buffers.map(|buffer| {
        let mut seen = Seen::default();
        for tally in outcome.sampled.iter().flat_map(|sampled| &sampled.tallies) {
            if buffer == Some(tally.region.as_str()) {
                seen.requests += tally.total.requests;
                seen.sectors += tally.total.sectors;
                seen.used += tally.used;
            }
        }
        seen
    })
}
