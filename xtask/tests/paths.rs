//! `cargo xtask` takes the paths that a user names from where the user stands.

use std::path::Path;
use std::process::{Command, Output};

fn xtask(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).current_dir(folder).output().expect("xtask runs")
}

fn expect(folder: &Path, arguments: &[&str]) -> String {
    let output = xtask(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?} in {}: {said}", folder.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_file_is_written_where_the_user_stands() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    expect(folder.path(), &["simulate", "--kernel", "^copy_coalesced$", "--elements", "64", "--json", "new.json"]);
    let text = std::fs::read_to_string(folder.path().join("new.json")).expect("the results are there");
    assert!(text.contains("copy_coalesced"), "{text}");
}

#[test]
fn a_file_is_read_from_where_the_user_stands() {
    let results = sources::root().join("results/nvidia-h200");
    let there = expect(&results, &["compare", "bench.json", "bench.json"]);
    let at_the_root = ["compare", "results/nvidia-h200/bench.json", "results/nvidia-h200/bench.json"];
    for table in [there, expect(sources::root(), &at_the_root)] {
        assert!(table.contains("copy_coalesced"), "{table}");
    }
}

#[test]
fn what_the_workspace_has_is_found_from_anywhere() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let claims = expect(folder.path(), &["claims"]);
    assert!(claims.contains(" confirmed") && !claims.contains("open"), "claims are judged by results: {claims}");
    let said = expect(folder.path(), &["doctor"]);
    assert!(said.contains("committed PTX: built from"), "{said}");
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 0, "something was left behind");
}
