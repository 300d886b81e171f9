//! Other programs.

use anyhow::{Context, Result, ensure};
use std::process::Command;

/// A program that runs in the workspace, where cargo's and rustup's settings hold. This one stays where the user is, whose
/// paths are relative to that.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(sources::root());
    command
}

/// The standard output of a program that succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("running {name}"))?;
    ensure!(output.status.success(), "{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?)
}
