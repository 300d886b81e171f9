//! Fences, and volatile accesses: what blocks and threads hand on to one another by way of memory.

use gpu::device::prelude::*;

const BLOCK: u32 = 128;

/// Each thread copies an element, by accesses that others may meet.
#[kernel]
pub unsafe fn fence_volatile(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.store_volatile(i, src.load_volatile(i));
}

/// Like [`fence_volatile`], 16 bytes a lane.
#[kernel]
pub unsafe fn fence_volatile_vec4(src: Global<F32x4>, dst: GlobalMut<F32x4>) {
    let i = thread::index_x();
    dst.store_volatile(i, src.load_volatile(i));
}

/// Each block stores a number, and the last one adds up those of all.
#[kernel]
pub unsafe fn fence_last_block(src: Global<u32>, parts: GlobalMut<u32>, done: GlobalMut<u32>, dst: GlobalMut<u32>) {
    let last = shared!([u32; 1]);
    let (t, block) = (thread::thread_idx_x(), thread::block_idx_x() as usize);
    if t == 0 {
        parts.store(block, src.load(block));
        // The part is there before it is counted.
        threadfence();
        last.store(0, done.atomic_add(0, 1));
    }
    sync_threads();
    if last.load(0) == thread::grid_dim_x() - 1 {
        for block in steps(t..thread::grid_dim_x(), BLOCK) {
            dst.atomic_add(0, parts.load(block as usize));
        }
    }
}

/// Each warp stores a number in shared memory, and the last one of the block adds up those of all.
#[kernel]
pub unsafe fn fence_last_warp(src: Global<u32>, dst: GlobalMut<u32>) {
    let parts = shared!([u32; 4]);
    let count = shared!([u32; 1]);
    let t = thread::thread_idx_x();
    if t == 0 {
        count.store(0, 0);
    }
    sync_threads();
    if t.is_multiple_of(32) {
        parts.store(t / 32, src.load(thread::index_x()));
        threadfence_block();
        let before = count.atomic_add(0, 1);
        // What others did before they counted is there from here on.
        threadfence_block();
        if before == 3 {
            let mut sum = 0u32;
            for warp in steps(0..4, 1) {
                sum = sum.wrapping_add(parts.load(warp));
            }
            dst.store(thread::block_idx_x() as usize, sum);
        }
    }
}

/// Each thread stores an element for all of the system, and counts it for the host to see.
#[kernel]
pub unsafe fn fence_system(src: Global<u32>, dst: GlobalMut<u32>, count: GlobalMut<u32>) {
    let i = thread::index_x();
    dst.store(i, src.load(i));
    threadfence_system();
    count.atomic_add_system(i / BLOCK as usize, 1);
}

host_only! {
    use gpu::suite::*;

    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(4), Value::Count(300), Value::Count(1 << 15)],
        ..Axis::counted("blocks", "Blocks of 128 threads", 1, 1 << 20, &[Value::Count(4), Value::Count(300)])
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "fence",
        summary: "what threads hand on by way of memory",
        axes: &[BLOCKS],
        kernels: &[
            Entry { kernel: fence_volatile::KERNEL, plan: |case| copied(case, bits32, 1) },
            Entry { kernel: fence_volatile_vec4::KERNEL, plan: |case| copied(case, noise, 4) },
            Entry { kernel: fence_last_block::KERNEL, plan: last_block },
            Entry { kernel: fence_last_warp::KERNEL, plan: last_warp },
            Entry { kernel: fence_system::KERNEL, plan: counted },
        ],
    };

    fn bits32(i: u64) -> u32 {
        noise_bits(i) as u32
    }

    fn sum(values: impl Iterator<Item = u64>) -> u32 {
        values.map(bits32).fold(0, u32::wrapping_add)
    }

    fn threads(case: &Case) -> u64 {
        case.count("blocks") * u64::from(BLOCK)
    }

    /// One lane at the begin of a sector, or anywhere in one.
    fn one_lane() -> Counts {
        Progression::linear(0, 1, 4).global()
    }

    /// One lane in shared memory.
    fn one_lane_shared() -> Counts {
        Progression::linear(0, 1, 4).shared_load()
    }

    fn copied<T: ElementType + 'static>(case: &Case, value: fn(u64) -> T, components: u64) -> Result<Plan, PlanError> {
        let n = threads(case);
        let width = components * T::ELEMENT.size();
        let counts = Progression::linear(0, 32, width).global() * (n / 32);
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", components * n, value)?)
            .buffer(Buffer::output("dst", components * n, value)?)
            .bytes(product("the number of bytes", &[2, n, width])?)
            .loads("src", width as u32, counts)
            .stores("dst", width as u32, counts))
    }

    fn last_block(case: &Case) -> Result<Plan, PlanError> {
        let blocks = case.count("blocks");
        let of_blocks = |n: u64, step: u64| warps(n, |_, lanes| Progression { first: 0, step, lanes, width: 4 }.global());
        let broadcast = Progression { first: 0, step: 0, lanes: 32, width: 4 }.shared_load();
        Ok(Plan::new(Launch::linear(threads(case), BLOCK)?)
            .buffer(Buffer::input("src", blocks, bits32)?)
            .buffer(Buffer::output("parts", blocks, bits32)?)
            .buffer(Buffer::zeroed("done", 1, move |_| blocks as u32)?)
            .buffer(Buffer::zeroed("dst", 1, move |_| sum(0..blocks))?)
            .bytes(product("the number of bytes", &[12, blocks])?)
            .loads("src", 4, one_lane() * blocks)
            .stores("parts", 4, one_lane() * blocks)
            .atomics("done", 4, one_lane() * blocks)
            .stores("last", 4, one_lane_shared() * blocks)
            .loads("last", 4, broadcast * (4 * blocks))
            .loads("parts", 4, of_blocks(blocks, 4))
            .atomics("dst", 4, of_blocks(blocks, 0)))
    }

    fn last_warp(case: &Case) -> Result<Plan, PlanError> {
        let (blocks, block) = (case.count("blocks"), u64::from(BLOCK));
        let n = blocks * block;
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, bits32)?)
            .buffer(Buffer::output("dst", blocks, move |i| sum((block * i..block * (i + 1)).step_by(32)))?)
            .bytes(product("the number of bytes", &[20, blocks])?)
            .loads("src", 4, one_lane() * (4 * blocks))
            .stores("count", 4, one_lane_shared() * blocks)
            .atomics("count", 4, one_lane_shared() * (4 * blocks))
            .stores("parts", 4, one_lane_shared() * (4 * blocks))
            .loads("parts", 4, one_lane_shared() * (4 * blocks))
            .stores("dst", 4, one_lane() * blocks))
    }

    fn counted(case: &Case) -> Result<Plan, PlanError> {
        let n = threads(case);
        let all = Progression::linear(0, 32, 4).global() * (n / 32);
        let one_address = Progression { first: 0, step: 0, lanes: 32, width: 4 }.global() * (n / 32);
        Ok(Plan::new(Launch::linear(n, BLOCK)?)
            .buffer(Buffer::input("src", n, bits32)?)
            .buffer(Buffer::output("dst", n, bits32)?)
            .buffer(Buffer::zeroed("count", n / u64::from(BLOCK), |_| BLOCK)?)
            .bytes(product("the number of bytes", &[12, n])?)
            .loads("src", 4, all)
            .stores("dst", 4, all)
            .atomics("count", 4, one_address))
    }
}
