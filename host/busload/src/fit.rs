//! Counts that are not stated: the closed form that fits what the simulator counts at some sizes, where it is linear.
//!
//! It is no closed form of the kernel: nothing says that it holds at other sizes. So it is shown, and never taken.

use crate::cases::Run;
use crate::front::Front;
use crate::record;
use crate::sim;
use gpu::suite::{Axis, AxisKind, Case, Counts, Entry, Operation, Value};
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// The closed forms that fit a kernel's counts, as lines of text; none if it has no size to vary, or does not run at some.
pub fn text(run: &Run, options: &sim::Options) -> Option<String> {
    let entries = run.family.kernels.iter();
    let entry = entries.into_iter().find(|entry| entry.kernel.name == run.kernel.name)?;
    let (axis, values) = run.family.axes.iter().find_map(|axis| Some((axis, sizes(axis)?)))?;
    let counted: Option<Vec<_>> = values.iter().map(|value| counted(run, entry, axis, *value, options)).collect();
    let counted = counted?;
    let names: Names = match axis.kind {
        AxisKind::Shape => ["rows", "columns"],
        _ => [if axis.name == Axis::ELEMENTS.name { "n" } else { axis.name }, ""],
    };
    let tried: Vec<_> = values.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "{}: its counts are not stated. At --{} {} the simulator counts",
        run.kernel.name,
        axis.name,
        tried.join(", ")
    );
    text += if names[0] == "n" { ", with n elements:" } else { ":" };
    let mut keys: Vec<_> = counted.iter().flat_map(BTreeMap::keys).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let (buffer, operation, width) = key;
        let _ = write!(text, "\n  {}s of `{buffer}` at {width} bytes: ", record::operation_name(*operation));
        let at = |size: &BTreeMap<_, Counts>| size.get(key).copied().unwrap_or_default().named();
        let counts: Vec<_> = counted.iter().map(at).collect();
        let fits = (0..counts[0].len()).filter(|of| counts.iter().any(|counts| counts[*of].1 > 0)).map(|of| {
            let points: Vec<_> =
                values.iter().zip(&counts).map(|(value, counts)| (point(*value), counts[of].1)).collect();
            let form = Form::through(&points).map_or("not linear".to_owned(), |form| form.shown(names));
            format!("{} {form}", counts[0][of].0)
        });
        text += &fits.collect::<Vec<_>>().join(", ");
    }
    text += "\nState in the family's entry what the kernel makes of its parameters, also where a warp is not full; these fit \
             the sizes above and may fit no other.";
    Some(text)
}

/// The sizes to try of an axis: along each direction two that make a line, and one that must lie on it.
fn sizes(axis: &Axis) -> Option<Vec<Value>> {
    match axis.kind {
        AxisKind::Shape => {
            Some([(64, 64), (64, 128), (128, 64), (128, 128), (320, 192)].map(|(y, x)| Value::Shape(y, x)).into())
        }
        AxisKind::Count { min, max } => {
            // A size that warps and blocks divide, if the axis goes as far.
            let unit = [4096, 1024, 128, 32].into_iter().find(|unit| *unit >= min && max / 5 >= *unit)?;
            Some([1, 2, 3, 5].map(|times| Value::Count(times * unit)).into())
        }
        AxisKind::Choice(_) => None,
    }
}

/// A size as a place: rows and columns, or a number of which there are two ways to be 0.
fn point(value: Value) -> [i128; 2] {
    match value {
        Value::Shape(rows, columns) => [rows.into(), columns.into()],
        Value::Count(count) => [count.into(), 0],
        Value::Choice(_) => [0, 0],
    }
}

type Regions = BTreeMap<(String, Operation, u64), Counts>;

/// What the simulator counts of the run's kernel with another value of an axis.
fn counted(run: &Run, entry: &Entry, axis: &Axis, value: Value, options: &sim::Options) -> Option<Regions> {
    let mut values = run.case.values.clone();
    values.iter_mut().find(|(name, _)| *name == axis.name)?.1 = value;
    let run = Run::new(run.family, entry, Case { values, sm_count: run.case.sm_count }).ok()?;
    let options = sim::Options { max_blocks: u64::MAX, ..options.clone() };
    let outcome = Front::Source.simulate(&run, &options, &|_, _| ()).ok()?;
    (outcome.findings.is_empty() && outcome.blocks.complete()).then_some(outcome.regions)
}

/// What the two coordinates are called.
type Names = [&'static str; 2];

/// A fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fraction {
    over: i128,
    under: i128,
}

impl Fraction {
    fn new(over: i128, under: i128) -> Option<Self> {
        let (mut a, mut b) = (over.checked_abs()?, under.checked_abs()?);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let sign = under.signum();
        (under != 0).then(|| Self { over: sign * over / a, under: sign * under / a })
    }

    fn times(self, number: i128) -> Option<Self> {
        Self::new(self.over.checked_mul(number)?, self.under)
    }

    fn plus(self, other: Self) -> Option<Self> {
        let [a, b] = [(self, other), (other, self)].map(|(one, other)| one.over.checked_mul(other.under));
        Self::new(a?.checked_add(b?)?, self.under.checked_mul(other.under)?)
    }

    fn minus(self, other: Self) -> Option<Self> {
        self.plus(other.times(-1)?)
    }
}

/// `product * x * y + x * x + y * y + constant`, each with a coefficient of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    product: Fraction,
    first: Fraction,
    second: Fraction,
    constant: Fraction,
}

impl Form {
    /// The form through all points, of which the first give it and the others must lie on it.
    fn through(points: &[([i128; 2], u64)]) -> Option<Self> {
        let form = match points {
            // Along one direction.
            [(a, at_a), (b, at_b), ..] if a[1] == 0 && b[1] == 0 => {
                let first = Fraction::new(i128::from(*at_b) - i128::from(*at_a), b[0] - a[0])?;
                let zero = Fraction::new(0, 1)?;
                let constant = Fraction::new((*at_a).into(), 1)?.minus(first.times(a[0])?)?;
                Self { product: zero, first, second: zero, constant }
            }
            // The corners of a rectangle: rows by rows.
            [(a, at_a), (_, at_b), (_, at_c), (d, at_d), ..] => {
                let [at_a, at_b, at_c, at_d] = [at_a, at_b, at_c, at_d].map(|at| i128::from(*at));
                let (rows, columns) = (d[0] - a[0], d[1] - a[1]);
                let product = Fraction::new(at_d - at_c - at_b + at_a, rows.checked_mul(columns)?)?;
                let first = Fraction::new(at_c - at_a, rows)?.minus(product.times(a[1])?)?;
                let second = Fraction::new(at_b - at_a, columns)?.minus(product.times(a[0])?)?;
                let constant = Fraction::new(at_a, 1)?.minus(product.times(a[0])?.times(a[1])?)?;
                let constant = constant.minus(first.times(a[0])?)?.minus(second.times(a[1])?)?;
                Self { product, first, second, constant }
            }
            _ => return None,
        };
        let lies_on = |(place, count): &([i128; 2], u64)| form.at(*place) == Fraction::new((*count).into(), 1);
        points.iter().all(lies_on).then_some(form)
    }

    fn at(self, [x, y]: [i128; 2]) -> Option<Fraction> {
        let product = self.product.times(x)?.times(y)?;
        product.plus(self.first.times(x)?)?.plus(self.second.times(y)?)?.plus(self.constant)
    }

    /// As one would write it in code: `rows*columns/32 + 3*rows`.
    fn shown(self, [x, y]: Names) -> String {
        let product = format!("{x}*{y}");
        let terms = [(self.product, product.as_str()), (self.first, x), (self.second, y), (self.constant, "")];
        let mut text = String::new();
        for (coefficient, name) in terms.into_iter().filter(|(coefficient, _)| coefficient.over != 0) {
            let sign = match (text.is_empty(), coefficient.over < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            let _ = write!(text, "{sign}{}", Term(coefficient, name));
        }
        if text.is_empty() { "0".to_owned() } else { text }
    }
}

/// The absolute value of a coefficient, and what it multiplies.
struct Term<'a>(Fraction, &'a str);

impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Fraction { over, under }, name) = self;
        match (over.unsigned_abs(), *name) {
            (over, "") => write!(f, "{over}")?,
            (1, name) => write!(f, "{name}")?,
            (over, name) => write!(f, "{over}*{name}")?,
        }
        if *under == 1 { Ok(()) } else { write!(f, "/{under}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn along(counts: impl Fn(i128) -> u64) -> Option<String> {
        let points = [4096, 8192, 12288, 20480].map(|n| ([n, 0], counts(n)));
        Form::through(&points).map(|form| form.shown(["n", ""]))
    }

    fn of_shapes(counts: impl Fn(i128, i128) -> u64) -> Option<String> {
        let points = [(64, 64), (64, 128), (128, 64), (128, 128), (320, 192)].map(|(y, x)| ([y, x], counts(y, x)));
        Form::through(&points).map(|form| form.shown(["rows", "columns"]))
    }

    #[test]
    fn a_line_is_fitted_exactly_or_not_at_all() {
        assert_eq!(along(|n| n as u64 / 32).as_deref(), Some("n/32"));
        assert_eq!(along(|n| 3 * n as u64 / 8 + 7).as_deref(), Some("3*n/8 + 7"));
        assert_eq!(along(|n| 2 * n as u64 - 4).as_deref(), Some("2*n - 4"));
        assert_eq!(along(|_| 5).as_deref(), Some("5"));
        assert_eq!(along(|_| 0).as_deref(), Some("0"));
        assert_eq!(along(|n| n as u64 / 32 + u64::from(n == 20480)), None);
        assert_eq!(along(|n| (n * n) as u64), None);
    }

    #[test]
    fn a_matrix_is_fitted_by_its_product_rows_and_columns() {
        assert_eq!(of_shapes(|y, x| (y * x / 32) as u64).as_deref(), Some("rows*columns/32"));
        assert_eq!(
            of_shapes(|y, x| (y * x / 8 + 3 * y + x / 2 + 1) as u64).as_deref(),
            Some("rows*columns/8 + 3*rows + columns/2 + 1")
        );
        assert_eq!(of_shapes(|y, _| (y / 32) as u64).as_deref(), Some("rows/32"));
        assert_eq!(of_shapes(|y, x| (y * y + x) as u64), None);
    }

    #[test]
    fn what_no_number_holds_is_not_fitted() {
        let points = [([i128::MAX, 0], u64::MAX), ([1, 0], 0), ([2, 0], 1)];
        assert_eq!(Form::through(&points), None);
        assert_eq!(Form::through(&[([1, 0], 1), ([1, 0], 2)]), None, "one place");
    }
}
