//! What Spatter calls a configuration, and the plan that the family `spatter` makes of it.

use super::{Buffer, Expected, Indexed, Launch, Operation, Plan, PlanError, format, gcd, lcm, noise_f64, product, requests, scattered};
use alloc::{sync::Arc, vec::Vec};

/// Spatter's delta where neither file nor pattern says one.
pub const DELTA: u64 = 8;

/// Which kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `spatter_gather`.
    Gather,
    /// `spatter_scatter`.
    Scatter,
    /// `spatter_gs`.
    Gs,
    /// `spatter_multi_gather`.
    MultiGather,
    /// `spatter_multi_scatter`.
    MultiScatter,
}

/// What Spatter calls a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Which kernel.
    pub kind: Kind,
    /// The pattern; of [`Kind::Gs`] that of the gather.
    pub pattern: Vec<u64>,
    /// How far it moves on from round to round.
    pub delta: u64,
    /// Of [`Kind::Gs`] the pattern of the scatter, of the multi kernels the places in the pattern.
    pub inner: Vec<u64>,
    /// How far the scatter of [`Kind::Gs`] moves on.
    pub delta_inner: u64,
    /// Accesses of one gather or scatter: those of the pattern, or of so many where several deltas made one of more.
    pub length: u64,
    /// How many gathers or scatters.
    pub count: u64,
    /// How many of them the dense buffer holds.
    pub wrap: u64,
    /// Threads of a block; none for as many as a gather or scatter has accesses, up to 1024.
    pub block: Option<u32>,
}

impl Configuration {
    /// How many accesses by the pattern.
    ///
    /// # Errors
    /// If there are too many to count.
    pub fn accesses(&self) -> Result<u64, PlanError> {
        product("the length of the pattern times the count", &[self.length, self.count])
    }

    /// Bytes that Spatter divides by the time: those of the accesses, of both sides where it gathers and scatters.
    pub fn bytes(&self) -> u64 {
        self.length.saturating_mul(self.count).saturating_mul(if self.kind == Kind::Gs { 16 } else { 8 })
    }

    /// How far the scatter of [`Kind::Gs`] moves on.
    pub fn inner_delta(&self) -> Option<u64> {
        (self.kind == Kind::Gs).then_some(self.delta_inner)
    }

    /// The list that accesses to the sparse buffer go by; of [`Kind::Gs`] those of its stores.
    fn sparse(&self) -> Result<Indexed, PlanError> {
        let n = self.accesses()?;
        match self.kind {
            Kind::Gather | Kind::Scatter => Indexed::new("the pattern", self.pattern.clone(), self.delta, n),
            Kind::Gs => Indexed::new("the pattern of the scatter", self.inner.clone(), self.delta_inner, n),
            Kind::MultiGather | Kind::MultiScatter => {
                let index = |place: &u64| {
                    let index = usize::try_from(*place).ok().and_then(|place| self.pattern.get(place)).copied();
                    let len = self.pattern.len();
                    index.ok_or_else(|| PlanError(format!("the place {place} lies outside the pattern, which has {len} indices")))
                };
                Indexed::new("the pattern", self.inner.iter().map(index).collect::<Result<_, _>>()?, self.delta, n)
            }
        }
    }

    /// Whether several accesses write one element: by Spatter's definition, any of them may be the last.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn races(&self) -> Result<bool, PlanError> {
        Ok(!matches!(self.kind, Kind::Gather | Kind::MultiGather) && self.sparse()?.meets())
    }
}

/// The plan of a configuration.
///
/// Where accesses write one element, what they write is made equal: the values to be written repeat, as often as is needed.
///
/// # Errors
/// If it makes no sense.
pub fn plan(of: &Configuration) -> Result<Plan, PlanError> {
    let (n, sparse) = (of.accesses()?, of.sparse()?);
    let threads = of.block.unwrap_or(of.length.min(1024) as u32);
    let (block, len) = (u64::from(threads), sparse.len());
    let slots = of.length.saturating_mul(of.wrap).min(n);
    let by_list = |list: Arc<[u64]>| {
        requests(n, block, lcm(len, block), |ids| scattered(ids.map(|id| 8 * list[(id % len) as usize]), 8))
    };
    let side_by_side = by_list((0..len).collect());
    let dense = |first: u64, period| {
        let begin = first / block * block;
        let slot = move |id: u64| (id + begin >= first).then_some(8 * ((id + begin) % slots));
        requests(n - begin, block, period, |ids| scattered(ids.filter_map(slot), 8))
    };
    let plan = Plan::new(Launch::linear(n, threads)?);
    let index = |name, list: &[u64]| {
        let list: Arc<[u64]> = list.into();
        Buffer::input(name, list.len() as u64, move |i| list[i as usize])
    };
    let mut counted = Vec::new();
    let mut bytes = 8 * sparse.distinct();
    let mut plan = if of.kind == Kind::Gs {
        let from = Indexed::new("the pattern of the gather", of.pattern.clone(), of.delta, n)?;
        if from.len() != len {
            let from = from.len();
            return Err(PlanError(format!("the pattern of the gather has {from} indices, and that of the scatter {len}: give as many")));
        }
        bytes += 8 * (from.distinct() + 2 * len);
        let list = from.indices();
        let repeats = sparse.common(|place| list[place as usize], from.delta());
        let (counts, stores) = (from.counts(block), sparse.counts(block));
        counted.extend([("from", Operation::Load, side_by_side), ("to", Operation::Load, side_by_side)]);
        counted.extend([("gathered", Operation::Load, counts), ("scattered", Operation::Store, stores)]);
        plan.buffer(Buffer::input("gathered", from.extent(), move |i| repeated(i, repeats))?)
            .buffer(index("from", &of.pattern)?)
            .buffer(Buffer::partial_output("scattered", sparse.extent(), move |element| {
                Some(repeated(from.at(sparse.access_to(element)?), repeats))
            })?)
            .buffer(index("to", &of.inner)?)
            .scalar("delta_from", of.delta)
            .scalar("delta_to", of.delta_inner)
    } else {
        let is_multi = matches!(of.kind, Kind::MultiGather | Kind::MultiScatter);
        let mut plan = plan.buffer(index("pattern", &of.pattern)?).scalar("delta", of.delta).scalar("slots", slots);
        if is_multi {
            let mut places = of.inner.clone();
            places.sort_unstable();
            places.dedup();
            bytes += 8 * places.len() as u64;
            counted.extend([("pattern", Operation::Load, by_list(of.inner.as_slice().into()))]);
            counted.extend([("places", Operation::Load, side_by_side)]);
            plan = plan.buffer(index("places", &of.inner)?);
        } else {
            counted.extend([("pattern", Operation::Load, side_by_side)]);
        }
        bytes += 8 * (len + slots);
        let counts = sparse.counts(block);
        if matches!(of.kind, Kind::Gather | Kind::MultiGather) {
            let period = if slots == n { lcm(block, 16) } else { n };
            counted.extend([("sparse", Operation::Load, counts), ("dense", Operation::Store, dense(n - slots, period))]);
            plan.buffer(Buffer::input("sparse", sparse.extent(), noise_f64)?).buffer(Buffer::output("dense", slots, move |slot| {
                noise_f64(sparse.at(slot + (n - 1 - slot) / slots * slots))
            })?)
        } else {
            let period = if slots == n { lcm(block, 16) } else { lcm(block, slots) };
            counted.extend([("dense", Operation::Load, dense(0, period)), ("sparse", Operation::Store, counts)]);
            let repeats = gcd(sparse.common(|place| place, len), if sparse.meets() { slots } else { 0 });
            plan.buffer(Buffer::input("dense", slots, move |slot| repeated(slot, repeats))?).buffer(Buffer::partial_output(
                "sparse",
                sparse.extent(),
                move |element| Some(repeated(sparse.access_to(element)? % slots, repeats)),
            )?)
        }
    };
    // Stated are all or none.
    if counted.iter().all(|(_, _, counts)| counts.is_some()) {
        let stated = counted.into_iter().filter_map(|(buffer, operation, counts)| {
            Some(Expected { buffer, operation, width: 8, counts: counts? })
        });
        plan.expected.extend(stated);
    }
    Ok(plan.scalar("length", len).scalar("n", n).bytes(bytes))
}

/// What element `i` of an input holds, with which so many repeat, or all differ.
fn repeated(i: u64, repeats: u64) -> f64 {
    noise_f64(i.checked_rem(repeats).unwrap_or(i))
}

