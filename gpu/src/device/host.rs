//! The facade on the host: every call goes to the lane that is running, which the simulator names, and to its [`Machine`].
//!
//! The crate knows nothing of the simulator, and stays below it. Here alone it takes `std`, for one thread-local.

extern crate std;

use super::{Cache, F32x2, F32x4, Global, GlobalMut, Value};
use crate::suite::{Element, ElementType, Operation};
use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::panic::Location;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// A state space of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// The memory of the whole grid.
    Global,
    /// The memory of one block.
    Shared,
    /// Memory that the host fills before a launch and kernels only read.
    Constant,
}

impl Space {
    /// Its name in PTX, written out.
    pub const fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Constant => "constant",
        }
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Reads, by a path through the caches.
    Load(Cache),
    /// Writes.
    Store,
    /// Adds in one indivisible step.
    AtomicAdd(Number),
}

impl Op {
    /// A number for each.
    const fn code(self) -> u8 {
        match self {
            Op::Load(cache) => cache as u8,
            Op::Store => 16,
            Op::AtomicAdd(number) => 32 + number as u8,
        }
    }

    /// The same, as far as counts go.
    #[inline(always)]
    pub const fn operation(self) -> Operation {
        match self {
            Op::Load(_) => Operation::Load,
            Op::Store => Operation::Store,
            Op::AtomicAdd(_) => Operation::Atomic,
        }
    }
}

/// The arithmetic of an atomic addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// 32-bit integers, wrapping.
    U32,
    /// 64-bit integers, wrapping.
    U64,
    /// `f32`, whose sum depends on the order of the additions.
    F32,
}

/// What an access is, in one byte that is known when the kernel is compiled: its kind, and its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// How many kinds of access there are, and how many widths.
    const KINDS: usize = Self::EACH.len();
    /// 1 to 16 bytes a lane.
    const WIDTHS: usize = 5;

    /// The kinds. Loads that go by the L1 are one, as far as machines go.
    pub const EACH: [(Space, Op); 9] = [
        (Space::Global, Op::Load(Cache::All)),
        (Space::Global, Op::Load(Cache::Global)),
        (Space::Global, Op::Store),
        (Space::Global, Op::AtomicAdd(Number::U32)),
        (Space::Global, Op::AtomicAdd(Number::U64)),
        (Space::Global, Op::AtomicAdd(Number::F32)),
        (Space::Shared, Op::Load(Cache::All)),
        (Space::Shared, Op::Store),
        (Space::Constant, Op::Load(Cache::All)),
    ];

    /// The access of kind number `kind`, `1 << log_width` bytes wide.
    #[inline(always)]
    pub const fn new(kind: usize, log_width: usize) -> Self {
        assert!(kind < Self::KINDS && log_width < Self::WIDTHS, "no access of this kind and width");
        Self((kind << 3 | log_width) as u8)
    }

    /// The access of `T`. One that is no kind of access does not compile, where it is asked for in a constant.
    const fn of<T>(space: Space, op: Op) -> Self {
        let op = match op {
            Op::Load(Cache::NonCoherent | Cache::Streaming) => Op::Load(Cache::All),
            op => op,
        };
        let mut kind = 0;
        while kind < Self::KINDS {
            let (known_space, known_op) = Self::EACH[kind];
            if known_space as u8 == space as u8 && known_op.code() == op.code() {
                return Self::new(kind, size_of::<T>().trailing_zeros() as usize);
            }
            kind += 1;
        }
        panic!("`Access::EACH` lacks this access")
    }

    /// The byte.
    #[inline(always)]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The access that has this byte.
    ///
    /// # Panics
    /// If none has.
    #[inline(always)]
    pub const fn from_code(code: u8) -> Self {
        Self::new(code as usize >> 3, code as usize & 7)
    }

    /// The number of its kind.
    const fn kind(self) -> usize {
        self.0 as usize >> 3
    }

    const fn log_width(self) -> usize {
        self.0 as usize & 7
    }

    /// Which memory.
    #[inline(always)]
    pub const fn space(self) -> Space {
        Self::EACH[self.kind()].0
    }

    /// What it does.
    #[inline(always)]
    pub const fn op(self) -> Op {
        Self::EACH[self.kind()].1
    }

    /// Bytes a lane.
    #[inline(always)]
    pub const fn width(self) -> usize {
        1 << self.log_width()
    }
}

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

/// A source position with what an access there does, in one word: the position's address, which leaves 16 bits free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site(u64);

impl Site {
    /// The access at a position.
    #[inline(always)]
    pub fn new(at: &'static Location<'static>, access: Access) -> Self {
        Self(core::ptr::from_ref(at).expose_provenance() as u64 | u64::from(access.code()) << 48)
    }

    /// The position.
    pub fn at(self) -> &'static Location<'static> {
        let pointer = core::ptr::with_exposed_provenance::<Location<'static>>((self.0 & (u64::MAX >> 16)) as usize);
        // SAFETY: `new` took the address of a reference that lives for ever.
        unsafe { &*pointer }
    }

    /// What the access does.
    #[inline(always)]
    pub fn access(self) -> Access {
        Access::from_code((self.0 >> 48) as u8)
    }

    /// Which memory.
    #[inline(always)]
    pub fn space(self) -> Space {
        self.access().space()
    }

    /// What it does, as far as counts go.
    #[inline(always)]
    pub fn operation(self) -> Operation {
        self.access().op().operation()
    }

    /// Bytes a lane.
    #[inline(always)]
    pub fn width(self) -> u64 {
        self.access().width() as u64
    }

    /// Whether it goes past the L1: a store, an atomic addition, and a load that says so.
    pub fn is_past_l1(self) -> bool {
        !matches!(self.access().op(), Op::Load(Cache::All))
    }

    /// The same in some iteration of some loops ([`Lane::path`]).
    #[inline(always)]
    fn on(self, path: u64) -> u64 {
        self.0 ^ path
    }
}

/// What a lane tells who watches from another thread.
#[derive(Debug, Default)]
pub struct Watched {
    /// Its thread's number in the block, from 1; 0 while none runs.
    pub thread: AtomicU64,
    last: AtomicU64,
}

impl Watched {
    /// Tells its last access.
    #[inline(always)]
    pub fn tell(&self, site: Site) {
        self.last.store(site.0, Relaxed);
    }

    /// The access told last, if any was.
    pub fn last(&self) -> Option<Site> {
        let site = Site(self.last.load(Relaxed));
        (site != Site::default()).then_some(site)
    }
}

/// An access that a lane is expected to make next, since the lanes before it went on like that. Such an access is made
/// without a call of the machine.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Expected {
    /// The access, and the path on which the lane comes by.
    key: u64,
    /// The pointer that the access goes by: a simulated address.
    base: u64,
    /// The indices from it on that lie in memory at hand: the first, and how many.
    first: u64,
    count: u64,
    /// Where element 0 would stand if it were at hand too.
    elements: *mut u8,
    /// Which index each lane of the warp went to.
    indices: [u64; 32],
}

impl Expected {
    /// Stands behind the last access that is expected: no access is this one.
    pub const NONE: Self =
        Self { key: 0, base: 0, first: 0, count: 0, elements: core::ptr::null_mut(), indices: [0; 32] };

    /// An access at `site` on the loops' `path` by the pointer `base`, with no memory at hand yet.
    pub fn new(site: Site, path: u64, base: u64) -> Self {
        Self { key: site.on(path), base, ..Self::NONE }
    }

    /// The pointer that the access goes by.
    #[inline(always)]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Which index from [`Expected::base`] on each lane went to; those of lanes that did not come by mean nothing.
    #[inline(always)]
    pub fn indices(&self) -> &[u64; 32] {
        &self.indices
    }

    /// If an access is the one that is expected of `lane` next, and its element at hand: enters it, and returns where element
    /// 0 would stand.
    ///
    /// # Safety
    /// The lane is valid, and nobody refers to it or to what is expected of it.
    #[inline(always)]
    pub unsafe fn meet(lane: *mut Lane, site: Site, base: u64, index: u64) -> Option<*mut u8> {
        // SAFETY: `next` is one of the accesses expected of the lane or what stands behind them, which has no element at
        // hand. The lane's number is that of a lane.
        unsafe {
            let next = (*lane).next;
            let at_hand = index.wrapping_sub((*next).first) < (*next).count;
            if (*next).key != site.on((*lane).path) || (*next).base != base || !at_hand {
                return None;
            }
            (*lane).watched.as_ref().tell(site);
            (&raw mut (*next).indices).cast::<u64>().add((*lane).number).write(index);
            (*lane).next = next.add(1);
            Some((*next).elements)
        }
    }

    /// Enters that a lane went to an index.
    #[inline(always)]
    pub fn enter(&mut self, lane: usize, index: u64) {
        self.indices[lane] = index;
    }

    /// From now on, elements `first` to `first + count` are at hand; element 0 would stand at `elements`.
    ///
    /// # Safety
    /// As long as this one is expected, those elements are memory as wide as the access and aligned to it, which is
    /// accessed atomically or by one thread alone.
    pub unsafe fn lay_at_hand(&mut self, first: u64, count: u64, elements: *mut u8) {
        (self.first, self.count, self.elements) = (first, count, elements);
    }
}

/// A lane that is running, as far as the facade knows it.
pub struct Lane {
    /// Where it stands.
    pub coordinates: Coordinates,
    /// Its number in its warp.
    pub number: usize,
    /// Which iteration of which loops and which calls it is in, as a hash; 0 outside of all.
    pub path: u64,
    /// Which calls it is in.
    pub call: Call,
    /// The access that is expected of it next. Others follow, up to [`Expected::NONE`].
    pub next: *mut Expected,
    /// How many steps of loops, at least 1, are left to it until the machine wants to be called.
    pub left: u64,
    /// The accesses that are expected of lanes as they begin.
    pub first: *mut Expected,
    /// Where the last of those before it ended or came to rest, if they went there from `first` on one after another and so
    /// does this one; else null.
    pub end: *const Expected,
    /// Those that ended there, or came to rest after the same accesses.
    pub ended: u32,
    /// The number of the lane behind the last one that begins when this one ends.
    pub limit: usize,
    /// Where the warp's lanes stand in the block.
    pub thread_idx: *const [u32; 3],
    /// What it tells.
    pub watched: NonNull<Watched>,
    /// What does everything that is not expected; it outlives the lane.
    pub machine: Option<NonNull<dyn Machine>>,
}

/// What runs kernels on the host. Every call is about the lane that is running on the calling thread.
pub trait Machine {
    /// Carries out an access to element `index` from `base` on, a simulated address: a load fills `value`, a store reads
    /// it, an atomic addition replaces the addend by the old value.
    ///
    /// # Safety
    /// `value` points to as many bytes as the access is wide, aligned to as many.
    unsafe fn access(&self, access: Access, base: u64, index: u64, value: *mut u8, at: &'static Location<'static>);

    /// The address `bytes` bytes behind `base`, which stays in the same buffer or shared array: past its end or before its
    /// begin if need be.
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

    /// In the loop at `at`, no step is left ([`Lane::left`]), or [`PAUSE`] more iterations have begun. The lane `is_far` if no
    /// step is left, or the loop is in no other one.
    fn pause(&self, is_far: bool, at: &'static Location<'static>);

    /// How many calls the lane has made.
    fn clock(&self, at: &'static Location<'static>) -> u64;

    /// The lane has ended. Says whether the calling thread goes on as another one, which begins.
    fn end(&self) -> bool;
}

/// Iterations of a loop between two pauses.
pub const PAUSE: u64 = 1 << 12;

/// Steps of loops, and calls of the machine that are no accesses, between two signs of life.
pub const STEPS: u64 = 1 << 12;

std::thread_local! {
    /// The lane that is running on this thread; never null.
    static LANE: Cell<*mut Lane> = const { Cell::new((&raw const NOBODY.0).cast_mut()) };
}

/// Stands where no lane is running.
struct Nobody(Lane);

// SAFETY: nothing is expected of it and it has no machine, so that nobody writes it.
unsafe impl Sync for Nobody {}

static NOBODY: Nobody = Nobody(Lane::new(NOWHERE, NonNull::dangling()));

const NOWHERE: Coordinates = Coordinates { thread_idx: [0; 3], block_idx: [0; 3], block_dim: [0; 3], grid_dim: [0; 3] };

/// What is expected where no lane is running.
struct Nothing(Expected);

// SAFETY: no access is this one, so that nobody writes it.
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

#[inline(always)]
fn lane() -> *mut Lane {
    LANE.get()
}

/// The same to be written to; where no lane is running, one that means nothing: device functions and their loops are
/// ordinary code, which references may call too.
#[inline(always)]
fn anybody() -> *mut Lane {
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
fn machine<'a>() -> &'a dyn Machine {
    // SAFETY: the lane is valid, and its machine outlives it.
    unsafe { (*lane()).machine.unwrap_or_else(|| no_machine()).as_ref() }
}

/// Where the element of an access of `T` stands that the running lane makes by itself.
#[inline(always)]
fn expected<T>(site: Site, base: u64, index: u64) -> Option<*mut T> {
    // SAFETY: the lane is running.
    let elements = unsafe { Expected::meet(lane(), site, base, index) }?;
    Some(elements.cast::<T>().wrapping_add(index as usize))
}

/// Has the machine carry out an access.
///
/// # Safety
/// As [`Machine::access`].
#[cold]
#[inline(never)]
unsafe fn unexpected(access: Access, base: u64, index: u64, value: *mut u8, at: &'static Location<'static>) {
    // SAFETY: the caller's promise.
    unsafe { machine().access(access, base, index, value, at) };
}

/// Copies a value out of memory that other threads access too, atomically up to 8 bytes.
///
/// # Safety
/// `element` is memory of the machine, as wide as the value and aligned to it, and only accessed by these two functions.
#[inline(always)]
pub unsafe fn read<T: Value>(element: *const T) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let to = value.as_mut_ptr();
    // SAFETY: the caller's promise; every bit pattern is a `Value`.
    unsafe {
        match size_of::<T>() {
            1 => to.cast::<u8>().write((*element.cast::<AtomicU8>()).load(Relaxed)),
            2 => to.cast::<u16>().write((*element.cast::<AtomicU16>()).load(Relaxed)),
            4 => to.cast::<u32>().write((*element.cast::<AtomicU32>()).load(Relaxed)),
            bytes => {
                for word in 0..bytes / 8 {
                    to.cast::<u64>().add(word).write((*element.cast::<AtomicU64>().add(word)).load(Relaxed));
                }
            }
        }
        value.assume_init()
    }
}

/// Copies a value to memory that other threads access too, atomically up to 8 bytes.
///
/// # Safety
/// As [`read`].
#[inline(always)]
pub unsafe fn write<T: Value>(element: *mut T, value: T) {
    let from = &raw const value;
    // SAFETY: the caller's promise.
    unsafe {
        match size_of::<T>() {
            1 => (*element.cast::<AtomicU8>()).store(from.cast::<u8>().read(), Relaxed),
            2 => (*element.cast::<AtomicU16>()).store(from.cast::<u16>().read(), Relaxed),
            4 => (*element.cast::<AtomicU32>()).store(from.cast::<u32>().read(), Relaxed),
            bytes => {
                for word in 0..bytes / 8 {
                    (*element.cast::<AtomicU64>().add(word)).store(from.cast::<u64>().add(word).read(), Relaxed);
                }
            }
        }
    }
}

#[inline]
#[track_caller]
pub(super) unsafe fn global_load<T: Value>(base: u64, index: usize, cache: Cache) -> T {
    let access = match cache {
        Cache::All | Cache::NonCoherent | Cache::Streaming => {
            const { Access::of::<T>(Space::Global, Op::Load(Cache::All)) }
        }
        Cache::Global => const { Access::of::<T>(Space::Global, Op::Load(Cache::Global)) },
    };
    load(access, base, index as u64)
}

#[inline]
#[track_caller]
pub(super) unsafe fn global_store<T: Value>(base: u64, index: usize, value: T) {
    store(const { Access::of::<T>(Space::Global, Op::Store) }, base, index as u64, value);
}

#[inline]
#[track_caller]
pub(super) unsafe fn shared_load<T: Value>(address: u32, index: u32) -> T {
    load(const { Access::of::<T>(Space::Shared, Op::Load(Cache::All)) }, address.into(), index.into())
}

#[inline]
#[track_caller]
pub(super) unsafe fn shared_store<T: Value>(address: u32, index: u32, value: T) {
    store(const { Access::of::<T>(Space::Shared, Op::Store) }, address.into(), index.into(), value);
}

#[inline]
#[track_caller]
pub(super) unsafe fn constant_load<T: Value>(base: u64, index: u32) -> T {
    load(const { Access::of::<T>(Space::Constant, Op::Load(Cache::All)) }, base, index.into())
}

pub(super) fn global_element<T>(base: u64, index: usize) -> u64 {
    machine().advance(Space::Global, base, (index as i64).saturating_mul(size_of::<T>() as i64))
}

pub(super) fn shared_element<T>(address: u32, index: u32) -> u32 {
    machine().advance(Space::Shared, address.into(), i64::from(index.cast_signed()) * size_of::<T>() as i64) as u32
}

#[inline]
#[track_caller]
pub(super) unsafe fn global_atomic_add<T: AtomicAddBackend>(base: u64, index: usize, mut value: T) -> T {
    let add = const { Access::of::<T>(Space::Global, Op::AtomicAdd(T::NUMBER)) };
    // SAFETY: `value` is as wide and as aligned as the access.
    unsafe { unexpected(add, base, index as u64, (&raw mut value).cast(), Location::caller()) };
    value
}

#[inline(always)]
#[track_caller]
fn load<T: Value>(access: Access, base: u64, index: u64) -> T {
    let at = Location::caller();
    if let Some(element) = expected(Site::new(at, access), base, index) {
        // SAFETY: it is at hand.
        return unsafe { read(element) };
    }
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: `value` is as wide and as aligned as the access, which fills it; every bit pattern is a `Value`.
    unsafe {
        unexpected(access, base, index, value.as_mut_ptr().cast(), at);
        value.assume_init()
    }
}

#[inline(always)]
#[track_caller]
fn store<T: Value>(access: Access, base: u64, index: u64, mut value: T) {
    let at = Location::caller();
    match expected(Site::new(at, access), base, index) {
        // SAFETY: it is at hand.
        Some(element) => unsafe { write(element, value) },
        // SAFETY: `value` is as wide and as aligned as the access.
        None => unsafe { unexpected(access, base, index, (&raw mut value).cast(), at) },
    }
}

/// A type whose atomic addition the machine knows.
pub trait AtomicAddBackend: Value {
    /// Its arithmetic.
    const NUMBER: Number;
}
impl AtomicAddBackend for u32 {
    const NUMBER: Number = Number::U32;
}
impl AtomicAddBackend for i32 {
    const NUMBER: Number = Number::U32;
}
impl AtomicAddBackend for u64 {
    const NUMBER: Number = Number::U64;
}
impl AtomicAddBackend for f32 {
    const NUMBER: Number = Number::F32;
}

#[inline]
#[track_caller]
pub(super) fn sync_threads() {
    machine().sync_threads(Location::caller());
}

#[inline]
#[track_caller]
pub(super) fn sync_warp(mask: u32) {
    machine().sync_warp(mask, Location::caller());
}

#[inline]
#[track_caller]
pub(super) fn shuffle_down(mask: u32, value: u32, delta: u32) -> u32 {
    // The instruction takes five bits of the distance.
    let own = lane_id();
    let source = own + (delta & 31);
    shuffle(mask, value, if source < 32 { source } else { own })
}

#[inline]
#[track_caller]
pub(super) fn shuffle_xor(mask: u32, value: u32, xor: u32) -> u32 {
    shuffle(mask, value, lane_id() ^ (xor & 31))
}

#[inline]
#[track_caller]
pub(super) fn shuffle(mask: u32, value: u32, source: u32) -> u32 {
    machine().exchange(mask, value, source & 31, Location::caller())
}

#[inline]
pub(super) fn lane_id() -> u32 {
    // SAFETY: the lane is running.
    unsafe { (*lane()).number as u32 }
}

macro_rules! coordinates { ($($name:ident: $which:ident[$axis:literal])*) => { $(
    #[inline]
    pub(super) fn $name() -> u32 {
        // SAFETY: the lane is running, and its place is read at once.
        unsafe { (*lane()).coordinates.$which[$axis] }
    }
)* } }
coordinates! {
    thread_idx_x: thread_idx[0]
    thread_idx_y: thread_idx[1]
    thread_idx_z: thread_idx[2]
    block_idx_x: block_idx[0]
    block_idx_y: block_idx[1]
    block_idx_z: block_idx[2]
    block_dim_x: block_dim[0]
    block_dim_y: block_dim[1]
    block_dim_z: block_dim[2]
    grid_dim_x: grid_dim[0]
    grid_dim_y: grid_dim[1]
    grid_dim_z: grid_dim[2]
}

/// `block_idx_x * block_dim_x + thread_idx_x`, all asked for at once.
#[inline]
pub(super) fn index_x() -> usize {
    // SAFETY: as above.
    let Coordinates { thread_idx, block_idx, block_dim, .. } = unsafe { &(*lane()).coordinates };
    block_idx[0] as usize * block_dim[0] as usize + thread_idx[0] as usize
}

#[track_caller]
pub(super) fn clock() -> u64 {
    machine().clock(Location::caller())
}

#[track_caller]
pub(super) fn dynamic_shared() -> u32 {
    machine().dynamic_shared(Location::caller())
}

pub(super) fn fma(a: f32, b: f32, c: f32) -> f32 {
    libm::fmaf(a, b, c)
}

/// Ends the running lane. Says whether the calling thread goes on as the next one of its warp, which begins.
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

impl Lane {
    /// One that has not begun, of which nothing is expected and which has no machine yet.
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

/// From the path of an iteration to that of the next: an odd number with its bits all over, the golden ratio in 64 bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The path that leads on from `path` through `at`: a loop's head, or a call.
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
    /// A loop that stands here. Nothing is in it before it begins.
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
            // Outside of a loop the path is that of the calls alone.
            pause(lane.left == 0 || self.outside == lane.call.path, self.at);
        }
    }

    /// Whatever follows stands behind the loop.
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
    // Where no lane is running nobody wants to hear of it.
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

/// The calls of device functions that lead to where a lane is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call {
    /// All of them, as a hash; 0 if there is none.
    pub path: u64,
    /// The innermost.
    pub at: Option<&'static Location<'static>>,
}

/// A call of a device function, from `enter` until it is dropped: what the function does belongs to the call.
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

/// A kernel's parameter, as the host hands it over: one 64-bit word.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a kernel's parameter",
    label = "no parameter of a kernel",
    note = "a kernel takes buffers, as `Global<f32>` to read and `GlobalMut<f32>` to write, and plain values: `u32`, `i32`, \
            `u64`, `usize`, `f32`"
)]
pub trait Parameter: Sized {
    /// What the parameter is.
    const KIND: ParameterKind;

    /// The parameter from its word.
    fn from_word(word: u64) -> Self;
}

/// What a kernel's parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A buffer the kernel reads, of such elements.
    Global(Element),
    /// A buffer the kernel may write, of such elements.
    GlobalMut(Element),
    /// A plain value.
    Plain(Element),
}

/// What a kernel's pointer leads to.
#[diagnostic::on_unimplemented(
    message = "no buffer holds elements of type `{Self}`",
    note = "let the kernel take a pointer to scalars, and `cast` it"
)]
pub trait Pointee {
    /// The elements of the buffer.
    const ELEMENT: Element;
}

impl<T: ElementType> Pointee for T {
    const ELEMENT: Element = <T as ElementType>::ELEMENT;
}
impl Pointee for F32x2 {
    const ELEMENT: Element = Element::F32;
}
impl Pointee for F32x4 {
    const ELEMENT: Element = Element::F32;
}

impl<T: Pointee> Parameter for Global<T> {
    const KIND: ParameterKind = ParameterKind::Global(T::ELEMENT);
    fn from_word(word: u64) -> Self {
        Self(word, core::marker::PhantomData)
    }
}

impl<T: Pointee> Parameter for GlobalMut<T> {
    const KIND: ParameterKind = ParameterKind::GlobalMut(T::ELEMENT);
    fn from_word(word: u64) -> Self {
        Self(word, core::marker::PhantomData)
    }
}

macro_rules! plain_parameters { ($($ty:ty: $element:ident, $from:expr;)*) => { $(
    impl Parameter for $ty {
        const KIND: ParameterKind = ParameterKind::Plain(Element::$element);
        fn from_word(word: u64) -> Self {
            $from(word)
        }
    }
)* } }
plain_parameters! {
    u32: U32, |word| word as u32;
    i32: I32, |word| word as i32;
    u64: U64, |word| word;
    usize: U64, |word| word as usize;
    f32: F32, |word| f32::from_bits(word as u32);
}

/// A kernel as the host sees it: made by `#[kernel]` as `NAME::KERNEL`.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its name: function, PTX symbol, table row, command-line id.
    pub name: &'static str,
    /// Its documentation.
    pub documentation: &'static str,
    /// The source file, relative to the workspace.
    pub file: &'static str,
    /// The line its item begins at.
    pub line: u32,
    /// Names and kinds of its parameters.
    pub parameters: &'static [(&'static str, ParameterKind)],
    /// Names and bytes of its static arrays in shared memory, as they are declared.
    pub shared: &'static [(&'static str, u64)],
    /// Names and bytes of its constant arrays.
    pub constants: &'static [(&'static str, u64)],
    /// Runs it for the current lane, and for those as which the calling thread goes on.
    ///
    /// # Safety
    /// A lane is running; the words are the parameters, in order.
    pub entry: unsafe fn(&[u64]),
}

/// Makes a kernel's function and its [`Kernel`].
#[macro_export]
#[doc(hidden)]
macro_rules! __entry {
    ($(#[doc = $doc:literal])* $(#[allow($($allow:tt)*)])* #[documentation($documentation:literal)]
     #[shared($($shared:ident: $tile:ty),*)] #[constants($($constant:ident: $array:ty),*)]
     $vis:vis unsafe fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[doc = $doc])*
        ///
        /// # Safety
        /// The launch contract of `gpu::device`: the buffers are as large as the launch of its family makes them.
        $(#[allow($($allow)*)])*
        #[inline(always)]
        $vis unsafe fn $name($($parameter: $ty),*) $body

        #[doc(hidden)]
        $vis mod $name {
            #[allow(unused_imports)]
            use super::*;
            pub const KERNEL: $crate::device::host::Kernel = $crate::device::host::Kernel {
                name: stringify!($name),
                documentation: $documentation,
                file: file!(),
                line: line!(),
                parameters: &[$((stringify!($parameter), <$ty as $crate::device::host::Parameter>::KIND)),*],
                shared: &[$((stringify!($shared), size_of::<$tile>() as u64)),*],
                constants: &[$((stringify!($constant), size_of::<$array>() as u64)),*],
                entry: |words| {
                    let [$($parameter),*] = *words else {
                        panic!(concat!("`", stringify!($name), "` takes other parameters than it was given"))
                    };
                    loop {
                        // SAFETY: the caller of `entry` passes the parameters' words.
                        unsafe { super::$name($(<$ty as $crate::device::host::Parameter>::from_word($parameter)),*) }
                        if !$crate::device::host::end() {
                            break;
                        }
                    }
                },
            };
        }
    };
}
#[doc(hidden)]
pub use crate::__entry as entry;

/// A device function: what it does belongs to the call, which its caller's position tells from others.
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

/// A call of a closure, likewise.
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

/// On the host an array needs no item of its own.
#[macro_export]
#[doc(hidden)]
macro_rules! __no_array {
    ($symbol:ident, $ty:ty) => {};
}
#[doc(hidden)]
pub use crate::__no_array as shared_array;
#[doc(hidden)]
pub use crate::__no_array as constant_array;

/// A static array in shared memory: `let tile = shared!([f32; 33 * 32]);`.
#[macro_export]
#[doc(hidden)]
macro_rules! __shared {
    ($symbol:ident, $name:ident, [$element:ty; $length:expr]) => {
        $crate::device::host::shared_array_of::<$element, { $length }>(stringify!($name))
    };
}
#[doc(hidden)]
pub use crate::__shared as shared;

#[doc(hidden)]
#[inline]
#[track_caller]
pub fn shared_array_of<T: Value, const N: usize>(name: &'static str) -> super::Shared<T, N> {
    super::Shared::from_address(machine().shared_array(name, Location::caller()))
}

/// A static array in constant memory: `let table = constant!([f32; 64]);`.
#[macro_export]
#[doc(hidden)]
macro_rules! __constant {
    ($symbol:ident, $name:ident, [$element:ty; $length:expr]) => {
        $crate::device::host::constant_array_of::<$element, { $length }>(stringify!($name))
    };
}
#[doc(hidden)]
pub use crate::__constant as constant;

#[doc(hidden)]
#[inline]
#[track_caller]
pub fn constant_array_of<T: Value, const N: usize>(name: &'static str) -> super::Constant<T, N> {
    super::Constant::from_address(machine().constant_array(name, N * size_of::<T>(), Location::caller()))
}
