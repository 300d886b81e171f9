//! A launch that workers share: its buffers, what is to be counted of it, and the order of its blocks.
//!
//! Blocks run in parallel. Counts are sums; what depends on the order of blocks (atomics, traces) waits for its turn. So the
//! results are the same on any number of threads.

use crate::arch::Arch;
use crate::blocks::{Blocks, block_idx, thread_idx};
use crate::error::SimulationError;
use crate::memory::{self, Memory};
use crate::options::{Limits, Options};
use crate::printed::{Page, Pages};
use crate::sample::Sampling;
use crate::sanitizer::{Look, Shadows};
use crate::shared;
use crate::trace::{Observer, Trace};
use gpu::suite::Plan;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
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
    pub(crate) shadows: Shadows,
    pub(crate) arch: Option<Arch>,
    pub(crate) sampling: Option<Sampling>,
    pub(crate) observer: Option<Observed>,
    pub(crate) blocks: Blocks,
    pub(crate) next: AtomicU64,
    pub(crate) done: AtomicU64,
    /// The lowest turn whose block has findings: later ones no longer matter.
    pub(crate) faulty: AtomicU64,
    /// Whether there is hardly any memory left: no other block begins, those that run stop, and what they found does not matter.
    pub(crate) exhausted: AtomicBool,
    /// Bytes of memory that are left to others.
    pub(crate) reserve: u64,
    /// Why a worker broke off: likewise.
    pub(crate) broken: Mutex<Option<SimulationError>>,
    pub(crate) turns: Turns,
    pub(crate) printed: Pages,
}

impl Launch {
    /// Whether somebody observes what is asked for: then what comes before each request matters.
    pub fn is_traced(&self) -> bool {
        self.observer.is_some()
    }

    /// A launch of `plan` that is looked at as closely as `look` says.
    ///
    /// # Errors
    /// If a block has more shared memory than a GPU gives it, or the buffers do not fit in memory.
    pub fn new(program: Program, plan: Arc<Plan>, options: &Options, look: Look) -> Result<Self, SimulationError> {
        let shared_bytes = shared::block_bytes(program.name, program.shared, plan.launch.shared_bytes)?;
        let choose = if options.from_the_front { Blocks::first } else { Blocks::choose };
        let blocks = choose(plan.launch.block_count(), options.max_blocks);
        let shadow_bytes = if options.sanitize { Shadows::bytes(&plan, &program.written) } else { 0 };
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
            shadows: Shadows::new(&plan, &program.written)?,
            program,
            plan,
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
            printed: Pages::default(),
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

    /// Keeps what the `turn`-th block printed.
    pub fn print(&self, turn: u64, page: Page) {
        self.printed.add(turn, page);
    }

    /// Waits until every block before the `turn`-th has ended.
    #[inline]
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

    pub(crate) fn hand_over(&self, turn: u64, trace: Trace) {
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
pub(crate) struct Turns {
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

    pub(crate) fn end(&self, turn: u64) {
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
