//! `compare`: results files of one GPU, row by row.

use super::Usage;
use super::options::exports;
use super::output::{Exports, read_results, say_all};
use crate::compare::{self, Against, Comparison, Row};
use crate::record::SCHEMA;
use crate::report;
use crate::suite::Suite;
use anyhow::Result;
use clap::{Arg, ArgMatches, Command};

/// The command with its options.
pub(super) fn command(_: &Suite) -> Command {
    Command::new("compare")
        .about("Compare results files of one GPU: the speed of each kernel and case, relative to a reference")
        .long_about(
            "Compares results files of one GPU with a reference, row by row: several make a matrix. A row is faster or slower where \
             the medians differ by more than --tolerance and the middle halves of the samples do not overlap; where they do, it is \
             ambiguous. Where both clocks of the SMs were read and differ, the verdict must hold in cycles too, else it is `clock`. \
             Rows of the device's copy and of cuBLAS run the same code both times: they show how far the machine agrees with \
             itself. Exit status 1 means that a row is slower or failed.",
        )
        .after_help(
            "Examples:\n  \
             busload compare before.json after.json\n  \
             busload compare main.json branch.json --fail-if-slower 5%\n  \
             busload compare llvm.json nvvm.json nvcc.json --markdown -",
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
                .num_args(1..)
                .help("What it wrote other times: with other kernels, another driver, or the twins in CUDA C++"),
        )
        .arg(
            Arg::new("tolerance")
                .long("tolerance")
                .value_name("PERCENT")
                .help("Speeds so close to the reference's are the same")
                .value_parser(percent)
                .default_value("1"),
        )
        .arg(
            Arg::new("fail-if-slower")
                .long("fail-if-slower")
                .value_name("PERCENT")
                .help("Exit status 1 only if a row takes longer by more than this, as in 5%, or failed")
                .value_parser(percent),
        )
        .args(exports())
}

/// A share from a number of per cent, with the sign or without.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    let percent = number.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| "give a number from 0 to 100, as in 5 or 2.5%".to_owned())
}

/// Compares results files; false if a row is slower or failed.
pub(super) fn run(_: &Suite, matches: &ArgMatches) -> Result<bool> {
    let reference = matches.get_one::<String>("reference").expect("is required");
    let files: Vec<&String> = matches.get_many("results").expect("is required").collect();
    let read = read_results("", reference)?;
    let results = files.iter().map(|file| read_results("", file)).collect::<Result<Vec<_>, _>>()?;
    let exports = Exports::open(matches)?;
    exports.are_files_of_their_own(files.iter().copied().chain([reference]))?;
    let tolerance: f64 = *matches.get_one("tolerance").expect("has a default");
    let beside: Vec<_> = files.iter().map(|file| file.as_str()).zip(&results).collect();
    let compared = compare::compare((reference, &read), &beside, tolerance).map_err(|error| Usage(error.into()))?;
    let object = serde_json::json!({ "schema": SCHEMA, "command": "compare", "comparison": compared });
    exports.write(
        &object,
        &serde_json::Value::from(one_a_line(&compared)),
        || report::comparison_markdown(&compared),
        || report::comparison_table(&compared),
    )?;
    if exports.verbosity.quiet {
        say_all(report::comparison_failures(&compared).into_iter());
    }
    Ok(!compared.is_worse(matches.get_one::<f64>("fail-if-slower").copied().unwrap_or(0.0)))
}

/// What each of the results has of each case.
fn one_a_line(compared: &Comparison) -> Vec<serde_json::Value> {
    let of_row = |row: &Row| {
        let each = row.results.iter().zip(&compared.results).filter_map(|(against, source)| {
            let Against { ms, speed, speed_in_cycles, verdict } = (*against)?;
            Some(serde_json::json!({
                "kernel": row.kernel, "case": row.case, "reference_ms": row.reference_ms, "file": source.file, "ms": ms, "speed": speed,
                "speed_in_cycles": speed_in_cycles, "verdict": verdict,
            }))
        });
        each.collect::<Vec<_>>()
    };
    compared.rows.iter().flat_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_given_in_per_cent() {
        for (text, share) in [("5%", 0.05), ("2.5 %", 0.025), ("0", 0.0), ("100", 1.0)] {
            assert_eq!(percent(text), Ok(share));
        }
        for text in ["", "%", "-1", "101%", "five", "nan", "5%%"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
