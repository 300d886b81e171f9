//! Files of results, read: what `bench` and `profile` measured on a GPU, checked once for whoever goes by it.

use crate::profile::Profiled;
use crate::provenance::Process;
use crate::record::{ErrorRecord, LaunchRecord, MOCK, Machine, PtxRecord, READ, Record, SCHEMA, typed};
use crate::timing;
use crate::timing::Timed;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What `bench` measured.
#[derive(Clone, Debug)]
pub struct Results {
    /// The GPU.
    pub machine: Machine,
    /// The build of the kernels.
    pub ptx: PtxRecord,
    /// Which process measured them, if a launcher started several.
    pub process: Option<Process>,
    /// Whether the run that wrote it has not come to its end.
    pub unfinished: bool,
    /// What came of each kernel on each case, no two of the same.
    pub rows: Vec<Row>,
}

/// What came of one kernel on one case.
#[derive(Clone, Debug)]
pub struct Row {
    /// The kernel.
    pub kernel: String,
    /// Its family; `library` for a row that is no kernel of ours.
    pub family: String,
    /// The case, as tables show it.
    pub case: String,
    /// The case, value by value.
    pub params: BTreeMap<String, Value>,
    /// Grid, block and dynamic shared memory; none for a row that is no kernel of ours.
    pub launch: Option<LaunchRecord>,
    /// Bytes that must move, read plus written.
    pub bytes: u64,
    /// Bytes that moved between the L2 and DRAM, where a profile counted them.
    pub moved: Option<u64>,
    /// Whether every element of every output was right.
    pub verified: bool,
    /// Its times, of which there is at least one, or what went wrong.
    pub timed: Result<Timed, ErrorRecord>,
    /// Its times with a hot L2, where they were measured beside those with a cold one.
    pub hot: Option<Timed>,
}

/// What `predict` is held to.
#[derive(Clone, Debug)]
pub enum Measurement {
    /// Times.
    Bench(Results),
    /// Counters.
    Profile {
        /// The GPU.
        machine: Machine,
        /// Whether the run that wrote it has not come to its end.
        unfinished: bool,
        /// What was counted of each kernel on each case.
        rows: Vec<Profiled>,
    },
}

/// Why a file holds no results.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// Something else.
    #[error("not what `{wanted} --json` writes: {reason}")]
    Other {
        /// Who writes such files.
        wanted: &'static str,
        /// What is missing or wrong.
        reason: String,
    },
    /// Of another layout.
    #[error("its schema is {0}, and this busload reads schemas 1 to {SCHEMA}: measure again, or take a newer busload")]
    Schema(u64),
    /// Written by a command that measures nothing.
    #[error("it holds no time: it is what `{command} --json` writes; give what `{wanted} --json` wrote on a GPU")]
    Command {
        /// The command.
        command: String,
        /// Who writes such files.
        wanted: &'static str,
    },
    /// Written where there is no GPU.
    #[error("it holds no time: it was simulated, and nothing in it was measured; give what a GPU was measured by")]
    Simulated,
    /// Made up by what stands for a GPU in tests.
    #[error("it holds no time that was measured: a mock made all of them up; give what a GPU was measured by")]
    Mock,
    /// What it says of the machine makes no sense.
    #[error("its machine: {0}")]
    Machine(String),
    /// A row makes no sense.
    #[error("row {number} ({name}): {problem}")]
    Row {
        /// Its number, from 1.
        number: usize,
        /// Kernel and case, as far as it says.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// A report of any command.
#[derive(Deserialize)]
struct Raw {
    schema: u64,
    command: String,
    #[serde(default)]
    machine: Value,
    #[serde(default)]
    ptx: Value,
    #[serde(default)]
    provenance: Origin,
    #[serde(default)]
    unfinished: bool,
    #[serde(default)]
    results: Vec<Value>,
}

/// What is read of where it comes from.
#[derive(Default, Deserialize)]
struct Origin {
    process: Option<Process>,
}

/// Milliseconds that a launch may take: from a nanosecond to eleven days.
pub(crate) const TIMES: std::ops::RangeInclusive<f64> = 1e-6..=1e9;

/// What `bench --json` wrote on a GPU, or on what stands for one: the machine's `kind` says so.
///
/// # Errors
/// If `text` is something else, or anything in it makes no sense.
pub fn bench(text: &str) -> Result<Results, ResultsError> {
    match measurement_of(text, "bench")? {
        Measurement::Bench(results) => Ok(results),
        Measurement::Profile { .. } => Err(ResultsError::Command { command: "profile".to_owned(), wanted: "bench" }),
    }
}

/// What `bench --json` or `profile --json` wrote on a GPU.
///
/// # Errors
/// If `text` is neither, or anything in it makes no sense.
pub fn measurement(text: &str) -> Result<Measurement, ResultsError> {
    match measurement_of(text, "bench --json` or `profile")? {
        Measurement::Bench(results) if results.machine.kind == MOCK => Err(ResultsError::Mock),
        measured => Ok(measured),
    }
}

fn measurement_of(text: &str, wanted: &'static str) -> Result<Measurement, ResultsError> {
    let other = |reason: String| ResultsError::Other { wanted, reason };
    let raw: Raw = serde_json::from_str(text).map_err(|error| other(error.to_string()))?;
    if !u32::try_from(raw.schema).is_ok_and(|schema| READ.contains(&schema)) {
        return Err(ResultsError::Schema(raw.schema));
    }
    let is_bench = match raw.command.as_str() {
        "bench" => true,
        "profile" => false,
        _ => return Err(ResultsError::Command { command: raw.command, wanted }),
    };
    let machine: Machine = typed(raw.machine).map_err(ResultsError::Machine)?;
    if !["gpu", MOCK].contains(&machine.kind.as_str()) {
        return Err(ResultsError::Simulated);
    }
    check_machine(&machine).map_err(ResultsError::Machine)?;
    let (unfinished, process, results) = (raw.unfinished, raw.provenance.process, raw.results);
    process.iter().try_for_each(check_process).map_err(other)?;
    if !is_bench {
        return Ok(Measurement::Profile { rows: each(results, counted)?, machine, unfinished });
    }
    let ptx = typed(raw.ptx).map_err(|reason| other(format!("ptx: {reason}")))?;
    let mut known = BTreeSet::new();
    let rows = each(results, |value| {
        let row = row(value, &machine)?;
        match known.insert((row.kernel.clone(), row.case.clone())) {
            true => Ok(row),
            false => Err("it stands twice".to_owned()),
        }
    })?;
    Ok(Measurement::Bench(Results { machine, ptx, process, unfinished, rows }))
}

/// The rows, each as `read` makes it.
fn each<T>(rows: Vec<Value>, mut read: impl FnMut(Value) -> Result<T, String>) -> Result<Vec<T>, ResultsError> {
    let row = |(i, value): (usize, Value)| {
        let part = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or("?").to_owned();
        let name = format!("{} on {}", part("kernel"), part("case"));
        read(value).map_err(|problem| ResultsError::Row { number: i + 1, name, problem })
    };
    rows.into_iter().enumerate().map(row).collect()
}

/// More SMs than any GPU has.
const MOST_SMS: u32 = 1 << 14;

/// More processes than any launcher starts.
const MOST_PROCESSES: u32 = 1 << 20;

fn check_process(process: &Process) -> Result<(), String> {
    let Process { rank, of, .. } = process;
    match rank < of && *of <= MOST_PROCESSES {
        true => Ok(()),
        false => Err(format!(
            "provenance.process: its rank is {rank} of {of}: ranks go from 0, and there are {MOST_PROCESSES} at most"
        )),
    }
}

/// What memory does in GB/s.
const SPEEDS: std::ops::RangeInclusive<f64> = 1e-6..=1e9;

/// More than is ever counted.
const MOST_COUNTED: f64 = 1e18;

fn check_machine(machine: &Machine) -> Result<(), String> {
    if machine.sm_count == 0 || machine.sm_count > MOST_SMS {
        return Err(format!("sm_count is {}: a GPU has 1 to {MOST_SMS}", machine.sm_count));
    }
    let speeds = [("peak_gbps", machine.peak_gbps), ("copy_gbps", machine.copy_gbps)];
    match speeds.into_iter().find(|(_, speed)| speed.is_some_and(|speed| !SPEEDS.contains(&speed))) {
        Some((name, speed)) => Err(format!("{name} is {}", speed.unwrap_or_default())),
        None => Ok(()),
    }
}

fn counted(value: Value) -> Result<Profiled, String> {
    let row: Profiled = typed(value)?;
    check_counters(&row.counters)?;
    Ok(row)
}

/// Counts that something can have.
pub(crate) fn check_counters(counters: &BTreeMap<String, f64>) -> Result<(), String> {
    match counters.iter().find(|(_, count)| !(0.0..=MOST_COUNTED).contains(*count)) {
        Some((name, count)) if *count < 0.0 => {
            Err(format!("{name} is {count}: nothing is counted less often than never"))
        }
        Some((name, count)) => {
            Err(format!("{name} is {count}: nothing is counted more often than {MOST_COUNTED:e} times"))
        }
        None => Ok(()),
    }
}

fn row(value: Value, machine: &Machine) -> Result<Row, String> {
    let record: Record = typed(value)?;
    if record.on != machine.kind {
        return Err(format!("it ran on `{}`, and the machine is `{}`", record.on, machine.kind));
    }
    if let Some(hot) = &record.hot {
        check_times(hot, record.bytes, machine.peak_gbps).map_err(|problem| format!("hot: {problem}"))?;
    }
    let timed = match (record.timed, record.error) {
        (Some(timed), None) => {
            check_times(&timed, record.bytes, machine.peak_gbps)?;
            Ok(timed)
        }
        (None, Some(error)) => Err(error),
        (Some(_), Some(error)) => return Err(format!("it has times beside an error ({})", error.kind)),
        (None, None) => return Err("it has neither times nor an error".to_owned()),
    };
    let Record { kernel, family, case, params, launch, bytes, moved, verified, hot, .. } = record;
    Ok(Row { kernel, family, case, params, launch, bytes, moved, verified, timed, hot })
}

/// Times that a launch can take, and statistics that are those of the samples.
fn check_times(timed: &Timed, bytes: u64, peak_gbps: Option<f64>) -> Result<(), String> {
    if timed.samples_ms.is_empty() {
        return Err("samples_ms is empty".to_owned());
    }
    if let Some((i, ms)) = timed.samples_ms.iter().enumerate().find(|(_, ms)| !TIMES.contains(ms)) {
        let (least, most) = TIMES.into_inner();
        return Err(format!("samples_ms[{i}] is {ms}: a launch takes {least:e} to {most:e} ms"));
    }
    let made = timing::timed(timed.samples_ms.clone(), timed.l2, bytes, None, peak_gbps);
    let noise = timed.noise.zip(made.noise).map(|(said, made)| ("noise", said, made));
    let of_peak = timed.share_of_peak.zip(made.share_of_peak).map(|(said, made)| ("share_of_peak", said, made));
    let statistics = [
        ("median_ms", timed.median_ms, made.median_ms),
        ("min_ms", timed.min_ms, made.min_ms),
        ("p5_ms", timed.p5_ms, made.p5_ms),
        ("p95_ms", timed.p95_ms, made.p95_ms),
        ("mad_ms", timed.mad_ms, made.mad_ms),
        ("spread", timed.spread, made.spread),
        ("gbps", timed.gbps, made.gbps),
    ];
    let differs = |said: f64, made: f64| (said - made).abs() > 1e-6 * made.abs().max(1e-6);
    if let Some((name, said, made)) =
        statistics.into_iter().chain(noise).chain(of_peak).find(|(_, said, made)| differs(*said, *made))
    {
        return Err(format!("{name} is {said}, and by its samples {made}"));
    }
    let [low, high] = timed.interval_ms;
    if !(made.min_ms <= low && low <= high && timed.samples_ms.iter().any(|ms| high <= *ms)) {
        return Err(format!("interval_ms is [{low}, {high}], which is no interval of its samples"));
    }
    let count = timed.samples_ms.len();
    if let Some(number) = timed.outliers.iter().find(|number| **number >= count) {
        return Err(format!("outliers has {number}, and there are {count} samples"));
    }
    if ![0, count].contains(&timed.sm_mhz.len()) {
        return Err(format!("sm_mhz has {} clocks, and there are {count} samples", timed.sm_mhz.len()));
    }
    let others = [("share_of_copy", timed.share_of_copy), ("cycles", timed.cycles)];
    match others.into_iter().find(|(_, value)| value.is_some_and(|value| !(0.0..=MOST_COUNTED).contains(&value))) {
        Some((name, value)) => Err(format!("{name} is {}", value.unwrap_or_default())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::L2;
    use serde_json::json;

    /// What `bench --json` writes: one row.
    fn report() -> Value {
        let timed =
            serde_json::to_value(timing::timed(vec![0.5, 0.25, 1.0], L2::Cold, 8_000_000, Some(20.0), Some(32.0)));
        let mut row = json!({
            "kernel": "copy_vec4", "family": "copy", "case": "1000000", "params": { "elements": 1_000_000 }, "on": "gpu",
            "launch": { "grid": [1, 1, 1], "block": [256, 1, 1], "shared_bytes": 0 }, "verified": true, "bytes": 8_000_000,
            "error": null,
        });
        row.as_object_mut().expect("an object").extend(timed.expect("JSON").as_object().expect("an object").clone());
        json!({
            "schema": 1, "command": "bench",
            "machine": {
                "kind": "gpu", "name": "A", "driver": null, "sm_count": 4, "l2_bytes": null, "compute_capability": null,
                "peak_gbps": 32.0, "copy_gbps": null,
            },
            "ptx": { "backend": null, "target": null, "source_hash": null },
            "results": [row],
        })
    }

    fn refused(report: &Value) -> String {
        bench(&report.to_string()).expect_err("it makes no sense").to_string()
    }

    #[test]
    fn what_bench_writes_is_read() {
        let results = bench(&report().to_string()).expect("it makes sense");
        let [row] = results.rows.as_slice() else { panic!("{results:?}") };
        assert_eq!((row.kernel.as_str(), row.bytes, row.verified), ("copy_vec4", 8_000_000, true));
        assert_eq!(row.timed.as_ref().map(|timed| timed.median_ms).ok(), Some(0.5));
        assert!(!results.unfinished);
        let mut killed = report();
        killed["unfinished"] = true.into();
        assert!(bench(&killed.to_string()).expect("it makes sense").unfinished);
    }

    #[test]
    fn a_process_is_one_of_as_many_as_there_can_be() {
        for (rank, of) in [(2, 2), (0, 50_000_000)] {
            let mut report = report();
            report["provenance"] = json!({ "process": { "rank": rank, "of": of, "local_rank": null, "host": "n" } });
            assert!(refused(&report).contains(&format!("its rank is {rank} of {of}")), "{}", refused(&report));
        }
    }

    /// Each fault in one field of the one row, and what is said of it.
    #[test]
    fn a_row_that_makes_no_sense_is_refused_by_its_name() {
        let long: Vec<f64> = vec![1e308; 3];
        for (field, value, says) in [
            ("samples_ms", json!([]), "samples_ms is empty"),
            ("samples_ms", json!([0.5, "0.25", 1.0]), "samples_ms[1]: invalid type: string \"0.25\""),
            ("samples_ms", json!([0.5, 0.0, 1.0]), "samples_ms[1] is 0: a launch takes 1e-6 to 1e9 ms"),
            ("samples_ms", json!([-0.5]), "samples_ms[0] is -0.5"),
            ("samples_ms", json!(long), "samples_ms[0] is 1000"),
            ("samples_ms", json!(null), "samples_ms: invalid type: null"),
            ("median_ms", json!(-1.0), "median_ms is -1, and by its samples 0.5"),
            ("median_ms", json!(0), "median_ms is 0, and by its samples 0.5"),
            ("min_ms", json!(0.5), "min_ms is 0.5, and by its samples 0.25"),
            ("spread", json!(0.0), "spread is 0, and by its samples 0.75"),
            ("gbps", json!(null), "gbps: invalid type: null"),
            ("gbps", json!(17.0), "gbps is 17, and by its samples 16"),
            ("share_of_peak", json!(1.0), "share_of_peak is 1, and by its samples 0.5"),
            ("share_of_copy", json!(-0.1), "share_of_copy is -0.1"),
            ("l2", json!("warm"), "l2: unknown variant `warm`"),
            ("on", json!("simulator"), "it ran on `simulator`"),
            ("error", json!({ "kind": "verification", "message": "" }), "it has times beside an error (verification)"),
            ("bytes", json!(-1), "bytes: invalid value: integer `-1`"),
        ] {
            let mut report = report();
            report["results"][0][field] = value;
            let said = refused(&report);
            assert!(said.starts_with("row 1 (copy_vec4 on 1000000): ") && said.contains(says), "{field}: {said}");
        }
        let mut twice = report();
        let row = twice["results"][0].clone();
        twice["results"].as_array_mut().expect("a list").push(row);
        assert_eq!(refused(&twice), "row 2 (copy_vec4 on 1000000): it stands twice");
        let mut empty = report();
        for field in ["samples_ms", "median_ms", "min_ms", "spread", "gbps"] {
            empty["results"][0].as_object_mut().expect("an object").remove(field);
            let said = refused(&empty);
            let says = if field == "gbps" { "neither times nor an error" } else { "missing field `samples_ms`" };
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        assert!(refused(&json!({})).starts_with("not what `bench --json` writes: missing field `schema`"));
        for (field, value, says) in [
            ("schema", json!(99), "its schema is 99, and this busload reads schemas 1 to 2"),
            ("command", json!("verify"), "it is what `verify --json` writes"),
            ("machine", json!(null), "its machine: "),
            ("ptx", json!(7), "ptx: "),
            ("results", json!({}), "not what `bench --json` writes: "),
        ] {
            let mut report = report();
            report[field] = value;
            let said = refused(&report);
            assert!(said.contains(says), "{field}: {said}");
        }
        for (field, value, says) in [
            ("kind", json!("simulator"), "it was simulated"),
            ("sm_count", json!(0), "its machine: sm_count is 0"),
            ("sm_count", json!(4_294_967_295u32), "its machine: sm_count is 4294967295: a GPU has 1 to 16384"),
            ("peak_gbps", json!(1e-320), "its machine: peak_gbps is 0.000"),
            ("peak_gbps", json!(-1.0), "its machine: peak_gbps is -1"),
            ("l2_bytes", json!("many"), "its machine: l2_bytes: invalid type: string \"many\""),
        ] {
            let mut report = report();
            report["machine"][field] = value;
            let said = refused(&report);
            assert!(said.contains(says), "{field}: {said}");
        }
    }

    #[test]
    fn counters_are_read_for_predictions_and_none_is_below_0() {
        let profile = |count: f64| {
            let row = json!({
                "kernel": "copy_vec4", "kernel_line": 1, "case": "4", "params": {}, "requests": [], "sites": [], "error": null,
                "launch": { "grid": [1, 1, 1], "block": [256, 1, 1], "shared_bytes": 0 },
                "counters": { "dram__sectors_read.sum": count },
            });
            let mut profile = report();
            profile["command"] = "profile".into();
            profile["results"] = json!([row]);
            profile.to_string()
        };
        let Ok(Measurement::Profile { rows, .. }) = measurement(&profile(7.0)) else { panic!("a profile") };
        assert_eq!(rows[0].counters["dram__sectors_read.sum"], 7.0);
        let said = measurement(&profile(-7.0)).expect_err("it makes no sense").to_string();
        assert!(said.starts_with("row 1 (copy_vec4 on 4): dram__sectors_read.sum is -7"), "{said}");
        assert!(bench(&profile(7.0)).expect_err("no times").to_string().contains("what `profile --json` writes"));
    }
}
