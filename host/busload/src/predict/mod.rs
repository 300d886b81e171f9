//! Predictions of runs of the suite, and how good they are.

mod score;

pub use model::{
    Chip, ChipError, Confidence, Effort, FITTED_ON, LINES, Limit, MEASURED_FAMILIES, NotPredicted, Prediction, Traffic,
    Trust, chip,
};
pub use score::{COUNTERS, Errors, Measured, Row, Score};

use crate::cases::Run;
use crate::front::{Build, Front};
use model::Subject;

/// Predicts what `chip` makes of a run, carried out from the committed PTX, or from its source if it is not in that.
///
/// # Errors
/// If the run cannot be simulated, the simulator finds something wrong with it, the chip cannot run it, or it does what is not modelled.
pub fn predict(run: &Run, chip: &Chip, effort: Effort) -> Result<Prediction, NotPredicted> {
    if let Ok(build) = Build::committed(&[run.kernel])
        && build.has(&run.kernel)
    {
        return Front::Ptx(Box::new(build)).predict(run, chip, effort);
    }
    let subject = Subject {
        family: run.family.name,
        launch: run.plan.launch,
        low: Some(
            "the kernel is not in the built-in PTX: assumed are one load in flight a warp and one instruction before each access; \
             `cargo xtask ptx` builds it in",
        ),
        simulate: &|options| {
            source::simulate(run.kernel, run.plan.clone(), options, &|_, _| ()).map_err(|error| error.to_string())
        },
    };
    model::predict(&subject, chip, effort)
}
