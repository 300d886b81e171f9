//! Bandwidth against size: the driver's copy, and the fastest kernel of each family that was measured on several sizes.

use super::curves::{self, LEAST, Line, Over, SIZES};
use super::material::{Material, Subject};
use super::picture::{Axis, Plot, Scale, Unit};
use std::collections::BTreeMap;

/// The plot; none if nothing was measured on three sizes.
pub(crate) fn plot(material: &Material) -> Option<Plot> {
    let over = Over {
        name: "size".into(),
        title: "Bandwidth against size".into(),
        says: "The fastest kernel of each family, and the driver's copy of as many bytes: what to expect of a kernel that uses \
               all that it moves. What is small ends before the memory is busy."
            .into(),
        x: Axis::new("bytes read and written", Scale::Logarithmic).written(Unit::Bytes),
        expected: &[],
        copies: true,
    };
    let lines: Vec<_> = material.families().into_iter().filter_map(|family| line(material, family)).collect();
    let has_copies = material.series.iter().any(|series| series.copies.len() >= LEAST);
    (has_copies || !lines.is_empty()).then(|| curves::plot(material, over, &lines)).flatten()
}

/// The fastest kernel of a family on its largest size, over all of its sizes.
fn line<'a>(material: &'a Material, family: &'a str) -> Option<Line<'a>> {
    let speed = |subject: &Subject| subject.measured.iter().flatten().map(|timed| timed.gbps).next();
    let mut kernels: BTreeMap<&str, BTreeMap<u64, &Subject>> = BTreeMap::new();
    for subject in material.of_family(family) {
        // What differs in anything else is no other size.
        if subject.params.keys().all(|name| SIZES.contains(&name.as_str())) {
            kernels.entry(&subject.kernel).or_default().insert(subject.bytes, subject);
        }
    }
    let several = kernels.into_iter().filter(|(_, sizes)| sizes.len() >= LEAST);
    let largest = |sizes: &BTreeMap<u64, &Subject>| sizes.last_key_value().and_then(|(_, subject)| speed(subject));
    let fastest = several.filter_map(|(kernel, sizes)| Some((largest(&sizes)?, kernel, sizes)));
    let (_, kernel, sizes) = fastest.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let points = sizes.into_iter().map(|(bytes, subject)| (bytes as f64, subject)).collect();
    Some(Line { label: kernel.to_owned(), points })
}
