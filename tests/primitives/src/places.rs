//! Places: where a thread stands in a grid of three axes, and pointers that lead into a buffer.

use gpu::device::prelude::*;

/// Each thread stores where it stands, one after another.
#[kernel]
pub unsafe fn places_grid(dst: GlobalMut<u32>) {
    let [x, y, z] = [thread::thread_idx_x(), thread::thread_idx_y(), thread::thread_idx_z()];
    let [width, height, depth] = [thread::block_dim_x(), thread::block_dim_y(), thread::block_dim_z()];
    let [columns, rows, layers] = [thread::grid_dim_x(), thread::grid_dim_y(), thread::grid_dim_z()];
    let block = (thread::block_idx_z() * rows + thread::block_idx_y()) * columns + thread::block_idx_x();
    let own = (z * height + y) * width + x;
    let i = block * (width * height * depth) + own;
    dst.store(i as usize, i + 1000 * layers);
}

/// Each block goes by a pointer to its own part, and every thread moves one value four times over.
#[kernel]
pub unsafe fn places_moved(src: Global<f32>, dst: GlobalMut<f32>) {
    let (thread, block) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize);
    let own = dst.starting_at(4 * block * thread::block_dim_x() as usize).cast::<F32x4>();
    own.store(thread, F32x4::splat(src.starting_at(block * thread::block_dim_x() as usize).load(thread)));
}

host_only! {
    use gpu::suite::*;

    const BLOCKS: Axis = Axis {
        on_gpu: &[Value::Count(2), Value::Count(1 << 12)],
        ..Axis::counted("blocks", "Blocks of 64 threads along x", 1, 1 << 16, &[Value::Count(3)])
    };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "places",
        summary: "where a thread stands, and pointers that lead into a buffer",
        axes: &[BLOCKS],
        kernels: &[
            Entry { kernel: places_grid::KERNEL, plan: grid },
            Entry { kernel: places_moved::KERNEL, plan: moved },
        ],
    };

    fn grid(case: &Case) -> Result<Plan, PlanError> {
        let blocks = case.count("blocks");
        let n = blocks * 3 * 2 * 64;
        Ok(Plan::new(Launch { grid: [blocks as u32, 3, 2], block: [8, 4, 2], shared_bytes: 0 })
            .buffer(Buffer::output("dst", n, |i| i as u32 + 2000)?)
            .bytes(product("the number of bytes", &[4, n])?)
            .stores("dst", 4, Progression::linear(0, 32, 4).global() * (n / 32)))
    }

    fn moved(case: &Case) -> Result<Plan, PlanError> {
        let n = case.count("blocks") * 64;
        Ok(Plan::new(Launch::linear(n, 64)?)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::output("dst", 4 * n, |i| noise(i / 4))?)
            .bytes(product("the number of bytes", &[20, n])?)
            .loads("src", 4, Progression::linear(0, 32, 4).global() * (n / 32))
            .stores("dst", 16, Progression::linear(0, 32, 16).global() * (n / 32)))
    }
}
