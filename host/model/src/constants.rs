//! What a chip's description does not say: constants fitted to measurements, in `chips/hopper.constants.json`.
//!
//! Each has a unit, the probe or family that it was fitted to, and a line that says what it stands for. All were fitted to an H200;
//! an H100 bears them out, and the A100s take them over, since nobody measured one. Rates are shares of a figure of the description
//! wherever there is one, so that they carry over.

use super::chip::Chip;
use engine::coalesce::SECTOR;
use serde::Deserialize;
use std::sync::LazyLock;

/// A constant as the table has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fitted {
    value: f64,
    unit: String,
    fitted_to: String,
    meaning: String,
}

impl Fitted {
    /// Its value, if that is in range and the rest is said.
    fn check(&self, name: &str, least: f64, most: f64, whole: bool) -> Result<f64, String> {
        let Self { value, unit, fitted_to, meaning } = self;
        if !(least..=most).contains(value) || whole && value.fract() != 0.0 {
            let number = if whole { "a whole number of " } else { "" };
            return Err(format!("{name} is {value}: give {number}{least} to {most}"));
        }
        for (text, what) in [(unit, "unit"), (fitted_to, "fitted_to"), (meaning, "meaning")] {
            if text.is_empty() {
                return Err(format!("{name} has no {what}"));
            }
        }
        Ok(*value)
    }
}

/// The types that a constant has in formulas.
trait Number {
    const WHOLE: bool;
    fn of(value: f64) -> Self;
}

macro_rules! numbers {
    ($($type:ty: $whole:expr),*) => {$(
        impl Number for $type {
            const WHOLE: bool = $whole;
            fn of(value: f64) -> Self {
                value as $type
            }
        }
    )*};
}

numbers!(f64: false, u64: true, u32: true, usize: true);

macro_rules! constants {
    (
        fitted { $($fitted:ident: $type:ty, $least:literal to $most:literal;)* }
        of_chip($chip:ident, $table:ident) { $($(#[$doc:meta])* $name:ident: $of_chip:ty = $formula:expr;)* }
    ) => {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            $($fitted: Fitted,)*
        }

        /// The table's values, in the types of the formulas.
        #[derive(Clone, Copy, Debug)]
        struct Table {
            $($fitted: $type,)*
        }

        impl Table {
            fn parse(file: &str, text: &str) -> Result<Self, String> {
                let table: File = serde_json::from_str(text).map_err(|error| format!("{file}: {error}"))?;
                Ok(Self {
                    $($fitted: {
                        let value = table.$fitted.check(stringify!($fitted), f64::from($least), f64::from($most), <$type>::WHOLE);
                        <$type>::of(value.map_err(|error| format!("{file}: {error}"))?)
                    },)*
                })
            }
        }

        #[expect(dead_code, reason = "some only enter the formulas: a test says that each is used")]
        /// The constants of a chip: those of the table, and those that follow from it and the description.
        #[derive(Clone, Copy, Debug)]
        pub(super) struct Constants {
            $(pub(super) $fitted: $type,)*
            $($(#[$doc])* pub(super) $name: $of_chip,)*
        }

        impl Constants {
            pub(super) fn of($chip: &Chip) -> Self {
                let $table = &*HOPPER;
                Self {
                    $($fitted: $table.$fitted,)*
                    $($name: $formula,)*
                }
            }
        }

        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($fitted)),*];
    };
}

constants! {
    fitted {
        launch_overhead_cycles: f64, 0 to 1e6;
        sms_per_gpc: f64, 1 to 64;
        cpcs_per_gpc: usize, 1 to 16;
        cta_launch_cycles: f64, 0 to 100;
        cta_run_ahead_cycles: f64, 0 to 100;
        cta_run_ahead_blocks: f64, 0 to 1e5;
        warp_launch_cycles: f64, 0 to 1e3;
        block_start_cycles: f64, 0 to 1e5;
        launch_skew_cycles: f64, 0 to 1e5;
        issue_cycles: f64, 0.01 to 16;
        constant_replay_cycles: f64, 0 to 100;
        barrier_cycles: f64, 0 to 1e3;
        barrier_arrival_cycles: f64, 0 to 100;
        mio_queue_entries: usize, 1 to 1024;
        lsu_queue_entries: usize, 1 to 1024;
        load_min_cycles: f64, 0.1 to 100;
        store_coalescer_lines: usize, 1 to 1024;
        store_merge_lines: usize, 0 to 32;
        pending_tag_wavefronts: u32, 1 to 1e6;
        data_stage_queue: usize, 0 to 1024;
        l1_sets: usize, 1 to 128;
        l1_ways: usize, 1 to 4;
        l1_retained_lines: usize, 0 to 3;
        l1_free_lines: usize, 1 to 1024;
        sm_port_sectors: f64, 0.01 to 100;
        sm_port_queue_cycles: f64, 0 to 1e6;
        slice_credits_per_cpc: usize, 1 to 1e6;
        path_l2_cycles: f64, 0 to 1e3;
        path_dram_cycles: f64, 0 to 1e3;
        far_read_queues: usize, 1 to 64;
        l2_ways: usize, 1 to 16;
        l2_capacity_share: f64, 0.01 to 1;
        l2_turn_share: f64, 0.01 to 1;
        l2_bandwidth_share: f64, 0.01 to 1;
        l2_store_sectors: f64, 0 to 1e3;
        l2_partial_store_sectors: f64, 0 to 1e3;
        l2_completion_sectors: f64, 0 to 1e3;
        l2_atomic_cycles: f64, 0 to 1e3;
        l2_atomic_line_cycles: f64, 0 to 1e3;
        l2_atomic_sector_cycles: f64, 0 to 1e3;
        l2_atomic_fill_cycles: f64, 0 to 1e3;
        l2_adder_sector_cycles: f64, 0 to 1e3;
        l2_adder_lane_cycles: f64, 0 to 1e3;
        l2_atomic_lines: u64, 1 to 1024;
        shared_atomic_cycles: f64, 0 to 1e3;
        shared_atomic_min_cycles: f64, 0 to 1e3;
        shared_loop_lane_cycles: f64, 0 to 1e3;
        shared_loop_word_cycles: f64, 0 to 1e3;
        l2_partial_lines: usize, 0 to 16;
        dirty_lines_on_allocate: usize, 0 to 16;
        dirty_lines_on_full_store: usize, 0 to 16;
        dirty_lines_on_partial_store: usize, 0 to 16;
        dram_bandwidth_share: f64, 0.01 to 1;
        dram_min_sectors: f64, 0 to 4;
        dram_read_activate_ns: f64, 0 to 1e3;
        dram_write_activate_ns: f64, 0 to 1e3;
        dram_exposed_share: f64, 0 to 1;
        dram_row_pair_share: f64, 0 to 1;
        dram_row_region_lines: u64, 1 to 1e6;
        dram_open_lines: u64, 1 to 1e9;
        dram_banks: usize, 1 to 1024;
        dram_queue_cycles: f64, 0 to 1e5;
        dram_load_window_cycles: f64, 1 to 1e9;
        dram_max_load: f64, 0 to 0.99;
        dram_slow_line_share: f64, 0.001 to 1;
        dram_slow_line_cycles: f64, 0 to 1e5;
        far_partition_share: f64, 0 to 1;
    }

    of_chip(chip, table) {
        /// Cycles from a load to its data in shared memory.
        shared_latency: f64 = chip.latency[0];
        /// The same of a hit in the L1.
        l1_latency: f64 = chip.latency[1];
        /// What a hit in the L2 takes beyond that.
        l2_latency: f64 = chip.latency[2] - chip.latency[1];
        /// What a miss in the L2 takes beyond that, where the line is not slow.
        dram_latency: f64 =
            chip.latency[3] - chip.latency[2] - 0.5 * table.dram_slow_line_share * table.dram_slow_line_cycles;
        /// GPCs of the chip.
        gpcs: usize = (f64::from(chip.sm_count) / table.sms_per_gpc).round().max(1.0) as usize;
        /// Sectors a cycle that the L2 serves.
        l2_sectors_per_cycle: f64 = table.l2_bandwidth_share * chip.l2_bytes_per_cycle / SECTOR as f64;
        /// Cycles of the L2 that a store to a line takes at least.
        l2_store_cycles: f64 = table.l2_store_sectors * SECTOR as f64 / chip.l2_bytes_per_cycle;
        /// Those of each partially written sector of it.
        l2_partial_store_cycles: f64 = table.l2_partial_store_sectors * SECTOR as f64 / chip.l2_bytes_per_cycle;
        /// Those of completing such sectors of a line from DRAM.
        l2_completion_cycles: f64 = table.l2_completion_sectors * SECTOR as f64 / chip.l2_bytes_per_cycle;
        /// Cycles of all DRAM channels that a sector takes.
        dram_sector_cycles: f64 = SECTOR as f64 * chip.clock_ghz / (table.dram_bandwidth_share * chip.dram_gbps);
        /// Those of a row activate for a read.
        dram_read_activate_cycles: f64 = table.dram_read_activate_ns * chip.clock_ghz / chip.dram_channels as f64;
        /// Those of one for a write.
        dram_write_activate_cycles: f64 = table.dram_write_activate_ns * chip.clock_ghz / chip.dram_channels as f64;
    }
}

impl Constants {
    /// CPCs of the chip.
    pub(super) fn cpcs(&self) -> usize {
        self.gpcs * self.cpcs_per_gpc
    }
}

const FILE: &str = "hopper.constants.json";
const TEXT: &str = include_str!("chips/hopper.constants.json");

static HOPPER: LazyLock<Table> =
    LazyLock::new(|| Table::parse(FILE, TEXT).unwrap_or_else(|error| panic!("the built-in table: {error}")));

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn what_is_wrong_with_the_table_is_said() {
        assert!(Table::parse(FILE, TEXT).is_ok());
        let changed = |from: &str, to: &str| {
            assert!(TEXT.contains(from), "{from}");
            Table::parse(FILE, &TEXT.replacen(from, to, 1)).expect_err(to)
        };
        let error = changed("\"sms_per_gpc\"", "\"sms_per_cpc\"");
        assert!(error.contains("hopper.constants.json: unknown field `sms_per_cpc`"), "{error}");
        let error = changed("\"value\": 6000,", "\"value\": -1,");
        assert_eq!(error, "hopper.constants.json: launch_overhead_cycles is -1: give 0 to 1000000");
        let error = changed("\"value\": 60,", "\"value\": 0.5,");
        assert_eq!(error, "hopper.constants.json: slice_credits_per_cpc is 0.5: give a whole number of 1 to 1000000");
        assert!(changed("\"unit\": \"SMs\"", "\"unit\": \"\"").contains("sms_per_gpc has no unit"));
        let table: serde_json::Map<String, serde_json::Value> = serde_json::from_str(TEXT).expect("an object");
        for name in NAMES {
            let mut without = table.clone();
            without.remove(*name);
            let error = Table::parse(FILE, &serde_json::to_string(&without).expect("JSON")).expect_err(name);
            assert!(error.contains(&format!("missing field `{name}`")), "{error}");
        }
    }

    #[test]
    fn every_constant_has_a_unit_and_a_source_and_is_used() {
        let table: std::collections::BTreeMap<String, Fitted> = serde_json::from_str(TEXT).expect("a table");
        assert_eq!(table.len(), NAMES.len());
        let mut code = String::new();
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    code += &std::fs::read_to_string(path).expect("a source file");
                }
            }
        }
        // rustfmt breaks chains.
        code.retain(|letter| !letter.is_whitespace());
        for (name, Fitted { unit, fitted_to, meaning, .. }) in table {
            assert!(!unit.is_empty() && !fitted_to.is_empty() && meaning.ends_with('.'), "{name}");
            let uses = [format!("constants.{name}"), format!("table.{name}")];
            assert!(uses.iter().any(|used| code.contains(used)), "{name} is not used");
        }
    }
}
