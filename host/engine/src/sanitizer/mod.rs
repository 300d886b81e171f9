//! The part of the sanitizer that remembers: races, and loads of memory that nobody wrote.
//!
//! Two accesses race when different threads make them, a byte is common to both, not both only read it, and nothing orders them;
//! unless both are atomics or volatile accesses whose scopes reach each other. What orders accesses of a block is in [`order`]: its
//! barriers and, within a warp, a warp barrier among the lanes of its mask. A shuffle exchanges registers and orders no memory. What
//! orders accesses of any threads, of other blocks too, is in [`handover`]: fences, and the atomics and volatile accesses that tell of
//! them. Two stores of the same value race like any other: neither compiler nor GPU promises anything of them.
//!
//! The first look ([`filter`], and [`tile`] at shared memory) goes along with blocks that run in parallel, request by request. It is cheap, and may suspect
//! too much. Once it
//! does, the launch begins anew, block after block, under the second look ([`history`]), which is exact and names the
//! accesses: so a report is the same on any number of threads, and only a suspicious kernel pays for it.

mod filter;
mod handover;
mod history;
mod order;
mod tile;

pub(crate) use history::{Race, Uninitialized, Why};

use crate::instruction::Instruction;
use crate::memory::{Memory, offset_of};
use crate::request::Request;
use filter::{Access, GlobalWord, Row, Shadow};
use gpu::suite::{Before, Plan, Scope, Space};
use handover::Handover;
use history::History;
use order::Order;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use system::words::Refused;
use tile::{SharedShadow, SharedWord};

/// How closely the sanitizer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// At bounds, alignment, barriers and shuffles alone.
    Away,
    /// At every access, in case it is suspicious.
    First,
    /// At every access, to name those that are wrong.
    Second,
}

/// Who touched the buffers that a kernel may write: what it only reads cannot race.
pub(crate) struct Shadows {
    plan: Arc<Plan>,
    buffers: Vec<Option<Shadow>>,
    /// Whether the first look calls for the second.
    suspicious: AtomicBool,
}

impl Shadows {
    /// Nobody has touched any of the plan's buffers, of which those that are `written` have a shadow.
    pub(crate) fn new(plan: &Arc<Plan>, written: &[bool]) -> Result<Self, Refused> {
        let buffers = plan.buffers.iter().zip(written);
        let buffers = buffers.map(|(buffer, is_written)| is_written.then(|| Shadow::new(buffer)).transpose());
        Ok(Self {
            buffers: buffers.collect::<Result<_, _>>()?,
            plan: Arc::clone(plan),
            suspicious: AtomicBool::new(false),
        })
    }

    /// Bytes that they take at most.
    pub(crate) fn bytes(plan: &Plan, written: &[bool]) -> u64 {
        let written = plan.buffers.iter().zip(written).filter(|(_, is_written)| **is_written);
        written.map(|(buffer, _)| buffer.len.saturating_mul(Shadow::BYTES)).fold(0, u64::saturating_add)
    }

    /// How many cells somebody has touched.
    pub(crate) fn touched(&self) -> u64 {
        self.buffers.iter().flatten().map(Shadow::touched).sum()
    }

    /// Whether the first look calls for the second.
    pub(crate) fn are_suspicious(&self) -> bool {
        self.suspicious.load(Relaxed)
    }

    /// That of the buffer of an address, unless the kernel only reads it.
    fn of(&self, address: u64) -> Option<&Shadow> {
        self.buffers[Memory::number(address)].as_ref()
    }
}

/// What one worker remembers.
pub(crate) struct Sanitizer {
    look: Look,
    order: Order,
    /// What threads hand on, under the second look.
    handover: Handover,
    /// The block that runs, as a word of the filter.
    global_word: GlobalWord,
    /// How many cells of global memory this worker was the first to touch.
    claims: u64,
    /// What the threads of a warp do next, as words of the filter: of the one that begins at this thread, unless what orders
    /// them has changed.
    shared_words: (Option<usize>, [SharedWord; 32]),
    /// Whether they do it at the same moment.
    alike: bool,
    shared_shadow: SharedShadow,
    /// Room for the lanes of a request.
    shared_row: Row<SharedWord>,
    global_row: Row<GlobalWord>,
    shared: History,
    global: History,
}

impl Sanitizer {
    pub(crate) fn new(look: Look, threads: usize) -> Self {
        let order = Order::new(threads);
        let global_word = GlobalWord::new(order.now(0));
        let (shared, global) = (History::default(), History::default());
        Self {
            look,
            order,
            handover: Handover::default(),
            global_word,
            claims: 0,
            shared_words: (None, [SharedWord::default(); 32]),
            alike: false,
            shared_shadow: SharedShadow::new(),
            shared_row: Row::new(),
            global_row: Row::new(),
            shared,
            global,
        }
    }

    /// A block begins, the `turn`-th of the run.
    pub(crate) fn begin(&mut self, turn: u64) {
        self.order.begin(turn);
        if self.look == Look::Second {
            self.handover.begin(turn, self.order.threads());
        }
        self.shared_words.0 = None;
        self.global_word = GlobalWord::new(self.order.now(0));
        self.shared.clear();
    }

    /// The lanes in `mask` of the warp that begins at thread `first` have met at a warp barrier.
    pub(crate) fn meet(&mut self, first: usize, mask: u32) {
        self.handover.meet(first, mask);
        self.order.meet(first, mask);
        self.shared_words.0 = None;
    }

    /// The whole block has met.
    pub(crate) fn pass_barrier(&mut self) {
        self.handover.pass_barrier();
        self.order.pass_barrier();
        self.shared_words.0 = None;
    }

    /// A thread makes a fence.
    pub(crate) fn fence(&mut self, thread: usize, scope: Scope) {
        if self.look == Look::Second {
            self.order.fence(thread);
            self.handover.fence(thread, scope, &self.order);
        }
    }

    /// How closely it looks.
    pub(crate) fn look(&self) -> Look {
        self.look
    }

    /// Looks for the first time at what `lanes` of a request did, those of the warp that begins at thread `first`, since none
    /// of them met another one. What a thread did before was looked at before.
    pub(crate) fn look_first(&mut self, shadows: &Shadows, request: &Request<'_>, lanes: u32, first: usize) {
        let suspicious = match request.instruction.space {
            _ if lanes == 0 => false,
            Space::Constant => false,
            Space::Shared => self.suspects_shared(request, lanes, first),
            Space::Global => self.suspects_global(shadows, request, lanes, first),
        };
        if suspicious {
            shadows.suspicious.store(true, Relaxed);
        }
    }

    fn suspects_shared(&mut self, request: &Request<'_>, lanes: u32, first: usize) -> bool {
        let (operation, width) = (Access::of(request.instruction), request.instruction.width());
        let Self { order, shared_shadow: shadow, shared_words: (begin, words), alike, shared_row: row, .. } = self;
        if *begin != Some(first) {
            *begin = Some(first);
            for (word, thread) in words.iter_mut().zip(first..order.threads()) {
                *word = SharedWord::new(order.now(thread));
            }
            *alike = words.iter().all(|word| words[0].is_alike(*word));
        }
        let is_one_word = *alike && operation == Access::Load && lanes == u32::MAX && request.step == Some(0);
        if is_one_word && shadow.touch_together(request.first(), width, words[0], order) {
            return false;
        }
        if lanes == u32::MAX && request.step == Some(width.cast_signed()) {
            return shadow.touch_side_by_side(request.first(), width, operation, words, order);
        }
        row.clear();
        request.each(lanes, |lane, place| row.push(place, words[lane]));
        shadow.touch(row, width, operation, order)
    }

    fn suspects_global(&mut self, shadows: &Shadows, request: &Request<'_>, lanes: u32, first: usize) -> bool {
        let (operation, width) = (Access::of(request.instruction), request.instruction.width());
        let Self { order, global_word, global_row: row, claims, .. } = self;
        let word = global_word.at(order.now(first));
        row.clear();
        // By one pointer, all go to one buffer.
        if request.base.is_some() {
            // One that the kernel only reads has no shadow.
            let Some(shadow) = shadows.of(request.first()) else { return false };
            if lanes == u32::MAX && request.step == Some(width.cast_signed()) {
                return shadow.touch_side_by_side(offset_of(request.first()), width, operation, word, claims);
            }
            request.each(lanes, |lane, address| row.push(offset_of(address), word.of_lane(lane)));
            return shadow.touch(row, width, operation, claims);
        }
        let mut suspicious = false;
        request.each(lanes, |lane, address| {
            if let Some(shadow) = shadows.of(address) {
                row.push(offset_of(address), word.of_lane(lane));
                suspicious |= shadow.touch(row, width, operation, claims);
                row.clear();
            }
        });
        suspicious
    }

    /// Looks for the second time at an access of `thread`; returns what it races with.
    #[inline(never)]
    pub(crate) fn look_second(
        &mut self,
        shadows: &Shadows,
        thread: usize,
        instruction: Instruction,
        address: u64,
    ) -> Option<Race> {
        let now = self.order.now(thread);
        let Self { order, handover, .. } = self;
        let race = match instruction.space {
            Space::Constant => None,
            Space::Shared => self.shared.touch(address, instruction, now, order, handover, false),
            Space::Global => {
                shadows.of(address)?;
                let before = &shadows.plan.buffers[Memory::number(address)].before;
                let initialized = !matches!(before, Before::Poison);
                self.global.touch(address, instruction, now, order, handover, initialized)
            }
        };
        if instruction.space != Space::Constant {
            handover.access(now, instruction.space, address, instruction.operation, instruction.scope);
        }
        race
    }

    /// How many cells of global memory this worker was the first to touch.
    pub(crate) fn claims(&self) -> u64 {
        self.claims
    }

    /// The block's loads of shared memory that nobody wrote.
    pub(crate) fn uninitialized_shared(&mut self) -> Vec<Uninitialized> {
        self.shared.take_uninitialized()
    }

    /// The loads of global memory that nobody wrote, in the order of the blocks.
    pub(crate) fn uninitialized_global(&mut self) -> Vec<Uninitialized> {
        self.global.take_uninitialized()
    }
}

#[cfg(test)]
mod tests;
