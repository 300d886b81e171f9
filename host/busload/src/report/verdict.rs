//! Whether a row is verified, in a word.

use crate::record::{Record, Simulated};

/// Whether a record is verified, or why it is not.
pub(super) fn verdict(record: &Record) -> String {
    let verdict = match (&record.error, record.verified, &record.simulated) {
        (Some(error), ..) => return format!("no: {}", error.kind),
        (None, true, _) => "yes".to_owned(),
        (None, false, Some(Simulated { blocks, .. })) if blocks.simulated < blocks.total => {
            format!("sampled: {} of {} blocks", blocks.simulated, blocks.total)
        }
        (None, false, Some(_)) => "no output".to_owned(),
        (None, false, None) => "-".to_owned(),
    };
    match &record.simulated {
        Some(Simulated { counts_stated: false, .. }) => format!("{verdict}, counts not stated"),
        _ => verdict,
    }
}
