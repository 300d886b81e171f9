//! What the probes printed, line by line.
//!
//! A probe's line is read whole, by the form it is printed in: `launch: {} threads a block: {} blocks/us`. A line of a
//! probe that has none of the probe's forms is an error that names it, so that no figure is lost in silence.

use anyhow::{Context, Result, bail, ensure};
use busload::input;
use std::collections::BTreeMap;
use std::path::Path;

/// The text of a file of results.
pub(super) struct Text {
    /// Its path in the workspace.
    name: String,
    text: String,
}

/// A line of it, by its form.
#[derive(Debug)]
pub(super) struct Row {
    /// The file and the number of the line.
    at: String,
    /// Which of the forms it has.
    pub(super) form: usize,
    fields: Vec<String>,
}

/// What Nsight Compute counted of a launch.
#[derive(Debug)]
pub(super) struct Launch {
    at: String,
    /// Threads of a block, where the line says so.
    threads: Option<f64>,
    counters: BTreeMap<String, f64>,
}

impl Text {
    /// Reads `name`, a path in the workspace.
    pub(super) fn read(root: &Path, name: &str) -> Result<Self> {
        let text = input::text(root.join(name), input::RESULTS)?;
        Ok(Self { name: name.to_owned(), text })
    }

    /// All lines of a probe, in their order. Each must have one of `forms`, in which `{}` stands for what is wanted.
    pub(super) fn rows(&self, probe: &str, forms: &[&str]) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for (number, line) in self.text.lines().enumerate() {
            let Some(line) = line.strip_prefix(probe).and_then(|rest| rest.strip_prefix(':')) else { continue };
            let at = format!("{}:{}", self.name, number + 1);
            rows.push(Row::parse(at, line, forms).with_context(|| format!("a line of the probe `{probe}`"))?);
        }
        ensure!(!rows.is_empty(), "{}: no line of the probe `{probe}`", self.name);
        Ok(rows)
    }

    /// The lines of a probe that have one form among several.
    pub(super) fn rows_as(&self, probe: &str, forms: &[&str], form: usize) -> Result<Vec<Row>> {
        Ok(self.rows(probe, forms)?.into_iter().filter(|row| row.form == form).collect())
    }

    /// The launches of a kernel, in their order, each with its counters.
    pub(super) fn launches(&self, kernel: &str) -> Result<Vec<Launch>> {
        let mut launches = Vec::new();
        let mut is_of_it = false;
        for (number, line) in self.text.lines().enumerate() {
            let at = || format!("{}:{}", self.name, number + 1);
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            if !first.contains("__") {
                is_of_it = first == kernel;
                if is_of_it {
                    let block = line.split(")x(").nth(1).and_then(|block| block.split(',').next());
                    let threads = block.and_then(|threads| number_of(threads).ok());
                    launches.push(Launch { at: at(), threads, counters: BTreeMap::new() });
                }
                continue;
            }
            if let Some(launch) = launches.last_mut().filter(|_| is_of_it) {
                let value = number_of(words.next().unwrap_or_default()).with_context(at)?;
                ensure!(words.next().is_none(), "{}: `{line}` is not a counter and its value", at());
                launch.counters.insert(first.to_owned(), value);
            }
        }
        ensure!(!launches.is_empty(), "{}: no launch of `{kernel}`", self.name);
        Ok(launches)
    }

    /// The fields of a table of tabs, its lines one by one.
    pub(super) fn tabbed(&self, columns: usize) -> Result<Vec<Row>> {
        let lines = self.text.lines().enumerate().map(|(number, line)| {
            let fields: Vec<_> = line.split('\t').map(str::to_owned).collect();
            let at = format!("{}:{}", self.name, number + 1);
            ensure!(fields.len() == columns, "{at}: {} fields, of which there should be {columns}", fields.len());
            Ok(Row { at, form: 0, fields })
        });
        lines.collect()
    }
}

impl Launch {
    /// Threads of each of its blocks.
    pub(super) fn threads(&self) -> Result<f64> {
        self.threads.with_context(|| format!("{}: the line does not say how large its blocks are", self.at))
    }

    /// A counter by its name.
    pub(super) fn counter(&self, name: &str) -> Result<f64> {
        let value = self.counters.get(name).copied();
        value.with_context(|| format!("{}: {name} was not counted of this launch", self.at))
    }
}

impl Row {
    fn parse(at: String, line: &str, forms: &[&str]) -> Result<Self> {
        // Figures are printed in columns.
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match forms.iter().enumerate().find_map(|(form, pattern)| Some((form, fields(&line, pattern)?))) {
            Some((form, fields)) => Ok(Self { at, form, fields }),
            None => bail!("{at}: `{line}` is not as `{}`", forms.join("` or `")),
        }
    }

    /// A field as it stands there.
    pub(super) fn text(&self, field: usize) -> Result<&str> {
        let text = self.fields.get(field).map(String::as_str);
        text.with_context(|| format!("{}: no field {field}", self.at))
    }

    /// A field that is a number.
    pub(super) fn number(&self, field: usize) -> Result<f64> {
        number_of(self.text(field)?).with_context(|| self.at.clone())
    }

    /// A field that is some numbers, apart by blanks, commas or colons.
    pub(super) fn numbers(&self, field: usize) -> Result<Vec<f64>> {
        let words = self.text(field)?.split_whitespace();
        words.map(|word| number_of(word.trim_end_matches([',', ':'])).with_context(|| self.at.clone())).collect()
    }

    /// A field that is a list, of which each item has the same form.
    pub(super) fn items(&self, field: usize, separator: &str, form: &str) -> Result<Vec<Self>> {
        let items = self.text(field)?.split(separator).filter(|item| !item.trim().is_empty());
        items.map(|item| Self::parse(self.at.clone(), item, &[form])).collect()
    }
}

/// A number, with or without commas between its thousands.
fn number_of(word: &str) -> Result<f64> {
    let number = word.replace(',', "").parse::<f64>().ok().filter(|number| number.is_finite());
    number.with_context(|| format!("`{word}` is no number"))
}

/// What stands for each `{}` of `pattern` in `line`.
fn fields(line: &str, pattern: &str) -> Option<Vec<String>> {
    let mut literals = pattern.split("{}");
    let mut rest = line.strip_prefix(literals.next()?)?;
    let mut fields = Vec::new();
    let mut literals = literals.peekable();
    while let Some(literal) = literals.next() {
        let end = match (literals.peek(), literal) {
            (None, "") => rest.len(),
            // The last one ends the line.
            (None, _) => rest.strip_suffix(literal)?.len(),
            _ => rest.find(literal)?,
        };
        fields.push(rest[..end].trim().to_owned());
        rest = &rest[end + literal.len()..];
    }
    rest.is_empty().then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Text {
        Text { name: "probes.txt".to_owned(), text: text.to_owned() }
    }

    const LAUNCH: &str = "{} threads a block: {} blocks/us";

    #[test]
    fn a_line_is_read_by_its_form() {
        let file = text("order: 1\nlaunch:   32 threads a block: 1,635 blocks/us\n");
        let rows = file.rows("launch", &["nothing", LAUNCH]).expect("one line");
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].form, rows[0].number(0).ok(), rows[0].number(1).ok()), (1, Some(32.0), Some(1635.0)));
        assert!(rows[0].number(2).is_err());
    }

    #[test]
    fn a_wrong_line_is_an_error_that_names_it() {
        let file = text("launch: 32 threads a block: 1635 blocks/us\nlaunch: 64 threads: 1635 blocks/us\n");
        let error = format!("{:#}", file.rows("launch", &[LAUNCH]).expect_err("the second line"));
        assert!(error.contains("probes.txt:2: `64 threads: 1635 blocks/us` is not as"), "{error}");
        let file = text("launch: 32 threads a block: many blocks/us\n");
        let error = format!("{:#}", file.rows("launch", &[LAUNCH]).expect("a line")[0].number(1).expect_err("a word"));
        assert!(error.contains("probes.txt:1") && error.contains("`many` is no number"), "{error}");
        let error = format!("{:#}", file.rows("ages", &[LAUNCH]).expect_err("no such line"));
        assert!(error.contains("probes.txt") && error.contains("`ages`"), "{error}");
    }

    #[test]
    fn lists_are_read_item_by_item() {
        let rows = text("turns: of 4: 0: 336 cycles 4: 1,107 cycles\n").rows("turns", &["of {}: {}"]).expect("a line");
        let items = rows[0].items(1, "cycles", "{}: {}").expect("two items");
        let pairs: Vec<_> =
            items.iter().map(|item| (item.number(0).unwrap_or(-1.0), item.number(1).unwrap_or(-1.0))).collect();
        assert_eq!(pairs, [(0.0, 336.0), (4.0, 1107.0)]);
        let rows = text("streams: 1: 114 2: 96, 3: 95\n").rows("streams", &["{}"]).expect("a line");
        assert_eq!(rows[0].numbers(0).ok(), Some(vec![1.0, 114.0, 2.0, 96.0, 3.0, 95.0]));
        let error = rows[0].items(0, "cycles", "{} lines").expect_err("no such item");
        assert!(error.to_string().contains("probes.txt:1"), "{error}");
    }

    #[test]
    fn launches_are_read_with_their_counters() {
        let file =
            text("lost (1, 1, 1)x(32, 1, 1)\n  dram__sectors_read.sum 1,024\nrows\n  dram__sectors_read.sum 7\nlost\n");
        let launches = file.launches("lost").expect("two launches");
        assert_eq!(launches.len(), 2);
        assert_eq!(launches[0].counter("dram__sectors_read.sum").ok(), Some(1024.0));
        assert_eq!((launches[0].threads().ok(), launches[1].threads().ok()), (Some(32.0), None));
        let error = launches[1].counter("dram__sectors_read.sum").expect_err("was not counted");
        assert!(error.to_string().contains("probes.txt:5"), "{error}");
        let error =
            format!("{:#}", text("lost\n  dram__sectors_read.sum n/a\n").launches("lost").expect_err("no number"));
        assert!(error.contains("probes.txt:2") && error.contains("`n/a` is no number"), "{error}");
        assert!(file.launches("retention").is_err());
    }

    #[test]
    fn tables_of_tabs_have_as_many_fields_as_they_should() {
        let file = text("a\t1\nb\n");
        let error = file.tabbed(2).expect_err("the second line has one");
        assert!(error.to_string().starts_with("probes.txt:2"), "{error}");
    }
}
