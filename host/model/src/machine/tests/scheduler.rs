use super::*;

/// As the probe `rounds` found on both GPUs, as far as blocks wait for being launched.
#[test]
fn blocks_are_launched_round_robin_on_the_sms_that_have_room() {
    let chip = Chip::load("h200").expect("is built in");
    let mut machine = Machine::new(&chip, 2, 224 << 10, u64::MAX);
    let launch = |machine: &mut Machine, at: f64| machine.scheduler.take_slot(at) % 132;
    let first: Vec<_> = (0..2 * 132).map(|_| launch(&mut machine, 0.0)).collect();
    assert!(first.iter().copied().eq((0..132).chain(0..132)), "one on each, then another");
    assert_eq!(machine.scheduler.next(), None);
    for (end, slot) in [(20.0, 5), (10.0, 40), (10.0, 132 + 7), (10.0, 7)] {
        machine.scheduler.free.push(Reverse((key(end), slot)));
    }
    assert_eq!(machine.scheduler.next(), Some(10.0), "as soon as one ends");
    assert_eq!([7, 40].map(|_| launch(&mut machine, 10.0)), [7, 40], "the next ones that have room");
    assert_eq!([7, 5].map(|_| launch(&mut machine, 20.0)), [5, 7], "from the first on again");
}

/// What the probe `successors` measured on an H100: how many cycles after those of its SM ended a block starts, in the median of each
/// sixteenth of as many blocks as there is room for. The ends of an SM's blocks are so many cycles apart. In the model the scheduler runs
/// ahead with blocks of one warp as well.
#[test]
fn where_many_blocks_end_the_cta_scheduler_runs_ahead_and_then_launches_at_one_rate() {
    let chip = Chip::load("h100-sxm").expect("is built in");
    #[rustfmt::skip]
    let cases = [
        (8, 8, 220.0, 150.0, [
            355, 400, 420, 433, 477, 526, 602, 676, 741, 805, 868, 932, 995, 1073, 1342, 1450,
        ]),
        (1, 32, 150.0, 550.0, [
            664, 953, 1266, 1610, 2099, 2196, 2462, 2762, 3047, 3355, 3666, 3980, 4292, 4605, 4917, 5221,
        ]),
    ];
    for (warps, each, apart, bound, measured) in cases {
        let mut machine = Machine::new(&chip, each, 224 << 10, u64::MAX);
        let (at, room, sms) = (crate::pc(), machine.slots.len(), machine.sms.len());
        machine.scheduler.free.clear();
        machine.scheduler.launched = room as u64;
        for slot in 0..room {
            let ended = Block { sm: slot % sms, ..Block::default() };
            machine.slots[slot] = Some(ended);
            let share = ((slot / sms) as f64 + 0.5) / each as f64;
            machine.retire(BEGIN + apart * (share - 0.5), slot);
        }
        let begins: Vec<f64> = (0..room)
            .map(|_| {
                let mut trace = Trace::default();
                (0..warps).for_each(|warp| load(&mut trace, at, warp, 1, |_| 0));
                let turn = machine.scheduler.next().expect("there is room");
                let slot = machine.scheduler.take_slot(turn);
                machine.launch(trace, slot, turn, 0.0);
                let (begin, _) = machine.events.pop().expect("its warps begin");
                machine.events.clear();
                begin - BEGIN
            })
            .collect();
        for (begins, measured) in begins.chunks(room / 16).zip(measured) {
            let predicted = median(begins);
            assert!((predicted - f64::from(measured)).abs() < bound, "{warps} warps: {predicted:.0} for {measured}");
        }
    }
}

fn median(of: &[f64]) -> f64 {
    let mut of = of.to_vec();
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}
