//! NVML, found at run time: the clocks, the heat and the power of a GPU. All of it is read, and nothing set.
//!
//! Any of its calls may fail, by the GPU, the driver or the rights of the user. What fails is not known, and nothing else comes of it.

use crate::{Nvml, State};
use nvml_wrapper::Device;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Instant;

/// What NVML calls one of the GPUs.
pub(super) struct Sensors {
    library: &'static nvml_wrapper::Nvml,
    device: Device<'static>,
    clock: Cell<Clocked>,
}

/// The clock of the SMs as it was read last.
#[derive(Clone, Copy)]
struct Clocked {
    mhz: Option<u32>,
    /// Before that time it is not read again.
    next: Instant,
}

/// How much longer than it took to read the clock it takes until it is read again: reading takes a tenth of the time at most. Clocks
/// change over milliseconds.
const PAUSE: u32 = 9;

impl Sensors {
    /// The GPU of that UUID, or else at that place on the PCI bus; none where there is no NVML, or it knows no such GPU.
    pub(super) fn of(uuid: Option<[u8; 16]>, pci_bus_id: Option<&str>) -> Option<Self> {
        static LIBRARY: OnceLock<Option<nvml_wrapper::Nvml>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| nvml_wrapper::Nvml::init().ok()).as_ref()?;
        let by_uuid = uuid.and_then(|uuid| library.device_by_uuid(name(uuid)).ok());
        let device = by_uuid.or_else(|| library.device_by_pci_bus_id(pci_bus_id?).ok())?;
        Some(Self { library, device, clock: Cell::new(Clocked { mhz: None, next: Instant::now() }) })
    }

    pub(super) fn facts(&self) -> Nvml {
        let clock = |clock| self.device.max_clock_info(clock).ok();
        Nvml {
            name: self.device.name().ok(),
            driver_version: self.library.sys_driver_version().ok(),
            max_sm_mhz: clock(Clock::SM),
            max_memory_mhz: clock(Clock::Memory),
            power_limit_w: self.device.enforced_power_limit().ok().map(watts),
            ecc: self.device.is_ecc_enabled().ok().map(|ecc| ecc.currently_enabled),
            mig: self.device.mig_mode().ok().map(|mig| mig.current != 0),
        }
    }

    pub(super) fn state(&self) -> State {
        let clock = |clock| self.device.clock_info(clock).ok();
        State {
            sm_mhz: clock(Clock::SM),
            memory_mhz: clock(Clock::Memory),
            temperature_c: self.device.temperature(TemperatureSensor::Gpu).ok(),
            power_w: self.device.power_usage().ok().map(watts),
            throttle: self.reasons().map(|reasons| {
                let names = (reasons - ThrottleReasons::GPU_IDLE).iter_names().map(|(name, _)| name.to_lowercase());
                names.collect()
            }),
        }
    }

    /// The clock of the SMs, in MHz, as it was read last where reading it again would take too much of the time.
    pub(super) fn sm_mhz(&self) -> Option<u32> {
        let last = self.clock.get();
        let begun = Instant::now();
        if begun < last.next {
            return last.mhz;
        }
        let mhz = self.device.clock_info(Clock::SM).ok();
        let ended = Instant::now();
        self.clock.set(Clocked { mhz, next: ended + PAUSE * (ended - begun) });
        mhz
    }

    /// Whether something else than that nothing ran may hold the clocks down.
    pub(super) fn is_held_down(&self) -> bool {
        self.reasons().is_none_or(|reasons| !(reasons - ThrottleReasons::GPU_IDLE).is_empty())
    }

    fn reasons(&self) -> Option<ThrottleReasons> {
        self.device.current_throttle_reasons().ok()
    }
}

/// NVML tells milliwatts.
fn watts(milliwatts: u32) -> f64 {
    f64::from(milliwatts) / 1e3
}

/// A UUID as NVML writes it.
fn name(uuid: [u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_as_nvml_writes_it() {
        let uuid = std::array::from_fn(|i| 0x11 * i as u8);
        assert_eq!(name(uuid), "GPU-00112233-4455-6677-8899-aabbccddeeff");
    }

    #[test]
    fn without_a_gpu_that_nvml_knows_there_are_no_sensors() {
        assert!(Sensors::of(Some([0; 16]), Some("ffff:ff:1f.0")).is_none());
    }
}
