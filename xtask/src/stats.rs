//! What ptxas says of each kernel: registers, shared memory, spills.

use crate::rust_cuda;
use anyhow::{Context, Result};
use busload::build::output;
use busload::cli::Usage;
use busload::ptx::Ptx;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

/// What ptxas says of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Resources {
    registers: u32,
    shared_bytes: u32,
    spilled_bytes: u32,
}

/// A line for each kernel, with the widths of its accesses.
///
/// # Errors
/// If there is no ptxas, or it rejects the PTX.
pub(crate) fn table(ptx: &Ptx) -> Result<String> {
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let file = folder.path().join("busload.ptx");
    std::fs::write(&file, ptx.text())?;
    let arch = ptx.target().context("the PTX names no target")?;
    let mut command = Command::new(ptxas()?);
    command.args(["-v", "-arch", arch, "-o"]).arg(folder.path().join("busload.cubin")).arg(&file);
    let run = command.output().context("running ptxas")?;
    let said = String::from_utf8_lossy(&run.stderr);
    anyhow::ensure!(run.status.success(), "ptxas rejects the PTX: {}", said.trim());
    let usage = parse(&said);

    let mut table =
        format!("{:30} {:>9} {:>12} {:>12}  accesses\n", "kernel", "registers", "shared bytes", "spill bytes");
    for (kernel, accesses) in ptx.entries() {
        let usage = usage.get(kernel).cloned().unwrap_or_default();
        let accesses = accesses.iter().map(|access| format!("{} {} {}", access.space, access.operation, access.width));
        let accesses = accesses.collect::<Vec<_>>().join(", ");
        let Resources { registers, shared_bytes, spilled_bytes } = usage;
        writeln!(table, "{kernel:30} {registers:>9} {shared_bytes:>12} {spilled_bytes:>12}  {accesses}")?;
    }
    Ok(table)
}

/// The assembler: in the path, or in the CUDA toolkit.
fn ptxas() -> Result<std::path::PathBuf> {
    if output(Command::new("ptxas").arg("--version")).is_ok() {
        return Ok("ptxas".into());
    }
    let toolkit = rust_cuda::cuda_root().map(|root| root.join("bin/ptxas")).filter(|path| path.is_file());
    toolkit.ok_or_else(|| {
        Usage(anyhow::anyhow!(
            "no ptxas in the path or in a CUDA toolkit: install the toolkit, or pip's nvidia-cuda-nvcc-cu12 and put its \
             folder bin into PATH"
        ))
        .into()
    })
}

/// The figures in what `ptxas -v` prints, by kernel.
fn parse(said: &str) -> BTreeMap<String, Resources> {
    let mut kernels = BTreeMap::<String, Resources>::new();
    let mut current = String::new();
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            current = rest.split('\'').next().unwrap_or_default().to_owned();
            continue;
        }
        let usage = kernels.entry(current.clone()).or_default();
        let before = |unit: &str| {
            let words = line.split(unit).next().filter(|start| start.len() < line.len())?;
            words.split_whitespace().next_back()?.parse::<u32>().ok()
        };
        usage.spilled_bytes += before(" bytes spill stores").unwrap_or(0) + before(" bytes spill loads").unwrap_or(0);
        usage.registers = before(" registers").unwrap_or(usage.registers);
        usage.shared_bytes = before(" bytes smem").unwrap_or(usage.shared_bytes);
    }
    kernels.remove("");
    kernels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_each_kernel_are_read() {
        let said = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'transpose_tiled' for 'sm_80'
ptxas info    : Function properties for transpose_tiled
    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 26 registers, used 1 barriers, 4096 bytes smem, 376 bytes cmem[0]
ptxas info    : Compiling entry function 'copy_vec4' for 'sm_80'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 14 registers, used 0 barriers, 376 bytes cmem[0]
";
        let usage = parse(said);
        assert_eq!(usage["transpose_tiled"], Resources { registers: 26, shared_bytes: 4096, spilled_bytes: 12 });
        assert_eq!(usage["copy_vec4"], Resources { registers: 14, shared_bytes: 0, spilled_bytes: 0 });
        assert_eq!(usage.len(), 2);
    }
}
