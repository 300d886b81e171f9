//! Times, as a table on the terminal.

use super::table::{Column, Layout};
use super::verdict::verdict;
use crate::record::Record;
use crate::sensors::State;
use crate::timing::{L2, Stopped, Timed};
use indicatif::DecimalBytes;

/// Times, of rows on a GPU.
pub(super) fn timed(records: &[&Record]) -> Layout {
    let mut layout = Layout::new([
        Column::key("kernel"),
        Column::key("case"),
        Column::number("median\nms"),
        Column::number("95 %\ninterval").spare(3),
        Column::number("min\nms").spare(6),
        Column::number("spread").spare(4),
        Column::number("discarded\nsamples"),
        Column::number("GB/s\nread+written").spare(1),
        Column::number("of\ncopy"),
        Column::number("of\npeak").spare(2),
        Column::number("hot\nms"),
        Column::number("hot\nGB/s"),
        Column::number("must\nmove"),
        Column::number("DRAM\nmoved"),
        Column::number("occupancy").spare(5),
        Column::number("cycles\na request"),
        Column::text("verified").once(),
    ]);
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    let share = |share: f64| format!("{:.1} %", 100.0 * share);
    for record in records {
        let time = |show: fn(&Timed) -> String| or_dash(record.timed.as_ref().map(show));
        let hot = |show: fn(&Timed) -> String| or_dash(record.hot.as_ref().map(show));
        let share_of = |of: fn(&Timed) -> Option<f64>| or_dash(record.timed.as_ref().and_then(of).map(share));
        let bytes = |bytes| or_dash(record.moved.map(|_| DecimalBytes(bytes).to_string()));
        layout.row([
            record.kernel.clone(),
            record.case.clone(),
            time(|timed| format!("{:.4}", timed.median_ms)),
            or_dash(record.timed.as_ref().and_then(half_width).map(|half| format!("±{:.2} %", 100.0 * half))),
            time(|timed| format!("{:.4}", timed.min_ms)),
            time(|timed| format!("{:.1} %", 100.0 * timed.spread)),
            or_dash(Some(discarded(record)).filter(|count| *count > 0).map(|count| count.to_string())),
            time(|timed| format!("{:.0}", timed.gbps)),
            share_of(|timed| timed.share_of_copy),
            share_of(|timed| timed.share_of_peak),
            hot(|timed| format!("{:.4}", timed.median_ms)),
            hot(|timed| format!("{:.0}", timed.gbps)),
            bytes(record.bytes),
            bytes(record.moved.unwrap_or_default()),
            or_dash(record.occupancy.map(|occupancy| format!("{:.0} %", 100.0 * occupancy.share))),
            or_dash(record.timed.as_ref().and_then(|timed| timed.cycles).map(|cycles| format!("{cycles:.2}"))),
            verdict(record),
        ]);
    }
    layout
}

/// How far the median's interval reaches from it, on the side where it reaches further, as a share of it; none of one sample.
fn half_width(timed: &Timed) -> Option<f64> {
    let [low, high] = timed.interval_ms;
    (timed.samples_ms.len() > 1).then(|| (timed.median_ms - low).max(high - timed.median_ms) / timed.median_ms)
}

fn discarded(record: &Record) -> u32 {
    record.timed.iter().chain(&record.hot).map(|timed| timed.discarded).sum()
}

/// The samples of a row in a line: their median, how many there are and why no more, and the GPU after the last.
pub(super) fn of_samples(timed: &Timed) -> String {
    let l2 = match timed.l2 {
        L2::Cold => "cold",
        L2::Hot => "hot",
    };
    let noise = timed.noise.map(|noise| format!(", noise {:.2} %", 100.0 * noise)).unwrap_or_default();
    let why = match timed.stopped {
        Some(Stopped::Samples) => " as asked for",
        Some(Stopped::Noise) => " until noise was low enough",
        Some(Stopped::SteadyNoise) => " until noise changed no more",
        Some(Stopped::Entropy) => " until entropy grew no more",
        Some(Stopped::MaxTime) => " until the time was over",
        Some(Stopped::Throttled) => ", since the clock stayed too low",
        None => "",
    };
    let discarded = if timed.discarded > 0 { format!(", {} discarded", timed.discarded) } else { String::new() };
    let mut text = format!("{:.4} ms {l2}, {} samples{why}{noise}{discarded}", timed.median_ms, timed.samples_ms.len());
    if let Some(State { sm_mhz, temperature_c, power_w, throttle, .. }) = &timed.state {
        text += &sm_mhz.map(|mhz| format!(", {mhz} MHz")).unwrap_or_default();
        text += &temperature_c.map(|degrees| format!(", {degrees} °C")).unwrap_or_default();
        text += &power_w.map(|watts| format!(", {watts:.0} W")).unwrap_or_default();
        text += &throttle.iter().flatten().map(|reason| format!(", {reason}")).collect::<String>();
    }
    text
}

/// What the samples of the rows lack, in a sentence each.
pub(super) fn remarks(records: &[&Record]) -> String {
    let rows =
        |is: fn(&Timed) -> bool| records.iter().filter(|record| record.timed.iter().chain(&record.hot).any(is)).count();
    let named = |count: usize| if count == 1 { "1 row".to_owned() } else { format!("{count} rows") };
    let mut text = String::new();
    let far = rows(|timed| !timed.outliers.is_empty());
    if far > 0 {
        text += &format!("Outliers in {}: the JSON numbers them.\n", named(far));
    }
    let (level, late) = (
        rows(|timed| timed.stopped == Some(Stopped::SteadyNoise)),
        rows(|timed| timed.stopped == Some(Stopped::MaxTime)),
    );
    if level + late > 0 {
        text += &format!(
            "Noise stayed above --max-noise: it levelled off in {}, and --max-time ended {}.\n",
            named(level),
            named(late)
        );
    }
    let discarded: u32 = records.iter().map(|record| discarded(record)).sum();
    if discarded > 0 {
        text += &format!("Samples discarded, since the clock of the SMs was below --min-clock: {discarded}.\n");
    }
    let stuck = rows(|timed| timed.stopped == Some(Stopped::Throttled));
    if stuck > 0 {
        text += &format!("The clock stayed below --min-clock before {} had all samples.\n", named(stuck));
    }
    text
}
