//! The JSON of `--json`: one object, rewritten whole after every result, so that a later failure loses nothing.

use crate::record::Report;
use anyhow::{Context, Result};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the JSON goes.
pub enum Json {
    /// To a file, which is replaced in one step.
    File(PathBuf),
    /// To a device or a pipe, once, at the end.
    Stream(PathBuf),
    /// To standard output, once, at the end.
    StandardOutput,
}

impl Json {
    /// The target that `--json` names; `-` is standard output.
    ///
    /// # Errors
    /// If no file can be made there: better now than after an hour of measuring.
    pub fn open(target: &str) -> Result<Self> {
        if target == "-" {
            return Ok(Self::StandardOutput);
        }
        let path = Path::new(target);
        if target.is_empty() || target.ends_with(std::path::is_separator) || path.is_dir() {
            anyhow::bail!("--json {target:?}: this is no file; name one, or - for standard output");
        }
        match std::fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => return Ok(Self::Stream(path.to_owned())),
            _ => {}
        }
        // A link keeps leading where it leads.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        temporary(&path).with_context(|| format!("--json {target}: no file can be written there"))?;
        Ok(Self::File(path))
    }

    /// Writes a report that is not finished yet.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn update(&self, report: &Report) -> Result<()> {
        match self {
            Self::File(path) => write(path, report).with_context(|| format!("--json {}", path.display())),
            Self::Stream(_) | Self::StandardOutput => Ok(()),
        }
    }

    /// Writes the finished report.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(&self, report: &Report) -> Result<()> {
        match self {
            Self::File(_) => self.update(report),
            Self::Stream(path) => {
                let text = serde_json::to_string_pretty(report)?;
                std::fs::write(path, text + "\n").with_context(|| format!("--json {}", path.display()))
            }
            Self::StandardOutput => crate::report::print(&(serde_json::to_string_pretty(report)? + "\n")),
        }
    }
}

/// The file is replaced in one step: a reader never sees half of it.
fn write(path: &Path, report: &Report) -> Result<()> {
    let mut file = temporary(path)?;
    serde_json::to_writer_pretty(&mut file, report)?;
    file.write_all(b"\n")?;
    file.persist(path)?;
    Ok(())
}

fn temporary(path: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new().prefix(".busload-").permissions(std::fs::Permissions::from_mode(0o644)).tempfile_in(folder)
}
