//! `list`: the families and their kernels.

use crate::report;
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};
use gpu::kernels::{COUNTEREXAMPLES, FAMILIES};
use gpu::suite::Kernel;

/// The command with its options.
pub(super) fn command() -> Command {
    Command::new("list")
        .about("List the families and their kernels, in the order of the curriculum")
        .arg(Arg::new("names").long("names").action(ArgAction::SetTrue).help("Names alone, one a line"))
}

/// Prints the list.
pub(super) fn run(matches: &ArgMatches) -> Result<bool> {
    report::print(&list_kernels(matches.get_flag("names"), report::width()))?;
    Ok(true)
}

/// The families with their kernels, or names alone.
fn list_kernels(names: bool, width: usize) -> String {
    let kernels = || FAMILIES.iter().flat_map(|family| family.kernels).map(|entry| entry.kernel.name);
    if names {
        return kernels().map(|name| format!("{name}\n")).collect();
    }
    let column = kernels().map(str::len).max().unwrap_or(0);
    let mut text = String::new();
    let mut add = |line: &str, hang| text += &(report::wrapped(line, width, hang) + "\n");
    for family in FAMILIES {
        add(&format!("{}: {}", family.name, family.summary), 2);
        for entry in family.kernels {
            let Kernel { name, .. } = entry.kernel;
            add(&format!("  {name:column$}  {}", sentence(&entry.kernel)), column + 2);
        }
        let counterexamples = COUNTEREXAMPLES.iter().filter(|(of, _)| of.name == family.name);
        for entry in counterexamples.flat_map(|(_, entries)| *entries) {
            let Kernel { name, .. } = entry.kernel;
            let what = sentence(&entry.kernel);
            add(&format!("  {name:column$}  Wrong on purpose, for the simulator to refuse. {what}"), column + 2);
        }
        add("", 0);
    }
    text
}

/// The first sentence of a kernel's documentation, as plain text.
fn sentence(kernel: &Kernel) -> String {
    let sentence = kernel.documentation.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    sentence.replace("[`", "").replace("`]", "").replace('`', "")
}
