//! Measuring without a GPU: statistics beside scipy's, and `bench --on mock`, whatever ends it.
#![cfg(target_os = "linux")]

use busload::measure::{Sample, Sampling, Series, Timer, measure};
use busload::record::{Record, Report};
use busload::stop::Stop;
use busload::timing::{L2, Stopped, timed};
use busload_tests::root;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What `statistics/figures.py` wrote.
fn figures() -> Value {
    let text = std::fs::read_to_string(root().join("tests/tests/statistics/figures.json"));
    serde_json::from_str(&text.expect("figures of scipy")).expect("JSON")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * other.abs().max(1e-3)
}

#[test]
fn statistics_are_those_of_scipy() {
    let figures = figures();
    let rows = figures["statistics"].as_array().expect("a list");
    assert!(rows.len() > 5);
    for row in rows {
        let (name, samples) = (&row["name"], numbers(&row["samples_ms"]));
        let timed = timed(samples.clone(), L2::Cold, 1, None, None);
        for (field, value) in [
            ("median_ms", timed.median_ms),
            ("min_ms", timed.min_ms),
            ("p5_ms", timed.p5_ms),
            ("p95_ms", timed.p95_ms),
            ("mad_ms", timed.mad_ms),
            ("spread", timed.spread),
            ("noise", timed.noise.expect("several samples")),
        ] {
            let scipys = row[field].as_f64().expect(field);
            assert!(is_near(value, scipys), "{name} {field}: {value}, and by scipy {scipys}");
        }
        assert_eq!(json!(timed.outliers), row["outliers"], "{name}");
        // Both draw at random, scipy fifty times as often: an end may be the sample beside, or lie between two.
        let mut ascending = samples;
        ascending.sort_by(f64::total_cmp);
        for (end, scipys) in timed.interval_ms.into_iter().zip(numbers(&row["interval_ms"])) {
            let place = |value: f64| ascending.iter().filter(|sample| **sample < value).count();
            assert!(
                place(end).abs_diff(place(scipys)) <= 1 + ascending.len() / 100,
                "{name}: {end}, and by scipy {scipys}"
            );
        }
    }
}

/// Hands out a list.
struct List(std::vec::IntoIter<f64>);

impl Timer for List {
    type Error = Infallible;

    fn sample(&mut self, _: L2) -> Result<Sample, Infallible> {
        Ok(Sample { ms: self.0.next().expect("more than it takes"), sm_mhz: None, ticks: None })
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn recover(&mut self) {}
}

#[test]
fn rules_stop_where_they_do_by_scipys_figures() {
    let figures = figures();
    let rows = figures["rules"].as_array().expect("a list");
    assert!(rows.len() > 5);
    for row in rows {
        let stop = Stop::ALL.into_iter().find(|stop| row["stop"] == stop.name()).expect("a rule");
        let sampling = Sampling { stop, warm_up: 0, ..Sampling::DEFAULT };
        let mut list = List(numbers(&row["samples_ms"]).into_iter());
        let taken = measure(&sampling, L2::Cold, None, &mut list).expect("samples");
        assert_eq!(
            json!([taken.samples.len(), taken.stopped]),
            json!([row["count"], row["stopped"]]),
            "{}",
            row["name"]
        );
    }
}

#[test]
fn results_of_schema_1_have_the_same_statistics() {
    let text = std::fs::read_to_string(root().join("results/nvidia-h100/bench.json")).expect("results of a GPU");
    let report: Report = serde_json::from_str(&text).expect("a report");
    assert_eq!(report.schema, 1);
    let rows: Vec<_> = report.results.iter().filter_map(|record| record.timed.as_ref()).collect();
    assert!(rows.len() > 200);
    for row in rows {
        let made = timed(row.samples_ms.clone(), row.l2, 1, None, None);
        assert_eq!((row.p5_ms, row.p95_ms, row.mad_ms), (made.p5_ms, made.p95_ms, made.mad_ms));
        assert_eq!((row.interval_ms, row.noise, &row.outliers), (made.interval_ms, made.noise, &made.outliers));
        assert_eq!((row.stopped, row.discarded), (None, 0));
    }
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_busload-under-test");

/// Some kernels, each on one case.
const KERNELS: &str = "^(copy|transpose|reduce)_";

/// `bench` of them on a mock.
fn bench(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).args(["bench", "--on", "mock", "-k", KERNELS]).args(arguments);
    command
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for temporary files")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What came of a command that must end with `status`.
#[track_caller]
fn ended(mut command: Command, status: i32) -> Output {
    let output = command.output().expect("a program");
    assert_eq!(output.status.code(), Some(status), "{command:?}: {}", said(&output));
    assert!(!said(&output).contains("panicked"), "{command:?}: {}", said(&output));
    output
}

/// The report in a file, which must be whole.
#[track_caller]
fn report(file: &Path) -> Report {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The results of a report as text, each on its own.
fn results(report: &Report) -> Vec<String> {
    report.results.iter().map(|record| serde_json::to_string(record).expect("JSON")).collect()
}

/// The report of a run that nothing ends.
fn undisturbed(arguments: &[&str]) -> Report {
    let folder = folder();
    ended(bench(folder.path(), &[arguments, &["--json", "out.json"]].concat()), 0);
    report(&folder.path().join("out.json"))
}

fn is_kernel(record: &Record) -> bool {
    record.family != "library"
}

#[test]
fn kernels_that_a_named_ptx_lacks_are_left_out_and_said() {
    let folder = folder();
    let entry = |name: &str| format!(".visible .entry {name}()\n{{\n\tret;\n}}\n");
    let head = ".version 7.0\n.target sm_80\n.address_size 64\n";
    std::fs::write(folder.path().join("some.ptx"), head.to_owned() + &entry("copy_vec4") + &entry("reduce_vec4_block"))
        .expect("a file");
    std::fs::write(folder.path().join("none.ptx"), head.to_owned() + &entry("other")).expect("a file");
    let output = ended(bench(folder.path(), &["--ptx", "some.ptx", "--json", "out.json"]), 0);
    assert!(said(&output).contains("some.ptx has 2 of the "), "{}", said(&output));
    let report = report(&folder.path().join("out.json"));
    let mut kernels: Vec<_> = report.results.iter().filter(|record| is_kernel(record)).map(|it| &it.kernel).collect();
    kernels.dedup();
    assert_eq!(kernels, ["copy_vec4", "reduce_vec4_block"]);
    let output = ended(bench(folder.path(), &["--ptx", "none.ptx"]), 2);
    assert!(
        said(&output).contains("none.ptx: it has none of the kernels asked for: copy_coalesced"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_librarys_routine_is_measured_once_a_case_beside_however_many_kernels() {
    let folder = folder();
    let sizes = ["--shape", "64,96x32", "--depth", "32"];
    let run = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.current_dir(folder.path()).args(arguments);
        ended(command, 0)
    };
    run(&[&["bench", "--on", "mock", "-k", "^(sgemm|matmul|transpose)_", "--json", "out.json"], &sizes[..]].concat());
    let all = report(&folder.path().join("out.json"));
    let of = |kernel: &str| all.results.iter().filter(|record| record.kernel == kernel).count();
    assert_eq!([of("cublasSgemm"), of("cublasSgeam"), of("sgemm_vec4_shared")], [2, 2, 2]);
    // No row stands twice, so the file is read.
    run(&["compare", "out.json", "out.json"]);
}

#[test]
fn a_mock_says_that_it_is_one_and_nobody_takes_its_times_for_measured() {
    let folder = folder();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.current_dir(folder.path()).args(arguments);
        command
    };
    let output = ended(bench(folder.path(), &["--json", "mock.json"]), 0);
    let table = String::from_utf8(output.stdout).expect("text");
    let first = table.split(" kernel ").next().unwrap_or_default();
    assert!(first.starts_with("A mock: nothing was launched, nothing is verified"), "{table}");
    assert_eq!(table.lines().filter(|line| line.chars().count() > 100).count(), 0, "{table}");
    let made_up = report(&folder.path().join("mock.json"));
    assert_eq!((made_up.machine.kind.as_str(), made_up.unfinished), ("mock", false));
    assert!(made_up.results.iter().filter(|record| is_kernel(record)).count() > 10);
    for record in &made_up.results {
        assert!(record.on == "mock" && !record.verified && record.timed.is_some(), "{record:?}");
    }
    let real = root().join("results/nvidia-h200/bench.json").display().to_string();
    for (arguments, reason) in [
        (
            &["predict", "-k", "^copy_vec4$", "--elements", "64", "--measured", "mock.json"][..],
            "a mock made all of them up",
        ),
        (&["claims", "--results", "mock.json"], "a mock made all of them up"),
        (&["compare", &real, "mock.json"], "compare results of one GPU"),
        (&["compare", "mock.json", &real], "compare results of one GPU"),
    ] {
        let output = ended(run(arguments), 2);
        assert!(said(&output).contains(reason) && output.stdout.is_empty(), "{arguments:?}: {output:?}");
    }
    ended(run(&["compare", "mock.json", "mock.json"]), 0);
    assert_eq!(results(&made_up), results(&undisturbed(&[])), "times are the same for the same seed");
    assert_ne!(results(&made_up), results(&undisturbed(&["--mock", "seed=1"])));
}

/// A number that is different each time.
fn any(below: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish() % below
}

/// Killed at 100 moments, run after run going on with what the one before left.
#[test]
fn a_run_that_is_killed_at_any_moment_loses_no_finished_result() {
    let expected = undisturbed(&[]);
    let (all, folder) = (results(&expected), folder());
    let [file, log] = ["out.json", "log"].map(|name| folder.path().join(name));
    let (mut kept, mut partial, mut through) = (0, 0, 0);
    for round in 0..100 {
        let log_of_round = format!("pace=100,log=log{round}");
        let mut child = bench(folder.path(), &["--resume", "out.json", "--mock", &log_of_round])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a program");
        std::thread::sleep(Duration::from_millis(any(250)));
        child.kill().expect("it is there");
        let status = child.wait().expect("it ran");
        let began = std::fs::read_to_string(folder.path().join(format!("log{round}"))).unwrap_or_default();
        // The turn of the last came when those before it had finished.
        let finished = began.lines().count().saturating_sub(1);
        let now = if file.exists() { results(&report(&file)) } else { Vec::new() };
        assert!(all.starts_with(&now), "round {round}: what is kept is not what an undisturbed run finds");
        let kernels = |results: &[String]| results.iter().filter(|record| !record.contains("\"library\"")).count();
        assert!(kernels(&now) >= kernels(&all[..kept]) + finished, "round {round}: {finished} had finished");
        partial += usize::from(!now.is_empty() && now.len() < all.len());
        kept = now.len();
        if kept == all.len() {
            through += usize::from(status.success());
            std::fs::remove_file(&file).expect("a file");
            kept = 0;
        }
    }
    assert!(partial > 20, "{partial} of 100 rounds ended in the middle");
    ended(bench(folder.path(), &["--resume", "out.json"]), 0);
    let ends = report(&file);
    assert_eq!((results(&ends), ends.unfinished), (all, false), "after {through} whole runs");
    assert_eq!(ends.machine.copy_gbps, expected.machine.copy_gbps);
    assert!(!log.exists());
    // And once more there is nothing left to do.
    ended(bench(folder.path(), &["--resume", "out.json", "--mock", "log=again"]), 0);
    assert_eq!(results(&report(&file)), results(&ends));
    assert!(!folder.path().join("again").exists(), "no kernel had a turn");
}

/// Starts a slow run, and waits until it has a result of a kernel.
fn started(folder: &Path, mock: &str) -> std::process::Child {
    let mut command = bench(folder, &["--json", "out.json", "--mock", mock]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a program");
    let begun = Instant::now();
    while std::fs::read_to_string(folder.join("out.json")).map_or(true, |text| !text.contains("copy_coalesced")) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is written");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn signal(child: &std::process::Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(status.expect("kill").success());
}

#[test]
fn a_run_that_is_asked_to_end_says_how_to_go_on() {
    for (name, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        let folder = folder();
        let child = started(folder.path(), "pace=2000");
        signal(&child, name);
        let output = child.wait_with_output().expect("it ran");
        // What a shell makes 128 + N of.
        assert_eq!(output.status.signal(), Some(number), "{output:?}");
        let hint = "what finished is in";
        assert!(said(&output).contains(hint) && said(&output).contains("--resume"), "{output:?}");
        let kept = report(&folder.path().join("out.json"));
        assert!(kept.unfinished && kept.results.iter().any(is_kernel), "{}", kept.results.len());
        assert_eq!(folder.path().read_dir().expect("the folder").count(), 1, "nothing else is left");
    }
    let folder = folder();
    let script = format!(
        "{PROGRAM} bench --on mock -k '{KERNELS}' --mock pace=2000 --json out.json & sleep 1; kill -TERM $!; wait $!"
    );
    let status = Command::new("bash").current_dir(folder.path()).args(["-c", &script]).output().expect("bash").status;
    assert_eq!(status.code(), Some(143));
}

#[test]
fn after_a_fault_the_other_cases_run_in_a_child_and_one_that_is_killed_costs_its_case_alone() {
    let folder = folder();
    let expected = undisturbed(&[]);
    let faults = "fault=copy_vec2,die=transpose_tiled";
    let output = ended(bench(folder.path(), &["--json", "out.json", "--mock", faults]), 1);
    let found = report(&folder.path().join("out.json"));
    assert_eq!(found.results.len(), expected.results.len(), "{output:?}");
    for (record, other) in found.results.iter().zip(&expected.results) {
        let kind = record.error.as_ref().map(|error| error.kind.as_str());
        match record.kernel.as_str() {
            "copy_vec2" => assert_eq!(kind, Some("launch")),
            "transpose_tiled" => {
                assert_eq!(kind, Some("process"));
                let message = &record.error.as_ref().expect("an error").message;
                assert!(message.contains("signal: 9"), "{message}");
            }
            _ => assert_eq!(serde_json::to_string(record).ok(), serde_json::to_string(other).ok()),
        }
    }
    // Those that failed are finished; what is gone on with ends as it did.
    ended(bench(folder.path(), &["--resume", "out.json"]), 1);
    assert_eq!(results(&report(&folder.path().join("out.json"))), results(&found));
}

#[test]
fn the_child_after_a_fault_ends_with_its_parent() {
    for how in ["-TERM", "-KILL"] {
        let folder = folder();
        let child = started(folder.path(), "pace=2000,fault=copy_coalesced,log=log");
        let lines = || std::fs::read_to_string(folder.path().join("log")).map_or(0, |log| log.lines().count());
        let begun = Instant::now();
        while lines() < 3 {
            assert!(begun.elapsed() < Duration::from_secs(60), "no child runs");
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(&child, how);
        child.wait_with_output().expect("it ran");
        let kept = report(&folder.path().join("out.json"));
        assert!(kept.results.iter().filter(|record| is_kernel(record)).count() >= 2, "the child's results are lost");
        // One whose parent is gone ends when it tells of its next case.
        std::thread::sleep(Duration::from_millis(500));
        let then = lines();
        std::thread::sleep(Duration::from_millis(1000));
        assert_eq!(lines(), then, "{how}: the child goes on");
    }
}

#[test]
fn only_the_same_measurement_is_gone_on_with() {
    let folder = folder();
    ended(bench(folder.path(), &["--json", "out.json"]), 0);
    let whole = std::fs::read_to_string(folder.path().join("out.json")).expect("a report");
    let refused = |arguments: &[&str], reason: &str| {
        let output = ended(bench(folder.path(), arguments), 2);
        assert!(said(&output).contains(reason) && output.stdout.is_empty(), "{arguments:?}: {output:?}");
        assert_eq!(
            std::fs::read_to_string(folder.path().join("out.json")).ok().as_ref(),
            Some(&whole),
            "it is left alone"
        );
    };
    refused(&["--resume", "out.json", "--samples", "7"], "it is of samples taken by");
    refused(&["--resume", "out.json", "--hot"], "it is of samples taken by");
    refused(&["--resume", "out.json", "--mock", "devices=2", "--device", "1"], "it is of the GPU with the id");
    refused(&["--resume", "out.json", "--json", "other.json"], "cannot be used with");
    let h200 = root().join("results/nvidia-h200/bench.json").display().to_string();
    refused(&["--resume", &h200], "it is of the GPU NVIDIA H200, and this is busload mock GPU");
    let mut other: Value = serde_json::from_str(&whole).expect("JSON");
    other["ptx"]["source_hash"] = "0".into();
    std::fs::write(folder.path().join("other.json"), other.to_string()).expect("a file");
    refused(&["--resume", "other.json"], "it is of kernels with the hash 0");
    std::fs::write(folder.path().join("torn.json"), &whole[..whole.len() / 2]).expect("a file");
    refused(&["--resume", "torn.json"], "torn.json: not what `bench --json` writes");
    // Other kernels are added to those that are there.
    let mut more = Command::new(PROGRAM);
    more.current_dir(folder.path()).args(["bench", "--on", "mock", "-k", "^strided_", "--resume", "out.json"]);
    ended(more, 0);
    let both = report(&folder.path().join("out.json"));
    assert!(results(&both).starts_with(&results(&serde_json::from_str(&whole).expect("a report"))));
    assert!(both.results.iter().any(|record| record.kernel == "strided_read"));
}

#[test]
fn samples_are_as_many_as_were_asked_for_and_cold_stands_beside_hot() {
    let exact = undisturbed(&["--samples", "7", "--hot"]);
    for record in exact.results {
        let (cold, hot) = (record.timed.expect("cold times"), record.hot.expect("hot times"));
        assert_eq!((cold.samples_ms.len(), cold.stopped, cold.l2), (7, Some(Stopped::Samples), L2::Cold));
        assert_eq!((hot.samples_ms.len(), hot.stopped, hot.l2), (7, Some(Stopped::Samples), L2::Hot));
        assert!(hot.median_ms < cold.median_ms && hot.share_of_copy.is_some());
    }
    assert_eq!(exact.sampling.map(|sampling| sampling.l2), Some(Series::ColdAndHot));
    let table = ended(bench(folder().path(), &["--hot"]), 0).stdout;
    let table = String::from_utf8(table).expect("text");
    assert!(table.contains("hot"), "{table}");
    let least = undisturbed(&["--min-samples", "12", "--max-noise", "5"]);
    assert!(least.results.iter().all(|record| record.timed.as_ref().is_some_and(|timed| timed.samples_ms.len() == 12)));
    for (arguments, reason) in [
        (&["--samples", "7", "--stop", "stdrel"][..], "cannot be used with"),
        (&["--samples", "7", "--max-time", "1"], "cannot be used with"),
        (&["--stop", "luck"], "stdrel, entropy, samples"),
        (&["--max-noise", "-1"], "not a number from 0 to 100"),
        (&["--min-clock", "NaN"], "not a number from 0 to 100"),
        (&["--min-samples", "0"], "0 is not in 1..=100000"),
    ] {
        let output = ended(bench(folder().path(), arguments), 2);
        assert!(said(&output).contains(reason), "{output:?}");
    }
}

#[test]
fn samples_at_a_low_clock_are_said_and_a_kernel_without_others_fails() {
    let folder = folder();
    let mock = "dips=copy_vec4,throttled=transpose_naive";
    let output = ended(bench(folder.path(), &["--json", "out.json", "--mock", mock]), 1);
    let table = String::from_utf8(output.stdout).expect("text");
    assert!(table.contains("discarded") && table.contains("transpose_naive"), "{table}");
    let found = report(&folder.path().join("out.json"));
    let undisturbed = undisturbed(&[]);
    for (record, calm) in found.results.iter().zip(&undisturbed.results) {
        match record.kernel.as_str() {
            "transpose_naive" => {
                let error = record.error.as_ref().expect("no sample");
                assert!(
                    error.kind == "throttled" && error.message.contains("below 1500 MHz, at last at 1000"),
                    "{error:?}"
                );
            }
            kernel => {
                let (timed, calm) = (record.timed.as_ref().expect("times"), calm.timed.as_ref().expect("times"));
                assert_eq!(timed.discarded > 0, kernel == "copy_vec4", "{kernel}");
                assert!((timed.median_ms / calm.median_ms - 1.0).abs() < 0.002, "{kernel}");
                assert_eq!(timed.sm_mhz, vec![2000; timed.samples_ms.len()]);
            }
        }
    }
    ended(bench(folder.path(), &["--mock", mock, "--min-clock", "0"]), 0);
}

#[test]
fn each_gpu_has_a_file_of_its_own_one_after_another_or_at_once() {
    let of = |more: &[&str]| {
        let folder = folder();
        let arguments = [&["--json", "out.json", "--mock", "devices=3"], more].concat();
        let output = ended(bench(folder.path(), &arguments), 0);
        let table = String::from_utf8(output.stdout).expect("text");
        assert_eq!(table.matches("A mock: ").count(), folder.path().read_dir().expect("a folder").count(), "{table}");
        let report_of = |device: u32| report(&folder.path().join(format!("out.gpu{device}.json")));
        let found: Vec<_> = (0..3).filter(|device| *device != 1 || more.contains(&"all")).map(report_of).collect();
        (folder, found)
    };
    let (_, after) = of(&["--device", "0,2"]);
    let (folder, at_once) = of(&["--device", "all", "--parallel"]);
    assert_eq!(at_once.iter().map(|report| report.machine.device).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    assert_eq!((results(&after[0]), results(&after[1])), (results(&at_once[0]), results(&at_once[2])));
    assert_ne!(results(&at_once[0]), results(&at_once[1]));
    assert_ne!(at_once[0].machine.id, at_once[1].machine.id);
    // Each goes on with its own.
    std::fs::remove_file(folder.path().join("out.gpu1.json")).expect("a file");
    let go_on = ["--resume", "out.json", "--device", "all", "--mock", "devices=3"];
    ended(bench(folder.path(), &go_on), 0);
    assert_eq!(results(&report(&folder.path().join("out.gpu1.json"))), results(&at_once[1]));
    // One that is killed leaves the others alone.
    let killed = ["--device", "0,1", "--parallel", "--json", "killed.json", "--mock", "devices=2,die=transpose_tiled"];
    let output = ended(bench(folder.path(), &killed), 1);
    assert!(said(&output).contains("GPU 0: its process was ended (signal: 9"), "{output:?}");
    for (device, whole) in at_once.iter().take(2).enumerate() {
        let left = report(&folder.path().join(format!("killed.gpu{device}.json")));
        let (left, whole) = (results(&left), results(whole));
        assert!(!left.is_empty() && left.len() < whole.len() && whole.starts_with(&left), "GPU {device}");
    }
    for (arguments, reason) in [
        (&["--device", "7"][..], "--device 7: there is no such GPU, they are numbered from 0 to 0"),
        (&["--device", "first"], "not the number of a GPU, or all"),
        (&["--parallel"], "--device"),
        (
            &["--device", "all", "--json", "-", "--mock", "devices=2"],
            "--json -: standard output takes the report of one GPU",
        ),
    ] {
        let output = ended(bench(folder.path(), arguments), 2);
        assert!(said(&output).contains(reason) && output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn bytes_that_moved_stand_beside_those_that_must() {
    let folder = folder();
    let profile = std::fs::read_to_string(root().join("results/nvidia-h200/profile.json")).expect("a profile");
    std::fs::write(folder.path().join("h200.json"), &profile).expect("a file");
    let mut of_mock: Value = serde_json::from_str(&profile).expect("JSON");
    of_mock["machine"]["name"] = "busload mock GPU".into();
    std::fs::write(folder.path().join("profile.json"), of_mock.to_string()).expect("a file");
    let arguments = ["--sizes", "small", "--profile", "profile.json", "--json", "out.json"];
    let table = ended(bench(folder.path(), &arguments), 0).stdout;
    let table = String::from_utf8(table).expect("text");
    assert!(table.contains("must") && table.contains("DRAM") && table.contains("moved"), "{table}");
    let found = report(&folder.path().join("out.json"));
    let row = |kernel: &str| {
        let profiled = of_mock["results"].as_array().expect("a list").iter().find(|row| row["kernel"] == kernel);
        let counters = &profiled.expect("it was profiled")["counters"];
        let of = |name: &str| counters[name].as_f64().expect(name);
        32 * (of("dram__sectors_read.sum") + of("dram__sectors_write.sum")) as u64
    };
    let moved: Vec<_> = found.results.iter().filter_map(|record| Some((record, record.moved?))).collect();
    assert!(moved.len() > 5, "{} rows", moved.len());
    moved.iter().for_each(|(record, moved)| assert_eq!(*moved, row(&record.kernel), "{}", record.kernel));
    let output = ended(bench(folder.path(), &["--profile", "h200.json"]), 2);
    assert!(
        said(&output).contains("h200.json: it was counted on NVIDIA H200, and this is busload mock GPU"),
        "{output:?}"
    );
}

/// A folder in which nothing finds room, or into which nothing may be written; none where this process may not make one.
fn mounted(options: &str) -> Option<TempDir> {
    let folder = folder();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", options, "busload"]).arg(folder.path()).stderr(Stdio::null());
    mount.status().is_ok_and(|status| status.success()).then_some(folder)
}

fn unmount(folder: &TempDir) {
    let status = Command::new("umount").arg(folder.path()).status();
    assert!(status.expect("umount").success());
}

#[test]
fn a_disk_that_is_full_keeps_what_found_room_and_the_table_has_the_rest() {
    let folder = folder();
    let limited = |limit: &str| {
        let script = format!("{limit}; exec {PROGRAM} bench --on mock -k '{KERNELS}' --json out.json");
        let mut command = Command::new("bash");
        command.current_dir(folder.path()).args(["-c", &script]);
        command
    };
    let output = ended(limited("ulimit -f 40"), 1);
    assert!(said(&output).contains("File too large"), "{output:?}");
    let kept = report(&folder.path().join("out.json"));
    assert!(kept.unfinished && !kept.results.is_empty());
    assert!(String::from_utf8_lossy(&output.stdout).contains("transpose_tiled"), "{output:?}");
    assert_eq!(folder.path().read_dir().expect("the folder").count(), 1, "nothing else is left");
    ended(limited("true"), 0);
    let Some(full) = mounted("size=96k") else {
        eprintln!("no tmpfs can be mounted here: a full one is not tried");
        return;
    };
    let output = ended(bench(full.path(), &["--json", "out.json"]), 1);
    let kept = report(&full.path().join("out.json"));
    unmount(&full);
    assert!(said(&output).contains("No space left on device"), "{output:?}");
    assert!(kept.unfinished && !kept.results.is_empty());
}

#[test]
fn where_nothing_may_be_written_nothing_runs_and_a_closed_pipe_is_a_quiet_end() {
    let Some(read_only) = mounted("size=96k,ro") else {
        eprintln!("no tmpfs can be mounted here: a read-only one is not tried");
        return;
    };
    for option in ["--json", "--resume"] {
        let file = read_only.path().join("out.json").display().to_string();
        let output = ended(bench(folder().path(), &[option, &file, "--mock", "log=log"]), 2);
        assert!(said(&output).contains("no file can be written there") && output.stdout.is_empty(), "{output:?}");
    }
    unmount(&read_only);
    for arguments in [&["--json", "-"][..], &[]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let folder = folder();
        let output = bench(folder.path(), arguments).stdout(writer).stderr(Stdio::piped()).spawn().expect("a program");
        let output = output.wait_with_output().expect("it ran");
        assert!(output.status.success() && !said(&output).contains("panicked"), "{output:?}");
    }
    let output = bench(folder().path(), &["--json", "/dev/full"]).output().expect("a program");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("/dev/full") && !output.stdout.is_empty(), "{output:?}");
}
