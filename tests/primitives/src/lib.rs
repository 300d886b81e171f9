//! Small kernels, a file a group of the facade's primitives, each kernel with its reference and its counts in closed form.
//!
//! They are no curriculum: each asks one thing of a machine, so that every machine can be held to it, and Nsight Compute's
//! counters to the simulator's. The crate compiles for a GPU as the suite does.

#![no_std]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features, missing_docs, clippy::missing_safety_doc))]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch, link_llvm_intrinsics, stdarch_nvptx))]

/// Makes the block's bins `before`, has each thread do something to one, and stores the bins.
macro_rules! with_bins {
    ($bins:ident, $dst:ident, $before:expr, |$t:ident, $i:ident| $change:expr) => {
        let ($t, $i) = (thread::thread_idx_x(), thread::index_x());
        $bins.store($t, $before);
        sync_threads();
        $change;
        sync_threads();
        $dst.store($i, $bins.load($t));
    };
}

macro_rules! families {
    ($($(#[$doc:meta])* $family:ident)*) => {
        $($(#[$doc])* pub mod $family;)*
        gpu::device::host_only! {
            /// Every family, in the order of the facade's files.
            pub static FAMILIES: &[&gpu::suite::Family] = &[$(&$family::FAMILY),*];
        }
    };
}

families! {
    /// Where a thread stands.
    places
    /// Scalars side by side.
    vectors
    /// Atomics on global memory.
    atomic_global
    /// Atomics on shared memory.
    atomic_shared
    /// Those that become loops.
    atomic_shared_loop
    /// Fences and volatile accesses.
    fence
    /// From global to shared memory.
    copies
    /// Values from lane to lane.
    shuffles
    /// What a warp finds out about all its lanes.
    votes
    /// Arrays that a thread has for itself.
    locals
    /// Approximate functions.
    math
    /// Bytes of two words, put together to a third.
    bytes
}
