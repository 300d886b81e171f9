//! Memory: latencies, queues, rows; atomics in shared memory; the flush before a launch.

use super::Figure;
use super::measured::{Row, Text};
use super::plot::{Axis, Curve, Plot, Scale};
use super::table::{Cells, Gpu, Table, fixed, markdown, side_by_side, stacked};
use anyhow::{Context, Result};
use sources::root;

pub(super) const TABLES: &[Table] = &[
    Table { name: "latency", make: latency },
    Table { name: "waits-order", make: waits_order },
    Table { name: "anywhere", make: anywhere },
    Table { name: "abreast", make: abreast },
    Table { name: "companions", make: companions },
    Table { name: "shared-atomics", make: shared_atomics },
    Table { name: "flushes", make: flushes },
];

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        plot: Plot {
            name: "lateness",
            title: "One load at a time of lines at random in memory",
            x: Axis { label: "% of the loads", scale: Scale::Between(0.0, 100.0) },
            y: Axis { label: "cycles a load", scale: Scale::Linear },
        },
        curves: lateness,
    },
    Figure {
        plot: Plot {
            name: "waits",
            title: "A load of one line, while all SMs load lines at random",
            x: Axis { label: "% of the loads", scale: Scale::Between(0.0, 100.0) },
            y: Axis {
                label: "cycles a load",
                scale: Scale::Logarithmic(&[256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0]),
            },
        },
        curves: waits,
    },
    Figure {
        plot: Plot {
            name: "rows-strided",
            title: "Lines moved once each: every n-th first, then the others",
            x: Axis { label: "n", scale: Scale::Logarithmic(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]) },
            y: Axis { label: "GB/s", scale: Scale::Between(2500.0, 5000.0) },
        },
        curves: strided,
    },
    Figure {
        plot: Plot {
            name: "rows-windows",
            title: "The same in one window after another: every n-th line of the window first",
            x: Axis {
                label: "MiB of a window",
                scale: Scale::Logarithmic(&[4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]),
            },
            y: Axis { label: "GB/s of stores", scale: Scale::Between(2500.0, 5000.0) },
        },
        curves: windows,
    },
];

fn latency(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["mean", "5 %", "25 %", "median", "75 %", "95 %", "99 %"];
    stacked(gpus, &["a line of"], &values, |gpu| {
        let form = "{}: mean {} cycles, 0 % {}, 5 % {}, 25 % {}, 50 % {}, 75 % {}, 90 % {}, 95 % {}, 99 % {}";
        let rows = gpu.probes.rows("latency", &[form])?;
        let cells = |row: &Row| -> Result<Cells> {
            let values = [1, 3, 4, 5, 6, 8, 9].map(|field| row.text(field).map(str::to_owned));
            Ok((vec![row.text(0)?.into()], values.into_iter().collect::<Result<_>>()?))
        };
        rows.iter().map(cells).collect()
    })
}

const SHARES: [f64; 11] = [1.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 99.0];

fn lateness(gpu: &Gpu) -> Result<Vec<Curve>> {
    let rows = gpu.probes.rows("lateness", &["{} lines at random: cycles at 1, 10, 20, … 90 and 99 %: {}"])?;
    let curve = |row: &Row| {
        let label = format!("{} line{}", row.text(0)?, if row.text(0)? == "1" { "" } else { "s" });
        Ok(Curve::new(label, SHARES.into_iter().zip(row.numbers(1)?).collect()))
    };
    rows.iter().filter(|row| matches!(row.text(0), Ok("1" | "4" | "32"))).map(curve).collect()
}

const WAITS: &str = "{} warps, a load of {}: mean {} cycles, at 1, 5, 25, 50, 75, 95 and 99 %: {}";

/// Whether a load of one line takes less for the line before it.
fn waits_order(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["8 warps an SM", "16", "32", "64"];
    stacked(gpus, &["the line"], &values, |gpu| {
        let rows = gpu.probes.rows("waits", &[WAITS])?;
        let kinds = [
            ("1 lines", "at random"),
            ("1 lines in one row", "next after another warp's last"),
            ("1 lines in a row", "next after the warp's own last"),
        ];
        let cells = |(form, kind): (&str, &str)| -> Result<Cells> {
            let of_kind = rows.iter().filter(|row| row.text(1).is_ok_and(|lines| lines == form));
            Ok((vec![kind.to_owned()], of_kind.map(|row| Ok(row.text(2)?.to_owned())).collect::<Result<_>>()?))
        };
        kinds.into_iter().map(cells).collect()
    })
}

fn waits(gpu: &Gpu) -> Result<Vec<Curve>> {
    let mut curves = Vec::new();
    for row in gpu.probes.rows("waits", &[WAITS])? {
        if row.text(1)? == "1 lines" {
            let points = [1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0].into_iter().zip(row.numbers(3)?).collect();
            curves.push(Curve::new(format!("{} warps an SM", row.text(0)?), points));
        }
    }
    Ok(curves)
}

const PAGES: &str = "pieces of {} lines, every {}. of windows of {} lines: loads {} GB/s, stores {} GB/s";

/// Lines of the largest window: all that there are.
const ALL: &str = "8388608";

fn strided(gpu: &Gpu) -> Result<Vec<Curve>> {
    let rows = gpu.probes.rows("pages", &[PAGES])?;
    let curve = |(label, lines, field): (&str, &str, usize)| {
        let all = rows
            .iter()
            .filter(|row| row.text(2).is_ok_and(|window| window == ALL) && row.text(0).is_ok_and(|of| of == lines));
        Ok(Curve::new(label, all.map(|row| Ok((row.number(1)?, row.number(field)?))).collect::<Result<_>>()?))
    };
    let kinds = [
        ("loads of 128 bytes", "1", 3),
        ("loads of 256 bytes", "2", 3),
        ("stores of 128 bytes", "1", 4),
        ("stores of 256 bytes", "2", 4),
    ];
    kinds.into_iter().map(curve).collect()
}

fn windows(gpu: &Gpu) -> Result<Vec<Curve>> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in gpu.probes.rows("pages", &[PAGES])? {
        if row.text(2)? == ALL {
            continue;
        }
        let label = format!("{} bytes, n = {}", 128.0 * row.number(0)?, row.text(1)?);
        let point = (row.number(2)? * 128.0 / f64::from(1 << 20), row.number(4)?);
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve::new(label, vec![point])),
        }
    }
    Ok(curves)
}

fn anywhere(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["256 MiB, a ns", "1 GiB", "8 GiB", "a channel, 8 GiB: ns each"];
    side_by_side(gpus, &["accesses anywhere in"], &values, |gpu| {
        let rows = gpu.probes.rows("anywhere", &["{}: {} a nanosecond in 256, 1024 and 8192 MiB"])?;
        let channels = gpu.chip()?.dram_channels;
        let cells = |row: &Row| -> Result<Cells> {
            let rates = row.numbers(1)?;
            let last = rates.last().context("no rate")?;
            let each = fixed(channels as f64 / last, 2);
            let rates = rates.iter().map(|rate| fixed(*rate, 1));
            Ok((vec![row.text(0)?.into()], rates.chain([each]).collect()))
        };
        rows.iter().map(cells).collect()
    })
}

fn abreast(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["warps half-way, µs", "done", "the oldest block done", "the youngest"];
    side_by_side(gpus, &["rows that each lane copies"], &values, |gpu| {
        let form = "rows of {} floats {}: half-way {}, done {}, us at 0, 10, 25, 50, 75, 90 and 100 %; the last warp of a block {} % \
                    later than the first, of a tenth {} %; in the mean of a multiprocessor's blocks, the oldest first, half-way {} \
                    and done {} us";
        let rows = gpu.probes.rows("abreast", &[form])?;
        let cells = |row: &Row| -> Result<Cells> {
            // From 25 % to all.
            let range = |field| {
                let times = row.numbers(field)?;
                let (from, to) = times.get(2).zip(times.last()).context("no time")?;
                Ok::<_, anyhow::Error>(format!("{from} to {to}"))
            };
            let blocks = row.numbers(7)?;
            let (oldest, youngest) = blocks.first().zip(blocks.last()).context("no block")?;
            let what = format!("{} floats, {}", row.text(0)?, row.text(1)?);
            Ok((vec![what], vec![range(2)?, range(3)?, fixed(*oldest, 0), fixed(*youngest, 0)]))
        };
        rows.iter().map(cells).collect()
    })
}

fn companions(gpus: &[Gpu; 2]) -> Result<String> {
    side_by_side(gpus, &["blocks", "floats copied"], &["25 %", "median", "75 %"], |gpu| {
        let rows = gpu.probes.rows("companions", &["{}, {} floats: {} cycles apart"])?;
        let cells = |row: &Row| -> Result<Cells> {
            let cycles = row.numbers(2)?.into_iter().map(|cycles| fixed(cycles, 0)).collect();
            Ok((vec![row.text(0)?.into(), row.text(1)?.into()], cycles))
        };
        rows.iter().map(cells).collect()
    })
}

/// Counted on an H200 alone.
fn shared_atomics(_: &[Gpu; 2]) -> Result<String> {
    let rows = Text::read(root(), "results/nvidia-h200/shared_atomics.tsv")?.tabbed(5)?;
    let cells = |row: &Row| (0..3).map(|field| Ok(row.text(field)?.to_owned())).collect::<Result<Vec<_>>>();
    let (columns, rows) = rows.split_first().context("no line")?;
    // What an atomic returns makes no difference but to the compiler.
    let used = rows.iter().filter(|row| row.text(0).is_ok_and(|what| what.contains(", used")));
    Ok(markdown(&cells(columns)?, 1, &used.map(cells).collect::<Result<Vec<_>>>()?))
}

fn flushes(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["after the writes, µs", "once read as well", "difference"];
    side_by_side(gpus, &["a sector of each line of, MiB"], &values, |gpu| {
        let form = "a sector of each line of {} MiB: {} us after 256 MiB were written, {} us once they were read";
        let rows = gpu.probes.rows("flushes", &[form])?;
        let cells = |row: &Row| -> Result<Cells> {
            let difference = fixed(row.number(1)? - row.number(2)?, 1);
            Ok((vec![row.text(0)?.into()], vec![row.text(1)?.into(), row.text(2)?.into(), difference]))
        };
        rows.iter().map(cells).collect()
    })
}
