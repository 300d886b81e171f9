//! Loops whose iterations the simulator sees; on a GPU, plain loops.

use super::Loop;
use core::ops::Range;

/// An index that [`steps`] counts with.
pub trait Index: Copy + PartialOrd + core::ops::Add<Output = Self> {}
impl Index for u32 {}
impl Index for usize {}

/// `start`, `start + step`, … below `end`: C's `for (i = start; i < end; i += step)`, with iterations that the
/// simulator sees. It stands right behind the `in` of a `for`.
#[inline(always)]
#[track_caller]
pub fn steps<T: Index>(range: Range<T>, step: T) -> Each<Steps<T>> {
    Each { inner: Steps { next: range.start, end: range.end, step }, iterations: Loop::here() }
}

/// The indices of [`steps`].
#[doc(hidden)]
pub struct Steps<T> {
    next: T,
    end: T,
    step: T,
}

impl<T: Index> Iterator for Steps<T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        if self.next < self.end {
            let value = self.next;
            self.next = value + self.step;
            Some(value)
        } else {
            None
        }
    }
}

/// Any iterator, with iterations that the simulator sees. It stands right behind the `in` of a `for`: adapters such as
/// `zip` and `rev` go inside the parentheses.
#[inline(always)]
#[track_caller]
pub fn each<I: IntoIterator>(iterator: I) -> Each<I::IntoIter> {
    Each { inner: iterator.into_iter(), iterations: Loop::here() }
}

/// A loop of [`steps`] or [`each`] that has not begun. It is no iterator, since only a `for` tells the simulator where the
/// loop ends.
///
/// ```compile_fail,E0599
/// # use gpu::device::steps;
/// let mut k = steps(0..8u32, 1);
/// while let Some(k) = k.next() {}
/// ```
///
/// ```compile_fail,E0599
/// # use gpu::device::steps;
/// for (i, k) in steps(0..8u32, 1).zip(0..8) {}
/// ```
pub struct Each<I> {
    inner: I,
    iterations: Loop,
}

impl<I: Iterator> IntoIterator for Each<I> {
    type Item = I::Item;
    type IntoIter = Iterations<I>;

    #[inline(always)]
    fn into_iter(mut self) -> Iterations<I> {
        self.iterations.begin();
        Iterations { inner: self.inner, iterations: self.iterations }
    }
}

/// A loop that has begun.
#[doc(hidden)]
pub struct Iterations<I> {
    inner: I,
    iterations: Loop,
}

impl<I: Iterator> Iterator for Iterations<I> {
    type Item = I::Item;

    #[inline(always)]
    fn next(&mut self) -> Option<I::Item> {
        match self.inner.next() {
            Some(value) => {
                self.iterations.next();
                Some(value)
            }
            None => {
                self.iterations.end();
                None
            }
        }
    }
}

/// Writes a loop's body once for each value, so that every compiler sees straight-line code and may batch its loads:
/// `unroll!(for j in [0, 8, 16, 24] { … })`, where `j` is a `u32`.
///
/// The body's tokens keep their source positions, and the simulator sees each copy as an iteration.
#[macro_export]
#[doc(hidden)]
macro_rules! __unroll {
    (for $i:ident in [$($value:expr),+ $(,)?] $body:block) => {{
        let mut iterations = $crate::device::Loop::here();
        iterations.begin();
        $({
            let $i: u32 = $value;
            iterations.next();
            $body
        })+
    }};
}
pub use __unroll as unroll;
