//! From a launch that is replayed in part to the whole: it is extrapolated from the replayed waves, as soon as they are in steady state.

use super::machine::Snapshot;
use super::traffic::{Busy, Traffic};

/// A unit that is busy for less than this share of the time is not what a launch waits for.
pub(super) const SATURATED: f64 = 0.6;

/// Fewer waves than this do not show a steady state.
pub(super) const WAVES: usize = 3;

/// The launch once `whole` is done, so many loads of global memory and stores to it among that, extrapolated from the second half of the
/// snapshots; none if they are too few. Blocks that wait for one another make their loads all at a time, or their stores, and a snapshot may
/// stand before or after: so what loads move is extrapolated load by load, and what stores move store by store.
pub(super) fn extrapolate(
    snapshots: &[Snapshot],
    [whole, loads, stores]: [f64; 3],
    at_least: usize,
) -> Option<Snapshot> {
    let (last, middle) = (snapshots.last()?, snapshots.get(snapshots.len() / 2)?);
    let rest = |whole: f64, last: u64, middle: u64| {
        let replayed = (last - middle) as f64;
        (replayed > 0.0).then(|| (whole - last as f64) / replayed)
    };
    let times = rest(whole, last.done, middle.done).filter(|_| snapshots.len() >= at_least)?;
    let of_loads = rest(loads, last.loads, middle.loads).map_or(times, |of_loads| of_loads.max(0.0));
    let of_stores = rest(stores, last.stores, middle.stores).map_or(times, |of_stores| of_stores.max(0.0));
    Some(repeat(*last, *middle, [times, of_loads, of_stores]))
}

/// `last`, and `times` as much again as came since `earlier`, but `of_loads` and `of_stores` times as much of what those moved. The dirty
/// residency of the L2 cannot become less than nothing: what would be written back after that is not, which takes less time where DRAM is
/// saturated.
pub(super) fn repeat(last: Snapshot, earlier: Snapshot, [times, of_loads, of_stores]: [f64; 3]) -> Snapshot {
    let end = add(last, add(last, earlier, [-1.0; 3]), [times, of_loads, of_stores]);
    let never_dirty = |times: f64| (times * (earlier.dirty_sectors - last.dirty_sectors) - last.dirty_sectors).max(0.0);
    let cycles = never_dirty(times) * last.busy.dram
        / (last.traffic.dram_read_sectors + last.traffic.dram_write_sectors).max(1.0);
    let waited = if end.busy.dram >= SATURATED * end.cycles { cycles } else { 0.0 };
    let dram_write_sectors = (end.traffic.dram_write_sectors - never_dirty(of_stores)).max(0.0);
    Snapshot {
        cycles: end.cycles - waited,
        traffic: Traffic { dram_write_sectors, ..end.traffic },
        busy: Busy { dram: end.busy.dram - cycles, ..end.busy },
        ..end
    }
}

/// `one`, and `times` as much of `more`, but `of_loads` and `of_stores` times as much of what those moved.
fn add(one: Snapshot, more: Snapshot, [times, of_loads, of_stores]: [f64; 3]) -> Snapshot {
    let sum = |a: f64, b: f64| a + times * b;
    let sum_of_loads = |a: f64, b: f64| a + of_loads * b;
    let sum_of_stores = |a: f64, b: f64| a + of_stores * b;
    let (t, u, b, c) = (one.traffic, more.traffic, one.busy, more.busy);
    let completed_sectors = sum_of_stores(one.completed_sectors, more.completed_sectors);
    let [fetched, more_fetched] = [one, more].map(|of| of.traffic.dram_read_sectors - of.completed_sectors);
    Snapshot {
        cycles: sum(one.cycles, more.cycles),
        traffic: Traffic {
            l1_data_wavefronts: sum_of_loads(t.l1_data_wavefronts, u.l1_data_wavefronts),
            l1_tag_wavefronts: sum_of_loads(t.l1_tag_wavefronts, u.l1_tag_wavefronts),
            shared_wavefronts: sum(t.shared_wavefronts, u.shared_wavefronts),
            l2_read_sectors: sum_of_loads(t.l2_read_sectors, u.l2_read_sectors),
            l2_write_sectors: sum_of_stores(t.l2_write_sectors, u.l2_write_sectors),
            dram_read_sectors: completed_sectors + sum_of_loads(fetched, more_fetched),
            dram_write_sectors: sum_of_stores(t.dram_write_sectors, u.dram_write_sectors),
            ..t
        },
        completed_sectors,
        busy: Busy {
            dram: sum(b.dram, c.dram),
            l2: sum(b.l2, c.l2),
            lsu_global: sum(b.lsu_global, c.lsu_global),
            lsu_shared: sum(b.lsu_shared, c.lsu_shared),
            issue: sum(b.issue, c.issue),
        },
        ..one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_is_extrapolated_request_by_request_load_by_load_and_store_by_store() {
        let snapshot = |done, loads, stores, cycles, moved: [f64; 4]| {
            let [l2_read_sectors, l2_write_sectors, completed, others] = moved;
            let traffic = Traffic {
                l2_read_sectors,
                l2_write_sectors,
                dram_read_sectors: completed + others,
                ..Traffic::default()
            };
            Snapshot {
                done,
                loads,
                stores,
                cycles,
                traffic,
                completed_sectors: completed,
                dirty_sectors: 0.0,
                busy: Busy::default(),
            }
        };
        // In the second half fewer loads were made than stores.
        let snapshots = [
            snapshot(5, 4, 1, 10.0, [16.0, 32.0, 0.0, 4.0]),
            snapshot(10, 8, 2, 20.0, [32.0, 64.0, 1.0, 8.0]),
            snapshot(20, 10, 10, 40.0, [40.0, 320.0, 9.0, 10.0]),
        ];
        let end = extrapolate(&snapshots, [40.0, 20.0, 20.0], 2).expect("there are enough");
        assert_eq!((end.cycles, end.traffic.l2_read_sectors, end.traffic.l2_write_sectors), (80.0, 80.0, 640.0));
        assert_eq!((end.completed_sectors, end.traffic.dram_read_sectors), (19.0, 19.0 + 20.0));
        assert!(extrapolate(&snapshots, [40.0, 20.0, 20.0], 4).is_none(), "too few");
        let none = extrapolate(&snapshots, [40.0, 10.0, 10.0], 2).expect("there are enough");
        assert_eq!(
            (none.traffic.l2_read_sectors, none.traffic.l2_write_sectors),
            (40.0, 320.0),
            "no more of them come"
        );
    }

    #[test]
    fn no_more_is_written_back_than_was_dirty() {
        let snapshot = |done, dirty_sectors, dram| {
            let (cycles, written) = (10.0 * done as f64, 8.0 * done as f64);
            let traffic =
                Traffic { dram_read_sectors: 2.0 * written, dram_write_sectors: written, ..Traffic::default() };
            let busy = Busy { dram, ..Busy::default() };
            Snapshot { done, loads: done, stores: 0, cycles, traffic, completed_sectors: 0.0, dirty_sectors, busy }
        };
        let end = |dirty, busy| {
            let snapshots = [
                snapshot(10, 160.0, busy * 100.0),
                snapshot(20, dirty, busy * 200.0),
                snapshot(30, 2.0 * dirty - 160.0, busy * 300.0),
            ];
            let end = extrapolate(&snapshots, [60.0, 60.0, 0.0], 2).expect("there are enough");
            (end.cycles, end.traffic.dram_write_sectors, end.busy.dram)
        };
        assert_eq!(end(160.0, 0.9), (600.0, 480.0, 540.0), "as much becomes dirty as is written back");
        assert_eq!(end(128.0, 0.9), (600.0, 480.0, 540.0));
        // A sector takes 540 cycles of 1440 sectors.
        assert_eq!(end(120.0, 0.96), (584.0, 440.0, 560.0), "DRAM is saturated");
        assert_eq!(end(120.0, 0.48), (600.0, 440.0, 280.0), "it does not");
    }
}
