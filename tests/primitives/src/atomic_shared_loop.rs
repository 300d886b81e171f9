//! Atomics on shared memory that the hardware has not: of floating-point numbers, and of 64 bits. `ptxas` makes loops of them that
//! compare and exchange, so that a GPU makes more requests than the source says, and more where lanes meet.

use gpu::device::prelude::*;

const BLOCK: u32 = 128;

/// The warps of a block add up, in single precision: sums that are exact in any order.
#[kernel]
pub unsafe fn atomic_shared_loop_add_f32(src: Global<f32>, dst: GlobalMut<f32>) {
    let bins = shared!([f32; BLOCK as usize]);
    with_bins!(bins, dst, 0.0, |t, i| bins.atomic_add(t % 32, src.load(i)));
}

/// The same in double precision.
#[kernel]
pub unsafe fn atomic_shared_loop_add_f64(src: Global<f64>, dst: GlobalMut<f64>) {
    let bins = shared!([f64; BLOCK as usize]);
    with_bins!(bins, dst, 0.0, |t, i| bins.atomic_add(t % 32, src.load(i)));
}

/// The same of integers of 64 bits.
#[kernel]
pub unsafe fn atomic_shared_loop_add_u64(src: Global<u64>, dst: GlobalMut<u64>) {
    let bins = shared!([u64; BLOCK as usize]);
    with_bins!(bins, dst, 5, |t, i| bins.atomic_add(t % 32, src.load(i)));
}

/// The least of integers of 64 bits, with a sign.
#[kernel]
pub unsafe fn atomic_shared_loop_min_i64(src: Global<i64>, dst: GlobalMut<i64>) {
    let bins = shared!([i64; BLOCK as usize]);
    with_bins!(bins, dst, 5, |t, i| bins.atomic_min(t % 32, src.load(i)));
}

host_only! {
    use gpu::suite::*;

    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(4), Value::Count(1 << 15)],
        ..Axis::counted("blocks", "Blocks of 128 threads", 1, 1 << 20, &[Value::Count(4)])
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "atomic_shared_loop",
        summary: "atomics on shared memory that ptxas makes loops of",
        axes: &[BLOCKS],
        kernels: &[
            Entry { kernel: atomic_shared_loop_add_f32::KERNEL, plan: |case| folded(case, small, 0.0, |a, b| a + b, 1) },
            Entry {
                kernel: atomic_shared_loop_add_f64::KERNEL,
                plan: |case| folded(case, |i| small(i).into(), 0.0f64, |a, b| a + b, 2),
            },
            Entry { kernel: atomic_shared_loop_add_u64::KERNEL, plan: |case| folded(case, noise_bits, 5, u64::wrapping_add, 2) },
            Entry {
                kernel: atomic_shared_loop_min_i64::KERNEL,
                plan: |case| folded(case, |i| noise_bits(i).cast_signed(), 5, Ord::min, 2),
            },
        ],
    };

    /// Numbers whose sums are exact.
    fn small(i: u64) -> f32 {
        (i % 11) as f32
    }

    /// Each block makes of its first 32 bins what `change` says of `before` and every 32nd of its values, in so many wavefronts a warp.
    fn folded<T: ElementType + Copy + Send + Sync + 'static>(
        case: &Case,
        value: fn(u64) -> T,
        before: T,
        change: fn(T, T) -> T,
        wavefronts: u64,
    ) -> Result<Plan, PlanError> {
        let (block, width) = (u64::from(BLOCK), T::ELEMENT.size());
        let n = case.count("blocks") * block;
        let after = move |i: u64| {
            let (first, bin) = (i / block * block, i % block);
            (0..block).filter(|k| k % 32 == bin).fold(before, |bin, k| change(bin, value(first + k)))
        };
        let warp = Progression::linear(0, 32, width);
        let atomic = Counts { requests: 1, lanes: 32, wavefronts, wavefronts_ideal: wavefronts, ..Counts::default() };
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, after)?)
            .bytes(product("the number of bytes", &[2, n, width])?)
            .loads("src", width as u32, warp.global() * (n / 32))
            .stores("dst", width as u32, warp.global() * (n / 32))
            .stores("bins", width as u32, warp.shared_store() * (n / 32))
            .atomics("bins", width as u32, atomic * (n / 32))
            .loads("bins", width as u32, warp.shared_load() * (n / 32)))
    }
}
