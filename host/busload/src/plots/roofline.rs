//! The roofline of bytes: how fast a kernel could be by the bytes it moves, and how fast it is.

use super::curves::keys;
use super::material::{Material, Subject};
use super::picture::{Axis, Curves, Ink, Layer, Marker, Name, Picture, Plot, Scale, Stroke, Table, Unit};
use super::text::{MISSING, filled, number, share};
use crate::predict::Limit;
use crate::timing::Timed;
use std::collections::BTreeMap;

/// A kernel under the roof.
struct Point<'a> {
    subject: &'a Subject,
    series: usize,
    /// Bytes that must move, as a share of those that move.
    used: f64,
    /// Whether the hardware counted those that move.
    is_counted: bool,
    gbps: f64,
    /// What the model says it waits for most.
    limit: Option<Limit>,
}

/// The plot: each kernel on the largest of its cases; none if nobody says what any of them moves.
pub(crate) fn plot(material: &Material) -> Option<Plot> {
    let mut points: Vec<_> = (0..material.series.len()).flat_map(|series| points(material, series)).collect();
    let is_counted = points.iter().any(|point| point.is_counted);
    // What was counted and what was asked for are no figures of one plot.
    points.retain(|point| point.is_counted == is_counted);
    let table = table(material, &points);
    let all = points.len();
    points.retain(|point| is_of_memory(material, point));
    let mut layers = roofs(material, &points)?;
    let mut kinds: Vec<(Ink, Marker, String)> = Vec::new();
    for point in &points {
        let kind = kind(material, point);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.sort_by(|a, b| a.2.cmp(&b.2));
    for of in &kinds {
        let mut at: Vec<_> =
            points.iter().filter(|point| kind(material, point) == *of).map(|point| [point.used, point.gbps]).collect();
        at.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
        let (ink, marker, label) = of.clone();
        layers.push(Layer { label, ink, stroke: Stroke::Points(marker), points: at });
    }
    let source = match is_counted {
        true => "Nsight Compute counted between the L2 and DRAM",
        false => "the sectors that it asks for hold; what caches answer puts it above the roof",
    };
    let picture = Picture::Curves(Curves {
        x: Axis::new("bytes that must move, of those that move", Scale::Logarithmic).written(Unit::Percent),
        y: Axis::new("GB/s", Scale::Logarithmic),
        layers,
        names: names(material, &points),
        keys: keys(material),
    });
    let says = format!(
        "These kernels compute next to nothing, so the operation of this roofline is a byte that must move. Its intensity is the \
         share of such bytes in those that {source}. A kernel at the roof waits for the memory, one below it for something else.{}",
        match all - points.len() {
            0 => String::new(),
            others => format!(" {others} kernels that do not live on memory are in the table alone."),
        }
    );
    Some(Plot { name: "roofline".into(), title: "Roofline".into(), says, picture, table })
}

/// Whether what a kernel does has to do with the bandwidth of the memory: caches and shared memory serve others, or they compute or
/// wait.
fn is_of_memory(material: &Material, point: &Point<'_>) -> bool {
    let peak = material.series[point.series].machine.peak_gbps.unwrap_or(point.gbps);
    point.used <= 2.0 && point.gbps >= peak / 200.0
}

/// How a point is drawn: in the colour of its series where there are several, with a mark and a name for what the model says that it
/// waits for.
fn kind(material: &Material, point: &Point<'_>) -> (Ink, Marker, String) {
    let place = point.limit.map_or(0, |limit| LIMITS.iter().position(|other| *other == limit).unwrap_or_default());
    let ink = if material.series.len() > 1 { point.series } else { place };
    let label = point.limit.map_or_else(|| "measured".to_owned(), |limit| format!("limit: {limit}"));
    (Ink::Series(ink), Marker::of(place), label)
}

/// In the order of their colours.
const LIMITS: [Limit; 7] = [
    Limit::Dram,
    Limit::L2,
    Limit::LsuWavefronts,
    Limit::SharedWavefronts,
    Limit::Latency,
    Limit::Issue,
    Limit::Launch,
];

fn points(material: &Material, series: usize) -> Vec<Point<'_>> {
    let mut largest: BTreeMap<&str, (&Subject, &Timed)> = BTreeMap::new();
    for subject in &material.subjects {
        let Some(timed) = &subject.measured[series] else { continue };
        let known = largest.entry(&subject.kernel).or_insert((subject, timed));
        if subject.bytes >= known.0.bytes {
            *known = (subject, timed);
        }
    }
    let forecast = material.forecasts.iter().position(|forecast| forecast.series == Some(series));
    let mut points = Vec::new();
    // In the order of the suite.
    for subject in &material.subjects {
        let Some((_, timed)) = largest.get(subject.kernel.as_str()).filter(|(of, _)| std::ptr::eq(*of, subject)) else {
            continue;
        };
        let counted = subject.moved[series].map(|moved| (subject.bytes as f64 / moved, true));
        let asked = || Some((subject.asked?.used_of_sectors(subject.bytes)?, false));
        let Some((used, is_counted)) = counted.or_else(asked) else { continue };
        let limit = forecast.and_then(|of| Some(subject.predicted[of].as_ref()?.limit));
        points.push(Point { subject, series, used, is_counted, gbps: timed.gbps, limit });
    }
    points
}

/// The roofs of each series: the peak of the memory, and the driver's copy, times the intensity.
fn roofs(material: &Material, points: &[Point<'_>]) -> Option<Vec<Layer>> {
    let low = points.iter().map(|point| point.used).reduce(f64::min)?;
    let high = points.iter().map(|point| point.used).fold(1.0, f64::max);
    let several = material.series.len() > 1;
    let mut layers = Vec::new();
    for (number, series) in material.series.iter().enumerate() {
        let ink = if several { Ink::Series(number) } else { Ink::Quiet };
        let mut roof = |label: &str, gbps: f64, stroke| {
            layers.push(Layer {
                label: label.to_owned(),
                ink,
                stroke,
                points: [low, high].map(|used| [used, used * gbps]).to_vec(),
            });
        };
        if let Some(peak) = series.machine.peak_gbps {
            roof("peak of the memory", peak, Stroke::Plain);
        }
        if let Some(copy) = series.machine.copy_gbps {
            roof("copy by the driver", copy, Stroke::Dashed);
        }
    }
    Some(layers)
}

/// Those furthest below the roof first.
fn names(material: &Material, points: &[Point<'_>]) -> Vec<Name> {
    let below = |point: &Point<'_>| {
        let roof = material.series[point.series].machine.peak_gbps.unwrap_or(1.0) * point.used;
        point.gbps / roof
    };
    let mut points: Vec<_> = points.iter().collect();
    points.sort_by(|a, b| below(a).total_cmp(&below(b)));
    points.iter().map(|point| Name { at: [point.used, point.gbps], text: point.subject.kernel.clone() }).collect()
}

fn table(material: &Material, points: &[Point<'_>]) -> Table {
    let several = material.series.len() > 1;
    let mut columns = vec!["kernel".to_owned(), "case".to_owned()];
    columns.extend(several.then(|| "on".to_owned()));
    columns.extend(["bytes used", "GB/s", "of the roof", "limit"].map(str::to_owned));
    let row = |point: &Point<'_>| {
        let series = &material.series[point.series];
        let roof = series.machine.peak_gbps.map(|peak| peak * point.used);
        let mut row = vec![point.subject.kernel.clone(), point.subject.case.clone()];
        row.extend(several.then(|| series.label.clone()));
        row.extend([share(Some(point.used)), number(point.gbps), share(roof.map(|roof| point.gbps / roof))]);
        row.push(point.limit.map_or_else(|| MISSING.to_owned(), |limit| limit.to_string()));
        row
    };
    filled(Table { columns, rows: points.iter().map(row).collect() })
}
