//! What the kernels' PTX is made from, and whether the committed build is of it: for `cargo xtask`, and for tests that
//! look into the committed PTX.

use anyhow::Result;
use busload::build::hash;
use busload::input;
use busload::ptx::Ptx;
use std::path::Path;

/// Everything that any PTX is made from, relative to the root of the workspace.
const SOURCES: [&str; 5] =
    ["gpu/Cargo.toml", "gpu/src", "gpu/macros/Cargo.toml", "gpu/macros/src", "rust-toolchain.toml"];

/// What rust-cuda's build is made from besides.
const NVVM: &str = "gpu/nvvm";

/// A crate of kernels for tests, whose PTX is committed beside the suite's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestCrate {
    /// What it holds.
    pub what: &'static str,
    /// Its package.
    pub package: &'static str,
    /// What its PTX is made from besides the suite's facade: a folder relative to the root of the workspace.
    pub folder: &'static str,
    /// The committed build, relative to the root of the workspace.
    pub committed: &'static str,
}

/// The planted bugs.
pub const CORPUS: TestCrate = TestCrate {
    what: "The planted bugs",
    package: "busload-corpus",
    folder: "tests/corpus/src/",
    committed: "tests/corpus/ptx/corpus_sm_80.ptx",
};

/// A kernel for each of the facade's primitives.
pub const PRIMITIVES: TestCrate = TestCrate {
    what: "Kernels of the facade's primitives",
    package: "busload-primitives",
    folder: "tests/primitives/src/",
    committed: "tests/primitives/ptx/primitives_sm_80.ptx",
};

/// Each of them.
pub const TEST_CRATES: [TestCrate; 2] = [CORPUS, PRIMITIVES];

/// The root of the workspace.
///
/// # Panics
/// Never: this package is a folder of it.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// A hash of everything that rustc's own back end makes the PTX from: names and contents.
///
/// # Errors
/// If a source cannot be read.
pub fn source_hash() -> Result<String> {
    hash(root(), &SOURCES)
}

/// The same for rust-cuda, whose pinned revision and toolchain count too.
///
/// # Errors
/// If a source cannot be read.
pub fn nvvm_source_hash() -> Result<String> {
    hash(root(), &[&SOURCES[..], &[NVVM]].concat())
}

impl TestCrate {
    /// The same for its PTX.
    ///
    /// # Errors
    /// If a source cannot be read.
    pub fn source_hash(&self) -> Result<String> {
        hash(root(), &[&SOURCES[..], &[self.folder.trim_end_matches('/')]].concat())
    }

    /// Its committed build, if it is of the sources as they are.
    ///
    /// # Errors
    /// If it or a source cannot be read.
    pub fn fresh(&self) -> Result<Option<String>> {
        let text = input::text(root().join(self.committed), input::SOURCE)?;
        let is_fresh = Ptx::new(&*text).header("source-hash") == Some(self.source_hash()?.as_str());
        Ok(is_fresh.then_some(text))
    }
}

/// Whether the committed build is of the sources as they are.
///
/// # Errors
/// If a source cannot be read.
pub fn is_fresh(committed: &Ptx) -> Result<bool> {
    Ok(committed.header("source-hash") == Some(source_hash()?.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_cudas_pin_counts_for_its_build_alone() {
        let pin = root().join(NVVM).join("Cargo.toml");
        assert!(std::fs::read_to_string(pin).expect("rust-cuda's workspace").contains("rev = "));
        assert_ne!(source_hash().expect("a hash"), nvvm_source_hash().expect("a hash"));
    }
}
