//! Predictions beside what was measured, and how good they are.

use crate::cases::Run;
use crate::record::{LaunchRecord, Machine, param};
use crate::results::{self, Measurement};
use model::{Chip, FITTED_ON, NotPredicted, Prediction, Trust};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// A kernel on a case: what is predicted, and what was measured of it.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Row {
    /// The kernel.
    pub kernel: String,
    /// Its family.
    pub family: String,
    /// The case, as tables show it.
    pub case: String,
    /// The case, value by value.
    pub params: BTreeMap<String, serde_json::Value>,
    /// Bytes that must move, read plus written.
    pub bytes: u64,
    /// Whether its buffers are at least four times the L2.
    pub large: bool,
    /// What is predicted.
    #[serde(flatten)]
    pub prediction: Option<Prediction>,
    /// How far that is to be trusted.
    #[serde(flatten)]
    pub trust: Trust,
    /// Why nothing is predicted, if something is wrong with the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The time that was measured, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_ms: Option<f64>,
    /// The counters that were recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measured_counters: BTreeMap<String, f64>,
}

/// What was measured, by kernel, values of the case and launch.
#[derive(Default)]
pub struct Measured(BTreeMap<Key, (Option<f64>, BTreeMap<String, f64>)>);

type Key = (String, String, String);

fn key(kernel: &str, params: &BTreeMap<String, serde_json::Value>, launch: &LaunchRecord) -> Key {
    let values: Vec<_> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (kernel.to_owned(), values.join(" "), format!("{launch:?}"))
}

fn params(run: &Run) -> BTreeMap<String, serde_json::Value> {
    run.case.values.iter().map(|(name, value)| ((*name).to_owned(), param(*value))).collect()
}

/// Whether a machine can be the chip.
fn is_of(machine: &Machine, chip: &Chip) -> Result<(), String> {
    if machine.sm_count == chip.sm_count && machine.l2_bytes.is_none_or(|bytes| bytes == chip.l2_bytes) {
        return Ok(());
    }
    Err(format!(
        "it was measured on {} ({} SMs, {} bytes of L2), and the chip is {} ({}, {}): name the one that was \
         measured with --chip",
        machine.name,
        machine.sm_count,
        machine.l2_bytes.map_or("unknown".to_owned(), |bytes| bytes.to_string()),
        chip.name,
        chip.sm_count,
        chip.l2_bytes
    ))
}

impl Measured {
    /// Adds what `bench --json` or `profile --json` wrote of `chip`; says whether that run has not come to its end.
    ///
    /// # Errors
    /// If `text` is neither, anything in it makes no sense, or it was measured on a GPU with another number of SMs or another
    /// L2.
    pub fn add(&mut self, text: &str, chip: &Chip) -> Result<bool, String> {
        match results::measurement(text).map_err(|error| error.to_string())? {
            Measurement::Profile { machine, unfinished, rows } => {
                is_of(&machine, chip)?;
                for row in rows {
                    let key = key(&row.kernel, &row.params, &row.launch);
                    self.0.entry(key).or_default().1.extend(row.counters);
                }
                Ok(unfinished)
            }
            Measurement::Bench(results) => {
                is_of(&results.machine, chip)?;
                for row in results.rows {
                    if let (Some(launch), Ok(timed)) = (&row.launch, &row.timed) {
                        self.0.entry(key(&row.kernel, &row.params, launch)).or_default().0 = Some(timed.median_ms);
                    }
                }
                Ok(results.unfinished)
            }
        }
    }

    /// Whether anything was measured of a run.
    pub fn knows(&self, run: &Run) -> bool {
        self.0.contains_key(&key(run.kernel.name, &params(run), &run.plan.launch.into()))
    }

    /// The row of a run.
    pub fn row(&self, run: &Run, chip: &Chip, predicted: Result<Prediction, NotPredicted>) -> Row {
        let params = params(run);
        let known = self.0.get(&key(run.kernel.name, &params, &run.plan.launch.into())).cloned();
        let (measured_ms, measured_counters) = known.unwrap_or_default();
        let (prediction, trust, error) = match predicted {
            Ok(prediction) => (Some(prediction.clone()), prediction.trust, None),
            Err(NotPredicted::NotModelled(because)) => (None, Trust::none(because), None),
            Err(error) => (None, Trust::default(), Some(error.to_string())),
        };
        Row {
            kernel: run.kernel.name.to_owned(),
            family: run.family.name.to_owned(),
            case: run.case.to_string(),
            params,
            bytes: run.plan.bytes,
            large: run.plan.buffers.iter().map(gpu::suite::Buffer::bytes).sum::<u64>() >= 4 * chip.l2_bytes,
            prediction,
            trust,
            error,
            measured_ms,
            measured_counters,
        }
    }
}

impl Row {
    /// How far the predicted time is from the measured one, as a share of it.
    pub fn error_of_time(&self) -> Option<f64> {
        Some(self.prediction.as_ref()?.predicted_ms / self.measured_ms? - 1.0)
    }

    /// The same of what moved: L1 wavefronts of global loads, of the data or the tag stage, whichever are more; sectors read from the
    /// L2; sectors read from DRAM. None where nothing was recorded, too little to compare, or ambiguous counters.
    pub fn errors_of_traffic(&self) -> [Option<f64>; 3] {
        self.traffic().map(|moved| moved.map(error))
    }

    /// What moved, in the same order, as predicted and as counted.
    fn traffic(&self) -> [Option<[f64; 2]>; 3] {
        let traffic = self.prediction.as_ref().map(|prediction| prediction.traffic);
        let exactly = |name: &str| self.counter(name).map(|counted| counted..=counted);
        let beside = |predicted: Option<f64>, counted: Option<RangeInclusive<f64>>| {
            let (predicted, counted) = predicted.zip(counted.filter(|counted| *counted.start() >= LEAST))?;
            Some([predicted, predicted.clamp(*counted.start(), *counted.end())])
        };
        [
            beside(
                traffic.map(|traffic| traffic.l1_data_wavefronts.max(traffic.l1_tag_wavefronts)),
                self.l1_wavefronts().filter(|wavefronts| !is_ambiguous(wavefronts)),
            ),
            beside(traffic.map(|traffic| traffic.l2_read_sectors), exactly(L2_READS)),
            beside(traffic.map(|traffic| traffic.dram_read_sectors), exactly(DRAM_READS)),
        ]
    }

    /// L1 wavefronts of global loads, of the data or the tag stage, whichever are more, as far as the counters tell.
    ///
    /// A request that loses arbitration for the data stage is counted as another wavefront, and as a bank conflict by arbitration, in one
    /// counter for all kinds of access. Wavefronts of stores and of shared memory do not depend on the caches: what is counted beyond them
    /// was lost to arbitration, unless stores merged.
    fn l1_wavefronts(&self) -> Option<RangeInclusive<f64>> {
        let [data, writes, tags, of_loads, all, arbitration] =
            [DATA, WRITES, TAGS, CONFLICTS_OF_LOADS, CONFLICTS, ARBITRATION].map(|name| self.counter(name));
        let (data, of_loads, arbitration) = (data?, of_loads?, arbitration?);
        let traffic = self.prediction.as_ref()?.traffic;
        // Wavefronts of shared memory are counted with others that no access makes; its conflicts are not.
        let others = match traffic.shared_wavefronts {
            0.0 => writes? - traffic.store_wavefronts,
            _ => all? - of_loads - traffic.store_and_shared_bank_conflicts,
        };
        let waited = |others: f64| (arbitration - others.max(0.0)).clamp(0.0, of_loads);
        let [most, least] = [others, others + traffic.mergeable_store_wavefronts].map(waited);
        Some((data - most).max(tags?)..=(data - least).max(tags?))
    }

    fn counter(&self, name: &str) -> Option<f64> {
        self.measured_counters.get(name).copied()
    }
}

/// How far what is predicted is from what was counted, as a share of that.
fn error([predicted, counted]: [f64; 2]) -> f64 {
    predicted / counted - 1.0
}

/// Whether counters leave more open than the score's bound.
fn is_ambiguous(wavefronts: &RangeInclusive<f64>) -> bool {
    *wavefronts.end() > (1.0 + L1_BOUND) * wavefronts.start()
}

/// A count below this has more noise in it than the model could have error.
const LEAST: f64 = 100_000.0;

/// How far L1 wavefronts may be from what the counters say.
const L1_BOUND: f64 = 0.05;

const DATA: &str = "l1tex__data_pipe_lsu_wavefronts_mem_lgds_cmd_read.sum";
const WRITES: &str = "l1tex__data_pipe_lsu_wavefronts_mem_lgds_cmd_write.sum";
const TAGS: &str = "l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld.sum";
const CONFLICTS_OF_LOADS: &str = "l1tex__data_bank_conflicts_pipe_lsu_mem_gds_op_ld.sum";
const CONFLICTS: &str = "l1tex__data_bank_conflicts_pipe_lsu.sum";
const ARBITRATION: &str = "l1tex__data_bank_conflicts_type_arbitration.sum";
const L2_READS: &str = "lts__t_sectors_srcunit_tex_op_read.sum";
const DRAM_READS: &str = "dram__sectors_read.sum";

/// The counters that [`Row::errors_of_traffic`] compares with. Those of the L1's data are called so from compute capability 9.0
/// on; a GPU that has none of a name leaves it out.
pub const COUNTERS: [&str; 8] = [DATA, WRITES, TAGS, CONFLICTS_OF_LOADS, CONFLICTS, ARBITRATION, L2_READS, DRAM_READS];

/// Errors of predictions, in magnitude.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Errors {
    /// How many there are.
    pub count: usize,
    /// The median.
    pub median: f64,
    /// The worst.
    pub worst: f64,
    /// How many are within the bound.
    pub within: usize,
    /// The bound.
    pub bound: f64,
}

impl Errors {
    fn of(errors: impl Iterator<Item = f64>, bound: f64) -> Option<Self> {
        let mut errors: Vec<f64> = errors.map(f64::abs).collect();
        errors.sort_by(f64::total_cmp);
        let worst = *errors.last()?;
        let within = errors.iter().filter(|error| **error <= bound).count();
        Some(Self { count: errors.len(), median: crate::timing::quantile(&errors, 0.5), worst, within, bound })
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, median, worst, within, bound } = self;
        let [median, worst, bound] = [median, worst, bound].map(|share| 100.0 * share);
        write!(f, "median error {median:.1} %, worst {worst:.0} %, {within} of {count} within {bound:.0} %")
    }
}

/// Errors of what moved, in magnitude.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Moved {
    /// Of each launch.
    pub launches: Errors,
    /// Of each kernel, all its launches together.
    pub kernels: Errors,
}

impl Moved {
    /// Of one of the three that [`Row::errors_of_traffic`] tells of, in these rows.
    fn of<'a>(rows: impl Iterator<Item = &'a Row>, which: usize, bound: f64) -> Option<Self> {
        let (mut launches, mut kernels) = (Vec::new(), BTreeMap::<_, [f64; 2]>::new());
        for (row, moved) in rows.filter_map(|row| Some((row, row.traffic()[which]?))) {
            launches.push(error(moved));
            let sums = kernels.entry(&row.kernel).or_default();
            *sums = [sums[0] + moved[0], sums[1] + moved[1]];
        }
        let kernels = Errors::of(kernels.into_values().map(error), bound)?;
        Some(Self { launches: Errors::of(launches.into_iter(), bound)?, kernels })
    }
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of launches {}; of kernels {}", self.launches, self.kernels)
    }
}

/// How good predictions are.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Score {
    /// Times of the families that the constants were fitted to.
    pub time_fitted: Option<Errors>,
    /// Times of all others.
    pub time_others: Option<Errors>,
    /// Pairs of kernels of one family on one case whose measured times differ by more than 5 %, and how many of them are
    /// predicted in their order.
    pub ranking: Option<[usize; 2]>,
    /// L1 wavefronts of global loads.
    pub l1_wavefronts: Option<Moved>,
    /// Launches whose counters leave more of them open than the bound.
    pub l1_ambiguous: usize,
    /// Sectors read from the L2, of launches whose buffers are at least four times as large.
    pub l2_read_sectors: Option<Moved>,
    /// Sectors read from DRAM, of the same launches.
    pub dram_read_sectors: Option<Moved>,
}

impl Score {
    /// Of these rows.
    pub fn of(rows: &[Row]) -> Self {
        let times = |fitted: bool| {
            let rows = rows.iter().filter(move |row| FITTED_ON.contains(&row.family.as_str()) == fitted);
            Errors::of(rows.filter_map(Row::error_of_time), 0.30)
        };
        let large = |which| Moved::of(rows.iter().filter(|row| row.large), which, 0.10);
        Self {
            time_fitted: times(true),
            time_others: times(false),
            ranking: ranking(rows),
            l1_wavefronts: Moved::of(rows.iter(), 0, L1_BOUND),
            l1_ambiguous: rows.iter().filter_map(Row::l1_wavefronts).filter(is_ambiguous).count(),
            l2_read_sectors: large(1),
            dram_read_sectors: large(2),
        }
    }
}

/// Kernels that differ by less are as fast as each other.
const DIFFERENT: f64 = 1.05;

fn ranking(rows: &[Row]) -> Option<[usize; 2]> {
    let time = |row: &Row| Some((row.prediction.as_ref()?.predicted_ms, row.measured_ms?));
    let (mut right, mut pairs) = (0, 0);
    for (i, one) in rows.iter().enumerate() {
        let rivals = rows[i + 1..].iter().filter(|other| other.family == one.family && other.case == one.case);
        for (first, second) in rivals.filter_map(|other| time(one).zip(time(other))) {
            if (first.1 / second.1).max(second.1 / first.1) > DIFFERENT {
                pairs += 1;
                right += usize::from((first.0 < second.0) == (first.1 < second.1));
            }
        }
    }
    (pairs > 0).then_some([pairs, right])
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [fitted, others] =
            [self.time_fitted, self.time_others].map(|errors| errors.map(|errors| errors.to_string()));
        let [l1, l2, dram] = [self.l1_wavefronts, self.l2_read_sectors, self.dram_read_sectors]
            .map(|moved| moved.map(|moved| moved.to_string()));
        let parts = [
            (format!("time, families fitted to ({})", FITTED_ON.join(", ")), fitted),
            ("time, all others".to_owned(), others),
            ("wavefronts of global loads".to_owned(), l1),
            ("sectors read from the L2, buffers of at least four".to_owned(), l2),
            ("sectors read from DRAM, likewise".to_owned(), dram),
        ];
        for (what, errors) in parts {
            if let Some(errors) = errors {
                writeln!(f, "{what}: {errors}")?;
            }
        }
        if self.l1_ambiguous > 0 {
            let bound = 100.0 * L1_BOUND;
            writeln!(
                f,
                "wavefronts of global loads that the counters leave open by more than {bound} %: {}",
                self.l1_ambiguous
            )?;
        }
        if let Some([pairs, right]) = self.ranking {
            writeln!(f, "order of kernels more than 5 % apart: {right} of {pairs} pairs right")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Limit, Traffic};

    fn row(kernel: &str, predicted_ms: f64, measured_ms: f64) -> Row {
        Row {
            kernel: kernel.to_owned(),
            family: "matmul".to_owned(),
            case: "4".to_owned(),
            params: BTreeMap::new(),
            bytes: 1,
            large: true,
            prediction: Some(Prediction {
                predicted_ms,
                limit: Limit::Dram,
                limit_share: 0.9,
                traffic: Traffic {
                    l1_data_wavefronts: 1e6,
                    l1_tag_wavefronts: 2e6,
                    dram_read_sectors: 3e6,
                    ..Traffic::default()
                },
                blocks_per_sm: 8,
                replayed_share: 1.0,
                trust: Trust::default(),
            }),
            trust: Trust::default(),
            error: None,
            measured_ms: Some(measured_ms),
            measured_counters: COUNTERS.iter().map(|name| ((*name).to_owned(), 2e6)).collect(),
        }
    }

    #[test]
    fn errors_and_order_are_those_of_the_rows() {
        let score = Score::of(&[row("a", 1.0, 1.0), row("b", 2.0, 1.02), row("c", 3.0, 4.0)]);
        let others = score.time_others.expect("three times");
        assert_eq!((others.count, others.within), (3, 2));
        assert!((others.median - 0.25).abs() < 1e-9 && (others.worst - 0.96).abs() < 0.01, "{others:?}");
        assert_eq!(score.time_fitted, None);
        assert_eq!(score.ranking, Some([2, 2]), "a and b are as fast as each other");
        assert_eq!(
            score.l1_wavefronts.map(|errors| errors.launches.worst),
            Some(0.0),
            "more tag-stage than data-stage wavefronts"
        );
        assert_eq!(score.l1_ambiguous, 0);
        assert_eq!(score.l2_read_sectors.map(|errors| errors.launches.worst), Some(1.0), "none was predicted");
        assert_eq!(score.dram_read_sectors.map(|errors| errors.launches.within), Some(0));
        let wrong = Score::of(&[row("a", 2.0, 1.0), row("b", 1.0, 2.0)]);
        assert_eq!(wrong.ranking, Some([1, 0]));
    }

    #[test]
    fn a_kernels_launches_count_together() {
        let reads = |kernel: &str, dram_read_sectors: f64| {
            let mut row = row(kernel, 1.0, 1.0);
            row.prediction.as_mut().expect("was just made").traffic.dram_read_sectors = dram_read_sectors;
            row
        };
        // Two million were counted of each.
        let score = Score::of(&[reads("a", 2.4e6), reads("a", 1.8e6), reads("b", 1.7e6)]);
        let Moved { launches, kernels } = score.dram_read_sectors.expect("sectors were counted");
        assert_eq!((launches.count, launches.within, kernels.count, kernels.within), (3, 1, 2, 1));
        assert!((launches.worst - 0.2).abs() < 1e-9 && (kernels.worst - 0.15).abs() < 1e-9, "{score}");
        assert!((kernels.median - 0.1).abs() < 1e-9, "5 % too much of one and 15 % too little of the other");
        let said = "of launches median error 15.0 %, worst 20 %, 1 of 3 within 10 %; of kernels median error 10.0 %, worst 15 %, 1 of 2";
        assert!(score.to_string().contains(said), "{score}");
    }

    /// A row of which data-stage wavefronts of loads and of stores, tag-stage wavefronts, conflicts of loads, all conflicts and those by
    /// arbitration were counted.
    fn counted(counts: [f64; 6], traffic: Traffic) -> Row {
        let measured_counters =
            COUNTERS.iter().zip(counts).map(|(name, counted)| ((*name).to_owned(), counted)).collect();
        let mut row = Row { measured_counters, ..row("a", 1.0, 1.0) };
        row.prediction.as_mut().expect("was just made").traffic = Traffic { l1_data_wavefronts: 2e6, ..traffic };
        row
    }

    #[test]
    fn wavefronts_lost_to_arbitration_are_none_of_the_loads() {
        let alone = Traffic { store_wavefronts: 1e6, ..Traffic::default() };
        let wavefronts = |counts, traffic| counted(counts, traffic).l1_wavefronts().expect("all was counted");
        assert_eq!(wavefronts([2.5e6, 1e6, 1e6, 0.5e6, 0.5e6, 0.5e6], alone), 2e6..=2e6, "no store waited");
        assert_eq!(
            wavefronts([2.5e6, 1.25e6, 1e6, 0.5e6, 0.75e6, 0.75e6], alone),
            2e6..=2e6,
            "a quarter of the stores did"
        );
        assert_eq!(
            wavefronts([2.5e6, 1e6, 1e6, 1.5e6, 1.5e6, 0.5e6], alone),
            2e6..=2e6,
            "loads have conflicts of their own"
        );
        assert_eq!(
            wavefronts([2.5e6, 1e6, 2.2e6, 0.5e6, 0.5e6, 0.5e6], alone),
            2.2e6..=2.2e6,
            "more tag-stage wavefronts"
        );
        assert_eq!(wavefronts([2.5e6, 0.9e6, 1e6, 0.5e6, 0.7e6, 0.9e6], alone), 2e6..=2e6, "runs may differ");
        let together = Traffic { mergeable_store_wavefronts: 0.25e6, ..alone };
        assert_eq!(
            wavefronts([2.5e6, 1e6, 1e6, 0.5e6, 0.5e6, 0.5e6], together),
            2e6..=2.25e6,
            "stores that merged may have waited"
        );
        // Wavefronts of shared memory are not all made by accesses: its conflicts tell.
        let with_shared = Traffic { shared_wavefronts: 8e6, store_and_shared_bank_conflicts: 3e6, ..alone };
        assert_eq!(wavefronts([2.5e6, 9e6, 1e6, 0.5e6, 3.75e6, 0.75e6], with_shared), 2e6..=2e6);
        let lacking = Row { measured_counters: BTreeMap::new(), ..counted([0.0; 6], alone) };
        assert_eq!(lacking.l1_wavefronts(), None);
    }

    #[test]
    fn ambiguous_counters_are_not_scored() {
        let stores = Traffic { store_wavefronts: 1e6, ..Traffic::default() };
        let close = counted([2.2e6, 1e6, 1e6, 0.1e6, 0.1e6, 0.1e6], stores);
        assert!((close.errors_of_traffic()[0].expect("an error") + 0.1 / 2.1).abs() < 1e-9);
        let open =
            counted([2.5e6, 1e6, 1e6, 0.5e6, 0.5e6, 0.5e6], Traffic { mergeable_store_wavefronts: 0.25e6, ..stores });
        assert_eq!(open.errors_of_traffic()[0], None);
        let score = Score::of(&[close, open]);
        assert_eq!(
            (score.l1_wavefronts.map(|errors| (errors.launches.count, errors.launches.within)), score.l1_ambiguous),
            (Some((1, 1)), 1)
        );
        assert!(score.to_string().contains("leave open by more than 5 %: 1\n"), "{score}");
    }

    #[test]
    fn what_was_not_measured_is_refused() {
        let mut measured = Measured::default();
        let h200 = Chip::load("h200").expect("is built in");
        assert!(measured.add("{}", &h200).expect_err("no report").contains("not what `bench --json`"));
    }
}
