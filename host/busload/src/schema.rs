//! The layouts of what commands write as JSON, as JSON Schema: `docs/schemas/` has them.

use crate::check;
use crate::claims::Judged;
use crate::compare::Comparison;
use crate::explain::Explanation;
use crate::fleet::Fleet;
use crate::foreign::record::RunReport;
use crate::predict;
use crate::profile::Profile;
use crate::provenance::Provenance;
use crate::record::Report;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;

/// Makes the schema of a layout.
type Layout = fn(SchemaGenerator) -> schemars::Schema;

/// Commands that write JSON, each with the layout of that.
const LAYOUTS: [(&str, Layout); 13] = [
    ("bench", root::<Report>),
    ("simulate", root::<Report>),
    ("verify", root::<Report>),
    ("profile", root::<Profile>),
    ("predict", root::<Predicted>),
    ("explain", root::<Explained>),
    ("run", root::<RunReport>),
    ("check", root::<check::Report>),
    ("spatter", root::<Report>),
    ("list", root::<Listed>),
    ("claims", root::<Claimed>),
    ("compare", root::<Compared>),
    ("fleet", root::<Ranked>),
];

/// The commands that write JSON, in the order of `--help`.
pub fn commands() -> impl Iterator<Item = &'static str> {
    LAYOUTS.iter().map(|(command, _)| *command)
}

/// The schema of what a command writes by `--json`, draft 2020-12; none if it writes none.
#[must_use]
pub fn of(command: &str) -> Option<serde_json::Value> {
    let (_, layout) = LAYOUTS.iter().find(|(own, _)| *own == command)?;
    let mut schema = layout(SchemaSettings::draft2020_12().for_serialize().into_generator());
    schema.insert("title".to_owned(), format!("What `busload {command} --json` writes").into());
    schema.remove("description");
    Some(schema.into())
}

fn root<T: JsonSchema>(generator: SchemaGenerator) -> schemars::Schema {
    generator.into_root_schema_for::<Document<T>>()
}

/// A report, with where it comes from.
#[derive(JsonSchema, Serialize)]
struct Document<T> {
    #[serde(flatten)]
    report: T,
    provenance: Provenance,
}

/// What `predict` writes.
#[derive(JsonSchema, Serialize)]
struct Predicted {
    /// The version of this layout.
    schema: u32,
    /// `predict`.
    command: String,
    /// The chip.
    chip: String,
    /// How good predictions are, where it was measured too.
    score: predict::Score,
    /// Whether more is to come.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unfinished: bool,
    /// What is predicted of each kernel on each case.
    results: Vec<predict::Row>,
}

/// What `explain` writes.
#[derive(JsonSchema, Serialize)]
struct Explained {
    /// The version of this layout.
    schema: u32,
    /// `explain`.
    command: String,
    /// Which of the kernels was asked for.
    shown: usize,
    /// It, and those that stand before and after it in its family.
    kernels: Vec<Explanation>,
}

/// What `claims` writes.
#[derive(JsonSchema, Serialize)]
struct Claimed {
    /// The version of this layout.
    schema: u32,
    /// `claims`.
    command: String,
    /// The claims, judged.
    claims: Vec<Judged>,
}

/// What `compare` writes.
#[derive(JsonSchema, Serialize)]
struct Compared {
    /// The version of this layout.
    schema: u32,
    /// `compare`.
    command: String,
    /// The results beside the reference.
    comparison: Comparison,
}

/// What `fleet` writes.
#[derive(JsonSchema, Serialize)]
struct Ranked {
    /// The version of this layout.
    schema: u32,
    /// `fleet`.
    command: String,
    /// The GPUs, judged.
    fleet: Fleet,
}

/// What `list` writes.
#[derive(JsonSchema, Serialize)]
struct Listed {
    /// The version of this layout.
    schema: u32,
    /// `list`.
    command: String,
    /// The families, in the order of the curriculum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    families: Vec<Family>,
    /// With `--primitives`, what kernels may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    primitives: Vec<Primitive>,
}

/// A family of kernels.
#[derive(JsonSchema, Serialize)]
struct Family {
    /// Its name.
    name: String,
    /// What it shows.
    summary: String,
    /// Its kernels.
    kernels: Vec<Kernel>,
}

/// A kernel.
#[derive(JsonSchema, Serialize)]
struct Kernel {
    /// Its name.
    name: String,
    /// The first sentence of its documentation.
    what: String,
    /// The file that it stands in.
    file: String,
    /// The line of its name.
    line: u32,
    /// Whether the simulator must refuse it.
    wrong_on_purpose: bool,
}

/// A primitive of the facade.
#[derive(JsonSchema, Serialize)]
struct Primitive {
    /// Its name.
    name: String,
    /// What it is in PTX.
    ptx: String,
    /// What CUDA calls it.
    cuda: String,
    /// What is counted of it.
    counts: String,
    /// The counter of Nsight Compute.
    counter: Option<String>,
}
