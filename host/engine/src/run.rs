//! Runs a launch: starts workers, each of which carries out blocks with some front end, and puts together what they saw.

use crate::error::SimulationError;
use crate::finding::Finding;
use crate::launch::Launch;
use crate::options::Options;
use crate::outcome::{Outcome, Part, gather};
use crate::sanitizer::Look;
use crate::worker::Worker;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use system::limits;

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

/// Runs a launch by `run`, which says also whether the sanitizer wants a second look: then it runs again, on one thread, and that
/// decides.
///
/// # Errors
/// Those of `run`.
pub fn look_twice<E>(
    options: &Options,
    run: impl Fn(&Options, Look) -> Result<(Outcome, bool), E>,
) -> Result<Outcome, E> {
    let (outcome, suspicious) = run(options, if options.sanitize { Look::First } else { Look::Away })?;
    if !suspicious {
        return Ok(outcome);
    }
    // What it holds makes room.
    drop(outcome);
    Ok(run(&Options { threads: 1, ..options.clone() }, Look::Second)?.0)
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
        claims != launch.shadows.touched()
    };
    let first_look = launch.look == Look::First;
    let suspicious = launch.shadows.are_suspicious() || workers > 1 && first_look && claimed_twice();
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
        let no_other = turn > launch.faulty.load(SeqCst) || launch.shadows.are_suspicious() || launch.is_exhausted();
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
