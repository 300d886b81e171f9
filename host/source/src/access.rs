//! Carries out the accesses of a lane that it does not make by itself.

use crate::atomic;
use crate::context::Context;
use crate::count::start;
use crate::requests::Twice;
use crate::stop::{Stop, twice};
use engine::{AtHand, Element, Kind, Look};
use gpu::device::host::{Access, Atomic, Site};
use gpu::suite::{Operation, Scope, Space};
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
        let element = self.begin_access(site, base, index)?;
        // SAFETY: resolved and aligned; the facade's `value` is as wide as the access.
        unsafe {
            match site.operation() {
                Operation::Load => element.load(width, value),
                Operation::Store | Operation::Atomic => element.store(width, value),
            }
        }
        self.enter_access(site, base, element.address)
    }

    /// Carries out an atomic of the running lane: leaves what stood there before in the place of its operand.
    pub(super) fn atomic(
        &mut self,
        access: Access,
        atomic: Atomic,
        base: u64,
        index: u64,
        value: *mut u8,
        at: &'static Location<'static>,
    ) -> Result<(), Stop> {
        let (site, width) = (Site::new(at, access), access.width());
        let element = self.begin_access(site, base, index)?;
        let (mut old, mut operand) = (0u64, 0u64);
        // SAFETY: resolved and aligned; the facade's `value` is as wide as the access, and no wider than 8 bytes.
        unsafe {
            element.load(width, (&raw mut old).cast());
            ptr::copy_nonoverlapping(value, (&raw mut operand).cast(), width);
            let new = atomic::change(atomic, old, operand);
            element.store(width, (&raw const new).cast());
            ptr::copy_nonoverlapping((&raw const old).cast(), value, width);
        }
        self.enter_access(site, base, element.address)
    }

    /// Where an access of the running lane goes, once it may be carried out: the error is the reason to stop it.
    fn begin_access(&mut self, site: Site, base: u64, index: u64) -> Result<Element, Stop> {
        self.pulse.lane.tell(site);
        if self.job.launch.is_exhausted() {
            return Err(Stop::new(Kind::NonTerminating, "there is no memory left".to_owned()));
        }
        let element = self.resolve(site, base, index)?;
        if self.copies.under_way.is_any() {
            self.look_under_way(site, element.address)?;
        }
        self.listens |= site.scope().is_some() && site.operation() != Operation::Store;
        if waits(site) {
            // Who waits for others is not silent.
            let thread = self.pulse.lane.thread.swap(0, Relaxed);
            self.job.launch.wait_for(self.worker.turn());
            self.pulse.lane.thread.store(thread, Relaxed);
        }
        Ok(element)
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
        let alone = site.scope().is_some()
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

    /// A fence of the running lane.
    pub(super) fn fence(&mut self, scope: Scope) -> Result<(), Stop> {
        self.call()?;
        self.worker.fence(self.current(), scope);
        Ok(())
    }
}

/// Whether what an access finds depends on the order of blocks: others write there meanwhile.
fn waits(site: Site) -> bool {
    site.space() == Space::Global && site.scope().is_some()
}
