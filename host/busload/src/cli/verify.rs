//! `verify`: compares every result with its reference, in the simulator and on a GPU.

use super::Usage;
use super::gpu::{OnGpu, on_gpu};
use super::options::{on, ptx, resume, selection};
use super::output::{Output, json};
use super::selection::{OF_GPU, On, chosen_machine, idle, load_ptx, refuse_idle, runs, runs_on_gpu, simulator_options};
use super::simulate::simulate_all;
use crate::cases::Sizes;
use crate::cuda::Gpu;
use crate::record::Machine;
use crate::report::{self, Target};
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// The command with its options.
pub(super) fn command() -> Command {
    let command = Command::new("verify")
        .about("Compare every result with its reference: in the simulator, and on the GPU where there is one")
        .long_about(
            "Compares every element of every output with its reference: in the simulator, and on the GPU where there is \
             one. No grid is sampled; what does not fit in memory fails, and the other cases run.",
        )
        .arg(on())
        .arg(ptx())
        .arg(resume())
        .arg(Arg::new("once").long("once").action(ArgAction::SetTrue).hide(true));
    selection(command)
}

/// Verifies on both machines; false if a case failed.
pub(super) fn run(matches: &ArgMatches) -> Result<bool> {
    refuse_idle(matches)?;
    let ptx = load_ptx(matches)?;
    let on = chosen_machine(matches);
    let gpu = match on {
        On::Sim => None,
        On::Gpu => Some(Gpu::open(ptx.text()).map_err(|error| Usage(anyhow::Error::new(error).context("--on gpu")))?),
        On::Auto => Gpu::open(ptx.text())
            .inspect_err(|error| {
                let idle = idle(matches, &OF_GPU).map_or_else(String::new, |idle| format!(" {idle} here."));
                report::say(&format!("Verified in the simulator alone, since there is no GPU to use ({error}).{idle}"));
            })
            .ok(),
    };
    let child = matches.get_one::<usize>("resume").copied();
    let machine = gpu.as_ref().map_or_else(Machine::simulator, |gpu| Machine::gpu(gpu.facts()));
    let simulated = match (on, child) {
        (On::Gpu, _) | (_, Some(_)) => Vec::new(),
        (On::Auto | On::Sim, None) => runs(matches, Sizes::Small, Machine::simulator().sm_count)?,
    };
    // The same cases on both machines: large sizes are for measuring.
    let on_gpu_too = gpu.as_ref().map(|gpu| runs_on_gpu(matches, Sizes::Small, gpu.facts().sm_count));
    let on_gpu_too = on_gpu_too.transpose()?.unwrap_or_default();
    let json = if child.is_some() { Some(Target::StandardOutput) } else { json(matches)? };
    let mut output = Output::new("verify", machine, &ptx, json, simulated.len() + on_gpu_too.len());
    // What is to be verified is not sampled.
    let options = simulator_options(matches);
    simulate_all(&simulated, |_| options.clone(), &mut output);
    if let Some(gpu) = &gpu {
        let how = if matches.get_flag("once") { OnGpu::Once } else { OnGpu::Verify };
        on_gpu(gpu, on_gpu_too, child.unwrap_or(0), how, &mut output);
    }
    output.finish()
}
