//! `list`: the families and their kernels.

use crate::report;
use crate::suite::Suite;
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};
use gpu::suite::Kernel;

/// The command with its options.
pub(super) fn command(_: &Suite) -> Command {
    Command::new("list")
        .about("List the families and their kernels, in the order of the curriculum")
        .arg(Arg::new("names").long("names").action(ArgAction::SetTrue).help("Names alone, one a line"))
}

/// Prints the list.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    report::print(&list_kernels(suite, matches.get_flag("names"), report::width()))?;
    Ok(true)
}

/// The families with their kernels, or names alone.
fn list_kernels(suite: &Suite, names: bool, width: usize) -> String {
    if names {
        return suite.names().map(|name| format!("{name}\n")).collect();
    }
    let column = suite.names().map(str::len).max().unwrap_or(0);
    let mut text = String::new();
    let mut add = |line: &str, hang| text += &(report::wrapped(line, width, hang) + "\n");
    for family in suite.families {
        add(&format!("{}: {}", family.name, family.summary), 2);
        for entry in family.kernels {
            let Kernel { name, .. } = entry.kernel;
            add(&format!("  {name:column$}  {}", sentence(&entry.kernel)), column + 2);
        }
        let counterexamples = suite.counterexamples.iter().filter(|(of, _)| of.name == family.name);
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
