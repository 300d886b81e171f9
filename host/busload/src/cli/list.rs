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
    report::print(&list_kernels(matches.get_flag("names")))?;
    Ok(true)
}

fn list_kernels(names: bool) -> String {
    let mut text = String::new();
    for family in FAMILIES {
        if !names {
            text += &format!("{}: {}\n", family.name, family.summary);
        }
        for entry in family.kernels {
            let kernel = &entry.kernel;
            if names {
                text += &format!("{}\n", kernel.name);
            } else {
                text += &format!("  {:30} {}\n", kernel.name, sentence(kernel));
            }
        }
        if names {
            continue;
        }
        let counterexamples = COUNTEREXAMPLES.iter().filter(|(of, _)| of.name == family.name);
        for entry in counterexamples.flat_map(|(_, entries)| *entries) {
            let kernel = &entry.kernel;
            text +=
                &format!("  {:30} Wrong on purpose, for the simulator to refuse. {}\n", kernel.name, sentence(kernel));
        }
        text.push('\n');
    }
    text
}

/// The first sentence of a kernel's documentation, as plain text.
fn sentence(kernel: &Kernel) -> String {
    let sentence = kernel.documentation.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    sentence.replace("[`", "").replace("`]", "").replace('`', "")
}
