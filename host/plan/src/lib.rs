//! A family's plan of a launch: whether it fits its kernel ([`arguments`]), and whether what the kernel wrote is what the plan
//! says ([`verify`], and of a GPU's memory [`runs`]).
//!
//! It knows no machine that runs kernels.

pub mod arguments;
pub mod runs;
pub mod verify;
