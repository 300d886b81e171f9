//! The tree's invariants: each check fails if it finds nothing to check.

use busload::results::{self, Measurement};
use busload_tests::{counterexamples, files, kernels, root};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The lines of code of a file: without comments, and each with its number.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.enumerate().map(|(i, line)| (i + 1, line)).filter(|(_, line)| !line.trim().is_empty())
}

/// Where code of `files` contains one of `words`, as `path:line: text`.
fn mentions(files: &[(PathBuf, String)], words: &[&str]) -> Vec<String> {
    let in_file = |(path, text): &(PathBuf, String)| {
        let lines = code(text).filter(|(_, line)| words.iter().any(|word| line.contains(word)));
        lines.map(|(number, line)| format!("{}:{number}: {}", path.display(), line.trim())).collect::<Vec<_>>()
    };
    files.iter().flat_map(in_file).collect()
}

/// The files of the whole tree that are under none of `allowed`.
fn outside(allowed: &[&str], suffix: &str) -> Vec<(PathBuf, String)> {
    let (inside, outside): (Vec<_>, Vec<_>) =
        files("", suffix).into_iter().partition(|(path, _)| allowed.iter().any(|folder| path.starts_with(folder)));
    assert!(!inside.is_empty(), "nothing ends in {suffix} under {allowed:?}");
    outside
}

/// The packages of the workspace, as cargo sees them.
fn packages() -> Vec<serde_json::Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

#[test]
fn gpu_is_no_std_and_depends_on_nothing_of_ours_but_its_macros() {
    let library = std::fs::read_to_string(root().join("gpu/src/lib.rs")).expect("gpu/src/lib.rs");
    let says_so = library.lines().any(|line| line == "#![cfg_attr(not(feature = \"nvvm\"), no_std)]");
    assert!(says_so, "gpu/src/lib.rs does not say no_std");
    // The facade on the host alone takes it, in one file, for the thread-local that names the running lane.
    let (inside, outside): (Vec<_>, Vec<_>) =
        files("gpu/src", ".rs").into_iter().partition(|(path, _)| path.ends_with("gpu/src/device/host/lane.rs"));
    let words = ["extern crate std", "use std::", " std::"];
    assert!(!mentions(&inside, &words).is_empty(), "gpu/src/device/host/lane.rs does not take std either");
    assert_eq!(mentions(&outside, &words), [""; 0]);
    let packages = packages();
    let gpu = packages.iter().find(|package| package["name"] == "busload-gpu").expect("the package busload-gpu");
    let dependencies = gpu["dependencies"].as_array().expect("dependencies");
    let ours: Vec<_> = dependencies.iter().filter(|of| !of["path"].is_null()).map(|of| &of["name"]).collect();
    assert_eq!(ours, ["busload-macros"]);
}

#[test]
fn kernels_touch_memory_only_through_the_facade() {
    let kernels = files("gpu/src/kernels", ".rs");
    assert!(kernels.iter().any(|(_, text)| text.contains("#[kernel]")), "no kernel in gpu/src/kernels");
    let words = [
        "asm!",
        "ptr::",
        "*const",
        "*mut",
        "&raw",
        "addr_of",
        "transmute",
        ".as_ptr(",
        ".as_mut_ptr(",
        ".add(",
        ".offset(",
        ".wrapping_add(",
        ".read_volatile(",
        ".write_volatile(",
        "get_unchecked",
        "from_address",
        "from_word",
        "static mut",
        "target_arch",
        "target_os",
        "core::arch",
    ];
    assert_eq!(mentions(&kernels, &words), [""; 0]);
    let dereferences = kernels.iter().flat_map(|(path, text)| {
        let lines = code(text).filter(|(_, line)| is_dereference(line));
        lines.map(move |(number, line)| format!("{}:{number}: {}", path.display(), line.trim()))
    });
    assert_eq!(dereferences.collect::<Vec<_>>(), [""; 0]);
}

/// Whether a line dereferences anything: a `*` with a name or a parenthesis right behind it, and no operand before it.
fn is_dereference(line: &str) -> bool {
    line.match_indices('*').any(|(i, _)| {
        let before = line[..i].trim_end().chars().next_back();
        let after = line[i + 1..].chars().next();
        let operand = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ')' | ']' | '"'));
        // `return *p` and its like: a word before the star that is no operand.
        let word = line[..i].trim_end().rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let keyword = matches!(word, "return" | "in" | "if" | "else" | "match" | "while" | "break");
        (!operand || keyword) && after.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '(' | '*'))
    })
}

#[test]
fn a_dereference_is_told_from_a_product() {
    for line in ["*p = 1.0;", "let x = *p;", "f(*p, 1)", "return *p;", "a + *p", "**p", "x = a * *p;", "*(p)"] {
        assert!(is_dereference(line), "{line}");
    }
    for line in ["a * b", "8 * case.sm_count", "(i / 32) * 32 * stride", "use x::*;", "a *= b;", "f(x) * (y)", "a*b"] {
        assert!(!is_dereference(line), "{line}");
    }
}

/// The packages that a package of the workspace builds on: ours, or those of others.
fn dependencies(package: &serde_json::Value, ours: bool) -> Vec<&str> {
    let all = package["dependencies"].as_array().expect("dependencies");
    let built = all.iter().filter(|of| of["kind"] != "dev" && of["path"].is_null() != ours);
    let mut names: Vec<_> = built.map(|of| of["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    names
}

/// The walls between the rooms of host/, as ARCHITECTURE.md draws them.
#[test]
fn the_crates_of_the_host_depend_on_one_another_in_one_direction() {
    let packages = packages();
    let in_host = |package: &&serde_json::Value| {
        package["manifest_path"].as_str().is_some_and(|path| Path::new(path).starts_with(root().join("host")))
    };
    let mut found: Vec<_> = packages.iter().filter(in_host).map(|package| (&package["name"], package)).collect();
    found.sort_unstable_by_key(|(name, _)| name.as_str());
    let found: Vec<_> = found
        .into_iter()
        .map(|(name, package)| (name.as_str().expect("a name"), dependencies(package, true)))
        .collect();
    let [cuda, engine, gpu, model, plan, ptx, source, system] =
        ["cuda", "engine", "gpu", "model", "plan", "ptx", "source", "system"].map(|name| format!("busload-{name}"));
    let expected = [
        ("busload", vec![&*cuda, &engine, &gpu, &model, &plan, &ptx, &source, &system]),
        (&cuda, vec![&gpu, &plan, &system]),
        (&engine, vec![&gpu, &plan, &system]),
        (&model, vec![&engine, &gpu, &system]),
        (&plan, vec![&gpu, &system]),
        (&ptx, vec![&engine, &gpu, &system]),
        (&source, vec![&engine, &gpu, &plan, &system]),
        (&system, vec![]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn only_the_crate_cuda_imports_cust_and_nvml_wrapper() {
    let words = ["use cust", "cust::", "extern crate cust", "cust_raw", "nvml_wrapper"];
    assert!(!mentions(&files("host/cuda", ".rs"), &words).is_empty(), "host/cuda does not import cust either");
    // This file names what it forbids.
    assert_eq!(mentions(&outside(&["host/cuda", "tests/tests/tidy.rs"], ".rs"), &words), [""; 0]);
    let packages = packages();
    for driver in ["cust", "nvml-wrapper"] {
        let dependents = packages.iter().filter(|package| dependencies(package, false).contains(&driver));
        assert_eq!(dependents.map(|package| &package["name"]).collect::<Vec<_>>(), ["busload-cuda"]);
    }
}

/// Another front end carries out PTX: what the engine and the model know of one must hold for both.
#[test]
fn neither_the_engine_nor_the_model_knows_a_front_end() {
    for folder in ["host/engine/src", "host/model/src", "host/ptx/src"] {
        let code = without_tests(files(folder, ".rs"));
        assert!(!mentions(&code, &["gpu::suite"]).is_empty(), "{folder} does not know what is launched either");
        let words = ["gpu::device", "gpu::kernels", "panic::Location", "track_caller", "corosensei", "source::"];
        let found = mentions(&code, &words);
        // The tests of the model stand at positions of their own.
        let found: Vec<_> = found.into_iter().filter(|line| !line.contains("cfg(test)")).collect();
        assert_eq!(found, [""; 0]);
    }
}

/// The parts of files that are not their tests.
fn without_tests(files: Vec<(PathBuf, String)>) -> Vec<(PathBuf, String)> {
    let part = |text: String| text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
    // Those that are long stand in a file beside.
    let sources = files.into_iter().filter(|(path, _)| !path.ends_with("tests.rs"));
    sources.map(|(path, text)| (path, part(text))).collect()
}

#[test]
fn files_are_read_to_a_bound_and_what_is_said_need_not_be_heard() {
    let sources = ["host", "xtask/src"].map(|folder| without_tests(files(folder, ".rs"))).concat();
    let (allowed, others): (Vec<_>, Vec<_>) =
        sources.into_iter().partition(|(path, _)| path.ends_with("host/system/src/input.rs"));
    assert!(!mentions(&allowed, &["read_to_end("]).is_empty(), "host/system/src/input.rs reads nothing");
    // `input` refuses what has no end; `report::print` and `report::say` do not panic.
    let words = ["fs::read(", "fs::read_to_string(", "read_to_end(", ".read_to_string(", "File::open("];
    assert_eq!(mentions(&others, &words), [""; 0]);
    assert_eq!(mentions(&others, &["println!(", "print!(", "dbg!("]), [""; 0]);
}

#[test]
fn one_file_of_the_facade_alone_asks_whether_it_is_built_for_a_gpu() {
    let words = ["target_os = \"cuda\"", "target_os=\"cuda\""];
    let facade = "gpu/src/device/mod.rs";
    assert!(!mentions(&files("gpu/src/device", ".rs"), &words).is_empty(), "the facade does not ask either");
    // For a GPU, the library that users depend on is the facade and nothing else.
    let library = "host/busload/src/lib.rs";
    assert_eq!(mentions(&outside(&[facade, library, "tests/tests/tidy.rs"], ".rs"), &words), [""; 0]);
}

#[test]
fn a_kernels_name_begins_with_its_familys_and_is_lower_snake_case() {
    for (family, entry) in kernels().into_iter().chain(counterexamples()) {
        let name = entry.kernel.name;
        let rest = name.strip_prefix(family.name).and_then(|rest| rest.strip_prefix('_'));
        assert!(rest.is_some_and(|rest| !rest.is_empty()), "{name} is in the family {}", family.name);
        let snake = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        assert!(snake && !name.contains("__") && !name.ends_with('_'), "{name}");
        let file = format!("gpu/src/kernels/{}.rs", family.name);
        assert_eq!(entry.kernel.file, file, "{name} stands in another family's file");
    }
}

#[test]
fn a_kernels_documentation_says_what_it_is_what_to_look_for_and_what_it_costs() {
    for (_, entry) in kernels().into_iter().chain(counterexamples()) {
        let (name, text) = (entry.kernel.name, entry.kernel.documentation);
        let sentence = text.split("\n\n").next().unwrap_or_default();
        let is_sentence =
            sentence.starts_with(char::is_uppercase) && sentence.ends_with('.') && !sentence.contains("**");
        assert!(is_sentence, "{name} does not begin with a paragraph of its own that says what it is: {sentence}");
        let place = |heading: &str| text.find(heading).unwrap_or_else(|| panic!("{name} has no {heading}"));
        assert!(place("**Look for**") < place("**Cost**"), "{name}: what to look for stands before the cost");
    }
}

#[test]
fn kernel_files_stay_short_and_say_what_they_show() {
    for (path, text) in files("gpu/src/kernels", ".rs") {
        let lines = text.lines().count();
        assert!(lines < 350, "{} has {lines} lines: split the family", path.display());
        assert!(text.starts_with("//! "), "{} does not begin with what it shows", path.display());
    }
}

#[test]
fn the_committed_results_make_sense_to_those_who_read_them() {
    let (mut timed, mut counted) = (0, 0);
    for (path, text) in files("results", ".json") {
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        if report["command"] == "predict" {
            continue;
        }
        match results::measurement(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())) {
            Measurement::Bench(results) => timed += results.rows.iter().filter(|row| row.timed.is_ok()).count(),
            Measurement::Profile { rows, .. } => counted += rows.len(),
        }
    }
    assert!(timed > 600 && counted > 1000, "{timed} times and {counted} launches counted");
}

#[test]
fn the_simulator_alone_is_a_dozen_crates_of_others() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--package", "busload", "--no-default-features", "--prefix", "none"]);
    cargo.args(["--edges", "normal,no-proc-macro"]).current_dir(root());
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("text");
    let (ours, others): (BTreeSet<_>, BTreeSet<_>) =
        tree.lines().filter_map(|line| line.split(' ').next()).partition(|name| name.starts_with("busload"));
    assert!(ours.contains("busload-source"), "{ours:?}");
    assert!((1..=12).contains(&others.len()), "{} crates: {others:?}", others.len());
}

#[test]
fn the_lock_of_the_workspace_has_no_git_source() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    let sources: Vec<_> = lock.lines().filter(|line| line.starts_with("source = ")).collect();
    assert!(!sources.is_empty(), "Cargo.lock names no source");
    let others: Vec<_> = sources.iter().filter(|line| !line.contains("\"registry+")).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn the_ptx_and_the_files_of_a_distribution_are_in_the_tree() {
    for file in ["gpu/ptx/busload_sm_80.ptx", "README.md", "LICENSE-APACHE", "LICENSE-MIT", "rust-toolchain.toml"] {
        let length = std::fs::metadata(root().join(Path::new(file))).map(|metadata| metadata.len());
        assert!(length.is_ok_and(|length| length > 0), "{file} is missing or empty");
    }
}
