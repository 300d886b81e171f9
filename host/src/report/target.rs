//! Where a report goes: checked before anything runs, and replaced in one step.

use anyhow::{Context, Result};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where a report goes.
pub enum Target {
    /// To a file, which is replaced in one step: a reader never sees half of it.
    File(PathBuf),
    /// To a device or a pipe.
    Stream(PathBuf),
    /// To standard output.
    StandardOutput,
}

impl Target {
    /// The target that an option names; `-` is standard output.
    ///
    /// # Errors
    /// If no file can be made there: better now than after an hour of measuring.
    pub fn open(option: &str, target: &str) -> Result<Self> {
        if target == "-" {
            return Ok(Self::StandardOutput);
        }
        let path = Path::new(target);
        if target.is_empty() || target.ends_with(std::path::is_separator) || path.is_dir() {
            anyhow::bail!("{option} {target:?}: this is no file; name one, or - for standard output");
        }
        match std::fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => return Ok(Self::Stream(path.to_owned())),
            _ => {}
        }
        // A link keeps leading where it leads.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        temporary(&path).with_context(|| format!("{option} {target}: no file can be written there"))?;
        Ok(Self::File(path))
    }

    /// Whether it is standard output, which then holds nothing else.
    pub fn is_standard_output(&self) -> bool {
        matches!(self, Self::StandardOutput)
    }

    /// Writes the whole report.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, text: &str) -> Result<()> {
        match self {
            Self::File(path) => replace(path, text).with_context(|| path.display().to_string()),
            Self::Stream(path) => std::fs::write(path, text).with_context(|| path.display().to_string()),
            Self::StandardOutput => super::print(text),
        }
    }

    /// Writes a report that is not finished yet, where it can be replaced later.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn update(&self, text: &str) -> Result<()> {
        if let Self::File(_) = self { self.write(text) } else { Ok(()) }
    }
}

fn replace(path: &Path, text: &str) -> Result<()> {
    let mut file = temporary(path)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

fn temporary(path: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".busload-");
    #[cfg(unix)]
    {
        // Temporary files are private; a report is not.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o644));
    }
    builder.tempfile_in(folder)
}
