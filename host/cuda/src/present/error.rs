//! What can go wrong between busload and a GPU.

use super::driver::DriverError;
use cust::error::CudaResult;
use gpu::suite::Launch;
use plan::arguments::ArgumentError;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::fmt;

// Results as plain integers: newer drivers return codes that the enumerations of `cust` lack.
unsafe extern "C" {
    fn cuGetErrorName(code: c_uint, text: *mut *const c_char) -> c_int;
    fn cuGetErrorString(code: c_uint, text: *mut *const c_char) -> c_int;
}

/// A call of the driver that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{call} failed: {description} (CUDA error {code})")]
pub struct CallError {
    call: &'static str,
    code: u32,
    description: String,
}

impl CallError {
    /// The error of `call`, for a code that is not zero.
    pub(super) fn new(call: &'static str, code: u32) -> Self {
        let description = match (text(cuGetErrorName, code), text(cuGetErrorString, code)) {
            (Some(name), Some(meaning)) => format!("{name}, {meaning}"),
            _ => "an error without a name".to_owned(),
        };
        Self { call, code, description }
    }

    /// The error of a library's routine, for its own code.
    pub(super) fn library(call: &'static str, code: u32) -> Self {
        Self { call, code, description: "an error of the library".to_owned() }
    }

    /// Succeeds if `code` is zero.
    pub(super) fn check(call: &'static str, code: c_int) -> Result<(), Self> {
        if code == 0 { Ok(()) } else { Err(Self::new(call, code.cast_unsigned())) }
    }

    /// The driver's code for the error.
    pub(super) fn code(&self) -> u32 {
        self.code
    }

    /// Whether every later call of this process fails alike. Codes as in cuda.h.
    fn is_final(&self) -> bool {
        const ECC_UNCORRECTABLE: u32 = 214;
        const NVLINK_UNCORRECTABLE: u32 = 220;
        const ILLEGAL_ADDRESS: u32 = 700;
        const LAUNCH_TIMEOUT: u32 = 702;
        const CONTEXT_IS_DESTROYED: u32 = 709;
        const ASSERT: u32 = 710;
        const HARDWARE_STACK_ERROR: u32 = 714;
        const LAUNCH_FAILED: u32 = 719;
        const UNKNOWN: u32 = 999;
        matches!(
            self.code,
            ECC_UNCORRECTABLE | NVLINK_UNCORRECTABLE | ILLEGAL_ADDRESS | LAUNCH_TIMEOUT | CONTEXT_IS_DESTROYED | ASSERT
            // A stack error, an illegal instruction, a misaligned address, a wrong address space, a wrong
            // program counter, any other fault of a launch.
            | HARDWARE_STACK_ERROR..=LAUNCH_FAILED | UNKNOWN
        )
    }
}

fn text(of: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_int, code: u32) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: the driver sets `text` to a string that lives for ever, or to null where it does not know the code.
    unsafe {
        let found = of(code, &raw mut text) == 0 && !text.is_null();
        found.then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

/// Gives the results of `cust` the name of the driver's function.
pub(super) trait Named<T> {
    fn named(self, call: &'static str) -> Result<T, CallError>;
}

impl<T> Named<T> for CudaResult<T> {
    fn named(self, call: &'static str) -> Result<T, CallError> {
        self.map_err(|error| CallError::new(call, error as u32))
    }
}

/// A version of CUDA or of the PTX language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The 12 of 12.4.
    pub major: u32,
    /// The 4 of 12.4.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why a GPU cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum GpuError {
    /// There is no driver, or one from before CUDA 11.
    #[error(transparent)]
    NoDriver(#[from] DriverError),
    /// There is a driver, and it sees no GPU.
    #[error("the NVIDIA driver finds no GPU: see what `nvidia-smi -L` lists, and CUDA_VISIBLE_DEVICES")]
    NoDevice,
    /// The driver lists fewer GPUs.
    #[error("there is no GPU {asked}: {}", match listed {
        1 => "the driver lists one, 0".to_owned(),
        _ => format!("the driver lists {listed}, 0 to {}", listed - 1),
    })]
    NoSuchDevice {
        /// The number asked for.
        asked: u32,
        /// How many the driver lists, at least one.
        listed: u32,
    },
    /// The text is not a PTX module.
    #[error("the PTX has {problem}: rebuild it with `cargo xtask ptx`")]
    NotPtx {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The driver is older than the language of the PTX.
    #[error(
        "the NVIDIA driver supports CUDA {driver}, and PTX {ptx} needs CUDA {needs}: \
         install a driver for CUDA {needs} or newer"
    )]
    DriverTooOld {
        /// The CUDA version that the driver supports.
        driver: Version,
        /// The version of the PTX language.
        ptx: Version,
        /// The CUDA release that brought it.
        needs: Version,
    },
    /// The GPU is older than the target of the PTX.
    #[error("the GPU is a {name} (sm_{has}), and the PTX is for sm_{needs}: run `cargo xtask ptx --arch sm_{has}`")]
    GpuTooOld {
        /// The GPU.
        name: String,
        /// Its compute capability, times ten.
        has: u32,
        /// The compute capability that the PTX asks for, times ten.
        needs: u32,
    },
    /// The driver's compiler refuses the PTX.
    #[error("the driver rejects the PTX: {error}\n{log}")]
    ModuleRejected {
        /// The call that failed.
        error: CallError,
        /// What the compiler says, or nothing.
        log: String,
    },
    /// Any other call of the driver failed.
    #[error(transparent)]
    Driver(#[from] CallError),
}

impl GpuError {
    /// Whether the machine has no GPU at all, rather than one that cannot be used.
    pub fn means_none(&self) -> bool {
        matches!(self, Self::NoDriver(_) | Self::NoDevice)
    }
}

/// Why a case cannot be run. The caller knows which kernel and which case, and says so.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// The PTX holds no such kernel.
    #[error("the PTX holds no entry `{kernel}`: rebuild it with `cargo xtask ptx`")]
    NoEntry {
        /// The kernel.
        kernel: &'static str,
    },
    /// The PTX is of other sources: an array in constant memory is too small.
    #[error("the PTX has {bytes} bytes for `{symbol}`, and the plan fills {needed}: rebuild it with `cargo xtask ptx`")]
    ConstantArray {
        /// The array.
        symbol: String,
        /// Its bytes in the PTX.
        bytes: u64,
        /// Bytes that the plan fills.
        needed: u64,
    },
    /// The plan does not fit the kernel's parameters.
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    /// A buffer does not fit in the GPU's memory.
    #[error("the buffer `{buffer}` needs {bytes} bytes, and the GPU has {free} bytes free: choose a smaller size")]
    Memory {
        /// The buffer.
        buffer: &'static str,
        /// Bytes asked for.
        bytes: u64,
        /// Bytes free.
        free: u64,
    },
    /// The driver does not take the launch. Others still run.
    #[error(
        "the launch of {:?} blocks of {:?} threads with {} bytes of dynamic shared memory is refused: {error}",
        launch.grid, launch.block, launch.shared_bytes
    )]
    Refused {
        /// The launch.
        launch: Launch,
        /// The call that failed.
        error: CallError,
    },
    /// A launch failed on the GPU, and with it CUDA in this process: see [`RunError::is_final`].
    #[error(
        "the launch failed on the GPU: {error}. CUDA takes no further call from this process, so the other cases run in \
         a new one; `cargo xtask simulate` names the source line of a wild access"
    )]
    Launch {
        /// The call that reported it, which may come long after the launch.
        error: CallError,
    },
    /// The kernel wrote outside a buffer.
    #[error(
        "the kernel wrote {} the buffer `{buffer}` of {bytes} bytes, at byte {offset}: \
         `cargo xtask simulate` names the source line",
        if *offset < 0 { "before" } else { "after" }
    )]
    Canary {
        /// The buffer.
        buffer: &'static str,
        /// Bytes of the buffer.
        bytes: u64,
        /// The first overwritten byte, counted from the buffer's start: negative before it, at least `bytes` after it.
        offset: i64,
    },
    /// Any other call of the driver failed.
    #[error(transparent)]
    Driver(CallError),
}

impl RunError {
    /// Whether nothing can run on a GPU any more until a new process begins.
    ///
    /// After a fault of a kernel every call returns its error. No context brings CUDA back: destroying it, resetting
    /// the device's primary context and making a new one was tried, on an H200 with a driver for CUDA 13.0.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Launch { .. })
    }

    /// What kind of error it is, for reports.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoEntry { .. } | Self::ConstantArray { .. } | Self::Arguments(_) => "plan",
            Self::Memory { .. } => "memory",
            Self::Refused { .. } | Self::Launch { .. } => "launch",
            Self::Canary { .. } => "verification",
            Self::Driver(_) => "driver",
        }
    }
}

impl From<CallError> for RunError {
    fn from(error: CallError) -> Self {
        if error.is_final() { Self::Launch { error } } else { Self::Driver(error) }
    }
}
