//! What a family says of its kernels: cases, launches, buffers, references, and the counts to expect.
//!
//! All of it is data and closed forms over the parameters: nothing here runs a kernel or knows who does.
//!
//! | file | what |
//! | --- | --- |
//! | `case.rs` | axes, their values, and a case |
//! | `plan.rs` | a plan: the launch, buffers, plain values and counts of one kernel on one case |
//! | `launch.rs` | grid and block, and CUDA's limits |
//! | `buffer.rs`, `element.rs` | buffers before and after a run; the types of their elements |
//! | `noise.rs` | inputs |
//! | `counts.rs` | requests, lanes, sectors, lines, wavefronts |
//! | `closed_form.rs` | their closed forms |
//! | `indexed.rs`, `generator.rs` | accesses by a list of indices that moves on; lists as Spatter writes them |
//! | `spatter.rs` | Spatter's configurations, and their plans |

mod buffer;
mod case;
mod closed_form;
mod counts;
mod element;
pub mod generator;
mod indexed;
mod launch;
mod noise;
mod plan;
pub mod spatter;

pub use crate::device::host::{Kernel, Space};
pub use crate::device::{AtomicKind, F32x2, F32x4, Scope, at};
pub use alloc::format;
pub use half::{bf16, f16};

pub use buffer::{Before, Buffer, ExpectedBits, Fill, OTHER_POISON, POISON};
pub use case::{Axis, AxisKind, Case, Value};
pub use closed_form::{Progression, along_rows, constant, copied_past_l1, down_columns, periodic, scattered, warps};
pub use counts::{Counts, Expected, Operation};
pub use element::{Element, ElementType, Scalar};
pub use indexed::{Indexed, gcd, lcm, requests};
pub use launch::{Launch, MOST_SHARED, MOST_STATIC_SHARED};
pub use noise::{noise, noise_bf16, noise_bits, noise_f16, noise_f64, noise_i8};
pub use plan::{Clocked, Library, Plan, PlanError, product};

/// A family of kernels for one access pattern, from naive to best.
pub struct Family {
    /// Its name, the first part of its kernels' names.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub summary: &'static str,
    /// What a case of it varies.
    pub axes: &'static [Axis],
    /// The ladder.
    pub kernels: &'static [Entry],
}

/// A kernel of a family, and how to launch it.
pub struct Entry {
    /// The kernel.
    pub kernel: Kernel,
    /// Its launch, buffers, reference and expected counts for a case.
    pub plan: fn(&Case) -> Result<Plan, PlanError>,
}
