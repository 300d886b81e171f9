//! Local arrays: `[T; N]` on a thread's stack. With indices that the compiler knows it is registers; with others it is local
//! memory, which no count of the simulator includes: nobody else sees it, and whether it is memory at all, `ptxas` decides.

use gpu::device::prelude::*;

const LENGTH: u32 = 16;

/// Sixteen values in registers: every index is known once the loops are written out.
#[kernel]
pub unsafe fn locals_registers(src: Global<u32>, dst: GlobalMut<u32>) {
    let (i, threads) = (thread::index_x(), thread::count_x());
    let mut values = [0u32; LENGTH as usize];
    for k in steps(0..LENGTH, 1) {
        values[k as usize] = src.load(i + k as usize * threads);
    }
    for k in steps(0..LENGTH, 1) {
        dst.store(i + k as usize * threads, values[(LENGTH - 1 - k) as usize]);
    }
}

/// Sixteen counters in local memory: which one counts, the data says.
#[kernel]
pub unsafe fn locals_indexed(src: Global<u32>, dst: GlobalMut<u32>) {
    let (i, threads) = (thread::index_x(), thread::count_x());
    let mut counters = [0u32; LENGTH as usize];
    for k in steps(0..LENGTH, 1) {
        counters[(src.load(i + k as usize * threads) % LENGTH) as usize] += 1 + k;
    }
    for k in steps(0..LENGTH, 1) {
        dst.store(i + k as usize * threads, counters[k as usize]);
    }
}

host_only! {
    use gpu::suite::*;

    const BLOCK: u32 = 64;

    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(2), Value::Count(1 << 10)],
        ..Axis::counted("blocks", "Blocks of 64 threads", 1, 1 << 16, &[Value::Count(2)])
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "locals",
        summary: "arrays that a thread has for itself",
        axes: &[BLOCKS],
        kernels: &[
            Entry {
                kernel: locals_registers::KERNEL,
                plan: |case| plan(case, |thread, k, threads| value(thread + (u64::from(LENGTH) - 1 - k) * threads)),
            },
            Entry {
                kernel: locals_indexed::KERNEL,
                plan: |case| {
                    plan(case, |thread, k, threads| {
                        let those = (0..u64::from(LENGTH))
                            .filter(|j| u64::from(value(thread + j * threads) % LENGTH) == k);
                        those.map(|j| 1 + j as u32).sum()
                    })
                },
            },
        ],
    };

    fn value(i: u64) -> u32 {
        noise_bits(i) as u32
    }

    /// Element `k` of thread `thread` becomes `of` both and the number of threads.
    fn plan(case: &Case, of: fn(u64, u64, u64) -> u32) -> Result<Plan, PlanError> {
        let threads = case.count("blocks") * u64::from(BLOCK);
        let n = threads * u64::from(LENGTH);
        let counts = Progression::linear(0, 32, 4).global() * (n / 32);
        Ok(Plan::new(Launch::linear(threads, BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, move |i| of(i % threads, i / threads, threads))?)
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", 4, counts)
            .stores("dst", 4, counts))
    }
}
