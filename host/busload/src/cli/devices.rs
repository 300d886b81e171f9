//! Several GPUs: the same command for each in a process of its own, one after another or all at once.
//!
//! A process of one GPU is told by `--part=N`, which help does not show. Files have its number in their names, so each is a whole
//! report, and is gone on with alone.

use super::Usage;
use crate::cuda::GpuError;
use crate::input;
use crate::record::Machine;
use crate::report;
use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use system::interrupt::{Unfinished, Watch, end_by};
use tempfile::NamedTempFile;

/// Which GPUs, and how.
pub(super) fn options() -> [Arg; 3] {
    [
        Arg::new("device")
            .long("device")
            .value_name("N,…")
            .help("GPUs by their numbers, or all: one after another, each into a file of its own, out.gpu0.json for --json out.json")
            .value_delimiter(',')
            .value_parser(|text: &str| match text {
                "all" => Ok(None),
                number => number.parse::<u32>().map(Some).map_err(|_| "not the number of a GPU, or all"),
            }),
        Arg::new("parallel")
            .long("parallel")
            .action(ArgAction::SetTrue)
            .requires("device")
            .help("Measure on all of them at once: faster, where they share no power, heat or memory of the host"),
        Arg::new("part").long("part").hide(true).value_parser(value_parser!(u32)),
    ]
}

/// The numbers of the GPUs that are asked for, the first without.
pub(super) fn devices(matches: &ArgMatches, listed: impl Fn() -> Result<u32, GpuError>) -> Result<Vec<u32>, Usage> {
    let mut devices: Vec<u32> = Vec::new();
    for device in matches.get_many::<Option<u32>>("device").into_iter().flatten() {
        match device {
            Some(device) => devices.push(*device),
            None => devices.extend(0..listed().context("--device all").map_err(Usage)?),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    devices.retain(|device| seen.insert(*device));
    if devices.is_empty() {
        devices.push(0);
    }
    if let (Some(most), false) = (devices.iter().max(), devices == [0]) {
        let listed = listed().with_context(|| format!("--device {most}")).map_err(Usage)?;
        if *most >= listed {
            let last = listed - 1;
            return Err(
                anyhow::anyhow!("--device {most}: there is no such GPU, they are numbered from 0 to {last}").into()
            );
        }
    }
    let is_stream = |option: &&str| matches.get_one::<String>(option).is_some_and(|file| file == "-");
    if let Some(option) =
        ["json", "csv", "markdown"].iter().find(|option| is_stream(option)).filter(|_| devices.len() > 1)
    {
        return Err(anyhow::anyhow!(
            "--{option} -: standard output takes the report of one GPU: name a file, or one GPU"
        )
        .into());
    }
    Ok(devices)
}

/// Whether this process is for one of several GPUs.
pub(super) fn is_part(matches: &ArgMatches) -> bool {
    part(matches).is_some()
}

/// The GPU that this process is for, of several.
pub(super) fn part(matches: &ArgMatches) -> Option<u32> {
    matches.get_one("part").copied()
}

/// The file of one GPU, where there are several: `out.gpu1.json` for `out.json`.
pub(super) fn of_device(file: &str, machine: &Machine, is_one_of_many: bool) -> String {
    let (Some(device), true) = (machine.device, is_one_of_many) else { return file.to_owned() };
    let path = Path::new(file);
    match (path.file_stem(), path.extension()) {
        (Some(stem), Some(extension)) => {
            let (stem, extension) = (stem.to_string_lossy(), extension.to_string_lossy());
            path.with_file_name(format!("{stem}.gpu{device}.{extension}")).to_string_lossy().into_owned()
        }
        _ => format!("{file}.gpu{device}"),
    }
}

/// Runs this command for each; false if a case failed on one of them.
pub(super) fn each(devices: &[u32], matches: &ArgMatches) -> Result<bool> {
    let watch = Watch::new();
    let statuses = match matches.get_flag("parallel") {
        true => at_once(devices, &watch)?,
        false => devices.iter().map(|device| one(*device, &watch)).collect::<Result<_>>()?,
    };
    let is_refused = |(_, status): &(&u32, &ExitStatus)| status.code() == Some(2);
    if let Some((device, _)) = devices.iter().zip(&statuses).find(is_refused) {
        return Err(Usage(anyhow::anyhow!("GPU {device}: nothing ran")).into());
    }
    for (device, status) in devices.iter().zip(&statuses).filter(|(_, status)| status.code().is_none()) {
        report::say(&format!("GPU {device}: its process was ended ({status})"));
    }
    Ok(statuses.iter().all(ExitStatus::success))
}

/// This command for one of the GPUs.
fn command(device: u32) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("the path of this program")?);
    command.args(std::env::args_os().skip(1)).arg(format!("--part={device}"));
    Ok(command)
}

fn started(device: u32, command: &mut Command) -> Result<Child> {
    command.spawn().with_context(|| format!("a process for GPU {device}"))
}

fn one(device: u32, watch: &Watch) -> Result<ExitStatus> {
    let statuses = ended(watch.wait(&mut [started(device, &mut command(device)?)?]))?;
    Ok(statuses[0])
}

/// All at once. What they say and print follows when all have ended, GPU by GPU.
fn at_once(devices: &[u32], watch: &Watch) -> Result<Vec<ExitStatus>> {
    let mut children = Vec::new();
    let files = devices.iter().map(|_| Ok([NamedTempFile::new()?, NamedTempFile::new()?]));
    let files = files.collect::<std::io::Result<Vec<_>>>().context("a temporary file")?;
    for (device, [out, err]) in devices.iter().zip(&files) {
        let mut command = command(*device)?;
        command.stdout(out.reopen()?).stderr(err.reopen()?);
        match started(*device, &mut command) {
            Ok(child) => children.push(child),
            Err(error) => {
                children.iter_mut().for_each(|child: &mut Child| {
                    let _ = child.kill();
                });
                return Err(error);
            }
        }
    }
    let waited = watch.wait(&mut children);
    for [out, err] in &files {
        report::print(&input::text(out.path(), input::RESULTS)?)?;
        let said = input::text(err.path(), input::RESULTS)?;
        if !said.trim().is_empty() {
            report::say(&said);
        }
    }
    // They are removed before this process may end.
    drop(files);
    ended(waited)
}

/// How they ended. This process, if it was asked to, ends now that they have.
fn ended(waited: Result<Vec<ExitStatus>, Unfinished>) -> Result<Vec<ExitStatus>> {
    match waited {
        Err(Unfinished::Interrupted(signal)) => end_by(signal),
        Err(Unfinished::Io(error)) => Err(error).context("the processes of the GPUs"),
        Ok(statuses) => Ok(statuses),
    }
}
