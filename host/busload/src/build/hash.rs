//! A hash of sources.

use crate::input;
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;

/// A hash of names and contents of `sources`, files or folders relative to `root`.
///
/// # Errors
/// If one cannot be read.
pub fn hash(root: &Path, sources: &[&str]) -> Result<String> {
    let mut hash = Sha256::new();
    add(&mut hash, root, sources)?;
    Ok(shown(hash))
}

/// The same of several roots: the name of none of them counts.
pub(super) fn hash_of(sources: &[(&Path, &[&str])]) -> Result<String> {
    let mut hash = Sha256::new();
    sources.iter().try_for_each(|(root, sources)| add(&mut hash, root, sources))?;
    Ok(shown(hash))
}

fn add(hash: &mut Sha256, root: &Path, sources: &[&str]) -> Result<()> {
    for source in sources {
        // What somebody built there by hand is no source.
        let entries = walkdir::WalkDir::new(root.join(source)).sort_by_file_name();
        for entry in entries.into_iter().filter_entry(|entry| entry.file_name() != "target") {
            let entry = entry.with_context(|| format!("the sources under {source}"))?;
            if entry.file_type().is_file() {
                let contents = input::bytes(entry.path(), input::SOURCE)?;
                let name = entry.path().strip_prefix(root)?.to_string_lossy().replace('\\', "/");
                hash.update(format!("{name}\0{}\0", contents.len()));
                hash.update(contents);
            }
        }
    }
    Ok(())
}

fn shown(hash: Sha256) -> String {
    hash.finalize().iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_of_names_and_contents_and_of_no_build() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
            hash(folder.path(), &["a"]).expect("a hash")
        };
        let first = write("a/one", "1");
        assert_eq!(write("b/one", "1"), first, "a file elsewhere");
        assert_eq!(write("a/target/one", "1"), first, "a build");
        assert_ne!(write("a/one", "2"), first);
        assert_eq!(write("a/one", "1"), first);
        assert_ne!(write("a/two", "1"), first);
    }
}
