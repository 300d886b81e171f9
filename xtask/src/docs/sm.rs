//! Inside an SM: the MIO queue of each sub-partition, arbitration between warps, barriers.

use super::Figure;
use super::measured::Row;
use super::plot::{Axis, Curve, Plot, Scale};
use super::table::{Cells, Gpu, Table, fixed, percent, side_by_side, stacked};
use anyhow::{Context, Result};
use std::collections::BTreeMap;

pub(super) const TABLES: &[Table] = &[
    Table { name: "fills", make: fills },
    Table { name: "arrivals", make: arrivals },
    Table { name: "ages", make: ages },
    Table { name: "order", make: order },
    Table { name: "barriers", make: barriers },
    Table { name: "barrier-steps", make: barrier_steps },
];

pub(super) const FIGURES: &[Figure] = &[Figure {
    plot: Plot {
        name: "queues",
        title: "Progress of eight blocks of an SM when the oldest has made half of its loads",
        x: Axis { label: "block, the oldest first", scale: Scale::Between(1.0, 8.0) },
        y: Axis { label: "loads made, % of all of a block", scale: Scale::Linear },
    },
    curves: queues,
}];

fn queues(gpu: &Gpu) -> Result<Vec<Curve>> {
    let rows = gpu.probes.rows("queues", &["{} in flight of lines that the {} has, blocks have made %: {}"])?;
    let curve = |row: &Row| {
        let points = row.numbers(2)?.into_iter().enumerate().map(|(i, made)| (i as f64 + 1.0, made)).collect();
        Ok(Curve::new(format!("{} in flight a warp, in the {}", row.text(0)?, row.text(1)?), points))
    };
    rows.iter().map(curve).collect()
}

/// Stores after each of which a warp goes on at once take fewer cycles than this.
const AT_ONCE: f64 = 16.0;

fn fills(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["stores issued before a stall", "cycles a store from then on"];
    side_by_side(gpus, &["sub-partitions that store, one warp each"], &values, |gpu| {
        let rows = gpu.probes.rows("fills", &["of {} warps that store, the first takes {} cycles for each store"])?;
        let cells = |row: &Row| -> Result<Cells> {
            let took = row.numbers(1)?;
            let at_once = took.iter().take_while(|cycles| **cycles < AT_ONCE).count();
            let mut later = took[at_once..].to_vec();
            later.sort_by(f64::total_cmp);
            let median = later.get(later.len() / 2).context("no store waits")?;
            Ok((vec![row.text(0)?.into()], vec![at_once.to_string(), fixed(*median, 0)]))
        };
        rows.iter().map(cells).collect()
    })
}

fn arrivals(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["50 cycles later", "100", "200", "400", "800"];
    stacked(gpus, &["warps of three other sub-partitions, four loads of 32 wavefronts each"], &values, |gpu| {
        let rows = gpu.probes.rows("arrivals", &["after {} warps of other parts, so many cycles later: {}"])?;
        let cells = |row: &Row| -> Result<Cells> {
            Ok((vec![row.text(0)?.into()], row.numbers(1)?.chunks(2).map(|pair| fixed(pair[1], 0)).collect()))
        };
        rows.iter().map(cells).collect()
    })
}

fn ages(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["oldest block", "youngest", "least of any warp"];
    side_by_side(gpus, &["what each warp repeats"], &values, |gpu| {
        let rows =
            gpu.probes.rows("ages", &["a warp {} so often, on {} multiprocessors, the oldest block first: {}"])?;
        let cells = |row: &Row| -> Result<Cells> {
            let blocks = row.items(2, "), ", "{} ({} to {}")?;
            let means = blocks.iter().map(|block| block.number(0)).collect::<Result<Vec<_>>>()?;
            let least = blocks.iter().map(|block| block.number(1)).collect::<Result<Vec<_>>>()?;
            let least = least.into_iter().fold(f64::INFINITY, f64::min);
            let of = |mean: Option<&f64>| mean.map(|mean| fixed(*mean, 0)).context("no block");
            Ok((vec![row.text(0)?.into()], vec![of(means.first())?, of(means.last())?, fixed(least, 0)]))
        };
        rows.iter().map(cells).collect()
    })
}

fn order(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["warp 0 ends after, k cycles", "warp 31", "of warp 0"];
    side_by_side(gpus, &["lanes apart, bytes"], &values, |gpu| {
        let rows = gpu.probes.rows("order", &["lanes {} bytes apart, 32 warps end after thousands of cycles: {}"])?;
        let cells = |row: &Row| -> Result<Cells> {
            let ends = row.numbers(1)?;
            let (first, last) = ends.first().zip(ends.last()).context("no warp")?;
            Ok((vec![row.text(0)?.into()], vec![fixed(*first, 1), fixed(*last, 1), percent(last / first, 1)]))
        };
        rows.iter().map(cells).collect()
    })
}

const BARRIERS: [&str; 2] = [
    "{} blocks of {} warps: {} cycles each",
    "{} blocks of {} warps, of which {} add, in 1, 2, 4 and 8 ways: {} cycles a step",
];

fn barriers(gpus: &[Gpu; 2]) -> Result<String> {
    let warps = ["1 warp", "2", "4", "8", "16", "32"];
    stacked(gpus, &["blocks on the SM"], &warps, |gpu| {
        let mut by_blocks = BTreeMap::<u64, Vec<String>>::new();
        for row in gpu.probes.rows_as("barriers", &BARRIERS, 0)? {
            by_blocks.entry(row.number(0)? as u64).or_default().push(row.text(2)?.into());
        }
        let full = |mut cycles: Vec<String>| {
            // As many as an SM holds at most.
            cycles.resize(warps.len(), String::new());
            cycles
        };
        Ok(by_blocks.into_iter().map(|(blocks, cycles)| (vec![blocks.to_string()], full(cycles))).collect())
    })
}

fn barrier_steps(gpus: &[Gpu; 2]) -> Result<String> {
    stacked(gpus, &["blocks of 8 warps", "warps of each that add"], &["no conflict", "2 ways", "4", "8"], |gpu| {
        let rows = gpu.probes.rows_as("barriers", &BARRIERS, 1)?;
        let cells = |row: &Row| -> Result<Cells> {
            Ok((
                vec![row.text(0)?.into(), row.text(2)?.into()],
                row.numbers(3)?.into_iter().map(|cycles| fixed(cycles, 0)).collect(),
            ))
        };
        let only = |row: &&Row| matches!(row.text(2), Ok("8" | "1"));
        rows.iter().filter(only).map(cells).collect()
    })
}
