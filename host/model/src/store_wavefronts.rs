//! Wavefronts and bank conflicts of stores, atomics and shared memory, which do not depend on the caches: they are counted, not replayed.

use super::Traffic;
use engine::Site;
use engine::coalesce::LINE;
use engine::trace::{Trace, WHOLE_BLOCK, What};
use gpu::suite::Operation;
use gpu::suite::Space;

/// Global stores and atomics of some blocks.
#[derive(Debug, Default)]
pub(super) struct StoreWavefronts {
    requests: u64,
    wavefronts: u64,
    /// Wavefronts of stores to lines that the warp's last request stored to as well.
    mergeable: u64,
    conflicts: u64,
    /// The last request of each warp of a block.
    last: Vec<Option<usize>>,
}

impl StoreWavefronts {
    /// Adds those of a block.
    pub(super) fn add(&mut self, trace: &Trace) {
        self.last.clear();
        for (number, request) in trace.requests.iter().enumerate() {
            if request.warp == WHOLE_BLOCK {
                self.last.clear();
                continue;
            }
            let warp = usize::from(request.warp);
            if self.last.len() <= warp {
                self.last.resize(warp + 1, None);
            }
            let last = self.last[warp].replace(number);
            if !matches!(request.what, What::Store | What::Atomic { .. }) {
                continue;
            }
            let (lines, tags) = (trace.lines_of(number), u64::from(request.tag_wavefronts));
            let bytes: u64 = lines.iter().flat_map(|line| line.bytes).map(u64::from).sum();
            let wavefronts = u64::from(request.wavefronts).max(tags);
            self.requests += 1;
            self.wavefronts += wavefronts;
            self.conflicts += wavefronts.saturating_sub(tags.max(bytes.div_ceil(LINE)));
            let last = last.filter(|last| trace.requests[*last].what == What::Store && request.what == What::Store);
            let with = last.map(|last| trace.lines_of(last)).unwrap_or_default();
            if lines.iter().any(|line| with.iter().any(|other| other.number == line.number)) {
                self.mergeable += wavefronts;
            }
        }
    }

    /// `traffic` with those of the whole launch, which makes `times` as many requests at each of `sites`.
    pub(super) fn of_launch(&self, traffic: Traffic, sites: &[Site], times: f64) -> Traffic {
        let requests = |site: &&Site| site.space == Space::Global && site.operation != Operation::Load;
        let stores: u64 = sites.iter().filter(requests).map(|site| site.counts.requests).sum();
        let at_shared = sites.iter().filter(|site| site.space == Space::Shared);
        let of_shared: u64 = at_shared.map(|site| site.counts.wavefronts - site.counts.wavefronts_ideal).sum();
        // Traces may lack some.
        let each = times * stores as f64 / self.requests.max(1) as f64;
        Traffic {
            store_wavefronts: each * self.wavefronts as f64,
            mergeable_store_wavefronts: each * self.mergeable as f64,
            store_and_shared_bank_conflicts: each * self.conflicts as f64 + times * of_shared as f64,
            ..traffic
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::trace::{Flow, Line, Traced};

    #[test]
    fn wavefronts_and_conflicts_of_stores_are_those_of_the_launch() {
        let mut trace = Trace::default();
        let at = crate::pc();
        let mut add = |warp, what, wavefronts, tag_wavefronts, lines: &[Line]| {
            let lines_end = trace.add_lines(lines);
            trace.requests.push(Traced {
                warp,
                what,
                at,
                wavefronts,
                miss_wavefronts: 0,
                tag_wavefronts,
                lines_end,
                flow: Flow::default(),
            });
        };
        let [line, next, other] = [1, 2, 3].map(|number| Line { number, bytes: [32; 4] });
        add(0, What::Store, 1, 1, &[line]);
        // 16 bytes a lane: four lines, and as many wavefronts that are no conflict.
        add(1, What::Store, 4, 1, &[line, next, other, line]);
        // What the tag stage needs is none either.
        add(0, What::Store, 5, 2, &[next]);
        add(0, What::Atomic { waiting: 0 }, 1, 3, &[next]);
        add(0, What::Store, 1, 1, &[next]);
        add(1, What::Store, 2, 1, &[next]);
        add(0, What::Store, 1, 1, &[next]);
        add(WHOLE_BLOCK, What::Wait, 0, 0, &[]);
        add(0, What::Store, 1, 1, &[next]);
        add(0, What::Load { past_l1: false }, 8, 8, &[next]);
        let mut stores = StoreWavefronts::default();
        stores.add(&trace);
        // Warp 1 stores to a line that it has just stored to, and so does warp 0 after an atomic, with which it does not merge.
        assert_eq!((stores.requests, stores.wavefronts, stores.mergeable), (8, 18, 3));
        assert_eq!(stores.conflicts, 3 + 1);
        let traffic = stores.of_launch(Traffic { l2_read_sectors: 1.0, ..Traffic::default() }, &[], 1.0);
        assert_eq!((traffic.store_wavefronts, traffic.l2_read_sectors), (0.0, 1.0), "no site stores");
    }
}
