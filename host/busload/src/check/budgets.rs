//! Files of budgets: what they may hold, and where in them something stands. `docs/budgets.md` has every key.

use super::cost::Measure;
pub use crate::foreign::file::Invalid;
use crate::foreign::file::with_nearest;
use crate::input;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use toml::Spanned;

/// What budgets are of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Subject {
    /// A kernel of the families, on a case as tables show it.
    Kernel {
        /// The kernel.
        kernel: String,
        /// The case, or [`ANY_CASE`].
        case: String,
    },
    /// A launch of a launch file.
    Launch {
        /// The file.
        file: String,
        /// What the launch is called in it.
        launch: String,
    },
}

/// What stands for every case of a kernel.
pub const ANY_CASE: &str = "*";

impl Subject {
    /// Its keys in a file of budgets.
    #[must_use]
    pub fn keys(&self) -> [&str; 3] {
        match self {
            Self::Kernel { kernel, case } => ["budget", kernel, case],
            Self::Launch { file, launch } => ["launch", file, launch],
        }
    }

    /// The kernel on any case; none for a launch.
    #[must_use]
    pub fn on_any_case(&self) -> Option<Self> {
        match self {
            Self::Kernel { kernel, .. } => Some(Self::Kernel { kernel: kernel.clone(), case: ANY_CASE.to_owned() }),
            Self::Launch { .. } => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel { kernel, case } if case == ANY_CASE => write!(f, "{kernel} on any case"),
            Self::Kernel { kernel, case } => write!(f, "{kernel} on {case}"),
            Self::Launch { file, launch } => write!(f, "{launch} of {file}"),
        }
    }
}

/// A file of budgets.
#[derive(Clone, Debug, Default)]
pub struct Budgets {
    /// The file, as it was named.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Its tables.
    pub tables: BTreeMap<Subject, Table>,
}

/// The budgets of one subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The line of its first budget.
    pub line: u32,
    /// Its budgets, by their names.
    pub budgets: Vec<Budget>,
}

/// What an access may cost, or the accesses of a region together.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// The access, as in `load src`; a buffer or shared array, for all accesses to it; or `all`.
    pub name: String,
    /// Its line in the file.
    pub line: u32,
    /// The most of each measure that is allowed, or the least that must be used.
    pub limits: Vec<(Measure, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    #[serde(default)]
    budget: Subjects,
    #[serde(default)]
    launch: Subjects,
}

type Subjects = BTreeMap<String, BTreeMap<String, Spanned<BTreeMap<String, Spanned<Limits>>>>>;

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "expected what an access may cost, as in `\"load src\" = { sectors_per_request = 4.0 }`, in a table \
                 [budget.KERNEL.\"CASE\"] or [launch.\"FILE\".\"LAUNCH\"]"
)]
struct Limits {
    requests: Option<Spanned<f64>>,
    sectors_per_request: Option<Spanned<f64>>,
    bytes_moved: Option<Spanned<f64>>,
    used: Option<Spanned<f64>>,
    conflicts: Option<Spanned<f64>>,
}

impl Budgets {
    /// Reads a file of budgets.
    ///
    /// # Errors
    /// If it is there and cannot be read, or holds something else; none if there is no such file.
    pub fn read(file: &str) -> Result<Option<Self>, Invalid> {
        match input::text(file, input::SOURCE) {
            Ok(text) => Self::parse(file, text).map(Some),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(Invalid(error.to_string())),
        }
    }

    /// The budgets of a text that stands in `file`.
    ///
    /// # Errors
    /// If it holds something else.
    pub fn parse(file: &str, text: String) -> Result<Self, Invalid> {
        let own = Self { file: file.to_owned(), text, tables: BTreeMap::new() };
        let Whole { budget, launch } = toml::from_str(&own.text)
            .map_err(|error| own.invalid(&error.span().unwrap_or_default(), with_nearest(error.message())))?;
        let kernels = of_each(budget, |kernel, case| Subject::Kernel { kernel, case });
        let launches = of_each(launch, |file, launch| Subject::Launch { file, launch });
        let tables = kernels.chain(launches).map(|(subject, table)| Ok((subject, own.table(table)?)));
        let tables = tables.collect::<Result<_, _>>()?;
        Ok(Self { tables, ..own })
    }

    fn table(&self, table: Spanned<BTreeMap<String, Spanned<Limits>>>) -> Result<Table, Invalid> {
        let span = table.span();
        let budgets = table.into_inner().into_iter().map(|(name, limits)| self.budget(name, limits));
        let mut budgets = budgets.collect::<Result<Vec<_>, _>>()?;
        budgets.sort_by_key(|budget| budget.line);
        let line = budgets.first().map_or_else(|| self.line(&span), |budget| budget.line);
        Ok(Table { line, budgets })
    }

    fn budget(&self, name: String, limits: Spanned<Limits>) -> Result<Budget, Invalid> {
        let span = limits.span();
        let Limits { requests, sectors_per_request, bytes_moved, used, conflicts } = limits.into_inner();
        let given = [requests, sectors_per_request, bytes_moved, used, conflicts];
        let limits = Measure::ALL.into_iter().zip(given).filter_map(|(measure, given)| Some((measure, given?)));
        let limits =
            limits.map(|(measure, given)| self.limit(&name, measure, &given)).collect::<Result<Vec<_>, _>>()?;
        if limits.is_empty() {
            let all = Measure::ALL.map(Measure::name).join(", ");
            return Err(
                self.invalid(&span, format!("\"{name}\" = {{}} limits nothing: give one of {all}, or remove it"))
            );
        }
        Ok(Budget { name, line: self.line(&span), limits })
    }

    fn limit(&self, name: &str, measure: Measure, given: &Spanned<f64>) -> Result<(Measure, f64), Invalid> {
        let value = *given.get_ref();
        let wanted = match measure {
            Measure::Used => (!(0.0..=1.0).contains(&value)).then_some("a share from 0 to 1, as in 0.125"),
            _ if measure.is_count() => (value.fract() != 0.0 || value < 0.0 || !value.is_finite())
                .then_some("a count: a whole number, 0 or more"),
            _ => (!(0.0..f64::INFINITY).contains(&value)).then_some("a number, 0 or more, as in 4.0"),
        };
        match wanted {
            None => Ok((measure, value)),
            Some(wanted) => {
                let what = format!("\"{name}\": {} = {value} is not {wanted}", measure.name());
                Err(self.invalid(&given.span(), what))
            }
        }
    }

    /// The number of the line in which a part of the text begins.
    fn line(&self, at: &Range<usize>) -> u32 {
        let before = self.text.as_bytes().get(..at.start).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count() as u32
    }

    fn invalid(&self, at: &Range<usize>, what: impl fmt::Display) -> Invalid {
        Invalid(format!("{}:{}: {what}", self.file, self.line(at)))
    }

    /// What is wrong with a table.
    #[must_use]
    pub fn invalid_table(&self, subject: &Subject, what: impl fmt::Display) -> Invalid {
        let [root, outer, inner] = subject.keys();
        let line = self.tables.get(subject).map_or(1, |table| table.line);
        Invalid(format!("{}:{line}: [{root}.{outer:?}.{inner:?}]: {what}", self.file))
    }

    /// The tables that hold a subject: its own, and that of the kernel on any case.
    #[must_use]
    pub fn of(&self, subject: &Subject) -> [Option<&Table>; 2] {
        let any = subject.on_any_case().filter(|any| any != subject);
        [self.tables.get(subject), any.and_then(|any| self.tables.get(&any))]
    }
}

fn of_each(
    subjects: Subjects,
    subject: impl Fn(String, String) -> Subject,
) -> impl Iterator<Item = (Subject, Spanned<BTreeMap<String, Spanned<Limits>>>)> {
    let tables = subjects
        .into_iter()
        .flat_map(|(outer, tables)| tables.into_iter().map(move |(inner, table)| (outer.clone(), inner, table)));
    tables.map(move |(outer, inner, table)| (subject(outer, inner), table))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Budgets, Invalid> {
        Budgets::parse("busload.toml", text.to_owned())
    }

    #[test]
    fn budgets_are_read_with_their_lines() {
        let budgets = parse(
            "# held\n[budget.copy.\"64x64\"]\n\"store dst\" = { requests = 4, sectors_per_request = 4.5 }\n\
             all = { used = 1, conflicts = 0 }\n[budget.copy.\"*\"]\nsrc = { bytes_moved = 4096 }\n\
             [launch.\"a.toml\".scale]\n\"load x\" = { used = 0.125 }\n",
        )
        .expect("budgets");
        let subject = |kernel: &str, case: &str| Subject::Kernel { kernel: kernel.into(), case: case.into() };
        let [own, any] = budgets.of(&subject("copy", "64x64")).map(|table| table.expect("a table"));
        let names: Vec<_> = own.budgets.iter().map(|budget| (budget.name.as_str(), budget.line)).collect();
        assert_eq!((own.line, names), (3, vec![("store dst", 3), ("all", 4)]));
        assert_eq!(own.budgets[0].limits, [(Measure::Requests, 4.0), (Measure::SectorsPerRequest, 4.5)]);
        assert_eq!(own.budgets[1].limits, [(Measure::Used, 1.0), (Measure::Conflicts, 0.0)]);
        assert_eq!((any.line, any.budgets[0].name.as_str()), (6, "src"));
        let launch = Subject::Launch { file: "a.toml".into(), launch: "scale".into() };
        assert_eq!(budgets.of(&launch).map(|table| table.map(|table| table.line)), [Some(8), None]);
        assert_eq!(budgets.of(&subject("copy", "1x1"))[0], None);
        assert!(parse("").expect("no budgets").tables.is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_line_and_the_way_out() {
        const TABLE: &str = "[budget.copy.\"64x64\"]\n";
        for (text, line, what) in [
            ("[budgets.copy]\n".to_owned(), 1, "is it `budget`?"),
            ("budget = 3\n".to_owned(), 1, "3"),
            ("[budget.copy]\n\"load src\" = { used = 1.0 }\n".to_owned(), 2, "in a table [budget.KERNEL.\"CASE\"]"),
            (format!("{TABLE}\"load src\" = 4\n"), 2, "in a table [budget.KERNEL.\"CASE\"]"),
            (format!("{TABLE}\"load src\" = {{ sectors = 4 }}\n"), 2, "is it `sectors_per_request`?"),
            (format!("{TABLE}\"load src\" = {{}}\n"), 2, "\"load src\" = {} limits nothing: give one of requests, "),
            (format!("{TABLE}\"load src\" = {{ used = \"1\" }}\n"), 2, "string \"1\""),
            (format!("{TABLE}a = {{ used = 1.5 }}\n"), 2, "\"a\": used = 1.5 is not a share from 0 to 1"),
            (format!("{TABLE}a = {{ used = nan }}\n"), 2, "\"a\": used = NaN is not a share from 0 to 1"),
            (format!("{TABLE}\na = {{ requests = 1.5 }}\n"), 3, "requests = 1.5 is not a count: a whole number"),
            (format!("{TABLE}a = {{ conflicts = -1 }}\n"), 2, "conflicts = -1 is not a count"),
            (format!("{TABLE}a = {{ bytes_moved = inf }}\n"), 2, "bytes_moved = inf is not a count"),
            (format!("{TABLE}a = {{ sectors_per_request = inf }}\n"), 2, "sectors_per_request = inf is not a number"),
            (format!("{TABLE}a = {{ used = 1 }}\na = {{ used = 1 }}\n"), 3, "duplicate key"),
            (format!("{TABLE}a = {{ used = }}\n"), 2, ""),
        ] {
            let error = parse(&text).expect_err(what).to_string();
            assert!(error.starts_with(&format!("busload.toml:{line}: ")) && error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_missing_is_told_from_one_that_cannot_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("busload.toml");
        assert!(Budgets::read(missing.to_str().expect("text")).expect("no file").is_none());
        let error = Budgets::read(folder.path().to_str().expect("text")).expect_err("a folder");
        assert!(error.to_string().contains("is a directory"), "{error}");
    }
}
