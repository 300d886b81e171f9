//! What a lane sees: the [`Machine`] that the kernels' calls go to.

use crate::context::Context;
use crate::overflow;
use crate::place::Place;
use crate::stop::{Stop, stack_overflow, twice};
use crate::thread::State;
use engine::{Memory, SharedMemory};
use gpu::device::host::{Access, Atomic, Exchange, Machine};
use gpu::suite::{Buffer, Scope, Space};
use std::cell::UnsafeCell;
use std::panic::Location;
use std::ptr::NonNull;

/// The machine that a block's lanes run on: the block itself. Only a lane that runs has a reference to it, and the scheduler
/// holds none into the block meanwhile.
#[repr(transparent)]
struct Simulator(UnsafeCell<Context>);

/// Has the lanes of a block run on it.
///
/// # Safety
/// The block is valid as long as lanes run.
pub(super) unsafe fn serve(context: *mut Context) {
    let machine = NonNull::new(context.cast::<Simulator>());
    // SAFETY: the caller's promise; nobody else refers to the block yet.
    unsafe { (*context).running.machine = machine.map(|machine| machine as _) };
}

/// Lets the scheduler run until the lane may go on.
///
/// # Safety
/// `context` is the current block, a lane of it is running, and nobody holds a reference into it.
pub(super) unsafe fn suspend(context: *mut Context) {
    // SAFETY: the lane's coroutine keeps its yielder alive while it runs.
    unsafe {
        let (yielder, stack_end) = ((*context).yielder, (*context).stack_end);
        (*yielder).suspend(());
        // Other stacks have run meanwhile.
        ((*context).yielder, (*context).stack_end) = (yielder, stack_end);
    }
}

/// Records why the running lane stops, stops the block, and never comes back.
#[cold]
unsafe fn stop(context: *mut Context, reason: Stop, at: Option<&'static Location<'static>>) -> ! {
    // SAFETY: as the caller says; the borrow ends before the switch.
    unsafe {
        (*context).stop(reason, at);
        loop {
            suspend(context);
        }
    }
}

impl Simulator {
    /// Runs a step of the running lane, which stands at `at`, on the current block.
    #[inline(always)]
    fn step<T>(&self, at: Option<&'static Location<'static>>, step: impl FnOnce(&mut Context) -> Result<T, Stop>) -> T {
        let context = self.0.get();
        // SAFETY: nobody else refers to the block while a lane runs.
        let block = unsafe { &mut *context };
        let result = if overflow::stack_pointer() < block.stack_end { Err(stack_overflow()) } else { step(block) };
        match result {
            Ok(value) => value,
            // SAFETY: the step's borrow has ended.
            Err(reason) => unsafe { stop(context, reason, at) },
        }
    }

    /// Puts the running lane to rest in a state, with the value that it brings, until the scheduler makes it ready again.
    /// `alone` says that it does not meet its whole warp.
    #[inline(always)]
    fn rest(&self, state: impl Fn(Place) -> State, alone: bool, value: u64, at: &'static Location<'static>) {
        self.step(Some(at), |block| {
            block.call()?;
            let state = state(Place { at, call: block.running.call });
            match state {
                State::Block(place) => match block.at_barrier.get_or_insert((place, 0)) {
                    (first, threads) if first.is(place) => *threads += 1,
                    _ => {}
                },
                _ => block.rested = true,
            }
            let steps = block.steps();
            if alone {
                block.close_alone().map_err(twice)?;
                block.requests.step(block.running.number, steps);
            } else {
                block.requests.close(&mut block.running, steps).map_err(twice)?;
            }
            block.requests.rest(&block.running);
            let (calls, path, call) = (block.calls(), block.running.path, block.running.call);
            let lane = block.leave(state);
            (lane.value, lane.calls, lane.path, lane.call) = (value, calls, path, call);
            Ok(())
        });
        // SAFETY: no reference into the block is held across the switch.
        unsafe { suspend(self.0.get()) };
    }
}

impl Simulator {
    /// What the running lane takes away from where it met others.
    fn taken(&self) -> u64 {
        // SAFETY: nobody else refers to the block while a lane runs.
        let block = unsafe { &*self.0.get() };
        block.lanes[block.current()].value
    }
}

impl Machine for Simulator {
    unsafe fn access(&self, access: Access, base: u64, index: u64, value: *mut u8, at: &'static Location<'static>) {
        self.step(Some(at), |block| block.access(access, base, index, value, at));
    }

    unsafe fn atomic(
        &self,
        access: Access,
        atomic: Atomic,
        base: u64,
        index: u64,
        value: *mut u8,
        at: &'static Location<'static>,
    ) {
        self.step(Some(at), |block| block.atomic(access, atomic, base, index, value, at));
    }

    fn fence(&self, scope: Scope, at: &'static Location<'static>) {
        self.step(Some(at), |block| block.fence(scope));
    }

    fn advance(&self, space: Space, base: u64, bytes: i64) -> u64 {
        match space {
            Space::Shared => SharedMemory::advance(base as u32, bytes).into(),
            Space::Global | Space::Constant => engine::advance(base, bytes),
        }
    }

    fn shared_array(&self, name: &'static str, at: &'static Location<'static>) -> u32 {
        self.step(Some(at), |block| {
            block.call()?;
            Ok(block.worker.shared.array(name))
        })
    }

    fn constant_array(&self, name: &'static str, bytes: usize, at: &'static Location<'static>) -> u64 {
        self.step(Some(at), |block| {
            block.call()?;
            let of = |buffer: &Buffer| buffer.constant && buffer.name == name && buffer.bytes() == bytes as u64;
            match block.job.launch.plan.buffers.iter().position(of) {
                Some(buffer) => Ok(Memory::base(buffer)),
                None => unreachable!("`arguments::words` matches the plan to the kernel's constant arrays"),
            }
        })
    }

    fn dynamic_shared(&self, at: &'static Location<'static>) -> u32 {
        self.step(Some(at), |block| {
            block.call()?;
            Ok(block.worker.shared.dynamic())
        })
    }

    fn sync_threads(&self, at: &'static Location<'static>) {
        self.rest(State::Block, false, 0, at);
    }

    fn sync_warp(&self, mask: u32, at: &'static Location<'static>) {
        self.rest(|place| State::Warp { mask, place, exchange: None }, mask != u32::MAX, 0, at);
    }

    fn exchange(&self, mask: u32, value: u64, exchange: Exchange, at: &'static Location<'static>) -> u64 {
        self.rest(|place| State::Warp { mask, place, exchange: Some(exchange) }, mask != u32::MAX, value, at);
        self.taken()
    }

    fn active_mask(&self, at: &'static Location<'static>) -> u32 {
        self.rest(State::Together, true, 0, at);
        self.taken() as u32
    }

    fn copy_async(
        &self,
        load: Access,
        from: (u64, u64),
        store: Access,
        to: (u64, u64),
        at: &'static Location<'static>,
    ) {
        self.step(Some(at), |block| block.copy(load, from, store, to, at));
    }

    fn commit_copies(&self, at: &'static Location<'static>) {
        self.step(Some(at), |block| {
            block.call()?;
            block.commit_copies();
            Ok(())
        });
    }

    fn wait_copies(&self, but: Option<u32>, at: &'static Location<'static>) {
        self.step(Some(at), |block| {
            block.call()?;
            block.wait_copies(but);
            Ok(())
        });
    }

    fn pause(&self, is_far: bool, at: &'static Location<'static>) {
        let path = self.step(Some(at), |block| {
            if block.running.left == 0 {
                block.ring()?;
            }
            Ok(block.running.path)
        });
        if is_far {
            self.rest(|_| State::Loop(path), false, 0, at);
        }
    }

    fn end(&self) -> bool {
        self.step(None, Context::end_lane)
    }

    fn clock(&self, at: &'static Location<'static>) -> u64 {
        self.step(Some(at), |block| {
            block.call()?;
            Ok(block.calls())
        })
    }
}
