//! Runs kernels on cases: in the simulator, or on a GPU, where nothing is timed before it is verified.

use crate::cases::Run;
use crate::cuda::{CopyProbe, Gpu, Prepared, RunError};
use crate::front::Front;
use crate::judge;
pub use crate::judge::count_differences;
use crate::measure::{NotTaken, Sample, Sampling, Timer, measure};
use crate::record::{self, ErrorRecord, Machine, Occupancy, Record, Simulated, SiteRecord};
use crate::sim::{self, Outcome, SimulationError};
use crate::timing::{L2, Timed};
use crate::verify::{Check, Mismatch};
use gpu::suite::{OTHER_POISON, POISON};
use plan::runs::Hashes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Lane accesses that a simulation of a whole grid may take before blocks are sampled instead: some seconds. And those of a sample.
const WHOLE_GRID: u64 = 1 << 29;
const SAMPLE: u64 = 1 << 26;

/// A record of a run of which nothing is known yet.
pub(crate) fn record(run: &Run, on: &str) -> Record {
    Record {
        kernel: run.kernel.name.to_owned(),
        family: run.family.name.to_owned(),
        case: run.case.to_string(),
        params: run.case.values.iter().map(|(name, value)| ((*name).to_owned(), record::param(*value))).collect(),
        on: on.to_owned(),
        launch: Some(run.plan.launch.into()),
        occupancy: None,
        verified: false,
        bytes: run.plan.bytes,
        moved: None,
        error: None,
        simulated: None,
        timed: None,
        hot: None,
    }
}

fn error(kind: &str, message: impl ToString) -> Option<ErrorRecord> {
    Some(ErrorRecord { kind: kind.to_owned(), message: message.to_string() })
}

/// `options`, with a grid too large to run whole in some seconds sampled, unless they say how many blocks.
pub fn sampled(run: &Run, options: &sim::Options) -> sim::Options {
    let mut options = options.clone();
    let accesses = sim::expected_accesses(&run.plan).max(run.plan.launch.threads());
    if options.max_blocks == u64::MAX && accesses > WHOLE_GRID {
        let blocks = run.plan.launch.block_count();
        options.max_blocks = (blocks as f64 * (SAMPLE as f64 / accesses as f64)).ceil().max(1.0) as u64;
    }
    options
}

/// Runs a kernel in the simulator, from its source. All that the simulator tells comes with the record; none if the kernel was not run.
pub fn simulate(run: &Run, options: &sim::Options, progress: &dyn Fn(u64, u64)) -> (Record, Option<Outcome>) {
    simulate_on(&Front::Source, run, options, progress)
}

/// The same on either machine of the CPU.
pub fn simulate_on(
    front: &Front,
    run: &Run,
    options: &sim::Options,
    progress: &dyn Fn(u64, u64),
) -> (Record, Option<Outcome>) {
    let mut record = record(run, front.name());
    let outcome = match front.simulate(run, options, progress) {
        Ok(outcome) => outcome,
        Err(ptx_machine::Error::Simulation(wrong)) => {
            let too_much = matches!(wrong, SimulationError::TooLarge { .. } | SimulationError::Exhausted { .. });
            let also = if too_much { ", or sample with --max-blocks" } else { "" };
            record.error = error(wrong.kind(), format!("{wrong}{also}"));
            return (record, None);
        }
        Err(wrong) => {
            record.error = error("plan", wrong);
            return (record, None);
        }
    };
    record.error =
        judge::judge(&run.plan, &outcome, front.counts_as_source()).and_then(|wrong| error(wrong.kind, wrong.message));
    record.verified = record.error.is_none() && outcome.blocks.complete() && run.plan.has_output();
    record.simulated = Some(Simulated {
        blocks: outcome.blocks.into(),
        counts_stated: !run.plan.expected.is_empty() && front.counts_as_source(),
        sites: outcome.sites.iter().map(SiteRecord::from).collect(),
    });
    (record, Some(outcome))
}

/// What is to be done with a kernel on a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Asked {
    /// Launch it once, as a profiler counts launches, and verify it as far as one run tells.
    Once,
    /// Verify it.
    Verify,
    /// Verify it, and then take samples of its time.
    Measure(Sampling),
}

impl Asked {
    /// How samples are taken, if any are.
    pub fn sampling(self) -> Option<Sampling> {
        if let Self::Measure(sampling) = self { Some(sampling) } else { None }
    }
}

/// How fast the device copies some number of bytes, in GB/s, read plus written: what a kernel's bandwidth is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Copied {
    /// With a cold L2.
    pub cold: Option<f64>,
    /// With a hot one.
    pub hot: Option<f64>,
}

impl Copied {
    /// As a record of it says.
    pub fn of(record: &Record) -> Self {
        let series = || record.timed.iter().chain(&record.hot);
        let with = |l2| series().find(|timed| timed.l2 == l2).map(|timed| timed.gbps);
        Self { cold: with(L2::Cold), hot: with(L2::Hot) }
    }

    /// With such an L2.
    pub fn with(self, l2: L2) -> Option<f64> {
        match l2 {
            L2::Cold => self.cold,
            L2::Hot => self.hot,
        }
    }
}

/// What came of a run on a GPU.
pub struct OnGpu {
    /// Its record.
    pub record: Record,
    /// Whether the process can run nothing more on the GPU.
    pub lost: bool,
}

/// What runs are launched on: a GPU, or what stands for one.
pub trait Device {
    /// What results say of it.
    fn machine(&self) -> Machine;

    /// Does with a kernel what is asked. `copied` is the device's copy of as many bytes.
    fn kernel(&self, run: &Run, asked: Asked, copied: Copied) -> OnGpu;

    /// The same for the library's routine that the run's plan names; none if there is none to run.
    fn library(&self, run: &Run, asked: Asked, copied: Copied) -> Option<OnGpu>;

    /// Times the device's copy of so many bytes, read plus written: the ceiling of every table. None if it cannot be timed, as where it
    /// does not fit in memory.
    fn copy(&self, bytes: u64, sampling: &Sampling) -> Option<Record>;
}

impl Device for Gpu {
    fn machine(&self) -> Machine {
        Machine::gpu(self)
    }

    fn kernel(&self, run: &Run, asked: Asked, copied: Copied) -> OnGpu {
        let mut done = judge_on_gpu(self, record(run, "gpu"), self.prepare(&run.kernel, &run.plan), asked, copied);
        done.record.verified &= run.plan.has_output();
        done
    }

    fn library(&self, run: &Run, asked: Asked, copied: Copied) -> Option<OnGpu> {
        let result = self.prepare_library(&run.plan)?;
        Some(judge_on_gpu(self, library_record(run, "gpu")?, result, asked, copied))
    }

    fn copy(&self, bytes: u64, sampling: &Sampling) -> Option<Record> {
        let probe = self.copy_probe(bytes / 2).ok()?;
        let mut record = copy_record(bytes, "gpu");
        let timed =
            each_series(self, sampling, bytes, Copied::default(), &mut OnDevice::new(self, Timing::Copy(&probe)));
        set(&mut record, timed.ok()?);
        for timed in record.timed.iter_mut().chain(&mut record.hot) {
            timed.share_of_copy = Some(1.0);
        }
        Some(record)
    }
}

/// The record of the library's routine beside a run, of which nothing is known yet; none if there is no such routine.
pub(crate) fn library_record(run: &Run, on: &str) -> Option<Record> {
    let kernel = run.plan.library?.name().to_owned();
    Some(Record { kernel, family: "library".to_owned(), launch: None, ..record(run, on) })
}

/// The record of a copy of which nothing is known yet.
pub(crate) fn copy_record(bytes: u64, on: &str) -> Record {
    Record {
        kernel: COPY.to_owned(),
        family: "library".to_owned(),
        case: format!("{bytes} bytes"),
        params: Default::default(),
        on: on.to_owned(),
        launch: None,
        occupancy: None,
        verified: false,
        bytes,
        moved: None,
        error: None,
        simulated: None,
        timed: None,
        hot: None,
    }
}

fn judge_on_gpu(
    gpu: &Gpu,
    mut record: Record,
    prepared: Result<Prepared<'_>, RunError>,
    asked: Asked,
    copied: Copied,
) -> OnGpu {
    let mut lost = false;
    let block_threads = record.launch.as_ref().map_or(0, |launch| launch.block.iter().product());
    let result = prepared.map_err(Failure::Run).and_then(|prepared| {
        record.occupancy = prepared.occupancy()?.map(|blocks_per_sm| Occupancy {
            blocks_per_sm,
            share: f64::from(blocks_per_sm * block_threads) / f64::from(gpu.facts().threads_per_sm),
        });
        verify(&prepared, asked)?;
        // Nothing is timed before it is verified.
        record.verified = true;
        let Some(sampling) = asked.sampling() else { return Ok(Vec::new()) };
        let mut timer = OnDevice::new(gpu, Timing::Launch(&prepared));
        each_series(gpu, &sampling, record.bytes, copied, &mut timer).map_err(|not_taken| match not_taken {
            NotTaken::Failed(error) => Failure::Run(error),
            throttled @ NotTaken::Throttled { .. } => Failure::Throttled(throttled.to_string()),
        })
    });
    match result {
        Ok(timed) => set(&mut record, timed),
        Err(Failure::Wrong(mismatch)) => record.error = error("verification", mismatch),
        Err(Failure::Throttled(message)) => record.error = error("throttled", message),
        Err(Failure::Run(failure)) => {
            lost = failure.is_final();
            record.verified = false;
            record.error = error(failure.kind(), failure);
        }
    }
    OnGpu { record, lost }
}

/// The times of one series, or of the one and the other.
fn set(record: &mut Record, timed: Vec<Timed>) {
    let mut timed = timed.into_iter();
    (record.timed, record.hot) = (timed.next(), timed.next());
}

/// Takes samples of each series that is asked for.
pub(crate) fn each_series(
    gpu: &Gpu,
    sampling: &Sampling,
    bytes: u64,
    copied: Copied,
    timer: &mut OnDevice<'_>,
) -> Result<Vec<Timed>, NotTaken<RunError>> {
    let highest = gpu.nvml().and_then(|nvml| nvml.max_sm_mhz);
    let lowest = highest.map(|highest| (sampling.min_clock * f64::from(highest)) as u32);
    let series = sampling.l2.each().iter().map(|l2| {
        let taken = measure(sampling, *l2, lowest, timer)?;
        let state = gpu.state().map(Into::into);
        Ok(Timed { state, ..taken.timed(*l2, bytes, copied.with(*l2), gpu.facts().peak_gbps) })
    });
    series.collect()
}

/// What a GPU takes samples of.
pub(crate) enum Timing<'a> {
    /// A launch.
    Launch(&'a Prepared<'a>),
    /// The device's own copy.
    Copy(&'a CopyProbe<'a>),
}

/// Takes samples on a GPU.
pub(crate) struct OnDevice<'a> {
    gpu: &'a Gpu,
    timing: Timing<'a>,
    begun: Instant,
}

impl<'a> OnDevice<'a> {
    pub(crate) fn new(gpu: &'a Gpu, timing: Timing<'a>) -> Self {
        Self { gpu, timing, begun: Instant::now() }
    }
}

impl Timer for OnDevice<'_> {
    type Error = RunError;

    fn sample(&mut self, l2: L2) -> Result<Sample, RunError> {
        let flush = l2 == L2::Cold;
        let (sample, ticks) = match &self.timing {
            Timing::Launch(prepared) => (prepared.sample(flush)?, prepared.ticks()?),
            Timing::Copy(probe) => (probe.sample(flush)?, None),
        };
        Ok(Sample { ms: sample.ms, sm_mhz: sample.sm_mhz, ticks })
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn recover(&mut self) {
        self.gpu.recover();
    }
}

/// The record of a run that did not take place.
pub fn not_run(run: &Run, on: &str, why: String) -> Record {
    Record { error: error(NOT_RUN, why), ..record(run, on) }
}

/// The kind of error of a run that did not take place.
pub const NOT_RUN: &str = "not run";

enum Failure {
    Wrong(Mismatch),
    Throttled(String),
    Run(RunError),
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

/// Verifies a kernel by two runs, with another poison each: what holds its poison after both, nobody wrote, and no byte of it is right
/// in both. Under a profiler, by one.
fn verify(prepared: &Prepared<'_>, asked: Asked) -> Result<(), Failure> {
    let poisons: &[u8] = if asked == Asked::Once { &[POISON] } else { &[POISON, OTHER_POISON] };
    let mut first_run = Hashes::default();
    for &poison in poisons {
        let mut checks: Vec<(&'static str, Check<'_>)> = Vec::new();
        prepared.verify(poison, &mut |buffer, start, bytes| {
            if checks.last().is_none_or(|(name, _)| *name != buffer.name) {
                checks.push((buffer.name, Check::new(buffer)));
            }
            if let Some((_, check)) = checks.last_mut() {
                check.compare_bytes(start, bytes, poison, &mut first_run);
            }
        })?;
        checks.into_iter().try_for_each(|(_, check)| check.finish()).map_err(Failure::Wrong)?;
    }
    Ok(())
}

/// The device's copy, as results name it.
pub const COPY: &str = "cuMemcpyDtoD";
