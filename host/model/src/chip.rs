//! A GPU as a description gives it, each figure with its source. What descriptions leave open is in
//! `constants.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use system::input;

/// A figure and where it comes from.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Who says so.
    pub source: String,
}

/// A GPU as a file describes it: every figure with its source. Cycles are those of the SM clock.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    name: String,
    sm_count: Figure,
    clock_ghz: Figure,
    warps_per_sm: Figure,
    blocks_per_sm: Figure,
    shared_kib_per_sm: Figure,
    l1_kib: Figure,
    l2_bytes: Figure,
    l2_partitions: Figure,
    l2_bytes_per_cycle: Figure,
    dram_channels: Figure,
    dram_gbps: Figure,
    shared_latency_cycles: Figure,
    l1_latency_cycles: Figure,
    l2_latency_cycles: Figure,
    dram_latency_cycles: Figure,
}

/// A GPU, as far as it decides what memory accesses cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    /// Its name.
    pub name: String,
    /// SMs.
    pub sm_count: u32,
    /// The SM clock.
    pub clock_ghz: f64,
    /// Warps that an SM holds.
    pub warps_per_sm: u64,
    /// Blocks that it holds.
    pub blocks_per_sm: u64,
    /// Bytes of shared memory that it has for its blocks.
    pub shared_bytes_per_sm: u64,
    /// Bytes of its L1 and shared memory together.
    pub l1_bytes: u64,
    /// Bytes of the L2.
    pub l2_bytes: u64,
    /// Partitions of the L2. Each caches what the SMs at it read, whichever it belongs to.
    pub l2_partitions: u64,
    /// Bytes a cycle that the L2 sends at most.
    pub l2_bytes_per_cycle: f64,
    /// DRAM channels. Each partition of the L2 has a slice for each.
    pub dram_channels: usize,
    /// DRAM bandwidth by its clock and width.
    pub dram_gbps: f64,
    /// Cycles from a load to its data, by where they are: shared memory, L1, L2, DRAM.
    pub latency: [f64; 4],
}

/// Why there is no chip of that name.
#[derive(Debug, thiserror::Error)]
pub enum ChipError {
    /// Neither a known chip nor a file.
    #[error("--chip {0}: neither a chip that is built in ({known}) nor a file that describes one", known = Chip::names().join(", "))]
    Unknown(String),
    /// A file that does not describe a chip.
    #[error("--chip {file}: {reason}; `busload predict --describe h200` prints a description to start from")]
    Description {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A block that no SM of a chip has room for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// For its shared memory.
    #[error(
        "a block needs {needed} bytes of shared memory, static and dynamic, and {chip} gives one {most} at most \
         (shared_kib_per_sm, less {RESERVED_SHARED} bytes for the system): launch it with less, or name another --chip"
    )]
    Shared {
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that it can have.
        most: u64,
        /// Of which chip.
        chip: String,
    },
    /// For its warps.
    #[error(
        "a block has {needed} warps, and an SM of {chip} holds {most} (warps_per_sm): launch smaller blocks, or name another --chip"
    )]
    Warps {
        /// Warps that it has.
        needed: u64,
        /// Warps that an SM holds.
        most: u64,
        /// Of which chip.
        chip: String,
    },
}

/// The chips that are built in: name on the command line, description.
const BUILT_IN: [(&str, &str); 5] = [
    ("a100-40", include_str!("chips/a100-40.json")),
    ("a100-80", include_str!("chips/a100-80.json")),
    ("h100-pcie", include_str!("chips/h100-pcie.json")),
    ("h100-sxm", include_str!("chips/h100-sxm.json")),
    ("h200", include_str!("chips/h200.json")),
];

impl Chip {
    /// The names of those that are built in.
    pub fn names() -> [&'static str; 5] {
        BUILT_IN.map(|(name, _)| name)
    }

    /// The description of one that is built in, each figure with its source.
    pub fn description(name: &str) -> Option<&'static str> {
        BUILT_IN.into_iter().find(|(known, _)| *known == name).map(|(_, description)| description)
    }

    /// A chip that is built in, or that a file describes.
    ///
    /// # Errors
    /// If it is neither, or a figure makes no sense.
    pub fn load(name: &str) -> Result<Self, ChipError> {
        if let Some(description) = Self::description(name) {
            return Self::parse(name, description);
        }
        let text = input::text(name, input::DESCRIPTION).map_err(|error| match error.is_missing() {
            true => ChipError::Unknown(name.to_owned()),
            false => ChipError::Description { file: name.to_owned(), reason: error.to_string() },
        })?;
        Self::parse(name, &text)
    }

    fn parse(file: &str, text: &str) -> Result<Self, ChipError> {
        let wrong = |reason: String| ChipError::Description { file: file.to_owned(), reason };
        let chip: Description = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let figures = [
            ("sm_count", &chip.sm_count, 1.0..=1024.0),
            ("clock_ghz", &chip.clock_ghz, 0.01..=100.0),
            ("warps_per_sm", &chip.warps_per_sm, 1.0..=1024.0),
            ("blocks_per_sm", &chip.blocks_per_sm, 1.0..=1024.0),
            ("shared_kib_per_sm", &chip.shared_kib_per_sm, 1.0..=4096.0),
            ("l1_kib", &chip.l1_kib, 1.0..=4096.0),
            ("l2_bytes", &chip.l2_bytes, 4096.0..=4e9),
            ("l2_partitions", &chip.l2_partitions, 1.0..=16.0),
            ("l2_bytes_per_cycle", &chip.l2_bytes_per_cycle, 1.0..=1e6),
            ("dram_channels", &chip.dram_channels, 1.0..=1024.0),
            ("dram_gbps", &chip.dram_gbps, 1.0..=1e6),
            ("shared_latency_cycles", &chip.shared_latency_cycles, 1.0..=1e5),
            ("l1_latency_cycles", &chip.l1_latency_cycles, 1.0..=1e5),
            ("l2_latency_cycles", &chip.l2_latency_cycles, 1.0..=1e5),
            ("dram_latency_cycles", &chip.dram_latency_cycles, 1.0..=1e5),
        ];
        for (name, figure, range) in figures {
            let Figure { value, source } = figure;
            if !range.contains(value) {
                return Err(wrong(format!("{name} is {value}: give {} to {}", range.start(), range.end())));
            }
            if source.is_empty() {
                return Err(wrong(format!("{name} has no source: say where {value} comes from")));
            }
        }
        let (l1, shared) = (chip.l1_kib.value, chip.shared_kib_per_sm.value);
        if l1 < shared {
            return Err(wrong(format!(
                "l1_kib is {l1}, of which shared_kib_per_sm, {shared}, is a part: give at least that"
            )));
        }
        let latency =
            [&chip.shared_latency_cycles, &chip.l1_latency_cycles, &chip.l2_latency_cycles, &chip.dram_latency_cycles];
        if !latency.is_sorted_by(|near, far| near.value <= far.value) {
            return Err(wrong("the latencies must not fall from shared memory over L1 and L2 to memory".to_owned()));
        }
        Ok(Self {
            name: chip.name,
            sm_count: chip.sm_count.value as u32,
            clock_ghz: chip.clock_ghz.value,
            warps_per_sm: chip.warps_per_sm.value as u64,
            blocks_per_sm: chip.blocks_per_sm.value as u64,
            shared_bytes_per_sm: chip.shared_kib_per_sm.value as u64 * 1024,
            l1_bytes: chip.l1_kib.value as u64 * 1024,
            l2_bytes: chip.l2_bytes.value as u64,
            l2_partitions: chip.l2_partitions.value as u64,
            l2_bytes_per_cycle: chip.l2_bytes_per_cycle.value,
            dram_channels: chip.dram_channels.value as usize,
            dram_gbps: chip.dram_gbps.value,
            latency: latency.map(|figure| figure.value),
        })
    }

    /// Blocks of `warps` warps and `shared_bytes` of shared memory that an SM holds, and the bytes of L1 that are left
    /// to it. Registers are not known without a compiler: they are taken to suffice.
    ///
    /// # Errors
    /// If it holds none.
    pub fn residency(&self, warps: u64, shared_bytes: u64) -> Result<(u64, u64), TooLarge> {
        let chip = || self.name.clone();
        let most = self.shared_bytes_per_sm.saturating_sub(RESERVED_SHARED);
        if shared_bytes > most {
            return Err(TooLarge::Shared { needed: shared_bytes, most, chip: chip() });
        }
        if warps > self.warps_per_sm {
            return Err(TooLarge::Warps { needed: warps, most: self.warps_per_sm, chip: chip() });
        }
        let each = if shared_bytes == 0 { 0 } else { shared_bytes + RESERVED_SHARED };
        let by_shared = self.shared_bytes_per_sm.checked_div(each).unwrap_or(u64::MAX);
        let blocks = self.blocks_per_sm.min(self.warps_per_sm / warps.max(1)).min(by_shared);
        let wanted = if each == 0 {
            (DEFAULT_CARVE_OUT * blocks).min(MOST_DEFAULT_CARVE_OUT)
        } else {
            (blocks * each).div_ceil(1024)
        };
        let carved = CARVE_OUTS.into_iter().find(|kib| *kib >= wanted).unwrap_or(u64::MAX).saturating_mul(1024);
        Ok((blocks, self.l1_bytes - carved.min(self.shared_bytes_per_sm)))
    }
}

/// Bytes of shared memory of each block that are reserved for the system (CUDA C++ Programming Guide, compute capability 8.0 on).
const RESERVED_SHARED: u64 = 1024;

/// KiB of the carve-out for each block that has no shared memory, and for all of them at most: `launch__shared_mem_config_size` of
/// Nsight Compute on an H200 is 8 for two blocks, 16 for three and four, 32 for eight and more.
const DEFAULT_CARVE_OUT: u64 = 4;
const MOST_DEFAULT_CARVE_OUT: u64 = 32;

/// Carve-outs: KiB of an SM's L1 that can be configured as shared memory (the same guide, 8.0 and 9.0).
const CARVE_OUTS: [u64; 9] = [0, 8, 16, 32, 64, 100, 132, 164, 196];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_chips_are_what_they_should_be() {
        for name in Chip::names() {
            let chip = Chip::load(name).unwrap_or_else(|error| panic!("{error}"));
            assert!(chip.l1_bytes > chip.shared_bytes_per_sm, "{name}");
        }
        let h200 = Chip::load("h200").expect("is built in");
        let residency = |warps, shared_bytes| h200.residency(warps, shared_bytes).expect("there is room");
        assert_eq!(residency(8, 0), (8, (256 - 32) << 10), "none of it, as Nsight Compute counts");
        assert_eq!(residency(32, 0), (2, (256 - 8) << 10));
        assert_eq!(residency(8, 4096), (8, (256 - 64) << 10), "8 blocks of 5 KiB");
        assert_eq!(residency(8, 48 << 10), (4, (256 - 196) << 10));
        assert_eq!(residency(1, 0), (32, (256 - 32) << 10), "as many blocks as there may be");
    }

    /// 163 KiB on compute capability 8.0 and 227 KiB on 9.0 (CUDA C++ Programming Guide, maximum amount of shared memory per block).
    #[test]
    fn a_block_that_no_sm_has_room_for_is_refused_with_the_limit_and_whose_it_is() {
        for (name, most) in [("a100-40", 163), ("a100-80", 163), ("h100-pcie", 227), ("h100-sxm", 227), ("h200", 227)] {
            let chip = Chip::load(name).expect("is built in");
            assert_eq!(chip.residency(8, most << 10).map(|(blocks, _)| blocks), Ok(1), "{name}");
            let refused = chip.residency(8, (most << 10) + 1).expect_err(name).to_string();
            let limit = format!("needs {} bytes of shared memory", (most << 10) + 1);
            assert!(
                refused.contains(&limit) && refused.contains(&format!("{} gives one {} at", chip.name, most << 10)),
                "{refused}"
            );
        }
        let few = Chip { warps_per_sm: 16, ..Chip::load("h200").expect("is built in") };
        assert!(few.residency(16, 0).is_ok());
        let refused = few.residency(17, 0).expect_err("too many").to_string();
        assert!(refused.contains("17 warps") && refused.contains("NVIDIA H200 holds 16"), "{refused}");
    }

    #[test]
    fn what_is_wrong_with_a_description_is_said() {
        let text = Chip::description("h200").expect("is built in");
        let changed = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            Chip::parse("my.json", &text.replacen(from, to, 1)).expect_err(to).to_string()
        };
        assert!(changed("\"value\": 132", "\"value\": 0").starts_with("--chip my.json: sm_count is 0: give 1 to 1024"));
        assert!(changed("\"sm_count\"", "\"sms\"").contains("unknown field `sms`"));
        assert!(changed("\"value\": 256", "\"value\": 64").contains("l1_kib is 64, of which shared_kib_per_sm, 228"));
        assert!(changed("\"value\": 29", "\"value\": 99").contains("the latencies must not fall"));
        assert!(
            Chip::load("h300").expect_err("none").to_string().contains("a100-40, a100-80, h100-pcie, h100-sxm, h200")
        );
    }
}
