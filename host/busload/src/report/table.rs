//! The table on the terminal.

use crate::bench::COPY;
use crate::record::{Record, Simulated, SiteRecord, TransactionsRecord};
use crate::sim::coalesce::SECTOR;
use crate::timing::Timed;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use indicatif::DecimalBytes;

/// The records as a table: counts of those that were simulated, times of those that were timed.
pub fn table(records: &[Record]) -> String {
    let mut text = String::new();
    let (timed, rest): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.on == "gpu");
    let (timed, left_out) = without_most_copies(timed);
    for part in [rest, timed] {
        if let Some(first) = part.first() {
            let rows = if first.on == "gpu" { gpu(&part) } else { simulated(&part) };
            text.push_str(&rows);
            text.push('\n');
            if first.on != "gpu" {
                text.push_str(SIMULATED);
            }
        }
    }
    if left_out > 0 {
        text.push_str(&format!(
            "{COPY}: the largest and the fastest; {left_out} of other sizes stand in the JSON alone.\n"
        ));
    }
    text.push_str(&notes(records));
    let failed = records.iter().filter_map(|record| Some((record, record.error.as_ref()?)));
    for (record, error) in failed {
        let message = error.message.replace('\n', "\n  ");
        text.push_str(&format!(
            "\n{} on {} ({}): {}\n  {message}\n",
            record.kernel, record.case, record.on, error.kind
        ));
    }
    text
}

/// The rows without the device's copies of all sizes but the largest and the fastest, and how many those are.
fn without_most_copies(rows: Vec<&Record>) -> (Vec<&Record>, usize) {
    let copies = rows.iter().enumerate().filter(|(_, row)| row.kernel == COPY);
    let gbps = |row: &Record| row.timed.as_ref().map_or(0.0, |timed| timed.gbps);
    let largest = copies.clone().max_by_key(|(_, row)| row.bytes).map(|(i, _)| i);
    let fastest = copies.max_by(|(_, a), (_, b)| gbps(a).total_cmp(&gbps(b))).map(|(i, _)| i);
    let all = rows.len();
    let shown = |(i, row): (usize, &Record)| row.kernel != COPY || [largest, fastest].contains(&Some(i));
    let rows: Vec<_> = rows.into_iter().enumerate().filter(|(i, row)| shown((*i, row))).map(|(_, row)| row).collect();
    let left_out = all - rows.len();
    (rows, left_out)
}

/// What the numbers of simulated rows are.
const SIMULATED: &str = "\
Sectors (32 bytes) and wavefronts of an operation: a request, on average; in brackets the ideal. Global requests, sectors
and bytes moved: of all operations, in all. Used: bytes that lanes want, as a share of those moved.
";

/// What the compiler may make of simulated accesses: a line for each.
fn notes(records: &[Record]) -> String {
    let mut text = String::new();
    for record in records {
        let sites = record.simulated.as_ref().map_or(&[][..], |simulated| &simulated.sites);
        for (site, note) in sites.iter().flat_map(|site| site.notes.iter().map(move |note| (site, note))) {
            let SiteRecord { file, line, column, space, op, .. } = site;
            text +=
                &format!("\n{} on {}, {file}:{line}:{column}, {space} {op}:\n  {note}.\n", record.kernel, record.case);
        }
    }
    text
}

/// A table with `header`, whose first two columns, and the last, are text.
pub(super) fn new(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_style(TableComponent::HeaderLines, '─').set_style(TableComponent::MiddleHeaderIntersections, '─');
    table.set_header(header);
    for column in 2..header.len() - 1 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn gpu(records: &[&Record]) -> String {
    let clocked = records.iter().any(|record| record.timed.as_ref().is_some_and(|timed| timed.cycles.is_some()));
    let mut header = vec!["kernel", "case", "median\nms", "min\nms", "spread", "GB/s\nread+written"];
    header.extend(["of\ncopy", "of\npeak", "occupancy"]);
    header.extend(clocked.then_some("cycles\na request"));
    header.push("verified");
    let mut table = new(&header);
    for record in records {
        let time = |show: fn(&Timed) -> String| record.timed.as_ref().map_or_else(|| "-".to_owned(), show);
        let share =
            |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        let timed = record.timed.as_ref();
        let cycles = |timed: &Timed| timed.cycles.map_or_else(|| "-".to_owned(), |cycles| format!("{cycles:.2}"));
        let mut row = vec![
            record.kernel.clone(),
            record.case.clone(),
            time(|timed| format!("{:.4}", timed.median_ms)),
            time(|timed| format!("{:.4}", timed.min_ms)),
            time(|timed| format!("{:.1} %", 100.0 * timed.spread)),
            time(|timed| format!("{:.0}", timed.gbps)),
            share(timed.and_then(|timed| timed.share_of_copy)),
            share(timed.and_then(|timed| timed.share_of_peak)),
            record.occupancy.map_or_else(|| "-".to_owned(), |occupancy| format!("{:.0} %", 100.0 * occupancy.share)),
        ];
        row.extend(clocked.then(|| time(cycles)));
        row.push(verdict(record));
        table.add_row(row);
    }
    table.trim_fmt()
}

fn simulated(records: &[&Record]) -> String {
    let sites = records.iter().filter_map(|record| record.simulated.as_ref()).flat_map(|simulated| &simulated.sites);
    let atomics = |space| sites.clone().any(|site| site.space == space && site.op == "atomic");
    let (global_atomics, shared_atomics) = (atomics("global"), atomics("shared"));
    let mut header = vec!["kernel", "case", "load\nsectors", "store\nsectors"];
    header.extend(global_atomics.then_some("atomic\nsectors"));
    header.extend(["global\nrequests", "global\nsectors", "bytes\nmoved", "bytes\nused"]);
    header.extend(["shared load\nwavefronts", "shared store\nwavefronts"]);
    header.extend(shared_atomics.then_some("shared atomic\nwavefronts"));
    let constant = sites.clone().any(|site| site.space == "constant");
    header.extend(constant.then_some("constant load\npasses"));
    let transactions = sites.clone().any(|site| site.transactions.is_some());
    let columns = ["load\ntransactions", "store\ntransactions", "bytes\na request"];
    header.extend(transactions.then_some(columns).into_iter().flatten());
    header.push("verified");
    let mut table = new(&header);
    for record in records {
        let sites = record.simulated.as_ref().map_or(&[][..], |simulated| &simulated.sites);
        let of = |space, op: &'static str| {
            sites.iter().filter(move |site| site.space == space && (op.is_empty() || site.op == op))
        };
        let sectors = |op| per_request(of("global", op), |site| (site.sectors, site.sectors_ideal));
        let wavefronts = |space, op| per_request(of(space, op), |site| (site.wavefronts, site.wavefronts_ideal));
        let mut row = vec![record.kernel.clone(), record.case.clone(), sectors("load"), sectors("store")];
        row.extend(global_atomics.then(|| sectors("atomic")));
        row.extend(totals(of("global", "")));
        row.extend(["load", "store"].map(|op| wavefronts("shared", op)));
        row.extend(shared_atomics.then(|| wavefronts("shared", "atomic")));
        row.extend(constant.then(|| wavefronts("constant", "load")));
        if transactions {
            let mean = |op, part: fn(&TransactionsRecord) -> u64| {
                let requests = of("global", op).map(|site| site.requests).sum::<u64>();
                let sum = of("global", op).filter_map(|site| site.transactions.as_ref()).map(part).sum::<u64>();
                if requests == 0 { "-".to_owned() } else { format!("{:.2}", sum as f64 / requests as f64) }
            };
            row.extend(["load", "store"].map(|op| mean(op, |transactions| transactions.count)));
            row.push(mean("", |transactions| transactions.bytes));
        }
        row.push(verdict(record));
        table.add_row(row);
    }
    table.trim_fmt()
}

/// What a request costs on average, and what it would cost at best.
fn per_request<'a>(
    sites: impl Iterator<Item = &'a SiteRecord>,
    cost: impl Fn(&SiteRecord) -> (Option<u64>, Option<u64>),
) -> String {
    let (mut requests, mut actual, mut ideal) = (0, 0, 0);
    for site in sites {
        let (site_actual, site_ideal) = cost(site);
        requests += site.requests;
        actual += site_actual.unwrap_or_default();
        ideal += site_ideal.unwrap_or_default();
    }
    if requests == 0 {
        return "-".to_owned();
    }
    format!("{:.2} ({:.2})", actual as f64 / requests as f64, ideal as f64 / requests as f64)
}

/// Requests, sectors, the bytes that these move, and the share of them that is used.
fn totals<'a>(sites: impl Iterator<Item = &'a SiteRecord>) -> [String; 4] {
    let (mut requests, mut sectors, mut used) = (0, 0, 0);
    for site in sites {
        requests += site.requests;
        sectors += site.sectors.unwrap_or_default();
        used += site.used.unwrap_or_default();
    }
    if requests == 0 {
        return std::array::from_fn(|_| "-".to_owned());
    }
    let moved = SECTOR * sectors;
    [requests.to_string(), sectors.to_string(), DecimalBytes(moved).to_string(), percent(used, moved)]
}

/// A share in percent, short of 100 unless it is all.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent = 100.0 * part as f64 / whole as f64;
    if part < whole && percent > 99.9 { "over 99.9 %".to_owned() } else { format!("{percent:.1} %") }
}

fn verdict(record: &Record) -> String {
    let verdict = match (&record.error, record.verified, &record.simulated) {
        (Some(error), ..) => return format!("no: {}", error.kind),
        (None, true, _) => "yes".to_owned(),
        (None, false, Some(Simulated { blocks, .. })) if blocks.simulated < blocks.total => {
            format!("sampled: {} of {} blocks", blocks.simulated, blocks.total)
        }
        (None, false, Some(_)) => "no output".to_owned(),
        (None, false, None) => "-".to_owned(),
    };
    match &record.simulated {
        Some(Simulated { counts_stated: false, .. }) => format!("{verdict}, counts not stated"),
        _ => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{BlocksRecord, ErrorRecord, Occupancy};
    use crate::sim::Note;

    fn record(kernel: &str) -> Record {
        Record {
            kernel: kernel.into(),
            family: "copy".into(),
            case: "4096".into(),
            params: Default::default(),
            on: "simulator".into(),
            launch: None,
            occupancy: None,
            verified: true,
            bytes: 32_768,
            error: None,
            simulated: None,
            timed: None,
        }
    }

    fn site(op: &str, sectors: u64) -> SiteRecord {
        SiteRecord {
            file: "copy.rs".into(),
            line: 1,
            column: 1,
            space: "global".into(),
            op: op.into(),
            width: 4,
            requests: 128,
            lanes: 4096,
            sectors: Some(sectors),
            sectors_ideal: Some(512),
            used: Some(16_384),
            lines: Some(128),
            wavefronts: None,
            wavefronts_ideal: None,
            transactions: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn of_the_devices_copies_the_largest_and_the_fastest_are_shown() {
        let copy = |bytes: u64, ms: f64| {
            let mut copy = record(COPY);
            (copy.on, copy.case, copy.bytes) = ("gpu".into(), format!("{bytes} bytes"), bytes);
            copy.timed = Some(crate::timing::timed(vec![ms], crate::timing::L2::Cold, bytes, None, None));
            copy
        };
        let mut timed = copy(7, 1.0);
        timed.kernel = "copy_vec4".into();
        let rows = [copy(1000, 1.0), copy(2000, 0.2), copy(4000, 0.5), copy(8000, 1.5), timed];
        let shown = |rows: &[Record]| {
            let text = table(rows);
            let shown = |row: &&Record| text.contains(&row.case);
            (rows.iter().filter(shown).map(|row| row.bytes).collect::<Vec<_>>(), text)
        };
        let (bytes, text) = shown(&rows);
        assert_eq!(bytes, [2000, 8000, 7], "{text}");
        assert!(
            text.ends_with("cuMemcpyDtoD: the largest and the fastest; 2 of other sizes stand in the JSON alone.\n"),
            "{text}"
        );
        let (bytes, text) = shown(&rows[2..]);
        assert_eq!(bytes, [4000, 8000, 7]);
        assert!(!text.contains("JSON"), "nothing is left out: {text}");
    }

    #[test]
    fn both_machines_have_their_columns_and_errors_stand_below() {
        let blocks = BlocksRecord { total: 16, simulated: 16, which: "all".into() };
        let added = SiteRecord {
            notes: vec![Note::ReducedAtomic],
            used: Some(512),
            sectors_ideal: Some(128),
            ..site("atomic", 128)
        };
        let mut counted = record("copy_coalesced");
        counted.simulated =
            Some(Simulated { blocks, counts_stated: true, sites: vec![site("load", 1024), site("store", 512), added] });
        let mut timed = record("copy_vec4");
        timed.on = "gpu".into();
        let samples =
            crate::timing::timed(vec![0.5, 0.25, 0.5], crate::timing::L2::Cold, 1_000_000_000, Some(4000.0), None);
        timed.timed = Some(Timed { cycles: Some(1.25), ..samples });
        timed.occupancy = Some(Occupancy { blocks_per_sm: 4, share: 0.5 });
        let mut failed = record("copy_vec2");
        failed.verified = false;
        failed.error = Some(ErrorRecord { kind: "verification".into(), message: "1 of 2\nelements".into() });
        insta::assert_snapshot!(table(&[counted, timed, failed]), @r"
         kernel           case          load         store        atomic     global    global      bytes    bytes   shared load   shared store   verified
                                     sectors       sectors       sectors   requests   sectors      moved     used    wavefronts     wavefronts
        ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
         copy_coalesced   4096   8.00 (4.00)   4.00 (4.00)   1.00 (1.00)        384      1664   53.25 kB   62.5 %             -              -   yes
         copy_vec2        4096             -             -             -          -         -          -        -             -              -   no: verification
        Sectors (32 bytes) and wavefronts of an operation: a request, on average; in brackets the ideal. Global requests, sectors
        and bytes moved: of all operations, in all. Used: bytes that lanes want, as a share of those moved.
         kernel      case   median      min   spread           GB/s       of     of   occupancy      cycles   verified
                                ms       ms            read+written     copy   peak               a request
        ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
         copy_vec4   4096   0.5000   0.2500   25.0 %           2000   50.0 %      -        50 %        1.25   yes

        copy_coalesced on 4096, copy.rs:1:1, global atomic:
          all lanes of a request add integers to one address: where the compiler knows it, one lane adds their sum.

        copy_vec2 on 4096 (simulator): verification
          1 of 2
          elements
        ");
    }

    #[test]
    fn what_was_not_compared_is_not_called_verified() {
        let simulated = |total, counts_stated| {
            let blocks = BlocksRecord { total, simulated: 16, which: String::new() };
            Some(Simulated { blocks, counts_stated, sites: Vec::new() })
        };
        let shown = |verified, simulated| verdict(&Record { verified, simulated, ..record("copy_coalesced") });
        assert_eq!(shown(true, simulated(16, true)), "yes");
        assert_eq!(shown(true, simulated(16, false)), "yes, counts not stated");
        assert_eq!(shown(false, simulated(16, true)), "no output");
        assert_eq!(shown(false, simulated(20, true)), "sampled: 16 of 20 blocks");
        assert_eq!(shown(false, simulated(20, false)), "sampled: 16 of 20 blocks, counts not stated");
        assert_eq!(shown(false, None), "-");
    }
}
