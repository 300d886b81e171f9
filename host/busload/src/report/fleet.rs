//! A fleet of GPUs on the terminal.

use super::escape::terminal;
use super::table::{Column, Layout};
use super::width::{width, wrapped};
use crate::fleet::{Fleet, Gpu, Outlier};

/// The GPUs as a table, the slowest first, and below it what is to be looked at.
pub fn fleet_table(fleet: &Fleet) -> String {
    fleet_table_in(fleet, width())
}

/// The same in Markdown.
pub fn fleet_markdown(fleet: &Fleet) -> String {
    let lines = verdicts(fleet);
    let list: String = lines.iter().map(|line| format!("- {}\n", super::escape::markdown(line))).collect();
    let kernels = match fleet.kernels.is_empty() {
        true => String::new(),
        false => format!("\n## By kernel\n\n{}", kernels(fleet, usize::MAX).markdown()),
    };
    format!("# Fleet\n\n{}\n{list}{kernels}", layout(fleet).markdown())
}

/// So many kernels stand on the terminal.
const KERNELS: usize = 10;

/// Those alone on which the fastest GPU is so many times as fast as the slowest.
const APART: f64 = 1.01;

fn fleet_table_in(fleet: &Fleet, width: usize) -> String {
    let verdicts = verdicts(fleet).iter().map(|line| terminal(line)).collect::<Vec<_>>().join("\n");
    let verdicts = wrapped(&verdicts, width, 2);
    let apart = fleet.kernels.iter().filter(|ranking| ranking.apart() >= APART).count();
    let kernels = match apart {
        0 => String::new(),
        _ => {
            let first = apart.min(KERNELS);
            let heading =
                format!("Kernels on which GPUs are 1 % apart or more: {first} of {apart}, the furthest first.");
            format!("\n{}\n{}\n", wrapped(&heading, width, 0), kernels(fleet, first).fit(width))
        }
    };
    format!("{}{kernels}{verdicts}\n", layout(fleet).fit(width))
}

/// How a GPU is called: by its process if a launcher started it, else by its file.
pub(crate) fn called(gpu: &Gpu) -> String {
    match &gpu.process {
        Some(process) => format!("{}, rank {}", process.host, process.rank),
        None => gpu.file.clone(),
    }
}

fn layout(fleet: &Fleet) -> Layout {
    let mut layout = Layout::new([
        Column::key("GPU"),
        Column::text("model").once(),
        Column::number("device").spare(3),
        Column::text("id").spare(4),
        Column::number("speed"),
        Column::number("cases"),
        Column::number("slow\ncases"),
        Column::number("failed\ncases"),
        Column::number("discarded\nsamples").spare(2),
        Column::number("°C").spare(1),
        Column::text("throttled by"),
        Column::text("verdict"),
    ]);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let count = |count: usize| if count == 0 { "-".to_owned() } else { count.to_string() };
    for gpu in &fleet.gpus {
        let reasons = gpu.throttled_by();
        layout.row([
            called(gpu),
            gpu.name.clone(),
            or_none(gpu.device.map(|device| device.to_string())),
            or_none(gpu.id.as_deref().map(|id| id.chars().take(8).collect())),
            or_none(gpu.speed.map(|speed| format!("{speed:.3}"))),
            gpu.cases.to_string(),
            count(gpu.outliers.len()),
            count(gpu.failed.len()),
            count(gpu.discarded as usize),
            or_none(gpu.temperature_c.map(|degrees| degrees.to_string())),
            if reasons.is_empty() { "-".to_owned() } else { reasons },
            gpu.verdict().to_owned(),
        ]);
    }
    layout
}

/// The kernels, and which GPU is the slowest on each.
fn kernels(fleet: &Fleet, first: usize) -> Layout {
    let mut layout = Layout::new([
        Column::key("kernel"),
        Column::text("model").once(),
        Column::number("GPUs").spare(2),
        Column::text("slowest"),
        Column::number("speed"),
        Column::text("fastest").spare(1),
        Column::number("speed").spare(1),
        Column::number("slow\ncases"),
    ]);
    let name = |file: &str| fleet.gpus.iter().find(|gpu| gpu.file == file).map_or(file.to_owned(), called);
    for ranking in fleet.kernels.iter().take(first) {
        let Some([slowest, fastest]) = ranking.ends() else { continue };
        let outliers: usize = ranking.gpus.iter().map(|place| place.outliers).sum();
        layout.row([
            ranking.kernel.clone(),
            ranking.name.clone(),
            ranking.gpus.len().to_string(),
            name(&slowest.file),
            format!("{:.3}", slowest.speed),
            name(&fastest.file),
            format!("{:.3}", fastest.speed),
            if outliers == 0 { "-".to_owned() } else { outliers.to_string() },
        ]);
    }
    layout
}

/// So many cases of a GPU are named.
const NAMED: usize = 3;

/// What is to be looked at, and how it was judged: a line each.
pub(crate) fn verdicts(fleet: &Fleet) -> Vec<String> {
    let mut lines = alarms(fleet);
    lines.extend(fleet.differences.iter().cloned());
    let suspect = fleet.gpus.iter().filter(|gpu| gpu.is_suspect()).count();
    let rules = fleet.rules;
    lines.push(format!(
        "{}: {} to look at.",
        if fleet.gpus.len() == 1 { "1 GPU".to_owned() } else { format!("{} GPUs", fleet.gpus.len()) },
        if suspect == 0 { "none".to_owned() } else { suspect.to_string() }
    ));
    lines.push(format!(
        "Speed is the geometric mean over the cases, relative to the median of the GPUs of that name. A case is slow if it takes {:.1} % \
         longer than that median and its robust z-score is above {}; of fewer than 4 GPUs, longer than on the fastest.",
        100.0 * rules.slower, rules.z_score
    ));
    lines
}

/// So many ranks are named.
const RANKS: usize = 16;

/// What is to be looked at: a line each.
pub fn alarms(fleet: &Fleet) -> Vec<String> {
    let mut lines = Vec::new();
    for gpu in fleet.gpus.iter().filter(|gpu| gpu.is_suspect()) {
        let mut said: Vec<String> = gpu.outliers.iter().take(NAMED).map(slow).collect();
        said.extend((gpu.outliers.len() > NAMED).then(|| format!("{} more are slow", gpu.outliers.len() - NAMED)));
        said.extend(gpu.failed.iter().take(NAMED).cloned());
        said.extend((gpu.failed.len() > NAMED).then(|| format!("{} more failed", gpu.failed.len() - NAMED)));
        said.extend(gpu.alarms().map(|(reason, cases)| format!("NVML says {reason} after {cases} cases")));
        said.extend(gpu.unfinished.then(|| "its run was ended before its last case".to_owned()));
        said.extend((gpu.cases == 0).then(|| "nothing was measured on it".to_owned()));
        lines.push(format!("{}: {}.", called(gpu), said.join("; ")));
    }
    if !fleet.missing.is_empty() {
        let ranks = fleet.missing.iter().take(RANKS).map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let more = fleet.missing.len().saturating_sub(RANKS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("No results of rank {ranks}{more}."));
    }
    for [one, other] in &fleet.twice {
        lines.push(format!("{one} and {other} are of one GPU: give each process its own."));
    }
    lines
}

fn slow(outlier: &Outlier) -> String {
    let Outlier { kernel, case, ms, others_ms, z_score } = outlier;
    let z = match z_score {
        Some(z) if *z < 1000.0 => format!(", z {z:.1}"),
        Some(_) => ", z above 1000".to_owned(),
        None => String::new(),
    };
    format!(
        "{kernel} on {case} takes {ms:.4} ms, the others {others_ms:.4} (+{:.1} %{z})",
        100.0 * (ms / others_ms - 1.0)
    )
}
