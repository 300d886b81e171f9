//! The device's own copy: the ceiling of every table.

use super::error::{Named, RunError};
use super::memory::Guarded;
use super::session::Session;
use crate::Sample;
use cust::memory::AsyncCopyDestination;
use gpu::suite::noise;

/// Two buffers on the GPU, to time the driver's copy from one to the other.
pub struct CopyProbe<'a> {
    session: &'a Session,
    src: Guarded,
    dst: Guarded,
}

impl<'a> CopyProbe<'a> {
    pub(super) fn new(session: &'a Session, bytes: u64) -> Result<Self, RunError> {
        let src = Guarded::new("copy source", bytes)?;
        let dst = Guarded::new("copy destination", bytes)?;
        // The same data as the kernels move: the power that a copy draws depends on it.
        src.fill(size_of::<f32>(), |i| noise(i).to_bits().into())?;
        Ok(Self { session, src, dst })
    }

    /// With `flush` empties the L2, and returns the milliseconds that one copy then takes on the GPU, between two
    /// events around the copy alone. It reads as many bytes as a buffer has, and writes as many.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn sample(&self, flush: bool) -> Result<Sample, RunError> {
        if flush {
            self.session.flush_l2()?;
        }
        self.session.time(|| {
            // SAFETY: nothing else uses the buffers, and freeing them waits for the GPU.
            let copied = unsafe { self.src.data().async_copy_to(&mut self.dst.data(), &self.session.stream) };
            Ok(copied.named("cuMemcpyDtoDAsync")?)
        })
    }
}
