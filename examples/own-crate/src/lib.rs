//! Kernels in a crate of their own: a histogram and a stencil, each a family from naive to best.

pub mod histogram;
pub mod stencil;

use busload::prelude::*;

family! {
    /// The families, in the order in which they are listed and run.
    pub static FAMILIES: &[&Family] = &[&histogram::FAMILY, &stencil::FAMILY];
}
