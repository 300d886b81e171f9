//! Predictions of atomics, held to what an H200 took: `results/nvidia-h200/atomics.tsv`, of `results/probes/atomics.cu`, whose kernels
//! `atomics.ptx` has.

use assert_cmd::Command;
use busload_tests::root;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Rows of the file, up to the milliseconds, and how far a prediction may be from those. The compiler's own instructions make shared atomics
/// as slow as issue allows; these rows wait for the atomics.
const ROWS: [(&str, f64); 21] = [
    // Each lane has an element of its own; each 2 or 4 neighbours do.
    ("global red.u32 4194304 256 1 1 67108864 0 1", 0.15),
    ("global red.u32 4194304 256 4 1 67108864 0 1", 0.15),
    ("global red.u32 4194304 256 32 1 65536 0 1", 0.35),
    ("global red.u32 4194304 256 1 8 268435456 0 1", 0.15),
    // Few addresses: hot ones, and hot lines.
    ("global red.u32 4194304 256 1 1 1 0 1", 0.1),
    ("global red.u32 4194304 256 1 1 4 0 1", 0.1),
    ("global red.u32 4194304 256 1 1 16 0 1", 0.1),
    ("global red.u32 4194304 256 1 1 256 0 1", 0.1),
    ("global red.u64 4194304 256 1 1 32 0 1", 0.1),
    ("global atom.u32 4194304 256 1 1 1024 0 1", 0.15),
    ("global red.u32 4194304 256 32 32 2048 0 1", 0.35),
    // Random addresses: a histogram.
    ("global red.u32 4194304 256 1 1 64 7 1", 0.25),
    ("global red.u32 4194304 256 1 1 256 7 1", 0.25),
    ("global red.u32 1048576 256 1 1 256 7 1", 0.25),
    ("global red.u32 4194304 256 1 1 4096 7 1", 0.25),
    ("global red.u32 4194304 256 1 1 1048576 7 1", 0.15),
    ("global red.u32 4194304 256 1 1 16777216 7 1", 0.5),
    // Shared memory: conflicts, and loops.
    ("shared atom.u32 270336 256 8 1 1024 0 64", 0.1),
    ("shared atom.u32 270336 256 1 32 2048 0 64", 0.1),
    ("shared red.f32 270336 256 32 1 1024 0 64", 0.1),
    ("shared red.f32 270336 256 1 8 2048 0 64", 0.15),
];

/// A file of rows in `results/nvidia-h200`, each with its milliseconds.
fn milliseconds(file: &str) -> BTreeMap<String, f64> {
    let text = std::fs::read_to_string(root().join("results/nvidia-h200").join(file)).expect(file);
    let rows = text.lines().map(|line| line.replace('\t', " "));
    let of = |line: String| line.rsplit_once(' ').and_then(|(row, ms)| Some((row.to_owned(), ms.parse().ok()?)));
    rows.filter_map(of).collect()
}

/// The docs say how good all predictions are that were recorded.
#[test]
fn the_errors_in_the_docs_are_those_of_the_recorded_predictions() {
    let (measured, predicted) = (milliseconds("atomics.tsv"), milliseconds("atomics_predicted.tsv"));
    let mut errors: Vec<f64> = predicted.iter().map(|(row, ms)| (ms / measured[row] - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let within = errors.iter().filter(|error| **error <= 0.3).count();
    let (count, median) = (errors.len(), 100.0 * errors[errors.len() / 2]);
    let says = format!(
        "Of its {count} rows of 4 Mi `red.add.u32` in global memory the median error is {median:.0} %, and {within} are within 30 %"
    );
    let docs = std::fs::read_to_string(root().join("docs/predicting.md")).expect("docs/predicting.md");
    assert!(docs.split_whitespace().collect::<Vec<_>>().join(" ").contains(&says), "docs/predicting.md: {says}");
}

#[test]
fn atomics_take_about_as_long_as_an_h200_took() {
    let (measured, recorded) = (milliseconds("atomics.tsv"), milliseconds("atomics_predicted.tsv"));
    let mut launches = "ptx = \"atomics.ptx\"\n".to_owned();
    for (row, _) in ROWS {
        let fields: Vec<&str> = row.split(' ').collect();
        let [space, operation, threads, block, group, stride, elements, random, rounds] = fields[..] else {
            panic!("{row} has other fields")
        };
        let number = |text: &str| text.parse::<u64>().expect(row);
        let (grid, mask) = (number(threads) / number(block), number(elements) - 1);
        let entry = format!("{space}_{}", operation.replace('.', "_"));
        let _ = writeln!(launches, "[[launch]]\nentry = \"{entry}\"\ngrid = {grid}\nblock = {block}\narguments = [");
        if space == "global" {
            let width = if operation.ends_with("64") { 64 } else { 32 };
            let _ = writeln!(
                launches,
                "{{ name = \"base\", buffer = \"u{width}\", length = {elements}, fill = \"zeros\" }},"
            );
        }
        let last = if space == "shared" { rounds } else { "" };
        for value in [group, stride, &mask.to_string(), random, last].iter().filter(|value| !value.is_empty()) {
            let _ = writeln!(launches, "{{ value = {value} }},");
        }
        launches += "]\n";
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("atomics.toml"), launches).expect("a file");
    std::fs::write(folder.path().join("atomics.ptx"), include_str!("atomics.ptx")).expect("a file");
    let mut program = Command::new(env!("CARGO_BIN_EXE_busload-under-test"));
    let arguments = ["run", "atomics.toml", "--chip", "h200", "--json", "-", "--no-sanitizer", "--max-blocks", "8"];
    let output = program.current_dir(folder.path()).args(arguments).assert().success().get_output().stdout.clone();
    let json: serde_json::Value = serde_json::from_slice(&output).expect("JSON alone");
    let results = json["results"].as_array().expect("results");
    assert_eq!(results.len(), ROWS.len());
    let mut wrong = String::new();
    for ((row, bound), result) in ROWS.into_iter().zip(results) {
        let (measured, predicted) = (measured[row], result["predicted"]["predicted_ms"].as_f64());
        let Some(predicted) = predicted else { panic!("{row}: {}", result["predicted"]) };
        if let Some(recorded) = recorded.get(row) {
            assert_eq!(format!("{predicted:.5}"), format!("{recorded:.5}"), "{row}: record the predictions anew");
        }
        let error = predicted / measured - 1.0;
        if error.abs() > bound {
            let _ =
                writeln!(wrong, "{row}: predicted {predicted:.5} ms, measured {measured:.5}: {:+.0} %", 100.0 * error);
        }
        let is_loop = row.contains("shared red.f32");
        let confidence = result["predicted"]["trust"]["confidence"].as_str();
        assert_eq!(confidence, Some(if is_loop { "low" } else { "medium" }), "{row}");
    }
    assert_eq!(wrong, "");
}

/// Launches that got no figure for as long as lanes that meet were not modelled.
#[test]
fn histograms_in_global_and_in_shared_memory_are_predicted() {
    for name in ["histogram_global", "histogram_shared"] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_busload-under-test"));
        let file = root().join(format!("tests/foreign/{name}.toml"));
        let arguments = [file.to_str().expect("a path of text"), "--chip", "h200", "--json", "-"];
        let output = program.arg("run").args(arguments).assert().success().get_output().stdout.clone();
        let json: serde_json::Value = serde_json::from_slice(&output).expect("JSON alone");
        let predicted = &json["results"][0]["predicted"];
        let ms = predicted["predicted_ms"].as_f64().unwrap_or_else(|| panic!("{name}: {predicted}"));
        assert!((0.003..0.01).contains(&ms), "{name}: {ms} ms");
        assert_eq!(predicted["trust"]["confidence"], "medium", "{name}");
    }
}
