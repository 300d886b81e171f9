//! The copies of a block that have begun and not arrived.

use engine::{Element, Instruction, UnderWay};
use std::collections::VecDeque;

/// The copies of a block.
#[derive(Default)]
pub(super) struct Copies {
    /// Those of each thread that have begun and not arrived, in their order, and how many groups the thread has made up.
    threads: Vec<(VecDeque<Copy>, u32)>,
    /// Where they go, if the sanitizer looks.
    pub(super) under_way: UnderWay,
}

/// A copy that has begun.
pub(super) struct Copy {
    /// How many groups the thread had made up before.
    pub(super) group: u32,
    pub(super) data: u128,
    pub(super) to: Element,
    pub(super) instruction: Instruction,
}

impl Copies {
    /// Another block begins.
    pub(super) fn clear(&mut self) {
        self.threads.clear();
        self.under_way.clear();
    }

    /// Those of a thread, and how many groups it has made up.
    pub(super) fn of(&mut self, thread: usize) -> &mut (VecDeque<Copy>, u32) {
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Default::default);
        }
        &mut self.threads[thread]
    }
}
