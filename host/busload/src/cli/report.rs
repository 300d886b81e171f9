//! `report`: plots of results, on one page or alone.

use super::Usage;
use super::output::{are_files_of_their_own, say_unfinished};
use crate::input;
use crate::plots::{self, Material};
use crate::report::Target;
use crate::suite::Suite;
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// The command with its options.
pub(super) fn command(_: &Suite) -> Command {
    Command::new("report")
        .about("Make a page of plots from files of results, or one plot alone")
        .long_about(
            "Makes one page from what `bench --json` wrote: bandwidth against stride, offset, size and width with the curves to \
             expect, each family's ladder, a roofline, and the samples; each plot has its figures as a table beside it. Several \
             files are series of one plot: GPUs, builds, versions. What `predict --json` wrote is drawn beside what was \
             measured, what `simulate --json` counted stands in for counts that no entry states, and from what `profile \
             --json` wrote the roofline takes the bytes that the hardware moved.\n\n\
             The page needs nothing but a browser.",
        )
        .after_help(
            "Examples:\n  \
             busload report bench.json -o report.html               a page with all plots\n  \
             busload report h100.json h200.json -o both.html        two GPUs as series\n  \
             busload report bench.json --plot stride -o stride.svg  one plot, as SVG or PNG",
        )
        .arg(
            Arg::new("files")
                .value_name("FILE")
                .required(true)
                .action(ArgAction::Append)
                .help("What `bench`, `predict`, `simulate` or `profile` wrote with --json"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .required(true)
                .help("Write the page there; with --plot a picture, .svg or .png; - is standard output"),
        )
        .arg(Arg::new("plot").long("plot").value_name("NAME").help("Draw this plot alone: stride, ladder-transpose, roofline, …"))
}

/// What is written of one plot.
#[derive(Clone, Copy)]
enum Picture {
    Svg,
    Png,
}

/// Writes the page, or the picture.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    let output = matches.get_one::<String>("output").expect("is required");
    let plot = matches.get_one::<String>("plot");
    let picture = picture(output, plot.is_some())?;
    let target = Target::open("--output", output).map_err(Usage)?;
    let files = matches.get_many::<String>("files").expect("is required");
    are_files_of_their_own([("--output", &target)], files.clone())?;
    let read = |file: &String| -> Result<_, Usage> {
        Ok((file.clone(), input::text(file, input::RESULTS).map_err(|error| anyhow::anyhow!("{error}"))?))
    };
    let files = files.map(read).collect::<Result<Vec<_>, _>>()?;
    let material = Material::read(suite, &files).map_err(|error| Usage(error.into()))?;
    for file in &material.unfinished {
        say_unfinished(file);
    }
    let made = match plot {
        None => {
            if plots::chapters(&material).is_empty() {
                return Err(Usage(anyhow::anyhow!("{}: {NOTHING}", names(&files))).into());
            }
            plots::page(suite, &material).into_bytes()
        }
        Some(name) => {
            let plot = plots::find(&material, name).ok_or_else(|| no_plot(suite, &material, name))?;
            let svg = plots::svg(&plot);
            match picture {
                Picture::Svg => svg.into_bytes(),
                Picture::Png => plots::png(&svg)?,
            }
        }
    };
    target.write_bytes(&made)?;
    Ok(true)
}

const NOTHING: &str = "no time in it was measured or predicted, so there is nothing to plot: give what `bench --json` or `predict \
                       --json` wrote";

fn names(files: &[(String, String)]) -> String {
    files.iter().map(|(file, _)| file.as_str()).collect::<Vec<_>>().join(", ")
}

/// What the name of the output says that it is to be.
fn picture(output: &str, is_one: bool) -> Result<Picture, Usage> {
    let extension = std::path::Path::new(output).extension().map(|extension| extension.to_ascii_lowercase());
    let picture = match extension.as_ref().and_then(|extension| extension.to_str()) {
        Some("svg") => Some(Picture::Svg),
        Some("png") => Some(Picture::Png),
        _ => None,
    };
    match (picture, is_one) {
        (Some(_), false) => {
            Err(anyhow::anyhow!("--output {output}: a page is no picture; name one plot with --plot, or a file .html")
                .into())
        }
        (None, true) if output != "-" => Err(anyhow::anyhow!(
            "--output {output}: one plot is written as .svg or .png, so end the name in one of them"
        )
        .into()),
        (picture, _) => Ok(picture.unwrap_or(Picture::Svg)),
    }
}

/// Why there is no such plot.
fn no_plot(suite: &Suite, material: &Material, name: &str) -> Usage {
    let left_out = plots::left_out(suite, material);
    if let Some((_, what)) = left_out.iter().find(|(of, _)| of == name) {
        return Usage(anyhow::anyhow!("--plot {name}: the files hold nothing for it: {what}"));
    }
    let chapters = plots::chapters(material);
    let names: Vec<_> = chapters.iter().flat_map(|chapter| &chapter.plots).map(|plot| plot.name.as_str()).collect();
    match names.is_empty() {
        true => Usage(anyhow::anyhow!("--plot {name}: {NOTHING}")),
        false => Usage(anyhow::anyhow!("--plot {name}: there is no such plot; these files make {}", names.join(", "))),
    }
}
