//! Where a report goes: checked before anything runs, and replaced in one step.

use anyhow::{Context, Result};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Where a report goes.
pub enum Target {
    /// To a file, which is replaced in one step: a reader never sees half of it.
    File {
        /// The file.
        path: PathBuf,
        /// How it goes with reports that are not finished.
        drafts: Mutex<Drafts>,
    },
    /// To a device or a pipe.
    Stream(PathBuf),
    /// To standard output.
    StandardOutput,
}

/// Reports that are not finished, each in the place of the one before.
#[derive(Default)]
pub struct Drafts {
    /// Before that time none is written: a report is written whole, so the longer it is, the less often.
    next: Option<Instant>,
    /// Whether the last one could not be written.
    failed: bool,
}

/// How much longer than it took to write a report it takes until the next one is written.
const PAUSE: u32 = 9;

impl Target {
    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        if let Self::File { path, .. } = self { Some(path) } else { None }
    }

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
        Ok(Self::File { path, drafts: Mutex::default() })
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
        self.write_bytes(text.as_bytes())
    }

    /// The same of what is no text.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_bytes(&self, report: &[u8]) -> Result<()> {
        match self {
            Self::File { path, .. } => replace(path, report, true).with_context(|| path.display().to_string()),
            Self::Stream(path) => std::fs::write(path, report).with_context(|| path.display().to_string()),
            Self::StandardOutput => super::print_bytes(report),
        }
    }

    /// Writes a report that is not finished yet, where it can be replaced later, unless that would take more than a tenth of
    /// the time. What cannot be written is said, and the next one tried.
    pub fn update(&self, text: impl FnOnce() -> Result<String>) {
        self.draft(false, text);
    }

    /// The same however long it takes: whatever ends the process afterwards, the file has it.
    pub fn keep(&self, text: impl FnOnce() -> Result<String>) {
        self.draft(true, text);
    }

    fn draft(&self, now: bool, text: impl FnOnce() -> Result<String>) {
        let Self::File { path, drafts } = self else { return };
        let mut drafts = drafts.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        if !now && !drafts.is_due(begun) {
            return;
        }
        let written =
            text().and_then(|text| replace(path, text.as_bytes(), false).with_context(|| path.display().to_string()));
        if let (Err(error), false) = (&written, drafts.failed) {
            super::say(&format!("warning: {error:#}; what comes is tried to be written again"));
        }
        *drafts = Drafts { failed: written.is_err(), ..Drafts::after(begun, Instant::now()) };
    }
}

impl Drafts {
    fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| now >= next)
    }

    /// After one that it took so long to write.
    fn after(begun: Instant, ended: Instant) -> Self {
        Self { next: Some(ended + PAUSE * (ended - begun)), failed: false }
    }
}

/// Held while a file is replaced.
static REPLACING: Mutex<()> = Mutex::new(());

/// Waits until no file is being replaced, and lets none be as long as the guard is there: whoever ends the process leaves nothing
/// behind.
pub fn hold() -> MutexGuard<'static, ()> {
    REPLACING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The last report is on the disk when this returns; whatever ends the process leaves any of them whole.
fn replace(path: &Path, report: &[u8], is_last: bool) -> Result<()> {
    let _held = hold();
    let mut file = temporary(path)?;
    file.write_all(report)?;
    if is_last {
        // Some systems tell only now that there is no room.
        file.as_file().sync_all()?;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn writing_what_is_not_finished_takes_a_tenth_of_the_time_and_little_is_lost() {
        // 4000 results, a millisecond each, and a report that takes as many times 20 microseconds: 160 seconds, if each were
        // followed by one.
        let (result, per_result) = (Duration::from_millis(1), Duration::from_micros(20));
        let begun = Instant::now();
        let (mut now, mut writing, mut longest) = (begun, Duration::ZERO, Duration::ZERO);
        let (mut drafts, mut last) = (Drafts::default(), begun);
        for results in 1..=4000 {
            now += result;
            if drafts.is_due(now) {
                let ended = now + per_result * results;
                drafts = Drafts::after(now, ended);
                longest = longest.max(ended - last);
                (writing, now, last) = (writing + (ended - now), ended, ended);
            }
        }
        assert!(10 * writing < (now - begun) + 10 * per_result * 4000, "{writing:?} of {:?}", now - begun);
        assert!(longest < 11 * per_result * 4000, "{longest:?} without a report");
    }

    #[test]
    fn a_report_that_cannot_be_made_leaves_the_one_before_and_the_next_is_tried() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("report.json");
        let target = Target::open("--json", file.to_str().expect("text")).expect("a file");
        let update = |report: fn() -> Result<String>| {
            let mut done = false;
            while !done {
                std::thread::sleep(Duration::from_millis(1));
                target.update(|| {
                    done = true;
                    report()
                });
            }
        };
        update(|| Ok("one".to_owned()));
        update(|| Err(anyhow::anyhow!("no space")));
        assert_eq!(std::fs::read_to_string(&file).expect("a report"), "one");
        update(|| Ok("three".to_owned()));
        assert_eq!(std::fs::read_to_string(&file).expect("a report"), "three");
    }
}
