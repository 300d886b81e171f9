//! What carries out the suite's kernels on the CPU: the source machine, or the PTX machine on some build of them.

use crate::cases::Run;
use crate::explain::Explanation;
use crate::foreign::{lines, page};
use crate::predict::{Chip, Effort, NotPredicted, Prediction, Timeline, Window};
use crate::ptx::{self, Ptx};
use crate::sim::{self, Options, Outcome, SimulationError};
use crate::suite::{BUSLOAD, Module, Suite};
use engine::Memory;
use gpu::device::host::{Kernel, ParameterKind};
use plan::arguments;
use ptx_machine::{Error, Lines, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// What carries out kernels on the CPU.
pub enum Front {
    /// The source machine: their Rust source, lane by lane.
    Source,
    /// The PTX machine: a build of them, a warp at a time.
    Ptx(Box<Build>),
}

/// A build of a suite's kernels, for the PTX machine.
pub struct Build {
    /// The suite.
    suite: Suite,
    /// The file, as reports name it.
    pub file: String,
    /// The module.
    pub ptx: Ptx,
    programs: BTreeMap<&'static str, Arc<Program>>,
}

/// What is wrong with a build: its file, what it is, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(String);

impl Build {
    /// The build that is the text of `file`, with those of `kernels` that it has.
    ///
    /// # Errors
    /// If it is no PTX, or one of the kernels in it has an instruction that is not carried out, or other parameters.
    pub fn new(suite: &Suite, file: &str, text: &str, kernels: &[Kernel]) -> Result<Self, BuildError> {
        let module = ptx_machine::parse(text).map_err(|error| BuildError(format!("{file}: {error}")))?;
        let mut programs = BTreeMap::new();
        for kernel in kernels {
            let Some(function) = module.entry(kernel.name).filter(|_| !programs.contains_key(kernel.name)) else {
                continue;
            };
            let lines = Lines { file, within: &lines::within(&module, function) };
            let wrong = |what: String| BuildError(format!("{file}: `{}`: {what}", kernel.name));
            let program = ptx_machine::lower(&module, kernel.name, lines).map_err(|error| wrong(error.to_string()))?;
            let (takes, given) = (program.parameter_words(), kernel.parameters.len());
            if takes != given {
                return Err(wrong(format!(
                    "it takes {takes} words of parameters, and the suite's kernel {given}: rebuild it"
                )));
            }
            programs.insert(kernel.name, Arc::new(program));
        }
        Ok(Self { suite: *suite, file: file.to_owned(), ptx: Ptx::new(text), programs })
    }

    /// Whether it is busload's committed one, whose counts are those of the source.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        matches!(self.suite.module, Module::BuiltIn { text, .. } if self.ptx.text() == text)
    }

    /// Whether it has the kernel.
    #[must_use]
    pub fn has(&self, kernel: &Kernel) -> bool {
        self.programs.contains_key(kernel.name)
    }

    /// The kernel without the lines of its source: its instructions stand where they stand in the module.
    fn by_its_own_lines(&self, kernel: &Kernel) -> Option<Arc<Program>> {
        let mut module = ptx_machine::parse(self.ptx.text()).ok()?;
        module.files.clear();
        ptx_machine::lower(&module, kernel.name, Lines { file: &self.file, within: "" }).ok().map(Arc::new)
    }

    fn simulate(
        &self,
        program: &Arc<Program>,
        run: &Run,
        options: &Options,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Outcome, Error> {
        let (kernel, plan) = (&run.kernel, &run.plan);
        let words = arguments::words(kernel, plan, Memory::base).map_err(SimulationError::from)?;
        let is_written = |name| {
            let mut parameters = kernel.parameters.iter();
            parameters.any(|(own, kind)| *own == name && matches!(kind, ParameterKind::GlobalMut(_)))
        };
        let written: Vec<_> = plan.buffers.iter().map(|buffer| is_written(buffer.name)).collect();
        ptx_machine::simulate(program, Arc::clone(plan), &words, &written, options, progress)
    }
}

impl Front {
    /// The PTX machine on this build, if it has the kernel, else the source machine.
    #[must_use]
    pub fn best(suite: &Suite, file: &str, text: &str, kernel: &Kernel) -> Self {
        let build = Build::new(suite, file, text, &[*kernel]).ok().filter(|build| build.has(kernel));
        build.map_or(Self::Source, |build| Self::Ptx(Box::new(build)))
    }

    /// Carries out a run.
    ///
    /// # Errors
    /// If it does not fit in memory, or the build lacks the kernel.
    pub fn simulate(&self, run: &Run, options: &Options, progress: &dyn Fn(u64, u64)) -> Result<Outcome, Error> {
        match self {
            Self::Source => Ok(sim::simulate(run.kernel, run.plan.clone(), options, progress)?),
            Self::Ptx(build) => match build.programs.get(run.kernel.name) {
                Some(program) => build.simulate(program, run, options, progress),
                None => Err(Error::Plan {
                    entry: run.kernel.name,
                    detail: format!("is no entry of {}: rebuild it, or leave the kernel out", build.file),
                }),
            },
        }
    }

    /// The same, with positions in the text of the build.
    ///
    /// # Errors
    /// As [`Front::simulate`].
    pub fn simulate_by_its_own_lines(&self, run: &Run, options: &Options) -> Result<Outcome, Error> {
        match self {
            Self::Ptx(build) if let Some(program) = build.by_its_own_lines(&run.kernel) => {
                build.simulate(&program, run, options, &|_, _| ())
            }
            _ => self.simulate(run, options, &|_, _| ()),
        }
    }

    /// The explanation of a run that was simulated with [`crate::explain::SAMPLING`] and without findings: on the source of what it carries
    /// out, or else on its PTX.
    ///
    /// # Errors
    /// If it cannot be simulated again.
    pub fn explain(&self, run: &Run, outcome: Outcome, options: &Options) -> Result<Explanation, Error> {
        let of_suite: BTreeSet<_> = match self {
            Self::Source => BTreeSet::new(),
            Self::Ptx(build) => build.suite.entries().map(|(_, entry)| entry.kernel.file).collect(),
        };
        let is_of_suite = outcome.sites.iter().all(|site| of_suite.contains(site.position.file));
        let Self::Ptx(build) = self else { return Ok(Explanation::new(run, &outcome)) };
        if is_of_suite {
            return Ok(Explanation::new(run, &outcome));
        }
        let near = [PathBuf::from(&build.file)];
        let text =
            |file: &str| if file == build.file { Some(build.ptx.text().to_owned()) } else { page::source(file, &near) };
        let (source, is_found) = page::excerpts(&outcome, &text);
        if is_found {
            return Ok(Explanation::with_source(run, &outcome, source));
        }
        let outcome = self.simulate_by_its_own_lines(run, options)?;
        let (source, _) = page::excerpts(&outcome, &text);
        Ok(Explanation::with_source(run, &outcome, source))
    }

    /// What results call it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Source => "simulator",
            Self::Ptx(_) => "ptx",
        }
    }

    /// Whether the families' closed forms hold for what it counts: those of their source do, and of the build that is held to it.
    #[must_use]
    pub fn counts_as_source(&self) -> bool {
        match self {
            Self::Source => true,
            Self::Ptx(build) => build.is_committed(),
        }
    }

    /// The build that it carries out.
    #[must_use]
    pub fn ptx(&self) -> Option<&Ptx> {
        match self {
            Self::Source => None,
            Self::Ptx(build) => Some(&build.ptx),
        }
    }

    /// Predicts what `chip` makes of a run.
    ///
    /// # Errors
    /// As [`predict`].
    pub fn predict(&self, run: &Run, chip: &Chip, effort: Effort) -> Result<Prediction, NotPredicted> {
        self.subject(run, |subject| model::predict(subject, chip, effort))
    }

    /// The same, with what happens on one SM while the blocks of one wave are resident.
    ///
    /// # Errors
    /// As [`predict`].
    pub fn predict_with_timeline(
        &self,
        run: &Run,
        chip: &Chip,
        effort: Effort,
        window: Window,
    ) -> Result<(Prediction, Timeline), NotPredicted> {
        self.subject(run, |subject| model::predict_with_timeline(subject, chip, effort, window))
    }

    /// What is to be predicted of a run.
    fn subject<T>(&self, run: &Run, predict: impl FnOnce(&model::Subject<'_>) -> T) -> T {
        let low = match self {
            Self::Ptx(build) if build.is_committed() || !build.suite.is_busload() => None,
            Self::Ptx(_) => Some("predictions were held to measurements of the committed build, not of this one"),
            Self::Source => Some(
                "it was carried out from its source: assumed are one load in flight a warp and one instruction before each access; \
                 of a kernel in the PTX (the command `ptx`) more is known",
            ),
        };
        let subject = model::Subject {
            // A family of another suite is none of those that were measured, whatever it is called.
            family: match self {
                Self::Ptx(build) if !build.suite.is_busload() => "",
                _ => run.family.name,
            },
            launch: run.plan.launch,
            low,
            simulate: &|options| self.simulate(run, options, &|_, _| ()).map_err(|error| error.to_string()),
        };
        predict(&subject)
    }
}

/// Predicts what `chip` makes of a run of busload's own suite, carried out from the committed PTX, or from its source if it is not in that.
///
/// # Errors
/// If the run cannot be simulated, the simulator finds something wrong with it, the chip cannot run it, or it does what is not modelled.
pub fn predict(run: &Run, chip: &Chip, effort: Effort) -> Result<Prediction, NotPredicted> {
    Front::best(&BUSLOAD, ptx::FILE, ptx::EMBEDDED, &run.kernel).predict(run, chip, effort)
}
