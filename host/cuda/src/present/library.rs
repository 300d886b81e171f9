//! cuBLAS, found at run time: what NVIDIA's own library takes for what a kernel of ours does.

use super::error::{CallError, RunError};
use cust::stream::Stream;
use gpu::suite::Library;
use std::ffi::{c_int, c_void};
use std::ptr;

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, *mut c_void) -> c_int;
type Geam = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    *const f32,
    *const f32,
    c_int,
    *const f32,
    *const f32,
    c_int,
    *mut f32,
    c_int,
) -> c_int;
type Gemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const f32,
    *const f32,
    c_int,
    *const f32,
    c_int,
    *const f32,
    *mut f32,
    c_int,
) -> c_int;

/// As in cublas_api.h.
const AS_IT_IS: c_int = 0;
const TRANSPOSED: c_int = 1;

/// An open cuBLAS whose work goes to one stream.
pub(super) struct Cublas {
    handle: Handle,
    destroy: Destroy,
    geam: Geam,
    gemm: Gemm,
    // Keeps the functions above where they are.
    _library: libloading::Library,
}

impl Cublas {
    /// cuBLAS with its work in `stream`, or none if the machine has none that works.
    pub(super) fn open(stream: &Stream) -> Option<Self> {
        let names = ["libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"];
        // SAFETY: loading runs the initializers of NVIDIA's library; the types are those of cublas_api.h.
        unsafe {
            let library = names.iter().find_map(|name| libloading::Library::new(*name).ok())?;
            let create = *library.get::<Create>(b"cublasCreate_v2\0").ok()?;
            let set_stream = *library.get::<SetStream>(b"cublasSetStream_v2\0").ok()?;
            let destroy = *library.get::<Destroy>(b"cublasDestroy_v2\0").ok()?;
            let geam = *library.get::<Geam>(b"cublasSgeam\0").ok()?;
            let gemm = *library.get::<Gemm>(b"cublasSgemm_v2\0").ok()?;
            let mut handle = ptr::null_mut();
            if create(&raw mut handle) != 0 {
                return None;
            }
            let cublas = Self { handle, destroy, geam, gemm, _library: library };
            (set_stream(handle, stream.as_inner().cast()) == 0).then_some(cublas)
        }
    }

    /// Queues what `library` says, on the buffers that `address` gives.
    pub(super) fn launch(&self, library: &Library, address: impl Fn(&str) -> Option<u64>) -> Result<(), RunError> {
        let buffer = |name: &'static str| {
            let missing = plan::arguments::ArgumentError::Missing { kernel: library.name(), what: "buffer", name };
            address(name).map(|address| address as *mut f32).ok_or(missing)
        };
        // cuBLAS counts rows and columns the other way round: a row-major matrix is its transpose, column by column.
        // SAFETY: the buffers are on the GPU, as large as the plan makes them; the factors are read before the call returns.
        let status = unsafe {
            match *library {
                Library::Transpose { src, dst, rows, columns } => {
                    let (src, dst, rows, columns) = (buffer(src)?, buffer(dst)?, rows as c_int, columns as c_int);
                    (self.geam)(
                        self.handle,
                        TRANSPOSED,
                        AS_IT_IS,
                        rows,
                        columns,
                        &1.0,
                        src,
                        columns,
                        &0.0,
                        dst,
                        rows,
                        dst,
                        rows,
                    )
                }
                Library::Product { a, b, c, m, n, k } => {
                    let (a, b, c) = (buffer(a)?, buffer(b)?, buffer(c)?);
                    let (m, n, k) = (m as c_int, n as c_int, k as c_int);
                    (self.gemm)(self.handle, AS_IT_IS, AS_IT_IS, n, m, k, &1.0, b, n, a, k, &0.0, c, n)
                }
            }
        };
        if status == 0 { Ok(()) } else { Err(CallError::library(library.name(), status.cast_unsigned()).into()) }
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and the library still loaded.
        unsafe { (self.destroy)(self.handle) };
    }
}
