//! What a buffer holds after a run, beside what it should hold.

use super::argument::Tolerance;
use super::element::Type;
use schemars::JsonSchema;
use serde::Serialize;

/// Wrong elements named in a report.
const SHOWN: usize = 4;

/// A buffer that was compared.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Compared {
    /// The buffer.
    pub buffer: String,
    /// What it was compared with.
    pub with: String,
    /// How many elements.
    pub elements: u64,
    /// How many are wrong.
    pub wrong: u64,
    /// The first of them.
    pub first: Vec<Wrong>,
    /// How far the farthest of all is off.
    pub largest: f64,
    /// Its number.
    pub largest_at: u64,
    /// How far they may be off; none if every bit counts.
    pub tolerance: Option<[f64; 2]>,
}

/// A wrong element.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Wrong {
    /// Its number.
    pub element: u64,
    /// What it should be.
    pub expected: String,
    /// What it is.
    pub actual: String,
}

/// Compares elements as they come.
pub struct Comparison {
    ty: Type,
    tolerance: Option<Tolerance>,
    so_far: Compared,
}

impl Comparison {
    /// A comparison of `buffer`, which holds elements of type `ty`, with what is called `with`.
    #[must_use]
    pub fn new(buffer: &str, with: String, ty: Type, tolerance: Option<Tolerance>) -> Self {
        // A tolerance makes no sense of whole numbers that are to be the same.
        let said = tolerance.map(|tolerance| [tolerance.absolute, tolerance.relative]);
        let so_far = Compared {
            buffer: buffer.to_owned(),
            with,
            elements: 0,
            wrong: 0,
            first: Vec::new(),
            largest: 0.0,
            largest_at: 0,
            tolerance: said,
        };
        Self { ty, tolerance, so_far }
    }

    /// Compares the next element; `is_written` says whether the kernel wrote it, if it had to.
    pub fn next(&mut self, expected: u64, actual: u64, is_written: bool) {
        let i = self.so_far.elements;
        self.so_far.elements += 1;
        if expected == actual && is_written {
            return;
        }
        let [wanted, is] = [expected, actual].map(|bits| self.ty.value(bits));
        let off = if wanted.is_nan() && is.is_nan() { 0.0 } else { (is - wanted).abs() };
        let off = if off.is_nan() { f64::INFINITY } else { off };
        if off > self.so_far.largest {
            (self.so_far.largest, self.so_far.largest_at) = (off, i);
        }
        let is_near = self.tolerance.is_some_and(|Tolerance { absolute, relative }| {
            off <= absolute + if wanted.is_finite() { relative * wanted.abs() } else { 0.0 }
        });
        if is_near && is_written {
            return;
        }
        self.so_far.wrong += 1;
        if self.so_far.first.len() < SHOWN {
            let shown = |bits| match self.ty.show(bits) {
                nan if nan == "NaN" => format!("NaN ({bits:#0width$x})", width = 2 + 2 * self.ty.size() as usize),
                shown => shown,
            };
            let actual = if is_written { shown(actual) } else { "not written".to_owned() };
            self.so_far.first.push(Wrong { element: i, expected: shown(expected), actual });
        }
    }

    /// What came of it.
    #[must_use]
    pub fn finish(self) -> Compared {
        self.so_far
    }
}

impl std::fmt::Display for Compared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { buffer, with, elements, wrong, first, largest, largest_at, tolerance } = self;
        let how = match tolerance {
            None => "bit for bit".to_owned(),
            Some([absolute, 0.0]) => format!("within {absolute:?}"),
            Some([0.0, relative]) => format!("within {relative:?} of the value"),
            Some([absolute, relative]) => format!("within {absolute:?} and {relative:?} of the value"),
        };
        if *wrong == 0 {
            write!(f, "`{buffer}` is as in {with}: {elements} elements {how}")?;
            return match *largest > 0.0 {
                true => write!(f, "; the farthest is off by {largest:.3e}, at [{largest_at}]"),
                false => Ok(()),
            };
        }
        write!(f, "{wrong} of {elements} elements of `{buffer}` are not as in {with}, {how}:")?;
        for (place, Wrong { element, expected, actual }) in first.iter().enumerate() {
            let comma = if place == 0 { "" } else { ";" };
            write!(f, "{comma} [{element}] is {actual}, expected {expected}")?;
        }
        match *largest > 0.0 {
            true => write!(f, "; the farthest is off by {largest:.3e}, at [{largest_at}]"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(ty: &str, tolerance: Option<Tolerance>, pairs: &[(f64, f64)]) -> Compared {
        let ty = Type::named(ty).expect("a type");
        let mut comparison = Comparison::new("out", "out.npy".into(), ty, tolerance);
        pairs.iter().for_each(|(expected, actual)| comparison.next(ty.bits(*expected), ty.bits(*actual), true));
        comparison.finish()
    }

    #[test]
    fn without_a_tolerance_every_bit_counts() {
        let same = compared("f32", None, &[(1.0, 1.0), (-0.5, -0.5)]);
        assert_eq!(same.to_string(), "`out` is as in out.npy: 2 elements bit for bit");
        let off = compared("f32", None, &[(1.0, 1.0), (1.0, 1.5), (0.0, -0.0), (2.0, f64::NAN)]);
        assert_eq!(
            off.to_string(),
            "3 of 4 elements of `out` are not as in out.npy, bit for bit: [1] is 1.5, expected 1; [2] is -0, expected \
             0; [3] is NaN (0x7fc00000), expected 2; the farthest is off by inf, at [3]"
        );
    }

    #[test]
    fn a_tolerance_is_a_sum_and_infinities_are_near_themselves_alone() {
        let tolerance = Some(Tolerance { absolute: 0.5, relative: 0.1 });
        let said =
            |absolute, relative| compared("f64", Some(Tolerance { absolute, relative }), &[(1.0, 1.0)]).to_string();
        assert!(said(0.5, 0.0).ends_with("1 elements within 0.5"));
        assert!(said(0.0, 1e-5).ends_with("within 1e-5 of the value"));
        assert!(said(0.5, 0.1).ends_with("within 0.5 and 0.1 of the value"));
        let pairs = [(10.0, 11.5), (0.0, 0.5), (f64::INFINITY, f64::INFINITY), (f64::NAN, f64::NAN)];
        assert_eq!(compared("f64", tolerance, &pairs).wrong, 0);
        for pair in [(10.0, 11.6), (0.0, 0.6), (f64::INFINITY, 1e300), (1.0, f64::INFINITY), (1.0, f64::NAN)] {
            assert_eq!(compared("f64", tolerance, &[pair]).wrong, 1, "{pair:?}");
        }
    }

    #[test]
    fn what_nobody_wrote_is_wrong_whatever_it_holds() {
        let mut comparison = Comparison::new("out", "out.npy".into(), Type::named("u32").expect("a type"), None);
        comparison.next(7, 7, false);
        assert!(comparison.finish().to_string().ends_with("[0] is not written, expected 7"));
    }
}
