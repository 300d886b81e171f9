//! What runs kernels on the host: the requests that the facade makes of it.

use super::{Access, Atomic, Space};
use crate::device::Scope;
use core::panic::Location;

/// What runs kernels on the host. Every call is about the lane that is running on the calling thread.
pub trait Machine {
    /// Carries out an access to element `index` behind the simulated address `base`: a load fills `value`, a store reads
    /// it. Atomics are [`atomic`](Machine::atomic)'s.
    ///
    /// # Safety
    /// `value` points to as many bytes as the access is wide, aligned to as many.
    unsafe fn access(&self, access: Access, base: u64, index: u64, value: *mut u8, at: &'static Location<'static>);

    /// Carries out an atomic at element `index` behind the simulated address `base`; `value`, its operand, is replaced by what stood
    /// there before.
    ///
    /// # Safety
    /// As [`Machine::access`].
    unsafe fn atomic(
        &self,
        access: Access,
        atomic: Atomic,
        base: u64,
        index: u64,
        value: *mut u8,
        at: &'static Location<'static>,
    );

    /// Orders what the lane did before what it does next, for the threads of a scope.
    fn fence(&self, scope: Scope, at: &'static Location<'static>);

    /// The address `bytes` bytes behind `base`. It belongs to the same buffer or shared array, even past its end or
    /// before its beginning.
    fn advance(&self, space: Space, base: u64, bytes: i64) -> u64;

    /// The address of the block's static shared array `name`, which the kernel declares.
    fn shared_array(&self, name: &'static str, at: &'static Location<'static>) -> u32;

    /// The simulated address of the kernel's constant array `name`, of `bytes` bytes.
    fn constant_array(&self, name: &'static str, bytes: usize, at: &'static Location<'static>) -> u64;

    /// The address of the block's dynamic shared memory.
    fn dynamic_shared(&self, at: &'static Location<'static>) -> u32;

    /// Waits for the block.
    fn sync_threads(&self, at: &'static Location<'static>);

    /// Waits for the lanes in `mask`.
    fn sync_warp(&self, mask: u32, at: &'static Location<'static>);

    /// Waits for the lanes in `mask`, and returns the value that lane `source` brought.
    fn exchange(&self, mask: u32, value: u32, source: u32, at: &'static Location<'static>) -> u32;

    /// The lane has no step left ([`Lane::left`](super::Lane::left)), or has begun [`PAUSE`] more iterations of the loop
    /// at `at`. `is_far`: it has no step left, or the loop is the outermost.
    fn pause(&self, is_far: bool, at: &'static Location<'static>);

    /// How many calls of the facade the lane has made.
    fn clock(&self, at: &'static Location<'static>) -> u64;

    /// The lane has ended. Returns whether the calling thread goes on as another lane, which begins.
    fn end(&self) -> bool;
}

/// Iterations of a loop between two pauses.
pub const PAUSE: u64 = 1 << 12;

/// Steps of loops, and calls of the machine that are no accesses, between two signs of life.
pub const STEPS: u64 = 1 << 12;
