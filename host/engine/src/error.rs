//! Why a kernel was not simulated.

use plan::arguments::ArgumentError;
use std::any::Any;
use system::words::Refused;

/// Why a kernel was not simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The plan does not fit the kernel.
    #[error(transparent)]
    Plan(#[from] ArgumentError),
    /// The whole grid needs more memory than there is.
    #[error("the simulation needs {needed} bytes, and {available} are available: choose a smaller size")]
    TooLarge {
        /// Bytes of the buffers, and of what is kept of those that the kernel may write.
        needed: u64,
        /// Bytes that the system can still give.
        available: u64,
    },
    /// Its blocks touched more memory than there is.
    #[error("the simulation was ended, since it left less than {reserve} bytes of memory: choose a smaller size")]
    Exhausted {
        /// Bytes that are left to others.
        reserve: u64,
    },
    /// A block would have more shared memory than a GPU gives it.
    #[error("`{kernel}` {detail}")]
    SharedMemory {
        /// The kernel.
        kernel: &'static str,
        /// How much it has, the limit, and whose it is.
        detail: String,
    },
    /// The system does not give what a thread of a block needs.
    #[error(
        "the simulation needs {what} for each thread of a block, and the system gives none: {reason}; try `--threads 1`"
    )]
    NoRoom {
        /// What it needs.
        what: &'static str,
        /// What the system says.
        reason: std::io::Error,
    },
    /// The system starts no thread to run blocks on.
    #[error("the system starts no thread for the simulator: {reason}; allow more (`ulimit -u`, `ulimit -v`)")]
    NoThread {
        /// What the system says.
        reason: std::io::Error,
    },
    /// A worker broke off.
    #[error("the simulator broke off: {panic}; unless memory ran out, this is a bug of busload")]
    Worker {
        /// What it said.
        panic: String,
    },
    /// The system gives no addresses for a buffer, or for what the sanitizer keeps of one.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl SimulationError {
    pub(crate) fn of_panic(panic: &dyn Any) -> Self {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref().copied());
        Self::Worker { panic: said.unwrap_or("a panic without a message").to_owned() }
    }

    /// Its name in results: one word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Plan(_) => "plan",
            Self::SharedMemory { .. } => "shared memory",
            Self::TooLarge { .. } | Self::Exhausted { .. } | Self::NoRoom { .. } | Self::Refused(_) => "memory",
            Self::NoThread { .. } => "threads",
            Self::Worker { .. } => "simulator",
        }
    }
}
