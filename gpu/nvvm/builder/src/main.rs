//! Builds the kernels' PTX with rust-cuda, for `cargo xtask ptx --backend nvvm`:
//! `busload-nvvm-builder [PTX [ARCH [CARGO-ARGUMENT…]]]` copies it to PTX, or says where it is. ARCH is `compute_80`
//! unless given; the rest goes to the cargo that compiles the kernels.

use cuda_builder::{CudaBuilder, NvvmArch};
use std::env;
use std::error::Error;
use std::path::Path;

/// What the cargo that compiles the kernels is told besides. Jump threading, a pass of rustc's own, knows nothing of
/// convergence: it copies a barrier into the branches of a condition, where the lanes of a warp no longer meet.
const NO_JUMP_THREADING: [&str; 2] =
    ["-Zprofile-rustflags", "--config=profile.release.rustflags=['-Zmir-enable-passes=-JumpThreading']"];

fn main() -> Result<(), Box<dyn Error>> {
    // Outside a build script, cuda_builder looks for the back end in this directory alone, and cargo hands the path it
    // finds there to compilers that run in other directories.
    if !env::var_os("CARGO_TARGET_DIR").is_some_and(|directory| Path::new(&directory).is_absolute()) {
        return Err("CARGO_TARGET_DIR must be the absolute path of the directory that this was built in".into());
    }
    let mut arguments = env::args().skip(1);
    let ptx = arguments.next();
    let arch: NvvmArch = arguments.next().as_deref().unwrap_or("compute_80").parse()?;
    // Arithmetic as the other back end has it: nothing contracted, nothing flushed to zero, division and root exact.
    // The functions of `libm` are libdevice's, as cuda_builder would have it unasked; no kernel calls any.
    let mut builder = CudaBuilder::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .arch(arch)
        .fma_contraction(false)
        .ftz(false)
        .fast_div(false)
        .fast_sqrt(false)
        .override_libm(true)
        .build_args(&NO_JUMP_THREADING.map(str::to_owned).into_iter().chain(arguments).collect::<Vec<_>>());
    if let Some(ptx) = ptx {
        builder = builder.copy_to(ptx);
    }
    println!("{}", builder.build().map_err(|error| error.to_string())?.display());
    Ok(())
}
