//! What plots are made of: files of results, put together by kernel and case.

mod asked;

pub use asked::Asked;

use crate::predict;
use crate::predict::Prediction;
use crate::record::{Machine, Record, Report, typed};
use crate::results::{self, Measurement, Results};
use crate::suite::Suite;
use crate::timing::{L2, Timed};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What the files hold.
#[derive(Clone, Debug, Default)]
pub struct Material {
    /// What was measured: a file each.
    pub series: Vec<Series>,
    /// What was predicted: a file each.
    pub forecasts: Vec<Forecast>,
    /// Each kernel on each case, in the order of the suite.
    pub subjects: Vec<Subject>,
    /// The files whose runs have not come to their end.
    pub unfinished: Vec<String>,
}

/// A file of times.
#[derive(Clone, Debug)]
pub struct Series {
    /// What its figures are called: no two series are called the same.
    pub label: String,
    /// The GPU.
    pub machine: Machine,
    /// The compiler of the kernels' PTX.
    pub backend: Option<String>,
    /// Bytes read and written by copies of the driver, and their speed in GB/s.
    pub copies: Vec<[f64; 2]>,
}

/// A file of predictions.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// The chip.
    pub chip: String,
    /// The series that was measured on such a chip.
    pub series: Option<usize>,
}

/// A kernel on a case.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The kernel, or a routine of a library beside it.
    pub kernel: String,
    /// Its family.
    pub family: String,
    /// The case, as tables show it.
    pub case: String,
    /// The case, value by value.
    pub params: BTreeMap<String, Value>,
    /// Bytes that must move, read plus written.
    pub bytes: u64,
    /// What it asks of global memory; none if nobody says.
    pub asked: Option<Asked>,
    /// Its times, by series.
    pub measured: Vec<Option<Timed>>,
    /// What is predicted of it, by forecast.
    pub predicted: Vec<Option<Prediction>>,
    /// Bytes that the hardware counted between the L2 and DRAM, by series.
    pub moved: Vec<Option<f64>>,
}

/// A file that plots cannot be made of.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct MaterialError {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The beginning of a report.
#[derive(Deserialize)]
struct Head {
    command: String,
    #[serde(default)]
    machine: Value,
    #[serde(default)]
    unfinished: bool,
}

/// What `predict --json` writes.
#[derive(Deserialize)]
struct Predictions {
    chip: String,
    results: Vec<predict::Row>,
}

/// Times that a launch can take, and counts that something can have.
fn check(row: &predict::Row) -> Result<(), String> {
    let predicted = row.prediction.as_ref().map(|prediction| ("predicted_ms", prediction.predicted_ms));
    let times = predicted.into_iter().chain(row.measured_ms.map(|ms| ("measured_ms", ms)));
    for (name, ms) in times {
        if !results::TIMES.contains(&ms) {
            let (least, most) = results::TIMES.into_inner();
            return Err(format!("{name} is {ms}: a launch takes {least:e} to {most:e} ms"));
        }
    }
    results::check_counters(&row.measured_counters)
}

/// A kernel and a case.
type Key = (String, String);

/// The counters of what moves between the L2 and DRAM, in sectors.
const DRAM: [&str; 2] = ["dram__sectors_read.sum", "dram__sectors_write.sum"];

impl Material {
    /// What these files hold, each with its name and its text.
    ///
    /// # Errors
    /// If one of them is not what `bench`, `simulate`, `predict` or `profile` writes, or anything in it makes no sense.
    pub fn read(suite: &Suite, files: &[(String, String)]) -> Result<Self, MaterialError> {
        let mut gathered = Gathered::default();
        for (file, text) in files {
            gathered.add(file, text).map_err(|reason| MaterialError { file: file.clone(), reason })?;
        }
        Ok(gathered.put_together(suite))
    }

    /// The kernels of a family on their cases.
    pub(crate) fn of_family<'a>(&'a self, family: &'a str) -> impl Iterator<Item = &'a Subject> + Clone {
        self.subjects.iter().filter(move |subject| subject.family == family)
    }

    /// The families in their order.
    pub(crate) fn families(&self) -> Vec<&str> {
        let mut families: Vec<&str> = Vec::new();
        for subject in &self.subjects {
            if !families.contains(&subject.family.as_str()) {
                families.push(&subject.family);
            }
        }
        families
    }
}

/// What was read so far.
#[derive(Default)]
struct Gathered {
    benches: Vec<(String, Results)>,
    predictions: Vec<Predictions>,
    profiles: Vec<(Machine, Vec<crate::profile::Profiled>)>,
    simulated: BTreeMap<Key, Asked>,
    unfinished: Vec<String>,
}

impl Gathered {
    fn add(&mut self, file: &str, text: &str) -> Result<(), String> {
        let no_report = |error: serde_json::Error| format!("it is no report of busload: {error}");
        let head: Head = serde_json::from_str(text).map_err(no_report)?;
        let is_simulated = head.machine.get("kind").is_some_and(|kind| kind == "simulator" || kind == "ptx");
        match head.command.as_str() {
            "bench" if !is_simulated => {
                let results = results::bench(text).map_err(|error| error.to_string())?;
                let hot = with_hot_l2(&results);
                self.benches.push((file.to_owned(), results));
                self.benches.extend(hot.map(|results| (file.to_owned(), results)));
            }
            "profile" => match results::measurement(text).map_err(|error| error.to_string())? {
                Measurement::Profile { machine, rows, .. } => self.profiles.push((machine, rows)),
                Measurement::Bench(_) => unreachable!("its command is `profile`"),
            },
            "predict" => {
                let predictions: Predictions = typed(serde_json::from_str(text).map_err(no_report)?)?;
                for (i, row) in predictions.results.iter().enumerate() {
                    check(row)
                        .map_err(|problem| format!("row {} ({} on {}): {problem}", i + 1, row.kernel, row.case))?;
                }
                self.predictions.push(predictions);
            }
            "simulate" | "bench" => {
                let report: Report = typed(serde_json::from_str(text).map_err(no_report)?)?;
                self.simulated.extend(report.results.iter().filter_map(counted));
            }
            other => {
                return Err(format!(
                    "it is what `{other} --json` writes: give what `bench`, `simulate`, `predict` or `profile` wrote"
                ));
            }
        }
        if head.unfinished {
            self.unfinished.push(file.to_owned());
        }
        Ok(())
    }

    fn put_together(self, suite: &Suite) -> Material {
        let labels = labels(&self.benches);
        let names: Vec<_> = self.benches.iter().map(|(_, results)| results.machine.name.clone()).collect();
        let forecasts: Vec<_> = self.predictions.iter().map(|of| Forecast::new(&of.chip, &names)).collect();
        let mut series = Vec::new();
        let mut known = Subjects { all: BTreeMap::new(), lengths: [names.len(), forecasts.len()] };
        for (place, ((_, results), label)) in self.benches.iter().zip(labels).enumerate() {
            let mut copies = Vec::new();
            for (number, row) in results.rows.iter().enumerate() {
                let Ok(timed) = &row.timed else { continue };
                if row.family == "library" && row.params.is_empty() {
                    copies.push([row.bytes as f64, timed.gbps]);
                    continue;
                }
                // A library's routine stands before the kernel that it is measured beside.
                let beside = results.rows[number..].iter().find(|row| row.family != "library");
                let family = beside.map_or(row.family.as_str(), |row| row.family.as_str());
                let subject = known.subject(&row.kernel, family, &row.case, &row.params, row.bytes);
                subject.measured[place] = Some(timed.clone());
                subject.moved[place] = row.moved.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64);
            }
            copies.sort_by(|a, b| a[0].total_cmp(&b[0]));
            let backend = results.ptx.backend.clone();
            series.push(Series { label, machine: results.machine.clone(), backend, copies });
        }
        for (place, predictions) in self.predictions.iter().enumerate() {
            for row in &predictions.results {
                let subject = known.subject(&row.kernel, &row.family, &row.case, &row.params, row.bytes);
                subject.predicted[place] = row.prediction.clone();
                if let Some(series) = forecasts[place].series {
                    subject.moved[series] = moved(&row.measured_counters).or(subject.moved[series]);
                }
            }
        }
        for (machine, rows) in &self.profiles {
            for row in rows {
                let subject = known.all.get_mut(&(row.kernel.clone(), row.case.clone()));
                let (Some(subject), Some(bytes)) = (subject, moved(&row.counters)) else { continue };
                let of_gpu = names.iter().zip(&mut subject.moved).filter(|(name, _)| **name == machine.name);
                of_gpu.for_each(|(_, moved)| *moved = Some(bytes));
            }
        }
        let sm_count = self.benches.first().map_or(crate::record::SIMULATED_SM_COUNT, |(_, of)| of.machine.sm_count);
        let mut subjects: Vec<_> = known.all.into_values().collect();
        for subject in &mut subjects {
            let key = (subject.kernel.clone(), subject.case.clone());
            subject.asked = Asked::stated(suite, subject, sm_count).or(self.simulated.get(&key).copied());
        }
        let order: Vec<_> = suite.entries().map(|(_, entry)| entry.kernel.name).collect();
        let families: Vec<_> = suite.families.iter().map(|family| family.name).collect();
        subjects.sort_by_cached_key(|subject| {
            let place =
                |names: &[&str], name: &str| names.iter().position(|other| *other == name).unwrap_or(names.len());
            (
                place(&families, &subject.family),
                subject.family.clone(),
                values(&subject.params),
                place(&order, &subject.kernel),
            )
        });
        Material { series, forecasts, subjects, unfinished: self.unfinished }
    }
}

/// The times with a hot L2 that stand beside those with a cold one: a series of their own.
fn with_hot_l2(results: &Results) -> Option<Results> {
    let rows = results.rows.iter().filter_map(|row| {
        let timed = row.hot.clone().or_else(|| row.timed.as_ref().ok().filter(|_| row.launch.is_none()).cloned())?;
        Some(results::Row { timed: Ok(timed), hot: None, moved: None, ..row.clone() })
    });
    let is_hot = results.rows.iter().any(|row| row.hot.is_some());
    is_hot.then(|| Results { rows: rows.collect(), ..results.clone() })
}

/// The values of a case as what they are ordered by: numbers by their size.
fn values(params: &BTreeMap<String, Value>) -> Vec<(String, u64, String)> {
    let number = |value: &Value| value.as_u64().or_else(|| value.get(0)?.as_u64()).unwrap_or_default();
    params.iter().map(|(name, value)| (name.clone(), number(value), value.to_string())).collect()
}

/// The subjects that are known so far.
struct Subjects {
    all: BTreeMap<Key, Subject>,
    /// How many series there are, and how many forecasts.
    lengths: [usize; 2],
}

impl Subjects {
    fn subject(
        &mut self,
        kernel: &str,
        family: &str,
        case: &str,
        params: &BTreeMap<String, Value>,
        bytes: u64,
    ) -> &mut Subject {
        let [series, forecasts] = self.lengths;
        self.all.entry((kernel.to_owned(), case.to_owned())).or_insert_with(|| Subject {
            kernel: kernel.to_owned(),
            family: family.to_owned(),
            case: case.to_owned(),
            params: params.clone(),
            bytes,
            asked: None,
            measured: vec![None; series],
            predicted: vec![None; forecasts],
            moved: vec![None; series],
        })
    }
}

/// What a record of the simulator counted, with its key.
fn counted(record: &Record) -> Option<(Key, Asked)> {
    Some(((record.kernel.clone(), record.case.clone()), Asked::simulated(record.simulated.as_ref()?)))
}

/// Bytes that counters say moved between the L2 and DRAM.
fn moved(counters: &BTreeMap<String, f64>) -> Option<f64> {
    let [read, written] = DRAM.map(|name| counters.get(name).copied());
    Some(32.0 * (read? + written?)).filter(|bytes| *bytes > 0.0)
}

impl Forecast {
    fn new(chip: &str, machines: &[String]) -> Self {
        // Names of machines go on where those of chips end, as in `NVIDIA H100 80GB HBM3`.
        let model = |name: &str| name.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>();
        let series = machines.iter().position(|machine| model(machine) == model(chip));
        Self { chip: short(chip), series }
    }
}

impl Subject {
    /// The bandwidth by a predicted time, in GB/s.
    pub(crate) fn predicted_gbps(&self, forecast: usize) -> Option<f64> {
        Some(self.bytes as f64 / self.predicted[forecast].as_ref()?.predicted_ms / 1e6)
    }

    /// The bandwidth of the driver's copy of as many bytes, in GB/s, by series.
    pub(crate) fn copy_gbps(&self, series: usize) -> Option<f64> {
        let timed = self.measured[series].as_ref()?;
        Some(timed.gbps / timed.share_of_copy.filter(|share| *share > 0.0)?)
    }

    /// The bandwidth to expect if each sector that is asked for came from memory at the speed of the driver's copy.
    pub(crate) fn expected_gbps(&self, series: usize) -> Option<f64> {
        Some(self.copy_gbps(series)? * self.asked?.used_of_sectors(self.bytes)?.min(1.0))
    }
}

/// A GPU's name without its maker's.
fn short(name: &str) -> String {
    name.strip_prefix("NVIDIA ").unwrap_or(name).to_owned()
}

/// What the files are called: by their GPUs; where that tells them not apart, by their builds too, or by their names.
fn labels(benches: &[(String, Results)]) -> Vec<String> {
    let gpu = |results: &Results| {
        let of_kernels = results.rows.iter().filter(|row| row.launch.is_some());
        let hot = of_kernels.filter_map(|row| row.timed.as_ref().ok()).any(|timed| timed.l2 == L2::Hot);
        short(&results.machine.name) + if hot { ", L2 hot" } else { "" }
    };
    let stem = |file: &str| {
        let path = std::path::Path::new(file);
        path.file_stem().map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned())
    };
    let build = |(file, results): &(String, Results)| results.ptx.backend.clone().unwrap_or_else(|| stem(file));
    let by = [
        benches.iter().map(|(_, results)| gpu(results)).collect::<Vec<_>>(),
        benches.iter().map(|bench| format!("{}, {}", gpu(&bench.1), build(bench))).collect(),
        benches.iter().map(|(file, results)| format!("{}, {}", gpu(results), stem(file))).collect(),
        benches.iter().map(|(file, results)| format!("{}, {file}", gpu(results))).collect(),
    ];
    let are_distinct = |labels: &&Vec<String>| (1..labels.len()).all(|n| !labels[..n].contains(&labels[n]));
    let numbered = || by[3].iter().enumerate().map(|(n, label)| format!("{label} ({})", n + 1)).collect();
    by.iter().find(are_distinct).cloned().unwrap_or_else(numbered)
}

impl Material {
    /// The number that a forecast's colour goes by: that of the series of its chip, or one after all series.
    pub(crate) fn ink_of(&self, forecast: usize) -> usize {
        self.forecasts[forecast].series.unwrap_or(self.series.len() + forecast)
    }
}
