//! What a kernel asks of global memory.

use super::Subject;
use crate::record::{self, Simulated};
use crate::suite::Suite;
use gpu::suite::{Case, Counts, Value};

/// What a kernel asks of global memory, and in which pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    /// Requests of loads, stores and atomic operations.
    pub requests: f64,
    /// Sectors of 32 bytes that they touch.
    pub sectors: f64,
    /// Lines of 128 bytes that they touch.
    pub lines: f64,
    /// Wavefronts of shared memory, as a multiple of the ideal; none if it does not touch it.
    pub wavefronts: Option<f64>,
    /// Bytes a lane, if all accesses to global memory are as wide.
    pub width: Option<u64>,
}

impl Asked {
    /// As the closed form of its entry states; none if it is in no suite or states nothing.
    pub(crate) fn stated(suite: &Suite, subject: &Subject, sm_count: u32) -> Option<Self> {
        let (family, entry) = suite.entries().find(|(_, entry)| entry.kernel.name == subject.kernel)?;
        let value = |axis: &gpu::suite::Axis| -> Option<(&'static str, Value)> {
            Some((axis.name, record::value(axis.kind, subject.params.get(axis.name)?)?))
        };
        let values = family.axes.iter().map(value).collect::<Option<Vec<_>>>()?;
        let expected = (entry.plan)(&Case { values, sm_count }).ok()?.expected;
        let parts = expected.iter().map(|of| (of.counts, u64::from(of.width)));
        (!expected.is_empty()).then(|| Self::of(parts))
    }

    /// As the simulator counted; of some blocks of a grid it is as many times more.
    pub(crate) fn simulated(simulated: &Simulated) -> Self {
        let parts = simulated.sites.iter().map(|site| {
            let counts = Counts {
                requests: site.requests,
                sectors: site.sectors.unwrap_or_default(),
                lines: site.lines.unwrap_or_default(),
                wavefronts: site.wavefronts.unwrap_or_default(),
                wavefronts_ideal: site.wavefronts_ideal.unwrap_or_default(),
                ..Counts::default()
            };
            (counts, site.width)
        });
        let times = simulated.blocks.total as f64 / simulated.blocks.simulated.max(1) as f64;
        let asked = Self::of(parts);
        let [requests, sectors, lines] = [asked.requests, asked.sectors, asked.lines].map(|count| times * count);
        Self { requests, sectors, lines, ..asked }
    }

    fn of(parts: impl Iterator<Item = (Counts, u64)>) -> Self {
        let (global, others): (Vec<_>, Vec<_>) = parts.partition(|(counts, _)| counts.sectors > 0);
        let sum =
            |of: &[(Counts, u64)], count: fn(&Counts) -> u64| of.iter().map(|(of, _)| count(of)).sum::<u64>() as f64;
        let ideal = sum(&others, |counts| counts.wavefronts_ideal);
        let width = global.first().map(|(_, width)| *width);
        Self {
            requests: sum(&global, |counts| counts.requests),
            sectors: sum(&global, |counts| counts.sectors),
            lines: sum(&global, |counts| counts.lines),
            wavefronts: (ideal > 0.0).then(|| sum(&others, |counts| counts.wavefronts) / ideal),
            width: width.filter(|width| global.iter().all(|(_, other)| other == width)),
        }
    }

    /// Bytes that must move, as a share of those in the sectors asked for; none if it asks for none.
    pub(crate) fn used_of_sectors(self, bytes: u64) -> Option<f64> {
        (self.sectors > 0.0).then(|| bytes as f64 / (32.0 * self.sectors))
    }

    /// The same of the lines.
    pub(crate) fn used_of_lines(self, bytes: u64) -> Option<f64> {
        (self.lines > 0.0).then(|| bytes as f64 / (128.0 * self.lines))
    }

    /// Sectors a request, on average.
    pub(crate) fn sectors_a_request(self) -> Option<f64> {
        (self.requests > 0.0).then(|| self.sectors / self.requests)
    }
}
