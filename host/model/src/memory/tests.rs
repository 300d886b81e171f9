//! The memory system held to what probes measured.

use super::super::hash::mix;
use super::*;
use gpu::suite::noise;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn h200() -> (Constants, Memory) {
    let chip = Chip::load("h200").expect("is built in");
    let constants = Constants::of(&chip);
    (constants, Memory::new(&chip, &constants))
}

/// What the probe `ways` measured on an H200: the variance of the cycles that reads of a line take, by GPCs at one L2 partition. That is
/// the covariance within GPCs less that of others.
#[test]
fn paths_differ_more_where_the_l2_misses() {
    const LINES: u64 = 128;
    let chip = Chip { l2_bytes: 60 << 12, ..Chip::load("h200").expect("is built in") };
    let constants = Constants::of(&chip);
    for (known, measured) in [(true, 30.0), (false, 330.0)] {
        let mut variance = 0.0;
        for line in 0..LINES {
            let took = [0, 1, 4, 5].map(|gpc| {
                let (number, mut memory) = (33 * line, Memory::new(&chip, &constants));
                if known {
                    memory.read(gpc, number, 1, 0.0);
                }
                memory.read(gpc, number, 1, 1e5) - 1e5
            });
            let mean = took.iter().sum::<f64>() / 4.0;
            variance += took.iter().map(|cycles| (cycles - mean).powi(2)).sum::<f64>() / 3.0 / LINES as f64;
        }
        assert!((variance / measured - 1.0).abs() < 0.2, "known {known}: {variance:.0} for {measured}");
    }
}

/// What the probe `partitions` counted on an H200, whose L2 is sixteen times as large: the share of the sectors read that misses.
#[test]
fn lines_that_both_l2_partitions_read_are_cached_in_both() {
    let chip = Chip { l2_bytes: 60 << 16, ..Chip::load("h200").expect("is built in") };
    let constants = Constants::of(&chip);
    let from_memory = |sixteenths: u64, own: bool, stores: bool| {
        let mut memory = Memory::new(&chip, &constants);
        let (lines, mut at) = (sixteenths << 9, 0.0);
        let whole = |number| Line { number, bytes: [SECTOR as u8; 4] };
        for i in 0..16 * lines {
            let (sm, drawn) = ((noise(2 * i) as usize) % 128, noise(2 * i + 1) as u64);
            let number = if own { sm as u64 * (lines / 128) + drawn % (lines / 128) } else { drawn % lines };
            at += 1e4;
            memory.read(sm * constants.gpcs / 132, number, ALL_SECTORS, at);
            if stores {
                memory.write(sm * constants.gpcs / 132, &whole((1 << 33) + i), ALL_SECTORS, at);
            }
        }
        memory.traffic.dram_read_sectors / (64 * lines) as f64
    };
    for (mebibytes, own, stores, measured) in [
        (24, false, false, 0.0626),
        (32, false, false, 0.0929),
        (40, false, false, 0.1890),
        (64, false, false, 0.4331),
        (40, true, false, 0.0629),
        (48, true, false, 0.0695),
        (64, true, false, 0.2866),
        (8, false, true, 0.1211),
        (16, false, true, 0.2964),
        (32, false, true, 0.5473),
    ] {
        let predicted = from_memory(mebibytes, own, stores);
        let error = predicted / measured - 1.0;
        assert!(error.abs() < 0.13, "{mebibytes} MiB, own {own}, stores {stores}: {predicted:.4} for {measured}");
    }
}

/// What `in_step` of `counted.cu` counted on an H200, whose L2 is sixteen times as large: how many sectors are read and written back
/// for each line that is loaded from or stored to, of so many twelfths of 50 MiB that every SM comes back to in step with all others,
/// sixteen times.
#[test]
fn the_l2_evicts_the_least_recently_used_line() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Access {
        Load,
        Part,
        Whole,
    }
    use Access::*;
    let chip = Chip { l2_bytes: 60 << 16, ..Chip::load("h200").expect("is built in") };
    let constants = Constants::of(&chip);
    let step = 132 * 16;
    let moved = |what: Access, apart: u64, round: u64| {
        let (mut memory, mut at) = (Memory::new(&chip, &constants), 0.0);
        for (i, thread) in (0..16 * round).flat_map(|i| (0..step).map(move |thread| (i, thread))) {
            let (number, gpc) = ((i % round * step + thread) * apart, thread as usize / 16 * constants.gpcs / 132);
            at += 1e4;
            match what {
                Load => _ = memory.read(gpc, number, 1, at),
                Part => memory.write(gpc, &Line { number, bytes: [4, 0, 0, 0] }, 1, at),
                Whole => memory.write(gpc, &Line { number, bytes: [SECTOR as u8; 4] }, ALL_SECTORS, at),
            }
        }
        [memory.traffic.dram_read_sectors, memory.traffic.dram_write_sectors]
            .map(|sectors| sectors / (16 * round * step) as f64)
    };
    for (what, apart, round, measured) in [
        (Load, 1, 8, [0.125, 0.0]),
        (Load, 1, 10, [0.284, 0.0]),
        (Load, 1, 11, [1.016, 0.0]),
        (Load, 1, 12, [1.917, 0.0]),
        (Load, 4, 8, [0.217, 0.0]),
        (Load, 4, 12, [1.566, 0.0]),
        (Load, 4, 16, [1.986, 0.0]),
        (Part, 1, 6, [0.048, 0.043]),
        (Part, 1, 8, [0.052, 0.343]),
        (Part, 1, 10, [0.061, 0.908]),
        (Part, 1, 13, [0.063, 0.964]),
        (Part, 1, 14, [0.340, 0.971]),
        (Part, 1, 16, [0.942, 0.983]),
        (Part, 4, 6, [0.049, 0.160]),
        (Part, 4, 8, [0.056, 0.494]),
        (Part, 4, 12, [0.246, 0.923]),
        (Part, 4, 16, [0.758, 0.981]),
        (Whole, 1, 6, [0.0, 0.017]),
        (Whole, 1, 8, [0.0, 2.569]),
        (Whole, 1, 10, [0.0, 3.828]),
        (Whole, 4, 6, [0.0, 0.785]),
        (Whole, 4, 8, [0.0, 2.373]),
        (Whole, 4, 12, [0.0, 3.777]),
    ] {
        let predicted = moved(what, apart, round);
        // Of lines that are loaded two sectors are read each, of those that are stored to whole four written.
        let of_lines = [if what == Load { 2.0 } else { 1.0 }, if what == Whole { 4.0 } else { 1.0 }];
        for (i, sectors) in of_lines.into_iter().enumerate() {
            let error = (predicted[i] - measured[i]).abs() / sectors;
            assert!(error < 0.27, "{what:?}, every {apart}., {round} steps: {predicted:.3?} for {measured:.3?}");
        }
    }
}

/// What the probe `write_backs` counted on an H200, whose L2 is sixteen times as large: the shares of the sectors stored to that
/// are read, or written back, before the end.
#[test]
fn few_partial_lines_and_half_of_the_dirty_ones_stay() {
    let chip = Chip { l2_bytes: 60 << 16, ..Chip::load("h200").expect("is built in") };
    let shares = |bytes: u8, sixteenths: u64| {
        let mut memory = Memory::new(&chip, &Constants::of(&chip));
        let lines = sixteenths << 9;
        for number in 0..lines {
            memory.write(number as usize, &Line { number, bytes: [bytes; 4] }, ALL_SECTORS, 0.0);
        }
        [memory.traffic.dram_read_sectors, memory.traffic.dram_write_sectors].map(|moved| moved / (4 * lines) as f64)
    };
    for (mebibytes, read) in [(8, 0.0589), (16, 0.5128), (24, 0.7870), (32, 0.8103), (64, 0.8944), (256, 0.9727)] {
        let [predicted, _] = shares(4, mebibytes);
        assert!((predicted - read).abs() < 0.1, "4 bytes a sector, {mebibytes} MiB: {predicted:.4} for {read} read");
    }
    for (mebibytes, written) in [(16, 0.0001), (24, 0.0250), (28, 0.0870), (32, 0.1867), (64, 0.6025), (256, 0.8997)] {
        let [read, predicted] = shares(32, mebibytes);
        let error = (predicted - written).abs();
        assert!(error < 0.03, "whole sectors, {mebibytes} MiB: {predicted:.4} for {written} written");
        assert_eq!(read, 0.0, "whole sectors, {mebibytes} MiB");
    }
}

/// What the probe `flushes` measured: how many microseconds longer a sector of each line takes to read after 256 MiB were written than
/// once these were read, in the mean of 128 MiB to 1 GiB.
#[test]
fn dirty_lines_of_a_flush_are_written_back() {
    for (name, measured) in [("h200", 8.1), ("h100-sxm", 9.7)] {
        let chip = Chip::load(name).expect("is built in");
        let constants = Constants::of(&chip);
        let microseconds = |mut memory: Memory| {
            for number in 0..(256 << 20) / LINE {
                memory.read(number as usize / 4 % constants.gpcs, number, 1, 0.0);
            }
            memory.dram.free / chip.clock_ghz / 1e3
        };
        let [dirty, clean] = [Memory::flushed, Memory::new].map(|l2| microseconds(l2(&chip, &constants)));
        let error = (dirty - clean) / measured - 1.0;
        assert!(error.abs() < 0.25, "{name}: {:.1} for {measured}", dirty - clean);
    }
}

/// What the probe `pages` measured, where all is 64 times as large: how much longer 1 GiB takes, window by window, of each first every so
/// manieth piece of so many lines, than one line after another.
#[test]
fn scattered_lines_activate_more_rows() {
    const LINES: u64 = (1 << 24) / LINE;
    /// In which DRAM moves 64 lines.
    const CYCLES: f64 = 4.0;
    let cycles = |name: &str, lines: u64, every: u64, window: u64, stores: bool| {
        let chip = Chip::load(name).expect("is built in");
        let constants = Constants::of(&chip);
        let constants = Constants { dram_open_lines: constants.dram_open_lines / 64, ..constants };
        let mut memory = Memory::new(&Chip { l2_bytes: chip.l2_bytes / 64, ..chip }, &constants);
        for moved in 0..LINES {
            let (first, turn, sweep) = (moved / window * window, moved % window / lines, window / lines / every);
            let number = first + (turn % sweep * every + turn / sweep) * lines + moved % lines;
            let at = CYCLES * moved as f64;
            if stores {
                memory.write(0, &Line { number, bytes: [SECTOR as u8; 4] }, ALL_SECTORS, at);
            } else {
                memory.read(moved as usize / 4 % 2, number, ALL_SECTORS, at);
            }
        }
        memory.busy().dram / (memory.traffic.dram_read_sectors + memory.traffic.dram_write_sectors)
    };
    let check = |name, [lines, every, window]: [u64; 3], stores, measured: f64, within| {
        let predicted = cycles(name, lines, every, window, stores) / cycles(name, 1, 1, LINES, stores);
        let error = (predicted - measured).abs();
        let case = format!("{name}, every {every}. {lines} lines of {window}, stores {stores}");
        assert!(error < within, "{case}: {predicted:.3} for {measured}");
    };
    for (every, measured) in [(2, 1.00), (4, 1.02), (8, 1.07), (32, 1.10)] {
        check("h200", [1, every, LINES], false, measured, 0.1);
    }
    for (pieces, h200, h100) in [
        ([1, 2, LINES], 1.17, 1.04),
        ([1, 4, LINES], 1.30, 1.08),
        ([1, 8, LINES], 1.31, 1.11),
        ([1, 32, LINES], 1.40, 1.15),
        ([1, 256, LINES], 1.31, 1.14),
        ([2, 2, LINES], 1.02, 1.01),
        ([2, 8, LINES], 1.08, 1.02),
        ([2, 32, LINES], 1.07, 1.04),
        ([2, 256, LINES], 1.09, 1.02),
        ([1, 4, 1 << 10], 1.05, 1.01),
        ([1, 4, 1 << 12], 1.16, 1.03),
        ([1, 4, 1 << 13], 1.23, 1.06),
        ([1, 4, 1 << 15], 1.30, 1.08),
        ([1, 32, 1 << 10], 1.04, 1.02),
        ([1, 32, 1 << 12], 1.12, 1.04),
        ([1, 32, 1 << 13], 1.17, 1.06),
        ([1, 32, 1 << 15], 1.30, 1.11),
        ([1, 256, 1 << 10], 1.02, 1.01),
        ([1, 256, 1 << 12], 1.12, 1.03),
        ([1, 256, 1 << 13], 1.16, 1.06),
        ([1, 256, 1 << 15], 1.24, 1.10),
        ([2, 256, 1 << 10], 1.00, 1.00),
        ([2, 256, 1 << 13], 1.04, 1.01),
        ([2, 256, 1 << 15], 1.07, 1.01),
    ] {
        check("h200", pieces, true, h200, 0.14);
        check("h100-sxm", pieces, true, h100, 0.05);
    }
}

/// As long for all that a line lacks as for one of its sectors.
#[test]
fn completing_a_line_keeps_the_l2_busy() {
    for sectors in [1, 4] {
        let (constants, mut memory) = h200();
        let partial =
            |number| Line { number, bytes: std::array::from_fn(|sector| if sector < sectors { 4 } else { 0 }) };
        let lines = 1 << 19;
        for number in 0..lines {
            memory.write(0, &partial(number), ALL_SECTORS >> (4 - sectors), 0.0);
        }
        let of_store = constants.l2_store_cycles + sectors as f64 * constants.l2_partial_store_cycles;
        let Memory { completed_sectors, traffic, slices: Slices { free, .. }, .. } = memory;
        assert_eq!(completed_sectors, traffic.dram_read_sectors);
        let completed = completed_sectors / sectors as f64;
        assert!(completed > 0.5 * lines as f64, "{completed} of {lines}");
        let expected = lines as f64 * of_store + completed * constants.l2_completion_cycles;
        assert!((free / expected - 1.0).abs() < 1e-6, "{free} for {expected}, {sectors} sectors");
    }
}

/// What the probe `overtaking` measured on an H200: while so many SMs have a read of DRAM outstanding each, the share of another's hits
/// in the L2 that take 135 cycles longer than they do alone.
#[test]
fn reads_that_cross_to_the_far_partition_complete_in_order() {
    const READS: u64 = 128;
    let run = |others: u64, run: u64| {
        let (constants, mut memory) = h200();
        let gpcs = constants.gpcs;
        for number in 0..2 * 4096 {
            memory.read(number as usize / 4096, number % 4096, 1, 0.0);
        }
        let mut events: BinaryHeap<_> = (0..=others).map(|who| Reverse(((1e5 + who as f64).to_bits(), who))).collect();
        let (mut reads, mut late) = (0, 0);
        while reads < READS {
            let Reverse((at, who)) = events.pop().expect("all go on");
            let at = f64::from_bits(at);
            let arrives = if who == 0 {
                let arrives = memory.read(0, 1057 * (reads + READS * run) % 4096, 1, at);
                reads += 1;
                late += u32::from(arrives - at > constants.l2_latency + 135.0);
                arrives
            } else {
                let number = (1 << 20) + mix(at.to_bits() ^ who << 32 ^ run) % (1 << 23);
                memory.read(who as usize % gpcs, number, 1, at)
            };
            events.push(Reverse(((arrives + 40.0).to_bits(), who)));
        }
        f64::from(late) / READS as f64
    };
    let share = |others| (0..16).map(|number| run(others, number)).sum::<f64>() / 16.0;
    assert_eq!(share(0), 0.0);
    for (others, measured) in [(16, 0.024), (64, 0.061), (128, 0.107), (512, 0.306), (1024, 0.414)] {
        let (predicted, error) = (share(others), (share(others) - measured).abs());
        assert!(error < 0.1, "{others} others: {predicted:.3} for {measured}");
    }
}

/// What the probe `lateness` measured on an H200: how many cycles longer the median and the slowest tenth of loads of so many lines
/// at random take than the fastest tenth of loads of one line.
#[test]
fn the_more_lines_a_load_has_the_later_is_the_last() {
    let (_, mut memory) = h200();
    let mut at = 0.0;
    let mut percentiles = |lines: u64| {
        let mut took: Vec<f64> = (0..4096)
            .map(|load| {
                at += 1e5;
                let numbers = (0..lines).map(|lane| mix(lines << 32 | load << 5 | lane) % (1 << 25));
                numbers.fold(0.0, |last: f64, number| last.max(memory.read(0, number, 1, at) - at))
            })
            .collect();
        took.sort_unstable_by(f64::total_cmp);
        [10, 50, 90].map(|percent| took[percent * took.len() / 100])
    };
    let [fastest, ..] = percentiles(1);
    for (lines, median, slow) in [(2, 208, 474), (4, 239, 571), (8, 344, 674), (16, 521, 729), (32, 607, 757)] {
        let [_, predicted @ ..] = percentiles(lines).map(|took| took - fastest);
        for (predicted, measured) in predicted.into_iter().zip([median, slow]) {
            let error = (predicted - f64::from(measured)).abs();
            assert!(error < 120.0, "{lines} lines: {predicted:.0} for {measured}");
        }
    }
}
