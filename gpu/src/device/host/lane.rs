//! The lane that is running on the calling thread: where it stands, what is expected of it, and how it ends.

// For one thread-local: nothing else of the crate takes it.
extern crate std;

use super::{Call, Expected, Machine, STEPS, Site};
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where the running lane stands, along x, y and z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coordinates {
    /// `threadIdx`.
    pub thread_idx: [u32; 3],
    /// `blockIdx`.
    pub block_idx: [u32; 3],
    /// `blockDim`.
    pub block_dim: [u32; 3],
    /// `gridDim`.
    pub grid_dim: [u32; 3],
}

/// What a lane tells the watch, which runs on another thread.
#[derive(Debug, Default)]
pub struct Watched {
    /// Its thread's number in the block, from 1; 0 while none runs.
    pub thread: AtomicU64,
    last: AtomicU64,
}

impl Watched {
    /// Tells the last access.
    #[inline(always)]
    pub fn tell(&self, site: Site) {
        self.last.store(site.0, Relaxed);
    }

    /// The access told last, if there is one.
    pub fn last(&self) -> Option<Site> {
        let site = Site(self.last.load(Relaxed));
        (site != Site::default()).then_some(site)
    }
}

/// What the facade knows of a lane that is running.
pub struct Lane {
    /// Where it stands.
    pub coordinates: Coordinates,
    /// Its number in its warp.
    pub number: usize,
    /// A hash of the loops' iterations and the calls that it is in; 0 outside of all.
    pub path: u64,
    /// Which calls it is in.
    pub call: Call,
    /// The access that it is expected to make next. Others follow in memory, up to [`Expected::NONE`].
    pub next: *mut Expected,
    /// Steps of loops until the machine is to be called, at least 1.
    pub left: u64,
    /// The first access that is expected of each lane.
    pub first: *mut Expected,
    /// Where in the list the lanes before it ended or came to rest, as long as this lane follows the list too, from
    /// `first` on and without a jump; else null.
    pub end: *const Expected,
    /// The lanes, a bit each, that ended or came to rest there.
    pub ended: u32,
    /// Lanes from this number on do not begin by themselves when the one before ends.
    pub limit: usize,
    /// Where the warp's lanes stand in the block.
    pub thread_idx: *const [u32; 3],
    /// What it tells the watch.
    pub watched: NonNull<Watched>,
    /// Carries out everything that is not expected; it outlives the lane.
    pub machine: Option<NonNull<dyn Machine>>,
}

impl Lane {
    /// One that has not begun, with nothing expected of it and no machine yet.
    pub const fn new(coordinates: Coordinates, watched: NonNull<Watched>) -> Self {
        let nothing = (&raw const NOTHING.0).cast_mut();
        Self {
            coordinates,
            number: 0,
            path: 0,
            call: Call { path: 0, at: None },
            next: nothing,
            left: 1,
            first: nothing,
            end: core::ptr::null(),
            ended: 0,
            limit: 0,
            thread_idx: core::ptr::null(),
            watched,
            machine: None,
        }
    }

    /// Begins as lane `number` of the warp, which exists.
    #[inline(always)]
    pub fn begin(&mut self, number: usize) {
        (self.number, self.path, self.next, self.left) = (number, 0, self.first, STEPS);
        self.call = Call { path: 0, at: None };
        // SAFETY: the warp has this lane; the watch lives as long as the machine.
        unsafe {
            self.coordinates.thread_idx = *self.thread_idx.add(number);
            let thread = &self.watched.as_ref().thread;
            thread.store(thread.load(Relaxed).wrapping_add(1), Relaxed);
        }
    }
}

std::thread_local! {
    /// The lane that is running on this thread, or [`NOBODY`]; never null.
    static LANE: Cell<*mut Lane> = const { Cell::new((&raw const NOBODY.0).cast_mut()) };
}

/// Stands where no lane is running.
struct Nobody(Lane);

// SAFETY: it is never written, since nothing is expected of it and it has no machine.
unsafe impl Sync for Nobody {}

static NOBODY: Nobody = Nobody(Lane::new(NOWHERE, NonNull::dangling()));

const NOWHERE: Coordinates = Coordinates { thread_idx: [0; 3], block_idx: [0; 3], block_dim: [0; 3], grid_dim: [0; 3] };

/// What is expected of a lane before its machine says what.
struct Nothing(Expected);

// SAFETY: it is never written, since it is equal to no access.
unsafe impl Sync for Nothing {}

static NOTHING: Nothing = Nothing(Expected::NONE);

#[cold]
fn no_machine() -> ! {
    panic!("a kernel was called without a machine to run it: launch it through the simulator")
}

/// Makes `lane` the one that kernels run as on the calling thread, or none.
///
/// # Safety
/// The lane is valid until another takes its place, and nobody refers to it while a kernel runs.
pub unsafe fn run_as(lane: Option<NonNull<Lane>>) {
    LANE.set(lane.map_or((&raw const NOBODY.0).cast_mut(), NonNull::as_ptr));
}

/// The lane that is running, or [`NOBODY`].
#[inline(always)]
pub(super) fn lane() -> *mut Lane {
    LANE.get()
}

/// The lane that is running, to be written to. Where none is, a scratch lane: references call device functions too, and
/// their loops run outside of any kernel.
#[inline(always)]
pub(super) fn anybody() -> *mut Lane {
    std::thread_local! {
        static SCRATCH: UnsafeCell<Lane> = const { UnsafeCell::new(Lane::new(NOWHERE, NonNull::dangling())) };
    }
    match lane() {
        nobody if core::ptr::eq(nobody, &NOBODY.0) => SCRATCH.with(UnsafeCell::get),
        lane => lane,
    }
}

/// The running lane's machine, to be called at once.
#[inline]
pub(super) fn machine<'a>() -> &'a dyn Machine {
    // SAFETY: the lane is valid, and its machine outlives it.
    unsafe { (*lane()).machine.unwrap_or_else(|| no_machine()).as_ref() }
}

/// Ends the running lane. Returns whether the calling thread goes on as the next lane of the warp, which begins.
#[doc(hidden)]
#[inline(always)]
pub fn end() -> bool {
    // SAFETY: the lane is running, and nobody refers to it. Below its limit, its number is that of a lane of the warp.
    let lane = unsafe { &mut *lane() };
    if !core::ptr::eq(lane.next, lane.end) {
        return end_by_machine();
    }
    lane.ended |= 1 << lane.number;
    let next = lane.number.wrapping_add(1);
    let goes_on = next < lane.limit;
    if goes_on {
        lane.begin(next);
    }
    goes_on
}

#[cold]
#[inline(never)]
fn end_by_machine() -> bool {
    machine().end()
}
