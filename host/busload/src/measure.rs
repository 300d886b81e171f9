//! Takes samples of a time until they tell enough of it.

use crate::stop::{Rule, Stop};
use crate::timing::{L2, Stopped, Timed, quantile, sorted, timed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Milliseconds.
    pub ms: f64,
    /// The clock of the SMs while it was taken, in MHz, if it was read.
    pub sm_mhz: Option<u32>,
    /// Ticks a request, where the kernel reads the clock.
    pub ticks: Option<f64>,
}

/// What samples are taken from: a kernel on a GPU, or, in tests, a sequence of which the answer is known.
pub trait Timer {
    /// Why there is no sample.
    type Error;

    /// Takes one.
    ///
    /// # Errors
    /// If what is timed failed.
    fn sample(&mut self, l2: L2) -> Result<Sample, Self::Error>;

    /// How much time has passed since some moment, waiting included.
    fn elapsed(&self) -> Duration;

    /// Lets the GPU come back to its clock.
    fn recover(&mut self);
}

/// What the L2 holds before the samples of a kernel: of one series of them, or of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Series {
    /// Nothing of the kernel's.
    Cold,
    /// What the launch before left in it.
    Hot,
    /// The one, and after that the other.
    ColdAndHot,
}

impl Series {
    /// One after another.
    pub const fn each(self) -> &'static [L2] {
        match self {
            Self::Cold => &[L2::Cold],
            Self::Hot => &[L2::Hot],
            Self::ColdAndHot => &[L2::Cold, L2::Hot],
        }
    }
}

/// How samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Sampling {
    /// What the L2 holds before each.
    pub l2: Series,
    /// Launches before the first sample.
    pub warm_up: u32,
    /// The rule that ends it.
    pub stop: Stop,
    /// The noise below which `stdrel` is met.
    pub max_noise: f64,
    /// The least number of samples, at least 1.
    pub min_samples: u32,
    /// Seconds after which it ends, met or not, once there are so many.
    pub max_time_s: f64,
    /// The share of the SMs' highest clock below which a sample is discarded.
    pub min_clock: f64,
}

impl Sampling {
    /// 30 samples of each kernel; more of one whose samples scatter, for half a second at most.
    pub const DEFAULT: Self = Self {
        l2: Series::Cold,
        warm_up: 3,
        stop: Stop::Stdrel,
        max_noise: 0.005,
        min_samples: 30,
        max_time_s: 0.5,
        min_clock: 0.75,
    };

    /// A number of samples, no more and no less, whatever the clock.
    pub const fn exactly(samples: u32, l2: Series) -> Self {
        Self { l2, stop: Stop::Samples, min_samples: samples, min_clock: 0.0, ..Self::DEFAULT }
    }
}

/// The samples that were taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// Those that count.
    pub samples: Vec<Sample>,
    /// How many more there were.
    pub discarded: u32,
    /// Why there are no more.
    pub stopped: Stopped,
}

/// Why there are no samples.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotTaken<E> {
    /// What is timed failed.
    #[error("{0}")]
    Failed(E),
    /// All were discarded.
    #[error(
        "all {discarded} samples were taken while the clock of the SMs was below {lowest} MHz, at last at {mhz}, and are discarded: see \
         what holds it down (`nvidia-smi -q -d CLOCK,PERFORMANCE,POWER`), or take them all with --min-clock 0"
    )]
    Throttled {
        /// How many there were.
        discarded: u32,
        /// The clock that they lacked.
        lowest: u32,
        /// The clock at the last of them.
        mhz: u32,
    },
}

/// For so long a clock that is too low is waited for, since the last sample at one that is not.
const PATIENCE: Duration = Duration::from_secs(2);

/// Samples that are discarded, one after another, before patience ends.
const TRIES: u32 = 3;

/// Takes samples of `l2` from `timer`. One at a clock of the SMs below `lowest` MHz is discarded.
///
/// # Errors
/// The timer's first, or that there is no sample that counts.
pub fn measure<T: Timer>(
    sampling: &Sampling,
    l2: L2,
    lowest: Option<u32>,
    timer: &mut T,
) -> Result<Taken, NotTaken<T::Error>> {
    for _ in 0..sampling.warm_up {
        timer.sample(l2).map_err(NotTaken::Failed)?;
    }
    let mut rule = Rule::new(sampling.stop, sampling.max_noise);
    let mut taken = Taken { samples: Vec::new(), discarded: 0, stopped: Stopped::Throttled };
    let begun = timer.elapsed();
    let (mut last, mut in_a_row) = (begun, 0);
    loop {
        let sample = timer.sample(l2).map_err(NotTaken::Failed)?;
        let now = timer.elapsed();
        if let (Some(mhz), Some(lowest)) = (sample.sm_mhz, lowest)
            && mhz < lowest
        {
            (taken.discarded, in_a_row) = (taken.discarded + 1, in_a_row + 1);
            if in_a_row >= TRIES && now.saturating_sub(last) >= PATIENCE {
                let discarded = taken.discarded;
                let none = taken.samples.is_empty();
                return if none { Err(NotTaken::Throttled { discarded, lowest, mhz }) } else { Ok(taken) };
            }
            timer.recover();
            continue;
        }
        (last, in_a_row) = (now, 0);
        rule.add(sample.ms);
        taken.samples.push(sample);
        if taken.samples.len() < sampling.min_samples as usize {
            continue;
        }
        let is_over = now.saturating_sub(begun).as_secs_f64() >= sampling.max_time_s;
        if let Some(stopped) = rule.met().or(is_over.then_some(Stopped::MaxTime)) {
            return Ok(Taken { stopped, ..taken });
        }
    }
}

impl Taken {
    /// Their statistics, for a kernel that must move `bytes`.
    pub fn timed(self, l2: L2, bytes: u64, copy_gbps: Option<f64>, peak_gbps: Option<f64>) -> Timed {
        let ms = self.samples.iter().map(|sample| sample.ms).collect();
        let ticks = sorted(self.samples.iter().filter_map(|sample| sample.ticks).collect());
        let clocks: Option<Vec<_>> = self.samples.iter().map(|sample| sample.sm_mhz).collect();
        Timed {
            stopped: Some(self.stopped),
            discarded: self.discarded,
            sm_mhz: clocks.unwrap_or_default(),
            cycles: (!ticks.is_empty()).then(|| quantile(&ticks, 0.5)),
            ..timed(ms, l2, bytes, copy_gbps, peak_gbps)
        }
    }
}

#[cfg(test)]
mod tests;
