//! The way of a request from the MIO on: LSU, data stage, fills.
//!
//! A saturated unit stalls those before it: a port with too much work queued stalls the LSU, and so does a full data stage.

use super::super::sm::{DataRequest, Served};
use super::block::InFlight;
use super::events::Event;
use super::{Machine, SNAPSHOT_REQUESTS};
use engine::trace::What;

impl Machine {
    /// Has the LSU of an SM serve a request once it can.
    pub(super) fn schedule_lsu(&mut self, number: usize, now: f64) {
        let sm = &mut self.sms[number];
        if sm.data_stage.is_full() {
            return;
        }
        let at = now.max(sm.lsu_free);
        if at < sm.lsu_event && sm.mio.is_ready() {
            sm.lsu_event = at;
            self.events.schedule(at, Event::Lsu { sm: number });
        }
    }

    /// Has the LSU serve the first request of a sub-partition, or as much of it as one turn takes.
    pub(super) fn serve_lsu(&mut self, now: f64, number: usize) {
        let sm = &mut self.sms[number];
        // It was to serve one before.
        if sm.lsu_event != now {
            return;
        }
        sm.lsu_event = f64::INFINITY;
        let Some(subpartition) = sm.mio.arbitrate() else { return };
        let first = &sm.mio.subpartitions[subpartition].queue[0];
        let (slot, warp, index) = (first.slot, first.warp, first.index);
        let block = self.slots[slot].as_mut().expect("a request in the MIO is a block's");
        let (trace, state) = (&block.trace, &mut block.warps[warp]);
        let request_number = state.requests[index];
        let request = trace.requests[request_number as usize];
        let lines = trace.lines_of(request_number as usize);
        // A store of a few lines just before, if that is the warp's last request: this one merges with it.
        let before = index.checked_sub(1).map(|before| state.requests[before] as usize);
        let before = before.filter(|before| trace.requests[*before].what == What::Store);
        let before = before.map(|before| trace.lines_of(before));
        let before = before.filter(|lines| lines.len() <= self.constants.store_merge_lines).unwrap_or_default();
        let is_watched = self.recorder.as_ref().is_some_and(|recorder| recorder.watches(slot));
        if is_watched {
            self.memory.log.begin();
        }
        let served = sm.serve(subpartition, request, &lines, &before, now, &mut self.memory);
        let looked_up = sm.lsu_free;
        sm.lsu_free = sm.lsu_free.max(sm.port_free - self.constants.sm_port_queue_cycles);
        if is_watched && let Some(recorder) = &mut self.recorder {
            let of = recorder.of(slot, warp, request);
            recorder.lsu(of, [now, looked_up, sm.lsu_free], lines.len(), served.is_some());
            recorder.units(of, self.memory.log.end());
        }
        if let Some(served) = served {
            sm.mio.remove(subpartition);
            block.in_mio -= 1;
            let is_barrier = request.what == What::Wait;
            // Not what a warp issues without an active lane.
            let counts = request.wavefronts > 0;
            self.requests += u64::from(counts);
            self.loads += u64::from(matches!(request.what, What::Load { .. }));
            self.stores += u64::from(matches!(request.what, What::Store | What::Atomic { .. }));
            self.replayed += u64::from(counts) + lines.len() as u64;
            match served {
                Served::Done if is_barrier => self.arrive_at_barrier(now, slot, warp),
                Served::Done => {}
                Served::Hit { wavefronts, latency, is_load } => {
                    let load = is_load.then_some(request_number);
                    sm.data_stage.add_hit(DataRequest { slot, warp, load, wavefronts, latency });
                }
                Served::Miss { filled, wavefronts, entry } => {
                    let load = state.in_flight.iter_mut().find(|load| load.number == request_number);
                    let load = load.expect("a load that is served is in flight");
                    (load.wavefronts, load.entry) = (wavefronts, entry);
                    self.events.schedule(filled, Event::Fill { slot, warp, number: request_number });
                }
            }
            if counts
                && self.requests.is_multiple_of(SNAPSHOT_REQUESTS)
                && (!self.pending.is_empty() || self.scheduler.next().is_none())
            {
                self.snapshots.push(self.snapshot(self.requests, now));
            }
            self.record_depth(number, subpartition, now);
            self.retire(now, slot);
            self.schedule_select(number * super::SUBPARTITIONS + subpartition, now);
        }
        self.serve_data_stage(number, now);
        self.schedule_lsu(number, now);
    }

    /// The last line of a load is filled: it queues for the data stage.
    pub(super) fn fill(&mut self, now: f64, slot: usize, warp: usize, number: u32) {
        let block = self.slots[slot].as_ref().expect("a load in flight is a block's");
        let load = block.warps[warp].in_flight.iter().find(|load| load.number == number);
        let InFlight { wavefronts, entry, .. } = *load.expect("a load that is filled was in flight");
        let (sm, load, latency) = (block.sm, Some(number), self.constants.l1_latency);
        self.sms[sm].data_stage.add_fill(DataRequest { slot, warp, load, wavefronts, latency }, entry);
        self.serve_data_stage(sm, now);
        self.schedule_lsu(sm, now);
    }

    /// Has the data stage of an SM serve what it can now, and what is left once it can.
    fn serve_data_stage(&mut self, number: usize, now: f64) {
        while let Some((request, at)) = self.sms[number].serve_data_stage(now, |request: &DataRequest| {
            let block = self.slots[request.slot].as_ref().expect("a load that is filled is a block's");
            block.trace.lines_of(request.load.expect("what is filled is a load") as usize)
        }) {
            self.record_data_stage(&request, now, at);
            let DataRequest { slot, warp, load, latency, .. } = request;
            if let Some(load) = load {
                self.arrive(at + latency, slot, warp, load);
            }
        }
        let data_stage = &mut self.sms[number].data_stage;
        let at = data_stage.next_free(now);
        if at < data_stage.next_event {
            data_stage.next_event = at;
            self.events.schedule(at, Event::DataStage { sm: number });
        }
    }

    /// A slot of the data stage of an SM is free.
    pub(super) fn data_stage(&mut self, now: f64, number: usize) {
        let data_stage = &mut self.sms[number].data_stage;
        // It was to serve before.
        if data_stage.next_event != now {
            return;
        }
        data_stage.next_event = f64::INFINITY;
        self.serve_data_stage(number, now);
        self.schedule_lsu(number, now);
    }
}
