use super::*;

/// What the probe `lookups` measured on an H200: how much later than after eight warps a hit arrives, after so many have begun to load 32
/// lines of DRAM, each its own or all the same.
#[test]
fn a_hit_waits_while_misses_are_looked_up() {
    let at = crate::pc();
    let cycles = |others: u16, same: bool| {
        let (mut trace, last) = (Trace::default(), others + 3);
        load(&mut trace, at, last, 1, |_| 1 << 20);
        wait(&mut trace, at);
        for warp in 0..others {
            load(&mut trace, at, warp, 32, |lane| lane + if same { 0 } else { 32 * u64::from(warp) });
        }
        load(&mut trace, at, last, 1, |_| 1 << 20);
        let mut machine = one_block(trace, 1, 0);
        let (mut now, mut begun) = (0.0, 0.0);
        loop {
            let warps = &machine.slots[0].as_ref().expect("it is at work").warps;
            let [first, last] = [0, last].map(|warp| &warps[usize::from(warp)]);
            if first.next < 2 {
                begun = now;
            }
            if last.next == 3 && last.arrival(u64::MAX, now).is_finite() {
                return last.arrival(u64::MAX, now) - begun;
            }
            now = machine.happen().expect("it is at work");
        }
    };
    let after_eight = cycles(8, false);
    for (others, same, measured) in [(16, false, 247.0), (24, false, 505.0), (24, true, -48.0), (28, true, -16.0)] {
        let predicted = cycles(others, same) - after_eight;
        let error = (predicted - measured).abs();
        assert!(error < 60.0, "{others} others, the same {same}: {predicted:.0} for {measured}");
    }
}

/// As the probe `pending` found on both GPUs: once loads that missed have had 1024 tag-stage wavefronts, a hit waits for them, however
/// many lines they wait for.
#[test]
fn a_hit_waits_once_the_pending_request_table_has_1024_tag_stage_wavefronts() {
    const HITS: usize = 60;
    let at = crate::pc();
    let is_held_up = |loads: usize, lines: u16, number: fn(u64) -> u64| {
        let mut trace = Trace::default();
        load(&mut trace, at, 31, 1, |_| 1 << 20);
        wait(&mut trace, at);
        for i in 0..loads {
            load(&mut trace, at, (i % 31) as u16, lines, number);
        }
        for _ in 0..HITS {
            load(&mut trace, at, 31, 1, |_| 1 << 20);
        }
        let mut chip = Chip { sm_count: 1, ..Chip::load("h200").expect("is built in") };
        chip.latency[3] = 1e5;
        let mut machine = Machine::new(&chip, 1, 248 << 10, u64::MAX);
        machine.scheduler.free.clear();
        machine.launch(Pace(12, 1).set(trace), 0, BEGIN, 0.0);
        let now = std::iter::from_fn(|| machine.happen()).find(|now| *now > BEGIN + 1.5e5);
        now.expect("lines of memory are not here yet");
        machine.slots[0].as_ref().expect("it is at work").warps[31].next < HITS
    };
    let in_one_bank = |lane: u64| 3175 + 33 * lane;
    for (lines, number, most) in
        [(32, (|lane| lane) as fn(u64) -> u64, 128), (8, in_one_bank as fn(u64) -> u64, 128), (16, |lane| lane, 256)]
    {
        let held_up = [most - 8, most, most + 8].map(|loads| is_held_up(loads, lines, number));
        assert_eq!(held_up, [false, true, true], "{lines} lines");
    }
}

/// What the probe `arrivals` measured on an H200: the cycles that a load of one line takes longer than alone, so many cycles after so
/// many warps of other sub-partitions each issued four loads of 32 wavefronts.
#[test]
fn the_lsu_serves_the_sub_partitions_requests_in_order() {
    let at = crate::pc();
    let cycles = |others: u16, later: f64| {
        let is_other = |warp: &u16| warp % 4 != 3 && warp / 4 * 3 + warp % 4 < others;
        let mut trace = Trace::default();
        for warp in (0..32).filter(is_other) {
            (0..4).for_each(|i| load(&mut trace, at, warp, 32, |lane| 32 * i + lane));
        }
        load(&mut trace, at, 3, 1, |_| 0);
        let warps = usize::from((0..32).filter(is_other).max().unwrap_or(0).max(3) + 1);
        let when: Vec<_> = (0..warps).map(|warp| if warp == 3 { later } else { 0.0 }).collect();
        let mut machine = warps_that_begin(trace, Pace(4, 1), &when);
        loop {
            machine.happen().expect("it is at work");
            let last = &machine.slots[0].as_ref().expect("it is at work").warps[3];
            if last.next == 1 && last.arrival(u64::MAX, 0.0).is_finite() {
                return last.arrival(u64::MAX, 0.0) - LATER - later;
            }
        }
    };
    let alone = cycles(0, 50.0);
    for (others, measured) in [
        (3, [192.0, 204.0, 96.0, 0.0, 0.0]),
        (6, [587.0, 595.0, 518.0, 302.0, 0.0]),
        (12, [853.0, 852.0, 851.0, 847.0, 690.0]),
        (18, [851.0, 851.0, 852.0, 853.0, 846.0]),
    ] {
        for (later, measured) in [50.0, 100.0, 200.0, 400.0, 800.0].into_iter().zip(measured) {
            let predicted = cycles(others, later) - alone;
            let error: f64 = predicted - measured;
            assert!(error.abs() < 150.0, "{others} others, {later} later: {predicted:.0} for {measured}");
        }
    }
}
