//! What came of runs, as tables on the terminal.

use super::escape::{markdown, terminal};
use super::table::{Column, Layout};
use super::timed::{of_samples, remarks, timed};
use super::verdict::verdict;
use super::width::{width, wrapped};
use crate::bench::COPY;
use crate::record::{BlocksRecord, Record, SiteRecord, TransactionsRecord};
use crate::sim::coalesce::SECTOR;
use crate::why::percent;
use indicatif::DecimalBytes;

/// The records as a table: counts of those that were simulated, times of those that were timed.
pub fn table(records: &[Record]) -> String {
    table_in(records, width())
}

fn table_in(records: &[Record], width: usize) -> String {
    let mut text = String::new();
    let (on_gpu, simulated): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.is_of_gpu());
    let (on_gpu, left_out) = without_most_copies(on_gpu);
    if !simulated.is_empty() {
        text += &counted(&simulated).fit(width);
        text += &wrapped(SIMULATED, width, 0);
    }
    if !simulated.is_empty() && !on_gpu.is_empty() {
        text.push('\n');
    }
    if !on_gpu.is_empty() {
        text += &timed(&on_gpu).fit(width);
        text += &wrapped(&remarks(&on_gpu), width, 0);
    }
    if left_out > 0 {
        let stand = if left_out == 1 { "stands" } else { "stand" };
        let note =
            format!("{COPY}: the largest and the fastest; {left_out} of other sizes {stand} in the JSON alone.\n");
        text += &wrapped(&note, width, 0);
    }
    text + &below(records, width)
}

/// The same in Markdown.
pub fn records_markdown(records: &[Record]) -> String {
    let (simulated, on_gpu): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.timed.is_none());
    let (on_gpu, _) = without_most_copies(on_gpu);
    let tables = [(!simulated.is_empty()).then(|| counted(&simulated)), (!on_gpu.is_empty()).then(|| timed(&on_gpu))];
    let mut text = tables.into_iter().flatten().map(|table| table.markdown()).collect::<Vec<_>>().join("\n");
    for (number, failure) in records.iter().filter_map(failure).enumerate() {
        text += &format!("{}- {}\n", if number == 0 { "\n" } else { "" }, markdown(&failure));
    }
    text
}

/// What went wrong with a case, in a line.
pub fn failure(record: &Record) -> Option<String> {
    let error = record.error.as_ref()?;
    let message = error.message.replace('\n', " ");
    Some(format!("{} on {} ({}): {}: {message}", record.kernel, record.case, record.on, error.kind))
}

/// What came of a case, in a line: the words that stand behind its name.
pub fn outcome(record: &Record) -> String {
    if let Some(error) = &record.error {
        return format!("{}: {}", error.kind, error.message.replace('\n', " "));
    }
    if record.timed.is_some() {
        return record.timed.iter().chain(&record.hot).map(of_samples).collect::<Vec<_>>().join("; ");
    }
    let blocks = record.simulated.as_ref().map(|simulated| {
        let BlocksRecord { simulated, total, .. } = &simulated.blocks;
        let blocks = if *total == 1 { "block" } else { "blocks" };
        if simulated == total { format!("{total} {blocks}, ") } else { format!("{simulated} of {total} blocks, ") }
    });
    let verified = if record.verified { "verified" } else { "not verified" };
    format!("{}{verified}", blocks.unwrap_or_default())
}

/// Which of the records are verified, on which machine.
pub fn verification_table(records: &[Record]) -> String {
    verification_table_in(records, width())
}

/// The machines: as results name them, as headings do, and as sentences do.
const MACHINES: [(&str, &str, &str); 3] = [
    ("simulator", "simulator", "in the simulator"),
    ("ptx", "PTX machine", "on the PTX machine"),
    ("gpu", "GPU", "on the GPU"),
];

fn verification_table_in(records: &[Record], width: usize) -> String {
    let mut layout = Layout::new(
        ["kernel", "case"]
            .map(Column::key)
            .into_iter()
            .chain(MACHINES.map(|(_, name, _)| Column::text(name)))
            .collect::<Vec<_>>(),
    );
    let mut rows: Vec<[String; 5]> = Vec::new();
    for record in records {
        let place = 2 + MACHINES.iter().position(|(on, ..)| record.on == *on).unwrap_or(0);
        let is_of = |row: &&mut [String; 5]| row[0] == record.kernel && row[1] == record.case && row[place] == "-";
        let row = match rows.iter_mut().find(is_of) {
            Some(row) => row,
            None => {
                let (kernel, case) = (record.kernel.clone(), record.case.clone());
                rows.push([kernel, case, "-".to_owned(), "-".to_owned(), "-".to_owned()]);
                rows.last_mut().expect("it has a row")
            }
        };
        row[place] = verdict(record);
    }
    rows.into_iter().for_each(|row| layout.row(row));
    let of = |on: &str| {
        let all = records.iter().filter(|record| record.on == on);
        let verified = all.clone().filter(|record| record.verified && record.error.is_none()).count();
        (verified, all.count())
    };
    let parts = MACHINES.map(|(on, _, name)| (name, of(on)));
    let parts = parts.into_iter().filter(|(_, (_, all))| *all > 0);
    let parts: Vec<_> = parts.map(|(machine, (verified, all))| format!("{verified} of {all} {machine}")).collect();
    let sum = format!("Verified, every element of every output: {}.\n", parts.join(", "));
    layout.fit(width) + &wrapped(&sum, width, 0) + &below(records, width)
}

/// What stands below a table: notes on accesses, and what went wrong.
pub(super) fn below(records: &[Record], width: usize) -> String {
    let mut text = notes(records);
    for record in records {
        if let Some(error) = &record.error {
            let head = format!("{} on {} ({}): {}", record.kernel, record.case, record.on, error.kind);
            let message = error.message.split('\n').map(terminal).collect::<Vec<_>>().join("\n  ");
            text += &format!("\n{}\n  {message}\n", terminal(&head));
        }
    }
    wrapped(&text, width, 0)
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
Sectors (32 bytes) and wavefronts of an operation: a request, on average; in brackets the ideal. Global requests, sectors \
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

/// Counts, of simulated rows.
fn counted(records: &[&Record]) -> Layout {
    let mut layout = Layout::new([
        Column::key("kernel"),
        Column::key("case"),
        Column::number("load\nsectors"),
        Column::number("store\nsectors"),
        Column::number("atomic\nsectors").apart(),
        Column::number("global\nrequests").spare(2),
        Column::number("global\nsectors").spare(3),
        Column::number("bytes\nmoved").spare(1),
        Column::number("bytes\nused"),
        Column::number("shared load\nwavefronts").apart(),
        Column::number("shared store\nwavefronts").apart(),
        Column::number("shared atomic\nwavefronts").apart(),
        Column::number("constant load\nwavefronts").apart(),
        Column::number("load\ntransactions"),
        Column::number("store\ntransactions"),
        Column::number("bytes\na request"),
        Column::text("verified").once(),
    ]);
    for record in records {
        let sites = record.simulated.as_ref().map_or(&[][..], |simulated| &simulated.sites);
        let of = |space, op: &'static str| {
            sites.iter().filter(move |site| site.space == space && (op.is_empty() || site.op == op))
        };
        let sectors = |op| per_request(of("global", op), |site| (site.sectors, site.sectors_ideal));
        let wavefronts = |space, op| per_request(of(space, op), |site| (site.wavefronts, site.wavefronts_ideal));
        let transactions = |op, part: fn(&TransactionsRecord) -> u64| {
            let parts = of("global", op).filter_map(|site| Some((site.requests, part(site.transactions.as_ref()?))));
            let (requests, sum) = parts.fold((0, 0), |(requests, sum), (more, part)| (requests + more, sum + part));
            if requests == 0 { "-".to_owned() } else { format!("{:.2}", sum as f64 / requests as f64) }
        };
        let mut row = vec![record.kernel.clone(), record.case.clone()];
        row.extend(["load", "store", "atomic"].map(sectors));
        row.extend(totals(of("global", "")));
        row.extend(["load", "store", "atomic"].map(|op| wavefronts("shared", op)));
        row.push(wavefronts("constant", "load"));
        row.extend(["load", "store"].map(|op| transactions(op, |transactions| transactions.count)));
        row.push(transactions("", |transactions| transactions.bytes));
        row.push(verdict(record));
        layout.row(row);
    }
    layout
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{BlocksRecord, ErrorRecord, Occupancy, Simulated};
    use crate::sim::Note;
    use crate::timing::Timed;

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
            moved: None,
            error: None,
            simulated: None,
            timed: None,
            hot: None,
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
            let text = table_in(rows, 100);
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
        let all = [counted, timed, failed];
        insta::assert_snapshot!(table_in(&all, 200), @r"
         kernel          case         load        store       atomic    global   global     bytes   bytes  verified
                                   sectors      sectors      sectors  requests  sectors     moved    used
        ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────
         copy_coalesced  4096  8.00 (4.00)  4.00 (4.00)  1.00 (1.00)       384     1664  53.25 kB  62.5 %  yes
         copy_vec2       4096            -            -            -         -        -         -       -  no: verification
        Sectors (32 bytes) and wavefronts of an operation: a request, on average; in brackets the ideal. Global requests,
        sectors and bytes moved: of all operations, in all. Used: bytes that lanes want, as a share of those moved.

         kernel     case  median      95 %     min  spread          GB/s      of  occupancy     cycles  verified
                              ms  interval      ms          read+written    copy             a request
        ────────────────────────────────────────────────────────────────────────────────────────────────────────
         copy_vec4  4096  0.5000  ±50.00 %  0.2500  25.0 %          2000  50.0 %       50 %       1.25  yes

        copy_coalesced on 4096, copy.rs:1:1, global atomic:
          all lanes of a request add integers to one address: where the compiler knows it, one lane adds their sum.

        copy_vec2 on 4096 (simulator): verification
          1 of 2
          elements
        ");
    }

    #[test]
    fn what_is_verified_stands_in_a_row_for_both_machines() {
        let on = |kernel: &str, on: &str, verified| Record { on: on.into(), verified, ..record(kernel) };
        let simulated = |kernel| {
            let blocks = BlocksRecord { total: 16, simulated: 16, which: "all".into() };
            let simulated = Some(Simulated { blocks, counts_stated: true, sites: vec![site("load", 1024)] });
            Record { simulated, ..on(kernel, "simulator", true) }
        };
        let mut wrong = on("copy_vec4", "gpu", false);
        wrong.error = Some(ErrorRecord { kind: "verification".into(), message: "1 of 2 elements".into() });
        let mut rows = vec![simulated("copy_coalesced"), simulated("copy_vec4")];
        insta::assert_snapshot!(verification_table_in(&rows, 100), @r"
         kernel          case  simulator
        ────────────────────────────────
         copy_coalesced  4096  yes
         copy_vec4       4096  yes
        Verified, every element of every output: 2 of 2 in the simulator.
        ");
        rows.extend([on("copy_coalesced", "gpu", true), wrong]);
        insta::assert_snapshot!(verification_table_in(&rows, 100), @r"
         kernel          case  simulator  GPU
        ──────────────────────────────────────────────────
         copy_coalesced  4096  yes        yes
         copy_vec4       4096  yes        no: verification
        Verified, every element of every output: 2 of 2 in the simulator, 1 of 2 on the GPU.

        copy_vec4 on 4096 (gpu): verification
          1 of 2 elements
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
