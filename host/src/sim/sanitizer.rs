//! The part of the sanitizer that remembers: races, and loads of memory that nobody wrote.
//!
//! Two accesses race when different threads make them, a byte is common to both, not both only read it or only add to it
//! atomically, and nothing orders them. What orders accesses is in [`order`]: a block's barriers and, within a warp, `sync_warp`
//! among the lanes of its mask. A shuffle exchanges registers and orders no memory, and nothing orders the blocks of a
//! launch. Two stores of the same value race like any other: neither compiler nor GPU promises anything of them.
//!
//! The first look ([`filter`]) goes along with blocks that run in parallel. It is cheap, and may suspect too much. Once it
//! does, the launch begins anew, block after block, under the second look ([`history`]), which is exact and names the
//! accesses: so a report is the same on any number of threads, and only a suspicious kernel pays for it.

mod filter;
mod history;
mod order;

pub(super) use filter::{Cells, Shadow};
pub(super) use history::{Race, Uninitialized};

use super::Job;
use super::memory::{Memory, PAGE, RecentPages, offset_of};
use super::requests::{Site, operation};
use filter::{GlobalWord, SharedShadow, SharedWord};
use gpu::device::host::{Access, Kernel, ParameterKind, Space};
use gpu::suite::{Before, Buffer, Plan};
use history::History;
use order::Order;
use std::sync::atomic::Ordering::Relaxed;

/// How closely the sanitizer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// At bounds, alignment, barriers and shuffles alone.
    Away,
    /// At every access, in case it is suspicious.
    First,
    /// At every access, to name those that are wrong.
    Second,
}

/// Whether a kernel may write a buffer: what it only reads cannot race.
fn is_written(kernel: &Kernel, buffer: &Buffer) -> bool {
    kernel.parameters.contains(&(buffer.name, ParameterKind::GlobalMut))
}

/// Shadows of the buffers that a kernel may write.
pub(super) fn shadows(kernel: &Kernel, plan: &Plan) -> Vec<Option<Shadow>> {
    let shadow = |buffer| is_written(kernel, buffer).then(|| Shadow::new(buffer));
    plan.buffers.iter().map(shadow).collect()
}

/// Bytes that the shadows take at most.
pub(super) fn shadow_bytes(kernel: &Kernel, plan: &Plan) -> u64 {
    let written = plan.buffers.iter().filter(|buffer| is_written(kernel, buffer));
    written.map(|buffer| buffer.len.saturating_mul(Shadow::BYTES)).fold(0, u64::saturating_add)
}

/// What one worker remembers.
pub(super) struct Sanitizer {
    look: Look,
    order: Order,
    /// The thread that runs, and the moment of what it does next as words of the filter.
    thread: usize,
    global_word: GlobalWord,
    shared_word: SharedWord,
    shared_shadow: SharedShadow,
    shared: History,
    global: History,
}

impl Sanitizer {
    pub(super) fn new(look: Look, threads: usize) -> Self {
        let order = Order::new(threads);
        let now = order.now(0);
        Self {
            look,
            order,
            thread: 0,
            global_word: GlobalWord::new(now),
            shared_word: SharedWord::new(now),
            shared_shadow: SharedShadow::new(),
            shared: History::default(),
            global: History::default(),
        }
    }

    /// A block begins, the `turn`-th of the run.
    pub(super) fn begin(&mut self, turn: u64) {
        self.order.begin(turn);
        self.global_word = GlobalWord::new(self.order.now(0));
        self.shared.clear();
    }

    /// `thread` is the one that runs.
    #[inline(always)]
    pub(super) fn select(&mut self, thread: usize) {
        let now = self.order.now(thread);
        self.thread = thread;
        self.global_word = self.global_word.at(now);
        self.shared_word = SharedWord::new(now);
    }

    /// The lanes in `mask` of the warp that begins at thread `first` have met at a `sync_warp`.
    pub(super) fn meet(&mut self, first: usize, mask: u32) {
        self.order.meet(first, mask);
    }

    /// The whole block has met.
    pub(super) fn pass_barrier(&mut self) {
        self.order.pass_barrier();
    }

    /// Whether it looks at accesses at all.
    pub(super) fn is_looking(&self) -> bool {
        self.look != Look::Away
    }

    /// Looks at an access of the running thread; returns what it races with.
    #[inline(always)]
    pub(super) fn look(
        &mut self,
        job: &Job,
        recent: &mut RecentPages,
        site: Site,
        access: Access,
        address: u64,
    ) -> Option<Race> {
        match self.look {
            Look::Away => None,
            Look::First => {
                self.look_first(job, recent, access, address);
                None
            }
            Look::Second => self.examine(job, site, address),
        }
    }

    /// Looks for the first time at an access of the running thread to global memory, in a page with this `shadow`, if it is
    /// plainly not suspicious; says whether it did.
    #[inline(always)]
    pub(super) fn look_plainly(&self, shadow: &Cells, access: Access, address: u64) -> bool {
        // SAFETY: the address is resolved, so that the access lies in the page; shadows live as long as the job.
        unsafe { shadow.touch_plainly(address % PAGE, access.width() as u64, operation(access), self.global_word) }
    }

    /// Looks for the first time at an access of the running thread.
    #[inline(always)]
    pub(super) fn look_first(&mut self, job: &Job, recent: &mut RecentPages, access: Access, address: u64) {
        if self.suspects(job, recent, access, address) {
            job.suspicious.store(true, Relaxed);
        }
    }

    #[inline(always)]
    fn suspects(&mut self, job: &Job, recent: &mut RecentPages, access: Access, address: u64) -> bool {
        let (operation, width) = (operation(access), access.width() as u64);
        match access.space() {
            Space::Constant => false,
            Space::Shared => {
                let (shadow, now) = (&mut self.shared_shadow, self.shared_word);
                !shadow.touch_plainly(address, width, operation, now, &self.order)
                    && shadow.touch(address, width, operation, now, &self.order)
            }
            Space::Global => {
                let (shadow, offset) = (job.shadows[Memory::number(address)].as_ref(), offset_of(address));
                recent.shade(address, shadow.map_or(Cells::NONE, |shadow| shadow.cells(offset)));
                shadow.is_some_and(|shadow| shadow.touch(offset, width, operation, self.global_word))
            }
        }
    }

    #[inline(never)]
    fn examine(&mut self, job: &Job, site: Site, address: u64) -> Option<Race> {
        let now = self.order.now(self.thread);
        match site.space() {
            Space::Constant => None,
            Space::Shared => self.shared.touch(address, site, now, &self.order, false),
            Space::Global => {
                let buffer = Memory::number(address);
                job.shadows[buffer].as_ref()?;
                let initialized = !matches!(job.plan.buffers[buffer].before, Before::Poison);
                self.global.touch(address, site, now, &self.order, initialized)
            }
        }
    }

    /// The block's loads of shared memory that nobody wrote.
    pub(super) fn uninitialized_shared(&mut self) -> Vec<Uninitialized> {
        self.shared.take_uninitialized()
    }

    /// The loads of global memory that nobody wrote, in the order of the blocks.
    pub(super) fn uninitialized_global(&mut self) -> Vec<Uninitialized> {
        self.global.take_uninitialized()
    }
}
