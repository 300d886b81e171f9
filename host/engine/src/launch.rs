//! A launch that workers share: its buffers, what is to be counted of it, and the order of its blocks.
//!
//! Blocks run in parallel. Counts are sums; what depends on the order of blocks (atomics, traces) waits for its turn. So the
//! results are the same on any number of threads.

use crate::arch::Arch;
use crate::blocks::{Blocks, block_idx, thread_idx};
use crate::error::SimulationError;
use crate::finding::Finding;
use crate::memory::{self, Memory};
use crate::options::{Limits, Options};
use crate::outcome::{Outcome, Part, gather};
use crate::sample::Sampling;
use crate::sanitizer::{self, Look, Shadow};
use crate::shared;
use crate::trace::{Observer, Trace};
use crate::worker::Worker;
use gpu::suite::Plan;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use system::limits;

/// A simulation ends before the system ends the process: when no more is left than this part of the memory that there was.
const RESERVE: u64 = 16;

/// What a front end says of a kernel.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Which of the plan's buffers it may write.
    pub written: Vec<bool>,
    /// Its static arrays in shared memory: names and bytes, in the order of their declarations.
    pub shared: &'static [(&'static str, u64)],
}

/// What carries out a kernel's blocks: a front end.
pub trait Machine: Send + Sync + 'static {
    /// What carries out one block after another on one thread.
    type Runner: Runner;

    /// A runner for the calling thread, the `worker`-th.
    fn runner(self: &Arc<Self>, worker: usize) -> Self::Runner;

    /// Is asked now and then, from another thread, whether a thread of the kernel will not end.
    fn watch(&self) -> Option<Finding>;
}

/// Carries out blocks, one after another.
pub trait Runner {
    /// Carries out block number `block`, the `turn`-th of the run, to its end or to what stops it.
    fn run(&mut self, block: u64, turn: u64);

    /// What is counted of its blocks.
    fn worker(&mut self) -> &mut Worker;
}

/// Everything the threads of a simulation share, whatever carries it out.
pub struct Launch {
    /// The kernel.
    pub program: Program,
    /// What is launched.
    pub plan: Arc<Plan>,
    /// Its buffers.
    pub memory: Memory,
    /// When a thread is taken not to end.
    pub limits: Limits,
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared_bytes: u64,
    pub(crate) look: Look,
    /// For each buffer that the kernel may write, who touched it.
    pub(crate) shadows: Vec<Option<Shadow>>,
    /// Whether the sanitizer's first look calls for the second.
    pub(crate) suspicious: AtomicBool,
    pub(crate) arch: Option<Arch>,
    pub(crate) sampling: Option<Sampling>,
    pub(crate) observer: Option<Observed>,
    pub(crate) blocks: Blocks,
    next: AtomicU64,
    done: AtomicU64,
    /// The lowest turn whose block has findings: later ones no longer matter.
    faulty: AtomicU64,
    /// Whether there is hardly any memory left: no other block begins, those that run stop, and what they found does not matter.
    exhausted: AtomicBool,
    /// Bytes of memory that are left to others.
    reserve: u64,
    /// Why a worker broke off: likewise.
    broken: Mutex<Option<SimulationError>>,
    turns: Turns,
}

impl Launch {
    /// A launch of `plan` that is looked at as closely as `look` says.
    ///
    /// # Errors
    /// If a block has more shared memory than a GPU gives it, or the buffers do not fit in memory.
    pub fn new(program: Program, plan: Arc<Plan>, options: &Options, look: Look) -> Result<Self, SimulationError> {
        let shared_bytes = shared::block_bytes(program.name, program.shared, plan.launch.shared_bytes)?;
        let choose = if options.from_the_front { Blocks::first } else { Blocks::choose };
        let blocks = choose(plan.launch.block_count(), options.max_blocks);
        let shadow_bytes = if options.sanitize { sanitizer::shadow_bytes(&plan, &program.written) } else { 0 };
        let needed = memory::bytes(&plan).saturating_add(shadow_bytes);
        let available = limits::available();
        if let Some(available) = available.filter(|available| blocks.complete() && needed > *available) {
            return Err(SimulationError::TooLarge { needed, available });
        }
        Ok(Self {
            memory: Memory::new(Arc::clone(&plan))?,
            limits: options.limits.of_plan(&plan),
            shared_bytes,
            look,
            shadows: sanitizer::shadows(&plan, &program.written)?,
            program,
            plan,
            suspicious: AtomicBool::new(false),
            arch: options.arch,
            sampling: options.sampling,
            observer: options.observer.clone().map(Observed::new),
            blocks,
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            faulty: AtomicU64::new(u64::MAX),
            exhausted: AtomicBool::new(false),
            reserve: available.map_or(0, |available| available / RESERVE),
            broken: Mutex::default(),
            turns: Turns::default(),
        })
    }

    /// How many blocks run.
    pub fn block_count(&self) -> u64 {
        self.blocks.count()
    }

    /// No other block begins, and none waits for another any more.
    pub fn break_off(&self, why: SimulationError) {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.exhausted.store(true, Relaxed);
        self.turns.end_all();
    }

    /// Whether blocks are to stop, since what they do no longer matters.
    #[inline(always)]
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.load(Relaxed)
    }

    /// Waits until every block before the `turn`-th has ended.
    pub fn wait_for(&self, turn: u64) {
        self.turns.wait_for(turn);
    }

    /// `blockIdx` of the `turn`-th block of the run.
    pub(crate) fn block_of(&self, turn: u64) -> [u32; 3] {
        block_idx(self.plan.launch.grid, self.blocks.get(turn))
    }

    /// `threadIdx` of a block's thread.
    pub fn thread_idx(&self, thread: u32) -> [u32; 3] {
        thread_idx(self.plan.launch.block, thread)
    }
}

/// Runs a launch on as many as `workers` threads; says also whether the sanitizer wants a second look. `progress` hears now and then
/// how many blocks are done, and of how many.
///
/// # Errors
/// If the system gives too little for it, or a worker breaks off.
pub fn run<M: Machine>(
    launch: Arc<Launch>,
    machine: Arc<M>,
    workers: usize,
    progress: &dyn Fn(u64, u64),
) -> Result<(Outcome, bool), SimulationError> {
    let (results, workers) = start(&launch, &machine, workers)?;
    let mut parts = Vec::new();
    loop {
        match results.recv_timeout(Duration::from_millis(50)) {
            Ok(part) => parts.extend(part),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                progress(launch.done.load(Relaxed), launch.blocks.count());
                if limits::available().is_some_and(|available| available < launch.reserve) {
                    launch.exhausted.store(true, Relaxed);
                }
                if let Some(finding) = machine.watch() {
                    return Ok((Outcome::abandoned(&launch, finding), false));
                }
            }
        }
    }
    drop(machine);
    if let Some(error) = launch.broken.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    if launch.is_exhausted() {
        return Err(SimulationError::Exhausted { reserve: launch.reserve });
    }
    let claimed_twice = || {
        let claims: u64 = parts.iter().map(|part| part.claims).sum();
        claims != launch.shadows.iter().flatten().map(Shadow::touched).sum::<u64>()
    };
    let first_look = launch.look == Look::First;
    let suspicious = launch.suspicious.load(Relaxed) || workers > 1 && first_look && claimed_twice();
    Ok((gather(launch, parts), suspicious))
}

type Results = mpsc::Receiver<Option<Part>>;

/// Starts the workers of a launch, or as many of them as the system starts threads; says how many, and where they send what they
/// counted.
fn start<M: Machine>(
    launch: &Arc<Launch>,
    machine: &Arc<M>,
    workers: usize,
) -> Result<(Results, usize), SimulationError> {
    /// How long to wait for a first thread: those of the simulation before may be on their way out.
    const PATIENCE: Duration = Duration::from_millis(300);
    let (sender, results) = mpsc::channel();
    let begun = Instant::now();
    let mut started = 0;
    while started < workers {
        let (launch, machine, sender) = (Arc::clone(launch), Arc::clone(machine), sender.clone());
        let run = move || {
            let part = catch_unwind(AssertUnwindSafe(|| work(&launch, machine.runner(started))));
            let part = part.map_err(|panic| launch.break_off(SimulationError::of_panic(&*panic))).ok();
            drop((launch, machine));
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

fn work(launch: &Launch, mut runner: impl Runner) -> Part {
    let mut findings = None;
    while findings.is_none() {
        let turn = launch.next.fetch_add(1, SeqCst);
        let no_other = turn > launch.faulty.load(SeqCst) || launch.suspicious.load(Relaxed) || launch.is_exhausted();
        if turn >= launch.blocks.count() || no_other {
            // A later block that has begun may wait for its turn.
            launch.turns.end(turn);
            break;
        }
        runner.run(launch.blocks.get(turn), turn);
        let worker = runner.worker();
        let found = worker.take_findings();
        if !found.is_empty() {
            launch.faulty.fetch_min(turn, SeqCst);
            findings = Some((turn, found));
        }
        if let (Some(observer), Some(trace)) = (&launch.observer, worker.take_trace()) {
            observer.hand_over(turn, trace);
        }
        launch.turns.end(turn);
        launch.done.fetch_add(1, Relaxed);
    }
    runner.worker().finish(findings)
}

/// Hands the traces of blocks to an observer in their order, whoever ran them.
pub(crate) struct Observed {
    pub(crate) observer: Arc<dyn Observer>,
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
