//! What came of launches, as data: the JSON that `run --json` writes.

use super::compare::Compared;
use super::lines::Inlined;
use super::prepare::Ready;
use crate::predict::Prediction;
use crate::provenance;
use crate::record::{ErrorRecord, Machine, PtxRecord, Record, SCHEMA, Simulated, SiteRecord};
use crate::sim::{Finding, Outcome};
use crate::timing::Timed;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Everything that `run` found out.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct RunReport {
    /// The version of this layout.
    pub schema: u32,
    /// `run`.
    pub command: &'static str,
    /// What it ran on.
    pub machine: Machine,
    /// The module.
    pub ptx: PtxRecord,
    /// Whether more is to come.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// What came of each launch.
    pub results: Vec<RunRecord>,
}

impl RunReport {
    /// A report without results so far.
    #[must_use]
    pub fn new(machine: Machine, ptx: PtxRecord) -> Self {
        Self { schema: SCHEMA, command: "run", machine, ptx, unfinished: true, results: Vec::new() }
    }

    /// The report as JSON.
    ///
    /// # Errors
    /// If a number in it is none.
    pub fn json(&self) -> serde_json::Result<String> {
        provenance::json(self)
    }
}

/// What came of a launch.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct RunRecord {
    /// What every command says of a run.
    #[serde(flatten)]
    pub record: Record,
    /// What the sanitizer found.
    pub findings: Vec<Finding>,
    /// Where code that was inlined was called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<InlinedRecord>,
    /// Which of its instructions are not carried out bit for bit as a GPU does.
    pub instructions: InstructionsRecord,
    /// What it printed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub printed: String,
    /// Outputs beside what they should be.
    pub compared: Vec<Compared>,
    /// Outputs that were written to files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<PathBuf>,
    /// How long it would take on the chip that was named, or why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<PredictedRecord>,
    /// What a GPU made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_gpu: Option<OnGpu>,
}

/// Which instructions of an entry are not carried out bit for bit as a GPU does. All others are.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct InstructionsRecord {
    /// How many it has, as they are carried out.
    pub count: usize,
    /// Those whose results the PTX ISA leaves open within bounds.
    pub approximate: BTreeSet<String>,
    /// Those that are passed over, since they do not change results.
    pub ignored: BTreeSet<String>,
    /// Whether it adds floating-point numbers by atomics, in an order that nothing says.
    pub adds_in_any_order: bool,
}

/// What a GPU made of a launch.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct OnGpu {
    /// Its outputs beside the simulated ones.
    pub compared: Vec<Compared>,
    /// What it took.
    #[serde(flatten)]
    pub timed: Option<Timed>,
    /// What went wrong.
    pub error: Option<ErrorRecord>,
}

/// A prediction, and of which chip.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct PredictedRecord {
    /// The chip.
    pub chip: String,
    /// What is predicted.
    #[serde(flatten)]
    pub prediction: Option<Prediction>,
    /// How far it is to be trusted.
    pub trust: crate::predict::Trust,
    /// Why there is none.
    pub error: Option<String>,
}

/// Where code at a position was inlined.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct InlinedRecord {
    /// The position.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// Its column.
    pub column: u32,
    /// For each place: the positions of the calls, the innermost first.
    pub at: Vec<Vec<String>>,
}

impl RunRecord {
    /// A launch of which nothing is known yet.
    #[must_use]
    pub fn new(ready: &Ready) -> Self {
        let record = Record {
            kernel: ready.entry.to_owned(),
            family: String::new(),
            case: ready.name.clone(),
            params: BTreeMap::new(),
            on: "ptx".to_owned(),
            launch: Some(ready.plan.launch.into()),
            occupancy: None,
            verified: false,
            bytes: ready.plan.bytes,
            moved: None,
            error: None,
            simulated: None,
            timed: None,
            hot: None,
        };
        Self {
            record,
            findings: Vec::new(),
            inlined: Vec::new(),
            instructions: InstructionsRecord {
                count: ready.program.instructions(),
                approximate: ready.program.exactness().approximate.clone(),
                ignored: ready.program.exactness().ignored.clone(),
                adds_in_any_order: ready.adds_in_any_order,
            },
            printed: String::new(),
            compared: Vec::new(),
            written: Vec::new(),
            predicted: None,
            on_gpu: None,
        }
    }

    /// Something that went wrong.
    #[must_use]
    pub fn fail(mut self, kind: &str, message: impl ToString) -> Self {
        self.record.error = Some(ErrorRecord { kind: kind.to_owned(), message: message.to_string() });
        self
    }

    /// A launch that was simulated, and what was compared of it.
    #[must_use]
    pub fn simulated(ready: &Ready, outcome: &Outcome, inlined: &Inlined, compared: Vec<Compared>) -> Self {
        let mut own = Self::new(ready);
        let sites: Vec<SiteRecord> = outcome.sites.iter().map(SiteRecord::from).collect();
        let at = |site: &SiteRecord| {
            let chains: Vec<_> = inlined.chains(&site.file, site.line, site.column).into_iter().collect();
            let (file, line, column) = (site.file.clone(), site.line, site.column);
            (!chains.is_empty()).then_some(InlinedRecord { file, line, column, at: chains })
        };
        own.inlined = sites.iter().filter_map(at).collect();
        own.inlined.dedup_by(|a, b| (&a.file, a.line, a.column) == (&b.file, b.line, b.column));
        own.record.simulated = Some(Simulated { blocks: outcome.blocks.into(), counts_stated: false, sites });
        own.findings = outcome.findings.clone();
        own.printed = outcome.printed.text.clone();
        if outcome.printed.dropped > 0 {
            own.printed += &format!("\n({} bytes more are left out)\n", outcome.printed.dropped);
        }
        own.record.verified = !compared.is_empty() && compared.iter().all(|compared| compared.wrong == 0);
        let wrong: Vec<_> = compared.iter().filter(|compared| compared.wrong > 0).map(ToString::to_string).collect();
        own.compared = compared;
        if !own.findings.is_empty() {
            let findings: Vec<_> = own.findings.iter().map(ToString::to_string).collect();
            return own.fail("findings", findings.join("\n"));
        }
        if wrong.is_empty() { own } else { own.fail("comparison", wrong.join("\n")) }
    }

    /// Whether everything is as it should be.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let on_gpu = self.on_gpu.as_ref();
        self.record.error.is_none()
            && self.predicted.as_ref().is_none_or(|predicted| predicted.error.is_none())
            && on_gpu.is_none_or(|on_gpu| on_gpu.error.is_none() && on_gpu.compared.iter().all(|own| own.wrong == 0))
    }
}
