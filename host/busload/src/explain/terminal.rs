//! The source view on a terminal: beneath each line the accesses in it, with their counts beside them.

use super::{Access, Counter, Excerpt, Explanation};
use crate::report::percent;
use crate::sim::coalesce::SECTOR;
use indicatif::DecimalBytes;
use std::fmt::{self, Write};

/// The explanation as text.
pub fn text(explanation: &Explanation) -> String {
    let mut text = String::new();
    write(&mut text, explanation).expect("a string takes everything");
    text
}

fn write(text: &mut String, explanation: &Explanation) -> fmt::Result {
    let Explanation {
        kernel,
        summary,
        case,
        launch,
        blocks,
        counts_stated,
        source,
        accesses,
        worst,
        counters,
        arbitration,
    } = explanation;
    let (grid, block) = (extent(launch.grid), extent(launch.block));
    let stated = if *counts_stated { "" } else { "; counts not stated" };
    writeln!(text, "{kernel} on {case}: {grid} blocks of {block} threads, simulated: {}{stated}", blocks.which)?;
    writeln!(text, "{summary}\n")?;
    let columns = Columns::of(accesses);
    let header = columns.header();
    let mut file = "";
    for excerpt in source {
        if file != excerpt.file {
            file = &excerpt.file;
            writeln!(text, "{header}{file}")?;
        } else {
            writeln!(text, "{:>1$}", "…", header.chars().count() + 5)?;
        }
        write_excerpt(text, excerpt, accesses, *worst, columns)?;
    }
    writeln!(text)?;
    match worst.map(|worst| &accesses[worst]) {
        None => writeln!(text, "No access has any excess.")?,
        Some(access) => {
            let all = accesses.iter().map(|access| access.excess).sum();
            writeln!(
                text,
                "▶ The worst is line {}, {}: {} in excess, {} of the kernel's.\n  {}",
                access.site.line,
                access.name,
                DecimalBytes(access.excess),
                percent(access.excess, all),
                access.why
            )?;
            write_advice(text, access)?;
        }
    }
    for (_, access) in accesses.iter().enumerate().filter(|(number, _)| Some(*number) != *worst) {
        writeln!(text, "  Line {}, {}: {}", access.site.line, access.name, access.why)?;
        write_advice(text, access)?;
    }
    writeln!(text, "\n{LEGEND}")?;
    if !counters.is_empty() {
        writeln!(text, "\nIn Nsight Compute:")?;
    }
    for Counter { count, metrics } in counters {
        writeln!(text, "  {count:27} {}", metrics.join(&format!(" +\n{:30}", "")))?;
    }
    arbitration.iter().try_for_each(|arbitration| writeln!(text, "{arbitration}"))
}

fn write_advice(text: &mut String, access: &Access) -> fmt::Result {
    access.advice.iter().try_for_each(|advice| writeln!(text, "    → {advice}"))
}

/// Which columns any access has something in.
#[derive(Clone, Copy)]
struct Columns {
    /// Sectors, and how much of them is used.
    sectors: bool,
    /// Wavefronts, and those that are conflicts.
    wavefronts: bool,
}

impl Columns {
    fn of(accesses: &[Access]) -> Self {
        let any = |has: fn(&Access) -> bool| accesses.iter().any(has);
        Self {
            sectors: any(|access| access.site.sectors.is_some()),
            wavefronts: any(|access| access.site.wavefronts.is_some()),
        }
    }

    fn header(self) -> String {
        self.line(" requests", "  sectors    used", "  wavefronts  conflicts") + "    "
    }

    fn line(self, requests: &str, sectors: &str, wavefronts: &str) -> String {
        let shown = |column, is_shown| if is_shown { column } else { "" };
        [requests, shown(sectors, self.sectors), shown(wavefronts, self.wavefronts)].concat()
    }
}

const LEGEND: &str = "\
Sectors (32 bytes), wavefronts and conflicts (wavefronts beyond the ideal): a request, on average. Used: bytes that lanes \
want, as a share of those in the sectors moved; one that several lanes of a request want counts once. Excess: sectors \
beyond the fewest that could hold a request's bytes, and 128 bytes for each conflict.
→ A change, and the count that it gives: tried on the requests that were kept, the first of some warps of two blocks.";

fn write_excerpt(
    text: &mut String,
    excerpt: &Excerpt,
    accesses: &[Access],
    worst: Option<usize>,
    columns: Columns,
) -> fmt::Result {
    let margin = columns.header().chars().count();
    for (line, number) in excerpt.lines.iter().zip(excerpt.line..) {
        writeln!(text, "{}", format!("{:margin$}{number:>5} │ {line}", "").trim_end())?;
        for (i, access) in accesses.iter().enumerate() {
            let site = &access.site;
            if (&site.file, site.line) == (&excerpt.file, number) {
                let mark = if Some(i) == worst { '▶' } else { ' ' };
                let before = (site.column as usize).saturating_sub(1);
                writeln!(text, "{} {mark}      │ {:before$}^ {}", counts(access, columns), "", access.name)?;
            }
        }
    }
    Ok(())
}

/// The counts of an access, a request on average.
fn counts(access: &Access, columns: Columns) -> String {
    let site = &access.site;
    let average = |count: Option<u64>| {
        count.map_or_else(|| "-".to_owned(), |count| format!("{:.2}", count as f64 / site.requests as f64))
    };
    let used = site.used.zip(site.sectors).map(|(used, sectors)| percent(used, SECTOR * sectors));
    let conflicts = site.wavefronts.zip(site.wavefronts_ideal).map(|(wavefronts, ideal)| wavefronts - ideal);
    let used = used.unwrap_or_else(|| "-".to_owned());
    columns.line(
        &format!("{:>9}", site.requests),
        &format!(" {:>8} {used:>7}", average(site.sectors)),
        &format!(" {:>11} {:>10}", average(site.wavefronts), average(conflicts)),
    )
}

/// `32x8`: the threads of a block, or the blocks of a grid, as far as they have more than one along an axis.
fn extent(axes: [u32; 3]) -> String {
    let last = axes.iter().rposition(|&n| n > 1).unwrap_or(0);
    axes[..=last].iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Remedy;
    use crate::record::{BlocksRecord, LaunchRecord, SiteRecord};

    fn access(line: u32, column: u32, op: &str, region: &str, excess: u64) -> Access {
        let site = SiteRecord {
            file: "copy.rs".into(),
            line,
            column,
            space: "global".into(),
            op: op.into(),
            width: 4,
            requests: 128,
            lanes: 4096,
            sectors: Some(512 + excess / 32),
            sectors_ideal: Some(512),
            used: Some(16_384),
            lines: Some(128),
            wavefronts: None,
            wavefronts_ideal: None,
            transactions: None,
            notes: Vec::new(),
        };
        let why = format!("Because of `{region}`.");
        let name = format!("{op} {region}");
        Access {
            site,
            name,
            region: region.into(),
            excess,
            why,
            remedies: Vec::new(),
            advice: Vec::new(),
            samples: Vec::new(),
        }
    }

    #[test]
    fn accesses_stand_beneath_their_line_and_the_worst_is_marked() {
        let shared = SiteRecord {
            space: "shared".into(),
            sectors: None,
            used: None,
            wavefronts: Some(256),
            wavefronts_ideal: Some(128),
            ..access(9, 5, "load", "tile", 0).site
        };
        let padded = Remedy {
            change: "Pad `tile` by 1 word after every 32, to rows of 33".into(),
            unit: "wavefronts a request".into(),
            before: 2.0,
            after: 1.0,
        };
        let explanation = Explanation {
            kernel: "copy_all".into(),
            summary: "An element a thread.".into(),
            case: "4096".into(),
            launch: LaunchRecord { grid: [16, 1, 1], block: [32, 8, 1], shared_bytes: 0 },
            blocks: BlocksRecord { total: 16, simulated: 16, which: "all".into() },
            counts_stated: true,
            source: vec![
                Excerpt {
                    file: "copy.rs".into(),
                    line: 1,
                    lines: ["fn copy_all() {", "    dst.store(i, src.load(j));", "}"].map(String::from).into(),
                },
                Excerpt {
                    file: "copy.rs".into(),
                    line: 8,
                    lines: ["fn other() {", "    tile.load(i);", "", "}"].map(String::from).into(),
                },
            ],
            accesses: vec![
                access(2, 9, "store", "dst", 0),
                access(2, 22, "load", "src", 49_152),
                Access {
                    site: shared,
                    excess: 16_384,
                    advice: vec![padded.to_string()],
                    ..access(9, 10, "load", "tile", 0)
                },
            ],
            worst: Some(1),
            counters: vec![
                Counter { count: "requests to global memory", metrics: vec!["op_ld.sum", "op_st.sum"] },
                Counter { count: "sectors", metrics: vec!["theoretical_sectors_global"] },
            ],
            arbitration: Some("Some of it is arbitration."),
        };
        insta::assert_snapshot!(text(&explanation), @r"
        copy_all on 4096: 16 blocks of 32x8 threads, simulated: all
        An element a thread.

         requests  sectors    used  wavefronts  conflicts    copy.rs
                                                                 1 │ fn copy_all() {
                                                                 2 │     dst.store(i, src.load(j));
              128     4.00 100.0 %           -          -        │         ^ store dst
              128    16.00  25.0 %           -          - ▶      │                      ^ load src
                                                                 3 │ }
                                                                 …
                                                                 8 │ fn other() {
                                                                 9 │     tile.load(i);
              128        -       -        2.00       1.00        │     ^ load tile
                                                                10 │
                                                                11 │ }

        ▶ The worst is line 2, load src: 49.15 kB in excess, 75.0 % of the kernel's.
          Because of `src`.
          Line 2, store dst: Because of `dst`.
          Line 9, load tile: Because of `tile`.
            → Pad `tile` by 1 word after every 32, to rows of 33: 1.00 wavefronts a request instead of 2.00.

        Sectors (32 bytes), wavefronts and conflicts (wavefronts beyond the ideal): a request, on average. Used: bytes that lanes want, as a share of those in the sectors moved; one that several lanes of a request want counts once. Excess: sectors beyond the fewest that could hold a request's bytes, and 128 bytes for each conflict.
        → A change, and the count that it gives: tried on the requests that were kept, the first of some warps of two blocks.

        In Nsight Compute:
          requests to global memory   op_ld.sum +
                                      op_st.sum
          sectors                     theoretical_sectors_global
        Some of it is arbitration.
        ");
    }
}
