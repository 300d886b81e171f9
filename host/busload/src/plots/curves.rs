//! Bandwidth over an axis: what plots of it have in common.

use super::material::{Material, Subject};
use super::on::{On, Source};
use super::picture::{Axis, Curves, Ink, Layer, Marker, Picture, Plot, Scale, Stroke, Table};
use super::text::{MISSING, filled, number, share, shown, text};

/// The least number of values that make a curve.
pub(crate) const LEAST: usize = 3;

/// Axes of families that say how much there is to do.
pub(crate) const SIZES: [&str; 2] = ["elements", "shape"];

/// A kernel over the values of an axis.
pub(crate) struct Line<'a> {
    /// What it is called.
    pub(crate) label: String,
    /// Where on the axis, and what was found there; from left to right.
    pub(crate) points: Vec<(f64, &'a Subject)>,
}

/// A plot, but for its lines.
pub(crate) struct Over {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) says: String,
    pub(crate) x: Axis,
    /// What stands behind the lines.
    pub(crate) expected: &'static [Expected],
    /// Whether the driver's copies are a line of their own.
    pub(crate) copies: bool,
}

/// A curve to expect, as a share of the speed of the driver's copy of as many bytes.
pub(crate) struct Expected {
    label: &'static str,
    stroke: Stroke,
    share: fn(&Subject) -> Option<f64>,
}

/// What to expect if the sectors that are asked for move.
pub(crate) const FROM_SECTORS: Expected = Expected {
    label: "expected from sectors",
    stroke: Stroke::Dashed,
    share: |subject| subject.asked?.used_of_sectors(subject.bytes),
};

/// What to expect if whole lines moved.
pub(crate) const FROM_LINES: Expected = Expected {
    label: "expected from whole lines",
    stroke: Stroke::Dotted,
    share: |subject| subject.asked?.used_of_lines(subject.bytes),
};

impl Expected {
    fn gbps(&self, subject: &Subject, series: usize) -> Option<f64> {
        Some(subject.copy_gbps(series)? * (self.share)(subject)?.min(1.0))
    }
}

/// The plot of these lines in each series; none if nothing of it was measured or predicted.
pub(crate) fn plot(material: &Material, over: Over, lines: &[Line<'_>]) -> Option<Plot> {
    let drawn = Drawn { material, over: &over, lines };
    let series = 0..material.series.len();
    let mut layers: Vec<_> = series.clone().flat_map(|series| drawn.behind(series)).collect();
    layers.extend((0..material.forecasts.len()).flat_map(|forecast| drawn.predicted(forecast)));
    layers.extend(series.flat_map(|series| drawn.measured(series)));
    let has_values = layers.iter().any(|layer| matches!(layer.stroke, Stroke::Line(_) | Stroke::Points(_)));
    let table = drawn.table();
    let keys = keys(material);
    let Over { name, title, says, x, .. } = over;
    let y = Axis::new("GB/s", Scale::Logarithmic);
    let picture = Picture::Curves(Curves { x, y, layers, names: Vec::new(), keys });
    has_values.then_some(Plot { name, title, says, picture, table })
}

/// What the colours mean where there are several series: their files.
pub(crate) fn keys(material: &Material) -> Vec<(Stroke, Ink, String)> {
    let series = material.series.iter().enumerate();
    let keys = series.map(|(number, series)| (Stroke::Plain, Ink::Series(number), series.label.clone()));
    if material.series.len() > 1 { keys.collect() } else { Vec::new() }
}

struct Drawn<'a> {
    material: &'a Material,
    over: &'a Over,
    lines: &'a [Line<'a>],
}

/// What the copies of the driver are called.
const COPY: &str = "copy by the driver";

impl Drawn<'_> {
    fn are_many(&self) -> bool {
        self.material.series.len() > 1
    }

    /// The colour of a line: each its own, or all of a file the same where there are several.
    fn ink(&self, series: usize, line: usize) -> Ink {
        Ink::Series(if self.are_many() { series } else { line + usize::from(self.over.copies) })
    }

    /// The colour of what stands behind the lines of a series.
    fn ink_behind(&self, series: usize) -> Ink {
        if self.are_many() { Ink::Series(series) } else { Ink::Quiet }
    }

    /// The peak, the curves to expect, and the driver's copies.
    fn behind(&self, series: usize) -> Vec<Layer> {
        let of = &self.material.series[series];
        let layer = |label: &str, ink, stroke, points| Layer { label: label.to_owned(), ink, stroke, points };
        let ink = self.ink_behind(series);
        let mut layers = Vec::new();
        let places = self.lines.iter().flat_map(|line| &line.points).map(|(x, _)| *x);
        let copies = of.copies.iter().filter(|_| self.over.copies).map(|[bytes, _]| *bytes);
        let places: Vec<f64> = places.chain(copies).collect();
        let ends = [places.iter().copied().fold(f64::INFINITY, f64::min), places.iter().copied().fold(0.0, f64::max)];
        if let Some(peak) = of.machine.peak_gbps.filter(|_| !places.is_empty()) {
            layers.push(layer("peak", ink, Stroke::Plain, ends.map(|x| [x, peak]).to_vec()));
        }
        for expected in self.over.expected {
            let mut curves: Vec<Vec<[f64; 2]>> = Vec::new();
            for line in self.lines {
                let points = line.points.iter().filter_map(|(x, subject)| Some([*x, expected.gbps(subject, series)?]));
                let points: Vec<_> = points.collect();
                // Kernels that ask for the same have one curve.
                if points.len() > 1 && !curves.iter().any(|curve| is_same(curve, &points)) {
                    curves.push(points);
                }
            }
            layers.extend(curves.into_iter().map(|points| layer(expected.label, ink, expected.stroke, points)));
        }
        if self.over.copies && !of.copies.is_empty() {
            let ink = Ink::Series(if self.are_many() { series } else { 0 });
            layers.push(layer(COPY, ink, Stroke::Line(Marker::Dot), of.copies.clone()));
        }
        layers
    }

    fn measured(&self, series: usize) -> Vec<Layer> {
        let layer = |(number, line): (usize, &Line<'_>)| {
            let gbps = |subject: &Subject| subject.measured[series].as_ref().map(|timed| timed.gbps);
            let points: Vec<_> = line.points.iter().filter_map(|(x, subject)| Some([*x, gbps(subject)?])).collect();
            let stroke = Stroke::Line(Marker::of(number + usize::from(self.over.copies)));
            let (label, ink) = (line.label.clone(), self.ink(series, number));
            (!points.is_empty()).then_some(Layer { label, ink, stroke, points })
        };
        self.lines.iter().enumerate().filter_map(layer).collect()
    }

    /// Rings beside what was measured; of a chip that nothing was measured on, lines of their own.
    fn predicted(&self, forecast: usize) -> Vec<Layer> {
        let is_alone = self.material.forecasts[forecast].series.is_none();
        let layer = |(number, line): (usize, &Line<'_>)| {
            let points = line.points.iter().filter_map(|(x, subject)| Some([*x, subject.predicted_gbps(forecast)?]));
            let points: Vec<_> = points.collect();
            let ink = self.ink(self.material.ink_of(forecast), number);
            let (label, stroke) = match is_alone {
                true => (line.label.clone(), Stroke::Line(Marker::Ring)),
                false => ("predicted".to_owned(), Stroke::Points(Marker::Ring)),
            };
            (!points.is_empty()).then_some(Layer { label, ink, stroke, points })
        };
        self.lines.iter().enumerate().filter_map(layer).collect()
    }

    /// A row for each point in each series, and in each forecast of a chip that nothing was measured on.
    fn table(&self) -> Table {
        let (material, x, expected) = (self.material, &self.over.x, self.over.expected);
        let mut columns = vec![x.label.clone(), "kernel".to_owned()];
        let on = On::new(material);
        columns.extend(on.column());
        columns.extend(["GB/s", "of copy"].map(str::to_owned));
        columns.extend(expected.iter().map(|expected| expected.label.to_owned()));
        columns.extend((!material.forecasts.is_empty()).then(|| "predicted".to_owned()));
        let mut rows = Vec::new();
        for (series, of) in material.series.iter().enumerate().filter(|_| self.over.copies) {
            for [bytes, gbps] in &of.copies {
                let mut row = vec![text(*bytes, x.unit), COPY.to_owned()];
                row.extend(on.cell(Source::Series(series)));
                row.extend([number(*gbps), "100 %".to_owned()]);
                row.resize(columns.len(), MISSING.to_owned());
                rows.push(row);
            }
        }
        for (line, (place, subject)) in
            self.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point)))
        {
            for source in on.sources(subject) {
                let mut row = vec![text(*place, x.unit), line.label.clone()];
                row.extend(on.cell(source));
                let timed = source.timed(subject);
                row.push(shown(timed.map(|timed| timed.gbps)));
                row.push(share(timed.and_then(|timed| timed.share_of_copy)));
                let gbps = |expected: &Expected| source.series().and_then(|series| expected.gbps(subject, series));
                row.extend(expected.iter().map(|expected| shown(gbps(expected))));
                row.extend((!material.forecasts.is_empty()).then(|| shown(on.predicted_gbps(subject, source))));
                rows.push(row);
            }
        }
        filled(Table { columns, rows })
    }
}

fn is_same(one: &[[f64; 2]], other: &[[f64; 2]]) -> bool {
    let is_near = |(a, b): (&[f64; 2], &[f64; 2])| a[0] == b[0] && (a[1] / b[1] - 1.0).abs() < 0.01;
    one.len() == other.len() && one.iter().zip(other).all(is_near)
}
