//! `verify`: compares every result with its reference, in the simulator and on a GPU.

use super::Usage;
use super::gpu::{Work, on_gpu};
use super::options::{from, on, ptx, selection, verbose};
use super::output::{Exports, Output};
use super::selection::{
    On, chosen_machine, fronts, load_ptx, on_build, on_ptx, refuse_idle, runs, runs_on_gpu, simulator_options,
};
use super::simulate::simulate_all;
use crate::bench::Asked;
use crate::cases::Sizes;
use crate::cuda::Gpu;
use crate::front::Front;
use crate::moved::Moved;
use crate::record::Machine;
use crate::report;
use crate::suite::Suite;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// The command with its options.
pub(super) fn command(suite: &Suite) -> Command {
    let command = Command::new("verify")
        .about("Compare every result with its reference: from the source, from the PTX, and on the GPU where there is one")
        .long_about(
            "Compares every element of every output with its reference: carried out from the kernels' source, from their PTX, \
             and on the GPU where there is one. --machine takes one of the first two, and --ptx another build than the \
             built-in one, such as rust-cuda's or nvcc's, for the PTX machine and the GPU. No grid is sampled; what does not \
             fit in memory fails, and the other cases run.",
        )
        .after_help(
            "Examples:\n  \
             busload verify                                   every kernel, on all machines\n  \
             busload verify --kernel reduce --on sim\n  \
             busload verify --ptx kernels_nvvm.ptx            another build\n  \
             busload verify --on gpu --quiet --json out.json  for scripts: the exit status tells",
        )
        .arg(on())
        .arg(
            Arg::new("machine")
                .long("machine")
                .value_name("MACHINE")
                .help("On the CPU, carry kernels out from their source, from their PTX, or from both [default: both, or that of --ptx]")
                .value_parser(PossibleValuesParser::new(["source", "ptx", "both"])),
        )
        .arg(ptx().help("Take the kernels of this PTX instead of those built in: on the CPU, and on a GPU"))
        .arg(from())
        .arg(Arg::new("once").long("once").action(ArgAction::SetTrue).hide(true));
    selection(suite, command).arg(verbose())
}

/// Verifies on both machines; false if a case failed.
pub(super) fn run(suite: &Suite, matches: &ArgMatches) -> Result<bool> {
    refuse_idle(matches, &[])?;
    let [is_source, is_ptx] = fronts(matches, true)?;
    let ptx = load_ptx(suite, matches)?;
    let on = chosen_machine(matches);
    let gpu = match on {
        On::Sim | On::Mock => None,
        On::Gpu => Some(Gpu::open(ptx.text()).map_err(|error| Usage(anyhow::Error::new(error).context("--on gpu")))?),
        On::Auto => Gpu::open(ptx.text())
            .inspect_err(|error| {
                report::say(&format!("Verified on the CPU alone, since there is no GPU to use ({error})."));
            })
            .ok(),
    };
    let child = matches.get_one::<usize>("from").copied();
    let machine = gpu.as_ref().map_or_else(Machine::simulator, Machine::gpu);
    let simulated = match (on, child) {
        (On::Gpu, _) | (_, Some(_)) => Vec::new(),
        (On::Auto | On::Sim | On::Mock, None) => runs(suite, matches, Sizes::Small, Machine::simulator().sm_count)?,
    };
    let on_ptx = (is_ptx && !simulated.is_empty()).then(|| on_ptx(suite, matches, simulated.clone())).transpose()?;
    let simulated = if is_source { simulated } else { Vec::new() };
    // The same cases on all machines: large sizes are for measuring.
    let on_gpu_too = gpu.as_ref().map(|gpu| runs_on_gpu(suite, matches, Sizes::Small, gpu.facts().sm_count));
    let on_gpu_too = on_build(matches, &ptx, on_gpu_too.transpose()?.unwrap_or_default())?;
    let exports = if child.is_some() { Exports::default() } else { Exports::open(matches)? };
    let mut output = Output::new(
        "verify",
        machine,
        &ptx,
        exports,
        simulated.len() + on_ptx.as_ref().map_or(0, |(_, runs)| runs.len()) + on_gpu_too.len(),
    );
    // What is to be verified is not sampled.
    let options = simulator_options(matches);
    simulate_all(&Front::Source, &simulated, |_| options.clone(), &mut output);
    if let Some((front, runs)) = &on_ptx {
        simulate_all(front, runs, |_| options.clone(), &mut output);
    }
    if let Some(gpu) = &gpu {
        let asked = if matches.get_flag("once") { Asked::Once } else { Asked::Verify };
        let work = Work { device: gpu, runs: &on_gpu_too, asked, from: child, moved: Moved::default() };
        on_gpu(&work, &mut output)?;
        if child.is_some() {
            return Ok(true);
        }
    }
    output.finish()
}
