use super::*;

/// What the probe `on_their_way` counted on an H200: the tag-stage wavefronts of loads from lines at random, by the KiB of the L1 and
/// the warps of an SM, each of which has one load in flight.
#[test]
fn pinned_lines_keep_their_places_and_other_misses_are_retried() {
    const LOADS: u64 = 12;
    let chip = Chip::load("h200").expect("is built in");
    let at = crate::pc();
    let passes = |l1_kib: u64, warps: u64| {
        let mut machine = Machine::new(&chip, 2, l1_kib << 10, u64::MAX);
        for block in 0..2 * u64::from(chip.sm_count) {
            let mut trace = Trace::default();
            for (warp, i) in (0..warps / 2).flat_map(|warp| (0..LOADS).map(move |i| (warp, i))) {
                let number = LOADS * (warps / 2 * block + warp) + i;
                load(&mut trace, at, warp as u16, 32, |lane| noise(32 * number + lane) as u64 % (1 << 21));
            }
            machine.take(trace);
        }
        let end = machine.finish();
        end.traffic.l1_tag_wavefronts / end.loads as f64
    };
    for (l1_kib, warps, measured) in [
        (28, 4, 11.13),
        (28, 6, 11.70),
        (28, 8, 15.86),
        (28, 16, 18.45),
        (124, 16, 11.49),
        (124, 28, 12.38),
        (124, 32, 15.89),
        (124, 64, 17.98),
        (248, 40, 11.16),
        (248, 56, 11.77),
        (248, 60, 13.84),
        (248, 64, 15.40),
    ] {
        let predicted = passes(l1_kib, warps);
        let error = predicted / measured - 1.0;
        assert!(error.abs() < 0.25, "{l1_kib} KiB, {warps} warps: {predicted:.2} for {measured}");
    }
}

#[test]
fn loads_of_more_lines_than_there_are_places_end() {
    let chip = Chip::load("h200").expect("is built in");
    let at = crate::pc();
    for l1_bytes in [128, 4 << 10] {
        let mut machine = Machine::new(&chip, 1, l1_bytes, u64::MAX);
        let mut trace = Trace::default();
        for (warp, i) in (0..8).flat_map(|warp| (0..16).map(move |i| (warp, i))) {
            load(&mut trace, at, warp, 32, |lane| 32 * (16 * u64::from(warp) + i) + lane);
        }
        machine.take(Pace(4, 1).set(trace));
        assert_eq!(machine.finish().loads, 8 * 16, "{l1_bytes} bytes");
    }
}

/// What `shared_lines` of `counted.cu` counted on an H200: the sectors a load that an SM reads from the L2, by the KiB of its L1, the
/// loads of a warp in flight, its warps, and how many of these load the same lines.
#[test]
fn lines_that_warps_share_miss_again_for_some() {
    const LOADS: u64 = 512;
    let at = crate::pc();
    let reads = |l1_kib: u64, in_flight: u32, warps: u16, group: u16| {
        let mut trace = Trace::default();
        for (i, warp) in (0..LOADS).flat_map(|i| (0..warps).map(move |warp| (i, warp))) {
            let first = (u64::from(warp / group) * LOADS + i) * 32;
            let line = |lane| (first + lane) as u32;
            load(&mut trace, at, warp, 32, |lane| u64::from(line(lane).wrapping_mul(0x9E37_79B1) >> 15));
        }
        let mut machine = one_block_of(trace, Pace(in_flight, 10), l1_kib, 1 << 17);
        let before = machine.memory.traffic.l2_read_sectors;
        while machine.happen().is_some() {}
        (machine.memory.traffic.l2_read_sectors - before) / machine.loads as f64
    };
    let all = [
        (248, 1, 32, 8, 8.20),
        (248, 1, 32, 32, 1.03),
        (224, 4, 8, 8, 4.09),
        (240, 4, 16, 8, 4.59),
        (248, 4, 32, 8, 7.49),
        (248, 4, 32, 32, 1.26),
        (248, 2, 32, 8, 10.27),
        (124, 1, 32, 8, 17.55),
        (124, 1, 32, 32, 12.21),
        (124, 4, 8, 8, 5.92),
        (124, 4, 16, 8, 9.58),
        (124, 4, 32, 8, 12.37),
        (124, 4, 32, 32, 5.37),
        (124, 2, 32, 8, 15.50),
        (28, 1, 32, 8, 8.79),
        (28, 1, 32, 32, 7.31),
        (28, 4, 8, 8, 4.68),
        (28, 4, 16, 8, 12.72),
        (28, 4, 32, 8, 25.41),
        (28, 4, 32, 32, 13.07),
        (28, 2, 32, 8, 10.44),
    ];
    let off = |&(l1_kib, in_flight, warps, group, measured): &(u64, u32, u16, u16, f64)| {
        let predicted = reads(l1_kib, in_flight, warps, group);
        (predicted / measured).ln().abs()
    };
    let mean = (all.iter().map(off).sum::<f64>() / all.len() as f64).exp();
    assert!(mean < 2.3, "a factor of {mean:.2} in the mean");
}

/// What `shared_lines` of `counted.cu` counted on an H200 where the eight warps of each of so many blocks load the same rows of lines:
/// the sectors a load that an SM reads from the L2, by its blocks and the loads of a warp in flight.
#[test]
fn warps_of_more_blocks_miss_more_of_the_lines_they_share() {
    const LOADS: u64 = 128;
    let at = crate::pc();
    let requests = |block| {
        let mut trace = Trace::default();
        for (i, warp) in (0..LOADS).flat_map(|i| (0..8).map(move |warp| (i, warp))) {
            let first = (block * LOADS + i) * 32;
            load(&mut trace, at, warp, 32, |lane| first + lane);
        }
        trace
    };
    let reads = |blocks: u64, in_flight: u32| {
        let pace = Pace(in_flight, 8);
        let mut machine = blocks_of((0..blocks).map(requests).collect(), pace, 224, 0);
        while machine.happen().is_some() {}
        machine.memory.traffic.l2_read_sectors / machine.loads as f64
    };
    let all = [
        (2, 4, 4.00),
        (3, 4, 4.02),
        (4, 4, 5.46),
        (5, 4, 8.38),
        (6, 4, 8.51),
        (8, 4, 9.44),
        (4, 2, 4.01),
        (5, 2, 4.22),
        (6, 2, 5.70),
        (8, 2, 8.77),
        (6, 1, 4.04),
        (8, 1, 4.70),
    ];
    let off = |&(blocks, in_flight, measured): &(u64, u32, f64)| (reads(blocks, in_flight) / measured).ln().abs();
    let mean = (all.iter().map(off).sum::<f64>() / all.len() as f64).exp();
    assert!(mean < 1.5, "a factor of {mean:.2} in the mean");
}

/// What the probe `rows` counted on an H200: how often each sector of a row of 64 floats is read from the L2 that so many lanes load, each
/// of which copies it, a float a round.
#[test]
fn stores_evict_lines_of_the_l1() {
    let at = crate::pc();
    for (lanes, measured) in [(32, 4.04), (64, 1.56)] {
        let mut machine = eight_blocks(Pace(1, 6), 0, |trace, slot, warp| {
            let first = (slot * 8 + u64::from(warp)) * 32;
            for i in 0..64 {
                let mut bytes = [0; 4];
                bytes[i as usize / 8 % 4] = 4;
                let lines = |lines: Vec<u64>| lines.into_iter().map(|number| Line { number, bytes }).collect::<Lines>();
                let request = |what, lines_end, tag_wavefronts, wavefronts| Traced {
                    warp,
                    what,
                    at,
                    wavefronts,
                    miss_wavefronts: wavefronts,
                    tag_wavefronts,
                    lines_end,
                    flow: Flow::default(),
                };
                let row = lines(vec![first / lanes * 2 + i / 32]);
                let lines_end = trace.add_lines(&row);
                trace.requests.push(request(What::Load { past_l1: false }, lines_end, 1, 1));
                let rows = lines((0..32).map(|lane| (1 << 21) + (first + lane) * 2 + i / 32).collect());
                let lines_end = trace.add_lines(&rows);
                trace.requests.push(request(What::Store, lines_end, 8, 32));
            }
        });
        while machine.happen().is_some() {}
        let sectors = machine.slots.len() as u64 * 256 / lanes * 8;
        let predicted = machine.memory.traffic.l2_read_sectors / sectors as f64;
        let error = predicted / measured - 1.0;
        assert!(error.abs() < 0.5, "{lanes} lanes: {predicted:.2} for {measured}");
    }
}
