//! `report`: the figures of its plots are those of the files, every plot is there twice as a picture and once as a table, and what makes
//! no sense is refused.

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use busload::plots::{self, Curves, Ink, Layer, Material, Picture, Plot, Rows, Shape};
use busload::suite::BUSLOAD;
use busload_tests::root;
use predicates::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

fn busload(folder: &Path, arguments: &[&str]) -> Assert {
    Command::new(env!("CARGO_BIN_EXE_busload-under-test")).current_dir(folder).args(arguments).assert()
}

/// A committed file of results, with its name.
fn committed(file: &str) -> (String, String) {
    let path = root().join("results").join(file);
    (file.to_owned(), std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn material(files: &[&str]) -> Material {
    let files: Vec<_> = files.iter().map(|file| committed(file)).collect();
    Material::read(&BUSLOAD, &files).unwrap_or_else(|error| panic!("{error}"))
}

fn of_h200() -> Material {
    material(&["nvidia-h200/bench.json", "nvidia-h200/predicted.json"])
}

fn plot(material: &Material, name: &str) -> Plot {
    plots::find(material, name).unwrap_or_else(|| panic!("no plot {name}"))
}

fn curves(plot: &Plot) -> &Curves {
    let Picture::Curves(curves) = &plot.picture else { panic!("{} has no curves", plot.name) };
    curves
}

fn rows(plot: &Plot) -> &Rows {
    let Picture::Rows(rows) = &plot.picture else { panic!("{} has no rows", plot.name) };
    rows
}

fn layer<'a>(plot: &'a Plot, label: &str) -> &'a Layer {
    let layers = &curves(plot).layers;
    layers.iter().find(|layer| layer.label == label).unwrap_or_else(|| panic!("{} has no {label}", plot.name))
}

/// The rows of a results file that are of a kernel.
fn measured(kernel: &str) -> Vec<Value> {
    let report: Value = serde_json::from_str(&committed("nvidia-h200/bench.json").1).expect("JSON");
    let rows = report["results"].as_array().expect("rows").iter().filter(|row| row["kernel"] == kernel);
    rows.cloned().collect()
}

#[test]
fn the_plot_of_strides_has_what_was_measured_and_what_sectors_and_lines_let_expect() {
    let material = of_h200();
    let plot = plot(&material, "stride");
    let rows = measured("strided_read");
    let found: Vec<_> =
        rows.iter().map(|row| [row["params"]["stride"].as_f64(), row["gbps"].as_f64()].map(Option::unwrap)).collect();
    assert_eq!(layer(&plot, "strided_read").points, found);
    // A load moves as many times its own bytes as sectors or lines, the store its own.
    let copy = |row: &Value| row["gbps"].as_f64().expect("a speed") / row["share_of_copy"].as_f64().expect("a share");
    for (label, most) in [("expected from sectors", 8.0), ("expected from whole lines", 32.0)] {
        let expected = layer(&plot, label);
        assert_eq!((expected.points.len(), expected.ink), (rows.len(), Ink::Quiet));
        for ([stride, gbps], row) in expected.points.iter().zip(&rows) {
            let share = 2.0 / (f64::min(*stride, most) + 1.0);
            assert!((gbps / (copy(row) * share) - 1.0).abs() < 1e-9, "{label} at {stride}: {gbps}");
        }
    }
    let peak = &layer(&plot, "peak").points;
    assert_eq!(peak.iter().map(|point| point[1].round()).collect::<Vec<_>>(), [4814.0, 4814.0]);
    assert_eq!(plot.table.rows.len(), 2 * rows.len());
    assert!(plot.table.columns.contains(&"predicted".to_owned()));
}

#[test]
fn a_ladder_has_its_kernels_in_their_order_beside_copy_and_peak() {
    let material = of_h200();
    let plot = plot(&material, "ladder-transpose");
    let group = rows(&plot).groups.last().expect("a group");
    assert_eq!(group.title.as_deref(), Some("16384x16384"));
    let labels: Vec<_> = group.rows.iter().map(|row| row.label.as_str()).collect();
    let family = BUSLOAD.families.iter().find(|family| family.name == "transpose").expect("transposes");
    let names: Vec<_> =
        family.kernels.iter().map(|entry| entry.kernel.name).filter(|name| labels.contains(name)).collect();
    let kernels: Vec<_> = labels.iter().copied().filter(|label| names.contains(label)).collect();
    assert_eq!(kernels, names);
    assert!(labels.contains(&"cublasSgeam"), "{labels:?}");
    let naive = group.rows.iter().find(|row| row.label == "transpose_naive").expect("a row");
    let bar = naive.lanes[0].marks.iter().find(|mark| mark.shape == Shape::Bar).expect("a bar");
    let row = measured("transpose_naive").into_iter().find(|row| row["case"] == "16384x16384").expect("a row");
    assert_eq!(bar.values, [row["gbps"].as_f64().expect("a speed")]);
    let levels: Vec<_> = group.levels.iter().map(|level| (level.label.as_str(), level.value.round())).collect();
    assert_eq!(levels, [("copy", 4231.0), ("peak", 4814.0)]);
}

#[test]
fn predictions_stand_beside_measurements_with_the_error_that_their_file_says() {
    let material = of_h200();
    let plot = plot(&material, "predicted");
    let predicted: Value = serde_json::from_str(&committed("nvidia-h200/predicted.json").1).expect("JSON");
    let score = &predicted["score"];
    let count = |of: &str| score[of]["count"].as_u64().expect("a count") as usize;
    let within = |of: &str| score[of]["within"].as_u64().expect("a count");
    assert_eq!(plot.table.rows.len(), count("time_fitted") + count("time_others"));
    let says =
        format!("{} of {} are within 30 %", within("time_fitted") + within("time_others"), plot.table.rows.len());
    assert!(plot.says.contains(&says), "{}", plot.says);
    let points = curves(&plot).layers.iter().map(|layer| layer.points.len()).max();
    assert_eq!(points, Some(count("time_others").max(count("time_fitted"))));
}

#[test]
fn samples_are_drawn_one_by_one_and_those_far_off_are_counted() {
    let material = of_h200();
    let plot = plot(&material, "samples-copy_vec4");
    let lane = &rows(&plot).groups[0].rows[0].lanes[0];
    let drawn = lane.marks.iter().find(|mark| mark.shape == Shape::Sample).expect("samples").values.len();
    let samples = measured("copy_vec4")[0]["samples_ms"].as_array().expect("samples").len();
    let off: usize =
        lane.note.split(", ").nth(1).map_or(0, |off| off.trim_end_matches(" off").parse().expect("a count"));
    assert_eq!(drawn + off, samples);
}

#[test]
fn several_files_are_series_that_are_told_apart() {
    let files =
        ["nvidia-h200/bench.json", "nvidia-h200/peers.json", "nvidia-h100/bench.json", "nvidia-h100/predicted.json"];
    let material = material(&files);
    let labels: Vec<_> = material.series.iter().map(|series| series.label.as_str()).collect();
    assert_eq!(labels, ["H200, llvm", "H200, peers", "H100 80GB HBM3, llvm"]);
    assert_eq!(material.forecasts[0].series, Some(2));
    let plot = plot(&material, "stride");
    let inks: BTreeSet<_> = curves(&plot).layers.iter().map(|layer| format!("{:?}", layer.ink)).collect();
    assert_eq!(inks.len(), 3, "{inks:?}");
    assert_eq!(curves(&plot).keys.len(), 3);
    // A file that is given twice is two series too.
    let twice = [committed(files[0]), committed(files[0])];
    let twice = Material::read(&BUSLOAD, &twice).expect("results");
    assert_ne!(twice.series[0].label, twice.series[1].label);
}

/// What an element and those in it say, one after another.
fn words(node: roxmltree::Node<'_, '_>) -> String {
    node.descendants().filter_map(|node| node.text().filter(|_| node.is_text())).collect::<Vec<_>>().join(" ")
}

/// The body of a page as XML: it closes what it opens, but for a few elements.
fn body(page: &str) -> String {
    let (_, body) = page.split_once("<body>").expect("a body");
    format!("<body>{body}</body>")
}

#[test]
fn every_plot_of_the_page_is_a_picture_with_a_name_and_a_table_with_its_figures() {
    let material = of_h200();
    let page = plots::page(&BUSLOAD, &material);
    let body = body(&page);
    let document = roxmltree::Document::parse(&body).expect("well formed");
    let mut ids = BTreeSet::new();
    for id in document.descendants().filter_map(|node| node.attribute("id")) {
        assert!(ids.insert(id), "{id} stands twice");
    }
    let links = document.descendants().filter_map(|node| node.attribute("href"));
    links.for_each(|link| assert!(ids.contains(link.trim_start_matches('#')), "{link} leads nowhere"));
    let all: Vec<_> = plots::chapters(&material).into_iter().flat_map(|chapter| chapter.plots).collect();
    let figures: Vec<_> = document.descendants().filter(|node| node.has_tag_name("figure")).collect();
    assert_eq!(figures.iter().map(|figure| figure.attribute("id").expect("an id")).collect::<Vec<_>>(), {
        all.iter().map(|plot| plot.name.as_str()).collect::<Vec<_>>()
    });
    assert!(all.len() > 50, "{} plots", all.len());
    for (figure, plot) in figures.iter().zip(&all) {
        let pictures: Vec<_> = figure.descendants().filter(|node| node.tag_name().name() == "svg").collect();
        assert_eq!(pictures.len(), 2, "{}", plot.name);
        for picture in pictures {
            assert_eq!(picture.attribute("role"), Some("img"));
            for id in picture.attribute("aria-labelledby").expect("a name").split(' ') {
                assert!(ids.contains(id), "{id}");
            }
        }
        let table = figure.descendants().find(|node| node.has_tag_name("table")).expect("a table");
        let cells: Vec<_> =
            table.descendants().filter(|node| node.has_tag_name("td") || node.has_tag_name("th")).collect();
        assert_eq!(cells.len(), (plot.table.rows.len() + 1) * plot.table.columns.len(), "{}", plot.name);
        let said = words(table);
        if let Picture::Rows(drawn) = &plot.picture {
            let lanes = drawn.groups.iter().flat_map(|group| &group.rows).flat_map(|row| &row.lanes);
            for note in lanes.map(|lane| lane.note.as_str()).filter(|_| plot.name.starts_with("ladder-")) {
                assert!(said.split(' ').any(|word| word == note), "{}: {note} is not in the table", plot.name);
            }
        }
    }
}

#[test]
fn the_page_needs_nothing_but_a_browser_and_is_the_same_every_time() {
    let page = plots::page(&BUSLOAD, &of_h200());
    for outside in ["<script", " src=", "@import", "url(", "<link"] {
        assert!(!page.contains(outside), "the page has {outside}");
    }
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
    assert!(page == plots::page(&BUSLOAD, &of_h200()));
}

#[test]
fn pictures_stand_alone_in_svg_and_png() {
    let material = of_h200();
    for name in ["stride", "offset", "size", "width", "ladder-matmul", "roofline", "predicted", "samples-bank"] {
        let svg = plots::svg(&plot(&material, name));
        let document = roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(words(document.root_element()).contains(&plot(&material, name).title), "{name} has no heading");
        assert!(!svg.contains("var("), "{name}: its colours are its own");
        let png = plots::png(&svg).expect("a picture");
        assert!(png.starts_with(b"\x89PNG") && png == plots::png(&svg).expect("a picture"), "{name}");
    }
}

#[test]
fn a_small_plot_is_drawn_as_it_was() {
    let text = bench("own_kernel", "own", "64", "A");
    let material = Material::read(&BUSLOAD, &[("a.json".to_owned(), text)]).expect("results");
    let svg = plots::svg(&plot(&material, "ladder-own"));
    let file = root().join("tests/tests/report/ladder.svg");
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(svg == expected, "{} is to be what is drawn now, if that looks right:\n{svg}", file.display());
}

/// What `bench --json` wrote, with this kernel, family, case and GPU.
fn bench(kernel: &str, family: &str, case: &str, gpu: &str) -> String {
    let row = |case: &str, stride: u64| {
        json!({
            "kernel": kernel, "family": family, "case": case, "params": { "stride": stride }, "on": "gpu",
            "launch": { "grid": [1, 1, 1], "block": [256, 1, 1], "shared_bytes": 0 }, "verified": true, "bytes": 8_000_000,
            "error": null, "l2": "cold", "samples_ms": [0.5], "median_ms": 0.5, "min_ms": 0.5, "spread": 0.0, "gbps": 16.0,
            "share_of_copy": null, "share_of_peak": null,
        })
    };
    let machine = json!({
        "kind": "gpu", "name": gpu, "driver": null, "sm_count": 4, "l2_bytes": null, "compute_capability": null,
        "peak_gbps": null, "copy_gbps": null,
    });
    let ptx = json!({ "backend": null, "target": null, "source_hash": null });
    let rows = [row(&format!("{case} a"), 1), row(&format!("{case} b"), 2), row(&format!("{case} c"), 4)];
    json!({ "schema": 1, "command": "bench", "machine": machine, "ptx": ptx, "results": rows }).to_string()
}

#[test]
fn names_in_a_file_are_no_markup_and_a_suite_that_is_not_known_is_plotted_too() {
    let odd = "</title><script>alert(1)</script>\"'&\u{1b}[2J\u{0}";
    let text = bench(odd, odd, odd, odd);
    let material = Material::read(&BUSLOAD, &[(odd.to_owned(), text)]).expect("results");
    let page = plots::page(&BUSLOAD, &material);
    assert!(!page.contains("<script") && !page.contains('\u{1b}') && !page.contains('\u{0}'));
    roxmltree::Document::parse(&body(&page)).expect("well formed");
    for plot in plots::chapters(&material).into_iter().flat_map(|chapter| chapter.plots) {
        assert!(plot.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)), "{}", plot.name);
        let svg = plots::svg(&plot);
        roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{}: {error}", plot.name));
        plots::png(&svg).expect("a picture");
    }
    assert!(plots::find(&material, "stride").is_some());
}

#[test]
fn counts_of_the_simulator_stand_in_for_those_that_no_entry_states() {
    let case = "64";
    let simulated = |sectors: u64| {
        let mut report: Value = serde_json::from_str(&bench("own_kernel", "own", case, "A")).expect("JSON");
        report["command"] = "simulate".into();
        report["machine"]["kind"] = "simulator".into();
        for row in report["results"].as_array_mut().expect("rows") {
            let row = row.as_object_mut().expect("a row");
            for field in ["l2", "samples_ms", "median_ms", "min_ms", "spread", "gbps"] {
                row.remove(field);
            }
            row["on"] = "simulator".into();
            row.insert("blocks".into(), json!({ "total": 10, "simulated": 5, "which": "one in 2" }));
            let site = json!({
                "file": "own.rs", "line": 1, "column": 1, "space": "global", "op": "load", "width": 4, "requests": 5, "lanes": 160,
                "sectors": sectors, "sectors_ideal": 20, "lines": 5,
            });
            row.insert("sites".into(), json!([site]));
        }
        report.to_string()
    };
    let files = [("b".to_owned(), bench("own_kernel", "own", case, "A")), ("s".to_owned(), simulated(20))];
    let material = Material::read(&BUSLOAD, &files).expect("both");
    let asked = material.subjects[0].asked.expect("counts");
    assert_eq!((asked.requests, asked.sectors, asked.lines, asked.width), (10.0, 40.0, 10.0, Some(4)));
}

#[test]
fn the_command_writes_a_page_a_picture_or_what_it_says_on_standard_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let results = root().join("results/nvidia-h200/bench.json");
    let results = results.to_str().expect("text");
    busload(folder.path(), &["report", results, "-o", "page.html"]).success().stdout("");
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("the page");
    assert!(page.starts_with("<!doctype html>") && page.contains("<h1>Memory access on NVIDIA H200</h1>"));
    let printed = busload(folder.path(), &["report", results, "-o", "-"]).success();
    assert!(printed.get_output().stdout == page.as_bytes());
    for (file, begins) in [("stride.svg", &b"<svg"[..]), ("stride.png", b"\x89PNG")] {
        busload(folder.path(), &["report", results, "--plot", "stride", "-o", file]).success().stdout("");
        assert!(std::fs::read(folder.path().join(file)).expect("a picture").starts_with(begins), "{file}");
    }
    assert_eq!(folder.path().read_dir().expect("the folder").count(), 3);
}

#[test]
fn what_makes_no_sense_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let results = root().join("results/nvidia-h200/bench.json");
    let results = results.to_str().expect("text");
    let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).expect("a file");
    write("hops.json", &bench("latency_global", "latency", "hops", "A").replace("stride", "hops"));
    write("claims.json", "{\"schema\": 1, \"command\": \"claims\"}");
    write("odd.json", "[]");
    write("empty.json", "{\"schema\": 1, \"command\": \"predict\", \"chip\": \"A\", \"results\": []}");
    let predicted = std::fs::read_to_string(root().join("results/nvidia-h200/predicted.json")).expect("predictions");
    let mut predicted: Value = serde_json::from_str(&predicted).expect("JSON");
    predicted["results"][1]["predicted_ms"] = (-1).into();
    write("negative.json", &predicted.to_string());
    let before = folder.path().read_dir().expect("the folder").count();
    for (arguments, reason) in [
        (
            &[results, "--plot", "ladder-transpos", "-o", "x.svg"][..],
            "no such plot; these files make stride, offset, size",
        ),
        (
            &["hops.json", "--plot", "stride", "-o", "x.svg"],
            "nothing for it: measure three values: `bench --kernel '^(strided",
        ),
        (&["hops.json", "--plot", "predicted", "-o", "x.svg"], "nothing for it: give what `predict --measured"),
        (&[results, "-o", "page.png"], "--output page.png: a page is no picture; name one plot with --plot"),
        (
            &[results, "--plot", "stride", "-o", "stride.jpg"],
            "--output stride.jpg: one plot is written as .svg or .png",
        ),
        (&[results, "-o", "missing/page.html"], "--output missing/page.html: no file can be written there"),
        (&["absent.json", "-o", "page.html"], "absent.json: "),
        (&["claims.json", "-o", "page.html"], "claims.json: it is what `claims --json` writes: give what `bench`"),
        (&["odd.json", "-o", "page.html"], "odd.json: it is no report of busload"),
        (&["negative.json", "-o", "page.html"], "predicted_ms is -1: a launch takes 1e-6 to 1e9 ms"),
        (&["empty.json", "-o", "page.html"], "empty.json: no time in it was measured or predicted"),
    ] {
        let assert = busload(folder.path(), &[&["report"], arguments].concat()).code(2).stdout("");
        assert.stderr(predicate::str::contains(reason).and(predicate::str::contains("panicked").not()));
        assert_eq!(folder.path().read_dir().expect("the folder").count(), before, "{arguments:?} left a file");
    }
}
