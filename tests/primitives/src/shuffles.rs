//! Shuffles: values that go from lane to lane, past any memory.

use gpu::device::prelude::*;

/// Each lane takes the value of the lane `k` further up, with `k` the number of its block: the highest lanes keep their own.
#[kernel]
pub unsafe fn shuffles_down_f32(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle_down(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Each lane takes the value of the lane whose number differs in the bits of its block's number.
#[kernel]
pub unsafe fn shuffles_xor_f32(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle_xor(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Each lane takes the value of the lane that has its block's number.
#[kernel]
pub unsafe fn shuffles_idx_f32(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

host_only! {
    use gpu::suite::*;

    const BLOCK: u32 = 64;

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "shuffles",
        summary: "values from lane to lane",
        axes: &[BLOCKS],
        kernels: &[
            Entry { kernel: shuffles_down_f32::KERNEL, plan: |case| plan(case, noise, down) },
            Entry { kernel: shuffles_xor_f32::KERNEL, plan: |case| plan(case, noise, |lane, k| lane ^ k) },
            Entry { kernel: shuffles_idx_f32::KERNEL, plan: |case| plan(case, noise, |_, k| k) },
        ],
    };

    const BLOCKS: Axis =
        Axis::counted("blocks", "Blocks, each with another distance", 1, 1 << 20, &[Value::Count(64), Value::Count(4096)]);

    fn down(lane: u64, k: u64) -> u64 {
        if lane + k < 32 { lane + k } else { lane }
    }

    /// Lane `lane` of block `k` gets the value of lane `from(lane, k % 32)`.
    fn plan<T: ElementType + 'static>(
        case: &Case,
        value: fn(u64) -> T,
        from: fn(u64, u64) -> u64,
    ) -> Result<Plan, PlanError> {
        let n = case.count("blocks") * u64::from(BLOCK);
        let width = T::ELEMENT.size();
        let counts = warps(n, |_, lanes| Progression::linear(0, lanes, width).global());
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, move |i| {
                value(i / 32 * 32 + from(i % 32, i / u64::from(BLOCK) % 32))
            })?)
            .bytes(product("the number of bytes", &[2, n, width])?)
            .loads("src", width as u32, counts)
            .stores("dst", width as u32, counts))
    }
}
