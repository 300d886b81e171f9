//! How many bytes kernels moved, by profiles of them.

use crate::record::{LaunchRecord, Machine, Record};
use crate::results::{self, Measurement};
use crate::sim::coalesce::SECTOR;
use std::collections::BTreeMap;

/// The bytes that each kernel moved on each case, between L2 and DRAM.
#[derive(Clone, Debug, Default)]
pub struct Moved(BTreeMap<(String, String), (LaunchRecord, u64)>);

impl Moved {
    /// Adds what `profile --json` wrote of that GPU; says whether the run that wrote it has not come to its end.
    ///
    /// # Errors
    /// If `text` is something else, or of another GPU.
    pub fn add(&mut self, text: &str, gpu: &Machine) -> Result<bool, String> {
        let Measurement::Profile { machine, unfinished, rows } =
            results::measurement(text).map_err(|error| error.to_string())?
        else {
            return Err("it has times and no counters: name what `profile --json` wrote".to_owned());
        };
        if machine.name != gpu.name {
            return Err(format!("it was counted on {}, and this is {}", machine.name, gpu.name));
        }
        for row in rows {
            let sectors = ["dram__sectors_read.sum", "dram__sectors_write.sum"].map(|name| row.counters.get(name));
            if let [Some(read), Some(written)] = sectors {
                self.0.insert((row.kernel, row.case), (row.launch, SECTOR * (read + written) as u64));
            }
        }
        Ok(unfinished)
    }

    /// The bytes that a record's kernel moved on its case, by the same launch.
    pub fn of(&self, record: &Record) -> Option<u64> {
        let (launch, bytes) = self.0.get(&(record.kernel.clone(), record.case.clone()))?;
        (record.launch.as_ref() == Some(launch)).then_some(*bytes)
    }
}
