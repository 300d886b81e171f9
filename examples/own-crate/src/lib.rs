//! Kernels of a crate that is no part of busload.

use busload::prelude::*;

pub mod histogram;

family! {
    /// The families, in the order of the curriculum.
    pub static FAMILIES: &[&Family] = &[&histogram::FAMILY];
}
