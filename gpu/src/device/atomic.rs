//! Atomics: read, change and write an element of memory in one indivisible step.
//!
//! They have CUDA's names, and like CUDA's they return what stood there before. Where that goes unused `ptxas` makes a
//! reduction of it (`RED`), which brings nothing back: there is no name of its own for it, as in CUDA.
//!
//! | | PTX | types |
//! | --- | --- | --- |
//! | `atomic_add` | `atom.add` | `u32` `i32` `u64` `i64` `f32` `f64` |
//! | `atomic_sub` | `atom.add` of the negative | `u32` `i32` `u64` `i64` |
//! | `atomic_min`, `atomic_max` | `atom.min`, `atom.max` | the same |
//! | `atomic_and`, `atomic_or`, `atomic_xor` | `atom.and`, `atom.or`, `atom.xor` | the same |
//! | `atomic_exch` | `atom.exch` | all of these |
//! | `atomic_cas` | `atom.cas` | `u32` `i32` `u64` `i64` |
//! | `atomic_inc`, `atomic_dec` | `atom.inc`, `atom.dec` | `u32` |
//!
//! An atomic orders no other access: that takes a fence ([`threadfence`](super::threadfence)). It is indivisible to the
//! threads of its [`Scope`], the whole device; to those of the block alone with `_block` behind its name, and with
//! `_system` to the host and other GPUs too. One in shared memory has the block's.
//!
//! In shared memory the hardware has those of 32-bit integers, `atomic_exch` and `atomic_cas`. Of the others `ptxas` makes loops,
//! which ask for more than the source says.

use super::{GlobalMut, Shared, Value, backend};

/// Whom a fence orders accesses for, and to whom an atomic is indivisible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The threads of the block (PTX's `.cta`).
    Block,
    /// The threads of the GPU (`.gpu`).
    Device,
    /// Those of other GPUs and of the host too (`.sys`).
    System,
}

/// How the hardware carries an atomic out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicKind {
    /// At once.
    Plain,
    /// At once, and the compiler may add integers up within the warp before.
    AddsIntegers,
    /// At once, with two values of each lane: a compare-and-swap in shared memory.
    Swap,
    /// By a loop of compare-and-swaps, which ptxas makes: in shared memory of those of floats and 64 bits.
    Loop,
}

/// What an atomic makes of what stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The sum, which wraps around.
    Add,
    /// The lower one.
    Min,
    /// The higher one.
    Max,
    /// The bits of both.
    And,
    /// The bits of either.
    Or,
    /// The bits of one.
    Xor,
    /// The new value.
    Exch,
    /// The new value, if what stands there is the one to compare with.
    Cas,
    /// One more; 0 from the limit on.
    Inc,
    /// One less; the limit from 0, and from above the limit.
    Dec,
}

/// A type that atomics add and exchange.
pub trait Atomic: Value + backend::AtomicBackend {}
impl<T: Value + backend::AtomicBackend> Atomic for T {}

/// An integer, which every atomic takes.
pub trait AtomicInteger: Atomic {
    /// The number that is added to subtract this one.
    #[doc(hidden)]
    fn negative(self) -> Self;
}

macro_rules! integers { ($($ty:ty)*) => { $(
    impl AtomicInteger for $ty {
        #[inline(always)]
        fn negative(self) -> Self {
            self.wrapping_neg()
        }
    }
)* } }
integers!(u32 i32 u64 i64);

/// A method for each atomic of one scope, under the names that are given.
macro_rules! of_scope {
    (
        $index:ty, $contract:literal, $scope:literal, |$of:ident, $at:ident, $change:ident, $value:ident, $other:ident| $atomic:expr;
        $add:ident $sub:ident $min:ident $max:ident $and:ident $or:ident $xor:ident $exch:ident $cas:ident
    ) => {
        of_scope!(@two $index, $contract, $scope, Atomic, Add, $add,
            "Adds `value` to element `index`", |$of, $at, $change, $value, $other| $atomic);
        of_scope!(@two $index, $contract, $scope, AtomicInteger, Min, $min,
            "Puts the lower of `value` and element `index` in its place", |$of, $at, $change, $value, $other| $atomic);
        of_scope!(@two $index, $contract, $scope, AtomicInteger, Max, $max,
            "Puts the higher of `value` and element `index` in its place", |$of, $at, $change, $value, $other| $atomic);
        of_scope!(@two $index, $contract, $scope, AtomicInteger, And, $and,
            "Leaves the bits of element `index` that `value` has too", |$of, $at, $change, $value, $other| $atomic);
        of_scope!(@two $index, $contract, $scope, AtomicInteger, Or, $or,
            "Adds the bits of `value` to those of element `index`", |$of, $at, $change, $value, $other| $atomic);
        of_scope!(@two $index, $contract, $scope, AtomicInteger, Xor, $xor,
            "Turns the bits of element `index` over that `value` has", |$of, $at, $change, $value, $other| $atomic);
        of_scope!(@two $index, $contract, $scope, Atomic, Exch, $exch,
            "Puts `value` in the place of element `index`", |$of, $at, $change, $value, $other| $atomic);

        #[doc = concat!("Subtracts `value` from element `index`, ", $scope, ", and returns what stood there before.")]
        ///
        /// # Safety
        #[doc = $contract]
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $sub(self, index: $index, value: T) -> T
        where
            T: AtomicInteger,
        {
            // SAFETY: the caller's promise.
            unsafe { self.$add(index, value.negative()) }
        }

        #[doc = concat!(
            "Puts `value` in the place of element `index` if that is `compare`, ", $scope,
            ", and returns what stood there before."
        )]
        ///
        /// # Safety
        #[doc = $contract]
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $cas(self, index: $index, compare: T, value: T) -> T
        where
            T: AtomicInteger,
        {
            let ($of, $at, $change, $value, $other) = (self, index, Change::Cas, value, compare);
            // SAFETY: the caller's promise.
            unsafe { $atomic }
        }
    };
    (
        @two $index:ty, $contract:literal, $scope:literal, $bound:ident, $kind:ident, $name:ident, $does:literal,
        |$of:ident, $at:ident, $change:ident, $value:ident, $other:ident| $atomic:expr
    ) => {
        #[doc = concat!($does, ", ", $scope, ", and returns what stood there before.")]
        ///
        /// # Safety
        #[doc = $contract]
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name(self, index: $index, value: T) -> T
        where
            T: $bound,
        {
            let ($of, $at, $change, $value, $other) = (self, index, Change::$kind, value, value);
            // SAFETY: the caller's promise.
            unsafe { $atomic }
        }
    };
}

impl<T: Value> GlobalMut<T> {
    of_scope! {
        usize, "The launch contract: `index` lies inside the buffer.", "indivisibly to the device's threads",
        |of, at, change, value, other| backend::global_atomic(of.0, at, change, Scope::Device, value, other);
        atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor atomic_exch atomic_cas
    }
    of_scope! {
        usize, "The launch contract: `index` lies inside the buffer, and no other block touches the element.",
        "indivisibly to the block's threads",
        |of, at, change, value, other| backend::global_atomic(of.0, at, change, Scope::Block, value, other);
        atomic_add_block atomic_sub_block atomic_min_block atomic_max_block atomic_and_block atomic_or_block
        atomic_xor_block atomic_exch_block atomic_cas_block
    }
    of_scope! {
        usize, "The launch contract: `index` lies inside the buffer.",
        "indivisibly to all threads of the system",
        |of, at, change, value, other| backend::global_atomic(of.0, at, change, Scope::System, value, other);
        atomic_add_system atomic_sub_system atomic_min_system atomic_max_system atomic_and_system atomic_or_system
        atomic_xor_system atomic_exch_system atomic_cas_system
    }
}

impl<T: Value, const N: usize> Shared<T, N> {
    of_scope! {
        u32, "`index < N`, and barriers order the atomic against plain accesses of other threads to the element.",
        "indivisibly to the block's threads",
        |of, at, change, value, other| backend::shared_atomic(of.0, at, change, value, other);
        atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor atomic_exch atomic_cas
    }
}

macro_rules! counters {
    ($index:ty, $contract:literal, |$of:ident, $at:ident, $change:ident, $value:ident| $atomic:expr) => {
        /// Adds 1 to element `index`, or makes it 0 if it is `limit` or more, and returns what stood there before.
        ///
        /// # Safety
        #[doc = $contract]
        #[inline(always)]
        #[track_caller]
        pub unsafe fn atomic_inc(self, index: $index, limit: u32) -> u32 {
            let ($of, $at, $change, $value) = (self, index, Change::Inc, limit);
            // SAFETY: the caller's promise.
            unsafe { $atomic }
        }

        /// Subtracts 1 from element `index`, or makes it `limit` if it is 0 or more than that, and returns what stood
        /// there before.
        ///
        /// # Safety
        #[doc = $contract]
        #[inline(always)]
        #[track_caller]
        pub unsafe fn atomic_dec(self, index: $index, limit: u32) -> u32 {
            let ($of, $at, $change, $value) = (self, index, Change::Dec, limit);
            // SAFETY: the caller's promise.
            unsafe { $atomic }
        }
    };
}

impl GlobalMut<u32> {
    counters!(usize, "The launch contract: `index` lies inside the buffer.", |of, at, change, value| {
        backend::global_atomic(of.0, at, change, Scope::Device, value, value)
    });
}

impl<const N: usize> Shared<u32, N> {
    counters!(
        u32,
        "`index < N`, and barriers order the atomic against plain accesses of other threads to the element.",
        |of, at, change, value| backend::shared_atomic(of.0, at, change, value, value)
    );
}
