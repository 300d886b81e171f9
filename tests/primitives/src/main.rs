//! The commands of busload over the primitives' kernels: `cargo run --release --package busload-primitives -- --help`. On a GPU
//! machine, `verify`, `bench` and `profile` hold the hardware to them.

use busload::suite::{Module, Suite};
use std::process::ExitCode;

static SUITE: Suite = Suite {
    name: "busload-primitives",
    families: primitives::FAMILIES,
    counterexamples: &[],
    module: Module::BuiltIn { file: "primitives_sm_80.ptx", text: include_str!("../ptx/primitives_sm_80.ptx") },
};

fn main() -> ExitCode {
    busload::cli::main(&SUITE)
}
