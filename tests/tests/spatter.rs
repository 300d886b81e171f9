//! Pattern files of Spatter: the command, the public application patterns, and what `explain` writes read back.

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use busload::bench;
use busload::cases::Run;
use busload::explain::Explanation;
use busload::sim::{Options, Sampling};
use busload::spatter::{self, NotWritten, TALLIED};
use busload_tests::{case, checked_and_counted, kernels, on_threads};
use gpu::device::host::Space;
use gpu::suite::Value;
use predicates::prelude::*;
use std::path::Path;

/// Configurations of github.com/hpcgarage/spatter, standard-suite/app-traces: amg.json, nekbone.json, lulesh.json, pennant.json. Counts
/// are smaller.
const APPLICATIONS: &str = r#"[
    {"name": "AMG", "delta": 1, "kernel": "Gather", "pattern": [1333, 0, 1, 2, 36, 37, 38, 72, 73, 74, 1296, 1297, 1298, 1332, 1334, 1368], "count": 1454},
    {"name": "NEKBONE", "kernel": "Gather", "pattern": [0, 6, 12, 18, 24, 30, 36, 42, 48, 54, 60, 66, 72, 78, 84, 90], "delta": 3, "count": 982},
    {"name": "LULESH", "delta": 0, "count": 577, "kernel": "Scatter", "pattern": [0, 24, 48, 72, 96, 120, 144, 168, 192, 216, 240, 264, 288, 312, 336, 360]},
    {"name": "LULESH 3", "delta": 8, "count": 128, "kernel": "Scatter", "pattern": [0, 24, 48, 72, 96, 120, 144, 168, 192, 216, 240, 264, 288, 312, 336, 360]},
    {"name": "PENNANT", "kernel": "Gather", "delta": 2, "count": 833, "pattern": [2, 484, 482, 0, 4, 486, 484, 2, 6, 488, 486, 4, 8, 490, 488, 6]},
    {"name": "PENNANT 6", "kernel": "Scatter", "delta": 1, "count": 1250, "pattern": [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60]}
]"#;

/// Each kernel on generated patterns, as in basic-tests/gpu-stream.json.
const STREAM: &str = r#"[
    {"pattern": "UNIFORM:256:1:NR", "kernel": "Gather", "local-work-size": 1024},
    {"pattern": "UNIFORM:256:1:NR", "kernel": "Scatter", "local-work-size": 1024, "wrap": 3},
    {"pattern-gather": "UNIFORM:256:1:NR", "pattern-scatter": "UNIFORM:256:1:NR", "kernel": "GS"},
    {"pattern": "UNIFORM:256:1:NR", "pattern-scatter": "UNIFORM:256:1:NR", "kernel": "MultiScatter"},
    {"pattern": "UNIFORM:256:1:NR", "pattern-gather": "UNIFORM:256:1:NR", "kernel": "MultiGather"}
]"#;

/// What meets on the way, wraps, and takes turns.
const ODD: &str = r#"[
    {"kernel": "Gather", "pattern": "UNIFORM:7:3", "wrap": 5, "count": 100},
    {"kernel": "Gather", "pattern": "UNIFORM:1500:2", "wrap": 2, "delta": [3, 5, 1], "count": 10},
    {"kernel": "Gather", "pattern": "MS1:64:8,32:20,900", "wrap": 1000, "count": 33},
    {"kernel": "Scatter", "pattern": [5, 5, 0, 9], "delta": 3, "wrap": 4, "count": 77},
    {"kernel": "GS", "pattern-gather": "LAPLACIAN:2:1:10", "pattern-scatter": [4, 0, 4, 1, 9], "delta-gather": 6, "delta-scatter": [2, 1], "count": 55},
    {"kernel": "MultiScatter", "pattern": [0, 100, 3], "pattern-scatter": [2, 0, 0, 1], "delta": 1, "count": 21},
    {"kernel": "MultiGather", "pattern": "UNIFORM:33:2", "pattern-gather": "32,0,5,7", "delta": [4, 0], "count": 21}
]"#;

/// The sectors that each configuration's accesses by its patterns take, each verified and counted as the closed form has it.
fn sectors(text: &str, size: bool) -> Vec<[u64; 2]> {
    let configured = spatter::parse("patterns.json", text).expect("a pattern file");
    let mut sectors = Vec::new();
    for mut of in configured {
        if size {
            of.configuration.block = of.local_work_size;
        }
        let run = spatter::run(&of, 108).expect("a plan");
        assert!(!run.plan.expected.is_empty(), "{}: no counts are stated", run.case);
        let options = Options { sampling: Some(TALLIED), sanitize: !of.races, ..on_threads(2) };
        let outcome = checked_and_counted(run.kernel, &run.plan, &options);
        sectors.push(spatter::seen(of.configuration.kind, &outcome).map(|seen| seen.sectors));
    }
    sectors
}

#[test]
fn the_patterns_of_applications_are_verified_and_counted() {
    let all = sectors(APPLICATIONS, false);
    // 16 lanes a warp: 24 elements apart each has a sector, 6 elements apart too.
    assert_eq!((all[1], all[2], all[3]), ([982 * 16, 0], [0, 577 * 16], [0, 128 * 16]));
    assert!(all[0][0] > 0 && all[4][0] > 0 && all[5][1] > 0, "{all:?}");
}

#[test]
fn every_kernel_is_verified_and_counted_with_spatters_blocks_and_with_the_files() {
    // 1024 times 256 elements of 8 bytes, each once.
    let once = 1024 * 256 * 8 / 32;
    for size in [false, true] {
        assert_eq!(sectors(STREAM, size), [[once, 0], [0, once], [once; 2], [0, once], [once, 0]]);
    }
    sectors(ODD, false);
}

#[test]
fn what_meets_is_a_race_and_is_said_to_be() {
    let races = |text| spatter::parse("x.json", text).expect(text).iter().map(|of| of.races).collect::<Vec<_>>();
    assert_eq!(races(APPLICATIONS), [false, false, true, true, false, true]);
    assert_eq!(races(STREAM), [false; 5]);
    // Without the equal values and the sanitizer at rest, it is found.
    let of = &spatter::parse("x.json", APPLICATIONS).expect("patterns")[2];
    let run = spatter::run(of, 108).expect("a plan");
    let (record, _) = bench::simulate(&run, &on_threads(2), &|_, _| ());
    assert_eq!(record.error.expect("a race").kind, "findings");
}

fn run_of(kernel: &str, values: &[(&'static str, Value)]) -> Run {
    let (family, entry) = kernels().into_iter().find(|(_, entry)| entry.kernel.name == kernel).expect(kernel);
    let value = |axis: &gpu::suite::Axis| {
        let given = values.iter().find(|(name, _)| *name == axis.name).map(|(_, value)| *value);
        (axis.name, given.unwrap_or(axis.in_simulator[0]))
    };
    Run::new(family, entry, case(family.axes.iter().map(value).collect())).expect("a plan")
}

/// What is written of a kernel, and the sectors of its accesses to global memory.
fn written(run: &Run, access: Option<&str>) -> (Result<String, NotWritten>, u64) {
    let all = Sampling { blocks: u64::MAX, warps: u32::MAX, requests: u32::MAX };
    let options = Options { sampling: Some(all), ..on_threads(2) };
    let (record, outcome) = bench::simulate(run, &options, &|_, _| ());
    assert!(record.error.is_none(), "{:?}", record.error);
    let outcome = outcome.expect("it ran");
    let explanation = Explanation::new(run, &outcome);
    let global = outcome.sites.iter().filter(|site| site.space == Space::Global);
    (spatter::written(&explanation, &outcome, access), global.map(|site| site.counts.sectors).sum())
}

#[test]
fn what_explain_writes_is_read_back_and_has_the_same_sectors() {
    let (shape, elements) = (Value::Shape(96, 160), Value::Count(10_000));
    for (kernel, values) in [
        ("transpose_naive", vec![("shape", shape)]),
        ("transpose_padded", vec![("shape", Value::Shape(97, 65))]),
        ("strided_read", vec![("elements", elements), ("stride", Value::Count(3))]),
        ("offset_read", vec![("elements", elements)]),
        ("copy_vec4", vec![("elements", elements)]),
        ("dtype_i8", vec![("elements", elements)]),
        ("particles_aos", vec![("elements", elements)]),
        ("gather_indexed", vec![("elements", elements), ("indices", Value::Choice("sorted"))]),
        ("spatter_gs", vec![("elements", elements), ("pattern", Value::Choice("AMG"))]),
    ] {
        let (text, expected) = written(&run_of(kernel, &values), None);
        let text = text.unwrap_or_else(|error| panic!("{kernel}: {error}"));
        let read: u64 = sectors(&text, false).into_iter().flatten().sum();
        assert_eq!(read, expected, "{kernel}: {text}");
    }
}

#[test]
fn one_access_can_be_chosen_and_what_is_irregular_is_refused() {
    let run = run_of("transpose_naive", &[("shape", Value::Shape(64, 64))]);
    let text = written(&run, Some("store dst")).0.expect("a pattern");
    assert!(text.contains("Scatter") && !text.contains("Gather"), "{text}");
    let error = written(&run, Some("stor dst")).0.expect_err("no such access").to_string();
    assert!(error.contains("name one of \"store dst\", \"load src\""), "{error}");
    let random = run_of("gather_indexed", &[("elements", Value::Count(20_000)), ("indices", Value::Choice("random"))]);
    let error = written(&random, None).0.expect_err("no pattern").to_string();
    assert!(error.contains("load src is irregular: 625 requests are more than 256 patterns"), "{error}");
}

fn busload(folder: &Path, arguments: &[&str]) -> Assert {
    Command::new(env!("CARGO_BIN_EXE_busload-under-test")).current_dir(folder).args(arguments).assert()
}

#[test]
fn the_command_shows_a_row_an_entry_and_writes_them_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("apps.json"), APPLICATIONS).expect("a file");
    let on_cpu = ["spatter", "apps.json", "--on", "sim"];
    let output = busload(folder.path(), &on_cpu).success().get_output().stdout.clone();
    let text = String::from_utf8(output).expect("text");
    for part in
        ["NEKBONE", "16.00", "In every row: verified yes.", "Several threads write one element in entries 2, 3, 5"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let output =
        busload(folder.path(), &[&on_cpu[..], &["--json", "-"]].concat()).success().get_output().stdout.clone();
    let json: serde_json::Value = serde_json::from_slice(&output).expect("JSON alone");
    let [first, third] = [0, 2].map(|i| &json["results"][i]);
    assert_eq!((first["kernel"].as_str(), first["verified"].as_bool()), (Some("spatter_gather"), Some(true)));
    assert_eq!((&first["spatter"]["name"], &first["spatter"]["bytes"]), (&"AMG".into(), &(16 * 1454 * 8).into()));
    assert_eq!(first["params"]["delta"], 1);
    assert_eq!(
        (&third["spatter"]["stores"]["sectors"], &third["spatter"]["races"]),
        (&(577 * 16).into(), &true.into())
    );
    busload(folder.path(), &["explain", "transpose_naive", "--shape", "64", "--spatter", "t.json"]).success();
    busload(folder.path(), &["spatter", "t.json", "--on", "sim"]).success();
}

#[test]
fn what_makes_no_sense_has_status_2_and_nothing_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let huge = r#"[{"name": "huge", "pattern": [0, 99999999999], "count": 10}]"#;
    let terabytes = r#"[{"pattern": "UNIFORM:8:1", "delta": 4000000000, "count": 30}]"#;
    for (text, says) in [
        ("[{", "x.json: no JSON: EOF while parsing"),
        (r#"[{"kernel": "Sort", "pattern": [0]}]"#, "x.json: entry 0: `kernel` is \"Sort\""),
        (r#"[{"pattern": [0], "count": 0}]"#, "`count` is 0"),
        (huge, "are available: choose a smaller count, delta or pattern"),
        (terabytes, "are available: choose a smaller count, delta or pattern"),
    ] {
        std::fs::write(folder.path().join("x.json"), text).expect("a file");
        let assert = busload(folder.path(), &["spatter", "x.json", "--on", "sim"]).code(2).stdout("");
        assert.stderr(predicate::str::contains(says).and(predicate::str::contains("panicked").not()));
    }
    busload(folder.path(), &["spatter", "none.json"]).code(2).stderr(predicate::str::contains("none.json"));
    for (arguments, says) in [
        (&["explain", "transpose_naive", "--spatter", "-", "--html", "-"][..], "standard output takes one of them"),
        (
            &["explain", "transpose_naive", "--shape", "4096", "--spatter", "x.json"],
            "can be written: choose a smaller size",
        ),
        (&["explain", "transpose_naive", "--shape", "64", "--spatter", "x.json", "--access", "x"], "name one of"),
    ] {
        busload(folder.path(), arguments).code(2).stderr(predicate::str::contains(says));
    }
}
