//! What a family says of its kernels: cases, launches, buffers, references, and the counts to expect.
//!
//! All of it is data and closed forms over the parameters: nothing here runs a kernel or knows who does.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::fmt;
use core::ops::Range;

pub use crate::device::host::{Kernel, Space};
pub use alloc::format;
pub use half::f16;
pub use crate::device::{F32x2, F32x4, at};

/// A family of kernels for one access pattern, from naive to best.
pub struct Family {
    /// Its name, the first part of its kernels' names.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub summary: &'static str,
    /// What a case of it varies.
    pub axes: &'static [Axis],
    /// The ladder.
    pub kernels: &'static [Entry],
}

/// A kernel of a family, and how to launch it.
pub struct Entry {
    /// The kernel.
    pub kernel: Kernel,
    /// Its launch, buffers, reference and expected counts for a case.
    pub plan: fn(&Case) -> Result<Plan, PlanError>,
}

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
    pub const fn counted(name: &'static str, help: &'static str, min: u64, max: u64, default: &'static [Value]) -> Axis {
        Axis { name, help, kind: AxisKind::Count { min, max }, on_gpu: default, in_simulator: default }
    }
}

impl Axis {
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

/// One case: a value for each axis of the family, and what the launch wants to know of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The values, in the order of the family's axes.
    pub values: Vec<(&'static str, Value)>,
    /// Multiprocessors of the machine, for grids that fill it.
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

/// Why a case cannot be launched: a sentence that names the value and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(pub String);

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for PlanError {}

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
    /// What a library has for the same buffers, to be measured beside the kernel.
    pub library: Option<Library>,
    /// What the kernel times by itself.
    pub clocked: Option<Clocked>,
}

/// What a kernel times by itself, with the multiprocessor's clock.
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

impl Plan {
    /// A plan without buffers so far.
    pub fn new(launch: Launch) -> Self {
        Self { launch, buffers: Vec::new(), scalars: Vec::new(), bytes: 0, expected: Vec::new(), library: None, clocked: None }
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

    /// Says that each element of `buffer` holds the ticks of the clock that so many requests of a block took.
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

/// A plain value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A whole number.
    Integer(i128),
    /// A floating-point number.
    F32(f32),
}

macro_rules! whole_scalars { ($($ty:ty)*) => { $(
    impl From<$ty> for Scalar {
        fn from(value: $ty) -> Self {
            Self::Integer(value as i128)
        }
    }
)* } }
whole_scalars!(u32 i32 u64 usize);

impl From<f32> for Scalar {
    fn from(value: f32) -> Self {
        Self::F32(value)
    }
}

impl Scalar {
    /// Its bits as a parameter of this type, zero-extended; none if that cannot hold it.
    pub fn bits(self, ty: Element) -> Option<u64> {
        match (self, ty) {
            (Self::F32(value), Element::F32) => Some(value.bits()),
            (Self::Integer(value), Element::U32) => u32::try_from(value).ok().map(u32::bits),
            (Self::Integer(value), Element::I32) => i32::try_from(value).ok().map(i32::bits),
            (Self::Integer(value), Element::U64) => u64::try_from(value).ok(),
            _ => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::F32(value) => write!(f, "{value:?}"),
        }
    }
}

/// Grid, block and dynamic shared memory of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory a block.
    pub shared_bytes: u32,
}

/// Blocks of a grid along x, y and z, threads of a block, likewise and in all, that CUDA takes at most.
const MOST_BLOCKS: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];
const MOST_THREADS_ALONG: [u64; 3] = [1024, 1024, 64];
const MOST_THREADS: u64 = 1024;

/// Bytes of static shared memory that CUDA gives a block at most.
pub const MOST_STATIC_SHARED: u32 = 48 << 10;

/// Bytes of shared memory, static and dynamic, that any GPU gives a block at most: one of compute capability 9.0.
pub const MOST_SHARED: u32 = 227 << 10;

impl Launch {
    /// At least one thread for each of `threads`, in blocks of `block` along x.
    pub fn linear(threads: u64, block: u32) -> Result<Self, PlanError> {
        Self::blocks([threads.div_ceil(block.max(1).into()).max(1), 1], [block, 1])
    }

    /// Enough blocks to cover `columns` by `rows`, each block covering `tile` (columns, rows) with `block` threads.
    pub fn covering(columns: u32, rows: u32, tile: [u32; 2], block: [u32; 2]) -> Result<Self, PlanError> {
        if tile.contains(&0) {
            return Err(PlanError(format!("a block covers {} by {} elements: make it cover some", tile[0], tile[1])));
        }
        Self::blocks([columns.div_ceil(tile[0]).into(), rows.div_ceil(tile[1]).into()], block)
    }

    /// A grid-stride launch: blocks of `block` threads, as many as cover `threads` but at most `limit`.
    pub fn grid_stride(threads: u64, block: u32, limit: u32) -> Result<Self, PlanError> {
        Self::blocks([threads.div_ceil(block.max(1).into()).clamp(1, limit.max(1).into()), 1], [block, 1])
    }

    fn blocks(grid: [u64; 2], block: [u32; 2]) -> Result<Self, PlanError> {
        let (grid, block) = ([grid[0], grid[1], 1], [block[0], block[1], 1]);
        check(grid, block, 0)?;
        Ok(Self { grid: grid.map(|blocks| blocks as u32), block, shared_bytes: 0 })
    }

    /// Whether some GPU takes it.
    ///
    /// # Errors
    /// What of it none takes, and the limit.
    pub fn check(&self) -> Result<(), PlanError> {
        check(self.grid.map(u64::from), self.block, self.shared_bytes)
    }

    /// Blocks of the grid.
    pub fn block_count(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Threads of a block.
    pub fn block_threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Threads of the grid.
    pub fn threads(&self) -> u64 {
        self.block_count().saturating_mul(self.block_threads().into())
    }
}

fn check(grid: [u64; 3], block: [u32; 3], shared_bytes: u32) -> Result<(), PlanError> {
    let along = |what: &str, amounts: [u64; 3], most: [u64; 3], way_out: &str| {
        let outside = (0..3).find(|&axis| !(1..=most[axis]).contains(&amounts[axis]));
        outside.map_or(Ok(()), |axis| {
            let (amount, most, axis) = (amounts[axis], most[axis], ["x", "y", "z"][axis]);
            Err(PlanError(format!("{what} along {axis} are {amount}, and CUDA takes 1 to {most}: {way_out}")))
        })
    };
    let launch = "change the launch in the family's entry";
    along("the blocks of the grid", grid, MOST_BLOCKS, &format!("choose a smaller size, or {launch}"))?;
    let block = block.map(u64::from);
    along("the threads of a block", block, MOST_THREADS_ALONG, launch)?;
    let threads: u64 = block.iter().product();
    if threads > MOST_THREADS {
        return Err(PlanError(format!("a block has {threads} threads, and CUDA takes at most {MOST_THREADS}: {launch}")));
    }
    if shared_bytes > MOST_SHARED {
        return Err(PlanError(format!(
            "a block has {shared_bytes} bytes of dynamic shared memory, and a GPU gives it at most {MOST_SHARED} \
             (compute capability 9.0), others less: {launch}"
        )));
    }
    Ok(())
}

/// The type of a buffer's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Rust's own types")]
pub enum Element {
    I8,
    U8,
    I16,
    U16,
    F16,
    I32,
    U32,
    F32,
    I64,
    U64,
    F64,
}

impl Element {
    /// Bytes an element.
    pub const fn size(self) -> u64 {
        match self {
            Element::I8 | Element::U8 => 1,
            Element::I16 | Element::U16 | Element::F16 => 2,
            Element::I32 | Element::U32 | Element::F32 => 4,
            Element::I64 | Element::U64 | Element::F64 => 8,
        }
    }

    /// Its name in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            Element::I8 => "i8",
            Element::U8 => "u8",
            Element::I16 => "i16",
            Element::U16 => "u16",
            Element::F16 => "f16",
            Element::I32 => "i32",
            Element::U32 => "u32",
            Element::F32 => "f32",
            Element::I64 => "i64",
            Element::U64 => "u64",
            Element::F64 => "f64",
        }
    }
}

/// A Rust type that buffers hold.
pub trait ElementType: Copy {
    /// Its name for the machines.
    const ELEMENT: Element;
    /// Its bits, zero-extended.
    fn bits(self) -> u64;
}

macro_rules! element_types { ($($ty:ty: $element:ident, $bits:expr;)*) => { $(
    impl ElementType for $ty {
        const ELEMENT: Element = Element::$element;
        fn bits(self) -> u64 {
            $bits(self)
        }
    }
)* } }
element_types! {
    i8: I8, |value| u64::from(value as u8);
    u8: U8, u64::from;
    i16: I16, |value| u64::from(value as u16);
    u16: U16, u64::from;
    f16: F16, |value: f16| value.to_bits().into();
    i32: I32, |value| u64::from(value as u32);
    u32: U32, u64::from;
    f32: F32, |value: f32| value.to_bits().into();
    i64: I64, |value| value as u64;
    u64: U64, |value| value;
    f64: F64, f64::to_bits;
}

/// What the elements of a buffer hold.
pub trait Fill: Send + Sync {
    /// The bits of element `i`, zero-extended.
    fn bits(&self, i: u64) -> u64;

    /// Lays the elements side by side in `words`, the first in the lowest bits.
    fn lay(&self, elements: Range<u64>, words: &mut [u64]);
}

/// A function from an element's index to the element.
struct FillWith<F>(F);

impl<T: ElementType, F: Fn(u64) -> T + Send + Sync> Fill for FillWith<F> {
    fn bits(&self, i: u64) -> u64 {
        (self.0)(i).bits()
    }

    fn lay(&self, elements: Range<u64>, words: &mut [u64]) {
        let (size, each) = const { (T::ELEMENT.size(), 8 / T::ELEMENT.size()) };
        let word = |first: u64, n: u64| (0..n).fold(0, |word, i| word | self.bits(first + i) << (8 * size * i));
        let (whole, rest) = ((elements.end - elements.start) / each, (elements.end - elements.start) % each);
        let (words, last) = words.split_at_mut(whole as usize);
        for (place, first) in words.iter_mut().zip((elements.start..).step_by(each as usize)) {
            *place = word(first, each);
        }
        if rest > 0 {
            last[0] = word(elements.end - rest, rest);
        }
    }
}

/// A function from an element's index to the bits it must hold after the launch, or none where the kernel must not
/// have written.
pub type ExpectedBits = Box<dyn Fn(u64) -> Option<u64> + Send + Sync>;

/// What stands in a buffer before every run.
pub enum Before {
    /// The element of each index.
    Filled(Box<dyn Fill>),
    /// Bytes that tell whether the kernel wrote them: [`POISON`], and on a GPU, where nothing else tells, [`OTHER_POISON`] in
    /// another run.
    Poison,
    /// Zero.
    Zero,
}

/// Every byte of an output before the kernel runs: NaN in every floating-point format.
pub const POISON: u8 = 0xFF;

/// Every byte of an output before another run: what a kernel left alone differs in every bit.
pub const OTHER_POISON: u8 = !POISON;

/// A buffer of a plan.
pub struct Buffer {
    /// The kernel's parameter, or its constant array.
    pub name: &'static str,
    /// Whether it stands in constant memory.
    pub constant: bool,
    /// The type of its elements.
    pub element: Element,
    /// How many elements it has.
    pub len: u64,
    /// What stands in it before every run.
    pub before: Before,
    /// What must stand in it afterwards; none if the kernel only reads it.
    pub after: Option<ExpectedBits>,
    /// How far an element may lie from its reference: 0 where the kernel only moves data.
    pub tolerance: f64,
}

impl Buffer {
    /// A buffer the kernel reads: element `i` holds `fill(i)`.
    pub fn input<T: ElementType>(
        name: &'static str,
        len: u64,
        fill: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Self::new::<T>(name, len, filled(fill), None)
    }

    /// What stands in the kernel's constant array `name`: element `i` is `fill(i)`.
    pub fn constant<T: ElementType>(
        name: &'static str,
        len: u64,
        fill: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Ok(Self { constant: true, ..Self::input(name, len, fill)? })
    }

    /// A buffer the kernel writes: afterwards element `i` holds `expected(i)`, bit for bit.
    pub fn output<T: ElementType>(
        name: &'static str,
        len: u64,
        expected: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Self::partial_output(name, len, move |i| Some(expected(i)))
    }

    /// Like [`Buffer::output`], with elements that the kernel must leave alone: those whose `expected` is none.
    pub fn partial_output<T: ElementType>(
        name: &'static str,
        len: u64,
        expected: impl Fn(u64) -> Option<T> + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Self::new::<T>(name, len, Before::Poison, Some(Box::new(move |i| expected(i).map(T::bits))))
    }

    /// A buffer the kernel writes ticks of the clock to, as `f32`: any number will do.
    pub fn clock(name: &'static str, len: u64) -> Result<Self, PlanError> {
        Ok(Self::output(name, len, |_| 0.0f32)?.within(f64::INFINITY))
    }

    /// A buffer the kernel changes: element `i` holds `fill(i)` before every run, and afterwards `expected(i)`.
    pub fn in_place<T: ElementType>(
        name: &'static str,
        len: u64,
        fill: impl Fn(u64) -> T + Send + Sync + 'static,
        expected: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Self::new::<T>(name, len, filled(fill), Some(Box::new(move |i| Some(expected(i).bits()))))
    }

    /// A buffer the kernel adds to: zero before every run.
    pub fn zeroed<T: ElementType>(
        name: &'static str,
        len: u64,
        expected: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Result<Self, PlanError> {
        Self::new::<T>(name, len, Before::Zero, Some(Box::new(move |i| Some(expected(i).bits()))))
    }

    /// Allows each element to lie so far from its reference, where the kernel rounds differently.
    pub fn within(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    fn new<T: ElementType>(
        name: &'static str,
        len: u64,
        before: Before,
        after: Option<ExpectedBits>,
    ) -> Result<Self, PlanError> {
        // A simulated address has 40 bits for the offset in a buffer.
        match len.checked_mul(T::ELEMENT.size()) {
            Some(bytes) if bytes < 1 << 40 => {
                Ok(Self { name, constant: false, element: T::ELEMENT, len, before, after, tolerance: 0.0 })
            }
            _ => Err(PlanError(format!(
                "the buffer `{name}` would have {len} elements, a tebibyte or more: choose a smaller size"
            ))),
        }
    }

    /// Bytes of the buffer.
    pub fn bytes(&self) -> u64 {
        self.len * self.element.size()
    }
}

fn filled<T: ElementType>(fill: impl Fn(u64) -> T + Send + Sync + 'static) -> Before {
    Before::Filled(Box::new(FillWith(fill)))
}

/// The product of sizes, or an error that names them.
pub fn product(what: &str, factors: &[u64]) -> Result<u64, PlanError> {
    let product = factors.iter().try_fold(1u64, |product, factor| product.checked_mul(*factor));
    product.ok_or_else(|| PlanError(format!("{what} overflows 64 bits ({factors:?} multiplied): choose a smaller size")))
}

/// A finite number that differs from its neighbours: 23 random bits of element `i`, exactly a `f32`.
pub fn noise(i: u64) -> f32 {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (z >> 41) as f32
}

/// As [`noise`], of 8 bits: any value.
pub fn noise_i8(i: u64) -> i8 {
    noise(i) as u32 as i8
}

/// As [`noise`], of 16 bits: a finite, positive number.
pub fn noise_f16(i: u64) -> f16 {
    f16::from_bits((noise(i) as u32 % u32::from(f16::INFINITY.to_bits())) as u16)
}

/// As [`noise`], of 64 bits, 46 of them random, so that neither half of an element tells the other.
pub fn noise_f64(i: u64) -> f64 {
    f64::from(noise(2 * i)) + f64::from(noise(2 * i + 1)) / f64::from(1 << 23)
}

/// What an access does, as far as counts go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes in one indivisible step.
    Atomic,
}

/// The counts to expect of the accesses to a buffer, or to a shared array, by one operation at one width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The kernel's parameter, or the name of the shared array.
    pub buffer: &'static str,
    /// What the accesses do.
    pub operation: Operation,
    /// Bytes a lane.
    pub width: u32,
    /// Their counts, over the whole grid.
    pub counts: Counts,
}

/// What a kernel asks of the memory system. Global accesses have sectors and lines, shared and constant ones wavefronts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Warp instructions that at least one lane executes.
    pub requests: u64,
    /// Lanes that execute them.
    pub lanes: u64,
    /// 32-byte sectors of global memory touched, request by request.
    pub sectors: u64,
    /// The sectors that the same bytes would touch side by side.
    pub sectors_ideal: u64,
    /// 128-byte lines of global memory touched, request by request.
    pub lines: u64,
    /// Passes through the banks of shared memory, or, for a request of constant memory, the addresses it wants.
    pub wavefronts: u64,
    /// The wavefronts that the same bytes would need without conflicts.
    pub wavefronts_ideal: u64,
}

impl Counts {
    /// Each of them with its name.
    pub const fn named(self) -> [(&'static str, u64); 7] {
        [
            ("requests", self.requests),
            ("lanes", self.lanes),
            ("sectors", self.sectors),
            ("ideal sectors", self.sectors_ideal),
            ("lines", self.lines),
            ("wavefronts", self.wavefronts),
            ("ideal wavefronts", self.wavefronts_ideal),
        ]
    }
}

impl core::ops::Add for Counts {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            lanes: self.lanes + other.lanes,
            sectors: self.sectors + other.sectors,
            sectors_ideal: self.sectors_ideal + other.sectors_ideal,
            lines: self.lines + other.lines,
            wavefronts: self.wavefronts + other.wavefronts,
            wavefronts_ideal: self.wavefronts_ideal + other.wavefronts_ideal,
        }
    }
}

impl core::ops::AddAssign for Counts {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl core::ops::Mul<u64> for Counts {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self {
            requests: self.requests * times,
            lanes: self.lanes * times,
            sectors: self.sectors * times,
            sectors_ideal: self.sectors_ideal * times,
            lines: self.lines * times,
            wavefronts: self.wavefronts * times,
            wavefronts_ideal: self.wavefronts_ideal * times,
        }
    }
}

impl core::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), |sum, counts| sum + counts)
    }
}

/// The accesses of one warp at evenly spaced addresses: lane `k` of the first `lanes` accesses `width` bytes at byte
/// `first + k * step`.
///
/// Its counts are closed forms: the model that the simulator, which looks at every address, is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progression {
    /// The byte address of lane 0, relative to the 256-byte alignment of buffers and the 128-byte one of shared arrays.
    pub first: u64,
    /// Bytes from one lane to the next.
    pub step: u64,
    /// Active lanes.
    pub lanes: u64,
    /// Bytes a lane.
    pub width: u64,
}

impl Progression {
    /// Lanes side by side, from byte `first` on.
    pub const fn linear(first: u64, lanes: u64, width: u64) -> Self {
        Self { first, step: width, lanes, width }
    }

    /// How many aligned units of `unit` bytes the lanes touch: all from the first to the last while a step is no
    /// longer than a unit, and one a lane beyond that.
    const fn units(self, unit: u64) -> u64 {
        if self.step > unit { self.lanes } else { (self.first + (self.lanes - 1) * self.step) / unit - self.first / unit + 1 }
    }

    /// As one request to global memory; none if no lane is active.
    pub fn global(self) -> Counts {
        if self.lanes == 0 {
            return Counts::default();
        }
        let sectors = self.units(32);
        Counts {
            requests: 1,
            lanes: self.lanes,
            sectors,
            sectors_ideal: sectors.min((self.lanes * self.width).div_ceil(32)),
            lines: self.units(128),
            ..Counts::default()
        }
    }

    /// As one request to global memory together with `behind`: further lanes of the same warp, which begin behind the
    /// last of these. The two can share no more than the unit in which the one ends and the other begins.
    pub fn global_with(self, behind: Self) -> Counts {
        if self.lanes == 0 || behind.lanes == 0 {
            return self.global() + behind.global();
        }
        let last = self.first + (self.lanes - 1) * self.step;
        assert!(last < behind.first, "the second progression begins behind the last of the first");
        let both = self.global() + behind.global();
        let sectors = both.sectors - u64::from(last / 32 == behind.first / 32);
        Counts {
            requests: 1,
            sectors,
            sectors_ideal: sectors.min((self.lanes * self.width + behind.lanes * behind.width).div_ceil(32)),
            lines: both.lines - u64::from(last / 128 == behind.first / 128),
            ..both
        }
    }

    /// As one request to shared memory; none if no lane is active.
    ///
    /// A wavefront serves 128 bytes: all 32 lanes at up to 4 bytes each, 16 at 8, 8 at 16. For lanes `p` at a time, the
    /// 32 banks are `p` places as wide as an element (a word, for the narrow ones), and a step of `e` elements comes
    /// back to a place after `p / gcd(e, p)` lanes. So `p` lanes take `gcd(e, p)` wavefronts, and a rest of `r` lanes
    /// takes `r` divided by that period, rounded up. Two steps are unlike the others:
    ///
    /// - less than a word: the lanes fill consecutive words, of which there are fewer than banks: 1 wavefront;
    /// - none: a word that several lanes want is sent once. Of elements wider than a word, a load takes half as many
    ///   wavefronts as a store: [`Self::shared_load`] and [`Self::shared_store`].
    pub fn shared(self) -> Counts {
        let alike = self.step > 0 || self.width <= 4 || self.lanes < 2;
        assert!(alike, "loads and stores of one wide element differ: say `shared_load` or `shared_store`");
        self.shared_store()
    }

    /// As one load from shared memory: where all lanes go to one address, lanes `n` and `n ^ 1` are paired, and a wavefront
    /// serves twice as many lanes, up to the whole warp.
    pub fn shared_load(self) -> Counts {
        self.wavefronts(2)
    }

    /// As one store to shared memory, whose lanes are never paired.
    pub fn shared_store(self) -> Counts {
        self.wavefronts(1)
    }

    /// A wavefront serves `paired` times as many lanes where all go to one address.
    fn wavefronts(self, paired: u64) -> Counts {
        if self.lanes == 0 {
            return Counts::default();
        }
        let place = self.width.max(4);
        let together = 128 / place;
        let wavefronts = if self.step == 0 {
            self.lanes.div_ceil((together * paired).min(32))
        } else if self.step < place {
            assert!(self.width < 4, "a step of {} is none of {} bytes", self.step, self.width);
            1
        } else {
            assert!(self.step.is_multiple_of(place), "the closed form is that of steps of whole words and elements");
            let gcd = 1 << (self.step / place).trailing_zeros().min(together.trailing_zeros());
            self.lanes / together * gcd + (self.lanes % together).div_ceil(together / gcd)
        };
        let wavefronts_ideal = wavefronts.min((self.lanes * self.width).div_ceil(128));
        Counts { requests: 1, lanes: self.lanes, wavefronts, wavefronts_ideal, ..Counts::default() }
    }
}

/// One request to constant memory, whose lanes want so many different addresses.
pub fn constant(lanes: u64, addresses: u64) -> Counts {
    Counts { requests: 1, lanes, wavefronts: addresses, wavefronts_ideal: 1, ..Counts::default() }
}

/// One request to global memory at any addresses, `width` bytes a lane; none if there is no address. For patterns that
/// data decides: the union of the units touched, as the hardware is measured to count it.
pub fn scattered(addresses: impl IntoIterator<Item = u64>, width: u64) -> Counts {
    let mut addresses: Vec<u64> = addresses.into_iter().collect();
    addresses.sort_unstable();
    let units = |unit: u64| {
        let mut units: Vec<u64> = addresses.iter().map(|address| address / unit).collect();
        units.dedup();
        units.len() as u64
    };
    let (lanes, sectors) = (addresses.len() as u64, units(32));
    Counts {
        requests: lanes.min(1),
        lanes,
        sectors,
        sectors_ideal: sectors.min((lanes * width).div_ceil(32)),
        lines: units(128),
        ..Counts::default()
    }
}

/// `n` items handled by full warps and one last, partial warp: the counts of a warp given its index and its lanes,
/// where every full warp costs the same.
pub fn warps(n: u64, warp: impl Fn(u64, u64) -> Counts) -> Counts {
    let full = if n < 32 { Counts::default() } else { warp(0, 32) * (n / 32) };
    let rest = if n.is_multiple_of(32) { Counts::default() } else { warp(n / 32, n % 32) };
    full + rest
}

/// The sum over `n` items whose counts repeat every `period`, as those of rows do that begin alike in their lines.
pub fn periodic(n: u64, period: u64, counts: impl Fn(u64) -> Counts) -> Counts {
    (0..n.min(period)).map(|i| counts(i) * (n - i).div_ceil(period)).sum()
}

/// A row-major matrix of elements `width` bytes wide, by warps that each move up to 32 neighbours of a row: a row's
/// place in its line repeats after 128 / `width` rows, a warp's in the row after 4 warps.
pub fn along_rows(rows: impl Into<u64>, columns: impl Into<u64>, width: u64) -> Counts {
    let columns = columns.into();
    periodic(rows.into(), 128 / width, |y| {
        let warp = |x, lanes| Progression::linear(width * (y * columns + x), lanes, width).global();
        periodic(columns / 32, 4, |w| warp(32 * w, 32)) + warp(columns - columns % 32, columns % 32)
    })
}

/// The same matrix by warps that each move up to 32 neighbours of a column, lane `k` in row `k`: a column's place in its
/// line repeats after 128 / `width` columns, a warp's in the column after 4 warps.
pub fn down_columns(rows: impl Into<u64>, columns: impl Into<u64>, width: u64) -> Counts {
    let (rows, columns) = (rows.into(), columns.into());
    let step = width * columns;
    periodic(columns, 128 / width, |x| {
        let warp = |y, lanes| Progression { first: width * x + y * step, step, lanes, width }.global();
        periodic(rows / 32, 4, |w| warp(32 * w, 32)) + warp(rows - rows % 32, rows % 32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wavefronts and ideal ones of a load by `lanes` lanes, `step` elements of `width` bytes apart.
    fn wavefronts(width: u64, step: u64, lanes: u64) -> (u64, u64) {
        let counts = Progression { first: 0, step: step * width, lanes, width }.shared_load();
        assert_eq!((counts.requests, counts.lanes), (1, lanes));
        (counts.wavefronts, counts.wavefronts_ideal)
    }

    /// As measured on an H200 with one-warp kernels.
    #[test]
    fn every_measured_progression_in_shared_memory_has_its_closed_form() {
        for (width, one, linear, stride_2) in
            [(4, (1, 1), (1, 1), (2, 1)), (8, (1, 1), (2, 2), (4, 2)), (16, (2, 2), (4, 4), (8, 4))]
        {
            assert_eq!(wavefronts(width, 0, 32), one, "one address, {width} bytes");
            assert_eq!(wavefronts(width, 1, 32), linear, "linear, {width} bytes");
            assert_eq!(wavefronts(width, 2, 32), stride_2, "stride 2, {width} bytes");
        }
        assert_eq!(wavefronts(4, 32, 32), (32, 1));
        assert_eq!(wavefronts(4, 33, 32), (1, 1));
        assert_eq!(wavefronts(8, 1, 17), (2, 2));
        assert_eq!(wavefronts(16, 1, 17), (3, 3));
    }

    #[test]
    fn narrow_elements_share_words_and_conflict_by_whole_words() {
        for width in [1, 2] {
            assert_eq!(wavefronts(width, 1, 32), (1, 1), "linear, {width} bytes");
            assert_eq!(wavefronts(width, 32, 32), (8 * width, 1), "a pitch of 32 elements, {width} bytes");
            assert_eq!(wavefronts(width, 32 + 4 / width, 32), (1, 1), "a word more, {width} bytes");
        }
    }

    #[test]
    fn wide_elements_conflict_within_their_half_or_quarter_of_the_warp() {
        for (width, step, lanes, expected) in [
            (8, 32, 32, (32, 2)),
            (8, 33, 32, (2, 2)),
            (8, 32, 20, (20, 2)),
            (8, 4, 21, (4 + 2, 2)),
            (16, 8, 32, (32, 4)),
            (16, 4, 11, (4 + 2, 2)),
            (8, 0, 31, (1, 1)),
            (16, 0, 31, (2, 2)),
            (16, 0, 1, (1, 1)),
        ] {
            assert_eq!(wavefronts(width, step, lanes), expected, "{width} bytes, step {step}, {lanes} lanes");
        }
    }

    #[test]
    fn stores_by_all_lanes_to_one_address_take_as_many_wavefronts_as_to_different_ones() {
        for (width, lanes, expected) in [(4, 32, 1), (8, 32, 2), (8, 16, 1), (8, 17, 2), (16, 32, 4), (16, 9, 2)] {
            let store = |step| Progression { first: 0, step, lanes, width }.shared_store().wavefronts;
            assert_eq!([store(0), store(width)], [expected; 2], "{width} bytes, {lanes} lanes");
        }
    }

    #[test]
    fn two_progressions_of_one_request_touch_the_union_of_their_units() {
        let cases = (0..64).flat_map(|k| [4, 8, 16].map(|width| (k * width, (k * 7 % 13) * width, width)));
        for (first, gap, width) in cases {
            let lower = Progression::linear(first, 1 + first % 16, width);
            let upper = Progression::linear(first + lower.lanes * width + gap, 16, width);
            let addresses = |p: Progression| (0..p.lanes).map(move |lane| p.first + lane * p.step);
            let union = scattered(addresses(lower).chain(addresses(upper)), width);
            assert_eq!(lower.global_with(upper), union, "{lower:?} {upper:?}");
        }
    }

    #[test]
    fn the_rows_of_a_matrix_add_up_warp_by_warp() {
        let matrices = [(130u64, 65u64, 1), (131, 97, 2), (33, 300, 4), (40, 129, 8), (1, 1, 16), (200, 128, 1)];
        for (rows, columns, width) in matrices {
            let row = |y: u64| {
                let warp = |x: u64| Progression::linear(width * (y * columns + x), 32.min(columns - x), width).global();
                (0..columns).step_by(32).map(warp).sum::<Counts>()
            };
            assert_eq!(along_rows(rows, columns, width), (0..rows).map(row).sum(), "{rows}x{columns}, {width} bytes");
        }
    }

    #[test]
    fn the_columns_of_a_matrix_add_up_warp_by_warp() {
        let matrices = [(130u64, 65u64, 1), (131, 97, 2), (300, 33, 4), (40, 5, 8), (1, 1, 16), (200, 128, 1)];
        for (rows, columns, width) in matrices {
            let column = |x: u64| {
                let warp = |y: u64| scattered((y..rows.min(y + 32)).map(|y| width * (y * columns + x)), width);
                (0..rows).step_by(32).map(warp).sum::<Counts>()
            };
            let sum = (0..columns).map(column).sum();
            assert_eq!(down_columns(rows, columns, width), sum, "{rows}x{columns}, {width} bytes");
        }
    }
}
