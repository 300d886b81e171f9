//! The GPU: found by its driver at run time, launched, timed, read back, checked around every buffer.
//!
//! It knows kernels and plans, and nothing of what is made of the results. It alone imports `cust`. Built without its feature
//! `driver`, or for another system, it has the same names, and no GPU can be opened.

#[cfg(not(all(feature = "driver", target_os = "linux", target_arch = "x86_64")))]
mod absent;
#[cfg(all(feature = "driver", target_os = "linux", target_arch = "x86_64"))]
mod present;

#[cfg(not(all(feature = "driver", target_os = "linux", target_arch = "x86_64")))]
pub use absent::*;
#[cfg(all(feature = "driver", target_os = "linux", target_arch = "x86_64"))]
pub use present::*;

/// What a parameter of an entry is given that nothing else is known of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The address of a buffer: its number in the plan.
    Buffer(usize),
    /// Its bytes.
    Bytes(Vec<u8>),
}
