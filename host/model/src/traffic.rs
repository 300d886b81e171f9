//! What moves through the memory system, and what is busy with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What moved through the memory system in the whole launch. Not whole numbers where only a part of it was replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Traffic {
    /// Data-stage wavefronts of global loads.
    pub l1_data_wavefronts: f64,
    /// Tag-stage wavefronts of global loads.
    pub l1_tag_wavefronts: f64,
    /// Wavefronts of shared memory.
    pub shared_wavefronts: f64,
    /// Data-stage wavefronts of global stores and atomics.
    pub store_wavefronts: f64,
    /// Those among them that may merge with the warp's store before, which goes to the same lines.
    pub mergeable_store_wavefronts: f64,
    /// Bank conflicts of stores, atomics and shared memory: wavefronts beyond those that their bytes and the tag stage need.
    pub store_and_shared_bank_conflicts: f64,
    /// Sectors that the L1s read from the L2.
    pub l2_read_sectors: f64,
    /// Sectors that they write to it, atomics included.
    pub l2_write_sectors: f64,
    /// Sectors read from DRAM.
    pub dram_read_sectors: f64,
    /// Sectors written to DRAM.
    pub dram_write_sectors: f64,
}

/// Cycles that the units of a chip were busy; of an SM's units, the busiest of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Busy {
    pub(super) dram: f64,
    pub(super) l2: f64,
    pub(super) lsu_global: f64,
    pub(super) lsu_shared: f64,
    pub(super) issue: f64,
}
