//! `bench`: measures on a GPU, each result verified first; without one it simulates.

use super::Usage;
use super::gpu::{OnGpu, on_gpu};
use super::options::{on, ptx, resume, selection};
use super::output::{Output, json};
use super::selection::{OF_GPU, OF_SIMULATOR, On, chosen_machine, idle, load_ptx, refuse_idle, runs_on_gpu};
use super::simulate::simulate;
use crate::bench::{L2, Samples};
use crate::cases::Sizes;
use crate::cuda::Gpu;
use crate::record::Machine;
use crate::report::Target;
use crate::suite::Suite;
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

/// The command with its options.
pub(super) fn command(suite: &Suite) -> Command {
    let command = Command::new("bench")
        .about("Measure kernels on the GPU if there is one, else simulate them")
        .long_about(
            "Verifies each kernel, then measures it on the GPU: nothing is timed before it is verified. The table has the \
             median and the minimum of the samples, their spread, the bandwidth, and what share that is of the device's \
             own copy and of the memory's peak. Where the machine has cuBLAS, its geam and sgemm stand beside the \
             transposes and products.\n\n\
             Before each sample 256 MiB or more are written, so that the L2 holds nothing of the kernel's. What is still \
             dirty then has to make room, which is part of the time of a kernel that reads more than the L2 holds.\n\n\
             Without a GPU the kernels are simulated, and the first line says so.",
        )
        .arg(on())
        .arg(
            Arg::new("samples")
                .long("samples")
                .value_name("N")
                .help("Samples of each kernel's time, L2 flushed before each")
                .value_parser(value_parser!(u32).range(1..=100_000))
                .default_value("30"),
        )
        .arg(
            Arg::new("hot")
                .long("hot")
                .action(ArgAction::SetTrue)
                .help("Leave in the L2 what the launch before left there, instead of flushing it"),
        )
        .arg(ptx())
        .arg(resume());
    selection(suite, command)
}

/// Measures on the GPU, or simulates; false if a case failed.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    refuse_idle(matches, &OF_GPU)?;
    let ptx = load_ptx(suite, matches)?;
    let gpu = match chosen_machine(matches) {
        On::Sim => return simulate(suite, matches, "bench", Some("Simulated, as asked for: nothing was timed.")),
        On::Gpu => Gpu::open(ptx.text()).map_err(|error| Usage(anyhow::Error::new(error).context("--on gpu")))?,
        On::Auto => match Gpu::open(ptx.text()) {
            Ok(gpu) => gpu,
            // Whoever names a PTX wants it launched.
            Err(error) if matches.contains_id("ptx") && !error.means_none() => return Err(error.into()),
            Err(error) => {
                let idle = idle(matches, &OF_GPU).map_or_else(String::new, |idle| format!(" {idle} here."));
                let first = format!("Simulated: nothing was timed, since there is no GPU to use ({error}).{idle}");
                return simulate(suite, matches, "bench", Some(&first));
            }
        },
    };
    let l2 = if matches.get_flag("hot") { L2::Hot } else { L2::Cold };
    let samples = Samples { warm_up: 3, count: *matches.get_one("samples").expect("has a default"), l2 };
    let runs = runs_on_gpu(suite, matches, Sizes::Large, gpu.facts().sm_count)?;
    let child = matches.get_one::<usize>("resume").copied();
    let json = if child.is_some() { Some(Target::StandardOutput) } else { json(matches)? };
    let mut output = Output::new("bench", Machine::gpu(gpu.facts()), &ptx, json, runs.len());
    if child.is_none() {
        let facts = gpu.facts();
        let idle = idle(matches, &OF_SIMULATOR).map_or_else(String::new, |idle| format!(" {idle} on a GPU."));
        output.say(&format!(
            "Measured on {} (driver for CUDA {}), L2 {} each sample.{idle}",
            facts.name,
            facts.driver,
            if l2 == L2::Cold { "flushed before" } else { "left as it was before" }
        ))?;
    }
    on_gpu(&gpu, runs, child.unwrap_or(0), OnGpu::Measure(samples), &mut output);
    output.finish()
}
