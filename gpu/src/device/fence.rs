//! Fences: what a thread did before one is seen by others before what it does behind it.
//!
//! That takes two sides. A thread that hands something on writes it, fences, and tells of it by an atomic or a volatile
//! store; one that takes it over hears of it by an atomic or a volatile load, and reads it behind a fence or a barrier.

use super::{Scope, backend};

/// A fence for the threads of the block (`membar.cta`, CUDA's `__threadfence_block`).
#[inline(always)]
#[track_caller]
pub fn threadfence_block() {
    backend::fence(Scope::Block);
}

/// A fence for the threads of the device (`membar.gl`, CUDA's `__threadfence`).
#[inline(always)]
#[track_caller]
pub fn threadfence() {
    backend::fence(Scope::Device);
}

/// A fence for all threads of the system, those of the host and of other GPUs too (`membar.sys`, CUDA's
/// `__threadfence_system`).
#[inline(always)]
#[track_caller]
pub fn threadfence_system() {
    backend::fence(Scope::System);
}
