//! The L1's tag stage: looks up the lines of a load, a wavefront at a time.
//!
//! In a wavefront each of the four tag banks looks up the next of its lines. Lines that miss are pinned until the load is served, and the
//! load takes up an entry of the pending-request table, which is full at 1024 tag-stage wavefronts (probe `pending`). A line whose bank has
//! only pinned lines is retried (probe `on_their_way`).

use super::super::memory::{Memory, sectors};
use super::data_stage::PendingEntry;
use super::mio::TagProgress;
use super::{Served, Sm};
use engine::trace::{Line, TAG_BANKS, Traced, tag_bank};

/// The result of a line's lookup.
#[derive(Clone, Copy, PartialEq)]
enum Lookup {
    Hit,
    /// Its fill is outstanding, for another load.
    HitOnMiss,
    /// Sectors of it were neither, and were requested.
    Miss,
}

/// What the tag stage has to do with loads that are not served yet.
#[derive(Default)]
pub(super) struct TagStage {
    /// Loads that are looked up and pin lines: without one no line would ever be unpinned, and every line finds room.
    pinning_loads: usize,
    /// Loads that missed so far, and tag-stage wavefronts of those in the pending-request table.
    pending_loads: u64,
    pending_wavefronts: u32,
}

impl Sm {
    /// Gives back what a load took up that the data stage has served.
    pub(super) fn release(&mut self, entry: PendingEntry, lines: &[Line]) {
        let PendingEntry { tag_wavefronts, pinned, .. } = entry;
        self.tags.pending_wavefronts -= tag_wavefronts;
        self.tags.pinning_loads -= usize::from(pinned != 0);
        for (_, line) in lines.iter().enumerate().filter(|(i, _)| pinned >> i & 1 == 1) {
            self.l1.unpin(line.number);
        }
        self.mio.subpartitions.iter_mut().for_each(|subpartition| subpartition.awaits_line = false);
    }

    /// Looks up the lines of a sub-partition's first request, a load, as far as one turn goes.
    pub(super) fn look_up_load(
        &mut self,
        subpartition: usize,
        request: Traced,
        lines: &[Line],
        bypasses_l1: bool,
        now: f64,
        memory: &mut Memory,
    ) -> Option<Served> {
        let mut progress = self.mio.subpartitions[subpartition].queue[0].progress;
        let mut at = now;
        self.l1.evict_to_reserve();
        while progress.looked_up < lines.len() {
            let TagProgress { looked_up, misses, .. } = progress;
            let is_table_full = self.tags.pending_wavefronts >= self.constants.pending_tag_wavefronts;
            let (mut missed, mut stalls) = (0, is_table_full);
            let banks = if is_table_full { 0 } else { TAG_BANKS };
            for bank in 0..banks {
                let of_bank = |i: &usize| tag_bank(lines[*i].number) == bank;
                progress.next[bank] = (progress.next[bank]..lines.len()).find(of_bank).unwrap_or(lines.len());
                let Some(line) = lines.get(progress.next[bank]) else { continue };
                let number = line.number;
                let is_known = bypasses_l1 || self.l1.peek(number).is_some();
                if !is_known && !self.l1.make_room(number) && self.tags.pinning_loads > 0 {
                    stalls = true;
                    continue;
                }
                let (ready, lookup) = self.look_up_line(line, bypasses_l1, at, memory);
                if !bypasses_l1 && lookup != Lookup::Hit {
                    self.l1.pin(number);
                    progress.pinned |= 1 << progress.next[bank];
                }
                progress.next[bank] += 1;
                progress.looked_up += 1;
                progress.filled = progress.filled.max(ready);
                progress.misses += usize::from(lookup != Lookup::Hit);
                missed += u32::from(lookup == Lookup::Miss);
            }
            let advanced = u32::from(progress.looked_up > looked_up);
            progress.tag_wavefronts += advanced;
            // Once it has missed, its earlier wavefronts count as well.
            self.tags.pending_wavefronts += match (misses, progress.misses) {
                (_, 0) => 0,
                (0, _) => progress.tag_wavefronts,
                _ => advanced,
            };
            self.mio.subpartitions[subpartition].awaits_line = advanced == 0;
            // It sends one read a cycle.
            at += f64::from(missed.max(1));
            if stalls {
                self.lsu_free = at;
                self.mio.subpartitions[subpartition].queue[0].progress = progress;
                return None;
            }
        }
        let TagProgress { misses, filled, tag_wavefronts, pinned, .. } = progress;
        let data = data_wavefronts(request, lines.len(), misses);
        let tags = f64::from(tag_wavefronts);
        memory.traffic.l1_data_wavefronts += data;
        memory.traffic.l1_tag_wavefronts += tags;
        self.global_cycles += data.max(tags).max(self.constants.load_min_cycles);
        self.lsu_free = at.max(now + self.constants.load_min_cycles);
        if misses == 0 {
            let wavefronts = data.max(tags).max(self.constants.load_min_cycles);
            // One of the two cycles of a wavefront is in the latency: by the probe `conflicts`.
            return Some(Served::Hit { wavefronts, latency: self.constants.l1_latency - 1.0, is_load: true });
        }
        self.tags.pinning_loads += usize::from(pinned != 0);
        self.tags.pending_loads += 1;
        Some(Served::Miss {
            filled: filled.max(at),
            wavefronts: data.max(self.constants.load_min_cycles),
            entry: PendingEntry { order: self.tags.pending_loads, tag_wavefronts, pinned },
        })
    }

    /// Looks up a line for which there is room, and says when it is filled.
    fn look_up_line(&mut self, line: &Line, bypasses_l1: bool, at: f64, memory: &mut Memory) -> (f64, Lookup) {
        let wanted = sectors(line);
        if bypasses_l1 {
            return (self.read(line.number, wanted, at, memory), Lookup::Miss);
        }
        let known = self.l1.access(line.number);
        let (lacks, ready) = (wanted & !*known.valid, *known.ready);
        if lacks == 0 {
            return (ready, if ready > at { Lookup::HitOnMiss } else { Lookup::Hit });
        }
        *known.valid |= lacks;
        let arrives = self.read(line.number, lacks, at, memory).max(ready);
        if let Some(known) = self.l1.peek(line.number) {
            *known.ready = arrives;
        }
        (arrives, Lookup::Miss)
    }
}

/// Data-stage wavefronts of a load of so many lines, of which so many missed: lines that missed have wavefronts of their own.
fn data_wavefronts(request: Traced, lines: usize, misses: usize) -> f64 {
    let wavefronts = if 2 * misses < lines { request.wavefronts } else { request.miss_wavefronts };
    // Hits do not wait for misses.
    f64::from(wavefronts) + f64::from(u8::from((1..lines).contains(&misses)))
}
