//! Results files side by side: on the terminal, and as Markdown.

use super::escape::{markdown, terminal};
use super::table::{Column, Layout};
use super::width::{width, wrapped};
use crate::compare::{Against, Comparison, Row, Source, Verdict};
use crate::timing::L2;
use std::collections::BTreeMap;

/// The rows as a table, between what was compared and how many rows got which verdict.
pub fn comparison_table(comparison: &Comparison) -> String {
    comparison_table_in(comparison, width())
}

fn comparison_table_in(comparison: &Comparison, width: usize) -> String {
    let heading = heading(comparison).iter().map(|line| terminal(line)).collect::<Vec<_>>().join("\n");
    let summary = summary(comparison).iter().map(|line| terminal(line)).collect::<Vec<_>>().join("\n");
    let table = layout(comparison, terminal).fit(width);
    format!("{}\n{table}{}\n", wrapped(&heading, width, 2), wrapped(&summary, width, 2))
}

/// The same in Markdown.
pub fn comparison_markdown(comparison: &Comparison) -> String {
    let lines = |lines: Vec<String>, between| lines.iter().map(|line| markdown(line)).collect::<Vec<_>>().join(between);
    let table = layout(comparison, str::to_owned).markdown();
    format!("# Comparison\n\n{}\n\n{table}\n{}\n", lines(heading(comparison), "\n"), lines(summary(comparison), "\n"))
}

/// What is slower or failed, in a line each.
pub fn comparison_failures(comparison: &Comparison) -> Vec<String> {
    let of_row = |row: &Row| {
        let each = row.results.iter().zip(&comparison.results).filter_map(|(against, source)| {
            let against = against.filter(|against| [Verdict::Slower, Verdict::Failed].contains(&against.verdict))?;
            let speed = against.speed.map(|speed| format!(", speed {speed:.3}")).unwrap_or_default();
            Some(format!("{} on {} is {} in {}{speed}", row.kernel, row.case, against.verdict.name(), source.file))
        });
        each.collect::<Vec<_>>()
    };
    comparison.rows.iter().flat_map(of_row).collect()
}

/// One result has its columns, of several each has one: its speed, and the verdict.
fn layout(comparison: &Comparison, fit: impl Fn(&str) -> String) -> Layout {
    let number = |number: Option<f64>, digits| number.map_or_else(|| "-".to_owned(), |n| format!("{n:.digits$}"));
    let mut columns = vec![Column::key("kernel"), Column::key("case"), Column::number("reference ms")];
    match &comparison.results[..] {
        [_] => columns.extend([
            Column::number("results ms"),
            Column::number("speed"),
            Column::number("speed\nin cycles"),
            Column::text("verdict"),
        ]),
        all => columns.extend(all.iter().map(|source| Column::text(fit(&source.file)))),
    }
    let mut layout = Layout::new(columns);
    for row in &comparison.rows {
        let mut cells = vec![fit(&row.kernel), fit(&row.case), number(row.reference_ms, 4)];
        match &row.results[..] {
            [Some(Against { ms, speed, speed_in_cycles, verdict })] => cells.extend([
                number(*ms, 4),
                number(*speed, 3),
                number(*speed_in_cycles, 3),
                verdict.name().to_owned(),
            ]),
            all => cells.extend(all.iter().map(|against| match against {
                None => "-".to_owned(),
                Some(Against { speed: Some(speed), verdict, .. }) => format!("{speed:.3} {}", verdict.name()),
                Some(against) => against.verdict.name().to_owned(),
            })),
        }
        layout.row(cells);
    }
    layout
}

fn heading(comparison: &Comparison) -> Vec<String> {
    let describe = |Source { file, driver, ptx, l2, unfinished, .. }: &Source| {
        let build = ptx.backend.as_deref().unwrap_or("a compiler that its PTX does not name");
        let driver = driver.as_deref().unwrap_or("unknown");
        let l2 = if *l2 == L2::Cold { "flushed" } else { "left as it was" };
        let unfinished = if *unfinished { " Its run was ended before its last case." } else { "" };
        format!("{file}: kernels by {build}, L2 {l2}, driver for CUDA {driver}.{unfinished}")
    };
    let Comparison { gpu, tolerance, reference, results, .. } = comparison;
    let percent = 100.0 * tolerance;
    let mut lines = vec![
        format!("Measured on {gpu}; speeds are relative to the reference, and the same within {percent} %."),
        format!("Reference {}", describe(reference)),
    ];
    lines.extend(results.iter().map(|source| format!("Results {}", describe(source))));
    lines.extend(comparison.warnings.iter().map(|warning| format!("Another {warning}.")));
    lines
}

/// A line for each of the results.
fn summary(comparison: &Comparison) -> Vec<String> {
    let line = |(number, source): (usize, &Source)| {
        let mut verdicts = BTreeMap::<Verdict, usize>::new();
        for against in comparison.rows.iter().filter_map(|row| row.results[number]) {
            *verdicts.entry(against.verdict).or_default() += 1;
        }
        let all: usize = verdicts.values().sum();
        let mut parts: Vec<_> = verdicts.iter().map(|(verdict, count)| format!("{count} {}", verdict.name())).collect();
        for (count, file) in [(comparison.only_reference, "reference"), (source.only, "results")] {
            if count > 0 {
                parts.push(format!("{count} more in the {file} alone"));
            }
        }
        let of = if comparison.results.len() > 1 { format!("{}: ", source.file) } else { String::new() };
        let rows = if all == 1 { "row" } else { "rows" };
        format!("{of}{all} {rows}: {}.", parts.join(", "))
    };
    comparison.results.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PtxRecord;

    #[test]
    fn rows_stand_between_what_was_compared_and_what_came_out() {
        let source = |file: &str, backend: Option<&str>| Source {
            file: file.into(),
            driver: Some("13.0".into()),
            ptx: PtxRecord { backend: backend.map(str::to_owned), target: None, source_hash: None },
            l2: L2::Cold,
            sm_mhz: None,
            unfinished: backend.is_none(),
            only: 0,
        };
        let against =
            |ms: Option<f64>, verdict| Some(Against { ms, speed: ms.map(f64::recip), speed_in_cycles: None, verdict });
        let row = |kernel: &str, results_ms: Option<f64>, verdict| Row {
            kernel: kernel.into(),
            case: "4096x4096".into(),
            reference_ms: Some(1.0),
            results: vec![against(results_ms, verdict)],
        };
        let mut comparison = Comparison {
            gpu: "NVIDIA H200".into(),
            reference: source("peers.json", None),
            results: vec![source("bench.json", Some("llvm"))],
            tolerance: 0.01,
            warnings: vec!["driver: 12.9 in peers.json, 13.0 in bench.json".into()],
            rows: vec![
                row("transpose_tiled", Some(0.5), Verdict::Faster),
                row("transpose_naive", None, Verdict::Failed),
            ],
            only_reference: 3,
        };
        insta::assert_snapshot!(comparison_table_in(&comparison, 100), @r"
        Measured on NVIDIA H200; speeds are relative to the reference, and the same within 1 %.
        Reference peers.json: kernels by a compiler that its PTX does not name, L2 flushed, driver for CUDA
          13.0. Its run was ended before its last case.
        Results bench.json: kernels by llvm, L2 flushed, driver for CUDA 13.0.
        Another driver: 12.9 in peers.json, 13.0 in bench.json.
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
        Another driver: 12.9 in peers.json, 13.0 in bench.json.

        | kernel | case | reference ms | results ms | speed | verdict |
        | --- | --- | ---: | ---: | ---: | --- |
        | transpose_tiled | 4096x4096 | 1.0000 | 0.5000 | 2.000 | faster |
        | transpose_naive | 4096x4096 | 1.0000 | - | - | failed |

        2 rows: 1 faster, 1 failed, 3 more in the reference alone.
        ");
        comparison.results.push(Source { only: 2, ..source("nvvm.json", Some("nvvm")) });
        comparison.rows[0].results.push(against(Some(1.0), Verdict::Same));
        comparison.rows[1].results.push(None);
        insta::assert_snapshot!(comparison_table_in(&comparison, 100), @r"
        Measured on NVIDIA H200; speeds are relative to the reference, and the same within 1 %.
        Reference peers.json: kernels by a compiler that its PTX does not name, L2 flushed, driver for CUDA
          13.0. Its run was ended before its last case.
        Results bench.json: kernels by llvm, L2 flushed, driver for CUDA 13.0.
        Results nvvm.json: kernels by nvvm, L2 flushed, driver for CUDA 13.0.
        Another driver: 12.9 in peers.json, 13.0 in bench.json.
         kernel           case       reference ms  bench.json    nvvm.json
        ───────────────────────────────────────────────────────────────────
         transpose_tiled  4096x4096        1.0000  2.000 faster  1.000 same
         transpose_naive  4096x4096        1.0000  failed        -
        bench.json: 2 rows: 1 faster, 1 failed, 3 more in the reference alone.
        nvvm.json: 1 row: 1 same, 3 more in the reference alone, 2 more in the results alone.
        ");
    }
}
