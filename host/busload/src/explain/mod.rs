//! Why a kernel is slow, on its own source: what each access asks of the memory system, which is the worst, and why.
//!
//! [`Explanation`] is the data, [`text`] shows it on a terminal and [`page()`] as one HTML file.

mod page;
mod source;
mod terminal;

pub use page::page;
pub use source::Excerpt;
pub use terminal::text;

pub use crate::why::{Remedy, SAMPLING};

use crate::cases::Run;
use crate::profile;
use crate::record::{BlocksRecord, LaunchRecord, SiteRecord, operation_name};
use crate::sim::{Outcome, Sample, Sampled, Site, banks};
use crate::why;
use gpu::device::host::{Kernel, Space};
use gpu::suite::Launch;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A kernel with its accesses explained.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Explanation {
    /// The kernel.
    pub kernel: String,
    /// The first paragraph of its documentation.
    pub summary: String,
    /// The case, as tables show it.
    pub case: String,
    /// Its launch.
    pub launch: LaunchRecord,
    /// Which blocks were simulated: counts are of these alone.
    pub blocks: BlocksRecord,
    /// Whether the family's entry states the counts to expect.
    pub counts_stated: bool,
    /// The functions in which it touches memory, its own first.
    pub source: Vec<Excerpt>,
    /// Its accesses, in the order of the source.
    pub accesses: Vec<Access>,
    /// The access with the most excess; none if none has any.
    pub worst: Option<usize>,
    /// What the counts are called in Nsight Compute.
    pub counters: Vec<Counter>,
    /// What Nsight Compute counts as conflicts that are none: where shared memory is touched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arbitration: Option<&'static str>,
}

/// What is not a conflict, and is counted as one.
const ARBITRATION: &str = "\
Conflicts are wavefronts less ideal ones. l1tex__data_bank_conflicts_pipe_lsu.sum also counts arbitration with other traffic: 1 to
3 % of the wavefronts of kernels that have no conflict.";

/// A count, and the metrics of Nsight Compute that tell it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Counter {
    /// The count.
    pub count: &'static str,
    /// The metrics: their sum.
    pub metrics: Vec<&'static str>,
}

/// An access of a kernel: a source position, with one operation on one memory.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Access {
    /// Where it stands, and what it asked for.
    #[serde(flatten)]
    pub site: SiteRecord,
    /// What it is called: `store dst`, with its column where another one in its line is called so.
    pub name: String,
    /// Which buffers or shared arrays it goes to.
    pub region: String,
    /// Bytes moved in excess: those of sectors beyond the fewest that could hold a request's bytes, and 128 for each
    /// wavefront beyond the ideal, which could have moved as many.
    pub excess: u64,
    /// Why it costs what it costs, in a sentence.
    pub why: String,
    /// What would lower its excess: changes tried on those of its requests that follow.
    pub remedies: Vec<Remedy>,
    /// These in sentences, and what the compiler may make of it.
    pub advice: Vec<String>,
    /// Some of its requests.
    pub samples: Vec<Request>,
}

/// One request.
#[derive(Clone, Debug, JsonSchema, Serialize)]
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

/// What is explained.
pub struct Subject {
    /// The kernel.
    pub kernel: String,
    /// What it does, in a sentence or two.
    pub summary: String,
    /// On which case.
    pub case: String,
    /// Its launch.
    pub launch: Launch,
    /// Whether it is known which counts to expect.
    pub counts_stated: bool,
    /// The parts of its source in which it touches memory.
    pub source: Vec<Excerpt>,
}

impl Explanation {
    /// The explanation of a run that was simulated with [`SAMPLING`] and without findings.
    pub fn new(run: &Run, outcome: &Outcome) -> Self {
        let positions = outcome.sites.iter().map(|site| site.position);
        Self::with_source(run, outcome, source::excerpts(&run.kernel, positions))
    }

    /// The same on other parts of a source than those of the kernel.
    pub fn with_source(run: &Run, outcome: &Outcome, source: Vec<Excerpt>) -> Self {
        let subject = Subject {
            kernel: run.kernel.name.to_owned(),
            summary: summary(&run.kernel),
            case: run.case.to_string(),
            launch: run.plan.launch,
            counts_stated: !run.plan.expected.is_empty(),
            source,
        };
        Self::of(subject, outcome)
    }

    /// The same of any kernel.
    pub fn of(subject: Subject, outcome: &Outcome) -> Self {
        let Subject { kernel, summary, case, launch, counts_stated, source } = subject;
        let block = launch.block;
        let seen: Vec<_> = outcome.sites.iter().zip(&outcome.sampled).collect();
        let mut accesses: Vec<_> = (0..seen.len()).map(|n| Access::new(&seen, n, block)).collect();
        name(&mut accesses);
        let worst = accesses.iter().enumerate().filter(|(_, access)| access.excess > 0);
        // The first of those that are equal.
        let worst = worst.rev().max_by_key(|(_, access)| access.excess).map(|(number, _)| number);
        Self {
            kernel,
            summary,
            case,
            launch: launch.into(),
            blocks: outcome.blocks.into(),
            counts_stated,
            source,
            counters: counters(&accesses),
            arbitration: accesses.iter().any(|access| access.site.space == "shared").then_some(ARBITRATION),
            accesses,
            worst,
        }
    }
}

/// Tells apart the accesses of a line that would be called the same.
fn name(accesses: &mut [Access]) {
    let line = |access: &Access| (access.site.file.clone(), access.site.line, access.name.clone());
    let mut lines = BTreeMap::<_, usize>::new();
    accesses.iter().for_each(|access| *lines.entry(line(access)).or_default() += 1);
    for access in accesses {
        if lines[&line(access)] > 1 {
            access.name += &format!(" (column {}, {} bytes)", access.site.column, access.site.width);
        }
    }
}

/// The counters of what these accesses ask for.
fn counters(accesses: &[Access]) -> Vec<Counter> {
    let has = |space: Space| accesses.iter().any(|access| access.site.space == space.name());
    let requests = |of: Space| {
        let of = profile::REQUESTS.iter().filter(move |(space, ..)| *space == of);
        of.flat_map(|(_, _, metrics)| *metrics).copied().collect::<Vec<_>>()
    };
    let mut counters = Vec::new();
    if has(Space::Global) {
        let [_, sectors, ideal, lines] = profile::GLOBAL;
        counters.push(Counter { count: "requests to global memory", metrics: requests(Space::Global) });
        let named = [("sectors", sectors), ("ideal sectors", ideal), ("lines", lines)];
        counters.extend(named.map(|(count, metric)| Counter { count, metrics: vec![metric] }));
    }
    if has(Space::Shared) {
        let [_, wavefronts, ideal] = profile::SHARED;
        counters.push(Counter { count: "requests to shared memory", metrics: requests(Space::Shared) });
        let named = [("wavefronts", wavefronts), ("ideal wavefronts", ideal)];
        counters.extend(named.map(|(count, metric)| Counter { count, metrics: vec![metric] }));
    }
    counters
}

/// The first paragraph of a kernel's documentation, its links as plain names.
fn summary(kernel: &Kernel) -> String {
    let paragraph = kernel.documentation.split("\n\n").next().unwrap_or_default();
    paragraph.replace('\n', " ").replace("[`", "`").replace("`]", "`")
}

impl Access {
    fn new(accesses: &[(&Site, &Sampled)], n: usize, block: [u32; 3]) -> Self {
        let (site, sampled) = accesses[n];
        let (excess, region) = (why::excess(site, sampled), why::region(sampled));
        let remedies = if excess > 0 { why::remedies(accesses, n) } else { Vec::new() };
        Self {
            site: site.into(),
            name: format!("{} {region}", operation_name(site.operation)),
            region,
            excess,
            why: why::why(site, sampled, block),
            advice: why::advice(site, excess, &remedies),
            remedies,
            samples: sampled.samples.iter().map(|sample| Request::new(site, sample)).collect(),
        }
    }
}

impl Request {
    fn new(site: &Site, sample: &Sample) -> Self {
        let Sample { block, warp, mask, addresses, counts } = sample;
        let together = || banks::lanes_together(addresses, *mask, site.width, site.operation);
        Self {
            block: *block,
            warp: *warp,
            addresses: (0..32).map(|lane| (mask >> lane & 1 == 1).then_some(addresses[lane])).collect(),
            together: (site.space == Space::Shared).then(together),
            wavefronts: (site.space != Space::Global).then_some(counts.wavefronts),
        }
    }
}
