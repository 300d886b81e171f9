//! Threads of the block: what each waits for, and the stack that it waits on.

use crate::overflow::Overflow;
use crate::place::Place;
use crate::stack::Stack;
use corosensei::Coroutine;
use gpu::device::host::{Call, Exchange};

/// What a lane waits for.
#[derive(Clone, Copy)]
pub(super) enum State {
    /// It has what it waited for.
    Ready,
    /// The block's barrier.
    Block(Place),
    /// The other lanes, some way into a long loop, so that what all have asked for can be counted: the loop's path.
    Loop(u64),
    /// The lanes in a mask, perhaps to exchange values with them.
    Warp { mask: u32, place: Place, exchange: Option<Exchange> },
    /// Whoever comes here together with it, until nobody else can run.
    Together(Place),
    /// It has ended, or not begun: lanes begin in their order.
    Done,
}

/// A thread of the block.
pub(super) struct Lane {
    pub(super) state: State,
    /// The value it brings to an exchange, and then the one it takes away.
    pub(super) value: u64,
    /// Calls it has made, as far as they are added up.
    pub(super) calls: u64,
    /// Which iteration of which loops it is in, while it rests, and which calls.
    pub(super) path: u64,
    pub(super) call: Call,
    /// The stack that it waits on.
    pub(super) stack: Option<Thread>,
}

/// A stack, and the threads that run on it.
pub(super) struct Thread {
    /// In a box, so that a thread is soon put elsewhere.
    pub(super) coroutine: Box<Coroutine<(), (), Overflow, Stack>>,
}

/// Gives up a stack, whatever stands on it. Kernels own nothing, so it is not unwound.
pub(super) fn discard(mut thread: Thread) {
    // SAFETY: a kernel's frames hold nothing that must be dropped: plain values, and loop guards that only speak of a lane
    // that is gone.
    unsafe { thread.coroutine.force_reset() };
    thread.coroutine.into_stack().keep();
}
