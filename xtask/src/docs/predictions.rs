//! How good predictions are: `predicted.json` of both GPUs, and `foreign.tsv`.

use super::table::{Gpu, Table, markdown};
use anyhow::{Context, Result, bail, ensure};
use busload::input;
use busload::predict::{FITTED_ON, Row, Score};
use sources::root;

pub(super) const TABLES: &[Table] = &[
    Table { name: "errors", make: errors },
    Table { name: "families", make: families },
    Table { name: "nearest", make: nearest },
    Table { name: "traffic", make: traffic },
    Table { name: "outside", make: outside },
    Table { name: "foreign", make: foreign },
];

const FILES: [(&str, &str); 2] =
    [("H200", "results/nvidia-h200/predicted.json"), ("H100", "results/nvidia-h100/predicted.json")];

/// What `predict --json` wrote.
#[derive(serde::Deserialize)]
struct Predicted {
    results: Vec<Row>,
}

/// The rows of both files, each of which has a predicted and a measured time.
fn predicted() -> Result<[Vec<Row>; 2]> {
    let read = |file: &str| -> Result<Vec<Row>> {
        let text = input::text(root().join(file), input::RESULTS)?;
        let rows = serde_json::from_str::<Predicted>(&text).with_context(|| file.to_owned())?.results;
        for row in &rows {
            ensure!(
                row.error_of_time().is_some(),
                "{file}: {} on {} was not predicted or not measured",
                row.kernel,
                row.case
            );
        }
        Ok(rows)
    };
    Ok([read(FILES[0].1)?, read(FILES[1].1)?])
}

fn is_fitted(row: &Row) -> bool {
    FITTED_ON.contains(&row.family.as_str())
}

/// The errors of these rows' times.
fn times<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<f64> {
    rows.filter_map(Row::error_of_time).collect()
}

/// The median of these errors, in magnitude.
fn median(errors: &[f64]) -> Result<f64> {
    let mut errors: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    errors.sort_by(f64::total_cmp);
    ensure!(!errors.is_empty(), "no error to take the median of");
    Ok(f64::midpoint(errors[(errors.len() - 1) / 2], errors[errors.len() / 2]))
}

fn per_cent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn errors(_: &[Gpu; 2]) -> Result<String> {
    let both = predicted()?;
    let columns = |what: &str, of: &dyn Fn(&[Row]) -> Result<String>| -> Result<Vec<String>> {
        Ok(vec![what.to_owned(), of(&both[0])?, of(&both[1])?])
    };
    let median_of = |rows: &[Row], only: &dyn Fn(&Row) -> bool| -> Result<String> {
        Ok(per_cent(median(&times(rows.iter().filter(|row| only(row))))?))
    };
    let above = |rows: &[Row], fitted: bool| -> Result<String> {
        let errors = times(rows.iter().filter(|row| is_fitted(row) == fitted));
        Ok(format!("{} of {}", errors.iter().filter(|error| error.abs() > 0.3).count(), errors.len()))
    };
    let rows = [
        columns("families fitted to, median", &|rows| median_of(rows, &is_fitted))?,
        columns("all others, median", &|rows| median_of(rows, &|row| !is_fitted(row)))?,
        columns("all others but `bank`, median", &|rows| {
            median_of(rows, &|row| !is_fitted(row) && row.family != "bank")
        })?,
        columns("above 30 %, of the families fitted to", &|rows| above(rows, true))?,
        columns("above 30 %, of all others", &|rows| above(rows, false))?,
        columns("pairs of one family and case, more than 5 % apart, in the right order", &|rows| {
            let [pairs, right] = Score::of(rows).ranking.context("no pair")?;
            Ok(format!("{right} of {pairs}"))
        })?,
    ];
    Ok(markdown(&["errors of the predicted time".to_owned(), "H200".to_owned(), "H100".to_owned()], 1, &rows))
}

fn families(_: &[Gpu; 2]) -> Result<String> {
    let both = predicted()?;
    let mut names: Vec<&str> = Vec::new();
    for row in &both[0] {
        if !names.contains(&row.family.as_str()) {
            names.push(&row.family);
        }
    }
    let mut table = Vec::new();
    for family in names {
        let of = |rows: &[Row]| -> Result<[String; 2]> {
            let rows = || rows.iter().filter(|row| row.family == family);
            let worst = rows().max_by(|one, other| {
                let error = |row: &Row| row.error_of_time().unwrap_or(0.0).abs();
                error(one).total_cmp(&error(other))
            });
            // Measured on one of the two alone.
            let Some(worst) = worst else { return Ok(["–", "–"].map(str::to_owned)) };
            let error = 100.0 * worst.error_of_time().unwrap_or(0.0);
            Ok([per_cent(median(&times(rows()))?), format!("{error:+.0} %, `{}` on {}", worst.kernel, worst.case)])
        };
        let launches = both[0].iter().filter(|row| row.family == family).count();
        let fitted = if FITTED_ON.contains(&family) { "fitted to" } else { "" };
        let ([of_one, worst_of_one], [of_other, worst_of_other]) = (of(&both[0])?, of(&both[1])?);
        table.push(vec![
            family.to_owned(),
            fitted.to_owned(),
            launches.to_string(),
            of_one,
            of_other,
            worst_of_one,
            worst_of_other,
        ]);
    }
    let columns =
        ["family", "", "launches", "H200: median", "H100: median", "H200: worst", "H100: worst"].map(str::to_owned);
    Ok(markdown(&columns, 2, &table))
}

/// Kernels that differ by less are as fast as each other, as in `Score`.
const DIFFERENT: f64 = 1.05;

/// The pairs whose predicted times are nearest to the wrong order.
fn nearest(_: &[Gpu; 2]) -> Result<String> {
    let mut table = Vec::new();
    for ((gpu, _), rows) in FILES.iter().zip(predicted()?) {
        let time = |row: &Row| Some((row.prediction.as_ref()?.predicted_ms, row.measured_ms?));
        let mut pairs = Vec::new();
        for (i, one) in rows.iter().enumerate() {
            for other in rows[i + 1..].iter().filter(|other| other.family == one.family && other.case == one.case) {
                let (first, second) = time(one).zip(time(other)).context("a row without a time")?;
                let measured = first.1 / second.1;
                if measured.max(1.0 / measured) > DIFFERENT {
                    // Above one where they are in the right order.
                    let predicted = if measured > 1.0 { first.0 / second.0 } else { second.0 / first.0 };
                    pairs.push((predicted, measured.max(1.0 / measured), one, other));
                }
            }
        }
        pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (predicted, measured, one, other) in pairs.into_iter().take(3) {
            let names = format!("`{}`, `{}`", one.kernel, other.kernel);
            let apart = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
            table.push(vec![(*gpu).to_owned(), names, one.case.clone(), apart(measured), apart(predicted)]);
        }
    }
    let columns = ["GPU", "pair", "case", "measured apart", "predicted apart"].map(str::to_owned);
    Ok(markdown(&columns, 3, &table))
}

/// What is compared, and how far it may be off; of all launches, or of those whose buffers are at least four times the L2.
const MOVED: [(&str, f64, bool); 3] = [
    ("wavefronts of global loads", 0.05, false),
    ("sectors read from the L2", 0.10, true),
    ("sectors read from memory", 0.10, true),
];

fn traffic(_: &[Gpu; 2]) -> Result<String> {
    let mut table = Vec::new();
    for ((gpu, _), rows) in FILES.iter().zip(predicted()?) {
        let score = Score::of(&rows);
        for ((what, bound, _), moved) in
            MOVED.into_iter().zip([score.l1_wavefronts, score.l2_read_sectors, score.dram_read_sectors])
        {
            let moved = moved.with_context(|| format!("no {what}"))?;
            let bound = format!("{:.0} %", 100.0 * bound);
            let within = |errors: busload::predict::Errors| format!("{} of {}", errors.within, errors.count);
            let median = format!("{:.2} %", 100.0 * moved.launches.median);
            table.push(vec![
                what.to_owned(),
                bound,
                (*gpu).to_owned(),
                within(moved.launches),
                median,
                per_cent(moved.launches.worst),
                within(moved.kernels),
                per_cent(moved.kernels.worst),
            ]);
        }
        // Of the tags, which are no part of the score.
        let tags = |row: &Row| {
            let counted = *row
                .measured_counters
                .get("l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld.sum")
                .filter(|counted| **counted >= 1e5)?;
            Some(row.prediction.as_ref()?.traffic.l1_tag_wavefronts / counted - 1.0)
        };
        let errors: Vec<f64> = rows.iter().filter(|row| row.large).filter_map(tags).collect();
        let within = errors.iter().filter(|error| error.abs() <= 0.1).count();
        let worst = errors.iter().fold(0.0, |worst: f64, error| worst.max(error.abs()));
        let of_launches = format!("{within} of {}", errors.len());
        table.push(vec![
            "tag-stage wavefronts of global loads".to_owned(),
            "10 %".to_owned(),
            (*gpu).to_owned(),
            of_launches,
            format!("{:.2} %", 100.0 * median(&errors)?),
            per_cent(worst),
            "–".to_owned(),
            "–".to_owned(),
        ]);
    }
    table.sort_by_key(|row| MOVED.iter().position(|(what, ..)| *what == row[0]).unwrap_or(MOVED.len()));
    let columns =
        ["what moved", "bound", "GPU", "launches within", "median error", "worst", "kernels within", "worst kernel"];
    Ok(markdown(&columns.map(str::to_owned), 3, &table))
}

/// The launches that are not within the bounds.
fn outside(_: &[Gpu; 2]) -> Result<String> {
    let mut table = Vec::new();
    for ((gpu, _), rows) in FILES.iter().zip(predicted()?) {
        for row in &rows {
            for ((what, bound, only_large), error) in MOVED.into_iter().zip(row.errors_of_traffic()) {
                let Some(error) = error.filter(|error| error.abs() > bound && (row.large || !only_large)) else {
                    continue;
                };
                let launch = format!("`{}` on {}", row.kernel, row.case);
                table.push(vec![what.to_owned(), (*gpu).to_owned(), launch, format!("{:+.1} %", 100.0 * error)]);
            }
        }
    }
    table.sort_by_key(|row| MOVED.iter().position(|(what, ..)| *what == row[0]));
    Ok(markdown(&["what moved", "GPU", "launch", "error"].map(str::to_owned), 3, &table))
}

/// The launches of kernels that the model was not built on: measured, predicted, and how far apart.
fn foreign(_: &[Gpu; 2]) -> Result<String> {
    const FILE: &str = "results/nvidia-h200/foreign.tsv";
    let text = input::text(root().join(FILE), input::RESULTS)?;
    let (mut table, mut errors) = (Vec::new(), Vec::new());
    for line in text.lines().skip(1) {
        let cells: Vec<_> = line.split('\t').collect();
        let [kernel, launch, measured, predicted] = cells[..] else { bail!("{FILE}: no row of four: {line}") };
        let [measured_ms, predicted_ms] = [measured, predicted].map(str::parse::<f64>);
        let error =
            predicted_ms.with_context(|| line.to_owned())? / measured_ms.with_context(|| line.to_owned())? - 1.0;
        errors.push(error);
        table.push(
            [&format!("`{kernel}`"), launch, measured, predicted, &format!("{:+.0} %", 100.0 * error)]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    let columns = ["kernel", "launch", "measured, ms", "predicted, ms", "error"].map(str::to_owned);
    let within = errors.iter().filter(|error| error.abs() < 0.3).count();
    Ok(format!(
        "{}\nThe median error is {:.1} %, and {within} of {} launches are within 30 %.\n",
        markdown(&columns, 2, &table),
        100.0 * median(&errors)?,
        errors.len()
    ))
}
