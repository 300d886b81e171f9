//! Options that several commands have.

use crate::cases;
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, Command, value_parser};
use gpu::suite::Value;

pub(super) fn on() -> Arg {
    Arg::new("on")
        .long("on")
        .value_name("MACHINE")
        .help("Which machine to use; auto takes a GPU if there is one")
        .value_parser(PossibleValuesParser::new(["auto", "gpu", "sim"]))
        .default_value("auto")
}

pub(super) fn ptx() -> Arg {
    Arg::new("ptx").long("ptx").value_name("FILE").help("Launch the kernels of this PTX instead of those built in")
}

/// For the child process that goes on after a launch has failed.
pub(super) fn resume() -> Arg {
    Arg::new("resume").long("resume").value_name("N").hide(true).value_parser(value_parser!(usize))
}

/// For commands whose findings are no results of runs.
pub(super) fn exports() -> [Arg; 2] {
    let arg = |name: &'static str, help| Arg::new(name).long(name).value_name("FILE").help(help);
    [
        arg("json", "Write what was found as JSON; - is standard output"),
        arg("markdown", "Write it as a Markdown table; - is standard output"),
    ]
}

/// The options that say which kernels, on which cases, and where the results go.
pub(super) fn selection(command: Command) -> Command {
    simulated(chosen(command))
}

/// The same without the options of the simulator.
pub(super) fn chosen(command: Command) -> Command {
    axes(
        command
            .arg(
                Arg::new("kernel")
                    .long("kernel")
                    .short('k')
                    .value_name("REGEX")
                    .help("Kernels whose names match; all without"),
            )
            .arg(
                Arg::new("sizes")
                    .long("sizes")
                    .value_name("SIZES")
                    .help(
                        "Which defaults to take where an option has two: large, those on a GPU, or small, those in the \
                         simulator; without it large where something is timed",
                    )
                    .value_parser(PossibleValuesParser::new(["large", "small"])),
            )
            .arg(json_option()),
    )
}

/// The options of the simulator.
pub(super) fn simulated(command: Command) -> Command {
    command
        .arg(threads())
        .arg(
            Arg::new("max-blocks")
                .long("max-blocks")
                .value_name("N")
                .help("Simulate at most N blocks of a grid; counts are then of those alone, and nothing is verified")
                .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            Arg::new("no-sanitizer").long("no-sanitizer").action(ArgAction::SetTrue).help(
                "Simulate without looking for races and for loads of memory that nobody wrote: faster, same counts",
            ),
        )
}

pub(super) fn json_option() -> Arg {
    Arg::new("json").long("json").value_name("FILE").help("Write the results as JSON; - is standard output")
}

pub(super) fn threads() -> Arg {
    Arg::new("threads")
        .long("threads")
        .value_name("N")
        .help("Threads of the simulator; its results do not depend on it")
        .value_parser(value_parser!(u32).range(1..=1024))
}

/// An option for every axis.
pub(super) fn axes(mut command: Command) -> Command {
    for axis in cases::axes() {
        let kind = axis.kind;
        let default = if axis.on_gpu == axis.in_simulator {
            format!("default: {}", list(axis.on_gpu))
        } else {
            format!("default: {} on a GPU, {} in the simulator", list(axis.on_gpu), list(axis.in_simulator))
        };
        command = command.arg(
            Arg::new(axis.name)
                .long(axis.name)
                .value_name("N,…")
                .help(format!("{} [{default}]", axis.help))
                .value_delimiter(',')
                .value_parser(ValueParser::new(move |text: &str| cases::parse(kind, text)))
                .action(ArgAction::Append),
        );
    }
    command
}

/// The values as they are given on the command line.
pub(super) fn list(values: &[Value]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
