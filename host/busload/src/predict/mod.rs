//! Predictions of runs of the suite, and how good they are.

mod score;

pub use model::{
    Chip, ChipError, Confidence, Effort, FITTED_ON, LINES, Limit, MEASURED_FAMILIES, NotPredicted, Prediction, Traffic,
    Trust, chip,
};
pub use score::{COUNTERS, Errors, Measured, Row, Score};

use crate::cases::Run;
use crate::ptx::EMBEDDED;
use model::Subject;

/// Predicts what `chip` makes of a run, carried out from its source.
///
/// # Errors
/// If the run cannot be simulated, the simulator finds something wrong with it, the chip cannot run it, or it does what is not modelled.
pub fn predict(run: &Run, chip: &Chip, effort: Effort) -> Result<Prediction, NotPredicted> {
    let subject = Subject {
        family: run.family.name,
        kernel: run.kernel.name,
        launch: run.plan.launch,
        ptx: EMBEDDED,
        simulate: &|options| source::simulate(run.kernel, run.plan.clone(), options, &|_, _| ()),
    };
    model::predict(&subject, chip, effort)
}
