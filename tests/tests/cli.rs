//! The program as a person or a script meets it: what it prints where, its exit status, its JSON.

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use busload::ptx::{EMBEDDED, Ptx};
use busload::record::Report;
use busload::report;
use busload::suite::BUSLOAD;
use busload_tests::{found, kernels, root};
use gpu::device::primitives::PRIMITIVES;
use gpu::kernels::FAMILIES;
use predicates::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use tempfile::TempDir;

/// Every kernel, on small cases.
const SMALL: [&str; 4] = ["--elements", "4099", "--shape", "97x65"];

/// The program, in a folder of its own.
fn busload(folder: &Path, arguments: &[&str]) -> Assert {
    Command::new(env!("CARGO_BIN_EXE_busload-under-test")).current_dir(folder).args(arguments).assert()
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for temporary files")
}

/// The standard output of a command that must succeed.
fn printed(arguments: &[&str]) -> String {
    let output = busload(folder().path(), arguments).success().get_output().stdout.clone();
    String::from_utf8(output).expect("text")
}

/// The JSON that a command prints with `--json -`, and its exit status.
fn json(status: i32, arguments: &[&str]) -> Value {
    let assert = busload(folder().path(), &[arguments, &["--json", "-"]].concat()).code(status);
    serde_json::from_slice(&assert.get_output().stdout).expect("standard output is JSON alone")
}

/// A text as words, however its lines are broken.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has_gpu() -> bool {
    printed(&["doctor"]).lines().any(|line| line.starts_with("yes  GPU"))
}

/// A command that makes no sense: exit status 2, a reason, nothing on standard output, and no file left.
fn refused(arguments: &[&str], reason: &str) {
    let folder = folder();
    let with_json = [arguments, &["--json", "out.json"]].concat();
    for arguments in [arguments, &with_json] {
        let assert = busload(folder.path(), arguments).code(2).stdout("");
        assert.stderr(predicate::str::contains(reason).and(predicate::str::contains("panicked").not()));
        assert_eq!(folder.path().read_dir().expect("the folder").count(), 0, "{arguments:?} left a file");
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    for command in ["bench", "simulate", "verify"] {
        for (arguments, reason) in [
            (&["--colour", "red"][..], "--colour"),
            (&["--kernel", "transpose_paded"], "the nearest are transpose_padded"),
            (&["--kernel", "copy("], "unclosed group"),
            (&["--elements", "0"], "at least 1"),
            (&["--elements", "-1"], "-1"),
            (&["--elements", "many"], "a whole number"),
            (&["--elements", "18446744073709551616"], "at most 1099511627776"),
            (&["--elements", "1099511627777"], "at most 1099511627776"),
            (&["--elements", "1099511627776"], "choose a smaller size"),
            (&["--elements", "4294967296", "--stride", "4294967296"], "choose a smaller size"),
            (&["--shape", "0"], "at least 1"),
            (&["--shape", "5x0"], "the number of columns must be at least 1"),
            (&["--shape", "4294967296"], "at most 4294967295"),
            (&["--shape", "4294967295"], "choose a smaller size"),
            (&["--stride", "0"], "at least 1"),
            (&["--offset", "33"], "at most 32"),
            (&["--kernel", "copy_vec4", "--shape", "64"], "--shape means nothing to the selected kernels"),
            (&["--kernel", "transpose_tiled", "--stride", "2"], "--stride means nothing to the selected kernels"),
            (&["--threads", "0"], "--threads"),
            (&["--max-blocks", "0"], "--max-blocks"),
            (&["copy"], "copy"),
        ] {
            refused(&[&[command], arguments].concat(), reason);
        }
    }
    refused(&["bench", "--samples", "0"], "--samples");
    refused(&["bench", "--ptx", "missing.ptx"], "missing.ptx");
    refused(&["bench", "--on", "moon"], "moon");
    let no_gpu = "mean nothing with --on sim: nothing is launched on a GPU";
    refused(&["bench", "--on", "sim", "--hot", "--samples", "3"], &format!("--hot and --samples {no_gpu}"));
    refused(&["bench", "--on", "sim", "--ptx", "x.ptx", "--hot"], &format!("--ptx and --hot {no_gpu}"));
    for command in [&["verify", "--on", "sim"][..], &["simulate"], &["predict"], &["explain", "copy_vec4"]] {
        refused(&[command, &["--ptx", "missing.ptx"]].concat(), "missing.ptx");
        let source = [command, &["--machine", "source", "--ptx", "missing.ptx"]].concat();
        refused(&source, "the source machine takes no PTX");
    }
    for command in ["bench", "verify"] {
        refused(
            &[command, "--on", "gpu", "--threads", "2"],
            "--threads means nothing with --on gpu: nothing is simulated",
        );
    }
    refused(
        &["profile", "--counters-only", "--no-sanitizer"],
        "'--counters-only' cannot be used with '--no-sanitizer'",
    );
    refused(&["predict", "--describe", "h200", "--chip", "h200"], "'--describe <CHIP>' cannot be used with");
    refused(&["measure"], "measure");
}

#[test]
fn a_gpu_that_is_asked_for_must_be_there() {
    if has_gpu() {
        return;
    }
    for command in ["bench", "verify"] {
        refused(&[command, "--on", "gpu"], "--on gpu");
    }
}

#[test]
fn json_that_cannot_be_written_is_refused_before_anything_runs() {
    for command in ["bench", "simulate", "verify"] {
        for target in ["missing/out.json", ".", "", "new/"] {
            let reason = if target == "missing/out.json" { "no file can be written there" } else { "this is no file" };
            let assert = busload(folder().path(), &[command, "--json", target]).code(2).stdout("");
            assert.stderr(predicate::str::contains("--json").and(predicate::str::contains(reason)));
        }
    }
}

#[test]
fn bench_in_the_simulator_says_first_that_nothing_was_timed() {
    let small = ["--kernel", "copy_coalesced", "--elements", "4096"];
    let mut commands = vec![[&["bench", "--on", "sim"], &small[..]].concat()];
    if !has_gpu() {
        commands.push([&["bench"], &small[..]].concat());
        let text = printed(&[&["bench", "--hot"], &small[..]].concat());
        let first = text.split(" kernel ").next().expect("a sentence before the table");
        assert!(words(first).ends_with(" --hot means nothing here."), "{text}");
    }
    for command in commands {
        let text = printed(&command);
        let first = text.lines().next().expect("a line");
        assert!(first.starts_with("Simulated") && first.contains("nothing was timed"), "{first}");
        assert!(text.contains("copy_coalesced") && text.contains("4.00 (4.00)"), "{text}");
    }
}

/// A field of an object, and what its value must be.
type Field<'a> = (&'a str, fn(&Value) -> bool);

/// Holds an object to fields and their types.
#[track_caller]
fn has(object: &Value, fields: &[Field<'_>]) {
    for (field, is) in fields {
        let value = object.get(field).unwrap_or_else(|| panic!("no `{field}` in {object:#}"));
        assert!(is(value), "`{field}` is {value}");
    }
}

fn is_three(value: &Value) -> bool {
    value.as_array().is_some_and(|array| array.len() == 3 && array.iter().all(Value::is_u64))
}

fn is_filled(value: &Value) -> bool {
    value.as_array().is_some_and(|array| !array.is_empty())
}

/// Holds a simulated report to the schema, but for its sites' counts.
fn is_simulated_report(report: &Value, command: &str) {
    has(
        report,
        &[
            ("schema", |value| *value == 2),
            ("command", Value::is_string),
            ("machine", Value::is_object),
            ("ptx", Value::is_object),
            ("results", is_filled),
        ],
    );
    assert_eq!(report["command"], command);
    has(
        &report["machine"],
        &[
            ("kind", |value| *value == "simulator"),
            ("name", Value::is_string),
            ("driver", Value::is_null),
            ("sm_count", Value::is_u64),
            ("l2_bytes", Value::is_null),
            ("compute_capability", Value::is_null),
            ("peak_gbps", Value::is_null),
            ("copy_gbps", Value::is_null),
        ],
    );
    has(
        &report["ptx"],
        &[("backend", Value::is_string), ("target", Value::is_string), ("source_hash", Value::is_string)],
    );
    for result in report["results"].as_array().expect("results") {
        has(
            result,
            &[
                ("kernel", Value::is_string),
                ("family", Value::is_string),
                ("case", Value::is_string),
                ("params", Value::is_object),
                ("launch", Value::is_object),
                ("verified", Value::is_boolean),
                ("bytes", Value::is_u64),
                ("error", Value::is_null),
                ("blocks", Value::is_object),
                ("sites", is_filled),
            ],
        );
        has(&result["launch"], &[("grid", is_three), ("block", is_three), ("shared_bytes", Value::is_u64)]);
        has(&result["blocks"], &[("total", Value::is_u64), ("simulated", Value::is_u64)]);
        for field in ["samples_ms", "median_ms", "min_ms", "gbps", "share_of_copy", "share_of_peak"] {
            assert_eq!(result.get(field), None, "a simulated result has no `{field}`");
        }
        result["sites"].as_array().expect("sites").iter().for_each(is_site);
    }
}

fn is_site(site: &Value) {
    has(
        site,
        &[
            ("file", |value| value.as_str().is_some_and(|file| file.starts_with("gpu/src/kernels/"))),
            ("line", Value::is_u64),
            ("column", Value::is_u64),
            ("space", |value| ["global", "shared", "constant"].iter().any(|space| value == space)),
            ("op", |value| *value == "load" || *value == "store" || *value == "atomic"),
            ("width", Value::is_u64),
            ("requests", Value::is_u64),
            ("lanes", Value::is_u64),
        ],
    );
    let (global, shared) = (["sectors", "sectors_ideal", "lines", "used"], ["wavefronts", "wavefronts_ideal"]);
    let is_global = site["space"] == "global";
    let (present, absent) = if is_global { (&global[..], &shared[..]) } else { (&shared[..], &global[..]) };
    present.iter().for_each(|field| has(site, &[(field, Value::is_u64)]));
    absent.iter().for_each(|field| assert_eq!(site.get(field), None, "{site:#}"));
}

#[test]
fn the_json_of_every_command_has_the_fields_of_the_schema_and_every_kernel() {
    for (command, arguments) in [("simulate", &[][..]), ("verify", &["--on", "sim"]), ("bench", &["--on", "sim"])] {
        let report = json(0, &[&[command], arguments, &SMALL].concat());
        is_simulated_report(&report, command);
        let results = report["results"].as_array().expect("results");
        assert!(results.iter().all(|result| result["verified"] == true), "{command}");
        let ran: BTreeSet<_> = results.iter().map(|result| result["kernel"].as_str().expect("a name")).collect();
        assert_eq!(ran, kernels().iter().map(|(_, entry)| entry.kernel.name).collect());
        let sites = results.iter().flat_map(|result| result["sites"].as_array().expect("sites"));
        let spaces: BTreeSet<_> = sites.map(|site| site["space"].as_str().expect("a space")).collect();
        assert_eq!(spaces, BTreeSet::from(["constant", "global", "shared"]));
    }
}

#[test]
fn params_and_launch_are_those_of_the_case() {
    let report = json(
        0,
        &[
            "simulate",
            "--kernel",
            "^(transpose_padded|strided_read)$",
            "--elements",
            "1000",
            "--stride",
            "3",
            "--shape",
            "97x65",
        ],
    );
    let [strided, transpose] = report["results"].as_array().expect("results").as_slice() else { panic!("{report:#}") };
    assert_eq!(strided["params"], serde_json::json!({"elements": 1000, "stride": 3}));
    assert_eq!(strided["launch"], serde_json::json!({"grid": [4, 1, 1], "block": [256, 1, 1], "shared_bytes": 0}));
    assert_eq!(strided["bytes"], 8000);
    assert_eq!(transpose["params"], serde_json::json!({"shape": [97, 65]}));
    assert_eq!(transpose["launch"], serde_json::json!({"grid": [3, 4, 1], "block": [32, 8, 1], "shared_bytes": 0}));
    assert_eq!(transpose["blocks"]["total"], 12);
    assert_eq!(transpose["bytes"], 97 * 65 * 8);
}

#[test]
fn results_are_the_same_bytes_on_every_run_and_any_number_of_threads() {
    let run = |threads| printed(&[&["simulate", "--json", "-", "--threads", threads], &SMALL[..]].concat());
    let once = run("1");
    for threads in ["1", "2", "3"] {
        assert!(found(&once) == found(&run(threads)), "{threads} threads");
    }
    let report: Report = serde_json::from_str(&once).expect("a report");
    let again = busload::provenance::json(&report).expect("JSON");
    assert!(found(&again) == found(&once), "a report that is read back is not the same report");
    let provenance = &serde_json::from_str::<Value>(&once).expect("JSON")["provenance"];
    assert_eq!(provenance["command_line"][0], "simulate");
    assert_eq!(provenance["version"], env!("CARGO_PKG_VERSION"));
    assert!(provenance["date"].as_str().is_some_and(|date| date.ends_with('Z')), "{provenance}");
}

#[test]
fn a_json_file_holds_what_standard_output_would_and_the_table_is_printed_beside_it() {
    let small = ["simulate", "--kernel", "^copy_", "--elements", "1000,33"];
    let folder = folder();
    let table = busload(folder.path(), &[&small[..], &["--json", "out.json"]].concat()).success();
    table.stdout(predicate::str::contains("copy_vec4").and(predicate::str::contains("verified")));
    let file = std::fs::read_to_string(folder.path().join("out.json")).expect("the file");
    assert_eq!(found(&file), found(&printed(&[&small[..], &["--json", "-"]].concat())));
    assert_eq!(folder.path().read_dir().expect("the folder").count(), 1, "nothing else is left");
    let results = serde_json::from_str::<Value>(&file).expect("JSON")["results"].clone();
    let copies = kernels().iter().filter(|(_, entry)| entry.kernel.name.starts_with("copy_")).count();
    assert_eq!(results.as_array().expect("results").len(), 2 * copies);
}

#[test]
fn a_value_that_is_asked_for_twice_is_one_case() {
    let report = json(0, &["simulate", "--kernel", "^copy_coalesced$", "--elements", "64,32", "--elements", "64"]);
    let cases = report["results"].as_array().expect("results").iter().map(|result| &result["case"]);
    assert!(cases.eq(["64", "32"]), "{report:#}");
}

#[test]
fn a_sample_says_that_it_is_one_and_is_not_called_verified() {
    let sample = ["simulate", "--kernel", "copy_coalesced", "--elements", "100000", "--max-blocks", "10"];
    let text = printed(&sample);
    assert!(text.contains("sampled: ") && text.contains(" of 391 blocks"), "{text}");
    let report = json(0, &sample);
    is_simulated_report(&report, "simulate");
    let result = &report["results"][0];
    assert_eq!((&result["verified"], &result["blocks"]["total"]), (&Value::Bool(false), &Value::from(391)));
    let simulated = result["blocks"]["simulated"].as_u64().expect("a number");
    assert!((1..=11).contains(&simulated), "{simulated}");
    let requests = result["sites"][0]["requests"].as_u64().expect("a number");
    assert!(requests <= 8 * simulated, "counts are those of the blocks that ran");
}

#[test]
fn a_case_that_does_not_fit_in_memory_fails_and_the_others_still_run() {
    let report = json(
        1,
        &["simulate", "--kernel", "copy_coalesced", "--elements", "200000000000,1000", "--max-blocks", "999999999"],
    );
    let [large, small] = report["results"].as_array().expect("results").as_slice() else { panic!("{report:#}") };
    assert_eq!((&large["verified"], &large["error"]["kind"]), (&Value::Bool(false), &Value::from("memory")));
    assert!(
        large["error"]["message"].as_str().is_some_and(|message| message.contains("3300000000000 bytes")),
        "{large:#}"
    );
    assert_eq!((&small["verified"], &small["error"]), (&Value::Bool(true), &Value::Null));
}

#[test]
fn a_grid_to_be_verified_is_not_sampled() {
    let large = ["--kernel", "^copy_coalesced$", "--elements", "200000000000"];
    for (command, status, kind) in
        [(&["simulate"][..], 0, Value::Null), (&["verify", "--on", "sim"], 1, Value::from("memory"))]
    {
        let result = &json(status, &[command, &large].concat())["results"][0];
        assert_eq!((&result["error"]["kind"], &result["verified"]), (&kind, &Value::Bool(false)), "{command:?}");
    }
}

#[test]
fn a_thread_with_much_to_do_is_not_taken_for_one_that_does_not_end() {
    // A thread adds up the whole row, in more steps than any thread takes by default.
    let report = json(0, &["simulate", "--kernel", "matrix_row_sums_thread", "--shape", "1x17000000"]);
    assert_eq!(report["results"][0]["verified"], Value::Bool(true), "{report:#}");
}

#[test]
fn a_grid_of_many_times_the_memory_is_sampled_in_little_of_it() {
    // 80 GB of buffers, of which the sample touches one.
    let report = json(0, &["simulate", "--kernel", "copy_coalesced", "--elements", "10000000000"]);
    let result = &report["results"][0];
    assert_eq!((&result["blocks"]["total"], &result["error"]), (&Value::from(39_062_500), &Value::Null));
    let requests = |site: &Value| site["requests"].as_u64().expect("a number");
    assert!(result["sites"].as_array().expect("sites").iter().all(|site| requests(site) > 1 << 19), "{result:#}");
}

#[test]
fn list_shows_every_family_and_kernel_and_names_are_one_a_line() {
    let list = printed(&["list"]);
    for family in FAMILIES {
        assert!(words(&list).contains(&format!("{}: {}", family.name, family.summary)), "{}", family.name);
    }
    for (_, entry) in kernels() {
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(entry.kernel.name));
        assert!(line.is_some(), "{} is not listed", entry.kernel.name);
    }
    assert!(!list.contains('`'), "{list}");
    let names: Vec<_> = kernels().iter().map(|(_, entry)| entry.kernel.name).collect();
    assert_eq!(printed(&["list", "--names"]).lines().collect::<Vec<_>>(), names);
}

#[test]
fn list_shows_what_kernels_may_use() {
    let list = printed(&["list", "--primitives"]);
    for words in [["warp::shuffle_up", "shfl.sync.up", "__shfl_up_sync"], ["sync_warp", "bar.warp.sync", "__syncwarp"]]
    {
        assert!(words.iter().all(|word| list.contains(word)), "{words:?}: {list}");
    }
    let list = json(0, &["list", "--primitives"]);
    let rows = list["primitives"].as_array().expect("a list");
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().expect("a name")).collect();
    assert_eq!(rows.len(), PRIMITIVES.len());
    assert!(names.contains(&"Shared::copy_async"), "{names:?}");
    let lines = printed(&["list", "--primitives", "--names"]);
    assert_eq!(lines.lines().collect::<Vec<_>>(), names);
    let list = json(0, &["list"]);
    let kernels = list["families"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|family| family["kernels"].as_array().expect("kernels"));
    let kernels: Vec<_> =
        kernels.filter(|kernel| kernel["wrong_on_purpose"] == false).map(|kernel| kernel["name"].as_str()).collect();
    let all: Vec<_> = busload_tests::kernels().iter().map(|(_, entry)| Some(entry.kernel.name)).collect();
    assert_eq!(kernels, all);
}

#[test]
fn doctor_says_what_there_is() {
    let text = printed(&["doctor"]);
    assert!(text.lines().any(|line| line.starts_with("yes  simulator: ")), "{text}");
    assert!(text.lines().any(|line| line.starts_with("yes  GPU: ") || line.starts_with(" no  GPU: ")), "{text}");
    let kernels = format!("{} kernels for sm_80", Ptx::embedded().entries().len());
    assert!(text.lines().any(|line| line.starts_with("yes  PTX") && line.contains(&kernels)), "{text}");
}

#[test]
fn ptx_prints_the_committed_build() {
    assert!(printed(&["ptx"]) == EMBEDDED);
}

#[test]
fn help_names_every_command_and_an_option_for_every_axis() {
    let help = printed(&["--help"]);
    for command in ["bench", "simulate", "verify", "predict", "explain", "list", "doctor", "ptx"] {
        assert!(help.lines().any(|line| line.split_whitespace().next() == Some(command)), "{command}: {help}");
    }
    for command in ["bench", "simulate", "verify", "predict"] {
        let help = printed(&[command, "--help"]);
        for axis in FAMILIES.iter().flat_map(|family| family.axes) {
            assert!(help.contains(&format!("--{} <", axis.name)), "{command} --help says nothing of --{}", axis.name);
        }
    }
    for command in ["bench", "simulate", "verify", "profile", "predict", "explain"] {
        let (short, long) = (printed(&[command, "-h"]), printed(&[command, "--help"]));
        let place = |what: &str| long.find(what).unwrap_or_else(|| panic!("{command} --help has no {what}"));
        let own = match command {
            "bench" => "--samples <",
            "simulate" => "--arch <",
            "verify" => "--on <",
            "profile" => "--ncu <",
            "predict" => "--chip <",
            _ => "--html <",
        };
        assert!(place(own) < place("--json <") && place("--json <") < place("Axes of families:"), "{long}");
        assert!(short.contains(own) && short.contains("--json <"), "{short}");
        assert!(!short.contains("--elements") && !short.contains("--threads"), "{short}");
        assert!(
            long.contains("--indices <ORDER,…>") && long.contains("[possible values: random, block-local"),
            "{long}"
        );
        assert!(long.contains("--shape <SHAPE,…>") && long.contains("--elements <N,…>"), "{long}");
    }
    busload(folder().path(), &["--version"]).success().stdout(predicate::str::starts_with("busload "));
    busload(folder().path(), &[]).code(2).stdout("").stderr(predicate::str::contains("Usage: busload"));
}

/// The lines that are wider than a text in a pipe may be, but for those of a kernel's source.
fn too_wide(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.chars().count() > 100 && !line.contains('│')).collect()
}

#[test]
fn no_line_of_any_command_is_wider_than_100_columns() {
    let results = root().join("results/nvidia-h200");
    let measured = |file: &str| results.join(file).to_str().expect("a path of text").to_owned();
    let (bench, cold, hot) = (measured("bench.json"), measured("l2_cold.json"), measured("l2_hot.json"));
    let transposes = ["--kernel", "transpose", "--shape", "97x65"];
    let sampled = ["--kernel", "copy_coalesced", "--elements", "100000", "--max-blocks", "10"];
    let older = ["--kernel", "offset", "--elements", "4099", "--arch", "cc10"];
    let latency = ["predict", "--chip", "h200", "--kernel", "^latency_", "--measured", &bench];
    let commands: [(i32, &[&str]); 22] = [
        (0, &["--help"]),
        (2, &[]),
        (0, &["list"]),
        (0, &["list", "--names"]),
        (0, &["doctor"]),
        (0, &["claims"]),
        (1, &["compare", &cold, &hot]),
        (0, &["compare", &hot, &cold, "--tolerance", "100"]),
        (0, &[&["simulate"], &SMALL[..]].concat()),
        (0, &[&["simulate"], &transposes[..]].concat()),
        (0, &[&["simulate"], &sampled[..]].concat()),
        (0, &[&["simulate"], &older[..]].concat()),
        (1, &["simulate", "--kernel", "sync_missing_barrier"]),
        (1, &["simulate", "--kernel", "copy_vec4", "--elements", "200000000000", "--max-blocks", "999999999"]),
        (0, &[&["verify", "--on", "sim"], &SMALL[..]].concat()),
        (0, &[&["bench", "--on", "sim"], &transposes[..]].concat()),
        (0, &[&["predict"], &transposes[..]].concat()),
        (0, &latency),
        (0, &["explain", "transpose_tiled", "--shape", "64"]),
        (0, &["bench", "--help"]),
        (0, &["predict", "--help"]),
        (0, &["profile", "-h"]),
    ];
    for (status, arguments) in commands {
        let output = busload(folder().path(), arguments).code(status).get_output().clone();
        for text in [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text")) {
            assert_eq!(too_wide(&text), [""; 0], "{arguments:?}");
        }
    }
}

/// What only a GPU shows, of what was recorded on one.
#[test]
fn tables_of_measurements_and_profiles_are_no_wider() {
    let read = |file: &str| std::fs::read_to_string(root().join("results").join(file)).expect(file);
    for gpu in ["nvidia-h100", "nvidia-h200"] {
        let report: Report = serde_json::from_str(&read(&format!("{gpu}/bench.json"))).expect("a report");
        let profile = serde_json::from_str(&read(&format!("{gpu}/profile.json"))).expect("a profile");
        for text in [report::table(&report.results), report::profile_table(&profile)] {
            let most = report::width();
            let widest = text.lines().map(|line| line.chars().count()).max().expect("lines");
            assert!((60..=most).contains(&widest), "{gpu}: {widest} of {most} columns");
        }
    }
}

#[test]
fn verify_says_in_a_row_what_is_verified_and_shows_no_column_of_dashes() {
    let text = printed(&["verify", "--on", "sim", "--kernel", "^copy_vec", "--elements", "1000"]);
    let lines: Vec<_> = text.lines().map(words).collect();
    assert_eq!(lines[0], "kernel case simulator PTX machine", "{text}");
    assert!(lines.contains(&"copy_vec4 1000 yes yes".to_owned()), "{text}");
    assert_eq!(
        lines.last().map(String::as_str),
        Some("Verified, every element of every output: 2 of 2 in the simulator, 2 of 2 on the PTX machine.")
    );
    let text =
        printed(&["verify", "--on", "sim", "--machine", "source", "--kernel", "^copy_vec", "--elements", "1000"]);
    assert_eq!(text.lines().next().map(words).as_deref(), Some("kernel case simulator"), "{text}");
}

#[test]
fn claims_are_judged_and_exported() {
    let folder = folder();
    busload(folder.path(), &["claims", "--json", "claims.json", "--markdown", "claims.md"]).success();
    let json: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("claims.json")).expect("a file")).expect("JSON");
    let claims = json["claims"].as_array().expect("a list");
    assert!(claims.len() >= 60);
    for claim in claims {
        for field in ["id", "seed", "claim", "verdict", "detail"] {
            assert!(claim[field].is_string(), "{field} of {claim}");
        }
        let verdict = claim["verdict"].as_str().expect("a string");
        assert!(["confirmed", "within", "corrected", "open"].contains(&verdict), "{verdict}");
    }
    let markdown = std::fs::read_to_string(folder.path().join("claims.md")).expect("a file");
    assert!(claims.iter().all(|claim| markdown.contains(claim["id"].as_str().expect("a string"))));
}

#[test]
fn results_are_compared_row_by_row() {
    let folder = folder();
    let measured = std::fs::read_to_string(root().join("results/nvidia-h100/bench.json"));
    let measured: Value = serde_json::from_str(&measured.expect("results of a GPU")).expect("JSON");
    let timed = measured["results"].as_array().expect("a list").iter().filter(|row| row["median_ms"].is_f64()).count();
    assert!(timed > 100, "{timed} timed rows");
    let mut halved = measured.clone();
    let row = halved["results"].as_array_mut().expect("a list").iter_mut().find(|row| row["kernel"] == "copy_vec4");
    let row = row.expect("copy_vec4 was measured");
    let half = |ms: &mut Value| *ms = (ms.as_f64().expect("milliseconds") / 2.0).into();
    half(&mut row["median_ms"]);
    half(&mut row["min_ms"]);
    for speed in ["gbps", "share_of_peak", "share_of_copy"] {
        row[speed] = (row[speed].as_f64().expect("a number") * 2.0).into();
    }
    row["samples_ms"].as_array_mut().expect("a list").iter_mut().for_each(half);
    for (file, report) in [("measured.json", &measured), ("halved.json", &halved)] {
        std::fs::write(folder.path().join(file), report.to_string()).expect("a file");
    }
    for (reference, results, status, verdict) in [
        ("measured.json", "measured.json", 0, "same"),
        ("measured.json", "halved.json", 0, "faster"),
        ("halved.json", "measured.json", 1, "slower"),
    ] {
        let assert = busload(folder.path(), &["compare", reference, results, "--json", "-"]).code(status);
        let compared: Value = serde_json::from_slice(&assert.get_output().stdout).expect("JSON alone");
        let rows = compared["comparison"]["rows"].as_array().expect("a list");
        assert_eq!(rows.len(), timed);
        let row = rows.iter().find(|row| row["kernel"] == "copy_vec4").expect("copy_vec4 in both");
        assert_eq!(row["results"][0]["verdict"], verdict);
        let others = rows.iter().filter(|row| row["kernel"] != "copy_vec4");
        assert!(others.into_iter().all(|row| row["results"][0]["verdict"] == "same"));
        busload(folder.path(), &["compare", reference, results]).code(status).stdout(predicate::str::contains(verdict));
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("other.json"), "{}").expect("a file");
    busload(folder.path(), &["simulate", "--kernel", "copy_vec4", "--json", "simulated.json"]).success();
    for (reference, results, reason) in [
        ("other.json", "other.json", "other.json: not what `bench --json` writes"),
        ("missing.json", "other.json", "missing.json"),
        ("simulated.json", "simulated.json", "simulated.json: it holds no time"),
    ] {
        let assert = busload(folder.path(), &["compare", reference, results]).code(2).stdout("");
        assert.stderr(predicate::str::contains(reason).and(predicate::str::contains("panicked").not()));
    }
}

#[test]
fn claims_of_a_results_file_that_is_none_are_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("other.json"), "{}").expect("a file");
    for (file, reason) in [("other.json", "not what `bench --json` writes"), ("missing.json", "missing.json")] {
        let assert = busload(folder.path(), &["claims", "--results", file]).code(2).stdout("");
        assert.stderr(predicate::str::contains(reason));
    }
}

#[test]
fn claims_are_judged_by_one_gpu() {
    let folder = folder();
    let of =
        |gpu: &str| root().join("results").join(gpu).join("bench.json").to_str().expect("a path of text").to_owned();
    let asked = ["claims", "--results", &of("nvidia-h100"), "--results", &of("nvidia-h200"), "--json", "claims.json"];
    let assert = busload(folder.path(), &asked).code(2).stdout("");
    assert.stderr(predicate::str::contains("NVIDIA H100 80GB HBM3").and(predicate::str::contains("NVIDIA H200")));
    assert!(!folder.path().join("claims.json").exists());
}

#[test]
fn an_older_architecture_counts_its_transactions_too() {
    for (arch, transactions, bytes) in [("cc10", 32, 1024), ("cc12", 3, 224), ("cc20", 2, 256), ("cc70", 5, 160)] {
        let arguments =
            ["simulate", "--kernel", "^offset_read$", "--elements", "8192", "--offset", "1", "--arch", arch];
        let report = json(0, &arguments);
        let sites = report["results"][0]["sites"].as_array().expect("sites");
        let load = sites.iter().find(|site| site["op"] == "load").expect("a load");
        let requests = load["requests"].as_u64().expect("requests");
        let expected = [transactions, bytes].map(|a_request: u64| a_request * requests);
        let found = ["count", "bytes"].map(|field| load["transactions"][field].as_u64().expect(field));
        assert_eq!(found, expected, "{arch}");
    }
    let plain = json(0, &["simulate", "--kernel", "^offset_read$", "--elements", "32", "--offset", "0"]);
    assert_eq!(plain["results"][0]["sites"][0].get("transactions"), None);
}

/// The arguments of an example, as a shell takes them: quotes part words, and what follows two spaces says what it does.
fn as_a_shell(example: &str) -> Vec<String> {
    let example = example.split("  ").next().unwrap_or_default().split(" > ").next().unwrap_or_default();
    let pieces = example.split('\'').enumerate();
    let pieces = pieces.flat_map(|(number, piece)| match number % 2 {
        0 => piece.split_whitespace().map(str::to_owned).collect(),
        _ => vec![piece.to_owned()],
    });
    pieces.collect()
}

#[test]
fn every_command_has_examples_and_the_program_takes_each() {
    let program = || busload::cli::command(&BUSLOAD);
    for command in program().get_subcommands_mut() {
        let name = command.get_name().to_owned();
        let help = command.render_long_help().to_string();
        let (_, examples) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{name} has no examples: {help}"));
        let examples = examples.lines().map(str::trim).take_while(|line| !line.is_empty());
        let mut count = 0;
        for example in examples {
            // Longer ones would be wrapped.
            assert!(example.chars().count() <= 96, "{name}: {example}");
            // What stands before the program starts it.
            let Some((_, arguments)) = example.split_once("busload ") else { panic!("{name}: {example}") };
            let parsed = program().try_get_matches_from([vec!["busload".to_owned()], as_a_shell(arguments)].concat());
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            count += 1;
        }
        assert!(count > 0, "{name}: {help}");
    }
}

#[test]
fn what_is_quiet_prints_what_failed_and_nothing_else() {
    let at = folder();
    let quiet = |status: i32, arguments: &[&str]| busload(at.path(), arguments).code(status).stdout("");
    let bench = ["bench", "--on", "mock", "-k", "^copy_vec4$", "--elements", "64", "-q", "--json", "bench.json"];
    quiet(0, &bench).stderr("");
    quiet(0, &["verify", "--on", "sim", "-k", "^copy_vec4$", "--elements", "64", "--quiet", "--csv", "out.csv"])
        .stderr("");
    assert!(std::fs::read_to_string(at.path().join("out.csv")).expect("a table").contains("copy_vec4"));
    quiet(0, &["predict", "-k", "^copy_vec4$", "--elements", "64", "--quiet"]).stderr("");
    quiet(0, &["compare", "bench.json", "bench.json", "--quiet"]).stderr("");
    let said = quiet(1, &["simulate", "-k", "sync_missing_barrier", "--quiet"]);
    said.stderr(predicate::str::is_match("^sync_missing_barrier on .* \\(simulator\\): .*\n$").expect("a pattern"));
    // Standard output is the file's, and the messages go nowhere.
    let json = busload(at.path(), &["simulate", "-k", "^copy_vec4$", "--elements", "64", "-q", "--json", "-"]).code(0);
    serde_json::from_slice::<Value>(&json.get_output().stdout).expect("standard output is JSON alone");
    busload(at.path(), &["simulate", "-q", "-v"]).code(2);
}

#[test]
fn what_is_verbose_says_of_each_case_what_came_of_it() {
    let at = folder();
    let says = |arguments: &[&str], lines: &str| {
        let run = busload(at.path(), &[arguments, &["-k", "^copy_vec4$", "--elements", "64,128", "-v"]].concat());
        run.success()
            .stderr(predicate::str::is_match(format!("(?m)^copy_vec4 on {lines}$")).expect("a pattern").count(2));
    };
    says(&["simulate"], r"\d+, \d+\.\d\d s: 1 block, verified");
    says(&["bench", "--on", "mock"], r"\d+, .* s: \d.* ms cold, \d+ samples until noise was low enough, .*");
    says(&["predict"], r"\d+, .* s: \d.* ms, 100 % of its requests replayed");
}

#[test]
fn colours_are_for_terminals() {
    let at = folder();
    let run = |variable: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_busload-under-test"));
        command.current_dir(at.path()).env_remove("NO_COLOR").env(variable, "1");
        let output = command.args(["simulate", "-k", "sync_missing_barrier"]).output().expect("a program");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    assert!(run("CLICOLOR_FORCE").contains("\u{1b}[38;5;9m no: "), "{}", run("CLICOLOR_FORCE"));
    // A table that is said on standard error has none.
    let mut said = Command::new(env!("CARGO_BIN_EXE_busload-under-test"));
    said.current_dir(at.path()).env("CLICOLOR_FORCE", "1").args([
        "simulate",
        "-k",
        "sync_missing_barrier",
        "--json",
        "-",
    ]);
    said.assert().code(1).stderr(predicate::str::contains("no: findings").and(predicate::str::contains("1b").not()));
    assert!(!run("NO_COLOR").contains('\u{1b}') && !run("TERM").contains('\u{1b}'));
}

#[test]
fn a_file_is_not_written_over_what_is_read_or_written_too() {
    let at = folder();
    let bench = ["bench", "--on", "mock", "-k", "^copy_vec4$", "--elements", "64", "-q"];
    busload(at.path(), &[&bench[..], &["--json", "a.json"]].concat()).code(0);
    std::fs::create_dir(at.path().join("runs")).expect("a folder");
    std::fs::copy(at.path().join("a.json"), at.path().join("runs/0.json")).expect("a copy");
    let before = std::fs::read(at.path().join("a.json")).expect("a report");
    for (arguments, reason) in [
        (&["compare", "a.json", "a.json", "--json", "./a.json"][..], "a.json: it is read too, so name another file"),
        (&["report", "a.json", "-o", "runs/../a.json"], "it is read too, so name another file"),
        (&["fleet", "runs", "--html", "runs/1.json"], "fleet reads each .json of runs"),
        (&["simulate", "-k", "^copy_vec4$", "--csv", "x", "--json", "x"], "--csv x: --json is written there"),
    ] {
        busload(at.path(), arguments).code(2).stderr(predicate::str::contains(reason));
    }
    let resumed = [&bench[..], &["--resume", "a.json", "--csv", "a.json"]].concat();
    busload(at.path(), &resumed).code(2).stderr(predicate::str::contains("a.json: --json is written there"));
    let predict = ["predict", "-k", "^copy_vec4$", "--elements", "64", "--timeline", "t", "--json", "t"];
    busload(at.path(), &predict).code(2).stderr(predicate::str::contains("--timeline t: --json is written there"));
    assert_eq!(std::fs::read(at.path().join("a.json")).expect("a report"), before);
    assert!(!at.path().join("x").exists() && !at.path().join("t").exists());
}

#[test]
fn what_failed_is_told_by_compare_though_the_reference_lacks_it_and_each_result_has_a_row_of_csv() {
    let at = folder();
    let bench = |mock: &str, file: &str, status: i32| {
        let arguments =
            ["bench", "--on", "mock", "--mock", mock, "-k", "^copy_", "--elements", "64", "-q", "--json", file];
        busload(at.path(), &arguments).code(status);
    };
    bench("seed=1", "a.json", 0);
    bench("fault=copy_vec4", "failed.json", 1);
    bench("slow=copy_vec4", "slow.json", 0);
    busload(at.path(), &["compare", "failed.json", "failed.json"]).code(1).stdout(predicate::str::contains("1 failed"));
    let quiet = busload(at.path(), &["compare", "a.json", "slow.json", "-q"]).code(1).stdout("");
    quiet.stderr(predicate::str::contains("copy_vec4 on 64 is slower in slow.json, speed 0.8"));
    let csv = busload(at.path(), &["compare", "a.json", "slow.json", "failed.json", "--csv", "-"]).code(1);
    let csv = String::from_utf8(csv.get_output().stdout.clone()).expect("text");
    assert!(csv.starts_with("kernel,case,file,ms,reference_ms,speed,verdict\n"), "{csv}");
    assert!(csv.lines().any(|line| line.starts_with("copy_vec4,64,slow.json,") && line.ends_with(",slower")), "{csv}");
    assert!(
        csv.lines().any(|line| line.starts_with("copy_vec4,64,failed.json,") && line.ends_with(",failed")),
        "{csv}"
    );
    // A kernel that takes 25 % longer: by that much, and no more.
    for (share, status) in [("24", 1), ("26", 0)] {
        busload(at.path(), &["compare", "a.json", "slow.json", "--fail-if-slower", share]).code(status);
    }
}
