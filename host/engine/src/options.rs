//! How to simulate, and when to give up.

use crate::arch::Arch;
use crate::sample::Sampling;
use crate::trace::Observer;
use gpu::suite::Plan;
use std::sync::Arc;
use std::time::Duration;

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
            threads: system::parallel::threads(),
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
    /// Steps that one thread takes (accesses, rounds of loops, meetings), or a thousand times the accesses that the plan
    /// expects of a thread on average if that is more; they are added up now and then.
    pub calls: u64,
    /// Barriers that one block passes, likewise.
    pub barriers: u64,
    /// How long a thread runs without any such step.
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
    #[must_use]
    pub fn of_plan(self, plan: &Plan) -> Self {
        let many = 1000 * expected_accesses(plan).div_ceil(plan.launch.threads().max(1));
        Self { calls: self.calls.max(many), barriers: self.barriers.max(many), ..self }
    }
}
