//! The GPU as a machine: opens it, puts a case's buffers on it, launches, times, and reads back.
//!
//! The only place that imports `cust`. Where `cust` has no call, or its enumeration of results is too old for the
//! driver's answer, the driver's function is declared beside its use.

mod copy;
mod driver;
mod error;
mod library;
mod memory;
mod nvml;
mod prepared;
mod ptx;
mod session;

pub use copy::CopyProbe;
pub use driver::DriverError;
pub use error::{CallError, GpuError, RunError, Version};
pub use prepared::Prepared;

use crate::{Nvml, State};
use cust::CudaApiVersion;
use cust::device::{Device, DeviceAttribute};
use error::Named;
use gpu::device::host::Kernel;
use gpu::suite::Plan;
use library::Cublas;
use nvml::Sensors;
use ptx::Ptx;
use session::Session;
use std::cell::OnceCell;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::marker::PhantomData;
use std::time::Duration;

unsafe extern "C" {
    fn cuInit(flags: c_uint) -> c_int;
    fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) -> c_int;
    fn cuDeviceGetPCIBusId(text: *mut c_char, length: c_int, device: c_int) -> c_int;
}

/// What is known of a GPU before anything is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The GPU's name.
    pub name: String,
    /// Its number among those that the driver lists.
    pub device: u32,
    /// What tells it from every other GPU.
    pub uuid: Option<[u8; 16]>,
    /// The CUDA version that the driver supports, as `13.0`.
    pub driver: String,
    /// SMs of the GPU.
    pub sm_count: u32,
    /// Threads that an SM holds at most.
    pub threads_per_sm: u32,
    /// Bytes of the L2 cache.
    pub l2_bytes: u64,
    /// The compute capability, as `9.0`.
    pub compute_capability: String,
    /// The peak of the memory's bandwidth in gigabytes (10⁹ bytes) a second, twice the memory clock times the width of
    /// the bus; none where the driver does not tell the clock, as newer ones may.
    pub peak_gbps: Option<f64>,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// How many GPUs the driver lists, one at least.
///
/// # Errors
/// If there is no driver, or no GPU.
pub fn devices() -> Result<u32, GpuError> {
    const NO_DEVICE: u32 = 100;
    driver::load()?;
    // SAFETY: the driver is loaded, and zero is the only value that the call takes.
    CallError::check("cuInit", unsafe { cuInit(0) }).map_err(|error| match error.code() {
        NO_DEVICE => GpuError::NoDevice,
        _ => error.into(),
    })?;
    match Device::num_devices().named("cuDeviceGetCount")? {
        0 => Err(GpuError::NoDevice),
        count => Ok(count),
    }
}

/// One of the machine's GPUs with the kernels loaded.
///
/// It holds the device's primary context, which is current on the thread that opened it, so a `Gpu` stays there.
pub struct Gpu {
    facts: Facts,
    /// Opened when first asked for; none if the machine has none.
    cublas: OnceCell<Option<Cublas>>,
    session: Session,
    _on_this_thread: PhantomData<*mut ()>,
}

impl Gpu {
    /// Opens the first GPU that the driver lists, and loads the kernels of `ptx`.
    ///
    /// # Errors
    /// If there is no driver, no GPU, or either cannot take the PTX.
    pub fn open(ptx: &str) -> Result<Self, GpuError> {
        Self::open_device(0, ptx)
    }

    /// Opens a GPU by its number among those that the driver lists, and loads the kernels of `ptx`.
    ///
    /// # Errors
    /// If there is no driver, no such GPU, or either cannot take the PTX.
    pub fn open_device(device: u32, ptx: &str) -> Result<Self, GpuError> {
        driver::load()?;
        let ptx = Ptx::new(ptx)?;
        let (asked, listed) = (device, devices()?);
        if asked >= listed {
            return Err(GpuError::NoSuchDevice { asked, listed });
        }
        let device = Device::get_device(asked).named("cuDeviceGet")?;

        let version = CudaApiVersion::get().named("cuDriverGetVersion")?;
        let driver = Version { major: version.major().cast_unsigned(), minor: version.minor().cast_unsigned() };
        ptx.accepted_by(driver)?;
        let capability = Version {
            major: attribute(device, DeviceAttribute::ComputeCapabilityMajor)?,
            minor: attribute(device, DeviceAttribute::ComputeCapabilityMinor)?,
        };
        let facts = facts(asked, device, driver, capability)?;
        let has = capability.major * 10 + capability.minor;
        if has < ptx.target {
            return Err(GpuError::GpuTooOld { name: facts.name, has, needs: ptx.target });
        }
        // More than the L2 holds, by a margin for how it places lines.
        let flush_bytes = (2 * facts.l2_bytes).max(256 << 20);
        let sensors = Sensors::of(facts.uuid, pci_bus_id(device).as_deref());
        let session = Session::open(device, &ptx, flush_bytes, sensors)?;
        Ok(Self { facts, cublas: OnceCell::new(), session, _on_this_thread: PhantomData })
    }

    /// What is known of the GPU.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What NVML tells of the GPU for good; none where there is no NVML, or it does not know the GPU.
    pub fn nvml(&self) -> Option<Nvml> {
        self.session.sensors.as_ref().map(Sensors::facts)
    }

    /// What NVML tells of the GPU as it is now.
    pub fn state(&self) -> Option<State> {
        self.session.sensors.as_ref().map(Sensors::state)
    }

    /// Lets the GPU come back to its clocks: waits where heat or power holds them down. Clocks that are low since nothing ran rise by what
    /// runs next.
    pub fn recover(&self) {
        if self.session.sensors.as_ref().is_none_or(Sensors::is_held_down) {
            std::thread::sleep(RECOVERY);
        }
    }

    /// Puts the buffers of a plan on the GPU, inputs filled.
    ///
    /// # Errors
    /// If the plan does not fit the kernel's parameters, or its buffers do not fit in memory.
    pub fn prepare<'a>(&'a self, kernel: &Kernel, plan: &'a Plan) -> Result<Prepared<'a>, RunError> {
        Prepared::new(&self.session, kernel, plan)
    }

    /// Puts the buffers of a plan on the GPU for an entry of anybody's module. Its parameters are not known to it: each is to be given as
    /// many bytes as it has. `variables` are the buffers of the plan that fill variables of the module.
    ///
    /// # Errors
    /// If there is no such entry, or the buffers do not fit in memory.
    pub fn prepare_entry<'a>(
        &'a self,
        entry: &'static str,
        plan: &'a Plan,
        parameters: &[crate::Parameter],
        variables: std::ops::Range<usize>,
    ) -> Result<Prepared<'a>, RunError> {
        Prepared::entry(&self.session, entry, plan, parameters, variables)
    }

    /// Puts the buffers of a plan on the GPU for the library's routine that it names; none if it names none, or the
    /// machine has no such library.
    ///
    /// # Errors
    /// If its buffers do not fit in memory.
    pub fn prepare_library<'a>(&'a self, plan: &'a Plan) -> Option<Result<Prepared<'a>, RunError>> {
        let library = plan.library?;
        let cublas = self.cublas.get_or_init(|| Cublas::open(&self.session.stream)).as_ref()?;
        Some(Prepared::library(&self.session, cublas, library, plan))
    }

    /// Puts two buffers of `bytes` bytes on the GPU, to time the driver's copy from one to the other.
    ///
    /// # Errors
    /// If they do not fit in memory.
    pub fn copy_probe(&self, bytes: u64) -> Result<CopyProbe<'_>, RunError> {
        CopyProbe::new(&self.session, bytes)
    }
}

/// How long a GPU is let alone whose clocks are held down.
const RECOVERY: Duration = Duration::from_millis(50);

/// The GPU's UUID, if the driver tells.
fn uuid(device: Device) -> Option<[u8; 16]> {
    let mut uuid = [0; 16];
    // SAFETY: the driver writes 16 bytes.
    let code = unsafe { cuDeviceGetUuid(&raw mut uuid, device.as_raw()) };
    (code == 0).then_some(uuid)
}

/// Where on the PCI bus the GPU is, as `0000:18:00.0`, if the driver tells.
fn pci_bus_id(device: Device) -> Option<String> {
    let mut text = [0u8; 32];
    // SAFETY: the driver writes at most so many bytes, a null among them.
    let code = unsafe { cuDeviceGetPCIBusId(text.as_mut_ptr().cast(), text.len() as c_int, device.as_raw()) };
    (code == 0).then(|| CStr::from_bytes_until_nul(&text).ok()?.to_str().ok().map(str::to_owned)).flatten()
}

fn facts(number: u32, device: Device, driver: Version, capability: Version) -> Result<Facts, CallError> {
    let clock_khz = attribute(device, DeviceAttribute::MemoryClockRate)?;
    let bus_bits = attribute(device, DeviceAttribute::GlobalMemoryBusWidth)?;
    Ok(Facts {
        name: device.name().named("cuDeviceGetName")?,
        device: number,
        uuid: uuid(device),
        driver: driver.to_string(),
        sm_count: attribute(device, DeviceAttribute::MultiprocessorCount)?,
        threads_per_sm: attribute(device, DeviceAttribute::MaxThreadsPerMultiprocessor)?,
        l2_bytes: attribute(device, DeviceAttribute::L2CacheSize)?.into(),
        compute_capability: capability.to_string(),
        peak_gbps: peak_gbps(clock_khz, bus_bits),
        memory_bytes: device.total_memory().named("cuDeviceTotalMem")? as u64,
    })
}

fn attribute(device: Device, attribute: DeviceAttribute) -> Result<u32, CallError> {
    Ok(device.get_attribute(attribute).named("cuDeviceGetAttribute")?.try_into().unwrap_or(0))
}

/// Two transfers a clock.
fn peak_gbps(clock_khz: u32, bus_bits: u32) -> Option<f64> {
    let peak = 2.0 * f64::from(clock_khz) * 1e3 * f64::from(bus_bits) / 8.0 / 1e9;
    (peak > 0.0).then_some(peak)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_of_an_h200() {
        assert_eq!(peak_gbps(3_201_000, 6016).map(f64::round), Some(4814.0));
        assert_eq!(peak_gbps(0, 6016), None);
    }

    #[test]
    fn no_driver_is_an_error_that_says_so() {
        if driver::load().is_err() {
            let error = Gpu::open(".version 7.0\n.target sm_80").err().expect("opens without a driver");
            assert!(matches!(error, GpuError::NoDriver(_)) && error.to_string().contains("libcuda.so.1"), "{error}");
        }
    }
}
