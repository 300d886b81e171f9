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
        let mut machine = one_block(trace, 1, 1 << 10);
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
            assert!(error.abs() < 0.1, "{what:?} of {warps} warps, {ways} ways: {predicted:.1} for {measured}");
        }
    }
}
