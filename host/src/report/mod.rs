//! Reports for people and for programs: one exporter a file.

mod json;
mod table;

pub use json::Json;
pub use table::table;
