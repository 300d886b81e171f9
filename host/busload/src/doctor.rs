//! What this machine can do, and what is missing for the rest.

use crate::cuda::{Gpu, Nvml, State, devices};
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
    let (gpu, nvml) = match Gpu::open(ptx.text()) {
        Ok(gpu) => {
            let facts = gpu.facts();
            let others = match devices() {
                Ok(count @ 2..) => format!("; the first of {count}, see bench --device"),
                _ => String::new(),
            };
            let detail = format!(
                "{}, compute capability {}, {} SMs, {} MiB of L2, driver for CUDA {}{others}",
                facts.name,
                facts.compute_capability,
                facts.sm_count,
                facts.l2_bytes >> 20,
                facts.driver
            );
            (Finding::new("GPU", true, detail), Some(sensors(gpu.nvml().zip(gpu.state()))))
        }
        Err(error) => (Finding::new("GPU", false, error.to_string()), None),
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
    let simulator = Finding::new("simulator", true, format!("always there; {threads} threads"));
    let ptx = Finding::new("PTX", violations.is_empty() && !ptx.entries().is_empty(), detail);
    [Some(simulator), Some(gpu), nvml, Some(ptx)].into_iter().flatten().collect()
}

/// What NVML tells of the GPU.
fn sensors(told: Option<(Nvml, State)>) -> Finding {
    let Some((nvml, state)) = told else {
        let detail = "libnvidia-ml.so.1 is not there, or does not know the GPU: times are taken without its clocks";
        return Finding::new("NVML", false, detail);
    };
    let of = |now: Option<String>, most: Option<String>, unit: &str| match (now, most) {
        (Some(now), Some(most)) => Some(format!("{now} of {most} {unit}")),
        (Some(now), None) => Some(format!("{now} {unit}")),
        (None, most) => most.map(|most| format!("up to {most} {unit}")),
    };
    let mhz = |clock: Option<u32>| clock.map(|mhz| mhz.to_string());
    let watts = |power: Option<f64>| power.map(|watts| format!("{watts:.0}"));
    let on =
        |what: &str, is_on: Option<bool>| is_on.map(|is_on| format!("{what} {}", if is_on { "on" } else { "off" }));
    let parts = [
        nvml.driver_version.map(|version| format!("driver {version}")),
        of(mhz(state.sm_mhz), mhz(nvml.max_sm_mhz), "MHz").map(|clock| format!("SMs at {clock}")),
        of(mhz(state.memory_mhz), mhz(nvml.max_memory_mhz), "MHz").map(|clock| format!("memory at {clock}")),
        state.temperature_c.map(|celsius| format!("{celsius} °C")),
        of(watts(state.power_w), watts(nvml.power_limit_w), "W"),
        on("ECC", nvml.ecc),
        on("MIG", nvml.mig),
        state
            .throttle
            .filter(|reasons| !reasons.is_empty())
            .map(|reasons| format!("held down by {}", reasons.join(", "))),
    ];
    Finding::new("NVML", true, parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nvml_tells_is_said_and_what_it_does_not_is_left_out() {
        let nvml = Nvml { max_sm_mhz: Some(1980), power_limit_w: Some(700.0), ecc: Some(true), ..Nvml::default() };
        let state = State { sm_mhz: Some(345), temperature_c: Some(31), throttle: Some(vec![]), ..State::default() };
        let finding = sensors(Some((nvml, state)));
        assert_eq!((finding.ok, finding.detail.as_str()), (true, "SMs at 345 of 1980 MHz, 31 °C, up to 700 W, ECC on"));
        assert!(!sensors(None).ok);
    }
}
