//! Tables in Markdown, of both GPUs.

use super::measured::Text;
use anyhow::{Result, ensure};
use busload::predict::Chip;
use std::fmt::Write;
use std::path::Path;

/// What was measured on a GPU: a folder of `results/`.
pub(super) struct Gpu {
    pub(super) name: &'static str,
    /// What the model calls it.
    chip: &'static str,
    pub(super) probes: Text,
    pub(super) probes_l2: Text,
    pub(super) counted: Text,
    pub(super) neighbours: Text,
    pub(super) banks: Text,
    pub(super) bursts: Text,
    pub(super) again: Text,
    pub(super) rows: Text,
    pub(super) in_step: Text,
}

impl Gpu {
    /// Both, as tables and plots have them.
    pub(super) fn both(root: &Path) -> Result<[Self; 2]> {
        Ok([Self::read(root, "H200", "h200", "nvidia-h200")?, Self::read(root, "H100", "h100-sxm", "nvidia-h100")?])
    }

    /// Its description.
    pub(super) fn chip(&self) -> Result<Chip> {
        Ok(Chip::load(self.chip)?)
    }

    fn read(root: &Path, name: &'static str, chip: &'static str, folder: &str) -> Result<Self> {
        let text = |file: &str| Text::read(root, &format!("results/{folder}/{file}.txt"));
        Ok(Self {
            name,
            chip,
            probes: text("probes")?,
            probes_l2: text("probes_l2")?,
            counted: text("counted")?,
            neighbours: text("neighbours")?,
            banks: text("banks")?,
            bursts: text("bursts")?,
            again: text("again")?,
            rows: text("rows")?,
            in_step: text("in_step")?,
        })
    }
}

/// A table, by the name that its marker has.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) make: fn(&[Gpu; 2]) -> Result<String>,
}

/// What a row is of, and what was measured of that.
pub(super) type Cells = (Vec<String>, Vec<String>);

/// A number with so many decimals.
pub(super) fn fixed(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}")
}

/// A share as per cent.
pub(super) fn percent(share: f64, decimals: usize) -> String {
    format!("{:.decimals$} %", 100.0 * share)
}

/// A table of these columns, those from number `figures` on set to the right.
pub(super) fn markdown(columns: &[String], figures: usize, rows: &[Vec<String>]) -> String {
    let mut table = format!("| {} |\n|", columns.join(" | "));
    for column in 0..columns.len() {
        table += if column < figures { " --- |" } else { " ---: |" };
    }
    for row in rows {
        write!(table, "\n| {} |", row.join(" | ")).expect("a string takes all");
    }
    table + "\n"
}

/// A row for each thing, and for each value a column of each GPU.
pub(super) fn side_by_side(
    gpus: &[Gpu; 2],
    keys: &[&str],
    values: &[&str],
    cells: impl Fn(&Gpu) -> Result<Vec<Cells>>,
) -> Result<String> {
    let [first, second] = [cells(&gpus[0])?, cells(&gpus[1])?];
    let of_both = |value: &&str| {
        gpus.each_ref().map(|gpu| if value.is_empty() { gpu.name.to_owned() } else { format!("{}: {value}", gpu.name) })
    };
    let columns: Vec<_> = keys.iter().map(|key| (*key).to_owned()).chain(values.iter().flat_map(of_both)).collect();
    ensure!(first.len() == second.len(), "{} rows for the one GPU, {} for the other", first.len(), second.len());
    let mut rows = Vec::new();
    for ((key, one), (other_key, other)) in first.into_iter().zip(second) {
        ensure!(key == other_key, "a row of {key:?} for the one GPU, of {other_key:?} for the other");
        ensure!(
            one.len() == values.len() && other.len() == values.len(),
            "{key:?}: not a value for each of {values:?}"
        );
        rows.push(key.into_iter().chain(one.into_iter().zip(other).flat_map(|(one, other)| [one, other])).collect());
    }
    Ok(markdown(&columns, keys.len(), &rows))
}

/// For each thing a row of each GPU, with a column for each value.
pub(super) fn stacked(
    gpus: &[Gpu; 2],
    keys: &[&str],
    values: &[&str],
    cells: impl Fn(&Gpu) -> Result<Vec<Cells>>,
) -> Result<String> {
    let [first, second] = [cells(&gpus[0])?, cells(&gpus[1])?];
    ensure!(first.len() == second.len(), "{} rows for the one GPU, {} for the other", first.len(), second.len());
    let mut rows = Vec::new();
    for ((key, one), (other_key, other)) in first.into_iter().zip(second) {
        ensure!(key == other_key, "a row of {key:?} for the one GPU, of {other_key:?} for the other");
        for (gpu, values) in gpus.iter().zip([one, other]) {
            rows.push([key.clone(), vec![gpu.name.to_owned()], values].concat());
        }
    }
    let columns: Vec<_> = keys.iter().chain(&["GPU"]).chain(values).map(|column| (*column).to_owned()).collect();
    ensure!(rows.iter().all(|row| row.len() == columns.len()), "rows of other lengths than {columns:?}");
    Ok(markdown(&columns, keys.len() + 1, &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_set_to_the_right() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let table = markdown(&row(&["what", "cycles"]), 1, &[row(&["one", "1"]), row(&["two", "2"])]);
        assert_eq!(table, "| what | cycles |\n| --- | ---: |\n| one | 1 |\n| two | 2 |\n");
        assert_eq!([fixed(1.25, 1), percent(0.1234, 1)], ["1.2", "12.3 %"]);
    }
}
