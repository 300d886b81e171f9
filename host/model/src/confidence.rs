//! How far a prediction is to be trusted, and which launches are not predicted at all.

use super::chip::Chip;
use engine::trace::{Trace, What};
use engine::{Position, Site};
use gpu::suite::Operation;
use gpu::suite::Space;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// How far a predicted time is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
        if !MEASURED_CHIPS.into_iter().any(|name| Chip::load(name).is_ok_and(|measured| measured == *chip)) {
            because.push(format!("no prediction for {} was held to a measurement", chip.name));
        }
        let confidence = match (because.is_empty(), MEASURED_FAMILIES.contains(&family)) {
            (false, _) => Confidence::Low,
            (true, false) => Confidence::Medium,
            (true, true) => Confidence::High,
        };
        Self { confidence: Some(confidence), because }
    }
}

/// The chips whose measurements predictions were held to.
const MEASURED_CHIPS: [&str; 2] = ["h100-sxm", "h200"];

/// The families whose measurements they were held to.
pub const MEASURED_FAMILIES: [&str; 25] = [
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
    "transpose_types",
    "particles",
    "gather",
    "scatter",
    "embedding",
    "matrix",
    "batched",
    "bank",
    "padding",
    "latency",
    "reduce",
    "sync",
    "matmul",
    "attention",
    "nchw",
];

/// Blocks that are looked at.
pub(super) const BLOCKS: u64 = 64;

/// What some blocks did that the model does not know.
#[derive(Debug, Default)]
pub(super) struct Unknown(BTreeSet<(Position, &'static str)>);

impl Unknown {
    /// Adds what a block did.
    pub(super) fn add(&mut self, trace: &mut Trace) {
        for (request, lanes) in trace.requests.iter().zip(std::mem::take(&mut trace.lanes)) {
            if request.what == What::Atomic && lanes.addresses < lanes.mask.count_ones() {
                self.0.insert((request.at.position(), "lanes of a warp add to the same address"));
            }
        }
    }

    /// What was found in the blocks, and what `sites` tell beside that.
    pub(super) fn reasons(&self, sites: &[Site]) -> Vec<String> {
        let of_shared = sites.iter().filter(|site| site.space == Space::Shared && site.operation == Operation::Atomic);
        let of_shared = of_shared.map(|site| (site.position, "additions to shared memory"));
        let found = self.0.iter().copied().chain(of_shared);
        found.map(|(position, what)| format!("{what}, at {}", at(position))).collect()
    }
}

fn at(position: Position) -> String {
    let Position { file, line, column } = position;
    format!("{file}:{line}:{column}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::trace::{Flow, Lanes, Traced, WHOLE_BLOCK};

    /// What is found in a block of one warp that makes requests with these masks at one place; where there is none, the block waits.
    fn found(what: What, masks: &[Option<u32>], addresses: u32) -> Vec<&'static str> {
        let mut trace = Trace::default();
        let at = crate::pc();
        for mask in masks {
            let (warp, what) = if mask.is_some() { (0, what) } else { (WHOLE_BLOCK, What::Wait) };
            let lines_end = trace.add_lines(&[]);
            trace.requests.push(Traced {
                warp,
                what,
                at,
                wavefronts: 1,
                miss_wavefronts: 1,
                tag_wavefronts: 1,
                lines_end,
                flow: Flow::default(),
            });
            trace.lanes.push(Lanes { mask: mask.unwrap_or(0), addresses });
        }
        let mut unknown = Unknown::default();
        unknown.add(&mut trace);
        unknown.0.into_iter().map(|(_, what)| what).collect()
    }

    #[test]
    fn additions_of_several_lanes_to_one_address_are_told_from_those_of_one() {
        let to_one = ["lanes of a warp add to the same address"];
        assert_eq!(found(What::Atomic, &[Some(u32::MAX)], 1), to_one);
        assert_eq!(found(What::Atomic, &[Some(0b11)], 1), to_one);
        assert_eq!(found(What::Atomic, &[Some(u32::MAX)], 31), to_one);
        assert!(found(What::Atomic, &[Some(u32::MAX)], 32).is_empty());
        assert!(found(What::Atomic, &[Some(1), Some(2)], 1).is_empty(), "a lane of each");
        assert!(found(What::Store, &[Some(u32::MAX)], 1).is_empty());
    }
}
