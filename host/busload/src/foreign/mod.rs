//! Kernels of anybody's PTX, launched as a launch file says.

pub mod element;
pub mod file;
pub mod npy;
