//! The JSON of `--json`: one object, rewritten whole after every result, so that a later failure loses nothing.

use crate::record::Report;
use anyhow::{Context, Result};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the JSON goes.
pub enum Json {
    /// To a file.
    File(PathBuf),
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
        let path = PathBuf::from(target);
        if path.is_dir() {
            anyhow::bail!("--json {target}: this is a directory; name a file");
        }
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
            Self::StandardOutput => Ok(()),
        }
    }

    /// Writes the finished report.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(&self, report: &Report) -> Result<()> {
        match self {
            Self::File(_) => self.update(report),
            Self::StandardOutput => {
                Ok(writeln!(std::io::stdout().lock(), "{}", serde_json::to_string_pretty(report)?)?)
            }
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
