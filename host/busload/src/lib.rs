//! Runs busload's kernels on a GPU or in the simulator, verifies every result, and measures.
//!
//! - [`sim`]: the simulator. It needs no GPU and counts what the hardware counts, by source line.
//! - [`cuda`]: the GPU, through the driver found at run time.
//! - [`verify`]: compares what a kernel wrote with its reference; nothing is timed before.
//! - [`bench`](mod@bench): sampling and statistics, and the runs of a suite on either machine.
//! - [`check`]: budgets of kernels, held to what they cost now.
//! - [`claims`]: what the articles say that busload grew out of, judged by counts and results.
//! - [`compare`]: two results files side by side, with a verdict for each row.
//! - [`explain`]: a kernel's source with the counts of each access, and why the worst is what it is.
//! - [`foreign`]: kernels of anybody's PTX, launched as a launch file says.
//! - [`front`]: what carries out the suite's kernels on the CPU: their source, or some build of them.
//! - [`input`]: files, read whole but not without end.
//! - [`predict`]: predictions of what a launch costs on a GPU that need not be there, and how good they are.
//! - [`parallel`]: work in pieces, on as many threads as the system starts.
//! - [`cases`]: from what was asked for on the command line to kernels, cases and plans.
//! - [`timing`]: times that were measured, and their statistics.
//! - [`record`] and [`report`]: what came of a run, as data, as a table, as JSON.
//! - [`repository`]: where files stand in the repository that one stands in.
//! - [`results`]: files of results, read and checked.
//! - [`profile`]: the counters of Nsight Compute beside the simulated counts.
//! - [`ptx`]: the committed build of the kernels, and the properties it is held to.
//! - [`cli`]: the commands.

pub use cuda;
pub use plan::{arguments, verify};
pub use system::{input, parallel};

pub mod bench;
pub mod cases;
pub mod check;
pub mod claims;
pub mod cli;
pub mod compare;
pub mod doctor;
pub mod explain;
pub mod foreign;
pub mod front;
pub mod predict;
pub mod profile;
pub mod ptx;
pub mod record;
pub mod report;
pub mod repository;
pub mod results;
pub mod timing;
/// The simulator: what carries out kernels from their source, over the engine that counts what they ask for.
pub mod sim {
    pub use engine::{
        Arch, Blocks, Finding, Kind, Limits, Note, Options, Outcome, Pattern, Pc, Position, Sample, Sampled, Sampling,
        SimulationError, Site, Tally, Transactions, arch, banks, coalesce, expected_accesses, trace,
    };
    pub use source::simulate;
}
