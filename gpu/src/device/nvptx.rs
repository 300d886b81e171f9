//! The facade by rustc's own NVPTX back end: intrinsics, and inline PTX for every access.
//!
//! A plain dereference would go through generic addressing, since this back end has no address spaces for pointers.
//! Inline PTX says the space, the width and the cache operator outright. It is not `pure`, so the compiler keeps every
//! access and its order; `ptxas` schedules them, as it does for `nvcc`.

use super::{Cache, Value};
use core::arch::asm;
use core::arch::nvptx;
use core::mem::transmute_copy;

/// Whether the macros below know the width of `T`: what they take for unreachable otherwise.
const fn known_width<T: Value>() -> bool {
    matches!((size_of::<T>(), T::COMPONENTS), (1 | 2 | 4 | 8, 1) | (8, 2) | (16, 4))
}

/// Matches the width of `$T` to the suffix of an instruction and to the registers that hold it.
macro_rules! load {
    ($T:ty, $opcode:literal, $register:ident, $address:expr) => {{
        const { assert!(known_width::<$T>()) };
        let address = $address;
        // SAFETY: the caller's promise; the registers read are as wide as `T`, of which every bit pattern is valid.
        unsafe {
            match (size_of::<$T>(), <$T>::COMPONENTS) {
                (1, 1) => {
                    let value: u16;
                    asm!(concat!($opcode, ".u8 {}, [{}];"), out(reg16) value, in($register) address,
                        options(nostack, readonly, preserves_flags));
                    transmute_copy(&(value as u8))
                }
                (2, 1) => {
                    let value: u16;
                    asm!(concat!($opcode, ".b16 {}, [{}];"), out(reg16) value, in($register) address,
                        options(nostack, readonly, preserves_flags));
                    transmute_copy(&value)
                }
                (4, 1) => {
                    let value: u32;
                    asm!(concat!($opcode, ".b32 {}, [{}];"), out(reg32) value, in($register) address,
                        options(nostack, readonly, preserves_flags));
                    transmute_copy(&value)
                }
                (8, 1) => {
                    let value: u64;
                    asm!(concat!($opcode, ".b64 {}, [{}];"), out(reg64) value, in($register) address,
                        options(nostack, readonly, preserves_flags));
                    transmute_copy(&value)
                }
                (8, 2) => {
                    let (x, y): (u32, u32);
                    asm!(concat!($opcode, ".v2.b32 {{{}, {}}}, [{}];"), out(reg32) x, out(reg32) y,
                        in($register) address, options(nostack, readonly, preserves_flags));
                    transmute_copy(&[x, y])
                }
                (16, 4) => {
                    let (x, y, z, w): (u32, u32, u32, u32);
                    asm!(concat!($opcode, ".v4.b32 {{{}, {}, {}, {}}}, [{}];"), out(reg32) x, out(reg32) y,
                        out(reg32) z, out(reg32) w, in($register) address, options(nostack, readonly, preserves_flags));
                    transmute_copy(&[x, y, z, w])
                }
                _ => unreachable!(),
            }
        }
    }};
}

macro_rules! store {
    ($T:ty, $opcode:literal, $register:ident, $address:expr, $value:expr) => {{
        const { assert!(known_width::<$T>()) };
        let address = $address;
        let value = $value;
        // SAFETY: the caller's promise; `T` is as wide as the registers written.
        unsafe {
            match (size_of::<$T>(), <$T>::COMPONENTS) {
                (1, 1) => {
                    let value = u16::from(transmute_copy::<$T, u8>(&value));
                    asm!(concat!($opcode, ".b8 [{}], {};"), in($register) address, in(reg16) value,
                        options(nostack, preserves_flags));
                }
                (2, 1) => {
                    let value = transmute_copy::<$T, u16>(&value);
                    asm!(concat!($opcode, ".b16 [{}], {};"), in($register) address, in(reg16) value,
                        options(nostack, preserves_flags));
                }
                (4, 1) => {
                    let value = transmute_copy::<$T, u32>(&value);
                    asm!(concat!($opcode, ".b32 [{}], {};"), in($register) address, in(reg32) value,
                        options(nostack, preserves_flags));
                }
                (8, 1) => {
                    let value = transmute_copy::<$T, u64>(&value);
                    asm!(concat!($opcode, ".b64 [{}], {};"), in($register) address, in(reg64) value,
                        options(nostack, preserves_flags));
                }
                (8, 2) => {
                    let [x, y] = transmute_copy::<$T, [u32; 2]>(&value);
                    asm!(concat!($opcode, ".v2.b32 [{}], {{{}, {}}};"), in($register) address, in(reg32) x,
                        in(reg32) y, options(nostack, preserves_flags));
                }
                (16, 4) => {
                    let [x, y, z, w] = transmute_copy::<$T, [u32; 4]>(&value);
                    asm!(concat!($opcode, ".v4.b32 [{}], {{{}, {}, {}, {}}};"), in($register) address, in(reg32) x,
                        in(reg32) y, in(reg32) z, in(reg32) w, options(nostack, preserves_flags));
                }
                _ => unreachable!(),
            }
        }
    }};
}

#[inline(always)]
fn element<T>(base: u64, index: usize) -> u64 {
    base + index as u64 * size_of::<T>() as u64
}

#[inline(always)]
fn shared_element<T>(address: u32, index: u32) -> u32 {
    address + index * size_of::<T>() as u32
}

#[inline(always)]
pub(super) unsafe fn global_load<T: Value>(base: u64, index: usize, cache: Cache) -> T {
    match cache {
        Cache::All => load!(T, "ld.global", reg64, element::<T>(base, index)),
        Cache::Global => load!(T, "ld.global.cg", reg64, element::<T>(base, index)),
        Cache::NonCoherent => load!(T, "ld.global.nc", reg64, element::<T>(base, index)),
        Cache::Streaming => load!(T, "ld.global.cs", reg64, element::<T>(base, index)),
    }
}

#[inline(always)]
pub(super) unsafe fn global_store<T: Value>(base: u64, index: usize, value: T) {
    store!(T, "st.global", reg64, element::<T>(base, index), value);
}

#[inline(always)]
pub(super) unsafe fn shared_load<T: Value>(address: u32, index: u32) -> T {
    load!(T, "ld.shared", reg32, shared_element::<T>(address, index))
}

#[inline(always)]
pub(super) unsafe fn shared_store<T: Value>(address: u32, index: u32, value: T) {
    store!(T, "st.shared", reg32, shared_element::<T>(address, index), value);
}

/// A type whose atomic addition PTX has.
pub trait AtomicAddBackend: Value {
    #[doc(hidden)]
    unsafe fn atomic_add(address: u64, value: Self) -> Self;
}

macro_rules! atomic_add { ($($ty:ty: $suffix:literal $register:ident)*) => { $(
    impl AtomicAddBackend for $ty {
        #[inline(always)]
        unsafe fn atomic_add(address: u64, value: Self) -> Self {
            let old;
            // SAFETY: the caller's promise.
            unsafe {
                asm!(concat!("atom.global.add.", $suffix, " {}, [{}], {};"), out($register) old, in(reg64) address,
                    in($register) value, options(nostack, preserves_flags));
            }
            old
        }
    }
)* } }
atomic_add!(u32: "u32" reg32 i32: "u32" reg32 u64: "u64" reg64 f32: "f32" reg32);

#[inline(always)]
pub(super) unsafe fn global_atomic_add<T: AtomicAddBackend>(base: u64, index: usize, value: T) -> T {
    // SAFETY: the caller's promise.
    unsafe { T::atomic_add(element::<T>(base, index), value) }
}

unsafe extern "C" {
    // Intrinsics, not inline PTX: the compiler knows that these are convergent.
    #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
    fn shfl_sync_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    fn shfl_sync_bfly(mask: u32, value: u32, xor: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shfl_sync_idx(mask: u32, value: u32, source: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp_sync(mask: u32);
}

#[inline(always)]
pub(super) fn sync_threads() {
    // SAFETY: a barrier has no precondition that memory safety rests on.
    unsafe { nvptx::_syncthreads() };
}

#[inline(always)]
pub(super) fn sync_warp(mask: u32) {
    // SAFETY: as above.
    unsafe { bar_warp_sync(mask) };
}

#[inline(always)]
pub(super) fn shuffle_down(mask: u32, value: u32, delta: u32) -> u32 {
    // SAFETY: a shuffle moves registers alone.
    unsafe { shfl_sync_down(mask, value, delta, 31) }
}

#[inline(always)]
pub(super) fn shuffle_xor(mask: u32, value: u32, xor: u32) -> u32 {
    // SAFETY: as above.
    unsafe { shfl_sync_bfly(mask, value, xor, 31) }
}

#[inline(always)]
pub(super) fn shuffle(mask: u32, value: u32, source: u32) -> u32 {
    // SAFETY: as above.
    unsafe { shfl_sync_idx(mask, value, source, 31) }
}

#[inline(always)]
pub(super) fn lane_id() -> u32 {
    let lane;
    // SAFETY: reads a register.
    unsafe { asm!("mov.u32 {}, %laneid;", out(reg32) lane, options(pure, nomem, nostack, preserves_flags)) };
    lane
}

#[inline(always)]
pub(super) fn clock() -> u64 {
    let ticks;
    // SAFETY: reads a register; it keeps its place among the accesses, since it is not pure.
    unsafe { asm!("mov.u64 {}, %clock64;", out(reg64) ticks, options(nostack, preserves_flags)) };
    ticks
}

macro_rules! indices { ($($name:ident: $intrinsic:ident)*) => { $(
    #[inline(always)]
    pub(super) fn $name() -> u32 {
        // SAFETY: reads a register.
        unsafe { nvptx::$intrinsic() as u32 }
    }
)* } }
indices! {
    thread_idx_x: _thread_idx_x
    thread_idx_y: _thread_idx_y
    thread_idx_z: _thread_idx_z
    block_idx_x: _block_idx_x
    block_idx_y: _block_idx_y
    block_idx_z: _block_idx_z
    block_dim_x: _block_dim_x
    block_dim_y: _block_dim_y
    block_dim_z: _block_dim_z
    grid_dim_x: _grid_dim_x
    grid_dim_y: _grid_dim_y
    grid_dim_z: _grid_dim_z
}

#[inline(always)]
pub(super) fn fma(a: f32, b: f32, c: f32) -> f32 {
    let result;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("fma.rn.f32 {}, {}, {}, {};", out(reg32) result, in(reg32) a, in(reg32) b, in(reg32) c,
            options(pure, nomem, nostack, preserves_flags));
    }
    result
}

// The launch says how large it is.
core::arch::global_asm!(".extern .shared .align 16 .b8 dynamic_shared[];");

#[inline(always)]
pub(super) fn dynamic_shared() -> u32 {
    let address;
    // SAFETY: takes an address.
    unsafe { asm!("mov.u32 {}, dynamic_shared;", out(reg32) address, options(pure, nomem, nostack, preserves_flags)) };
    address
}

/// Nothing: a loop is a loop.
#[doc(hidden)]
pub struct Loop;

impl Loop {
    #[doc(hidden)]
    #[inline(always)]
    pub fn enter() -> Self {
        Self
    }

    #[doc(hidden)]
    #[inline(always)]
    pub fn next(&mut self) {}
}

/// Makes a kernel an entry of the PTX.
#[macro_export]
#[doc(hidden)]
macro_rules! __entry {
    ($(#[doc = $doc:literal])* $(#[allow($($allow:tt)*)])* #[documentation($documentation:literal)]
     $vis:vis unsafe fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[allow($($allow)*)])*
        #[unsafe(no_mangle)]
        #[allow(missing_docs, clippy::missing_safety_doc)]
        $vis unsafe extern "ptx-kernel" fn $name($($parameter: $ty),*) $body
    };
}
#[doc(hidden)]
pub use crate::__entry as entry;

/// Declares a static array in shared memory: the back end has no address space for statics, PTX has.
#[macro_export]
#[doc(hidden)]
macro_rules! __shared_array {
    ($symbol:ident, $ty:ty) => {
        ::core::arch::global_asm!(
            concat!(".shared .align 16 .b8 ", stringify!($symbol), "[{bytes}];"),
            bytes = const size_of::<$ty>(),
        );
    };
}
#[doc(hidden)]
pub use crate::__shared_array as shared_array;

/// The array that `shared_array!` declared.
#[macro_export]
#[doc(hidden)]
macro_rules! __shared {
    ($symbol:ident, $name:ident, [$element:ty; $length:expr]) => {{
        let address: u32;
        ::core::arch::asm!(
            concat!("mov.u32 {}, ", stringify!($symbol), ";"),
            out(reg32) address,
            options(pure, nomem, nostack, preserves_flags),
        );
        $crate::device::Shared::<$element, { $length }>::from_address(address)
    }};
}
#[doc(hidden)]
pub use crate::__shared as shared;
