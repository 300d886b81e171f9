//! From what each lane did to what the warp asked for: requests.
//!
//! The lanes at the same source position in the same iteration of every enclosing loop make one request. They run one
//! after another, so a request is complete when all lanes of the warp have come together again: at a barrier, a shuffle
//! of all, the end.

use super::memory::{RecentPage, RecentPages};
use gpu::device::Cache;
use gpu::device::host::{Access, Op, Space};
use gpu::suite::Operation;
use rustc_hash::FxHashMap;
use std::panic::Location;

/// A source position with what it does, in one word: the position's address, which leaves 16 bits free.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Site(u64);

impl Site {
    #[inline(always)]
    pub(super) fn new(at: &'static Location<'static>, access: Access) -> Self {
        Self(std::ptr::from_ref(at).expose_provenance() as u64 | u64::from(access.code()) << 48)
    }

    pub(super) fn at(self) -> &'static Location<'static> {
        let pointer = std::ptr::with_exposed_provenance::<Location<'static>>((self.0 & (u64::MAX >> 16)) as usize);
        // SAFETY: `new` took the address of a reference that lives for ever.
        unsafe { &*pointer }
    }

    #[inline(always)]
    pub(super) fn access(self) -> Access {
        Access::from_code((self.0 >> 48) as u8)
    }

    pub(super) fn space(self) -> Space {
        self.access().space()
    }

    pub(super) fn operation(self) -> Operation {
        operation(self.access())
    }

    pub(super) fn width(self) -> u64 {
        self.access().width() as u64
    }

    /// Whether it goes past the L1: a store, an atomic addition, and a load that says so.
    pub(super) fn is_past_l1(self) -> bool {
        !matches!(self.access().op(), Op::Load(Cache::All))
    }
}

/// What an access does, as far as counts go.
#[inline(always)]
pub(super) fn operation(access: Access) -> Operation {
    match access.op() {
        Op::Load(_) => Operation::Load,
        Op::Store => Operation::Store,
        Op::AtomicAdd(_) => Operation::Atomic,
    }
}

/// One warp instruction: the lanes in `mask` access `addresses`.
pub(super) struct Request {
    pub(super) site: Site,
    /// Which iteration of which loops, as a hash.
    path: u64,
    pub(super) mask: u32,
    /// The page of global memory that a lane of it touched last.
    pub(super) page: RecentPage,
    /// Simulated global addresses, or offsets in shared memory; those of lanes not in `mask` mean nothing.
    pub(super) addresses: [u64; 32],
}

/// The requests of a warp since its lanes were last together.
///
/// Lanes run one after another, mostly through the same accesses in the same order, and so do warps. So each lane looks first
/// where its last access says the next one stands, and only then by site and path.
pub(super) struct Requests {
    /// Those that lanes take part in, in the order in which they were first met; behind them, without lanes yet, those that
    /// are expected next, since the lanes that were last together went on like that.
    requests: Vec<Request>,
    by_key: FxHashMap<(Site, u64), usize>,
    /// The lane that runs, as a number and as a mask.
    lane: usize,
    bit: u32,
    /// The request that its next access is expected to belong to, one of `requests` or their end.
    next: *mut Request,
    end: *mut Request,
    /// Where the next accesses of the lanes that rest are expected.
    resting: [usize; 32],
}

/// A lane came by an access twice in one iteration.
pub(super) struct OpenGrouping;

impl Requests {
    pub(super) fn new() -> Self {
        let (mut requests, by_key) = (Vec::new(), FxHashMap::default());
        let start = requests.as_mut_ptr();
        Self { requests, by_key, lane: 0, bit: 1, next: start, end: start, resting: [0; 32] }
    }

    /// Makes `lane` the one that runs, from the first access on.
    #[inline(always)]
    pub(super) fn begin(&mut self, lane: usize) {
        (self.lane, self.bit, self.next) = (lane, 1 << lane, self.requests.as_mut_ptr());
    }

    /// The lane that runs comes to rest.
    pub(super) fn rest(&mut self) {
        self.resting[self.lane] = (self.next.addr() - self.requests.as_ptr().addr()) / size_of::<Request>();
    }

    /// The lane that runs goes on from where it came to rest.
    pub(super) fn resume(&mut self) {
        self.expect(self.resting[self.lane]);
    }

    /// Expects the next access to belong to the request at `place`.
    fn expect(&mut self, place: usize) {
        let [next, end] = [place, self.requests.len()].map(|place| self.requests.as_mut_ptr().wrapping_add(place));
        (self.next, self.end) = (next, end);
    }

    /// Adds an access of the running lane to the request that is expected next, if it belongs to that; one to global memory
    /// only if its page is among the `recent` ones. Returns the request's page. The path is read as late as it is needed.
    #[inline(always)]
    pub(super) fn add_expected(
        &mut self,
        site: Site,
        path: &u64,
        address: u64,
        recent: Option<&RecentPages>,
    ) -> Option<&RecentPage> {
        if self.next == self.end {
            return None;
        }
        // SAFETY: it is one of `requests`, whose memory stays where it is until the next call of `expect`.
        let request = unsafe { &mut *self.next };
        if let Some(recent) = recent
            && !request.page.holds(address)
        {
            request.page = *recent.get(address)?;
        }
        let mask = request.mask | self.bit;
        if request.site != site || request.path != *path || request.mask == mask {
            return None;
        }
        request.mask = mask;
        request.addresses[self.lane % 32] = address;
        self.next = self.next.wrapping_add(1);
        Some(&request.page)
    }

    /// Adds an access of the running lane to the request of its site and path, a new one if no lane has come by before.
    pub(super) fn add(&mut self, site: Site, path: u64, address: u64) -> Result<(), OpenGrouping> {
        let known = self.by_key.get(&(site, path)).copied().filter(|&place| self.requests[place].mask != 0);
        let place = known.unwrap_or_else(|| self.begin_request(site, path));
        self.expect(place);
        self.add_expected(site, &path, address, None).map(|_| ()).ok_or(OpenGrouping)
    }

    /// A request that no lane has come by before; returns its place. What was expected there, and behind it, no longer is.
    fn begin_request(&mut self, site: Site, path: u64) -> usize {
        let place = made(&self.requests).len();
        if place < self.requests.len() {
            self.requests.truncate(place);
            self.by_key.retain(|_, known| *known < place);
        }
        self.requests.push(Request { site, path, mask: 0, page: RecentPage::NONE, addresses: [0; 32] });
        self.by_key.insert((site, path), place);
        place
    }

    /// Takes all requests, in the order in which they were first met, and behind them those expected: the lanes are together.
    pub(super) fn take(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    /// Takes requests that have been counted back: they are expected again.
    pub(super) fn give_back(&mut self, mut requests: Vec<Request>) {
        requests.iter_mut().take_while(|request| request.mask != 0).for_each(|request| request.mask = 0);
        self.requests = requests;
        self.resting = [0; 32];
        self.expect(0);
    }

    /// Takes the requests that a lane in `lanes` takes part in.
    pub(super) fn take_passed(&mut self, lanes: u32) -> Vec<Request> {
        let mut requests = self.take();
        requests.truncate(made(&requests).len());
        self.clear();
        let (passed, rest): (Vec<_>, Vec<_>) = requests.into_iter().partition(|request| request.mask & lanes != 0);
        for (place, request) in rest.iter().enumerate() {
            self.by_key.insert((request.site, request.path), place);
        }
        self.requests = rest;
        self.expect(0);
        passed
    }

    /// Forgets all requests, and what was expected.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.by_key.clear();
        self.expect(0);
        self.resting = [0; 32];
    }
}

/// Those requests that lanes take part in.
pub(super) fn made(requests: &[Request]) -> &[Request] {
    &requests[..requests.partition_point(|request| request.mask != 0)]
}

impl Request {
    /// The addresses of the active lanes, put side by side in `room`.
    pub(super) fn active<'a>(&self, room: &'a mut [u64; 32]) -> &'a [u64] {
        let mut n = 0;
        for lane in 0..32 {
            room[n] = self.addresses[lane];
            n += (self.mask >> lane & 1) as usize;
        }
        &room[..n]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu::suite::noise;

    /// Warps that mostly go the same way, whose lanes mostly do: what was expected changes nothing but how an access finds
    /// its request.
    #[test]
    fn requests_stand_in_the_order_in_which_they_were_first_met_whatever_was_expected() {
        let at = Location::caller();
        let (mut drawn, mut as_expected, mut otherwise, mut twice) = (0, 0, 0, 0);
        let mut random = |below: u64| {
            drawn += 1;
            noise(drawn) as u64 % below
        };
        let mut requests = Requests::new();
        for warp in 0..1000 {
            let mut met: Vec<(Site, u64, u32)> = Vec::new();
            for lane in 0..4 {
                requests.begin(lane);
                for step in 0..10 {
                    let [kind, path] = if random(20) == 0 { [random(9), random(3)] } else { [step % 5, step / 5] };
                    if random(20) == 0 {
                        continue;
                    }
                    let site = Site::new(at, Access::new(kind as usize, 2));
                    let expected = requests.add_expected(site, &path, step, None).is_some();
                    let added = expected || requests.add(site, path, step).is_ok();
                    let known = met.iter_mut().find(|request| (request.0, request.1) == (site, path));
                    assert_eq!(added, known.as_ref().is_none_or(|request| request.2 >> lane & 1 == 0), "warp {warp}");
                    match known {
                        Some(request) => request.2 |= 1 << lane,
                        None => met.push((site, path, 1 << lane)),
                    }
                    as_expected += u32::from(expected);
                    otherwise += u32::from(added && !expected);
                    twice += u32::from(!added);
                }
            }
            let complete = requests.take();
            let found = made(&complete).iter().map(|request| (request.site, request.path, request.mask));
            assert!(found.eq(met), "warp {warp}");
            requests.give_back(complete);
        }
        let ways = [as_expected, otherwise, twice];
        assert!(ways.iter().all(|&times| times > 500), "as expected, otherwise and twice: {ways:?}");
    }
}
