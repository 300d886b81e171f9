//! What would make an access cheaper: changes tried on the addresses of the requests that were kept, each with the count that
//! it gives.

use crate::sim::coalesce::{LINE, SECTOR, touched};
use crate::sim::{Pattern, Sample, Sampled, Site, banks};
use gpu::device::host::Space;
use gpu::suite::Operation;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// At most so many are named for an access.
const NAMED: usize = 2;

/// Elements farther apart than this are no fields of a structure.
const STRUCTURE: u64 = 256;

/// A change that lowers a count.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema, serde::Serialize))]
pub struct Remedy {
    /// What to change.
    pub change: String,
    /// What is counted.
    pub unit: String,
    /// The count of the requests that were kept, on average.
    pub before: f64,
    /// The same with the change.
    pub after: f64,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, unit, before, after } = self;
        write!(f, "{change}: {after:.2} {unit} instead of {before:.2}.")
    }
}

/// An access with what is known of it.
pub(crate) type Seen<'a> = (&'a Site, &'a Sampled);

/// The best changes for access number `n`, the best first.
pub(crate) fn remedies(accesses: &[Seen<'_>], n: usize) -> Vec<Remedy> {
    let mut remedies = match accesses[n].0.space {
        Space::Global => on_sectors(accesses, n),
        Space::Shared => on_banks(accesses, n),
        Space::Constant => from_shared(&accesses[n]).into_iter().collect(),
    };
    let left = |remedy: &Remedy| remedy.after / remedy.before;
    remedies.retain(|remedy| left(remedy) < 1.0);
    // Stable: of those that are equal the simpler ones stay in front.
    remedies.sort_by(|a, b| left(a).total_cmp(&left(b)));
    remedies.truncate(NAMED);
    remedies
}

/// The buffer or shared array that all requests of an access go to, if it is one.
fn region<'a>((_, sampled): &Seen<'a>) -> Option<&'a str> {
    let (first, rest) = sampled.tallies.split_first()?;
    rest.iter().all(|tally| tally.region == first.region).then_some(first.region.as_str())
}

/// The accesses of the same memory that go to the same region, by number.
fn alike<'a>(accesses: &[Seen<'a>], n: usize, region_of: &str) -> Vec<Seen<'a>> {
    let space = accesses[n].0.space;
    let is = |access: &&Seen<'a>| access.0.space == space && region(access) == Some(region_of);
    accesses.iter().filter(is).copied().collect()
}

/// The active lanes' addresses.
fn active(sample: &Sample) -> Vec<u64> {
    (0..32).filter(|lane| sample.mask >> lane & 1 == 1).map(|lane| sample.addresses[lane]).collect()
}

fn mean(counts: impl Iterator<Item = u64>) -> f64 {
    let (mut sum, mut number) = (0, 0);
    for count in counts {
        (sum, number) = (sum + count, number + 1);
    }
    sum as f64 / f64::from(number.max(1))
}

/// Constant memory sends one address a pass, shared memory a word from each bank.
fn from_shared(access: &Seen<'_>) -> Option<Remedy> {
    Some(Remedy {
        change: format!("Read `{}` from shared memory", region(access)?),
        unit: "wavefronts a request".to_owned(),
        before: mean(access.1.samples.iter().map(|sample| sample.counts.wavefronts)),
        after: wavefronts(access, |address| address),
    })
}

// Shared memory.

/// A change of where the bytes of a shared array stand: rows of `pitch` bytes, counted from `base` on.
#[derive(Clone, Copy)]
struct Layout {
    base: u64,
    pitch: u64,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// So many bytes more a row.
    Pad(u64),
    /// The chunks of so many bytes change places within each 128 bytes of a row: their number, exclusive or the row's.
    Swizzle(u64),
}

impl Layout {
    fn moved(self, address: u64) -> u64 {
        let place = address - self.base;
        let row = place / self.pitch;
        match self.kind {
            Kind::Pad(bytes) => self.base + place + row * bytes,
            Kind::Swizzle(chunk) => self.base + (place ^ (row % (LINE / chunk) * chunk)),
        }
    }

    fn change(self, region: &str) -> String {
        let words = self.pitch / banks::WIDTH;
        match self.kind {
            Kind::Pad(bytes) => {
                let more = bytes / banks::WIDTH;
                let plural = if more == 1 { "" } else { "s" };
                format!("Pad `{region}` by {more} word{plural} after every {words}, to rows of {}", words + more)
            }
            Kind::Swizzle(chunk) => {
                let what = if chunk == banks::WIDTH { "word".to_owned() } else { format!("{chunk}-byte chunk") };
                format!(
                    "Swizzle `{region}`, in rows of {words} words: put {what} `c` of row `r` at `c ^ (r % {})`",
                    LINE / chunk
                )
            }
        }
    }
}

/// Wavefronts of a request on average, with its addresses changed.
fn wavefronts((site, sampled): &Seen<'_>, moved: impl Fn(u64) -> u64) -> f64 {
    let of =
        |sample: &Sample| banks::wavefronts(&sample.addresses.map(&moved), sample.mask, site.width, site.operation);
    mean(sampled.samples.iter().map(of))
}

/// Paddings and swizzles of the access's array. A change of it changes all accesses to it, so that of all counts.
fn on_banks(accesses: &[Seen<'_>], n: usize) -> Vec<Remedy> {
    let Some(region) = region(&accesses[n]) else { return Vec::new() };
    let alike = alike(accesses, n, region);
    let samples = || alike.iter().flat_map(|(_, sampled)| &sampled.samples);
    let Some(first) = samples().flat_map(active).min() else { return Vec::new() };
    // Arrays begin at multiples of 16 bytes. Lanes that are not active count for nothing, wherever they are put.
    let base = first & !15;
    let chunk = alike.iter().map(|(site, _)| site.width).max().unwrap_or(banks::WIDTH).max(banks::WIDTH);
    let mut pitches = BTreeSet::from([LINE]);
    for tally in alike.iter().flat_map(|(_, sampled)| &sampled.tallies) {
        let steps = match tally.pattern {
            Pattern::Even { step } => [step, 0, 0],
            Pattern::Rows { step, row_step, .. } => [step, row_step, 0],
            Pattern::Groups { step, row_step, group_step, .. } => [step, row_step, group_step],
            Pattern::Single | Pattern::Xor | Pattern::Irregular => [0; 3],
        };
        pitches.extend(steps.map(i64::unsigned_abs).into_iter().filter(|step| *step > chunk && step % chunk == 0));
    }
    let total = |layout: Option<Layout>| {
        let moved = |address: u64| layout.map_or(address, |layout| layout.moved(address.max(base)));
        alike.iter().map(|access| access.0.counts.requests as f64 * wavefronts(access, moved)).sum::<f64>()
    };
    let before = total(None);
    let best = |kinds: &[Kind]| {
        // Longer rows take less padding.
        let layouts = kinds.iter().flat_map(|kind| pitches.iter().rev().map(move |pitch| (*kind, *pitch)));
        let layouts = layouts.filter(|(kind, pitch)| matches!(kind, Kind::Pad(_)) || pitch % LINE == 0);
        let tried = layouts.map(|(kind, pitch)| {
            let layout = Layout { base, pitch, kind };
            (total(Some(layout)), layout)
        });
        tried.filter(|(after, _)| *after < before).min_by(|(a, _), (b, _)| a.total_cmp(b))
    };
    let padded = best(&[1, 2, 3, 4].map(|times| Kind::Pad(times * chunk)));
    let swizzled = best(&[Kind::Swizzle(chunk)]);
    let least = [&padded, &swizzled].into_iter().flatten().map(|(after, _)| *after).fold(f64::INFINITY, f64::min);
    let remedy = |(_, layout): (f64, Layout)| Remedy {
        change: layout.change(region),
        unit: "wavefronts a request".to_owned(),
        before: wavefronts(&accesses[n], |address| address),
        after: wavefronts(&accesses[n], |address| layout.moved(address.max(base))),
    };
    padded.into_iter().chain(swizzled).filter(|(after, _)| *after <= least).map(remedy).collect()
}

// Global memory.

fn sectors(mut addresses: Vec<u64>, width: u64) -> u64 {
    // Wide accesses lie in one sector, as long as they are aligned.
    addresses.iter_mut().for_each(|address| *address -= *address % width);
    touched(&addresses).0
}

/// What a request moves on average.
fn sectors_now((site, sampled): &Seen<'_>) -> f64 {
    mean(sampled.samples.iter().map(|sample| sectors(active(sample), site.width)))
}

fn on_sectors(accesses: &[Seen<'_>], n: usize) -> Vec<Remedy> {
    let access = accesses[n];
    let Some(region) = region(&access) else { return Vec::new() };
    let before = sectors_now(&access);
    let remedy = |change: String, after: f64| Remedy { change, unit: "sectors a request".to_owned(), before, after };
    let mut remedies = Vec::new();
    remedies.extend(aligned(&access).map(|after| {
        remedy(
            format!("Let requests begin at multiples of {SECTOR} bytes: move the start of `{region}`, or pad its rows"),
            after,
        )
    }));
    remedies.extend(vectors(accesses, n, region));
    remedies.extend(side_by_side(&access).map(|after| {
        let change =
            format!("Put the elements of `{region}` that lanes want side by side: an array for each field (SoA)");
        remedy(change, after)
    }));
    for axis in [Axis::Warps, Axis::Requests] {
        let Some(after) = swapped(&access, axis) else { continue };
        // Where an access gains what another loses, the axes are to change between the two.
        let gain = |access: &Seen<'_>| {
            let swapped = swapped(access, axis).map_or(0.0, |swapped| sectors_now(access) - swapped.whole);
            access.0.counts.requests as f64 * swapped
        };
        let gain: f64 = accesses.iter().filter(|access| access.0.space == Space::Global).map(gain).sum();
        let how = if gain > 0.0 {
            "Swap the axes"
        } else {
            "Swap the axes for this access alone, through a tile in shared memory"
        };
        let others = match axis {
            Axis::Warps => "warps",
            Axis::Requests => "requests of a lane",
        };
        let change = format!("{how}: neighbouring lanes go where successive {others} go now");
        remedies.push(remedy(change, after.dealt));
    }
    remedies
}

/// Each request from the start of its first sector on.
fn aligned((site, sampled): &Seen<'_>) -> Option<f64> {
    let aligned = |sample: &Sample| {
        let addresses = active(sample);
        let begin = addresses.iter().min()? % SECTOR;
        Some(sectors(addresses.iter().map(|address| address - begin).collect(), site.width))
    };
    let counts: Option<Vec<_>> = sampled.samples.iter().map(aligned).collect();
    Some(mean(counts?.into_iter()))
}

/// A field of structures put side by side. What goes through a whole structure in successive requests is no field.
fn side_by_side((site, sampled): &Seen<'_>) -> Option<f64> {
    let Pattern::Even { step } = sampled.tallies.first()?.pattern else { return None };
    let distance = step.unsigned_abs();
    let mut places = sampled.samples.iter().flat_map(active).map(|address| address % distance.max(1));
    let first = places.next()?;
    (distance > site.width && distance <= STRUCTURE && places.all(|place| place == first)).then(|| {
        let packed = |sample: &Sample| active(sample).iter().map(|at| at / distance * site.width).collect();
        mean(sampled.samples.iter().map(|sample| sectors(packed(sample), site.width)))
    })
}

/// One request of 16 bytes a lane, or of 8, in place of several of a warp whose lanes go to neighbouring elements.
fn vectors(accesses: &[Seen<'_>], n: usize, region: &str) -> Option<Remedy> {
    let (site, own) = accesses[n];
    let width = site.width;
    let alike = alike(accesses, n, region);
    let alike = alike.iter().filter(|(other, _)| (other.operation, other.width) == (site.operation, width));
    // The requests of each warp: lanes, and where they go.
    let mut warps = BTreeMap::<_, BTreeSet<_>>::new();
    let key = |sample: &Sample| (sample.mask, active(sample));
    for sample in alike.flat_map(|(_, sampled)| &sampled.samples) {
        warps.entry((sample.block, sample.warp)).or_default().insert(key(sample));
    }
    let verb = match site.operation {
        Operation::Load => "Load",
        Operation::Store => "Store",
        Operation::Atomic => return None,
    };
    [16, 8].into_iter().filter(|wide| *wide > width).find_map(|wide| {
        let parts = wide / width;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for sample in &own.samples {
            let (mask, addresses) = key(sample);
            let starts: Vec<_> = addresses.iter().map(|address| address / wide * wide).collect();
            let part = |i: u64| (mask, starts.iter().map(|start| start + i * width).collect::<Vec<_>>());
            let warp = &warps[&(sample.block, sample.warp)];
            if (0..parts).all(|i| warp.contains(&part(i))) {
                before.push((0..parts).map(|i| sectors(part(i).1, width)).sum());
                after.push(sectors(starts, wide));
            }
        }
        // Some are cut off by what was kept.
        let most = 4 * before.len() >= 3 * own.samples.len() && !before.is_empty();
        most.then(|| Remedy {
            change: format!("{verb} {wide} bytes a lane of `{region}` at a time, one request in place of {parts}"),
            unit: "sectors".to_owned(),
            before: mean(before.into_iter()),
            after: mean(after.into_iter()),
        })
    })
}

/// What may take the place of the lanes.
#[derive(Clone, Copy)]
enum Axis {
    /// The warps of a block.
    Warps,
    /// The requests that a warp makes one after another.
    Requests,
}

/// Sectors of a request on average, once what goes along an axis is dealt out to lanes.
struct Swapped {
    /// Of requests that take all that was kept along it for one lane, and go on with the next.
    dealt: f64,
    /// Of requests that take one lane's alone, if it goes on as far as was kept.
    whole: f64,
}

/// The requests that differ along an axis alone put together, and dealt out; none if none differ.
fn swapped((site, sampled): &Seen<'_>, axis: Axis) -> Option<Swapped> {
    let mut numbers = BTreeMap::<_, usize>::new();
    let mut groups = BTreeMap::<_, Vec<&Sample>>::new();
    for sample in &sampled.samples {
        let number = numbers.entry((sample.block, sample.warp)).or_default();
        let group = match axis {
            Axis::Warps => (sample.block, *number),
            Axis::Requests => (sample.block, sample.warp as usize),
        };
        *number += 1;
        groups.entry(group).or_default().push(sample);
    }
    let (mut dealt, mut whole) = (Vec::new(), Vec::new());
    for group in groups.into_values() {
        let [first, second, ..] = group[..] else { continue };
        if group.iter().any(|sample| sample.mask != first.mask) || first.addresses == second.addresses {
            continue;
        }
        let rows: Vec<_> = group.into_iter().map(active).collect();
        let lanes = rows[0].len();
        let columns: Vec<Vec<_>> = (0..lanes).map(|lane| rows.iter().map(|row| row[lane]).collect()).collect();
        dealt.extend(columns.concat().chunks(lanes).map(|request| sectors(request.to_vec(), site.width)));
        let scale = lanes as f64 / rows.len() as f64;
        whole.extend(columns.into_iter().map(|column| scale * sectors(column, site.width) as f64));
    }
    (!dealt.is_empty())
        .then(|| Swapped { whole: whole.iter().sum::<f64>() / whole.len() as f64, dealt: mean(dealt.into_iter()) })
}
