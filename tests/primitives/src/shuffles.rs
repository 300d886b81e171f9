//! Shuffles: values that go from lane to lane, past any memory. The distance is the number of the block.

use gpu::device::prelude::*;

/// Each lane takes the value of the lane with its block's number.
#[kernel]
pub unsafe fn shuffles_idx_f32(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Each lane takes the value of the lane so much further down: the lowest lanes keep their own.
#[kernel]
pub unsafe fn shuffles_up_f32(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle_up(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Each lane takes the value of the lane so much further up: the highest lanes keep their own.
#[kernel]
pub unsafe fn shuffles_down_f32(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle_down(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Each lane takes the value of the lane whose number differs in these bits.
#[kernel]
pub unsafe fn shuffles_xor_f32(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle_xor(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Like [`shuffles_up_f32`], of whole numbers.
#[kernel]
pub unsafe fn shuffles_up_u32(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle_up(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Like [`shuffles_up_u32`], with a sign.
#[kernel]
pub unsafe fn shuffles_xor_i32(src: Global<i32>, dst: GlobalMut<i32>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle_xor(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Like [`shuffles_down_f32`], of 64 bits: two shuffles.
#[kernel]
pub unsafe fn shuffles_down_u64(src: Global<u64>, dst: GlobalMut<u64>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle_down(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Like [`shuffles_up_f32`], of 64 bits: two shuffles.
#[kernel]
pub unsafe fn shuffles_up_i64(src: Global<i64>, dst: GlobalMut<i64>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle_up(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Like [`shuffles_idx_f32`], of 64 bits: two shuffles.
#[kernel]
pub unsafe fn shuffles_idx_f64(src: Global<f64>, dst: GlobalMut<f64>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Like [`shuffles_xor_f32`], of pairs: one shuffle moves both.
#[kernel]
pub unsafe fn shuffles_xor_f16x2(src: Global<F16x2>, dst: GlobalMut<F16x2>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle_xor(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Like [`shuffles_xor_f16x2`], in the other format of 16 bits.
#[kernel]
pub unsafe fn shuffles_down_bf16x2(src: Global<Bf16x2>, dst: GlobalMut<Bf16x2>) {
    let i = thread::index_x();
    dst.store(i, warp::shuffle_down(warp::FULL, src.load(i), thread::block_idx_x() % 32));
}

/// Two shuffles in two branches: even lanes among themselves, odd lanes by another way.
#[kernel]
pub unsafe fn shuffles_branches_f32(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let value = src.load(i);
    let shuffled = if warp::lane_id().is_multiple_of(2) {
        warp::shuffle_xor(0x5555_5555, value, thread::block_idx_x() % 32 / 2 * 2)
    } else {
        warp::shuffle(0xAAAA_AAAA, value, (thread::block_idx_x() % 32) | 1)
    };
    dst.store(i, shuffled);
}

host_only! {
    use gpu::suite::*;

    const BLOCK: u32 = 64;

    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(64), Value::Count(4096)],
        ..Axis::counted("blocks", "Blocks, each with another distance", 1, 1 << 20, &[Value::Count(64)])
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "shuffles",
        summary: "values from lane to lane",
        axes: &[BLOCKS],
        kernels: &[
            Entry { kernel: shuffles_idx_f32::KERNEL, plan: |case| plan(case, 1, noise, |_, k| k) },
            Entry { kernel: shuffles_up_f32::KERNEL, plan: |case| plan(case, 1, noise, up) },
            Entry { kernel: shuffles_down_f32::KERNEL, plan: |case| plan(case, 1, noise, down) },
            Entry { kernel: shuffles_xor_f32::KERNEL, plan: |case| plan(case, 1, noise, |lane, k| lane ^ k) },
            Entry { kernel: shuffles_up_u32::KERNEL, plan: |case| plan(case, 1, |i| noise_bits(i) as u32, up) },
            Entry {
                kernel: shuffles_xor_i32::KERNEL,
                plan: |case| plan(case, 1, |i| noise_bits(i) as i32, |lane, k| lane ^ k),
            },
            Entry { kernel: shuffles_down_u64::KERNEL, plan: |case| plan(case, 1, noise_bits, down) },
            Entry { kernel: shuffles_up_i64::KERNEL, plan: |case| plan(case, 1, |i| noise_bits(i) as i64, up) },
            Entry { kernel: shuffles_idx_f64::KERNEL, plan: |case| plan(case, 1, noise_f64, |_, k| k) },
            Entry { kernel: shuffles_xor_f16x2::KERNEL, plan: |case| plan(case, 2, noise_f16, |lane, k| lane ^ k) },
            Entry { kernel: shuffles_down_bf16x2::KERNEL, plan: |case| plan(case, 2, noise_bf16, down) },
            Entry {
                kernel: shuffles_branches_f32::KERNEL,
                plan: |case| plan(case, 1, noise, |lane, k| if lane % 2 == 0 { lane ^ (k & 30) } else { k | 1 }),
            },
        ],
    };

    fn up(lane: u64, k: u64) -> u64 {
        lane.checked_sub(k).unwrap_or(lane)
    }

    fn down(lane: u64, k: u64) -> u64 {
        if lane + k < 32 { lane + k } else { lane }
    }

    /// Lane `lane` of block `k` gets the value of lane `from(lane, k % 32)`, which is so many elements.
    fn plan<T: ElementType + 'static>(
        case: &Case,
        elements: u64,
        value: fn(u64) -> T,
        from: fn(u64, u64) -> u64,
    ) -> Result<Plan, PlanError> {
        let threads = case.count("blocks") * u64::from(BLOCK);
        let (n, width) = (threads * elements, elements * T::ELEMENT.size());
        let counts = warps(threads, |_, lanes| Progression::linear(0, lanes, width).global());
        Ok(Plan::new(Launch::linear(threads, BLOCK)?)
            .buffer(Buffer::input("src", n, value)?)
            .buffer(Buffer::output("dst", n, move |i| {
                let (thread, element) = (i / elements, i % elements);
                let lane = from(thread % 32, thread / u64::from(BLOCK) % 32);
                value((thread / 32 * 32 + lane) * elements + element)
            })?)
            .bytes(product("the number of bytes", &[2, threads, width])?)
            .loads("src", width as u32, counts)
            .stores("dst", width as u32, counts))
    }
}
