//! Stencil: each element becomes a mean of itself and its four neighbours; at the border the nearest element stands for what is beyond.
//!
//! ```text
//!            up
//!      left  ■  right       five loads an element, of which a tile leaves one and a third
//!           down
//! ```

use busload::prelude::*;

/// Half of the middle, an eighth of each neighbour.
#[device]
fn mean(middle: f32, left: f32, right: f32, up: f32, down: f32) -> f32 {
    0.5 * middle + 0.125 * ((left + right) + (up + down))
}

/// An element a thread, five loads from global memory.
///
/// **Look for** 5 sectors for the loads to the left and to the right, which do not begin at a sector. **Cost** each element is loaded five
/// times, four of them from a cache.
#[kernel]
pub unsafe fn stencil_global(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let x = thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x();
    let y = thread::block_idx_y() * thread::block_dim_y() + thread::thread_idx_y();
    if x < width && y < height {
        let middle = src.load(at(y, x, width));
        let left = src.load(at(y, x.max(1) - 1, width));
        let right = src.load(at(y, (x + 1).min(width - 1), width));
        let up = src.load(at(y.max(1) - 1, x, width));
        let down = src.load(at((y + 1).min(height - 1), x, width));
        dst.store(at(y, x, width), mean(middle, left, right, up, down));
    }
}

/// Like [`stencil_global`], through a tile of 32 by 8 elements in shared memory with a border of one element around it.
///
/// **Look for** no bank conflict, since lanes go along x. **Cost** 1360 bytes of shared memory, a barrier, and a border that other blocks
/// load too.
#[kernel]
pub unsafe fn stencil_tiled(src: Global<f32>, dst: GlobalMut<f32>, width: u32, height: u32) {
    let tile = shared!([f32; 34 * 10]);
    let thread = thread::thread_idx_y() * 32 + thread::thread_idx_x();
    let (left, top) = (thread::block_idx_x() * 32, thread::block_idx_y() * 8);
    for cell in steps(thread..34 * 10, 256) {
        // The tile begins one element to the left of the block and one above it.
        let x = (left + cell % 34).max(1) - 1;
        let y = (top + cell / 34).max(1) - 1;
        tile.store(cell, src.load(at(y.min(height - 1), x.min(width - 1), width)));
    }
    sync_threads();
    let (x, y) = (left + thread::thread_idx_x(), top + thread::thread_idx_y());
    if x < width && y < height {
        let cell = (thread::thread_idx_y() + 1) * 34 + thread::thread_idx_x() + 1;
        let (middle, left, right) = (tile.load(cell), tile.load(cell - 1), tile.load(cell + 1));
        let (up, down) = (tile.load(cell - 34), tile.load(cell + 34));
        dst.store(at(y, x, width), mean(middle, left, right, up, down));
    }
}

family! {
    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "stencil",
        summary: "a mean of five neighbours: from global memory, through a tile",
        axes: &[Axis::SHAPE],
        kernels: &[
            Entry { kernel: stencil_global::KERNEL, plan },
            Entry { kernel: stencil_tiled::KERNEL, plan },
        ],
    };

    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let (height, width) = case.shape();
        let n = product("the number of elements", &[height.into(), width.into()])?;
        Ok(Plan::new(Launch::covering(width, height, [32, 8], [32, 8])?)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::output("dst", n, move |i| expected(i, width.into(), height.into()))?)
            .scalar("width", width)
            .scalar("height", height)
            .bytes(product("the number of bytes", &[8, n])?))
    }

    /// Element `i` of the result.
    fn expected(i: u64, width: u64, height: u64) -> f32 {
        let (x, y) = (i % width, i / width);
        let src = |x: u64, y: u64| noise(y * width + x);
        let (right, down) = ((x + 1).min(width - 1), (y + 1).min(height - 1));
        mean(src(x, y), src(x.max(1) - 1, y), src(right, y), src(x, y.max(1) - 1), src(x, down))
    }
}
