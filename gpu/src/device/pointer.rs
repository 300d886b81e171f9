//! Pointers into global, shared and constant memory, and the loads and stores through them.

use super::{Value, backend, copy_async::CopyAsync};
use core::marker::PhantomData;

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
    /// `ld.volatile.global`: past the L1, as a read of C's `volatile`.
    Volatile,
}

/// Memory of the whole grid that a kernel reads: a device pointer on a GPU, a simulated address on the host.
#[repr(transparent)]
pub struct Global<T>(pub(super) u64, pub(super) PhantomData<*const T>);

/// Memory of the whole grid that a kernel reads and writes.
#[repr(transparent)]
pub struct GlobalMut<T>(pub(super) u64, pub(super) PhantomData<*mut T>);

/// `N` elements of a block's shared memory, from [`shared!`](crate::device::shared); `N` is 0 where the launch says
/// how many ([`dynamic_shared`]).
#[repr(transparent)]
pub struct Shared<T, const N: usize>(pub(super) u32, PhantomData<*mut T>);

/// `N` elements of constant memory, from [`constant!`](crate::device::constant): the host fills them before the launch.
#[repr(transparent)]
pub struct Constant<T, const N: usize>(u64, PhantomData<*const T>);

impl<T> From<GlobalMut<T>> for Global<T> {
    /// The same memory, to be read.
    #[inline(always)]
    fn from(memory: GlobalMut<T>) -> Self {
        Self(memory.0, PhantomData)
    }
}

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

        /// Loads element `index`, whose line is evicted first (`ld.global.cs`, CUDA's `__ldcs`).
        ///
        /// # Safety
        /// The launch contract: `index` lies inside the buffer.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn load_cs(self, index: usize) -> T {
            // SAFETY: the caller's promise.
            unsafe { backend::global_load(self.0, index, Cache::Streaming) }
        }

        /// Loads element `index` as it is now: no load before it stands in for it (`ld.volatile.global`).
        ///
        /// It races with no atomic and no volatile store.
        ///
        /// # Safety
        /// The launch contract: `index` lies inside the buffer.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn load_volatile(self, index: usize) -> T {
            // SAFETY: the caller's promise.
            unsafe { backend::global_load(self.0, index, Cache::Volatile) }
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

    /// The same memory as elements of another type: `f32` as [`F32x4`](crate::device::F32x4), for 16 bytes an access.
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

    /// Stores element `index` for others to see while the kernel runs (`st.volatile.global`).
    ///
    /// # Safety
    /// The launch contract: `index` lies inside the buffer, and other threads access the element by atomics and volatile
    /// accesses alone, or ordered.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_volatile(self, index: usize, value: T) {
        // SAFETY: the caller's promise.
        unsafe { backend::global_store_volatile(self.0, index, value) }
    }

    /// The same memory from element `index` on: C's `p + index`.
    #[inline(always)]
    pub fn starting_at(self, index: usize) -> Self {
        Self(backend::global_element::<T>(self.0, index), PhantomData)
    }

    /// The same memory as elements of another type: `f32` as [`F32x4`](crate::device::F32x4), for 16 bytes an access.
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

    /// Loads element `index` while other threads of the block may change it by atomics and [`store_relaxed`] (`ld.relaxed.cta.shared`).
    ///
    /// PTX takes a `volatile` access for a relaxed one. Every access to shared memory is `ld.volatile` and `st.volatile` here, so that
    /// `ptxas` leaves it as it stands, and the sanitizer takes those for plain ones: what is meant to go on while others write says so.
    ///
    /// [`store_relaxed`]: Shared::store_relaxed
    ///
    /// # Safety
    /// `index < N`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_relaxed(self, index: u32) -> T {
        // SAFETY: the caller's promise.
        unsafe { backend::shared_load_relaxed(self.0, index) }
    }

    /// Stores element `index` while other threads of the block may access it by atomics and [`load_relaxed`](Shared::load_relaxed)
    /// (`st.relaxed.cta.shared`).
    ///
    /// # Safety
    /// `index < N`, and barriers order the store against plain accesses of other threads to the element.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_relaxed(self, index: u32, value: T) {
        // SAFETY: the caller's promise.
        unsafe { backend::shared_store_relaxed(self.0, index, value) }
    }

    /// Begins to copy element `from` of `src` to element `index` (`cp.async`): it arrives when this thread waits for it, by
    /// [`copy_async::wait_group`](crate::device::copy_async::wait_group).
    ///
    /// # Safety
    /// The launch contract: `from` lies inside the buffer, and `index < N`. Nobody touches the element until the copy has arrived,
    /// nor anybody else before a barrier behind that.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn copy_async(self, index: u32, src: impl Into<Global<T>>, from: usize)
    where
        T: CopyAsync,
    {
        // SAFETY: the caller's promise.
        unsafe { backend::copy_async::<T>(self.0, index, src.into().0, from) }
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

    /// Loads element `index` (`ld.const`): one wavefront for each distinct address among the warp's lanes.
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
