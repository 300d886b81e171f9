//! How good predictions of runs of the suite are, and what happens in them. [`crate::front`] makes them.

mod score;
mod timeline;

pub use model::timeline::{Timeline, Window};
pub use model::{
    Chip, ChipError, Confidence, Effort, FITTED_ON, LINES, Limit, NotPredicted, Prediction, Traffic, Trust, chip,
    measured_families,
};
pub use score::{COUNTERS, Errors, Measured, Row, Score};
pub use timeline::{About, MOST_EVENTS, trace_events};
