//! Why an access costs what it costs, in a sentence made from the addresses of its requests, and what would lower it.

mod remedy;

pub use remedy::Remedy;
pub(crate) use remedy::remedies;

use crate::sim::banks::{self, BANKS};
use crate::sim::coalesce::SECTOR;
use crate::sim::{Note, Pattern, Sample, Sampled, Sampling, Site, Tally};
use gpu::device::host::Space;
use gpu::suite::Operation;
use std::collections::BTreeSet;

/// What an explanation looks at one by one: enough warps and iterations to walk through.
pub const SAMPLING: Sampling = Sampling { blocks: 2, warps: 8, requests: 8 };

/// Bytes that a wavefront can move: a word from each bank.
const WAVEFRONT: u64 = 4 * BANKS as u64;

/// `load`, `store` or `atomic`.
#[must_use]
pub const fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Load => "load",
        Operation::Store => "store",
        Operation::Atomic => "atomic",
    }
}

/// A share in percent, short of 100 unless it is all.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent = 100.0 * part as f64 / whole as f64;
    if part < whole && percent > 99.9 { "over 99.9 %".to_owned() } else { format!("{percent:.1} %") }
}

/// The buffers or shared arrays that an access goes to.
pub(crate) fn region(sampled: &Sampled) -> String {
    let mut regions: Vec<_> = sampled.tallies.iter().map(|tally| tally.region.as_str()).collect();
    regions.sort_unstable();
    regions.dedup();
    regions.join(", ")
}

/// Bytes that an access moves in excess: those of sectors beyond the fewest that could hold a request's bytes, and 128 for each wavefront
/// beyond the ideal, which could have moved as many.
pub(crate) fn excess(site: &Site, sampled: &Sampled) -> u64 {
    let counts = site.counts;
    match site.space {
        Space::Global => SECTOR * (counts.sectors - sampled.tallies.iter().map(|tally| tally.fewest).sum::<u64>()),
        Space::Shared | Space::Constant => WAVEFRONT * (counts.wavefronts - counts.wavefronts_ideal),
    }
}

/// What to do about an excess, and what the compiler may make of the access: a sentence each.
pub(crate) fn advice(site: &Site, excess: u64, remedies: &[Remedy]) -> Vec<String> {
    let none = (excess > 0 && remedies.is_empty())
        .then(|| "None of the changes tried on its addresses lowers this count.".to_owned());
    let notes = site.notes.iter().map(|note| format!("Note: {note}."));
    remedies.iter().map(ToString::to_string).chain(none).chain(notes).collect()
}

/// The sentence about an access of blocks of `block` threads: on its most frequent pattern, and how frequent that is.
pub(crate) fn why(site: &Site, sampled: &Sampled, block: [u32; 3]) -> String {
    let Some(tally) = sampled.tallies.first() else { return "No request was made.".to_owned() };
    let effect = match site.space {
        Space::Global => on_sectors(tally, site.width),
        Space::Shared => on_banks(tally, site),
        Space::Constant => on_passes(tally),
    };
    let together = if site.space == Space::Shared { served_together(tally, site) } else { String::new() };
    let of = match tally.total.requests == site.counts.requests {
        true => "every request".to_owned(),
        false => format!("{} of the requests", percent(tally.total.requests, site.counts.requests)),
    };
    format!("{}{effect} ({of}).{together}", movement(tally, site.width, block))
}

/// How many lanes a wavefront serves, where that is not all of them, and why it serves twice as many.
fn served_together(tally: &Tally, site: &Site) -> String {
    let served = match site.width {
        8 => "a half warp",
        16 => "a quarter warp",
        _ => return String::new(),
    };
    let twice = match site.operation {
        Operation::Load => {
            let Sample { mask, addresses, .. } = &tally.example;
            let is_twice = banks::lanes_together(addresses, *mask, site.width, site.operation) as u64
                > 4 * BANKS as u64 / site.width;
            format!(
                ", and twice as much for a load in which each active lane n has a partner, n ^ 1 for all or n ^ 2 for all, \
                 that is inactive or wants the same address: so {}",
                if is_twice { "here" } else { "not here" }
            )
        }
        Operation::Store | Operation::Atomic => String::new(),
    };
    format!(" A wavefront serves {served} at {} bytes a lane{twice}.", site.width)
}

/// How the address moves from lane to lane.
fn movement(tally: &Tally, width: u64, block: [u32; 3]) -> String {
    let region = &tally.region;
    let lanes = Lanes::of(tally, block);
    match tally.pattern {
        Pattern::Single => format!("One lane alone wants {width} bytes of `{region}`"),
        Pattern::Even { step: 0 } => format!("All active lanes want one address in `{region}`"),
        Pattern::Even { step } => match lanes.row_break {
            None => format!("{}, the address in `{region}` {}", lanes.subject, by(step)),
            Some((row, next)) => format!(
                "From lane to lane, the address in `{region}` {}, also where a row of {row} threads ends and {next} rises",
                by(step)
            ),
        },
        Pattern::Rows { lanes: row, step, row_step } => match lanes.row_break {
            Some((broken, next)) if broken == row => format!(
                "{}, the address in `{region}` {}, and as {next} rises by 1, every {row} lanes, it {}",
                lanes.subject,
                by(step),
                by(row_step)
            ),
            _ => in_rows(region, row, step, row_step),
        },
        Pattern::Groups { lanes: row, step, rows, row_step, group_step } => {
            in_rows(region, row, step, row_step) + &after(row * rows, group_step)
        }
        Pattern::Xor => {
            format!(
                "Each bit of the lane's number flips bits of the address in `{region}` by exclusive or, as in a swizzle"
            )
        }
        Pattern::Irregular => format!("From lane to lane, the address in `{region}` follows no stride"),
    }
}

/// How it moves within rows of `row` lanes, and from row to row.
fn in_rows(region: &str, row: u32, step: i64, row_step: i64) -> String {
    match step {
        0 => format!("Every {row} lanes want one address in `{region}`, which then {}", by(row_step)),
        _ => format!("From lane to lane, the address in `{region}` {}{}", by(step), after(row, row_step)),
    }
}

/// How it goes on after so many lanes.
fn after(lanes: u32, step: i64) -> String {
    match step {
        0 => format!(", and after {lanes} lanes it begins again"),
        _ => format!(", and from one {lanes} lanes to the next it {}", by(step)),
    }
}

/// `rises by 4 bytes` and the like.
fn by(step: i64) -> String {
    match step {
        0 => "stays".to_owned(),
        1.. => format!("rises by {step} {}", plural(step.unsigned_abs(), "byte")),
        _ => format!("falls by {} {}", -step, plural(step.unsigned_abs(), "byte")),
    }
}

/// Which of the block's indices moves as the lane rises.
struct Lanes {
    subject: String,
    /// Where lanes go over the end of a row of the block: how many threads a row has, and the index that then rises.
    row_break: Option<(u32, &'static str)>,
}

impl Lanes {
    fn of(tally: &Tally, block: [u32; 3]) -> Self {
        // Along an axis of one thread nothing moves.
        let axes = ["thread_idx_x", "thread_idx_y", "thread_idx_z"].into_iter().zip(block);
        let moving: Vec<_> = axes.filter(|(_, threads)| *threads > 1).collect();
        let (index, row_break) = match moving[..] {
            _ if !tally.contiguous => {
                return Self { subject: "From one active lane to the next".into(), row_break: None };
            }
            [(index, row), _, ..] if row % 32 == 0 => (index, None),
            [(index, row), (next, rows), ref rest @ ..]
                if 32 % row == 0 && (rest.is_empty() || row * rows % 32 == 0) =>
            {
                (index, (tally.range[1].lanes > row.into()).then_some((row, next)))
            }
            [(index, _)] => (index, None),
            _ => return Self { subject: "From lane to lane".into(), row_break: None },
        };
        Self { subject: format!("As {index} rises by 1"), row_break }
    }
}

/// What requests to global memory move, and how much of it they use.
fn on_sectors(tally: &Tally, width: u64) -> String {
    let [least, most] = tally.range;
    let lanes = counted(least.lanes, most.lanes, "lane");
    let sectors = counted(least.sectors, most.sectors, "sector");
    let lines = counted(least.lines, most.lines, "line");
    let touch = if most.lanes == 1 { "touches" } else { "touch" };
    let moved = format!("{lanes} {touch} {sectors} in {lines}");
    // With as many lanes, neighbours want as many bytes.
    let neighbours = matches!(tally.pattern, Pattern::Even { step } if step.unsigned_abs() == width) && least == most;
    let used = tally.used / tally.total.requests;
    if tally.total.sectors == tally.fewest {
        let alike = least == most && !matches!(tally.pattern, Pattern::Xor | Pattern::Irregular);
        let bytes = if alike { counted(used, used, "byte") } else { "bytes".to_owned() };
        format!(": {moved}, as few as can hold their {bytes}")
    } else if neighbours && tally.total.sectors == tally.fewest + tally.total.requests {
        let Sample { mask, addresses, .. } = &tally.example;
        let active = (0..32).filter(|lane| mask >> lane & 1 == 1);
        let begin = active.map(|lane| addresses[lane]).min().unwrap_or_default() % SECTOR;
        let begin = counted(begin, begin, "byte");
        format!(": {moved}, one more than they would fill, for the first request begins {begin} into one")
    } else {
        format!(": {moved}, {} used", share_used(tally))
    }
}

/// `4 of every 32 bytes moved are`, or the share in percent.
fn share_used(tally: &Tally) -> String {
    let moved = SECTOR * tally.total.sectors;
    match tally.used {
        used if used == moved => "and all bytes moved are".to_owned(),
        used if used.is_multiple_of(tally.total.sectors) => {
            format!("{} of every {SECTOR} bytes moved are", used / tally.total.sectors)
        }
        used => format!("{} of the bytes moved are", percent(used, moved)),
    }
}

/// Which lanes of requests to shared memory wait for one another.
fn on_banks(tally: &Tally, site: &Site) -> String {
    let ([least, most], width) = (tally.range, site.width);
    let wavefronts = counted(least.wavefronts, most.wavefronts, "wavefront");
    if tally.total.wavefronts == tally.total.wavefronts_ideal {
        let (lanes, bytes) = (counted(least.lanes, most.lanes, "lane"), counted(width, width, "byte"));
        return match tally.pattern {
            Pattern::Even { step: 0 } if site.operation == Operation::Load => {
                format!(": it is sent to them once, in {wavefronts}")
            }
            Pattern::Single => format!(": {wavefronts}"),
            _ => format!(": no bank conflict, {wavefronts} for {lanes} of {bytes}"),
        };
    }
    let instead = counted(least.wavefronts_ideal, most.wavefronts_ideal, "");
    let Conflict { bank, lanes, alike } = Conflict::worst(&tally.example, width, site.operation);
    if lanes.len() < 2 {
        let though = match site.notes.contains(&Note::CopyInTurns) {
            true => "",
            false => ", though no bank has two words to send at a time",
        };
        return format!(": {wavefronts} instead of {instead}{though}");
    }
    let others = match alike {
        0 => String::new(),
        1 => ", and so in another bank".to_owned(),
        _ => format!(", and so in {alike} other banks"),
    };
    let (words, lanes) = (lanes.len(), listed(&lanes));
    format!(
        ", and in the first request lanes {lanes} want {words} words of bank {bank}{others}: {wavefronts} instead of {instead}"
    )
}

/// The bank that has to send the most words of all.
struct Conflict {
    bank: usize,
    /// The first lane to want each of its words.
    lanes: Vec<u32>,
    /// How many other banks have to send as many.
    alike: usize,
}

impl Conflict {
    /// In the group of lanes that is served together and has the worst of it.
    fn worst(example: &Sample, width: u64, operation: Operation) -> Self {
        let Sample { mask, addresses, .. } = example;
        let together = banks::lanes_together(addresses, *mask, width, operation);
        let groups = (0..32).step_by(together).map(|first| {
            let mut seen = BTreeSet::new();
            let mut wanted = vec![Vec::new(); BANKS];
            for lane in (first..first + together).filter(|lane| mask >> lane & 1 == 1) {
                let word = addresses[lane] / 4;
                for word in word..word + width.div_ceil(4) {
                    if seen.insert(word) {
                        wanted[word as usize % BANKS].push(lane as u32);
                    }
                }
            }
            let most = wanted.iter().map(Vec::len).max().unwrap_or_default();
            let alike = wanted.iter().filter(|lanes| lanes.len() == most).count() - 1;
            let bank = wanted.iter().position(|lanes| lanes.len() == most).unwrap_or_default();
            Self { bank, lanes: wanted.swap_remove(bank), alike }
        });
        // The first of those that are equal.
        groups
            .reduce(|worst, group| if group.lanes.len() > worst.lanes.len() { group } else { worst })
            .expect("a group")
    }
}

/// How many addresses of constant memory requests want.
fn on_passes(tally: &Tally) -> String {
    let [least, most] = tally.range;
    let passes = counted(least.wavefronts, most.wavefronts, "address");
    match most.wavefronts {
        1 => ": one pass will do".to_owned(),
        _ => format!(": {} want {passes}, each in a pass of its own", counted(least.lanes, most.lanes, "lane")),
    }
}

/// `0 and 16`, `0, 1, 2, …, 31`.
fn listed(lanes: &[u32]) -> String {
    let (last, first) = lanes.split_last().expect("there are lanes");
    let first: Vec<_> = first.iter().map(u32::to_string).collect();
    match first.len() {
        ..4 => format!("{} and {last}", first.join(", ")),
        _ => format!("{}, …, {last}", first[..3].join(", ")),
    }
}

/// `4 sectors`, or `4 to 5 sectors`; without a unit the numbers alone.
fn counted(least: u64, most: u64, unit: &str) -> String {
    let numbers = if least == most { most.to_string() } else { format!("{least} to {most}") };
    if unit.is_empty() { numbers } else { format!("{numbers} {}", plural(most, unit)) }
}

fn plural(count: u64, unit: &str) -> String {
    match (count, unit) {
        (1, _) => unit.to_owned(),
        (_, "address") => "addresses".to_owned(),
        _ => format!("{unit}s"),
    }
}
