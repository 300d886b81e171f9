//! What the memory system of a chip makes of a launch: wavefronts of the L1, sectors of the L2 and of memory, and from
//! them how long it takes and what it waits for. All of it is predicted, none of it measured.
//!
//! The simulator says what the warps ask for, in order; [`machine`](self) replays it on the chip's multiprocessors, with a
//! sectored cache for each L1 and for the L2. A launch that is long is replayed in part, and goes on as it went.
//!
//! What is known of the L1 comes from patterns counted on an H200. A request passes the tags as often as the fullest of their four banks
//! has lines, and the data as often as the banks of shared memory would have it; where lines are missing, those of each pass through the
//! tags pass the data by themselves, after those that are at hand. The load/store unit serves requests in the order in which they come, but
//! after a pass that finds a line missing up to three loads of others have their turn. They come by turns of the parts of a multiprocessor,
//! but every second time that it is a store's turn it is any part's. A load passes the data once all of its lines are there, in the order
//! in which loads were looked up, and as many wavefronts of them as of those that find theirs at once. Until then it holds its lines, each
//! of which has one of the places of its bank, a quarter of all, and others that find none wait. If a line that is held has to go for
//! another, those that ask for it until then find it all the same, which is not so on a GPU. All wait once loads that do have passed the
//! tags 1024 times. Two of the four lines of a set stay while others come and go, once they were touched again. A load takes two cycles for
//! each of its wavefronts, and two loads share the data, of two warps if they find their lines at once. Warps come to barriers two cycles
//! apart, and those that skip a few accesses to shared memory between two of them take the load/store unit all the same, since ptxas makes
//! predicates of such branches.
//!
//! Blocks are launched on one multiprocessor after another, as far as they have room: at one rate in the long run, but sooner where many
//! end at a time. What launches them goes round groups of some sixteen in a row, up to four of whose reads of the same sectors the L2
//! serves as one, if they come before it has sent them to the first. A group has three clusters of four or six, each of which has the same
//! share of an L2 that has enough to do. That has partitions: a line of memory belongs to one, a multiprocessor reads and writes through
//! the one that it is at, and what that gets from the other stays in both; sectors that are written in part are taken not to. Reads of
//! lines of the other one wait for those before them in the same queue, whether what they ask for is there or not. How long the way to a
//! line is differs from group to group. Lines with sectors that are written in part find little room: beyond that they are read and written
//! back, which keeps the L2 busy for as long as it needs for eighteen sectors. Of other lines about half of a set stay dirty: the oldest is
//! written back, and is then as young as some others. A launch finds so many: it comes after a flush that wrote, and what it reads in their
//! place waits until they are written back. An L2 that has enough to do, or to write to memory, stops the load/store units. Memory takes
//! longer for lines that lie apart, to write more so than to read, and for some lines, as if it were refreshed; each of its banks serves
//! what waits for it in order.
//!
//! It takes traces from the engine, and knows no front end, no families and no files of results.

mod cache;
pub mod chip;
mod confidence;
mod instructions;
mod l1;
mod machine;
mod memory;
mod multiprocessor;
mod stores;
mod unsent;

pub use chip::{Chip, ChipError};
pub use confidence::{Confidence, MEASURED_FAMILIES, Trust};

use confidence::{BLOCKS, Unknown};
use engine::coalesce::SECTOR;
use engine::trace::{Observer, Trace};
use engine::{Options, Outcome, SimulationError, Site};
use gpu::suite::{Launch, Operation, Space};
use instructions::Instructions;
use machine::{Machine, Mark};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Arc, Mutex};
use stores::Stores;

/// The families whose measured figures the constants were fitted to, with microbenchmarks; on all others they were only tried.
pub const FITTED_ON: [&str; 13] = [
    "copy",
    "strided",
    "dtype",
    "constant",
    "transpose",
    "transpose_tiles",
    "transpose_types",
    "gather",
    "scatter",
    "embedding",
    "matrix",
    "batched",
    "padding",
];

/// What moved through the memory system of the whole launch. Not whole numbers where a part of it was replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Passes of global loads through the data of the L1.
    pub l1_wavefronts: f64,
    /// Passes of global loads through the tags of the L1.
    pub l1_tags: f64,
    /// Passes of accesses to shared memory.
    pub shared_wavefronts: f64,
    /// Passes of stores to global memory, and of additions, through the data of the L1.
    pub store_wavefronts: f64,
    /// Those among them that may go with the store that the warp has just made, to the same lines.
    pub store_wavefronts_together: f64,
    /// Bank conflicts of stores, additions and accesses to shared memory: passes beyond those that their bytes and the tags
    /// need.
    pub conflicts_of_others: f64,
    /// Sectors that the L1s read from the L2.
    pub l2_reads: f64,
    /// Sectors that they write to it or add to in it.
    pub l2_writes: f64,
    /// Sectors read from memory.
    pub dram_reads: f64,
    /// Sectors written to it.
    pub dram_writes: f64,
}

/// Cycles that the parts of a chip were busy.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    dram: f64,
    l2: f64,
    lsu_global: f64,
    lsu_shared: f64,
    issue: f64,
}

/// What a launch waits for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The bandwidth of the memory.
    Dram,
    /// The bandwidth of the L2.
    L2,
    /// The wavefronts of global accesses in the load/store units.
    LsuWavefronts,
    /// The wavefronts of shared memory.
    SharedWavefronts,
    /// The issue slots, and the passes of constant memory.
    Issue,
    /// Latencies, with too few loads on their way to hide them.
    Latency,
    /// The launch itself.
    Launch,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Dram => "DRAM",
            Limit::L2 => "L2",
            Limit::LsuWavefronts => "LSU wavefronts",
            Limit::SharedWavefronts => "shared wavefronts",
            Limit::Issue => "issue",
            Limit::Latency => "latency and occupancy",
            Limit::Launch => "launch",
        })
    }
}

/// What is predicted of a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// How long it takes, in milliseconds, with the launch itself.
    pub predicted_ms: f64,
    /// What it waits for most.
    pub limit: Limit,
    /// The share of the time that this was busy.
    pub limit_share: f64,
    /// What moved.
    pub traffic: Traffic,
    /// Blocks that a multiprocessor holds, if registers allow.
    pub blocks_per_sm: u64,
    /// The share of the launch's requests that was replayed; the rest is taken to go on like its second half.
    pub replayed: f64,
    /// How far all this is to be trusted. A row of results says so.
    #[serde(skip)]
    pub trust: Trust,
}

/// Why nothing is predicted of a launch.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotPredicted {
    /// It does what the model does not know.
    #[error("not modelled: {}", .0.join("; "))]
    NotModelled(Vec<String>),
    /// The simulator cannot run it, or finds something wrong with it.
    #[error("{0}")]
    Simulation(String),
    /// The chip cannot run it.
    #[error(transparent)]
    TooLarge(#[from] chip::TooLarge),
}

/// How much of a launch is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Lines and requests that are worth replaying of any launch: of some more are.
    pub lines: u64,
    /// Lines and requests to replay at most, whatever they are worth: each takes about a microsecond.
    pub most: u64,
    /// Threads of the simulator.
    pub threads: usize,
}

/// Enough to fill any L2 several times over.
pub const LINES: u64 = 4 << 20;

/// Requests of each warp to replay of the first wave, and how many times the effort that is worth where they touch many lines.
const DEPTH: u64 = 128;
const DEEPER: u64 = 8;

/// What a launch moves that goes on as it will: so many times the L2. One that makes more than so many requests of shared memory for each
/// line it touches would be long at that, and seldom waits for the L2.
const L2S: u64 = 4;
const MOSTLY: u64 = 8;

/// So many waves show how a launch goes on, and one of no more than these is replayed to its end, if that is worth no more than so
/// many times the effort: its warps drift apart all the while.
const SOME_WAVES: u64 = 4;
const WHOLE: u64 = 70;

/// The smallest share of such a launch that tells how the rest goes: one of so many.
const SAMPLE: u64 = 20;

/// A load/store unit that is busy for less than this share of the time is not what a launch waits for.
const BINDING: f64 = 0.6;

impl Default for Effort {
    /// Some seconds a launch. Against measurements of 271 launches on an H200 it was off by 3.9 % in the median, and without a limit
    /// by 3.7 %.
    fn default() -> Self {
        Self { most: LINES, ..Self::unlimited() }
    }
}

impl Effort {
    /// As much of each launch as tells anything, up to some minutes each.
    pub fn unlimited() -> Self {
        Self { lines: LINES, most: u64::MAX, threads: Options::default().threads }
    }
}

/// Hands the traces of blocks to the machine.
struct Watching {
    machine: Mutex<Replay>,
    lines_a_warp: u32,
}

struct Replay {
    machine: Machine,
    stores: Stores,
    unknown: Unknown,
    blocks: u64,
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching").finish_non_exhaustive()
    }
}

impl Observer for Watching {
    fn block(&self, mut trace: Trace) {
        let Replay { machine, stores, unknown, blocks } = &mut *self.machine.lock().expect("no panic under this lock");
        *blocks += 1;
        if *blocks <= BLOCKS {
            unknown.add(&mut trace);
        }
        trace.lanes = Vec::new();
        stores.add(&trace);
        machine.take(trace);
    }

    fn lines_a_warp(&self) -> u32 {
        self.lines_a_warp
    }
}

/// What is to be predicted: a kernel's launch, and how to have it traced.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The kernel's family.
    pub family: &'a str,
    /// The kernel.
    pub kernel: &'a str,
    /// Its launch.
    pub launch: Launch,
    /// The module that it is an entry of: what the compiler made of it.
    pub ptx: &'a str,
    /// Carries it out, or a part of it, with some front end.
    pub simulate: &'a dyn Fn(&Options) -> Result<Outcome, SimulationError>,
}

/// Predicts what `chip` makes of a launch.
///
/// # Errors
/// If the launch cannot be simulated, the simulator finds something wrong with it, the chip cannot run it, or it does what is not modelled.
pub fn predict(run: &Subject<'_>, chip: &Chip, effort: Effort) -> Result<Prediction, NotPredicted> {
    let launch = run.launch;
    let total = launch.block_count();
    let warps = u64::from(launch.block_threads().div_ceil(32));
    let options = Options { threads: effort.threads, sanitize: false, from_the_front: true, ..Options::default() };
    // One block says how much there is to do.
    let first = simulate(run, &Options { max_blocks: 1, ..options.clone() })?;
    let sum = |such: fn(&Site) -> u64| first.sites.iter().map(such).sum::<u64>();
    let requests = sum(|site| site.counts.requests).max(1);
    let touched = sum(|site| site.counts.lines);
    let of_shared = sum(|site| if site.space == Space::Shared { site.counts.requests } else { 0 });
    let moves = SECTOR * sum(|site| site.counts.sectors_ideal).max(1);
    let lines = requests + touched;
    let (blocks_per_sm, l1_bytes) = chip.residency(warps, first.shared_bytes)?;
    let instructions = Instructions::of_kernel(run.ptx, run.kernel);
    let mut trust = Trust::of(chip, run.family, &instructions, &first.sites);
    let unknown = Unknown::default().reasons(&instructions, &first.sites);
    if !unknown.is_empty() {
        return Err(NotPredicted::NotModelled(unknown));
    }
    // What it touched makes room.
    drop(first);
    let wave = (blocks_per_sm * u64::from(chip.sm_count)).min(total);
    // Of a wave whose requests touch many lines at least so much that each warp comes some way.
    let some_way = wave * (DEPTH * warps * lines / requests).min(lines);
    // And some waves, unless that is much too much.
    let some_waves = if wave * lines <= effort.lines { SOME_WAVES * wave * lines } else { 0 };
    // And what replaces all that the L2 holds some times: until then it writes back what the flush left there.
    let blocks = (L2S * chip.l2_bytes).div_ceil(moves);
    let turned_over = if blocks <= total && of_shared <= MOSTLY * touched { blocks * lines } else { 0 };
    let whole = if total <= SOME_WAVES * wave { (total * lines).min(WHOLE * effort.lines) } else { 0 };
    let budget = effort.lines.max(some_way.max(turned_over).min(DEEPER * effort.lines)).max(some_waves).max(whole);
    // Less than this is not a sample of the launch: warps of one wave that come some way, or a share of a few waves.
    let tells = some_way.min(DEEPER * effort.lines).max(whole / SAMPLE).min(total * lines);
    let budget = budget.min(effort.most);
    // A few more, so that some are waiting when the last of the effort is spent.
    let max_blocks = total.min((budget / lines).max(1) + wave);
    if budget < tells {
        trust.lower(format!(
            "{budget} lines and requests were replayed, of {tells} that tell how it goes on: give --replay more"
        ));
    }
    let mut machine = Machine::new(chip, instructions.clone(), blocks_per_sm, l1_bytes, budget);
    machine.flush_l2(chip);
    let start = machine.mark(0, 0.0);
    let watching = Arc::new(Watching {
        machine: Mutex::new(Replay { machine, stores: Stores::default(), unknown: Unknown::default(), blocks: 0 }),
        lines_a_warp: u32::try_from(budget / (wave * warps)).unwrap_or(u32::MAX).max(64),
    });
    let observer: Arc<dyn Observer> = watching.clone();
    let given = simulate(run, &Options { max_blocks, observer: Some(observer), ..options })?;
    let Replay { machine, stores, unknown, .. } = &mut *watching.machine.lock().expect("no panic under this lock");
    let unknown = unknown.reasons(&instructions, &given.sites);
    if !unknown.is_empty() {
        return Err(NotPredicted::NotModelled(unknown));
    }
    let here = machine.finish();
    // All blocks are taken to make as many requests as those.
    let count = |such: fn(&Site) -> bool| {
        let count: u64 = given.sites.iter().filter(|site| such(site)).map(|site| site.counts.requests).sum();
        count as f64 / max_blocks as f64 * total as f64
    };
    let requests = count(|_| true).max(1.0);
    let of_loads = count(|site| site.space == Space::Global && site.operation == Operation::Load);
    let of_stores = count(|site| site.space == Space::Global && site.operation != Operation::Load);
    let replayed = (machine.made as f64 / requests).min(1.0);
    let end = if replayed < 0.999 {
        let by_request = go_on(&machine.marks, [requests, of_loads, of_stores], 2);
        let end = by_request.unwrap_or_else(|| further(here, start, [1.0 / replayed - 1.0; 3]));
        // Waves tell better than requests how time goes on: all of them but the one that was still at work when the last mark
        // was made.
        let by_wave = go_on(&machine.waves, [(total + wave) as f64, 0.0, 0.0], MARKS_OF_WAVES);
        Mark { at: by_wave.map_or(end.at, |end| end.at), ..end }
    } else {
        here
    };
    let cycles = end.at + chip::LAUNCH;
    let (limit, limit_share) = binding(&end, cycles);
    let predicted_ms = cycles / chip.clock_ghz / 1e6;
    let traffic = stores.of_launch(end.traffic, &given.sites, total as f64 / max_blocks as f64);
    Ok(Prediction { predicted_ms, limit, limit_share, traffic, blocks_per_sm, replayed, trust })
}

/// Fewer waves than this do not show how a launch goes on.
const MARKS_OF_WAVES: usize = 3;

/// Where the launch stands once `whole` is done, so many loads of global memory and stores to it among that, if it goes on as in
/// the second half of the marks; none if they are too few. Blocks that wait for one another make their loads all at a time, or
/// their stores, and a mark may stand before or after: what loads move goes on load by load, what stores move store by store.
fn go_on(marks: &[Mark], [whole, loads, stores]: [f64; 3], at_least: usize) -> Option<Mark> {
    let (last, middle) = (marks.last()?, marks.get(marks.len() / 2)?);
    let rest = |whole: f64, last: u64, middle: u64| {
        let passed = (last - middle) as f64;
        (passed > 0.0).then(|| (whole - last as f64) / passed)
    };
    let times = rest(whole, last.done, middle.done).filter(|_| marks.len() >= at_least)?;
    let of_loads = rest(loads, last.loads, middle.loads).map_or(times, |of_loads| of_loads.max(0.0));
    let of_stores = rest(stores, last.stores, middle.stores).map_or(times, |of_stores| of_stores.max(0.0));
    Some(further(*last, *middle, [times, of_loads, of_stores]))
}

/// `last`, and `times` as much again as came since `earlier`, but `of_loads` and `of_stores` times as much of what those moved. What is
/// dirty in the L2 cannot become less than nothing: what would be written back after that is not, which takes less time where the
/// launch waits for the memory.
fn further(last: Mark, earlier: Mark, [times, of_loads, of_stores]: [f64; 3]) -> Mark {
    let end = scaled(last, scaled(last, earlier, [-1.0; 3]), [times, of_loads, of_stores]);
    let never_dirty = |times: f64| (times * (earlier.dirty - last.dirty) - last.dirty).max(0.0);
    let cycles = never_dirty(times) * last.busy.dram / (last.traffic.dram_reads + last.traffic.dram_writes).max(1.0);
    let waited = if end.busy.dram >= BINDING * end.at { cycles } else { 0.0 };
    let dram_writes = (end.traffic.dram_writes - never_dirty(of_stores)).max(0.0);
    Mark {
        at: end.at - waited,
        traffic: Traffic { dram_writes, ..end.traffic },
        busy: Busy { dram: end.busy.dram - cycles, ..end.busy },
        ..end
    }
}

/// `mark` and `times` as much of `more`, but `of_loads` and `of_stores` times as much of what those moved.
fn scaled(mark: Mark, more: Mark, [times, of_loads, of_stores]: [f64; 3]) -> Mark {
    let sum = |a: f64, b: f64| a + times * b;
    let sum_of_loads = |a: f64, b: f64| a + of_loads * b;
    let sum_of_stores = |a: f64, b: f64| a + of_stores * b;
    let (t, u, b, c) = (mark.traffic, more.traffic, mark.busy, more.busy);
    let completed = sum_of_stores(mark.completed, more.completed);
    Mark {
        done: mark.done,
        loads: mark.loads,
        stores: mark.stores,
        at: sum(mark.at, more.at),
        traffic: Traffic {
            l1_wavefronts: sum_of_loads(t.l1_wavefronts, u.l1_wavefronts),
            l1_tags: sum_of_loads(t.l1_tags, u.l1_tags),
            shared_wavefronts: sum(t.shared_wavefronts, u.shared_wavefronts),
            l2_reads: sum_of_loads(t.l2_reads, u.l2_reads),
            l2_writes: sum_of_stores(t.l2_writes, u.l2_writes),
            dram_reads: completed + sum_of_loads(t.dram_reads - mark.completed, u.dram_reads - more.completed),
            dram_writes: sum_of_stores(t.dram_writes, u.dram_writes),
            ..t
        },
        completed,
        dirty: mark.dirty,
        busy: Busy {
            dram: sum(b.dram, c.dram),
            l2: sum(b.l2, c.l2),
            lsu_global: sum(b.lsu_global, c.lsu_global),
            lsu_shared: sum(b.lsu_shared, c.lsu_shared),
            issue: sum(b.issue, c.issue),
        },
    }
}

/// What was busy for most of so many cycles, and the share.
fn binding(end: &Mark, cycles: f64) -> (Limit, f64) {
    let launch = chip::LAUNCH / cycles;
    if launch > 0.5 {
        return (Limit::Launch, launch);
    }
    let busy = end.busy;
    let parts = [
        (Limit::Dram, busy.dram),
        (Limit::L2, busy.l2),
        (Limit::LsuWavefronts, busy.lsu_global),
        (Limit::SharedWavefronts, busy.lsu_shared),
        (Limit::Issue, busy.issue),
    ];
    let (limit, most) = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are five");
    let share = (most / cycles).min(1.0);
    if share >= BINDING { (limit, share) } else { (Limit::Latency, 1.0 - share) }
}

fn simulate(run: &Subject<'_>, options: &Options) -> Result<Outcome, NotPredicted> {
    let outcome = (run.simulate)(options).map_err(|error| NotPredicted::Simulation(error.to_string()))?;
    match outcome.findings.first() {
        Some(finding) => Err(NotPredicted::Simulation(finding.to_string())),
        None => Ok(outcome),
    }
}

/// The position of the test that calls it, for instructions of its own.
#[cfg(test)]
#[track_caller]
fn pc() -> engine::Pc {
    let at = std::panic::Location::caller();
    engine::Pc::of(engine::Position { file: at.file(), line: at.line(), column: at.column() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_goes_on_request_by_request_load_by_load_and_store_by_store() {
        let mark = |done, loads, stores, at, moved: [f64; 4]| {
            let [l2_reads, l2_writes, completed, others] = moved;
            let traffic = Traffic { l2_reads, l2_writes, dram_reads: completed + others, ..Traffic::default() };
            Mark { done, loads, stores, at, traffic, completed, dirty: 0.0, busy: Busy::default() }
        };
        // In the second half fewer loads were made than stores.
        let marks = [
            mark(5, 4, 1, 10.0, [16.0, 32.0, 0.0, 4.0]),
            mark(10, 8, 2, 20.0, [32.0, 64.0, 1.0, 8.0]),
            mark(20, 10, 10, 40.0, [40.0, 320.0, 9.0, 10.0]),
        ];
        let end = go_on(&marks, [40.0, 20.0, 20.0], 2).expect("there are enough");
        assert_eq!((end.at, end.traffic.l2_reads, end.traffic.l2_writes), (80.0, 80.0, 640.0));
        assert_eq!((end.completed, end.traffic.dram_reads), (19.0, 19.0 + 20.0));
        assert!(go_on(&marks, [40.0, 20.0, 20.0], 4).is_none(), "too few");
        let none = go_on(&marks, [40.0, 10.0, 10.0], 2).expect("there are enough");
        assert_eq!((none.traffic.l2_reads, none.traffic.l2_writes), (40.0, 320.0), "no more of them come");
    }

    #[test]
    fn no_more_is_written_back_than_was_dirty() {
        let mark = |done, dirty, dram| {
            let (at, written) = (10.0 * done as f64, 8.0 * done as f64);
            let traffic = Traffic { dram_reads: 2.0 * written, dram_writes: written, ..Traffic::default() };
            let busy = Busy { dram, ..Busy::default() };
            Mark { done, loads: done, stores: 0, at, traffic, completed: 0.0, dirty, busy }
        };
        let end = |dirty, busy| {
            let marks = [
                mark(10, 160.0, busy * 100.0),
                mark(20, dirty, busy * 200.0),
                mark(30, 2.0 * dirty - 160.0, busy * 300.0),
            ];
            let end = go_on(&marks, [60.0, 60.0, 0.0], 2).expect("there are enough");
            (end.at, end.traffic.dram_writes, end.busy.dram)
        };
        assert_eq!(end(160.0, 0.9), (600.0, 480.0, 540.0), "as much becomes dirty as is written back");
        assert_eq!(end(128.0, 0.9), (600.0, 480.0, 540.0));
        // A sector takes 540 cycles of 1440 sectors.
        assert_eq!(end(120.0, 0.96), (584.0, 440.0, 560.0), "it waits for the memory");
        assert_eq!(end(120.0, 0.48), (600.0, 440.0, 280.0), "it does not");
    }
}
