//! Kernels of anybody's PTX, launched as a launch file says.

pub mod argument;
pub mod at;
pub mod compare;
pub mod describe;
pub mod element;
pub mod file;
mod fill;
pub mod lines;
pub mod npy;
pub mod on_gpu;
pub mod page;
pub mod parameters;
pub mod prepare;
pub mod record;
pub mod run;
