//! A fleet of GPUs on one page: how fast each is, and on which kernels they are apart.

use super::page::{figure, table};
use super::picture::{Axis, Group, Ink, Lane, Level, Mark, Picture, Plot, Row, Rows, Scale, Shape, Table, Unit};
use super::text::{MISSING, filled, share};
use crate::fleet::{Fleet, Gpu};
use crate::html;
use crate::report::escape::markup;
use crate::report::{called, verdicts};
use std::collections::BTreeMap;

/// The page of a fleet.
#[must_use]
pub fn fleet_page(fleet: &Fleet) -> String {
    let suspects = fleet.gpus.iter().filter(|gpu| gpu.is_suspect()).count();
    let names = models(fleet).into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    let heading = match fleet.gpus.len() {
        1 => "A fleet of one GPU".to_owned(),
        count => format!(
            "A fleet of {count} GPUs, {} to look at",
            if suspects == 0 { "none".to_owned() } else { suspects.to_string() }
        ),
    };
    let body = html::fill(include_str!("fleet.html"), |part| match part {
        "heading" => markup(&heading),
        "names" => markup(&names),
        "verdicts" => verdicts(fleet).iter().map(|line| format!("<li>{}</li>\n", markup(line))).collect(),
        "gpus" => figure(&gpus(fleet)),
        "kernels" => kernels(fleet).as_ref().map(figure).unwrap_or_default(),
        "outliers" => outliers(fleet),
        _ => unreachable!("fleet.html has no {part}"),
    });
    html::page(&heading, include_str!("page.css"), &body)
}

/// Blue is what is well, orange what is slow.
const WELL: Ink = Ink::Series(0);
const SLOW: Ink = Ink::Series(1);

/// The GPUs, each with its speed on every kernel.
fn gpus(fleet: &Fleet) -> Plot {
    let mut speeds = BTreeMap::<&str, [Vec<f64>; 2]>::new();
    for place in fleet.kernels.iter().flat_map(|ranking| &ranking.gpus) {
        speeds.entry(&place.file).or_default()[usize::from(place.outliers > 0)].push(place.speed - 1.0);
    }
    let row = |gpu: &Gpu| {
        let [well, slow] = speeds.get(gpu.file.as_str()).cloned().unwrap_or_default();
        let mean = gpu.speed.map(|speed| Mark { shape: Shape::Diamond, ink: Ink::Quiet, values: vec![speed - 1.0] });
        let combs = [(WELL, well), (SLOW, slow)].map(|(ink, values)| Mark { shape: Shape::Sample, ink, values });
        let marks = combs.into_iter().filter(|mark| !mark.values.is_empty()).chain(mean).collect();
        Row { label: called(gpu), lanes: vec![Lane { marks, note: gpu.verdict().to_owned() }] }
    };
    let or_missing = |text: Option<String>| text.unwrap_or_else(|| MISSING.to_owned());
    let count = |count: usize| or_missing((count > 0).then(|| count.to_string()));
    let cells = |gpu: &Gpu| {
        let reasons = gpu.throttled_by();
        vec![
            called(gpu),
            model(fleet, &gpu.name),
            or_missing(gpu.speed.map(|speed| format!("{speed:.3}"))),
            gpu.cases.to_string(),
            count(gpu.outliers.len()),
            count(gpu.failed.len()),
            count(gpu.discarded as usize),
            or_missing(gpu.temperature_c.map(|degrees| degrees.to_string())),
            or_missing((!reasons.is_empty()).then_some(reasons)),
            or_missing(gpu.device.map(|device| device.to_string())),
            or_missing(gpu.id.as_deref().map(|id| id.chars().take(8).collect())),
            gpu.verdict().to_owned(),
        ]
    };
    let columns = [
        "GPU",
        "model",
        "speed",
        "cases",
        "slow cases",
        "failed cases",
        "discarded samples",
        "°C",
        "throttled by",
        "device",
        "id",
        "verdict",
    ];
    let groups = models(fleet).into_iter().map(|(model, several)| {
        let gpus = fleet.gpus.iter().filter(|gpu| gpu.name == model);
        group(several.then(|| model.to_owned()), gpus.map(row).collect())
    });
    let groups: Vec<_> = groups.collect();
    Plot {
        name: "gpus".to_owned(),
        title: "Speed of each GPU".to_owned(),
        says: "Each thin line is a kernel on that GPU, the diamond their geometric mean; the slowest GPU stands first."
            .to_owned(),
        picture: Picture::Rows(Rows {
            x: axis(&groups),
            keys: vec![
                (Shape::Sample, WELL, "a kernel".to_owned()),
                (Shape::Sample, SLOW, "a kernel with a slow case".to_owned()),
                (Shape::Diamond, Ink::Quiet, "all its kernels".to_owned()),
            ],
            groups,
        }),
        table: filled(Table {
            columns: columns.map(str::to_owned).to_vec(),
            rows: fleet.gpus.iter().map(cells).collect(),
        }),
    }
}

/// The names of the GPUs, and whether there are several.
fn models(fleet: &Fleet) -> Vec<(&str, bool)> {
    let mut names: Vec<_> = fleet.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    names.dedup();
    let several = names.len() > 1;
    names.into_iter().map(|name| (name, several)).collect()
}

/// A GPU's name, where there are others.
fn model(fleet: &Fleet, name: &str) -> String {
    if fleet.gpus.iter().any(|gpu| gpu.name != name) { name.to_owned() } else { MISSING.to_owned() }
}

fn group(title: Option<String>, rows: Vec<Row>) -> Group {
    Group { title, levels: vec![Level { label: "the median GPU".to_owned(), ink: Ink::Quiet, value: 0.0 }], rows }
}

/// An axis that ends alike on both sides, so that the median GPU is in its middle.
fn axis(groups: &[Group]) -> Axis {
    let lanes = groups.iter().flat_map(|group| &group.rows).flat_map(|row| &row.lanes);
    let farthest = lanes
        .flat_map(|lane| &lane.marks)
        .flat_map(|mark| &mark.values)
        .fold(0.0f64, |far, value| far.max(value.abs()));
    let end = [0.02, 0.05, 0.1, 0.2, 0.5].into_iter().find(|end| farthest <= *end).unwrap_or(1.0);
    Axis::new("slower or faster than the median GPU", Scale::Between(-end, end)).written(Unit::Percent)
}

/// The kernels, each with its speed on every GPU; none if no two GPUs can be compared.
fn kernels(fleet: &Fleet) -> Option<Plot> {
    let names: BTreeMap<_, _> = fleet.gpus.iter().map(|gpu| (gpu.file.as_str(), called(gpu))).collect();
    let named = |file: &str| names.get(file).cloned().unwrap_or_else(|| file.to_owned());
    let groups: Vec<_> = models(fleet)
        .into_iter()
        .filter_map(|(model, several)| {
            let rankings = fleet.kernels.iter().filter(|ranking| ranking.name == model);
            let rows: Vec<_> = rankings
                .map(|ranking| {
                    let of = |is_slow: bool| {
                        let places = ranking.gpus.iter().filter(|place| (place.outliers > 0) == is_slow);
                        places.map(|place| place.speed - 1.0).collect::<Vec<_>>()
                    };
                    let combs = [(WELL, of(false)), (SLOW, of(true))];
                    let marks = combs.map(|(ink, values)| Mark { shape: Shape::Sample, ink, values });
                    let marks = marks.into_iter().filter(|mark| !mark.values.is_empty()).collect();
                    let note = share(Some(ranking.apart() - 1.0));
                    Row { label: ranking.kernel.clone(), lanes: vec![Lane { marks, note }] }
                })
                .collect();
            (!rows.is_empty()).then(|| group(several.then(|| model.to_owned()), rows))
        })
        .collect();
    let cells = fleet.kernels.iter().flat_map(|ranking| {
        ranking.gpus.iter().enumerate().map(|(place, of)| {
            vec![
                ranking.kernel.clone(),
                model(fleet, &ranking.name),
                (place + 1).to_string(),
                named(&of.file),
                format!("{:.3}", of.speed),
                if of.outliers > 0 { of.outliers.to_string() } else { MISSING.to_owned() },
            ]
        })
    });
    (!groups.is_empty()).then(|| Plot {
        name: "kernels".to_owned(),
        title: "Kernels, the GPUs furthest apart first".to_owned(),
        says: "Each thin line is a GPU. At the end of a row stands by how much the fastest is faster than the slowest; the table has \
               every GPU's place, the slowest first."
            .to_owned(),
        picture: Picture::Rows(Rows {
            x: axis(&groups),
            keys: vec![
                (Shape::Sample, WELL, "a GPU".to_owned()),
                (Shape::Sample, SLOW, "a GPU with a slow case".to_owned()),
            ],
            groups,
        }),
        table: filled(Table {
            columns: ["kernel", "model", "place", "GPU", "speed", "slow cases"].map(str::to_owned).to_vec(),
            rows: cells.collect(),
        }),
    })
}

/// Every slow case, and every case that failed.
fn outliers(fleet: &Fleet) -> String {
    let rows = fleet.gpus.iter().flat_map(|gpu| {
        let slow = gpu.outliers.iter().map(|outlier| {
            vec![
                called(gpu),
                outlier.kernel.clone(),
                outlier.case.clone(),
                format!("{:.4}", outlier.ms),
                format!("{:.4}", outlier.others_ms),
                format!("+{:.1} %", 100.0 * (outlier.ms / outlier.others_ms - 1.0)),
                outlier.z_score.map_or_else(
                    || MISSING.to_owned(),
                    |z| if z < 1000.0 { format!("{z:.1}") } else { "above 1000".to_owned() },
                ),
            ]
        });
        slow.collect::<Vec<_>>()
    });
    let columns = ["GPU", "kernel", "case", "ms", "the others’ ms", "slower by", "robust z-score"];
    let slow = Table { columns: columns.map(str::to_owned).to_vec(), rows: rows.collect() };
    let slow = match slow.rows.is_empty() {
        true => "<p>No case is slow.</p>\n".to_owned(),
        false => format!(
            "<div class=\"figures\" tabindex=\"0\" role=\"region\" aria-label=\"Slow cases\">\n{}</div>\n",
            table(&slow, "Slow cases")
        ),
    };
    let failed = fleet.gpus.iter().flat_map(|gpu| {
        gpu.failed
            .iter()
            .map(|case| format!("<li>{}: {}</li>\n", markup(&called(gpu)), markup(case)))
            .collect::<Vec<_>>()
    });
    let failed: String = failed.collect();
    if failed.is_empty() { slow } else { format!("{slow}<h3>Failed cases</h3>\n<ul>\n{failed}</ul>\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{Outlier, Place, Ranking, Rules};
    use crate::provenance::Process;

    fn gpu(rank: u32, name: &str, outliers: Vec<Outlier>, failed: Vec<String>) -> Gpu {
        Gpu {
            file: format!("{rank}.json"),
            name: name.to_owned(),
            id: None,
            device: Some(rank),
            process: Some(Process { rank, of: 2, local_rank: None, host: "n<0>".to_owned() }),
            speed: Some(1.0),
            cases: 1,
            outliers,
            failed,
            throttled: BTreeMap::new(),
            discarded: 0,
            temperature_c: None,
            unfinished: false,
        }
    }

    fn place(file: &str, speed: f64, outliers: usize) -> Place {
        Place { file: file.to_owned(), speed, outliers }
    }

    #[test]
    fn the_page_ranks_the_gpus_by_kernel_and_names_what_is_slow() {
        let slow = Outlier { kernel: "copy".into(), case: "1024".into(), ms: 1.2, others_ms: 1.0, z_score: None };
        let fleet = Fleet {
            rules: Rules::default(),
            gpus: vec![
                gpu(1, "H200", vec![slow], vec!["gather on 64: launch".into()]),
                gpu(0, "H200", Vec::new(), Vec::new()),
            ],
            kernels: vec![Ranking {
                kernel: "copy".into(),
                name: "H200".into(),
                gpus: vec![place("1.json", 0.8, 1), place("0.json", 1.0, 0)],
            }],
            missing: Vec::new(),
            twice: Vec::new(),
            differences: Vec::new(),
        };
        let page = fleet_page(&fleet);
        for text in [
            "<h1>A fleet of 2 GPUs, 1 to look at</h1>",
            "n&lt;0&gt;, rank 1",
            "<td>1</td><td class=\"word\">n&lt;0&gt;, rank 1</td><td>0.800</td><td>1</td>",
            "<td>+20.0 %</td>",
            "gather on 64: launch",
            "25.0 %",
        ] {
            assert!(page.contains(text), "{text} is not in {page}");
        }
        assert!(!page.contains("n<0>"), "names are text");
        let Picture::Rows(rows) = gpus(&fleet).picture else { panic!("rows") };
        assert_eq!(rows.x.scale, Scale::Between(-0.2, 0.2), "the median stands in the middle");
    }

    #[test]
    fn a_fleet_that_has_nothing_to_compare_has_a_page_too() {
        let alone = Fleet {
            rules: Rules::default(),
            gpus: vec![gpu(0, "H200", Vec::new(), Vec::new())],
            kernels: Vec::new(),
            missing: Vec::new(),
            twice: Vec::new(),
            differences: Vec::new(),
        };
        let page = fleet_page(&alone);
        assert!(page.contains("No case is slow.") && !page.contains("furthest apart"), "{page}");
    }
}
