//! What a change must pass.

use crate::command::command;
use crate::{build, docs};
use anyhow::{Context, Result, ensure};
use busload::report;

/// Runs cargo.
pub(crate) fn cargo(arguments: &[&str]) -> Result<()> {
    cargo_with(arguments, &[])
}

fn cargo_with(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    report::say(&format!("$ cargo {}", arguments.join(" ")));
    let status =
        command("cargo").args(arguments).envs(environment.iter().copied()).status().context("running cargo")?;
    ensure!(status.success(), "`cargo {}` failed", arguments.join(" "));
    Ok(())
}

/// All tests, or those of a family's kernels; says if the committed PTX is stale, which whoever edits a kernel without
/// rust-src cannot help.
pub(crate) fn test(family: Option<&str>) -> Result<bool> {
    match family {
        None => cargo(&["test", "--release", "--workspace", "--no-fail-fast"])?,
        // Tests take no arguments of their own.
        Some(family) => cargo_with(
            &[
                "test",
                "--release",
                "--package",
                "busload-tests",
                "--test",
                "suite",
                "--test",
                "ptx",
                "--test",
                "profile",
                "--no-fail-fast",
            ],
            &[("BUSLOAD_TEST_FAMILY", family)],
        )?,
    }
    if !is_fresh()? {
        report::say(&format!("warning: {} was built from other sources: run `cargo xtask ptx`", build::COMMITTED));
    }
    Ok(true)
}

/// Everything.
pub(crate) fn ci() -> Result<bool> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])?;
    // Without the GPU, as another crate may want the simulator.
    cargo(&["clippy", "--package", "busload", "--no-default-features", "--", "--deny", "warnings"])?;
    cargo_with(
        &["doc", "--workspace", "--no-deps", "--document-private-items"],
        &[("RUSTDOCFLAGS", "--deny warnings")],
    )?;
    test(None)?;
    own_crate()?;
    ensure!(docs::make(true)?, "docs/ is stale: run `cargo xtask docs` and commit it");
    ensure!(is_fresh()?, "{} was built from other sources: run `cargo xtask ptx` and commit it", build::COMMITTED);
    for tests in sources::TEST_CRATES {
        let is_fresh = tests.fresh()?.is_some();
        ensure!(is_fresh, "{} was built from other sources: run `cargo xtask ptx` and commit it", tests.committed);
    }
    if build::has_rust_src() {
        cargo(&["xtask", "ptx", "--check"])?;
    } else {
        report::say(&format!("warning: {} was not rebuilt: {}", build::COMMITTED, busload::build::RUST_SRC));
    }
    Ok(true)
}

/// The crate outside the workspace, as its own workspace has it: kernels with busload as the one dependency.
fn own_crate() -> Result<()> {
    let of = |command: &[&str], rest: &[&str]| {
        let place = ["--manifest-path", "examples/own-crate/Cargo.toml"];
        let target = ["--target-dir", "target/own-crate"];
        let places: &[&str] = if command == ["fmt"] { &place } else { &[place, target].concat() };
        cargo(&[command, places, rest].concat())
    };
    of(&["fmt"], &["--check"])?;
    of(&["clippy"], &["--release", "--all-targets", "--", "--deny", "warnings"])?;
    // With the simulator alone, as its tests need no more.
    of(&["test"], &["--release", "--no-default-features"])?;
    of(&["run"], &["--release", "--", "verify", "--on", "sim"])?;
    if !build::has_rust_src() {
        return Ok(());
    }
    // It commits none.
    let ptx = "target/own-crate/own_crate_sm_80.ptx";
    of(&["run"], &["--release", "--", "ptx", "--output", ptx])?;
    of(&["run"], &["--release", "--", "verify", "--on", "sim", "--ptx", ptx])
}

fn is_fresh() -> Result<bool> {
    sources::is_fresh(&build::committed()?)
}
