//! What came of a pattern file, as a table on the terminal.

use super::records::below;
use super::table::{Column, Layout};
use super::verdict::verdict;
use super::width::{width, wrapped};
use crate::record::Record;
use crate::sim::coalesce::SECTOR;
use crate::spatter::{Configured, Seen, kernel_name};
use crate::why::percent;

/// The configurations with what came of each, and what its accesses by patterns were seen to cost.
pub fn spatter_table(rows: &[(&Configured, &Record, [Seen; 2])]) -> String {
    let mut layout = Layout::new([
        Column::key("entry"),
        Column::text("name"),
        Column::text("kernel"),
        Column::text("pattern"),
        Column::number("count").spare(2),
        Column::number("delta"),
        Column::number("elements").spare(3),
        Column::number("sectors\na request"),
        Column::number("bytes\nused"),
        Column::number("min\nms"),
        Column::number("Spatter's\nGB/s"),
        Column::number("GB/s\nmust move"),
        Column::text("verified").once(),
    ]);
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    for (configured, record, seen) in rows {
        let configuration = &configured.configuration;
        let timed = record.timed.as_ref();
        let both = |show: fn(&Seen) -> String| {
            let shown: Vec<_> = seen.iter().filter(|seen| seen.requests > 0).map(show).collect();
            if shown.is_empty() { "-".to_owned() } else { shown.join(" → ") }
        };
        let deltas = match configuration.inner_delta() {
            Some(inner) => format!("{} → {inner}", configuration.delta),
            None => configuration.delta.to_string(),
        };
        let by_spatter = timed.map(|timed| format!("{:.0}", gbps(configuration.bytes(), timed.min_ms)));
        layout.row([
            configured.number.to_string(),
            if configured.name.is_empty() { "-".to_owned() } else { configured.name.clone() },
            kernel_name(configuration.kind).to_owned(),
            configured.pattern.clone(),
            configuration.count.to_string(),
            deltas,
            or_dash(configuration.accesses().ok().map(|accesses| accesses.to_string())),
            both(|seen| format!("{:.2}", seen.sectors as f64 / seen.requests as f64)),
            both(|seen| percent(seen.used, SECTOR * seen.sectors)),
            or_dash(timed.map(|timed| format!("{:.4}", timed.min_ms))),
            or_dash(by_spatter),
            or_dash(timed.map(|timed| format!("{:.0}", gbps(record.bytes, timed.min_ms)))),
            verdict(record),
        ]);
    }
    let width = width();
    let is_timed = rows.iter().any(|(_, record, _)| record.timed.is_some());
    let notes = if is_timed { [COUNTED, TIMED].concat() } else { COUNTED.to_owned() };
    let mut text = layout.fit(width) + &wrapped(&notes, width, 0);
    let races: Vec<_> = rows.iter().filter(|(of, ..)| of.races).map(|(of, ..)| of.number.to_string()).collect();
    if !races.is_empty() {
        let races = format!(
            "Several threads write one element in {} {}, as its pattern says: they write equal values, and nobody looked for races.\n",
            if races.len() == 1 { "entry" } else { "entries" },
            races.join(", ")
        );
        text += &wrapped(&races, width, 0);
    }
    let records: Vec<_> = rows.iter().map(|(_, record, _)| (*record).clone()).collect();
    text + &below(&records, width)
}

/// Bytes a time, in GB/s.
fn gbps(bytes: u64, ms: f64) -> f64 {
    bytes as f64 / ms / 1e6
}

/// What the counts are of.
const COUNTED: &str = "\
Sectors (32 bytes) a request, and the share of their bytes that lanes want: of the accesses by the pattern, loads → stores.
";

/// What the times are.
const TIMED: &str = "\
Spatter's GB/s: 8 bytes an access, of GS those of both sides, over the shortest time, as Spatter reports it in MB/s. Must move: \
each byte that is touched once, over the same time.
";
