//! Runs kernels on cases: in the simulator, or on a GPU, where nothing is timed before it is verified.

use crate::cases::Run;
use crate::cuda::{Gpu, Prepared, RunError};
use crate::front::Front;
use crate::judge;
pub use crate::judge::count_differences;
use crate::record::{self, ErrorRecord, Occupancy, Record, Simulated, SiteRecord};
use crate::sim::{self, Outcome, SimulationError};
pub use crate::timing::L2;
use crate::timing::{Timed, quantile, sorted, timed};
use crate::verify::{Actual, Check, Mismatch, Written};
use gpu::suite::{Before, Buffer, OTHER_POISON, POISON};

/// Lane accesses that a simulation of a whole grid may take before blocks are sampled instead: some seconds. And those of a sample.
const WHOLE_GRID: u64 = 1 << 29;
const SAMPLE: u64 = 1 << 26;

/// How many samples to take of a kernel's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// Launches before the first sample.
    pub warm_up: u32,
    /// Samples, at least 1.
    pub count: u32,
    /// What the L2 holds before each.
    pub l2: L2,
}

/// Takes samples in milliseconds from `timer`.
///
/// # Errors
/// The timer's first.
pub fn measure<E>(samples: Samples, mut timer: impl FnMut() -> Result<f64, E>) -> Result<Vec<f64>, E> {
    for _ in 0..samples.warm_up {
        timer()?;
    }
    (0..samples.count).map(|_| timer()).collect()
}

/// A record of a run of which nothing is known yet.
fn record(run: &Run, on: &str) -> Record {
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

/// What came of a run on a GPU.
pub struct OnGpu {
    /// Its record.
    pub record: Record,
    /// Whether the process can run nothing more on the GPU.
    pub lost: bool,
}

/// Verifies a kernel on a GPU and then, with `samples`, times it. `copy_gbps` is the device's copy of as many bytes.
pub fn on_gpu(gpu: &Gpu, run: &Run, samples: Option<Samples>, copy_gbps: Option<f64>) -> OnGpu {
    judged(gpu, run, Verified::Surely, samples, copy_gbps)
}

/// Launches a kernel once on a GPU, as a profiler counts launches, and verifies it as far as one run tells.
pub fn once_on_gpu(gpu: &Gpu, run: &Run) -> OnGpu {
    judged(gpu, run, Verified::Once, None, None)
}

fn judged(gpu: &Gpu, run: &Run, verified: Verified, samples: Option<Samples>, copy_gbps: Option<f64>) -> OnGpu {
    let result = gpu.prepare(&run.kernel, &run.plan);
    let mut done = judge_on_gpu(gpu, record(run, "gpu"), result, verified, samples, copy_gbps);
    done.record.verified &= run.plan.has_output();
    done
}

/// The same for the library's routine that the run's plan names; none if there is none to run.
pub fn library_on_gpu(gpu: &Gpu, run: &Run, samples: Option<Samples>, copy_gbps: Option<f64>) -> Option<OnGpu> {
    let result = gpu.prepare_library(&run.plan)?;
    let mut record = record(run, "gpu");
    record.kernel = run.plan.library?.name().to_owned();
    record.family = "library".to_owned();
    record.launch = None;
    Some(judge_on_gpu(gpu, record, result, Verified::Surely, samples, copy_gbps))
}

fn judge_on_gpu(
    gpu: &Gpu,
    mut record: Record,
    prepared: Result<Prepared<'_>, RunError>,
    verified: Verified,
    samples: Option<Samples>,
    copy_gbps: Option<f64>,
) -> OnGpu {
    let mut lost = false;
    let block_threads = record.launch.as_ref().map_or(0, |launch| launch.block.iter().product());
    let result = prepared.map_err(Failure::Run).and_then(|prepared| {
        record.occupancy = prepared.occupancy()?.map(|blocks_per_sm| Occupancy {
            blocks_per_sm,
            share: f64::from(blocks_per_sm * block_threads) / f64::from(gpu.facts().threads_per_sm),
        });
        verify_and_time(&prepared, verified, samples)
    });
    match result {
        Ok(samples_taken) => {
            record.verified = true;
            record.timed = samples_taken.zip(samples).map(|((samples_ms, cycles), samples)| Timed {
                cycles,
                ..timed(samples_ms, samples.l2, record.bytes, copy_gbps, gpu.facts().peak_gbps)
            });
        }
        Err(Failure::Wrong(mismatch)) => record.error = error("verification", mismatch),
        Err(Failure::Run(failure)) => {
            lost = failure.is_final();
            record.error = error(failure.kind(), failure);
        }
    }
    OnGpu { record, lost }
}

/// The record of a run that did not take place.
pub fn not_run(run: &Run, why: String) -> Record {
    let mut record = record(run, "gpu");
    record.error = error("not run", why);
    record
}

enum Failure {
    Wrong(Mismatch),
    Run(RunError),
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

/// The milliseconds of each sample, and the median of the ticks a request, if the kernel reads the clock.
type Taken = (Vec<f64>, Option<f64>);

/// How a kernel is verified on a GPU.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verified {
    /// By one run.
    Once,
    /// By two, with another poison each: what holds its poison after both, nobody wrote, and no byte of it is right in both.
    Surely,
}

fn verify_and_time(
    prepared: &Prepared<'_>,
    verified: Verified,
    samples: Option<Samples>,
) -> Result<Option<Taken>, Failure> {
    let poisons: &[u8] = if verified == Verified::Once { &[POISON] } else { &[POISON, OTHER_POISON] };
    for &poison in poisons {
        let mut checks: Vec<(&'static str, Check<'_>)> = Vec::new();
        prepared.verify(poison, &mut |buffer, start, bytes| {
            if checks.last().is_none_or(|(name, _)| *name != buffer.name) {
                checks.push((buffer.name, Check::new(buffer)));
            }
            let size = buffer.element.size() as usize;
            if let Some((_, check)) = checks.last_mut() {
                check.compare(start, (bytes.len() / size) as u64, |i| {
                    element_on_gpu(buffer, poison, &bytes[(i - start) as usize * size..][..size])
                });
            }
        })?;
        checks.into_iter().try_for_each(|(_, check)| check.finish()).map_err(Failure::Wrong)?;
    }
    let Some(samples) = samples else { return Ok(None) };
    let mut ticks = Vec::new();
    let samples_ms = measure(samples, || {
        let ms = prepared.sample(samples.l2 == L2::Cold)?;
        ticks.extend(prepared.ticks()?);
        Ok::<_, RunError>(ms)
    })?;
    let ticks = sorted(ticks.split_off(ticks.len().min(samples.warm_up as usize)));
    Ok(Some((samples_ms, (!ticks.is_empty()).then(|| quantile(&ticks, 0.5)))))
}

/// An element of a buffer that stood poisoned before the run, if it is to be written.
fn element_on_gpu(buffer: &Buffer, poison: u8, bytes: &[u8]) -> Actual {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let as_before = matches!(buffer.before, Before::Poison) && bytes.iter().all(|byte| *byte == poison);
    let written = if as_before { Written::Unknown } else { Written::All };
    Actual { bits: u64::from_le_bytes(word), written }
}

/// The device's copy, as results name it.
pub const COPY: &str = "cuMemcpyDtoD";

/// Times the device's copy of so many bytes, read plus written: the ceiling of every table.
///
/// # Errors
/// If it does not fit in memory, or the driver fails.
pub fn copy(gpu: &Gpu, bytes: u64, samples: Samples) -> Result<Record, RunError> {
    let probe = gpu.copy_probe(bytes / 2)?;
    let samples_ms = measure(samples, || probe.sample(samples.l2 == L2::Cold))?;
    let mut timed = timed(samples_ms, samples.l2, bytes, None, gpu.facts().peak_gbps);
    timed.share_of_copy = Some(1.0);
    Ok(Record {
        kernel: COPY.to_owned(),
        family: "library".to_owned(),
        case: format!("{bytes} bytes"),
        params: Default::default(),
        on: "gpu".to_owned(),
        launch: None,
        occupancy: None,
        verified: false,
        bytes,
        moved: None,
        error: None,
        simulated: None,
        timed: Some(timed),
        hot: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_is_not_sampled_and_the_median_is_robust() {
        let mut clock = [50.0, 40.0, 2.0, 4.0, 1.0, 900.0].into_iter();
        let samples = measure(Samples { warm_up: 2, count: 4, l2: L2::Cold }, || clock.next().ok_or("no more"))
            .expect("six readings");
        assert_eq!(samples, [2.0, 4.0, 1.0, 900.0]);
        let timed = timed(samples, L2::Cold, 6_000_000, Some(4.0), None);
        assert_eq!((timed.median_ms, timed.min_ms, timed.gbps), (3.0, 1.0, 2.0));
        assert_eq!((timed.share_of_copy, timed.share_of_peak), (Some(0.5), None));
        assert_eq!(timed.samples_ms, [2.0, 4.0, 1.0, 900.0], "in the order they were taken");
    }

    #[test]
    fn a_timer_that_fails_ends_the_measurement() {
        let mut left = 3;
        let failed = measure(Samples { warm_up: 1, count: 9, l2: L2::Cold }, || {
            left -= 1;
            if left == 0 { Err("lost") } else { Ok(1.0) }
        });
        assert_eq!(failed, Err("lost"));
    }

    /// What comes of `dst` on a GPU whose memory is as `written` says after a run, of the bytes that it writes.
    fn judged(buffer: &Buffer, written: impl Fn(u64) -> Vec<Option<u8>> + Sync) -> Result<(), Mismatch> {
        [POISON, OTHER_POISON].into_iter().try_for_each(|poison| {
            let mut check = Check::new(buffer);
            check.compare(0, buffer.len, |i| {
                let bytes: Vec<_> = written(i).into_iter().map(|byte| byte.unwrap_or(poison)).collect();
                element_on_gpu(buffer, poison, &bytes)
            });
            check.finish()
        })
    }

    #[test]
    fn on_a_gpu_two_runs_tell_what_was_not_written() {
        for expected in [u32::MAX, 0, 0xFF00, 7] {
            let all = Buffer::output("dst", 8, move |_| expected).expect("a small buffer");
            let bytes = || expected.to_le_bytes().map(Some).to_vec();
            assert!(judged(&all, |_| bytes()).is_ok(), "{expected}");
            for missing in 0..4 {
                let but_one = |i| {
                    let mut bytes = bytes();
                    if i == 5 {
                        bytes[missing] = None;
                    }
                    bytes
                };
                let mismatch = judged(&all, but_one).expect_err("a byte is not written");
                assert_eq!((mismatch.wrong, mismatch.first[0].0), (1, 5), "{mismatch}");
            }
            assert!(judged(&all, |i| if i == 5 { vec![None; 4] } else { bytes() }).is_err(), "{expected}");
        }
        let some = Buffer::partial_output("dst", 8, |i| (i < 4).then_some(1u32)).expect("a small buffer");
        let with =
            |beyond: Option<u8>| move |i| if i < 4 { 1u32.to_le_bytes().map(Some).to_vec() } else { vec![beyond; 4] };
        assert!(judged(&some, with(None)).is_ok());
        for beyond in [POISON, OTHER_POISON, 1] {
            assert!(judged(&some, with(Some(beyond))).is_err(), "{beyond}");
        }
        let ticks = Buffer::clock("dst", 1).expect("a small buffer");
        let mismatch = judged(&ticks, |_| vec![None; 4]).expect_err("no ticks").to_string();
        assert!(mismatch.contains("[0] is not written, or NaN (0xffffffff)"), "{mismatch}");
    }
}
