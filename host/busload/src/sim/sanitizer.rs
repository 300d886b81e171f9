//! The part of the sanitizer that remembers: races, and loads of memory that nobody wrote.
//!
//! Two accesses race when different threads make them, a byte is common to both, not both only read it or only add to it
//! atomically, and nothing orders them. What orders accesses is in [`order`]: a block's barriers and, within a warp, `sync_warp`
//! among the lanes of its mask. A shuffle exchanges registers and orders no memory, and nothing orders the blocks of a
//! launch. Two stores of the same value race like any other: neither compiler nor GPU promises anything of them.
//!
//! The first look ([`filter`]) goes along with blocks that run in parallel, request by request. It is cheap, and may suspect
//! too much. Once it
//! does, the launch begins anew, block after block, under the second look ([`history`]), which is exact and names the
//! accesses: so a report is the same on any number of threads, and only a suspicious kernel pays for it.

mod filter;
mod history;
mod order;

pub(super) use filter::Shadow;
pub(super) use history::{Race, Uninitialized};

use super::memory::{Memory, offset_of};
use super::requests::Request;
use super::{Job, SimulationError};
use filter::{GlobalWord, Row, SharedShadow, SharedWord};
use gpu::device::host::{Kernel, ParameterKind, Site, Space};
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
    let is_it =
        |(name, kind): &(&str, ParameterKind)| *name == buffer.name && matches!(kind, ParameterKind::GlobalMut(_));
    kernel.parameters.iter().any(is_it)
}

/// Shadows of the buffers that a kernel may write.
pub(super) fn shadows(kernel: &Kernel, plan: &Plan) -> Result<Vec<Option<Shadow>>, SimulationError> {
    let shadow = |buffer| is_written(kernel, buffer).then(|| Shadow::new(buffer)).transpose();
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
    /// The block that runs, as a word of the filter.
    global_word: GlobalWord,
    /// How many cells of global memory this worker was the first to touch.
    claims: u64,
    /// What the threads of a warp do next, as words of the filter: of the one that begins at this thread, unless what orders
    /// them has changed.
    shared_words: (Option<usize>, [SharedWord; 32]),
    shared_shadow: SharedShadow,
    /// Room for the lanes of a request.
    shared_row: Row<SharedWord>,
    global_row: Row<GlobalWord>,
    shared: History,
    global: History,
}

impl Sanitizer {
    pub(super) fn new(look: Look, threads: usize) -> Self {
        let order = Order::new(threads);
        let global_word = GlobalWord::new(order.now(0));
        let (shared, global) = (History::default(), History::default());
        Self {
            look,
            order,
            global_word,
            claims: 0,
            shared_words: (None, [SharedWord::default(); 32]),
            shared_shadow: SharedShadow::new(),
            shared_row: Row::new(),
            global_row: Row::new(),
            shared,
            global,
        }
    }

    /// A block begins, the `turn`-th of the run.
    pub(super) fn begin(&mut self, turn: u64) {
        self.order.begin(turn);
        self.shared_words.0 = None;
        self.global_word = GlobalWord::new(self.order.now(0));
        self.shared.clear();
    }

    /// The lanes in `mask` of the warp that begins at thread `first` have met at a `sync_warp`.
    pub(super) fn meet(&mut self, first: usize, mask: u32) {
        self.order.meet(first, mask);
        self.shared_words.0 = None;
    }

    /// The whole block has met.
    pub(super) fn pass_barrier(&mut self) {
        self.order.pass_barrier();
        self.shared_words.0 = None;
    }

    /// How closely it looks.
    pub(super) fn look(&self) -> Look {
        self.look
    }

    /// Looks for the first time at what `lanes` of a request did, those of the warp that begins at thread `first`, since none
    /// of them met another one. What a thread did before was looked at before.
    pub(super) fn look_first(&mut self, job: &Job, request: &Request<'_>, lanes: u32, first: usize) {
        let suspicious = match request.site.space() {
            _ if lanes == 0 => false,
            Space::Constant => false,
            Space::Shared => self.suspects_shared(request, lanes, first),
            Space::Global => self.suspects_global(job, request, lanes, first),
        };
        if suspicious {
            job.suspicious.store(true, Relaxed);
        }
    }

    fn suspects_shared(&mut self, request: &Request<'_>, lanes: u32, first: usize) -> bool {
        let (operation, width) = (request.site.operation(), request.site.width());
        let Self { order, shared_shadow: shadow, shared_words: (begin, words), shared_row: row, .. } = self;
        if *begin != Some(first) {
            *begin = Some(first);
            for (word, thread) in words.iter_mut().zip(first..order.threads()) {
                *word = SharedWord::new(order.now(thread));
            }
        }
        row.clear();
        request.each(lanes, |lane, place| row.push(place, words[lane]));
        shadow.touch(row, width, operation, order)
    }

    fn suspects_global(&mut self, job: &Job, request: &Request<'_>, lanes: u32, first: usize) -> bool {
        let (operation, width) = (request.site.operation(), request.site.width());
        let shadow_of = |address| job.shadows[Memory::number(address)].as_ref();
        let Self { order, global_word, global_row: row, claims, .. } = self;
        let word = global_word.at(order.now(first));
        row.clear();
        // By one pointer, all go to one buffer.
        if request.base.is_some() {
            // One that the kernel only reads has no shadow.
            let Some(shadow) = shadow_of(request.first()) else { return false };
            request.each(lanes, |lane, address| row.push(offset_of(address), word.of_lane(lane)));
            return shadow.touch(row, width, operation, claims);
        }
        let mut suspicious = false;
        request.each(lanes, |lane, address| {
            if let Some(shadow) = shadow_of(address) {
                row.push(offset_of(address), word.of_lane(lane));
                suspicious |= shadow.touch(row, width, operation, claims);
                row.clear();
            }
        });
        suspicious
    }

    /// Looks for the second time at an access of `thread`; returns what it races with.
    #[inline(never)]
    pub(super) fn look_second(&mut self, job: &Job, thread: usize, site: Site, address: u64) -> Option<Race> {
        let now = self.order.now(thread);
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

    /// How many cells of global memory this worker was the first to touch.
    pub(super) fn claims(&self) -> u64 {
        self.claims
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
