//! From what each lane did to what the warp asked for: requests.
//!
//! A lane logs its accesses as it runs. When the lanes of a warp have come together again (at a barrier, a shuffle of
//! all, the end), the logs are merged: the lanes at the same source position in the same iteration of every enclosing
//! loop make one request. Lanes mostly log the same sequence, so the logs are first read side by side, row by row; from the
//! first row on where they differ, what is left is put together by key.

use gpu::device::host::{Access, Op, Space};
use gpu::suite::Operation;
use rustc_hash::{FxHashMap, FxHashSet};
use std::panic::Location;

/// An access as logged by a lane.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) site: Site,
    /// Which iteration of which loops, as a hash.
    pub(super) path: u64,
    /// A simulated global address, or an offset in shared memory.
    pub(super) address: u64,
}

/// A source position with what it does, in one word: the position's address, which leaves 16 bits free.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Site(u64);

impl Site {
    #[inline(always)]
    pub(super) fn new(at: &'static Location<'static>, access: Access) -> Self {
        let op = match access.op {
            Op::Load(_) => 0,
            Op::Store => 1,
            Op::AtomicAdd(_) => 2,
        };
        let kind = u64::from(access.log_width) << 3 | op << 1 | (access.space == Space::Shared) as u64;
        Self(std::ptr::from_ref(at).expose_provenance() as u64 | kind << 48)
    }

    pub(super) fn at(self) -> &'static Location<'static> {
        let pointer = std::ptr::with_exposed_provenance::<Location<'static>>((self.0 & (u64::MAX >> 16)) as usize);
        // SAFETY: `new` took the address of a reference that lives for ever.
        unsafe { &*pointer }
    }

    pub(super) fn space(self) -> Space {
        if self.0 >> 48 & 1 == 0 { Space::Global } else { Space::Shared }
    }

    pub(super) fn operation(self) -> Operation {
        match self.0 >> 49 & 3 {
            0 => Operation::Load,
            1 => Operation::Store,
            _ => Operation::Atomic,
        }
    }

    pub(super) fn width(self) -> u64 {
        1 << (self.0 >> 51)
    }
}

/// One warp instruction: the lanes in `mask` access `addresses`.
pub(super) struct Request<'a> {
    pub(super) site: Site,
    pub(super) mask: u32,
    pub(super) addresses: &'a [u64; 32],
}

/// Merges logs; keeps its tables between merges.
#[derive(Default)]
pub(super) struct Merger {
    seen: FxHashSet<(Site, u64)>,
    groups: Vec<(Site, u32, [u64; 32])>,
    by_key: FxHashMap<(Site, u64), usize>,
}

/// A lane passed the site twice in one iteration.
pub(super) struct OpenGrouping {
    pub(super) site: Site,
    pub(super) lane: usize,
}

impl Merger {
    /// Merges the logs of a warp's lanes, empties them, and hands each request to `request`.
    pub(super) fn merge(
        &mut self,
        logs: &mut [Vec<Entry>; 32],
        mut request: impl FnMut(&Request<'_>),
    ) -> Result<(), OpenGrouping> {
        self.seen.clear();
        let aligned = self.merge_rows(logs, &mut request);
        let merged = aligned.and_then(|row| self.merge_rest(logs, row, &mut request));
        logs.iter_mut().for_each(Vec::clear);
        merged
    }

    /// Merges row by row as long as the lanes agree; returns the first row on which they do not.
    fn merge_rows(
        &mut self,
        logs: &[Vec<Entry>; 32],
        request: &mut impl FnMut(&Request<'_>),
    ) -> Result<usize, OpenGrouping> {
        let longest = logs.iter().map(Vec::len).max().unwrap_or(0);
        let mut addresses = [0; 32];
        for row in 0..longest {
            let first = logs.iter().find_map(|log| log.get(row)).expect("the longest log has this row");
            let mut mask = 0u32;
            for (lane, log) in logs.iter().enumerate() {
                let Some(entry) = log.get(row) else { continue };
                if entry.site != first.site || entry.path != first.path {
                    return Ok(row);
                }
                addresses[lane] = entry.address;
                mask |= 1 << lane;
            }
            if !self.seen.insert((first.site, first.path)) {
                return Err(OpenGrouping { site: first.site, lane: mask.trailing_zeros() as usize });
            }
            request(&Request { site: first.site, mask, addresses: &addresses });
        }
        Ok(longest)
    }

    /// Merges everything from `row` on by key.
    fn merge_rest(
        &mut self,
        logs: &[Vec<Entry>; 32],
        row: usize,
        request: &mut impl FnMut(&Request<'_>),
    ) -> Result<(), OpenGrouping> {
        self.groups.clear();
        self.by_key.clear();
        for (lane, log) in logs.iter().enumerate() {
            for entry in log.get(row..).unwrap_or_default() {
                let key = (entry.site, entry.path);
                let group = *self.by_key.entry(key).or_insert_with(|| {
                    self.groups.push((entry.site, 0, [0; 32]));
                    self.groups.len() - 1
                });
                let (site, mask, addresses) = &mut self.groups[group];
                if *mask >> lane & 1 == 1 || self.seen.contains(&key) {
                    return Err(OpenGrouping { site: *site, lane });
                }
                *mask |= 1 << lane;
                addresses[lane] = entry.address;
            }
        }
        for (site, mask, addresses) in &self.groups {
            request(&Request { site: *site, mask: *mask, addresses });
        }
        Ok(())
    }
}
