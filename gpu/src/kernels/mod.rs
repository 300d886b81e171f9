//! The families of kernels, in the order of the curriculum: each a file, from naive to best.
//!
//! A new family is a new file and one line here; a new kernel is a function and an entry in its family's file.

use crate::device::host_only;

macro_rules! families {
    ($($(#[$doc:meta])* $family:ident)*) => {
        $($(#[$doc])* pub mod $family;)*
        host_only! {
            /// Every family, in the order of the curriculum.
            pub static FAMILIES: &[&crate::suite::Family] = &[$(&$family::FAMILY),*];

            /// The text of each family's file, in the same order.
            pub static SOURCES: &[&str] = &[$(include_str!(concat!(stringify!($family), ".rs"))),*];

            /// Kernels that are wrong on purpose: no PTX has them, and the simulator must refuse them.
            pub static COUNTEREXAMPLES: &[(&crate::suite::Family, &[crate::suite::Entry])] =
                &[(&sync::FAMILY, sync::COUNTEREXAMPLES)];
        }
    };
}

families! {
    copy
    offset
    strided
    pattern
    dtype
    vectorize
    cache_path
    constant
    transpose
    transpose_tiles
    transpose_ragged
    transpose_types
    particles
    gather
    scatter
    spatter
    embedding
    matrix
    batched
    bank
    padding
    latency
    reduce
    sync
    matmul
    sgemm
    sgemm_pipelined
    attention
    nchw
    nchw_tiles
}
