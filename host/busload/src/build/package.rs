//! The PTX of a package with kernels of its own: built, found, and held to the sources as they are.

use super::{Built, RUST_SRC, Source, hash, headed, llvm, output};
use crate::input;
use crate::ptx::Ptx;
use crate::suite::Suite;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The facade's sources, where this program was compiled: the PTX is made of them too.
const FACADE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../gpu");
const OF_FACADE: [&str; 4] = ["Cargo.toml", "src/device", "src/lib.rs", "macros/src"];

/// What a library of kernels needs on a GPU, and its sources need not say.
const ATTRIBUTES: [&str; 3] = ["no_std", "allow(internal_features)", "feature(abi_ptx,asm_experimental_arch)"];

/// What is known of a package's PTX.
pub enum Found {
    /// It is of the sources as they are, or they are not at hand.
    Fresh(Ptx),
    /// It is of other sources.
    Stale(Ptx),
    /// There is none.
    Missing,
}

/// The PTX that stands beside the sources of the package in `folder`.
///
/// # Errors
/// If a file cannot be read.
pub fn found(suite: &Suite, folder: &Path) -> Result<Found> {
    let file = suite.file();
    if !file.exists() {
        return Ok(Found::Missing);
    }
    let ptx = Ptx::new(input::text(&file, input::SOURCE)?);
    // A program that was taken to another machine has the PTX that was taken with it.
    let is_fresh = !folder.join("src").is_dir() || ptx.header("source-hash") == Some(&source_hash(folder)?);
    Ok(if is_fresh { Found::Fresh(ptx) } else { Found::Stale(ptx) })
}

/// A hash of everything that the PTX of the package in `folder` is made from.
///
/// # Errors
/// If a source cannot be read.
pub fn source_hash(folder: &Path) -> Result<String> {
    let facade = Path::new(FACADE);
    let of_facade: &[&str] = if facade.join("src").is_dir() { &OF_FACADE } else { &[] };
    hash::hash_of(&[(folder, &["Cargo.toml", "src"]), (facade, of_facade)])
}

/// The PTX of the sources as they are, with its header.
///
/// # Errors
/// If they do not compile for a GPU, or what comes out is not what the families say.
pub fn build(suite: &Suite, folder: &Path, arch: &str) -> Result<String> {
    let (package, lines, root) = (suite.name, lines(folder)?, folder);
    let target = root.join("target/ptx");
    let source = Source { package, folder, lines: &lines, attributes: &ATTRIBUTES, arch, target: &target };
    let built: Built = llvm(&source)?;
    let ptx = headed(
        &format!("The kernels of {package}, built by its command `ptx`"),
        "llvm",
        arch,
        &lines,
        &source_hash(folder)?,
        &built,
    );
    let problems = problems(suite, &Ptx::new(&*ptx));
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(ptx)
}

/// Where the sources of the package are, as the compiler names them: relative to its workspace.
fn lines(folder: &Path) -> Result<String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["locate-project", "--workspace", "--message-format", "plain"]).current_dir(folder);
    let manifest = PathBuf::from(output(&mut cargo)?.trim());
    let within = manifest.parent().and_then(|root| folder.strip_prefix(root).ok()).with_context(|| {
        format!("{} is not in the workspace of {}: build in a checkout of it", folder.display(), manifest.display())
    })?;
    Ok(within.join("src/").to_string_lossy().replace('\\', "/"))
}

/// What is wrong with a build: accesses that should not be there, and kernels too many or too few.
#[must_use]
pub fn problems(suite: &Suite, ptx: &Ptx) -> Vec<String> {
    let mut problems: Vec<_> = ptx.violations().iter().map(ToString::to_string).collect();
    let entries = ptx.entries();
    let kernels: Vec<_> = suite.names().collect();
    let missing = kernels.iter().filter(|kernel| !entries.contains_key(*kernel));
    problems.extend(missing.map(|kernel| format!("the PTX has no entry for the kernel {kernel}")));
    let unknown = entries.keys().filter(|entry| !kernels.contains(entry));
    problems.extend(unknown.map(|entry| format!("the PTX's entry {entry} is in no family's list")));
    problems
}

/// PTX of the sources as they are: what stands beside them, or else a build that is kept under `target`. `say` is told what takes time.
///
/// # Errors
/// If there is none, and none can be built here.
pub fn fresh(suite: &Suite, folder: &Path, say: &dyn Fn(&str)) -> Result<Ptx> {
    let (shown, what) = match found(suite, folder)? {
        Found::Fresh(ptx) => return Ok(ptx),
        Found::Stale(_) => (suite.file(), "was built from other sources"),
        Found::Missing => (suite.file(), "is not there"),
    };
    let shown = shown.display();
    let kept = folder.join(format!("target/ptx/{}_sm_80.ptx", suite.name));
    if let Ok(text) = input::text(&kept, input::SOURCE) {
        let ptx = Ptx::new(text);
        if ptx.header("source-hash") == Some(&source_hash(folder)?) {
            say(&format!("{shown} {what}: a build of these sources is taken (the command `ptx` writes it there)."));
            return Ok(ptx);
        }
    }
    ensure!(
        super::has_rust_src(folder),
        "{shown} {what}, and this machine cannot build PTX: {RUST_SRC}; then `ptx` builds it"
    );
    say(&format!("{shown} {what}: building it (the command `ptx` writes it there)…"));
    let text = build(suite, folder, "sm_80")?;
    super::write(&kept, &text)?;
    Ok(Ptx::new(text))
}
