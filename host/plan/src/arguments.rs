//! A plan against its kernel: whether the two fit, and the words of the kernel's parameters, in order.

use gpu::device::host::{Kernel, ParameterKind};
use gpu::suite::{Buffer, Element, Plan, PlanError, Scalar};

/// A family's entry that does not fit its kernel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
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
    #[error(
        "the plan of `{kernel}` gives `{name}`, which is none of its parameters ({parameters}): take it out of the family's entry, or \
         into the kernel"
    )]
    Unknown {
        /// The kernel.
        kernel: &'static str,
        /// What the plan calls it.
        name: &'static str,
        /// What the kernel takes.
        parameters: String,
    },
    /// The plan gives a parameter, or a constant array, more than once.
    #[error("the plan of `{kernel}` gives `{name}` twice: leave one of the two in the family's entry")]
    Twice {
        /// The kernel.
        kernel: &'static str,
        /// The parameter.
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
    /// The plan does not say what the kernel makes of a buffer that it may write, so that nothing would be compared.
    #[error(
        "`{name}` of `{kernel}` is an input in the plan, and the kernel may write it: say what it holds afterwards, as in \
         `Buffer::output`, or make it a `Global`"
    )]
    NoResult {
        /// The kernel.
        kernel: &'static str,
        /// The parameter.
        name: &'static str,
    },
    /// The kernel and the plan have different elements in a buffer.
    #[error(
        "the elements of `{name}` are {in_kernel} in `{kernel}` and {in_plan} in its plan: give both the same type",
        in_kernel = in_kernel.name(),
        in_plan = in_plan.name()
    )]
    Element {
        /// The kernel.
        kernel: &'static str,
        /// The parameter.
        name: &'static str,
        /// Those of the kernel's pointer.
        in_kernel: Element,
        /// Those of the plan's buffer.
        in_plan: Element,
    },
    /// The plan gives a value that the parameter cannot hold.
    #[error(
        "`{name}` of `{kernel}` is {value} in the plan, which is no {ty}: give a value of that type",
        ty = ty.name()
    )]
    Value {
        /// The kernel.
        kernel: &'static str,
        /// The parameter.
        name: &'static str,
        /// The plan's value.
        value: Scalar,
        /// The parameter's type.
        ty: Element,
    },
    /// A launch that no GPU takes.
    #[error("no GPU takes the launch of `{kernel}`: {error}")]
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// Why not.
        error: PlanError,
    },
}

/// Whether `plan` fits `kernel`, and some GPU takes its launch.
///
/// # Errors
/// The first thing that does not.
pub fn check(kernel: &Kernel, plan: &Plan) -> Result<(), ArgumentError> {
    words(kernel, plan, |_| 0).map(|_| ())
}

/// The parameters of `kernel` as 64-bit words: `base` gives the address of a buffer of the plan.
///
/// # Errors
/// As [`check`].
pub fn words(kernel: &Kernel, plan: &Plan, base: impl Fn(usize) -> u64) -> Result<Vec<u64>, ArgumentError> {
    let (parameters, arrays, kernel) = (kernel.parameters, kernel.constants, kernel.name);
    plan.launch.check().map_err(|error| ArgumentError::Launch { kernel, error })?;
    let (constants, buffers): (Vec<_>, Vec<_>) = plan.buffers.iter().partition(|buffer| buffer.constant);
    let name = |buffer: &&Buffer| buffer.name;
    let given: Vec<_> = buffers.iter().map(name).chain(plan.scalars.iter().map(|(name, _)| *name)).collect();
    if let Some(&name) = given.iter().find(|name| !parameters.iter().any(|(parameter, _)| parameter == *name)) {
        let parameters: Vec<_> = parameters.iter().map(|(parameter, _)| format!("`{parameter}`")).collect();
        return Err(ArgumentError::Unknown { kernel, name, parameters: parameters.join(", ") });
    }
    let given_constants: Vec<_> = constants.iter().map(name).collect();
    if let Some(name) = twice(&given).or_else(|| twice(&given_constants)) {
        return Err(ArgumentError::Twice { kernel, name });
    }
    if let Some(buffer) = constants.iter().find(|buffer| !arrays.contains(&(buffer.name, buffer.bytes()))) {
        return Err(ArgumentError::Constant { kernel, name: buffer.name, bytes: buffer.bytes() });
    }
    if let Some((name, _)) = arrays.iter().find(|(name, _)| !given_constants.contains(name)) {
        return Err(ArgumentError::Missing { kernel, what: "constant array", name });
    }
    let word = |&(name, kind): &(&'static str, ParameterKind)| {
        let (in_kernel, is_written) = match kind {
            ParameterKind::Plain(ty) => {
                let scalar = plan.scalars.iter().find(|(scalar, _)| *scalar == name);
                let value = scalar.ok_or(ArgumentError::Missing { kernel, what: "value", name })?.1;
                return value.bits(ty).ok_or(ArgumentError::Value { kernel, name, value, ty });
            }
            ParameterKind::Global(element) => (element, false),
            ParameterKind::GlobalMut(element) => (element, true),
        };
        let number = plan.buffers.iter().position(|buffer| buffer.name == name && !buffer.constant);
        let number = number.ok_or(ArgumentError::Missing { kernel, what: "buffer", name })?;
        let Buffer { element: in_plan, ref after, .. } = plan.buffers[number];
        match (is_written, after) {
            _ if in_kernel != in_plan => Err(ArgumentError::Element { kernel, name, in_kernel, in_plan }),
            (false, Some(_)) => Err(ArgumentError::ReadOnly { kernel, name }),
            (true, None) => Err(ArgumentError::NoResult { kernel, name }),
            _ => Ok(base(number)),
        }
    };
    parameters.iter().map(word).collect()
}

/// The first of the names that stands there before.
pub fn twice(names: &[&'static str]) -> Option<&'static str> {
    names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu::suite::Launch;

    const KERNEL: Kernel = Kernel {
        name: "scale",
        documentation: "",
        file: "scale.rs",
        folder: "",
        line: 1,
        parameters: &[
            ("src", ParameterKind::Global(Element::F32)),
            ("dst", ParameterKind::GlobalMut(Element::F32)),
            ("n", ParameterKind::Plain(Element::U32)),
            ("factor", ParameterKind::Plain(Element::F32)),
            ("shift", ParameterKind::Plain(Element::I32)),
        ],
        shared: &[],
        constants: &[("table", 16)],
        entry: |_| (),
    };

    fn launch() -> Launch {
        Launch::linear(4, 32).expect("a small launch")
    }

    fn scalars(plan: Plan) -> Plan {
        plan.scalar("n", 4u64).scalar("factor", 0.5f32).scalar("shift", -1i32)
    }

    fn src() -> Buffer {
        Buffer::input("src", 4, |i| i as f32).expect("a small buffer")
    }

    fn dst() -> Buffer {
        Buffer::output("dst", 4, |i| i as f32).expect("a small buffer")
    }

    fn table() -> Buffer {
        Buffer::constant("table", 4, |i| i as f32).expect("a small buffer")
    }

    fn fitting() -> Plan {
        scalars(Plan::new(launch()).buffer(src()).buffer(dst()).buffer(table()))
    }

    #[test]
    fn a_plan_that_fits_gives_the_words_in_the_order_of_the_parameters() {
        let words = words(&KERNEL, &fitting(), |buffer| 100 + buffer as u64);
        assert_eq!(words, Ok(vec![100, 101, 4, 0.5f32.to_bits().into(), u32::MAX.into()]));
    }

    #[test]
    fn whatever_does_not_fit_is_named() {
        let without = |name: &str| {
            let mut plan = fitting();
            plan.buffers.retain(|buffer| buffer.name != name);
            plan.scalars.retain(|(scalar, _)| *scalar != name);
            plan
        };
        let ints = |name, after: bool| match after {
            true => Buffer::output(name, 4, |i| i as u32).expect("a small buffer"),
            false => Buffer::input(name, 4, |i| i as u32).expect("a small buffer"),
        };
        let halved = Buffer::constant("table", 2, |i| i as f32).expect("a small buffer");
        let read = Buffer::output("src", 4, |i| i as f32).expect("a small buffer");
        let written = Buffer::input("dst", 4, |i| i as f32).expect("a small buffer");
        for (plan, says) in [
            (without("src"), "has no buffer `src`"),
            (without("n"), "has no value `n`"),
            (without("table"), "has no constant array `table`"),
            (
                fitting().scalar("m", 1u32),
                "gives `m`, which is none of its parameters (`src`, `dst`, `n`, `factor`, `shift`): take it out",
            ),
            (fitting().buffer(src()), "gives `src` twice"),
            (fitting().scalar("n", 4u32), "gives `n` twice"),
            (fitting().scalar("dst", 4u32), "gives `dst` twice"),
            (fitting().buffer(table()), "gives `table` twice"),
            (without("table").buffer(halved), "fills 8 bytes of constant memory as `table`"),
            (without("src").buffer(read), "`src` of `scale` is an output in the plan, and read-only"),
            (without("dst").buffer(written), "`dst` of `scale` is an input in the plan, and the kernel may write it"),
            (without("src").buffer(ints("src", false)), "the elements of `src` are f32 in `scale` and u32 in its plan"),
            (without("dst").buffer(ints("dst", true)), "the elements of `dst` are f32 in `scale` and u32 in its plan"),
            (without("n").scalar("n", 1u64 << 32), "`n` of `scale` is 4294967296 in the plan, which is no u32"),
            (without("n").scalar("n", -1i32), "`n` of `scale` is -1 in the plan, which is no u32"),
            (without("n").scalar("n", 4.0f32), "`n` of `scale` is 4.0 in the plan, which is no u32"),
            (without("factor").scalar("factor", 1u32), "`factor` of `scale` is 1 in the plan, which is no f32"),
            (
                without("shift").scalar("shift", u32::MAX),
                "`shift` of `scale` is 4294967295 in the plan, which is no i32",
            ),
        ] {
            let error = check(&KERNEL, &plan).expect_err(says).to_string();
            assert!(error.contains(says) && error.contains("`scale`"), "{error}");
        }
    }

    #[test]
    fn a_launch_that_no_gpu_takes_is_refused_with_the_limit() {
        let with = |launch| Plan { launch, ..fitting() };
        let checked = |launch| check(&KERNEL, &with(launch));
        for (grid, block, shared_bytes) in [
            ([1; 3], [1; 3], 0),
            ([(1 << 31) - 1, 65_535, 65_535], [1024, 1, 1], 227 << 10),
            ([1; 3], [1, 1024, 1], 0),
            ([1; 3], [4, 4, 64], 0),
        ] {
            assert_eq!(checked(Launch { grid, block, shared_bytes }), Ok(()));
        }
        for (grid, block, shared_bytes, says) in [
            ([0, 1, 1], [32, 1, 1], 0, "the blocks of the grid along x are 0, and CUDA takes 1 to 2147483647"),
            ([1, 0, 1], [32, 1, 1], 0, "the blocks of the grid along y are 0, and CUDA takes 1 to 65535"),
            ([1, 1, 0], [32, 1, 1], 0, "the blocks of the grid along z are 0, and CUDA takes 1 to 65535"),
            (
                [1 << 31, 1, 1],
                [32, 1, 1],
                0,
                "the blocks of the grid along x are 2147483648, and CUDA takes 1 to 2147483647",
            ),
            ([1, 65_536, 1], [32, 1, 1], 0, "the blocks of the grid along y are 65536, and CUDA takes 1 to 65535"),
            (
                [1, 1, u32::MAX],
                [32, 1, 1],
                0,
                "the blocks of the grid along z are 4294967295, and CUDA takes 1 to 65535",
            ),
            ([1; 3], [0, 1, 1], 0, "the threads of a block along x are 0, and CUDA takes 1 to 1024"),
            ([1; 3], [32, 0, 1], 0, "the threads of a block along y are 0, and CUDA takes 1 to 1024"),
            ([1; 3], [32, 1, 0], 0, "the threads of a block along z are 0, and CUDA takes 1 to 64"),
            ([1; 3], [1025, 1, 1], 0, "the threads of a block along x are 1025, and CUDA takes 1 to 1024"),
            ([1; 3], [1, 1025, 1], 0, "the threads of a block along y are 1025, and CUDA takes 1 to 1024"),
            ([1; 3], [1, 1, 65], 0, "the threads of a block along z are 65, and CUDA takes 1 to 64"),
            ([1; 3], [32, 33, 1], 0, "a block has 1056 threads, and CUDA takes at most 1024"),
            ([1; 3], [u32::MAX; 3], 0, "the threads of a block along x are 4294967295"),
            (
                [1; 3],
                [32, 1, 1],
                (227 << 10) + 1,
                "232449 bytes of dynamic shared memory, and a GPU gives it at most 232448",
            ),
        ] {
            let error = checked(Launch { grid, block, shared_bytes }).expect_err(says).to_string();
            assert!(error.starts_with("no GPU takes the launch of `scale`: ") && error.contains(says), "{error}");
        }
    }

    #[test]
    fn launches_are_made_as_no_gpu_takes_them_for_no_size() {
        for launch in [
            Launch::linear(100, 0),
            Launch::linear(100, 2048),
            Launch::linear(1 << 40, 1),
            Launch::grid_stride(100, 0, 5),
            Launch::covering(10, 10, [0, 4], [32, 1]),
            Launch::covering(10, 10, [4, 0], [32, 1]),
            Launch::covering(10, 10, [4, 4], [32, 0]),
            Launch::covering(10, 1 << 20, [4, 1], [32, 1]),
        ] {
            assert!(launch.is_err(), "{launch:?}");
        }
    }
}
