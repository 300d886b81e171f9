//! The machine: carries out a program a warp at a time, over the engine.

mod access;
mod barrier;
mod block;
mod bulk;
mod call;
mod copies;
mod copying;
mod exchange;
mod external;
mod format;
mod group;
mod hand;
mod job;
mod matrix;
mod region;
mod reserved;
mod stand;
mod step;
mod unwritten;
mod variables;
mod warp;

use crate::program::Program;
use engine::{Launch, Options, Outcome, SimulationError};
use gpu::suite::Plan;
use job::Job;
use std::sync::Arc;
use system::limits;
use variables::Whole;

/// Why a program was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine says why.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The plan does not fit the entry.
    #[error("`{entry}` {detail}")]
    Plan {
        /// The entry.
        entry: &'static str,
        /// What does not fit, and the way out.
        detail: String,
    },
}

/// Runs a program as `plan` says. `words` are its parameters, in their order: one of 64 bits for each, or for each 8 bytes that a larger
/// one has. `written` says of each buffer of the plan whether the program may write it. A variable of the module is the buffer of its
/// name, if the plan has one at least as large; else a buffer is made behind those of the plan, as the module says. `progress` hears now and then how many blocks
/// are done, and of how many.
///
/// # Errors
/// If the plan does not fit the program, or the buffers do not fit in memory.
pub fn simulate(
    program: &Arc<Program>,
    plan: Arc<Plan>,
    words: &[u64],
    written: &[bool],
    options: &Options,
    progress: &dyn Fn(u64, u64),
) -> Result<Outcome, Error> {
    check(program, &plan, words, written)?;
    let Whole { plan, written, bases } = Whole::new(program, &plan, written)?;
    engine::look_twice(options, |options, look| {
        let known = engine::Program { name: program.name, written: written.clone(), shared: program.shared };
        let launch = Arc::new(Launch::new(known, Arc::clone(&plan), options, look)?);
        let job = Job::new(Arc::clone(&launch), Arc::clone(program), words, bases.clone());
        let each = bytes_of_a_worker(program, &plan);
        let workers = limits::workers(options.threads, each).min(launch.block_count()).max(1);
        Ok(engine::run(launch, Arc::new(job), workers as usize, progress)?)
    })
}

/// Bytes that the registers and local memory of a block take.
fn bytes_of_a_worker(program: &Program, plan: &Plan) -> u64 {
    let threads = u64::from(plan.launch.block_threads());
    let [_, narrow, wide] = program.sizes.map(|sizes| u64::from(sizes.own));
    threads.div_ceil(32) * (128 * narrow + 256 * wide) + threads * (program.local_bytes + program.local_bytes / 8)
}

fn check(program: &Program, plan: &Plan, words: &[u64], written: &[bool]) -> Result<(), Error> {
    let fail = |detail| Err(Error::Plan { entry: program.name, detail });
    if let Err(error) = plan.launch.check() {
        return fail(format!("cannot be launched: {error}"));
    }
    if words.len() != program.parameter_words() {
        let takes = program.parameter_words();
        return fail(format!(
            "takes {takes} words of parameters, and {} are given: one for each, in their order",
            words.len()
        ));
    }
    if written.len() != plan.buffers.len() {
        let (said, buffers) = (written.len(), plan.buffers.len());
        return fail(format!("has a plan of {buffers} buffers, and of {said} it is said whether they may be written"));
    }
    let needed = bytes_of_a_worker(program, plan);
    if let Some(available) = limits::available().filter(|available| needed > *available) {
        return fail(format!(
            "needs {needed} bytes for the registers and local memory of a block, and {available} are available: choose smaller blocks"
        ));
    }
    match program.block {
        Some(block) if block != plan.launch.block => {
            fail(format!("asks for blocks of {block:?} threads (`.reqntid`), and the plan has {:?}", plan.launch.block))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
