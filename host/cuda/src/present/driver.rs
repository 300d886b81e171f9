//! The CUDA driver, found when the program runs.
//!
//! `cust` calls the driver's functions by name and a linker wants each of them, on machines without a driver too. So
//! they are defined here, every one a jump through a slot:
//!
//! ```text
//!  cust ──call──▶ cuMemAlloc_v2: jmp [slot] ──▶ libcuda.so.1, once `load` has filled the slots
//!                                           └─▶ a function that returns an error, before
//! ```

use core::arch::naked_asm;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::error::Error;
use std::sync::OnceLock;

/// The library's name: the one that the driver installs, also where no CUDA toolkit is.
const LIBRARY: &str = "libcuda.so.1";

/// Why the driver cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DriverError {
    /// `libcuda.so.1` was not found, or could not be loaded.
    #[error(
        "no CUDA driver: {LIBRARY} could not be loaded ({reason}); \
         install an NVIDIA driver, or let the dynamic linker find it (LD_LIBRARY_PATH)"
    )]
    NotLoaded {
        /// What the dynamic linker says.
        reason: String,
    },
    /// `libcuda.so.1` has no such function.
    #[error("the NVIDIA driver is too old: its {LIBRARY} has no {symbol}; install a driver for CUDA 11.0 or newer")]
    Lacks {
        /// The function.
        symbol: &'static str,
    },
}

/// Fills the slots from `libcuda.so.1`, all of them or none. Further calls return what the first one did.
///
/// # Errors
/// If the library cannot be loaded, or has not all the functions that busload calls.
pub(super) fn load() -> Result<(), DriverError> {
    static LOADED: OnceLock<Result<(), DriverError>> = OnceLock::new();
    LOADED.get_or_init(fill_slots).clone()
}

fn fill_slots() -> Result<(), DriverError> {
    // SAFETY: the driver's initialisers ask nothing of the program that loads it.
    let library = unsafe { libloading::Library::new(LIBRARY) }.map_err(|error| DriverError::NotLoaded {
        reason: error.source().map_or_else(|| error.to_string(), ToString::to_string),
    })?;
    let find = |function: &Function| {
        // SAFETY: the address is only stored; `cust` calls it by the type that cuda.h gives to that name.
        match unsafe { library.get::<*mut c_void>(function.name) } {
            Ok(address) => Ok(*address),
            Err(_) if function.required => {
                Err(DriverError::Lacks { symbol: function.name.to_str().unwrap_or_default() })
            }
            Err(_) => Ok(not_found as *mut c_void),
        }
    };
    let addresses = FUNCTIONS.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    for (function, address) in FUNCTIONS.iter().zip(addresses) {
        function.slot.store(address, Ordering::Release);
    }
    // The slots point into the library from now on.
    std::mem::forget(library);
    Ok(())
}

extern "C" fn not_initialized() -> c_int {
    3 // CUDA_ERROR_NOT_INITIALIZED
}

extern "C" fn not_found() -> c_int {
    500 // CUDA_ERROR_NOT_FOUND
}

/// A function of the driver.
struct Function {
    name: &'static CStr,
    /// Where its jump goes.
    slot: &'static AtomicPtr<c_void>,
    /// Whether busload calls it; the others are there for the linker alone.
    required: bool,
    #[expect(
        dead_code,
        reason = "who links the table links the jumps, before a linker comes to `cust`, which needs them"
    )]
    jump: unsafe extern "C" fn(),
}

macro_rules! functions {
    ($(required: $required:literal { $($name:ident)* })*) => {
        #[allow(non_upper_case_globals, reason = "a slot is named after its function")]
        mod slots {
            use super::{AtomicPtr, c_void, not_initialized};
            $($(pub(super) static $name: AtomicPtr<c_void> = AtomicPtr::new(not_initialized as *mut c_void);)*)*
        }

        $($(
            #[allow(non_snake_case, reason = "the name is the driver's")]
            // SAFETY: the name stands for the driver's function, and the driver is the only one who else defines it.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C" fn $name() {
                naked_asm!("jmp qword ptr [rip + {slot}]", slot = sym slots::$name)
            }
        )*)*

        static FUNCTIONS: &[Function] = &[$($(
            Function {
                name: match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                },
                slot: &slots::$name,
                required: $required,
                jump: $name,
            },
        )*)*];
    };
}

// The symbols that `cust` and this module refer to: `nm -u` on them tells. cuda.h maps many names to their `_v2`.
functions! {
    required: true {
        cuCtxSetCurrent
        cuDeviceGet
        cuDeviceGetAttribute
        cuDeviceGetCount
        cuDeviceGetName
        cuDevicePrimaryCtxRelease_v2
        cuDevicePrimaryCtxRetain
        cuDeviceTotalMem_v2
        cuDriverGetVersion
        cuEventCreate
        cuEventDestroy_v2
        cuEventElapsedTime
        cuEventRecord
        cuEventSynchronize
        cuFuncGetModule
        cuFuncSetAttribute
        cuGetErrorName
        cuGetErrorString
        cuInit
        cuLaunchKernel
        cuMemAlloc_v2
        cuMemFree_v2
        cuMemGetInfo_v2
        cuMemcpyDtoDAsync_v2
        cuMemcpyDtoH_v2
        cuMemcpyHtoD_v2
        cuMemsetD8Async
        cuMemsetD8_v2
        cuModuleGetFunction
        cuModuleGetGlobal_v2
        cuModuleLoadDataEx
        cuModuleUnload
        cuOccupancyMaxActiveBlocksPerMultiprocessor
        cuStreamCreateWithPriority
        cuStreamDestroy_v2
        cuStreamSynchronize
    }
    required: false {
        cuArray3DCreate_v2
        cuArray3DGetDescriptor_v2
        cuArrayDestroy
        cuCtxCreate_v2
        cuCtxDestroy_v2
        cuCtxGetApiVersion
        cuCtxGetCacheConfig
        cuCtxGetCurrent
        cuCtxGetDevice
        cuCtxGetFlags
        cuCtxGetLimit
        cuCtxGetSharedMemConfig
        cuCtxGetStreamPriorityRange
        cuCtxPopCurrent_v2
        cuCtxSetCacheConfig
        cuCtxSetLimit
        cuCtxSetSharedMemConfig
        cuCtxSynchronize
        cuDestroyExternalMemory
        cuDeviceGetPCIBusId
        cuDeviceGetUuid
        cuDevicePrimaryCtxReset_v2
        cuDevicePrimaryCtxSetFlags_v2
        cuEventQuery
        cuFuncGetAttribute
        cuFuncSetCacheConfig
        cuFuncSetSharedMemConfig
        cuGraphDestroy
        cuImportExternalMemory
        cuLinkComplete
        cuLinkCreate_v2
        cuLinkDestroy
        cuModuleLoadData
        cuOccupancyAvailableDynamicSMemPerBlock
        cuOccupancyMaxPotentialBlockSize
        cuStreamGetFlags
        cuStreamGetPriority
        cuStreamWaitEvent
        cuSurfObjectCreate
        cuSurfObjectDestroy
        cuSurfObjectGetResourceDesc
        cuTexObjectCreate
        cuTexObjectDestroy
        cuTexObjectGetResourceDesc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error without a driver names the library and the way out, every time; with one, loading succeeds.
    #[test]
    fn load_is_repeatable() {
        for _ in 0..2 {
            match load() {
                Ok(()) => {
                    let filled = |f: &Function| f.slot.load(Ordering::Acquire) != not_initialized as *mut c_void;
                    assert!(FUNCTIONS.iter().all(filled));
                }
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains(LIBRARY) && error.contains("install"), "{error}");
                }
            }
        }
    }

    /// Without a driver a call through a slot returns an error rather than crash.
    #[test]
    fn calls_fail_without_a_driver() {
        if load().is_err() {
            assert_eq!(cust::init(cust::CudaFlags::empty()), Err(cust::error::CudaError::NotInitialized));
        }
    }
}
