//! Predictions of atomics, held to what an H200 took: `results/nvidia-h200/atomics.tsv`, of `results/probes/atomics.cu`, whose kernels
//! `atomics.ptx` has.

use assert_cmd::Command;
use busload_tests::root;
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

#[test]
fn atomics_take_about_as_long_as_an_h200_took() {
    let file = std::fs::read_to_string(root().join("results/nvidia-h200/atomics.tsv")).expect("the probe's figures");
    let measured = |row: &str| -> f64 {
        let line = file.lines().map(|line| line.replace('\t', " ")).find(|line| line.starts_with(&format!("{row} ")));
        let line = line.unwrap_or_else(|| panic!("atomics.tsv has no row {row}"));
        line.rsplit(' ').next().and_then(|ms| ms.parse().ok()).unwrap_or_else(|| panic!("no time in {line}"))
    };
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
        let (measured, predicted) = (measured(row), result["predicted"]["predicted_ms"].as_f64());
        let Some(predicted) = predicted else { panic!("{row}: {}", result["predicted"]) };
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
