//! Predictions, beside what was measured where it is known: on the terminal and as Markdown.

use super::table::{Column, Layout};
use super::width::{width, wrapped};
use crate::predict::{Confidence, Row, Score};
use std::fmt::Write;

const HEADER: [&str; 11] = [
    "kernel",
    "case",
    "predicted\nms",
    "GB/s",
    "limit",
    "confidence",
    "L1\nwavefronts",
    "L2\nsectors read",
    "DRAM\nsectors read",
    "measured\nms",
    "error",
];

/// The rows as a table, and below it how good they are.
pub fn prediction_table(rows: &[Row]) -> String {
    let [kernel, case, predicted, gbps, limit, confidence, l1, l2, memory, measured, error] = HEADER;
    let mut layout = Layout::new([
        Column::key(kernel),
        Column::key(case),
        Column::number(predicted),
        Column::number(gbps).spare(1),
        Column::number(limit),
        Column::text(confidence).once(),
        Column::number(l1).spare(4),
        Column::number(l2).spare(3),
        Column::number(memory).spare(2),
        Column::number(measured),
        Column::number(error),
    ]);
    rows.iter().for_each(|row| layout.row(cells(row)));
    let is_measured = rows.iter().any(|row| row.measured_ms.is_some());
    let measured = if is_measured { "nothing but the last two columns was" } else { "nothing was" };
    let notes = format!(
        "Predicted from simulated counts and a description of the chip; {measured} measured. In brackets how far a count is \
         from the hardware's.\n\
         Confidence: high for a family that was measured on this chip (an H200's times were off by 3.3 % in the median), \
         medium for any other kernel, low where something had to be assumed."
    );
    let mut text = Score::of(rows).to_string();
    for row in rows {
        for reason in reasons(row) {
            let _ = write!(text, "\n{reason}");
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let width = width();
    format!("{}{}\n{}", layout.fit(width), wrapped(&notes, width, 0), wrapped(&text, width, 2))
}

/// What is to be said of a row beside its cells.
fn reasons(row: &Row) -> impl Iterator<Item = String> {
    let because = row.trust.because.iter().map(|reason| match row.trust.confidence {
        Some(Confidence::NotModelled) => format!("{} on {} is not modelled: {reason}", row.kernel, row.case),
        _ => format!("{} on {}: {reason}", row.kernel, row.case),
    });
    because.chain(prediction_failure(row))
}

/// How far something is off, in per cent.
pub(crate) fn signed(error: f64) -> String {
    let percent = (100.0 * error).round();
    // Neither above nor below.
    if percent == 0.0 { "0 %".to_owned() } else { format!("{percent:+.0} %") }
}

/// Why nothing is predicted of a case, in a line.
pub fn prediction_failure(row: &Row) -> Option<String> {
    row.error.as_ref().map(|error| format!("{} on {}: {error}", row.kernel, row.case))
}

/// What came of a case, in a line: the words that stand behind its name.
pub fn prediction_outcome(row: &Row) -> String {
    match (&row.prediction, &row.error) {
        (Some(prediction), _) => {
            let replayed = 100.0 * prediction.replayed_share;
            format!("{:.4} ms, {replayed:.0} % of its requests replayed", prediction.predicted_ms)
        }
        (None, Some(error)) => error.clone(),
        (None, None) => "not modelled".to_owned(),
    }
}

/// The same in Markdown.
pub fn prediction_markdown(chip: &str, rows: &[Row]) -> String {
    let mut text =
        format!("# Predicted for {chip}\n\n| {} |\n", HEADER.map(|name| name.replace('\n', " ")).join(" | "));
    let _ = writeln!(text, "| --- | --- | ---: | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |");
    for row in rows {
        let _ = writeln!(text, "| {} |", cells(row).join(" | "));
    }
    for line in Score::of(rows).to_string().lines().map(str::to_owned).chain(rows.iter().flat_map(reasons)) {
        let _ = write!(text, "\n- {line}");
    }
    text + "\n"
}

fn cells(row: &Row) -> [String; 11] {
    let none = || "-".to_owned();
    let [l1, l2, dram] = row.errors_of_traffic();
    let count = |count: f64, error: Option<f64>| match error {
        Some(error) => format!("{count:.0} ({})", signed(error)),
        None => format!("{count:.0}"),
    };
    let mut cells = std::array::from_fn(|_| none());
    (cells[0], cells[1]) = (row.kernel.clone(), row.case.clone());
    if let Some(prediction) = &row.prediction {
        let traffic = prediction.traffic;
        cells[2] = format!("{:.4}", prediction.predicted_ms);
        cells[3] = format!("{:.0}", row.bytes as f64 / prediction.predicted_ms / 1e6);
        cells[4] = format!("{} {:.0} %", prediction.limit, 100.0 * prediction.limit_share);
        cells[6] = count(traffic.l1_data_wavefronts.max(traffic.l1_tag_wavefronts), l1);
        cells[7] = count(traffic.l2_read_sectors, l2);
        cells[8] = count(traffic.dram_read_sectors, dram);
    }
    if let Some(confidence) = row.trust.confidence {
        cells[5] = confidence.to_string();
    }
    if let Some(measured) = row.measured_ms {
        cells[9] = format!("{measured:.4}");
    }
    if let Some(error) = row.error_of_time() {
        cells[10] = signed(error);
    }
    cells
}
