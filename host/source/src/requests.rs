//! From what each lane did to what the warp asked for: requests.
//!
//! The lanes at the same source position in the same iteration of every enclosing loop make one request. They run one
//! after another, so a request is complete when all lanes of the warp have come together again: at a barrier, a shuffle
//! of all, the end.

use crate::place::pc;
use engine::{Instruction, Request};
use gpu::device::host::{Expected, Lane, Op, Site};
use gpu::suite::Space;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::ops::Range;
use std::panic::Location;
use std::ptr;

/// A request that lanes may still take part in; which indices they go to stands where it is expected.
#[derive(Clone, Copy)]
struct Open {
    site: Site,
    instruction: Instruction,
    /// Which iteration of which loops, as a hash.
    path: u64,
    mask: u32,
    /// The lanes whose accesses the sanitizer has looked at.
    seen: u32,
    /// Whether a lane came by another pointer than the one expected.
    apart: bool,
}

/// Requests, and how lanes find them.
struct List {
    /// What lanes see of `requests`, and [`Expected::NONE`] behind them.
    expected: Vec<Expected>,
    /// Those that lanes take part in, in the order in which they were first met; behind them, without lanes yet, those that
    /// are expected next, since the lanes that were last together went on like that.
    requests: Vec<Open>,
    by_key: FxHashMap<(Site, u64), usize>,
}

impl Default for List {
    fn default() -> Self {
        Self { expected: vec![Expected::NONE], requests: Vec::new(), by_key: FxHashMap::default() }
    }
}

/// The requests of a warp since its lanes were last together.
///
/// Lanes run one after another, mostly through the same accesses in the same order, and so do warps. So each lane is expected
/// to go through the list from one request to the next: while it does, it runs by itself and enters the indices alone. The
/// machine hears of it only when it leaves the list, jumps in it, or comes to rest; then the stretch that it went is entered
/// in the masks.
pub(super) struct Requests {
    list: List,
    /// The number of the list among `lists`, where those of other phases are: of warps that began, or that went on from
    /// elsewhere.
    number: usize,
    lists: Vec<(Phase, List)>,
    /// How many requests have lanes, as far as stretches are closed.
    made: usize,
    /// Where the stretch of the running lane begins; and where it would have begun or gone on if it had made all accesses
    /// since then in one stretch.
    begin: usize,
    origin: usize,
    /// Whether the running lane has jumped, so that it may come by a request twice.
    jumped: bool,
    /// Where a stretch ends that some lanes went from the first access on, which is not entered in the masks yet: which lanes,
    /// is known where they run.
    stretch: usize,
    /// How many steps of loops the lanes of that stretch took on it: those that went it last, and so the others, for all that
    /// their accesses tell.
    stretch_steps: u64,
    /// Where the next accesses of the lanes that rest are expected.
    resting: [usize; 32],
    /// How many steps of loops each lane has taken since all were together.
    steps: [u64; 32],
    /// Whether no shared memory is at hand any more, so that the machine sees every access to it.
    shared_away: bool,
    /// What the engine knows the sites as.
    instructions: RefCell<FxHashMap<Site, Instruction>>,
}

/// What the engine knows an access at a site as.
fn instruction(site: Site) -> Instruction {
    let log_width = site.width().trailing_zeros() as u8;
    let mut known = Instruction::new(pc(site.at()), site.space(), site.operation(), log_width);
    known.past_l1 = site.is_past_l1();
    known.is_of_copy = site.is_of_copy();
    known.scope = site.scope();
    if let Op::Atomic { kind, .. } = site.access().op() {
        known.kind = kind;
    }
    known
}

/// Where the lanes of a warp were last together, in the source.
pub(super) type Phase = Option<&'static Location<'static>>;

/// A lane came by an access twice in one iteration.
pub(super) struct Twice(pub(super) Site);

impl Requests {
    pub(super) fn new() -> Self {
        Self {
            list: List::default(),
            number: 0,
            lists: vec![(None, List::default())],
            made: 0,
            begin: 0,
            origin: 0,
            jumped: false,
            stretch: 0,
            stretch_steps: 0,
            resting: [0; 32],
            steps: [0; 32],
            shared_away: false,
            instructions: RefCell::default(),
        }
    }

    /// What the engine knows an access at `site` as.
    pub(super) fn instruction(&self, site: Site) -> Instruction {
        *self.instructions.borrow_mut().entry(site).or_insert_with(|| instruction(site))
    }

    /// Expects the first access of `lane`, which begins or goes on from where it came to rest.
    #[inline(always)]
    pub(super) fn begin(&mut self, lane: &mut Lane) {
        let place = self.resting[lane.number];
        (self.begin, self.origin, self.jumped) = (place, place, place != 0);
        lane.first = self.list.expected.as_mut_ptr();
        lane.next = lane.first.wrapping_add(place);
        if self.jumped {
            lane.end = ptr::null();
        }
    }

    /// The running lane, whose stretch is closed, comes to rest.
    pub(super) fn rest(&mut self, lane: &Lane) {
        self.resting[lane.number] = self.next(lane);
    }

    /// The lanes are together, and go on from where they met; none if they begin.
    pub(super) fn go_on(&mut self, phase: Phase) {
        let is = |known: &Phase| match (known, phase) {
            (Some(known), Some(phase)) => ptr::eq(*known, phase),
            (known, phase) => known.is_none() && phase.is_none(),
        };
        if is(&self.lists[self.number].0) {
            return;
        }
        let number = self.lists.iter().position(|(known, _)| is(known)).unwrap_or_else(|| {
            self.lists.push((phase, List::default()));
            self.lists.len() - 1
        });
        std::mem::swap(&mut self.list, &mut self.lists[self.number].1);
        std::mem::swap(&mut self.list, &mut self.lists[number].1);
        self.number = number;
    }

    /// Where the request at `place` stands among all: the number of its list, and the place.
    pub(super) fn place(&self, place: usize) -> [usize; 2] {
        [self.number, place]
    }

    /// Expects the lane's next access to belong to the request at `place`.
    #[inline(always)]
    fn expect(&mut self, lane: &mut Lane, place: usize) {
        lane.next = self.list.expected.as_mut_ptr().wrapping_add(place);
    }

    /// The place where the running lane is expected next.
    #[inline(always)]
    fn next(&self, lane: &Lane) -> usize {
        // SAFETY: it is one of those expected, or what stands behind them.
        unsafe { lane.next.cast_const().offset_from_unsigned(self.list.expected.as_ptr()) }
    }

    /// How many accesses the running lane has made since it began or went on.
    pub(super) fn accesses(&self, lane: &Lane) -> u64 {
        self.next(lane).wrapping_sub(self.origin) as u64
    }

    /// Closes the stretch of the running lane, on which it took so many `steps` of loops. Lanes that went the same one are put
    /// together.
    #[inline(always)]
    pub(super) fn close(&mut self, lane: &mut Lane, steps: u64) -> Result<(), Twice> {
        if !ptr::eq(lane.next, lane.end) {
            if self.jumped {
                self.step(lane.number, steps);
                return self.close_alone(lane).map(|_| ());
            }
            self.enter(lane);
            self.stretch = self.next(lane);
            self.stretch_steps = steps;
            lane.end = lane.next;
        }
        lane.ended |= 1 << lane.number;
        Ok(())
    }

    /// The same for this lane alone, whose stretch is returned.
    pub(super) fn close_alone(&mut self, lane: &Lane) -> Result<Range<usize>, Twice> {
        let stretch = self.begin..self.next(lane);
        self.begin = stretch.end;
        self.made = self.made.max(stretch.end);
        for request in &mut self.list.requests[stretch.clone()] {
            if request.mask >> lane.number & 1 == 1 {
                return Err(Twice(request.site));
            }
            request.mask |= 1 << lane.number;
        }
        Ok(stretch)
    }

    /// A lane has taken so many more steps of loops.
    pub(super) fn step(&mut self, lane: usize, steps: u64) {
        self.steps[lane] += steps;
    }

    /// Tells `found` the instructions at which lanes that took fewer steps of loops are missing from requests of others, among the
    /// requests that a lane in `lanes` takes part in.
    pub(super) fn left_apart(&self, lanes: u32, mut found: impl FnMut(Instruction)) {
        if self.steps.iter().any(|steps| *steps != self.steps[0]) {
            self.look_who_left(lanes, &mut found);
        }
    }

    #[cold]
    fn look_who_left(&self, lanes: u32, found: &mut dyn FnMut(Instruction)) {
        let in_loops = || {
            let made = self.list.requests[..self.made].iter();
            made.filter(|request| request.path != 0 && request.mask & lanes != 0)
        };
        let mut of_site = FxHashMap::<Site, u32>::default();
        in_loops().for_each(|request| *of_site.entry(request.site).or_default() |= request.mask);
        for request in in_loops() {
            let steps = |mask: u32| (0..32).filter(move |lane| mask >> lane & 1 == 1).map(|lane| self.steps[lane]);
            let missing = of_site[&request.site] & !request.mask;
            if steps(missing).min() < steps(request.mask).max() && missing != 0 {
                found(request.instruction);
            }
        }
    }

    /// Enters the stretch that was put aside in the masks.
    #[inline(never)]
    fn enter(&mut self, lane: &mut Lane) {
        self.made = self.made.max(self.stretch);
        lane.end = ptr::null();
        let lanes = std::mem::take(&mut lane.ended);
        for (lane, steps) in self.steps.iter_mut().enumerate() {
            *steps += u64::from(lanes >> lane & 1) * self.stretch_steps;
        }
        self.list.requests[..std::mem::take(&mut self.stretch)].iter_mut().for_each(|request| request.mask |= lanes);
    }

    /// Where the request stands that an access of the running lane at `site` by the pointer `base` belongs to: behind those
    /// made if it is a new one.
    pub(super) fn find(&mut self, lane: &mut Lane, site: Site, base: u64) -> usize {
        let (next, path) = (self.next(lane), lane.path);
        let made = self.made.max(self.stretch).max(next);
        let is = |request: &Open| (request.site, request.path) == (site, path);
        if self.list.requests.get(next).is_some_and(is) {
            if next == made && self.list.expected[next].base() != base {
                self.list.expected[next] = Expected::new(site, path, base);
            }
            return next;
        }
        let known = self.list.by_key.get(&(site, path)).copied().filter(|&place| place < made);
        known.unwrap_or_else(|| {
            // What was expected there, and behind it, no longer is.
            if made < self.list.requests.len() {
                self.list.requests.truncate(made);
                self.list.by_key.retain(|_, known| *known < made);
            }
            self.list.expected.truncate(made);
            let instruction = self.instruction(site);
            self.list.requests.push(Open { site, instruction, path, mask: 0, seen: 0, apart: false });
            self.list.expected.extend([Expected::new(site, path, base), Expected::NONE]);
            self.list.by_key.insert((site, path), made);
            (lane.first, lane.end) = (self.list.expected.as_mut_ptr(), ptr::null());
            self.expect(lane, next);
            made
        })
    }

    /// Whether the running lane jumps if it goes on at `place`.
    pub(super) fn is_elsewhere(&self, lane: &Lane, place: usize) -> bool {
        self.next(lane) != place
    }

    /// Adds an access of the running lane to the request at `place`: where it is expected, or anywhere if its stretch is
    /// closed.
    pub(super) fn add(&mut self, lane: &mut Lane, place: usize) -> Result<&mut Expected, Twice> {
        if self.is_elsewhere(lane, place) {
            self.origin = self.origin.wrapping_add(place).wrapping_sub(self.next(lane));
            (self.begin, self.jumped, lane.end) = (place, true, ptr::null());
        }
        let Open { site, mask, .. } = self.list.requests[place];
        if self.jumped && mask >> lane.number & 1 == 1 {
            return Err(Twice(site));
        }
        self.expect(lane, place + 1);
        Ok(&mut self.list.expected[place])
    }

    /// Has the machine see every access to shared memory from now on.
    pub(super) fn keep_shared_away(&mut self) {
        if std::mem::replace(&mut self.shared_away, true) {
            return;
        }
        for list in self.lists.iter_mut().map(|(_, list)| list).chain([&mut self.list]) {
            let of_shared =
                list.requests.iter().zip(&mut list.expected).filter(|(open, _)| open.site.space() == Space::Shared);
            // SAFETY: there are none.
            of_shared.for_each(|(_, expected)| unsafe { expected.lay_at_hand(0, 0, ptr::null_mut()) });
        }
    }

    /// Whether it does.
    pub(super) fn is_shared_away(&self) -> bool {
        self.shared_away
    }

    /// Notes that a lane came to the request at `place` by another pointer than the one expected.
    pub(super) fn part(&mut self, place: usize) {
        self.list.requests[place].apart = true;
    }

    /// Notes that the sanitizer looks at what `lanes` did in the request at `place`; returns those of them that did something
    /// that it has not looked at.
    pub(super) fn see(&mut self, place: usize, lanes: u32) -> u32 {
        let Open { mask, seen, .. } = &mut self.list.requests[place];
        let lanes = lanes & *mask & !*seen;
        *seen |= lanes;
        lanes
    }

    /// The access and path of the request at `place`, and the lanes that have passed it.
    pub(super) fn passed(&self, place: usize) -> (Site, u64, u32) {
        let Open { site, path, mask, .. } = self.list.requests[place];
        (site, path, mask)
    }

    /// The lanes that take part in the request at `place`.
    pub(super) fn lanes(&self, place: usize) -> u32 {
        self.list.requests[place].mask
    }

    /// The request at `place`. Its indices count from `start` of the pointer that they came by.
    #[inline(always)]
    pub(super) fn get(&self, place: usize, start: impl Fn(Space, u64) -> u64) -> Request<'_> {
        let (Open { instruction, mask, apart, .. }, expected) = (self.list.requests[place], &self.list.expected[place]);
        let base = expected.base();
        Request::new(instruction, mask, (!apart).then_some(base), start(instruction.space, base), expected.indices())
    }

    /// How many requests have lanes, all of which are at rest or have ended. They stand in the order in which they were
    /// first met.
    pub(super) fn made(&mut self, lane: &mut Lane) -> usize {
        self.enter(lane);
        self.made
    }

    /// The lanes are together, and go through the same requests again, for all that is known.
    pub(super) fn restart(&mut self) {
        let made = std::mem::take(&mut self.made);
        self.list.requests[..made]
            .iter_mut()
            .for_each(|request| (request.mask, request.seen, request.apart) = (0, 0, false));
        self.resting = [0; 32];
        self.steps = [0; 32];
    }

    /// Forgets the requests that a lane in `lanes` takes part in, and what was expected.
    pub(super) fn forget(&mut self, lanes: u32) {
        let made = std::mem::take(&mut self.made);
        let requests = std::mem::take(&mut self.list.requests).into_iter().zip(std::mem::take(&mut self.list.expected));
        let rest = requests.take(made).filter(|(request, _)| request.mask & lanes == 0);
        (self.list.requests, self.list.expected) = rest.unzip();
        self.list.expected.push(Expected::NONE);
        self.made = self.list.requests.len();
        self.list.by_key =
            (0..).zip(&self.list.requests).map(|(place, request)| ((request.site, request.path), place)).collect();
        self.resting = [0; 32];
    }

    /// Forgets all requests, and what was expected.
    pub(super) fn clear(&mut self) {
        let instructions = std::mem::take(&mut self.instructions);
        *self = Self { instructions, shared_away: self.shared_away, ..Self::new() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu::device::host::{Access, Coordinates, Watched};
    use gpu::suite::noise;

    /// Memory that an access may find at hand.
    static ELEMENT: u32 = 0;

    /// Has a lane make an access as kernels do: by itself if it is expected and at hand, else by the machine; says which, or
    /// that it came by twice.
    fn access(requests: &mut Requests, lane: &mut Lane, site: Site, base: u64, index: u64) -> Result<bool, Twice> {
        // SAFETY: what is expected of the lane was set by `requests`.
        if unsafe { Expected::meet(lane, site, base, index) }.is_some() {
            return Ok(true);
        }
        let place = requests.find(lane, site, base);
        if requests.is_elsewhere(lane, place) {
            requests.close_alone(lane)?;
        }
        let expected = requests.add(lane, place)?;
        expected.enter(lane.number, index);
        if expected.base() == base {
            // SAFETY: nobody looks at the elements.
            unsafe { expected.lay_at_hand(0, 8, (&raw const ELEMENT).cast_mut().cast()) };
        }
        Ok(false)
    }

    /// Warps that mostly go the same way, whose lanes mostly do: what was expected changes nothing but how an access finds
    /// its request.
    #[test]
    fn requests_stand_in_the_order_in_which_they_were_first_met_whatever_was_expected() {
        let at = Location::caller();
        let watched = Watched::default();
        let mut lane = Lane::new(Coordinates::default(), (&watched).into());
        (lane.limit, lane.thread_idx) = (4, [[0; 3]; 4].as_ptr());
        let mut drawn = 0;
        let (mut as_expected, mut otherwise, mut twice) = (0, 0, 0);
        let mut random = |below: u64| {
            drawn += 1;
            noise(drawn) as u64 % below
        };
        let mut requests = Requests::new();
        for warp in 0..2000 {
            let mut met: Vec<(Site, u64, u32, [u64; 4])> = Vec::new();
            let mut stopped = false;
            for number in 0..4 {
                lane.begin(number);
                requests.begin(&mut lane);
                for step in 0..10 {
                    let [kind, path] = if random(20) == 0 { [random(9), random(3)] } else { [step % 5, step / 5] };
                    if stopped || random(20) == 0 {
                        continue;
                    }
                    lane.path = path;
                    let site = Site::new(at, Access::new(kind as usize, 2));
                    let (base, index) = (kind << 8, random(10));
                    let known = met.iter_mut().find(|request| (request.0, request.1) == (site, path));
                    let again = known.as_ref().is_some_and(|request| request.2 >> number & 1 == 1);
                    match access(&mut requests, &mut lane, site, base, index) {
                        Ok(expected) if !again => {
                            as_expected += u32::from(expected);
                            otherwise += u32::from(!expected);
                            match known {
                                Some(request) => {
                                    request.2 |= 1 << number;
                                    request.3[number] = index;
                                }
                                None => {
                                    let mut indices = [0; 4];
                                    indices[number] = index;
                                    met.push((site, path, 1 << number, indices));
                                }
                            }
                        }
                        // One that goes by itself is found out when its stretch is closed.
                        Ok(true) => {
                            assert!(
                                requests.close(&mut lane, 0).is_err_and(|Twice(known)| known == site),
                                "warp {warp}"
                            );
                            (stopped, twice) = (true, twice + 1);
                        }
                        Ok(false) => panic!("warp {warp}: lane {number} was let by twice"),
                        Err(Twice(known)) => {
                            assert!(again && known == site, "warp {warp}");
                            (stopped, twice) = (true, twice + 1);
                        }
                    }
                }
                if stopped {
                    break;
                }
                if ptr::eq(lane.next, lane.end) {
                    lane.ended |= 1 << number;
                } else {
                    assert!(requests.close(&mut lane, 0).is_ok(), "warp {warp}");
                }
            }
            if stopped {
                requests.made(&mut lane);
                requests.clear();
                continue;
            }
            assert_eq!(requests.made(&mut lane), met.len(), "warp {warp}");
            for (place, (site, path, mask, indices)) in met.into_iter().enumerate() {
                assert_eq!(requests.list.requests[place].path, path, "warp {warp}");
                let request = requests.get(place, |_, base| base);
                assert_eq!((request.instruction, request.mask), (instruction(site), mask), "warp {warp}");
                for lane in (0..4).filter(|lane| mask >> lane & 1 == 1) {
                    let kind = u64::from(site.access().code() >> 3);
                    assert_eq!(request.address(lane), (kind << 8) + 4 * indices[lane], "warp {warp}");
                }
            }
            requests.restart();
        }
        let ways = [as_expected, otherwise, twice];
        assert!(ways.iter().all(|&times| times > 500), "as expected, otherwise and twice: {ways:?}");
    }
}
