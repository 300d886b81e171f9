use super::*;

/// Of loads that hit in the L2, but for one, how many are issued until that arrives.
#[test]
fn a_warp_stalls_on_its_oldest_load_if_it_has_issued_as_many_as_ptxas_has_registers_for() {
    let at = crate::pc();
    let made = |of_memory: usize| {
        let mut trace = Trace::default();
        for i in 0..32 {
            load(&mut trace, at, 0, 1, |_| if i == of_memory { 1 << 20 } else { i as u64 });
        }
        let mut machine = one_block_of(trace, Pace(64, 1), 224, 32);
        let mut made = 0;
        while let Some(now) = machine.happen()
            && let Some(block) = &machine.slots[0]
        {
            let warp = &block.warps[0];
            if warp.in_flight.iter().any(|load| load.before == of_memory && load.arrives > now) {
                made = warp.next;
            }
        }
        made
    };
    assert_eq!([0, 1, 2, 3, 15, 16, 20].map(made), [13, 14, 15, 16, 28, 29, 32]);
}

/// How far eight blocks of eight warps have come, each warp with so many loads of 32 lines in flight, when the oldest has issued half of
/// its loads, as a share of that. The lines are all the same, or each load has its own, which the L2 has.
fn come_by_age(in_flight: u32, same: bool) -> Vec<f64> {
    const LOADS: u64 = 256;
    const KNOWN: u64 = 1 << 17;
    let at = crate::pc();
    let requests = |block: u64| {
        let mut trace = Trace::default();
        for (i, warp) in (0..LOADS).flat_map(|i| (0..8).map(move |warp| (i, warp))) {
            let own = noise((block * 8 + warp) * LOADS + i) as u64 * 32 % KNOWN;
            load(&mut trace, at, warp as u16, 32, |lane| if same { lane } else { own + lane });
        }
        trace
    };
    let pace = Pace(in_flight, 1);
    let mut machine = blocks_of((0..8).map(requests).collect(), pace, 224, KNOWN);
    let come = |machine: &Machine, slot: usize| {
        let block = machine.slots[slot].as_ref().expect("none has ended");
        block.warps.iter().map(|warp| warp.next as u64).sum::<u64>()
    };
    while come(&machine, 0) < 8 * LOADS / 2 {
        machine.happen().expect("it is at work");
    }
    (0..8).map(|slot| come(&machine, slot) as f64 / come(&machine, 0) as f64).collect()
}

/// As the probe `queues` measured on an H200, of hits in the L1 and in the L2.
#[test]
fn warps_of_the_oldest_blocks_are_selected_first() {
    for (in_flight, same, bound, measured) in [
        (1, true, 0.05, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.98, 0.96]),
        (2, true, 0.17, [1.0, 0.97, 0.93, 0.88, 0.69, 0.17, 0.06, 0.06]),
        (4, true, 0.25, [1.0, 0.88, 0.66, 0.19, 0.04, 0.0, 0.0, 0.0]),
        (1, false, 0.08, [1.0, 0.97, 0.96, 0.95, 0.95, 0.94, 0.94, 0.94]),
        (2, false, 0.16, [1.0, 0.94, 0.94, 0.88, 0.78, 0.33, 0.06, 0.06]),
        (4, false, 0.25, [1.0, 0.88, 0.67, 0.23, 0.0, 0.0, 0.0, 0.0]),
    ] {
        for (block, (predicted, measured)) in come_by_age(in_flight, same).into_iter().zip(measured).enumerate() {
            let error: f64 = predicted - measured;
            assert!(
                error.abs() < bound,
                "{in_flight} in flight, the same {same}, block {block}: {predicted:.2} for {measured}"
            );
        }
    }
}

/// The cycles of a step that begins and ends at a barrier, of so many blocks on an SM of an H200 of their own.
fn cycles_between_barriers(blocks: usize, warps: u16, add_step: impl Fn(&mut Trace, Pc)) -> f64 {
    const STEPS: usize = 64;
    let at = crate::pc();
    let requests = |_| {
        let mut trace = Trace::default();
        (0..warps).for_each(|warp| load(&mut trace, at, warp, 1, |_| 0));
        wait(&mut trace, at);
        for _ in 0..STEPS {
            add_step(&mut trace, at);
            wait(&mut trace, at);
        }
        trace
    };
    let pace = Pace(2, 2);
    let mut machine = blocks_of((0..blocks).map(requests).collect(), pace, 28, 0);
    let (mut begun, mut ended) = (0.0, 0.0);
    while let Some(now) = machine.happen() {
        // Once all have arrived for the first time.
        let is_first = |block: &Block| block.warps.iter().any(|warp| warp.next <= 2);
        if machine.slots.iter().flatten().any(is_first) {
            begun = now;
        }
        ended = now;
    }
    (ended - begun) / STEPS as f64
}

/// What the probe `barriers` measured on an H200: the cycles from one barrier to the next of so many blocks of so many warps.
#[test]
fn warps_arrive_at_a_barrier_one_after_another() {
    for (blocks, warps, measured) in [
        (1, 1, 15.3),
        (1, 2, 17.3),
        (1, 4, 21.3),
        (1, 8, 29.3),
        (1, 16, 45.3),
        (1, 32, 77.4),
        (2, 8, 33.2),
        (2, 16, 64.1),
        (2, 32, 117.5),
        (4, 4, 32.1),
        (4, 8, 58.7),
        (8, 2, 32.0),
        (8, 4, 53.9),
    ] {
        let predicted = cycles_between_barriers(blocks, warps, |_, _| ());
        let error = predicted / measured - 1.0;
        assert!(error.abs() < 0.25, "{blocks} blocks of {warps} warps: {predicted:.1} for {measured}");
    }
}

/// What it measured of a step of a tree in shared memory, by the blocks of eight warps, how many of these add, and the wavefronts of
/// each access.
#[test]
fn warps_that_skip_a_step_take_lsu_cycles_as_well() {
    for (blocks, adding, measured) in [
        (1, 8, [68.5, 79.5, 111.0, 195.8]),
        (1, 2, [66.2, 68.6, 75.9, 94.6]),
        (1, 1, [66.1, 67.3, 69.7, 85.0]),
        (2, 8, [73.8, 102.0, 202.0, 392.0]),
        (2, 4, [70.0, 80.4, 134.0, 231.0]),
        (2, 1, [70.0, 72.2, 76.8, 104.0]),
        (4, 8, [111.9, 197.7, 382.3, 732.1]),
        (4, 4, [110.2, 155.9, 251.7, 440.8]),
        (4, 2, [110.5, 133.4, 180.8, 279.4]),
        (4, 1, [110.7, 122.3, 145.6, 197.0]),
    ] {
        for (ways, measured) in [1, 2, 4, 8].into_iter().zip(measured) {
            let predicted = cycles_between_barriers(blocks, 8, |trace, at| {
                for warp in 0..adding {
                    for what in [What::SharedLoad, What::SharedLoad, What::SharedStore] {
                        load(trace, at, warp, ways, |line| line);
                        trace.requests.last_mut().expect("it was added").what = what;
                    }
                }
                // The others issue them without a lane.
                for warp in (adding..8).flat_map(|warp| [warp; 3]) {
                    load(trace, at, warp, 0, |line| line);
                    trace.requests.last_mut().expect("it was added").what = What::SharedStore;
                }
            });
            let error = predicted / measured - 1.0;
            assert!(
                error.abs() < 0.3,
                "{blocks} blocks, {adding} warps add, {ways} ways: {predicted:.1} for {measured}"
            );
        }
    }
}
