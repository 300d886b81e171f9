//! What requests cost, summed by instruction and by buffer or shared array.

use crate::arch::Transactions;
use crate::instruction::Instruction;
use crate::memory::offset_of;
use crate::request::Request;
use crate::{banks, coalesce};
use gpu::suite::{Counts, Space};
use rustc_hash::FxHashMap;

/// Which buffer or shared array a request went to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Region {
    Buffer(usize),
    Shared(&'static str),
}

/// What requests cost.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) counts: Counts,
    /// Distinct bytes of global memory that the lanes of each request want.
    pub(crate) used: u64,
    pub(crate) transactions: Transactions,
}

/// What the requests of each instruction to each region cost.
#[derive(Default)]
pub(crate) struct Costs {
    costs: Vec<(Instruction, Region, Cost)>,
    by_key: FxHashMap<(Instruction, Region), usize>,
    /// What the last request counted at each place of each list cost: warps mostly make the same requests in the same order.
    recent: Vec<Vec<Recent>>,
}

/// A request that was counted, and others that cost the same and are still to be added.
#[derive(Clone, Copy)]
struct Recent {
    shape: Option<Shape>,
    /// Which of the costs it belongs to.
    cost: usize,
    counts: Counts,
    used: u64,
    more: u64,
}

/// What decides the counts of a request of all lanes that are evenly spaced, and where it belongs to: its site, the pointer
/// that they came by, the bytes from lane to lane, and where in a line it begins, or in a bank.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    instruction: Instruction,
    base: u64,
    step: i64,
    offset: u64,
}

impl Shape {
    #[inline(always)]
    pub(crate) fn of(request: &Request<'_>) -> Option<Self> {
        let Request { instruction, step: Some(step), base: Some(base), .. } = *request else { return None };
        let unit = if instruction.space == Space::Global { coalesce::LINE } else { banks::WIDTH };
        Some(Self { instruction, base, step, offset: request.first() % unit })
    }
}

impl Recent {
    /// Adds what is still to be added.
    fn settle(self, costs: &mut [(Instruction, Region, Cost)]) {
        if self.more > 0 {
            let cost = &mut costs[self.cost].2;
            cost.counts += self.counts * self.more;
            cost.used += self.used * self.more;
        }
    }
}

impl Costs {
    /// Adds a request at `place` among those of its warp if one of the same `shape` was the last one there.
    #[inline(always)]
    pub(crate) fn add_alike(&mut self, [list, place]: [usize; 2], shape: Shape) -> bool {
        match self.recent.get_mut(list).and_then(|recent| recent.get_mut(place)) {
            Some(recent) if recent.shape == Some(shape) => {
                recent.more += 1;
                true
            }
            _ => false,
        }
    }

    /// The costs that requests at `site` to `region` belong to.
    fn of(&mut self, instruction: Instruction, region: Region) -> usize {
        *self.by_key.entry((instruction, region)).or_insert_with(|| {
            self.costs.push((instruction, region, Cost::default()));
            self.costs.len() - 1
        })
    }

    /// Adds a request at `place`, of a `shape` if it has one, to its costs.
    pub(crate) fn add(
        &mut self,
        [list, place]: [usize; 2],
        shape: Option<Shape>,
        instruction: Instruction,
        region: Region,
        counts: Counts,
        used: u64,
    ) -> &mut Cost {
        if self.recent.len() <= list {
            self.recent.resize(list + 1, Vec::new());
        }
        let known = |recent: &&Recent| {
            let (known, of, _) = &self.costs[recent.cost];
            (*known, *of) == (instruction, region)
        };
        let cost = self.recent[list].get(place).filter(known).map(|recent| recent.cost);
        let cost = cost.unwrap_or_else(|| self.of(instruction, region));
        let recent = Recent { shape, cost, counts, used, more: 0 };
        match self.recent[list].get_mut(place) {
            Some(place) => std::mem::replace(place, recent).settle(&mut self.costs),
            None => self.recent[list].resize(place + 1, recent),
        }
        let cost = &mut self.costs[cost].2;
        cost.counts += counts;
        cost.used += used;
        cost
    }

    /// All of them, leaving none.
    pub(crate) fn take(&mut self) -> Vec<(Instruction, Region, Cost)> {
        let Self { mut costs, recent, .. } = std::mem::take(self);
        recent.into_iter().flatten().for_each(|recent| recent.settle(&mut costs));
        costs
    }
}

impl Region {
    /// An address in bytes from the start of the buffer, or of the block's shared memory.
    pub(crate) fn offset(self, address: u64) -> u64 {
        match self {
            Region::Buffer(_) => offset_of(address),
            Region::Shared(_) => address,
        }
    }
}
