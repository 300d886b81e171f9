//! What the machine gives a program, each to a bound: files that are read whole but not without end, work in pieces on as many
//! threads as the system starts, memory that is touched page by page, and programs that do not outlive this one.
//!
//! It knows nothing of kernels.

pub mod input;
pub mod interrupt;
pub mod limits;
pub mod pages;
pub mod parallel;
pub mod words;
