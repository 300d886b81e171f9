//! What claims are judged by: counts of the simulator, and results measured on a GPU.

use crate::results::{Results, Row};
use crate::sim::{self, Arch, Options, Transactions};
use crate::timing::{L2, Timed};
use gpu::kernels::FAMILIES;
use gpu::suite::{Case, Counts, Operation, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A measured number, and the GPU that it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The number.
    pub value: f64,
    /// The GPU's name.
    pub gpu: String,
}

/// What claims are judged by.
pub trait Evidence {
    /// What `kernel` asks of `buffer` (a parameter or a shared array) by `operation`, on the case that `values` make with
    /// the simulator's defaults.
    fn counts(&self, kernel: &str, values: &[(&str, Value)], buffer: &str, operation: Operation) -> Counts;

    /// The transactions of the same on an older generation of GPUs.
    fn transactions(
        &self,
        arch: Arch,
        kernel: &str,
        values: &[(&str, Value)],
        buffer: &str,
        operation: Operation,
    ) -> Transactions;

    /// The bandwidth in GB/s that `kernel` reached, on its largest measured case in which `values` are as given.
    fn gbps(&self, kernel: &str, values: &[(&str, Value)]) -> Option<Found>;

    /// The same with the L2 left as the launch before left it.
    fn hot_gbps(&self, kernel: &str, values: &[(&str, Value)]) -> Option<Found>;

    /// That bandwidth as a share of the memory's peak.
    fn share_of_peak(&self, kernel: &str) -> Option<Found>;

    /// The cycles a request that `kernel` read off the clock with a cold L2.
    fn cycles(&self, kernel: &str) -> Option<Found>;
}

/// Evidence from the simulator, run when asked and kept, and from results files.
pub struct Cached {
    results: Vec<Results>,
    simulated: RefCell<BTreeMap<String, Regions>>,
    failed: RefCell<Option<String>>,
}

/// What each region was asked for.
type Regions = BTreeMap<(String, Operation, u64), (Counts, Transactions)>;

impl Cached {
    /// Evidence with what was measured there.
    pub fn new(results: Vec<Results>) -> Self {
        Self { results, simulated: RefCell::default(), failed: RefCell::default() }
    }

    /// Why something could not be simulated; then its counts were taken to be 0, and no claim is judged.
    pub fn failed(&self) -> Option<String> {
        self.failed.borrow().clone()
    }

    fn simulate(kernel: &str, values: &[(&str, Value)], arch: Arch) -> Result<Regions, String> {
        let entries = FAMILIES.iter().flat_map(|family| family.kernels.iter().map(move |entry| (family, entry)));
        let (family, entry) = entries
            .into_iter()
            .find(|(_, entry)| entry.kernel.name == kernel)
            .unwrap_or_else(|| panic!("a claim names the kernel {kernel}, which is not in the suite"));
        let value = |axis: &gpu::suite::Axis| {
            let given = values.iter().find(|(name, _)| *name == axis.name);
            (axis.name, given.map_or(axis.in_simulator[0], |(_, value)| *value))
        };
        let case =
            Case { values: family.axes.iter().map(value).collect(), sm_count: crate::record::SIMULATED_SM_COUNT };
        let plan = (entry.plan)(&case).unwrap_or_else(|error| panic!("{kernel} on {case}: {error}"));
        let options = Options { arch: Some(arch), ..Options::default() };
        let outcome = sim::simulate(entry.kernel, Arc::new(plan), &options, &|_, _| ())
            .map_err(|error| format!("{kernel} on {case}: {error}"))?;
        let transactions = |key| outcome.transactions.get(key).copied().unwrap_or_default();
        let regions = outcome.regions.iter();
        Ok(regions.map(|(key, counts)| (key.clone(), (*counts, transactions(key)))).collect())
    }

    /// What a region was asked for, added up over the widths.
    fn region<T: Default>(
        &self,
        arch: Arch,
        kernel: &str,
        values: &[(&str, Value)],
        (buffer, operation): (&str, Operation),
        add: impl Fn(T, &(Counts, Transactions)) -> T,
    ) -> T {
        let key = format!("{kernel} {values:?} {arch:?}");
        let mut cache = self.simulated.borrow_mut();
        let simulated = || {
            let mut failed = self.failed.borrow_mut();
            // After the first, nothing is judged.
            if failed.is_none() {
                match Self::simulate(kernel, values, arch) {
                    Ok(regions) => return regions,
                    Err(reason) => *failed = Some(reason),
                }
            }
            Regions::new()
        };
        let regions = cache.entry(key).or_insert_with(simulated);
        let of = regions.iter().filter(|((name, op, _), _)| name == buffer && *op == operation);
        of.fold(T::default(), |sum, (_, region)| add(sum, region))
    }

    /// The largest row of `kernel` in which `values` are as given: its times, and what they were measured on.
    fn timed(&self, kernel: &str, values: &[(&str, Value)], l2: L2) -> Option<(&Results, &Timed)> {
        let is_so = |row: &Row| {
            let params = &row.params;
            let known = |(name, value): &(&str, Value)| params.get(*name) == Some(&crate::record::param(*value));
            row.kernel == kernel && row.verified && values.iter().all(known)
        };
        let rows = self.results.iter().flat_map(|of| of.rows.iter().map(move |row| (of, row)));
        fn series(row: &Row, l2: L2) -> Option<&Timed> {
            row.timed.as_ref().ok().into_iter().chain(&row.hot).find(|timed| timed.l2 == l2)
        }
        let timed = rows.filter(|(_, row)| is_so(row)).filter_map(|(of, row)| Some((of, row, series(row, l2)?)));
        let largest = timed.max_by_key(|(_, row, _)| row.bytes)?;
        Some((largest.0, largest.2))
    }
}

impl Evidence for Cached {
    fn counts(&self, kernel: &str, values: &[(&str, Value)], buffer: &str, operation: Operation) -> Counts {
        self.region(Arch::default(), kernel, values, (buffer, operation), |sum: Counts, (counts, _)| sum + *counts)
    }

    fn transactions(
        &self,
        arch: Arch,
        kernel: &str,
        values: &[(&str, Value)],
        buffer: &str,
        operation: Operation,
    ) -> Transactions {
        self.region(arch, kernel, values, (buffer, operation), |mut sum: Transactions, (_, transactions)| {
            sum += *transactions;
            sum
        })
    }

    fn gbps(&self, kernel: &str, values: &[(&str, Value)]) -> Option<Found> {
        let (report, timed) = self.timed(kernel, values, L2::Cold)?;
        Some(Found { value: timed.gbps, gpu: report.machine.name.clone() })
    }

    fn hot_gbps(&self, kernel: &str, values: &[(&str, Value)]) -> Option<Found> {
        let (report, timed) = self.timed(kernel, values, L2::Hot)?;
        Some(Found { value: timed.gbps, gpu: report.machine.name.clone() })
    }

    fn share_of_peak(&self, kernel: &str) -> Option<Found> {
        let (report, timed) = self.timed(kernel, &[], L2::Cold)?;
        Some(Found { value: timed.share_of_peak?, gpu: report.machine.name.clone() })
    }

    fn cycles(&self, kernel: &str) -> Option<Found> {
        let (report, timed) = self.timed(kernel, &[], L2::Cold)?;
        Some(Found { value: timed.cycles?, gpu: report.machine.name.clone() })
    }
}

/// Evidence with other counts, for tests.
#[cfg(test)]
pub(super) struct Perturbed<'a>(pub(super) &'a dyn Evidence);

#[cfg(test)]
impl Evidence for Perturbed<'_> {
    fn counts(&self, kernel: &str, values: &[(&str, Value)], buffer: &str, operation: Operation) -> Counts {
        let mut counts = self.0.counts(kernel, values, buffer, operation);
        // Kernels differ in how much is added, so that their ratios change too.
        let more = kernel.bytes().map(u64::from).sum::<u64>();
        counts.requests += more;
        counts.lanes += 3 * more;
        counts.sectors = 7 * counts.sectors + 11 * more;
        counts.lines = 5 * counts.lines + 13 * more;
        counts.wavefronts = 3 * counts.wavefronts + 17 * more;
        counts
    }

    fn transactions(
        &self,
        arch: Arch,
        kernel: &str,
        values: &[(&str, Value)],
        buffer: &str,
        operation: Operation,
    ) -> Transactions {
        let Transactions { count, bytes } = self.0.transactions(arch, kernel, values, buffer, operation);
        Transactions { count: 7 * count + 11, bytes: 5 * bytes + 13 }
    }

    fn gbps(&self, kernel: &str, values: &[(&str, Value)]) -> Option<Found> {
        self.0.gbps(kernel, values)
    }

    fn hot_gbps(&self, kernel: &str, values: &[(&str, Value)]) -> Option<Found> {
        self.0.hot_gbps(kernel, values)
    }

    fn share_of_peak(&self, kernel: &str) -> Option<Found> {
        self.0.share_of_peak(kernel)
    }

    fn cycles(&self, kernel: &str) -> Option<Found> {
        self.0.cycles(kernel)
    }
}

/// One over the other, where both were measured.
pub(super) fn over(numerator: Option<Found>, denominator: Option<Found>) -> Option<Found> {
    let (numerator, denominator) = (numerator?, denominator?);
    Some(Found { value: numerator.value / denominator.value, gpu: numerator.gpu })
}

/// Sectors a request.
pub(super) fn sectors(counts: Counts) -> f64 {
    counts.sectors as f64 / counts.requests as f64
}

/// Lines a request.
pub(super) fn lines(counts: Counts) -> f64 {
    counts.lines as f64 / counts.requests as f64
}

/// Wavefronts a request.
pub(super) fn wavefronts(counts: Counts) -> f64 {
    counts.wavefronts as f64 / counts.requests as f64
}

/// The share of the bytes fetched that 4-byte lanes asked for, in per cent.
pub(super) fn used(counts: Counts) -> f64 {
    100.0 * 4.0 * counts.lanes as f64 / (32.0 * counts.sectors as f64)
}
