//! Options that several commands have. `--help` shows them after a command's own; `-h` leaves out those of the simulator and
//! of the families.

use crate::cases;
use crate::suite::Suite;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, Command, value_parser};
use gpu::suite::{Axis, AxisKind, Value};
use std::ffi::OsStr;

/// For the child process that goes on after a launch has failed: the number of the case that it begins at.
pub(super) fn from() -> Arg {
    Arg::new("from").long("from").value_name("N").hide(true).value_parser(value_parser!(usize))
}

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

/// Which machine of the CPU carries the kernels out, and from what.
pub(super) fn machine(default: &str) -> [Arg; 2] {
    [
        Arg::new("machine")
            .long("machine")
            .value_name("MACHINE")
            .help(format!(
                "Carry kernels out from their source, or from their PTX, the built-in one without --ptx [default: {default}]"
            ))
            .value_parser(PossibleValuesParser::new(["source", "ptx"])),
        Arg::new("ptx").long("ptx").value_name("FILE").help("Carry out the kernels of this PTX instead of those built in"),
    ]
}

/// What goes to the terminal.
pub(super) fn quiet() -> Arg {
    Arg::new("quiet")
        .long("quiet")
        .short('q')
        .action(ArgAction::SetTrue)
        .help("Print no table and no progress: the exit status and the files tell, and on standard error what failed")
}

/// The same of a command that goes through cases.
pub(super) fn verbose() -> Arg {
    Arg::new("verbose")
        .long("verbose")
        .short('v')
        .action(ArgAction::SetTrue)
        .conflicts_with("quiet")
        .help("Say of each case, as soon as it is done, how long it took and what came of it")
}

/// Where results go besides the terminal.
pub(super) fn exports() -> [Arg; 4] {
    let arg = |name: &'static str, help| Arg::new(name).long(name).value_name("FILE").help(help);
    [
        json_option(),
        arg("csv", "Write them as comma-separated values, a row a result; - is standard output"),
        arg("markdown", "Write them as a Markdown table; - is standard output"),
        quiet(),
    ]
}

/// The options that say which kernels, on which cases, how they are simulated, and where the results go.
pub(super) fn selection(suite: &Suite, command: Command) -> Command {
    axes(suite, chosen(command).args(exports()).args(of_simulator()))
}

/// Those that say which kernels, and of which sizes.
pub(super) fn chosen(command: Command) -> Command {
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
                .help("Which defaults to take where an axis has two: those for a GPU, or those for the simulator")
                .long_help(
                    "Which defaults to take where an axis has two: large, those for a GPU, or small, those for the \
                     simulator; without it large where something is timed",
                )
                .value_parser(PossibleValuesParser::new(["large", "small"])),
        )
}

pub(super) fn json_option() -> Arg {
    Arg::new("json").long("json").value_name("FILE").help("Write the results as JSON; - is standard output").long_help(
        "Write the results as JSON; - is standard output. A file is replaced whole as results come, and says \
             \"unfinished\": true until the run has ended.",
    )
}

pub(super) fn threads() -> Arg {
    of_simulator_alone(Arg::new("threads").long("threads"))
        .value_name("N")
        .help("Threads of the simulator; its results do not depend on it")
        .value_parser(value_parser!(u32).range(1..=1024))
}

/// The options of the simulator.
pub(super) fn of_simulator() -> [Arg; 3] {
    [
        threads(),
        of_simulator_alone(Arg::new("max-blocks").long("max-blocks"))
            .value_name("N")
            .help("Simulate at most N blocks of a grid; counts are then of those alone, and nothing is verified")
            .value_parser(value_parser!(u64).range(1..)),
        of_simulator_alone(Arg::new("no-sanitizer").long("no-sanitizer"))
            .action(ArgAction::SetTrue)
            .help("Simulate without looking for races and for loads of memory that nobody wrote: faster, same counts"),
    ]
}

fn of_simulator_alone(arg: Arg) -> Arg {
    arg.help_heading("The simulator").hide_short_help(true)
}

/// An option for every axis of every family.
pub(super) fn axes(suite: &Suite, command: Command) -> Command {
    command.args(cases::axes(suite).into_iter().map(|axis| {
        let default = if axis.on_gpu == axis.in_simulator {
            format!("default: {}", list(axis.on_gpu))
        } else {
            format!("default: {} on a GPU, {} in the simulator", list(axis.on_gpu), list(axis.in_simulator))
        };
        Arg::new(axis.name)
            .long(axis.name)
            .value_name(value_name(&axis))
            .help(format!("{} [{default}]", axis.help))
            .help_heading("Axes of families")
            .hide_short_help(true)
            .value_delimiter(',')
            .value_parser(ValueOfAxis(axis.kind))
            .action(ArgAction::Append)
    }))
}

/// What a value of the axis is called. Those that are names are all orders.
fn value_name(axis: &Axis) -> &'static str {
    match axis.kind {
        AxisKind::Count { .. } => "N,…",
        AxisKind::Shape => "SHAPE,…",
        AxisKind::Choice(_) => "ORDER,…",
    }
}

/// Parses a value of an axis, and knows the names it can be.
#[derive(Clone)]
struct ValueOfAxis(AxisKind);

impl TypedValueParser for ValueOfAxis {
    type Value = Value;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Value, clap::Error> {
        let kind = self.0;
        TypedValueParser::parse_ref(&move |text: &str| cases::parse(kind, text), command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        match self.0 {
            AxisKind::Choice(names) => Some(Box::new(names.iter().copied().map(PossibleValue::new))),
            AxisKind::Count { .. } | AxisKind::Shape => None,
        }
    }
}

/// The values as they are given on the command line.
pub(super) fn list(values: &[Value]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
