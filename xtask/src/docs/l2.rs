//! The L2: slices, partitions, what stays in it, and what it writes back.

use super::Figure;
use super::measured::{Launch, Row};
use super::plot::{Axis, Curve, Plot, Scale};
use super::table::{Cells, Gpu, Table, fixed, percent, side_by_side};
use anyhow::{Context, Result, ensure};

pub(super) const TABLES: &[Table] = &[
    Table { name: "slices", make: slices },
    Table { name: "overtaking", make: overtaking },
    Table { name: "stores", make: stores },
    Table { name: "atomics", make: atomics },
    Table { name: "two-circles", make: two_circles },
];

const MEBIBYTES: Axis = Axis { label: "MiB of lines", scale: Scale::Between(0.0, 80.0) };

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        plot: Plot {
            name: "l2-random",
            title: "Whole lines that all SMs read at random",
            x: Axis { label: "MiB that are read", scale: Scale::Between(0.0, 64.0) },
            y: Axis { label: "sectors from memory, % of those read", scale: Scale::Linear },
        },
        curves: random_lines,
    },
    Figure {
        plot: Plot {
            name: "l2-circle",
            title: "Lines that are read sixteen times in the same order",
            x: MEBIBYTES,
            y: Axis { label: "sectors from memory, % of those read", scale: Scale::Between(0.0, 100.0) },
        },
        curves: circles,
    },
    Figure {
        plot: Plot {
            name: "dirty",
            title: "Dirty data in the L2 at the end of a launch that stores once",
            x: Axis { label: "MiB stored to", scale: Scale::Between(0.0, 64.0) },
            y: Axis { label: "MiB not written back", scale: Scale::Linear },
        },
        curves: dirty,
    },
    Figure {
        plot: Plot {
            name: "write-backs",
            title: "Lines that are stored to sixteen times, all SMs in step",
            x: MEBIBYTES,
            y: Axis { label: "sectors written back, % of those stored to", scale: Scale::Between(0.0, 100.0) },
        },
        curves: |gpu| in_step(gpu, &["4 bytes stored", "whole lines stored"], 1),
    },
    Figure {
        plot: Plot {
            name: "completions",
            title: "Sectors read from memory for lines that all SMs come back to in step",
            x: MEBIBYTES,
            y: Axis { label: "sectors from memory, % of all accesses", scale: Scale::Between(0.0, 100.0) },
        },
        curves: |gpu| in_step(gpu, &["loads", "4 bytes stored"], 0),
    },
    Figure {
        plot: Plot {
            name: "again",
            title: "4 bytes a sector, stored sixteen times, no SM waiting for another",
            x: Axis { label: "MiB of lines", scale: Scale::Between(0.0, 128.0) },
            y: Axis { label: "times that a sector is read or written back", scale: Scale::Linear },
        },
        curves: again,
    },
];

const L2_READS: &str = "lts__t_sectors_srcunit_tex_op_read.sum";
const DRAM_READS: &str = "dram__sectors_read.sum";
const DRAM_WRITES: &str = "dram__sectors_write.sum";

/// Launches of `sectors` before those of 4096 sectors that lie ever further apart, and then one of lines in a row.
const NEAR: usize = 10;

fn slices(gpus: &[Gpu; 2]) -> Result<String> {
    side_by_side(gpus, &["sectors", "bytes apart"], &["the busiest slice has one of"], |gpu| {
        let launches = gpu.counted.launches("sectors")?;
        let apart: Vec<String> = (7..=16).map(|power| (1u64 << power).to_string()).collect();
        ensure!(launches.len() == NEAR + apart.len() + 1, "{} launches of `sectors`", launches.len());
        let of = |sectors: &str, apart: &str, launch: &Launch| -> Result<Cells> {
            let part = launch.counter(L2_READS)? / launch.counter("lts__t_sectors_srcunit_tex_op_read.max")?;
            Ok((vec![sectors.to_owned(), apart.to_owned()], vec![fixed(part, 1)]))
        };
        let mut rows = vec![of("2097152, by all SMs", "128", &launches[NEAR + apart.len()])?];
        for (apart, launch) in apart.iter().zip(&launches[NEAR..]) {
            rows.push(of("4096, by one SM", apart, launch)?);
        }
        Ok(rows)
    })
}

/// The sectors that memory was read for, as a share of those that the SMs read, in per cent.
fn from_memory(launch: &Launch) -> Result<f64> {
    Ok(100.0 * launch.counter(DRAM_READS)? / launch.counter(L2_READS)?)
}

/// MiB of the launches of `random_lines`, for each of three ways to read them.
const RANDOM: [f64; 8] = [8.0, 16.0, 24.0, 28.0, 32.0, 40.0, 48.0, 64.0];

fn random_lines(gpu: &Gpu) -> Result<Vec<Curve>> {
    let launches = gpu.probes_l2.launches("random_lines")?;
    ensure!(launches.len() == 3 * RANDOM.len(), "{} launches of `random_lines`", launches.len());
    let ways = ["anywhere", "each SM in its own part", "anywhere, with as many stores"];
    let curve = |(launches, label): (&[Launch], &str)| {
        let points = RANDOM.into_iter().zip(launches).map(|(mebibytes, launch)| Ok((mebibytes, from_memory(launch)?)));
        Ok(Curve::new(label, points.collect::<Result<_>>()?))
    };
    launches.chunks(RANDOM.len()).zip(ways).map(curve).collect()
}

/// MiB of the launches of `in_a_circle`, for each of two ways.
const CIRCLES: [f64; 10] = [24.0, 32.0, 40.0, 44.0, 48.0, 52.0, 56.0, 60.0, 64.0, 80.0];

fn circles(gpu: &Gpu) -> Result<Vec<Curve>> {
    let launches = gpu.counted.launches("in_a_circle")?;
    ensure!(launches.len() == 2 * CIRCLES.len(), "{} launches of `in_a_circle`", launches.len());
    let curve = |(launches, label): (&[Launch], &str)| {
        let points = CIRCLES.into_iter().zip(launches).map(|(mebibytes, launch)| Ok((mebibytes, from_memory(launch)?)));
        Ok(Curve::new(label, points.collect::<Result<_>>()?))
    };
    let ways = ["each SM its own part", "another SM each time"];
    launches.chunks(CIRCLES.len()).zip(ways).map(curve).collect()
}

/// MiB and times of the launches of `store_rounds`, for 4 bytes of each sector, then for whole ones.
const STORED: [f64; 9] = [8.0, 16.0, 24.0, 28.0, 32.0, 40.0, 48.0, 64.0, 256.0];

fn dirty(gpu: &Gpu) -> Result<Vec<Curve>> {
    let launches = gpu.probes_l2.launches("store_rounds")?;
    ensure!(launches.len() == 6 * STORED.len(), "{} launches of `store_rounds`", launches.len());
    let kinds = [("4 bytes of each sector", 0), ("whole sectors", 3)];
    let curve = |(label, which): (&str, usize)| {
        let of_these = launches.chunks(STORED.len()).nth(which).context("no such launches")?;
        let left = |(stored, launch): (f64, &Launch)| {
            let written = launch.counter(DRAM_WRITES)? * 32.0 / f64::from(1 << 20);
            Ok((stored, (stored - written).max(0.0)))
        };
        // 256 MiB are as 64 are, and too far to the right to show.
        let points = STORED.into_iter().zip(of_these).filter(|(stored, _)| *stored <= 64.0).map(left);
        Ok(Curve::new(label, points.collect::<Result<_>>()?))
    };
    kinds.into_iter().map(curve).collect()
}

const IN_STEP: &str = "{}, {} lines, of every {}., and {}, {} lines, {} steps of {}: {} {}";

/// Of lines in a row that nothing else is accessed between: sectors read from memory, or written, as a share of accesses.
fn in_step(gpu: &Gpu, what: &[&str], which: usize) -> Result<Vec<Curve>> {
    let rows = gpu.in_step.rows("in step", &[IN_STEP])?;
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows.iter().filter(|row| row.text(3).is_ok_and(|other| other == "nothing")) {
        let (kind, apart) = (row.text(0)?, row.text(2)?);
        if !what.contains(&kind) {
            continue;
        }
        let label = match (kind, apart) {
            (kind, "1") => kind.to_owned(),
            (kind, apart) => format!("{kind}, every {apart}th line"),
        };
        let sectors = if kind == "whole lines stored" { 4.0 } else { 1.0 };
        let accesses = row.number(5)? * row.number(6)? * sectors;
        // Memory sends two sectors for one that is loaded.
        let least = if kind == "loads" && which == 0 { 2.0 } else { 1.0 };
        let point = (row.number(1)? * 128.0 / f64::from(1 << 20), 100.0 * row.number(7 + which)? / accesses / least);
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve::new(label, vec![point])),
        }
    }
    Ok(curves)
}

/// Of lines that all SMs come back to, among others that they load once: how many are gone each time.
fn two_circles(gpus: &[Gpu; 2]) -> Result<String> {
    side_by_side(gpus, &["accesses", "MiB that they come back to"], &["gone when they come back"], |gpu| {
        let rows = gpu.in_step.rows("in step", &[IN_STEP])?;
        let mut cells: Vec<Cells> = Vec::new();
        for row in rows.iter().filter(|row| row.text(3).is_ok_and(|other| other == "loads")) {
            let (lines, others) = (row.number(1)?, row.number(4)?);
            let sectors = match row.text(0)? {
                // Memory sends two sectors for one that is loaded.
                "loads" => 2.0,
                "4 bytes stored" => 1.0,
                // Of which nothing is read.
                _ => continue,
            };
            let again = row.number(5)? * row.number(6)? - lines;
            let read_again = (row.number(7)? - 2.0 * others - sectors * lines).max(0.0);
            let mebibytes = fixed(lines * 128.0 / f64::from(1 << 20), 0);
            cells.push((vec![row.text(0)?.into(), mebibytes], vec![percent(read_again / again / sectors, 1)]));
        }
        ensure!(!cells.is_empty(), "no such launch");
        Ok(cells)
    })
}

fn again(gpu: &Gpu) -> Result<Vec<Curve>> {
    let forms = [
        "{} rounds, 4 bytes of each of {} sectors, {} a line, of every {}. line: {} {} {}",
        "{} rounds, all of each of {} sectors, {} a line, of every {}. line: {} {} {}",
    ];
    let rows = gpu.again.rows_as("again", &forms, 0)?;
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows.iter().filter(|row| row.text(3).is_ok_and(|apart| apart == "1")) {
        let (sectors, of_a_line) = (row.number(1)?, row.number(2)?);
        let mebibytes = sectors / of_a_line * 128.0 / f64::from(1 << 20);
        for (what, field) in [("read", 4), ("written back", 5)] {
            let label = format!("{what}, {of_a_line} a line");
            let point = (mebibytes, row.number(field)? / sectors);
            match curves.iter_mut().find(|curve| curve.label == label) {
                Some(curve) => curve.points.push(point),
                None => curves.push(Curve::new(label, vec![point])),
            }
        }
    }
    Ok(curves)
}

fn overtaking(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["an L2 hit takes, cycles", "of them late"];
    side_by_side(gpus, &["reads of memory in flight"], &values, |gpu| {
        let form = "{} reads of memory on their way: a read that the L2 has takes {} cycles, {} % above {}";
        let rows = gpu.probes.rows("overtaking", &[form])?;
        let cells = |row: &Row| -> Result<Cells> {
            Ok((vec![row.text(0)?.into()], vec![row.text(1)?.into(), format!("{} %", row.text(2)?)]))
        };
        rows.iter().map(cells).collect()
    })
}

fn stores(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["µs", "sectors a ns"];
    side_by_side(
        gpus,
        &["stores of a warp in a row", "lanes apart, bytes", "bytes of each sector at a time"],
        &values,
        |gpu| {
            let rows = gpu.probes.rows("stores", &["{} in a row, lanes {} bytes apart: {} ms for {} warps"])?;
            let cells = |row: &Row| -> Result<Cells> {
                let (in_a_row, apart, milliseconds, warps) =
                    (row.number(0)?, row.number(1)?, row.number(2)?, row.number(3)?);
                // Lanes whose words lie in one sector.
                let sectors = (32.0 * apart / 32.0).clamp(1.0, 32.0);
                let bytes = (4.0 * 32.0 / sectors).min(32.0);
                let rate = in_a_row * sectors * warps / (1e6 * milliseconds);
                let keys = vec![row.text(0)?.into(), row.text(1)?.into(), fixed(bytes, 0)];
                Ok((keys, vec![fixed(1e3 * milliseconds, 0), fixed(rate, 0)]))
            };
            rows.iter().map(cells).collect()
        },
    )
}

fn atomics(gpus: &[Gpu; 2]) -> Result<String> {
    side_by_side(gpus, &["a lane of each warp adds"], &["additions a µs"], |gpu| {
        let rows = gpu.probes.rows("atomics", &["{}: {} additions/us"])?;
        rows.iter().map(|row| Ok((vec![row.text(0)?.into()], vec![row.text(1)?.into()]))).collect()
    })
}
