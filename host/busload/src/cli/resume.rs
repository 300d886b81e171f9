//! Going on with a report whose run was ended.

use super::Usage;
use crate::bench::NOT_RUN;
use crate::input;
use crate::measure::Sampling;
use crate::record::{Machine, PtxRecord, Report, SCHEMA};
use crate::results;
use anyhow::{Context, Result};

/// The report in `file`, to go on with; none if there is no such file. What did not run in it is to run now.
///
/// # Errors
/// If it is something else, or of another GPU, of other kernels, or measured in another way: what is in one file can be compared.
pub(super) fn going_on(
    file: &str,
    machine: &Machine,
    ptx: &PtxRecord,
    sampling: &Sampling,
) -> Result<Option<Report>, Usage> {
    let text = match input::text(file, input::RESULTS) {
        Ok(text) => text,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(anyhow::Error::new(error).context("--resume").into()),
    };
    let named = || format!("--resume {file}");
    results::bench(&text).with_context(named)?;
    let mut report: Report = serde_json::from_str(&text).map_err(anyhow::Error::from).with_context(named)?;
    let other = |what: &str, there: String, here: String| {
        anyhow::anyhow!("{}: it is of {what} {there}, and this is {here}: measure into another file", named())
    };
    let text = |part: &Option<String>| part.clone().unwrap_or_else(|| "unknown".to_owned());
    let there = &report.machine;
    if (&there.kind, &there.name) != (&machine.kind, &machine.name) {
        return Err(other("the GPU", there.name.clone(), machine.name.clone()).into());
    }
    if there.id.is_some() && machine.id.is_some() && there.id != machine.id {
        return Err(other("the GPU with the id", text(&there.id), text(&machine.id)).into());
    }
    if there.driver != machine.driver {
        return Err(other("a driver for CUDA", text(&there.driver), text(&machine.driver)).into());
    }
    if (&report.ptx.backend, &report.ptx.source_hash) != (&ptx.backend, &ptx.source_hash) {
        return Err(other("kernels with the hash", text(&report.ptx.source_hash), text(&ptx.source_hash)).into());
    }
    if let Some(before) = report.sampling.filter(|before| before != sampling) {
        let shown = |sampling: &Sampling| serde_json::to_string(sampling).unwrap_or_default();
        return Err(other("samples taken by", shown(&before), shown(sampling)).into());
    }
    report.schema = SCHEMA;
    report.results.retain(|record| record.error.as_ref().is_none_or(|error| error.kind != NOT_RUN));
    Ok(Some(report))
}
