//! Compares results files of one GPU, row by row: how fast, relative to a reference, and whether noise or the clock explains it.

use crate::record::{Machine, PtxRecord};
use crate::results::{self, Results};
use crate::timing::{self, L2, Timed};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Reports side by side.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Comparison {
    /// The GPU of all of them.
    pub gpu: String,
    /// What the speeds are relative to.
    pub reference: Source,
    /// What is compared with it: at least one.
    pub results: Vec<Source>,
    /// The share by which a speed may be off 1 and still be called the same.
    pub tolerance: f64,
    /// What else differs, and may be why times do.
    pub warnings: Vec<String>,
    /// The cases that the reference has a time of and some of the results hold, in the order of the first results that do.
    pub rows: Vec<Row>,
    /// How many timed cases the reference alone has.
    pub only_reference: usize,
}

/// Where a report is from.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Source {
    /// The file.
    pub file: String,
    /// The CUDA version that the driver supports.
    pub driver: Option<String>,
    /// The build of the kernels.
    pub ptx: PtxRecord,
    /// What the L2 held before each sample.
    pub l2: L2,
    /// The median clock of the SMs over all samples, in MHz; none if it was not read.
    pub sm_mhz: Option<f64>,
    /// Whether the run that wrote it has not come to its end.
    pub unfinished: bool,
    /// How many timed cases it has that the reference does not.
    pub only: usize,
}

/// A kernel on a case, measured several times.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Row {
    /// The kernel.
    pub kernel: String,
    /// The case.
    pub case: String,
    /// The reference's median, in milliseconds; none if it has no time of a case that failed in some of the results.
    pub reference_ms: Option<f64>,
    /// What each of the results has of it, in their order; none of those that do not hold the case.
    pub results: Vec<Option<Against>>,
}

/// What results have of a case, against the reference.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Against {
    /// The median, in milliseconds; none if the case failed.
    pub ms: Option<f64>,
    /// The reference's median over it: above 1 the results are faster.
    pub speed: Option<f64>,
    /// The same in cycles of the SMs, where both clocks were read and differ.
    pub speed_in_cycles: Option<f64>,
    /// What that means.
    pub verdict: Verdict,
}

/// What the samples of a row say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The medians are as good as equal.
    Same,
    /// The medians differ, and the middle halves of the samples overlap.
    Ambiguous,
    /// The medians differ, and in cycles they do not: the clock of the SMs was another.
    Clock,
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
            Self::Clock => "clock",
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Failed => "failed",
        }
    }
}

/// Reports that cannot be compared.
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
    /// What is called the same is another case.
    #[error(
        "{kernel} on {case} moves {reference_bytes} bytes in {reference} and {results_bytes} in {results}: these are different cases; \
         measure both with one busload"
    )]
    Cases {
        /// The kernel.
        kernel: String,
        /// The case, as both call it.
        case: String,
        /// The reference's file.
        reference: String,
        /// The bytes that must move there.
        reference_bytes: u64,
        /// The results' file.
        results: String,
        /// The bytes that must move here.
        results_bytes: u64,
    },
}

impl Comparison {
    /// Whether a case failed, or takes longer by more than this share: than the tolerance, if it is 0.
    #[must_use]
    pub fn is_worse(&self, share: f64) -> bool {
        self.rows.iter().flat_map(|row| row.results.iter().flatten()).any(|against| match against.verdict {
            Verdict::Failed => true,
            Verdict::Slower => against.speed.is_some_and(|speed| speed < 1.0 / (1.0 + share)),
            _ => false,
        })
    }
}

/// Compares reports, each with the name of its file, with a reference. There is at least one.
///
/// # Errors
/// If there is nothing to compare, or it is not comparable.
pub fn compare(
    (reference_file, reference): (&str, &Results),
    all: &[(&str, &Results)],
    tolerance: f64,
) -> Result<Comparison, CompareError> {
    let timed: BTreeMap<_, _> =
        reference.rows.iter().filter_map(|row| Some((key(row), (row, row.timed.as_ref().ok()?)))).collect();
    let (mut rows, mut places) = (Vec::<Row>::new(), BTreeMap::new());
    let (mut sources, mut warnings) = (Vec::new(), BTreeSet::new());
    let reference_source = source(reference_file, reference)?;
    for (number, &(file, results)) in all.iter().enumerate() {
        let mut own = source(file, results)?;
        if reference.machine.name != results.machine.name {
            return Err(CompareError::Gpus {
                reference: reference_file.to_owned(),
                reference_gpu: reference.machine.name.clone(),
                results: file.to_owned(),
                results_gpu: results.machine.name.clone(),
            });
        }
        let mut common = 0;
        for result in &results.rows {
            let mut place = |reference_ms| {
                *places.entry(key(result)).or_insert_with(|| {
                    let (kernel, case) = (result.kernel.clone(), result.case.clone());
                    rows.push(Row { kernel, case, reference_ms, results: vec![None; all.len()] });
                    rows.len() - 1
                })
            };
            let Some((row, reference_timed)) = timed.get(&key(result)) else {
                match result.timed {
                    Ok(_) => own.only += 1,
                    // What failed is told, whether the reference has it or not.
                    Err(_) => {
                        let place = place(None);
                        rows[place].results[number] = Some(FAILED);
                    }
                }
                continue;
            };
            if row.bytes != result.bytes {
                return Err(CompareError::Cases {
                    kernel: row.kernel.clone(),
                    case: row.case.clone(),
                    reference: reference_file.to_owned(),
                    reference_bytes: row.bytes,
                    results: file.to_owned(),
                    results_bytes: result.bytes,
                });
            }
            let place = place(Some(reference_timed.median_ms));
            rows[place].results[number] = Some(against(reference_timed, result, tolerance));
            common += 1;
        }
        if common == 0 {
            return Err(CompareError::NothingCommon { reference: reference_file.to_owned(), results: file.to_owned() });
        }
        warnings.extend(differences(&reference_source, &reference.machine, &own, &results.machine));
        sources.push(own);
    }
    Ok(Comparison {
        gpu: reference.machine.name.clone(),
        only_reference: timed.len() - rows.iter().filter(|row| row.reference_ms.is_some()).count(),
        reference: reference_source,
        results: sources,
        tolerance,
        warnings: warnings.into_iter().collect(),
        rows,
    })
}

fn source(file: &str, report: &Results) -> Result<Source, CompareError> {
    let mut times = report.rows.iter().filter_map(|row| row.timed.as_ref().ok()).peekable();
    let first = times.peek().ok_or_else(|| CompareError::NoTimes { file: file.to_owned() })?;
    Ok(Source {
        file: file.to_owned(),
        driver: report.machine.driver.clone(),
        ptx: report.ptx.clone(),
        l2: first.l2,
        sm_mhz: median(times.flat_map(|timed| &timed.sm_mhz)),
        unfinished: report.unfinished,
        only: 0,
    })
}

fn median<'a>(clocks: impl Iterator<Item = &'a u32>) -> Option<f64> {
    let sorted = timing::sorted(clocks.map(|mhz| f64::from(*mhz)).collect());
    (!sorted.is_empty()).then(|| timing::quantile(&sorted, 0.5))
}

/// Clocks further apart than this share are different ones.
const CLOCKS: f64 = 0.01;

fn are_apart(a: f64, b: f64) -> bool {
    (a / b).max(b / a) > 1.0 + CLOCKS
}

/// What differs between two runs besides their times.
fn differences(reference: &Source, reference_on: &Machine, own: &Source, on: &Machine) -> Vec<String> {
    let of = |machine: &Machine| {
        let nvml = machine.nvml.clone().unwrap_or_default();
        let driver = nvml.driver_version.or_else(|| machine.driver.clone());
        let watts = nvml.power_limit_w.map(|watts| format!("{watts} W"));
        [driver, watts, nvml.ecc.map(|on| if on { "on" } else { "off" }.to_owned())]
    };
    let mut said = Vec::new();
    let mut differ = |what: &str, ours: Option<String>, theirs: Option<String>| {
        if let (Some(ours), Some(theirs)) = (ours, theirs)
            && ours != theirs
        {
            said.push(format!("{what}: {ours} in {}, {theirs} in {}", reference.file, own.file));
        }
    };
    for ((what, ours), theirs) in [("driver", 0), ("power limit", 1), ("ECC", 2)]
        .map(|(what, i)| (what, of(reference_on)[i].clone()))
        .into_iter()
        .zip(of(on))
    {
        differ(what, ours, theirs);
    }
    differ("PTX back end", reference.ptx.backend.clone(), own.ptx.backend.clone());
    differ("PTX target", reference.ptx.target.clone(), own.ptx.target.clone());
    let l2 = |l2: L2| Some(if l2 == L2::Cold { "cold" } else { "hot" }.to_owned());
    differ("L2", l2(reference.l2), l2(own.l2));
    if let (Some(ours), Some(theirs)) = (reference.sm_mhz, own.sm_mhz)
        && are_apart(ours, theirs)
    {
        differ("median SM clock", Some(format!("{ours:.0} MHz")), Some(format!("{theirs:.0} MHz")));
    }
    said
}

fn key(row: &results::Row) -> (&str, &str) {
    (&row.kernel, &row.case)
}

const FAILED: Against = Against { ms: None, speed: None, speed_in_cycles: None, verdict: Verdict::Failed };

fn against(reference: &Timed, row: &results::Row, tolerance: f64) -> Against {
    let Ok(timed) = &row.timed else { return FAILED };
    let speed = reference.median_ms / timed.median_ms;
    let clocks = median(reference.sm_mhz.iter()).zip(median(timed.sm_mhz.iter()));
    let speed_in_cycles = clocks.filter(|(a, b)| are_apart(*a, *b)).map(|(a, b)| speed * a / b);
    let in_time = judge(reference, timed, speed, tolerance);
    let verdict = match (in_time, speed_in_cycles) {
        // A difference that the clock alone makes is none of the kernel's.
        (Verdict::Faster, Some(cycles)) if cycles <= 1.0 + tolerance => Verdict::Clock,
        (Verdict::Slower, Some(cycles)) if cycles >= 1.0 / (1.0 + tolerance) => Verdict::Clock,
        _ => in_time,
    };
    Against { ms: Some(timed.median_ms), speed: Some(speed), speed_in_cycles, verdict }
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
            process: None,
            unfinished: false,
            rows: rows.iter().map(row).collect(),
        }
    }

    fn compared(reference: &Results, results: &Results) -> Result<Comparison, CompareError> {
        compare(("old.json", reference), &[("new.json", results)], 0.01)
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
            let against = comparison.expect("a row").rows[0].results[0].expect("a time");
            assert_eq!((against.speed, against.verdict), (Some(speed), verdict), "{results:?}");
        }
    }

    #[test]
    fn rows_meet_by_kernel_and_case_and_none_is_lost() {
        let reference = report("A", &[("copy", &[1.0]), ("scatter", &[1.0]), ("gather", &[1.0]), ("broken", &[])]);
        let results = report("A", &[("gather", &[]), ("new", &[1.0]), ("broken", &[1.0]), ("copy", &[1.0])]);
        let comparison = compared(&reference, &results).expect("common rows");
        let verdict = |row: &Row| row.results[0].map(|against| against.verdict);
        let rows: Vec<_> = comparison.rows.iter().map(|row| (row.kernel.as_str(), verdict(row))).collect();
        assert_eq!(rows, [("gather", Some(Verdict::Failed)), ("copy", Some(Verdict::Same))]);
        assert_eq!((comparison.only_reference, comparison.results[0].only), (1, 2));
        assert!(comparison.is_worse(0.05), "a case that failed is worse");
    }

    #[test]
    fn several_results_are_a_matrix() {
        let reference = report("A", &[("copy", &[1.0]), ("gather", &[1.0]), ("scatter", &[1.0])]);
        let (one, two) = (report("A", &[("gather", &[0.5])]), report("A", &[("copy", &[2.0]), ("gather", &[1.02])]));
        let compared =
            compare(("old.json", &reference), &[("one.json", &one), ("two.json", &two)], 0.01).expect("rows");
        let verdicts = |row: &Row| row.results.iter().map(|against| against.map(|it| it.verdict)).collect::<Vec<_>>();
        let rows: Vec<_> = compared.rows.iter().map(|row| (row.kernel.as_str(), verdicts(row))).collect();
        let (faster, slower) = (Some(Verdict::Faster), Some(Verdict::Slower));
        assert_eq!(rows, [("gather", vec![faster, slower]), ("copy", vec![None, slower])]);
        assert_eq!(compared.only_reference, 1);
        assert!(compared.is_worse(0.9) && !compared.is_worse(1.0), "it takes twice as long and no longer");
    }

    #[test]
    fn a_difference_that_only_the_clock_makes_is_not_the_kernels() {
        let clocked = |ms: f64, mhz: u32| {
            let mut results = report("A", &[("copy", &[ms, ms])]);
            if let Ok(timed) = &mut results.rows[0].timed {
                timed.sm_mhz = vec![mhz; 2];
            }
            results
        };
        let reference = clocked(1.0, 1800);
        for (results, verdict, warned) in [
            (clocked(1.2, 1500), Verdict::Clock, true),
            (clocked(2.0, 1500), Verdict::Slower, true),
            (clocked(0.9, 2000), Verdict::Clock, true),
            (clocked(1.2, 1800), Verdict::Slower, false),
        ] {
            let compared = compared(&reference, &results).expect("a row");
            assert_eq!(compared.rows[0].results[0].map(|against| against.verdict), Some(verdict));
            assert_eq!(compared.warnings.iter().any(|said| said.contains("MHz")), warned, "{:?}", compared.warnings);
        }
    }

    #[test]
    fn what_else_differs_is_said() {
        let mut results = report("A", &[("copy", &[1.0])]);
        let reference = results.clone();
        assert_eq!(compared(&reference, &reference).expect("a row").warnings, [""; 0]);
        results.machine.driver = Some("13.1".into());
        results.ptx.backend = Some("nvvm".into());
        let mut reference = reference;
        reference.machine.driver = Some("13.0".into());
        reference.ptx.backend = Some("llvm".into());
        assert_eq!(
            compared(&reference, &results).expect("a row").warnings,
            ["PTX back end: llvm in old.json, nvvm in new.json", "driver: 13.0 in old.json, 13.1 in new.json"]
        );
        results.rows[0].bytes = 2;
        let refused = compared(&reference, &results).expect_err("another case").to_string();
        assert!(refused.starts_with("copy on 4096 moves 1 bytes in old.json and 2 in new.json"), "{refused}");
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
