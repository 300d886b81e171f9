//! Grid, block and dynamic shared memory, within what CUDA takes.

use super::{PlanError, format};

/// Grid, block and dynamic shared memory of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory a block.
    pub shared_bytes: u32,
}

impl Launch {
    /// At least one thread for each of `threads`, in blocks of `block` along x.
    pub fn linear(threads: u64, block: u32) -> Result<Self, PlanError> {
        Self::blocks([threads.div_ceil(block.max(1).into()).max(1), 1], [block, 1])
    }

    /// Enough blocks to cover `columns` by `rows`, each block covering `tile` (columns, rows) with `block` threads.
    pub fn covering(columns: u32, rows: u32, tile: [u32; 2], block: [u32; 2]) -> Result<Self, PlanError> {
        if tile.contains(&0) {
            return Err(PlanError(format!("a block covers {} by {} elements: make it cover some", tile[0], tile[1])));
        }
        Self::blocks([columns.div_ceil(tile[0]).into(), rows.div_ceil(tile[1]).into()], block)
    }

    /// A grid-stride launch: blocks of `block` threads, as many as cover `threads` but at most `limit`.
    pub fn grid_stride(threads: u64, block: u32, limit: u32) -> Result<Self, PlanError> {
        Self::blocks([threads.div_ceil(block.max(1).into()).clamp(1, limit.max(1).into()), 1], [block, 1])
    }

    fn blocks(grid: [u64; 2], block: [u32; 2]) -> Result<Self, PlanError> {
        let (grid, block) = ([grid[0], grid[1], 1], [block[0], block[1], 1]);
        check(grid, block, 0)?;
        Ok(Self { grid: grid.map(|blocks| blocks as u32), block, shared_bytes: 0 })
    }

    /// Whether some GPU takes it.
    ///
    /// # Errors
    /// What of it none takes, and the limit.
    pub fn check(&self) -> Result<(), PlanError> {
        check(self.grid.map(u64::from), self.block, self.shared_bytes)
    }

    /// Blocks of the grid.
    pub fn block_count(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Threads of a block.
    pub fn block_threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Threads of the grid.
    pub fn threads(&self) -> u64 {
        self.block_count().saturating_mul(self.block_threads().into())
    }
}

/// What CUDA takes at most: blocks of a grid along x, y and z.
const MOST_BLOCKS: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];
/// Threads of a block along x, y and z.
const MOST_THREADS_ALONG: [u64; 3] = [1024, 1024, 64];
/// Threads of a block.
const MOST_THREADS: u64 = 1024;

/// Bytes of static shared memory that CUDA gives a block at most.
pub const MOST_STATIC_SHARED: u32 = 48 << 10;

/// Bytes of shared memory, static and dynamic, that any GPU gives a block at most: one of compute capability 9.0.
pub const MOST_SHARED: u32 = 227 << 10;

fn check(grid: [u64; 3], block: [u32; 3], shared_bytes: u32) -> Result<(), PlanError> {
    let along = |what: &str, amounts: [u64; 3], most: [u64; 3], way_out: &str| {
        let outside = (0..3).find(|&axis| !(1..=most[axis]).contains(&amounts[axis]));
        outside.map_or(Ok(()), |axis| {
            let (amount, most, axis) = (amounts[axis], most[axis], ["x", "y", "z"][axis]);
            Err(PlanError(format!("{what} along {axis} are {amount}, and CUDA takes 1 to {most}: {way_out}")))
        })
    };
    let launch = "change the launch in the family's entry";
    along("the blocks of the grid", grid, MOST_BLOCKS, &format!("choose a smaller size, or {launch}"))?;
    let block = block.map(u64::from);
    along("the threads of a block", block, MOST_THREADS_ALONG, launch)?;
    let threads: u64 = block.iter().product();
    if threads > MOST_THREADS {
        return Err(PlanError(format!(
            "a block has {threads} threads, and CUDA takes at most {MOST_THREADS}: {launch}"
        )));
    }
    if shared_bytes > MOST_SHARED {
        return Err(PlanError(format!(
            "a block has {shared_bytes} bytes of dynamic shared memory, and a GPU gives it at most {MOST_SHARED} \
             (compute capability 9.0), others less: {launch}"
        )));
    }
    Ok(())
}
