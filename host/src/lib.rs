//! Runs, verifies and measures.
