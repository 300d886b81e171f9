//! A plan: everything that it takes to run one kernel on one case, and to judge the run.

use super::{Buffer, Counts, Expected, Launch, Operation, Scalar, format};
use alloc::{string::String, vec::Vec};
use core::fmt;

/// Everything a machine needs to run one kernel on one case, and to judge the run.
pub struct Plan {
    /// Grid, block and dynamic shared memory.
    pub launch: Launch,
    /// The buffers, by the names of the kernel's parameters.
    pub buffers: Vec<Buffer>,
    /// The plain values, by the names of the kernel's parameters.
    pub scalars: Vec<(&'static str, Scalar)>,
    /// Bytes that must move, read plus written.
    pub bytes: u64,
    /// The counts of the whole grid, by buffer, operation and width; empty if they are not stated.
    pub expected: Vec<Expected>,
    /// A library's routine for the same buffers, to be measured beside the kernel.
    pub library: Option<Library>,
    /// What the kernel times by itself.
    pub clocked: Option<Clocked>,
}

impl Plan {
    /// A plan without buffers so far.
    pub fn new(launch: Launch) -> Self {
        Self {
            launch,
            buffers: Vec::new(),
            scalars: Vec::new(),
            bytes: 0,
            expected: Vec::new(),
            library: None,
            clocked: None,
        }
    }

    /// Adds a buffer.
    pub fn buffer(mut self, buffer: Buffer) -> Self {
        self.buffers.push(buffer);
        self
    }

    /// Adds a plain value.
    pub fn scalar(mut self, name: &'static str, value: impl Into<Scalar>) -> Self {
        self.scalars.push((name, value.into()));
        self
    }

    /// Says how many bytes must move, read plus written.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Whether the kernel leaves anything to be compared.
    pub fn has_output(&self) -> bool {
        self.buffers.iter().any(|buffer| buffer.after.is_some())
    }

    /// Names a library's routine to be measured beside the kernel, on the same buffers.
    pub fn beside(mut self, library: Library) -> Self {
        self.library = Some(library);
        self
    }

    /// Says that each element of `buffer` holds the ticks that so many requests of one block took.
    pub fn clocked(mut self, buffer: &'static str, requests: u64) -> Self {
        self.clocked = Some(Clocked { buffer, requests });
        self
    }

    /// Adds the counts to expect of the loads of `buffer`, `width` bytes a lane.
    pub fn loads(self, buffer: &'static str, width: u32, counts: Counts) -> Self {
        self.expect(buffer, Operation::Load, width, counts)
    }

    /// Adds the counts to expect of the stores to `buffer`, `width` bytes a lane.
    pub fn stores(self, buffer: &'static str, width: u32, counts: Counts) -> Self {
        self.expect(buffer, Operation::Store, width, counts)
    }

    /// Adds the counts to expect of the atomic additions to `buffer`, `width` bytes a lane.
    pub fn atomics(self, buffer: &'static str, width: u32, counts: Counts) -> Self {
        self.expect(buffer, Operation::Atomic, width, counts)
    }

    fn expect(mut self, buffer: &'static str, operation: Operation, width: u32, counts: Counts) -> Self {
        self.expected.push(Expected { buffer, operation, width, counts });
        self
    }
}

/// What a kernel times by itself, with the SM's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocked {
    /// The buffer of the ticks, as `f32`, each element those of one block.
    pub buffer: &'static str,
    /// The requests that the ticks of one element are for.
    pub requests: u64,
}

/// A library's routine that does what a kernel does, on the plan's buffers of single-precision numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// The transpose of a row-major matrix: cuBLAS `geam`.
    Transpose {
        /// The matrix.
        src: &'static str,
        /// Its transpose.
        dst: &'static str,
        /// Rows of `src`.
        rows: u32,
        /// Columns of `src`.
        columns: u32,
    },
    /// The product of row-major matrices, `m` by `k` times `k` by `n`: cuBLAS `sgemm`.
    Product {
        /// The left factor.
        a: &'static str,
        /// The right factor.
        b: &'static str,
        /// The product.
        c: &'static str,
        /// Rows of `a` and `c`.
        m: u32,
        /// Columns of `b` and `c`.
        n: u32,
        /// Columns of `a`, rows of `b`.
        k: u32,
    },
}

impl Library {
    /// The routine's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Library::Transpose { .. } => "cublasSgeam",
            Library::Product { .. } => "cublasSgemm",
        }
    }
}

/// Why a case cannot be launched: a sentence that names the value and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(pub String);

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for PlanError {}

/// The product of sizes, or an error that names them.
pub fn product(what: &str, factors: &[u64]) -> Result<u64, PlanError> {
    let product = factors.iter().try_fold(1u64, |product, factor| product.checked_mul(*factor));
    product
        .ok_or_else(|| PlanError(format!("{what} overflows 64 bits ({factors:?} multiplied): choose a smaller size")))
}
