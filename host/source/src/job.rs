//! A kernel's launch as this front end carries it out: its entry and parameters, and the signs of life of its lanes.

use crate::place::position;
use engine::{Finding, Kind, Launch, Position};
use gpu::device::host::{Kernel, Watched};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Everything the threads of a simulation share.
pub(crate) struct Job {
    pub(crate) launch: Arc<Launch>,
    pub(crate) kernel: Kernel,
    /// The kernel's parameters.
    pub(crate) words: Vec<u64>,
    pub(crate) pulse: Vec<Arc<Pulse>>,
    watch: Mutex<Watch>,
}

impl Job {
    pub(crate) fn new(launch: Arc<Launch>, kernel: Kernel, words: Vec<u64>, workers: usize) -> Self {
        let pulse = (0..workers).map(|_| Arc::default()).collect();
        let watch = Watch { last: vec![([0; 3], Instant::now()); workers] };
        Self { launch, kernel, words, pulse, watch: Mutex::new(watch) }
    }

    /// A thread that has been running for too long without a call.
    pub(crate) fn silent(&self) -> Option<Finding> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).look(self)
    }

    /// Where the kernel begins.
    pub(crate) fn start(&self) -> Position {
        Position { file: self.kernel.file, line: self.kernel.line, column: 1 }
    }
}

/// A worker's sign of life, for the watch.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Pulse {
    /// Signs of life so far.
    signs: AtomicU64,
    /// The block it runs.
    pub(crate) block: AtomicU64,
    /// The lane that runs.
    pub(crate) lane: Watched,
}

impl Pulse {
    /// Shows a sign of life.
    pub(crate) fn show(&self) {
        self.signs.store(self.signs.load(Relaxed) + 1, Relaxed);
    }
}

/// Looks whether the workers' lanes still make calls.
struct Watch {
    /// What each worker showed last, and since when: signs of life, block and thread.
    last: Vec<([u64; 3], Instant)>,
}

impl Watch {
    /// A thread that has been running for too long without a call; that of the lowest block, if there are several.
    fn look(&mut self, job: &Job) -> Option<Finding> {
        let silence = job.launch.limits.silence;
        let silent = job.pulse.iter().zip(&mut self.last).filter_map(|(pulse, (last, since))| {
            let now @ [_, block, thread] =
                [&pulse.signs, &pulse.block, &pulse.lane.thread].map(|shown| shown.load(Relaxed));
            if now != *last || thread == 0 {
                (*last, *since) = (now, Instant::now());
            }
            (since.elapsed() > silence).then(|| (block, thread as u32 - 1, pulse))
        });
        let (block, thread, pulse) = silent.min_by_key(|(block, ..)| *block)?;
        let at = pulse.lane.last().map(|site| position(site.at()));
        let after = if at.is_some() { "since this access" } else { "since the kernel began" };
        let launch = job.launch.plan.launch;
        Some(Finding {
            kind: Kind::NonTerminating,
            at: Some(at.unwrap_or_else(|| job.start())),
            other: None,
            block: engine::block_idx(launch.grid, block),
            thread: engine::thread_idx(launch.block, thread),
            detail: format!(
                "a thread has run for {} s without an access, a barrier or a step of a loop {after}",
                silence.as_secs_f32(),
            ),
        })
    }
}
