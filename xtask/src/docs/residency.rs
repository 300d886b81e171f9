//! Which lines stay in an L1.

use super::Figure;
use super::measured::{Launch, Row};
use super::plot::{Axis, Curve, Plot, Scale};
use super::table::{Cells, Gpu, Table, fixed, side_by_side};
use anyhow::{Context, Result, ensure};

pub(super) const TABLES: &[Table] = &[
    Table { name: "sets", make: sets },
    Table { name: "staying", make: staying },
    Table { name: "stay", make: stay },
    Table { name: "left", make: left },
    Table { name: "losing", make: losing },
    Table { name: "held", make: held },
    Table { name: "rows", make: rows },
    Table { name: "shared-lines", make: shared_lines },
    Table { name: "shared-rows", make: shared_rows },
];

pub(super) const FIGURES: &[Figure] = &[Figure {
    plot: Plot {
        name: "retention",
        title: "Lines that are gone from an L1 after others came",
        x: Axis { label: "other lines", scale: Scale::Between(0.0, 1600.0) },
        y: Axis { label: "gone, %", scale: Scale::Linear },
    },
    curves: retention,
}];

fn sets(gpus: &[Gpu; 2]) -> Result<String> {
    let values =
        ["fours of lines", "hit after three others of the set", "hit after four", "hits after four of nine other sets"];
    side_by_side(gpus, &[], &values, |gpu| {
        let form = "lines {} and {}: there after three such {}, after four {}, after four of 9 other sets {}";
        let rows = gpu.probes.rows("sets", &[form])?;
        let sum = |field| rows.iter().map(|row| row.number(field)).sum::<Result<f64>>();
        let sums = [sum(2)?, sum(3)?, sum(4)?].map(|sum| fixed(sum, 0));
        let all = 9 * rows.len();
        let [three, four, others] = sums;
        Ok(vec![(Vec::new(), vec![rows.len().to_string(), three, four, format!("{others} of {all}")])])
    })
}

fn staying(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["hits", "LRU is right", "the rule, of the sequences"];
    side_by_side(gpus, &["touches of the lines of one set", "lines"], &values, |gpu| {
        let form =
            "{} of {} lines of a set: {} % find them; as the last four do {} %, as if two stay {} %, {} sequences";
        let rows = gpu.probes.rows("staying", &[&form.replacen("{} of", "{} of any sectors of", 1), form])?;
        let cells = |row: &Row| -> Result<Cells> {
            let [hits, lru] = [2, 3].map(|field| row.text(field).map(|share| format!("{share} %")));
            let touches = row.text(0)?.to_owned() + ["; any sectors", ""][row.form];
            Ok((vec![touches, row.text(1)?.into()], vec![hits?, lru?, row.text(5)?.into()]))
        };
        rows.iter().map(cells).collect()
    })
}

fn stay(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["after no others", "after 512", "after 8192"];
    side_by_side(gpus, &["lines read three times"], &values, |gpu| {
        let form = "of {} lines read three times, {} are in the L1 after {} others";
        let rows = gpu.probes.rows("stay", &[form])?;
        let cells = |rows: &[Row]| -> Result<Cells> {
            ensure!(rows.len() == values.len(), "not three numbers of others");
            let there = rows.iter().map(|row| Ok(row.text(1)?.to_owned())).collect::<Result<_>>()?;
            Ok((vec![rows[0].text(0)?.into()], there))
        };
        rows.chunks(values.len()).map(cells).collect()
    })
}

/// Rounds of 32 lines, distances of these and numbers of touches, and rounds before, in the order of the launches of
/// `retention`.
const ROUNDS: f64 = 256.0;
const TOUCHES: [&str; 3] = ["touched once", "touched twice", "touched eight times"];
const BEFORE: [f64; 7] = [4.0, 8.0, 12.0, 16.0, 28.0, 32.0, 48.0];

fn retention(gpu: &Gpu) -> Result<Vec<Curve>> {
    let launches = gpu.counted.launches("retention")?;
    ensure!(launches.len() == 3 * TOUCHES.len() * BEFORE.len(), "{} launches of `retention`", launches.len());
    // Lines 128, 65536 and 16896 bytes apart: those of the last are spread over the sets.
    let spread = launches.chunks(BEFORE.len()).skip(2 * TOUCHES.len());
    let curve = |(launches, label): (&[Launch], &str)| {
        let point = |(launch, before): (&Launch, f64)| {
            let again = launch.counter("lts__t_sectors_srcunit_tex_op_read.sum")? - 32.0 * ROUNDS;
            Ok((32.0 * before, 100.0 * again / (32.0 * (ROUNDS - before))))
        };
        let points = launches.iter().zip(BEFORE).map(point).collect::<Result<_>>()?;
        Ok(Curve::new(label, points))
    };
    spread.zip(TOUCHES).map(curve).collect()
}

fn left(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["most of which all stay", "of as many as it has places, stay"];
    side_by_side(gpus, &["lines of the L1"], &values, |gpu| {
        let rows = gpu.probes.rows("left", &["with {} % shared, of {}"])?;
        let cells = |row: &Row| -> Result<Cells> {
            let items = row.items(1, ", ", "{} lines in a row {}")?;
            let pairs = items.iter().map(|item| Ok((item.number(0)?, item.number(1)?))).collect::<Result<Vec<_>>>()?;
            let most = pairs.iter().filter(|(read, there)| read == there).map(|pair| pair.0).fold(0.0, f64::max);
            // The fourth is of as many as there are places.
            let (places, there) = pairs.get(3).context("no fourth number of lines")?;
            Ok((vec![fixed(*places, 0)], vec![fixed(most, 0), fixed(*there, 0)]))
        };
        rows.iter().map(cells).collect()
    })
}

fn losing(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["60 cycles later", "100", "200", "300", "1000"];
    side_by_side(gpus, &["lines of one set in a load", "then again"], &values, |gpu| {
        let form = "{} lines of a set in one load, then number {} again, after so many cycles for as many: {}";
        let rows = gpu.probes.rows("losing", &[form])?;
        let cells = |row: &Row| -> Result<Cells> {
            let items = row.items(2, ", ", "{} {}")?;
            let after = |later: &str| {
                let item = items.iter().find(|item| item.text(0).is_ok_and(|cycles| cycles == later));
                Ok(item.with_context(|| format!("nothing {later} cycles later"))?.text(1)?.to_owned())
            };
            let cycles = ["60", "100", "200", "300", "1000"].map(after).into_iter().collect::<Result<_>>()?;
            let which = if row.text(1)? == "0" { "the first" } else { "the last" };
            Ok((vec![row.text(0)?.into(), which.to_owned()], cycles))
        };
        rows.iter().map(cells).collect()
    })
}

fn held(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["the wait", "192 others filled after", "its 31 lines again"];
    side_by_side(gpus, &["31 lines of each load", "loads that wait"], &values, |gpu| {
        let form =
            "{} loads of lines that {} take {} cycles, of one the same lines again {}; 192 others are here after {}";
        let rows = gpu.probes.rows("held", &[form])?;
        let cells = |row: &Row| -> Result<Cells> {
            let whose = match row.text(1)? {
                "it asked for" => "misses",
                "another had just asked for" => "hits on another load's misses",
                "were here before" => "hits",
                other => other,
            };
            Ok((
                vec![whose.to_owned(), row.text(0)?.into()],
                vec![row.text(2)?.into(), row.text(4)?.into(), row.text(3)?.into()],
            ))
        };
        rows.iter().map(cells).collect()
    })
}

/// How often a sector is read from the L2 by warps that copy rows, of which several load the same.
fn rows(gpus: &[Gpu; 2]) -> Result<String> {
    let values = ["a float a round", "four floats a round"];
    side_by_side(gpus, &["floats of a row", "warps that load the same"], &values, |gpu| {
        let rows = gpu.rows.rows("rows", &["of {} floats, {} lanes load one, {} warps {}: {}"])?;
        let of = |how: &str| rows.iter().filter(|row| row.text(3).is_ok_and(|text| text == how)).collect::<Vec<_>>();
        let (once, copied, unrolled) = (of("store nothing"), of("copy them"), of("copy four floats a round"));
        ensure!(once.len() == copied.len() && once.len() == unrolled.len(), "not as many launches of each kind");
        let mut cells: Vec<Cells> = Vec::new();
        for ((once, copied), unrolled) in once.iter().zip(&copied).zip(&unrolled) {
            let lanes = once.number(1)?;
            if lanes >= 32.0 {
                let times = |row: &Row| Ok::<_, anyhow::Error>(fixed(row.number(4)? / once.number(4)?, 1));
                cells
                    .push((vec![once.text(0)?.into(), fixed(lanes / 32.0, 0)], vec![times(copied)?, times(unrolled)?]));
            }
        }
        Ok(cells)
    })
}

const READS: &str = "lts__t_sectors_srcunit_tex_op_read.sum";
const REQUESTS: &str = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";

/// Loads in flight, warps, and warps that load the same, of the launches of `shared_lines` with each L1.
const GROUPS: [[u32; 3]; 7] = [[1, 32, 8], [1, 32, 32], [4, 8, 8], [4, 16, 8], [4, 32, 8], [4, 32, 32], [2, 32, 8]];

/// Launches of lines in a row, after those: loads in flight, then blocks of eight warps.
const IN_FLIGHT: [u32; 3] = [4, 2, 1];
const BLOCKS: [u32; 6] = [2, 3, 4, 5, 6, 8];

fn sectors_a_load(launch: &Launch) -> Result<String> {
    Ok(fixed(launch.counter(READS)? / launch.counter(REQUESTS)?, 1))
}

/// The launches of `shared_lines`: with each of three L1s, then of rows.
fn launches(gpu: &Gpu) -> Result<Vec<Launch>> {
    let launches = gpu.counted.launches("shared_lines")?;
    let all = 3 * GROUPS.len() + IN_FLIGHT.len() * BLOCKS.len();
    ensure!(launches.len() == all, "{} launches of `shared_lines` instead of {all}", launches.len());
    Ok(launches)
}

fn shared_lines(gpus: &[Gpu; 2]) -> Result<String> {
    let keys = ["warps", "of which load the same", "loads in flight a warp", "sectors a load, if read once"];
    side_by_side(gpus, &keys, &["largest L1", "124 KiB", "28 KiB"], |gpu| {
        let launches = launches(gpu)?;
        let row = |(i, [in_flight, warps, group]): (usize, [u32; 3])| -> Result<Cells> {
            let of_each = (0..3).map(|l1| sectors_a_load(&launches[GROUPS.len() * l1 + i])).collect::<Result<_>>()?;
            Ok((vec![warps.to_string(), group.to_string(), in_flight.to_string(), (32 / group).to_string()], of_each))
        };
        GROUPS.into_iter().enumerate().map(row).collect()
    })
}

fn shared_rows(gpus: &[Gpu; 2]) -> Result<String> {
    side_by_side(gpus, &["blocks on the SM"], &["4 loads in flight", "2", "1"], |gpu| {
        let launches = launches(gpu)?;
        let rows = &launches[3 * GROUPS.len()..];
        let row = |(i, blocks): (usize, u32)| -> Result<Cells> {
            let of_each = (0..IN_FLIGHT.len())
                .map(|many| sectors_a_load(&rows[BLOCKS.len() * many + i]))
                .collect::<Result<_>>()?;
            Ok((vec![blocks.to_string()], of_each))
        };
        BLOCKS.into_iter().enumerate().map(row).collect()
    })
}
