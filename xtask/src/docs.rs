//! The parts of `docs/` that are made: tables between markers and plots from `results/`, and the layouts of JSON.

mod flow;
mod l1;
mod l2;
mod launch;
mod measured;
mod memory;
mod plot;
mod predictions;
mod residency;
mod sm;
mod table;

use anyhow::{Context, Result, bail, ensure};
use busload::{input, report, schema};
use plot::{Curve, Plot};
use sources::root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use table::{Gpu, Table};

/// The texts that have tables in them.
const TEXTS: [&str; 2] = ["docs/hopper-memory.md", "docs/predictions.md"];

/// Where the plots are.
const PLOTS: &str = "docs/plots";

/// Where the layouts of JSON are.
const SCHEMAS: &str = "docs/schemas";

const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end -->";

/// A plot with the curves of a GPU.
struct Figure {
    plot: Plot,
    curves: fn(&Gpu) -> Result<Vec<Curve>>,
}

fn tables() -> impl Iterator<Item = &'static Table> {
    let of_probes =
        [launch::TABLES, sm::TABLES, l1::TABLES, residency::TABLES, flow::TABLES, l2::TABLES, memory::TABLES];
    of_probes.into_iter().chain([predictions::TABLES]).flatten()
}

fn figures() -> impl Iterator<Item = &'static Figure> {
    let all =
        [launch::FIGURES, sm::FIGURES, l1::FIGURES, residency::FIGURES, flow::FIGURES, l2::FIGURES, memory::FIGURES];
    all.into_iter().flatten()
}

/// Writes what is made, or with `check` only says what of it is stale.
pub(crate) fn make(check: bool) -> Result<bool> {
    let mut stale = Vec::new();
    for (file, text) in generated(root())? {
        let path = root().join(&file);
        let now = input::text(&path, input::SOURCE).unwrap_or_default();
        if now == text {
            continue;
        }
        if check {
            stale.push(file);
        } else {
            std::fs::create_dir_all(path.parent().unwrap_or(&path)).with_context(|| file.display().to_string())?;
            busload::build::write(&path, &text)?;
            report::print(&format!("{}\n", file.display()))?;
        }
    }
    for file in &stale {
        report::say(&format!("error: {} is stale: run `cargo xtask docs` and commit it", file.display()));
    }
    Ok(stale.is_empty())
}

/// The files as they should be, by their paths in the workspace.
fn generated(root: &Path) -> Result<Vec<(PathBuf, String)>> {
    let gpus = Gpu::both(root)?;
    let mut files = Vec::new();
    let (mut shown, mut all) = (BTreeSet::new(), String::new());
    for file in TEXTS {
        let text = input::text(root.join(file), input::SOURCE)?;
        let text = with_tables(&text, |name| {
            let table =
                tables().find(|table| table.name == name).with_context(|| format!("no table is called {name}"))?;
            shown.insert(name.to_owned());
            (table.make)(&gpus).with_context(|| format!("the table {name}"))
        });
        let text = text.with_context(|| file.to_owned())?;
        all += &text;
        files.push((file.into(), text));
    }
    if let Some(table) = tables().find(|table| !shown.contains(table.name)) {
        bail!("no text of docs/ shows the table {}: take it out, or write {BEGIN}{} -->", table.name, table.name);
    }
    for Figure { plot, curves } in figures() {
        let of_both: Vec<_> = gpus
            .iter()
            .map(|gpu| Ok((gpu.name, curves(gpu)?)))
            .collect::<Result<_>>()
            .with_context(|| format!("the plot {}", plot.name))?;
        let file = format!("{PLOTS}/{}.svg", plot.name);
        ensure!(all.contains(&format!("(plots/{}.svg)", plot.name)), "no text of docs/ shows {file}");
        files.push((file.into(), plot.svg(&of_both)?));
    }
    for command in schema::commands() {
        let schema = schema::of(command).context("it writes JSON")?;
        files.push((format!("{SCHEMAS}/{command}.json").into(), serde_json::to_string_pretty(&schema)? + "\n"));
    }
    Ok(files)
}

/// A text with the tables that its markers name.
fn with_tables(text: &str, mut table: impl FnMut(&str) -> Result<String>) -> Result<String> {
    let mut made = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        made += line;
        made.push('\n');
        let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let table = table(name).with_context(|| format!("line {}", number + 1))?;
        let end = lines.find(|(_, line)| *line == END || line.starts_with(BEGIN)).map(|(_, line)| line);
        ensure!(end == Some(END), "line {}: the table {name} has no {END}", number + 1);
        made += &format!("\n{table}\n{END}\n");
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_from_results_is_committed() {
        for (file, text) in generated(root()).unwrap_or_else(|error| panic!("{error:#}")) {
            let committed = input::text(root().join(&file), input::SOURCE).unwrap_or_else(|error| panic!("{error}"));
            assert!(committed == text, "{} is stale: run `cargo xtask docs` and commit it", file.display());
        }
    }

    #[test]
    fn no_plot_is_left_that_nothing_makes() {
        let made: BTreeSet<_> = figures().map(|figure| format!("{}.svg", figure.plot.name)).collect();
        let there = std::fs::read_dir(root().join(PLOTS)).expect("a folder of plots");
        let there: BTreeSet<_> =
            there.map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned()).collect();
        assert_eq!(there, made);
    }

    /// The names that GitHub gives the headings of a text.
    fn anchors(text: &str) -> BTreeSet<String> {
        let headings =
            text.lines().filter_map(|line| line.strip_prefix('#')).map(|line| line.trim_start_matches('#').trim());
        let kept = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        headings
            .map(|heading| heading.to_lowercase().chars().filter(|c| kept(*c)).collect::<String>().replace(' ', "-"))
            .collect()
    }

    #[test]
    fn links_lead_to_files_and_headings_that_are_there() {
        let texts = ["README.md", "results/README.md", "docs/sanitizer.md"].into_iter().chain(TEXTS);
        let mut links = 0;
        for file in texts {
            let path = root().join(file);
            let text = input::text(&path, input::SOURCE).unwrap_or_else(|error| panic!("{error}"));
            for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                if link.contains("://") {
                    continue;
                }
                links += 1;
                let (to, heading) = link.split_once('#').unwrap_or((link, ""));
                let to = if to.is_empty() { path.clone() } else { path.parent().expect("a folder").join(to) };
                assert!(to.exists(), "{file}: nothing is at {link}");
                if !heading.is_empty() {
                    let text = input::text(&to, input::SOURCE).unwrap_or_else(|error| panic!("{error}"));
                    assert!(anchors(&text).contains(heading), "{file}: {link} has no such heading");
                }
            }
        }
        assert!(links > 40, "{links} links");
    }

    #[test]
    fn names_of_tables_and_plots_are_their_own() {
        let tables: Vec<_> = tables().map(|table| table.name).collect();
        let plots: Vec<_> = figures().map(|figure| figure.plot.name).collect();
        for names in [tables, plots] {
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        }
    }

    #[test]
    fn a_table_replaces_what_stood_between_its_markers_and_nothing_else() {
        let text = "before\n<!-- table: one -->\nold\n<!-- end -->\nafter\n";
        let made = with_tables(text, |name| Ok(format!("| {name} |\n"))).expect("a table");
        assert_eq!(made, "before\n<!-- table: one -->\n\n| one |\n\n<!-- end -->\nafter\n");
        assert_eq!(with_tables(&made, |name| Ok(format!("| {name} |\n"))).expect("a table"), made);
        for text in ["<!-- table: one -->\n", "<!-- table: one -->\n<!-- table: two -->\n<!-- end -->\n"] {
            let error = with_tables(text, |_| Ok(String::new())).expect_err("no end");
            assert!(error.to_string().contains("line 1: the table one has no"), "{error}");
        }
        let error =
            with_tables("\n<!-- table: one -->\n", |name| bail!("no table is called {name}")).expect_err("unknown");
        assert!(format!("{error:#}").contains("line 2: no table is called one"), "{error:#}");
    }
}
