//! The PTX of a package with kernels of its own: built, found, and held to the sources as they are.

use super::{RUST_SRC, Source, hash, headed, llvm, output};
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
    // The facade may be compiled where its files have the same names, which the line table must not take for these.
    let marked = format!("{package}/{lines}");
    let mut flags = ATTRIBUTES.map(|attribute| format!("-Zcrate-attr={attribute}")).to_vec();
    flags.push(format!("--remap-path-prefix={lines}={marked}"));
    let mut built = llvm(&Source { package, folder, lines: &marked, flags: &flags, arch, target: &target })?;
    built.ptx = built.ptx.replace(&format!("\"{marked}"), &format!("\"{lines}"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_is_fresh_stale_or_missing_and_without_sources_what_is_there_will_do() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place: &'static str = folder.path().to_str().expect("a name").to_owned().leak();
        let suite = Suite::of_package("own-crate", place, &[]);
        let folder = folder.path();
        let write = |file: &str, text: &str| super::super::write(&folder.join(file), text).expect("a file");
        write("Cargo.toml", "");
        write("src/lib.rs", "//! Kernels.");
        assert!(matches!(found(&suite, folder), Ok(Found::Missing)));
        write("ptx/own_crate_sm_80.ptx", &format!("// source-hash: {}\n", source_hash(folder).expect("a hash")));
        assert!(matches!(found(&suite, folder), Ok(Found::Fresh(_))));
        assert!(fresh(&suite, folder, &|_| panic!("there is nothing to say")).is_ok());
        write("src/lib.rs", "//! Other kernels.");
        assert!(matches!(found(&suite, folder), Ok(Found::Stale(_))));
        // A build of these sources that was kept.
        write("target/ptx/own-crate_sm_80.ptx", &format!("// source-hash: {}\n", source_hash(folder).expect("a hash")));
        let said = std::cell::RefCell::new(String::new());
        assert!(fresh(&suite, folder, &|text| said.borrow_mut().push_str(text)).is_ok());
        assert!(said.borrow().contains("own_crate_sm_80.ptx was built from other sources"), "{}", said.borrow());
        std::fs::remove_dir_all(folder.join("src")).expect("it is there");
        assert!(matches!(found(&suite, folder), Ok(Found::Fresh(_))), "nothing tells that it is stale");
    }

    #[test]
    fn sources_are_named_from_the_workspace_that_they_are_in() {
        let facade = Path::new(FACADE).canonicalize().expect("the facade's sources");
        assert_eq!(lines(&facade).expect("a folder of this workspace"), "gpu/src/");
    }

    #[test]
    fn entries_and_lists_are_the_same() {
        let suite = crate::suite::BUSLOAD;
        assert_eq!(problems(&suite, &Ptx::embedded()), [""; 0]);
        static COPIES: &[&gpu::suite::Family] = &[&gpu::kernels::copy::FAMILY];
        let other = Suite::of_package("other", "", COPIES);
        let problems = problems(&other, &Ptx::new(".visible .entry copy_coalesced(\n.visible .entry mine(\n"));
        assert!(problems.contains(&"the PTX has no entry for the kernel copy_vec4".to_owned()), "{problems:?}");
        assert!(problems.contains(&"the PTX's entry mine is in no family's list".to_owned()), "{problems:?}");
    }
}
