//! The facade on the host: what a kernel does becomes an access of the [`Lane`] that is running, or a request to its
//! [`Machine`].
//!
//! | file | what |
//! | --- | --- |
//! | `access.rs` | an access: its state space, operation and width, and the source position it stands at |
//! | `lane.rs` | the lane that is running on the calling thread |
//! | `machine.rs` | the trait of whatever runs kernels on the host |
//! | `expected.rs` | the fast path: an access that the lanes before made too |
//! | `memory.rs` | loads, stores, atomics, fences, pointer arithmetic |
//! | `copies.rs` | copies from global to shared memory that go on while the kernel does |
//! | `threads.rs` | indices, barriers, shuffles, votes, matches, reductions; arithmetic |
//! | `path.rs` | loops and calls: what tells one pass through a source position from another |
//! | `arrays.rs` | arrays in shared and constant memory |
//! | `kernel.rs` | a kernel's description, its parameters and its entry |
//!
//! The crate knows nothing of the simulator, and stays below it. `lane.rs` alone takes `std`, for one thread-local.

mod access;
mod arrays;
mod copies;
mod expected;
mod kernel;
mod lane;
mod machine;
mod memory;
mod path;
mod threads;

pub use access::{Access, Atomic, Number, Op, Site, Space};
pub use expected::Expected;
pub use kernel::{Kernel, Parameter, ParameterKind, Pointee};
pub use lane::{Coordinates, Lane, Watched, run_as};
pub use machine::{Exchange, Machine, PAUSE, STEPS};
pub use memory::{AtomicBackend, read, write};
pub use path::Call;
pub use threads::ReduceBackend;

// What kernels expand to.
#[doc(hidden)]
pub use arrays::{constant, constant_array, constant_array_of, shared, shared_array, shared_array_of};
#[doc(hidden)]
pub use kernel::entry;
#[doc(hidden)]
pub use lane::end;
#[doc(hidden)]
pub use path::{Called, Loop, call, function};

// What the facade calls.
pub(super) use arrays::dynamic_shared;
pub(super) use copies::{commit_copies, copy_async, wait_all_copies, wait_copies};
pub(super) use memory::{
    constant_load, fence, global_atomic, global_element, global_load, global_store, global_store_volatile,
    shared_atomic, shared_element, shared_load, shared_load_relaxed, shared_store, shared_store_relaxed,
};
pub(super) use threads::{
    activemask, all, any, ballot, block_dim_x, block_dim_y, block_dim_z, block_idx_x, block_idx_y, block_idx_z,
    byte_perm, clock, cos, exp2, fma, grid_dim_x, grid_dim_y, grid_dim_z, index_x, lane_id, log2, match_any,
    match_any_wide, rcp, reduce_and, reduce_or, reduce_xor, rsqrt, shuffle, shuffle_down, shuffle_up, shuffle_xor, sin,
    sqrt, sync_threads, sync_warp, tanh, thread_idx_x, thread_idx_y, thread_idx_z,
};
