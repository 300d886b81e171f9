//! Builds the kernels' PTX.

use crate::rust_cuda;
use anyhow::{Result, ensure};
use busload::build::{self, Built, RUST_SRC, Source, headed, package};
use busload::cli::Usage;
use busload::input;
use busload::ptx::Ptx;
use busload::report;
use busload::suite::BUSLOAD;
use sources::{TestCrate, root};
use std::path::PathBuf;

/// The committed build, relative to the root of the workspace.
pub(crate) const COMMITTED: &str = "gpu/ptx/busload_sm_80.ptx";

/// Where the suite's kernels are, relative to the root of the workspace.
const KERNELS: &str = "gpu/src/kernels/";

/// Which compiler.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// rustc's own NVPTX back end.
    Llvm,
    /// rust-cuda's, by a toolchain and perhaps a checkout.
    Nvvm { toolchain: String, checkout: Option<PathBuf> },
}

/// What to build.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) backend: Backend,
    /// As in `sm_80`.
    pub(crate) arch: String,
}

impl Target {
    pub(crate) fn backend_name(&self) -> &'static str {
        match self.backend {
            Backend::Llvm => "llvm",
            Backend::Nvvm { .. } => "nvvm",
        }
    }

    /// Whether its build is the one that is committed.
    pub(crate) fn is_committed(&self) -> bool {
        matches!(self.backend, Backend::Llvm) && self.arch == "sm_80"
    }

    /// The committed file for what is committed, a file under `target` for the rest.
    pub(crate) fn default_file(&self) -> PathBuf {
        root().join(match self.is_committed() {
            true => COMMITTED.to_owned(),
            false => format!("target/ptx/busload_{}_{}.ptx", self.backend_name(), self.arch),
        })
    }

    /// A hash of everything that its build is made from.
    pub(crate) fn source_hash(&self) -> Result<String> {
        match self.backend {
            Backend::Llvm => sources::source_hash(),
            Backend::Nvvm { .. } => sources::nvvm_source_hash(),
        }
    }
}

/// Whether the toolchain of the workspace has the source of the standard library.
pub(crate) fn has_rust_src() -> bool {
    build::has_rust_src(root())
}

/// The PTX of the sources as they are, with its header.
pub(crate) fn made(target: &Target) -> Result<String> {
    let built = match &target.backend {
        Backend::Llvm => llvm("busload-gpu", KERNELS, &target.arch)?,
        Backend::Nvvm { toolchain, checkout } => rust_cuda::build(toolchain, checkout.as_deref(), &target.arch)?,
    };
    let line_table = match &target.backend {
        Backend::Llvm => KERNELS,
        Backend::Nvvm { .. } => "none",
    };
    let of = "busload's kernels, built by `cargo xtask ptx` from gpu/";
    Ok(headed(of, target.backend_name(), &target.arch, line_table, &target.source_hash()?, &built))
}

/// The PTX of a crate of tests, likewise.
pub(crate) fn build_tests(of: TestCrate) -> Result<String> {
    let target = Target { backend: Backend::Llvm, arch: "sm_80".to_owned() };
    let built = llvm(of.package, of.folder, &target.arch)?;
    let folder = of.folder.trim_end_matches("src/");
    let what = format!("{}, built by `cargo xtask ptx` from {folder} and gpu/", of.what);
    Ok(headed(&what, target.backend_name(), &target.arch, of.folder, &of.source_hash()?, &built))
}

/// The PTX of a package's kernels, whose files are under `folder`, by rustc's own back end.
pub(crate) fn llvm(package: &str, folder: &str, arch: &str) -> Result<Built> {
    if !has_rust_src() {
        return Err(Usage(anyhow::anyhow!("{RUST_SRC}; or build with `--backend nvvm`")).into());
    }
    let target = root().join("target/ptx/llvm");
    build::llvm(&Source { package, folder: root(), lines: folder, flags: &[], arch, target: &target })
}

/// What is wrong with a build: accesses that should not be there, and kernels too many or too few.
pub(crate) fn problems(ptx: &Ptx) -> Vec<String> {
    package::problems(&BUSLOAD, ptx)
}

/// The committed build's text, as it is in the tree now.
pub(crate) fn committed() -> Result<Ptx> {
    Ok(Ptx::new(input::text(root().join(COMMITTED), input::SOURCE)?))
}

/// A file under `target` with the build of the sources as they are, made if it is not there yet.
pub(crate) fn cached(target: &Target) -> Result<PathBuf> {
    let hash = target.source_hash()?;
    let file = root().join(format!("target/ptx/bench_{}_{}.ptx", target.backend_name(), target.arch));
    let is_known = |text| Ptx::new(text).header("source-hash") == Some(hash.as_str());
    let known = input::text(&file, input::SOURCE).is_ok_and(is_known);
    if !known {
        report::say(&format!("Building the kernels' PTX with the back end {}…", target.backend_name()));
        let ptx = made(target)?;
        let problems = problems(&Ptx::new(&*ptx));
        ensure!(problems.is_empty(), "{}", problems.join("\n"));
        build::write(&file, &ptx)?;
    }
    Ok(file)
}
