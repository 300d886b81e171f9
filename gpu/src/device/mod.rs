//! What a kernel may use, under the names of CUDA and `cuda_std`.
//!
//! Three implementations stand behind it: `nvptx` (rustc's own back end: intrinsics and inline PTX), `nvvm`
//! (rust-cuda: `cuda_std` and inline PTX) and `host` (calls into the simulator's [`host::Machine`]).
//! This file is the only one that asks which machine it is built for, and on a GPU the facade costs nothing: a load is
//! one instruction of its state space and width.
//!
//! | file | what |
//! | --- | --- |
//! | `pointer.rs` | global, shared and constant memory: loads and stores |
//! | `atomic.rs`, `fence.rs` | atomics and their scopes; what orders accesses |
//! | `copy_async.rs` | copies from global to shared memory that go on while the kernel does |
//! | `value.rs`, `vector.rs` | what one access moves: scalars; vectors of them |
//! | `thread.rs`, `warp.rs` | indices; lanes, and what they do together: shuffles, votes, matches, reductions |
//! | `math.rs` | approximate functions |
//! | `loops.rs` | loops whose iterations the simulator sees |
//! | `mod.rs` | barriers, the clock, arithmetic; and the choice of the implementation |
//! | `primitives.rs` | all of it as a table, for people |
//! | `ptx.rs`, `ptx/` | inline PTX, for both GPU back ends |
//! | `nvptx.rs`, `nvvm.rs`, `host/` | what differs |
//!
//! # Safety
//!
//! Every `unsafe` function here has one contract, the *launch contract*: the kernel was launched with pointers to live
//! buffers of the sizes its documentation gives, so that each index it computes from them lies inside. No GPU checks
//! it; the simulator checks every access.
//!
//! # Local arrays
//!
//! A kernel may have arrays of its own, `[T; N]`. Where the compiler knows every index, once loops over a fixed number are written
//! out, they are registers. An index that depends on data puts the array into local memory (`ld.local`, `st.local`), which goes
//! through the L1 as global memory does. No count of the simulator includes that, since how much of it there is, `ptxas` decides.
//! An index past the end is a panic in the source and a trap on a GPU. The PTX machine also finds reads of local memory that was
//! not written. The suite's own kernels have no local memory: a test holds their PTX to that.
//!
//! # Loops
//!
//! The simulator groups the accesses of a warp's 32 lanes into requests: the lanes at the same source position in the
//! same iteration of every enclosing loop. It sees the iterations of loops over [`steps`] and [`each`] and of
//! [`unroll!`](crate::device::unroll), which are plain loops on a GPU. An access that a lane makes twice in one
//! iteration has no certain grouping: it is reported, and not counted.

pub use busload_macros::{device, kernel};
pub use half::{bf16, f16};

#[cfg(not(target_os = "cuda"))]
pub mod host;
#[cfg(not(target_os = "cuda"))]
pub mod primitives;
#[cfg(not(target_os = "cuda"))]
use host as backend;

#[cfg(target_os = "cuda")]
mod ptx;

#[cfg(all(target_os = "cuda", not(feature = "nvvm")))]
mod nvptx;
#[cfg(all(target_os = "cuda", not(feature = "nvvm")))]
use nvptx as backend;

#[cfg(all(target_os = "cuda", feature = "nvvm"))]
mod nvvm;
#[cfg(all(target_os = "cuda", feature = "nvvm"))]
use nvvm as backend;

#[doc(hidden)]
pub use backend::{Loop, call, constant, constant_array, entry, function, shared, shared_array};

mod atomic;
pub mod copy_async;
mod fence;
mod loops;
pub mod math;
mod pointer;
pub mod thread;
mod value;
mod vector;
pub mod warp;

pub use atomic::{Atomic, AtomicInteger, AtomicKind, Change, Scope};
pub use fence::{threadfence, threadfence_block, threadfence_system};
pub use loops::{Each, Index, each, steps, unroll};
#[doc(hidden)]
pub use loops::{Iterations, Steps};
pub use pointer::{Cache, Constant, Global, GlobalMut, Shared, dynamic_shared};
pub use value::Value;
pub use vector::{
    Bf16x2, Bf16x4, Bf16x8, F16x2, F16x4, F16x8, F32x2, F32x4, F64x2, I8x2, I8x4, I8x8, I8x16, I16x2, I16x4, I16x8,
    I32x2, I32x4, I64x2, U8x2, U8x4, U8x8, U8x16, U16x2, U16x4, U16x8, U32x2, U32x4, U64x2,
};

/// What a file of kernels uses, all of it: `use busload::prelude::*;`, in this crate `use crate::device::prelude::*;`.
pub mod prelude {
    pub use super::family;
    pub use super::{
        Bf16x2, Bf16x4, Bf16x8, Constant, F16x2, F16x4, F16x8, F32x2, F32x4, F64x2, Global, GlobalMut, I8x2, I8x4,
        I8x8, I8x16, I16x2, I16x4, I16x8, I32x2, I32x4, I64x2, Shared, U8x2, U8x4, U8x8, U8x16, U16x2, U16x4, U16x8,
        U32x2, U32x4, U64x2, at, bf16, byte_perm, clock, constant, copy_async, device, dynamic_shared, each, f16, fma,
        host_only, kernel, math, shared, steps, sync_threads, sync_warp, thread, threadfence, threadfence_block,
        threadfence_system, unroll, warp,
    };
    // By this name the attributes find the crate, whatever it is called where the kernel stands.
    #[doc(hidden)]
    pub use crate as busload_prelude;
}

/// Keeps items for the host: on a GPU they do not exist.
#[cfg(not(target_os = "cuda"))]
#[macro_export]
#[doc(hidden)]
macro_rules! __host_only { ($($item:item)*) => { $($item)* } }
#[cfg(target_os = "cuda")]
#[macro_export]
#[doc(hidden)]
macro_rules! __host_only {
    ($($item:item)*) => {};
}
pub use __host_only as host_only;

/// A family's entry: ordinary items, with the vocabulary of `suite` in scope, that exist on the host alone.
#[cfg(not(target_os = "cuda"))]
#[macro_export]
#[doc(hidden)]
macro_rules! __family {
    ($($item:item)*) => {
        #[allow(unused_imports, reason = "each family takes what it needs")]
        use $crate::suite::*;
        $($item)*
    };
}
#[cfg(target_os = "cuda")]
#[macro_export]
#[doc(hidden)]
macro_rules! __family {
    ($($item:item)*) => {};
}
pub use __family as family;

/// The element at row `y`, column `x` of a row-major matrix whose rows are `pitch` elements apart, in 64 bits.
#[inline(always)]
pub const fn at(y: u32, x: u32, pitch: u32) -> usize {
    y as usize * pitch as usize + x as usize
}

/// `a * b + c`, rounded once (`fma.rn`).
#[inline(always)]
pub fn fma(a: f32, b: f32, c: f32) -> f32 {
    backend::fma(a, b, c)
}

/// A word of four of the eight bytes of `a` and `b`. Each of the lowest four hexadecimal digits of `selector` names the byte of its
/// place: 0 to 3 are those of `a`, 4 to 7 those of `b`; 8 more stands for its sign, 0 or 0xFF (`prmt.b32`, CUDA's `__byte_perm`).
#[inline(always)]
pub fn byte_perm(a: u32, b: u32, selector: u32) -> u32 {
    backend::byte_perm(a, b, selector)
}

/// Waits until every thread of the block arrives here (`bar.sync 0`, CUDA's `__syncthreads`).
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    backend::sync_threads();
}

/// Waits until the lanes in `mask` arrive here (`bar.warp.sync`, CUDA's `__syncwarp`).
#[inline(always)]
#[track_caller]
pub fn sync_warp(mask: u32) {
    backend::sync_warp(mask);
}

/// Ticks of the SM's clock (`%clock64`); in the simulator, how many of this module's calls the lane has
/// made.
#[inline(always)]
#[track_caller]
pub fn clock() -> u64 {
    backend::clock()
}
