//! Predictions of runs of the suite, and how good they are.

mod score;

pub use model::{
    Chip, ChipError, Confidence, Effort, FITTED_ON, LINES, Limit, MEASURED_FAMILIES, NotPredicted, Prediction, Traffic,
    Trust, chip,
};
pub use score::{COUNTERS, Errors, Measured, Row, Score};

use crate::arguments;
use crate::cases::Run;
use crate::ptx::EMBEDDED;
use engine::{Memory, Options, Outcome};
use gpu::device::host::ParameterKind;
use model::Subject;
use ptx_machine::{Lines, Module};
use std::sync::{Arc, LazyLock};

/// The committed build.
static MODULE: LazyLock<Option<Module<'static>>> = LazyLock::new(|| ptx_machine::parse(EMBEDDED).ok());

const OF_SUITE: Lines<'static> = Lines { file: "busload_sm_80.ptx", within: "gpu/src/kernels/" };

/// Predicts what `chip` makes of a run, carried out from the committed PTX, or from its source if it is not in that.
///
/// # Errors
/// If the run cannot be simulated, the simulator finds something wrong with it, the chip cannot run it, or it does what is not modelled.
pub fn predict(run: &Run, chip: &Chip, effort: Effort) -> Result<Prediction, NotPredicted> {
    let subject = |low, simulate: &dyn Fn(&Options) -> Result<Outcome, String>| {
        let subject = Subject { family: run.family.name, launch: run.plan.launch, low, simulate };
        model::predict(&subject, chip, effort)
    };
    let program = MODULE.as_ref().and_then(|module| ptx_machine::lower(module, run.kernel.name, OF_SUITE).ok());
    let Some(program) = program.map(Arc::new) else {
        let low = "the kernel is not in the built-in PTX: assumed are one load in flight a warp and one instruction before each access; \
                   `cargo xtask ptx` builds it in";
        return subject(Some(low), &|options| {
            source::simulate(run.kernel, run.plan.clone(), options, &|_, _| ()).map_err(|error| error.to_string())
        });
    };
    let plan = Arc::new(run.plan.clone());
    let words = arguments::words(&run.kernel, &plan, Memory::base);
    let words = words.map_err(|error| NotPredicted::Simulation(error.to_string()))?;
    let is_written = |name| {
        let mut parameters = run.kernel.parameters.iter();
        parameters.any(|(own, kind)| *own == name && matches!(kind, ParameterKind::GlobalMut(_)))
    };
    let written: Vec<_> = plan.buffers.iter().map(|buffer| is_written(buffer.name)).collect();
    subject(None, &|options| {
        let outcome = ptx_machine::simulate(&program, Arc::clone(&plan), &words, &written, options, &|_, _| ());
        outcome.map_err(|error| error.to_string())
    })
}
