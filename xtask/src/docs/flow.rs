//! Between the SMs and the L2: ports, the crossbar, who gets how much of it.

use super::Figure;
use super::measured::Row;
use super::plot::{Axis, Curve, Plot, Scale};
use super::table::{Cells, Gpu, Table, fixed, markdown, side_by_side, stacked};
use anyhow::{Context, Result, ensure};

pub(super) const TABLES: &[Table] = &[
    Table { name: "ways", make: ways },
    Table { name: "neighbours", make: neighbours },
    Table { name: "together", make: together },
    Table { name: "shares", make: shares_summary },
    Table { name: "backlog-percentiles", make: backlog_percentiles },
];

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        plot: Plot {
            name: "port",
            title: "Lines that an SM reads anywhere, alone, with its neighbour, with all",
            x: Axis { label: "warps, a load of 32 lines in flight each", scale: Scale::Between(0.0, 32.0) },
            y: Axis { label: "lines a cycle, of each SM", scale: Scale::Linear },
        },
        curves: port,
    },
    Figure {
        plot: Plot {
            name: "merging-l2",
            title: "Reads of lines of the L2 that are served with those of another SM",
            x: Axis { label: "cycles later than the other SM's", scale: Scale::Between(0.0, 160.0) },
            y: Axis { label: "served with them, %", scale: Scale::Between(0.0, 100.0) },
        },
        curves: |gpu| merging(gpu, "the L2"),
    },
    Figure {
        plot: Plot {
            name: "merging-memory",
            title: "Reads of lines of memory that are served with those of another SM",
            x: Axis { label: "cycles later than the other SM's", scale: Scale::Between(0.0, 1500.0) },
            y: Axis { label: "served with them, %", scale: Scale::Between(0.0, 100.0) },
        },
        curves: |gpu| merging(gpu, "memory"),
    },
    Figure {
        plot: Plot {
            name: "shares",
            title: "Blocks that each SM runs, where reads are what they wait for",
            x: Axis { label: "SMs, by their share", scale: Scale::Between(0.0, 132.0) },
            y: Axis { label: "blocks, of the mean of all SMs", scale: Scale::Between(0.7, 1.5) },
        },
        curves: shares,
    },
    Figure {
        plot: Plot {
            name: "backlog",
            title: "A load while other warps of the SM store to 32 rows each",
            x: Axis { label: "warps that store", scale: Scale::Between(0.0, 31.0) },
            y: Axis { label: "cycles a load, median", scale: Scale::Linear },
        },
        curves: backlog,
    },
];

fn port(gpu: &Gpu) -> Result<Vec<Curve>> {
    let form = "each of {} multiprocessors reads of the {}, a cycle, {} lines with 1, 4, 8, 16, 24 and 32 warps";
    let curve = |row: &Row| {
        let points = [1.0, 4.0, 8.0, 16.0, 24.0, 32.0].into_iter().zip(row.numbers(2)?).collect();
        let from = if row.text(1)? == "L2" { "L2" } else { "memory" };
        let sms = row.text(0)?;
        Ok(Curve::new(format!("{from}, {sms} SM{}", if sms == "1" { "" } else { "s" }), points))
    };
    gpu.probes.rows("on their way", &[form])?.iter().map(curve).collect()
}

fn ways(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["mean, cycles", "variance by SM and line", "shared by a TPC", "by a GPC", "by a side of the L2"];
    side_by_side(gpus, &["lines of"], &values, |gpu| {
        let form = "from {}: mean {} cycles, by multiprocessor a standard deviation of {}, by line and multiprocessor beyond that a \
                    variance of {} but for {} %: covariance of neighbours {}, of others of a group {}, of others of a side {}";
        let rows = gpu.probes.rows("ways", &[form])?;
        let cells = |row: &Row| -> Result<Cells> {
            let values = [1, 3, 5, 6, 7].map(|field| row.text(field).map(str::to_owned));
            Ok((vec![row.text(0)?.into()], values.into_iter().collect::<Result<_>>()?))
        };
        rows.iter().map(cells).collect()
    })
}

const NEIGHBOURS: &str = "{}, the last {} cycles later, lines of {}: {}";

/// Sectors of the lines that each of the SMs reads: read once, if the L2 serves all as one.
const ONCE: f64 = 8192.0;

fn neighbours(gpus: &[Gpu; 2]) -> Result<String> {
    let mut rows = Vec::new();
    for gpu in gpus {
        let mut merged = Vec::new();
        for row in gpu.neighbours.rows("neighbours", &[NEIGHBOURS])? {
            let sms = row.numbers(0)?;
            if let [first, second] = sms[..]
                && first == 0.0
                && row.number(1)? == 0.0
                && row.text(2)? == "memory"
                && row.number(3)? < 1.5 * ONCE
                && !merged.contains(&(second as u64))
            {
                merged.push(second as u64);
            }
        }
        rows.push(vec![gpu.name.to_owned(), merged.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")]);
    }
    Ok(markdown(&["GPU".to_owned(), "SMs whose reads are served with those of SM 0".to_owned()], 2, &rows))
}

/// Of what a second SM of the TPC reads so many cycles later.
fn merging(gpu: &Gpu, of: &str) -> Result<Vec<Curve>> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for row in gpu.neighbours.rows("neighbours", &[NEIGHBOURS])? {
        let later = row.number(1)?;
        // Without a delay they were launched more than once.
        if row.numbers(0)? == [0.0, 1.0] && row.text(2)? == of && points.iter().all(|point| point.0 != later) {
            points.push((later, 100.0 * (2.0 - row.number(3)? / ONCE)));
        }
    }
    ensure!(points.len() > 2, "few delays of lines of {of}");
    Ok(vec![Curve::new("", points)])
}

fn together(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["GB/s", "sectors that the L2 sends, million", "that arrive, million"];
    side_by_side(gpus, &["16 MiB by every SM"], &values, |gpu| {
        let rows = gpu.probes.rows("together", &["{} bytes by every multiprocessor, {}: {} GB/s"])?;
        let launches = gpu.probes_l2.launches("read_all")?;
        let of_each = launches.chunks(launches.len().div_ceil(rows.len()));
        let cells = |(row, launches): (&Row, &[super::measured::Launch])| -> Result<Cells> {
            let median = |name: &str| {
                let mut counted = launches.iter().map(|launch| launch.counter(name)).collect::<Result<Vec<_>>>()?;
                counted.sort_by(f64::total_cmp);
                Ok::<_, anyhow::Error>(fixed(counted.get(counted.len() / 2).context("no launch")? / 1e6, 1))
            };
            let sent = median("lts__t_sectors_srcunit_tex_op_read.sum")?;
            let arrived = median("l1tex__m_xbar2l1tex_read_sectors.sum")?;
            Ok((vec![row.text(1)?.into()], vec![row.text(2)?.into(), sent, arrived]))
        };
        rows.iter().zip(of_each).map(cells).collect()
    })
}

const SHARES: [&str; 2] = [
    "of blocks that read at random of {} KiB each multiprocessor ran {}",
    "of blocks that read in a row of {} KiB each multiprocessor ran {}",
];

/// What blocks read, and each SM's blocks as a multiple of the mean.
fn shares_of(gpu: &Gpu) -> Result<Vec<(String, Vec<f64>)>> {
    let of = |row: &Row| {
        let from = match row.text(0)? {
            "1048576" => "memory",
            "8192" => "the L2",
            "128" => "the L1",
            other => other,
        };
        let how = ["at random", "in a row"][row.form];
        Ok((format!("{from}, {how}"), row.numbers(1)?))
    };
    gpu.probes.rows("shares", &SHARES)?.iter().map(of).collect()
}

fn shares(gpu: &Gpu) -> Result<Vec<Curve>> {
    let curve = |(label, mut shares): (String, Vec<f64>)| {
        shares.sort_by(|one, other| other.total_cmp(one));
        Curve::new(label, shares.into_iter().enumerate().map(|(i, share)| (i as f64 + 1.0, share)).collect())
    };
    Ok(shares_of(gpu)?.into_iter().filter(|(label, _)| !label.starts_with("the L1")).map(curve).collect())
}

/// SMs that run more than this much of the mean are said to get more.
const MORE: f64 = 1.1;

fn shares_summary(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["SMs above 1.1 times the mean", "their blocks, of the mean", "of the others"];
    side_by_side(gpus, &["lines of"], &values, |gpu| {
        let cells = |(what, shares): (String, Vec<f64>)| {
            let (more, others): (Vec<f64>, Vec<f64>) = shares.into_iter().partition(|share| *share > MORE);
            let range = |shares: &[f64]| {
                let low = shares.iter().copied().fold(f64::INFINITY, f64::min);
                let high = shares.iter().copied().fold(0.0, f64::max);
                if shares.is_empty() { "–".to_owned() } else { format!("{low:.2} to {high:.2}") }
            };
            (vec![what], vec![more.len().to_string(), range(&more), range(&others)])
        };
        Ok(shares_of(gpu)?.into_iter().map(cells).collect())
    })
}

const BACKLOG: &str = "while {} warps store, a load of {} takes {} cycles at 10, 25, 50, 75 and 90 %";

/// What is loaded in `backlog`.
fn loaded(row: &Row) -> Result<&str> {
    Ok(match row.text(1)? {
        "a line of the L1" => "1 line, an L1 hit",
        "a line of the L2" => "1 line of the L2",
        "32 lines of the L2" => "32 lines of the L2",
        other => other,
    })
}

fn backlog(gpu: &Gpu) -> Result<Vec<Curve>> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in gpu.probes.rows("backlog", &[BACKLOG])? {
        let point = (row.number(0)?, *row.numbers(2)?.get(2).context("no median")?);
        let label = loaded(&row)?;
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve::new(label, vec![point])),
        }
    }
    Ok(curves)
}

fn backlog_percentiles(gpus: &[Gpu; 2]) -> Result<String> {
    stacked(gpus, &["warps that store", "load of"], &["10 %", "25 %", "median", "75 %", "90 %"], |gpu| {
        let rows = gpu.probes.rows("backlog", &[BACKLOG])?;
        let cells = |row: &Row| -> Result<Cells> {
            let cycles = row.numbers(2)?.into_iter().map(|cycles| fixed(cycles, 0)).collect();
            Ok((vec![row.text(0)?.into(), loaded(row)?.to_owned()], cycles))
        };
        let few = |row: &&Row| matches!(row.text(0), Ok("0" | "1" | "3" | "7"));
        rows.iter().filter(few).map(cells).collect()
    })
}
