//! Atomics on shared memory that the hardware has: of 32-bit integers, and exchanges.
//!
//! A wavefront serves one lane a bank, though several go to one word.

use gpu::device::prelude::*;

const BLOCK: u32 = 128;

/// The warps of a block add up, lanes side by side: every lane has a bank of its own.
#[kernel]
pub unsafe fn atomic_shared_add_u32(src: Global<u32>, dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    with_bins!(bins, dst, 0, |t, i| bins.atomic_add(t % 32, src.load(i)));
}

/// Like [`atomic_shared_add_u32`], to every second word: two lanes a bank.
#[kernel]
pub unsafe fn atomic_shared_add_apart(src: Global<u32>, dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    with_bins!(bins, dst, 0, |t, i| bins.atomic_add(2 * (t % 32), src.load(i)));
}

/// All threads of a block add to one word, one after another.
#[kernel]
pub unsafe fn atomic_shared_add_one_address(src: Global<u32>, dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    with_bins!(bins, dst, 0, |t, i| bins.atomic_add(t / BLOCK, src.load(i)));
}

/// Subtracts, with a sign.
#[kernel]
pub unsafe fn atomic_shared_sub_i32(src: Global<i32>, dst: GlobalMut<i32>) {
    let bins = shared!([i32; BLOCK as usize]);
    with_bins!(bins, dst, 5, |t, i| bins.atomic_sub(t % 32, src.load(i)));
}

/// The least, with a sign.
#[kernel]
pub unsafe fn atomic_shared_min_i32(src: Global<i32>, dst: GlobalMut<i32>) {
    let bins = shared!([i32; BLOCK as usize]);
    with_bins!(bins, dst, 5, |t, i| bins.atomic_min(t % 32, src.load(i)));
}

/// The greatest.
#[kernel]
pub unsafe fn atomic_shared_max_u32(src: Global<u32>, dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    with_bins!(bins, dst, 5, |t, i| bins.atomic_max(t % 32, src.load(i)));
}

/// The bits that all have.
#[kernel]
pub unsafe fn atomic_shared_and_u32(src: Global<u32>, dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    with_bins!(bins, dst, u32::MAX, |t, i| bins.atomic_and(t % 32, src.load(i)));
}

/// The bits that any has.
#[kernel]
pub unsafe fn atomic_shared_or_u32(src: Global<u32>, dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    with_bins!(bins, dst, 5, |t, i| bins.atomic_or(t % 32, src.load(i)));
}

/// The bits that an odd number have.
#[kernel]
pub unsafe fn atomic_shared_xor_u32(src: Global<u32>, dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    with_bins!(bins, dst, 5, |t, i| bins.atomic_xor(t % 32, src.load(i)));
}

/// Each thread puts its value in its word's place.
#[kernel]
pub unsafe fn atomic_shared_exch_u32(src: Global<u32>, dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    with_bins!(bins, dst, 5, |t, i| bins.atomic_exch(t, src.load(i)));
}

/// The same where the thread's number is a multiple of 3, told by what stands there.
#[kernel]
pub unsafe fn atomic_shared_cas_u32(src: Global<u32>, dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    with_bins!(bins, dst, thread::thread_idx_x() % 3, |t, i| bins.atomic_cas(t, 0, src.load(i)));
}

/// Counts up, to 2 and round again.
#[kernel]
pub unsafe fn atomic_shared_inc(dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    with_bins!(bins, dst, 0, |t, i| bins.atomic_inc(t % 32, 2));
}

/// Counts down from 0, to 2 and on.
#[kernel]
pub unsafe fn atomic_shared_dec(dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    with_bins!(bins, dst, 0, |t, i| bins.atomic_dec(t % 32, 2));
}

/// Relaxed accesses, which others may meet: each thread stores to its word and loads it.
#[kernel]
pub unsafe fn atomic_shared_relaxed(src: Global<u32>, dst: GlobalMut<u32>) {
    let bins = shared!([u32; BLOCK as usize]);
    let (t, i) = (thread::thread_idx_x(), thread::index_x());
    bins.store_relaxed(t, src.load(i));
    sync_threads();
    dst.store(i, bins.load_relaxed(BLOCK - 1 - t));
}

host_only! {
    use gpu::suite::*;

    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(4), Value::Count(64), Value::Count(1 << 15)],
        ..Axis::counted("blocks", "Blocks of 128 threads", 1, 1 << 20, &[Value::Count(4), Value::Count(64)])
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "atomic_shared",
        summary: "atomics on shared memory",
        axes: &[BLOCKS],
        kernels: &[
            Entry { kernel: atomic_shared_add_u32::KERNEL, plan: |case| folded(case, bits32, 0, u32::wrapping_add, 1) },
            Entry { kernel: atomic_shared_add_apart::KERNEL, plan: |case| folded(case, bits32, 0, u32::wrapping_add, 2) },
            Entry { kernel: atomic_shared_add_one_address::KERNEL, plan: |case| folded(case, bits32, 0, u32::wrapping_add, 0) },
            Entry { kernel: atomic_shared_sub_i32::KERNEL, plan: |case| folded(case, signed, 5, i32::wrapping_sub, 1) },
            Entry { kernel: atomic_shared_min_i32::KERNEL, plan: |case| folded(case, signed, 5, Ord::min, 1) },
            Entry { kernel: atomic_shared_max_u32::KERNEL, plan: |case| folded(case, bits32, 5, Ord::max, 1) },
            Entry { kernel: atomic_shared_and_u32::KERNEL, plan: |case| folded(case, bits32, u32::MAX, |a, b| a & b, 1) },
            Entry { kernel: atomic_shared_or_u32::KERNEL, plan: |case| folded(case, bits32, 5, |a, b| a | b, 1) },
            Entry { kernel: atomic_shared_xor_u32::KERNEL, plan: |case| folded(case, bits32, 5, |a, b| a ^ b, 1) },
            Entry {
                kernel: atomic_shared_exch_u32::KERNEL,
                plan: |case| with_atomics(case, Some(bits32 as fn(u64) -> u32), bits32, 1),
            },
            Entry {
                kernel: atomic_shared_cas_u32::KERNEL,
                plan: |case| {
                    let after = |i| match i % u64::from(BLOCK) % 3 {
                        0 => bits32(i),
                        other => other as u32,
                    };
                    // Each lane brings two values: one to compare with, one to write.
                    let again = Counts { wavefronts: 1, wavefronts_ideal: 1, ..Counts::default() };
                    let warps = case.count("blocks") * u64::from(BLOCK) / 32;
                    let plan = with_atomics(case, Some(bits32 as fn(u64) -> u32), after, 1)?;
                    Ok(plan.atomics("bins", 4, again * warps))
                },
            },
            Entry {
                kernel: atomic_shared_inc::KERNEL,
                plan: |case| with_atomics(case, None::<fn(u64) -> u32>, |i| if i % 128 < 32 { 1u32 } else { 0 }, 1),
            },
            Entry {
                kernel: atomic_shared_dec::KERNEL,
                plan: |case| with_atomics(case, None::<fn(u64) -> u32>, |i| if i % 128 < 32 { 2u32 } else { 0 }, 1),
            },
            Entry { kernel: atomic_shared_relaxed::KERNEL, plan: relaxed },
        ],
    };

    fn bits32(i: u64) -> u32 {
        noise_bits(i) as u32
    }

    fn signed(i: u64) -> i32 {
        bits32(i).cast_signed()
    }

    /// Each block makes of its bins, `step` words apart, what `change` says of `before` and every 32nd of its values; of all its values
    /// if all go to one.
    fn folded<T: ElementType + Copy + Send + Sync + 'static>(
        case: &Case,
        value: fn(u64) -> T,
        before: T,
        change: fn(T, T) -> T,
        step: u64,
    ) -> Result<Plan, PlanError> {
        let block = u64::from(BLOCK);
        let after = move |i: u64| {
            let (first, bin) = (i / block * block, i % block);
            let of_bin = |k: &u64| step * (k % 32) == bin;
            (0..block).filter(of_bin).fold(before, |bin, k| change(bin, value(first + k)))
        };
        let wavefronts = if step == 0 { 32 } else { step };
        with_atomics(case, Some(value), after, wavefronts)
    }

    /// Each element becomes `after`, by an atomic of each thread in so many wavefronts a warp.
    fn with_atomics<T: ElementType + 'static>(
        case: &Case,
        value: Option<fn(u64) -> T>,
        after: impl Fn(u64) -> T + Send + Sync + 'static,
        wavefronts: u64,
    ) -> Result<Plan, PlanError> {
        let n = case.count("blocks") * u64::from(BLOCK);
        let warp = Progression::linear(0, 32, 4);
        let atomic = Counts { requests: 1, lanes: 32, wavefronts, wavefronts_ideal: 1, ..Counts::default() };
        let mut plan = Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::output("dst", n, after)?)
            .bytes(product("the number of bytes", &[4 * (1 + u64::from(value.is_some())), n])?)
            .stores("dst", 4, warp.global() * (n / 32))
            .stores("bins", 4, warp.shared_store() * (n / 32))
            .atomics("bins", 4, atomic * (n / 32))
            .loads("bins", 4, warp.shared_load() * (n / 32));
        if let Some(value) = value {
            plan = plan.buffer(Buffer::input("src", n, value)?).loads("src", 4, warp.global() * (n / 32));
        }
        Ok(plan)
    }

    fn relaxed(case: &Case) -> Result<Plan, PlanError> {
        let block = u64::from(BLOCK);
        let n = case.count("blocks") * block;
        let warp = Progression::linear(0, 32, 4);
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, bits32)?)
            .buffer(Buffer::output("dst", n, move |i| bits32(i / block * block + (block - 1 - i % block)))?)
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", 4, warp.global() * (n / 32))
            .stores("dst", 4, warp.global() * (n / 32))
            .stores("bins", 4, warp.shared_store() * (n / 32))
            .loads("bins", 4, warp.shared_load() * (n / 32)))
    }
}
