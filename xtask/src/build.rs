//! Builds the kernels' PTX.

use crate::command::{command, output};
use crate::{lines, rust_cuda};
use anyhow::{Context, Result, ensure};
use busload::cli::Usage;
use busload::input;
use busload::ptx::Ptx;
use busload::report;
use gpu::kernels::FAMILIES;
use sources::{TestCrate, root};
use std::path::{Path, PathBuf};

/// The committed build, relative to the root of the workspace.
pub(crate) const COMMITTED: &str = "gpu/ptx/busload_sm_80.ptx";

/// What to install where PTX cannot be built.
pub(crate) const RUST_SRC: &str = "the standard library's source is missing: run `rustup component add rust-src`";

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

/// An architecture from the command line.
pub(crate) fn parse_arch(text: &str) -> Result<String, String> {
    match text.strip_prefix("sm_").map(str::parse::<u32>) {
        Some(Ok(80..=999)) => Ok(text.to_owned()),
        Some(Ok(_)) => Err("the kernels use instructions of sm_80: choose that or a later one".to_owned()),
        _ => Err("an architecture is written as in sm_80".to_owned()),
    }
}

/// Whether the toolchain has the source of the standard library.
pub(crate) fn has_rust_src() -> bool {
    let sysroot = output(command("rustc").args(["--print", "sysroot"]));
    sysroot.is_ok_and(|path| Path::new(path.trim()).join("lib/rustlib/src/rust/library/core/src/lib.rs").is_file())
}

/// The PTX of the sources as they are, with its header.
pub(crate) fn build(target: &Target) -> Result<String> {
    let built = match &target.backend {
        Backend::Llvm => llvm("busload-gpu", lines::KERNELS, &target.arch)?,
        Backend::Nvvm { toolchain, checkout } => rust_cuda::build(toolchain, checkout.as_deref(), &target.arch)?,
    };
    let line_table = match &target.backend {
        Backend::Llvm => lines::KERNELS,
        Backend::Nvvm { .. } => "none",
    };
    let of = "busload's kernels, built by `cargo xtask ptx` from gpu/";
    Ok(headed(of, target, line_table, &target.source_hash()?, &built))
}

/// The PTX of a crate of tests, likewise.
pub(crate) fn build_tests(of: TestCrate) -> Result<String> {
    let target = Target { backend: Backend::Llvm, arch: "sm_80".to_owned() };
    let built = llvm(of.package, of.folder, &target.arch)?;
    let folder = of.folder.trim_end_matches("src/");
    let what = format!("{}, built by `cargo xtask ptx` from {folder} and gpu/", of.what);
    Ok(headed(&what, &target, of.folder, &of.source_hash()?, &built))
}

/// PTX behind what says where it comes from.
fn headed(of: &str, target: &Target, line_table: &str, hash: &str, built: &(String, String, String)) -> String {
    let (compiler, flags, ptx) = built;
    format!(
        "// {of}: not to be edited.\n\
         // backend: {}\n// compiler: {compiler}\n// flags: {flags}\n// target: {}\n// line-table: {line_table}\n\
         // source-hash: {hash}\n//\n{}",
        target.backend_name(),
        target.arch,
        // What stands before it are comments of the compiler's.
        ptx.find(".version").map_or(ptx.as_str(), |start| &ptx[start..])
    )
}

/// Compiler, flags, and the PTX of a package's kernels, whose files are under `folder`, by rustc's own back end.
pub(crate) fn llvm(package: &str, folder: &str, arch: &str) -> Result<(String, String, String)> {
    if !has_rust_src() {
        return Err(Usage(anyhow::anyhow!("{RUST_SRC}; or build with `--backend nvvm`")).into());
    }
    // Jump threading, and the splitting of calls by what a condition says of their arguments, know nothing of convergence:
    // they copy a barrier into the branches of the condition, where the lanes of a warp no longer meet. Loops of a known
    // length are written out, as nvcc does: their loads can then wait together. The line table is made from the comments of
    // the assembly. An access in a macro has the position of the macro's call, as in the simulator.
    let flags = format!(
        "-C target-cpu={arch} -C panic=immediate-abort -Z mir-enable-passes=-JumpThreading \
         -C llvm-args=-callsite-splitting-duplication-threshold=0 -C llvm-args=-unroll-threshold=1500 \
         -C debuginfo=line-directives-only -C collapse-macro-debuginfo=yes -Z unstable-options -Z verbose-asm"
    );
    let target = root().join("target/ptx/llvm");
    let file = target.join(format!("{package}_{arch}.s"));
    let mut cargo = command("cargo");
    cargo.args(["rustc", "--quiet", "--package", package, "--lib", "--release", "--target", "nvptx64-nvidia-cuda"]);
    cargo.args(["-Zbuild-std=core", "--config", "profile.release.debug=false", "--target-dir"]).arg(&target);
    cargo.arg("--config").arg(format!("profile.release.package.{package}.codegen-units=1"));
    cargo.args(["--config", "profile.release.incremental=false"]);
    cargo.args(["--config", "profile.release.package.busload-gpu.overflow-checks=false", "--"]);
    cargo.arg(format!("--emit=asm={}", file.display())).args(flags.split(' '));
    // The pinned stable compiler has everything that is needed; none of it is stable for this target yet.
    cargo.env("RUSTC_BOOTSTRAP", "1").env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    ensure!(cargo.status().context("running cargo")?.success(), "the kernels do not compile for the GPU");
    let ptx = input::text(&file, input::SOURCE)?;
    let compiler = output(command("rustc").arg("--version"))?.trim().to_owned();
    Ok((compiler, flags, lines::of_kernels(&ptx, folder)?))
}

/// What is wrong with a build: accesses that should not be there, and kernels too many or too few.
pub(crate) fn problems(ptx: &Ptx) -> Vec<String> {
    let mut problems: Vec<_> = ptx.violations().iter().map(ToString::to_string).collect();
    let entries = ptx.entries();
    let kernels: Vec<_> = FAMILIES.iter().flat_map(|family| family.kernels).map(|entry| entry.kernel.name).collect();
    let missing = kernels.iter().filter(|kernel| !entries.contains_key(*kernel));
    problems.extend(missing.map(|kernel| format!("the PTX has no entry for the kernel {kernel}")));
    let unknown = entries.keys().filter(|entry| !kernels.contains(entry));
    problems.extend(unknown.map(|entry| format!("the PTX's entry {entry} is in no family's list")));
    problems
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
        let ptx = build(target)?;
        let problems = problems(&Ptx::new(&*ptx));
        ensure!(problems.is_empty(), "{}", problems.join("\n"));
        write(&file, &ptx)?;
    }
    Ok(file)
}

/// Replaces a file in one step.
pub(crate) fn write(file: &Path, text: &str) -> Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let temporary = tempfile::NamedTempFile::new_in(folder).with_context(|| folder.display().to_string())?;
    std::fs::write(temporary.path(), text)?;
    set_readable(temporary.path())?;
    temporary.persist(file).with_context(|| file.display().to_string())?;
    Ok(())
}

/// Temporary files are private; what replaces a source file is not.
#[cfg(unix)]
fn set_readable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644))?)
}

#[cfg(not(unix))]
fn set_readable(_: &Path) -> Result<()> {
    Ok(())
}
