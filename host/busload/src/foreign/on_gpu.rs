//! The same launch on a GPU: its outputs beside the simulated ones, and its time.

use super::argument::{Parameter, Tolerance};
use super::compare::{Compared, Comparison};
use super::element::Type;
use super::prepare::Ready;
use super::record::OnGpu;
use crate::bench::{Copied, OnDevice, Timing, each_series};
use crate::cuda::{Gpu, Parameter as OfGpu, Prepared, RunError};
use crate::measure::{NotTaken, Sampling, Series};
use crate::record::ErrorRecord;
use crate::sim::Outcome;
use gpu::suite::POISON;

/// How far a number may be off from the simulated one where arithmetic is approximate or its order open: so much of the number, and of the
/// mean magnitude in its buffer, since sums may cancel.
const NEAR: f64 = 1e-5;

/// Elements of a buffer whose magnitudes are looked at.
const LOOKED_AT: u64 = 1 << 16;

fn near(simulated: &Outcome, buffer: usize, elements: u64, ty: Type) -> Tolerance {
    let magnitude = |i| simulated.bits(buffer, i).map(|bits| ty.value(bits).abs()).filter(|value| value.is_finite());
    let (sum, count) = (0..elements.min(LOOKED_AT))
        .filter_map(magnitude)
        .fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    let absolute = NEAR * sum / f64::from(count.max(1));
    // Two digits are enough.
    Tolerance { absolute: format!("{absolute:.1e}").parse().unwrap_or(absolute), relative: NEAR }
}

/// What came of a launch on a GPU.
pub struct Done {
    /// What to say of it.
    pub record: OnGpu,
    /// Whether the process can run nothing more on the GPU.
    pub lost: bool,
}

/// Launches on a GPU, compares with what was simulated, and times it in so many samples, if any.
pub fn run(gpu: &Gpu, ready: &Ready, simulated: &Outcome, samples: u32) -> Done {
    let mut record = OnGpu { compared: Vec::new(), timed: None, error: None };
    let mut lost = false;
    let parameters = ready.parameters.iter().map(|parameter| match parameter {
        Parameter::Buffer(number) => OfGpu::Buffer(*number),
        Parameter::Bytes(bytes) => OfGpu::Bytes(bytes.clone()),
    });
    let parameters: Vec<_> = parameters.collect();
    let done = gpu.prepare_entry(ready.entry, &ready.plan, &parameters, ready.filled.clone()).and_then(|prepared| {
        record.compared = compare(&prepared, ready, simulated)?;
        if samples == 0 {
            return Ok(());
        }
        let (sampling, bytes) = (Sampling::exactly(samples, Series::Cold), ready.plan.bytes);
        let mut timer = OnDevice::new(gpu, Timing::Launch(&prepared));
        match each_series(gpu, &sampling, bytes, Copied::default(), &mut timer) {
            Ok(timed) => record.timed = timed.into_iter().next(),
            Err(NotTaken::Failed(error)) => return Err(error),
            Err(throttled) => {
                record.error = Some(ErrorRecord { kind: "throttled".to_owned(), message: throttled.to_string() });
            }
        }
        Ok(())
    });
    if let Err(error) = done {
        lost = error.is_final();
        record.error = Some(ErrorRecord { kind: error.kind().to_owned(), message: error.to_string() });
    }
    Done { record, lost }
}

/// A launch after one that failed on the GPU.
pub fn not_run() -> Done {
    let message = "a launch before it failed on the GPU, and CUDA takes no further call from this process: run it alone, by --entry";
    let error = Some(ErrorRecord { kind: "not run".to_owned(), message: message.to_owned() });
    Done { record: OnGpu { compared: Vec::new(), timed: None, error }, lost: true }
}

/// Launches once, and puts the buffers that parameters point to beside the simulated ones.
fn compare(prepared: &Prepared<'_>, ready: &Ready, simulated: &Outcome) -> Result<Vec<Compared>, RunError> {
    let mut comparisons: Vec<Comparison> = Vec::new();
    let mut last = None;
    prepared.verify(POISON, &mut |buffer, start, bytes| {
        let Some(number) = ready.plan.buffers.iter().position(|own| std::ptr::eq(own, buffer)) else { return };
        if !ready.parameters.contains(&Parameter::Buffer(number)) {
            return;
        }
        let results = &ready.results[number];
        if last != Some(number) {
            last = Some(number);
            let tolerance = results
                .tolerance
                .or_else(|| ready.is_approximate().then(|| near(simulated, number, buffer.len, results.ty)));
            comparisons.push(Comparison::new(buffer.name, "the simulation".to_owned(), results.ty, tolerance));
        }
        let Some(comparison) = comparisons.last_mut() else { return };
        let size = buffer.element.size() as usize;
        for (i, element) in (start..).zip(bytes.chunks_exact(size)) {
            let mut word = [0; 8];
            word[..size].copy_from_slice(element);
            comparison.next(simulated.bits(number, i).unwrap_or_default(), u64::from_le_bytes(word), true);
        }
    })?;
    Ok(comparisons.into_iter().map(Comparison::finish).collect())
}

impl Ready {
    /// Whether its arithmetic leaves the last bits open: then only numbers that are near are the same.
    pub fn is_approximate(&self) -> bool {
        self.adds_in_any_order || !self.program.exactness().approximate.is_empty()
    }
}
