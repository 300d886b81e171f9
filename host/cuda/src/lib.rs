//! The GPU: found by its driver at run time, launched, timed, read back, checked around every buffer.
//!
//! It knows kernels and plans, and nothing of what is made of the results. It alone imports `cust` and `nvml-wrapper`. Built without
//! its feature `driver`, or for another system, it has the same names, and no GPU can be opened.

#[cfg(not(all(feature = "driver", target_os = "linux", target_arch = "x86_64")))]
mod absent;
#[cfg(all(feature = "driver", target_os = "linux", target_arch = "x86_64"))]
mod present;

#[cfg(not(all(feature = "driver", target_os = "linux", target_arch = "x86_64")))]
pub use absent::*;
#[cfg(all(feature = "driver", target_os = "linux", target_arch = "x86_64"))]
pub use present::*;

/// What a parameter of an entry is given that nothing else is known of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The address of a buffer: its number in the plan.
    Buffer(usize),
    /// Its bytes.
    Bytes(Vec<u8>),
}

/// A sample of the time of what runs on a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Milliseconds between two events around it.
    pub ms: f64,
    /// The clock of the SMs while the GPU was at it, in MHz, if NVML tells.
    pub sm_mhz: Option<u32>,
}

/// What NVML tells of a GPU for good. Whatever it does not tell is not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nvml {
    /// The GPU's name.
    pub name: Option<String>,
    /// The version of the driver, as `580.65.06`.
    pub driver_version: Option<String>,
    /// The highest clock of the SMs, in MHz.
    pub max_sm_mhz: Option<u32>,
    /// The highest clock of the memory, in MHz.
    pub max_memory_mhz: Option<u32>,
    /// The power that the GPU may draw, in watts.
    pub power_limit_w: Option<f64>,
    /// Whether the memory corrects errors.
    pub ecc: Option<bool>,
    /// Whether the GPU is divided into instances.
    pub mig: Option<bool>,
}

/// What NVML tells of a GPU at one moment. Whatever it does not tell is not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The clock of the SMs, in MHz.
    pub sm_mhz: Option<u32>,
    /// The clock of the memory, in MHz.
    pub memory_mhz: Option<u32>,
    /// The temperature in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// The power that the GPU draws, in watts.
    pub power_w: Option<f64>,
    /// What holds its clocks down, by NVML's names. That nothing runs is not among them.
    pub throttle: Option<Vec<String>>,
}
