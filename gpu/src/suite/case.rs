//! What a family's cases vary, and one case.

use alloc::vec::Vec;
use core::fmt;

/// A parameter that a family's cases vary, and the command-line option of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its name: the option is `--NAME`.
    pub name: &'static str,
    /// What it is, for the option's help.
    pub help: &'static str,
    /// Which values it takes.
    pub kind: AxisKind,
    /// The values taken by default on a GPU.
    pub on_gpu: &'static [Value],
    /// The values taken by default in the simulator.
    pub in_simulator: &'static [Value],
}

/// Which values an axis takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    /// Whole numbers in a range.
    Count {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// Rows and columns, each at least 1 and at most `u32::MAX`.
    Shape,
    /// One of these names.
    Choice(&'static [&'static str]),
}

/// A value of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// Rows and columns of a matrix.
    Shape(u32, u32),
    /// A name.
    Choice(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => write!(f, "{count}"),
            Value::Shape(rows, columns) => write!(f, "{rows}x{columns}"),
            Value::Choice(name) => f.write_str(name),
        }
    }
}

const fn counts<const N: usize>(values: [u64; N]) -> [Value; N] {
    let mut out = [Value::Count(0); N];
    let mut i = 0;
    while i < N {
        out[i] = Value::Count(values[i]);
        i += 1;
    }
    out
}

impl Axis {
    /// The number of elements of a one-dimensional family.
    pub const ELEMENTS: Axis = Axis {
        name: "elements",
        help: "Numbers of elements, for one-dimensional families",
        kind: AxisKind::Count { min: 1, max: 1 << 40 },
        on_gpu: &counts([1 << 26]),
        in_simulator: &counts([1 << 20]),
    };

    /// Rows and columns of a matrix.
    pub const SHAPE: Axis = Axis {
        name: "shape",
        help: "Matrix shapes, ROWSxCOLUMNS or N for NxN",
        kind: AxisKind::Shape,
        on_gpu: &[Value::Shape(4096, 4096), Value::Shape(8192, 8192), Value::Shape(16384, 16384)],
        in_simulator: &[Value::Shape(1024, 1024)],
    };

    /// An axis of whole numbers with the same default on every machine.
    pub const fn counted(
        name: &'static str,
        help: &'static str,
        min: u64,
        max: u64,
        default: &'static [Value],
    ) -> Axis {
        Axis { name, help, kind: AxisKind::Count { min, max }, on_gpu: default, in_simulator: default }
    }

    /// An axis of names, all taken by default on every machine.
    pub const fn chosen(
        name: &'static str,
        help: &'static str,
        names: &'static [&'static str],
        default: &'static [Value],
    ) -> Axis {
        Axis { name, help, kind: AxisKind::Choice(names), on_gpu: default, in_simulator: default }
    }
}

/// One case: a value for each axis of the family, and what the launch needs to know of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The values, in the order of the family's axes.
    pub values: Vec<(&'static str, Value)>,
    /// SMs of the machine, for grids that fill it.
    pub sm_count: u32,
}

impl Case {
    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.count("elements")
    }

    /// Rows and columns.
    pub fn shape(&self) -> (u32, u32) {
        match self.value("shape") {
            Value::Shape(rows, columns) => (rows, columns),
            other => unreachable!("the axis `shape` holds {other:?}"),
        }
    }

    /// The value of a counted axis.
    ///
    /// # Panics
    /// If the family has no such axis: its entry contradicts itself.
    pub fn count(&self, axis: &str) -> u64 {
        match self.value(axis) {
            Value::Count(count) => count,
            other => unreachable!("the axis `{axis}` holds {other:?}"),
        }
    }

    /// The name that an axis of choices holds.
    ///
    /// # Panics
    /// As [`Case::count`].
    pub fn choice(&self, axis: &str) -> &'static str {
        match self.value(axis) {
            Value::Choice(name) => name,
            other => unreachable!("the axis `{axis}` holds {other:?}"),
        }
    }

    fn value(&self, axis: &str) -> Value {
        let found = self.values.iter().find(|(name, _)| *name == axis);
        found.unwrap_or_else(|| panic!("the family has no axis `{axis}`")).1
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.values.iter().enumerate() {
            let space = if i == 0 { "" } else { " " };
            match (*name, value) {
                ("elements" | "shape", value) => write!(f, "{space}{value}")?,
                (name, value) => write!(f, "{space}{name}={value}")?,
            }
        }
        Ok(())
    }
}
