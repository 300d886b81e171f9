//! Many GPUs of one kind, measured alike: which of them are slow.
//!
//! Each case is judged against the same case on all other GPUs of that name. A GPU is an outlier in a case if its median is slower than
//! theirs by more than a share, and by more than noise explains: by its robust z-score, the distance from the median of all in units of the
//! median absolute deviation. With fewer than four GPUs deviations say nothing; then the share alone counts, from the fastest.

use crate::provenance::Process;
use crate::results::{Results, Row};
use crate::timing::{quantile, sorted};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a fleet is judged by.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Rules {
    /// An outlier is slower by more than this share.
    pub slower: f64,
    /// And has a robust z-score above this.
    pub z_score: f64,
}

impl Default for Rules {
    fn default() -> Self {
        // 3.5 is what Iglewicz and Hoaglin recommend for modified z-scores.
        Self { slower: 0.03, z_score: 3.5 }
    }
}

/// So many GPUs have deviations that say something.
const ENOUGH: usize = 4;

/// What makes the median absolute deviation of a normal distribution its standard deviation.
const NORMAL: f64 = 0.6745;

/// NVML's reasons for a lower clock that a healthy GPU does not have: its own protection, or that of the machine that it stands in.
const ALARMING: [&str; 4] = ["hw slowdown", "hw thermal slowdown", "hw power brake", "sw thermal slowdown"];

/// A fleet, judged.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Fleet {
    /// What it was judged by.
    pub rules: Rules,
    /// Its GPUs, the slowest of each kind first.
    pub gpus: Vec<Gpu>,
    /// How they rank on each kernel that several GPUs of a name were measured on; those first that tell them apart the most.
    pub kernels: Vec<Ranking>,
    /// Processes of the launcher that left no results.
    pub missing: Vec<u32>,
    /// Files of results of one and the same GPU.
    pub twice: Vec<[String; 2]>,
    /// What else differs between GPUs of one name, and may be why times do: a sentence each.
    pub differences: Vec<String>,
}

/// A GPU of a fleet.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Gpu {
    /// The file of its results.
    pub file: String,
    /// Its name.
    pub name: String,
    /// What tells it from others.
    pub id: Option<String>,
    /// Its number in its machine.
    pub device: Option<u32>,
    /// The process that measured it.
    pub process: Option<Process>,
    /// The geometric mean of its speeds over all cases, each relative to the median of the GPUs of its name: below 1 it is slower.
    pub speed: Option<f64>,
    /// The cases that it was measured on.
    pub cases: usize,
    /// Those in which it is an outlier, the slowest first.
    pub outliers: Vec<Outlier>,
    /// The cases that failed, and why.
    pub failed: Vec<String>,
    /// NVML's reasons for lower clocks after samples, and after how many cases.
    pub throttled: BTreeMap<String, usize>,
    /// Samples that were discarded since the clock was too low.
    pub discarded: u32,
    /// The highest temperature after a case, in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Whether its run has not come to its end.
    pub unfinished: bool,
}

/// A case in which a GPU is slower than the others.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Outlier {
    /// The kernel.
    pub kernel: String,
    /// The case.
    pub case: String,
    /// Its median, in milliseconds.
    pub ms: f64,
    /// The median of all GPUs of its name, or the fastest where they are few.
    pub others_ms: f64,
    /// Its robust z-score; none where the GPUs are few.
    pub z_score: Option<f64>,
}

/// How the GPUs of one name rank on a kernel.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Ranking {
    /// The kernel.
    pub kernel: String,
    /// The name of the GPUs.
    pub name: String,
    /// The GPUs, the slowest first.
    pub gpus: Vec<Place>,
}

/// A GPU's place on a kernel.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Place {
    /// The file of its results.
    pub file: String,
    /// The geometric mean of its speeds over the kernel's cases, each relative to the median of the GPUs of its name.
    pub speed: f64,
    /// In so many of the cases it is an outlier.
    pub outliers: usize,
}

impl Ranking {
    /// The slowest GPU and the fastest.
    #[must_use]
    pub fn ends(&self) -> Option<[&Place; 2]> {
        Some([self.gpus.first()?, self.gpus.last()?])
    }

    /// How many times as fast as the slowest the fastest is.
    #[must_use]
    pub fn apart(&self) -> f64 {
        self.ends().map_or(1.0, |[slowest, fastest]| fastest.speed / slowest.speed)
    }
}

impl Gpu {
    /// Its reasons for a lower clock that a healthy GPU does not have.
    pub fn alarms(&self) -> impl Iterator<Item = (&str, usize)> {
        let is_alarm = |(reason, _): &(&String, &usize)| ALARMING.contains(&reason.to_lowercase().as_str());
        self.throttled.iter().filter(is_alarm).map(|(reason, cases)| (reason.as_str(), *cases))
    }

    /// NVML's reasons for lower clocks, each with the number of cases, in words.
    #[must_use]
    pub fn throttled_by(&self) -> String {
        self.throttled.iter().map(|(reason, cases)| format!("{reason} ({cases})")).collect::<Vec<_>>().join(", ")
    }

    /// Whether somebody should look at it, in words.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        if self.is_suspect() { "look at it" } else { "well" }
    }

    /// Whether somebody should look at it.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        !self.outliers.is_empty()
            || !self.failed.is_empty()
            || self.cases == 0
            || self.unfinished
            || self.alarms().next().is_some()
    }
}

impl Fleet {
    /// Whether all is well.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.missing.is_empty() && self.twice.is_empty() && !self.gpus.iter().any(Gpu::is_suspect)
    }
}

/// Judges the results of GPUs, each with the name of its file.
#[must_use]
pub fn judge(all: &[(String, Results)], rules: Rules) -> Fleet {
    let mut times = BTreeMap::<_, Vec<f64>>::new();
    for (_, results) in all {
        for row in &results.rows {
            if let Ok(timed) = &row.timed {
                times.entry(key(results, row)).or_default().push(timed.median_ms);
            }
        }
    }
    let spreads: Spreads<'_> = times.into_iter().map(|(case, times)| (case, Spread::of(times))).collect();
    let mut gpus: Vec<_> = all.iter().map(|(file, results)| gpu(file, results, &spreads, rules)).collect();
    let speed = |gpu: &Gpu| gpu.speed.unwrap_or(0.0);
    gpus.sort_by(|a, b| a.name.cmp(&b.name).then(speed(a).total_cmp(&speed(b))).then(a.file.cmp(&b.file)));
    let processes: Vec<_> = all.iter().filter_map(|(_, results)| results.process.as_ref()).collect();
    let of = processes.iter().map(|process| process.of).max().unwrap_or(0);
    let missing = (0..of).filter(|rank| !processes.iter().any(|process| process.rank == *rank)).collect();
    let mut known = BTreeMap::new();
    let twice = gpus.iter().filter_map(|gpu| {
        let first = known.insert(gpu.id.as_ref()?, &gpu.file)?;
        Some([first.clone(), gpu.file.clone()])
    });
    let (twice, kernels) = (twice.collect(), rankings(all, &gpus, &spreads));
    Fleet { rules, missing, twice, differences: differences(all), kernels, gpus }
}

/// What was not the same on all GPUs of one name.
fn differences(all: &[(String, Results)]) -> Vec<String> {
    let mut known = BTreeMap::<_, BTreeMap<_, &str>>::new();
    for (file, results) in all {
        let machine = &results.machine;
        let first = results.rows.iter().find_map(|row| row.timed.as_ref().ok());
        let ptx = [&results.ptx.backend, &results.ptx.target, &results.ptx.source_hash];
        let ptx = ptx.map(|part| part.as_deref().unwrap_or("?").chars().take(16).collect::<String>());
        let said = [
            ("driver", machine.driver.clone()),
            ("PTX", Some(ptx.join(" "))),
            ("L2", first.map(|timed| format!("{:?}", timed.l2).to_lowercase())),
        ];
        for (what, value) in said {
            known
                .entry((&machine.name, what))
                .or_default()
                .entry(value.unwrap_or_else(|| "unknown".to_owned()))
                .or_insert(file);
        }
    }
    let several = known.into_iter().filter(|(_, values)| values.len() > 1);
    let sentence = |((name, what), values): ((&String, &str), BTreeMap<String, &str>)| {
        let values = values.into_iter().map(|(value, file)| format!("{value} ({file})")).collect::<Vec<_>>().join(", ");
        format!("Not the same {what} on all {name}: {values}.")
    };
    several.map(sentence).collect()
}

/// How the GPUs rank on each kernel.
fn rankings(all: &[(String, Results)], gpus: &[Gpu], spreads: &Spreads<'_>) -> Vec<Ranking> {
    let mut kernels = BTreeMap::<_, Vec<Place>>::new();
    for (file, results) in all {
        let name = results.machine.name.as_str();
        let mut speeds = BTreeMap::<_, Vec<f64>>::new();
        for row in &results.rows {
            if let Ok(timed) = &row.timed {
                let spread = &spreads[&key(results, row)];
                speeds.entry(row.kernel.as_str()).or_default().push(spread.median / timed.median_ms);
            }
        }
        let outliers = gpus.iter().find(|gpu| gpu.file == *file).map_or(&[][..], |gpu| &gpu.outliers);
        for (kernel, speeds) in speeds {
            let outliers = outliers.iter().filter(|outlier| outlier.kernel == kernel).count();
            let speed = geometric_mean(&speeds).expect("it has a case");
            kernels.entry((kernel, name)).or_default().push(Place { file: file.clone(), speed, outliers });
        }
    }
    let several = kernels.into_iter().filter(|(_, gpus)| gpus.len() > 1);
    let mut rankings: Vec<_> = several
        .map(|((kernel, name), mut gpus)| {
            gpus.sort_by(|a, b| a.speed.total_cmp(&b.speed));
            Ranking { kernel: kernel.to_owned(), name: name.to_owned(), gpus }
        })
        .collect();
    rankings.sort_by(|a, b| b.apart().total_cmp(&a.apart()));
    rankings
}

/// The geometric mean; none of nothing.
fn geometric_mean(speeds: &[f64]) -> Option<f64> {
    let logs: f64 = speeds.iter().map(|speed| speed.ln()).sum();
    (!speeds.is_empty()).then(|| (logs / speeds.len() as f64).exp())
}

/// How a case's times spread over the GPUs.
struct Spread {
    count: usize,
    median: f64,
    fastest: f64,
    deviation: f64,
}

impl Spread {
    fn of(times: Vec<f64>) -> Self {
        let times = sorted(times);
        let median = quantile(&times, 0.5);
        let deviations = sorted(times.iter().map(|time| (time - median).abs()).collect());
        Self { count: times.len(), median, fastest: times[0], deviation: quantile(&deviations, 0.5) }
    }

    /// What a time is held to, and its robust z-score.
    fn against(&self, ms: f64) -> (f64, Option<f64>) {
        if self.count < ENOUGH {
            return (self.fastest, None);
        }
        // Where more than half of the times are the same, any other is as far away as can be.
        (
            self.median,
            Some(NORMAL * (ms - self.median) / self.deviation.max(f64::MIN_POSITIVE)).map(|z| z.min(f64::MAX)),
        )
    }
}

/// What must be the same for times to be compared: the GPU's name, the kernel, the case, and the bytes that it moves.
type Key<'a> = (&'a str, &'a str, &'a str, u64);

fn key<'a>(results: &'a Results, row: &'a Row) -> Key<'a> {
    (&results.machine.name, &row.kernel, &row.case, row.bytes)
}

/// Spreads of times.
type Spreads<'a> = BTreeMap<Key<'a>, Spread>;

fn gpu<'a>(file: &str, results: &'a Results, spreads: &Spreads<'a>, rules: Rules) -> Gpu {
    let mut gpu = Gpu {
        file: file.to_owned(),
        name: results.machine.name.clone(),
        id: results.machine.id.clone(),
        device: results.machine.device,
        process: results.process.clone(),
        speed: None,
        cases: results.rows.len(),
        outliers: Vec::new(),
        failed: Vec::new(),
        throttled: BTreeMap::new(),
        discarded: 0,
        temperature_c: None,
        unfinished: results.unfinished,
    };
    let mut speeds = Vec::new();
    for row in &results.rows {
        let timed = match &row.timed {
            Ok(timed) => timed,
            Err(error) => {
                gpu.failed.push(format!("{} on {}: {}", row.kernel, row.case, error.kind));
                continue;
            }
        };
        let spread = &spreads[&key(results, row)];
        speeds.push(spread.median / timed.median_ms);
        let (others_ms, z_score) = spread.against(timed.median_ms);
        if timed.median_ms > others_ms * (1.0 + rules.slower) && z_score.is_none_or(|z| z > rules.z_score) {
            let (kernel, case) = (row.kernel.clone(), row.case.clone());
            gpu.outliers.push(Outlier { kernel, case, ms: timed.median_ms, others_ms, z_score });
        }
        gpu.discarded += timed.discarded;
        for reason in timed.state.iter().flat_map(|state| state.throttle.iter().flatten()) {
            *gpu.throttled.entry(reason.clone()).or_default() += 1;
        }
        let temperature = timed.state.as_ref().and_then(|state| state.temperature_c);
        gpu.temperature_c = gpu.temperature_c.max(temperature);
    }
    let slowness = |outlier: &Outlier| outlier.ms / outlier.others_ms;
    gpu.outliers.sort_by(|a, b| slowness(b).total_cmp(&slowness(a)));
    gpu.speed = geometric_mean(&speeds);
    gpu
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ErrorRecord, Machine, PtxRecord};
    use crate::sensors::State;
    use crate::timing::{L2, timed};

    /// Results of a GPU: what each of two kernels took.
    fn results(rank: u32, of: u32, times: [f64; 2]) -> (String, Results) {
        let row = |(kernel, ms): (&str, f64)| Row {
            kernel: kernel.into(),
            family: "copy".into(),
            moved: None,
            case: "4096".into(),
            params: BTreeMap::new(),
            launch: None,
            bytes: 1,
            verified: true,
            timed: Ok(timed(vec![ms], L2::Cold, 1, None, None)),
            hot: None,
        };
        let results = Results {
            machine: Machine { name: "A".into(), ..Machine::simulator() },
            ptx: PtxRecord { backend: None, target: None, source_hash: None },
            process: Some(Process { rank, of, local_rank: None, host: format!("n{}", rank / 2) }),
            unfinished: false,
            rows: [("copy", times[0]), ("gather", times[1])].map(row).into(),
        };
        (format!("{rank}.json"), results)
    }

    #[test]
    fn the_slow_gpu_of_many_is_the_one_that_noise_does_not_explain() {
        let times = [[1.0, 2.0], [1.01, 2.01], [0.99, 1.99], [1.0, 2.4], [1.02, 2.0], [0.98, 2.02]];
        let all: Vec<_> = times.into_iter().enumerate().map(|(rank, times)| results(rank as u32, 6, times)).collect();
        let fleet = judge(&all, Rules::default());
        let slow: Vec<_> = fleet.gpus.iter().filter(|gpu| gpu.is_suspect()).collect();
        let [slow] = &slow[..] else { panic!("{fleet:?}") };
        assert_eq!((slow.file.as_str(), fleet.gpus[0].file.as_str()), ("3.json", "3.json"), "the slowest stands first");
        let [outlier] = &slow.outliers[..] else { panic!("{slow:?}") };
        assert_eq!((outlier.kernel.as_str(), outlier.others_ms), ("gather", 2.005));
        // |2.4 - 2.005| over the median of the deviations 0.005, 0.005, 0.005, 0.015, 0.015, 0.395.
        let z = outlier.z_score.expect("six GPUs");
        assert!((z - NORMAL * 0.395 / 0.01).abs() < 1e-6, "{z}");
        assert!((slow.speed.expect("two cases") - (1.0f64 * (2.005 / 2.4)).sqrt()).abs() < 1e-9);
        assert!(!fleet.is_well());
        let kernels: Vec<_> = fleet.kernels.iter().map(|ranking| ranking.kernel.as_str()).collect();
        assert_eq!(kernels, ["gather", "copy"], "the kernel that tells the GPUs apart stands first");
        let [slowest, fastest] = fleet.kernels[0].ends().expect("six GPUs");
        assert_eq!((slowest.file.as_str(), slowest.outliers, fastest.file.as_str()), ("3.json", 1, "2.json"));
        assert!((fleet.kernels[0].apart() - 2.4 / 1.99).abs() < 1e-9);
        assert_eq!(fleet.kernels[1].gpus[0].outliers, 0);
    }

    #[test]
    fn what_lies_close_together_is_no_outlier_whatever_its_z_score() {
        let all: Vec<_> = (0..8).map(|rank| results(rank, 8, [if rank == 3 { 1.02 } else { 1.0 }, 2.0])).collect();
        assert!(judge(&all, Rules::default()).is_well(), "2 % is not slow");
        let strict = judge(&all, Rules { slower: 0.01, ..Rules::default() });
        assert_eq!(strict.gpus.iter().filter(|gpu| gpu.is_suspect()).count(), 1);
    }

    #[test]
    fn of_two_gpus_the_slower_one_is_held_to_the_faster() {
        let fleet = judge(&[results(0, 2, [1.0, 2.0]), results(1, 2, [1.1, 2.02])], Rules::default());
        let [slow, fast] = &fleet.gpus[..] else { panic!("{fleet:?}") };
        assert_eq!((slow.file.as_str(), slow.outliers.len(), fast.outliers.len()), ("1.json", 1, 0));
        assert_eq!((slow.outliers[0].others_ms, slow.outliers[0].z_score), (1.0, None));
    }

    #[test]
    fn a_gpu_that_protects_itself_fails_or_leaves_nothing_is_told_of() {
        let state = |reason: &str| Some(State { throttle: Some(vec![reason.into()]), ..State::default() });
        let with = |change: &dyn Fn(&mut Results)| {
            let (file, mut results) = results(0, 1, [1.0, 2.0]);
            change(&mut results);
            judge(&[(file, results)], Rules::default())
        };
        let set = |reason: &'static str| {
            move |results: &mut Results| results.rows[0].timed.as_mut().expect("times").state = state(reason)
        };
        assert!(with(&|_| ()).is_well());
        assert!(with(&set("SW power cap")).is_well(), "a load that takes all the power is no fault");
        assert!(!with(&set("HW thermal slowdown")).is_well());
        assert!(!with(&|results| results.unfinished = true).is_well());
        let failed = with(&|results| {
            results.rows[1].timed = Err(ErrorRecord { kind: "launch".into(), message: String::new() });
        });
        assert_eq!(failed.gpus[0].failed, ["gather on 4096: launch"]);
        let mut same = [results(0, 2, [1.0, 2.0]), results(1, 2, [1.0, 2.0])];
        same.iter_mut().for_each(|(_, results)| results.machine.id = Some("abcd".into()));
        let fleet = judge(&same, Rules::default());
        assert_eq!(fleet.twice, [["0.json", "1.json"]]);
        assert!(!fleet.is_well());
        let (file, alone) = results(2, 4, [1.0, 2.0]);
        assert_eq!(judge(&[(file, alone)], Rules::default()).missing, [0, 1, 3]);
    }
}
