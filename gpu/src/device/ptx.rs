//! What both GPU back ends have in common: inline PTX for every access, and intrinsics of PTX.
//!
//! A plain dereference would go through generic addressing in the one, and have no cache operators in either. Inline
//! PTX says the space, the width and the cache operator outright. It is not `pure`, so the compiler keeps every access
//! and its order; `ptxas` schedules them, as it does for `nvcc`.
//!
//! Shared accesses are `volatile`: else `ptxas` puts neighbouring ones together and forwards what was stored, and the
//! machine would do other accesses than the source says, which is what a kernel here is read for. A kernel that wants
//! wide accesses asks for them.

mod atomic;

pub(super) use atomic::{AtomicBackend, global_atomic, shared_atomic};

use super::{Cache, Scope, Value, backend};
use core::arch::asm;
use core::mem::transmute_copy;

/// Whether the macros below know the width of `T`: what they take for unreachable otherwise.
const fn known_width<T: Value>() -> bool {
    matches!((size_of::<T>(), T::COMPONENTS), (1 | 2 | 4 | 8, _) | (16, 2..))
}

/// Matches the width of `$T` to the suffix of an instruction and to the registers that hold it: a vector of up to 4 bytes is one
/// register, a wider one is as many words, or halves of 64 bits, if those are its scalars.
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
                (2, _) => {
                    let value: u16;
                    asm!(concat!($opcode, ".b16 {}, [{}];"), out(reg16) value, in($register) address,
                        options(nostack, readonly, preserves_flags));
                    transmute_copy(&value)
                }
                (4, _) => {
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
                (8, _) => {
                    let (x, y): (u32, u32);
                    asm!(concat!($opcode, ".v2.b32 {{{}, {}}}, [{}];"), out(reg32) x, out(reg32) y,
                        in($register) address, options(nostack, readonly, preserves_flags));
                    transmute_copy(&[x, y])
                }
                (16, 2) => {
                    let (x, y): (u64, u64);
                    asm!(concat!($opcode, ".v2.b64 {{{}, {}}}, [{}];"), out(reg64) x, out(reg64) y,
                        in($register) address, options(nostack, readonly, preserves_flags));
                    transmute_copy(&[x, y])
                }
                (16, _) => {
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
                (2, _) => {
                    let value = transmute_copy::<$T, u16>(&value);
                    asm!(concat!($opcode, ".b16 [{}], {};"), in($register) address, in(reg16) value,
                        options(nostack, preserves_flags));
                }
                (4, _) => {
                    let value = transmute_copy::<$T, u32>(&value);
                    asm!(concat!($opcode, ".b32 [{}], {};"), in($register) address, in(reg32) value,
                        options(nostack, preserves_flags));
                }
                (8, 1) => {
                    let value = transmute_copy::<$T, u64>(&value);
                    asm!(concat!($opcode, ".b64 [{}], {};"), in($register) address, in(reg64) value,
                        options(nostack, preserves_flags));
                }
                (8, _) => {
                    let [x, y] = transmute_copy::<$T, [u32; 2]>(&value);
                    asm!(concat!($opcode, ".v2.b32 [{}], {{{}, {}}};"), in($register) address, in(reg32) x,
                        in(reg32) y, options(nostack, preserves_flags));
                }
                (16, 2) => {
                    let [x, y] = transmute_copy::<$T, [u64; 2]>(&value);
                    asm!(concat!($opcode, ".v2.b64 [{}], {{{}, {}}};"), in($register) address, in(reg64) x,
                        in(reg64) y, options(nostack, preserves_flags));
                }
                (16, _) => {
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
pub(super) fn global_element<T>(base: u64, index: usize) -> u64 {
    base + index as u64 * size_of::<T>() as u64
}

#[inline(always)]
pub(super) fn shared_element<T>(address: u32, index: u32) -> u32 {
    address + index * size_of::<T>() as u32
}

#[inline(always)]
pub(super) unsafe fn global_load<T: Value>(base: u64, index: usize, cache: Cache) -> T {
    match cache {
        Cache::All => load!(T, "ld.global", reg64, global_element::<T>(base, index)),
        Cache::Global => load!(T, "ld.global.cg", reg64, global_element::<T>(base, index)),
        Cache::NonCoherent => load!(T, "ld.global.nc", reg64, global_element::<T>(base, index)),
        Cache::Streaming => load!(T, "ld.global.cs", reg64, global_element::<T>(base, index)),
        Cache::Volatile => load!(T, "ld.volatile.global", reg64, global_element::<T>(base, index)),
    }
}

#[inline(always)]
pub(super) unsafe fn global_store<T: Value>(base: u64, index: usize, value: T) {
    store!(T, "st.global", reg64, global_element::<T>(base, index), value);
}

#[inline(always)]
pub(super) unsafe fn global_store_volatile<T: Value>(base: u64, index: usize, value: T) {
    store!(T, "st.volatile.global", reg64, global_element::<T>(base, index), value);
}

#[inline(always)]
pub(super) unsafe fn constant_load<T: Value>(base: u64, index: u32) -> T {
    load!(T, "ld.const", reg64, global_element::<T>(base, index as usize))
}

#[inline(always)]
pub(super) unsafe fn shared_load<T: Value>(address: u32, index: u32) -> T {
    load!(T, "ld.volatile.shared", reg32, shared_element::<T>(address, index))
}

#[inline(always)]
pub(super) unsafe fn shared_store<T: Value>(address: u32, index: u32, value: T) {
    store!(T, "st.volatile.shared", reg32, shared_element::<T>(address, index), value);
}

#[inline(always)]
pub(super) unsafe fn shared_load_relaxed<T: Value>(address: u32, index: u32) -> T {
    load!(T, "ld.relaxed.cta.shared", reg32, shared_element::<T>(address, index))
}

#[inline(always)]
pub(super) unsafe fn shared_store_relaxed<T: Value>(address: u32, index: u32, value: T) {
    store!(T, "st.relaxed.cta.shared", reg32, shared_element::<T>(address, index), value);
}

#[inline(always)]
pub(super) fn fence(scope: Scope) {
    // SAFETY: a fence has no precondition. It keeps its place among the accesses, of which the compiler moves none past it.
    unsafe {
        match scope {
            Scope::Block => asm!("membar.cta;", options(nostack, preserves_flags)),
            Scope::Device => asm!("membar.gl;", options(nostack, preserves_flags)),
            Scope::System => asm!("membar.sys;", options(nostack, preserves_flags)),
        }
    }
}

unsafe extern "C" {
    // Intrinsics, not inline PTX: LLVM knows that these are convergent.
    #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
    fn shfl_sync_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
    fn shfl_sync_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    fn shfl_sync_bfly(mask: u32, value: u32, xor: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shfl_sync_idx(mask: u32, value: u32, source: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i32"]
    fn match_any_sync(mask: u32, value: u32) -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i64"]
    fn match_any_sync_wide(mask: u32, value: u64) -> u32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp_sync(mask: u32);
}

#[inline(always)]
pub(super) fn sync_warp(mask: u32) {
    // SAFETY: a barrier has no precondition that memory safety rests on.
    unsafe { bar_warp_sync(mask) };
}

#[inline(always)]
pub(super) fn shuffle_up(mask: u32, value: u32, delta: u32) -> u32 {
    // SAFETY: a shuffle moves registers alone. The lowest lane that it may read from is 0.
    unsafe { shfl_sync_up(mask, value, delta, 0) }
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
pub(super) fn match_any(mask: u32, value: u32) -> u32 {
    // SAFETY: a match moves registers alone.
    unsafe { match_any_sync(mask, value) }
}

#[inline(always)]
pub(super) fn match_any_wide(mask: u32, value: u64) -> u32 {
    // SAFETY: as above.
    unsafe { match_any_sync_wide(mask, value) }
}

/// An integer that `redux.sync` takes.
pub trait ReduceBackend: Value {
    #[doc(hidden)]
    fn reduce_add(mask: u32, value: Self) -> Self;
    #[doc(hidden)]
    fn reduce_min(mask: u32, value: Self) -> Self;
    #[doc(hidden)]
    fn reduce_max(mask: u32, value: Self) -> Self;
}

impl ReduceBackend for u32 {
    #[inline(always)]
    fn reduce_add(mask: u32, value: Self) -> Self {
        backend::redux_add(mask, value)
    }

    #[inline(always)]
    fn reduce_min(mask: u32, value: Self) -> Self {
        backend::redux_min_unsigned(mask, value)
    }

    #[inline(always)]
    fn reduce_max(mask: u32, value: Self) -> Self {
        backend::redux_max_unsigned(mask, value)
    }
}

impl ReduceBackend for i32 {
    #[inline(always)]
    fn reduce_add(mask: u32, value: Self) -> Self {
        backend::redux_add(mask, value as u32) as Self
    }

    #[inline(always)]
    fn reduce_min(mask: u32, value: Self) -> Self {
        backend::redux_min_signed(mask, value as u32) as Self
    }

    #[inline(always)]
    fn reduce_max(mask: u32, value: Self) -> Self {
        backend::redux_max_signed(mask, value as u32) as Self
    }
}

#[inline(always)]
pub(super) unsafe fn copy_async<T: Value>(to: u32, index: u32, from: u64, at: usize) {
    let (to, from) = (shared_element::<T>(to, index), global_element::<T>(from, at));
    macro_rules! copy { ($instruction:literal) => {
        asm!($instruction, in(reg32) to, in(reg64) from, options(nostack, preserves_flags))
    } }
    // SAFETY: the caller's promise.
    unsafe {
        match const { size_of::<T>() } {
            4 => copy!("cp.async.ca.shared.global [{}], [{}], 4;"),
            8 => copy!("cp.async.ca.shared.global [{}], [{}], 8;"),
            16 => copy!("cp.async.cg.shared.global [{}], [{}], 16;"),
            _ => unreachable!(),
        }
    }
}

#[inline(always)]
pub(super) fn commit_copies() {
    // SAFETY: touches no memory that is not promised to the copies.
    unsafe { asm!("cp.async.commit_group;", options(nostack, preserves_flags)) };
}

#[inline(always)]
pub(super) fn wait_copies<const N: u32>() {
    // SAFETY: as above. It is not `nomem`, so that no access behind it comes before it.
    unsafe { asm!("cp.async.wait_group {n};", n = const N, options(nostack, preserves_flags)) };
}

#[inline(always)]
pub(super) fn wait_all_copies() {
    // SAFETY: as above.
    unsafe { asm!("cp.async.wait_all;", options(nostack, preserves_flags)) };
}

#[inline(always)]
pub(super) fn index_x() -> usize {
    backend::block_idx_x() as usize * backend::block_dim_x() as usize + backend::thread_idx_x() as usize
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

#[inline(always)]
pub(super) fn byte_perm(a: u32, b: u32, selector: u32) -> u32 {
    let result;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("prmt.b32 {}, {}, {}, {};", out(reg32) result, in(reg32) a, in(reg32) b, in(reg32) selector,
            options(pure, nomem, nostack, preserves_flags));
    }
    result
}

macro_rules! functions { ($($name:ident: $opcode:literal)*) => { $(
    #[inline(always)]
    pub(super) fn $name(x: f32) -> f32 {
        let result;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!(concat!($opcode, " {}, {};"), out(reg32) result, in(reg32) x,
                options(pure, nomem, nostack, preserves_flags));
        }
        result
    }
)* } }
functions! {
    rcp: "rcp.approx.f32"
    sqrt: "sqrt.approx.f32"
    rsqrt: "rsqrt.approx.f32"
    sin: "sin.approx.f32"
    cos: "cos.approx.f32"
    exp2: "ex2.approx.f32"
    log2: "lg2.approx.f32"
    tanh: "tanh.approx.f32"
}

/// A device function: on a GPU, a function.
#[macro_export]
#[doc(hidden)]
macro_rules! __function {
    ([$($head:tt)*] $body:block) => { $($head)* $body };
}
#[doc(hidden)]
pub use crate::__function as function;

/// A call of a closure: a call.
#[macro_export]
#[doc(hidden)]
macro_rules! __call {
    ($($call:tt)*) => { $($call)* };
}
#[doc(hidden)]
pub use crate::__call as call;

/// Nothing: a loop is a loop.
#[doc(hidden)]
pub struct Loop;

impl Loop {
    #[doc(hidden)]
    #[inline(always)]
    pub fn here() -> Self {
        Self
    }

    #[doc(hidden)]
    #[inline(always)]
    pub fn begin(&mut self) {}

    #[doc(hidden)]
    #[inline(always)]
    pub fn next(&mut self) {}

    #[doc(hidden)]
    #[inline(always)]
    pub fn end(&mut self) {}
}
