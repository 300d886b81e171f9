//! The samples of a family's kernels, each as a thin line: how far they scatter.

use super::cases::{Case, cases};
use super::material::{Material, Subject};
use super::name::name;
use super::picture::{Axis, Group, Ink, Lane, Mark, Picture, Plot, Row, Rows, Scale, Shape, Table, Unit};
use super::text::{number, share};
use crate::timing::Timed;

/// Samples further than that from the median, as a share of it, are counted and not drawn.
const FAR: f64 = 0.2;

/// The strips of all families.
pub(crate) fn plots(material: &Material) -> Vec<Plot> {
    let families = material.families().into_iter();
    families.filter_map(|family| plot(material, family, &material.of_family(family).collect::<Vec<_>>())).collect()
}

/// The strips of one kernel, on all its cases.
pub(crate) fn of_kernel(material: &Material, kernel: &str) -> Option<Plot> {
    let subjects = material.subjects.iter().filter(|subject| subject.kernel == kernel);
    plot(material, kernel, &subjects.collect::<Vec<_>>())
}

fn plot(material: &Material, of: &str, subjects: &[&Subject]) -> Option<Plot> {
    let all = || subjects.iter().flat_map(|subject| subject.measured.iter().flatten());
    let distances = all().flat_map(|timed| timed.samples_ms.iter().map(|ms| ms / timed.median_ms - 1.0));
    let farthest = distances.map(f64::abs).filter(|far| *far <= FAR).reduce(f64::max)?;
    let end = [0.02, 0.05, 0.1].into_iter().find(|end| farthest <= *end).unwrap_or(FAR);
    let (cases, common) = cases(subjects);
    let several = cases.len() > 1;
    let row = |label: &str, subject: &Subject| {
        let lane = |(series, timed): (usize, &Option<Timed>)| Some(lane(series, timed.as_ref()?));
        Row { label: label.to_owned(), lanes: subject.measured.iter().enumerate().filter_map(lane).collect() }
    };
    let group = |title: Option<&str>, rows: Vec<Row>| {
        let rows = rows.into_iter().filter(|row| !row.lanes.is_empty()).collect();
        Group { title: title.map(str::to_owned), levels: Vec::new(), rows }
    };
    // Of one kernel the cases are the rows.
    let mut groups: Vec<_> = match several && cases.iter().all(|case| case.subjects.len() == 1) {
        true => vec![group(None, cases.iter().map(|case| row(&case.label, case.subjects[0])).collect())],
        false => {
            let rows = |case: &Case<'_>| case.subjects.iter().map(|subject| row(&subject.kernel, subject)).collect();
            cases.iter().map(|case| group(several.then_some(case.label.as_str()), rows(case))).collect()
        }
    };
    groups.retain(|group| !group.rows.is_empty());
    let series = material.series.iter().enumerate();
    let series = series.filter(|(number, _)| subjects.iter().any(|subject| subject.measured[*number].is_some()));
    let mut keys: Vec<_> = series
        .map(|(number, series)| (Shape::Sample, Ink::Series(number), format!("a sample, {}", series.label)))
        .collect();
    if let [(.., label)] = keys.as_mut_slice() {
        "a sample".clone_into(label);
    }
    keys.push((Shape::Band, Ink::Quiet, "90 in 100 samples".to_owned()));
    let on = if common.is_empty() { String::new() } else { format!("On {common}. ") };
    let says = format!(
        "{on}At the end of each row stands the median in milliseconds, and how many samples are too far off to be drawn."
    );
    let x = Axis::new("longer or shorter than the median", Scale::Between(-end, end)).written(Unit::Percent);
    Some(Plot {
        name: name(&["samples", of]),
        title: format!("Samples of {of}"),
        says,
        picture: Picture::Rows(Rows { x, keys, groups }),
        table: table(material, &cases),
    })
}

fn lane(series: usize, timed: &Timed) -> Lane {
    let off = |ms: f64| ms / timed.median_ms - 1.0;
    let values: Vec<_> = timed.samples_ms.iter().map(|ms| off(*ms)).filter(|off| off.abs() <= FAR).collect();
    let far = timed.samples_ms.len() - values.len();
    let band = [timed.p5_ms, timed.p95_ms].map(|ms| off(ms).clamp(-FAR, FAR)).to_vec();
    let marks = vec![
        Mark { shape: Shape::Band, ink: Ink::Quiet, values: band },
        Mark { shape: Shape::Sample, ink: Ink::Series(series), values },
    ];
    let beyond = if far > 0 { format!(", {far} off") } else { String::new() };
    Lane { marks, note: format!("{}{beyond}", number(timed.median_ms)) }
}

fn table(material: &Material, cases: &[Case<'_>]) -> Table {
    let several = material.series.len() > 1;
    let mut columns = vec!["kernel".to_owned()];
    columns.extend((cases.len() > 1).then(|| "case".to_owned()));
    columns.extend(several.then(|| "on".to_owned()));
    let figures = ["median ms", "its 95 % interval", "5 % ms", "95 % ms", "deviation", "samples", "outliers"];
    columns.extend(figures.map(str::to_owned));
    let rows = |(case, subject): (&str, &Subject)| {
        let row = |(series, timed): (usize, &Option<Timed>)| {
            let timed = timed.as_ref()?;
            let [low, high] = timed.interval_ms;
            let mut row = vec![subject.kernel.clone()];
            row.extend((cases.len() > 1).then(|| case.to_owned()));
            row.extend(several.then(|| material.series[series].label.clone()));
            row.extend([format!("{:.4}", timed.median_ms), format!("{low:.4}–{high:.4}")]);
            row.extend([timed.p5_ms, timed.p95_ms].map(|ms| format!("{ms:.4}")));
            row.push(share(Some(timed.mad_ms / timed.median_ms)));
            row.extend([timed.samples_ms.len(), timed.outliers.len()].map(|count| count.to_string()));
            Some(row)
        };
        subject.measured.iter().enumerate().filter_map(row).collect::<Vec<_>>()
    };
    let subjects = cases.iter().flat_map(|case| case.subjects.iter().map(|subject| (case.label.as_str(), *subject)));
    Table { columns, rows: subjects.flat_map(rows).collect() }
}
