//! Atomics on global memory: each operation, type and scope.

use gpu::device::prelude::*;

/// Elements that all threads share where it does not matter who comes first.
const BINS: usize = 1024;

/// A sum in each of 1024 bins; the warp's lanes stand side by side, and no lane wants to know what stood there before.
#[kernel]
pub unsafe fn atomic_global_add_u32(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.atomic_add(i % BINS, src.load(i));
}

/// Like [`atomic_global_add_u32`], 8 bytes a lane.
#[kernel]
pub unsafe fn atomic_global_add_i64(src: Global<i64>, dst: GlobalMut<i64>) {
    let i = thread::index_x();
    dst.atomic_add(i % BINS, src.load(i));
}

/// Like [`atomic_global_add_u32`], in single precision: sums that are exact in any order.
#[kernel]
pub unsafe fn atomic_global_add_f32(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.atomic_add(i % BINS, src.load(i));
}

/// The same in double precision.
#[kernel]
pub unsafe fn atomic_global_add_f64(src: Global<f64>, dst: GlobalMut<f64>) {
    let i = thread::index_x();
    dst.atomic_add(i % BINS, src.load(i));
}

/// All lanes of a warp add to one element, which is the warp's own.
#[kernel]
pub unsafe fn atomic_global_add_one_address(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.atomic_add(i / 32, src.load(i));
}

/// Lanes add to elements that lie 32 bytes apart: a sector each.
#[kernel]
pub unsafe fn atomic_global_add_apart(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.atomic_add(8 * (i % BINS), src.load(i));
}

/// Subtracts, with a sign.
#[kernel]
pub unsafe fn atomic_global_sub_i32(src: Global<i32>, dst: GlobalMut<i32>) {
    let i = thread::index_x();
    dst.atomic_sub(i % BINS, src.load(i));
}

/// The least, with a sign.
#[kernel]
pub unsafe fn atomic_global_min_i32(src: Global<i32>, dst: GlobalMut<i32>) {
    let i = thread::index_x();
    dst.atomic_min(i % BINS, src.load(i));
}

/// The greatest, of 64 bits without a sign.
#[kernel]
pub unsafe fn atomic_global_max_u64(src: Global<u64>, dst: GlobalMut<u64>) {
    let i = thread::index_x();
    dst.atomic_max(i % BINS, src.load(i));
}

/// The bits that all have.
#[kernel]
pub unsafe fn atomic_global_and_u32(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.atomic_and(i % BINS, src.load(i));
}

/// The bits that any has.
#[kernel]
pub unsafe fn atomic_global_or_u32(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.atomic_or(i % BINS, src.load(i));
}

/// The bits that an odd number have, of 64.
#[kernel]
pub unsafe fn atomic_global_xor_u64(src: Global<u64>, dst: GlobalMut<u64>) {
    let i = thread::index_x();
    dst.atomic_xor(i % BINS, src.load(i));
}

/// Each lane puts its value in its element's place, and keeps what stood there before.
#[kernel]
pub unsafe fn atomic_global_exch_f32(src: Global<f32>, dst: GlobalMut<f32>, old: GlobalMut<f32>) {
    let i = thread::index_x();
    old.store(i, dst.atomic_exch(i, src.load(i)));
}

/// The same where 1 stands.
#[kernel]
pub unsafe fn atomic_global_cas_u32(src: Global<u32>, dst: GlobalMut<u32>, old: GlobalMut<u32>) {
    let i = thread::index_x();
    old.store(i, dst.atomic_cas(i, 1, src.load(i)));
}

/// The same, of 64 bits.
#[kernel]
pub unsafe fn atomic_global_cas_u64(src: Global<u64>, dst: GlobalMut<u64>, old: GlobalMut<u64>) {
    let i = thread::index_x();
    old.store(i, dst.atomic_cas(i, 1, src.load(i)));
}

/// Counts up, from 0 to 6 and round again.
#[kernel]
pub unsafe fn atomic_global_inc(dst: GlobalMut<u32>) {
    dst.atomic_inc(thread::index_x() % BINS, 6);
}

/// Counts down, from 0 to 6 and on.
#[kernel]
pub unsafe fn atomic_global_dec(dst: GlobalMut<u32>) {
    dst.atomic_dec(thread::index_x() % BINS, 6);
}

/// A block adds to elements of its own: they need no more than its scope.
#[kernel]
pub unsafe fn atomic_global_add_block(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    let lane = thread::thread_idx_x() % 32;
    dst.atomic_add_block((thread::block_idx_x() * 32 + lane) as usize, src.load(i));
}

/// Like [`atomic_global_add_u32`], for the host to see too.
#[kernel]
pub unsafe fn atomic_global_add_system(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.atomic_add_system(i % BINS, src.load(i));
}

host_only! {
    use gpu::suite::*;

    const BLOCK: u32 = 128;

    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(4), Value::Count(64), Value::Count(1 << 15)],
        ..Axis::counted("blocks", "Blocks of 128 threads", 1, 1 << 20, &[Value::Count(4), Value::Count(64)])
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "atomic_global",
        summary: "atomics on global memory",
        axes: &[BLOCKS],
        kernels: &[
            Entry { kernel: atomic_global_add_u32::KERNEL, plan: |case| binned(case, bits32, |_| 0, u32::wrapping_add, 1) },
            Entry {
                kernel: atomic_global_add_i64::KERNEL,
                plan: |case| binned(case, |i| noise_bits(i).cast_signed(), |_| 0, i64::wrapping_add, 1),
            },
            Entry { kernel: atomic_global_add_f32::KERNEL, plan: |case| binned(case, small, |_| 0.0, |a, b| a + b, 1) },
            Entry {
                kernel: atomic_global_add_f64::KERNEL,
                plan: |case| binned(case, |i| small(i).into(), |_| 0.0f64, |a, b| a + b, 1),
            },
            Entry { kernel: atomic_global_add_one_address::KERNEL, plan: one_address },
            Entry { kernel: atomic_global_add_apart::KERNEL, plan: |case| binned(case, bits32, |_| 0, u32::wrapping_add, 8) },
            Entry { kernel: atomic_global_sub_i32::KERNEL, plan: |case| binned(case, signed, |_| 0, i32::wrapping_sub, 1) },
            Entry { kernel: atomic_global_min_i32::KERNEL, plan: |case| binned(case, signed, |_| 7, Ord::min, 1) },
            Entry { kernel: atomic_global_max_u64::KERNEL, plan: |case| binned(case, noise_bits, |_| 7, Ord::max, 1) },
            Entry { kernel: atomic_global_and_u32::KERNEL, plan: |case| binned(case, bits32, |_| u32::MAX, |a, b| a & b, 1) },
            Entry { kernel: atomic_global_or_u32::KERNEL, plan: |case| binned(case, bits32, |j| j as u32, |a, b| a | b, 1) },
            Entry { kernel: atomic_global_xor_u64::KERNEL, plan: |case| binned(case, noise_bits, |j| j, |a, b| a ^ b, 1) },
            Entry {
                kernel: atomic_global_exch_f32::KERNEL,
                plan: |case| exchanged(case, noise, |i| i as f32, |_, new| new),
            },
            Entry {
                kernel: atomic_global_cas_u32::KERNEL,
                plan: |case| exchanged(case, bits32, |i| (i % 3) as u32, |old, new| if old == 1 { new } else { old }),
            },
            Entry {
                kernel: atomic_global_cas_u64::KERNEL,
                plan: |case| exchanged(case, noise_bits, |i| i % 3, |old, new| if old == 1 { new } else { old }),
            },
            Entry { kernel: atomic_global_inc::KERNEL, plan: |case| counted(case, |times| times % 7) },
            Entry { kernel: atomic_global_dec::KERNEL, plan: |case| counted(case, |times| (7 - times % 7) % 7) },
            Entry { kernel: atomic_global_add_block::KERNEL, plan: of_blocks },
            Entry { kernel: atomic_global_add_system::KERNEL, plan: |case| binned(case, bits32, |_| 0, u32::wrapping_add, 1) },
        ],
    };

    fn bits32(i: u64) -> u32 {
        noise_bits(i) as u32
    }

    fn signed(i: u64) -> i32 {
        bits32(i).cast_signed()
    }

    /// Numbers whose sums are exact.
    fn small(i: u64) -> f32 {
        (i % 11) as f32
    }

    fn threads(case: &Case) -> u64 {
        case.count("blocks") * u64::from(BLOCK)
    }

    /// Lanes side by side in a row of `n` elements.
    fn side_by_side(n: u64, width: u64) -> Counts {
        warps(n, |_, lanes| Progression::linear(0, lanes, width).global())
    }

    /// Each of so many bins, `step` elements apart, gets what `change` makes of what stood there and every 1024th value.
    fn binned<T: ElementType + Copy + 'static>(
        case: &Case,
        value: fn(u64) -> T,
        before: fn(u64) -> T,
        change: fn(T, T) -> T,
        step: u64,
    ) -> Result<Plan, PlanError> {
        let (n, bins, width) = (threads(case), BINS as u64, T::ELEMENT.size());
        let expected = move |j: u64| match j % step {
            0 => (j / step..n).step_by(BINS).fold(before(j), |bin, i| change(bin, value(i))),
            _ => before(j),
        };
        let atomics = warps(n, |_, lanes| Progression { first: 0, step: step * width, lanes, width }.global());
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::in_place("dst", bins * step, before, expected)?)
            .bytes(product("the number of bytes", &[n, width])?)
            .loads("src", width as u32, side_by_side(n, width))
            .atomics("dst", width as u32, atomics))
    }

    /// Each element becomes what `change` makes of it and a value, and what it was goes to `old`.
    fn exchanged<T: ElementType + Copy + 'static>(
        case: &Case,
        value: fn(u64) -> T,
        before: fn(u64) -> T,
        change: fn(T, T) -> T,
    ) -> Result<Plan, PlanError> {
        let (n, width) = (threads(case), T::ELEMENT.size());
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::in_place("dst", n, before, move |i| change(before(i), value(i)))?)
            .buffer(Buffer::output("old", n, before)?)
            .bytes(product("the number of bytes", &[4, n, width])?)
            .loads("src", width as u32, side_by_side(n, width))
            .atomics("dst", width as u32, side_by_side(n, width))
            .stores("old", width as u32, side_by_side(n, width)))
    }

    /// Each bin is counted as often as threads come to it.
    fn counted(case: &Case, count: fn(u64) -> u64) -> Result<Plan, PlanError> {
        let (n, bins) = (threads(case), BINS as u64);
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::zeroed("dst", bins, move |j| count((n + bins - 1 - j) / bins) as u32)?)
            .bytes(product("the number of bytes", &[4, n])?)
            .atomics("dst", 4, side_by_side(n, 4)))
    }

    /// A warp's values, added up.
    fn one_address(case: &Case) -> Result<Plan, PlanError> {
        let n = threads(case);
        let atomics = warps(n, |_, lanes| Progression { first: 0, step: 0, lanes, width: 4 }.global());
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, small)?)
            .buffer(Buffer::zeroed("dst", n / 32, |warp| (32 * warp..32 * warp + 32).map(small).sum::<f32>())?)
            .bytes(product("the number of bytes", &[4, n])?)
            .loads("src", 4, side_by_side(n, 4))
            .atomics("dst", 4, atomics))
    }

    /// The values of a block's warps, added up lane by lane.
    fn of_blocks(case: &Case) -> Result<Plan, PlanError> {
        let (n, block) = (threads(case), u64::from(BLOCK));
        let sum = move |i: u64| {
            let first = i / 32 * block + i % 32;
            (first..first + block).step_by(32).map(bits32).fold(0, u32::wrapping_add)
        };
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, bits32)?)
            .buffer(Buffer::zeroed("dst", n / block * 32, sum)?)
            .bytes(product("the number of bytes", &[4, n])?)
            .loads("src", 4, side_by_side(n, 4))
            .atomics("dst", 4, side_by_side(n, 4)))
    }
}
