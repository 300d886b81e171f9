//! Blocks that an SM holds, their warps, and the loads that these have in flight.

use super::super::sm::PendingEntry;
use engine::trace::{Trace, Traced, WHOLE_BLOCK, What};

/// A resident block.
#[derive(Default)]
pub(super) struct Block {
    pub(super) trace: Trace,
    pub(super) warps: Vec<Warp>,
    pub(super) sm: usize,
    /// How many blocks had been launched before it.
    pub(super) age: u64,
    /// Warps that have not exited.
    pub(super) running: usize,
    /// Warps that have arrived at a barrier.
    pub(super) arrived: usize,
    /// Requests in the MIO.
    pub(super) in_mio: usize,
}

#[derive(Default)]
pub(super) struct Warp {
    /// The numbers of its requests in the block's trace, the barriers of the block among them.
    pub(super) requests: Vec<u32>,
    pub(super) next: usize,
    pub(super) in_flight: Vec<InFlight>,
    /// Loads that it issued, and those of its round of a loop among them.
    pub(super) loads: usize,
    pub(super) round: usize,
    /// The stall on loads of which it is not known yet when they arrive (long scoreboard): on how many of those in flight, the oldest first,
    /// and how long after that it issues.
    pub(super) scoreboard: Option<(usize, f64)>,
    /// Its place among the stalled warps of its block: the one with the least issues first.
    pub(super) stalled_since: Option<u64>,
}

/// A load in flight.
pub(super) struct InFlight {
    /// The source position that it comes from, and its number in the trace.
    pub(super) site: usize,
    pub(super) number: u32,
    /// Loads that the warp issued before.
    pub(super) before: usize,
    /// Its data-stage wavefronts, and its entry in the pending-request table, if it missed.
    pub(super) wavefronts: f64,
    pub(super) entry: PendingEntry,
    /// When it arrives: infinite, if that is not known yet.
    pub(super) arrives: f64,
}

impl Warp {
    /// When so many of its loads in flight have arrived, the oldest first, from `now` on.
    pub(super) fn arrival(&self, count: usize, now: f64) -> f64 {
        self.in_flight.iter().take(count).fold(now, |latest, load| latest.max(load.arrives))
    }
}

impl Block {
    /// One that is launched on an SM, so many blocks after the first.
    pub(super) fn new(mut trace: Trace, sm: usize, age: u64) -> Self {
        let warp = |requests| Warp { requests, ..Warp::default() };
        let warps: Vec<_> = requests_by_warp(&mut trace).into_iter().map(warp).collect();
        let running = warps.len();
        Self { trace, warps, sm, age, running, arrived: 0, in_mio: 0 }
    }

    /// The request that a warp issues next, if there is one.
    pub(super) fn next_request(&self, warp: usize) -> Option<Traced> {
        let Warp { requests, next, .. } = &self.warps[warp];
        requests.get(*next).map(|number| self.trace.requests[*number as usize])
    }
}

/// Shared-memory accesses between two barriers that ptxas makes predicates of at most, rather than branch.
const PREDICATED: usize = 4;

/// The numbers of each warp's requests in a block's trace, the barriers of the block among them. Between two barriers, warps that skip a
/// few accesses to shared memory which others make issue them without an active lane, as ptxas makes predicates of such branches: requests
/// without wavefronts, at the end of the trace.
pub(super) fn requests_by_warp(trace: &mut Trace) -> Vec<Vec<u32>> {
    let of_warps = trace.requests.iter().filter(|request| request.warp != WHOLE_BLOCK);
    let count = of_warps.map(|request| usize::from(request.warp) + 1).max().unwrap_or(1);
    let (mut all, mut begun, mut after_barrier) = (vec![Vec::new(); count], vec![0; count], false);
    for number in 0..trace.requests.len() {
        let Traced { warp, .. } = trace.requests[number];
        if warp != WHOLE_BLOCK {
            all[usize::from(warp)].push(number as u32);
            continue;
        }
        let made = |warp: usize| &all[warp][begun[warp]..];
        let most = (0..count).map(made).max_by_key(|made| made.len()).unwrap_or_default().to_vec();
        let is_shared =
            |number: &u32| matches!(trace.requests[*number as usize].what, What::SharedLoad | What::SharedStore);
        if after_barrier && most.len() <= PREDICATED && most.iter().all(is_shared) {
            for warp in (0..count).filter(|warp| all[*warp].len() == begun[*warp]).collect::<Vec<_>>() {
                for skipped in &most {
                    all[warp].push(trace.requests.len() as u32);
                    let (what, lines_end) = (What::SharedStore, trace.add_lines(&[]));
                    let of_others = trace.requests[*skipped as usize];
                    trace.requests.push(Traced { warp: warp as u16, what, wavefronts: 0, lines_end, ..of_others });
                }
            }
        }
        for (of_warp, begun) in all.iter_mut().zip(&mut begun) {
            of_warp.push(number as u32);
            *begun = of_warp.len();
        }
        after_barrier = true;
    }
    all
}
