//! The stacks that threads of kernels run on, kept for the simulations to come: to map them anew takes longer than many a
//! kernel.

use corosensei::stack::{self, DefaultStack, StackPointer};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use system::input;

/// Bytes of stack that a thread of a kernel has, in which kernels keep what finds no room in registers.
pub(super) const STACK: usize = 64 << 10;

/// Bytes behind them that are left to the simulator.
const RESERVE: usize = 32 << 10;

/// Bytes of a cache line, and how many different lines of a page stacks begin at.
const LINE: usize = 64;
const COLOURS: usize = 64;

/// How many stacks are kept at most.
const MOST: usize = 2048;

/// A stack. They all begin at pages, where those of a block's threads would push one another out of the cache: so each begins
/// some lines further down.
pub(super) struct Stack {
    inner: DefaultStack,
    base: StackPointer,
}

// SAFETY: the stack is a part of another one and ends where that does. What is cut off at its base leaves more than enough.
unsafe impl stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.inner.limit()
    }

    #[cfg(windows)]
    fn teb_fields(&self) -> stack::StackTebFields {
        self.inner.teb_fields()
    }

    #[cfg(windows)]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        self.inner.update_teb_fields(stack_limit, guaranteed_stack_bytes);
    }
}

static SPARE: Mutex<Vec<Stack>> = Mutex::new(Vec::new());

impl Stack {
    /// One that was kept, or a new one; the error is the system's.
    pub(super) fn take() -> io::Result<Self> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        if let Some(stack) = SPARE.lock().expect("no panic under this lock").pop() {
            return Ok(stack);
        }
        let inner = DefaultStack::new(STACK + RESERVE + LINE * COLOURS)?;
        let colour = MADE.fetch_add(1, Relaxed) % COLOURS;
        let base = stack::Stack::base(&inner).get() - LINE * colour;
        Ok(Self { base: StackPointer::new(base).expect("an address within a stack"), inner })
    }

    /// Keeps one that nothing runs on any more.
    pub(super) fn keep(self) {
        let mut spare = SPARE.lock().expect("no panic under this lock");
        if spare.len() < MOST {
            spare.push(self);
        }
    }

    /// Where it ends for threads of kernels.
    pub(super) fn end(&self) -> usize {
        self.base.get() - STACK
    }
}

/// Stacks that workers have set aside, so that all of a block's threads can wait at a barrier.
static SET_ASIDE: AtomicUsize = AtomicUsize::new(0);

/// Mappings that Linux lets a process have, where it does not say.
const MAPPINGS: usize = 65_530;

/// How many stacks may be set aside: each takes two mappings of the process, its own and that of its guard page, of which half
/// remain for everything else.
fn most_stacks() -> usize {
    let mappings = input::text("/proc/sys/vm/max_map_count", input::DESCRIPTION);
    mappings.ok().and_then(|number| number.trim().parse().ok()).unwrap_or(MAPPINGS) / 4
}

/// Room for the stacks of some workers, until it is dropped.
pub(super) struct Room {
    stacks: usize,
}

impl Room {
    /// Room for as many of `workers` as there is, one at least, whose blocks have so many threads each; and how many.
    pub(super) fn set_aside(workers: usize, threads: usize) -> (Self, usize) {
        Self::of(&SET_ASIDE, most_stacks(), workers, threads)
    }

    fn of(set_aside: &AtomicUsize, most: usize, workers: usize, threads: usize) -> (Self, usize) {
        let fitting = |taken: usize| workers.min(most.saturating_sub(taken) / threads.max(1)).max(1);
        let taken = set_aside.fetch_update(Relaxed, Relaxed, |taken| Some(taken + fitting(taken) * threads));
        let (Ok(taken) | Err(taken)) = taken;
        (Self { stacks: fitting(taken) * threads }, fitting(taken))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        SET_ASIDE.fetch_sub(self.stacks, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_as_many_as_have_room_for_their_stacks_and_one_at_least() {
        let set_aside = AtomicUsize::new(0);
        let workers = |workers, threads| {
            let (room, workers) = Room::of(&set_aside, 10_000, workers, threads);
            // It is left set aside.
            std::mem::forget(room);
            workers
        };
        assert_eq!([workers(256, 32), workers(256, 1024), workers(256, 64), workers(2, 1024)], [256, 1, 12, 1]);
    }

    #[test]
    fn a_stack_has_its_room_wherever_it_begins_and_goes_on_to_others() {
        let stacks: Vec<_> = (0..2 * COLOURS).map(|_| Stack::take().expect("memory for a stack")).collect();
        let begins = |stack: &Stack| stack.base.get() % (LINE * COLOURS);
        assert!(stacks.iter().any(|stack| begins(stack) != begins(&stacks[0])), "all begin at the same line");
        for stack in &stacks {
            let limit = stack::Stack::limit(stack).get();
            assert!(stack.base.get() % stack::STACK_ALIGNMENT == 0 && stack.end() >= limit + RESERVE);
        }
        stacks.into_iter().for_each(Stack::keep);
    }
}
