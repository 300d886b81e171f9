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
