//! The front end that carries out kernels from their Rust source: lane by lane on the CPU, each on a stack of its own.
//!
//! One concern a file: `block` schedules the threads of a block, `thread` says what each waits for, `stack` and `overflow` keep and
//! watch their stacks, `lane` is the machine that a thread's calls go to, `context` the block that it runs in, `access` carries out
//! what it does, `atomic` says what atomics compute, `copying` what goes on while it does, of which `copies` keeps track, `meeting`
//! and `exchange` what lanes do together,
//! `requests` puts the accesses of a warp together, `count` has them counted, and `job` is what all workers share.
//! What a request costs, the memory behind it, the sanitizer and the traces are the [`engine`]'s.
//!
//! It knows the facade that kernels are written against ([`gpu::device::host`]), and nothing of GPUs, models or reports.

mod access;
mod atomic;
mod block;
mod context;
mod copies;
mod copying;
mod count;
mod exchange;
mod job;
mod lane;
mod meeting;
mod overflow;
mod place;
mod requests;
mod stack;
mod stop;
mod thread;

use engine::{Launch, Look, Memory, Options, Outcome, Program, SimulationError};
use gpu::device::host::{Access, Kernel, ParameterKind};
use gpu::suite::{Buffer, Operation, Plan, Space};
use job::Job;
use plan::arguments;
use stack::{Room, STACK};
use std::sync::Arc;
use system::limits;

// A kind of access that is thought of nowhere does not compile.
const _: () = {
    let mut kind = 0;
    while kind < Access::EACH.len() {
        let (space, op) = Access::EACH[kind];
        assert!(
            !matches!((space, op.operation()), (Space::Constant, Operation::Store | Operation::Atomic)),
            "kernels only read constant memory"
        );
        kind += 1;
    }
};

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
    engine::look_twice(options, |options, look| run(kernel, Arc::clone(&plan), options, look, progress))
}

/// Whether a kernel may write a buffer.
fn is_written(kernel: &Kernel, buffer: &Buffer) -> bool {
    let is_it =
        |(name, kind): &(&str, ParameterKind)| *name == buffer.name && matches!(kind, ParameterKind::GlobalMut(_));
    kernel.parameters.iter().any(is_it)
}

/// Runs `kernel` once; says also whether the sanitizer wants a second look.
fn run(
    kernel: Kernel,
    plan: Arc<Plan>,
    options: &Options,
    look: Look,
    progress: &dyn Fn(u64, u64),
) -> Result<(Outcome, bool), SimulationError> {
    let words = arguments::words(&kernel, &plan, Memory::base)?;
    let written = plan.buffers.iter().map(|buffer| is_written(&kernel, buffer)).collect();
    let program = Program { name: kernel.name, written, shared: kernel.shared };
    let threads = plan.launch.block_threads();
    let launch = Arc::new(Launch::new(program, plan, options, look)?);
    let workers = limits::workers(options.threads, 2 * STACK as u64 * u64::from(threads)).min(launch.block_count());
    let (_room, workers) = Room::set_aside(workers as usize, threads as usize);
    let job = Job::new(Arc::clone(&launch), kernel, words, workers);
    engine::run(launch, Arc::new(job), workers, progress)
}
