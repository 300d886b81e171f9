//! What comes of a simulation.

use crate::arch::Transactions;
use crate::blocks::Blocks;
use crate::cost::{Cost, Region};
use crate::finding::Finding;
use crate::instruction::{Instruction, Position};
use crate::launch::Launch;
use crate::memory::Memory;
use crate::note::{Note, Seen};
use crate::printed::Printed;
use crate::sample::{self, Sampled, Sampler};
use gpu::suite::{Counts, Operation, Space};
use plan::verify::Actual;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a source position asked of the memory system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Where it stands.
    pub position: Position,
    /// Which memory.
    pub space: Space,
    /// What it does.
    pub operation: Operation,
    /// Bytes a lane.
    pub width: u64,
    /// How often, and at what cost.
    pub counts: Counts,
    /// Distinct bytes of global memory that the lanes of each request want, summed over the requests.
    pub used: u64,
    /// Transactions to global memory on the generation of GPUs that was asked for.
    pub transactions: Transactions,
    /// What the compiler may make of it.
    pub notes: Vec<Note>,
}

/// What came of a simulation.
pub struct Outcome {
    /// What each source position asked for, in the order of the source. Empty if there are findings.
    pub sites: Vec<Site>,
    /// More of each of these, in the same order. Empty without [`Options::sampling`](crate::Options::sampling).
    pub sampled: Vec<Sampled>,
    /// The same by buffer or shared array, operation and width, as families state what they expect.
    pub regions: BTreeMap<(String, Operation, u64), Counts>,
    /// Where the accesses stand that make them, likewise.
    pub lines: BTreeMap<(String, Operation, u64), BTreeSet<Position>>,
    /// Transactions, likewise.
    pub transactions: BTreeMap<(String, Operation, u64), Transactions>,
    /// What was found in the first block that has findings, the same on every run.
    pub findings: Vec<Finding>,
    /// What the kernel printed, up to the block with findings if there is one.
    pub printed: Printed,
    /// Which blocks ran.
    pub blocks: Blocks,
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared_bytes: u64,
    memory: Option<Memory>,
}

impl Outcome {
    /// Element `i` of buffer number `buffer` of the plan, after a run of the whole grid; none if the run had to be abandoned.
    pub fn actual(&self, buffer: usize, i: u64) -> Option<Actual> {
        self.memory.as_ref().map(|memory| memory.actual(buffer, i))
    }

    /// The bits of element `i` of buffer number `buffer` of the plan, after the run; none if the run had to be abandoned.
    pub fn bits(&self, buffer: usize, i: u64) -> Option<u64> {
        self.memory.as_ref().map(|memory| memory.bits(buffer, i))
    }
}

impl Outcome {
    /// What is known of a run that was abandoned for a finding.
    pub(crate) fn abandoned(launch: &Launch, finding: Finding) -> Self {
        Self {
            sites: Vec::new(),
            sampled: Vec::new(),
            regions: BTreeMap::new(),
            lines: BTreeMap::new(),
            transactions: BTreeMap::new(),
            findings: vec![finding],
            printed: Printed::default(),
            blocks: launch.blocks,
            shared_bytes: launch.shared_bytes,
            memory: None,
        }
    }
}

/// What one worker counted, and what it found in which turn.
pub(crate) struct Part {
    pub(crate) counts: Vec<(Instruction, Region, Cost)>,
    pub(crate) seen: FxHashMap<Instruction, Seen>,
    pub(crate) sampler: Option<Sampler>,
    pub(crate) findings: Option<(u64, Vec<Finding>)>,
    pub(crate) claims: u64,
}

/// Puts together what the workers counted and found.
pub(crate) fn gather(launch: Arc<Launch>, parts: Vec<Part>) -> Outcome {
    let first = parts.iter().filter_map(|part| part.findings.as_ref()).min_by_key(|(turn, _)| *turn);
    let printed = launch.printed.up_to(first.map_or(u64::MAX, |(turn, _)| *turn));
    let findings = first.map(|(_, findings)| findings.clone()).unwrap_or_default();
    let mut sites = BTreeMap::<_, Site>::new();
    let mut sampled = BTreeMap::new();
    let mut regions = BTreeMap::<_, Counts>::new();
    let mut lines = BTreeMap::<_, BTreeSet<_>>::new();
    let mut transactions = BTreeMap::<_, Transactions>::new();
    if findings.is_empty() {
        let key = |of: Instruction| (of.pc.position(), of.space, of.operation, of.width());
        let name = |region| match region {
            Region::Buffer(buffer) => launch.plan.buffers[buffer].name.to_owned(),
            Region::Shared(array) => array.to_owned(),
        };
        let mut samplers = Vec::new();
        let mut seen = BTreeMap::<_, Seen>::new();
        for part in parts {
            part.seen.into_iter().for_each(|(site, of_part)| *seen.entry(key(site)).or_default() |= of_part);
            samplers.extend(part.sampler);
            for (site, region, cost) in part.counts {
                let (position, space, operation, width) = key(site);
                let site = sites.entry((position, space, operation, width)).or_insert(Site {
                    position,
                    space,
                    operation,
                    width,
                    counts: Counts::default(),
                    used: 0,
                    transactions: Transactions::default(),
                    notes: Vec::new(),
                });
                site.counts += cost.counts;
                site.used += cost.used;
                site.transactions += cost.transactions;
                let key = (name(region), operation, width);
                *regions.entry(key.clone()).or_default() += cost.counts;
                lines.entry(key.clone()).or_default().insert(position);
                *transactions.entry(key).or_default() += cost.transactions;
            }
        }
        seen.into_iter().for_each(|(key, seen)| {
            sites.entry(key).and_modify(|site| site.notes = seen.notes());
        });
        sampled = sample::gather(samplers.into_iter(), key, name);
    }
    let (blocks, shared_bytes) = (launch.blocks, launch.shared_bytes);
    // Every worker has let go of the launch, unless it is on its way out of its last call.
    let memory = Arc::into_inner(launch).map(|launch| launch.memory);
    let sampled = sampled.into_values().collect();
    Outcome {
        sites: sites.into_values().collect(),
        sampled,
        regions,
        lines,
        transactions,
        findings,
        printed,
        blocks,
        shared_bytes,
        memory,
    }
}
