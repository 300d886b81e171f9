//! Votes, matches and reductions: what a warp finds out about the values of all its lanes.

use gpu::device::prelude::*;

/// The lanes whose value is a multiple of 3.
#[kernel]
pub unsafe fn votes_ballot(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.store(i, warp::ballot(warp::FULL, src.load(i).is_multiple_of(3)));
}

/// Whether any value is a multiple of 37, and 2 if all are odd.
#[kernel]
pub unsafe fn votes_any_all(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    let value = src.load(i);
    let any = warp::any(warp::FULL, value.is_multiple_of(37));
    let all = warp::all(warp::FULL, !value.is_multiple_of(64));
    dst.store(i, u32::from(any) + 2 * u32::from(all));
}

/// The lanes whose values leave the same remainder of 5.
#[kernel]
pub unsafe fn votes_match_any(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.store(i, warp::match_any(warp::FULL, src.load(i) % 5));
}

/// Like [`votes_match_any`], of 64 bits that differ in the upper half.
#[kernel]
pub unsafe fn votes_match_any_wide(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.store(i, warp::match_any(warp::FULL, u64::from(src.load(i) % 5) << 40));
}

/// The lanes in a branch: those with a multiple of 3.
#[kernel]
pub unsafe fn votes_activemask(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    let mut mask = 0;
    if src.load(i).is_multiple_of(3) {
        mask = warp::activemask();
    }
    // The store is one request again.
    sync_warp(warp::FULL);
    dst.store(i, mask);
}

/// The sum of a warp's values.
#[kernel]
pub unsafe fn votes_reduce_add(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.store(i, warp::reduce_add(warp::FULL, src.load(i)));
}

/// The least and the greatest value, without a sign: their exclusive or.
#[kernel]
pub unsafe fn votes_reduce_min_max(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    let value = src.load(i);
    dst.store(i, warp::reduce_min(warp::FULL, value) ^ warp::reduce_max(warp::FULL, value));
}

/// Like [`votes_reduce_min_max`] with a sign, and the sum besides.
#[kernel]
pub unsafe fn votes_reduce_signed(src: Global<i32>, dst: GlobalMut<i32>) {
    let i = thread::index_x();
    let value = src.load(i);
    let [least, greatest] = [warp::reduce_min(warp::FULL, value), warp::reduce_max(warp::FULL, value)];
    dst.store(i, least ^ greatest ^ warp::reduce_add(warp::FULL, value));
}

/// The bits of all values, and of any, and of an odd number of them, added up.
#[kernel]
pub unsafe fn votes_reduce_bits(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    let value = src.load(i) | 0x0300_0000;
    let [all, any] = [warp::reduce_and(warp::FULL, value), warp::reduce_or(warp::FULL, value)];
    dst.store(i, all.wrapping_add(any).wrapping_add(warp::reduce_xor(warp::FULL, value)));
}

/// The sum of the values up to the end `n`, in the warp in which it lies too: a vote says who takes part.
#[kernel]
pub unsafe fn votes_tail(src: Global<u32>, dst: GlobalMut<u32>, n: usize) {
    let i = thread::index_x();
    let mask = warp::ballot(warp::FULL, i < n);
    if i < n {
        dst.store(i, warp::reduce_add(mask, src.load(i)));
    }
}

host_only! {
    use gpu::suite::*;

    const BLOCK: u32 = 128;

    const ELEMENTS: Axis = Axis {
        on_gpu: &[Value::Count(1 << 12), Value::Count(1 << 22)],
        in_simulator: &[Value::Count(1 << 12)],
        ..Axis::ELEMENTS
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "votes",
        summary: "what a warp finds out about all its lanes",
        axes: &[ELEMENTS],
        kernels: &[
            Entry { kernel: votes_ballot::KERNEL, plan: |case| plan(case, |warp, _| lanes(warp, |value| value % 3 == 0)) },
            Entry {
                kernel: votes_any_all::KERNEL,
                plan: |case| {
                    plan(case, |warp, _| {
                        let any = warp.iter().any(|value| value % 37 == 0);
                        u32::from(any) + 2 * u32::from(warp.iter().all(|value| value % 64 != 0))
                    })
                },
            },
            Entry { kernel: votes_match_any::KERNEL, plan: |case| plan(case, same_remainder) },
            Entry { kernel: votes_match_any_wide::KERNEL, plan: |case| plan(case, same_remainder) },
            Entry {
                kernel: votes_activemask::KERNEL,
                plan: |case| {
                    plan(case, |warp, lane| if warp[lane] % 3 == 0 { lanes(warp, |value| value % 3 == 0) } else { 0 })
                },
            },
            Entry { kernel: votes_reduce_add::KERNEL, plan: |case| plan(case, |warp, _| sum(warp)) },
            Entry {
                kernel: votes_reduce_min_max::KERNEL,
                plan: |case| plan(case, |warp, _| warp.iter().min().unwrap_or(&0) ^ warp.iter().max().unwrap_or(&0)),
            },
            Entry { kernel: votes_reduce_signed::KERNEL, plan: signed },
            Entry {
                kernel: votes_reduce_bits::KERNEL,
                plan: |case| {
                    plan(case, |warp, _| {
                        let bits = || warp.iter().map(|value| value | 0x0300_0000);
                        let [all, any] = [bits().fold(u32::MAX, |all, bits| all & bits), bits().fold(0, |any, bits| any | bits)];
                        all.wrapping_add(any).wrapping_add(bits().fold(0, |odd, bits| odd ^ bits))
                    })
                },
            },
            Entry { kernel: votes_tail::KERNEL, plan: tail },
        ],
    };

    fn value(i: u64) -> u32 {
        noise_bits(i) as u32
    }

    fn lanes(warp: &[u32; 32], is_it: fn(u32) -> bool) -> u32 {
        (0..32).filter(|lane| is_it(warp[*lane as usize])).fold(0, |lanes, lane| lanes | 1 << lane)
    }

    fn same_remainder(warp: &[u32; 32], lane: usize) -> u32 {
        (0..32).filter(|other| warp[*other as usize] % 5 == warp[lane] % 5).fold(0, |lanes, other| lanes | 1 << other)
    }

    fn sum(warp: &[u32]) -> u32 {
        warp.iter().copied().fold(0, u32::wrapping_add)
    }

    /// The values of the warp in which element `i` is.
    fn warp_of(i: u64) -> [u32; 32] {
        core::array::from_fn(|lane| value(i / 32 * 32 + lane as u64))
    }

    /// As many elements as blocks are full.
    fn rounded(case: &Case) -> u64 {
        case.elements().next_multiple_of(BLOCK.into())
    }

    fn with_counts(plan: Plan, n: u64) -> Result<Plan, PlanError> {
        let counts = warps(n, |_, lanes| Progression::linear(0, lanes, 4).global());
        Ok(plan.bytes(product("the number of bytes", &[8, n])?).loads("src", 4, counts).stores("dst", 4, counts))
    }

    /// Each lane gets what `of` says of its warp's values and its number.
    fn plan(case: &Case, of: fn(&[u32; 32], usize) -> u32) -> Result<Plan, PlanError> {
        let n = rounded(case);
        let plan = Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, move |i| of(&warp_of(i), i as usize % 32))?);
        with_counts(plan, n)
    }

    fn signed(case: &Case) -> Result<Plan, PlanError> {
        let n = rounded(case);
        let plan = Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, |i| value(i).cast_signed())?)
            .buffer(Buffer::output("dst", n, |i| {
                let warp = warp_of(i).map(u32::cast_signed);
                let [least, greatest] = [warp.iter().min().unwrap_or(&0), warp.iter().max().unwrap_or(&0)];
                least ^ greatest ^ warp.iter().copied().fold(0, i32::wrapping_add)
            })?);
        with_counts(plan, n)
    }

    fn tail(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        let plan = Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, move |i| sum(&warp_of(i)[..(n - i / 32 * 32).min(32) as usize]))?)
            .scalar("n", n);
        with_counts(plan, n)
    }
}
