//! Runs, verifies and measures.
pub mod arguments;
pub mod sim;
pub mod verify;
