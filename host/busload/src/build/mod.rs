//! Builds PTX from the sources of a package, by rustc's own NVPTX back end: busload's own kernels, and those of a crate with kernels of its
//! own.
//!
//! | file | what |
//! | --- | --- |
//! | `mod.rs` | the compiler's call, the header, files |
//! | `lines.rs` | the line table, which names the kernels' own lines |
//! | `hash.rs` | a hash of sources: whether PTX is of them |
//! | `package.rs` | the PTX of a package that is no part of busload |

mod hash;
mod lines;
pub mod package;

pub use hash::hash;

use crate::input;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// What to install where PTX cannot be built.
pub const RUST_SRC: &str = "the standard library's source is missing: run `rustup component add rust-src`";

/// Kernels that are to be built.
pub struct Source<'a> {
    /// Their package.
    pub package: &'a str,
    /// Where its workspace or itself is: the compiler runs there.
    pub folder: &'a Path,
    /// Where their files are, as the compiler names them: its line table has the lines of these alone.
    pub lines: &'a str,
    /// What the compiler is told besides, for their crate alone.
    pub flags: &'a [String],
    /// As in `sm_80`.
    pub arch: &'a str,
    /// A folder for what the compiler leaves.
    pub target: &'a Path,
}

/// PTX, and what made it.
pub struct Built {
    /// The compiler, by name and version.
    pub compiler: String,
    /// Its flags.
    pub flags: String,
    /// The text.
    pub ptx: String,
}

/// An architecture from the command line.
///
/// # Errors
/// If it is none, or one that lacks what the facade uses.
pub fn parse_arch(text: &str) -> Result<String, String> {
    match text.strip_prefix("sm_").map(str::parse::<u32>) {
        Some(Ok(80..=999)) => Ok(text.to_owned()),
        Some(Ok(_)) => Err("the kernels use instructions of sm_80: choose that or a later one".to_owned()),
        _ => Err("an architecture is written as in sm_80".to_owned()),
    }
}

/// The standard output of a program that succeeds.
///
/// # Errors
/// If it does not: with what it said.
pub fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("running {name}"))?;
    ensure!(output.status.success(), "{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?)
}

/// A program that runs in `folder`, where cargo's and rustup's settings hold.
fn command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    command
}

/// Whether the toolchain of `folder` has the source of the standard library.
#[must_use]
pub fn has_rust_src(folder: &Path) -> bool {
    let sysroot = output(command("rustc", folder).args(["--print", "sysroot"]));
    sysroot.is_ok_and(|path| Path::new(path.trim()).join("lib/rustlib/src/rust/library/core/src/lib.rs").is_file())
}

/// The PTX of kernels, by rustc's own back end.
///
/// # Errors
/// If they do not compile, or none of their lines is found in what comes out.
pub fn llvm(source: &Source<'_>) -> Result<Built> {
    let Source { package, folder, lines, flags: more, arch, target } = source;
    // Jump threading, and the splitting of calls by what a condition says of their arguments, know nothing of convergence:
    // they copy a barrier into the branches of the condition, where the lanes of a warp no longer meet. Loops of a known
    // length are written out, as nvcc does: their loads can then wait together. The line table is made from the comments of
    // the assembly. An access in a macro has the position of the macro's call, as in the simulator.
    let flags = format!(
        "-C target-cpu={arch} -C panic=immediate-abort -Z mir-enable-passes=-JumpThreading \
         -C llvm-args=-callsite-splitting-duplication-threshold=0 -C llvm-args=-unroll-threshold=1500 \
         -C debuginfo=line-directives-only -C collapse-macro-debuginfo=yes -Z unstable-options -Z verbose-asm"
    );
    let flags = more.iter().fold(flags, |flags, more| format!("{flags} {more}"));
    let file = target.join(format!("{package}_{arch}.s"));
    let mut cargo = command("cargo", folder);
    cargo.args(["rustc", "--quiet", "--package", package, "--lib", "--release", "--target", "nvptx64-nvidia-cuda"]);
    cargo.args(["-Zbuild-std=core", "--config", "profile.release.debug=false", "--target-dir"]).arg(target);
    cargo.arg("--config").arg(format!("profile.release.package.{package}.codegen-units=1"));
    cargo.args(["--config", "profile.release.incremental=false"]);
    for package in [package, "busload-gpu"] {
        cargo.arg("--config").arg(format!("profile.release.package.{package}.overflow-checks=false"));
    }
    cargo.arg("--").arg(format!("--emit=asm={}", file.display())).args(flags.split(' '));
    // What plans alone use is dead here; the build for the host warns of what is dead in both.
    cargo.args(["-A", "dead_code"]);
    // The pinned stable compiler has everything that is needed; none of it is stable for this target yet.
    cargo.env("RUSTC_BOOTSTRAP", "1").env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    ensure!(
        cargo.status().context("running cargo")?.success(),
        "the kernels of {package} do not compile for the GPU: the compiler's errors say where"
    );
    let ptx = input::text(&file, input::SOURCE)?;
    let compiler = output(command("rustc", folder).arg("--version"))?.trim().to_owned();
    Ok(Built { compiler, flags, ptx: lines::of_kernels(&ptx, lines)? })
}

/// PTX behind what says where it comes from: `of` what it is, by which back end and for which target, with which line table.
#[must_use]
pub fn headed(of: &str, backend: &str, arch: &str, line_table: &str, hash: &str, built: &Built) -> String {
    let Built { compiler, flags, ptx } = built;
    format!(
        "// {of}: not to be edited.\n\
         // backend: {backend}\n// compiler: {compiler}\n// flags: {flags}\n// target: {arch}\n// line-table: {line_table}\n\
         // source-hash: {hash}\n//\n{}",
        // What stands before it are comments of the compiler's.
        ptx.find(".version").map_or(ptx.as_str(), |start| &ptx[start..])
    )
}

/// Replaces a file in one step.
///
/// # Errors
/// If it cannot be written.
pub fn write(file: &Path, text: &str) -> Result<()> {
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
