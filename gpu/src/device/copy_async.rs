//! Copies from global to shared memory that go on while the kernel does: `cp.async`, CUDA's `__pipeline_memcpy_async`.
//!
//! ```text
//! tile.copy_async(thread, src, i);    begins; nobody may touch what it brings until it has arrived
//! copy_async::commit_group();         the copies begun since the last group are one
//! …                                   work that needs none of it
//! copy_async::wait_group::<0>();      this thread's groups, but for so many of the last ones, have arrived
//! sync_threads();                     and now those of the others, too
//! ```
//!
//! Each thread waits for its own copies; for what others copied, it takes a barrier behind their wait. The simulator reports
//! whoever touches what a copy is to bring before that, by the lines of both.
//!
//! A copy counts as two requests at its line: a load of global memory and a store to shared memory. It takes no registers, which
//! is what it is for. One of 16 bytes goes past the L1 (`.cg`), as CUDA has it; narrower ones go through it (`.ca`).
//!
//! Two things cost more than in a load and a store. A word that several lanes copy is not sent to all of them at once: 32 lanes with one
//! word take 32 wavefronts. And a sector goes to shared memory whole: copies of 16 bytes whose source begins in the other half of a
//! sector than their destination read each sector twice.

use super::{
    Bf16x2, Bf16x4, Bf16x8, F16x2, F16x4, F16x8, F32x2, F32x4, F64x2, I8x4, I8x8, I8x16, I16x2, I16x4, I16x8, I32x2,
    I32x4, I64x2, U8x4, U8x8, U8x16, U16x2, U16x4, U16x8, U32x2, U32x4, U64x2, Value, backend,
};

/// A value that a copy moves: 4, 8 or 16 bytes.
#[diagnostic::on_unimplemented(
    message = "no asynchronous copy moves a `{Self}`",
    note = "`cp.async` moves 4, 8 or 16 bytes a lane: `cast` narrower elements to vectors, such as `F16x2` or `U8x16`"
)]
pub trait CopyAsync: Value {}

macro_rules! copied { ($($ty:ident)*) => { $(
    impl CopyAsync for $ty {}
    const _: () = assert!(matches!(size_of::<$ty>(), 4 | 8 | 16));
)* } }
copied! {
    u32 i32 f32 u64 i64 f64
    I8x4 I8x8 I8x16 U8x4 U8x8 U8x16 I16x2 I16x4 I16x8 U16x2 U16x4 U16x8 F16x2 F16x4 F16x8 Bf16x2 Bf16x4 Bf16x8
    I32x2 I32x4 U32x2 U32x4 F32x2 F32x4 I64x2 U64x2 F64x2
}

/// Makes one group of the copies that this thread has begun and not yet committed (`cp.async.commit_group`, CUDA's
/// `__pipeline_commit`). There may be none.
#[inline(always)]
#[track_caller]
pub fn commit_group() {
    backend::commit_copies();
}

/// Waits until all groups of this thread have arrived, but for the `N` last ones (`cp.async.wait_group`, CUDA's
/// `__pipeline_wait_prior`).
#[inline(always)]
#[track_caller]
pub fn wait_group<const N: u32>() {
    backend::wait_copies::<N>();
}

/// Waits until all copies of this thread have arrived, those of no group too (`cp.async.wait_all`).
#[inline(always)]
#[track_caller]
pub fn wait_all() {
    backend::wait_all_copies();
}
