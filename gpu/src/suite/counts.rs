//! Counts: what a kernel asks of the memory system.

/// What a kernel asks of the memory system. Global accesses have sectors and lines, shared and constant ones wavefronts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Warp instructions that at least one lane executes.
    pub requests: u64,
    /// Lanes that execute them.
    pub lanes: u64,
    /// 32-byte sectors of global memory touched, request by request.
    pub sectors: u64,
    /// The sectors that the same bytes would touch side by side.
    pub sectors_ideal: u64,
    /// 128-byte lines of global memory touched, request by request.
    pub lines: u64,
    /// Wavefronts of shared memory; of constant memory, the distinct addresses of a request.
    pub wavefronts: u64,
    /// The wavefronts that the same bytes would need without conflicts.
    pub wavefronts_ideal: u64,
}

impl Counts {
    /// Each of them with its name.
    pub const fn named(self) -> [(&'static str, u64); 7] {
        [
            ("requests", self.requests),
            ("lanes", self.lanes),
            ("sectors", self.sectors),
            ("ideal sectors", self.sectors_ideal),
            ("lines", self.lines),
            ("wavefronts", self.wavefronts),
            ("ideal wavefronts", self.wavefronts_ideal),
        ]
    }
}

impl core::ops::Add for Counts {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            lanes: self.lanes + other.lanes,
            sectors: self.sectors + other.sectors,
            sectors_ideal: self.sectors_ideal + other.sectors_ideal,
            lines: self.lines + other.lines,
            wavefronts: self.wavefronts + other.wavefronts,
            wavefronts_ideal: self.wavefronts_ideal + other.wavefronts_ideal,
        }
    }
}

impl core::ops::AddAssign for Counts {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl core::ops::Mul<u64> for Counts {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self {
            requests: self.requests * times,
            lanes: self.lanes * times,
            sectors: self.sectors * times,
            sectors_ideal: self.sectors_ideal * times,
            lines: self.lines * times,
            wavefronts: self.wavefronts * times,
            wavefronts_ideal: self.wavefronts_ideal * times,
        }
    }
}

impl core::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), |sum, counts| sum + counts)
    }
}

/// What an access does: counts go by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes in one indivisible step.
    Atomic,
}

/// The counts to expect of the accesses to a buffer, or to a shared array, by one operation at one width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The kernel's parameter, or the name of the shared array.
    pub buffer: &'static str,
    /// What the accesses do.
    pub operation: Operation,
    /// Bytes a lane.
    pub width: u32,
    /// Their counts, over the whole grid.
    pub counts: Counts,
}
