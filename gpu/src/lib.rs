//! busload's kernels, and the facade they reach memory through.
//!
//! One source, three machines: the PTX of a GPU by rustc's own NVPTX back end or by rust-cuda's, and the simulator on
//! the host, which runs the same functions lane by lane.
//!
//! - [`kernels`]: one family of access patterns a file, from naive to best.
//! - [`device`]: what a kernel may use: thread indices, typed loads and stores, barriers, shuffles.
//! - `suite`: what a family says of its kernels (launch, buffers, reference, expected counts); host only.

// rust-cuda says it by itself.
#![cfg_attr(not(feature = "nvvm"), no_std)]
// Inline PTX and the convergent intrinsics of warps, and kernels as entries: what stable Rust does not offer yet.
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch, link_llvm_intrinsics))]
#![cfg_attr(all(target_arch = "nvptx64", not(feature = "nvvm")), feature(abi_ptx, stdarch_nvptx))]

pub mod device;
pub mod kernels;

device::host_only! {
    extern crate alloc;
    pub mod suite;
}
