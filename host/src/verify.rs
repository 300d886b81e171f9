//! Compares what a kernel wrote with its reference, element by element.

use crate::parallel;
use gpu::suite::{Before, Buffer, Element, POISON, Plan, f16};
use std::fmt;

/// Wrong elements named in a report.
const SHOWN: usize = 4;

/// Elements that a thread compares at a time.
const PIECE: u64 = 1 << 16;

/// Elements that differ from their reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The buffer.
    pub buffer: &'static str,
    /// How many elements are wrong, and of how many.
    pub wrong: u64,
    /// Elements compared.
    pub of: u64,
    /// The first of them: index, expected, actual.
    pub first: Vec<(u64, String, String)>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements of `{}` are wrong:", self.wrong, self.of, self.buffer)?;
        for (i, (index, expected, actual)) in self.first.iter().enumerate() {
            let comma = if i == 0 { "" } else { ";" };
            write!(f, "{comma} [{index}] is {actual}, expected {expected}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mismatch {}

/// Collects the wrong elements of one buffer, which may come in pieces, in order.
pub struct Check<'a> {
    buffer: &'a Buffer,
    wrong: u64,
    compared: u64,
    first: Vec<(u64, String, String)>,
}

impl<'a> Check<'a> {
    /// A check of `buffer` that has seen nothing so far.
    pub fn new(buffer: &'a Buffer) -> Self {
        Self { buffer, wrong: 0, compared: 0, first: Vec::new() }
    }

    /// Compares `len` elements from `start` on, of which `actual` gives the bits.
    pub fn compare(&mut self, start: u64, len: u64, actual: impl Fn(u64) -> u64 + Sync) {
        let Some(expected) = &self.buffer.after else { return };
        let element = self.buffer.element;
        let poison = u64::from_ne_bytes([POISON; 8]) >> (64 - 8 * element.size());
        let poisoned = matches!(self.buffer.before, Before::Poison);
        let is_wrong = |i: u64| {
            let actual = actual(i);
            match expected(i) {
                None => actual != poison,
                // An element that nobody wrote is wrong whatever its reference: the poison is no result.
                Some(expected) => {
                    poisoned && actual == poison || !matches(element, self.buffer.tolerance, expected, actual)
                }
            }
        };
        let part = |begin: u64| {
            let (mut wrong, mut first) = (0, Vec::new());
            for i in (start + begin..start + len.min(begin + PIECE)).filter(|i| is_wrong(*i)) {
                wrong += 1;
                if first.len() < SHOWN {
                    first.push(i);
                }
            }
            (wrong, first)
        };
        // Pieces come in the order of their elements.
        let pieces = (0..len.div_ceil(PIECE) as usize).map(|piece| piece as u64 * PIECE);
        let parts = parallel::map(pieces, parallel::threads(), part);
        let wrong = parts.iter().map(|(wrong, _)| wrong).sum::<u64>();
        let first = parts.into_iter().flat_map(|(_, first)| first);
        self.wrong += wrong;
        self.compared += len;
        for i in first.take(SHOWN - self.first.len()) {
            let expected = expected(i).map_or_else(|| "left alone".to_owned(), |bits| show(element, bits));
            self.first.push((
                i,
                expected,
                if poisoned && actual(i) == poison { "not written".to_owned() } else { show(element, actual(i)) },
            ));
        }
    }

    /// What came of it.
    pub fn finish(self) -> Result<(), Mismatch> {
        match self.wrong {
            0 => Ok(()),
            wrong => Err(Mismatch { buffer: self.buffer.name, wrong, of: self.compared, first: self.first }),
        }
    }
}

/// Compares every element of every output of a plan: `bits(buffer, i)` gives those of element `i`.
pub fn verify(plan: &Plan, bits: impl Fn(usize, u64) -> u64 + Sync) -> Result<(), Mismatch> {
    plan.buffers.iter().enumerate().try_for_each(|(number, buffer)| {
        let mut check = Check::new(buffer);
        check.compare(0, buffer.len, |i| bits(number, i));
        check.finish()
    })
}

/// Whether `actual` is `expected`: bit for bit, or no further off than `tolerance`. NaN is never near anything.
fn matches(element: Element, tolerance: f64, expected: u64, actual: u64) -> bool {
    if tolerance == 0.0 {
        return actual == expected;
    }
    let difference = (value(element, expected) - value(element, actual)).abs();
    difference <= tolerance
}

fn value(element: Element, bits: u64) -> f64 {
    match element {
        Element::I8 => (bits as i8).into(),
        Element::F16 => f16::from_bits(bits as u16).into(),
        Element::U32 => (bits as u32).into(),
        Element::F32 => f32::from_bits(bits as u32).into(),
        Element::U64 => bits as f64,
        Element::F64 => f64::from_bits(bits),
    }
}

fn show(element: Element, bits: u64) -> String {
    match element {
        Element::U64 => bits.to_string(),
        Element::F32 => f32::from_bits(bits as u32).to_string(),
        _ => value(element, bits).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(len: u64) -> Buffer {
        Buffer::output("dst", len, |i| (i * i) as f32).expect("a small buffer")
    }

    #[test]
    fn a_wrong_element_is_named_with_index_expected_and_actual() {
        let buffer = squares(100_000);
        let mut check = Check::new(&buffer);
        let actual = |i: u64| u64::from(if i == 70_003 { 1.5f32 } else { (i * i) as f32 }.to_bits());
        check.compare(0, 50_000, actual);
        check.compare(50_000, 50_000, actual);
        let mismatch = check.finish().expect_err("one element is wrong");
        assert_eq!((mismatch.wrong, mismatch.of), (1, 100_000));
        assert_eq!(
            mismatch.to_string(),
            "1 of 100000 elements of `dst` are wrong: [70003] is 1.5, expected 4900420000"
        );
    }

    #[test]
    fn an_element_that_nobody_wrote_is_wrong_and_so_is_one_that_should_be_left_alone() {
        let poison = u64::from(u32::MAX);
        let all = squares(8);
        let mut check = Check::new(&all);
        check.compare(0, 8, |i| if i == 5 { poison } else { u64::from(((i * i) as f32).to_bits()) });
        let text = check.finish().expect_err("element 5 was not written").to_string();
        assert_eq!(text, "1 of 8 elements of `dst` are wrong: [5] is not written, expected 25");

        let even = Buffer::partial_output("dst", 4, |i| (i % 2 == 0).then_some(i as u32)).expect("a small buffer");
        let mut check = Check::new(&even);
        check.compare(0, 4, |i| i);
        let text = check.finish().expect_err("the odd elements were written").to_string();
        assert_eq!(
            text,
            "2 of 4 elements of `dst` are wrong: [1] is 1, expected left alone; [3] is 3, expected left alone"
        );
    }

    #[test]
    fn nan_is_never_within_a_tolerance() {
        let mut buffer = squares(1);
        buffer.tolerance = 1e30;
        let mut check = Check::new(&buffer);
        check.compare(0, 1, |_| u64::from(0x7FC0_0001u32));
        assert!(check.finish().is_err());
    }

    #[test]
    fn the_first_wrong_elements_are_the_first_whatever_the_pieces() {
        let buffer = squares(1 << 20);
        let mut check = Check::new(&buffer);
        check.compare(0, 1 << 20, |_| 1);
        let mismatch = check.finish().expect_err("all are wrong");
        assert_eq!(mismatch.first.iter().map(|(i, ..)| *i).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
