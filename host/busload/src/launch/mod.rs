//! Runs a kernel as a test wants it: a launch, its results against their reference, the sanitizer, and assertions on counts.
//!
//! ```
//! use busload::prelude::*;
//!
//! /// Twice each element.
//! #[kernel]
//! pub unsafe fn double(src: Global<f32>, dst: GlobalMut<f32>, n: u32) {
//!     let i = thread::index_x();
//!     if i < n as usize {
//!         dst.store(i, 2.0 * src.load(i));
//!     }
//! }
//!
//! # fn main() {
//! let src: Vec<f32> = (0..1024).map(|i| i as f32).collect();
//! let twice: Vec<f32> = src.iter().map(|value| 2.0 * value).collect();
//! let report =
//!     busload::launch(double::KERNEL).threads(1024).block(256).input("src", src).output("dst", twice).scalar("n", 1024).run();
//! report.at("load src").assert_coalesced().assert_requests(32);
//! # }
//! ```

mod at;
mod families;
mod report;

pub use at::Accesses;
pub use families::assert_families;
pub use report::Report;

use crate::arguments;
use crate::sim::{self, Options, SimulationError};
use crate::why::SAMPLING;
use gpu::suite::{Buffer, ElementType, Kernel, Launch, Plan, PlanError, Scalar};
use std::sync::Arc;

/// A launch of `kernel` that is to be described, and run in the simulator.
#[must_use = "nothing runs before `run`"]
pub fn launch(kernel: Kernel) -> Builder {
    let plan = Plan::new(Launch { grid: [1; 3], block: [0; 3], shared_bytes: 0 });
    Builder { kernel, plan, threads: None, wrong: None, options: Options::default() }
}

/// A launch: what a kernel is given, and what it must make of it.
#[must_use = "nothing runs before `run`"]
pub struct Builder {
    kernel: Kernel,
    plan: Plan,
    threads: Option<u64>,
    /// The first thing that cannot be.
    wrong: Option<PlanError>,
    options: Options,
}

/// Extents along x, y and z: a number, or a tuple or an array of up to three.
pub trait Extent {
    /// All three, 1 where none is given.
    fn extent(self) -> [u32; 3];
}

macro_rules! extents { ($($ty:ty: $this:ident => $extent:expr;)*) => { $(
    impl Extent for $ty {
        fn extent(self) -> [u32; 3] {
            let $this = self;
            $extent
        }
    }
)* } }
extents! {
    u32: x => [x, 1, 1];
    (u32, u32): xy => [xy.0, xy.1, 1];
    (u32, u32, u32): xyz => [xyz.0, xyz.1, xyz.2];
    [u32; 2]: xy => [xy[0], xy[1], 1];
    [u32; 3]: xyz => xyz;
}

/// Why a launch did not take place: what does not fit, and the way out.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{kernel}` was not run: {reason}")]
pub struct LaunchError {
    kernel: &'static str,
    reason: String,
}

impl Builder {
    /// Blocks of the grid.
    pub fn grid(mut self, blocks: impl Extent) -> Self {
        (self.plan.launch.grid, self.threads) = (blocks.extent(), None);
        self
    }

    /// Threads of a block.
    pub fn block(mut self, threads: impl Extent) -> Self {
        self.plan.launch.block = threads.extent();
        self
    }

    /// At least so many threads along x, in as many blocks as it takes.
    pub fn threads(mut self, threads: u64) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Bytes of dynamic shared memory of a block.
    pub fn dynamic_shared(mut self, bytes: u32) -> Self {
        self.plan.launch.shared_bytes = bytes;
        self
    }

    /// A buffer that the kernel reads.
    pub fn input<T: Data>(self, name: &'static str, values: impl Into<Vec<T>>) -> Self {
        let values = values.into();
        let len = values.len() as u64;
        self.buffer(Buffer::input(name, len, move |i| values[i as usize]))
    }

    /// What stands in a constant array of the kernel.
    pub fn constant<T: Data>(self, name: &'static str, values: impl Into<Vec<T>>) -> Self {
        let values = values.into();
        let len = values.len() as u64;
        self.buffer(Buffer::constant(name, len, move |i| values[i as usize]))
    }

    /// A buffer that the kernel writes: all of it, and afterwards it holds `expected`.
    pub fn output<T: Data>(self, name: &'static str, expected: impl Into<Vec<T>>) -> Self {
        let expected = expected.into();
        let len = expected.len() as u64;
        self.buffer(Buffer::output(name, len, move |i| expected[i as usize]))
    }

    /// A buffer of zeros that the kernel changes: afterwards it holds `expected`.
    pub fn zeroed<T: Data>(self, name: &'static str, expected: impl Into<Vec<T>>) -> Self {
        let expected = expected.into();
        let len = expected.len() as u64;
        self.buffer(Buffer::zeroed(name, len, move |i| expected[i as usize]))
    }

    /// A buffer that the kernel changes: it holds `before`, and afterwards `expected`, which is as long.
    pub fn in_place<T: Data>(
        mut self,
        name: &'static str,
        before: impl Into<Vec<T>>,
        expected: impl Into<Vec<T>>,
    ) -> Self {
        let (before, expected) = (before.into(), expected.into());
        let len = before.len() as u64;
        if before.len() != expected.len() {
            let lengths = format!("`{name}` has {len} elements before the launch and {} afterwards", expected.len());
            self.wrong.get_or_insert(PlanError(format!("{lengths}: give as many")));
            return self;
        }
        self.buffer(Buffer::in_place(name, len, move |i| before[i as usize], move |i| expected[i as usize]))
    }

    /// Allows each element of the buffer named last to lie so far from what is expected.
    pub fn within(mut self, tolerance: f64) -> Self {
        match self.plan.buffers.last_mut() {
            Some(buffer) => buffer.tolerance = tolerance,
            None => {
                self.wrong.get_or_insert(PlanError("`within` stands before every buffer: put it after its own".into()));
            }
        }
        self
    }

    /// A plain value.
    pub fn scalar(mut self, name: &'static str, value: impl Into<Scalar>) -> Self {
        self.plan = self.plan.scalar(name, value);
        self
    }

    /// A buffer as families describe them, such as `Buffer::input("src", n, noise)`.
    pub fn buffer(mut self, buffer: Result<Buffer, PlanError>) -> Self {
        match buffer {
            Ok(buffer) => self.plan = self.plan.buffer(buffer),
            Err(wrong) => {
                self.wrong.get_or_insert(wrong);
            }
        }
        self
    }

    /// How to simulate, where the defaults will not do.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Runs the kernel, and holds it to its reference and to the sanitizer.
    ///
    /// # Panics
    /// If the launch cannot be, the sanitizer finds anything, or a result is wrong: with the lines, or the elements.
    #[track_caller]
    pub fn run(self) -> Report {
        match self.examine() {
            Ok(report) => {
                report.assert_clean();
                report
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs the kernel and reports whatever comes of it: [`Report::assert_clean`] says whether it is right.
    ///
    /// # Errors
    /// If the launch cannot be.
    pub fn examine(mut self) -> Result<Report, LaunchError> {
        let kernel = self.kernel;
        let not = |reason: String| LaunchError { kernel: kernel.name, reason };
        if let Some(wrong) = self.wrong {
            return Err(not(wrong.to_string()));
        }
        if self.plan.launch.block == [0; 3] {
            return Err(not("nothing says how many threads a block has: add `.block(256)`".to_owned()));
        }
        if let Some(threads) = self.threads {
            let [x, y, z] = self.plan.launch.block;
            let linear = Launch::linear(threads, x).map_err(|error| not(error.to_string()))?;
            self.plan.launch = Launch { grid: linear.grid, block: [x, y, z], ..self.plan.launch };
        }
        run(kernel, Arc::new(self.plan), self.options).map_err(|error| {
            let hint = match error {
                SimulationError::Plan(_) => " (in a launch: `.input`, `.output`, `.zeroed`, `.in_place`, `.scalar`)",
                _ => "",
            };
            not(format!("{error}{hint}"))
        })
    }
}

/// What a buffer may hold: elements that can be handed from thread to thread.
pub trait Data: ElementType + Send + Sync + 'static {}

impl<T: ElementType + Send + Sync + 'static> Data for T {}

fn run(kernel: Kernel, plan: Arc<Plan>, options: Options) -> Result<Report, SimulationError> {
    arguments::check(&kernel, &plan)?;
    let options = Options { sampling: Some(SAMPLING), ..options };
    let outcome = sim::simulate(kernel, Arc::clone(&plan), &options, &|_, _| ())?;
    Ok(Report::new(kernel, plan, outcome))
}
