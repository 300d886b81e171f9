//! The options that say how samples are taken.

use super::Usage;
use crate::measure::{Sampling, Series};
use crate::stop::Stop;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, value_parser};

/// Them all.
pub(super) fn options() -> [Arg; 7] {
    let Sampling { max_noise, min_samples, max_time_s, min_clock, .. } = Sampling::DEFAULT;
    [
        Arg::new("stop")
            .long("stop")
            .value_name("RULE")
            .help("When to stop taking samples of a kernel: by their noise, their entropy, or their number")
            .long_help(
                "When to stop taking samples of a kernel, once there are --min-samples:\n\
                 stdrel: when the standard deviation of all samples, as a share of their mean, is below --max-noise, or has levelled \
                 off above it (looked at every 16 samples, once there are 64 values of it: the last 512 are within 5 % of the \
                 latest);\n\
                 entropy: when the entropy of all samples, which grows as long as new times turn up, has levelled off (a straight \
                 line through its last 299 values rises by less than 0.048 degrees, and explains 36 % of their variance);\n\
                 samples: at once.\n\
                 The first two are nvbench's, with its thresholds.",
            )
            .value_parser(PossibleValuesParser::new(Stop::ALL.map(Stop::name)))
            .default_value(Sampling::DEFAULT.stop.name()),
        Arg::new("samples")
            .long("samples")
            .value_name("N")
            .help("Take exactly N samples of each kernel that are not discarded: --stop samples --min-samples N")
            .conflicts_with_all(["stop", "max-noise", "min-samples", "max-time"])
            .value_parser(value_parser!(u32).range(1..=MOST_SAMPLES)),
        Arg::new("max-noise")
            .long("max-noise")
            .allow_negative_numbers(true)
            .value_name("PERCENT")
            .help("The noise below which --stop stdrel is met")
            .value_parser(|text: &str| number(text, 0.0, 100.0))
            .default_value(shown(100.0 * max_noise)),
        Arg::new("min-samples")
            .long("min-samples")
            .value_name("N")
            .help("The least number of samples of each kernel, L2 flushed before each")
            .value_parser(value_parser!(u32).range(1..=MOST_SAMPLES))
            .default_value(min_samples.to_string()),
        Arg::new("max-time")
            .long("max-time")
            .allow_negative_numbers(true)
            .value_name("SECONDS")
            .help("Stop after so long, met or not, once there are --min-samples")
            .value_parser(|text: &str| number(text, 0.0, 86_400.0))
            .default_value(shown(max_time_s)),
        Arg::new("min-clock")
            .long("min-clock")
            .allow_negative_numbers(true)
            .value_name("PERCENT")
            .help("Discard samples taken while the clock of the SMs is below so much of its maximum; 0 takes them all")
            .long_help(
                "Discard samples taken while the clock of the SMs is below so much of its maximum, as NVML tells; 0 takes them all. They are \
                 counted, and others taken in their place. A kernel of which there is no other for 2 seconds ends with what it \
                 has, or fails.",
            )
            .value_parser(|text: &str| number(text, 0.0, 100.0))
            .default_value(shown(100.0 * min_clock)),
        Arg::new("hot")
            .long("hot")
            .action(ArgAction::SetTrue)
            .help("Measure each kernel a second time without flushing the L2: times with a hot one stand beside those with a cold one"),
    ]
}

/// More samples than anybody waits for.
const MOST_SAMPLES: i64 = 100_000;

fn number(text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("not a number from {least} to {most}")),
    }
}

fn shown(number: f64) -> String {
    format!("{number}")
}

/// How samples are to be taken.
pub(super) fn sampling(matches: &ArgMatches) -> Result<Sampling, Usage> {
    let number = |name: &str| *matches.get_one::<f64>(name).expect("has a default");
    let named = matches.get_one::<String>("stop").expect("has a default");
    let l2 = if matches.get_flag("hot") { Series::ColdAndHot } else { Series::Cold };
    let sampling = Sampling {
        l2,
        stop: Stop::ALL.into_iter().find(|stop| stop.name() == named).unwrap_or(Sampling::DEFAULT.stop),
        max_noise: number("max-noise") / 100.0,
        min_samples: *matches.get_one("min-samples").expect("has a default"),
        max_time_s: number("max-time"),
        min_clock: number("min-clock") / 100.0,
        ..Sampling::DEFAULT
    };
    Ok(match matches.get_one::<u32>("samples") {
        Some(count) => Sampling { min_clock: sampling.min_clock, ..Sampling::exactly(*count, l2) },
        None => sampling,
    })
}
