use super::*;

/// What the probe `conflicts` measured on an H200: the cycles of a load with so many wavefronts, of shared memory and of lines that the
/// L1 has, where one load of each of so many warps follows another.
#[test]
fn a_wavefront_takes_two_cycles_and_the_data_stage_serves_two_loads() {
    const LOADS: u64 = 256;
    let at = crate::pc();
    let cycles = |what: What, warps: u16, ways: u16| {
        let mut trace = Trace::default();
        for warp in (0..LOADS).flat_map(|_| 0..warps) {
            load(&mut trace, at, warp, ways, |line| 33 * line);
            trace.requests.last_mut().expect("it was added").what = what;
        }
        let mut machine = one_block(trace, at, 1, 1 << 10);
        let mut times = [0.0; 2];
        while let Some(now) = machine.happen()
            && let Some(block) = &machine.slots[0]
        {
            times[usize::from(block.warps[0].next as u64 > LOADS / 2)] = now;
        }
        (times[1] - times[0]) / (LOADS / 2) as f64
    };
    let of_l1 = What::Load { past_l1: false };
    for (what, warps, measured) in [
        (What::SharedLoad, 1, [29.0, 31.0, 35.0, 43.0, 59.0, 91.0]),
        (What::SharedLoad, 4, [29.0, 31.0, 35.0, 43.0, 64.0, 128.0]),
        (What::SharedLoad, 8, [29.0, 31.0, 35.0, 64.0, 128.0, 256.0]),
        (of_l1, 1, [42.8, 44.8, 48.8, 57.8, 75.9, 111.8]),
        (of_l1, 4, [42.8, 44.8, 48.8, 57.8, 75.9, 128.1]),
        (of_l1, 8, [43.1, 45.0, 49.7, 65.1, 128.1, 256.0]),
    ] {
        for (ways, measured) in [1, 2, 4, 8, 16, 32].into_iter().zip(measured) {
            let predicted = cycles(what, warps, ways);
            let error: f64 = predicted / measured - 1.0;
            assert!(error.abs() < 0.08, "{what:?} of {warps} warps, {ways} ways: {predicted:.1} for {measured}");
        }
    }
}

/// What the probe `streams` measured on an H200: the cycles of a hit of 32 wavefronts, by how many of a warp are in flight, how far these
/// warps are apart, and how many there are.
#[test]
fn hits_of_one_warp_are_served_one_after_another_and_those_of_two_at_a_time() {
    const LOADS: u64 = 128;
    let at = crate::pc();
    for (in_flight, apart, measured) in [
        (1, 1, [114.0, 114.0, 114.0, 128.0, 255.0]),
        (1, 4, [114.0, 114.0, 115.0, 128.0, 254.0]),
        (2, 1, [89.0, 89.0, 96.0, 126.0, 248.0]),
        (2, 4, [89.0, 89.0, 95.0, 123.0, 246.0]),
        (4, 1, [76.0, 76.0, 96.0, 127.0, 254.0]),
        (4, 4, [76.0, 76.0, 95.0, 126.0, 249.0]),
    ] {
        for (warps, measured) in [1, 2, 3, 4, 8].into_iter().zip(measured) {
            let mut trace = Trace::default();
            for (i, warp) in (0..LOADS).flat_map(|i| (0..warps).map(move |warp| (i, warp))) {
                load(&mut trace, at, warp * apart, 32, |lane| i % 4 * 32 + lane);
            }
            let when = vec![0.0; usize::from((warps - 1) * apart + 1)];
            let mut machine = warps_that_begin(trace, Instructions::in_flight(at, in_flight, 1.0), at, &when);
            let ended = std::iter::from_fn(|| machine.happen()).last().expect("it is at work");
            let predicted = (ended - LATER) / LOADS as f64;
            let error = predicted / measured - 1.0;
            assert!(
                error.abs() < 0.1,
                "{in_flight} in flight, {warps} warps {apart} apart: {predicted:.0} for {measured}"
            );
        }
    }
}

/// What the probe `leaders` measured on an H200: as which of all the loads of the first of so many warps arrive, which start 60 cycles
/// apart and load the same lines.
#[test]
fn filled_loads_are_served_in_the_order_in_which_they_were_looked_up() {
    let at = crate::pc();
    for (warps, measured) in [(2, [1.0, 3.1, 5.1, 7.1]), (3, [1.2, 3.5, 5.5, 7.5]), (4, [1.3, 3.6, 5.6, 7.6])] {
        let mut trace = Trace::default();
        for (i, warp) in (0..4).flat_map(|i| (0..warps).map(move |warp| (i, warp))) {
            load(&mut trace, at, warp, 32, |lane| 256 + 32 * i + lane);
        }
        let when: Vec<_> = (0..warps).map(|warp| 60.0 * f64::from(warp)).collect();
        let mut machine = warps_that_begin(trace, Instructions::in_flight(at, 4, 1.0), at, &when);
        let ends = when_loads_end(&mut machine, warps);
        for ((_, end), measured) in ends.range(..(1, 0)).zip(measured) {
            let predicted = 1.0 + ends.values().filter(|other| *other < end).count() as f64;
            let error: f64 = predicted - measured;
            assert!(error.abs() < 0.7, "{warps} warps: number {predicted} for {measured}");
        }
    }
}

/// When each load of the first warps arrives, until the block has exited.
fn when_loads_end(machine: &mut Machine, warps: u16) -> BTreeMap<(usize, u32), f64> {
    let mut ends = BTreeMap::new();
    while let Some(block) = &machine.slots[0] {
        let warps = block.warps.iter().take(usize::from(warps)).enumerate();
        let in_flight = warps.flat_map(|(warp, state)| state.in_flight.iter().map(move |load| (warp, load)));
        let done = in_flight.filter(|(_, load)| load.arrives.is_finite());
        ends.extend(done.map(|(warp, load)| ((warp, load.number), load.arrives)));
        machine.happen();
    }
    ends
}

/// What the probe `groups` measured on an H200: the cycles of a load that hits in the L2, at so many percent of them, where eight warps
/// each load the same lines and some hit on what others fetched.
#[test]
fn hits_alternate_with_fills() {
    const LOADS: usize = 512;
    let at = crate::pc();
    let cycles = |warps: u16, in_flight: usize| {
        let mut trace = Trace::default();
        for i in 0..LOADS as u64 {
            for warp in 0..warps {
                load(&mut trace, at, warp, 32, |lane| ((i * 32 + lane) * 513 + u64::from(warp / 8) * 131) % (1 << 17));
            }
        }
        let mut machine = one_block(trace, at, in_flight, 1 << 17);
        let (mut took, mut ended) = (Vec::new(), vec![(0, 0.0); usize::from(warps)]);
        while let Some(now) = machine.happen()
            && let Some(block) = &machine.slots[0]
        {
            for (warp, (come, at)) in block.warps.iter().zip(&mut ended) {
                let loads = warp.next - warp.in_flight.iter().filter(|load| load.arrives > now).count();
                if loads >= *come + in_flight {
                    took.extend((*come >= 32).then_some((now - *at) / in_flight as f64));
                    (*come, *at) = (*come + in_flight, now);
                }
            }
        }
        took.sort_unstable_by(f64::total_cmp);
        move |percent: usize| took[percent * took.len() / 100]
    };
    for (warps, in_flight, bound, measured) in [
        (8, 2, 0.44, [225.0, 370.0, 393.0]),
        (8, 4, 0.12, [173.0, 312.0, 347.0]),
        (16, 1, 0.14, [519.0, 550.0, 588.0]),
        (16, 2, 0.14, [290.0, 461.0, 787.0]),
        (16, 4, 0.12, [465.0, 554.0, 611.0]),
        (32, 1, 0.65, [624.0, 983.0, 1457.0]),
        (32, 2, 0.12, [1041.0, 1120.0, 1178.0]),
        (32, 4, 0.12, [1071.0, 1122.0, 1161.0]),
    ] {
        let cycles = cycles(warps, in_flight);
        for (percent, measured) in [25, 50, 75].into_iter().zip(measured) {
            let predicted = cycles(percent);
            let error = predicted / measured - 1.0;
            assert!(
                error.abs() < bound,
                "{warps} warps, {in_flight} in flight, {percent} %: {predicted:.0} for {measured}"
            );
        }
    }
}
