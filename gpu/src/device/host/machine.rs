//! What runs kernels on the host: the requests that the facade makes of it.

use super::{Access, Atomic, Space};
use crate::device::Scope;
use core::panic::Location;

/// What lanes make of the values that they bring to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// The value of that lane.
    Lane(u32),
    /// The lanes whose value is not 0, a bit each.
    Ballot,
    /// The lanes that bring the same value, a bit each.
    Match,
    /// The sum, in 32 bits.
    Add,
    /// The least, of 32 bits without a sign.
    MinUnsigned,
    /// The greatest, of 32 bits without a sign.
    MaxUnsigned,
    /// The least, of 32 bits with a sign.
    MinSigned,
    /// The greatest, of 32 bits with a sign.
    MaxSigned,
    /// The bits of all.
    And,
    /// The bits of any.
    Or,
    /// The bits of an odd number of them.
    Xor,
}

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

    /// Waits for the lanes in `mask`, and returns what `exchange` makes of the values that they brought.
    fn exchange(&self, mask: u32, value: u64, exchange: Exchange, at: &'static Location<'static>) -> u64;

    /// The lanes that are here together with this one, a bit each.
    fn active_mask(&self, at: &'static Location<'static>) -> u32;

    /// Begins to copy an element to shared memory. `load` and `store` are the accesses, `from` and `to` the simulated address and
    /// the index that each goes to.
    fn copy_async(&self, load: Access, from: (u64, u64), store: Access, to: (u64, u64), at: &'static Location<'static>);

    /// Makes a group of the copies that the lane has begun since the last one.
    fn commit_copies(&self, at: &'static Location<'static>);

    /// Waits until the lane's copies have arrived: all, or those of its groups but the last `but` ones.
    fn wait_copies(&self, but: Option<u32>, at: &'static Location<'static>);

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
