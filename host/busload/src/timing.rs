//! Times that were measured, and their statistics.

use serde::{Deserialize, Serialize};

/// What the L2 holds before a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum L2 {
    /// Nothing of the kernel's: it was flushed.
    Cold,
    /// What the launch before left in it.
    Hot,
}

/// What a kernel took on the GPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timed {
    /// `cold` or `hot`: whether the L2 was flushed before each sample.
    #[serde(default = "cold")]
    pub l2: L2,
    /// Milliseconds of each sample, in the order they were taken.
    pub samples_ms: Vec<f64>,
    /// Their median.
    pub median_ms: f64,
    /// The shortest.
    pub min_ms: f64,
    /// The distance of the quartiles, as a share of the median.
    pub spread: f64,
    /// Bytes that must move over the median, in GB/s.
    pub gbps: f64,
    /// That, as a share of the device's copy of as many bytes.
    pub share_of_copy: Option<f64>,
    /// That, as a share of the peak.
    pub share_of_peak: Option<f64>,
    /// Ticks of the SM's clock a request, where the kernel reads it: the median of the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<f64>,
}

/// What results without the field were measured with.
fn cold() -> L2 {
    L2::Cold
}

/// Statistics of `samples_ms`, of which there is at least one, for a kernel that must move `bytes`.
pub fn timed(samples_ms: Vec<f64>, l2: L2, bytes: u64, copy_gbps: Option<f64>, peak_gbps: Option<f64>) -> Timed {
    let sorted = sorted(samples_ms.clone());
    let median_ms = quantile(&sorted, 0.5);
    let gbps = bytes as f64 / median_ms / 1e6;
    Timed {
        l2,
        median_ms,
        min_ms: sorted[0],
        spread: (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / median_ms,
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
