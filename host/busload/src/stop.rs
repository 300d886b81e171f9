//! When samples tell enough of a time: the rules of nvbench.
//!
//! | rule | it counts | it is met |
//! | --- | --- | --- |
//! | `samples` | samples | when there are as many as were asked for |
//! | `stdrel` | noise: the standard deviation of all samples as a share of their mean, from the fifth sample on | when it is below the threshold, or levelled off: every 16 samples, once there are more than 64 values of it, the root mean square of the last 512 from the latest is below 5 % of that |
//! | `entropy` | the entropy of all samples in bits, where samples of equal length are the same symbol | every two samples: when a straight line through its last 299 values rises by less than 0.048 degrees (a value a degree of the x axis, a bit one of the y axis), and explains 36 % or more of their variance |
//!
//! Each rule holds once there is the least number of samples.

use crate::timing::Stopped;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A rule by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// A number of samples.
    Samples,
    /// Their relative standard deviation.
    Stdrel,
    /// Their entropy.
    Entropy,
}

impl Stop {
    /// Every rule.
    pub const ALL: [Self; 3] = [Self::Stdrel, Self::Entropy, Self::Samples];

    /// What the command line calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Stdrel => "stdrel",
            Self::Entropy => "entropy",
        }
    }
}

/// A rule with what it knows of the samples so far.
pub(crate) enum Rule {
    Samples,
    Stdrel(Noise),
    Entropy(Entropy),
}

impl Rule {
    pub(crate) fn new(stop: Stop, max_noise: f64) -> Self {
        match stop {
            Stop::Samples => Self::Samples,
            Stop::Stdrel => Self::Stdrel(Noise { max_noise, count: 0, mean: 0.0, squares: 0.0, last: VecDeque::new() }),
            Stop::Entropy => Self::Entropy(Entropy::default()),
        }
    }

    /// Takes one more sample into account.
    pub(crate) fn add(&mut self, ms: f64) {
        match self {
            Self::Samples => {}
            Self::Stdrel(noise) => noise.add(ms),
            Self::Entropy(entropy) => entropy.add(ms),
        }
    }

    /// Whether it is met, and how.
    pub(crate) fn met(&self) -> Option<Stopped> {
        match self {
            Self::Samples => Some(Stopped::Samples),
            Self::Stdrel(noise) => noise.met(),
            Self::Entropy(entropy) => entropy.met(),
        }
    }
}

/// Appends a value to the last so many.
fn keep(values: &mut VecDeque<f64>, most: usize, value: f64) {
    if values.len() == most {
        values.pop_front();
    }
    values.push_back(value);
}

/// The relative standard deviation as it went on.
pub(crate) struct Noise {
    max_noise: f64,
    count: u32,
    mean: f64,
    /// The sum of the squares of what the samples differ from their mean, by Welford's algorithm.
    squares: f64,
    last: VecDeque<f64>,
}

impl Noise {
    /// Of fewer samples there is no noise to speak of.
    const LEAST: u32 = 5;
    const WINDOW: usize = 512;
    const BEFORE_LEVEL: usize = 64;
    const EVERY: u32 = 16;
    const LEVEL: f64 = 0.05;

    fn add(&mut self, ms: f64) {
        self.count += 1;
        let from_mean = ms - self.mean;
        self.mean += from_mean / f64::from(self.count);
        self.squares += from_mean * (ms - self.mean);
        if self.count >= Self::LEAST {
            let noise = (self.squares / f64::from(self.count - 1)).sqrt() / self.mean;
            keep(&mut self.last, Self::WINDOW, noise);
        }
    }

    fn met(&self) -> Option<Stopped> {
        let latest = *self.last.back()?;
        if latest < self.max_noise {
            return Some(Stopped::Noise);
        }
        if self.last.len() <= Self::BEFORE_LEVEL || !self.count.is_multiple_of(Self::EVERY) {
            return None;
        }
        let squares: f64 = self.last.iter().map(|noise| (noise - latest).powi(2)).sum();
        let deviation = (squares / (self.last.len() - 1) as f64).sqrt();
        (deviation / latest < Self::LEVEL).then_some(Stopped::SteadyNoise)
    }
}

/// The entropy as it went on.
#[derive(Default)]
pub(crate) struct Entropy {
    count: u32,
    /// How often each time came, by its bits.
    times: BTreeMap<u64, u32>,
    last: VecDeque<f64>,
}

impl Entropy {
    const WINDOW: usize = 299;
    const MAX_ANGLE: f64 = 0.048;
    const MIN_R2: f64 = 0.36;

    fn add(&mut self, ms: f64) {
        self.count += 1;
        *self.times.entry(ms.to_bits()).or_default() += 1;
        let shares = self.times.values().map(|count| f64::from(*count) / f64::from(self.count));
        // Summed up anew each time: of one time alone it is 0, and not nearly so.
        let entropy = -shares.map(|share| share * share.log2()).sum::<f64>();
        keep(&mut self.last, Self::WINDOW, entropy);
    }

    fn met(&self) -> Option<Stopped> {
        if self.last.len() < 2 || !self.count.is_multiple_of(2) {
            return None;
        }
        let (slope, r2) = line(&self.last);
        (slope.atan().to_degrees() <= Self::MAX_ANGLE && r2 >= Self::MIN_R2).then_some(Stopped::Entropy)
    }
}

/// The slope of the straight line through values, one a step, and the share of their variance that it explains.
fn line(values: &VecDeque<f64>) -> (f64, f64) {
    let count = values.len() as f64;
    let (mean_x, mean_y) = ((count - 1.0) / 2.0, values.iter().sum::<f64>() / count);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (i, value) in values.iter().enumerate() {
        let (x, y) = (i as f64 - mean_x, value - mean_y);
        (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
    }
    // The line leaves `yy - xy² / xx` of the variance.
    (xy / xx, if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) })
}
