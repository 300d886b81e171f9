//! `compare`: two results files of one GPU, row by row.

use super::Usage;
use super::options::exports;
use super::output::{Exports, read_results};
use crate::compare;
use crate::record::SCHEMA;
use crate::report;
use crate::suite::Suite;
use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};

/// The command with its options.
pub(super) fn command(_: &Suite) -> Command {
    Command::new("compare")
        .about("Compare two results files of one GPU: the speed of each kernel and case, relative to a reference")
        .long_about(
            "Compares two results files of one GPU, row by row. A row is faster or slower where the medians differ by more \
             than --tolerance and the middle halves of the samples do not overlap; where they do, it is ambiguous. Rows of \
             the device's copy and of cuBLAS run the same code both times: they show how far the machine agrees with \
             itself. Exit status 1 means that a row is slower or failed.",
        )
        .arg(
            Arg::new("reference")
                .value_name("REFERENCE")
                .required(true)
                .help("What `bench --json` wrote: the speeds are relative to it"),
        )
        .arg(
            Arg::new("results")
                .value_name("RESULTS")
                .required(true)
                .help("What it wrote another time: with other kernels, another driver, or the twins in CUDA C++"),
        )
        .arg(
            Arg::new("tolerance")
                .long("tolerance")
                .value_name("PERCENT")
                .help("Speeds so close to the reference's are the same")
                .value_parser(value_parser!(u8).range(0..=100))
                .default_value("1"),
        )
        .args(exports())
}

/// Compares two results files; false if a row is slower or failed.
pub(super) fn run(_: &Suite, matches: &ArgMatches) -> Result<bool> {
    let file = |name| matches.get_one::<String>(name).map(String::as_str).expect("is required");
    let (reference, results) = (file("reference"), file("results"));
    let reports = (read_results("", reference)?, read_results("", results)?);
    let exports = Exports::open(matches)?;
    let percent: u8 = *matches.get_one("tolerance").expect("has a default");
    let compared = compare::compare((reference, &reports.0), (results, &reports.1), f64::from(percent) / 100.0);
    let compared = compared.map_err(|error| Usage(error.into()))?;
    let object = serde_json::json!({ "schema": SCHEMA, "command": "compare", "comparison": compared });
    exports.write(&object, || report::comparison_markdown(&compared), || report::comparison_table(&compared))?;
    let worse = [compare::Verdict::Slower, compare::Verdict::Failed];
    Ok(!compared.rows.iter().any(|row| worse.contains(&row.verdict)))
}
