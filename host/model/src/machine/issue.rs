//! Warps issue: what they stall on, and which of them a sub-partition selects.
//!
//! A sub-partition selects an eligible warp of the oldest block (probe `queues`). A warp stalls on the loads that its next request needs, on
//! registers for another load, on an issue slot, and on an entry of the MIO queue. Warps of an SM arrive at barriers one after another
//! (probe `barriers`).

use super::super::sm::{MioRequest, PendingEntry, SUBPARTITIONS};
use super::super::timeline::{Event as Happened, Kind, Stall, Track};
use super::Machine;
use super::block::InFlight;
use super::events::Event;
use engine::trace::{Flow, WHOLE_BLOCK, What};
use std::cmp::Reverse;

/// ptxas issues so many loads before it uses the first: 10 to 17, by what it made of the suite's loops.
const MAX_IN_FLIGHT: usize = 13;

impl Machine {
    /// Has a sub-partition select a stalled warp, and look again.
    pub(super) fn select(&mut self, now: f64, number: usize) {
        let subpartition = &mut self.sms[number / SUBPARTITIONS].mio.subpartitions[number % SUBPARTITIONS];
        // It was to select before.
        if subpartition.next_select != now {
            return;
        }
        subpartition.next_select = f64::INFINITY;
        if let Some((slot, warp)) = subpartition.select(now) {
            self.issue(now, slot, warp, true);
        }
        self.schedule_select(number, now);
    }

    /// Has a sub-partition select one of its stalled warps when it can.
    pub(super) fn schedule_select(&mut self, number: usize, now: f64) {
        let subpartition = &mut self.sms[number / SUBPARTITIONS].mio.subpartitions[number % SUBPARTITIONS];
        let next_select = subpartition.next_select;
        if let Some(at) = subpartition.can_select().map(|at| at.max(now)).filter(|at| *at < next_select) {
            subpartition.next_select = at;
            self.events.schedule(at, Event::Select { subpartition: number });
        }
    }

    /// Has a warp issue its next request, or stall.
    pub(super) fn issue(&mut self, now: f64, slot: usize, warp: usize, selected: bool) {
        let again = Event::Warp { slot, warp };
        let block = self.slots[slot].as_mut().expect("a warp that issues has a block");
        let state = &mut block.warps[warp];
        state.in_flight.retain(|load| load.arrives > now);
        let Some(number) = state.requests.get(state.next).map(|number| *number as usize) else {
            if state.arrival(u64::MAX, now) > now {
                return self.stall_on_loads(u64::MAX, 0.0, slot, warp, now);
            }
            block.running -= 1;
            if let Some(recorder) = &mut self.recorder {
                recorder.exit(slot, warp, now);
            }
            self.ended = self.ended.max(now);
            return self.retire(now, slot);
        };
        let request = block.trace.requests[number];
        let Flow { needs, after, .. } = request.flow;
        let is_load = matches!(request.what, What::Load { .. } | What::SharedLoad | What::Constant);
        if state.arrival(needs, now) > now {
            return self.stall_on_loads(needs, after.into(), slot, warp, now);
        }
        if is_load
            && let Some(oldest) = state.in_flight.first().map(|oldest| state.loads - oldest.before)
            && oldest >= MAX_IN_FLIGHT
        {
            return self.stall_on_loads(1 << (oldest - 1).min(63), 0.0, slot, warp, now);
        }
        // Warps take the sub-partitions in turn, from one block of the SM to the next.
        let subpartition_number = (slot / self.sms.len() + warp) % SUBPARTITIONS;
        let subpartition = &mut self.sms[block.sm].mio.subpartitions[subpartition_number];
        let is_barrier = request.what == What::Wait && request.warp == WHOLE_BLOCK;
        let uses_mio = is_barrier || !matches!(request.what, What::Wait | What::Constant | What::Instructions);
        if !selected && subpartition.stalls(uses_mio, now) {
            if let Some(recorder) = &mut self.recorder {
                let stall = if subpartition.is_throttled(uses_mio) { Stall::MioThrottle } else { Stall::NotSelected };
                let of = recorder.of(slot, warp, request);
                recorder.stall(slot, warp, stall, now, of);
            }
            let stalled = Reverse((block.age, self.events.number(), slot, warp));
            if uses_mio {
                subpartition.mio_throttled.push(stalled);
            } else {
                subpartition.not_selected.push(stalled);
            }
            let number = block.sm * SUBPARTITIONS + subpartition_number;
            return self.schedule_select(number, now);
        }
        state.next += 1;
        let next = state.requests.get(state.next).map(|number| block.trace.requests[*number as usize].flow);
        let to_next = next.map_or(0.0, |flow| f64::from(flow.chain));
        let issued = now.max(subpartition.issue_free);
        let cycles = self.constants.issue_cycles * f64::from(request.flow.issue);
        subpartition.issue_free = issued + cycles * SUBPARTITIONS as f64;
        if let Some(recorder) = &mut self.recorder
            && let Some(of) = recorder.of(slot, warp, request)
        {
            let (track, kind) = (Track::Issue(subpartition_number), Kind::Serve { units: request.flow.issue.into() });
            let [start, end] = [issued, subpartition.issue_free];
            recorder.push(Happened { track, kind, start, end, of: Some(of) });
            recorder.stall(slot, warp, if is_barrier { Stall::Barrier } else { Stall::Wait }, issued, Some(of));
        }
        let sm = &mut self.sms[block.sm];
        sm.issue_cycles += cycles;
        if matches!(request.what, What::Wait | What::Instructions) && !is_barrier {
            return self.events.schedule(issued + to_next, again);
        }
        let before = state.loads;
        state.loads += usize::from(is_load);
        let (number, entry) = (number as u32, PendingEntry::default());
        let in_flight = |arrives| InFlight { number, before, wavefronts: 0.0, entry, arrives };
        if request.what == What::Constant {
            let arrives = sm.read_constant(request, issued);
            state.in_flight.push(in_flight(arrives));
        } else {
            if is_load {
                state.in_flight.push(in_flight(f64::INFINITY));
            }
            sm.mio.add(subpartition_number, MioRequest::new(slot, warp, state.next - 1));
            block.in_mio += 1;
            let sm = block.sm;
            self.record_depth(sm, subpartition_number, issued);
            self.schedule_lsu(sm, issued);
            if is_barrier {
                return;
            }
        }
        self.events.schedule(issued + to_next, again);
    }

    /// A warp arrives at a barrier; the last of its block has all issue.
    pub(super) fn arrive_at_barrier(&mut self, now: f64, slot: usize, warp: usize) {
        let block = self.slots[slot].as_mut().expect("a warp at a barrier has a block");
        let barrier_free = &mut self.sms[block.sm].barrier_free;
        *barrier_free = barrier_free.max(now) + self.constants.barrier_arrival_cycles;
        block.arrived += 1;
        // Warps that have exited are not waited for: none has, since all come to every barrier.
        if block.arrived == block.running {
            block.arrived = 0;
            let to_next = block.next_request(warp).map_or(0.0, |next| next.flow.chain.into());
            let at = *barrier_free + self.constants.barrier_cycles + to_next;
            for warp in 0..block.running {
                self.events.schedule(at, Event::Warp { slot, warp });
            }
        }
    }

    /// Has a warp stall until those of its loads that `needs` names have arrived, and some cycles more.
    fn stall_on_loads(&mut self, needs: u64, after: f64, slot: usize, warp: usize, now: f64) {
        if self.recorder.is_some() {
            self.record_scoreboard(needs, slot, warp, now);
        }
        let state = &mut self.slots[slot].as_mut().expect("a warp that stalls has a block").warps[warp];
        let arrival = state.arrival(needs, now);
        if arrival.is_finite() {
            return self.events.schedule(arrival + after, Event::Warp { slot, warp });
        }
        state.scoreboard = Some((needs, after));
    }

    /// A load arrives: a warp that stalls on it issues then.
    pub(super) fn arrive(&mut self, arrives: f64, slot: usize, warp: usize, number: u32) {
        let block = self.slots[slot].as_mut().expect("a load that arrives is a block's");
        let state = &mut block.warps[warp];
        if let Some(load) = state.in_flight.iter_mut().find(|load| load.number == number) {
            load.arrives = arrives;
        }
        if let Some((needs, after)) = state.scoreboard {
            let arrival = state.arrival(needs, arrives);
            if arrival.is_finite() {
                state.scoreboard = None;
                self.events.schedule(arrival + after, Event::Warp { slot, warp });
            }
        }
    }

    /// Frees the slot of a block that has nothing left to do.
    pub(super) fn retire(&mut self, now: f64, slot: usize) {
        if self.slots[slot].as_ref().is_some_and(|block| block.running + block.in_mio == 0) {
            self.slots[slot] = None;
            if let Some(recorder) = &mut self.recorder {
                recorder.retire(slot);
            }
            self.scheduler.release(slot, now);
        }
    }
}
