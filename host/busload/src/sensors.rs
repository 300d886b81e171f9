//! What NVML tells of a GPU, as results keep it. Whatever it does not tell is not there.

use crate::cuda;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What holds for a whole run.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Sensors {
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

/// The GPU at one moment.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The clock of the SMs, in MHz.
    pub sm_mhz: Option<u32>,
    /// The clock of the memory, in MHz.
    pub memory_mhz: Option<u32>,
    /// The temperature in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// The power that the GPU draws, in watts.
    pub power_w: Option<f64>,
    /// Why clocks are lower than they could be, in NVML's words; none is known where it does not tell.
    pub throttle: Option<Vec<String>>,
}

impl From<cuda::Nvml> for Sensors {
    fn from(nvml: cuda::Nvml) -> Self {
        let cuda::Nvml { name, driver_version, max_sm_mhz, max_memory_mhz, power_limit_w, ecc, mig } = nvml;
        Self { name, driver_version, max_sm_mhz, max_memory_mhz, power_limit_w, ecc, mig }
    }
}

impl From<cuda::State> for State {
    fn from(state: cuda::State) -> Self {
        let cuda::State { sm_mhz, memory_mhz, temperature_c, power_w, throttle } = state;
        Self { sm_mhz, memory_mhz, temperature_c, power_w, throttle }
    }
}
