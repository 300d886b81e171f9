//! Where values stand on an axis, which of them are marked, and how they are written.

use super::picture::{Axis, Scale, Unit};

impl Axis {
    /// An axis that is divided as its values say.
    pub fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), scale, marks: Vec::new(), unit: Unit::Number }
    }

    /// The same with marks.
    pub fn marked(self, marks: Vec<f64>) -> Self {
        Self { marks, ..self }
    }

    /// The same with values written otherwise.
    pub(crate) fn written(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// The axis with its ends, if these are the values on it and there is room for so many marks.
    pub(crate) fn divided(&self, values: impl Iterator<Item = f64>, room: usize) -> Divided {
        let values = values.chain(self.marks.iter().copied()).filter(|value| value.is_finite());
        let values: Vec<f64> = values.collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        let mut divided = match self.scale {
            Scale::Linear => linear(0.0, high.max(f64::MIN_POSITIVE), room),
            Scale::Between(low, high) => linear(low, high, room),
            Scale::Logarithmic => {
                let is_free = self.marks.is_empty() && self.unit == Unit::Number;
                let [low, high] = if is_free { widened(low, high) } else { [low, high] };
                logarithmic(low, high, room, self.unit)
            }
        };
        if !self.marks.is_empty() {
            divided.marks.clone_from(&self.marks);
        }
        divided
    }
}

/// An axis between its ends.
#[derive(Clone, Debug)]
pub(crate) struct Divided {
    is_logarithmic: bool,
    low: f64,
    high: f64,
    /// The values that are marked.
    pub(crate) marks: Vec<f64>,
}

impl Divided {
    /// How far along the axis a value stands, from 0 to 1.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let place = |value: f64| if self.is_logarithmic { logarithm(value) } else { value };
        let (low, high) = (place(self.low), place(self.high));
        if high > low { (place(value) - low) / (high - low) } else { 0.5 }
    }

    /// Whether a value is on the axis.
    pub(crate) fn holds(&self, value: f64) -> bool {
        (-1e-9..=1.0 + 1e-9).contains(&self.place(value))
    }
}

/// Where a value stands on a scale of powers.
fn logarithm(value: f64) -> f64 {
    if value <= 0.0 { -1.0 } else { value.log2() }
}

fn linear(low: f64, high: f64, room: usize) -> Divided {
    let step = step((high - low) / room.max(2) as f64);
    let (first, last) = ((low / step).ceil() as i64, (high / step * (1.0 + 1e-9)).floor() as i64);
    let marks = (first..=last).map(|mark| mark as f64 * step).collect();
    Divided { is_logarithmic: false, low, high, marks }
}

/// The smallest of one, two and five times a power of ten that is at least so long.
fn step(length: f64) -> f64 {
    let power = 10f64.powf(length.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= length).unwrap_or(power)
}

/// Powers of ten and what stands between them.
const MARKS: [f64; 3] = [1.0, 2.0, 5.0];

fn logarithmic(low: f64, high: f64, room: usize, unit: Unit) -> Divided {
    if low <= 0.0 {
        return Divided { is_logarithmic: true, low, high, marks: vec![low, high] };
    }
    let candidates = match unit {
        Unit::Bytes => [4.0, 16.0, 64.0, 1024.0].map(|base| powers(low, high, base, &[1.0])),
        _ => [(10.0, &MARKS[..]), (10.0, &[1.0, 3.0]), (10.0, &[1.0]), (100.0, &[1.0])]
            .map(|(base, times)| powers(low, high, base, times)),
    };
    let fits = candidates.iter().find(|marks| marks.len() <= room.max(2));
    Divided { is_logarithmic: true, low, high, marks: fits.unwrap_or(&candidates[3]).clone() }
}

/// The powers of a base between two values, each so many times.
fn powers(low: f64, high: f64, base: f64, times: &[f64]) -> Vec<f64> {
    let (first, last) = (low.log(base).floor() as i32, high.log(base).ceil() as i32);
    let marks = (first..=last).flat_map(|power| times.iter().map(move |times| times * base.powi(power)));
    marks.filter(|mark| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(mark)).collect()
}

/// The ends of an axis of powers that has few marks between them: then they are marks themselves.
fn widened(low: f64, high: f64) -> [f64; 2] {
    if low <= 0.0 || powers(low, high, 10.0, &MARKS).len() > 3 {
        return [low, high];
    }
    let around = powers(low / 10.0, high * 10.0, 10.0, &MARKS);
    let below = around.iter().copied().filter(|mark| *mark <= low).fold(low / 10.0, f64::max);
    [below, around.iter().copied().filter(|mark| *mark >= high).fold(high * 10.0, f64::min)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plots::text::text;

    fn marks(axis: &Axis, values: &[f64], room: usize) -> Vec<f64> {
        axis.divided(values.iter().copied(), room).marks
    }

    #[test]
    fn marks_are_round_and_find_room() {
        let linear = Axis::new("ms", Scale::Linear);
        assert_eq!(marks(&linear, &[4.0, 4814.0], 5), [0.0, 1000.0, 2000.0, 3000.0, 4000.0]);
        let powers = Axis::new("GB/s", Scale::Logarithmic);
        assert_eq!(marks(&powers, &[190.0, 4814.0], 8), [200.0, 500.0, 1000.0, 2000.0]);
        assert_eq!(marks(&powers, &[1.0, 4814.0], 4), [1.0, 10.0, 100.0, 1000.0]);
        let bytes = Axis::new("bytes", Scale::Logarithmic).written(Unit::Bytes);
        let marked = marks(&bytes, &[4096.0, 4_294_967_296.0], 4);
        assert_eq!(
            marked.iter().map(|mark| text(*mark, Unit::Bytes)).collect::<Vec<_>>(),
            ["4 KiB", "256 KiB", "16 MiB", "1 GiB"]
        );
        // Where few marks are between the values, it ends at marks.
        assert_eq!(marks(&powers, &[2500.0, 4814.0], 8), [2000.0, 5000.0]);
        let strides = Axis::new("stride", Scale::Logarithmic).marked(vec![1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(marks(&strides, &[1.0, 16.0], 3).len(), 5);
    }

    #[test]
    fn zero_stands_a_step_before_one() {
        let offsets = Axis::new("offset", Scale::Logarithmic).divided([0.0, 1.0, 2.0].into_iter(), 9);
        assert_eq!([0.0, 1.0, 2.0].map(|value| offsets.place(value)), [0.0, 0.5, 1.0]);
        assert!(offsets.holds(1.5) && !offsets.holds(2.5));
    }

    #[test]
    fn nothing_and_one_value_make_an_axis_too() {
        for scale in [Scale::Linear, Scale::Between(0.0, 1.0), Scale::Logarithmic] {
            for values in [&[][..], &[7.0], &[0.0], &[f64::NAN, f64::INFINITY]] {
                let place = Axis::new("", scale).divided(values.iter().copied(), 5).place(0.0);
                assert!(place.is_finite(), "{scale:?} {values:?}");
            }
        }
    }
}
