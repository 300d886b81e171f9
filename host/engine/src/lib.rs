//! What the requests of warps ask of the memory system, whatever carries out the kernel that makes them.
//!
//! A front end carries out a kernel's blocks ([`Machine`], [`Runner`]) and tells a [`Worker`] of each [`Request`]: one instruction,
//! the lanes that are active, and where they go. The engine says what it costs ([`coalesce`], [`banks`], [`arch`]), holds the data
//! with bounds (`memory`, `shared`), remembers who touched it (`sanitizer`), keeps what `explain` is made from (`pattern`,
//! `sample`) and what predictions are ([`trace`]), and puts together what the workers saw ([`Outcome`]).
//!
//! It knows plans, instructions and positions. It may not know any front end: no source language, no facade, no coroutines.

pub mod arch;
pub mod banks;
mod blocks;
pub mod coalesce;
mod copies;
mod cost;
mod element;
mod error;
mod finding;
mod instruction;
mod launch;
mod memory;
mod note;
mod options;
mod outcome;
mod pattern;
mod printed;
mod request;
mod run;
mod sample;
mod sanitizer;
mod shared;
pub mod trace;
mod under_way;
mod worker;

pub use arch::{Arch, Transactions};
pub use blocks::{Blocks, block_idx, thread_idx};
pub use element::{AtHand, Element};
pub use error::SimulationError;
pub use finding::{Finding, Kind, triple};
pub use instruction::{Instruction, Pc, Position};
pub use launch::{Launch, Program};
pub use memory::{Memory, advance, offset_of};
pub use note::Note;
pub use options::{Limits, Options, expected_accesses};
pub use outcome::{Outcome, Site};
pub use pattern::Pattern;
pub use printed::{Page, Printed};
pub use request::Request;
pub use run::{Machine, Runner, look_twice, run};
pub use sample::{Sample, Sampled, Sampling, Tally};
pub use sanitizer::Look;
pub use shared::SharedMemory;
pub use trace::Flow;
pub use under_way::UnderWay;
pub use worker::Worker;
