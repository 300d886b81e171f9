//! The L1: its tag stage, its data stage, and the arbitration between loads.

use super::Figure;
use super::measured::{Launch, Row};
use super::plot::{Axis, Curve, Plot, Scale};
use super::table::{Cells, Gpu, Table, fixed, side_by_side, stacked};
use anyhow::{Context, Result};
use std::collections::BTreeMap;

pub(super) const TABLES: &[Table] = &[
    Table { name: "tag-banks", make: tag_banks },
    Table { name: "bursts", make: bursts },
    Table { name: "l1-data", make: data },
    Table { name: "streams", make: streams },
    Table { name: "returns", make: returns },
    Table { name: "leaders", make: leaders },
    Table { name: "groups", make: groups },
];

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        plot: Plot {
            name: "turns",
            title: "A load that misses the L1, among warps whose hits take 32 wavefronts each",
            x: Axis { label: "other warps", scale: Scale::Between(0.0, 28.0) },
            y: Axis { label: "cycles a load", scale: Scale::Linear },
        },
        curves: turns,
    },
    Figure {
        plot: Plot {
            name: "lookups",
            title: "An L1 hit issued after loads of 32 lines of memory",
            x: Axis { label: "loads issued before it", scale: Scale::Between(0.0, 28.0) },
            y: Axis { label: "cycles after the first of them", scale: Scale::Linear },
        },
        curves: lookups,
    },
    Figure {
        plot: Plot {
            name: "pending",
            title: "An L1 hit while other loads wait for their lines",
            x: Axis { label: "tag-stage wavefronts of the loads that wait", scale: Scale::Between(512.0, 1280.0) },
            y: Axis { label: "cycles of the hit", scale: Scale::Linear },
        },
        curves: pending,
    },
    Figure {
        plot: Plot {
            name: "on-their-way",
            title: "Loads of 32 lines anywhere, by warps that wait at a time",
            x: Axis { label: "warps on the SM", scale: Scale::Between(0.0, 64.0) },
            y: Axis { label: "tag-stage wavefronts a load", scale: Scale::Between(8.0, 20.0) },
        },
        curves: on_their_way,
    },
    Figure {
        plot: Plot {
            name: "conflicts",
            title: "A load by its bank conflicts, alone and among others",
            x: Axis { label: "wavefronts of the load", scale: Scale::Logarithmic(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) },
            y: Axis {
                label: "cycles a load",
                scale: Scale::Logarithmic(&[16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0]),
            },
        },
        curves: conflicts,
    },
];

/// Bytes of an L1 with no shared memory in it.
const L1_KIB: f64 = 256.0;

/// KiB of the L1, of which Nsight Compute counts what is set apart as shared memory, in thousands of bytes.
fn l1_kib(set_apart: f64) -> String {
    fixed(L1_KIB - set_apart * 1000.0 / 1024.0, 0)
}

fn tag_banks(gpus: &[Gpu; 2]) -> Result<String> {
    side_by_side(gpus, &["lines from one lane's to the next"], &["tag-stage wavefronts"], |gpu| {
        let rows = gpu.banks.rows_as("banks", &["lines {} and {}: {}", "32 lines, {} apart: {}"], 1)?;
        rows.iter().map(|row| Ok((vec![row.text(0)?.into()], vec![row.text(1)?.into()]))).collect()
    })
}

/// A load of any 32 lines by warps of one block, together, once all of its last lines are there.
fn bursts(gpus: &[Gpu; 2]) -> Result<String> {
    let warps = ["1", "2", "4", "8", "16", "32"];
    let columns = warps.map(|warps| if warps == "1" { "1 warp".to_owned() } else { warps.to_owned() });
    stacked(gpus, &["L1, KiB"], &columns.each_ref().map(String::as_str), |gpu| {
        let form = "{} % shared, {} warps {} cycles apart, {} loads of {}: {} {} {}";
        let mut rows = BTreeMap::<u64, (String, Vec<String>)>::new();
        for row in gpu.bursts.rows("bursts", &[form])? {
            let whole = row.text(4)? == "any lines" && row.text(2)? == "0" && row.text(3)? == "256";
            if whole && warps.contains(&row.text(1)?) {
                let (_, passes) = rows.entry(row.number(0)? as u64).or_insert_with(|| (String::new(), Vec::new()));
                passes.push(fixed(row.number(5)? / row.number(6)?, 1));
                rows.entry(row.number(0)? as u64).and_modify(|of| of.0 = row.number(7).map(l1_kib).unwrap_or_default());
            }
        }
        Ok(rows.into_values().map(|(kib, passes)| (vec![kib], passes)).collect())
    })
}

fn turns(gpu: &Gpu) -> Result<Vec<Curve>> {
    let rows =
        gpu.probes.rows("turns", &["{} lines, {} apart, a load, by warps that pass the data {} times each: {}"])?;
    let mut curves = Vec::new();
    for row in rows.iter().filter(|row| matches!(row.text(2), Ok("32"))) {
        let label = format!("misses of {} line{}", row.text(0)?, if row.text(0)? == "1" { "" } else { "s" });
        curves.push(Curve::new(label, cycles_by(row, 3)?));
    }
    Ok(curves)
}

/// The pairs of a list `0: 336 cycles 4: 358 cycles`.
fn cycles_by(row: &Row, field: usize) -> Result<Vec<(f64, f64)>> {
    row.items(field, "cycles", "{}: {}")?.iter().map(|item| Ok((item.number(0)?, item.number(1)?))).collect()
}

fn lookups(gpu: &Gpu) -> Result<Vec<Curve>> {
    let form = "a line that the L1 has, after so many loads of 32 lines of memory, {}: {}";
    let curve = |row: &Row| {
        let which = if row.text(0)? == "all of the same" { "all of the same lines" } else { "each of its own lines" };
        Ok(Curve::new(which, cycles_by(row, 1)?))
    };
    gpu.probes.rows("lookups", &[form])?.iter().map(curve).collect()
}

fn pending(gpu: &Gpu) -> Result<Vec<Curve>> {
    let form = "a line that the L1 has, while loads of the same {} lines wait, {} apart: {}";
    let curve = |row: &Row| {
        let lines = row.number(0)?;
        // Lines in a row are of four banks of the tags, those 33 apart of one.
        let (which, wavefronts) =
            if row.text(1)? == "1" { ("in a row", lines / 4.0) } else { ("of one tag bank", lines) };
        let points = cycles_by(row, 2)?.into_iter().map(|(loads, cycles)| (loads * wavefronts, cycles)).collect();
        Ok(Curve::new(format!("loads of {lines} lines {which}"), points))
    };
    gpu.probes.rows("pending", &[form])?.iter().map(curve).collect()
}

const TAGS: &str = "l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld.sum";
const REQUESTS: &str = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";

fn on_their_way(gpu: &Gpu) -> Result<Vec<Curve>> {
    let launches = gpu.counted.launches("on_their_way")?;
    // Twelve numbers of warps with each of three L1s; what two blocks set apart depends on their size too.
    let of_each = launches.chunks(12).zip(["248", "124", "28"]);
    let curve = |(launches, kib): (&[Launch], &str)| {
        let point = |launch: &Launch| {
            let warps = 2.0 * launch.threads()? / 32.0;
            Ok((warps, launch.counter(TAGS)? / launch.counter(REQUESTS)?))
        };
        let points = launches.iter().map(point).collect::<Result<_>>()?;
        let last = launches.last().context("no launch")?;
        let set_apart = l1_kib(last.counter("launch__shared_mem_config_size")?);
        anyhow::ensure!(set_apart == kib, "an L1 of {set_apart} KiB instead of {kib}");
        Ok(Curve::new(format!("L1 of {kib} KiB"), points))
    };
    of_each.map(curve).collect()
}

const CONFLICTS: &str = "{} warps load from {}, in 1, 2, 4, 8, 16 and 32 ways, for {} cycles each";

fn conflicts(gpu: &Gpu) -> Result<Vec<Curve>> {
    let mut curves = Vec::new();
    for row in gpu.probes.rows("conflicts", &[CONFLICTS])? {
        let warps = row.text(0)?;
        if warps == "4" {
            continue;
        }
        let points = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].into_iter().zip(row.numbers(2)?).collect();
        let from = if row.text(1)? == "shared memory" { "shared memory" } else { "L1 hits" };
        curves.push(Curve::new(format!("{from}, {warps} warp{}", if warps == "1" { "" } else { "s" }), points));
    }
    Ok(curves)
}

fn data(gpus: &[Gpu; 2]) -> Result<String> {
    side_by_side(gpus, &["lanes apart, bytes"], &["cycles a load"], |gpu| {
        let rows = gpu.probes.rows("L1", &["lanes {} bytes apart: {} cycles a request"])?;
        rows.iter().map(|row| Ok((vec![row.text(0)?.into()], vec![fixed(row.number(1)?, 2)]))).collect()
    })
}

fn streams(gpus: &[Gpu; 2]) -> Result<String> {
    let keys = ["loads in flight a warp", "warps of"];
    stacked(gpus, &keys, &["1 warp", "2", "3", "4", "8"], |gpu| {
        let rows = gpu.probes.rows("streams", &["{} in flight, cycles a load of so many warps of {}: {}"])?;
        let cells = |row: &Row| -> Result<Cells> {
            let of = if row.text(1)? == "one part" { "one sub-partition" } else { "several" };
            Ok((
                vec![row.text(0)?.into(), of.to_owned()],
                row.numbers(2)?.chunks(2).map(|pair| fixed(pair[1], 0)).collect(),
            ))
        };
        rows.iter().map(cells).collect()
    })
}

fn returns(gpus: &[Gpu; 2]) -> Result<String> {
    let keys = ["warps that hit", "wavefronts of each fill"];
    stacked(gpus, &keys, &["10 %", "25 %", "median", "75 %", "90 %"], |gpu| {
        let form = "{} others with {} in flight, {} lines: cycles from one load that came back to the next at 10, 25, 50, 75 and 90 %: {}";
        let rows = gpu.probes.rows("returns", &[form])?;
        let cells = |row: &Row| -> Result<Cells> {
            Ok((
                vec![row.text(0)?.into(), row.text(2)?.into()],
                row.numbers(3)?.into_iter().map(|cycles| fixed(cycles, 0)).collect(),
            ))
        };
        let only = |row: &&Row| {
            row.text(1).is_ok_and(|in_flight| in_flight == "1") && matches!(row.text(2), Ok("8" | "16" | "32"))
        };
        rows.iter().filter(only).map(cells).collect()
    })
}

fn leaders(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["1st load of the first warp", "its 2nd", "its 3rd", "its 4th"];
    stacked(gpus, &["warps, four loads each"], &values, |gpu| {
        let form = "of {} warps' loads those of the first are done as number {} of {}, from the first to the last in {} cycles";
        let rows = gpu.probes.rows("leaders", &[form])?;
        let cells = |row: &Row| -> Result<Cells> {
            Ok((vec![row.text(0)?.into()], row.numbers(1)?.into_iter().map(|number| fixed(number, 1)).collect()))
        };
        rows.iter().map(cells).collect()
    })
}

fn groups(gpus: &[Gpu; 2]) -> Result<String> {
    stacked(gpus, &["warps", "loads in flight a warp"], &["5 %", "25 %", "median", "75 %", "95 %"], |gpu| {
        let rows =
            gpu.probes.rows("groups", &["{} warps, {} in flight: cycles a load at 5, 25, 50, 75 and 95 %: {}"])?;
        let cells = |row: &Row| -> Result<Cells> {
            let cycles = row.numbers(2)?.into_iter().map(|cycles| fixed(cycles, 0)).collect();
            Ok((vec![row.text(0)?.into(), row.text(1)?.into()], cycles))
        };
        rows.iter().map(cells).collect()
    })
}
