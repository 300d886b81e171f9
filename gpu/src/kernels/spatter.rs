//! Spatter: gathers and scatters by a pattern of indices that moves on, as the benchmark Spatter 2 measures them.
//!
//! ```text
//!  pattern 0, 2, 4, 6, delta 1:   round 0   ■ . ■ . ■ . ■ . .
//!                                 round 1   . ■ . ■ . ■ . ■ .
//! ```
//!
//! As in Spatter's CUDA back end an element is 8 bytes, a thread makes one access, and a block has as many threads as the pattern
//! has indices, up to 1024: short patterns leave warps half empty. What differs:
//!
//! - Spatter's gathers store nothing. Here the last `wrap` rounds store what its serial back end leaves in the dense buffer.
//! - Rounds whose scatters meet store equal values, so that what remains can be compared: see [`plan`].
//!
//! The launch contract of every kernel here: the pattern has `length` indices and the dense buffer `slots` elements, neither is 0,
//! and `n` accesses by the pattern stay inside the buffers.

use crate::device::prelude::*;

/// Gather: `dense[id] = sparse[pattern[j] + delta * i]`, where thread `id` takes index `j` in round `i`.
///
/// **Look for** the sectors of the load from `sparse`: those of 8-byte elements side by side are 8 a request. **Cost** two
/// divisions of 64 bits a thread, and the index, which comes from the L1.
#[kernel]
pub unsafe fn spatter_gather(
    sparse: Global<f64>,
    pattern: Global<u64>,
    dense: GlobalMut<f64>,
    length: usize,
    delta: usize,
    slots: usize,
    n: usize,
) {
    core::hint::assert_unchecked(length != 0);
    core::hint::assert_unchecked(slots != 0);
    let id = thread::index_x();
    if id < n {
        // The pattern is read side by side; the load goes wherever it says.
        let value = sparse.load(pattern.load(id % length) as usize + delta * (id / length));
        // No element is below 0: the value of every load is looked at, and the last rounds' are stored.
        if value < 0.0 || id + slots >= n {
            dense.store(id % slots, value);
        }
    }
}

/// Scatter, the gather turned round: `sparse[pattern[j] + delta * i] = dense[id]`.
///
/// **Look for** the gather's sectors, now on the store. **Cost** more than the gather where sectors are written in part.
#[kernel]
pub unsafe fn spatter_scatter(
    sparse: GlobalMut<f64>,
    pattern: Global<u64>,
    dense: Global<f64>,
    length: usize,
    delta: usize,
    slots: usize,
    n: usize,
) {
    core::hint::assert_unchecked(length != 0);
    core::hint::assert_unchecked(slots != 0);
    let id = thread::index_x();
    if id < n {
        // Both loads are side by side; the store goes wherever the pattern says.
        let value = dense.load(id % slots);
        sparse.store(pattern.load(id % length) as usize + delta * (id / length), value);
    }
}

/// Gather and scatter at once, by a pattern each: `scattered[to[j] + delta_to * i] = gathered[from[j] + delta_from * i]`.
///
/// **Look for** the sectors of both patterns. **Cost** that of both.
#[kernel]
pub unsafe fn spatter_gs(
    gathered: Global<f64>,
    from: Global<u64>,
    scattered: GlobalMut<f64>,
    to: Global<u64>,
    length: usize,
    delta_from: usize,
    delta_to: usize,
    n: usize,
) {
    core::hint::assert_unchecked(length != 0);
    let id = thread::index_x();
    if id < n {
        let (j, i) = (id % length, id / length);
        // Each side goes wherever its pattern says.
        let value = gathered.load(from.load(j) as usize + delta_from * i);
        scattered.store(to.load(j) as usize + delta_to * i, value);
    }
}

/// Like [`spatter_gather`], with a pattern of places in the pattern: `dense[id] = sparse[pattern[places[j]] + delta * i]`.
///
/// **Look for** a third load, whose sectors the places decide. **Cost** three loads, each waiting for the one before.
#[kernel]
pub unsafe fn spatter_multi_gather(
    sparse: Global<f64>,
    pattern: Global<u64>,
    places: Global<u64>,
    dense: GlobalMut<f64>,
    length: usize,
    delta: usize,
    slots: usize,
    n: usize,
) {
    core::hint::assert_unchecked(length != 0);
    core::hint::assert_unchecked(slots != 0);
    let id = thread::index_x();
    if id < n {
        // The places are side by side, the pattern wherever they say, and the element wherever that says.
        let place = places.load(id % length) as usize;
        let value = sparse.load(pattern.load(place) as usize + delta * (id / length));
        if value < 0.0 || id + slots >= n {
            dense.store(id % slots, value);
        }
    }
}

/// Like [`spatter_scatter`], with a pattern of places in the pattern: `sparse[pattern[places[j]] + delta * i] = dense[id]`.
///
/// **Look for** the loads of [`spatter_multi_gather`], and its sectors on the store. **Cost** three loads before the store.
#[kernel]
pub unsafe fn spatter_multi_scatter(
    sparse: GlobalMut<f64>,
    pattern: Global<u64>,
    places: Global<u64>,
    dense: Global<f64>,
    length: usize,
    delta: usize,
    slots: usize,
    n: usize,
) {
    core::hint::assert_unchecked(length != 0);
    core::hint::assert_unchecked(slots != 0);
    let id = thread::index_x();
    if id < n {
        let value = dense.load(id % slots);
        // The places are side by side, the pattern wherever they say, and the element wherever that says.
        let place = places.load(id % length) as usize;
        sparse.store(pattern.load(place) as usize + delta * (id / length), value);
    }
}

family! {
    use alloc::{sync::Arc, vec::Vec};

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "spatter",
        summary: "gathers and scatters of 8-byte elements by Spatter's patterns: strides, stencils, applications",
        axes: &[ELEMENTS, PATTERN],
        kernels: &[
            Entry { kernel: spatter_gather::KERNEL, plan: |case| of_case(case, Kind::Gather) },
            Entry { kernel: spatter_scatter::KERNEL, plan: |case| of_case(case, Kind::Scatter) },
            Entry { kernel: spatter_gs::KERNEL, plan: |case| of_case(case, Kind::Gs) },
            Entry { kernel: spatter_multi_gather::KERNEL, plan: |case| of_case(case, Kind::MultiGather) },
            Entry { kernel: spatter_multi_scatter::KERNEL, plan: |case| of_case(case, Kind::MultiScatter) },
        ],
    };

    const ELEMENTS: Axis = Axis {
        kind: AxisKind::Count { min: 1, max: 1 << 32 },
        in_simulator: &[Value::Count(1 << 16)],
        ..Axis::ELEMENTS
    };

    const PATTERN: Axis = Axis::chosen(
        "pattern",
        "Patterns of indices, for spatter: generated ones, and one of each of some applications",
        &["UNIFORM:256:1:NR", "UNIFORM:256:8:NR", "MS1:64:8:9", "LAPLACIAN:3:1:9", "AMG", "LULESH", "NEKBONE", "PENNANT"],
        &[
            Value::Choice("UNIFORM:256:1:NR"),
            Value::Choice("UNIFORM:256:8:NR"),
            Value::Choice("MS1:64:8:9"),
            Value::Choice("LAPLACIAN:3:1:9"),
            Value::Choice("AMG"),
            Value::Choice("LULESH"),
            Value::Choice("NEKBONE"),
            Value::Choice("PENNANT"),
        ],
    );

    /// Patterns of applications and how far each moves on: the first of amg.json and of nekbone.json, the fifth of lulesh.json, the
    /// second of pennant.json, in the folder standard-suite/app-traces of github.com/hpcgarage/spatter. Its suite for GPUs has 16
    /// instances of each in a pattern; so have the cases here.
    const APPLICATIONS: [(&str, [u64; 16], u64); 4] = [
        ("AMG", [1333, 0, 1, 2, 36, 37, 38, 72, 73, 74, 1296, 1297, 1298, 1332, 1334, 1368], 1),
        ("LULESH", [0, 24, 48, 72, 96, 120, 144, 168, 192, 216, 240, 264, 288, 312, 336, 360], 4),
        ("NEKBONE", [0, 6, 12, 18, 24, 30, 36, 42, 48, 54, 60, 66, 72, 78, 84, 90], 3),
        ("PENNANT", [4, 8, 12, 0, 20, 24, 28, 16, 36, 40, 44, 32, 52, 56, 60, 48], 2),
    ];

    /// Spatter's delta where neither file nor pattern says one.
    pub const DELTA: u64 = 8;

    /// Which kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// [`spatter_gather`].
        Gather,
        /// [`spatter_scatter`].
        Scatter,
        /// [`spatter_gs`].
        Gs,
        /// [`spatter_multi_gather`].
        MultiGather,
        /// [`spatter_multi_scatter`].
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

    fn of_case(case: &Case, kind: Kind) -> Result<Plan, PlanError> {
        let name = case.choice("pattern");
        let application = APPLICATIONS.iter().find(|(application, ..)| *application == name);
        let (indices, step, instances) = match application {
            Some((_, indices, step)) => (indices.to_vec(), *step, 16),
            None => {
                let (indices, delta) = generator::indices(name)?;
                (indices, delta.unwrap_or(DELTA), 1)
            }
        };
        let moved = |step: u64| (0..instances).flat_map(|k| indices.iter().map(move |index| index + step * k)).collect::<Vec<_>>();
        // What is scattered moves on by the next step with which no element is written twice.
        let apart = apart(&indices, step);
        let (from, to) = (moved(step), moved(apart));
        let length = from.len() as u64;
        let places = (0..length).rev().collect();
        let (pattern, step, inner) = match kind {
            Kind::Gather => (from, step, Vec::new()),
            Kind::Scatter => (to, apart, Vec::new()),
            Kind::Gs => (from, step, to),
            Kind::MultiGather => (from, step, places),
            Kind::MultiScatter => (to, apart, places),
        };
        plan(&Configuration {
            kind,
            pattern,
            delta: step * instances,
            inner,
            delta_inner: apart * instances,
            length,
            count: case.elements().div_ceil(length),
            wrap: 1,
            block: None,
        })
    }

    /// The least step, from `step` on, whose multiples lead from none of the indices to another.
    fn apart(indices: &[u64], step: u64) -> u64 {
        let parts = |step: &u64| {
            let mut remainders: Vec<u64> = indices.iter().map(|index| index % step).collect();
            remainders.sort_unstable();
            remainders.windows(2).all(|pair| pair[0] != pair[1])
        };
        (step.max(1)..).find(parts).unwrap_or(u64::MAX)
    }
}
