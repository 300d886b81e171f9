//! Compares two results files of one GPU, row by row: how fast, relative to a reference, and whether noise explains it.

use crate::record::PtxRecord;
use crate::results::{self, Results};
use crate::timing::{self, L2, Timed};
use serde::Serialize;
use std::collections::BTreeMap;

/// Two reports side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The GPU of both.
    pub gpu: String,
    /// What the speeds are relative to.
    pub reference: Source,
    /// What is compared with it.
    pub results: Source,
    /// The share by which a speed may be off 1 and still be called the same.
    pub tolerance: f64,
    /// The cases that the reference has a time of and the results hold, in the order of the results.
    pub rows: Vec<Row>,
    /// How many timed cases the reference alone has.
    pub only_reference: usize,
    /// How many timed cases the results alone have.
    pub only_results: usize,
}

/// Where a report is from.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    /// The file.
    pub file: String,
    /// The CUDA version that the driver supports.
    pub driver: Option<String>,
    /// The build of the kernels.
    pub ptx: PtxRecord,
    /// What the L2 held before each sample.
    pub l2: L2,
    /// Whether the run that wrote it has not come to its end.
    pub unfinished: bool,
}

/// A kernel on a case, measured twice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The kernel.
    pub kernel: String,
    /// The case.
    pub case: String,
    /// The reference's median, in milliseconds.
    pub reference_ms: f64,
    /// The results' median, in milliseconds; none if the case failed there.
    pub results_ms: Option<f64>,
    /// The first over the second: above 1 the results are faster.
    pub speed: Option<f64>,
    /// What that means.
    pub verdict: Verdict,
}

/// What the samples of a row say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The medians are as good as equal.
    Same,
    /// The medians differ, and the middle halves of the samples overlap.
    Ambiguous,
    /// The results are faster.
    Faster,
    /// The results are slower.
    Slower,
    /// The results have an error in place of a time.
    Failed,
}

impl Verdict {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Ambiguous => "ambiguous",
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Failed => "failed",
        }
    }
}

/// Two reports that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// One of them has no times.
    #[error("{file} holds no time: compare what `bench --json` wrote on a GPU")]
    NoTimes {
        /// Its file.
        file: String,
    },
    /// They are of different GPUs.
    #[error("{reference} was measured on {reference_gpu} and {results} on {results_gpu}: compare results of one GPU")]
    Gpus {
        /// The reference's file.
        reference: String,
        /// Its GPU.
        reference_gpu: String,
        /// The results' file.
        results: String,
        /// Their GPU.
        results_gpu: String,
    },
    /// They have no case in common.
    #[error("{reference} and {results} have no kernel and case in common: measure the same ones")]
    NothingCommon {
        /// The reference's file.
        reference: String,
        /// The results' file.
        results: String,
    },
}

/// Compares reports, each with the name of its file.
///
/// # Errors
/// If there is nothing to compare, or it is not comparable.
pub fn compare(
    (reference_file, reference): (&str, &Results),
    (results_file, results): (&str, &Results),
    tolerance: f64,
) -> Result<Comparison, CompareError> {
    let reference_source = source(reference_file, reference)?;
    let results_source = source(results_file, results)?;
    if reference.machine.name != results.machine.name {
        return Err(CompareError::Gpus {
            reference: reference_source.file,
            reference_gpu: reference.machine.name.clone(),
            results: results_source.file,
            results_gpu: results.machine.name.clone(),
        });
    }
    let mut references: BTreeMap<_, _> =
        reference.rows.iter().filter_map(|row| Some((key(row), row.timed.as_ref().ok()?))).collect();
    let (mut rows, mut only_results) = (Vec::new(), 0);
    for result in &results.rows {
        match references.remove(&key(result)) {
            Some(timed) => rows.push(row(timed, result, tolerance)),
            None => only_results += usize::from(result.timed.is_ok()),
        }
    }
    if rows.is_empty() {
        return Err(CompareError::NothingCommon { reference: reference_source.file, results: results_source.file });
    }
    Ok(Comparison {
        gpu: results.machine.name.clone(),
        reference: reference_source,
        results: results_source,
        tolerance,
        rows,
        only_reference: references.len(),
        only_results,
    })
}

fn source(file: &str, report: &Results) -> Result<Source, CompareError> {
    let timed = report.rows.iter().find_map(|row| row.timed.as_ref().ok());
    Ok(Source {
        file: file.to_owned(),
        driver: report.machine.driver.clone(),
        ptx: report.ptx.clone(),
        l2: timed.ok_or_else(|| CompareError::NoTimes { file: file.to_owned() })?.l2,
        unfinished: report.unfinished,
    })
}

fn key(row: &results::Row) -> (&str, &str) {
    (&row.kernel, &row.case)
}

fn row(reference: &Timed, row: &results::Row, tolerance: f64) -> Row {
    let timed = row.timed.as_ref().ok();
    let speed = timed.map(|results| reference.median_ms / results.median_ms);
    let verdict = match timed.zip(speed) {
        Some((results, speed)) => judge(reference, results, speed, tolerance),
        None => Verdict::Failed,
    };
    Row {
        kernel: row.kernel.clone(),
        case: row.case.clone(),
        reference_ms: reference.median_ms,
        results_ms: timed.map(|results| results.median_ms),
        speed,
        verdict,
    }
}

/// A difference counts if it is larger than the tolerance, and than what separates the samples of one run: the middle
/// half of the one lies wholly on one side of the other's.
fn judge(reference: &Timed, results: &Timed, speed: f64, tolerance: f64) -> Verdict {
    let ([reference_low, reference_high], [results_low, results_high]) = (quartiles(reference), quartiles(results));
    if speed.max(1.0 / speed) <= 1.0 + tolerance {
        Verdict::Same
    } else if results_high < reference_low {
        Verdict::Faster
    } else if reference_high < results_low {
        Verdict::Slower
    } else {
        Verdict::Ambiguous
    }
}

fn quartiles(timed: &Timed) -> [f64; 2] {
    let sorted = timing::sorted(timed.samples_ms.clone());
    [0.25, 0.75].map(|q| timing::quantile(&sorted, q))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ErrorRecord, Machine};

    /// Results of a GPU: kernels, each on one case with these samples, or failed if there are none.
    fn report(gpu: &str, rows: &[(&str, &[f64])]) -> Results {
        let row = |&(kernel, samples): &(&str, &[f64])| results::Row {
            kernel: kernel.into(),
            family: "copy".into(),
            case: "4096".into(),
            params: BTreeMap::new(),
            launch: None,
            bytes: 1,
            moved: None,
            verified: !samples.is_empty(),
            timed: match samples {
                [] => Err(ErrorRecord { kind: "verification".into(), message: String::new() }),
                _ => Ok(timing::timed(samples.to_vec(), L2::Cold, 1, None, None)),
            },
            hot: None,
        };
        Results {
            machine: Machine { name: gpu.into(), ..Machine::simulator() },
            ptx: PtxRecord { backend: None, target: None, source_hash: None },
            unfinished: false,
            rows: rows.iter().map(row).collect(),
        }
    }

    fn compared(reference: &Results, results: &Results) -> Result<Comparison, CompareError> {
        compare(("old.json", reference), ("new.json", results), 0.01)
    }

    #[test]
    fn a_difference_counts_if_the_samples_lie_apart() {
        let reference = [1.0, 0.9, 1.1, 1.0, 1.0];
        for (results, speed, verdict) in [
            (&[0.5, 0.5, 0.5, 0.6, 0.4][..], 2.0, Verdict::Faster),
            (&[2.0, 2.0, 2.0], 0.5, Verdict::Slower),
            (&[1.005, 1.005], 1.0 / 1.005, Verdict::Same),
            (&[0.8, 0.8, 1.2, 1.2], 1.0, Verdict::Same),
            (&[1.25, 1.25, 0.9, 1.25], 0.8, Verdict::Slower),
            (&[1.25, 0.9, 0.9, 1.25, 1.25], 0.8, Verdict::Ambiguous),
        ] {
            let comparison = compared(&report("A", &[("copy", &reference)]), &report("A", &[("copy", results)]));
            let row = &comparison.expect("a row").rows[0];
            assert_eq!((row.speed, row.verdict), (Some(speed), verdict), "{results:?}");
        }
    }

    #[test]
    fn rows_meet_by_kernel_and_case_and_none_is_lost() {
        let reference = report("A", &[("copy", &[1.0]), ("scatter", &[1.0]), ("gather", &[1.0]), ("broken", &[])]);
        let results = report("A", &[("gather", &[]), ("new", &[1.0]), ("broken", &[1.0]), ("copy", &[1.0])]);
        let comparison = compared(&reference, &results).expect("common rows");
        let rows: Vec<_> = comparison.rows.iter().map(|row| (row.kernel.as_str(), row.verdict)).collect();
        assert_eq!(rows, [("gather", Verdict::Failed), ("copy", Verdict::Same)]);
        assert_eq!((comparison.only_reference, comparison.only_results), (1, 2));
    }

    #[test]
    fn what_cannot_be_compared_is_refused_with_the_reason() {
        let a = report("A", &[("copy", &[1.0])]);
        for (results, says) in [
            (report("A", &[("copy", &[])]), "new.json holds no time"),
            (report("B", &[("copy", &[1.0])]), "old.json was measured on A and new.json on B"),
            (report("A", &[("gather", &[1.0])]), "no kernel and case in common"),
        ] {
            let error = compared(&a, &results).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
