//! Times that were measured, and their statistics.

use crate::sensors::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the L2 holds before a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum L2 {
    /// Nothing of the kernel's: it was flushed.
    Cold,
    /// What the launch before left in it.
    Hot,
}

/// Why no further sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// There were as many as were asked for.
    Samples,
    /// Their noise was low enough.
    Noise,
    /// Their noise was not, and no longer changed.
    SteadyNoise,
    /// Their entropy no longer grew.
    Entropy,
    /// The time was over.
    MaxTime,
    /// The clock of the SMs stayed too low.
    Throttled,
}

/// What a kernel took on the GPU. All statistics are of `samples_ms`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Timed {
    /// `cold` or `hot`: whether the L2 was flushed before each sample.
    pub l2: L2,
    /// Milliseconds of each sample, in the order they were taken.
    pub samples_ms: Vec<f64>,
    /// Their median.
    pub median_ms: f64,
    /// The bootstrap 95 % interval of the median: its percentiles 2.5 and 97.5 over resamples, which are the same on every run.
    pub interval_ms: [f64; 2],
    /// The shortest.
    pub min_ms: f64,
    /// The 5th percentile.
    pub p5_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
    /// The median absolute deviation from the median, as it is: not scaled to a standard deviation.
    pub mad_ms: f64,
    /// The distance of the quartiles, as a share of the median.
    pub spread: f64,
    /// The standard deviation as a share of the mean; none of one sample.
    pub noise: Option<f64>,
    /// The numbers, from 0, of samples that lie further outside the quartiles than three times the distance of the quartiles.
    pub outliers: Vec<usize>,
    /// Why no further sample was taken; none where results do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// How many more samples were taken and discarded, since the clock of the SMs was too low.
    pub discarded: u32,
    /// The clock of the SMs at each sample, in MHz; empty where it was not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sm_mhz: Vec<u32>,
    /// The GPU after the last sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Bytes that must move over the median, in GB/s.
    pub gbps: f64,
    /// That, as a share of the device's copy of as many bytes.
    pub share_of_copy: Option<f64>,
    /// That, as a share of the peak.
    pub share_of_peak: Option<f64>,
    /// Ticks of the SM's clock a request, where the kernel reads it: the median of the samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<f64>,
}

/// Times as they are written. Results of schema 1 lack what is computed from the samples.
#[derive(Deserialize, JsonSchema)]
struct Written {
    #[serde(default = "cold")]
    l2: L2,
    samples_ms: Vec<f64>,
    median_ms: f64,
    interval_ms: Option<[f64; 2]>,
    min_ms: f64,
    p5_ms: Option<f64>,
    p95_ms: Option<f64>,
    mad_ms: Option<f64>,
    spread: f64,
    noise: Option<f64>,
    outliers: Option<Vec<usize>>,
    stopped: Option<Stopped>,
    #[serde(default)]
    discarded: u32,
    #[serde(default)]
    sm_mhz: Vec<u32>,
    state: Option<State>,
    gbps: f64,
    share_of_copy: Option<f64>,
    share_of_peak: Option<f64>,
    cycles: Option<f64>,
}

/// What results without the field were measured with.
fn cold() -> L2 {
    L2::Cold
}

impl From<Written> for Timed {
    fn from(written: Written) -> Self {
        let sorted = sorted(written.samples_ms.clone());
        let of = |share| if sorted.is_empty() { 0.0 } else { quantile(&sorted, share) };
        let (p5_ms, p95_ms) = (written.p5_ms.unwrap_or_else(|| of(0.05)), written.p95_ms.unwrap_or_else(|| of(0.95)));
        Self {
            l2: written.l2,
            median_ms: written.median_ms,
            interval_ms: written.interval_ms.unwrap_or_else(|| interval(&sorted)),
            min_ms: written.min_ms,
            p5_ms,
            p95_ms,
            mad_ms: written.mad_ms.unwrap_or_else(|| deviation(&sorted)),
            spread: written.spread,
            noise: written.noise.or_else(|| noise(&written.samples_ms)),
            outliers: written.outliers.unwrap_or_else(|| outliers(&written.samples_ms, &sorted)),
            stopped: written.stopped,
            discarded: written.discarded,
            sm_mhz: written.sm_mhz,
            state: written.state,
            gbps: written.gbps,
            share_of_copy: written.share_of_copy,
            share_of_peak: written.share_of_peak,
            cycles: written.cycles,
            samples_ms: written.samples_ms,
        }
    }
}

/// Statistics of `samples_ms`, of which there is at least one, for a kernel that must move `bytes`.
pub fn timed(samples_ms: Vec<f64>, l2: L2, bytes: u64, copy_gbps: Option<f64>, peak_gbps: Option<f64>) -> Timed {
    let sorted = sorted(samples_ms.clone());
    let median_ms = quantile(&sorted, 0.5);
    let gbps = bytes as f64 / median_ms / 1e6;
    Timed {
        l2,
        median_ms,
        interval_ms: interval(&sorted),
        min_ms: sorted[0],
        p5_ms: quantile(&sorted, 0.05),
        p95_ms: quantile(&sorted, 0.95),
        mad_ms: deviation(&sorted),
        spread: (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / median_ms,
        noise: noise(&samples_ms),
        outliers: outliers(&samples_ms, &sorted),
        stopped: None,
        discarded: 0,
        sm_mhz: Vec::new(),
        state: None,
        gbps,
        share_of_copy: copy_gbps.map(|copy| gbps / copy),
        share_of_peak: peak_gbps.map(|peak| gbps / peak),
        cycles: None,
        samples_ms,
    }
}

pub(crate) fn sorted(mut samples: Vec<f64>) -> Vec<f64> {
    samples.sort_by(f64::total_cmp);
    samples
}

/// The value below which so large a share of the samples lies, between two of them in proportion.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// The median absolute deviation from the median.
fn deviation(ascending: &[f64]) -> f64 {
    if ascending.is_empty() {
        return 0.0;
    }
    let median = quantile(ascending, 0.5);
    quantile(&sorted(ascending.iter().map(|sample| (sample - median).abs()).collect()), 0.5)
}

/// The standard deviation, of a population that the samples are from, as a share of the mean; none of fewer than two samples.
pub(crate) fn noise(samples: &[f64]) -> Option<f64> {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (samples.len() > 1).then(|| (squares / (count - 1.0)).sqrt() / mean)
}

/// The resolution of the events that samples are timed by, in milliseconds, as CUDA documents it.
const RESOLUTION_MS: f64 = 0.0005;

/// Which samples lie outside Tukey's outer fences. Quartiles that are nearer than the events can tell count as so far apart.
fn outliers(samples: &[f64], sorted: &[f64]) -> Vec<usize> {
    if sorted.is_empty() {
        return Vec::new();
    }
    let (low, high) = (quantile(sorted, 0.25), quantile(sorted, 0.75));
    let reach = 3.0 * (high - low).max(RESOLUTION_MS);
    let is_outside = |sample: f64| sample < low - reach || sample > high + reach;
    (0..samples.len()).filter(|i| is_outside(samples[*i])).collect()
}

/// How many resamples the interval of a median is of, and how many draws they may take: of more than 5000 samples there are fewer.
const RESAMPLES: usize = 2000;
const DRAWS: usize = 10_000_000;

/// What resamples are drawn by: results are the same on every run.
const SEED: u64 = 0;

/// The percentiles 2.5 and 97.5 of the medians of resamples, each as many draws as there are samples.
fn interval(sorted_samples: &[f64]) -> [f64; 2] {
    let count = sorted_samples.len();
    if count == 0 {
        return [0.0; 2];
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut drawn = vec![0; count];
    let medians = (0..RESAMPLES.min(DRAWS / count).max(100)).map(|_| {
        drawn.fill(0);
        (0..count).for_each(|_| drawn[random.usize(..count)] += 1);
        (sorted_samples[ranked(&drawn, (count - 1) / 2)] + sorted_samples[ranked(&drawn, count / 2)]) / 2.0
    });
    let medians = sorted(medians.collect());
    [quantile(&medians, 0.025), quantile(&medians, 0.975)]
}

/// The sample that stands at a place of a resample in ascending order, of which each sample is so many.
fn ranked(drawn: &[usize], place: usize) -> usize {
    let mut before = 0;
    let is_at = |count: &usize| {
        before += count;
        before > place
    };
    drawn.iter().position(is_at).unwrap_or(0)
}
