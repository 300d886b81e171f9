//! `ptx`: the build that the program holds, or that of a package's own kernels.

use super::Usage;
use crate::build::{self, RUST_SRC, package};
use crate::input;
use crate::ptx::Ptx;
use crate::report;
use crate::suite::{Module, Suite};
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::{Path, PathBuf};

/// The command with its options.
pub(super) fn command(suite: &Suite) -> Command {
    let command = Command::new("ptx");
    if matches!(suite.module, Module::BuiltIn { .. }) {
        return command.about("Print the PTX that this program holds").after_help(
            "Examples:\n  \
             busload ptx > kernels.ptx",
        );
    }
    command
        .about("Build the kernels' PTX, to be committed beside their sources")
        .long_about(format!(
            "Builds the PTX of the library {} by rustc's own NVPTX back end, with the toolchain of its folder, which needs the \
             standard library's source: `rustup component add rust-src`. Without -o it replaces {}.",
            suite.name,
            suite.file().display()
        ))
        .after_help(format!(
            "Examples:\n  \
             {name} ptx          build, and replace what is committed\n  \
             {name} ptx --check  in CI: is it what the sources build?\n  \
             {name} ptx --arch sm_90 -o kernels_sm_90.ptx",
            name = suite.name
        ))
        .arg(
            Arg::new("arch")
                .long("arch")
                .value_name("SM")
                .default_value("sm_80")
                .value_parser(build::parse_arch)
                .help("The architecture, as in sm_80"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("check")
                .help("Write the PTX there"),
        )
        .arg(
            Arg::new("check")
                .long("check")
                .action(ArgAction::SetTrue)
                .conflicts_with("arch")
                .help("Build, compare with the file, and write nothing; exit status 1 if it is not what the sources build"),
        )
}

/// Prints it, or builds it; false if `--check` finds another.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    let folder = match suite.module {
        Module::BuiltIn { text, .. } => {
            report::print(text)?;
            return Ok(true);
        }
        Module::Package { folder } => Path::new(folder),
    };
    if !folder.join("Cargo.toml").is_file() {
        let (folder, name) = (folder.display(), suite.name);
        return Err(
            Usage(anyhow::anyhow!("{folder} is no folder of {name} any more: build the program where it is")).into()
        );
    }
    if !build::has_rust_src(folder) {
        return Err(Usage(anyhow::anyhow!("{RUST_SRC}")).into());
    }
    let arch = matches.get_one::<String>("arch").expect("has a default");
    let given = matches.get_one::<PathBuf>("output").cloned();
    let file = given.unwrap_or_else(|| match arch.as_str() {
        "sm_80" => suite.file(),
        _ => suite.file().with_file_name(format!("{}_{arch}.ptx", suite.name.replace('-', "_"))),
    });
    let ptx = package::build(suite, folder, arch)?;
    let here = std::env::current_dir().unwrap_or_default();
    let shown = file.strip_prefix(here).unwrap_or(&file).display();
    if !matches.get_flag("check") {
        build::write(&file, &ptx)?;
        report::print(&format!("{shown}: {} kernels\n", Ptx::new(ptx).entries().len()))?;
    } else if input::text(&file, input::SOURCE).is_ok_and(|text| text == ptx) {
        report::print(&format!("{shown} is what the sources build\n"))?;
    } else {
        report::say(&format!("error: {shown} is not what the sources build: run the command `ptx` and commit it"));
        return Ok(false);
    }
    Ok(true)
}
