//! The commands of busload over this crate's kernels: `cargo run --release -- --help`.

busload::main!(own_crate::FAMILIES);
