//! Where results come from: of which program, from which sources, when, by which command, and as which process of how many.

use crate::suite::{Module, Suite};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

/// What stands in every JSON under `provenance`.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Provenance {
    /// The version of busload.
    pub version: &'static str,
    /// The commit of the checkout that the program was built in; none if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether that checkout had changes that are not committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// When the command began, in UTC.
    pub date: String,
    /// The command line, without the program's path.
    pub command_line: Vec<String>,
    /// Which process this is of those that a launcher started; none if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
}

/// A process of several.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Process {
    /// Its number, from 0.
    pub rank: u32,
    /// How many there are.
    pub of: u32,
    /// Its number among those of its machine; none if the launcher does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_rank: Option<u32>,
    /// The machine.
    pub host: String,
}

/// Beside the program in a folder that `dist` made: the commit, and a second word `dirty` if there were changes.
pub const COMMIT_FILE: &str = "COMMIT";

static OF_THIS_RUN: OnceLock<Provenance> = OnceLock::new();

/// The provenance of what this process finds out with a suite: as it is the first time that somebody asks.
pub fn of(suite: &Suite) -> &'static Provenance {
    OF_THIS_RUN.get_or_init(|| {
        let (commit, dirty) = commit(suite).unzip();
        Provenance {
            version: env!("CARGO_PKG_VERSION"),
            commit,
            dirty,
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command_line: std::env::args_os().skip(1).map(|part| part.to_string_lossy().into_owned()).collect(),
            process: process(|name| std::env::var(name).ok()),
        }
    })
}

/// What a process makes of it that no command was begun in: a test.
fn here() -> Provenance {
    OF_THIS_RUN
        .get()
        .cloned()
        .unwrap_or_else(|| Provenance { version: env!("CARGO_PKG_VERSION"), ..Provenance::default() })
}

/// A report as JSON, with where it comes from.
///
/// # Errors
/// If a number in it is none.
pub fn json(report: &impl Serialize) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Document<'a, T> {
        #[serde(flatten)]
        report: &'a T,
        provenance: Provenance,
    }
    Ok(serde_json::to_string_pretty(&Document { report, provenance: here() })? + "\n")
}

/// The commit of the program's sources, and whether they were changed since.
fn commit(suite: &Suite) -> Option<(String, bool)> {
    let program = std::env::current_exe().ok()?;
    let beside = program.parent()?.join(COMMIT_FILE);
    if let Ok(text) = crate::input::text(&beside, 1 << 10) {
        return read(&text);
    }
    let folder = match suite.module {
        Module::BuiltIn { .. } => Path::new(env!("CARGO_MANIFEST_DIR")),
        Module::Package { folder } => Path::new(folder),
    };
    commit_of(folder)
}

/// What stands in [`COMMIT_FILE`].
fn read(text: &str) -> Option<(String, bool)> {
    let mut words = text.split_whitespace();
    let commit =
        words.next().filter(|commit| commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some((commit.to_owned(), words.next() == Some("dirty")))
}

/// The commit of a folder's checkout, and whether anything in it that git knows is changed; none if it is in none.
pub fn commit_of(folder: &Path) -> Option<(String, bool)> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(folder).args(arguments).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some((commit, !changes.is_empty()))
}

/// What launchers call a process's number and how many there are: Open MPI, MPICH and Intel's MPI, Slurm. In a job of Slurm's all that an
/// `mpirun` starts has Slurm's variables too, of the one process that runs the script.
const LAUNCHERS: [[&str; 3]; 3] = [
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"],
    ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"],
    ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"],
];

/// The process that a launcher's environment tells of.
fn process(variable: impl Fn(&str) -> Option<String>) -> Option<Process> {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let told = |[rank, of, local]: [&str; 3]| Some((number(rank)?, number(of)?, number(local)));
    let (rank, of, local_rank) = LAUNCHERS.into_iter().find_map(told)?;
    let host = variable("SLURMD_NODENAME").map_or_else(host, |name| name.trim().to_owned());
    (rank < of).then_some(Process { rank, of, local_rank, host })
}

/// The name of this machine.
pub fn host() -> String {
    let named = crate::input::text("/proc/sys/kernel/hostname", 1 << 10).ok();
    named.map_or_else(|| "unknown".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_tell_which_process_this_is() {
        let of = |variables: &[(&str, &str)]| {
            process(|name| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned()))
        };
        let slurm =
            of(&[("SLURM_PROCID", "3"), ("SLURM_NTASKS", "8"), ("SLURM_LOCALID", "1"), ("SLURMD_NODENAME", "n2")]);
        assert_eq!(slurm, Some(Process { rank: 3, of: 8, local_rank: Some(1), host: "n2".into() }));
        let mpi = of(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")]).expect("a process");
        assert_eq!((mpi.rank, mpi.of), (0, 2));
        let both = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "1"),
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
        ];
        let inner = of(&both).expect("a process");
        assert_eq!((inner.rank, inner.of), (3, 4), "mpirun in a job of Slurm's");
        for none in [
            &[("SLURM_PROCID", "3")][..],
            &[("PMI_RANK", "2"), ("PMI_SIZE", "2")],
            &[("PMI_RANK", "x"), ("PMI_SIZE", "2")],
            &[],
        ] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_commit_is_a_hash() {
        assert_eq!(read("0123abcd dirty\n"), Some(("0123abcd".to_owned(), true)));
        assert_eq!(read("0123abcd\n"), Some(("0123abcd".to_owned(), false)));
        assert_eq!(read("main"), None);
        assert_eq!(read(""), None);
    }
}
