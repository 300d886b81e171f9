//! Runs on a GPU, for the commands that verify and those that measure.

use super::output::Output;
use crate::bench::{self, Samples};
use crate::cases::Run;
use crate::cuda::Gpu;
use crate::record::{Record, Report};
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// What to do with kernels on a GPU.
#[derive(Clone, Copy)]
pub(super) enum OnGpu {
    /// Launch each once, to be profiled.
    Once,
    Verify,
    Measure(Samples),
}

/// Runs the cases from the `first` on; the device's copy before those that are measured.
pub(super) fn on_gpu(gpu: &Gpu, runs: Vec<Run>, first: usize, how: OnGpu, output: &mut Output) {
    let samples = if let OnGpu::Measure(samples) = how { Some(samples) } else { None };
    let mut copies = BTreeMap::new();
    if let Some(samples) = samples {
        let mut sizes: Vec<u64> = runs[first.min(runs.len())..].iter().map(|run| run.plan.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for bytes in sizes {
            // A copy that does not fit leaves its cases without a share of copy.
            let Ok(record) = bench::copy(gpu, bytes, samples) else { continue };
            let gbps = record.timed.as_ref().map(|timed| timed.gbps);
            copies.insert(bytes, gbps);
            let best = output.report.machine.copy_gbps.into_iter().chain(gbps).reduce(f64::max);
            output.report.machine.copy_gbps = best;
            if first == 0 {
                output.report.results.push(record);
            }
        }
    }
    for (i, run) in runs.iter().enumerate().skip(first) {
        output.progress.at(run, 0, 0);
        let copy_gbps = copies.get(&run.plan.bytes).copied().flatten();
        let mut done = match how {
            OnGpu::Once => bench::once_on_gpu(gpu, run),
            OnGpu::Verify | OnGpu::Measure(_) => bench::on_gpu(gpu, run, samples, copy_gbps),
        };
        if !done.lost
            && let Some(library) = bench::library_on_gpu(gpu, run, samples, copy_gbps)
        {
            done.lost = library.lost;
            output.report.results.push(library.record);
        }
        let bench::OnGpu { record, lost } = done;
        output.push(record);
        if lost && i + 1 < runs.len() {
            let records = rest(i + 1).unwrap_or_else(|error| {
                runs[i + 1..].iter().map(|run| bench::not_run(run, format!("{error:#}"))).collect()
            });
            for record in records {
                output.push(record);
            }
            break;
        }
    }
}

/// Runs the cases from the `first` on in a new process: a launch failed, and CUDA takes no more calls from this one.
fn rest(first: usize) -> Result<Vec<Record>> {
    let program = std::env::current_exe().context("the path of this program")?;
    let ours = |argument: &std::ffi::OsString| argument.to_string_lossy().starts_with("--resume=");
    let mut child = std::process::Command::new(program);
    child.args(std::env::args_os().skip(1).filter(|argument| !ours(argument))).arg(format!("--resume={first}"));
    let output = child.output().context("running the other cases in a new process")?;
    serde_json::from_slice(&output.stdout).map(|report: Report| report.results).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::anyhow!("the other cases did not run in a new process: {}", said.trim())
    })
}
