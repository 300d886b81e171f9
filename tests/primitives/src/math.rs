//! Approximate functions, of numbers whose results are known.

use gpu::device::prelude::*;

/// `1 / x` of powers of two.
#[kernel]
pub unsafe fn math_rcp(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, math::rcp(src.load(i)));
}

/// The square roots of squares.
#[kernel]
pub unsafe fn math_sqrt(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, math::sqrt(src.load(i)));
}

/// `1 / sqrt(x)` of powers of four.
#[kernel]
pub unsafe fn math_rsqrt(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, math::rsqrt(src.load(i)));
}

/// The sines of twelfths of a turn.
#[kernel]
pub unsafe fn math_sin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, math::sin(src.load(i)));
}

/// The cosines of twelfths of a turn.
#[kernel]
pub unsafe fn math_cos(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, math::cos(src.load(i)));
}

/// Powers of two.
#[kernel]
pub unsafe fn math_exp2(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, math::exp2(src.load(i)));
}

/// The logarithms of powers of two.
#[kernel]
pub unsafe fn math_log2(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, math::log2(src.load(i)));
}

/// The hyperbolic tangents of multiples of the logarithm of 2.
#[kernel]
pub unsafe fn math_tanh(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, math::tanh(src.load(i)));
}

host_only! {
    use core::f32::consts::{LN_2, PI};
    use gpu::suite::*;

    const BLOCK: u32 = 128;

    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(4), Value::Count(1 << 15)],
        ..Axis::counted("blocks", "Blocks of 128 threads", 1, 1 << 20, &[Value::Count(4)])
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "math",
        summary: "approximate functions",
        axes: &[BLOCKS],
        kernels: &[
            Entry { kernel: math_rcp::KERNEL, plan: |case| plan(case, |k| power(k % 12), |k| 1.0 / power(k % 12), FINE) },
            Entry {
                kernel: math_sqrt::KERNEL,
                plan: |case| plan(case, |k| ((k % 64) * (k % 64)) as f32, |k| (k % 64) as f32, FINE),
            },
            Entry { kernel: math_rsqrt::KERNEL, plan: |case| plan(case, |k| power(2 * (k % 10)), |k| 1.0 / power(k % 10), FINE) },
            Entry { kernel: math_sin::KERNEL, plan: |case| plan(case, angle, |k| SINES[(k % 12) as usize], FINE) },
            Entry { kernel: math_cos::KERNEL, plan: |case| plan(case, angle, |k| SINES[((k + 3) % 12) as usize], FINE) },
            Entry { kernel: math_exp2::KERNEL, plan: |case| plan(case, |k| (k % 5) as f32, |k| power(k % 5), FINE) },
            Entry { kernel: math_log2::KERNEL, plan: |case| plan(case, |k| power(k % 20), |k| (k % 20) as f32, FINE) },
            Entry {
                kernel: math_tanh::KERNEL,
                plan: |case| {
                    let expected = |k| (power(2 * (k % 9)) - 1.0) / (power(2 * (k % 9)) + 1.0);
                    plan(case, |k| (k % 9) as f32 * LN_2, expected, COARSE)
                },
            },
        ],
    };

    /// How far results may be off: the PTX ISA allows as much of each, of numbers as large as these.
    const FINE: f64 = 1e-5;
    const COARSE: f64 = 1e-3;

    /// The sines of twelfths of a turn, from -6 of them on.
    const SINES: [f32; 12] = {
        const H: f32 = 0.866_025_4;
        [0.0, -0.5, -H, -1.0, -H, -0.5, 0.0, 0.5, H, 1.0, H, 0.5]
    };

    fn angle(k: u64) -> f32 {
        ((k % 12) as f32 - 6.0) * PI / 6.0
    }

    fn power(k: u64) -> f32 {
        (1u64 << k) as f32
    }

    fn plan(case: &Case, value: fn(u64) -> f32, expected: fn(u64) -> f32, tolerance: f64) -> Result<Plan, PlanError> {
        let n = case.count("blocks") * u64::from(BLOCK);
        let counts = Progression::linear(0, 32, 4).global() * (n / 32);
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, expected)?.within(tolerance))
            .bytes(product("the number of bytes", &[8, n])?)
            .loads("src", 4, counts)
            .stores("dst", 4, counts))
    }
}
