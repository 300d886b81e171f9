//! The stacks that threads of kernels run on, kept for the simulations to come: to map them anew takes longer than many a
//! kernel.

use corosensei::stack::{self, DefaultStack, StackPointer};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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
    /// One that was kept, or a new one.
    pub(super) fn take() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        if let Some(stack) = SPARE.lock().expect("no panic under this lock").pop() {
            return stack;
        }
        let inner = DefaultStack::new(STACK + RESERVE + LINE * COLOURS).expect("memory for a stack");
        let colour = MADE.fetch_add(1, Relaxed) % COLOURS;
        let base = stack::Stack::base(&inner).get() - LINE * colour;
        Self { base: StackPointer::new(base).expect("an address within a stack"), inner }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_its_room_wherever_it_begins_and_goes_on_to_others() {
        let stacks: Vec<_> = (0..2 * COLOURS).map(|_| Stack::take()).collect();
        let begins = |stack: &Stack| stack.base.get() % (LINE * COLOURS);
        assert!(stacks.iter().any(|stack| begins(stack) != begins(&stacks[0])), "all begin at the same line");
        for stack in &stacks {
            let limit = stack::Stack::limit(stack).get();
            assert!(stack.base.get() % stack::STACK_ALIGNMENT == 0 && stack.end() >= limit + RESERVE);
        }
        stacks.into_iter().for_each(Stack::keep);
    }
}
