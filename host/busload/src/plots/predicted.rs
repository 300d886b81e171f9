//! Predicted times beside measured ones.

use super::curves::keys;
use super::material::{Material, Subject};
use super::picture::{Axis, Curves, Ink, Layer, Marker, Name, Picture, Plot, Scale, Stroke, Table};
use super::text::number;
use crate::predict::FITTED_ON;
use crate::report::signed;
use std::collections::BTreeSet;

/// How far a prediction is off before it is out of the bounds that are drawn.
const BOUND: f64 = 0.3;

struct Point<'a> {
    subject: &'a Subject,
    forecast: usize,
    measured: f64,
    predicted: f64,
}

impl Point<'_> {
    fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    fn is_fitted(&self) -> bool {
        FITTED_ON.contains(&self.subject.family.as_str())
    }
}

/// The plot; none if nothing was both measured and predicted.
pub(crate) fn plot(material: &Material) -> Option<Plot> {
    let points = points(material);
    let least = points.iter().map(|point| point.measured.min(point.predicted)).reduce(f64::min)?;
    let most = points.iter().map(|point| point.measured.max(point.predicted)).fold(least, f64::max);
    let line = |label: &str, factor: f64, stroke| Layer {
        label: label.to_owned(),
        ink: Ink::Quiet,
        stroke,
        points: [least, most].map(|ms| [ms, ms * factor]).to_vec(),
    };
    let mut layers = vec![
        line("as measured", 1.0, Stroke::Plain),
        line("30 % off", 1.0 + BOUND, Stroke::Dashed),
        line("30 % off", 1.0 - BOUND, Stroke::Dashed),
    ];
    let several = material.series.len() > 1;
    for (forecast, _) in material.forecasts.iter().enumerate() {
        for (fitted, what) in [(true, "families that the model was fitted to"), (false, "other families")] {
            let of_kind = points.iter().filter(|point| point.forecast == forecast && point.is_fitted() == fitted);
            let mut at: Vec<_> = of_kind.map(|point| [point.measured, point.predicted]).collect();
            at.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
            let ink = Ink::Series(if several { material.ink_of(forecast) } else { usize::from(!fitted) });
            if !at.is_empty() {
                let marker = if fitted { Marker::Ring } else { Marker::Dot };
                layers.push(Layer { label: what.to_owned(), ink, stroke: Stroke::Points(marker), points: at });
            }
        }
    }
    let mut worst: Vec<_> = points.iter().filter(|point| point.error().abs() > 0.15).collect();
    worst.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()));
    let mut named = BTreeSet::new();
    worst.retain(|point| named.insert(&point.subject.kernel));
    let name = |point: &&Point<'_>| Name { at: [point.measured, point.predicted], text: point.subject.kernel.clone() };
    let picture = Picture::Curves(Curves {
        x: Axis::new("measured, ms", Scale::Logarithmic),
        y: Axis::new("predicted, ms", Scale::Logarithmic),
        layers,
        names: worst.iter().map(name).collect(),
        keys: keys(material),
    });
    let mut errors: Vec<f64> = points.iter().map(|point| point.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let within = errors.iter().filter(|error| **error <= BOUND).count();
    let says = format!(
        "Each kernel on each case. The median error is {} %; {within} of {} are within 30 %.",
        number(100.0 * crate::timing::quantile(&errors, 0.5)),
        errors.len()
    );
    let title = "Predicted beside measured".to_owned();
    Some(Plot { name: "predicted".into(), title, says, picture, table: table(material, &points) })
}

fn points(material: &Material) -> Vec<Point<'_>> {
    let mut points = Vec::new();
    for (forecast, of) in material.forecasts.iter().enumerate() {
        let Some(series) = of.series else { continue };
        for subject in &material.subjects {
            if let (Some(timed), Some(prediction)) = (&subject.measured[series], &subject.predicted[forecast]) {
                let (measured, predicted) = (timed.median_ms, prediction.predicted_ms);
                points.push(Point { subject, forecast, measured, predicted });
            }
        }
    }
    points
}

fn table(material: &Material, points: &[Point<'_>]) -> Table {
    let several = material.forecasts.len() > 1;
    let mut columns = vec!["kernel".to_owned(), "case".to_owned()];
    columns.extend(several.then(|| "on".to_owned()));
    columns.extend(["measured ms", "predicted ms", "error"].map(str::to_owned));
    let row = |point: &Point<'_>| {
        let mut row = vec![point.subject.kernel.clone(), point.subject.case.clone()];
        row.extend(several.then(|| material.forecasts[point.forecast].chip.clone()));
        row.extend([number(point.measured), number(point.predicted), signed(point.error())]);
        row
    };
    Table { columns, rows: points.iter().map(row).collect() }
}
