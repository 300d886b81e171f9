//! `list`: the families and their kernels.

use super::output;
use crate::provenance;
use crate::record::SCHEMA;
use crate::report;
use crate::suite::Suite;
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};
use gpu::device::primitives::{PRIMITIVES, Primitive};
use gpu::suite::{Family, Kernel};
use serde_json::{Value, json};

/// The command with its options.
pub(super) fn command(_: &Suite) -> Command {
    Command::new("list")
        .about("List the families and their kernels, in the order of the curriculum; or what kernels may use")
        .after_help(
            "Examples:\n  \
             busload list               families and kernels\n  \
             busload list --names       for scripts\n  \
             busload list --primitives  what kernels may use",
        )
        .arg(Arg::new("names").long("names").action(ArgAction::SetTrue).help("Names alone, one a line"))
        .arg(
            Arg::new("primitives").long("primitives").action(ArgAction::SetTrue).help(
                "What kernels may use: its name, the PTX that it becomes, CUDA's name, and what is counted of it",
            ),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .value_name("FILE")
                .conflicts_with("names")
                .help("Write the list as JSON; - is standard output"),
        )
}

/// Prints the list.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    let (names, primitives) = (matches.get_flag("names"), matches.get_flag("primitives"));
    let json = output::json(matches)?;
    if let Some(json) = &json {
        let list = if primitives { primitives_as_json() } else { kernels_as_json(suite) };
        json.write(&provenance::json(&list)?)?;
        if json.is_standard_output() {
            return Ok(true);
        }
    }
    report::print(&match (primitives, names) {
        (true, true) => PRIMITIVES.iter().map(|primitive| format!("{}\n", primitive.name)).collect(),
        (true, false) => report::primitives(report::width()),
        (false, _) => list_kernels(suite, names, report::width()),
    })?;
    Ok(true)
}

fn primitives_as_json() -> Value {
    let one = |primitive: &Primitive| {
        json!({
            "name": primitive.name,
            "ptx": primitive.ptx,
            "cuda": primitive.cuda,
            "counts": primitive.counts.name(),
            "counter": primitive.counts.counter(),
        })
    };
    json!({ "schema": SCHEMA, "command": "list", "primitives": PRIMITIVES.iter().map(one).collect::<Vec<_>>() })
}

fn kernels_as_json(suite: &Suite) -> Value {
    let kernel = |kernel: &Kernel, is_wrong: bool| {
        let (file, line) = (kernel.file, kernel.line);
        json!({ "name": kernel.name, "what": sentence(kernel), "file": file, "line": line, "wrong_on_purpose": is_wrong })
    };
    let family = |family: &&Family| {
        let counterexamples = suite.counterexamples.iter().filter(|(of, _)| of.name == family.name);
        let wrong = counterexamples.flat_map(|(_, entries)| *entries).map(|entry| kernel(&entry.kernel, true));
        let kernels: Vec<_> = family.kernels.iter().map(|entry| kernel(&entry.kernel, false)).chain(wrong).collect();
        json!({ "name": family.name, "summary": family.summary, "kernels": kernels })
    };
    json!({ "schema": SCHEMA, "command": "list", "families": suite.families.iter().map(family).collect::<Vec<_>>() })
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
