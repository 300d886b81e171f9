//! What kernels cost now: runs of the suite and launches of anybody's PTX, simulated, with each access by the name that budgets give it.

use super::budgets::Subject;
use super::cost::{Access, Place, accesses};
use crate::bench;
use crate::cases::{self, Run};
use crate::explain::{Explanation, SAMPLING, Subject as Explained};
use crate::foreign::file::{Invalid, LaunchFile};
use crate::foreign::prepare::{Ready, Source, prepare};
use crate::front::Front;
use crate::input;
use crate::record::ErrorRecord;
use crate::sim::{Finding, Options, Outcome, SimulationError};
use gpu::suite::{Axis, AxisKind, Case, Value};

/// What was counted of a subject.
#[derive(Clone, Debug)]
pub struct Counted {
    /// What.
    pub subject: Subject,
    /// Where it stands: a kernel's item, or a launch file.
    pub at: Place,
    /// Its accesses. None if nothing was counted, since something is wrong with it.
    pub accesses: Option<Vec<Access>>,
    /// What the sanitizer found.
    pub findings: Vec<Finding>,
    /// What went wrong.
    pub error: Option<ErrorRecord>,
}

/// The options of a simulation that is to be explained.
fn explained(options: &Options) -> Options {
    Options { sampling: Some(SAMPLING), ..options.clone() }
}

impl Counted {
    fn new(subject: Subject, at: Place, outcome: &Outcome, explained: Explained) -> Self {
        let counts = outcome.findings.is_empty().then(|| accesses(Explanation::of(explained, outcome)));
        Self { subject, at, accesses: counts, findings: outcome.findings.clone(), error: None }
    }

    fn failed(subject: Subject, at: Place, kind: &str, message: impl ToString) -> Self {
        let error = ErrorRecord { kind: kind.to_owned(), message: message.to_string() };
        Self { subject, at, accesses: None, findings: Vec::new(), error: Some(error) }
    }
}

/// Counts what a kernel of the families costs on a case.
#[must_use]
pub fn of_run(run: &Run, options: &Options, progress: &dyn Fn(u64, u64)) -> Counted {
    let (kernel, case) = (run.kernel.name.to_owned(), run.case.to_string());
    let subject = Subject::Kernel { kernel: kernel.clone(), case: case.clone() };
    let at = Place { file: run.kernel.file.to_owned(), line: run.kernel.line, column: None };
    let options = bench::sampled(run, &explained(options));
    let (record, outcome) = bench::simulate_on(&Front::Source, run, &options, progress);
    let Some(outcome) = outcome else {
        return Counted { subject, at, accesses: None, findings: Vec::new(), error: record.error };
    };
    let explained = Explained {
        kernel,
        summary: String::new(),
        case,
        launch: run.plan.launch,
        counts_stated: !run.plan.expected.is_empty(),
        source: Vec::new(),
    };
    let error = record.error.filter(|_| outcome.findings.is_empty());
    Counted { error, ..Counted::new(subject, at, &outcome, explained) }
}

/// The same kernel on another case, as tables show it.
///
/// # Errors
/// If it is no case of the family, or cannot be launched.
pub fn on_case(run: &Run, case: &str) -> Result<Run, String> {
    let (kernel, family) = (run.kernel.name, run.family);
    let way = format!("write it as in \"{}\", or remove it by `check --bless`", run.case);
    let value = |axis: &Axis, text: &str| {
        let prefix = format!("{}=", axis.name);
        let value = cases::parse(axis.kind, text.strip_prefix(prefix.as_str()).unwrap_or(text)).ok()?;
        match (axis.kind, value) {
            (AxisKind::Count { min, .. }, Value::Count(count)) if count < min => None,
            _ => Some((axis.name, value)),
        }
    };
    let parts: Vec<_> = case.split(' ').collect();
    let values = family.axes.iter().zip(&parts).map(|(axis, part)| value(axis, part)).collect::<Option<Vec<_>>>();
    let values = values.filter(|_| parts.len() == family.axes.len() || family.axes.is_empty() && case.is_empty());
    let made = values.map(|values| Case { values, sm_count: run.case.sm_count });
    // A case has one way to be written: by another its budgets would not be found again.
    let Some(made) = made.filter(|made| made.to_string() == case) else {
        return Err(format!("it is no case of {kernel}: {way}"));
    };
    let entry = family.kernels.iter().find(|entry| entry.kernel.name == kernel);
    let entry = entry.ok_or_else(|| format!("{kernel} is wrong on purpose: it has no budgets"))?;
    Run::new(family, entry, made).map_err(|error| format!("{error}: {way}"))
}

/// The launches of a launch file.
pub struct Launches {
    /// The file, as it was named.
    pub file: String,
    /// What it launches, ready to run.
    pub ready: Vec<Ready>,
}

impl Launches {
    /// Reads a launch file, and the module that it names.
    ///
    /// # Errors
    /// If one of them makes no sense.
    pub fn read(file: &str) -> Result<Self, Invalid> {
        let launches = LaunchFile::read(file.as_ref())?;
        let Some(ptx) = launches.ptx.as_ref().map(|ptx| launches.beside(ptx.get_ref())) else {
            return Err(Invalid(format!("{file}: it names no module: add `ptx = \"FILE\"`")));
        };
        let text = input::text(&ptx, input::SOURCE).map_err(|error| Invalid(error.to_string()))?;
        let name = ptx.display().to_string();
        let module = ptx_machine::parse(&text).map_err(|error| Invalid(format!("{name}: {error}")))?;
        let ready = prepare(&launches, &Source { file: &name, module: &module }, None)?;
        let mut names: Vec<_> = ready.iter().map(|ready| ready.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = twice[0];
            return Err(Invalid(format!("{file}: two launches are called `{name}`: give each a `name` of its own")));
        }
        Ok(Self { file: file.to_owned(), ready })
    }
}

/// Counts what a launch of a launch file costs.
#[must_use]
pub fn of_launch(file: &str, ready: &Ready, options: &Options, progress: &dyn Fn(u64, u64)) -> Counted {
    let subject = Subject::Launch { file: file.to_owned(), launch: ready.name.clone() };
    let at = Place { file: file.to_owned(), line: 1, column: None };
    let outcome = match ready.simulate(&explained(options), progress) {
        Ok(outcome) => outcome,
        Err(ptx_machine::Error::Simulation(error)) => {
            let too_much = matches!(error, SimulationError::TooLarge { .. } | SimulationError::Exhausted { .. });
            let also = if too_much { ", or sample with --max-blocks" } else { "" };
            return Counted::failed(subject, at, error.kind(), format!("{error}{also}"));
        }
        Err(error) => return Counted::failed(subject, at, "plan", error),
    };
    let explained = Explained {
        kernel: ready.entry.to_owned(),
        summary: String::new(),
        case: ready.name.clone(),
        launch: ready.plan.launch,
        counts_stated: true,
        source: Vec::new(),
    };
    let is_whole = outcome.findings.is_empty() && outcome.blocks.complete();
    let compared = if is_whole { ready.compare(&outcome) } else { Vec::new() };
    let wrong: Vec<_> = compared.iter().filter(|compared| compared.wrong > 0).map(ToString::to_string).collect();
    let error = (!wrong.is_empty()).then(|| ErrorRecord { kind: "comparison".to_owned(), message: wrong.join("\n") });
    Counted { error, ..Counted::new(subject, at, &outcome, explained) }
}
