//! From what was asked for to what runs: kernels by a regular expression, and for each family the cases that the values
//! of its axes make.

use crate::arguments::{self, ArgumentError};
use crate::suite::Suite;
use gpu::suite::{Axis, AxisKind, Case, Entry, Family, Kernel, Plan, PlanError, Value};
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A kernel on a case.
#[derive(Clone)]
pub struct Run {
    /// The kernel's family.
    pub family: &'static Family,
    /// The kernel.
    pub kernel: Kernel,
    /// The case.
    pub case: Case,
    /// What a machine needs to run it.
    pub plan: Arc<Plan>,
}

impl Run {
    /// A kernel on a case.
    ///
    /// # Errors
    /// If its entry has no plan for the case, or one that does not fit the kernel.
    pub fn new(family: &'static Family, entry: &Entry, case: Case) -> Result<Self, SelectError> {
        let (kernel, name) = (entry.kernel, entry.kernel.name);
        let plan = (entry.plan)(&case);
        let plan = plan.map_err(|error| SelectError::Plan { kernel: name, case: case.to_string(), error })?;
        let unfit = |error| SelectError::Unfit { case: case.to_string(), error };
        arguments::check(&kernel, &plan).map_err(unfit)?;
        Ok(Self { family, kernel, case, plan: Arc::new(plan) })
    }

    /// The kernel that stands so many places further on in its family, on the same case; none if there is none.
    pub fn neighbour(&self, places: isize) -> Option<Self> {
        let number = self.family.kernels.iter().position(|entry| entry.kernel.name == self.kernel.name)?;
        let entry = self.family.kernels.get(number.checked_add_signed(places)?)?;
        Self::new(self.family, entry, self.case.clone()).ok()
    }

    /// Whether the kernel is wrong on purpose, and not for a GPU.
    pub fn is_counterexample(&self, suite: &Suite) -> bool {
        suite.counterexample_names().any(|name| name == self.kernel.name)
    }
}

/// Which default sizes to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Those for measuring: well past the L2.
    Large,
    /// Those for the simulator: a second or two.
    Small,
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The kernels whose names match; all without. A counterexample is named in full.
    pub kernels: Option<Regex>,
    /// Values instead of an axis's defaults.
    pub values: BTreeMap<String, Vec<Value>>,
}

/// Something that was asked for and cannot be.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SelectError {
    /// The expression is not one.
    #[error("--kernel {pattern}: not a regular expression: {reason}")]
    Pattern {
        /// What was given.
        pattern: String,
        /// Where it fails.
        reason: String,
    },
    /// No kernel has such a name.
    #[error("--kernel {pattern} matches no kernel; the nearest are {nearest}; the command `list` shows all")]
    NoKernel {
        /// What was given.
        pattern: String,
        /// Names like it.
        nearest: String,
    },
    /// No kernel has this name.
    #[error("{name} is no kernel; the nearest are {nearest}; the command `list` shows all")]
    UnknownKernel {
        /// What was given.
        name: String,
        /// Names like it.
        nearest: String,
    },
    /// The source has this kernel, and no list.
    #[error("{name} is a kernel of {file} that no entry has: enter it in the list of its family, below it")]
    Unlisted {
        /// Its name.
        name: String,
        /// Where it stands.
        file: &'static str,
    },
    /// A counterexample on a GPU.
    #[error("{0} is wrong on purpose, and only the simulator runs it, to refuse it: `busload simulate --kernel {0}`")]
    Counterexample(&'static str),
    /// An option that none of the selected kernels heeds.
    #[error("--{axis} means nothing to the selected kernels: they belong to {families}")]
    UnusedAxis {
        /// The option.
        axis: String,
        /// The families selected.
        families: String,
    },
    /// A value that none of the selected families takes.
    #[error("--{axis} {value}: the selected kernels take {ranges}")]
    OutOfRange {
        /// The option.
        axis: String,
        /// The value.
        value: Value,
        /// What they take.
        ranges: String,
    },
    /// A case that cannot be launched.
    #[error("{kernel} on {case}: {error}")]
    Plan {
        /// The kernel.
        kernel: &'static str,
        /// The case.
        case: String,
        /// Why.
        error: PlanError,
    },
    /// A plan that does not fit its kernel, or whose launch no GPU takes.
    #[error("{error} (on {case})")]
    Unfit {
        /// The case.
        case: String,
        /// What does not fit.
        error: ArgumentError,
    },
    /// A kernel that would run twice.
    #[error("`{0}` is listed twice: leave one of its entries in the families' lists")]
    ListedTwice(&'static str),
}

/// The values of each axis that at least one family takes.
type Taken = BTreeMap<&'static str, Vec<Value>>;

/// What the axes of this name take.
fn ranges(axes: &[&Axis], name: &str) -> String {
    let ranges = axes.iter().filter(|axis| axis.name == name).map(|axis| match axis.kind {
        AxisKind::Count { min, max } => format!("{min} to {max}"),
        AxisKind::Choice(names) => names.join(", "),
        AxisKind::Shape => "rows and columns from 1".to_owned(),
    });
    let mut ranges: Vec<_> = ranges.collect();
    ranges.dedup();
    ranges.join(", or ")
}

/// Every axis of every family, once.
pub fn axes(suite: &Suite) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for axis in suite.families.iter().flat_map(|family| family.axes) {
        if !axes.iter().any(|known| known.name == axis.name) {
            axes.push(*axis);
        }
    }
    axes
}

/// A value of an axis from the command line.
///
/// # Errors
/// A sentence that says what is wrong with the text, and what the axis takes.
pub fn parse(kind: AxisKind, text: &str) -> Result<Value, String> {
    let number = |text: &str, what: &str, max: u64| match text.parse::<u64>() {
        Ok(0) if matches!(kind, AxisKind::Shape | AxisKind::Count { min: 1.., .. }) => {
            Err(format!("{what} must be at least 1"))
        }
        Ok(value) if value > max => Err(format!("{what} must be at most {max}")),
        Ok(value) => Ok(value),
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => {
            Err(format!("{what} must be at most {max}"))
        }
        Err(_) => Err(format!("{what} must be a whole number, as in 4096")),
    };
    match kind {
        AxisKind::Count { max, .. } => Ok(Value::Count(number(text, "the value", max)?)),
        AxisKind::Choice(names) => match names.iter().find(|name| **name == text) {
            Some(name) => Ok(Value::Choice(name)),
            None => Err(format!("choose one of {}", names.join(", "))),
        },
        AxisKind::Shape => {
            let (rows, columns) = text.split_once(['x', 'X', '×']).unwrap_or((text, text));
            let rows = number(rows, "the number of rows", u32::MAX.into())?;
            let columns = number(columns, "the number of columns", u32::MAX.into())?;
            Ok(Value::Shape(rows as u32, columns as u32))
        }
    }
}

/// A regular expression over kernel names.
///
/// # Errors
/// If it is none, or matches no kernel.
pub fn kernels(suite: &Suite, pattern: &str) -> Result<Regex, SelectError> {
    let regex = Regex::new(pattern).map_err(|error| {
        // The last line says what is wrong; those above repeat the pattern.
        let reason = error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        SelectError::Pattern { pattern: pattern.to_owned(), reason }
    })?;
    if suite.names().any(|name| regex.is_match(name)) || suite.counterexample_names().any(|name| name == pattern) {
        return Ok(regex);
    }
    if let Some(error) = unlisted(suite, Some(&regex)).next() {
        return Err(error);
    }
    Err(SelectError::NoKernel { pattern: pattern.to_owned(), nearest: nearest(suite, pattern) })
}

/// The kernels that a selection would have if an entry had them, each with what is to be done; all without a regular expression.
pub fn unlisted<'a>(suite: &Suite, kernels: Option<&'a Regex>) -> impl Iterator<Item = SelectError> + use<'a> {
    let is_asked_for = move |name: &str| kernels.is_none_or(|regex| regex.is_match(name));
    let unlisted = suite.unlisted().filter(move |(name, _)| is_asked_for(name));
    unlisted.map(|(name, file)| SelectError::Unlisted { name, file })
}

/// The kernel of exactly this name, as [`Selection`] takes it.
///
/// # Errors
/// If there is none.
pub fn kernel(suite: &Suite, name: &str) -> Result<Regex, SelectError> {
    let is_counterexample = suite.counterexample_names().any(|other| other == name);
    let pattern = if is_counterexample { name.to_owned() } else { format!("^{name}$") };
    let is_kernel = is_counterexample
        || suite.names().any(|other| other == name)
        || suite.unlisted().any(|(other, _)| other == name);
    match is_kernel {
        true => kernels(suite, &pattern),
        false => Err(SelectError::UnknownKernel { name: name.to_owned(), nearest: nearest(suite, name) }),
    }
}

fn are_listed_once(kernels: impl Iterator<Item = &'static str>) -> Result<(), SelectError> {
    let kernels: Vec<_> = kernels.collect();
    arguments::twice(&kernels).map_or(Ok(()), |name| Err(SelectError::ListedTwice(name)))
}

/// The three names that are most like this one.
fn nearest(suite: &Suite, name: &str) -> String {
    let mut names: Vec<_> = suite.names().chain(suite.counterexample_names()).collect();
    names.sort_by(|a, b| strsim::jaro_winkler(name, b).total_cmp(&strsim::jaro_winkler(name, a)));
    names[..3.min(names.len())].join(", ")
}

impl Selection {
    /// What runs, in the order of the curriculum: for each family case by case, and on each case the whole ladder.
    ///
    /// # Errors
    /// If anything asked for makes no sense; then nothing should run.
    pub fn runs(&self, suite: &Suite, sizes: Sizes, sm_count: u32) -> Result<Vec<Run>, SelectError> {
        are_listed_once(suite.names().chain(suite.counterexample_names()))?;
        let mut runs = Vec::new();
        let mut used: Vec<&Axis> = Vec::new();
        let mut families = Vec::new();
        let mut taken = Taken::new();
        let named = |entry: &&Entry| self.kernels.as_ref().is_some_and(|regex| regex.as_str() == entry.kernel.name);
        for family in suite.families {
            let selected = |entry: &&Entry| match &self.kernels {
                Some(regex) => regex.is_match(entry.kernel.name),
                None => true,
            };
            let counterexamples = suite.counterexamples.iter().filter(|(of, _)| of.name == family.name);
            let counterexamples = counterexamples.flat_map(|(_, entries)| *entries).filter(named);
            let entries: Vec<_> = family.kernels.iter().filter(selected).chain(counterexamples).collect();
            if entries.is_empty() {
                continue;
            }
            families.push(family.name);
            used.extend(family.axes);
            for values in self.combinations(family, sizes, &mut taken) {
                let case = Case { values, sm_count };
                for entry in &entries {
                    runs.push(Run::new(family, entry, case.clone())?);
                }
            }
        }
        for (name, values) in &self.values {
            if !used.iter().any(|axis| axis.name == *name) {
                return Err(SelectError::UnusedAxis { axis: name.clone(), families: families.join(", ") });
            }
            let none = values.iter().find(|value| !taken.get(name.as_str()).is_some_and(|taken| taken.contains(value)));
            if let Some(value) = none {
                return Err(SelectError::OutOfRange { axis: name.clone(), value: *value, ranges: ranges(&used, name) });
            }
        }
        Ok(runs)
    }

    /// Every combination of the axes' values that the family takes, the last axis fastest. A value that only other
    /// families take makes no case of this one.
    fn combinations(
        &self,
        family: &'static Family,
        sizes: Sizes,
        taken: &mut Taken,
    ) -> Vec<Vec<(&'static str, Value)>> {
        let mut cases = vec![Vec::new()];
        for axis in family.axes {
            let default = match sizes {
                Sizes::Large => axis.on_gpu,
                Sizes::Small => axis.in_simulator,
            };
            let takes = |value: &Value| match (axis.kind, *value) {
                (AxisKind::Count { min, max }, Value::Count(value)) => (min..=max).contains(&value),
                (AxisKind::Choice(names), Value::Choice(name)) => names.contains(&name),
                _ => true,
            };
            let values = self.values.get(axis.name).map_or(default, Vec::as_slice).iter().copied().filter(takes);
            let values: Vec<Value> = values.collect();
            taken.entry(axis.name).or_default().extend(&values);
            cases = cases
                .into_iter()
                .flat_map(|case| values.iter().map(move |value| [case.as_slice(), &[(axis.name, *value)]].concat()))
                .collect();
        }
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::BUSLOAD;

    #[test]
    fn values_are_read_or_refused_with_the_way_out() {
        assert_eq!(parse(AxisKind::Shape, "97x65"), Ok(Value::Shape(97, 65)));
        assert_eq!(parse(AxisKind::Shape, "4096"), Ok(Value::Shape(4096, 4096)));
        let count = AxisKind::Count { min: 1, max: u64::MAX };
        for (kind, text, says) in [
            (AxisKind::Shape, "0x5", "the number of rows must be at least 1"),
            (AxisKind::Shape, "5x", "the number of columns must be a whole number"),
            (AxisKind::Shape, "4294967296", "the number of rows must be at most 4294967295"),
            (count, "0", "the value must be at least 1"),
            (count, "18446744073709551616", "the value must be at most 18446744073709551615"),
            (count, "-1", "the value must be a whole number"),
        ] {
            let error = parse(kind, text).expect_err(text);
            assert!(error.starts_with(says), "{text}: {error}");
        }
        assert_eq!(parse(AxisKind::Count { min: 0, max: 32 }, "0"), Ok(Value::Count(0)));
    }

    #[test]
    fn an_unknown_kernel_is_answered_with_the_nearest() {
        let error = kernels(&BUSLOAD, "transpose_paded").expect_err("a misspelt name").to_string();
        assert!(error.contains("the nearest are transpose_padded"), "{error}");
        let error = kernels(&BUSLOAD, "copy(").expect_err("an unclosed group").to_string();
        assert!(error.contains("unclosed group"), "{error}");
    }

    #[test]
    fn a_kernel_that_is_listed_twice_is_refused() {
        assert!(are_listed_once(BUSLOAD.names()).is_ok());
        let error =
            are_listed_once(["copy_vec2", "copy_vec4", "copy_vec2"].into_iter()).expect_err("one is").to_string();
        assert_eq!(error, "`copy_vec2` is listed twice: leave one of its entries in the families' lists");
    }

    #[test]
    fn an_entry_that_does_not_fit_its_kernel_is_refused_before_anything_runs() {
        let family = BUSLOAD.families[0];
        let values = family.axes.iter().map(|axis| (axis.name, axis.in_simulator[0])).collect();
        let case = Case { values, sm_count: 108 };
        let kernel = family.kernels[0].kernel;
        let empty =
            |_: &Case| Ok(Plan::new(gpu::suite::Launch { grid: [1, 0, 1], block: [32, 1, 1], shared_bytes: 0 }));
        let error = Run::new(family, &Entry { kernel, plan: empty }, case).err().expect("no GPU takes it").to_string();
        assert!(error.contains("the blocks of the grid along y are 0, and CUDA takes 1 to 65535"), "{error}");
        assert!(error.contains(kernel.name) && error.ends_with(&format!("(on {})", "1048576")), "{error}");
    }

    #[test]
    fn a_kernel_that_no_entry_has_is_told_where_to_go() {
        let error = SelectError::Unlisted { name: "copy_new".into(), file: "gpu/src/kernels/copy.rs" }.to_string();
        assert!(error.contains("copy_new is a kernel of gpu/src/kernels/copy.rs"), "{error}");
    }

    #[test]
    fn a_size_that_overflows_is_refused_before_anything_runs() {
        let mut selection = Selection { kernels: kernels(&BUSLOAD, "strided_read").ok(), ..Selection::default() };
        selection.values.insert("elements".into(), vec![Value::Count(1 << 31)]);
        selection.values.insert("stride".into(), vec![Value::Count(1 << 40)]);
        let error = selection.runs(&BUSLOAD, Sizes::Small, 108).err().expect("2^71 elements").to_string();
        assert!(error.contains("strided_read") && error.contains("overflows 64 bits"), "{error}");
    }

    #[test]
    fn axes_of_the_same_name_are_of_the_same_kind() {
        for family in BUSLOAD.families {
            for axis in family.axes {
                let first =
                    axes(&BUSLOAD).into_iter().find(|other| other.name == axis.name).expect("every axis is listed");
                assert_eq!(std::mem::discriminant(&first.kind), std::mem::discriminant(&axis.kind), "{}", axis.name);
            }
        }
    }
}
