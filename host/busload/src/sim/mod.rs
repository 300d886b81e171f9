//! The simulator: runs kernels on the CPU, lane by lane, and counts what they ask of the memory system.
//!
//! One concern a file: `block` schedules the threads of a block, `stack` and `overflow` keep and watch their stacks, `lane` is
//! the machine that a thread's calls go to, `requests` puts the accesses of a warp together, [`coalesce`], [`banks`] and
//! [`arch`] say what a request costs, `memory` and `shared` hold the data, `pages` makes it ready as it is touched, `spare`
//! gets what holds it from the system and keeps it for the next simulation, `limits` says how much the system gives, and
//! `sanitizer` remembers who touched it; `pattern` and `sample` say how addresses move from lane to lane,
//! `note` what the compiler may make of accesses, and [`trace`] hands on what blocks ask for, where that is asked for.
//! Blocks run in parallel; counts are sums, and what depends on the order of blocks (atomic additions, traces) waits for its
//! turn, so the results are the same on any number of threads.

pub mod arch;
pub mod banks;
mod block;
pub mod coalesce;
mod finding;
mod lane;
mod limits;
mod memory;
mod note;
mod overflow;
mod pages;
mod pattern;
mod requests;
mod sample;
mod sanitizer;
mod shared;
mod spare;
mod stack;
pub mod trace;

pub use arch::{Arch, Transactions};
pub use finding::{Finding, Kind, Position};
pub use note::Note;
pub use pattern::Pattern;
pub use sample::{Sample, Sampled, Sampling, Tally};

use crate::arguments::ArgumentError;
use crate::verify::Actual;
use block::Runner;
use gpu::device::host::{self, Kernel, Space, Watched};
use gpu::suite::{Counts, Operation, Plan};
use lane::{Cost, Region};
use memory::Memory;
use note::Seen;
use rustc_hash::FxHashMap;
use sample::Sampler;
use sanitizer::{Look, Shadow};
use stack::Room;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use trace::{Observer, Trace};

// What would take an atomic in shared memory for something else: a kind of access that is not thought of there does not compile.
const _: () = {
    let mut kind = 0;
    while kind < host::Access::EACH.len() {
        let (space, op) = host::Access::EACH[kind];
        assert!(
            !matches!((space, op.operation()), (Space::Shared | Space::Constant, Operation::Atomic)),
            "first say what an atomic in this memory is to `sanitizer::filter::SharedCell`, `banks::wavefronts` and `trace::What`"
        );
        assert!(
            !matches!((space, op.operation()), (Space::Constant, Operation::Store)),
            "kernels only read constant memory"
        );
        kind += 1;
    }
};

/// At most so many findings are kept of a launch.
const FINDINGS: usize = 16;

/// A simulation ends before the system ends the process: when no more is left than this part of the memory that there was.
const RESERVE: u64 = 16;

/// How to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads to run blocks on.
    pub threads: usize,
    /// Blocks to run at most; a larger grid is sampled.
    pub max_blocks: u64,
    /// Take the sample from the front of the grid instead of from all over it.
    pub from_the_front: bool,
    /// When to give up on a kernel that does not end.
    pub limits: Limits,
    /// The generation of GPUs whose transactions to count too.
    pub arch: Option<Arch>,
    /// Whether to look for races and for loads of memory that nobody wrote. Bounds, alignment, barriers and shuffles are
    /// checked in any case.
    pub sanitize: bool,
    /// Look at requests one by one, and keep some.
    pub sampling: Option<Sampling>,
    /// Who is told what the blocks ask for.
    pub observer: Option<Arc<dyn Observer>>,
}

impl Default for Options {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            threads: crate::parallel::threads(),
            max_blocks: u64::MAX,
            from_the_front: false,
            limits,
            arch: None,
            sanitize: true,
            sampling: None,
            observer: None,
        }
    }
}

/// When a kernel is taken not to end. What the plan expects of it may raise the limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Calls of the facade (accesses, loop steps, meetings) that one thread makes, or a thousand times the accesses that the plan
    /// expects of a thread on average if that is more; they are added up now and then as it takes steps of loops.
    pub calls: u64,
    /// Barriers that one block passes, likewise.
    pub barriers: u64,
    /// How long a thread runs without any call.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { calls: 1 << 24, barriers: 1 << 18, silence: Duration::from_secs(10) }
    }
}

/// How many accesses lanes make if `plan` is right.
pub fn expected_accesses(plan: &Plan) -> u64 {
    plan.expected.iter().map(|expected| expected.counts.lanes).sum()
}

impl Limits {
    /// Those for what `plan` launches.
    fn of_plan(self, plan: &Plan) -> Self {
        let many = 1000 * expected_accesses(plan).div_ceil(plan.launch.threads().max(1));
        Self { calls: self.calls.max(many), barriers: self.barriers.max(many), ..self }
    }
}

/// What a source position asked of the memory system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Where it stands.
    pub position: Position,
    /// Which memory.
    pub space: Space,
    /// What it does.
    pub operation: Operation,
    /// Bytes a lane.
    pub width: u64,
    /// How often, and at what cost.
    pub counts: Counts,
    /// Distinct bytes of global memory that the lanes of each request want, summed over the requests.
    pub used: u64,
    /// Transactions to global memory on the generation of GPUs that was asked for.
    pub transactions: Transactions,
    /// What the compiler may make of it.
    pub notes: Vec<Note>,
}

/// What came of a simulation.
pub struct Outcome {
    /// What each source position asked for, in the order of the source. Empty if there are findings.
    pub sites: Vec<Site>,
    /// More of each of these, in the same order. Empty without [`Options::sampling`].
    pub sampled: Vec<Sampled>,
    /// The same by buffer or shared array, operation and width, as families state what they expect.
    pub regions: BTreeMap<(String, Operation, u64), Counts>,
    /// Transactions, likewise.
    pub transactions: BTreeMap<(String, Operation, u64), Transactions>,
    /// What was found in the first block that has findings, the same on every run.
    pub findings: Vec<Finding>,
    /// Which blocks ran.
    pub blocks: Blocks,
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared_bytes: u64,
    memory: Option<Memory>,
}

impl Outcome {
    /// Element `i` of buffer number `buffer` of the plan, after a run of the whole grid; none if the run had to be abandoned.
    pub fn actual(&self, buffer: usize, i: u64) -> Option<Actual> {
        self.memory.as_ref().map(|memory| memory.actual(buffer, i))
    }

    /// The bits of element `i` of buffer number `buffer` of the plan, after the run; none if the run had to be abandoned.
    pub fn bits(&self, buffer: usize, i: u64) -> Option<u64> {
        self.memory.as_ref().map(|memory| memory.bits(buffer, i))
    }
}

/// The blocks of a grid that a simulation runs: all, the first ones, or some of every so many and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Blocks of the grid.
    pub total: u64,
    /// From one block of a sample to the first one after it that has others between: 1 if all run, or all of the first ones.
    pub step: u64,
    /// Blocks in a row of a sample.
    pub row: u64,
    /// At most so many run.
    pub most: u64,
}

impl Blocks {
    /// All of a grid if there are no more than `max`, else a sample of about as many: at a thousand places or more, and no more than
    /// 64 in a row, which mostly touch the same pages. The step is odd, so that it goes through all columns of a grid whose width
    /// is a power of two.
    pub fn choose(total: u64, max: u64) -> Self {
        let row = if total <= max { 1 } else { (max / 1024).clamp(1, 64) };
        let step = if total <= max { 1 } else { (total.div_ceil(max.max(1)) * row) | 1 };
        Self { total, step, row, most: total }
    }

    /// The first of a grid, in the order in which a GPU begins them.
    pub fn first(total: u64, most: u64) -> Self {
        Self { total, step: 1, row: 1, most: most.min(total) }
    }

    /// How many run.
    pub fn count(&self) -> u64 {
        let last = self.total - 1;
        let (rows, place) = (last / self.step, last % self.step);
        // The last block of the grid runs in any case.
        (rows * self.row + (place + 1).min(self.row) + u64::from(place >= self.row)).min(self.most)
    }

    /// Whether all run.
    pub fn complete(&self) -> bool {
        self.step == 1 && self.most == self.total
    }

    fn get(&self, i: u64) -> u64 {
        (i / self.row * self.step + i % self.row).min(self.total - 1)
    }
}

/// Everything the threads of a simulation share.
struct Job {
    kernel: Kernel,
    words: Vec<u64>,
    plan: Arc<Plan>,
    memory: Memory,
    look: Look,
    /// For each buffer that the kernel may write, who touched it.
    shadows: Vec<Option<Shadow>>,
    /// Whether the sanitizer's first look calls for the second.
    suspicious: AtomicBool,
    limits: Limits,
    arch: Option<Arch>,
    sampling: Option<Sampling>,
    observer: Option<Observed>,
    blocks: Blocks,
    next: AtomicU64,
    done: AtomicU64,
    /// The lowest turn whose block has findings: later ones no longer matter.
    faulty: AtomicU64,
    /// Whether there is hardly any memory left: no other block begins, those that run stop, and what they found does not matter.
    exhausted: AtomicBool,
    /// Why a worker broke off: likewise.
    broken: Mutex<Option<SimulationError>>,
    turns: Turns,
    pulse: Vec<Arc<Pulse>>,
}

impl Job {
    /// No other block begins, and none waits for another any more.
    fn break_off(&self, why: SimulationError) {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.exhausted.store(true, Relaxed);
        self.turns.end_all();
    }
}

/// Hands the traces of blocks to an observer in their order, whoever ran them.
struct Observed {
    observer: Arc<dyn Observer>,
    /// The turn that comes next, and the traces of later ones.
    waiting: Mutex<(u64, BTreeMap<u64, Trace>)>,
}

impl Observed {
    fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, waiting: Mutex::default() }
    }

    fn hand_over(&self, turn: u64, trace: Trace) {
        // An observer may break off.
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, later) = &mut *waiting;
        later.insert(turn, trace);
        while let Some(trace) = later.remove(next) {
            *next += 1;
            self.observer.block(trace);
        }
    }
}

/// A worker's sign of life, for the watch.
#[derive(Default)]
#[repr(align(128))]
struct Pulse {
    /// Signs of life so far.
    signs: AtomicU64,
    /// The block it runs.
    block: AtomicU64,
    /// The lane that runs.
    lane: Watched,
}

impl Pulse {
    /// Shows a sign of life.
    fn show(&self) {
        self.signs.store(self.signs.load(Relaxed) + 1, Relaxed);
    }
}

/// Lets what depends on the order of blocks happen in it.
#[derive(Default)]
struct Turns {
    ended: Mutex<Ended>,
    changed: Condvar,
}

/// The turns that have ended: all below a number, and some later ones.
#[derive(Default)]
struct Ended {
    below: u64,
    later: BTreeSet<u64>,
    /// How many workers wait for earlier turns to end.
    waiting: usize,
}

impl Turns {
    /// Waits until every block before the `turn`-th has ended.
    fn wait_for(&self, turn: u64) {
        let mut ended = self.ended.lock().expect("no panic under this lock");
        ended.waiting += 1;
        ended = self.changed.wait_while(ended, |ended| ended.below < turn).expect("no panic under this lock");
        ended.waiting -= 1;
    }

    /// Nobody waits any more.
    fn end_all(&self) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).below = u64::MAX;
        self.changed.notify_all();
    }

    fn end(&self, turn: u64) {
        let mut ended = self.ended.lock().expect("no panic under this lock");
        let Ended { below, later, waiting } = &mut *ended;
        later.insert(turn);
        while later.remove(below) {
            *below += 1;
        }
        if *waiting > 0 {
            self.changed.notify_all();
        }
    }
}

/// Why a kernel was not simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The plan does not fit the kernel.
    #[error(transparent)]
    Plan(#[from] ArgumentError),
    /// The whole grid needs more memory than there is.
    #[error("the simulation needs {needed} bytes, and {available} are available: choose a smaller size")]
    TooLarge {
        /// Bytes of the buffers, and of what is kept of those that the kernel may write.
        needed: u64,
        /// Bytes that the system can still give.
        available: u64,
    },
    /// Its blocks touched more memory than there is.
    #[error("the simulation was ended, since it left less than {reserve} bytes of memory: choose a smaller size")]
    Exhausted {
        /// Bytes that are left to others.
        reserve: u64,
    },
    /// A block would have more shared memory than a GPU gives it.
    #[error("`{kernel}` {detail}")]
    SharedMemory {
        /// The kernel.
        kernel: &'static str,
        /// How much it has, the limit, and whose it is.
        detail: String,
    },
    /// The system gives no stack for a thread of a block.
    #[error(
        "the simulation needs a stack for each thread of a block, and the system gives none: {reason}; try `--threads 1`"
    )]
    NoStack {
        /// What the system says.
        reason: std::io::Error,
    },
    /// The system starts no thread to run blocks on.
    #[error("the system starts no thread for the simulator: {reason}; allow more (`ulimit -u`, `ulimit -v`)")]
    NoThread {
        /// What the system says.
        reason: std::io::Error,
    },
    /// A worker broke off.
    #[error("the simulator broke off: {panic}; unless memory ran out, this is a bug of busload")]
    Worker {
        /// What it said.
        panic: String,
    },
    /// The system gives no addresses for a buffer, or for what the sanitizer keeps of one.
    #[error(
        "the simulation needs {bytes} bytes for one buffer, and the system gives none: {reason}; choose a smaller size"
    )]
    Refused {
        /// How many.
        bytes: usize,
        /// What the system says.
        reason: std::io::Error,
    },
}

impl SimulationError {
    fn of_panic(panic: &dyn Any) -> Self {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref().copied());
        Self::Worker { panic: said.unwrap_or("a panic without a message").to_owned() }
    }

    /// Its name in results: one word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Plan(_) => "plan",
            Self::SharedMemory { .. } => "shared memory",
            Self::TooLarge { .. } | Self::Exhausted { .. } | Self::NoStack { .. } | Self::Refused { .. } => "memory",
            Self::NoThread { .. } => "threads",
            Self::Worker { .. } => "simulator",
        }
    }
}

/// Runs `kernel` as `plan` says. `progress` hears now and then how many blocks are done, and of how many.
///
/// # Errors
/// If the plan does not fit the kernel's parameters, or the buffers do not fit in memory.
pub fn simulate(
    kernel: Kernel,
    plan: Arc<Plan>,
    options: &Options,
    progress: &dyn Fn(u64, u64),
) -> Result<Outcome, SimulationError> {
    let look = if options.sanitize { Look::First } else { Look::Away };
    let (outcome, suspicious) = run(kernel, Arc::clone(&plan), options, look, progress)?;
    if !suspicious {
        return Ok(outcome);
    }
    drop(outcome);
    let (outcome, _) = run(kernel, plan, &Options { threads: 1, ..options.clone() }, Look::Second, progress)?;
    Ok(outcome)
}

/// Bytes of memory that simulating `kernel` on the whole grid of `plan` takes: the buffers, which bytes of outputs were
/// written, and what the sanitizer keeps of those that the kernel may write.
fn memory_needed(kernel: &Kernel, plan: &Plan, options: &Options) -> u64 {
    let buffers = memory::bytes(plan);
    let shadows = if options.sanitize { sanitizer::shadow_bytes(kernel, plan) } else { 0 };
    buffers.saturating_add(shadows)
}

/// Runs `kernel` once; says also whether the sanitizer wants a second look.
fn run(
    kernel: Kernel,
    plan: Arc<Plan>,
    options: &Options,
    look: Look,
    progress: &dyn Fn(u64, u64),
) -> Result<(Outcome, bool), SimulationError> {
    let words = crate::arguments::words(&kernel, &plan, Memory::base)?;
    let shared_bytes = shared::block_bytes(&kernel, plan.launch.shared_bytes)?;
    let choose = if options.from_the_front { Blocks::first } else { Blocks::choose };
    let blocks = choose(plan.launch.block_count(), options.max_blocks);
    let needed = memory_needed(&kernel, &plan, options);
    let available = limits::available();
    if let Some(available) = available.filter(|available| blocks.complete() && needed > *available) {
        return Err(SimulationError::TooLarge { needed, available });
    }
    let reserve = available.map_or(0, |available| available / RESERVE);
    let workers = limits::workers(options.threads, plan.launch.block_threads()).min(blocks.count());
    let (_room, workers) = Room::set_aside(workers as usize, plan.launch.block_threads() as usize);
    let limits = options.limits.of_plan(&plan);
    let job = Arc::new(Job {
        kernel,
        words,
        memory: Memory::new(Arc::clone(&plan))?,
        look,
        shadows: sanitizer::shadows(&kernel, &plan)?,
        suspicious: AtomicBool::new(false),
        plan,
        limits,
        arch: options.arch,
        sampling: options.sampling,
        observer: options.observer.clone().map(Observed::new),
        blocks,
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        faulty: AtomicU64::new(u64::MAX),
        exhausted: AtomicBool::new(false),
        broken: Mutex::default(),
        turns: Turns::default(),
        pulse: (0..workers).map(|_| Arc::default()).collect(),
    });
    let (results, workers) = start(&job)?;
    let mut watch = Watch::new(&job);
    let mut parts = Vec::new();
    loop {
        match results.recv_timeout(Duration::from_millis(50)) {
            Ok(part) => parts.extend(part),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                progress(job.done.load(Relaxed), blocks.count());
                if limits::available().is_some_and(|available| available < reserve) {
                    job.exhausted.store(true, Relaxed);
                }
                if let Some(finding) = watch.look(&job) {
                    let (sites, sampled, findings) = (Vec::new(), Vec::new(), vec![finding]);
                    let (regions, transactions) = (BTreeMap::new(), BTreeMap::new());
                    let outcome =
                        Outcome { sites, sampled, regions, transactions, findings, blocks, shared_bytes, memory: None };
                    return Ok((outcome, false));
                }
            }
        }
    }
    if let Some(error) = job.broken.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    if job.exhausted.load(Relaxed) {
        return Err(SimulationError::Exhausted { reserve });
    }
    let claimed_twice = || {
        let claims: u64 = parts.iter().map(|part| part.claims).sum();
        claims != job.shadows.iter().flatten().map(Shadow::touched).sum::<u64>()
    };
    let suspicious = job.suspicious.load(Relaxed) || workers > 1 && look == Look::First && claimed_twice();
    Ok((gather(job, parts, shared_bytes), suspicious))
}

/// Starts the workers of a job, or as many of them as the system starts threads; says how many, and where they send what they
/// counted.
fn start(job: &Arc<Job>) -> Result<(mpsc::Receiver<Option<Part>>, usize), SimulationError> {
    /// How long to wait for a first thread: those of the simulation before may be on their way out.
    const PATIENCE: Duration = Duration::from_millis(300);
    let (sender, results) = mpsc::channel();
    let begun = Instant::now();
    let mut started = 0;
    while started < job.pulse.len() {
        let (job, sender) = (Arc::clone(job), sender.clone());
        let run = move || {
            let part = catch_unwind(AssertUnwindSafe(|| work(&job, started)));
            let part = part.map_err(|panic| job.break_off(SimulationError::of_panic(&*panic))).ok();
            drop(job);
            // Nobody listens any more if another thread did not end.
            let _ = sender.send(part);
        };
        // Not scoped: a thread in an endless loop is left behind.
        match std::thread::Builder::new().spawn(run) {
            Ok(_) => started += 1,
            Err(_) if started > 0 => break,
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(PATIENCE / 100),
            Err(reason) => return Err(SimulationError::NoThread { reason }),
        }
    }
    Ok((results, started))
}

/// What one worker counted, and what it found in which turn.
struct Part {
    counts: Vec<(host::Site, Region, Cost)>,
    seen: FxHashMap<host::Site, Seen>,
    sampler: Option<Sampler>,
    findings: Option<(u64, Vec<Finding>)>,
    claims: u64,
}

fn work(job: &Arc<Job>, worker: usize) -> Part {
    let mut runner = Runner::new(Arc::clone(job), Arc::clone(&job.pulse[worker]));
    let mut findings = None;
    while findings.is_none() {
        let turn = job.next.fetch_add(1, SeqCst);
        let no_other = turn > job.faulty.load(SeqCst) || job.suspicious.load(Relaxed) || job.exhausted.load(Relaxed);
        if turn >= job.blocks.count() || no_other {
            // A later block that has begun may wait for its turn.
            job.turns.end(turn);
            break;
        }
        runner.run(job.blocks.get(turn), turn);
        let found = std::mem::take(&mut runner.context().findings);
        if !found.is_empty() {
            job.faulty.fetch_min(turn, SeqCst);
            findings = Some((turn, found));
        }
        if let (Some(observer), Some(trace)) = (&job.observer, &mut runner.context().trace) {
            observer.hand_over(turn, trace.take());
        }
        job.turns.end(turn);
        job.done.fetch_add(1, Relaxed);
    }
    let findings = runner.context().finish(findings);
    let counts = runner.context().costs.take();
    let sampler = runner.context().sampler.take();
    let seen = std::mem::take(&mut runner.context().seen);
    let claims = runner.context().claims();
    Part { counts, seen, sampler, findings, claims }
}

fn gather(job: Arc<Job>, parts: Vec<Part>, shared_bytes: u64) -> Outcome {
    let first = parts.iter().filter_map(|part| part.findings.as_ref()).min_by_key(|(turn, _)| *turn);
    let findings = first.map(|(_, findings)| findings.clone()).unwrap_or_default();
    let mut sites = BTreeMap::<_, Site>::new();
    let mut sampled = BTreeMap::new();
    let mut regions = BTreeMap::<_, Counts>::new();
    let mut transactions = BTreeMap::<_, Transactions>::new();
    if findings.is_empty() {
        let key = |site: host::Site| (Position::from(site.at()), site.space(), site.operation(), site.width());
        let name = |region| match region {
            Region::Buffer(buffer) => job.plan.buffers[buffer].name.to_owned(),
            Region::Shared(array) => array.to_owned(),
        };
        let mut samplers = Vec::new();
        let mut seen = BTreeMap::<_, Seen>::new();
        for part in parts {
            part.seen.into_iter().for_each(|(site, of_part)| *seen.entry(key(site)).or_default() |= of_part);
            samplers.extend(part.sampler);
            for (site, region, cost) in part.counts {
                let (position, space, operation, width) = key(site);
                let site = sites.entry((position, space, operation, width)).or_insert(Site {
                    position,
                    space,
                    operation,
                    width,
                    counts: Counts::default(),
                    used: 0,
                    transactions: Transactions::default(),
                    notes: Vec::new(),
                });
                site.counts += cost.counts;
                site.used += cost.used;
                site.transactions += cost.transactions;
                let key = (name(region), operation, width);
                *regions.entry(key.clone()).or_default() += cost.counts;
                *transactions.entry(key).or_default() += cost.transactions;
            }
        }
        seen.into_iter().for_each(|(key, seen)| {
            sites.entry(key).and_modify(|site| site.notes = seen.notes());
        });
        sampled = sample::gather(samplers.into_iter(), key, name);
    }
    let blocks = job.blocks;
    // Every worker has let go of the job, unless it is on its way out of its last call.
    let memory = Arc::into_inner(job).map(|job| job.memory);
    let sampled = sampled.into_values().collect();
    Outcome {
        sites: sites.into_values().collect(),
        sampled,
        regions,
        transactions,
        findings,
        blocks,
        shared_bytes,
        memory,
    }
}

/// Looks whether the workers' lanes still make calls.
struct Watch {
    /// What each worker showed last, and since when: signs of life, block and thread.
    last: Vec<([u64; 3], Instant)>,
}

impl Watch {
    fn new(job: &Job) -> Self {
        Self { last: vec![([0; 3], Instant::now()); job.pulse.len()] }
    }

    /// A thread that has been running for too long without a call; that of the lowest block, if there are several.
    fn look(&mut self, job: &Job) -> Option<Finding> {
        let silent = job.pulse.iter().zip(&mut self.last).filter_map(|(pulse, (last, since))| {
            let now @ [_, block, thread] =
                [&pulse.signs, &pulse.block, &pulse.lane.thread].map(|shown| shown.load(Relaxed));
            if now != *last || thread == 0 {
                (*last, *since) = (now, Instant::now());
            }
            (since.elapsed() > job.limits.silence).then(|| (block, thread as u32 - 1, pulse))
        });
        let (block, thread, pulse) = silent.min_by_key(|(block, ..)| *block)?;
        let at = pulse.lane.last().map(host::Site::at);
        let start = Position { file: job.kernel.file, line: job.kernel.line, column: 1 };
        let after = if at.is_some() { "since this access" } else { "since the kernel began" };
        Some(Finding {
            kind: Kind::NonTerminating,
            at: Some(at.map_or(start, Position::from)),
            other: None,
            block: lane::block_idx(job.plan.launch.grid, block),
            thread: lane::thread_idx(job.plan.launch.block, thread),
            detail: format!(
                "a thread has run for {} s without an access, a barrier or a step of a loop {after}",
                job.limits.silence.as_secs_f32(),
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_the_grid_in_rows_and_has_its_last_block() {
        for (total, max) in
            [(1, 1), (2, 1), (391, 10), (1000, 999), (4096, 1024), (1 << 20, 5000), (39_062_500, 131_073)]
        {
            let blocks = Blocks::choose(total, max);
            let run: Vec<_> = (0..blocks.count()).map(|i| blocks.get(i)).collect();
            assert!(run.windows(2).all(|pair| pair[0] < pair[1]), "{blocks:?}");
            assert_eq!((run[0], run[run.len() - 1]), (0, total - 1), "{blocks:?}");
            assert!((max / 3..=max + 1).contains(&blocks.count()), "{blocks:?}: {} blocks", blocks.count());
            assert_eq!(blocks.complete(), total <= max, "{blocks:?}");
            let rows = 1 + run.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count() as u64;
            assert!(blocks.complete() || rows >= (max / 3).min(1000), "{blocks:?}: {rows} rows");
        }
    }

    #[test]
    fn all_of_a_grid_run_and_the_first_ones() {
        let all = Blocks::choose(7, 7);
        assert!(all.complete() && (0..all.count()).map(|i| all.get(i)).eq(0..7));
        let first = Blocks::first(1 << 30, 5);
        assert!(!first.complete() && (0..first.count()).map(|i| first.get(i)).eq(0..5));
    }

    /// Breaks off at the first block.
    #[derive(Debug)]
    struct Breaks;

    impl Observer for Breaks {
        fn block(&self, _: Trace) {
            panic!("as it must");
        }

        fn lines_a_warp(&self) -> u32 {
            1
        }
    }

    #[test]
    fn a_worker_that_breaks_off_is_an_error_and_nobody_waits_for_it() {
        // Its blocks wait for one another.
        let kernels = Some(crate::cases::kernel("reduce_grid_stride").expect("a kernel"));
        let runs = crate::cases::Selection { kernels, ..Default::default() };
        let run = runs.runs(crate::cases::Sizes::Small, 108).expect("a run").swap_remove(0);
        let options = Options { threads: 3, observer: Some(Arc::new(Breaks)), ..Options::default() };
        let error = simulate(run.kernel, run.plan, &options, &|_, _| ()).err().expect("it breaks off");
        assert_eq!(error.kind(), "simulator");
        assert!(error.to_string().starts_with("the simulator broke off: as it must; "), "{error}");
    }
}
