//! The CTA scheduler: how fast it launches blocks, and where.

use super::Figure;
use super::plot::{Axis, Curve, Plot, Scale};
use super::table::{Cells, Gpu, Table, fixed, markdown, side_by_side, stacked};
use anyhow::Result;
use busload::predict::Chip;

pub(super) const TABLES: &[Table] = &[
    Table { name: "machines", make: machines },
    Table { name: "launch-rate", make: rate },
    Table { name: "first-wave", make: first_wave },
    Table { name: "beginnings", make: beginnings },
];

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        plot: Plot {
            name: "launch-locality",
            title: "Where the next block goes: to an SM of the same GPC",
            x: Axis {
                label: "longest block, cycles",
                scale: Scale::Logarithmic(&[1000.0, 2000.0, 4000.0, 8000.0, 16000.0]),
            },
            y: Axis { label: "of all blocks, %", scale: Scale::Linear },
        },
        curves: |gpu| Ok(vec![Curve::new("", next_in_group(gpu)?)]),
    },
    Figure {
        plot: Plot {
            name: "successors",
            title: "When the next wave begins, after all blocks of one end together",
            x: Axis { label: "sixteenth of the wave's blocks", scale: Scale::Between(1.0, 16.0) },
            y: Axis { label: "cycles after the last block of the SM ended", scale: Scale::Linear },
        },
        curves: successors,
    },
];

const ROUNDS: [&str; 2] = [
    "the first blocks, one a multiprocessor, are on {}",
    "of blocks of up to {} cycles the next is on the same multiprocessor for {} %, on its neighbour for {} %, on another of the group for {} %",
];

/// What the model's descriptions say of both chips, each figure with its source.
fn machines(gpus: &[Gpu; 2]) -> Result<String> {
    let [first, second] = [gpus[0].chip()?, gpus[1].chip()?];
    let row = |what: &str, of: &dyn Fn(&Chip) -> String| vec![what.to_owned(), of(&first), of(&second)];
    let rows = [
        row("SMs", &|chip| chip.sm_count.to_string()),
        row("SM clock, GHz", &|chip| chip.clock_ghz.to_string()),
        row("L1 and shared memory of an SM, KiB", &|chip| (chip.l1_bytes >> 10).to_string()),
        row("L2, MiB", &|chip| (chip.l2_bytes >> 20).to_string()),
        row("L2 partitions", &|chip| chip.l2_partitions.to_string()),
        row("L2 slices with a channel", &|chip| (chip.l2_partitions * chip.dram_channels as u64).to_string()),
        row("DRAM channels", &|chip| chip.dram_channels.to_string()),
        row("DRAM peak, GB/s", &|chip| fixed(chip.dram_gbps, 0)),
        row("latency of shared memory, cycles", &|chip| chip.latency[0].to_string()),
        row("of the L1", &|chip| chip.latency[1].to_string()),
        row("of the L2", &|chip| chip.latency[2].to_string()),
        row("of memory", &|chip| chip.latency[3].to_string()),
    ];
    Ok(markdown(&[String::new(), gpus[0].name.to_owned(), gpus[1].name.to_owned()], 1, &rows))
}

fn rate(gpus: &[Gpu; 2]) -> Result<String> {
    side_by_side(gpus, &["threads a block"], &["blocks a µs"], |gpu| {
        let rows = gpu.probes.rows("launch", &["{} threads a block: {} blocks/us"])?;
        rows.iter().map(|row| Ok((vec![row.text(0)?.into()], vec![row.text(1)?.into()]))).collect()
    })
}

/// The SMs of the first blocks, one a line for each run of rising numbers.
fn first_wave(gpus: &[Gpu; 2]) -> Result<String> {
    let runs = |gpu: &Gpu| -> Result<Vec<String>> {
        let sms = gpu.probes.rows_as("rounds", &ROUNDS, 0)?[0].numbers(0)?;
        let runs = sms.chunk_by(|one, next| one < next);
        Ok(runs.map(|run| run.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")).collect())
    };
    let [first, second] = [runs(&gpus[0])?, runs(&gpus[1])?];
    let rows = (0..first.len().max(second.len())).map(|run| {
        let of = |runs: &[String]| runs.get(run).cloned().unwrap_or_default();
        vec![(run + 1).to_string(), of(&first), of(&second)]
    });
    let columns = ["run".to_owned(), format!("{}: SMs", gpus[0].name), format!("{}: SMs", gpus[1].name)];
    Ok(markdown(&columns, columns.len(), &rows.collect::<Vec<_>>()))
}

fn next_in_group(gpu: &Gpu) -> Result<Vec<(f64, f64)>> {
    let rows = gpu.probes.rows_as("rounds", &ROUNDS, 1)?;
    rows.iter().map(|row| Ok((row.number(0)?, row.number(1)? + row.number(2)? + row.number(3)?))).collect()
}

fn successors(gpu: &Gpu) -> Result<Vec<Curve>> {
    let rows = gpu
        .probes
        .rows("successors", &["{} blocks of {} threads begin after so many cycles: {}, sixteen in a row within {}"])?;
    let curve = |row: &super::measured::Row| {
        let starts = row.numbers(2)?;
        let points = starts.into_iter().enumerate().map(|(i, start)| (i as f64 + 1.0, start)).collect();
        Ok(Curve::new(format!("{} blocks of {} threads", row.text(0)?, row.text(1)?), points))
    };
    rows.iter().map(curve).collect()
}

fn beginnings(gpus: &[Gpu; 2]) -> Result<String> {
    let blocks = ["1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th"];
    stacked(gpus, &["cycles after the first block began"], &blocks, |gpu| {
        let forms = [
            "of eight blocks of a multiprocessor one begins after so many cycles, in the median: {}",
            "of eight blocks of a multiprocessor one has loaded after so many cycles, in the median: {}",
        ];
        let rows = gpu.probes.rows("beginnings", &forms)?;
        let cells = |row: &super::measured::Row| -> Result<Cells> {
            let what = ["a block begins", "it has loaded from memory"][row.form];
            Ok((vec![what.to_owned()], row.numbers(0)?.into_iter().map(|cycles| fixed(cycles, 0)).collect()))
        };
        rows.iter().map(cells).collect()
    })
}
