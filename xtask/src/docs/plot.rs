//! Plots as SVG, of both GPUs: a colour for each curve, solid for the one GPU and dashed for the other.

use anyhow::{Context, Result, ensure};
use busload::plots::{self, Curves, Ink, Layer, Marker, Picture, Stroke, Table};

/// A plot, but for its curves.
pub(super) struct Plot {
    /// The name of its file, without `.svg`.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
}

/// What an axis shows.
pub(super) struct Axis {
    /// What, with its unit.
    pub(super) label: &'static str,
    pub(super) scale: Scale,
}

/// How an axis is divided.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    /// From zero on.
    Linear,
    /// From one figure to another.
    Between(f64, f64),
    /// By powers, with these marks, of which the first and the last are its ends.
    Logarithmic(&'static [f64]),
}

/// A curve.
pub(super) struct Curve {
    /// What it is of.
    pub(super) label: String,
    pub(super) points: Vec<(f64, f64)>,
}

impl Curve {
    pub(super) fn new(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), points }
    }
}

/// A curve of more points is a line alone.
const MOST_DOTS: usize = 40;

impl Axis {
    fn drawn(&self) -> plots::Axis {
        let axis = |scale| plots::Axis::new(self.label, scale);
        match self.scale {
            Scale::Linear => axis(plots::Scale::Linear),
            Scale::Between(low, high) => axis(plots::Scale::Between(low, high)),
            Scale::Logarithmic(marks) => axis(plots::Scale::Logarithmic).marked(marks.to_vec()),
        }
    }
}

impl Plot {
    /// The SVG, of the curves of each GPU, which must be of the same things.
    pub(super) fn svg(&self, gpus: &[(&str, Vec<Curve>)]) -> Result<String> {
        let (_, first) = gpus.first().context("no GPU")?;
        for (gpu, curves) in gpus {
            let labels = |curves: &[Curve]| curves.iter().map(|curve| curve.label.clone()).collect::<Vec<_>>();
            ensure!(labels(curves) == labels(first), "{}: other curves for the {gpu}", self.name);
        }
        let single = first.len() == 1;
        let mut layers = Vec::new();
        for (gpu, (name, curves)) in gpus.iter().enumerate() {
            for (number, curve) in curves.iter().enumerate() {
                let label = if single { (*name).to_owned() } else { curve.label.clone() };
                let ink = Ink::Series(if single { gpu } else { number });
                let points: Vec<_> = curve.points.iter().map(|(x, y)| [*x, *y]).collect();
                let has_dots = points.len() <= MOST_DOTS;
                let (stroke, dots) = match gpu {
                    0 if has_dots => (Stroke::Line(Marker::Dot), None),
                    0 => (Stroke::Plain, None),
                    _ => (Stroke::Dashed, has_dots.then_some(Stroke::Points(Marker::Ring))),
                };
                let layer = |stroke| Layer { label: label.clone(), ink, stroke, points: points.clone() };
                layers.extend([Some(stroke), dots].into_iter().flatten().map(layer));
            }
        }
        let strokes = [Stroke::Line(Marker::Dot), Stroke::Dashed];
        let keys = gpus.iter().zip(strokes).map(|((name, _), stroke)| (stroke, Ink::Quiet, (*name).to_owned()));
        let picture = Picture::Curves(Curves {
            x: self.x.drawn(),
            y: self.y.drawn(),
            layers,
            names: Vec::new(),
            keys: if single { Vec::new() } else { keys.collect() },
        });
        let says = format!("{} against {}", self.y.label, self.x.label);
        let (name, title) = (self.name.to_owned(), self.title.to_owned());
        Ok(plots::svg(&plots::Plot { name, title, says, picture, table: Table::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLOT: Plot = Plot {
        name: "test",
        title: "A test",
        x: Axis { label: "MiB", scale: Scale::Logarithmic(&[1.0, 4.0, 16.0]) },
        y: Axis { label: "µs", scale: Scale::Linear },
    };

    fn curves(label: &str) -> Vec<Curve> {
        vec![Curve::new(label, vec![(1.0, 3.0), (16.0, 9.0)])]
    }

    #[test]
    fn an_svg_has_both_axes_and_tells_the_gpus_apart() {
        let svg = PLOT.svg(&[("H200", curves("one")), ("H100", curves("one"))]).expect("an SVG");
        for part in ["<svg", "MiB", "µs", "H200", "H100", "A test", "stroke-dasharray"] {
            assert!(svg.contains(part), "{part} in\n{svg}");
        }
    }

    #[test]
    fn both_gpus_have_the_same_curves() {
        let error = PLOT.svg(&[("H200", curves("one")), ("H100", curves("two"))]).expect_err("others");
        assert!(error.to_string().contains("test: other curves for the H100"), "{error}");
    }
}
