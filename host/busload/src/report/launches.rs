//! Launches of anybody's PTX: the counts of each source position, what was found, and what became of the outputs.

use super::escape;
use super::table::{Column, Layout};
use super::width::{width, wrapped};
use crate::foreign::record::{InlinedRecord, InstructionsRecord, OnGpu, PredictedRecord, RunRecord};
use crate::record::SiteRecord;
use crate::sim::coalesce::SECTOR;
use crate::why::percent;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What came of launches.
pub fn launches(records: &[RunRecord]) -> String {
    let width = width();
    let parts: Vec<_> = records.iter().map(|record| launch(record, width)).collect();
    // A module names its files as it likes.
    let parts: Vec<_> =
        parts.iter().map(|part| part.split('\n').map(escape::terminal).collect::<Vec<_>>().join("\n")).collect();
    let has_counts =
        records.iter().any(|record| record.record.simulated.as_ref().is_some_and(|own| !own.sites.is_empty()));
    parts.join("\n") + &if has_counts { format!("\n{}", wrapped(LEGEND, width, 0)) } else { String::new() }
}

const LEGEND: &str = "\
Sectors (32 bytes) and wavefronts: a request, on average; in brackets the ideal. Used: bytes that lanes want, as a share of those \
moved.
";

fn launch(run: &RunRecord, width: usize) -> String {
    let RunRecord { record, inlined, instructions, printed, compared, written, predicted, on_gpu, .. } = run;
    let mut text = String::new();
    let name = if record.case == record.kernel { String::new() } else { format!("{}: ", record.case) };
    let launch = record.launch.as_ref();
    let (grid, block) = launch.map_or_else(Default::default, |launch| (launch.grid, launch.block));
    let shared = launch.map(|launch| launch.shared_bytes).filter(|bytes| *bytes > 0);
    let shared = shared.map_or_else(String::new, |bytes| format!(" with {bytes} bytes of dynamic shared memory"));
    let which = record.simulated.as_ref().filter(|own| own.blocks.simulated < own.blocks.total);
    let which = which.map_or_else(String::new, |own| {
        format!(", simulated: {} of {} blocks ({})", own.blocks.simulated, own.blocks.total, own.blocks.which)
    });
    let heading = format!(
        "{name}{}, {} {} of {} threads{shared}{which}\n",
        record.kernel,
        extent(grid),
        if grid == [1; 3] { "block" } else { "blocks" },
        extent(block)
    );
    text += &wrapped(&heading, width, 0);
    let sites = record.simulated.as_ref().map_or(&[][..], |simulated| &simulated.sites);
    if !sites.is_empty() {
        text += &counts(sites).fit(width);
    } else if record.error.is_none() {
        text += "It makes no requests of global, shared or constant memory.\n";
    }
    let mut below = String::new();
    below += &inlined_at(inlined);
    for site in sites {
        for note in &site.notes {
            let _ = writeln!(below, "{}:{}:{}, {} {}: {note}.", site.file, site.line, site.column, site.space, site.op);
        }
    }
    if let Some(error) = &record.error {
        let _ = writeln!(below, "{}: {}", error.kind, error.message);
    }
    below += &exactness(instructions);
    compared.iter().filter(|compared| compared.wrong == 0).for_each(|compared| {
        let _ = writeln!(below, "{compared}");
    });
    for path in written {
        let _ = writeln!(below, "Written: {}", path.display());
    }
    predicted.iter().for_each(|predicted| below += &prediction(predicted));
    on_gpu.iter().for_each(|on_gpu| below += &gpu(on_gpu));
    text += &wrapped(&below, width, 2);
    if !printed.is_empty() {
        text += "It prints:\n";
        printed.lines().for_each(|line| text += &format!("  {line}\n"));
    }
    text
}

/// Where inlined code was called, a line for each place.
fn inlined_at(inlined: &[InlinedRecord]) -> String {
    let mut places = BTreeMap::<_, BTreeSet<u32>>::new();
    for InlinedRecord { file, line, at, .. } in inlined {
        places.entry((file, at)).or_default().insert(*line);
    }
    let place = |((file, at), lines): ((&String, &Vec<Vec<String>>), BTreeSet<u32>)| {
        let chain = |chain: &Vec<String>| chain.iter().map(|call| file_name(call)).collect::<Vec<_>>().join(", ");
        let (file, verb) = (file_name(file), if lines.len() == 1 { "is" } else { "are" });
        let lines = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let at = at.iter().map(chain).collect::<Vec<_>>().join("; and at ");
        format!("{file}:{lines} {verb} inlined at {at}\n")
    };
    places.into_iter().map(place).collect()
}

/// Which instructions are not exact.
fn exactness(instructions: &InstructionsRecord) -> String {
    let InstructionsRecord { count, approximate, ignored, adds_in_any_order } = instructions;
    let list = |names: &BTreeSet<String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    if !approximate.is_empty() {
        parts.push(format!("approximate: {}", list(approximate)));
    }
    if !ignored.is_empty() {
        parts.push(format!("passed over: {}", list(ignored)));
    }
    if *adds_in_any_order {
        parts.push(
            "atomic additions of floating-point numbers, in the order of the blocks here, in any on a GPU".to_owned(),
        );
    }
    match parts.is_empty() {
        true => format!("All of its {count} instructions are exact.\n"),
        false => format!("Of its {count} instructions all are exact but {}.\n", parts.join("; ")),
    }
}

fn counts(sites: &[SiteRecord]) -> Layout {
    let mut layout = Layout::new([
        Column::key("line"),
        Column::key("access"),
        Column::number("bytes\na lane"),
        Column::number("requests"),
        Column::number("lanes\na request").spare(1),
        Column::number("sectors"),
        Column::number("used"),
        Column::number("wavefronts"),
        Column::number("transactions").spare(2),
    ]);
    let average = |count: u64, site: &SiteRecord| format!("{:.2}", count as f64 / site.requests as f64);
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    for site in sites {
        let pair = |count: Option<u64>, ideal: Option<u64>| {
            or_dash(
                count.zip(ideal).map(|(count, ideal)| format!("{} ({})", average(count, site), average(ideal, site))),
            )
        };
        layout.row([
            format!("{}:{}", file_name(&site.file), site.line),
            format!("{} {}", site.space, site.op),
            site.width.to_string(),
            site.requests.to_string(),
            average(site.lanes, site),
            pair(site.sectors, site.sectors_ideal),
            or_dash(site.used.zip(site.sectors).map(|(used, sectors)| percent(used, SECTOR * sectors))),
            pair(site.wavefronts, site.wavefronts_ideal),
            or_dash(site.transactions.map(|transactions| average(transactions.count, site))),
        ]);
    }
    layout
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn prediction(predicted: &PredictedRecord) -> String {
    let PredictedRecord { chip, prediction, trust, error } = predicted;
    let mut text = match (prediction, error) {
        (Some(own), _) => {
            let confidence =
                trust.confidence.map_or_else(String::new, |confidence| format!(", confidence {confidence}"));
            format!("Predicted on {chip}: {:.4} ms, limit {}{confidence}\n", own.predicted_ms, own.limit)
        }
        (None, error) => format!("Not predicted on {chip}: {}\n", error.as_deref().unwrap_or("it is not modelled")),
    };
    for reason in &trust.because {
        let _ = writeln!(text, "  {reason}");
    }
    text
}

fn gpu(on_gpu: &OnGpu) -> String {
    let OnGpu { compared, timed, error } = on_gpu;
    let mut text = String::new();
    if let Some(error) = error {
        let _ = writeln!(text, "On the GPU: {}: {}", error.kind, error.message);
    }
    for compared in compared {
        let _ = writeln!(text, "On the GPU {compared}");
    }
    if let Some(timed) = timed {
        let (median, least, spread) = (timed.median_ms, timed.min_ms, 100.0 * timed.spread);
        let samples = timed.samples_ms.len();
        let _ = writeln!(
            text,
            "On the GPU: {median:.4} ms, the median of {samples} samples with a cold L2; least {least:.4} ms, spread {spread:.1} %"
        );
    }
    text
}

/// `32x8`.
fn extent(axes: [u32; 3]) -> String {
    let last = axes.iter().rposition(|&n| n > 1).unwrap_or(0);
    axes[..=last].iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_were_inlined_at_the_same_places_are_named_together() {
        let inlined = |line, column, at: &[&[&str]]| InlinedRecord {
            file: "/home/me/tiles.cuh".into(),
            line,
            column,
            at: at.iter().map(|chain| chain.iter().map(|call| (*call).to_owned()).collect()).collect(),
        };
        let once: &[&[&str]] = &[&["/home/me/kernel.cu:50:5"]];
        let twice: &[&[&str]] = &[&["/home/me/tiles.cuh:9:1", "/home/me/kernel.cu:50:5"], &["/home/me/kernel.cu:60:5"]];
        assert_eq!(
            inlined_at(&[inlined(21, 3, once), inlined(26, 3, once), inlined(26, 9, once), inlined(30, 1, twice)]),
            "tiles.cuh:21, 26 are inlined at kernel.cu:50:5\n\
             tiles.cuh:30 is inlined at tiles.cuh:9:1, kernel.cu:50:5; and at kernel.cu:60:5\n"
        );
    }

    #[test]
    fn what_is_not_exact_is_named() {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let exact = InstructionsRecord { count: 9, ..InstructionsRecord::default() };
        assert_eq!(exactness(&exact), "All of its 9 instructions are exact.\n");
        let open = InstructionsRecord {
            approximate: named(&["ex2.approx.f32", "rcp.approx.f32"]),
            ignored: named(&["prefetch.global.L2"]),
            ..exact
        };
        assert_eq!(
            exactness(&open),
            "Of its 9 instructions all are exact but approximate: `ex2.approx.f32`, `rcp.approx.f32`; passed over: \
             `prefetch.global.L2`.\n"
        );
    }
}
