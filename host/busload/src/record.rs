//! What came of a command, as data: the JSON that `--json` writes.

use crate::cuda::{Facts, Gpu};
use crate::measure::Sampling;
use crate::provenance;
use crate::ptx::Ptx;
use crate::sensors::Sensors;
use crate::sim::{self, Blocks, Note};
use crate::timing::Timed;
use gpu::device::host::Space;
use gpu::suite::{AxisKind, Launch, Value};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The version of the layout of reports. Those of schema 1 are read too: they lack what is optional here, and what is computed.
pub const SCHEMA: u32 = 2;

/// The versions that are read.
pub const READ: std::ops::RangeInclusive<u32> = 1..=SCHEMA;

pub use crate::why::operation_name;

/// Everything that one command found out.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Report {
    /// The version of this layout.
    pub schema: u32,
    /// The command.
    pub command: String,
    /// What it ran on.
    pub machine: Machine,
    /// The build of the kernels that a GPU runs.
    pub ptx: PtxRecord,
    /// How times were taken; none where nothing was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// Whether more is to come: in the file of a run that is under way, or was ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// What came of each kernel on each case.
    pub results: Vec<Record>,
}

impl Report {
    /// One of which nothing came yet.
    #[must_use]
    pub fn new(command: &str, machine: Machine, ptx: PtxRecord) -> Self {
        let command = command.to_owned();
        Self { schema: SCHEMA, command, machine, ptx, sampling: None, unfinished: true, results: Vec::new() }
    }

    /// The report as JSON: one object, a line for each field.
    ///
    /// # Errors
    /// If a number in it is none.
    pub fn json(&self) -> serde_json::Result<String> {
        provenance::json(self)
    }
}

/// A machine.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Machine {
    /// `gpu`, `simulator`, or `mock`: a GPU whose times are made up, for tests of busload itself.
    pub kind: String,
    /// The GPU's name, or `busload simulator`.
    pub name: String,
    /// The GPU's number among those that the driver lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
    /// The first half of the SHA-256 of the GPU's UUID: it tells GPUs apart, and does not name them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The CUDA version that the driver supports.
    pub driver: Option<String>,
    /// Multiprocessors: the GPU's, or those that grids are made for in the simulator.
    pub sm_count: u32,
    /// Bytes of the L2 cache.
    pub l2_bytes: Option<u64>,
    /// Compute capability.
    pub compute_capability: Option<String>,
    /// Peak bandwidth of the memory by the driver's attributes, in GB/s.
    pub peak_gbps: Option<f64>,
    /// The fastest device-to-device copy measured in this run, bytes read plus written, in GB/s.
    pub copy_gbps: Option<f64>,
    /// What NVML tells of the GPU; none where there is no NVML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvml: Option<Sensors>,
}

/// What stands for a GPU in tests, as results call it: its times are made up.
pub const MOCK: &str = "mock";

/// Multiprocessors that the simulator's grids are made for: an A100's.
pub const SIMULATED_SM_COUNT: u32 = 108;

impl Machine {
    /// The simulator.
    pub fn simulator() -> Self {
        Self {
            kind: "simulator".into(),
            name: "busload simulator".into(),
            device: None,
            id: None,
            driver: None,
            sm_count: SIMULATED_SM_COUNT,
            l2_bytes: None,
            compute_capability: None,
            peak_gbps: None,
            copy_gbps: None,
            nvml: None,
        }
    }

    /// A GPU.
    pub fn gpu(gpu: &Gpu) -> Self {
        Self { nvml: gpu.nvml().map(Sensors::from), ..Self::of("gpu", gpu.facts()) }
    }

    /// What has these facts.
    pub(crate) fn of(kind: &str, facts: &Facts) -> Self {
        Self {
            kind: kind.into(),
            name: facts.name.clone(),
            device: Some(facts.device),
            id: facts.uuid.map(|uuid| hex(&Sha256::digest(uuid)[..16])),
            driver: Some(facts.driver.clone()),
            sm_count: facts.sm_count,
            l2_bytes: Some(facts.l2_bytes),
            compute_capability: Some(facts.compute_capability.clone()),
            peak_gbps: facts.peak_gbps,
            copy_gbps: None,
            nvml: None,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A build of the kernels.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct PtxRecord {
    /// `llvm` or `nvvm`.
    pub backend: Option<String>,
    /// The architecture it is for.
    pub target: Option<String>,
    /// The hash of the sources it was built from.
    pub source_hash: Option<String>,
}

impl From<&Ptx> for PtxRecord {
    fn from(ptx: &Ptx) -> Self {
        let field = |name| ptx.header(name).map(str::to_owned);
        Self { backend: field("backend"), target: ptx.target().map(str::to_owned), source_hash: field("source-hash") }
    }
}

/// What came of one kernel on one case.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Record {
    /// The kernel.
    pub kernel: String,
    /// Its family.
    pub family: String,
    /// The case, as tables show it.
    pub case: String,
    /// The case, value by value.
    pub params: BTreeMap<String, serde_json::Value>,
    /// What it ran on: `gpu`, `simulator`, `ptx`, or `mock`.
    pub on: String,
    /// Grid, block and dynamic shared memory; none for a row that is no kernel of ours.
    pub launch: Option<LaunchRecord>,
    /// How many of its blocks an SM of the GPU holds at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<Occupancy>,
    /// Whether every element of every output was compared with its reference, and was right.
    pub verified: bool,
    /// Bytes that must move, read plus written.
    pub bytes: u64,
    /// Bytes that moved between L2 and DRAM, read plus written, as a profile counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<u64>,
    /// What went wrong.
    pub error: Option<ErrorRecord>,
    /// What the simulator counted.
    #[serde(flatten)]
    pub simulated: Option<Simulated>,
    /// What the GPU took.
    #[serde(flatten)]
    pub timed: Option<Timed>,
    /// What it took with a hot L2, where that was measured too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot: Option<Timed>,
}

/// A record as it is written. Where a field of a part is there, the others must be too: a part that makes no sense is not taken for
/// one that is missing.
#[derive(Deserialize, JsonSchema)]
struct Written {
    kernel: String,
    family: String,
    case: String,
    params: BTreeMap<String, serde_json::Value>,
    on: String,
    launch: Option<LaunchRecord>,
    #[serde(default)]
    occupancy: Option<Occupancy>,
    verified: bool,
    bytes: u64,
    #[serde(default)]
    moved: Option<u64>,
    error: Option<ErrorRecord>,
    #[serde(default)]
    hot: Option<Timed>,
    #[serde(flatten)]
    parts: serde_json::Map<String, serde_json::Value>,
}

impl Record {
    /// Whether it is of a launch on a GPU, or on what stands for one.
    pub fn is_of_gpu(&self) -> bool {
        ["gpu", MOCK].contains(&self.on.as_str())
    }
}

impl TryFrom<Written> for Record {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { kernel, family, case, params, on, launch, occupancy, verified, bytes, moved, error, hot, parts } =
            written;
        let has = |fields: &[&str]| fields.iter().any(|field| parts.contains_key(*field));
        let (is_simulated, is_timed) =
            (has(&["blocks", "sites"]), has(&["samples_ms", "median_ms", "min_ms", "spread", "gbps"]));
        let parts = serde_json::Value::Object(parts);
        Ok(Self {
            simulated: is_simulated.then(|| typed(parts.clone())).transpose()?,
            timed: is_timed.then(|| typed(parts)).transpose()?,
            kernel,
            family,
            case,
            params,
            on,
            launch,
            occupancy,
            verified,
            bytes,
            moved,
            error,
            hot,
        })
    }
}

/// A launch.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct LaunchRecord {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory a block.
    pub shared_bytes: u32,
}

impl From<Launch> for LaunchRecord {
    fn from(launch: Launch) -> Self {
        Self { grid: launch.grid, block: launch.block, shared_bytes: launch.shared_bytes }
    }
}

/// What an SM holds at a time of a launch, by the driver: registers, shared memory and threads allow no more.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Occupancy {
    /// Blocks.
    pub blocks_per_sm: u32,
    /// Their threads, as a share of those that an SM holds at most.
    pub share: f64,
}

/// What went wrong with a case.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ErrorRecord {
    /// Which kind of error.
    pub kind: String,
    /// What happened.
    pub message: String,
}

/// What the simulator counted.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Simulated {
    /// Which blocks ran.
    pub blocks: BlocksRecord,
    /// Whether the family's entry states the counts to expect, to which those of a whole grid are held.
    #[serde(default = "stated")]
    pub counts_stated: bool,
    /// What each source position asked for.
    pub sites: Vec<SiteRecord>,
}

/// What results without the field were held to.
fn stated() -> bool {
    true
}

/// Which blocks of a grid were simulated.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct BlocksRecord {
    /// Blocks of the grid.
    pub total: u64,
    /// Blocks simulated. Counts are of these alone.
    pub simulated: u64,
    /// Which.
    pub which: String,
}

impl From<Blocks> for BlocksRecord {
    fn from(blocks: Blocks) -> Self {
        let which = match (blocks.step, blocks.row) {
            (1, _) => "all".to_owned(),
            (step, 1) => format!("one in {step}, and the last"),
            (step, row) => format!("{row} in a row of every {step}, and the last"),
        };
        Self { total: blocks.total, simulated: blocks.count(), which }
    }
}

/// What a source position asked for.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the columns of gpu::suite::Counts")]
pub struct SiteRecord {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub space: String,
    pub op: String,
    pub width: u64,
    pub requests: u64,
    pub lanes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sectors: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sectors_ideal: Option<u64>,
    /// Distinct bytes that the lanes of each request want, summed over the requests: global memory alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wavefronts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wavefronts_ideal: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionsRecord>,
    /// What the compiler may make of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// Transactions of a source position on the generation of GPUs that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct TransactionsRecord {
    /// How many.
    pub count: u64,
    /// Bytes that they move.
    pub bytes: u64,
}

impl From<&sim::Site> for SiteRecord {
    fn from(site: &sim::Site) -> Self {
        let global = site.space == Space::Global;
        let counts = site.counts;
        Self {
            file: site.position.file.to_owned(),
            line: site.position.line,
            column: site.position.column,
            space: site.space.name().to_owned(),
            op: operation_name(site.operation).to_owned(),
            width: site.width,
            requests: counts.requests,
            lanes: counts.lanes,
            sectors: global.then_some(counts.sectors),
            sectors_ideal: global.then_some(counts.sectors_ideal),
            used: global.then_some(site.used),
            lines: global.then_some(counts.lines),
            wavefronts: (!global).then_some(counts.wavefronts),
            wavefronts_ideal: (!global).then_some(counts.wavefronts_ideal),
            transactions: (site.transactions.count > 0)
                .then_some(TransactionsRecord { count: site.transactions.count, bytes: site.transactions.bytes }),
            notes: site.notes.clone(),
        }
    }
}

/// A value as what it should be; the error names the field.
pub(crate) fn typed<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| error.to_string())
}

/// A case's value from its JSON; none if it is no value of such an axis.
pub fn value(kind: AxisKind, json: &serde_json::Value) -> Option<Value> {
    let part = |i: usize| json.get(i)?.as_u64()?.try_into().ok();
    match kind {
        AxisKind::Count { .. } => json.as_u64().map(Value::Count),
        AxisKind::Shape => Some(Value::Shape(part(0)?, part(1)?)),
        AxisKind::Choice(names) => names.iter().find(|name| json == **name).map(|name| Value::Choice(name)),
    }
}

/// A case's value as JSON.
pub fn param(value: Value) -> serde_json::Value {
    match value {
        Value::Count(count) => count.into(),
        Value::Shape(rows, columns) => serde_json::json!([rows, columns]),
        Value::Choice(name) => name.into(),
    }
}
