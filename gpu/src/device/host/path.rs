//! Loops and calls. A lane's path is a hash of the iterations and calls it is in: lanes at one source position on one
//! path make one request.

use super::lane::{anybody, lane};
use super::{Lane, PAUSE};
use core::panic::Location;

/// From the path of an iteration to that of the next: the golden ratio in 64 bits, an odd number without a pattern.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The path from `path` on through `at`, the head of a loop or a call.
#[inline(always)]
fn through(path: u64, at: &'static Location<'static>) -> u64 {
    let step = core::ptr::from_ref(at).addr() as u64;
    let mixed = (path ^ step.wrapping_mul(SPREAD)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 29)
}

/// A loop whose iterations the machine sees, from `begin` until it ends or is dropped.
#[doc(hidden)]
pub struct Loop {
    at: &'static Location<'static>,
    /// The lane that runs through it.
    lane: *mut Lane,
    /// The path outside of it.
    outside: u64,
    /// Iterations so far.
    iterations: u64,
}

impl Loop {
    /// The loop at the caller's position, before it begins.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn here() -> Self {
        let lane = anybody();
        // SAFETY: the lane is running.
        Self { at: Location::caller(), lane, outside: unsafe { (*lane).path }, iterations: 0 }
    }

    #[doc(hidden)]
    #[inline(always)]
    pub fn begin(&mut self) {
        // SAFETY: the lane is running.
        let path = unsafe { &mut (*self.lane).path };
        self.outside = *path;
        *path = through(*path, self.at);
    }

    #[doc(hidden)]
    #[inline(always)]
    pub fn next(&mut self) {
        self.iterations = self.iterations.wrapping_add(1);
        // SAFETY: the lane is running.
        let lane = unsafe { &mut *self.lane };
        lane.path = lane.path.wrapping_add(SPREAD);
        lane.left = lane.left.wrapping_sub(1);
        if self.iterations.is_multiple_of(PAUSE) || lane.left == 0 {
            // Outside of every loop the path is that of the calls alone.
            pause(lane.left == 0 || self.outside == lane.call.path, self.at);
        }
    }

    /// What follows is outside of the loop.
    #[doc(hidden)]
    #[inline(always)]
    pub fn end(&mut self) {
        // SAFETY: the lane is running.
        unsafe { (*self.lane).path = self.outside };
    }
}

#[cold]
#[inline(never)]
fn pause(is_far: bool, at: &'static Location<'static>) {
    // Outside of any kernel there is nobody to tell.
    // SAFETY: the lane is valid, and its machine outlives it.
    if let Some(machine) = unsafe { (*lane()).machine } {
        // SAFETY: as above.
        unsafe { machine.as_ref() }.pause(is_far, at);
    }
}

impl Drop for Loop {
    #[inline(always)]
    fn drop(&mut self) {
        self.end();
    }
}

/// The calls of device functions that a lane is in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call {
    /// A hash of all of them; 0 if there is none.
    pub path: u64,
    /// The innermost.
    pub at: Option<&'static Location<'static>>,
}

/// A call of a device function, from `enter` until it is dropped: what the function does happens on the call's path.
#[doc(hidden)]
pub struct Called {
    lane: *mut Lane,
    /// The path and the call outside of it.
    outside: (u64, Call),
}

impl Called {
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn enter() -> Self {
        let (at, lane) = (Location::caller(), anybody());
        // SAFETY: the lane is running.
        let Lane { path, call, .. } = unsafe { &mut *lane };
        let outside = (*path, *call);
        *path = through(*path, at);
        *call = Call { path: through(call.path, at), at: Some(at) };
        Self { lane, outside }
    }
}

impl Drop for Called {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the lane is running.
        unsafe { ((*self.lane).path, (*self.lane).call) = self.outside };
    }
}

/// A device function: each call of it, told by the caller's position, is a path of its own.
#[macro_export]
#[doc(hidden)]
macro_rules! __function {
    ([$($head:tt)*] $body:block) => {
        #[track_caller]
        $($head)* {
            let _called = $crate::device::host::Called::enter();
            // A closure, since positions in a function that tracks its caller would be the caller's.
            #[allow(clippy::redundant_closure_call, reason = "as said")]
            (move || $body)()
        }
    };
}
#[doc(hidden)]
pub use crate::__function as function;

/// A call of a closure, which is a path of its own likewise.
#[macro_export]
#[doc(hidden)]
macro_rules! __call {
    ($($call:tt)*) => {{
        let _called = $crate::device::host::Called::enter();
        $($call)*
    }};
}
#[doc(hidden)]
pub use crate::__call as call;
