//! Runs GPU kernels written in Rust in a simulator that counts what the hardware counts, verifies every result, and measures on a GPU.
//!
//! For kernels in a crate of your own: `use busload::prelude::*;`, and [`launch()`] in its tests. `examples/own-crate` has all of it.
//!
//! Without features it is the simulator alone:
//! - [`prelude`]: what a file of kernels uses.
//! - [`launch`](mod@launch): runs a kernel and holds it to its results, the sanitizer and its counts.
//! - [`sim`]: the simulator. It needs no GPU and counts what the hardware counts, by source line.
//! - [`verify`] and [`judge`]: what a kernel wrote beside its reference, and whether a run is right; nothing is timed before.
//! - [`why`]: why an access costs what it costs, in a sentence.
//! - [`input`]: files, read whole but not without end.
//! - [`parallel`]: work in pieces, on as many threads as the system starts.
//! - [`gpu`]: the facade, and the suite's own kernels.
//!
//! With `cli` it has the commands, for busload's own suite and, by [`main!`], for any other; with `cuda`, kernels are launched on a GPU:
//! - [`suite`]: families of kernels and their PTX, which every command is of.
//! - [`cuda`]: the GPU, through the driver found at run time.
//! - [`bench`](mod@bench): sampling and statistics, and the runs of a suite on either machine.
//! - [`build`]: PTX from the sources of a package.
//! - [`check`]: budgets of kernels, held to what they cost now.
//! - [`claims`]: what the articles say that busload grew out of, judged by counts and results.
//! - [`compare`]: results files side by side, with a verdict for each row.
//! - [`explain`]: a kernel's source with the counts of each access, and why the worst is what it is.
//! - [`fit`]: what fits counts that are not stated, where they are linear.
//! - [`fleet`]: many GPUs of one kind, and which of them are slow.
//! - [`foreign`]: kernels of anybody's PTX, launched as a launch file says.
//! - [`front`]: what carries out the suite's kernels on the CPU: their source, or some build of them.
//! - [`measure`]: takes samples of a time until they tell enough of it.
//! - [`moved`]: how many bytes kernels moved, by profiles of them.
//! - [`mock`]: what stands for a GPU in tests of busload itself.
//! - [`plots`]: plots of results, as SVG, PNG and one page.
//! - [`predict`]: predictions of what a launch costs on a GPU that need not be there, and how good they are.
//! - [`cases`]: from what was asked for on the command line to kernels, cases and plans.
//! - [`timing`]: times that were measured, and their statistics.
//! - [`provenance`]: where results come from.
//! - [`record`] and [`report`]: what came of a run, as data, as a table, as JSON.
//! - [`repository`]: where files stand in the repository that one stands in.
//! - [`results`]: files of results, read and checked.
//! - [`schema`]: the layouts of what commands write as JSON.
//! - [`sensors`]: what NVML tells of a GPU.
//! - [`spatter`]: pattern files of Spatter, read and written.
//! - [`stop`]: when samples tell enough.
//! - [`profile`]: the counters of Nsight Compute beside the simulated counts.
//! - [`ptx`]: the committed build of the kernels, and the properties it is held to.
//! - [`cli`]: the commands.
//!
//! Compiled for a GPU it is the facade and nothing else.

#![cfg_attr(target_os = "cuda", no_std)]

pub use gpu;

/// What a file of kernels uses, all of it: `use busload::prelude::*;`.
pub mod prelude {
    pub use gpu::device::prelude::*;
}

#[cfg(not(target_os = "cuda"))]
pub use gpu::device::host::Kernel;
#[cfg(not(target_os = "cuda"))]
pub use launch::{Report, assert_families, launch};

#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub use cuda;
#[cfg(not(target_os = "cuda"))]
pub use plan::{arguments, verify};
#[cfg(not(target_os = "cuda"))]
pub use system::{input, parallel};

#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod bench;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod build;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod cases;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod check;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod claims;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod cli;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod compare;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod doctor;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod explain;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod fit;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod fleet;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod foreign;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod front;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
mod html;
#[cfg(not(target_os = "cuda"))]
pub mod judge;
#[cfg(not(target_os = "cuda"))]
pub mod launch;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod measure;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod mock;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod moved;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod plots;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod predict;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod profile;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod provenance;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod ptx;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod record;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod report;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod repository;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod results;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod schema;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod sensors;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod spatter;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod stop;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod suite;
#[cfg(not(target_os = "cuda"))]
mod texts;
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
pub mod timing;
#[cfg(not(target_os = "cuda"))]
pub mod why;

/// The simulator: what carries out kernels from their source, over the engine that counts what they ask for.
#[cfg(not(target_os = "cuda"))]
pub mod sim {
    pub use engine::{
        Arch, Blocks, Finding, Kind, Limits, Note, Options, Outcome, Pattern, Pc, Position, Sample, Sampled, Sampling,
        SimulationError, Site, Tally, Transactions, arch, banks, coalesce, expected_accesses, trace,
    };
    pub use source::simulate;
}

/// The whole `main.rs` of a package whose library has kernels: every command of busload, over its families.
///
/// ```ignore
/// busload::main!(own_crate::FAMILIES);
/// ```
#[cfg(all(feature = "cli", not(target_os = "cuda")))]
#[macro_export]
macro_rules! main {
    ($families:expr) => {
        fn main() -> ::std::process::ExitCode {
            static SUITE: $crate::suite::Suite =
                $crate::suite::Suite::of_package(env!("CARGO_PKG_NAME"), env!("CARGO_MANIFEST_DIR"), $families);
            $crate::cli::main(&SUITE)
        }
    };
}
