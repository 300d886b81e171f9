//! Takes the planted bugs of `tests/corpus` to a GPU, and the patterns that are counted there: their PTX, a line for each launch,
//! and what runs them there.

use crate::build;
use anyhow::{Context, Result};
use busload::report;
use corpus::patterns::{Pattern, patterns};
use corpus::{Bug, bugs};
use gpu::device::host::{Kernel, ParameterKind};
use gpu::suite::{Before, Buffer, Plan};
use std::fmt::Write;
use std::path::Path;

/// The program that launches kernels, the script that does so under each tool, and the one that has them counted.
const FILES: [(&str, &str); 3] = [
    ("launch.cpp", include_str!("../../tests/corpus/launch.cpp")),
    ("run", include_str!("../../tests/corpus/run")),
    ("count", include_str!("../../tests/corpus/count")),
];

/// Writes the folder.
pub(crate) fn write(folder: &Path) -> Result<bool> {
    busload::build::write(&folder.join("corpus.ptx"), &build::build_tests(sources::CORPUS)?)?;
    let mut launches = String::new();
    for bug @ Bug { class, kernel, twin, .. } in bugs() {
        let plan = (bug.plan)().with_context(|| kernel.name.to_owned())?;
        for kernel in [kernel, twin] {
            writeln!(launches, "{}\t{}\t{}", kernel.name, class.name(), launch(kernel, &plan)?)?;
        }
    }
    busload::build::write(&folder.join("launches.tsv"), &launches)?;
    let mut counted = String::new();
    for Pattern { name, kernel, plan } in patterns()? {
        writeln!(counted, "{name}\t{} {}", kernel.name, launch(&kernel, &plan)?)?;
    }
    busload::build::write(&folder.join("patterns.tsv"), &counted)?;
    for (name, text) in FILES {
        busload::build::write(&folder.join(name), text)?;
    }
    let folder = folder.display();
    report::print(&format!(
        "{folder}: on a machine with a GPU and CUDA, `bash {folder}/run` prints who catches what, `bash {folder}/count` \
         wavefronts\n"
    ))?;
    Ok(true)
}

/// Grid, block, and for each parameter `filled:HEX`, `zero:BYTES`, `blank:BYTES` or `value:NUMBER`.
fn launch(kernel: &Kernel, plan: &Plan) -> Result<String> {
    let triple = |[x, y, z]: [u32; 3]| format!("{x} {y} {z}");
    let mut text = format!("{} {}", triple(plan.launch.grid), triple(plan.launch.block));
    for (name, kind) in kernel.parameters {
        let missing = || format!("{}: the plan says nothing of {name}", kernel.name);
        if let ParameterKind::Plain(ty) = kind {
            let scalar = plan.scalars.iter().find(|(scalar, _)| scalar == name);
            let bits = scalar.and_then(|(_, scalar)| scalar.bits(*ty)).with_context(missing)?;
            write!(text, " value:{bits}")?;
            continue;
        }
        let buffer = plan.buffers.iter().find(|buffer| buffer.name == *name).with_context(missing)?;
        match &buffer.before {
            Before::Filled(fill) => write!(text, " filled:{}", hex(buffer, |i| fill.bits(i)))?,
            Before::Zero => write!(text, " zero:{}", buffer.bytes())?,
            Before::Poison => write!(text, " blank:{}", buffer.bytes())?,
        }
    }
    Ok(text)
}

fn hex(buffer: &Buffer, bits: impl Fn(u64) -> u64) -> String {
    let size = buffer.element.size() as usize;
    let bytes = (0..buffer.len).flat_map(|i| bits(i).to_le_bytes().into_iter().take(size));
    bytes.fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
