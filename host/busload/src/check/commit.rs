//! Another commit of the git checkout that one stands in: its program is built, and writes the budgets that its counts are.
//!
//! The commit is checked out to a worktree under the target folder, which is removed afterwards. What was built there stays, so that the
//! next time takes less.

use super::budgets::{Budgets, Invalid};
use crate::input;
use crate::report;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use system::interrupt::{self, Unfinished, Watch};

/// Why there are no budgets of a commit.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// There is no git.
    #[error("--against {rev}: git cannot be run ({reason}): install it")]
    NoGit {
        /// The commit, as it was named.
        rev: String,
        /// What the system says.
        reason: io::Error,
    },
    /// Not in a checkout.
    #[error("--against {rev}: {} is in no git checkout: go to the one that the commit is of", folder.display())]
    NoCheckout {
        /// The commit, as it was named.
        rev: String,
        /// The folder that one stands in.
        folder: PathBuf,
    },
    /// Git knows no such commit.
    #[error(
        "--against {rev}: git knows no such commit here: name one that `git log` shows, or fetch it (a shallow clone has the newest alone: \
         in GitHub Actions give actions/checkout `fetch-depth: 0`)"
    )]
    UnknownRevision {
        /// The commit, as it was named.
        rev: String,
    },
    /// No crate.
    #[error("--against {rev}: no crate can be built here: go to the folder of the crate whose program this is\n{said}")]
    NoCrate {
        /// The commit, as it was named.
        rev: String,
        /// What cargo says.
        said: String,
    },
    /// Git or the system fails.
    #[error("--against {rev}: {what}: {said}")]
    Failed {
        /// The commit, as it was named.
        rev: String,
        /// What was tried.
        what: &'static str,
        /// What it says.
        said: String,
    },
    /// It does not build.
    #[error(
        "--against {rev}: `cargo build --release --bin {program}` fails in that commit, as said above: name a commit that builds"
    )]
    DoesNotBuild {
        /// The commit, as it was named.
        rev: String,
        /// The program.
        program: String,
    },
    /// It knows no budgets.
    #[error("--against {rev}: `{program}` of that commit has no command `check` yet: name a later commit")]
    NoCheck {
        /// The commit, as it was named.
        rev: String,
        /// The program.
        program: String,
    },
    /// It finds that something makes no sense.
    #[error("--against {rev}: `{program} check --bless` fails in that commit:\n{said}")]
    CheckFails {
        /// The commit, as it was named.
        rev: String,
        /// The program.
        program: String,
        /// What it says.
        said: String,
    },
    /// What it wrote are no budgets.
    #[error("--against {rev}: what `{program} check --bless` of that commit wrote is not understood: {reason}")]
    Unreadable {
        /// The commit, as it was named.
        rev: String,
        /// The program.
        program: String,
        /// What is wrong.
        reason: Invalid,
    },
}

/// A commit of the checkout that one stands in, whose program can be built.
pub struct Commit {
    /// As it was named.
    rev: String,
    /// Its hash.
    hash: String,
    /// From the top of the checkout to where one stands.
    prefix: PathBuf,
    /// Where what is built goes.
    folder: PathBuf,
    /// The name of the program.
    program: String,
}

impl Commit {
    /// The commit that git knows by a name, and this program in it.
    ///
    /// # Errors
    /// If there is no git, no checkout, no such commit or no crate.
    pub fn find(rev: &str) -> Result<Self, CommitError> {
        let rev = rev.to_owned();
        let folder = std::env::current_dir().unwrap_or_default();
        let Some(prefix) = git(&rev, &["rev-parse", "--show-prefix"])? else {
            return Err(CommitError::NoCheckout { rev, folder });
        };
        let commit = format!("{rev}^{{commit}}");
        let Some(hash) = git(&rev, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])? else {
            return Err(CommitError::UnknownRevision { rev });
        };
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(Path::file_stem).unwrap_or_default().to_string_lossy().into_owned();
        let folder = target_folder(&rev)?.join("busload-check");
        Ok(Self { rev, hash, prefix: prefix.into(), folder, program })
    }

    /// Builds the program and has it count what `arguments` select: that is what budgets are.
    ///
    /// # Errors
    /// If that fails.
    pub fn budgets(&self, arguments: &[OsString]) -> Result<Budgets, CommitError> {
        std::fs::create_dir_all(&self.folder).map_err(|error| self.failed("making a folder", error))?;
        let _lock = self.lock()?;
        let watch = Watch::new();
        let result = Worktree::add(self, &watch).and_then(|worktree| {
            let program = self.build(&watch, &worktree)?;
            self.count(&watch, &worktree, &program, arguments)
        });
        let signal = watch.signal();
        drop(watch);
        match (result, signal) {
            // The worktree was removed.
            (Err(_), Some(signal)) => interrupt::end_by(signal),
            (result, _) => result,
        }
    }

    fn failed(&self, what: &'static str, said: impl ToString) -> CommitError {
        CommitError::Failed { rev: self.rev.clone(), what, said: said.to_string() }
    }

    /// One check at a time has the worktree.
    fn lock(&self) -> Result<File, CommitError> {
        let path = self.folder.join("lock");
        let wrong = |error: io::Error| self.failed("locking the worktree", format!("{}: {error}", path.display()));
        let file = File::create(&path).map_err(wrong)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                report::say("Another `check --against` is under way here: waiting for it.");
                file.lock().map_err(wrong)?;
            }
            Err(TryLockError::Error(error)) => return Err(wrong(error)),
        }
        Ok(file)
    }

    fn build(&self, watch: &Watch, worktree: &Worktree<'_>) -> Result<PathBuf, CommitError> {
        report::say(&format!(
            "Building {} of {} ({}) …",
            self.program,
            self.rev,
            &self.hash[..self.hash.len().min(12)]
        ));
        let messages = self.file("messages.json")?;
        let mut cargo = cargo();
        if ["rust-toolchain.toml", "rust-toolchain"].iter().any(|name| worktree.path.join(name).exists()) {
            // It is the commit that says which one builds it, and not who started this program.
            cargo.env_remove("RUSTUP_TOOLCHAIN");
        }
        cargo
            .args(["build", "--release", "--bin", &self.program, "--message-format", "json-render-diagnostics"])
            .arg("--target-dir")
            .arg(self.folder.join("build"))
            .current_dir(worktree.inside())
            .stdin(Stdio::null())
            .stdout(messages.handle(self)?);
        let status = watch.run(&mut cargo).map_err(|error| self.unfinished("running cargo", error))?;
        let built = status.success().then(|| messages.text(self)).transpose()?;
        let executable = |line: &str| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            let is_own = message["target"]["name"] == self.program.as_str();
            message["executable"].as_str().filter(|_| is_own).map(PathBuf::from)
        };
        built
            .and_then(|built| built.lines().find_map(executable))
            .ok_or_else(|| CommitError::DoesNotBuild { rev: self.rev.clone(), program: self.program.clone() })
    }

    fn count(
        &self,
        watch: &Watch,
        worktree: &Worktree<'_>,
        program: &Path,
        arguments: &[OsString],
    ) -> Result<Budgets, CommitError> {
        let (said, written) = (self.file("said.txt")?, self.folder.join("budgets.toml"));
        remove(&written);
        let mut command = Command::new(program);
        command
            .args(["check", "--bless", "--budgets"])
            .arg(&written)
            .args(arguments)
            .current_dir(worktree.inside())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.handle(self)?);
        let status = watch.run(&mut command).map_err(|error| self.unfinished("running the program", error))?;
        let said = said.text(self)?;
        let (rev, program) = (self.rev.clone(), self.program.clone());
        let text = input::text(&written, input::SOURCE);
        remove(&written);
        match (status.code(), text) {
            (Some(0 | 1), Ok(text)) => {
                if status.code() == Some(1) {
                    report::say(&format!("In {rev} some kernels are wrong, and have no counts:\n{}", said.trim_end()));
                }
                Budgets::parse(&rev, text).map_err(|reason| CommitError::Unreadable { rev, program, reason })
            }
            (Some(2), _) if said.contains("unrecognized subcommand") => Err(CommitError::NoCheck { rev, program }),
            _ => Err(CommitError::CheckFails { rev, program, said: tail(&said) }),
        }
    }

    fn unfinished(&self, what: &'static str, error: Unfinished) -> CommitError {
        self.failed(what, error)
    }

    fn file(&self, name: &str) -> Result<Output, CommitError> {
        let path = self.folder.join(name);
        File::create(&path).map_err(|error| self.failed("making a file", format!("{}: {error}", path.display())))?;
        Ok(Output { path })
    }
}

/// What a program writes, to be read when it has ended.
struct Output {
    path: PathBuf,
}

impl Output {
    fn handle(&self, commit: &Commit) -> Result<File, CommitError> {
        File::create(&self.path).map_err(|error| commit.failed("making a file", error))
    }

    fn text(&self, commit: &Commit) -> Result<String, CommitError> {
        let bytes = input::bytes(&self.path, input::RESULTS);
        let bytes = bytes.map_err(|error| commit.failed("reading what a program wrote", error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(file: &Path) {
    let _ = std::fs::remove_file(file);
}

/// A worktree of the checkout; it is removed when it is dropped.
struct Worktree<'a> {
    commit: &'a Commit,
    path: PathBuf,
}

impl<'a> Worktree<'a> {
    fn add(commit: &'a Commit, watch: &Watch) -> Result<Self, CommitError> {
        let own = Self { commit, path: commit.folder.join("worktree") };
        // One that was left behind, since whoever made it was ended before its time.
        own.remove();
        let said = commit.file("said.txt")?;
        let mut command = git_command();
        command
            .args(["worktree", "add", "--detach", "--force", "--quiet"])
            .arg(&own.path)
            .arg(&commit.hash)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.handle(commit)?);
        let status = watch.run(&mut command).map_err(|error| commit.unfinished("checking it out", error))?;
        match status.success() {
            true => Ok(own),
            false => Err(commit.failed("checking it out", tail(&said.text(commit)?))),
        }
    }

    /// Where one stands, in it.
    fn inside(&self) -> PathBuf {
        let inside = self.path.join(&self.commit.prefix);
        // A folder that the commit lacks: cargo says what it misses there.
        if inside.is_dir() { inside } else { self.path.clone() }
    }

    fn remove(&self) {
        let mut command = git_command();
        command.args(["worktree", "remove", "--force", "--force"]).arg(&self.path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // What the terminal sends to this group is not for it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let _ = command.status();
        // What git did not know.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Drop for Worktree<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

fn git_command() -> Command {
    let mut git = Command::new("git");
    // A hook's index is not that of another worktree.
    git.env_remove("GIT_INDEX_FILE");
    git
}

/// What git prints; none if it fails.
fn git(rev: &str, arguments: &[&str]) -> Result<Option<String>, CommitError> {
    let output = git_command().args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|reason| CommitError::NoGit { rev: rev.to_owned(), reason })?;
    let text = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned();
    Ok(output.status.success().then_some(text))
}

fn cargo() -> Command {
    Command::new("cargo")
}

/// Where cargo puts what it builds here.
fn target_folder(rev: &str) -> Result<PathBuf, CommitError> {
    let no_crate = |said: String| CommitError::NoCrate { rev: rev.to_owned(), said };
    let output =
        cargo().args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| no_crate(format!("cargo: {error}")))?;
    if !output.status.success() {
        return Err(no_crate(tail(&String::from_utf8_lossy(&output.stderr))));
    }
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| no_crate(format!("cargo metadata: {error}")))?;
    let folder = metadata["target_directory"].as_str();
    folder.map(PathBuf::from).ok_or_else(|| no_crate("cargo metadata names no target folder".to_owned()))
}

/// The last lines of what a program said.
fn tail(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
