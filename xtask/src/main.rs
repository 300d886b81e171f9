//! `cargo xtask`: the commands of `busload`, and those that need the sources.
//!
//! `sources` knows whether the committed PTX is stale, `build` makes it, `rust_cuda`
//! drives rust-cuda's toolchain, `corpus` takes the planted bugs to a GPU, `dist` the program to a machine without Rust,
//! `new` writes a kernel to begin from, `docs` makes the tables and plots of `docs/`, `check` is what CI runs.

mod build;
mod check;
mod command;
mod corpus;
mod dist;
mod docs;
mod new;
mod rust_cuda;
mod stats;

use anyhow::{Context, Result};
use build::{Backend, Target};
use busload::build::{RUST_SRC, parse_arch, write};
use busload::cli::{self, Usage};
use busload::cuda::Gpu;
use busload::doctor::Finding;
use busload::input;
use busload::ptx::Ptx;
use busload::report;
use busload::suite::BUSLOAD;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use sources::root;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match cli::parsed(commands(), &arguments) {
        Ok(matches) => cli::exit_code(run(&matches, arguments)),
        Err(code) => code,
    }
}

fn commands() -> Command {
    cli::command(&BUSLOAD)
        .name("cargo xtask")
        .bin_name("cargo xtask")
        .mut_subcommand("ptx", |_| ptx_command())
        .subcommand(new::command())
        .subcommand(
            Command::new("dist").about("Make a folder to copy to a GPU machine without Rust").arg(
                Arg::new("folder")
                    .value_name("FOLDER")
                    .value_parser(value_parser!(PathBuf))
                    .help("The folder; files of its own are replaced [default: dist in the workspace]"),
            ),
        )
        .subcommand(
            Command::new("corpus")
                .about("Make a folder that holds a GPU's own tools to the sanitizer's planted bugs")
                .arg(
                    Arg::new("folder")
                        .value_name("FOLDER")
                        .value_parser(value_parser!(PathBuf))
                        .help("The folder; files of its own are replaced [default: target/corpus in the workspace]"),
                ),
        )
        .subcommand(
            Command::new("docs")
                .about("Make the tables and plots of docs/ from results/, and the layouts of JSON")
                .arg(
                    Arg::new("check")
                        .long("check")
                        .action(ArgAction::SetTrue)
                        .help("Write nothing, and name what is stale; exit status 1 if anything is"),
                ),
        )
        .subcommand(
            Command::new("test").about("Run all tests").arg(
                Arg::new("family")
                    .long("family")
                    .value_name("FAMILY")
                    .value_parser(PossibleValuesParser::new(BUSLOAD.families.iter().map(|family| family.name)))
                    .help("Test the kernels of this family alone"),
            ),
        )
        .subcommand(
            Command::new("ci").about(
                "Everything that a change must pass: formatting, lints, tests, documentation, the committed PTX",
            ),
        )
}

fn ptx_command() -> Command {
    Command::new("ptx")
        .about("Build the kernels' PTX; the default target replaces the committed build")
        .arg(
            Arg::new("backend")
                .long("backend")
                .value_name("BACKEND")
                .value_parser(PossibleValuesParser::new(["llvm", "nvvm"]))
                .default_value("llvm")
                .help("rustc's own NVPTX back end, or rust-cuda's rustc_codegen_nvvm"),
        )
        .arg(
            Arg::new("arch")
                .long("arch")
                .value_name("SM")
                .default_value("sm_80")
                .value_parser(parse_arch)
                .help("The architecture, as in sm_80"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(["check", "stats"])
                .help("Write the PTX there"),
        )
        .arg(
            Arg::new("check")
                .long("check")
                .action(ArgAction::SetTrue)
                .help("Build, compare with the committed build, and write nothing"),
        )
        .arg(
            Arg::new("stats")
                .long("stats")
                .action(ArgAction::SetTrue)
                .help("Print registers, shared memory, spills and access widths of each kernel, by ptxas"),
        )
        .arg(
            Arg::new("toolchain")
                .long("toolchain")
                .value_name("NAME")
                .default_value(rust_cuda::TOOLCHAIN)
                .help("The toolchain for rust-cuda, with rust-src, rustc-dev and llvm-tools"),
        )
        .arg(
            Arg::new("rust-cuda")
                .long("rust-cuda")
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .help("A checkout of rust-cuda instead of the pinned revision"),
        )
}

fn run(matches: &ArgMatches, mut arguments: Vec<OsString>) -> Result<bool> {
    match matches.subcommand() {
        Some(("ptx", matches)) => ptx(matches),
        Some(("new", matches)) => new::make(matches),
        Some(("dist", matches)) => dist::make(&folder(matches, "dist")),
        Some(("corpus", matches)) => corpus::write(&folder(matches, "target/corpus")),
        Some(("test", matches)) => check::test(matches.get_one::<String>("family").map(String::as_str)),
        Some(("docs", matches)) => docs::make(matches.get_flag("check")),
        Some(("ci", _)) => check::ci(),
        Some(("doctor", matches)) => {
            cli::run_doctor(&BUSLOAD, matches, doctor())?;
            Ok(true)
        }
        Some(("claims", sub)) if !sub.contains_id("results") => {
            for file in bench_results(&root().join(JUDGED_ON))? {
                arguments.extend(["--results".into(), file.into()]);
            }
            cli::run(&BUSLOAD, &commands().get_matches_from(&arguments))
        }
        Some(("bench", sub)) => match fresh_ptx(sub)? {
            Some(file) => {
                arguments.extend(["--ptx".into(), file.into()]);
                cli::run(&BUSLOAD, &commands().get_matches_from(&arguments))
            }
            None => cli::run(&BUSLOAD, matches),
        },
        Some(("verify", sub)) => {
            let is_chosen = ["machine", "ptx"].iter().any(|name| sub.contains_id(name));
            match fresh_ptx(sub)? {
                Some(file) => {
                    arguments.extend(["--ptx".into(), file.into()]);
                    // The user named no build, so the source is not left out for this one.
                    let machine: &[&str] = if is_chosen { &[] } else { &["--machine", "both"] };
                    arguments.extend(machine.iter().map(OsString::from));
                }
                None if !is_chosen => arguments.extend(machine_of_stale_ptx()?),
                None => {}
            }
            cli::run(&BUSLOAD, &commands().get_matches_from(&arguments))
        }
        Some(("predict", sub)) if !["machine", "ptx", "describe"].iter().any(|name| sub.contains_id(name)) => {
            arguments.extend(machine_of_stale_ptx()?);
            cli::run(&BUSLOAD, &commands().get_matches_from(&arguments))
        }
        _ => cli::run(&BUSLOAD, matches),
    }
}

/// What has the source carried out, and not the committed PTX, if that is of other sources: said, too.
fn machine_of_stale_ptx() -> Result<Vec<OsString>> {
    if sources::is_fresh(&Ptx::embedded())? {
        return Ok(Vec::new());
    }
    report::say("The committed PTX is of other sources (`cargo xtask ptx` rebuilds it): it is not carried out.");
    Ok(["--machine", "source"].map(OsString::from).to_vec())
}

/// The folder that the user names, or a default one in the workspace.
fn folder(matches: &ArgMatches, default: &str) -> PathBuf {
    matches.get_one::<PathBuf>("folder").cloned().unwrap_or_else(|| root().join(default))
}

/// The results of the GPU by which claims are judged, unless others are named: all that some claim asks for was measured there.
const JUDGED_ON: &str = "results/nvidia-h200";

/// What `bench` wrote of builds of our kernels; twins of theirs, profiles and predictions stand beside it.
fn bench_results(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(folder).min_depth(1) {
        let path = entry.with_context(|| folder.display().to_string())?.into_path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = input::text(&path, input::RESULTS)?;
        let object: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("{}: no JSON", path.display()))?;
        if object["command"] == "bench" && object["ptx"]["source_hash"].is_string() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A build of the sources as they are, for a launch that would otherwise run other kernels than the simulator: none if
/// the committed build will do.
fn fresh_ptx(matches: &ArgMatches) -> Result<Option<PathBuf>> {
    let given = matches.get_one::<String>("ptx").is_some();
    let on_sim = matches.get_one::<String>("on").is_some_and(|on| on == "sim");
    if given || on_sim || Gpu::open(Ptx::embedded().text()).is_err_and(|error| error.means_none()) {
        return Ok(None);
    }
    if rust_cuda::missing(rust_cuda::TOOLCHAIN).is_empty() {
        let backend = Backend::Nvvm { toolchain: rust_cuda::TOOLCHAIN.into(), checkout: None };
        let file = build::cached(&Target { backend, arch: "sm_80".into() })?;
        let text = input::text(&file, input::SOURCE)?;
        // Its PTX is of libNVVM's version, which may be newer than the driver.
        match Gpu::open(&text) {
            Ok(_) => return Ok(Some(file)),
            Err(error) => {
                report::say(&format!("rust-cuda's build is left out, and rustc's own is launched: {error}"));
            }
        }
    }
    if sources::is_fresh(&Ptx::embedded())? {
        return Ok(None);
    }
    if !build::has_rust_src() {
        return Err(Usage(anyhow::anyhow!(
            "the kernels were edited since the committed PTX was built, and this machine cannot build PTX: {}. \
             Or choose --on sim, which runs the sources as they are",
            RUST_SRC
        ))
        .into());
    }
    build::cached(&Target { backend: Backend::Llvm, arch: "sm_80".into() }).map(Some)
}

fn ptx(matches: &ArgMatches) -> Result<bool> {
    let arch = matches.get_one::<String>("arch").expect("has a default").clone();
    let of_nvvm = ["toolchain", "rust-cuda"]
        .into_iter()
        .find(|name| matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine));
    let backend = match matches.get_one::<String>("backend").map(String::as_str) {
        Some("nvvm") => Backend::Nvvm {
            toolchain: matches.get_one::<String>("toolchain").expect("has a default").clone(),
            checkout: matches.get_one::<PathBuf>("rust-cuda").cloned(),
        },
        _ => match of_nvvm {
            Some(name) => {
                return Err(Usage(anyhow::anyhow!("--{name} means nothing without --backend nvvm")).into());
            }
            None => Backend::Llvm,
        },
    };
    let target = Target { backend, arch };
    // The figures of the committed build need no compiler.
    if matches.get_flag("stats") && target.is_committed() && !build::has_rust_src() {
        report::print(&stats::table(&Ptx::embedded())?)?;
        return Ok(true);
    }
    let ptx = build::made(&target)?;
    let problems = build::problems(&Ptx::new(&*ptx));
    for problem in &problems {
        report::say(&format!("error: {problem}"));
    }
    if !problems.is_empty() {
        return Ok(false);
    }
    if matches.get_flag("stats") {
        report::print(&stats::table(&Ptx::new(ptx))?)?;
        return Ok(true);
    }
    let output = matches.get_one::<PathBuf>("output").cloned();
    let mut built = vec![(output.clone().unwrap_or_else(|| target.default_file()), ptx)];
    // The planted bugs and the primitives' kernels are committed beside.
    if target.is_committed() && output.is_none() {
        for tests in sources::TEST_CRATES {
            built.push((root().join(tests.committed), build::build_tests(tests)?));
        }
    }
    let mut is_same = true;
    for (file, ptx) in built {
        let shown = file.strip_prefix(root()).unwrap_or(&file).display();
        if !matches.get_flag("check") {
            write(&file, &ptx)?;
            report::print(&format!("{shown}: {} kernels\n", Ptx::new(ptx).entries().len()))?;
        } else if input::text(&file, input::SOURCE).is_ok_and(|text| text == ptx) {
            report::print(&format!("{shown} is what the sources build\n"))?;
        } else {
            report::say(&format!("error: {shown} is not what the sources build: run `cargo xtask ptx` and commit it"));
            is_same = false;
        }
    }
    Ok(is_same)
}

/// What building needs, beyond what the program itself can look at.
fn doctor() -> Vec<Finding> {
    let rust_src = match build::has_rust_src() {
        true => Finding::new("PTX by rustc's own back end", true, "rust-src is installed"),
        false => Finding::new("PTX by rustc's own back end", false, RUST_SRC),
    };
    let fresh = match sources::is_fresh(&Ptx::embedded()) {
        Ok(true) => Finding::new("committed PTX", true, "built from these sources"),
        Ok(false) => Finding::new("committed PTX", false, "built from other sources: run `cargo xtask ptx`"),
        Err(error) => Finding::new("committed PTX", false, format!("{error:#}")),
    };
    let missing = rust_cuda::missing(rust_cuda::TOOLCHAIN);
    let rust_cuda = match missing.is_empty() {
        true => Finding::new("PTX by rust-cuda", true, format!("toolchain {}", rust_cuda::TOOLCHAIN)),
        false => Finding::new("PTX by rust-cuda", false, missing.join("\n")),
    };
    vec![fresh, rust_src, rust_cuda]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_judged_by_what_bench_wrote_and_by_nothing_else() {
        let results = root().join(JUDGED_ON);
        let files = bench_results(&results).unwrap_or_else(|error| panic!("{error:#}"));
        let has = |file: &str| files.contains(&results.join(file));
        assert!(has("bench.json") && has("l2_cold.json") && has("l2_hot.json"), "{files:?}");
        for other in ["profile.json", "peers.json"] {
            assert!(!has(other) && results.join(other).is_file(), "{files:?}");
        }
    }

    #[test]
    fn options_of_rust_cuda_mean_nothing_to_another_back_end() {
        for (option, value) in [("--toolchain", "nightly"), ("--rust-cuda", ".")] {
            let matches = ptx_command().try_get_matches_from(["ptx", option, value]).expect("a command");
            let error = ptx(&matches).expect_err("nothing to build");
            assert!(error.is::<Usage>() && error.to_string().contains(option), "{error}");
        }
        let both = ["ptx", "--check", "--output", "file.ptx"];
        assert!(ptx_command().try_get_matches_from(both).is_err(), "nothing is written");
    }

    #[test]
    fn predict_is_a_command_here_too() {
        let asked = ["cargo xtask", "predict", "--chip", "h200", "--kernel", "copy"];
        let matches = commands().try_get_matches_from(asked).expect("a command that makes sense");
        assert_eq!(matches.subcommand_name(), Some("predict"));
    }
}
