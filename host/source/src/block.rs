//! The scheduler: runs a block's threads as coroutines, warp by warp, from one meeting point to the next.

use crate::context::Context;
use crate::job::{Job, Pulse};
use crate::lane;
use crate::overflow::{self, Overflow};
use crate::place::Place;
use crate::stack::Stack;
use crate::thread::{State, Thread, discard};
use corosensei::{Coroutine, CoroutineResult};
use engine::{Finding, Kind, Machine, Position, SimulationError, Worker, triple};
use std::any::Any;
use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Once};

/// Runs blocks, one after another, on the calling thread.
pub(super) struct Runner {
    job: Arc<Job>,
    /// Shared with the lane that runs: see `lane`.
    context: *mut Context,
    /// Stacks on which no thread waits.
    idle: Vec<Thread>,
}

impl Runner {
    pub(super) fn new(job: Arc<Job>, pulse: Arc<Pulse>) -> Self {
        catch_messages();
        overflow::catch_faults();
        let context = Context::new(Arc::clone(&job), pulse);
        // SAFETY: valid until `drop` puts none in its place.
        unsafe {
            lane::serve(context);
            Context::enter(context);
        }
        Self { job, context, idle: Vec::new() }
    }

    /// The block's state, between two steps of a lane.
    pub(super) fn context(&mut self) -> &mut Context {
        // SAFETY: the pointer comes from a box that `drop` frees; no lane runs while `self` is borrowed here.
        unsafe { &mut *self.context }
    }
}

impl Machine for Job {
    type Runner = Runner;

    fn runner(self: &Arc<Self>, worker: usize) -> Runner {
        Runner::new(Arc::clone(self), Arc::clone(&self.pulse[worker]))
    }

    fn watch(&self) -> Option<Finding> {
        self.silent()
    }
}

impl engine::Runner for Runner {
    fn run(&mut self, block: u64, turn: u64) {
        self.context().begin(turn);
        self.context().pulse.block.store(block, Relaxed);
        let warps = self.context().lanes.len().div_ceil(32);
        loop {
            let mut aside = Vec::new();
            for warp in 0..warps {
                let lanes = self.lanes(warp);
                self.context().begin_warp(lanes);
                if self.run_warp(warp) {
                    aside.push(warp);
                }
                if self.context().stopped || self.job.launch.is_exhausted() {
                    return self.abandon();
                }
            }
            if !self.run_aside(aside) {
                return self.abandon();
            }
            if !self.release_block() {
                break;
            }
        }
        if self.context().stopped {
            self.abandon();
        }
    }

    fn worker(&mut self) -> &mut Worker {
        &mut self.context().worker
    }
}

impl Runner {
    pub(super) fn lanes(&mut self, warp: usize) -> std::ops::Range<usize> {
        32 * warp..(32 * warp + 32).min(self.context().lanes.len())
    }

    /// Runs warps that have stepped aside until each of their lanes has ended or waits for the block: false if the block cannot go on.
    fn run_aside(&mut self, mut aside: Vec<usize>) -> bool {
        while !aside.is_empty() {
            let mut again = Vec::new();
            for warp in aside {
                let lanes = self.lanes(warp);
                self.context().take_up_warp(lanes);
                if self.run_warp(warp) {
                    again.push(warp);
                }
                if self.context().stopped || self.job.launch.is_exhausted() {
                    return false;
                }
            }
            aside = again;
        }
        true
    }

    /// Runs the lanes of a warp, which has begun, until each has ended or waits for the block, and counts what they asked for; or
    /// until it steps aside for others of the block, since some of its lanes go round and round and read what others write: true
    /// then.
    fn run_warp(&mut self, warp: usize) -> bool {
        loop {
            self.context().pulse.show();
            let mut next = 0;
            while let Some(lane) = self.context().select(next) {
                let waiting = lane.stack.take();
                self.resume(waiting);
                if self.context().stopped {
                    self.context().deselect();
                    return false;
                }
                // A lane that ends goes on as those behind it.
                next = self.context().number() + 1;
            }
            self.context().deselect();
            if !self.context().rested {
                break;
            }
            if self.release_warp(warp) {
                continue;
            }
            if self.release_loops(warp) {
                let others = self.context().lanes.len() > 32;
                if std::mem::take(&mut self.context().listens) && others {
                    self.context().count();
                    return true;
                }
            } else if !self.release_together(warp) {
                break;
            }
        }
        if !self.context().stopped {
            self.context().count_at_barrier();
        }
        false
    }

    /// Runs the selected thread, on the stack on which it waits, until it rests or ends; with it, if it has not begun, those
    /// of the warp that follow, one after another on the same stack, until one of them rests.
    fn resume(&mut self, waiting: Option<Thread>) {
        let mut stack = match waiting.or_else(|| self.idle.pop()).map_or_else(|| self.spawn(), Ok) {
            Ok(stack) => stack,
            Err(reason) => {
                self.job.launch.break_off(SimulationError::NoRoom { what: "a stack", reason });
                return self.context().stopped = true;
            }
        };
        let coroutine = &mut stack.coroutine;
        let guard = coroutine.trap_handler();
        // SAFETY: the context, whose pulse this is, is valid until `drop`; it is shared with the lane that runs.
        let lane = unsafe { &(*Arc::as_ptr(&(*self.context).pulse)).lane };
        match overflow::on_stack(guard, self.job.kernel.name, lane, || coroutine.resume(())) {
            CoroutineResult::Yield(()) => {
                let context = self.context();
                let (current, stopped) = (context.current(), context.stopped);
                let lane = &mut context.lanes[current];
                match lane.state {
                    State::Done if !stopped => self.idle.push(stack),
                    _ => lane.stack = Some(stack),
                }
            }
            CoroutineResult::Return(Overflow) => self.context().fail(Kind::StackOverflow, None, Overflow::detail()),
        }
    }

    /// A stack that runs one thread after another.
    fn spawn(&self) -> io::Result<Thread> {
        let context = self.context;
        let job: *const Job = &raw const *self.job;
        let stack = Stack::take()?;
        let end = stack.end();
        let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: the scheduler holds no reference while a lane runs.
            unsafe { ((*context).yielder, (*context).stack_end) = (yielder, end) };
            let run = || loop {
                // SAFETY: the job outlives the runner, which outlives its coroutines; a lane is selected, and no reference
                // into the context is held while it runs.
                unsafe {
                    ((*job).kernel.entry)(&(*job).words);
                    (*context).leave(State::Done);
                    lane::suspend(context);
                }
            };
            let Err(payload) = catch_unwind(AssertUnwindSafe(run));
            let (at, message) = panic_message(&*payload);
            // Nothing is dropped of what is still on a stack that is given up.
            drop(payload);
            // SAFETY: as above.
            unsafe {
                (*context).fail(Kind::Panic, at, message);
                loop {
                    lane::suspend(context);
                }
            }
        });
        Ok(Thread { coroutine: Box::new(coroutine) })
    }

    /// Lets the lanes that rest in a loop go on; false if none does. If all that can still run rest in the same iteration
    /// of the same loop, what they have asked for so far is counted first.
    fn release_loops(&mut self, warp: usize) -> bool {
        let lanes = self.lanes(warp);
        let context = self.context();
        if context.stopped {
            return false;
        }
        let path_of = |context: &Context, lane: usize| match context.lanes[lane].state {
            State::Loop(path) => Some(path),
            _ => None,
        };
        let paths: Vec<_> = lanes.clone().filter_map(|lane| path_of(context, lane)).collect();
        let elsewhere = |lane: usize| matches!(context.lanes[lane].state, State::Warp { .. } | State::Together(_));
        if paths.windows(2).all(|pair| pair[0] == pair[1]) && !lanes.clone().any(elsewhere) {
            let resting = lanes.clone().filter(|lane| path_of(context, *lane).is_some());
            let mask = resting.fold(0, |mask, lane| mask | 1 << (lane % 32));
            context.count_passed(mask);
        } else {
            // They may meet one by one before they are counted.
            context.look_first_at_all();
        }
        for lane in lanes {
            if path_of(context, lane).is_some() {
                context.lanes[lane].state = State::Ready;
            }
        }
        !paths.is_empty()
    }

    /// Every thread has come to the block's barrier or has ended: lets them go on; false if all have ended.
    fn release_block(&mut self) -> bool {
        let context = self.context();
        let Some((barrier, threads)) = context.at_barrier.take() else {
            context.worker.end();
            return false;
        };
        if threads < context.lanes.len() {
            if self.diverges(barrier) {
                return false;
            }
            self.context().pass_by(barrier);
        }
        let context = self.context();
        context.pass_barrier(barrier.at);
        !context.stopped
    }

    /// Whether a thread waits at another barrier than this one, at which others wait: that is a finding. A barrier waits for no
    /// thread that has ended.
    fn diverges(&mut self, barrier: Place) -> bool {
        let context = self.context();
        let find = |is_here: bool| {
            context.lanes.iter().enumerate().find_map(|(thread, lane)| match lane.state {
                State::Block(place) if place.is(barrier) == is_here => Some((thread, place)),
                _ => None,
            })
        };
        let (Some((here, _)), Some((there, elsewhere))) = (find(true), find(false)) else { return false };
        // The lowest thread is the one that waits.
        let [(thread, place), (other, other_place)] = match here < there {
            true => [(here, barrier), (there, elsewhere)],
            false => [(there, elsewhere), (here, barrier)],
        };
        let who = triple(context.thread_idx(other));
        let [at, other_at] = [place.told_from(other_place), other_place.told_from(place)];
        let detail = match place.at == other_place.at {
            false => format!("a thread waits at this barrier while thread {who} waits at another"),
            true => format!("a thread waits at the barrier of this call while thread {who} waits at that of another"),
        };
        context.find(thread, Kind::DivergentBarrier, Some(at), Some(other_at), detail);
        context.stopped = true;
        true
    }

    /// Drops the threads that will not run again.
    fn abandon(&mut self) {
        self.context().lanes.iter_mut().filter_map(|lane| lane.stack.take()).for_each(discard);
        self.context().forget();
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.abandon();
        self.idle.drain(..).for_each(discard);
        // SAFETY: null.
        unsafe { Context::enter(std::ptr::null_mut()) };
        // SAFETY: made by `Box::into_raw` in `Context::new`; no lane is left that could use it.
        drop(unsafe { Box::from_raw(self.context) });
    }
}

thread_local! {
    /// Where the last panic of a lane on this thread was, and what it said.
    static MESSAGE: RefCell<Option<(Position, String)>> = const { RefCell::new(None) };
}

/// Keeps the panics of kernels out of standard error: they become findings.
fn catch_messages() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if overflow::is_on_stack() {
                let position = info.location().map(|at| Position {
                    file: Box::leak(at.file().to_owned().into_boxed_str()),
                    line: at.line(),
                    column: at.column(),
                });
                let message = info.payload_as_str().unwrap_or("the kernel panicked").to_owned();
                MESSAGE.set(position.map(|position| (position, message)));
            } else {
                before(info);
            }
        }));
    });
}

fn panic_message(payload: &(dyn Any + Send)) -> (Option<Position>, String) {
    match MESSAGE.take() {
        Some((position, message)) => (Some(position), message),
        None => (None, payload.downcast_ref::<&str>().map_or("the kernel panicked", |text| text).to_owned()),
    }
}
