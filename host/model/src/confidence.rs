//! How far a prediction is to be trusted, and which launches are not predicted at all.

use super::chip::Chip;
use engine::trace::{Trace, What};
use engine::{Position, Site};
use gpu::suite::Operation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// How far a predicted time is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// It is none: the launch does something that the model does not know.
    NotModelled,
    /// It was held to no measurement, or something of the kernel had to be assumed.
    Low,
    /// The model was held to measurements of other kernels on this chip.
    Medium,
    /// The model was held to measurements of this family on this chip.
    High,
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confidence::NotModelled => "not modelled",
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        })
    }
}

/// A confidence, and what lowers it.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Trust {
    /// How far the prediction is to be trusted. Files of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Why it is no higher.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
}

impl Trust {
    /// A launch that is not modelled, for these reasons.
    pub fn none(because: Vec<String>) -> Self {
        Self { confidence: Some(Confidence::NotModelled), because }
    }

    /// Lowers it, for this reason.
    pub(super) fn lower(&mut self, because: String) {
        self.confidence = self.confidence.map(|confidence| confidence.min(Confidence::Low));
        self.because.push(because);
    }

    /// That of a launch of a kernel of `family`; `low` is a reason that the caller knows.
    pub(super) fn of(chip: &Chip, family: &str, low: Option<&str>) -> Self {
        let mut because: Vec<_> = low.map(str::to_owned).into_iter().collect();
        let mut measured = MEASURED_CHIPS.into_iter();
        let measured = measured.find(|name| Chip::load(name).is_ok_and(|measured| measured == *chip));
        if measured.is_none() {
            because.push(format!("no prediction for {} was held to a measurement", chip.name));
        }
        let is_known = measured.is_some_and(|chip| measured_families(chip).any(|known| known == family));
        let confidence = match (because.is_empty(), is_known) {
            (false, _) => Confidence::Low,
            (true, false) => Confidence::Medium,
            (true, true) => Confidence::High,
        };
        Self { confidence: Some(confidence), because }
    }
}

/// The chips whose measurements predictions were held to.
const MEASURED_CHIPS: [&str; 2] = ["h100-sxm", "h200"];

/// The families whose measurements predictions were held to, of one chip, in the order of the suite.
pub fn measured_families(chip: &str) -> impl Iterator<Item = &'static str> {
    MEASURED_FAMILIES.into_iter().filter(move |family| chip == "h200" || !MEASURED_ON_H200_ALONE.contains(family))
}

const MEASURED_ON_H200_ALONE: [&str; 5] = ["transpose_ragged", "spatter", "sgemm", "sgemm_pipelined", "nchw_tiles"];

const MEASURED_FAMILIES: [&str; 30] = [
    "copy",
    "offset",
    "strided",
    "pattern",
    "dtype",
    "vectorize",
    "cache_path",
    "constant",
    "transpose",
    "transpose_tiles",
    "transpose_ragged",
    "transpose_types",
    "particles",
    "gather",
    "scatter",
    "spatter",
    "embedding",
    "matrix",
    "batched",
    "bank",
    "padding",
    "latency",
    "reduce",
    "sync",
    "matmul",
    "sgemm",
    "sgemm_pipelined",
    "attention",
    "nchw",
    "nchw_tiles",
];

/// Blocks that are looked at.
pub(super) const BLOCKS: u64 = 64;

/// What some blocks did of which something had to be assumed.
#[derive(Debug, Default)]
pub(super) struct Assumed(BTreeSet<(Position, &'static str)>);

impl Assumed {
    /// Adds what a block did.
    pub(super) fn add(&mut self, trace: &Trace) {
        for request in &trace.requests {
            if let What::SharedAtomic { words: 1.. } = request.what {
                let what = "a loop of compare-and-swaps in shared memory loses no turn to another warp";
                self.0.insert((request.at.position(), what));
            }
        }
    }

    /// What was assumed of the blocks.
    pub(super) fn reasons(&self) -> Vec<String> {
        self.0.iter().map(|(position, what)| format!("assumed: {what}, at {}", at(*position))).collect()
    }
}

/// What of these accesses the model does not know.
pub(super) fn unknown(sites: &[Site]) -> Vec<String> {
    let narrow = sites.iter().filter(|site| site.operation == Operation::Atomic && site.width < 4);
    narrow.map(|site| format!("atomics of {} bits, at {}", 8 * site.width, at(site.position))).collect()
}

fn at(position: Position) -> String {
    let Position { file, line, column } = position;
    format!("{file}:{line}:{column}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::trace::{Flow, Traced};

    #[test]
    fn what_is_assumed_is_said_with_the_place() {
        let reasons = |what| {
            let mut trace = Trace::default();
            let lines_end = trace.add_lines(&[]);
            let (at, flow) = (crate::pc(), Flow::default());
            let request =
                Traced { warp: 0, what, at, wavefronts: 1, miss_wavefronts: 1, tag_wavefronts: 1, lines_end, flow };
            trace.requests.push(request);
            let mut assumed = Assumed::default();
            assumed.add(&trace);
            assumed.reasons()
        };
        assert!(reasons(What::SharedAtomic { words: 0 }).is_empty());
        assert!(reasons(What::Atomic { waiting: 31 }).is_empty());
        let [reason] = &reasons(What::SharedAtomic { words: 1 })[..] else { panic!("one reason") };
        assert!(
            reason.starts_with("assumed: a loop of compare-and-swaps") && reason.contains("confidence.rs:"),
            "{reason}"
        );
    }
}
