//! Carries out the accesses of a lane that it does not make by itself.

use crate::context::Context;
use crate::count::start;
use crate::requests::Twice;
use crate::stop::{Stop, twice};
use engine::{AtHand, Element, Kind, Look};
use gpu::device::host::{Access, Number, Op, Site};
use gpu::suite::Space;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

impl Context {
    /// Carries out an access of the running lane.
    pub(super) fn access(
        &mut self,
        access: Access,
        base: u64,
        index: u64,
        value: *mut u8,
        at: &'static Location<'static>,
    ) -> Result<(), Stop> {
        let (site, width) = (Site::new(at, access), access.width());
        self.pulse.lane.tell(site);
        if self.job.launch.is_exhausted() {
            return Err(Stop::new(Kind::NonTerminating, "there is no memory left".to_owned()));
        }
        let element = self.resolve(site, base, index)?;
        if self.copies.under_way.is_any() {
            self.look_under_way(site, element.address)?;
        }
        // SAFETY: resolved and aligned; the facade's `value` is as wide as the access.
        unsafe {
            match access.op() {
                Op::Load(_) => element.load(width, value),
                Op::Store => element.store(width, value),
                Op::AtomicAdd(number) => self.atomic_add(number, element, width, value),
            }
        }
        self.enter_access(site, base, element.address)
    }

    /// Where an access of the running lane goes: the error is the reason to stop it.
    pub(super) fn resolve(&self, site: Site, base: u64, index: u64) -> Result<Element, Stop> {
        let (space, width) = (site.space(), site.width());
        let element = match space {
            Space::Global | Space::Constant => self.job.launch.memory.resolve(base, index, width),
            Space::Shared => self.worker.shared.resolve(base, index, width),
        };
        let outside = || Stop::of(self.worker.outside(self.requests.instruction(site), base, index));
        let Some(element) = element else { return Err(outside()) };
        let address = element.address;
        if !address.is_multiple_of(width) {
            let inside = space == Space::Shared || self.job.launch.memory.contains(address, width);
            let misaligned = || Stop::of(self.worker.misaligned(self.requests.instruction(site), address));
            return Err(if inside { misaligned() } else { outside() });
        }
        Ok(element)
    }

    /// Enters an access of the running lane in its request, once it is carried out: the error is the reason to stop it.
    pub(super) fn enter_access(&mut self, site: Site, base: u64, address: u64) -> Result<(), Stop> {
        if self.worker.look() == Look::Second {
            self.worker.look_second(self.current(), self.requests.instruction(site), address);
        }
        self.add_to_request(site, base, address).map_err(twice)
    }

    /// Enters an access of the running lane in the request that it belongs to. The next time, it finds its memory at hand.
    pub(super) fn add_to_request(&mut self, site: Site, base: u64, address: u64) -> Result<(), Twice> {
        let place = self.requests.find(&mut self.running, site, base);
        if self.requests.is_elsewhere(&self.running, place) {
            self.close_alone()?;
        }
        let (width, is_shared_away) = (site.width(), self.requests.is_shared_away());
        let expected = self.requests.add(&mut self.running, place)?;
        let start = start(&self.worker.shared, site.space(), expected.base());
        expected.enter(self.running.number, (address.wrapping_sub(start).cast_signed() / width.cast_signed()) as u64);
        if expected.base() != base {
            self.requests.part(place);
            return Ok(());
        }
        let alone = matches!(site.access().op(), Op::AtomicAdd(_))
            || self.worker.look() == Look::Second
            || site.space() == Space::Shared && is_shared_away;
        if !alone && base.is_multiple_of(width) {
            let at_hand = match site.space() {
                Space::Shared => self.worker.shared.at_hand(base, width),
                Space::Global | Space::Constant => self.job.launch.memory.at_hand(base, address, width),
            };
            if let Some(AtHand { first, count, elements }) = at_hand {
                // SAFETY: they lie in memory that outlives the block, and are filled, as wide as the access and aligned. Those of
                // global memory are accessed atomically, those of shared memory by this thread alone.
                unsafe { expected.lay_at_hand(first, count, elements) };
            }
        }
        Ok(())
    }

    /// Adds `value` to an element, and leaves the old value in its place.
    ///
    /// # Safety
    /// As [`Element::store`].
    #[inline(never)]
    pub(super) unsafe fn atomic_add(&self, number: Number, element: Element, width: usize, value: *mut u8) {
        // Who waits for others is not silent.
        let thread = self.pulse.lane.thread.swap(0, Relaxed);
        self.job.launch.wait_for(self.worker.turn());
        self.pulse.lane.thread.store(thread, Relaxed);
        let (mut old, mut addend) = (0u64, 0u64);
        // SAFETY: the caller's promise; no value is wider than 8 bytes.
        unsafe {
            element.load(width, (&raw mut old).cast());
            ptr::copy_nonoverlapping(value, (&raw mut addend).cast(), width);
            let sum = add(number, old, addend);
            element.store(width, (&raw const sum).cast());
            ptr::copy_nonoverlapping((&raw const old).cast(), value, width);
        }
    }
}

fn add(number: Number, a: u64, b: u64) -> u64 {
    match number {
        Number::U32 => (a as u32).wrapping_add(b as u32).into(),
        Number::U64 => a.wrapping_add(b),
        Number::F32 => (f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits().into(),
    }
}
