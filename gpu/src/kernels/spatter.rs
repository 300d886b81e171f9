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
    use alloc::vec::Vec;
    pub use crate::suite::spatter::{Configuration, DELTA, Kind, plan};

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

    fn of_case(case: &Case, kind: Kind) -> Result<Plan, PlanError> {
        let name = case.choice("pattern");
        let application = APPLICATIONS.into_iter().find(|application| application.0 == name);
        let (indices, step, instances) = match application {
            Some((_, indices, step)) => (indices.to_vec(), step, 16),
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
