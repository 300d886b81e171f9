//! Pattern: what one load of a warp costs, by where its lanes look. Order does not matter, distance does.
//!
//! ```text
//!  stride 1000:  ■ . . . … ■ . . . … ■       32 lines, a sector of each, an element of each sector
//!  reversed:     ■ ■ ■ ■ ■ ■ ■ ■ … ■         the 4 sectors of a line, from the last element to the first
//!  broadcast:    ■ . . . . . . . … .         1 sector, for 32 lanes
//! ```

use crate::device::prelude::*;

/// A lane reads 1000 elements behind its neighbour.
///
/// 125 warps take turns in the 125 sectors between two lanes' elements, so that no sector is read twice, as in an input
/// 1000 times as long.
///
/// **Look for** 32 sectors in 32 lines, the most there is. **Cost** 1024 bytes moved for 128 used: an eighth, not the
/// 32nd that whole lines would give.
#[kernel]
pub unsafe fn pattern_stride_1000(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        let (warp, lane) = (i / 32, i % 32);
        // A warp loads from 32 lines and stores one.
        dst.store(i, src.load(warp / 125 * 32_000 + warp % 125 * 8 + lane * 1000));
    }
}

/// Like [`pattern_stride_1000`], from anywhere: a hash of the index says where.
///
/// **Look for** hardly less than 32 sectors, wherever the input is much larger than a warp's share of it. **Cost** as
/// above, and no neighbour will come for the rest of a sector.
#[kernel]
pub unsafe fn pattern_random(src: Global<f32>, dst: GlobalMut<f32>, n: usize, range: usize) {
    let i = thread::index_x();
    if i < n {
        // A warp loads from up to 32 lines and stores one.
        dst.store(i, src.load(random(i as u64, range as u64) as usize));
    }
}

/// A number below `range` for each `i`: the upper half of the product of `range` and 64 hashed bits.
#[device]
fn random(i: u64, range: u64) -> u64 {
    let mut z = (i ^ i >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ 0x94D0_49BB_1331_11EB;
    z = (z ^ z >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    ((u128::from(z ^ z >> 32) * u128::from(range)) >> 64) as u64
}

/// Like [`pattern_random`], but within the warp's line: the bits of the lane are flipped by 10101.
///
/// **Look for** 4 sectors in 1 line, as in order. **Cost** none: the lanes of a request have no order.
#[kernel]
pub unsafe fn pattern_permuted(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        // A warp loads one line, its third and fourth sector first, and stores one.
        dst.store(i, src.load(i ^ 0b10101));
    }
}

/// Like [`pattern_permuted`], from the last element to the first.
///
/// **Look for** 4 sectors; 5 where the number of elements is no multiple of 8. **Cost** none: counting down coalesces
/// as counting up does.
#[kernel]
pub unsafe fn pattern_reversed(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        // A warp loads 32 neighbours, the last one for its first lane, and stores one line.
        dst.store(i, src.load(n - 1 - i));
    }
}

/// In order, by the first half of each warp alone.
///
/// **Look for** 2 sectors a request: what the other lanes would have wanted is not fetched. **Cost** a whole
/// instruction for half of what it can move.
#[kernel]
pub unsafe fn pattern_half_warp(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n && i % 32 < 16 {
        // A warp loads half a line and stores as much.
        dst.store(i, src.load(i));
    }
}

/// Like [`pattern_half_warp`], with one lane of 32.
///
/// **Look for** 1 sector, a quarter of the ideal request, for a 32nd of its elements. **Cost** 28 bytes of the 32
/// moved.
#[kernel]
pub unsafe fn pattern_one_lane(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n && i.is_multiple_of(32) {
        // A warp loads one element and stores one.
        dst.store(i, src.load(i));
    }
}

/// Like [`pattern_one_lane`], for all: the 32 lanes want the same element.
///
/// **Look for** 1 sector a load, and that it is the ideal: 32 lanes wait for one element, which is sent to all.
/// **Cost** none, though a warp does not need to ask for what it has: here the next warp's element is in the same
/// sector.
#[kernel]
pub unsafe fn pattern_broadcast(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        // A warp loads one element and stores one line.
        dst.store(i, src.load(i / 32));
    }
}

family! {
    /// Fewer than elsewhere on a GPU, since two of the inputs have 8 elements for each.
    const ELEMENTS: Axis = Axis {
        on_gpu: &[Value::Count(1 << 23)],
        in_simulator: &[Value::Count(1 << 18)],
        ..Axis::ELEMENTS
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "pattern",
        summary: "what one load of a warp costs: far apart, anywhere, in any order, by some lanes, from one element",
        axes: &[ELEMENTS],
        kernels: &[
            Entry { kernel: pattern_stride_1000::KERNEL, plan: stride_1000 },
            Entry { kernel: pattern_random::KERNEL, plan: anywhere },
            Entry { kernel: pattern_permuted::KERNEL, plan: permuted },
            Entry { kernel: pattern_reversed::KERNEL, plan: reversed },
            Entry { kernel: pattern_half_warp::KERNEL, plan: |case| first_lanes(case, 16) },
            Entry { kernel: pattern_one_lane::KERNEL, plan: |case| first_lanes(case, 1) },
            Entry { kernel: pattern_broadcast::KERNEL, plan: broadcast },
        ],
    };

    /// Every lane stores what it loaded: element `source(i)` of `len`.
    fn plan(case: &Case, len: u64, source: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Result<Plan, PlanError> {
        let n = case.elements();
        Ok(Plan::new(Launch::linear(n, 256)?)
            .buffer(Buffer::input("src", len, noise)?)
            .buffer(Buffer::output("dst", n, move |i| noise(source(i)))?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[8, n])?)
            .stores("dst", 4, in_order(n, 32)))
    }

    /// Warps whose first `active` lanes move an element each, in order.
    fn in_order(n: u64, active: u64) -> Counts {
        warps(n, |warp, lanes| Progression::linear(128 * warp, lanes.min(active), 4).global())
    }

    fn stride_1000(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        let len = product("the number of elements read between", &[n.div_ceil(32).div_ceil(125), 32_000])?;
        // Each lane's sector is its own: a warp's first element lies at the beginning of one, and so do those 1000 on.
        let loads = warps(n, |_, lanes| Progression { first: 0, step: 4000, lanes, width: 4 }.global());
        let source = |i| i / 32 / 125 * 32_000 + i / 32 % 125 * 8 + i % 32 * 1000;
        Ok(plan(case, len, source)?.loads("src", 4, loads))
    }

    fn anywhere(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        let range = product("the number of elements read from", &[n, 8])?;
        let plan = plan(case, range, move |i| random(i, range))?;
        let warp = |first: u64| scattered((first..n.min(first + 32)).map(|i| 4 * random(i, range)), 4);
        let loads = (0..n).step_by(32).map(warp).sum();
        Ok(plan.scalar("range", range).loads("src", 4, loads))
    }

    fn permuted(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        // Flipping the upper bits of the lane permutes the sectors of its line, flipping the others the elements of
        // each sector: also the lanes of a partial warp touch as many as in order.
        let whole_lines = product("the number of elements of whole lines", &[n.div_ceil(32), 32])?;
        Ok(plan(case, whole_lines, |i| i ^ 0b10101)?.loads("src", 4, in_order(n, 32)))
    }

    fn reversed(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        let plan = plan(case, n, move |i| n - 1 - i)?;
        let loads = warps(n, |warp, lanes| Progression::linear(4 * (n - 32 * warp - lanes), lanes, 4).global());
        Ok(plan.loads("src", 4, loads))
    }

    fn first_lanes(case: &Case, active: u64) -> Result<Plan, PlanError> {
        let n = case.elements();
        let moved = n / 32 * active + (n % 32).min(active);
        Ok(Plan::new(Launch::linear(n, 256)?)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::partial_output("dst", n, move |i| (i % 32 < active).then(|| noise(i)))?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[8, moved])?)
            .loads("src", 4, in_order(n, active))
            .stores("dst", 4, in_order(n, active)))
    }

    fn broadcast(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        let read = n.div_ceil(32);
        // Any element lies in one sector.
        let loads = warps(n, |_, lanes| Progression { first: 0, step: 0, lanes, width: 4 }.global());
        Ok(plan(case, read, |i| i / 32)?.bytes(product("the number of bytes", &[4, n + read])?).loads("src", 4, loads))
    }
}
