//! From a plan's buffers and values to the words of a kernel's parameters, in order.

use gpu::device::host::{Kernel, ParameterKind};
use gpu::suite::{Buffer, Plan};

/// A family's entry that does not fit its kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// The plan says nothing of a parameter.
    #[error("the plan of `{kernel}` has no {what} `{name}`: add it to the family's entry")]
    Missing {
        /// The kernel.
        kernel: &'static str,
        /// Buffer or value.
        what: &'static str,
        /// The parameter.
        name: &'static str,
    },
    /// The plan names something that is no parameter.
    #[error("the plan of `{kernel}` gives `{name}`, which is none of its parameters")]
    Unknown {
        /// The kernel.
        kernel: &'static str,
        /// What the plan calls it.
        name: &'static str,
    },
    /// The plan fills a constant array that the kernel has not.
    #[error(
        "the plan of `{kernel}` fills {bytes} bytes of constant memory as `{name}`, and the kernel has no such array"
    )]
    Constant {
        /// The kernel.
        kernel: &'static str,
        /// What the plan calls it.
        name: &'static str,
        /// How large the plan has it.
        bytes: u64,
    },
    /// The plan wants results from a buffer that the kernel only reads.
    #[error("`{name}` of `{kernel}` is an output in the plan, and read-only in the kernel: make it a `GlobalMut`")]
    ReadOnly {
        /// The kernel.
        kernel: &'static str,
        /// The parameter.
        name: &'static str,
    },
    /// A launch that no GPU takes.
    #[error(
        "a block of `{kernel}` has {what}, and a GPU takes at most {limit}: change the launch in the family's entry"
    )]
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// What is too much of it.
        what: String,
        /// How much a GPU takes.
        limit: u32,
    },
}

/// Threads of a block, along z too, and bytes of shared memory, of every GPU from compute capability 8.0 on.
const MAX_THREADS: u32 = 1024;
const MAX_Z: u32 = 64;
const MAX_SHARED: u32 = 227 << 10;

/// The parameters of `kernel` as 64-bit words: `base` gives the address of a buffer of the plan.
pub fn words(kernel: &Kernel, plan: &Plan, base: impl Fn(usize) -> u64) -> Result<Vec<u64>, ArgumentError> {
    let launch = &plan.launch;
    let limits = [
        (launch.block.iter().map(|&n| u64::from(n)).product::<u64>(), MAX_THREADS, "threads"),
        (launch.block[2].into(), MAX_Z, "threads along z"),
        (launch.shared_bytes.into(), MAX_SHARED, "bytes of dynamic shared memory"),
    ];
    if let Some((amount, limit, what)) = limits.into_iter().find(|(amount, limit, _)| *amount > u64::from(*limit)) {
        return Err(ArgumentError::Launch { kernel: kernel.name, what: format!("{amount} {what}"), limit });
    }
    let (constants, buffers): (Vec<_>, Vec<_>) = plan.buffers.iter().partition(|buffer| buffer.constant);
    let known = |name: &str| kernel.parameters.iter().any(|(parameter, _)| *parameter == name);
    let given = buffers.iter().map(|buffer| buffer.name).chain(plan.scalars.iter().map(|(name, _)| *name));
    if let Some(name) = given.into_iter().find(|name| !known(name)) {
        return Err(ArgumentError::Unknown { kernel: kernel.name, name });
    }
    let array = |buffer: &Buffer| (buffer.name, buffer.bytes());
    if let Some(buffer) = constants.iter().find(|buffer| !kernel.constants.contains(&array(buffer))) {
        return Err(ArgumentError::Constant { kernel: kernel.name, name: buffer.name, bytes: buffer.bytes() });
    }
    if let Some((name, _)) = kernel.constants.iter().find(|(name, _)| !constants.iter().any(|of| of.name == *name)) {
        return Err(ArgumentError::Missing { kernel: kernel.name, what: "constant array", name });
    }
    let word = |(name, kind): &(&'static str, ParameterKind)| {
        let (kernel, name) = (kernel.name, *name);
        if let ParameterKind::Plain(_) = kind {
            let scalar = plan.scalars.iter().find(|(scalar, _)| *scalar == name);
            return scalar.map(|(_, bits)| *bits).ok_or(ArgumentError::Missing { kernel, what: "value", name });
        }
        let buffer = plan.buffers.iter().position(|buffer| buffer.name == name && !buffer.constant);
        let buffer = buffer.ok_or(ArgumentError::Missing { kernel, what: "buffer", name })?;
        match (kind, &plan.buffers[buffer].after) {
            (ParameterKind::Global, Some(_)) => Err(ArgumentError::ReadOnly { kernel, name }),
            _ => Ok(base(buffer)),
        }
    };
    kernel.parameters.iter().map(word).collect()
}
