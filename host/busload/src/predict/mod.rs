//! How good predictions of runs of the suite are. [`crate::front`] makes them.

mod score;

pub use model::{
    Chip, ChipError, Confidence, Effort, FITTED_ON, LINES, Limit, MEASURED_FAMILIES, NotPredicted, Prediction, Traffic,
    Trust, chip,
};
pub use score::{COUNTERS, Errors, Measured, Row, Score};
