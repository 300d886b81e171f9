//! Copies from global to shared memory that go on while the kernel does: what they bring is there when it is waited for.
//!
//! A thread puts its copies into groups, one after another, and waits for all groups but the last ones. Until then nobody may touch what
//! a copy is to bring, and from then on the copy is a store by its thread, which barriers order as any other.

use crate::context::Context;
use crate::copies::Copy;
use crate::stop::{Reason, Stop};
use engine::{Look, Request};
use gpu::device::host::{Access, Site};
use gpu::suite::Space;
use std::panic::Location;

/// Copies of a thread that are kept under way, at most: of more the first arrives though nobody waits for it.
const MOST: usize = 1 << 10;

impl Context {
    /// The running lane begins to copy an element.
    pub(super) fn copy(
        &mut self,
        load: Access,
        from: (u64, u64),
        store: Access,
        to: (u64, u64),
        at: &'static Location<'static>,
    ) -> Result<(), Stop> {
        let mut data = 0u128;
        self.access(load, from.0, from.1, (&raw mut data).cast(), at)?;
        let (site, thread, width) = (Site::new(at, store), self.current(), store.width() as u64);
        let element = self.resolve(site, to.0, to.1)?;
        let instruction = self.requests.instruction(site);
        self.look_under_way(site, element.address)?;
        // What is under way is never at hand.
        if self.worker.look() != Look::Away {
            self.requests.keep_shared_away();
            self.copies.under_way.watch(element.address, width, Some((thread as u32, instruction.pc)));
        }
        self.enter_access(site, to.0, element.address)?;
        if self.copies.of(thread).0.len() >= MOST {
            self.arrive(|_| true, 1);
        }
        let (copies, groups) = self.copies.of(thread);
        copies.push_back(Copy { group: *groups, data, to: element, instruction });
        Ok(())
    }

    /// Whether an access of the running lane goes where a copy is under way to: the error is the reason to stop it.
    #[cold]
    pub(super) fn look_under_way(&mut self, site: Site, address: u64) -> Result<(), Stop> {
        let copy = match site.space() {
            Space::Shared => self.copies.under_way.find(address, site.width()),
            Space::Global | Space::Constant => None,
        };
        let instruction = self.requests.instruction(site);
        copy.map_or(Ok(()), |copy| Err(Stop(Box::new(Reason::UnderWay { instruction, address, copy }))))
    }

    /// The copies that the running lane has begun since the last group are one.
    pub(super) fn commit_copies(&mut self) {
        let thread = self.current();
        let groups = &mut self.copies.of(thread).1;
        *groups = groups.saturating_add(1);
    }

    /// The running lane waits for its copies: all, or those of its groups but the last `but` ones.
    pub(super) fn wait_copies(&mut self, but: Option<u32>) {
        let thread = self.current();
        let groups = self.copies.of(thread).1;
        self.arrive(|copy| but.is_none_or(|but| copy.group.saturating_add(but) < groups), usize::MAX);
    }

    /// The first copies of the running lane that have come so far arrive, at most so many.
    fn arrive(&mut self, has_come: impl Fn(&Copy) -> bool, most: usize) {
        let (thread, number) = (self.current(), self.running.number);
        for _ in 0..most {
            let Some(Copy { data, to, instruction, .. }) = self.copies.of(thread).0.pop_front_if(|copy| has_come(copy))
            else {
                return;
            };
            // SAFETY: it was resolved for the copy's width and is aligned to it, as is the data.
            unsafe { to.store(instruction.width() as usize, (&raw const data).cast()) };
            match self.worker.look() {
                Look::Away => continue,
                Look::First => {
                    let indices = [to.address >> instruction.log_width(); 32];
                    let request = Request::new(instruction, 1 << number, None, 0, &indices);
                    self.worker.look_first(&request, 1 << number, self.warp.start);
                }
                Look::Second => self.worker.look_second(thread, instruction, to.address),
            }
            self.copies.under_way.watch(to.address, instruction.width(), None);
        }
    }
}
