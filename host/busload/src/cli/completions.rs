//! `completions` and `man`: what shells and manuals are told of the commands, from the same description as `--help`.

use super::Usage;
use crate::build::write;
use crate::report;
use crate::suite::Suite;
use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, ValueEnum, value_parser};
use clap_complete::Shell;
use clap_mangen::Man;
use std::path::{Path, PathBuf};

/// The command with its options.
pub(super) fn command(suite: &Suite) -> Command {
    let name = super::name(suite);
    Command::new("completions")
        .about("Print what a shell needs to complete commands and options")
        .after_help(format!(
            "Examples:\n  \
             {name} completions bash > ~/.local/share/bash-completion/completions/{name}\n  \
             {name} completions zsh > \"${{fpath[1]}}/_{name}\"\n  \
             {name} completions fish > ~/.config/fish/completions/{name}.fish"
        ))
        .arg(Arg::new("shell").value_name("SHELL").required(true).value_parser(value_parser!(Shell)).help("The shell"))
}

/// The command that writes manual pages.
pub(super) fn manual_command(suite: &Suite) -> Command {
    let name = super::name(suite);
    Command::new("man")
        .about("Write manual pages, one a command")
        .after_help(format!("Examples:\n  {name} man ~/.local/share/man/man1"))
        .arg(
            Arg::new("folder")
                .value_name("FOLDER")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The folder; it is made, and pages of the same names are replaced"),
        )
}

/// Prints a shell's completions.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    let shell: Shell = *matches.get_one("shell").expect("is required");
    report::print(&completions(suite, shell)?)?;
    Ok(true)
}

/// Writes the manual pages.
pub(super) fn manual(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    let folder: &PathBuf = matches.get_one("folder").expect("is required");
    let count = write_manual(suite, folder)?;
    report::print(&format!("{}: {count} pages\n", folder.display()))?;
    Ok(true)
}

/// What a shell needs to complete the program's commands and options.
///
/// # Errors
/// If that is no text.
fn completions(suite: &Suite, shell: Shell) -> Result<String> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut shown(&super::command(suite)), super::name(suite), &mut text);
    String::from_utf8(text).context("completions")
}

/// A command with the options alone that help shows: shells are told of no others.
fn shown(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned();
    let shown_to_shells = Command::new(command.get_name().to_owned()).args(arguments);
    let commands = command.get_subcommands().map(shown);
    shown_to_shells.about(command.get_about().cloned().unwrap_or_default()).subcommands(commands)
}

/// Writes the completions of every shell to a folder, which is made if it is not there.
///
/// # Errors
/// If one cannot be written.
pub fn write_completions(suite: &Suite, folder: &Path) -> Result<()> {
    make(folder)?;
    for &shell in Shell::value_variants() {
        let file = clap_complete::Generator::file_name(&shell, super::name(suite));
        write(&folder.join(file), &completions(suite, shell)?)?;
    }
    Ok(())
}

/// Writes the program's manual page and one for each command to a folder, which is made if it is not there; how many those are.
///
/// # Errors
/// If one cannot be written.
pub fn write_manual(suite: &Suite, folder: &Path) -> Result<usize> {
    make(folder)?;
    let mut program = super::command(suite).disable_help_subcommand(true);
    program.build();
    let name = program.get_name().to_owned();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set()).map(|command| {
        let name = format!("{name}-{}", command.get_name());
        command.clone().name(name).version(env!("CARGO_PKG_VERSION"))
    });
    let pages: Vec<_> = std::iter::once(program.clone()).chain(commands).collect();
    for page in &pages {
        let mut text = Vec::new();
        Man::new(page.clone()).render(&mut text)?;
        let file = format!("{}.1", page.get_name());
        write(&folder.join(file), &String::from_utf8(text).context("a manual page")?)?;
    }
    Ok(pages.len())
}

fn make(folder: &Path) -> Result<()> {
    let made = std::fs::create_dir_all(folder);
    Ok(made.with_context(|| format!("{}: no folder can be made there", folder.display())).map_err(Usage)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::BUSLOAD;

    #[test]
    fn every_command_has_a_manual_page_and_every_shell_its_completions() {
        let folder = tempfile::tempdir().expect("a folder");
        let count = write_manual(&BUSLOAD, folder.path()).expect("pages");
        let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
        for command in super::super::command(&BUSLOAD).get_subcommands() {
            let text = page(&format!("busload-{}.1", command.get_name()));
            assert!(text.contains(".SH OPTIONS") || text.contains(".SH SYNOPSIS"), "{text}");
        }
        assert!(page("busload.1").contains("busload\\-bench(1)"));
        assert_eq!(count, 1 + super::super::command(&BUSLOAD).get_subcommands().count());
        write_completions(&BUSLOAD, folder.path()).expect("completions");
        for file in ["busload.bash", "_busload", "busload.fish", "busload.elv", "_busload.ps1"] {
            assert!(page(file).contains("max-blocks") && page(file).contains("parallel"), "{file}");
            assert!(!page(file).contains("mock"), "{file} offers what help does not show");
        }
    }
}
