//! `new`: a kernel to begin from, in its family's file or in a family of its own. What it writes compiles, gives its reference and has its
//! counts stated, so that all tests pass; its author changes the body, the comment and the entry.

mod file;
mod names;
// A kernel that #[kernel] would refuse is not written either.
#[path = "../../gpu/macros/src/reserved.rs"]
mod reserved;

use crate::build;
use crate::check::cargo;
use crate::command::command as program;
use anyhow::{Context, Result, ensure};
use busload::build::{RUST_SRC, write};
use busload::cli::Usage;
use busload::input;
use busload::report;
use clap::{Arg, ArgAction, ArgMatches, Command};
use sources::root;
use std::path::{Path, PathBuf};

/// Where the families are, relative to the root of the workspace.
const KERNELS: &str = "gpu/src/kernels";

/// The first kernel of a new family, as a family of its own; tests run it.
const TEMPLATE: &str = include_str!("new/template.rs");

/// What a kernel's function, list and so on begin as.
pub(crate) fn command() -> Command {
    Command::new("new")
        .about("Write a kernel to begin from: a variant in its family's file, or a new family")
        .long_about(
            "Writes a kernel called FAMILY_VARIANT that compiles, is verified and has its counts stated.\n\n\
             If there is such a family, the kernel is a copy of the first in its list, or of --like, with an entry of its own behind \
             the others. If there is none, a family begins with it: a copy of an array, in a new file, and a line in \
             gpu/src/kernels/mod.rs. Nothing else needs a change.\n\n\
             Then the kernel runs in the simulator, and the committed PTX is rebuilt where rust-src is installed. Change its body, \
             its comment and its entry, and run `cargo xtask simulate --kernel FAMILY_VARIANT` after each edit.\n\n\
             Examples:\n  \
             cargo xtask new transpose diagonal             a variant in gpu/src/kernels/transpose.rs\n  \
             cargo xtask new transpose diagonal --like transpose_tiled\n  \
             cargo xtask new histogram global               a family, gpu/src/kernels/histogram.rs",
        )
        .arg(Arg::new("family").value_name("FAMILY").required(true).help("The family, as in transpose"))
        .arg(Arg::new("variant").value_name("VARIANT").required(true).help("The variant without its family, as in diagonal"))
        .arg(
            Arg::new("like")
                .long("like")
                .value_name("KERNEL")
                .help("Copy this kernel of the family instead of the first in its list"),
        )
        .arg(
            Arg::new("new-family")
                .long("new-family")
                .action(ArgAction::SetTrue)
                .conflicts_with("like")
                .help("Begin a family, also if its name is nearly that of another"),
        )
        .arg(
            Arg::new("source-only")
                .long("source-only")
                .action(ArgAction::SetTrue)
                .help("Write the source alone: do not run the kernel, and leave the PTX as it is"),
        )
}

/// What was asked for.
struct Asked<'a> {
    family: &'a str,
    variant: &'a str,
    like: Option<&'a str>,
    new_family: bool,
}

/// A file to be written.
#[derive(Debug)]
struct Change {
    /// Relative to the root of the workspace.
    file: PathBuf,
    /// What stands in it, if it is there.
    before: Option<String>,
    after: String,
}

/// Writes what was asked for, runs it, and rebuilds the PTX.
pub(crate) fn make(matches: &ArgMatches) -> Result<bool> {
    let text = |name| matches.get_one::<String>(name).map(String::as_str);
    let asked = Asked {
        family: text("family").expect("it is required"),
        variant: text("variant").expect("it is required"),
        like: text("like"),
        new_family: matches.get_flag("new-family"),
    };
    let (kernel, mut changes) = changes(root(), &asked).map_err(Usage)?;
    for change in changes.iter_mut().filter(|change| !change.file.ends_with("mod.rs")) {
        match formatted(&change.after) {
            Ok(text) => change.after = text,
            Err(error) => report::say(&format!("warning: not formatted, run `cargo fmt`: {error:#}")),
        }
    }
    write_all(root(), &changes)?;
    for Change { file, before, .. } in &changes {
        let what = match before {
            None => format!("a family with the kernel `{kernel}`"),
            Some(_) if file.ends_with("mod.rs") => "a line of its own for the family".to_owned(),
            Some(_) => format!("the kernel `{kernel}`, and its entry in the list"),
        };
        report::print(&format!("{}: {what}\n", file.display()))?;
    }
    let pattern = format!("^{kernel}$");
    if !matches.get_flag("source-only") {
        cargo(&["xtask", "simulate", "--kernel", &pattern])?;
        match build::has_rust_src() {
            true => cargo(&["xtask", "ptx"])?,
            false => report::say(&format!("The committed PTX was not rebuilt, and lacks `{kernel}`: {RUST_SRC}")),
        }
    }
    report::print(&format!(
        "Next: change the body of `{kernel}`, its comment and its entry, with\n  \
         cargo xtask simulate --kernel '{pattern}'\nafter each edit, and at last\n  cargo xtask ptx\n  cargo xtask ci\n\
         docs/adding-a-kernel.md says what the entry states.\n"
    ))?;
    Ok(true)
}

/// The kernel's name, and the files that change for it.
///
/// # Errors
/// If it cannot be called so, or a file is not laid out as families are. Nothing was written.
fn changes(root: &Path, asked: &Asked) -> Result<(String, Vec<Change>)> {
    let Asked { family, variant, like, new_family } = *asked;
    names::check_family(family)?;
    let kernel = names::kernel(family, variant)?;
    let list = Path::new(KERNELS).join("mod.rs");
    let read = |file: &Path| input::text(root.join(file), input::SOURCE).with_context(|| file.display().to_string());
    let listed = read(&list)?;
    let families = file::families(&list, &listed)?;
    let mut files = Vec::new();
    for family in &families {
        let file = Path::new(KERNELS).join(format!("{family}.rs"));
        files.push((file.clone(), read(&file)?));
    }
    names::check_free(&kernel, files.iter().map(|(file, text)| (&**file, &**text)))?;
    let of_family = Path::new(KERNELS).join(format!("{family}.rs"));
    if let Some((file, text)) = files.into_iter().find(|(file, _)| *file == of_family) {
        let shown = file.display();
        ensure!(!new_family, "the family `{family}` is there already, in {shown}: leave --new-family out");
        let after = file::with_variant(&file, &text, &kernel, like)?;
        return Ok((kernel, vec![Change { file, before: Some(text), after }]));
    }
    let names = || families.iter().map(String::as_str);
    if let Some(like) = like {
        anyhow::bail!("--like {like}: there is no family `{family}` whose kernels could be copied; there are {}", {
            names().collect::<Vec<_>>().join(", ")
        });
    }
    if let Some(near) = names::nearly(family, names()).filter(|_| !new_family) {
        anyhow::bail!(
            "there is no family `{family}`, and there is `{near}`: `cargo xtask new {near} {variant}` makes a variant of it, and \
             `cargo xtask new {family} {variant} --new-family` begins another"
        );
    }
    ensure!(
        !root.join(&of_family).exists(),
        "{} is there, and {} does not list it: add the line `{family}` to `families! {{ … }}`, or take the file away",
        of_family.display(),
        list.display()
    );
    let first = Change { file: of_family, before: None, after: file::of_family(TEMPLATE, family, &kernel) };
    let after = file::with_family(&list, &listed, family)?;
    Ok((kernel, vec![first, Change { file: list, before: Some(listed), after }]))
}

/// Writes all files, each in one step, or leaves all as they were.
fn write_all(root: &Path, changes: &[Change]) -> Result<()> {
    for (place, change) in changes.iter().enumerate() {
        let Err(error) = write(&root.join(&change.file), &change.after) else { continue };
        for Change { file, before, .. } in &changes[..place] {
            let file = root.join(file);
            let undone = match before {
                Some(text) => write(&file, text),
                None => std::fs::remove_file(&file).map_err(Into::into),
            };
            if let Err(error) = undone {
                report::say(&format!("warning: {} could not be undone: {error:#}", file.display()));
            }
        }
        return Err(error.context(format!("{}: nothing was changed", change.file.display())));
    }
    Ok(())
}

/// The text as rustfmt lays it out.
fn formatted(text: &str) -> Result<String> {
    let file = tempfile::Builder::new().suffix(".rs").tempfile().context("a temporary file")?;
    std::fs::write(file.path(), text)?;
    let mut rustfmt = program("rustfmt");
    rustfmt.args(["--edition", "2024", "--config-path"]).arg(root().join("rustfmt.toml")).arg(file.path());
    let output = rustfmt.output().context("running rustfmt (`rustup component add rustfmt`)")?;
    ensure!(output.status.success(), "rustfmt: {}", String::from_utf8_lossy(&output.stderr).trim());
    input::text(file.path(), input::SOURCE).map_err(Into::into)
}

#[cfg(test)]
mod tests;
