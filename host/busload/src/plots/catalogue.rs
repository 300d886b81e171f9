//! Which plots there are, by chapters.

use super::material::Material;
use super::picture::Plot;
use super::{by_axis, ladder, predicted, roofline, samples, size, width};
use crate::suite::Suite;
use std::collections::BTreeSet;

/// Plots that belong together.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// Its heading.
    pub title: &'static str,
    /// What it shows, in a sentence.
    pub says: &'static str,
    /// Its plots.
    pub plots: Vec<Plot>,
}

/// All plots that can be made, by chapters. No two have the same name.
#[must_use]
pub fn chapters(material: &Material) -> Vec<Chapter> {
    let (mut against, mut others) = (Vec::new(), Vec::new());
    for plot in by_axis::plots(material) {
        if FIRST.contains(&plot.name.as_str()) { against.push(plot) } else { others.push(plot) }
    }
    against.extend(size::plot(material));
    against.extend(width::plot(material));
    against.extend(others);
    let under_the_roof = [roofline::plot(material), predicted::plot(material)];
    let mut chapters = vec![
        Chapter {
            title: "Bandwidth",
            says: "Bytes that must move, over the median time. Behind the curves stands what to expect by the bytes that are moved in vain.",
            plots: against,
        },
        Chapter {
            title: "Limits",
            says: "How near the kernels are to what the memory gives, and how near predictions are to what was measured.",
            plots: under_the_roof.into_iter().flatten().collect(),
        },
        Chapter {
            title: "Ladders",
            says: "The kernels of each family, from naive to best, beside the driver's copy of as many bytes and the peak of the memory.",
            plots: ladder::plots(material),
        },
        Chapter {
            title: "Samples",
            says: "Each sample of each measurement as a thin line: how far they scatter around the median.",
            plots: samples::plots(material),
        },
    ];
    let mut names = BTreeSet::new();
    for plot in chapters.iter_mut().flat_map(|chapter| &mut chapter.plots) {
        while !names.insert(plot.name.clone()) {
            plot.name.push('-');
        }
    }
    chapters.retain(|chapter| !chapter.plots.is_empty());
    chapters
}

/// The axes that come first.
const FIRST: [&str; 2] = ["stride", "offset"];

/// The plot of this name; `samples-KERNEL` is one too.
#[must_use]
pub fn find(material: &Material, name: &str) -> Option<Plot> {
    let mut plots = chapters(material).into_iter().flat_map(|chapter| chapter.plots);
    plots.find(|plot| plot.name == name).or_else(|| samples::of_kernel(material, name.strip_prefix("samples-")?))
}

/// The plots that the files hold nothing for, each with what to do for it.
#[must_use]
pub fn left_out(suite: &Suite, material: &Material) -> Vec<(String, String)> {
    let there: BTreeSet<_> =
        chapters(material).into_iter().flat_map(|chapter| chapter.plots).map(|plot| plot.name).collect();
    let kernels = |name: &str| format!("measure with `bench --kernel {name} --json FILE`");
    let over = |axis: &str| {
        let of = |family: &&&gpu::suite::Family| family.axes.iter().any(|of| of.name == axis);
        let families: Vec<_> = suite.families.iter().filter(of).map(|family| family.name).collect();
        (!families.is_empty()).then(|| {
            format!("measure three values: `bench --kernel '^({})' --{axis} … --json FILE`", families.join("|"))
        })
    };
    let fixed = [
        ("stride", over("stride")),
        ("offset", over("offset")),
        ("size", Some("measure three sizes: `bench --elements … --json FILE`".to_owned())),
        ("width", suite.is_busload().then(|| kernels("vectorize"))),
        ("roofline", Some("measure with `bench --json FILE`".to_owned())),
        (
            "predicted",
            Some(
                "give what `predict --measured FILE --json FILE` wrote beside what `bench --json FILE` wrote"
                    .to_owned(),
            ),
        ),
    ];
    let fixed = fixed.into_iter().filter_map(|(name, what)| Some((name.to_owned(), what?)));
    let families = suite.families.iter().filter(|family| !family.kernels.is_empty());
    let ladders = families.flat_map(|family| {
        ["ladder", "samples"].map(|of| (super::name::name(&[of, family.name]), kernels(family.name)))
    });
    fixed.chain(ladders).filter(|(name, _)| !there.contains(name)).collect()
}
