use super::*;

#[test]
fn a_saturated_l2_stalls_stores() {
    const WARPS: u16 = 8;
    let chip = Chip::load("h200").expect("is built in");
    let mut machine = Machine::new(&chip, 8, chip.l1_bytes, u64::MAX);
    let at = crate::pc();
    for block in 0..16 * u64::from(chip.sm_count) {
        let mut trace = Trace::default();
        // Each lane stores 4 bytes to a line of its own.
        for request in 0..16 * u64::from(WARPS) {
            let first = 32 * (16 * u64::from(WARPS) * block + request);
            let lines: Lines = (first..first + 32).map(|number| Line { number, bytes: [4, 0, 0, 0] }).collect();
            let (warp, lines_end) = ((request % u64::from(WARPS)) as u16, trace.add_lines(&lines));
            let what = What::Store;
            trace.requests.push(Traced {
                warp,
                what,
                at,
                wavefronts: 1,
                miss_wavefronts: 1,
                tag_wavefronts: 8,
                lines_end,
                flow: Flow::default(),
            });
        }
        machine.take(trace);
    }
    let end = machine.finish();
    let last = machine.snapshots.last().expect("it was at work for long");
    assert!(end.busy.l2 > 0.9 * end.cycles, "the L2 is what they wait for: {} of {}", end.busy.l2, end.cycles);
    // Since the last mark some more were made, of which the last ones were taken in advance.
    let (rate, rest) = (last.cycles / last.stores as f64, (end.stores - last.stores) as f64);
    let behind = end.cycles - last.cycles - rate * rest;
    assert!(behind < 0.1 * end.cycles, "{behind} of {} cycles", end.cycles);
}

/// What the probe `waits` measured on an H200: the mean cycles of loads that miss in the L2, of so many warps of each SM, all with 32 lines
/// at random but for one of 16, which has one.
#[test]
fn the_last_fill_of_a_load_comes_much_later_than_most() {
    const LOADS: usize = 48;
    let chip = Chip::load("h200").expect("is built in");
    let at = crate::pc();
    let means = |warps: u64| {
        let (sms, resident) = (u64::from(chip.sm_count), warps / 8);
        let mut machine = Machine::new(&chip, resident, 224 << 10, u64::MAX);
        for block in 0..sms * resident {
            let mut trace = Trace::default();
            for (i, warp) in (0..LOADS as u64).flat_map(|i| (0..8).map(move |warp| (i, warp))) {
                let number = LOADS as u64 * (8 * block + warp) + i;
                let lines = if (8 * block + warp) % 16 == 0 { 1 } else { 32 };
                load(&mut trace, at, warp as u16, lines, |lane| noise(32 * number + lane) as u64 % (1 << 23));
            }
            machine.launch(trace, block as usize, 0.0, 0.0);
        }
        machine.scheduler.free.clear();
        // Of some SMs, neither while all begin nor while they end.
        let slots: Vec<_> = (0..resident).flat_map(|place| (0..8).map(move |sm| (place * sms + sm) as usize)).collect();
        let (mut come, mut took) = (vec![[(0, 0.0); 8]; slots.len()], [(0.0, 0); 2]);
        while let Some(now) = machine.happen() {
            for (slot, come) in slots.iter().zip(&mut come) {
                let Some(block) = &machine.slots[*slot] else { continue };
                for (warp, (before, since)) in (0..).zip(come) {
                    let next = block.warps[warp].next;
                    if next > *before {
                        let (sum, count) = &mut took[usize::from((8 * slot + warp) % 16 == 0)];
                        if (LOADS / 4..3 * LOADS / 4).contains(before) {
                            (*sum, *count) = (*sum + now - *since, *count + 1);
                        }
                        (*before, *since) = (next, now);
                    }
                }
            }
        }
        took.map(|(sum, count)| sum / f64::from(count))
    };
    for (warps, many, one) in [(8, 1599.0, 895.0), (16, 2669.0, 1322.0), (32, 5454.0, 2158.0)] {
        let predicted = means(warps);
        for (lines, predicted, measured, bound) in [(32, predicted[0], many, 0.26), (1, predicted[1], one, 0.75)] {
            let error = predicted / measured - 1.0;
            assert!(error.abs() < bound, "{warps} warps, {lines} lines: {predicted:.0} for {measured}");
        }
    }
}

/// What the probe `backlog` measured on an H200: the median cycles of a load of one line that hits in the L1, of one and of 32 that hit in
/// the L2, while so many other warps of each SM store to 32 rows each, a lane a row.
#[test]
fn loads_wait_behind_stores_that_a_saturated_l2_stalls() {
    const ROUNDS: u64 = 3;
    let chip = Chip::load("h200").expect("is built in");
    let at = crate::pc();
    let median = |storing: u16, lines: u16| {
        let mut machine = Machine::new(&chip, 1, 224 << 10, u64::MAX);
        for number in 0..1 << 14 {
            machine.memory.read(0, number, 1, 0.0);
            machine.memory.read(4, number, 1, 0.0);
        }
        let sms = u64::from(chip.sm_count);
        for sm in 0..sms {
            let mut trace = Trace::default();
            for i in 0..256 {
                load(&mut trace, at, 0, lines.max(1), |lane| {
                    if lines == 0 { 0 } else { noise(32 * (256 * sm + i) + lane) as u64 % (1 << 14) }
                });
            }
            for (round, warp) in (0..ROUNDS).flat_map(|round| (0..u64::from(storing)).map(move |warp| (round, warp))) {
                for x in 0..64 {
                    let first = (1 << 20) + ((round * sms + sm) * u64::from(storing) + warp) * 32 * 2 + x / 32;
                    let mut bytes = [0; 4];
                    bytes[x as usize / 8 % 4] = 4;
                    let rows: Lines = (0..32).map(|lane| Line { number: first + 2 * lane, bytes }).collect();
                    let (what, lines_end) = (What::Store, trace.add_lines(&rows));
                    let (wavefronts, miss_wavefronts) = (32, 32);
                    let warp = 1 + warp as u16;
                    trace.requests.push(Traced {
                        warp,
                        what,
                        at,
                        wavefronts,
                        miss_wavefronts,
                        tag_wavefronts: 8,
                        lines_end,
                        flow: Flow::default(),
                    });
                }
            }
            machine.launch(trace, sm as usize, BEGIN, 0.0);
        }
        machine.scheduler.free.clear();
        let (mut took, mut come) = (Vec::new(), vec![(0, BEGIN); sms as usize]);
        while let Some(now) = machine.happen() {
            let store = |block: &Block| block.warps.iter().skip(1).all(|warp| warp.next < warp.requests.len());
            for (block, (before, since)) in machine.slots.iter().zip(&mut come) {
                let Some(block) = block.as_ref().filter(|block| store(block)) else { continue };
                let next = block.warps[0].next;
                if next > *before {
                    if next > 2 {
                        took.push(now - *since);
                    }
                    (*before, *since) = (next, now);
                }
            }
        }
        took.sort_unstable_by(f64::total_cmp);
        took[took.len() / 2]
    };
    for (storing, measured) in
        [(1, [2907.0, 4190.0, 5348.0]), (3, [3038.0, 4339.0, 5599.0]), (7, [10185.0, 11792.0, 12358.0])]
    {
        for (lines, measured) in [0, 1, 32].into_iter().zip(measured) {
            let predicted = median(storing, lines);
            let error: f64 = predicted / measured - 1.0;
            assert!(error.abs() < 0.21, "{lines} lines beside {storing} warps: {predicted:.0} for {measured}");
        }
    }
}

/// What the probe `shares` measured on an H200: how much more than the mean the SMs of smaller CPCs read at random of lines that the L2
/// has.
#[test]
fn cpcs_have_the_same_share_of_a_saturated_l2_however_many_sms_they_have() {
    let at = crate::pc();
    let (lines, measured) = (1 << 15, 1.21);
    let mut machine = eight_blocks(Pace(1, 4), lines, |trace, slot, warp| {
        for i in 0..256 {
            let first = ((slot * 8 + u64::from(warp)) << 8 | i) << 5;
            load(trace, at, warp, 32, |lane| noise(first | lane) as u64 * 3 % lines);
        }
    });
    while machine.happen().is_some_and(|now| now < BEGIN + 60_000.0) {}
    let (sms, cpcs) = (machine.sms.len(), machine.constants.cpcs());
    let mut made = vec![0.0; sms];
    for block in machine.slots.iter().flatten() {
        made[block.sm] += block.warps.iter().map(|warp| warp.next).sum::<usize>() as f64;
    }
    let mean = |of: &dyn Fn(usize) -> bool| {
        let of: Vec<f64> = (0..sms).filter(|sm| of(*sm)).map(|sm| made[sm]).collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    let cpc = |sm: usize| machine.sms[sm].cpc;
    let small = |sm: usize| (0..sms).filter(|other| cpc(*other) == cpc(sm)).count() < sms / cpcs;
    let predicted = mean(&small) / mean(&|_| true);
    assert!((predicted - measured).abs() < 0.18, "{predicted:.3} for {measured}");
}
