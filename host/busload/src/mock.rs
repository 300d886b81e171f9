//! What stands for a GPU in tests of busload itself: it launches nothing, verifies nothing, and makes its times up.
//!
//! `busload bench --on mock` takes it, an option that help does not show, and `--mock KEY=VALUE,…` says more of it:
//!
//! | key | value |
//! | --- | --- |
//! | `seed` | what times are made from, a number; 0 without |
//! | `devices` | how many GPUs there are; 1 without |
//! | `pace` | microseconds that a sample takes; 0 without |
//! | `fault` | the kernel whose launch fails as one does that ends CUDA in a process |
//! | `die` | the kernel whose launch ends the process, by SIGKILL |
//! | `throttled` | the kernel whose clock is at half of the highest |
//! | `dips` | the kernel whose clock is so in every third sample |
//! | `slow` | the kernel that takes a quarter longer than on other GPUs |
//! | `log` | a file to which the name of each kernel is added when its turn comes |
//!
//! Times are the same for the same seed, GPU, kernel and case. A result of it has `"on": "mock"` and `"verified": false` in a report
//! whose machine has `"kind": "mock"`, which nobody takes for a measured one.

use crate::bench::{Asked, Copied, Device, OnGpu, copy_record, library_record, record};
use crate::cases::Run;
use crate::cuda::Facts;
use crate::measure::{NotTaken, Sample, Sampling, Timer, measure};
use crate::record::{ErrorRecord, MOCK, Machine, Record};
use crate::sensors::Sensors;
use crate::timing::{L2, Timed};
use std::io::Write;
use std::time::Duration;

/// What `--mock` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// What times are made from.
    pub seed: u64,
    /// How many GPUs there are, if not one.
    pub devices: Option<u32>,
    /// How long a sample takes.
    pub pace: Duration,
    /// The kernel whose launch fails for good.
    pub fault: Option<String>,
    /// The kernel whose launch ends the process.
    pub die: Option<String>,
    /// The kernel whose clock is too low.
    pub throttled: Option<String>,
    /// The kernel whose clock is too low now and then.
    pub dips: Option<String>,
    /// The kernel that is slow.
    pub slow: Option<String>,
    /// The file that tells which kernels had their turn.
    pub log: Option<String>,
}

/// What is wrong with settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}: not KEY=VALUE with a key and a value that a mock knows")]
pub struct NoSetting(String);

impl std::str::FromStr for Settings {
    type Err = NoSetting;

    fn from_str(text: &str) -> Result<Self, NoSetting> {
        let mut settings = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let wrong = || NoSetting(part.to_owned());
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            let number = || value.parse::<u64>().map_err(|_| wrong());
            match key {
                "seed" => settings.seed = number()?,
                "devices" => settings.devices = Some(u32::try_from(number()?).map_err(|_| wrong())?),
                "pace" => settings.pace = Duration::from_micros(number()?),
                "fault" => settings.fault = Some(value.to_owned()),
                "die" => settings.die = Some(value.to_owned()),
                "throttled" => settings.throttled = Some(value.to_owned()),
                "dips" => settings.dips = Some(value.to_owned()),
                "slow" => settings.slow = Some(value.to_owned()),
                "log" => settings.log = Some(value.to_owned()),
                _ => return Err(wrong()),
            }
        }
        Ok(settings)
    }
}

/// One GPU of a mock.
#[derive(Clone, Debug)]
pub struct Mock {
    settings: Settings,
    facts: Facts,
}

/// The highest clock of its SMs, in MHz.
const MAX_SM_MHZ: u32 = 2000;

/// The bandwidth that its kernels reach, in bytes a millisecond, and what a launch takes beside.
const BYTES_A_MS: f64 = 4e9;
const LAUNCH_MS: f64 = 0.003;

/// What lies between two samples, in milliseconds.
const BETWEEN_MS: f64 = 0.1;

impl Mock {
    /// The GPU of that number; none if there are no more than so many.
    pub fn open(settings: Settings, device: u32) -> Option<Self> {
        let facts = Facts {
            name: "busload mock GPU".to_owned(),
            device,
            // One of another seed is another GPU.
            uuid: Some(((u128::from(settings.seed) << 64) + u128::from(device)).to_be_bytes()),
            driver: "0.0".to_owned(),
            sm_count: 132,
            threads_per_sm: 2048,
            l2_bytes: 50 << 20,
            compute_capability: "9.0".to_owned(),
            peak_gbps: Some(4800.0),
            memory_bytes: 80 << 30,
        };
        (device < settings.devices.unwrap_or(1)).then_some(Self { settings, facts })
    }

    /// What is known of it.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    fn timer(&self, kernel: &str, case: &str, bytes: u64) -> MockTimer<'_> {
        let text = format!("{} {} {kernel} {case}", self.settings.seed, self.facts.device);
        // FNV-1a: the same on every machine and by every compiler.
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let seed = text.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
        let is_slow = self.settings.slow.as_deref() == Some(kernel);
        MockTimer {
            settings: &self.settings,
            is_throttled: self.settings.throttled.as_deref() == Some(kernel),
            dips: self.settings.dips.as_deref() == Some(kernel),
            ms: (bytes as f64 / BYTES_A_MS + LAUNCH_MS) * if is_slow { 1.25 } else { 1.0 },
            random: fastrand::Rng::with_seed(seed),
            taken: 0,
            elapsed: Duration::ZERO,
        }
    }

    /// The record of a kernel or a copy with times as they are asked for.
    fn timed(&self, mut record: Record, sampling: &Sampling, copied: Copied) -> Record {
        let mut timer = self.timer(&record.kernel, &record.case, record.bytes);
        let lowest = (sampling.min_clock * f64::from(MAX_SM_MHZ)) as u32;
        let series = sampling.l2.each().iter().map(|l2| {
            let taken = measure(sampling, *l2, Some(lowest), &mut timer)?;
            Ok::<_, NotTaken<std::convert::Infallible>>(taken.timed(
                *l2,
                record.bytes,
                copied.with(*l2),
                self.facts.peak_gbps,
            ))
        });
        match series.collect::<Result<Vec<Timed>, _>>() {
            Ok(timed) => {
                let mut timed = timed.into_iter();
                (record.timed, record.hot) = (timed.next(), timed.next());
            }
            Err(throttled) => {
                record.error = Some(ErrorRecord { kind: "throttled".to_owned(), message: throttled.to_string() });
            }
        }
        record
    }
}

impl Device for Mock {
    fn machine(&self) -> Machine {
        let nvml = Sensors { max_sm_mhz: Some(MAX_SM_MHZ), ..Sensors::default() };
        Machine { nvml: Some(nvml), ..Machine::of(MOCK, &self.facts) }
    }

    fn kernel(&self, run: &Run, asked: Asked, copied: Copied) -> OnGpu {
        let record = record(run, MOCK);
        if let Some(log) = &self.settings.log {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
            // Who asks for it sees that it is not there.
            let _ = file.and_then(|mut file| file.write_all(format!("{}\n", run.kernel.name).as_bytes()));
        }
        let is = |named: &Option<String>| named.as_deref() == Some(run.kernel.name);
        if is(&self.settings.die) {
            die();
        }
        if is(&self.settings.fault) {
            let message = "the launch failed, as it was asked to".to_owned();
            let error = Some(ErrorRecord { kind: "launch".to_owned(), message });
            return OnGpu { record: Record { error, ..record }, lost: true };
        }
        let record = match asked.sampling() {
            Some(sampling) => self.timed(record, &sampling, copied),
            None => record,
        };
        OnGpu { record, lost: false }
    }

    fn library(&self, run: &Run, asked: Asked, copied: Copied) -> Option<OnGpu> {
        let mut record = library_record(run, MOCK)?;
        if let Some(sampling) = asked.sampling() {
            record = self.timed(record, &sampling, copied);
        }
        Some(OnGpu { record, lost: false })
    }

    fn copy(&self, bytes: u64, sampling: &Sampling) -> Option<Record> {
        let mut record = self.timed(copy_record(bytes, MOCK), sampling, Copied::default());
        for timed in record.timed.iter_mut().chain(&mut record.hot) {
            timed.share_of_copy = Some(1.0);
        }
        Some(record)
    }
}

/// Ends this process as the system does when memory is short.
fn die() {
    #[cfg(target_os = "linux")]
    // SAFETY: a signal to this process, which does not come back from it.
    unsafe {
        libc::raise(libc::SIGKILL);
    }
    std::process::abort();
}

/// Makes times up: a few tenths of a percent about what the bytes take, hot ones half as long.
struct MockTimer<'a> {
    settings: &'a Settings,
    is_throttled: bool,
    dips: bool,
    ms: f64,
    random: fastrand::Rng,
    taken: u32,
    /// The time that would have passed: what comes of a run does not depend on the machine.
    elapsed: Duration,
}

impl Timer for MockTimer<'_> {
    type Error = std::convert::Infallible;

    fn sample(&mut self, l2: L2) -> Result<Sample, Self::Error> {
        if !self.settings.pace.is_zero() {
            std::thread::sleep(self.settings.pace);
        }
        self.taken += 1;
        let low = self.is_throttled || self.dips && self.taken.is_multiple_of(3);
        let share = if l2 == L2::Hot { 0.5 } else { 1.0 };
        let noise = 1.0 + 0.002 * (self.random.f64() + self.random.f64() + self.random.f64() - 1.5);
        let ms = share * self.ms * noise * if low { 2.0 } else { 1.0 };
        self.elapsed += Duration::from_secs_f64((ms + BETWEEN_MS) / 1e3);
        Ok(Sample { ms, sm_mhz: Some(if low { MAX_SM_MHZ / 2 } else { MAX_SM_MHZ }), ticks: None })
    }

    fn elapsed(&self) -> Duration {
        self.elapsed
    }

    fn recover(&mut self) {
        self.elapsed += Duration::from_millis(50);
    }
}
