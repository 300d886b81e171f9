//! The hardware's counters beside the simulator's counts: by kernel, and by source line where the PTX has a line table.
//!
//! What is compared, and with which counter of Nsight Compute:
//!
//! | count | counter |
//! | --- | --- |
//! | requests to global memory | `l1tex__t_requests_pipe_lsu_mem_global_op_{ld,st,red,atom}.sum` |
//! | requests to shared memory | `smsp__sass_inst_executed_op_shared_{ld,st}.sum` |
//! | lanes | `thread_inst_executed_true`, of the instructions that access memory |
//! | sectors, ideal sectors | `memory_l2_theoretical_sectors_global`, `…_global_ideal` |
//! | lines | `memory_l1_tag_requests_global` |
//! | wavefronts, ideal wavefronts | `memory_l1_wavefronts_shared`, `…_shared_ideal` |
//!
//! All but the requests are counted instruction by instruction, so they are compared by source line too. Sectors of
//! atomic operations are those of the instruction as well: `l1tex__t_sectors_…_op_red` counts what the L1 sends on, 32 for
//! 32 lanes that add to one address. Constant memory is left out: the compiler puts neighbouring loads together.

mod ncu;

pub use ncu::NcuError;

use crate::cases::Run;
use crate::cuda::Gpu;
use crate::predict::COUNTERS;
use crate::record::{LaunchRecord, Machine, PtxRecord, SCHEMA, operation_name, param};
use crate::sim::{self, Note, Outcome};
use gpu::device::host::Space;
use gpu::suite::{Counts, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

/// Everything that `profile` found out: the JSON that it writes.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Profile {
    /// The version of this layout.
    pub schema: u32,
    /// `profile`.
    pub command: String,
    /// The GPU.
    pub machine: Machine,
    /// The build of the kernels.
    pub ptx: PtxRecord,
    /// What Nsight Compute says of itself.
    pub profiler: String,
    /// What came of each kernel on each case.
    pub results: Vec<Profiled>,
}

/// A kernel on a case, as counted by the hardware and in the simulator.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Profiled {
    /// The kernel.
    pub kernel: String,
    /// The line that it begins at in its file.
    pub kernel_line: u32,
    /// The case, as tables show it.
    pub case: String,
    /// The case, value by value.
    pub params: BTreeMap<String, serde_json::Value>,
    /// Grid, block and dynamic shared memory.
    pub launch: LaunchRecord,
    /// Requests of the whole kernel.
    pub requests: Vec<Requests>,
    /// What the accesses of each source line cost.
    pub sites: Vec<Site>,
    /// Further counters of the hardware, for the models.
    pub counters: BTreeMap<String, f64>,
    /// Why it could not be compared.
    pub error: Option<String>,
}

/// A count, and the counter that it is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Pair {
    /// In the simulator.
    pub simulated: u64,
    /// By the hardware.
    pub hardware: u64,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Requests {
    /// `global` or `shared`.
    pub space: String,
    /// `load`, `store` or `atomic`.
    pub op: String,
    /// The counter.
    pub counter: String,
    /// Both counts.
    #[serde(flatten)]
    pub pair: Pair,
}

/// The accesses of one kind at one source line.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Site {
    /// The source file; none if the PTX has no line table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// `global` or `shared`.
    pub space: String,
    /// `load`, `store` or `atomic`.
    pub op: String,
    /// Bytes a lane.
    pub width: u64,
    /// Both counts, by the name of the counter.
    pub counters: BTreeMap<String, Pair>,
    /// Which change by the compiler the counts differ by, where it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Note>,
}

/// Where and what: the key that both sides are grouped by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: Option<(String, u32)>,
    space: &'static str,
    operation: Operation,
    width: u64,
}

/// What is compared at a place, in the order of [`GLOBAL`] or [`SHARED`]: lanes first, then sectors or wavefronts.
type Cost = [u64; 4];

/// What the simulator says of a place.
#[derive(Clone, Debug, Default)]
struct Simulated {
    cost: Cost,
    notes: Vec<Note>,
}

/// The counters of an access to global memory.
pub(crate) const GLOBAL: [&str; 4] = [
    "thread_inst_executed_true",
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
    "memory_l1_tag_requests_global",
];

/// The counters of an access to shared memory; the last is none.
pub(crate) const SHARED: [&str; 3] =
    ["thread_inst_executed_true", "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"];

/// The counters of requests: space, operation, counters that are added up.
pub(crate) const REQUESTS: [(Space, Operation, &[&str]); 5] = [
    (Space::Global, Operation::Load, &["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]),
    (Space::Global, Operation::Store, &["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"]),
    (
        Space::Global,
        Operation::Atomic,
        &["l1tex__t_requests_pipe_lsu_mem_global_op_red.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"],
    ),
    (Space::Shared, Operation::Load, &["smsp__sass_inst_executed_op_shared_ld.sum"]),
    (
        Space::Shared,
        Operation::Store,
        &["smsp__sass_inst_executed_op_shared_st.sum", "smsp__sass_inst_executed_op_ldgsts.sum"],
    ),
];

/// Counters that nothing is compared with at all, beside the [`COUNTERS`] of the model.
const FURTHER: [&str; 5] = [
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
    "dram__sectors_write.sum",
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.max",
];

impl Profiled {
    /// The differences, each in a sentence; empty if every count is the counter's.
    pub fn differences(&self) -> Vec<String> {
        let requests = self
            .requests
            .iter()
            .map(|requests| (format!("{} {}s", requests.space, requests.op), requests.counter.as_str(), requests.pair));
        let sites = self.sites.iter().flat_map(|site| {
            let what = site.name();
            site.counters.iter().map(move |(counter, pair)| (what.clone(), counter.as_str(), *pair))
        });
        let differing = requests.chain(sites).filter(|(_, _, pair)| pair.simulated != pair.hardware);
        let sentence = |(what, counter, Pair { simulated, hardware }): (String, &str, Pair)| {
            format!("{what}: {counter} is {hardware}, the simulator counts {simulated}")
        };
        differing.map(sentence).collect()
    }

    /// What the compiler did, as far as differences show it: a sentence for each place.
    pub fn reasons(&self) -> Vec<String> {
        let reason = |site: &Site| site.because.map(|note| format!("{}: {note}", site.name()));
        self.sites.iter().filter_map(reason).collect()
    }

    /// How many counts were compared.
    pub fn compared(&self) -> usize {
        self.requests.len() + self.sites.iter().map(|site| site.counters.len()).sum::<usize>()
    }
}

/// Runs each of `runs` once on the GPU under Nsight Compute, `arguments` being those that make this program's `verify`
/// launch the same, and puts its counters beside the simulator's counts. `said` hears of each run that is simulated. Without
/// `options` none is: the counters of whole launches are recorded alone.
///
/// # Errors
/// If Nsight Compute is not there, may not read counters, or launches something else.
pub fn profile(
    gpu: &Gpu,
    ptx: PtxRecord,
    runs: &[Run],
    profiler: Option<&Path>,
    arguments: &[OsString],
    options: Option<&sim::Options>,
    said: &dyn Fn(&Run),
) -> Result<Profile, NcuError> {
    let requests = REQUESTS.iter().flat_map(|(_, _, counters)| *counters).filter(|_| options.is_some());
    let metrics: Vec<&str> = requests.copied().chain(COUNTERS).chain(FURTHER).collect();
    let (version, launches) = ncu::launches(profiler, &metrics, arguments, options.is_some())?;
    let kernels: Vec<&str> = runs.iter().map(|run| run.kernel.name).collect();
    let ours: Vec<_> = launches.into_iter().filter(|launch| kernels.contains(&launch.kernel.as_str())).collect();
    if ours.len() != runs.len() || ours.iter().zip(&kernels).any(|(launch, kernel)| launch.kernel != *kernel) {
        return Err(NcuError::OtherLaunches { expected: runs.len(), found: ours.len() });
    }
    let results = runs.iter().zip(ours).map(|(run, launch)| {
        said(run);
        profiled(run, launch, options)
    });
    Ok(Profile {
        schema: SCHEMA,
        command: "profile".to_owned(),
        machine: Machine::gpu(gpu),
        ptx,
        profiler: version,
        results: results.collect(),
    })
}

/// Simulates a recorded run again and puts the counts beside the recorded counters. Lines may have moved since: the first
/// line with an access is the first of those recorded, and so on.
///
/// # Errors
/// If the run cannot be simulated, is not launched as it was, or makes its accesses in more lines or fewer.
pub fn again(recorded: &Profiled, run: &Run, options: &sim::Options) -> Result<Profiled, String> {
    if LaunchRecord::from(run.plan.launch) != recorded.launch {
        return Err("the launch is another one than the recorded one".to_owned());
    }
    let outcome = simulated(run, options)?;
    let by_line = recorded.sites.iter().any(|site| site.line.is_some());
    let simulated = places(&outcome, by_line);
    let lines: BTreeSet<_> = recorded.sites.iter().filter_map(Site::at).collect();
    let lines_now: BTreeSet<_> = simulated.keys().filter_map(|place| place.at.clone()).collect();
    if lines.len() != lines_now.len() {
        return Err(format!("its accesses stand in {} lines, and were recorded in {}", lines_now.len(), lines.len()));
    }
    let now: BTreeMap<_, _> = lines.into_iter().zip(lines_now).collect();
    let mut hardware = BTreeMap::<_, Cost>::new();
    for site in &recorded.sites {
        let place = site.place(&now).ok_or_else(|| format!("no access: {site:?}"))?;
        let counter = |name: &&str| site.counters.get(*name).map_or(0, |pair| pair.hardware);
        let names = if place.space == Space::Global.name() { &GLOBAL[..] } else { &SHARED[..] };
        let cost = hardware.entry(place).or_default();
        cost.iter_mut().zip(names).for_each(|(cost, name)| *cost += counter(name));
    }
    // Places that only the simulator had.
    hardware.retain(|_, cost| *cost != [0; 4]);
    let request = |counter: &str| {
        let of = recorded.requests.iter().find(|requests| requests.counter.split(" + ").next() == Some(counter));
        of.map_or(0, |requests| requests.pair.hardware)
    };
    Ok(Profiled {
        kernel_line: run.kernel.line,
        requests: requests(&outcome, request),
        sites: sites(&simulated, &hardware),
        ..recorded.clone()
    })
}

impl Site {
    /// What it is called: `gpu/src/kernels/copy.rs:19: global loads of 4 bytes`.
    fn name(&self) -> String {
        let at = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            _ => String::new(),
        };
        format!("{at}{} {}s of {} bytes", self.space, self.op, self.width)
    }

    /// The file and the line.
    fn at(&self) -> Option<(String, u32)> {
        self.file.clone().zip(self.line)
    }

    /// The place of a recorded site in today's sources, in which recorded lines stand elsewhere.
    fn place(&self, now: &BTreeMap<(String, u32), (String, u32)>) -> Option<Place> {
        let at = self.at().and_then(|at| now.get(&at).cloned());
        let space = [Space::Global, Space::Shared].into_iter().find(|space| space.name() == self.space)?;
        let operations = [Operation::Load, Operation::Store, Operation::Atomic];
        let operation = operations.into_iter().find(|operation| operation_name(*operation) == self.op)?;
        Some(Place { at, space: space.name(), operation, width: self.width })
    }
}

fn profiled(run: &Run, launch: ncu::Launch, options: Option<&sim::Options>) -> Profiled {
    let mut profiled = Profiled {
        kernel: run.kernel.name.to_owned(),
        kernel_line: run.kernel.line,
        case: run.case.to_string(),
        params: run.case.values.iter().map(|(name, value)| ((*name).to_owned(), param(*value))).collect(),
        launch: run.plan.launch.into(),
        requests: Vec::new(),
        sites: Vec::new(),
        // Some are differences of what two runs counted, and may come out below 0.
        counters: launch
            .metrics
            .iter()
            .filter(|(_, value)| **value >= 0.0)
            .map(|(name, value)| (name.clone(), *value))
            .collect(),
        error: None,
    };
    profiled.counters.retain(|name, _| COUNTERS.iter().chain(&FURTHER).any(|counter| counter == name));
    let Some(options) = options else { return profiled };
    let hardware: BTreeMap<_, Cost> = launch.accesses;
    let by_line = hardware.keys().any(|place| place.at.is_some());
    match simulated(run, options) {
        Ok(outcome) => {
            profiled.requests =
                requests(&outcome, |counter| launch.metrics.get(counter).copied().unwrap_or(0.0) as u64);
            profiled.sites = sites(&places(&outcome, by_line), &hardware);
        }
        Err(error) => profiled.error = Some(error),
    }
    profiled
}

fn simulated(run: &Run, options: &sim::Options) -> Result<Outcome, String> {
    let outcome = sim::simulate(run.kernel, run.plan.clone(), options, &|_, _| ());
    let outcome = outcome.map_err(|error| error.to_string())?;
    match outcome.findings.first() {
        Some(finding) => Err(finding.to_string()),
        None => Ok(outcome),
    }
}

/// What the simulator says by place.
fn places(outcome: &Outcome, by_line: bool) -> BTreeMap<Place, Simulated> {
    let mut places = BTreeMap::<_, Simulated>::new();
    for site in outcome.sites.iter().filter(|site| site.space != Space::Constant) {
        let place = Place {
            at: by_line.then(|| (site.position.file.to_owned(), site.position.line)),
            space: site.space.name(),
            operation: site.operation,
            width: site.width,
        };
        let counts = site.counts;
        let cost = match site.space {
            Space::Global => [counts.lanes, counts.sectors, counts.sectors_ideal, counts.lines],
            Space::Shared | Space::Constant => [counts.lanes, counts.wavefronts, counts.wavefronts_ideal, 0],
        };
        let simulated = places.entry(place).or_default();
        simulated.cost = std::array::from_fn(|i| simulated.cost[i] + cost[i]);
        simulated.notes.extend(&site.notes);
    }
    places
}

fn requests(outcome: &Outcome, counter: impl Fn(&str) -> u64) -> Vec<Requests> {
    let of = |(space, operation, counters): &(Space, Operation, &[&str])| {
        let sites = outcome.sites.iter().filter(|site| site.space == *space && site.operation == *operation);
        let simulated = sites.map(|site| site.counts).sum::<Counts>().requests;
        let hardware = counters.iter().map(|name| counter(name)).sum();
        (simulated > 0 || hardware > 0).then(|| Requests {
            space: space.name().to_owned(),
            op: operation_name(*operation).to_owned(),
            counter: counters.join(" + "),
            pair: Pair { simulated, hardware },
        })
    };
    REQUESTS.iter().filter_map(of).collect()
}

/// Both sides, place by place: what one of them lacks is zero there.
fn sites(simulated: &BTreeMap<Place, Simulated>, hardware: &BTreeMap<Place, Cost>) -> Vec<Site> {
    let mut places: Vec<_> = simulated.keys().chain(hardware.keys()).collect();
    places.sort();
    places.dedup();
    let site = |place: &Place| {
        let names = if place.space == Space::Global.name() { &GLOBAL[..] } else { &SHARED[..] };
        let because = because(place, simulated, hardware);
        let simulated = simulated.get(place).map(|simulated| simulated.cost).unwrap_or_default();
        let hardware = hardware.get(place).copied().unwrap_or_default();
        let pairs = simulated.into_iter().zip(hardware).map(|(simulated, hardware)| Pair { simulated, hardware });
        let (file, line) = place.at.clone().unzip();
        Site {
            file,
            line,
            space: place.space.to_owned(),
            op: operation_name(place.operation).to_owned(),
            width: place.width,
            counters: names.iter().map(|name| (*name).to_owned()).zip(pairs).collect(),
            because,
        }
    };
    places.into_iter().map(site).collect()
}

/// The change by the compiler that makes the counts of a place differ, where it is one that is known: a loop that the simulator
/// saw lanes leave apart, with as many lanes in other requests; an asynchronous copy that it saw lanes stay out of; an atomic that it saw all lanes make at one address, with
/// fewer lanes; a wide load with fewer sectors or wavefronts, or in whose place the hardware has narrower ones.
fn because(place: &Place, simulated: &BTreeMap<Place, Simulated>, hardware: &BTreeMap<Place, Cost>) -> Option<Note> {
    let none = Simulated::default();
    let Simulated { cost, notes } = simulated.get(place).unwrap_or(&none);
    let counted = hardware.get(place).copied().unwrap_or_default();
    // More lanes by the hardware than in the simulator, or fewer, at a width.
    let excess = |place: &Place| {
        let lanes = |cost: Option<&Cost>| cost.map_or(0, |cost| cost[0] as i64);
        lanes(hardware.get(place)) - lanes(simulated.get(place).map(|simulated| &simulated.cost))
    };
    let others = |wider: bool| {
        let places = simulated.keys().chain(hardware.keys());
        let alike = places.filter(|other| Place { width: place.width, ..(*other).clone() } == *place);
        alike.filter(move |other| other.width != place.width && (other.width > place.width) == wider)
    };
    let narrowed = place.operation == Operation::Load
        && match excess(place) {
            0 => place.width > 4 && counted[1] < cost[1],
            1.. => others(true).any(|wider| excess(wider) < 0),
            _ => others(false).any(|narrower| excess(narrower) > 0),
        };
    let fewer_lanes = counted[0] < cost[0];
    if narrowed {
        Some(Note::NarrowedLoad)
    } else if counted == *cost {
        None
    } else if fewer_lanes && notes.contains(&Note::ReducedAtomic) {
        Some(Note::ReducedAtomic)
    } else {
        // As many lanes, in other requests, or with some that were kept out counted beside them.
        let known = [Note::UnrolledLoop, Note::CopyByPart].into_iter().find(|note| notes.contains(note));
        known.filter(|_| counted[0] == cost[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(operation: Operation, width: u64) -> Place {
        Place { at: Some(("gpu/src/kernels/a.rs".into(), 7)), space: "global", operation, width }
    }

    /// The reasons of places that the simulator and the hardware count so.
    fn reasons(simulated: &[(Place, Cost, &[Note])], hardware: &[(Place, Cost)]) -> Vec<Option<Note>> {
        let of = |(place, cost, notes): &(Place, Cost, &[Note])| {
            (place.clone(), Simulated { cost: *cost, notes: notes.to_vec() })
        };
        let sites = sites(&simulated.iter().map(of).collect(), &hardware.iter().cloned().collect());
        sites.into_iter().map(|site| site.because).collect()
    }

    #[test]
    fn a_difference_is_put_down_to_the_change_that_it_shows() {
        let (load, atomic) = (place(Operation::Load, 4), place(Operation::Atomic, 4));
        let unrolled: &[Note] = &[Note::UnrolledLoop];
        let more = [(load.clone(), [96, 20, 14, 8])];
        assert_eq!(reasons(&[(load.clone(), [96, 16, 12, 6], unrolled)], &more), [Some(Note::UnrolledLoop)]);
        assert_eq!(reasons(&[(load.clone(), [96, 16, 12, 6], &[])], &more), [None], "no lane left a loop apart");
        assert_eq!(reasons(&[(load.clone(), [90, 16, 12, 6], unrolled)], &more), [None], "other lanes altogether");
        assert_eq!(reasons(&[(load, [96, 20, 14, 8], unrolled)], &more), [None], "no difference");

        let reduced: &[Note] = &[Note::ReducedAtomic];
        let one = [(atomic.clone(), [8, 8, 8, 8])];
        assert_eq!(reasons(&[(atomic.clone(), [256, 8, 8, 8], reduced)], &one), [Some(Note::ReducedAtomic)]);
        assert_eq!(reasons(&[(atomic, [256, 8, 8, 8], &[])], &one), [None], "the simulator saw several addresses");
    }

    #[test]
    fn a_narrowed_load_shows_at_the_widths_of_its_line() {
        let [wide, half, word] = [16, 8, 4].map(|width| place(Operation::Load, width));
        let simulated = [(wide.clone(), [64, 32, 32, 8], &[][..])];
        // In the order of widths: both of the hardware's, and the one that it has not.
        let split = [(half.clone(), [64, 32, 16, 8]), (word, [64, 32, 8, 8])];
        assert_eq!(reasons(&simulated, &split), [Some(Note::NarrowedLoad); 3]);
        assert_eq!(reasons(&simulated, &[(wide.clone(), [64, 24, 24, 8])]), [Some(Note::NarrowedLoad)]);
        assert_eq!(reasons(&simulated, &[(wide.clone(), [64, 32, 32, 8])]), [None], "no difference");
        let store = place(Operation::Store, 8);
        assert_eq!(reasons(&simulated, &[(wide, [32, 16, 16, 4]), (store, [32, 8, 8, 4])]), [None; 2]);
        let both = [(half.clone(), [64, 16, 16, 8], &[][..])];
        assert_eq!(reasons(&both, &[(half, [32, 8, 8, 4])]), [None], "fewer lanes are no narrower ones");
    }
}
