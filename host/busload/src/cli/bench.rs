//! `bench`: measures on a GPU, each result verified first; without one it simulates.

use super::Usage;
use super::devices::{self, devices, of_device};
use super::gpu::{Work, on_gpu};
use super::options::{from, on, ptx, selection, verbose};
use super::output::{Exports, Output};
use super::resume::going_on;
use super::sampling::{options, sampling};
use super::selection::{OF_GPU, OF_SIMULATOR, On, chosen_machine, idle, load_ptx, on_build, refuse_idle, runs_on_gpu};
use super::simulate::simulate;
use crate::bench::{Asked, Device};
use crate::cases::Sizes;
use crate::cuda::{self, Gpu, GpuError};
use crate::input;
use crate::measure::{Sampling, Series};
use crate::mock::{Mock, Settings};
use crate::moved::Moved;
use crate::provenance::{self, Process};
use crate::ptx::Ptx;
use crate::record::{MOCK, Machine};
use crate::report::{self, Target};
use crate::suite::Suite;
use anyhow::{Context, Result};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::{Path, PathBuf};

/// The command with its options.
pub(super) fn command(suite: &Suite) -> Command {
    let machines =
        ["auto", "gpu", "sim"].map(PossibleValue::new).into_iter().chain([PossibleValue::new(MOCK).hide(true)]);
    let command = Command::new("bench")
        .about("Measure kernels on the GPU if there is one, else simulate them")
        .long_about(
            "Verifies each kernel, then measures it on the GPU: nothing is timed before it is verified. The table has the \
             median of the samples, its 95 % interval, the bandwidth, and what share that is of the device's own copy and of the \
             memory's peak; --json has every sample. Where the machine has cuBLAS, its geam and sgemm stand beside the \
             transposes and products.\n\n\
             Before each sample 256 MiB or more are written, so that the L2 holds nothing of the kernel's. What is still \
             dirty then has to make room, which is part of the time of a kernel that reads more than the L2 holds.\n\n\
             Without a GPU the kernels are simulated, and the first line says so. docs/measuring.md says what each figure counts.",
        )
        .after_help(
            "Examples:\n  \
             busload bench --kernel transpose --json out.json    what finished is kept, whatever ends it\n  \
             busload bench --kernel transpose --resume out.json  and this goes on\n  \
             busload bench --stop entropy --max-time 5\n  \
             busload bench --device all --parallel --json out.json\n  \
             srun --ntasks-per-node=8 --gpus-per-task=1 busload bench --out-dir runs",
        )
        .arg(on().value_parser(PossibleValuesParser::new(machines)))
        .args(options())
        .args(devices::options())
        .arg(
            Arg::new("resume")
                .long("resume")
                .value_name("FILE")
                .conflicts_with("json")
                .help("Go on with what --json wrote there: measure what it lacks, and write it there. Begins it if there is no such file"),
        )
        .arg(
            Arg::new("out-dir")
                .long("out-dir")
                .value_name("DIR")
                .conflicts_with_all(["json", "resume"])
                .value_parser(value_parser!(PathBuf))
                .help("Write the results as JSON into this folder, a file a GPU, as `fleet` reads them")
                .long_help(
                    "Write the results as JSON into this folder, a file a GPU, as `fleet` reads them. Under srun or mpirun each process \
                     measures a GPU: the one that it sees alone, or else the one of its number on its machine. Its file has the names of \
                     the machine and of the process.",
                ),
        )
        .arg(
            Arg::new("profile")
                .long("profile")
                .value_name("FILE")
                .action(ArgAction::Append)
                .help("Show beside the bytes that must move those that `profile --json` counted on this GPU at the same sizes"),
        )
        .arg(ptx())
        .arg(from())
        .arg(Arg::new("mock").long("mock").value_name("KEY=VALUE,…").hide(true).value_parser(value_parser!(Settings)));
    selection(suite, command).arg(verbose())
}

/// Measures on the GPU, or simulates; false if a case failed.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    refuse_idle(matches, &OF_GPU)?;
    let sampling = sampling(matches)?;
    let machine = match chosen_machine(matches) {
        On::Sim => return simulate(suite, matches, "bench", Some("Simulated, as asked for: nothing was timed.")),
        machine => machine,
    };
    let ptx = load_ptx(suite, matches)?;
    let mock = matches.get_one::<Settings>("mock").cloned().unwrap_or_default();
    let listed = || match machine {
        On::Mock => Ok(mock.devices.unwrap_or(1)),
        _ => cuda::devices(),
    };
    let is_of_fleet = matches.contains_id("out-dir") && !matches.contains_id("device");
    let devices = match provenance::of(suite).process.as_ref().filter(|_| is_of_fleet) {
        Some(process) => vec![own_gpu(process, listed().map_err(|error| Usage(error.into()))?)?],
        None => devices(matches, listed)?,
    };
    if devices.len() > 1 && !devices::is_part(matches) {
        return devices::each(&devices, matches);
    }
    let device = devices::part(matches).unwrap_or(devices[0]);
    let opened = match machine {
        On::Mock => {
            let listed = mock.devices.unwrap_or(1);
            let opened =
                Mock::open(mock, device).with_context(|| format!("--device {device}: the mock lists {listed}"));
            return measure(suite, matches, &ptx, sampling, &opened.map_err(Usage)?, devices.len() > 1);
        }
        _ => Gpu::open_device(device, ptx.text()),
    };
    match opened {
        Ok(gpu) => measure(suite, matches, &ptx, sampling, &gpu, devices.len() > 1),
        Err(error) if machine == On::Gpu => Err(Usage(anyhow::Error::new(error).context("--on gpu")).into()),
        Err(error) => without_gpu(suite, matches, &error),
    }
}

/// Simulates, if nothing that was asked for needs a GPU.
fn without_gpu(suite: &Suite, matches: &ArgMatches, error: &GpuError) -> Result<bool> {
    // Whoever names a PTX wants it launched.
    if matches.contains_id("ptx") && !error.means_none() {
        return Err(anyhow::anyhow!("{error}"));
    }
    if let Some(idle) = idle(matches, &["device", "resume", "out-dir", "profile"]) {
        return Err(Usage(anyhow::anyhow!("{idle} without a GPU to use: {error}")).into());
    }
    let idle = idle(matches, &OF_GPU).map_or_else(String::new, |idle| format!(" {idle} here."));
    let first = format!("Simulated: nothing was timed, since there is no GPU to use ({error}).{idle}");
    simulate(suite, matches, "bench", Some(&first))
}

/// Measures on a device, of several if `is_one_of_many`.
fn measure(
    suite: &Suite,
    matches: &ArgMatches,
    ptx: &Ptx,
    sampling: Sampling,
    device: &dyn Device,
    is_one_of_many: bool,
) -> Result<bool> {
    let machine = device.machine();
    let runs = on_build(matches, ptx, runs_on_gpu(suite, matches, Sizes::Large, machine.sm_count)?)?;
    let from = matches.get_one::<usize>("from").copied();
    let moved = moved(matches, &machine)?;
    if matches.get_one::<String>("resume").is_some_and(|file| file == "-") {
        return Err(Usage(anyhow::anyhow!("--resume -: standard input is not gone on with: name a file")).into());
    }
    let resumed = matches.get_one::<String>("resume").map(|file| of_device(file, &machine, is_one_of_many));
    let before = resumed.as_ref().map(|file| going_on(file, &machine, &ptx.into(), &sampling)).transpose()?.flatten();
    let mut exports = match from {
        Some(_) => Exports::default(),
        None => Exports::open_as(matches, |file| of_device(file, &machine, is_one_of_many))?,
    };
    let file = match matches.get_one::<PathBuf>("out-dir") {
        Some(folder) => Some(("--out-dir", in_folder(folder, suite, &machine, is_one_of_many)?)),
        None => resumed.map(|file| ("--resume", file)),
    };
    if let (Some((option, file)), None) = (file, from) {
        exports.json = Some(Target::open(option, &file).map_err(Usage)?);
    }
    exports.are_files_of_their_own(matches.get_many("profile").into_iter().flatten())?;
    let first = first_line(matches, &machine, &sampling);
    let mut output = Output::new("bench", machine, ptx, exports, runs.len());
    output.report.sampling = Some(sampling);
    if let Some(before) = before {
        output.go_on(before);
    }
    if from.is_none() {
        output.say(&first)?;
    }
    on_gpu(&Work { device, runs: &runs, asked: Asked::Measure(sampling), from, moved }, &mut output)?;
    if from.is_some() { Ok(true) } else { output.finish() }
}

/// The GPU of a process that a launcher started, of so many that it sees.
fn own_gpu(process: &Process, listed: u32) -> Result<u32, Usage> {
    let Process { rank, local_rank, .. } = process;
    match (listed, local_rank) {
        (0 | 1, _) => Ok(0),
        (_, Some(local)) if *local < listed => Ok(*local),
        (_, Some(local)) => Err(anyhow::anyhow!(
            "rank {rank} is number {local} on its machine, and sees {listed} GPUs: start as many processes as there are GPUs, or give \
             each its own by --device"
        )
        .into()),
        (_, None) => Err(anyhow::anyhow!(
            "rank {rank} sees {listed} GPUs, and the launcher does not say which process of its machine it is: give it one by --device"
        )
        .into()),
    }
}

/// The file of a GPU in a folder, which is made if it is not there: no two processes have the same.
fn in_folder(folder: &Path, suite: &Suite, machine: &Machine, is_one_of_many: bool) -> Result<String, Usage> {
    let shown = folder.display();
    std::fs::create_dir_all(folder).with_context(|| format!("--out-dir {shown}: no folder can be made there"))?;
    let device = machine.device.unwrap_or(0);
    let name = match &provenance::of(suite).process {
        Some(Process { rank, host, .. }) if is_one_of_many => format!("{host}-rank{rank}-gpu{device}.json"),
        Some(Process { rank, host, .. }) => format!("{host}-rank{rank}.json"),
        None => format!("{}-gpu{device}.json", provenance::host()),
    };
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    Ok(folder.join(name.chars().map(plain).collect::<String>()).to_string_lossy().into_owned())
}

/// What was measured, and how.
fn first_line(matches: &ArgMatches, machine: &Machine, sampling: &Sampling) -> String {
    let idle = idle(matches, &OF_SIMULATOR).map_or_else(String::new, |idle| format!(" {idle} on a GPU."));
    let l2 = match sampling.l2 {
        Series::Cold => "flushed before each sample",
        Series::Hot => "left as it was before each sample",
        Series::ColdAndHot => "flushed before each sample, and hot beside it",
    };
    let (name, driver) = (&machine.name, machine.driver.as_deref().unwrap_or("?"));
    if machine.kind == MOCK {
        return format!("A mock: nothing was launched, nothing is verified, and all times are made up, L2 {l2}.{idle}");
    }
    let number =
        machine.device.filter(|device| *device > 0).map_or_else(String::new, |number| format!(", GPU {number}"));
    format!("Measured on {name}{number} (driver for CUDA {driver}), L2 {l2}.{idle}")
}

/// The bytes that the profiles say moved that were named.
fn moved(matches: &ArgMatches, machine: &Machine) -> Result<Moved, Usage> {
    let mut moved = Moved::default();
    for file in matches.get_many::<String>("profile").into_iter().flatten() {
        let text = input::text(file, input::RESULTS).context("--profile")?;
        if moved.add(&text, machine).map_err(|error| anyhow::anyhow!("--profile {file}: {error}"))? {
            report::say(&format!(
                "warning: {file} is unfinished: the run that wrote it was ended before its last case"
            ));
        }
    }
    Ok(moved)
}
