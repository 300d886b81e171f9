//! Predicts what the memory system of a chip makes of a launch, and how long it takes: none of it is measured.
//!
//! The simulator hands over what the warps ask for, block by block; a `Machine` replays it on the chip's SMs, caches and DRAM. A long
//! launch is replayed in part and extrapolated from its steady state (`steady_state.rs`).
//!
//! | file | unit |
//! | --- | --- |
//! | `machine/cta_scheduler.rs` | the CTA scheduler: launch rate, run-ahead, round-robin over SMs |
//! | `machine/issue.rs` | warps: stalls, selection, barriers |
//! | `sm/mio.rs` | sub-partitions, MIO queues, the LSU's arbitration |
//! | `sm/tag_stage.rs`, `sm/l1.rs` | tag stage, pending-request table, L1 |
//! | `sm/data_stage.rs` | data stage: hits, fills, shared memory |
//! | `memory/crossbar.rs` | credits, paths |
//! | `memory/l2_cache.rs`, `memory/l2_slices.rs` | the L2's partitions and slices |
//! | `memory/atomics.rs`, `sm/shared_atomics.rs` | atomics in the L2 and in shared memory |
//! | `memory/write_back.rs` | dirty lines and write-backs |
//! | `timeline.rs` | what happened on one SM, if anybody asks |
//! | `memory/dram.rs`, `memory/address.rs` | DRAM banks and row activates; the address map |
//!
//! Which loads are in flight together the trace says. What a chip is stands in `chips/`: a description of each, and
//! constants fitted to measurements of a Hopper. The probes that files name are in `results/probes/`, and what they measured in
//! `results/README.md`.
//!
//! It takes traces from the engine, and knows no front end, no families and no files of results.

pub mod chip;
mod confidence;
mod constants;
mod hash;
mod machine;
mod memory;
mod sm;
mod steady_state;
mod store_wavefronts;
pub mod timeline;
mod traffic;

pub use chip::{Chip, ChipError};
pub use confidence::{Confidence, Trust, measured_families};
pub use traffic::Traffic;

use confidence::{Assumed, BLOCKS, unknown};
use constants::Constants;
use engine::coalesce::SECTOR;
use engine::trace::{Observer, Trace};
use engine::{Options, Outcome, Site};
use gpu::suite::{Launch, Operation, Space};
use machine::{Machine, Snapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Arc, Mutex};
use steady_state::{SATURATED, extrapolate, repeat};
use store_wavefronts::StoreWavefronts;
use timeline::{Recorder, Timeline, Window};

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

/// What a launch waits for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The bandwidth of the DRAM.
    Dram,
    /// The bandwidth of the L2.
    L2,
    /// LSU wavefronts of global accesses.
    LsuWavefronts,
    /// Wavefronts of shared memory.
    SharedWavefronts,
    /// Issue slots, replays of constant loads included.
    Issue,
    /// Latency, with too few loads in flight to hide it.
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
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Prediction {
    /// How long it takes, in milliseconds, with the launch itself.
    pub predicted_ms: f64,
    /// What it waits for most.
    pub limit: Limit,
    /// The share of the time that this was busy.
    pub limit_share: f64,
    /// What moved.
    pub traffic: Traffic,
    /// Blocks that an SM holds, if registers allow.
    pub blocks_per_sm: u64,
    /// The share of the launch's requests that was replayed; the rest is extrapolated from the second half of it.
    pub replayed_share: f64,
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
const WARP_REQUESTS: u64 = 128;
const MORE_EFFORT: u64 = 8;

/// What a launch moves until the L2 is in steady state: so many times its size. A launch that makes more than so many requests of shared
/// memory for each line would take long for that, and seldom waits for the L2.
const L2_TURNOVERS: u64 = 4;
const SHARED_PER_LINE: u64 = 8;

/// So many waves show the steady state. A launch of no more than these is replayed to its end, if that is worth no more than so many times
/// the effort: its warps drift apart all the while.
const STEADY_WAVES: u64 = 4;
const WHOLE_EFFORT: u64 = 70;

/// The smallest share of such a launch that is a sample of it: one of so many.
const SAMPLE: u64 = 20;

impl Default for Effort {
    /// Some seconds a launch. Against measurements of 347 launches on an H200 it was off by 3.3 % in the median
    /// (`results/nvidia-h200/predicted.json`).
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
    stores: StoreWavefronts,
    assumed: Assumed,
    blocks: u64,
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching").finish_non_exhaustive()
    }
}

impl Observer for Watching {
    fn block(&self, trace: Trace) {
        let Replay { machine, stores, assumed, blocks } = &mut *self.machine.lock().expect("no panic under this lock");
        *blocks += 1;
        if *blocks <= BLOCKS {
            assumed.add(&trace);
        }
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
    /// Its launch.
    pub launch: Launch,
    /// Why the prediction is not to be trusted, if the caller knows a reason.
    pub low: Option<&'a str>,
    /// Carries it out, or a part of it, with some front end.
    pub simulate: &'a dyn Fn(&Options) -> Result<Outcome, String>,
}

/// Predicts what `chip` makes of a launch.
///
/// # Errors
/// If the launch cannot be simulated, the simulator finds something wrong with it, the chip cannot run it, or it does what is not modelled.
pub fn predict(run: &Subject<'_>, chip: &Chip, effort: Effort) -> Result<Prediction, NotPredicted> {
    Ok(replay(run, chip, effort, None)?.0)
}

/// The same, with what happened on one SM while the blocks of one wave were resident.
///
/// # Errors
/// As [`predict`].
pub fn predict_with_timeline(
    run: &Subject<'_>,
    chip: &Chip,
    effort: Effort,
    window: Window,
) -> Result<(Prediction, Timeline), NotPredicted> {
    let (prediction, timeline) = replay(run, chip, effort, Some(window))?;
    Ok((prediction, timeline.unwrap_or_default()))
}

fn replay(
    run: &Subject<'_>,
    chip: &Chip,
    effort: Effort,
    window: Option<Window>,
) -> Result<(Prediction, Option<Timeline>), NotPredicted> {
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
    let mut trust = Trust::of(chip, run.family, run.low);
    let unknown = unknown(&first.sites);
    if !unknown.is_empty() {
        return Err(NotPredicted::NotModelled(unknown));
    }
    // What it touched makes room.
    drop(first);
    let wave = (blocks_per_sm * u64::from(chip.sm_count)).min(total);
    // Of a wave whose requests touch many lines at least so many of each warp.
    let some_way = wave * (WARP_REQUESTS * warps * lines / requests).min(lines);
    // And some waves, unless that is much too much.
    let some_waves = if wave * lines <= effort.lines { STEADY_WAVES * wave * lines } else { 0 };
    // And what turns the L2 over some times: until then it writes back the flush's dirty lines.
    let blocks = (L2_TURNOVERS * chip.l2_bytes).div_ceil(moves);
    let turned_over = if blocks <= total && of_shared <= SHARED_PER_LINE * touched { blocks * lines } else { 0 };
    let whole = if total <= STEADY_WAVES * wave { (total * lines).min(WHOLE_EFFORT * effort.lines) } else { 0 };
    let budget = effort.lines.max(some_way.max(turned_over).min(MORE_EFFORT * effort.lines)).max(some_waves).max(whole);
    // Less than this is not a sample of the launch: some requests of each warp of a wave, or a share of a few waves.
    let tells = some_way.min(MORE_EFFORT * effort.lines).max(whole / SAMPLE).min(total * lines);
    let budget = budget.min(effort.most);
    // A few more, so that some are waiting when the last of the effort is spent.
    let max_blocks = total.min((budget / lines).max(1) + wave);
    if budget < tells {
        trust.lower(format!(
            "{budget} lines and requests were replayed, of {tells} that show its steady state: give --replay more"
        ));
    }
    let mut machine = Machine::new(chip, blocks_per_sm, l1_bytes, budget);
    machine.flush_l2(chip);
    if let Some(window) = window {
        machine.record(Recorder::new(window, total, blocks_per_sm * u64::from(chip.sm_count)));
    }
    let start = machine.snapshot(0, 0.0);
    let watching = Arc::new(Watching {
        machine: Mutex::new(Replay {
            machine,
            stores: StoreWavefronts::default(),
            assumed: Assumed::default(),
            blocks: 0,
        }),
        lines_a_warp: u32::try_from(budget / (wave * warps)).unwrap_or(u32::MAX).max(64),
    });
    let observer: Arc<dyn Observer> = watching.clone();
    let given = simulate(run, &Options { max_blocks, observer: Some(observer), ..options })?;
    let Replay { machine, stores, assumed, .. } = &mut *watching.machine.lock().expect("no panic under this lock");
    let unknown = confidence::unknown(&given.sites);
    if !unknown.is_empty() {
        return Err(NotPredicted::NotModelled(unknown));
    }
    assumed.reasons().into_iter().for_each(|reason| trust.lower(reason));
    let here = machine.finish();
    let timeline = machine.timeline();
    // All blocks are taken to make as many requests as those.
    let count = |such: fn(&Site) -> bool| {
        let count: u64 = given.sites.iter().filter(|site| such(site)).map(|site| site.counts.requests).sum();
        count as f64 / max_blocks as f64 * total as f64
    };
    let requests = count(|_| true).max(1.0);
    let of_loads = count(|site| site.space == Space::Global && site.operation == Operation::Load);
    let of_stores = count(|site| site.space == Space::Global && site.operation != Operation::Load);
    let replayed_share = (machine.requests as f64 / requests).min(1.0);
    let end = if replayed_share < 0.999 {
        let by_request = extrapolate(&machine.snapshots, [requests, of_loads, of_stores], 2);
        let end = by_request.unwrap_or_else(|| repeat(here, start, [1.0 / replayed_share - 1.0; 3]));
        // Waves tell the time better than requests: all of them but the one that was still at work at the last snapshot.
        let by_wave = extrapolate(&machine.waves, [(total + wave) as f64, 0.0, 0.0], steady_state::WAVES);
        Snapshot { cycles: by_wave.map_or(end.cycles, |end| end.cycles), ..end }
    } else {
        here
    };
    let constants = Constants::of(chip);
    let cycles = end.cycles + constants.launch_overhead_cycles;
    let (limit, limit_share) = limiter(&end, cycles, constants.launch_overhead_cycles);
    let predicted_ms = cycles / chip.clock_ghz / 1e6;
    let traffic = stores.of_launch(end.traffic, &given.sites, total as f64 / max_blocks as f64);
    let prediction = Prediction { predicted_ms, limit, limit_share, traffic, blocks_per_sm, replayed_share, trust };
    Ok((prediction, timeline))
}

/// The unit that was busy for most of so many cycles, and the share.
fn limiter(end: &Snapshot, cycles: f64, overhead: f64) -> (Limit, f64) {
    let launch = overhead / cycles;
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
    if share >= SATURATED { (limit, share) } else { (Limit::Latency, 1.0 - share) }
}

fn simulate(run: &Subject<'_>, options: &Options) -> Result<Outcome, NotPredicted> {
    let outcome = (run.simulate)(options).map_err(NotPredicted::Simulation)?;
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
