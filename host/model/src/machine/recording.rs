//! What a machine tells the recorder of a timeline, if it has one. See `timeline.rs`.

use super::super::sm::DataRequest;
use super::super::timeline::{Event, Kind, Of, Recorder, Stall, Track};
use super::Machine;
use engine::trace::What;

impl Machine {
    /// How many requests the MIO queue of a sub-partition holds from now on.
    pub(super) fn record_depth(&mut self, sm: usize, subpartition: usize, now: f64) {
        if let Some(recorder) = &mut self.recorder
            && recorder.watches_sm(sm)
        {
            let depth = self.sms[sm].mio.subpartitions[subpartition].queue.len();
            let (track, kind) = (Track::Mio(subpartition), Kind::Depth(depth));
            recorder.push(Event { track, kind, start: now, end: now, of: None });
        }
    }

    /// A warp stalls on loads: on the last of them to arrive, as far as that is known.
    pub(super) fn record_scoreboard(&mut self, needs: u64, slot: usize, warp: usize, now: f64) {
        let (Some(recorder), Some(block)) = (&mut self.recorder, &self.slots[slot]) else { return };
        let last = block.warps[warp].needed(needs).max_by(|a, b| a.arrives.total_cmp(&b.arrives));
        let request = last.map(|load| block.trace.requests[load.number as usize]);
        let stall = match request.map(|request| request.what) {
            Some(What::SharedLoad | What::Constant) => Stall::ShortScoreboard,
            _ => Stall::LongScoreboard,
        };
        let of = request.and_then(|request| recorder.of(slot, warp, request));
        recorder.stall(slot, warp, stall, now, of);
    }

    /// The data stage has begun to serve a request.
    pub(super) fn record_data_stage(&mut self, request: &DataRequest, now: f64, served: f64) {
        let DataRequest { slot, warp, load, wavefronts, .. } = *request;
        let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.watches(slot)) else { return };
        let block = self.slots[slot].as_ref();
        let request = load.zip(block).map(|(load, block)| block.trace.requests[load as usize]);
        let of = request.and_then(|request| recorder.of(slot, warp, request));
        let kind = Kind::Serve { units: wavefronts as u32 };
        recorder.push(Event { track: Track::DataStage, kind, start: now, end: served, of });
    }
}

impl Recorder {
    /// The LSU turned to a request: it looked it up until the second of these times, and waited for the port until the third.
    pub(super) fn lsu(&mut self, of: Option<Of>, [now, looked_up, free]: [f64; 3], lines: usize, is_served: bool) {
        let kind = if is_served { Kind::Serve { units: lines as u32 } } else { Kind::Wait };
        let parts = [(kind, now, looked_up), (Kind::Wait, looked_up.max(now), free)];
        for (kind, start, end) in parts.into_iter().filter(|(_, start, end)| start < end) {
            self.push(Event { track: Track::Lsu, kind, start, end, of });
        }
        if is_served {
            self.served();
        }
    }

    /// Units behind the LSU did this for a request.
    pub(super) fn units(&mut self, of: Option<Of>, did: Vec<(Track, Kind, [f64; 2])>) {
        for (track, kind, [start, end]) in did.into_iter().filter(|(.., [start, end])| start < end) {
            self.push(Event { track, kind, start, end, of });
        }
    }
}
