//! Every command of busload over the kernels of `tests/primitives`, as on a GPU under Nsight Compute:
//! `cargo run --release -p busload-tests --example primitives -- profile --ptx tests/primitives/ptx/primitives_sm_80.ptx`.

use busload::suite::Suite;
use std::process::ExitCode;

static SUITE: Suite =
    Suite::of_package("primitives", concat!(env!("CARGO_MANIFEST_DIR"), "/primitives"), primitives::FAMILIES);

fn main() -> ExitCode {
    busload::cli::main(&SUITE)
}
