//! The folder to copy to a GPU machine without Rust: the program, what it is, and the notices of all that is linked in.

use crate::check;
use crate::command::command;
use anyhow::{Context, Result, ensure};
use busload::build::output;
use busload::cli::{self, Usage};
use busload::suite::BUSLOAD;
use busload::{input, provenance, report};
use serde_json::Value;
use sources::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const PROGRAM: &str = "busload";
const README: &str = "README.md";
/// For shells, and for `man`: folders.
const COMPLETIONS: &str = "completions";
const MANUAL: &str = "man";
const NOTICES: &str = "THIRD-PARTY-NOTICES.txt";
/// What the toolchain says of the standard library and of what that contains.
const LIBRARY_NOTICES: &str = "COPYRIGHT-rust-library.html";

/// What is copied from the root of the workspace.
const TEXTS: [&str; 3] = [README, "LICENSE-APACHE", "LICENSE-MIT"];

/// Makes the folder, or replaces the files that were made there before. The program alone does it: the kernels' PTX is in
/// it, and it finds the driver when it runs.
pub(crate) fn make(folder: &Path) -> Result<bool> {
    let folder = prepare(folder)?;
    check::cargo(&["build", "--release", "--package", "busload", "--bin", "busload"])?;
    // Cargo has put it beside this program's own profile, wherever its target folder is.
    let this = std::env::current_exe().context("this program's path")?;
    let target = this.ancestors().nth(2).with_context(|| this.display().to_string())?;
    let built = target.join("release").join(PROGRAM);
    ensure!(built.is_file(), "{} is not there, though cargo has built it", built.display());
    let sysroot = output(command("rustc").args(["--print", "sysroot"]))?;
    let library = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    let notices = notices(&metadata()?, library.is_file())?;

    replace(&built, &folder.join(PROGRAM))?;
    for text in TEXTS {
        replace(&root().join(text), &folder.join(text))?;
    }
    if library.is_file() {
        replace(&library, &folder.join(LIBRARY_NOTICES))?;
    }
    busload::build::write(&folder.join(NOTICES), &notices)?;
    if let Some((commit, is_dirty)) = provenance::commit_of(root()) {
        let text = format!("{commit}{}\n", if is_dirty { " dirty" } else { "" });
        busload::build::write(&folder.join(provenance::COMMIT_FILE), &text)?;
    }
    cli::write_completions(&BUSLOAD, &folder.join(COMPLETIONS))?;
    cli::write_manual(&BUSLOAD, &folder.join(MANUAL))?;
    report::print(&format!("{}: copy it to the GPU machine and run ./busload bench\n", folder.display()))?;
    Ok(true)
}

/// The folder's one true path, made if it is not there. A folder in which a name is taken by what no `dist` made is refused.
fn prepare(folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    let readme = input::text(folder.join(README), input::SOURCE).unwrap_or_default();
    let ours = folder.join(PROGRAM).is_file() && readme.lines().next() == Some("# busload");
    let names =
        [&[PROGRAM, NOTICES, LIBRARY_NOTICES, COMPLETIONS, MANUAL, provenance::COMMIT_FILE], &TEXTS[..]].concat();
    match names.iter().find(|name| folder.join(name).symlink_metadata().is_ok()) {
        Some(name) if !ours => Err(Usage(anyhow::anyhow!(
            "{} is there already, and {} is no folder that `dist` made: name another",
            folder.join(name).display(),
            folder.display()
        ))
        .into()),
        _ => Ok(folder),
    }
}

/// Puts a copy of a file in another's place, in one step, even if it is the same one.
fn replace(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().expect("a file in a folder");
    let temporary = tempfile::NamedTempFile::new_in(folder).with_context(|| folder.display().to_string())?;
    std::fs::copy(from, temporary.path()).with_context(|| from.display().to_string())?;
    temporary.persist(to).with_context(|| to.display().to_string())?;
    Ok(())
}

/// What cargo knows of this workspace's packages and of all that they depend on, on this platform.
fn metadata() -> Result<Value> {
    let version = output(command("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let cargo = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
    serde_json::from_str(&output(command("cargo").args(cargo))?).context("the output of cargo metadata")
}

/// The packages that the program links, besides the workspace's own: what runs in the compiler alone is not among them.
fn linked(metadata: &Value) -> Result<Vec<&Value>> {
    let array = |value: &'static str| move |of: &'_ Value| of[value].as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<_, _> = metadata["packages"]
        .as_array()
        .context("no packages")?
        .iter()
        .map(|package| (&package["id"], package))
        .map(|(id, package)| (id.as_str().unwrap_or_default(), package))
        .collect();
    let nodes = metadata["resolve"]["nodes"].as_array().context("no dependencies")?;
    let nodes: BTreeMap<_, _> = nodes.iter().map(|node| (node["id"].as_str().unwrap_or_default(), node)).collect();
    let is_macro =
        |package: &Value| array("targets")(package).iter().flat_map(array("kind")).any(|kind| kind == "proc-macro");
    let program = packages.iter().find(|(_, package)| package["name"] == PROGRAM && package["source"].is_null());
    let mut waiting = vec![*program.context("no package busload")?.0];
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        let package = packages.get(id).with_context(|| format!("{id}: no such package"))?;
        if is_macro(package) || !seen.insert(id) {
            continue;
        }
        let node = nodes.get(id).with_context(|| format!("{id}: no dependencies"))?;
        for dependency in node["deps"].as_array().context("no dependencies")? {
            if array("dep_kinds")(dependency).iter().any(|kind| kind["kind"].is_null()) {
                waiting.push(dependency["pkg"].as_str().context("a dependency without a package")?);
            }
        }
    }
    let mut linked: Vec<_> =
        seen.iter().map(|id| packages[id]).filter(|package| !package["source"].is_null()).collect();
    linked.sort_by_key(|package| (package["name"].as_str(), package["version"].as_str()));
    Ok(linked)
}

/// Each package with its licence, then every text once.
fn notices(metadata: &Value, library_apart: bool) -> Result<String> {
    let mut out = "The program busload contains the works listed here, each under the licence named.\n\n".to_owned();
    writeln!(
        out,
        "The Rust standard library: MIT OR Apache-2.0, https://github.com/rust-lang/rust{}",
        if library_apart { format!("; its notices are in {LIBRARY_NOTICES}") } else { String::new() }
    )?;
    let mut texts = Vec::<String>::new();
    for package in linked(metadata)? {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        writeln!(
            out,
            "\n{} {}: {}",
            field("name"),
            field("version"),
            package["license"].as_str().unwrap_or("see below")
        )?;
        if let Some(repository) = package["repository"].as_str() {
            writeln!(out, "  {repository}")?;
        }
        let folder = Path::new(field("manifest_path")).parent().context("a manifest without a folder")?;
        let files = licence_files(folder, package["license_file"].as_str())?;
        if files.is_empty() {
            let authors = package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str);
            for author in authors {
                writeln!(out, "  by {author}")?;
            }
            writeln!(out, "  the package has no file with the licence")?;
        }
        for file in files {
            let text =
                String::from_utf8_lossy(&input::bytes(&file, input::SOURCE)?).replace("\r\n", "\n").trim().to_owned();
            let number = texts.iter().position(|known| *known == text).unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            });
            let name = file.strip_prefix(folder).unwrap_or(&file).display();
            writeln!(out, "  {name}: text {}", number + 1)?;
        }
    }
    for (i, text) in texts.iter().enumerate() {
        writeln!(out, "\n{}\nText {}\n\n{text}", "=".repeat(80), i + 1)?;
    }
    Ok(out)
}

/// The files of a package that look like licences and notices, and the one that it names.
fn licence_files(folder: &Path, named: Option<&str>) -> Result<Vec<PathBuf>> {
    const BEGINNINGS: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
    let mut files = BTreeSet::new();
    for entry in walkdir::WalkDir::new(folder).min_depth(1).max_depth(2) {
        let entry = entry.with_context(|| folder.display().to_string())?;
        let below = entry.path().strip_prefix(folder)?.to_string_lossy().to_uppercase();
        // Also those in a folder of that name, and the texts that stand beside fonts.
        let is_of_font = below.starts_with("FONTS") && below.ends_with(".TXT");
        if entry.file_type().is_file()
            && (is_of_font || BEGINNINGS.iter().any(|beginning| below.starts_with(beginning)))
        {
            files.insert(entry.into_path());
        }
    }
    files.extend(named.map(|named| folder.join(named)).filter(|file| file.is_file()));
    Ok(files.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, text).expect("a file");
        }
        folder
    }

    #[test]
    fn a_folder_that_no_dist_made_is_refused_by_the_file_that_is_in_the_way() {
        for files in [
            &[("busload", "a program"), ("other", "")][..],
            &[("README.md", "# another project\n")],
            &[("busload", "a program"), ("README.md", "# another project\n")],
            &[("THIRD-PARTY-NOTICES.txt", "")],
        ] {
            let folder = folder_with(files);
            let error = prepare(folder.path()).expect_err("somebody's folder");
            let says = error.to_string();
            assert!(error.is::<Usage>() && says.contains(files[0].0) && says.contains("name another"), "{says}");
        }
        assert!(prepare(root()).is_err(), "the workspace itself");
    }

    #[test]
    fn the_folder_is_judged_by_where_it_is() {
        let folder = folder_with(&[("busload", "a program"), ("inside/results.json", "")]);
        let up = folder.path().join("inside").join("..");
        assert!(prepare(&up).is_err(), "the parent has a program of its own");
        let inside = prepare(&up.join("inside")).expect("a folder with other files");
        assert_eq!(inside, folder.path().join("inside").canonicalize().expect("it is there"));
        assert!(prepare(&inside.join("new/folder")).expect("a new one").is_dir());
    }

    #[test]
    fn a_folder_of_ours_keeps_what_else_is_in_it() {
        let folder = folder_with(&[("busload", "old"), ("README.md", "# busload\n"), ("results.json", "{}")]);
        let path = prepare(folder.path()).expect("made before");
        replace(&path.join("results.json"), &path.join("busload")).expect("a new program");
        let text = |name: &str| std::fs::read_to_string(path.join(name)).expect(name);
        assert_eq!((text("busload"), text("results.json")), ("{}".to_owned(), "{}".to_owned()));
        replace(&path.join("busload"), &path.join("busload")).expect("the same file");
        assert_eq!(text("busload"), "{}");
    }

    #[test]
    fn the_notices_name_what_is_linked_in_with_its_texts_and_nothing_else() {
        let metadata = metadata().expect("cargo metadata");
        let names: Vec<_> =
            linked(&metadata).expect("packages").iter().map(|package| package["name"].as_str()).collect();
        for name in ["clap", "corosensei", "libm", "plotters", "resvg", "serde_core"] {
            assert!(names.contains(&Some(name)), "{name}: {names:?}");
        }
        // Of the workspace, of the compiler, of tests and of this program alone.
        for name in ["busload", "busload-gpu", "syn", "serde_derive", "divan", "insta"] {
            assert!(!names.contains(&Some(name)), "{name}: {names:?}");
        }
        let notices = notices(&metadata, false).expect("notices");
        assert!(notices.contains("\nclap ") && notices.contains("MIT OR Apache-2.0"), "{notices}");
        assert!(notices.contains("TERMS AND CONDITIONS FOR USE, REPRODUCTION"), "no text of the Apache licence");
        assert!(notices.contains("UBUNTU FONT LICENCE"), "no text of the licence of a font that is built in");
        let with_text = notices.matches("LICENSE-MIT: text ").count();
        assert!(with_text > 10, "{with_text} packages with their text of the licence");
    }
}
