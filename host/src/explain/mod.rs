//! Why a kernel is slow, on its own source: what each access asks of the memory system, which is the worst, and why.
//!
//! [`Explanation`] is the data, [`text`] shows it on a terminal and [`page()`] as one HTML file.

mod page;
mod source;
mod terminal;
mod why;

pub use page::page;
pub use source::Excerpt;
pub use terminal::text;

use crate::cases::Run;
use crate::record::{BlocksRecord, LaunchRecord, SiteRecord};
use crate::sim::coalesce::SECTOR;
use crate::sim::{Outcome, Sample, Sampled, Sampling, Site, Tally, banks};
use gpu::device::host::{Kernel, Space};
use serde::Serialize;

/// What an explanation looks at one by one: enough warps and iterations to walk through.
pub const SAMPLING: Sampling = Sampling { blocks: 2, warps: 8, requests: 8 };

/// Bytes that a wavefront can move: a word from each bank.
const WAVEFRONT: u64 = 4 * banks::BANKS as u64;

/// A kernel with its accesses explained.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The kernel.
    pub kernel: &'static str,
    /// The first paragraph of its documentation.
    pub summary: String,
    /// The case, as tables show it.
    pub case: String,
    /// Its launch.
    pub launch: LaunchRecord,
    /// Which blocks were simulated: counts are of these alone.
    pub blocks: BlocksRecord,
    /// The functions in which it touches memory, its own first.
    pub source: Vec<Excerpt>,
    /// Its accesses, in the order of the source.
    pub accesses: Vec<Access>,
    /// The access with the most excess; none if none has any.
    pub worst: Option<usize>,
}

/// An access of a kernel: a source position, with one operation on one memory.
#[derive(Clone, Debug, Serialize)]
pub struct Access {
    /// Where it stands, and what it asked for.
    #[serde(flatten)]
    pub site: SiteRecord,
    /// Which buffers or shared arrays it goes to.
    pub region: String,
    /// Bytes moved in excess: those of sectors beyond the fewest that could hold a request's bytes, and 128 for each
    /// wavefront beyond the ideal, which could have moved as many.
    pub excess: u64,
    /// Why it costs what it costs, in a sentence.
    pub why: String,
    /// Some of its requests.
    pub samples: Vec<Request>,
}

/// One request.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// `blockIdx`.
    pub block: [u32; 3],
    /// The warp's number in its block.
    pub warp: u32,
    /// The byte in the buffer, or in the block's shared memory, that each lane begins at; none for a lane that is not active.
    pub addresses: Vec<Option<u64>>,
    /// How many neighbouring lanes a wavefront serves: shared memory alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<usize>,
    /// Its wavefronts, or its passes in constant memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wavefronts: Option<u64>,
}

impl Explanation {
    /// The explanation of a run that was simulated with [`SAMPLING`] and without findings.
    pub fn new(run: &Run, outcome: &Outcome) -> Self {
        let block = run.plan.launch.block;
        let sampled = outcome.sites.iter().zip(&outcome.sampled);
        let accesses: Vec<_> = sampled.map(|(site, sampled)| Access::new(site, sampled, block)).collect();
        let positions = outcome.sites.iter().map(|site| site.position);
        let worst = accesses.iter().enumerate().filter(|(_, access)| access.excess > 0);
        // The first of those that are equal.
        let worst = worst.rev().max_by_key(|(_, access)| access.excess).map(|(number, _)| number);
        Self {
            kernel: run.kernel.name,
            summary: summary(&run.kernel),
            case: run.case.to_string(),
            launch: run.plan.launch.into(),
            blocks: outcome.blocks.into(),
            source: source::excerpts(&run.kernel, positions),
            accesses,
            worst,
        }
    }
}

/// The first paragraph of a kernel's documentation, its links as plain names.
fn summary(kernel: &Kernel) -> String {
    let paragraph = kernel.documentation.split("\n\n").next().unwrap_or_default();
    paragraph.replace('\n', " ").replace("[`", "`").replace("`]", "`")
}

impl Access {
    fn new(site: &Site, sampled: &Sampled, block: [u32; 3]) -> Self {
        let counts = site.counts;
        let sum = |of: fn(&Tally) -> u64| sampled.tallies.iter().map(of).sum::<u64>();
        let excess = match site.space {
            Space::Global => SECTOR * (counts.sectors - sum(|tally| tally.fewest)),
            Space::Shared | Space::Constant => WAVEFRONT * (counts.wavefronts - counts.wavefronts_ideal),
        };
        let mut regions: Vec<_> = sampled.tallies.iter().map(|tally| tally.region.as_str()).collect();
        regions.sort_unstable();
        regions.dedup();
        Self {
            site: site.into(),
            region: regions.join(", "),
            excess,
            why: why::why(site, sampled, block),
            samples: sampled.samples.iter().map(|sample| Request::new(site, sample)).collect(),
        }
    }

    /// What it is called: `store dst`.
    fn name(&self) -> String {
        format!("{} {}", self.site.op, self.region)
    }
}

impl Request {
    fn new(site: &Site, sample: &Sample) -> Self {
        let Sample { block, warp, mask, addresses, counts } = sample;
        let together = || banks::lanes_together(addresses, *mask, site.width);
        Self {
            block: *block,
            warp: *warp,
            addresses: (0..32).map(|lane| (mask >> lane & 1 == 1).then_some(addresses[lane])).collect(),
            together: (site.space == Space::Shared).then(together),
            wavefronts: (site.space != Space::Global).then_some(counts.wavefronts),
        }
    }
}
