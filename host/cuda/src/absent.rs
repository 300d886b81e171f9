//! What stands for the GPU where busload is built without it: nothing can be opened, so nothing else can happen.

use crate::{Nvml, Sample, State};
use gpu::device::host::Kernel;
use gpu::suite::{Buffer, Plan};
use std::convert::Infallible;

/// Why no GPU can be opened.
#[derive(Clone, Debug, thiserror::Error)]
#[error("busload was built without CUDA: build it on x86_64 Linux with the feature `cuda`")]
pub struct GpuError;

impl GpuError {
    /// Whether the machine has no GPU at all, rather than one that cannot be used.
    pub fn means_none(&self) -> bool {
        true
    }
}

/// Why a case cannot be run; never made.
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub struct RunError(Infallible);

impl RunError {
    /// Whether nothing can run on a GPU any more until a new process begins.
    pub fn is_final(&self) -> bool {
        match self.0 {}
    }

    /// What kind of error it is, for reports.
    pub fn kind(&self) -> &'static str {
        match self.0 {}
    }
}

/// What is known of a GPU before anything is measured.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "documented where there is a GPU")]
pub struct Facts {
    pub name: String,
    pub device: u32,
    pub uuid: Option<[u8; 16]>,
    pub driver: String,
    pub sm_count: u32,
    pub threads_per_sm: u32,
    pub l2_bytes: u64,
    pub compute_capability: String,
    pub peak_gbps: Option<f64>,
    pub memory_bytes: u64,
}

/// How many GPUs the driver lists.
///
/// # Errors
/// Always.
pub fn devices() -> Result<u32, GpuError> {
    Err(GpuError)
}

/// The machine's GPU; never made.
pub enum Gpu {}

#[allow(missing_docs, reason = "documented where there is a GPU")]
impl Gpu {
    pub fn open(_ptx: &str) -> Result<Self, GpuError> {
        Err(GpuError)
    }
    pub fn open_device(_device: u32, _ptx: &str) -> Result<Self, GpuError> {
        Err(GpuError)
    }
    pub fn facts(&self) -> &Facts {
        match *self {}
    }
    pub fn nvml(&self) -> Option<Nvml> {
        match *self {}
    }
    pub fn state(&self) -> Option<State> {
        match *self {}
    }
    pub fn recover(&self) {
        match *self {}
    }
    pub fn prepare<'a>(&'a self, _kernel: &Kernel, _plan: &'a Plan) -> Result<Prepared<'a>, RunError> {
        match *self {}
    }
    pub fn prepare_entry<'a>(
        &'a self,
        _entry: &'static str,
        _plan: &'a Plan,
        _parameters: &[crate::Parameter],
        _variables: std::ops::Range<usize>,
    ) -> Result<Prepared<'a>, RunError> {
        match *self {}
    }
    pub fn prepare_library<'a>(&'a self, _plan: &'a Plan) -> Option<Result<Prepared<'a>, RunError>> {
        match *self {}
    }
    pub fn copy_probe(&self, _bytes: u64) -> Result<CopyProbe<'_>, RunError> {
        match *self {}
    }
}

/// A kernel with its buffers on the GPU; never made.
pub struct Prepared<'a>(&'a Gpu);

#[allow(missing_docs, reason = "documented where there is a GPU")]
impl<'a> Prepared<'a> {
    pub fn verify(&self, _poison: u8, _check: &mut dyn FnMut(&'a Buffer, u64, &[u8])) -> Result<(), RunError> {
        match *self.0 {}
    }
    pub fn occupancy(&self) -> Result<Option<u32>, RunError> {
        match *self.0 {}
    }
    pub fn sample(&self, _flush: bool) -> Result<Sample, RunError> {
        match *self.0 {}
    }
    pub fn ticks(&self) -> Result<Option<f64>, RunError> {
        match *self.0 {}
    }
}

/// The device's own copy; never made.
pub struct CopyProbe<'a>(&'a Gpu);

#[allow(missing_docs, reason = "documented where there is a GPU")]
impl CopyProbe<'_> {
    pub fn sample(&self, _flush: bool) -> Result<Sample, RunError> {
        match *self.0 {}
    }
}
