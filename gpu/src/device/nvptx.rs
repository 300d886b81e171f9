//! The facade by rustc's own NVPTX back end.

pub use super::ptx::*;
use core::arch::{asm, nvptx};

#[inline(always)]
pub(super) fn sync_threads() {
    // SAFETY: a barrier has no precondition that memory safety rests on.
    unsafe { nvptx::_syncthreads() };
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

unsafe extern "C" {
    // Intrinsics, as in `ptx.rs`; rust-cuda lacks these, or cannot pass their predicates.
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn vote_ballot_sync(mask: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.vote.any.sync"]
    fn vote_any_sync(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.all.sync"]
    fn vote_all_sync(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.activemask"]
    fn active_mask() -> u32;
    #[link_name = "llvm.nvvm.redux.sync.add"]
    fn redux_sync_add(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umin"]
    fn redux_sync_umin(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umax"]
    fn redux_sync_umax(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.min"]
    fn redux_sync_min(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.max"]
    fn redux_sync_max(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.and"]
    fn redux_sync_and(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.or"]
    fn redux_sync_or(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.xor"]
    fn redux_sync_xor(value: u32, mask: u32) -> u32;
}

#[inline(always)]
pub(super) fn ballot(mask: u32, predicate: bool) -> u32 {
    // SAFETY: a vote moves registers alone.
    unsafe { vote_ballot_sync(mask, predicate) }
}

#[inline(always)]
pub(super) fn any(mask: u32, predicate: bool) -> bool {
    // SAFETY: as above.
    unsafe { vote_any_sync(mask, predicate) }
}

#[inline(always)]
pub(super) fn all(mask: u32, predicate: bool) -> bool {
    // SAFETY: as above.
    unsafe { vote_all_sync(mask, predicate) }
}

#[inline(always)]
pub(super) fn activemask() -> u32 {
    // SAFETY: reads a register.
    unsafe { active_mask() }
}

macro_rules! reductions { ($($name:ident: $intrinsic:ident)*) => { $(
    #[inline(always)]
    pub(super) fn $name(mask: u32, value: u32) -> u32 {
        // SAFETY: a reduction moves registers alone.
        unsafe { $intrinsic(value, mask) }
    }
)* } }
reductions! {
    redux_add: redux_sync_add
    redux_min_unsigned: redux_sync_umin
    redux_max_unsigned: redux_sync_umax
    redux_min_signed: redux_sync_min
    redux_max_signed: redux_sync_max
    reduce_and: redux_sync_and
    reduce_or: redux_sync_or
    reduce_xor: redux_sync_xor
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

/// Makes a kernel an entry of the PTX.
#[macro_export]
#[doc(hidden)]
macro_rules! __entry {
    ($(#[doc = $doc:literal])* $(#[allow($($allow:tt)*)])* #[documentation($documentation:literal)]
     #[shared($($shared:ident: $tile:ty),*)] #[constants($($constant:ident: $array:ty),*)]
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

/// Declares a static array in constant memory, for the host to fill.
#[macro_export]
#[doc(hidden)]
macro_rules! __constant_array {
    ($symbol:ident, $ty:ty) => {
        ::core::arch::global_asm!(
            concat!(".visible .const .align 16 .b8 ", stringify!($symbol), "[{bytes}];"),
            bytes = const size_of::<$ty>(),
        );
    };
}
#[doc(hidden)]
pub use crate::__constant_array as constant_array;

/// The array that `constant_array!` declared.
#[macro_export]
#[doc(hidden)]
macro_rules! __constant {
    ($symbol:ident, $name:ident, [$element:ty; $length:expr]) => {{
        let address: u64;
        ::core::arch::asm!(
            concat!("mov.u64 {}, ", stringify!($symbol), ";"),
            out(reg64) address,
            options(pure, nomem, nostack, preserves_flags),
        );
        $crate::device::Constant::<$element, { $length }>::from_address(address)
    }};
}
#[doc(hidden)]
pub use crate::__constant as constant;
