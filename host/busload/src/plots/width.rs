//! Bandwidth against the bytes that a lane takes at a time.

use super::curves::{self, FROM_SECTORS, LEAST, Line, Over, SIZES};
use super::material::{Material, Subject};
use super::picture::{Axis, Plot, Scale};
use std::collections::BTreeMap;

/// The plot; none if no family has kernels of three widths.
pub(crate) fn plot(material: &Material) -> Option<Plot> {
    let lines: Vec<_> = material.families().into_iter().flat_map(|family| lines(material, family)).collect();
    let mut marks: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|(x, _)| *x).collect();
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    let over = Over {
        name: "width".into(),
        title: "Bandwidth against width".into(),
        says: "Families whose kernels differ in the bytes that a lane loads and stores at a time. All use the sectors alike, but \
               the narrow ones have fewer bytes in flight."
            .into(),
        x: Axis::new("bytes a lane", Scale::Logarithmic).marked(marks),
        expected: &[FROM_SECTORS],
        copies: false,
    };
    (!lines.is_empty()).then(|| curves::plot(material, over, &lines)).flatten()
}

/// A line for each case, of the largest size, of a family of which each kernel has a width of its own.
fn lines<'a>(material: &'a Material, family: &'a str) -> Vec<Line<'a>> {
    // By what a case is but for its size, then by width: the largest.
    let mut cases: Vec<(String, BTreeMap<u64, &Subject>)> = Vec::new();
    for subject in material.of_family(family) {
        let Some(width) = subject.asked.and_then(|asked| asked.width) else { return Vec::new() };
        let others = subject.params.iter().filter(|(name, _)| !SIZES.contains(&name.as_str()));
        let others = others
            .map(|(name, value)| format!("{name}={}", value.to_string().trim_matches('"')))
            .collect::<Vec<_>>()
            .join(" ");
        let place = cases.iter().position(|(case, _)| *case == others).unwrap_or_else(|| {
            cases.push((others, BTreeMap::new()));
            cases.len() - 1
        });
        match cases[place].1.get(&width) {
            Some(other) if other.kernel != subject.kernel => return Vec::new(),
            Some(other) if other.bytes > subject.bytes => {}
            _ => _ = cases[place].1.insert(width, subject),
        }
    }
    cases.retain(|(_, widths)| widths.len() >= LEAST);
    let line = |(case, widths): (String, BTreeMap<u64, &'a Subject>)| Line {
        label: if case.is_empty() { family.to_owned() } else { format!("{family}, {case}") },
        points: widths.into_iter().map(|(width, subject)| (width as f64, subject)).collect(),
    };
    cases.into_iter().map(line).collect()
}
