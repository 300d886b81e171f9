//! What the sums of a run do not tell: how addresses move from lane to lane, and some requests as they were.

use crate::banks;
use crate::coalesce::SECTOR;
use crate::cost::Region;
use crate::instruction::Instruction;
use crate::pattern::Pattern;
use crate::request::Request;
use gpu::suite::Counts;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Which requests to keep as they were. Patterns are tallied of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Blocks to keep requests of: the first, the last, and others evenly between; all if there are no more.
    pub blocks: u64,
    /// Warps of such a block, from the first on.
    pub warps: u32,
    /// Requests of such a warp at each source position, from the first on.
    pub requests: u32,
}

impl Sampling {
    /// Whether requests of the `turn`-th of so many blocks are kept.
    fn keeps(self, turn: u64, of: u64) -> bool {
        if self.blocks >= of {
            return true;
        }
        let gaps = self.blocks.saturating_sub(1).max(1);
        (0..self.blocks).any(|i| turn == i * (of - 1) / gaps)
    }
}

/// One request as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// `blockIdx`.
    pub block: [u32; 3],
    /// The warp's number in its block.
    pub warp: u32,
    /// The active lanes.
    pub mask: u32,
    /// Bytes from the start of the buffer, or of the block's shared memory, by lane; 0 where the lane is not active.
    pub addresses: [u64; 32],
    /// What it costs.
    pub counts: Counts,
}

/// The requests of one source position to one buffer or shared array that have one pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The buffer or shared array.
    pub region: String,
    /// Their pattern.
    pub pattern: Pattern,
    /// Their sum.
    pub total: Counts,
    /// Distinct bytes that the lanes of each want, summed.
    pub used: u64,
    /// The fewest sectors that could hold the bytes of each, summed.
    pub fewest: u64,
    /// The least of each count that a request has, and the most.
    pub range: [Counts; 2],
    /// Whether the active lanes of each are neighbours.
    pub contiguous: bool,
    /// The first of them.
    pub example: Sample,
}

/// What is known of a source position beyond its sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// Its patterns, the most frequent first.
    pub tallies: Vec<Tally>,
    /// The requests that were kept, in order within each warp of each block.
    pub samples: Vec<Sample>,
}

/// A tally in the making: the turn is that of the example's block.
struct Open {
    total: Counts,
    used: u64,
    fewest: u64,
    range: [Counts; 2],
    contiguous: bool,
    example: (u64, Sample),
}

impl Open {
    fn absorb(&mut self, other: Self) {
        self.total += other.total;
        self.used += other.used;
        self.fewest += other.fewest;
        let [least, most] = &mut self.range;
        *least = each(*least, other.range[0], u64::min);
        *most = each(*most, other.range[1], u64::max);
        self.contiguous &= other.contiguous;
        if other.example.0 < self.example.0 {
            self.example = other.example;
        }
    }
}

fn each(a: Counts, b: Counts, pick: fn(u64, u64) -> u64) -> Counts {
    Counts {
        requests: pick(a.requests, b.requests),
        lanes: pick(a.lanes, b.lanes),
        sectors: pick(a.sectors, b.sectors),
        sectors_ideal: pick(a.sectors_ideal, b.sectors_ideal),
        lines: pick(a.lines, b.lines),
        wavefronts: pick(a.wavefronts, b.wavefronts),
        wavefronts_ideal: pick(a.wavefronts_ideal, b.wavefronts_ideal),
    }
}

/// Looks at the requests of the blocks that one worker runs.
pub(crate) struct Sampler {
    sampling: Sampling,
    /// Blocks of the whole run.
    blocks: u64,
    tallies: FxHashMap<(Instruction, Region, Pattern), Open>,
    kept: Vec<(u64, Instruction, Sample)>,
    /// How many requests are kept of a block's warp at a source position.
    seen: FxHashMap<(u64, u32, Instruction), u32>,
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling, blocks: u64) -> Self {
        Self { sampling, blocks, tallies: FxHashMap::default(), kept: Vec::new(), seen: FxHashMap::default() }
    }

    /// Looks at a request of a warp in the `turn`-th block. Out of line, since mostly nobody asks for it.
    #[cold]
    pub(crate) fn look(
        &mut self,
        turn: u64,
        block: [u32; 3],
        warp: u32,
        request: &Request<'_>,
        region: Region,
        counts: Counts,
    ) {
        let (site, mask) = (request.instruction, request.mask);
        let offset = |lane: usize| if mask >> lane & 1 == 1 { region.offset(request.address(lane)) } else { 0 };
        let sample = Sample { block, warp, mask, addresses: std::array::from_fn(offset), counts };
        if warp < self.sampling.warps && self.sampling.keeps(turn, self.blocks) {
            let seen = self.seen.entry((turn, warp, site)).or_default();
            if *seen < self.sampling.requests {
                *seen += 1;
                self.kept.push((turn, site, sample.clone()));
            }
        }
        let pattern = Pattern::of(&sample.addresses, mask);
        // Accesses of one width, aligned to it, are the same bytes or have none in common.
        let used = banks::distinct(&sample.addresses, mask) * site.width();
        let lanes = mask >> mask.trailing_zeros();
        let contiguous = lanes & lanes.wrapping_add(1) == 0;
        let fewest = used.div_ceil(SECTOR);
        let one = Open { total: counts, used, fewest, range: [counts; 2], contiguous, example: (turn, sample) };
        match self.tallies.get_mut(&(site, region, pattern)) {
            Some(tally) => tally.absorb(one),
            None => drop(self.tallies.insert((site, region, pattern), one)),
        }
    }
}

/// Puts together what the workers' samplers saw, by `key` of the source position, the same on any number of workers.
pub(crate) fn gather<K: Ord>(
    samplers: impl Iterator<Item = Sampler>,
    key: impl Fn(Instruction) -> K,
    name: impl Fn(Region) -> String,
) -> BTreeMap<K, Sampled> {
    let mut tallies = BTreeMap::<K, BTreeMap<(Region, Pattern), Open>>::new();
    let mut kept = BTreeMap::<K, Vec<(u64, Sample)>>::new();
    for sampler in samplers {
        for ((site, region, pattern), tally) in sampler.tallies {
            let of_site = tallies.entry(key(site)).or_default();
            match of_site.get_mut(&(region, pattern)) {
                Some(known) => known.absorb(tally),
                None => drop(of_site.insert((region, pattern), tally)),
            }
        }
        for (turn, site, sample) in sampler.kept {
            kept.entry(key(site)).or_default().push((turn, sample));
        }
    }
    let sampled =
        tallies.into_iter().map(|(key, tallies)| {
            let close = |((region, pattern), Open { total, used, fewest, range, contiguous, example }): (_, Open)| {
                Tally { region: name(region), pattern, total, used, fewest, range, contiguous, example: example.1 }
            };
            let mut tallies: Vec<_> = tallies.into_iter().map(close).collect();
            tallies.sort_by_key(|tally| std::cmp::Reverse(tally.total.requests));
            // Stable: the requests of a warp stay in order.
            let mut samples = kept.remove(&key).unwrap_or_default();
            samples.sort_by_key(|(turn, sample)| (*turn, sample.warp));
            let samples = samples.into_iter().map(|(_, sample)| sample).collect();
            (key, Sampled { tallies, samples })
        });
    sampled.collect()
}
