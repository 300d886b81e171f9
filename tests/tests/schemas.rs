//! What commands write as JSON is laid out as `docs/schemas/` says.

use assert_cmd::Command;
use busload::schema;
use busload_tests::root;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The JSON that a command writes in a folder.
fn json(folder: &Path, status: i32, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_busload-under-test"));
    let assert = command.current_dir(folder).args(arguments).args(["--json", "-"]).assert().code(status);
    serde_json::from_slice(&assert.get_output().stdout).expect("JSON alone")
}

/// The names of all fields that a schema describes.
fn described(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                names.extend(properties.keys().cloned());
            }
            fields.values().for_each(|value| described(value, names));
        }
        Value::Array(values) => values.iter().for_each(|value| described(value, names)),
        _ => {}
    }
}

/// Fields whose parts are named by what was asked for or counted.
const FREE: [&str; 8] = ["params", "counters", "spatter", "simulated", "hardware", "limits", "throttled", "traffic"];

/// The names of all fields that a report has.
fn used(report: &Value, names: &mut BTreeSet<String>) {
    match report {
        Value::Object(fields) => {
            for (name, value) in fields {
                names.insert(name.clone());
                if !FREE.contains(&name.as_str()) {
                    used(value, names);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| used(value, names)),
        _ => {}
    }
}

#[test]
fn every_command_writes_what_its_schema_describes() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let file = |name: &str| root().join(name).to_str().expect("text").to_owned();
    let (bench, profile) = (file("results/nvidia-h200/bench.json"), file("results/nvidia-h200/profile.json"));
    std::fs::write(at.join("apps.json"), r#"[{"kernel": "Gather", "pattern": [0, 1, 5], "delta": 2, "count": 9}]"#)
        .expect("a file");
    std::fs::copy(root().join("tests/foreign/kernels.ptx"), at.join("kernels.ptx")).expect("a file");
    let launches =
        std::fs::read_dir(root().join("tests/foreign")).expect("a folder").map(|entry| entry.expect("a file").path());
    let launch = launches.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).min();
    let launch = launch.expect("a launch file").to_str().expect("text").to_owned();
    let on_mock = ["bench", "--on", "mock", "-k", "^copy_", "--elements", "1000", "--samples", "5"];
    let reports: Vec<(&str, Value)> = vec![
        ("bench", json(at, 0, &on_mock)),
        ("bench", json(at, 0, &["bench", "--on", "sim", "-k", "^copy_", "--elements", "1000"])),
        (
            "simulate",
            json(at, 0, &["simulate", "-k", "^(copy|bank|transpose)_", "--elements", "1000", "--shape", "64"]),
        ),
        ("simulate", json(at, 1, &["simulate", "-k", "sync_missing_barrier", "--arch", "cc12"])),
        ("verify", json(at, 0, &["verify", "-k", "^copy_vec4$", "--elements", "1000"])),
        ("predict", json(at, 0, &["predict", "--chip", "h200", "-k", "^latency_", "--measured", &bench])),
        ("explain", json(at, 0, &["explain", "transpose_tiled", "--shape", "64"])),
        ("run", json(at, 0, &["run", &launch, "--chip", "h200"])),
        ("list", json(at, 0, &["list"])),
        ("list", json(at, 0, &["list", "--primitives"])),
        ("claims", json(at, 0, &["claims"])),
        ("compare", json(at, 0, &["compare", &bench, &bench])),
        ("spatter", json(at, 0, &["spatter", "apps.json", "--on", "sim"])),
        ("check", {
            let small = ["check", "-k", "^copy_vec4$", "--elements", "1000"];
            Command::new(env!("CARGO_BIN_EXE_busload-under-test"))
                .current_dir(at)
                .args(small)
                .arg("--bless")
                .assert()
                .code(0);
            json(at, 0, &small)
        }),
        ("fleet", {
            Command::new(env!("CARGO_BIN_EXE_busload-under-test"))
                .current_dir(at)
                .args(on_mock)
                .args(["--out-dir", "runs"])
                .assert()
                .code(0);
            json(at, 0, &["fleet", "runs"])
        }),
        ("profile", {
            let text = std::fs::read_to_string(profile).expect("counters of a GPU");
            let mut recorded: Value = serde_json::from_str(&text).expect("JSON");
            // It was recorded before results said where they come from.
            recorded["provenance"] = json(at, 0, &["list"])["provenance"].clone();
            recorded
        }),
    ];
    for (command, report) in &reports {
        let schema = schema::of(command).expect("a command that writes JSON");
        let validator = jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{command}: {error}"));
        let wrong: Vec<_> =
            validator.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{command}: {}", wrong[..wrong.len().min(5)].join("\n"));
        let (mut is, mut may) = (BTreeSet::new(), BTreeSet::new());
        used(report, &mut is);
        described(&schema, &mut may);
        let not: Vec<_> = is.difference(&may).filter(|name| !FREE.contains(&name.as_str())).collect();
        assert!(not.is_empty(), "{command} writes {not:?}, which its schema does not describe");
        let mut empty = report.clone();
        empty.as_object_mut().expect("an object").remove("schema");
        assert!(!validator.is_valid(&empty), "{command}: the schema takes anything");
    }
    let tried: BTreeSet<_> = reports.iter().map(|(command, _)| *command).collect();
    assert_eq!(tried, schema::commands().collect(), "a command was not tried");
}
