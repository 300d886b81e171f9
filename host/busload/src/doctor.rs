//! What this machine can do, and what is missing for the rest.

use crate::cuda::Gpu;
use crate::ptx::Ptx;
use std::fmt;

/// Something looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub what: String,
    /// Whether it is there.
    pub ok: bool,
    /// What was found, or what to do.
    pub detail: String,
}

impl Finding {
    /// What was looked at, whether it is there, and what was found or what to do.
    pub fn new(what: impl Into<String>, ok: bool, detail: impl Into<String>) -> Self {
        Self { what: what.into(), ok, detail: detail.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.ok { "yes" } else { " no" };
        write!(f, "{mark}  {}: {}", self.what, self.detail.replace('\n', "\n     "))
    }
}

/// What the program itself can look at: the simulator, the GPU, the PTX it holds.
pub fn findings(ptx: &Ptx) -> Vec<Finding> {
    let threads = crate::parallel::threads();
    let gpu = match Gpu::open(ptx.text()) {
        Ok(gpu) => {
            let facts = gpu.facts();
            let detail = format!(
                "{}, compute capability {}, {} SMs, {} MiB of L2, driver for CUDA {}",
                facts.name,
                facts.compute_capability,
                facts.sm_count,
                facts.l2_bytes >> 20,
                facts.driver
            );
            Finding::new("GPU", true, detail)
        }
        Err(error) => Finding::new("GPU", false, error.to_string()),
    };
    let header = |name| ptx.header(name).unwrap_or("unknown");
    let mut detail = format!(
        "{} kernels for {}, by the back end {}, {}",
        ptx.entries().len(),
        ptx.target().unwrap_or("an unknown target"),
        header("backend"),
        header("compiler")
    );
    let violations = ptx.violations();
    for violation in &violations {
        detail.push_str(&format!("\n{violation}"));
    }
    vec![
        Finding::new("simulator", true, format!("always there; {threads} threads")),
        gpu,
        Finding::new("PTX", violations.is_empty() && !ptx.entries().is_empty(), detail),
    ]
}
