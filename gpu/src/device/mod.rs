//! What a kernel may use, under the names of CUDA and `cuda_std`.
//!
//! Three implementations stand behind it: `nvptx` (rustc's own back end: intrinsics and inline PTX), `nvvm`
//! (rust-cuda: `cuda_std` and inline PTX) and `host` (calls into the simulator's [`host::Machine`]).
//! This is the only place that asks which machine it is built for, and on a GPU it costs nothing: a load is one
//! instruction of its state space and width.
//!
//! # Safety
//!
//! Every `unsafe` function here has one contract, the *launch contract*: the kernel was launched with pointers to live
//! buffers of the sizes its documentation gives, so that each index it computes from them lies inside. No GPU checks
//! it; the simulator checks every access.
//!
//! # Loops
//!
//! The simulator groups the accesses of a warp's 32 lanes into requests: the lanes at the same source position in the
//! same iteration of every enclosing loop. It sees iterations of loops that run through [`steps`], [`each`] or
//! [`unroll!`](crate::device::unroll), all plain loops on a GPU. An access that a lane passes twice in one iteration
//! has no certain grouping: it is reported, and gets no count.

use core::marker::PhantomData;
use core::ops::Range;

pub use busload_macros::{device, kernel};
pub use half::f16;

#[cfg(not(target_os = "cuda"))]
pub mod host;
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
pub use backend::{call, constant, constant_array, entry, function, shared, shared_array};

/// What a kernel file uses: `use crate::device::prelude::*;`.
pub mod prelude {
    pub(crate) use super::family;
    pub use super::{
        Constant, F32x2, F32x4, Global, GlobalMut, Shared, at, clock, constant, device, dynamic_shared, each, f16, fma,
        host_only, kernel, shared, steps, sync_threads, sync_warp, thread, unroll, warp,
    };
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
macro_rules! family {
    ($($item:item)*) => {
        #[allow(unused_imports, reason = "each family takes what it needs")]
        use crate::suite::*;
        $($item)*
    };
}
#[cfg(target_os = "cuda")]
macro_rules! family {
    ($($item:item)*) => {};
}
pub(crate) use family;

/// A value that one load or store moves: 1, 2, 4, 8 or 16 bytes, one scalar or a vector of equal ones.
///
/// # Safety
///
/// The type is `Copy`, has no padding, is valid for every bit pattern, has the alignment of its size, and consists of
/// `COMPONENTS` scalars of equal size.
pub unsafe trait Value: Copy + 'static {
    /// How many scalars the value holds: the `n` of PTX's `.vn`.
    const COMPONENTS: usize = 1;
}

macro_rules! scalar_values { ($($ty:ty)*) => { $(
    // SAFETY: a primitive of a power-of-two size, aligned to it, valid for every bit pattern.
    unsafe impl Value for $ty {}
)* } }
scalar_values!(i8 u8 i16 u16 f16 i32 u32 f32 i64 u64 f64);

/// Two `f32`, moved by one 8-byte access.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(8))]
pub struct F32x2 {
    /// The element at the lower address.
    pub x: f32,
    /// The element at the higher address.
    pub y: f32,
}
// SAFETY: two `f32` without padding, aligned to 8 bytes.
unsafe impl Value for F32x2 {
    const COMPONENTS: usize = 2;
}

/// Four `f32`, moved by one 16-byte access.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(16))]
pub struct F32x4 {
    /// The element at the lowest address.
    pub x: f32,
    /// The second element.
    pub y: f32,
    /// The third element.
    pub z: f32,
    /// The element at the highest address.
    pub w: f32,
}
// SAFETY: four `f32` without padding, aligned to 16 bytes.
unsafe impl Value for F32x4 {
    const COMPONENTS: usize = 4;
}

/// A type that `atomic_add` adds.
pub trait AtomicAdd: Value + backend::AtomicAddBackend {}
impl<T: Value + backend::AtomicAddBackend> AtomicAdd for T {}

/// The path a global load takes through the caches: PTX's cache operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cache {
    /// `ld.global`: through the L1 and the L2.
    All,
    /// `ld.global.cg`: past the L1, through the L2 alone (CUDA's `__ldcg`).
    Global,
    /// `ld.global.nc`: through the read-only path (CUDA's `__ldg`).
    NonCoherent,
    /// `ld.global.cs`: evicted first, for data that streams (CUDA's `__ldcs`).
    Streaming,
}

/// Memory of the whole grid that a kernel reads: a device pointer on a GPU, a simulated address on the host.
#[repr(transparent)]
pub struct Global<T>(u64, PhantomData<*const T>);

/// Memory of the whole grid that a kernel reads and writes.
#[repr(transparent)]
pub struct GlobalMut<T>(u64, PhantomData<*mut T>);

/// `N` elements of a block's shared memory, from [`shared!`](crate::device::shared); `N` is 0 where the launch decides
/// ([`dynamic_shared`]).
#[repr(transparent)]
pub struct Shared<T, const N: usize>(u32, PhantomData<*mut T>);

/// `N` elements of constant memory, from [`constant!`](crate::device::constant): the host fills them before the launch.
#[repr(transparent)]
pub struct Constant<T, const N: usize>(u64, PhantomData<*const T>);

impl<T> Clone for Global<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Global<T> {}
impl<T> Clone for GlobalMut<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for GlobalMut<T> {}
impl<T, const N: usize> Clone for Shared<T, N> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const N: usize> Copy for Shared<T, N> {}
impl<T, const N: usize> Clone for Constant<T, N> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const N: usize> Copy for Constant<T, N> {}

macro_rules! loads {
    () => {
        /// Loads element `index` through the L1 and the L2 (`ld.global`).
        ///
        /// # Safety
        /// The launch contract: `index` lies inside the buffer.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn load(self, index: usize) -> T {
            // SAFETY: the caller's promise.
            unsafe { backend::global_load(self.0, index, Cache::All) }
        }

        /// Loads element `index` past the L1 (`ld.global.cg`, CUDA's `__ldcg`).
        ///
        /// # Safety
        /// The launch contract: `index` lies inside the buffer.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn load_cg(self, index: usize) -> T {
            // SAFETY: the caller's promise.
            unsafe { backend::global_load(self.0, index, Cache::Global) }
        }

        /// Loads element `index` to be evicted first (`ld.global.cs`, CUDA's `__ldcs`).
        ///
        /// # Safety
        /// The launch contract: `index` lies inside the buffer.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn load_cs(self, index: usize) -> T {
            // SAFETY: the caller's promise.
            unsafe { backend::global_load(self.0, index, Cache::Streaming) }
        }
    };
}

impl<T: Value> Global<T> {
    loads!();

    /// Loads element `index` through the read-only path (`ld.global.nc`, CUDA's `__ldg`).
    ///
    /// # Safety
    /// The launch contract: `index` lies inside the buffer, and nothing writes the buffer during the launch.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_nc(self, index: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { backend::global_load(self.0, index, Cache::NonCoherent) }
    }

    /// The same memory from element `index` on: C's `p + index`.
    #[inline(always)]
    pub fn starting_at(self, index: usize) -> Self {
        Self(backend::global_element::<T>(self.0, index), PhantomData)
    }

    /// The same memory as elements of another type: `f32` as [`F32x4`], for 16 bytes an access.
    #[inline(always)]
    pub const fn cast<U: Value>(self) -> Global<U> {
        Global(self.0, PhantomData)
    }
}

impl<T: Value> GlobalMut<T> {
    loads!();

    /// Stores element `index` (`st.global`).
    ///
    /// # Safety
    /// The launch contract: `index` lies inside the buffer, and no other thread touches the element unordered.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store(self, index: usize, value: T) {
        // SAFETY: the caller's promise.
        unsafe { backend::global_store(self.0, index, value) }
    }

    /// Adds `value` to element `index` in one indivisible step, and returns what stood there before
    /// (`atom.global.add`, which becomes `red` where the old value goes unused).
    ///
    /// # Safety
    /// The launch contract: `index` lies inside the buffer.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_add(self, index: usize, value: T) -> T
    where
        T: AtomicAdd,
    {
        // SAFETY: the caller's promise.
        unsafe { backend::global_atomic_add(self.0, index, value) }
    }

    /// The same memory from element `index` on: C's `p + index`.
    #[inline(always)]
    pub fn starting_at(self, index: usize) -> Self {
        Self(backend::global_element::<T>(self.0, index), PhantomData)
    }

    /// The same memory as elements of another type: `f32` as [`F32x4`], for 16 bytes an access.
    #[inline(always)]
    pub const fn cast<U: Value>(self) -> GlobalMut<U> {
        GlobalMut(self.0, PhantomData)
    }
}

impl<T: Value, const N: usize> Shared<T, N> {
    /// An array at a shared address.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn from_address(address: u32) -> Self {
        Self(address, PhantomData)
    }

    /// Loads element `index` (`ld.shared`).
    ///
    /// # Safety
    /// `index < N`, and a barrier orders the load after the store of the element by another thread.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load(self, index: u32) -> T {
        // SAFETY: the caller's promise.
        unsafe { backend::shared_load(self.0, index) }
    }

    /// Stores element `index` (`st.shared`).
    ///
    /// # Safety
    /// `index < N`, and barriers order the store against other threads' accesses to the element.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store(self, index: u32, value: T) {
        // SAFETY: the caller's promise.
        unsafe { backend::shared_store(self.0, index, value) }
    }

    /// The same memory from element `index` on.
    #[inline(always)]
    pub fn starting_at(self, index: u32) -> Shared<T, 0> {
        Shared(backend::shared_element::<T>(self.0, index), PhantomData)
    }

    /// The same memory as elements of another type; the caller minds the alignment and the length.
    #[inline(always)]
    pub const fn cast<U: Value>(self) -> Shared<U, 0> {
        Shared(self.0, PhantomData)
    }
}

impl<T: Value, const N: usize> Constant<T, N> {
    /// An array at a constant address.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn from_address(address: u64) -> Self {
        Self(address, PhantomData)
    }

    /// Loads element `index` (`ld.const`): one pass for each address that the warp's lanes want.
    ///
    /// # Safety
    /// `index < N`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load(self, index: u32) -> T {
        // SAFETY: the caller's promise.
        unsafe { backend::constant_load(self.0, index) }
    }
}

/// The block's dynamic shared memory, as large as the launch says.
#[inline(always)]
#[track_caller]
pub fn dynamic_shared<T: Value>() -> Shared<T, 0> {
    Shared::from_address(backend::dynamic_shared())
}

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

/// Waits until every thread of the block has come here (`bar.sync 0`, CUDA's `__syncthreads`).
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    backend::sync_threads();
}

/// Waits until the lanes in `mask` have come here (`bar.warp.sync`, CUDA's `__syncwarp`).
#[inline(always)]
#[track_caller]
pub fn sync_warp(mask: u32) {
    backend::sync_warp(mask);
}

/// Ticks of the multiprocessor's clock (`%clock64`); in the simulator, how many of this module's calls the lane has
/// made.
#[inline(always)]
#[track_caller]
pub fn clock() -> u64 {
    backend::clock()
}

/// Where a thread stands in the grid.
pub mod thread {
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
}

/// The warp: its lanes and what they exchange.
pub mod warp {
    use super::backend;

    /// Every lane.
    pub const FULL: u32 = u32::MAX;

    /// The lane's number in its warp, 0 to 31 (`%laneid`).
    #[inline(always)]
    pub fn lane_id() -> u32 {
        backend::lane_id()
    }

    /// The value of the lane `delta` further up, or the own one where there is none (`shfl.sync.down`).
    #[inline(always)]
    #[track_caller]
    pub fn shuffle_down(mask: u32, value: f32, delta: u32) -> f32 {
        f32::from_bits(backend::shuffle_down(mask, value.to_bits(), delta))
    }

    /// The value of the lane whose number differs in the bits of `xor` (`shfl.sync.bfly`).
    #[inline(always)]
    #[track_caller]
    pub fn shuffle_xor(mask: u32, value: f32, xor: u32) -> f32 {
        f32::from_bits(backend::shuffle_xor(mask, value.to_bits(), xor))
    }

    /// The value of lane `source` (`shfl.sync.idx`).
    #[inline(always)]
    #[track_caller]
    pub fn shuffle(mask: u32, value: f32, source: u32) -> f32 {
        f32::from_bits(backend::shuffle(mask, value.to_bits(), source))
    }
}

/// An index that [`steps`] counts with.
pub trait Index: Copy + PartialOrd + core::ops::Add<Output = Self> {}
impl Index for u32 {}
impl Index for usize {}

/// `start`, `start + step`, … below `end`: C's `for (i = start; i < end; i += step)`, with iterations that the
/// simulator sees. It goes behind the `in` of a `for`, as it is.
#[inline(always)]
#[track_caller]
pub fn steps<T: Index>(range: Range<T>, step: T) -> Each<Steps<T>> {
    Each { inner: Steps { next: range.start, end: range.end, step }, iterations: Loop::here() }
}

/// The indices of [`steps`].
#[doc(hidden)]
pub struct Steps<T> {
    next: T,
    end: T,
    step: T,
}

impl<T: Index> Iterator for Steps<T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        if self.next < self.end {
            let value = self.next;
            self.next = value + self.step;
            Some(value)
        } else {
            None
        }
    }
}

/// Any iterator, with iterations that the simulator sees. It goes behind the `in` of a `for`, as it is: adapters such as
/// `zip` and `rev` belong inside, in what it is given.
#[inline(always)]
#[track_caller]
pub fn each<I: IntoIterator>(iterator: I) -> Each<I::IntoIter> {
    Each { inner: iterator.into_iter(), iterations: Loop::here() }
}

/// A loop of [`steps`] or [`each`] that has not begun. It is no iterator: the simulator has to see where the loop ends, and a
/// `for` says so.
///
/// ```compile_fail,E0599
/// # use gpu::device::steps;
/// let mut k = steps(0..8u32, 1);
/// while let Some(k) = k.next() {}
/// ```
///
/// ```compile_fail,E0599
/// # use gpu::device::steps;
/// for (i, k) in steps(0..8u32, 1).zip(0..8) {}
/// ```
pub struct Each<I> {
    inner: I,
    iterations: Loop,
}

impl<I: Iterator> IntoIterator for Each<I> {
    type Item = I::Item;
    type IntoIter = Iterations<I>;

    #[inline(always)]
    fn into_iter(mut self) -> Iterations<I> {
        self.iterations.begin();
        Iterations { inner: self.inner, iterations: self.iterations }
    }
}

/// A loop that has begun.
#[doc(hidden)]
pub struct Iterations<I> {
    inner: I,
    iterations: Loop,
}

impl<I: Iterator> Iterator for Iterations<I> {
    type Item = I::Item;

    #[inline(always)]
    fn next(&mut self) -> Option<I::Item> {
        match self.inner.next() {
            Some(value) => {
                self.iterations.next();
                Some(value)
            }
            None => {
                self.iterations.end();
                None
            }
        }
    }
}

#[doc(hidden)]
pub use backend::Loop;

/// Writes a loop's body once for each value, so that every compiler sees straight-line code and may batch its loads:
/// `unroll!(for j in [0, 8, 16, 24] { … })`, where `j` is a `u32`.
///
/// The body's tokens keep their source positions, and the simulator sees each copy as an iteration.
#[macro_export]
#[doc(hidden)]
macro_rules! __unroll {
    (for $i:ident in [$($value:expr),+ $(,)?] $body:block) => {{
        let mut iterations = $crate::device::Loop::here();
        iterations.begin();
        $({
            let $i: u32 = $value;
            iterations.next();
            $body
        })+
    }};
}
pub use __unroll as unroll;
