//! Two results files side by side: on the terminal, and as Markdown.

use super::escape::{markdown, terminal};
use super::table::{Column, Layout};
use super::width::{width, wrapped};
use crate::compare::{Comparison, Row, Source};
use crate::timing::L2;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEADER: [&str; 6] = ["kernel", "case", "reference ms", "results ms", "speed", "verdict"];

/// The rows as a table, between what was compared and how many rows got which verdict.
pub fn comparison_table(comparison: &Comparison) -> String {
    comparison_table_in(comparison, width())
}

fn comparison_table_in(comparison: &Comparison, width: usize) -> String {
    let [kernel, case, reference, results, speed, verdict] = HEADER;
    let mut layout = Layout::new([
        Column::key(kernel),
        Column::key(case),
        Column::number(reference),
        Column::number(results),
        Column::number(speed),
        Column::text(verdict),
    ]);
    for row in &comparison.rows {
        layout.row(cells(row).map(|cell| terminal(&cell)));
    }
    let heading = heading(comparison).map(|line| terminal(&line)).join("\n");
    let summary = summary(comparison);
    format!("{}\n{}{}\n", wrapped(&heading, width, 2), layout.fit(width), wrapped(&summary, width, 0))
}

/// The same in Markdown.
pub fn comparison_markdown(comparison: &Comparison) -> String {
    let heading = heading(comparison).map(|line| markdown(&line)).join("\n");
    let mut text = format!("# Comparison\n\n{heading}\n\n");
    let _ = writeln!(text, "| {} |\n| --- | --- | ---: | ---: | ---: | --- |", HEADER.join(" | "));
    for row in &comparison.rows {
        let _ = writeln!(text, "| {} |", cells(row).map(|cell| markdown(&cell)).join(" | "));
    }
    let _ = writeln!(text, "\n{}", summary(comparison));
    text
}

fn cells(row: &Row) -> [String; 6] {
    let number = |number: Option<f64>, digits| number.map_or_else(|| "-".to_owned(), |n| format!("{n:.digits$}"));
    [
        row.kernel.clone(),
        row.case.clone(),
        number(Some(row.reference_ms), 4),
        number(row.results_ms, 4),
        number(row.speed, 3),
        row.verdict.name().to_owned(),
    ]
}

fn heading(comparison: &Comparison) -> [String; 3] {
    let describe = |Source { file, driver, ptx, l2, unfinished }: &Source| {
        let build = ptx.backend.as_deref().unwrap_or("a compiler that its PTX does not name");
        let driver = driver.as_deref().unwrap_or("unknown");
        let l2 = if *l2 == L2::Cold { "flushed" } else { "left as it was" };
        let unfinished = if *unfinished { " Its run was ended before its last case." } else { "" };
        format!("{file}: kernels by {build}, L2 {l2}, driver for CUDA {driver}.{unfinished}")
    };
    let Comparison { gpu, tolerance, reference, results, .. } = comparison;
    [
        format!(
            "Measured on {gpu}; speeds are relative to the reference, and the same within {} %.",
            100.0 * tolerance
        ),
        format!("Reference {}", describe(reference)),
        format!("Results {}", describe(results)),
    ]
}

fn summary(comparison: &Comparison) -> String {
    let mut verdicts = BTreeMap::<_, usize>::new();
    for row in &comparison.rows {
        *verdicts.entry(row.verdict).or_default() += 1;
    }
    let mut parts: Vec<_> = verdicts.iter().map(|(verdict, count)| format!("{count} {}", verdict.name())).collect();
    for (count, file) in [(comparison.only_reference, "reference"), (comparison.only_results, "results")] {
        if count > 0 {
            parts.push(format!("{count} more in the {file} alone"));
        }
    }
    format!("{} rows: {}.", comparison.rows.len(), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Verdict;
    use crate::record::PtxRecord;

    #[test]
    fn rows_stand_between_what_was_compared_and_what_came_out() {
        let source = |file: &str, backend: Option<&str>| Source {
            file: file.into(),
            driver: Some("13.0".into()),
            ptx: PtxRecord { backend: backend.map(str::to_owned), target: None, source_hash: None },
            l2: L2::Cold,
            unfinished: backend.is_none(),
        };
        let row = |kernel: &str, results_ms: Option<f64>, verdict| Row {
            kernel: kernel.into(),
            case: "4096x4096".into(),
            reference_ms: 1.0,
            results_ms,
            speed: results_ms.map(f64::recip),
            verdict,
        };
        let comparison = Comparison {
            gpu: "NVIDIA H200".into(),
            reference: source("peers.json", None),
            results: source("bench.json", Some("llvm")),
            tolerance: 0.01,
            rows: vec![
                row("transpose_tiled", Some(0.5), Verdict::Faster),
                row("transpose_naive", None, Verdict::Failed),
            ],
            only_reference: 3,
            only_results: 0,
        };
        insta::assert_snapshot!(comparison_table_in(&comparison, 100), @r"
        Measured on NVIDIA H200; speeds are relative to the reference, and the same within 1 %.
        Reference peers.json: kernels by a compiler that its PTX does not name, L2 flushed, driver for CUDA
          13.0. Its run was ended before its last case.
        Results bench.json: kernels by llvm, L2 flushed, driver for CUDA 13.0.
         kernel           case       reference ms  results ms  speed  verdict
        ─────────────────────────────────────────────────────────────────────
         transpose_tiled  4096x4096        1.0000      0.5000  2.000  faster
         transpose_naive  4096x4096        1.0000           -      -  failed
        2 rows: 1 faster, 1 failed, 3 more in the reference alone.
        ");
        insta::assert_snapshot!(comparison_markdown(&comparison), @r"
        # Comparison

        Measured on NVIDIA H200; speeds are relative to the reference, and the same within 1 %.
        Reference peers.json: kernels by a compiler that its PTX does not name, L2 flushed, driver for CUDA 13.0. Its run was ended before its last case.
        Results bench.json: kernels by llvm, L2 flushed, driver for CUDA 13.0.

        | kernel | case | reference ms | results ms | speed | verdict |
        | --- | --- | ---: | ---: | ---: | --- |
        | transpose_tiled | 4096x4096 | 1.0000 | 0.5000 | 2.000 | faster |
        | transpose_naive | 4096x4096 | 1.0000 | - | - | failed |

        2 rows: 1 faster, 1 failed, 3 more in the reference alone.
        ");
    }
}
