//! Buffers in GPU memory: filled, read back and guarded.

use super::error::{CallError, Named, RunError};
use cust::memory::{CopyDestination, DeviceBuffer, DeviceSlice, mem_get_info};
use system::parallel;

/// Bytes on either side of the data.
const CANARY_BYTES: usize = 256;
/// The data is aligned to a page of the GPU, as what `cuMemAlloc` gives is if it is large, and as it is in the simulator: four lines from
/// 256 bytes past a multiple of 512 on would pass the tags of the L1 1.29 times on average, and not once.
const ALIGNMENT: usize = 2 << 20;
/// Every byte of a canary.
const CANARY: u8 = 0xC5;
/// Bytes that pass through host memory at a time: a buffer may be larger than the host's memory.
const STAGING_BYTES: usize = 64 << 20;
/// Bytes that one thread fills at a time.
const BLOCK_BYTES: usize = 64 << 10;

/// A buffer between two canaries, freed on drop.
pub(super) struct Guarded {
    memory: DeviceBuffer<u8>,
    /// Where the data begins.
    start: usize,
    bytes: usize,
}

impl Guarded {
    /// Allocates `bytes` and writes the canaries; the data holds anything.
    pub(super) fn new(buffer: &'static str, bytes: u64) -> Result<Self, RunError> {
        const OUT_OF_MEMORY: u32 = 2;
        let total = ALIGNMENT + bytes as usize + 2 * CANARY_BYTES;
        // SAFETY: the memory is bytes, and any bits are bytes.
        let memory = unsafe { DeviceBuffer::uninitialized(total) }.named("cuMemAlloc").or_else(|error| {
            if error.code() != OUT_OF_MEMORY {
                return Err(error.into());
            }
            let (free, _) = mem_get_info().named("cuMemGetInfo")?;
            Err(RunError::Memory { buffer, bytes: total as u64, free: free as u64 })
        })?;
        let start = start(memory.as_device_ptr().as_raw());
        let guarded = Self { memory, start, bytes: bytes as usize };
        for mut canary in guarded.canaries() {
            canary.set_8(CANARY).named("cuMemsetD8")?;
        }
        Ok(guarded)
    }

    fn canaries(&self) -> [DeviceSlice<u8>; 2] {
        let end = self.start + self.bytes;
        [self.start - CANARY_BYTES..self.start, end..end + CANARY_BYTES].map(|range| self.memory.index(range))
    }

    /// The data.
    pub(super) fn data(&self) -> DeviceSlice<u8> {
        self.memory.index(self.start..self.start + self.bytes)
    }

    /// Fills the data with the low `width` bytes of `bits` of each element's index.
    pub(super) fn fill(&self, width: usize, bits: impl Fn(u64) -> u64 + Sync) -> Result<(), CallError> {
        let mut staging = vec![0; self.bytes.min(STAGING_BYTES)];
        for start in (0..self.bytes).step_by(STAGING_BYTES) {
            let chunk = &mut staging[..STAGING_BYTES.min(self.bytes - start)];
            fill(chunk, width, (start / width) as u64, &bits);
            self.data().index(start..start + chunk.len()).copy_from(chunk).named("cuMemcpyHtoD")?;
        }
        Ok(())
    }

    /// Hands the data to `each` piece by piece: the first byte's offset, and the bytes. Pieces begin and end between
    /// elements.
    pub(super) fn read(&self, mut each: impl FnMut(u64, &[u8])) -> Result<(), CallError> {
        let mut staging = vec![0; self.bytes.min(STAGING_BYTES)];
        for start in (0..self.bytes).step_by(STAGING_BYTES) {
            let chunk = &mut staging[..STAGING_BYTES.min(self.bytes - start)];
            self.data().index(start..start + chunk.len()).copy_to(chunk).named("cuMemcpyDtoH")?;
            each(start as u64, chunk);
        }
        Ok(())
    }

    /// The first byte outside the data that is not as it was, counted from the start of the data.
    pub(super) fn first_overwritten(&self) -> Result<Option<i64>, CallError> {
        let mut found = [[CANARY; CANARY_BYTES]; 2];
        for (canary, found) in self.canaries().iter().zip(&mut found) {
            canary.copy_to(found).named("cuMemcpyDtoH")?;
        }
        Ok(first_overwritten(&found, self.bytes))
    }
}

/// Where the data begins in memory that begins at `address`: aligned, after a canary.
fn start(address: u64) -> usize {
    let after_canary = address + CANARY_BYTES as u64;
    (after_canary.next_multiple_of(ALIGNMENT as u64) - address) as usize
}

/// Writes the low `width` bytes of `bits` of `first`, `first + 1`, … into `chunk`.
fn fill(chunk: &mut [u8], width: usize, first: u64, bits: &(impl Fn(u64) -> u64 + Sync)) {
    parallel::map(chunk.chunks_mut(BLOCK_BYTES).enumerate(), parallel::threads(), |(block, bytes)| {
        let first = first + (block * BLOCK_BYTES / width) as u64;
        for (index, element) in (first..).zip(bytes.chunks_exact_mut(width)) {
            element.copy_from_slice(&bits(index).to_le_bytes()[..width]);
        }
    });
}

/// Where the canaries before and after `bytes` of data are damaged first.
fn first_overwritten([before, after]: &[[u8; CANARY_BYTES]; 2], bytes: usize) -> Option<i64> {
    let damaged = |canary: &[u8; CANARY_BYTES]| canary.iter().position(|&byte| byte != CANARY);
    match (damaged(before), damaged(after)) {
        (Some(at), _) => Some(at as i64 - CANARY_BYTES as i64),
        (None, Some(at)) => Some((bytes + at) as i64),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_side_by_side() {
        for (width, elements) in [(4, 3), (4, 3 * BLOCK_BYTES / 4 + 1), (8, 2 * BLOCK_BYTES / 8 + 5)] {
            let mut chunk = vec![0; elements * width];
            fill(&mut chunk, width, 1000, &|i| i * 0x0101);
            for (i, element) in (1000u64..).zip(chunk.chunks(width)) {
                assert_eq!(element, &(i * 0x0101).to_le_bytes()[..width]);
            }
        }
    }

    #[test]
    fn data_is_aligned_and_has_room_for_both_canaries() {
        let page = ALIGNMENT as u64;
        for address in [0, 256, 512, page - 256, page - 255, page, 5 * page + 1024] {
            let start = start(address);
            assert_eq!((address + start as u64) % page, 0, "{address}");
            assert!((CANARY_BYTES..=ALIGNMENT + CANARY_BYTES).contains(&start), "{address}: {start}");
        }
    }

    #[test]
    fn canaries() {
        let sound = [[CANARY; CANARY_BYTES]; 2];
        assert_eq!(first_overwritten(&sound, 12), None);
        let mut before = sound;
        before[0][CANARY_BYTES - 4] = 0;
        assert_eq!(first_overwritten(&before, 12), Some(-4));
        let mut after = sound;
        after[1][3] = 0;
        after[1][9] = 0;
        assert_eq!(first_overwritten(&after, 12), Some(15));
    }
}
