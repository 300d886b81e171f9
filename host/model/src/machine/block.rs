//! Blocks that an SM holds, their warps, and the loads that these have in flight.

use super::super::sm::PendingEntry;
use engine::trace::{Trace, Traced, WHOLE_BLOCK};

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
    /// Loads that it issued.
    pub(super) loads: usize,
    /// The stall on loads of which it is not known yet when they arrive (long scoreboard): on which of the last ones, as a flow names them,
    /// and how long after that it issues.
    pub(super) scoreboard: Option<(u64, f64)>,
}

/// A load in flight.
pub(super) struct InFlight {
    /// Its number in the trace.
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
    /// When the loads in flight that `needs` names have arrived, from `now` on: its bit 0 is the last load that the warp issued.
    pub(super) fn arrival(&self, needs: u64, now: f64) -> f64 {
        self.needed(needs).fold(now, |latest, load| latest.max(load.arrives))
    }

    /// The loads in flight that `needs` names.
    pub(super) fn needed(&self, needs: u64) -> impl Iterator<Item = &InFlight> {
        self.in_flight.iter().filter(move |load| {
            let back = self.loads - load.before - 1;
            back >= 64 || needs >> back & 1 == 1
        })
    }
}

impl Block {
    /// One that is launched on an SM, so many blocks after the first.
    pub(super) fn new(trace: Trace, sm: usize, age: u64) -> Self {
        let warp = |requests| Warp { requests, ..Warp::default() };
        let warps: Vec<_> = requests_by_warp(&trace).into_iter().map(warp).collect();
        let running = warps.len();
        Self { trace, warps, sm, age, running, arrived: 0, in_mio: 0 }
    }

    /// The request that a warp issues next, if there is one.
    pub(super) fn next_request(&self, warp: usize) -> Option<Traced> {
        let Warp { requests, next, .. } = &self.warps[warp];
        requests.get(*next).map(|number| self.trace.requests[*number as usize])
    }
}

/// The numbers of each warp's requests in a block's trace, the barriers of the block among them.
pub(super) fn requests_by_warp(trace: &Trace) -> Vec<Vec<u32>> {
    let of_warps = trace.requests.iter().filter(|request| request.warp != WHOLE_BLOCK);
    let count = of_warps.map(|request| usize::from(request.warp) + 1).max().unwrap_or(1);
    let mut all = vec![Vec::new(); count];
    for (request, number) in trace.requests.iter().zip(0..) {
        match request.warp {
            WHOLE_BLOCK => all.iter_mut().for_each(|of_warp| of_warp.push(number)),
            warp => all[usize::from(warp)].push(number),
        }
    }
    all
}
