//! Other programs.

use std::process::Command;

/// A program that runs in the workspace, where cargo's and rustup's settings hold. This one stays where the user is, whose
/// paths are relative to that.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(sources::root());
    command
}
