//! A kernel with its buffers on the GPU, ready to launch.

use super::error::{CallError, Named, RunError};
use super::library::Cublas;
use super::memory::Guarded;
use super::session::Session;
use crate::{Parameter, Sample};
use cust::function::Function;
use cust::memory::{AsyncCopyDestination, DevicePointer, DeviceSlice};
use gpu::device::host::Kernel;
use gpu::suite::{Before, Buffer, Clocked, Launch, Library, POISON, Plan};
use plan::arguments;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ops::Range;

unsafe extern "C" {
    fn cuFuncGetModule(module: *mut *mut c_void, function: *mut c_void) -> c_int;
    fn cuModuleGetGlobal_v2(address: *mut u64, bytes: *mut usize, module: *mut c_void, name: *const c_char) -> c_int;
    fn cuFuncSetAttribute(function: *mut c_void, attribute: c_int, value: c_int) -> c_int;
}

/// A kernel on one case: its buffers are on the GPU, inputs filled, and are freed on drop.
pub struct Prepared<'a> {
    session: &'a Session,
    work: Work<'a>,
    buffers: Vec<(&'a Buffer, Guarded)>,
    /// For each buffer that the kernel changes in place, what stands in it before every run.
    originals: Vec<(usize, Guarded)>,
    clocked: Option<Clocked>,
}

/// What runs on the buffers.
enum Work<'a> {
    /// A kernel of ours.
    Kernel {
        function: Function<'a>,
        launch: Launch,
        /// The parameters in order, each in a word, or in several; a narrow one reads the low bytes of its word.
        words: Vec<Vec<u64>>,
    },
    /// A library's routine.
    Library(&'a Cublas, Library),
}

impl<'a> Prepared<'a> {
    pub(super) fn new(session: &'a Session, kernel: &Kernel, plan: &'a Plan) -> Result<Self, RunError> {
        let function = function(session, kernel.name, plan)?;
        let (buffers, originals) = buffers(plan)?;
        let words = arguments::words(kernel, plan, |index| buffers[index].1.data().as_device_ptr().as_raw())?;
        for (buffer, guarded) in buffers.iter().filter(|(buffer, _)| buffer.constant) {
            let mut array = variable(&function, format!("{}_{}", kernel.name, buffer.name), buffer)?;
            // SAFETY: the array is the kernel's alone, and the launch comes after it in the stream.
            unsafe { guarded.data().async_copy_to(&mut array, &session.stream) }.named("cuMemcpyDtoDAsync")?;
        }
        let words = words.into_iter().map(|word| vec![word]).collect();
        let work = Work::Kernel { function, launch: plan.launch, words };
        Ok(Self { session, work, buffers, originals, clocked: plan.clocked })
    }

    /// An entry of anybody's module. `variables` are the buffers of the plan that fill variables of the module.
    pub(super) fn entry(
        session: &'a Session,
        entry: &'static str,
        plan: &'a Plan,
        parameters: &[Parameter],
        variables: Range<usize>,
    ) -> Result<Self, RunError> {
        let function = function(session, entry, plan)?;
        let (buffers, originals) = buffers(plan)?;
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let words = parameters.iter().map(|parameter| match parameter {
            Parameter::Buffer(number) => vec![buffers[*number].1.data().as_device_ptr().as_raw()],
            Parameter::Bytes(bytes) => bytes.chunks(8).map(word).collect(),
        });
        let words = words.collect();
        let work = Work::Kernel { function, launch: plan.launch, words };
        let own = Self { session, work, buffers, originals, clocked: None };
        own.reset(POISON)?;
        for (buffer, guarded) in &own.buffers[variables] {
            let Work::Kernel { function, .. } = &own.work else { continue };
            let mut variable = variable(function, buffer.name.to_owned(), buffer)?;
            // SAFETY: the variable has as many bytes, and the launch comes after it in the stream.
            unsafe { guarded.data().async_copy_to(&mut variable, &session.stream) }.named("cuMemcpyDtoDAsync")?;
        }
        Ok(own)
    }

    /// The same buffers for a library's routine.
    pub(super) fn library(
        session: &'a Session,
        cublas: &'a Cublas,
        library: Library,
        plan: &'a Plan,
    ) -> Result<Self, RunError> {
        let (buffers, originals) = buffers(plan)?;
        Ok(Self { session, work: Work::Library(cublas, library), buffers, originals, clocked: None })
    }

    /// Queues what puts every buffer that the kernel writes back to what stands in it before a run, `poison` in every byte where
    /// that is to be written.
    fn reset(&self, poison: u8) -> Result<(), RunError> {
        let stream = &self.session.stream;
        for (buffer, guarded) in self.outputs() {
            let blank = match buffer.before {
                Before::Poison => poison,
                Before::Zero => 0,
                Before::Filled(_) => continue,
            };
            // SAFETY: who reads the data afterwards waits for the stream.
            unsafe { guarded.data().set_8_async(blank, stream) }.named("cuMemsetD8Async")?;
        }
        for (index, original) in &self.originals {
            let mut data = self.buffers[*index].1.data();
            // SAFETY: as above.
            unsafe { original.data().async_copy_to(&mut data, stream) }.named("cuMemcpyDtoDAsync")?;
        }
        Ok(())
    }

    /// Queues a launch, without waiting for it.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the driver does not take the launch, [`RunError::Launch`] if an earlier one failed on
    /// the GPU.
    pub fn launch(&self) -> Result<(), RunError> {
        match &self.work {
            Work::Kernel { function, launch, words } => self.launch_kernel(function, *launch, words),
            Work::Library(cublas, library) => cublas.launch(library, |name| {
                let (_, guarded) = self.buffers.iter().find(|(buffer, _)| buffer.name == name)?;
                Some(guarded.data().as_device_ptr().as_raw())
            }),
        }
    }

    fn launch_kernel(&self, function: &Function<'_>, launch: Launch, words: &[Vec<u64>]) -> Result<(), RunError> {
        let Launch { grid: [grid_x, grid_y, grid_z], block: [x, y, z], shared_bytes } = launch;
        let parameters: Vec<_> = words.iter().map(|words| words.as_ptr().cast_mut().cast()).collect();
        // SAFETY: the words were matched to the kernel's parameters, each as wide as its words at most, and the driver
        // reads them before it returns. The buffers live as long as `self`; freeing them waits for the GPU.
        let launched = unsafe {
            self.session.stream.launch(function, (grid_x, grid_y, grid_z), (x, y, z), shared_bytes, &parameters)
        };
        launched.named("cuLaunchKernel").map_err(|error| match error.into() {
            RunError::Driver(error) => RunError::Refused { launch, error },
            lost => lost,
        })
    }

    /// Runs the kernel once on buffers as they stand before every run, with `poison` in every byte that it is to write, hands every
    /// output to `check` piece by piece (the buffer, the index of the piece's first element, its bytes), and looks whether the kernel
    /// wrote outside its buffers.
    ///
    /// # Errors
    /// [`RunError::Canary`] if it did, [`RunError::Refused`] or [`RunError::Launch`] if the launch failed. What `check`
    /// finds is its own affair.
    pub fn verify(&self, poison: u8, check: &mut dyn FnMut(&'a Buffer, u64, &[u8])) -> Result<(), RunError> {
        self.reset(poison)?;
        self.launch()?;
        self.session.synchronize()?;
        for (buffer, guarded) in self.outputs() {
            guarded.read(|offset, bytes| check(buffer, offset / buffer.element.size(), bytes))?;
        }
        for (buffer, guarded) in &self.buffers {
            if let Some(offset) = guarded.first_overwritten()? {
                return Err(RunError::Canary { buffer: buffer.name, bytes: buffer.bytes(), offset });
            }
        }
        Ok(())
    }

    /// Resets the buffers, with `flush` empties the L2 of them and of the inputs, and times one launch on the GPU, between two events
    /// around the launch alone.
    ///
    /// # Errors
    /// As [`Prepared::launch`].
    pub fn sample(&self, flush: bool) -> Result<Sample, RunError> {
        self.reset(POISON)?;
        if flush {
            self.session.flush_l2()?;
        }
        self.session.time(|| self.launch())
    }

    /// The ticks a request that the kernel's last run read off the clock; none if it does not read it.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn ticks(&self) -> Result<Option<f64>, RunError> {
        let Some(clocked) = self.clocked else { return Ok(None) };
        let Some((buffer, guarded)) = self.buffers.iter().find(|(buffer, _)| buffer.name == clocked.buffer) else {
            return Ok(None);
        };
        let mut sum = 0.0;
        guarded.read(|_, bytes| {
            let ticks = bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]));
            sum += ticks.map(f64::from).sum::<f64>();
        })?;
        Ok(Some(sum / (buffer.len * clocked.requests) as f64))
    }

    /// How many of the launch's blocks an SM holds at a time; none for a library's routine.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn occupancy(&self) -> Result<Option<u32>, RunError> {
        let Work::Kernel { function, launch, .. } = &self.work else { return Ok(None) };
        let [x, y, z] = launch.block;
        let blocks = function.max_active_blocks_per_multiprocessor((x, y, z).into(), launch.shared_bytes as usize);
        Ok(Some(blocks.named("cuOccupancyMaxActiveBlocksPerMultiprocessor")?))
    }

    fn outputs(&self) -> impl Iterator<Item = &(&'a Buffer, Guarded)> {
        self.buffers.iter().filter(|(buffer, _)| buffer.after.is_some())
    }
}

/// The buffers of a plan with what stands in them, and the originals of those that are changed in place.
#[allow(clippy::type_complexity, reason = "the two fields of `Prepared`")]
fn buffers(plan: &Plan) -> Result<(Vec<(&Buffer, Guarded)>, Vec<(usize, Guarded)>), RunError> {
    let allocate = |buffer: &Buffer| Guarded::new(buffer.name, buffer.bytes());
    let buffers = plan.buffers.iter().map(|buffer| Ok((buffer, allocate(buffer)?)));
    let buffers = buffers.collect::<Result<Vec<_>, RunError>>()?;
    let mut originals = Vec::new();
    for (index, (buffer, guarded)) in buffers.iter().enumerate() {
        let Before::Filled(fill) = &buffer.before else { continue };
        let width = buffer.element.size() as usize;
        if buffer.after.is_none() {
            guarded.fill(width, |i| fill.bits(i))?;
        } else {
            let original = Guarded::new(buffer.name, buffer.bytes())?;
            original.fill(width, |i| fill.bits(i))?;
            originals.push((index, original));
        }
    }
    Ok((buffers, originals))
}

/// The driver's code for a name that a module does not have.
const NOT_FOUND: c_int = 500;

/// An entry of the session's module, which may have as much shared memory as the plan says.
fn function<'a>(session: &'a Session, entry: &'static str, plan: &Plan) -> Result<Function<'a>, RunError> {
    let function = session.module.get_function(entry).named("cuModuleGetFunction").map_err(|error| {
        if error.code() == NOT_FOUND.cast_unsigned() { RunError::NoEntry { kernel: entry } } else { error.into() }
    })?;
    allow_shared_memory(&function, plan.launch.shared_bytes)?;
    Ok(function)
}

/// The variable of the function's module that a buffer of its plan fills.
fn variable(function: &Function<'_>, symbol: String, buffer: &Buffer) -> Result<DeviceSlice<u8>, RunError> {
    let name = CString::new(symbol.as_str()).expect("names have no null");
    let (mut module, mut address, mut bytes) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the function is one of a loaded module, and the driver writes to the three.
    let found = unsafe {
        CallError::check("cuFuncGetModule", cuFuncGetModule(&raw mut module, function.to_raw().cast()))?;
        cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module, name.as_ptr())
    };
    // Where the PTX has no such array, it has none of its bytes.
    if found != NOT_FOUND {
        CallError::check("cuModuleGetGlobal", found)?;
    }
    if (bytes as u64) < buffer.bytes() {
        return Err(RunError::ConstantArray { symbol, bytes: bytes as u64, needed: buffer.bytes() });
    }
    // SAFETY: the module has the variable for as long as the session has the module.
    Ok(unsafe { DeviceSlice::from_raw_parts_mut(DevicePointer::from_raw(address), buffer.bytes() as usize) })
}

/// Above 48 KiB of dynamic shared memory a kernel must ask for it.
fn allow_shared_memory(function: &Function<'_>, bytes: u32) -> Result<(), CallError> {
    const MAX_DYNAMIC_SHARED_SIZE_BYTES: c_int = 8;
    if bytes <= 48 << 10 {
        return Ok(());
    }
    // SAFETY: the function is one of a loaded module.
    let code =
        unsafe { cuFuncSetAttribute(function.to_raw().cast(), MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes.cast_signed()) };
    CallError::check("cuFuncSetAttribute (dynamic shared memory)", code)
}
