//! Bandwidth against an axis of the families: strides, offsets, words.

use super::curves::{self, Expected, FROM_LINES, FROM_SECTORS, LEAST, Line, Over, SIZES};
use super::material::{Material, Subject};
use super::name::name;
use super::picture::{Axis, Plot, Scale};
use std::collections::BTreeMap;

/// The plots of all axes of which a kernel has three values or more, by the name of the axis.
pub(crate) fn plots(material: &Material) -> Vec<Plot> {
    let mut axes: Vec<&str> = vec!["stride", "offset"];
    for name in material.subjects.iter().flat_map(|subject| subject.params.keys()) {
        if !axes.contains(&name.as_str()) && !SIZES.contains(&name.as_str()) {
            axes.push(name);
        }
    }
    axes.into_iter().filter_map(|axis| plot(material, axis)).collect()
}

fn plot(material: &Material, axis: &str) -> Option<Plot> {
    let lines = lines(material, axis);
    let mut marks: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|(x, _)| *x).collect();
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    let (label, says): (String, &str) = match axis {
        "stride" => (
            "stride".into(),
            "Neighbouring lanes are so many elements apart. Memory moves sectors of 32 bytes, so the wider the stride, the fewer of \
             the bytes that move are used.",
        ),
        "offset" => (
            "offset".into(),
            "A warp begins so many elements past an aligned address. It touches a sector or a line more than it needs.",
        ),
        other => (other.to_owned(), "The kernels that take this axis, on each of its values."),
    };
    let is_of_memory = ["stride", "offset"].contains(&axis);
    let expected: &'static [Expected] = if is_of_memory { &[FROM_SECTORS, FROM_LINES] } else { &[] };
    let over = Over {
        // Plots of their own have these names.
        name: if ["size", "width"].contains(&axis) { name(&["axis", axis]) } else { name(&[axis]) },
        title: format!("Bandwidth against {axis}"),
        says: says.to_owned(),
        x: Axis::new(label, Scale::Logarithmic).marked(marks),
        expected,
        copies: false,
    };
    (!lines.is_empty()).then(|| curves::plot(material, over, &lines)).flatten()
}

/// Each kernel that has values enough, on the largest of its other values.
fn lines<'a>(material: &'a Material, axis: &str) -> Vec<Line<'a>> {
    type Points<'a> = BTreeMap<u64, &'a Subject>;
    let mut kernels: Vec<(&str, Vec<(String, Points<'a>)>)> = Vec::new();
    for subject in &material.subjects {
        let Some(value) = subject.params.get(axis).and_then(serde_json::Value::as_u64) else { continue };
        let others = subject.params.iter().filter(|(name, _)| *name != axis);
        let others: Vec<_> = others.map(|(name, value)| format!("{name}={value}")).collect();
        let others = others.join(" ");
        let known = kernels.iter().position(|(kernel, _)| *kernel == subject.kernel);
        let place = known.unwrap_or_else(|| {
            kernels.push((&subject.kernel, Vec::new()));
            kernels.len() - 1
        });
        let cases = &mut kernels[place].1;
        match cases.iter_mut().find(|(of, _)| *of == others) {
            Some((_, points)) => _ = points.insert(value, subject),
            None => cases.push((others, BTreeMap::from([(value, subject)]))),
        }
    }
    let line = |(kernel, cases): (&str, Vec<(String, Points<'a>)>)| {
        let longest = cases.into_iter().map(|(_, points)| points).max_by_key(BTreeMap::len)?;
        let points: Vec<_> = longest.into_iter().map(|(value, subject)| (value as f64, subject)).collect();
        (points.len() >= LEAST).then(|| Line { label: kernel.to_owned(), points })
    };
    kernels.into_iter().filter_map(line).collect()
}
