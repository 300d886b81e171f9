//! The facade by rust-cuda: `cuda_std` for indices and attributes.

pub use super::ptx::*;
use core::arch::asm;
use cuda_std::thread;

unsafe extern "C" {
    // An intrinsic, which LLVM knows to be convergent. `cuda_std` has the same behind a function that only libNVVM
    // links: LLVM, which optimizes first, takes that for any call, and may copy the barrier into the branches of a
    // condition.
    #[link_name = "llvm.nvvm.barrier0"]
    fn barrier();
}

#[inline(always)]
pub(super) fn sync_threads() {
    // SAFETY: a barrier has no precondition that memory safety rests on.
    unsafe { barrier() };
}

macro_rules! indices { ($($name:ident)*) => { $(
    #[inline(always)]
    pub(super) fn $name() -> u32 {
        thread::$name()
    }
)* } }
indices! {
    thread_idx_x thread_idx_y thread_idx_z
    block_idx_x block_idx_y block_idx_z
    block_dim_x block_dim_y block_dim_z
    grid_dim_x grid_dim_y grid_dim_z
}

#[inline(always)]
pub(super) fn activemask() -> u32 {
    let mask;
    // SAFETY: reads a register; it is not pure, so that it stays where it is.
    unsafe { asm!("activemask.b32 {};", out(reg32) mask, options(nostack, preserves_flags)) };
    mask
}

// Inline PTX: the intrinsics take and return predicates, which rust-cuda does not pass on as such.
macro_rules! vote { ($mode:literal, $mask:ident, $predicate:ident) => {{
    let voted: u32;
    // SAFETY: a vote moves registers alone. It is not pure, so that it stays where it is.
    unsafe {
        asm!(
            "{{",
            ".reg .pred brought, voted;",
            "setp.ne.u32 brought, {}, 0;",
            concat!("vote.sync.", $mode, ".pred voted, brought, {};"),
            "selp.u32 {}, 1, 0, voted;",
            "}}",
            in(reg32) u32::from($predicate), in(reg32) $mask, out(reg32) voted, options(nostack, preserves_flags),
        );
    }
    voted != 0
}} }

#[inline(always)]
pub(super) fn any(mask: u32, predicate: bool) -> bool {
    vote!("any", mask, predicate)
}

#[inline(always)]
pub(super) fn all(mask: u32, predicate: bool) -> bool {
    vote!("all", mask, predicate)
}

#[inline(always)]
pub(super) fn ballot(mask: u32, predicate: bool) -> u32 {
    let lanes;
    // SAFETY: as above.
    unsafe {
        asm!(
            "{{",
            ".reg .pred brought;",
            "setp.ne.u32 brought, {}, 0;",
            "vote.sync.ballot.b32 {}, brought, {};",
            "}}",
            in(reg32) u32::from(predicate), out(reg32) lanes, in(reg32) mask, options(nostack, preserves_flags),
        );
    }
    lanes
}

// Inline PTX: LLVM 7 has no intrinsics for these.
macro_rules! reductions { ($($name:ident: $suffix:literal)*) => { $(
    #[inline(always)]
    pub(super) fn $name(mask: u32, value: u32) -> u32 {
        let reduced;
        // SAFETY: a reduction moves registers alone. It is not pure, so that it stays where it is.
        unsafe {
            asm!(concat!("redux.sync.", $suffix, " {}, {}, {};"), out(reg32) reduced, in(reg32) value, in(reg32) mask,
                options(nostack, preserves_flags));
        }
        reduced
    }
)* } }
reductions! {
    redux_add: "add.s32"
    redux_min_unsigned: "min.u32"
    redux_max_unsigned: "max.u32"
    redux_min_signed: "min.s32"
    redux_max_signed: "max.s32"
    reduce_and: "and.b32"
    reduce_or: "or.b32"
    reduce_xor: "xor.b32"
}

unsafe extern "C" {
    // The launch says how large it is: no elements, for `.extern .shared .align 16 .b8 dynamic_shared[]`. The one of
    // `cuda_std::shared::dynamic_shared_mem` has a size, so that `ptxas` makes a static array of it.
    #[nvvm_internal::addrspace(3)]
    #[link_name = "dynamic_shared"]
    #[allow(improper_ctypes, reason = "only its address and its alignment are used")]
    static DYNAMIC_SHARED: [u128; 0];
}

#[inline(always)]
pub(super) fn dynamic_shared() -> u32 {
    let address;
    // SAFETY: takes an address, in the way of `shared!`.
    unsafe {
        asm!("mov.u32 {}, dynamic_shared; /* {} */", out(reg32) address, in(reg64) &raw const DYNAMIC_SHARED,
            options(pure, nomem, nostack, preserves_flags));
    }
    address
}

/// Makes a kernel an entry of the PTX.
#[macro_export]
#[doc(hidden)]
macro_rules! __entry {
    ($(#[doc = $doc:literal])* $(#[allow($($allow:tt)*)])* #[documentation($documentation:literal)]
     #[shared($($shared:ident: $tile:ty),*)] #[constants($($constant:ident: $array:ty),*)]
     $vis:vis unsafe fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[allow($($allow)*)])*
        #[::cuda_std::kernel]
        $vis unsafe fn $name($($parameter: $ty),*) $body
    };
}
#[doc(hidden)]
pub use crate::__entry as entry;

/// Declares a static array in shared memory, aligned to 16 bytes.
#[macro_export]
#[doc(hidden)]
macro_rules! __shared_array {
    ($symbol:ident, $ty:ty) => {
        #[::cuda_std::address_space(shared)]
        #[unsafe(no_mangle)]
        #[allow(non_upper_case_globals)]
        static mut $symbol: ::core::mem::MaybeUninit<[$crate::device::F32x4; size_of::<$ty>().div_ceil(16)]> =
            ::core::mem::MaybeUninit::uninit();
    };
}
#[doc(hidden)]
pub use crate::__shared_array as shared_array;

/// The array that `shared_array!` declared.
///
/// The PTX names it, since the pointer to it is a shared or a generic address as the compiler likes. The pointer stands
/// in a comment of the PTX all the same, so that the array counts as used.
#[macro_export]
#[doc(hidden)]
macro_rules! __shared {
    ($symbol:ident, $name:ident, [$element:ty; $length:expr]) => {{
        let address: u32;
        ::core::arch::asm!(
            concat!("mov.u32 {}, ", stringify!($symbol), "; /* {} */"),
            out(reg32) address,
            in(reg64) &raw const $symbol,
            options(pure, nomem, nostack, preserves_flags),
        );
        $crate::device::Shared::<$element, { $length }>::from_address(address)
    }};
}
#[doc(hidden)]
pub use crate::__shared as shared;

/// Declares a static array in constant memory, aligned to 16 bytes, for the host to fill.
#[macro_export]
#[doc(hidden)]
macro_rules! __constant_array {
    ($symbol:ident, $ty:ty) => {
        #[::cuda_std::address_space(constant)]
        #[unsafe(no_mangle)]
        #[allow(non_upper_case_globals)]
        static mut $symbol: ::core::mem::MaybeUninit<[$crate::device::F32x4; size_of::<$ty>().div_ceil(16)]> =
            ::core::mem::MaybeUninit::uninit();
    };
}
#[doc(hidden)]
pub use crate::__constant_array as constant_array;

/// The array that `constant_array!` declared, named in the way of `shared!`.
#[macro_export]
#[doc(hidden)]
macro_rules! __constant {
    ($symbol:ident, $name:ident, [$element:ty; $length:expr]) => {{
        let address: u64;
        ::core::arch::asm!(
            concat!("mov.u64 {}, ", stringify!($symbol), "; /* {} */"),
            out(reg64) address,
            in(reg64) &raw const $symbol,
            options(pure, nomem, nostack, preserves_flags),
        );
        $crate::device::Constant::<$element, { $length }>::from_address(address)
    }};
}
#[doc(hidden)]
pub use crate::__constant as constant;
