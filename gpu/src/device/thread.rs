//! Where a thread stands in the grid.

use super::backend;

macro_rules! indices { ($($(#[$doc:meta])* $name:ident)*) => { $(
    $(#[$doc])*
    #[inline(always)]
    pub fn $name() -> u32 {
        backend::$name()
    }
)* } }

indices! {
    /// CUDA's `threadIdx.x`.
    thread_idx_x
    /// CUDA's `threadIdx.y`.
    thread_idx_y
    /// CUDA's `threadIdx.z`.
    thread_idx_z
    /// CUDA's `blockIdx.x`.
    block_idx_x
    /// CUDA's `blockIdx.y`.
    block_idx_y
    /// CUDA's `blockIdx.z`.
    block_idx_z
    /// CUDA's `blockDim.x`.
    block_dim_x
    /// CUDA's `blockDim.y`.
    block_dim_y
    /// CUDA's `blockDim.z`.
    block_dim_z
    /// CUDA's `gridDim.x`.
    grid_dim_x
    /// CUDA's `gridDim.y`.
    grid_dim_y
    /// CUDA's `gridDim.z`.
    grid_dim_z
}

/// The thread's place along x in the whole grid, `blockIdx.x * blockDim.x + threadIdx.x`, in 64 bits.
#[inline(always)]
pub fn index_x() -> usize {
    backend::index_x()
}

/// How many threads the grid has along x, `gridDim.x * blockDim.x`: the step of a grid-stride loop.
#[inline(always)]
pub fn count_x() -> usize {
    grid_dim_x() as usize * block_dim_x() as usize
}
