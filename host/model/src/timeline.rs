//! What happened on one SM while the blocks of one wave were resident: which unit served what and when, and what each warp stalled on.
//!
//! A machine that keeps none asks once for each event whether it does. What is kept has no part in what happens.

use engine::Position;
use engine::trace::{Traced, What};
use std::collections::BTreeMap;

/// Which blocks to keep a timeline of, and how much of it.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The SM, from 0.
    pub sm: u32,
    /// The wave of blocks, from 0; none for the second of a launch that has two, else the first.
    pub wave: Option<u64>,
    /// Events to keep at most.
    pub most: usize,
}

/// What happened. Times are in cycles from the beginning of the launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The SM.
    pub sm: u32,
    /// The wave.
    pub wave: u64,
    /// Waves that the launch has, and those of which blocks were replayed.
    pub waves: [u64; 2],
    /// What happened, as it ended.
    pub events: Vec<Event>,
    /// Events that found no room.
    pub left_out: u64,
    /// Requests of these blocks that the LSU served.
    pub requests: u64,
}

/// Something that took its time on a unit, or in a warp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Where.
    pub track: Track,
    /// What.
    pub kind: Kind,
    /// When it began.
    pub start: f64,
    /// When it ended.
    pub end: f64,
    /// The request that it is of, or that is waited for.
    pub of: Option<Of>,
}

/// A request of a warp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Of {
    /// The warp.
    pub warp: WarpId,
    /// What it asks for.
    pub what: What,
    /// Where it stands in the source.
    pub at: Position,
}

/// A warp by its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WarpId {
    /// The block's number in the grid.
    pub block: u64,
    /// The warp's in the block.
    pub warp: usize,
}

/// Where something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Track {
    /// In a warp.
    Warp(WarpId),
    /// At the issue slots of a sub-partition.
    Issue(usize),
    /// In the MIO queue of a sub-partition.
    Mio(usize),
    /// At the LSU, whose tag stage looks lines up.
    Lsu,
    /// In the L1's data stage.
    DataStage,
    /// At the port to the crossbar.
    Port,
    /// At a slice of a partition of the L2.
    Slice {
        /// The partition.
        partition: usize,
        /// The slice in it.
        slice: usize,
    },
    /// At a channel of DRAM.
    Channel(usize),
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A warp cannot issue.
    Stall(Stall),
    /// A unit is busy with a request.
    Serve {
        /// Lines or sectors, as the unit counts.
        units: u32,
    },
    /// The LSU looks a load up as far as there is room, or waits for the port.
    Wait,
    /// The L2 writes a line back.
    WriteBack,
    /// From then on the queue holds so many requests.
    Depth(usize),
}

/// Why a warp does not issue: Nsight Compute's stall reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stall {
    /// Its block is launched, and it has not begun.
    Launch,
    /// On a load of global memory.
    LongScoreboard,
    /// On a load of shared or of constant memory.
    ShortScoreboard,
    /// On an instruction before that has a fixed latency.
    Wait,
    /// On an issue slot: another warp was selected.
    NotSelected,
    /// On an entry of the MIO queue.
    MioThrottle,
    /// At a barrier.
    Barrier,
}

impl Stall {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::LongScoreboard => "long scoreboard",
            Self::ShortScoreboard => "short scoreboard",
            Self::Wait => "wait",
            Self::NotSelected => "not selected",
            Self::MioThrottle => "MIO throttle",
            Self::Barrier => "barrier",
        }
    }
}

/// A timeline as it is kept.
pub(super) struct Recorder {
    timeline: Timeline,
    most: usize,
    /// The blocks that are looked at, by their slots.
    blocks: BTreeMap<usize, u64>,
    /// What warps stall on now, since when, and for which request.
    stalls: BTreeMap<WarpId, (Stall, f64, Option<Of>)>,
}

impl Recorder {
    /// One for a launch of so many blocks, of which the chip holds so many at a time.
    pub(super) fn new(window: Window, blocks: u64, slots: u64) -> Self {
        let waves = blocks.div_ceil(slots);
        let wave = window.wave.unwrap_or_else(|| u64::from(blocks >= 2 * slots));
        let timeline = Timeline { sm: window.sm, wave, waves: [waves, 0], ..Timeline::default() };
        Self { timeline, most: window.most, blocks: BTreeMap::new(), stalls: BTreeMap::new() }
    }

    /// What was kept, once so many waves have been replayed.
    pub(super) fn finish(mut self, replayed: u64) -> Timeline {
        self.timeline.waves[1] = replayed;
        self.timeline
    }

    /// Whether it looks at the block in a slot.
    pub(super) fn watches(&self, slot: usize) -> bool {
        self.blocks.contains_key(&slot)
    }

    /// Whether it looks at an SM now.
    pub(super) fn watches_sm(&self, sm: usize) -> bool {
        sm == self.timeline.sm as usize && !self.blocks.is_empty()
    }

    /// A block is launched on an SM, the first of its wave before so many, and its warps begin later.
    pub(super) fn launch(&mut self, slot: usize, sm: usize, [block, slots]: [u64; 2], warps: usize, now: f64) {
        if sm == self.timeline.sm as usize && block / slots == self.timeline.wave {
            self.blocks.insert(slot, block);
            for warp in 0..warps {
                self.stall(slot, warp, Stall::Launch, now, None);
            }
        }
    }

    /// The block in a slot has ended.
    pub(super) fn retire(&mut self, slot: usize) {
        self.blocks.remove(&slot);
    }

    /// A request of a warp of the block in a slot, if that is looked at.
    pub(super) fn of(&self, slot: usize, warp: usize, request: Traced) -> Option<Of> {
        let block = *self.blocks.get(&slot)?;
        Some(Of { warp: WarpId { block, warp }, what: request.what, at: request.at.position() })
    }

    /// Keeps an event.
    pub(super) fn push(&mut self, event: Event) {
        if self.timeline.events.len() < self.most {
            self.timeline.events.push(event);
        } else {
            self.timeline.left_out += 1;
        }
    }

    /// The LSU has served a request.
    pub(super) fn served(&mut self) {
        self.timeline.requests += 1;
    }

    /// A warp stalls from now on, for a request if it is known for which.
    pub(super) fn stall(&mut self, slot: usize, warp: usize, stall: Stall, now: f64, of: Option<Of>) {
        let Some(block) = self.blocks.get(&slot) else { return };
        let warp = WarpId { block: *block, warp };
        self.end_stall(warp, now);
        self.stalls.insert(warp, (stall, now, of));
    }

    /// A warp exits.
    pub(super) fn exit(&mut self, slot: usize, warp: usize, now: f64) {
        if let Some(block) = self.blocks.get(&slot) {
            self.end_stall(WarpId { block: *block, warp }, now);
        }
    }

    fn end_stall(&mut self, warp: WarpId, now: f64) {
        if let Some((stall, start, of)) = self.stalls.remove(&warp).filter(|(_, start, _)| *start < now) {
            self.push(Event { track: Track::Warp(warp), kind: Kind::Stall(stall), start, end: now, of });
        }
    }
}

/// What units behind the LSU did, while anybody looks.
#[derive(Default)]
pub(super) struct Log(Option<Vec<(Track, Kind, [f64; 2])>>);

impl Log {
    /// From now on it keeps what units do.
    pub(super) fn begin(&mut self) {
        self.0 = Some(Vec::new());
    }

    /// What units did, and the end of keeping it.
    pub(super) fn end(&mut self) -> Vec<(Track, Kind, [f64; 2])> {
        self.0.take().unwrap_or_default()
    }

    /// A unit is busy from when to when.
    #[inline]
    pub(super) fn push(&mut self, track: Track, kind: Kind, start: f64, end: f64) {
        if let Some(kept) = &mut self.0 {
            kept.push((track, kind, [start, end]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(window: Window) -> Recorder {
        let mut recorder = Recorder::new(window, 40, 10);
        // The first block of each wave.
        for (slot, block) in [(0, 0), (0, 10), (0, 20)] {
            recorder.launch(slot, 0, [block, 10], 2, block as f64);
            recorder.stall(slot, 0, Stall::Barrier, block as f64 + 1.0, None);
            recorder.exit(slot, 0, block as f64 + 3.0);
            recorder.retire(slot);
        }
        recorder
    }

    #[test]
    fn the_blocks_of_one_wave_are_looked_at_and_what_finds_no_room_is_counted() {
        let window = Window { sm: 0, wave: Some(2), most: 10 };
        let timeline = recorder(window).finish(3);
        let stalls: Vec<_> = timeline.events.iter().map(|event| (event.kind, event.start, event.end)).collect();
        assert_eq!(stalls, [(Kind::Stall(Stall::Launch), 20.0, 21.0), (Kind::Stall(Stall::Barrier), 21.0, 23.0)]);
        assert_eq!((timeline.waves, timeline.left_out), ([4, 3], 0));
        let cut = recorder(Window { most: 1, ..window }).finish(3);
        assert_eq!((cut.events.len(), cut.left_out), (1, 1));
        assert!(recorder(Window { sm: 1, ..window }).finish(3).events.is_empty());
    }

    #[test]
    fn the_second_wave_is_taken_where_there_are_two() {
        let wave = |blocks| Recorder::new(Window { sm: 0, wave: None, most: 1 }, blocks, 10).finish(0).wave;
        assert_eq!([9, 10, 19, 20, 100].map(wave), [0, 0, 0, 1, 1]);
    }
}
