//! Buffers: what stands in them before a run, and what must stand in them afterwards.

use super::{Element, ElementType, PlanError, format};
use alloc::boxed::Box;
use core::ops::Range;

/// A buffer of a plan.
pub struct Buffer {
    /// The kernel's parameter, or its constant array.
    pub name: &'static str,
    /// Whether it stands in constant memory.
    pub constant: bool,
    /// The type of its elements.
    pub element: Element,
    /// How many elements it has.
    pub len: u64,
    /// What stands in it before every run.
    pub before: Before,
    /// What must stand in it afterwards; none if the kernel only reads it.
    pub after: Option<ExpectedBits>,
    /// How far an element may lie from its reference: 0 where the kernel only moves data.
    pub tolerance: f64,
}

impl Buffer {
    /// A buffer the kernel reads: element `i` holds `fill(i)`.
    pub fn input<T: ElementType>(
        name: &'static str,
        len: u64,
        fill: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Self::new::<T>(name, len, filled(fill), None)
    }

    /// What stands in the kernel's constant array `name`: element `i` is `fill(i)`.
    pub fn constant<T: ElementType>(
        name: &'static str,
        len: u64,
        fill: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Ok(Self { constant: true, ..Self::input(name, len, fill)? })
    }

    /// A buffer the kernel writes: afterwards element `i` holds `expected(i)`, bit for bit.
    pub fn output<T: ElementType>(
        name: &'static str,
        len: u64,
        expected: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Self::partial_output(name, len, move |i| Some(expected(i)))
    }

    /// Like [`Buffer::output`], with elements that the kernel must leave alone: those whose `expected` is none.
    pub fn partial_output<T: ElementType>(
        name: &'static str,
        len: u64,
        expected: impl Fn(u64) -> Option<T> + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Self::new::<T>(name, len, Before::Poison, Some(Box::new(move |i| expected(i).map(T::bits))))
    }

    /// A buffer the kernel writes ticks of the clock to, as `f32`: any number will do.
    pub fn clock(name: &'static str, len: u64) -> Result<Self, PlanError> {
        Ok(Self::output(name, len, |_| 0.0f32)?.within(f64::INFINITY))
    }

    /// A buffer the kernel changes: element `i` holds `fill(i)` before every run, and afterwards `expected(i)`.
    pub fn in_place<T: ElementType>(
        name: &'static str,
        len: u64,
        fill: impl Fn(u64) -> T + Send + Sync + 'static,
        expected: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Self::new::<T>(name, len, filled(fill), Some(Box::new(move |i| Some(expected(i).bits()))))
    }

    /// A buffer the kernel adds to: zero before every run.
    pub fn zeroed<T: ElementType>(
        name: &'static str,
        len: u64,
        expected: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Self::new::<T>(name, len, Before::Zero, Some(Box::new(move |i| Some(expected(i).bits()))))
    }

    /// Allows each element to lie so far from its reference, where the kernel rounds differently.
    pub fn within(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    fn new<T: ElementType>(
        name: &'static str,
        len: u64,
        before: Before,
        after: Option<ExpectedBits>,
    ) -> Result<Self, PlanError> {
        // A simulated address has 40 bits for the offset in a buffer.
        match len.checked_mul(T::ELEMENT.size()) {
            Some(bytes) if bytes < 1 << 40 => {
                Ok(Self { name, constant: false, element: T::ELEMENT, len, before, after, tolerance: 0.0 })
            }
            _ => Err(PlanError(format!(
                "the buffer `{name}` would have {len} elements, a tebibyte or more: choose a smaller size"
            ))),
        }
    }

    /// Bytes of the buffer.
    pub fn bytes(&self) -> u64 {
        self.len * self.element.size()
    }
}

fn filled<T: ElementType>(fill: impl Fn(u64) -> T + Send + Sync + 'static) -> Before {
    Before::Filled(Box::new(FillWith(fill)))
}

/// What stands in a buffer before every run.
pub enum Before {
    /// The element of each index.
    Filled(Box<dyn Fill>),
    /// Bytes that tell whether the kernel wrote them: [`POISON`], and on a GPU, where nothing else tells, [`OTHER_POISON`] in
    /// another run.
    Poison,
    /// Zero.
    Zero,
}

/// Every byte of an output before the kernel runs: NaN in every floating-point format.
pub const POISON: u8 = 0xFF;

/// Every byte of an output before another run: what a kernel left alone differs in every bit.
pub const OTHER_POISON: u8 = !POISON;

/// What the elements of a buffer hold.
pub trait Fill: Send + Sync {
    /// The bits of element `i`, zero-extended.
    fn bits(&self, i: u64) -> u64;

    /// Lays the elements side by side in `words`, the first in the lowest bits.
    fn lay(&self, elements: Range<u64>, words: &mut [u64]);
}

/// A function from an element's index to the element.
struct FillWith<F>(F);

impl<T: ElementType, F: Fn(u64) -> T + Send + Sync> Fill for FillWith<F> {
    fn bits(&self, i: u64) -> u64 {
        (self.0)(i).bits()
    }

    fn lay(&self, elements: Range<u64>, words: &mut [u64]) {
        let (size, each) = const { (T::ELEMENT.size(), 8 / T::ELEMENT.size()) };
        let word = |first: u64, n: u64| (0..n).fold(0, |word, i| word | self.bits(first + i) << (8 * size * i));
        let (whole, rest) = ((elements.end - elements.start) / each, (elements.end - elements.start) % each);
        let (words, last) = words.split_at_mut(whole as usize);
        for (place, first) in words.iter_mut().zip((elements.start..).step_by(each as usize)) {
            *place = word(first, each);
        }
        if rest > 0 {
            last[0] = word(elements.end - rest, rest);
        }
    }
}

/// A function from an element's index to the bits it must hold after the launch, or none where the kernel must not
/// have written.
pub type ExpectedBits = Box<dyn Fn(u64) -> Option<u64> + Send + Sync>;
