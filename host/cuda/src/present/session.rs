//! A CUDA context and what lives in it.

use super::error::{CallError, GpuError, Named, RunError};
use super::nvml::Sensors;
use super::ptx::Ptx;
use crate::Sample;
use cust::context::Context;
use cust::device::Device;
use cust::event::{Event, EventFlags};
use cust::memory::DeviceBuffer;
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use std::cell::Cell;

/// The device's context, current on this thread, with the kernels, a stream and what timing needs.
pub(super) struct Session {
    flush: DeviceBuffer<u8>,
    flush_value: Cell<u8>,
    start: Event,
    end: Event,
    pub(super) stream: Stream,
    pub(super) module: Module,
    pub(super) sensors: Option<Sensors>,
    // Fields are dropped in order, so everything above is freed in its context.
    _context: Context,
}

impl Session {
    /// Opens the device's primary context and compiles the kernels.
    pub(super) fn open(
        device: Device,
        ptx: &Ptx,
        flush_bytes: u64,
        sensors: Option<Sensors>,
    ) -> Result<Self, GpuError> {
        let context = Context::new(device).named("cuDevicePrimaryCtxRetain")?;
        let module = ptx.load()?;
        // The stream waits for the default stream, in which the blocking copies run.
        let stream = Stream::new(StreamFlags::DEFAULT, None).named("cuStreamCreateWithPriority")?;
        let event = || Event::new(EventFlags::DEFAULT).named("cuEventCreate");
        let (start, end) = (event()?, event()?);
        // SAFETY: bytes are written to it and never read.
        let flush = unsafe { DeviceBuffer::uninitialized(flush_bytes as usize) }.named("cuMemAlloc")?;
        Ok(Self { flush, flush_value: Cell::new(0), start, end, stream, module, sensors, _context: context })
    }

    /// Queues a write of more bytes than the L2 holds, so that what runs next finds nothing of its own there.
    pub(super) fn flush_l2(&self) -> Result<(), CallError> {
        let value = self.flush_value.get().wrapping_add(1);
        self.flush_value.set(value);
        // SAFETY: nothing reads the buffer.
        unsafe { self.flush.index(..).set_8_async(value, &self.stream) }.named("cuMemsetD8Async")
    }

    /// Waits for everything queued.
    pub(super) fn synchronize(&self) -> Result<(), CallError> {
        self.stream.synchronize().named("cuStreamSynchronize")
    }

    /// Queues `work`, waits for it, and returns the milliseconds it took on the GPU. The clock is read while the GPU works.
    pub(super) fn time(&self, work: impl FnOnce() -> Result<(), RunError>) -> Result<Sample, RunError> {
        self.start.record(&self.stream).named("cuEventRecord")?;
        work()?;
        self.end.record(&self.stream).named("cuEventRecord")?;
        let sm_mhz = self.sensors.as_ref().and_then(Sensors::sm_mhz);
        self.end.synchronize().named("cuEventSynchronize")?;
        let ms = self.end.elapsed_time_f32(&self.start).named("cuEventElapsedTime")?.into();
        Ok(Sample { ms, sm_mhz })
    }
}
