//! The first look against itself: quick ways and plain ones.

use super::filter::{Access, GlobalWord, Row, Shadow, cells};
use super::order::Order;
use super::tile::{SharedCell, SharedShadow, SharedWord};
use gpu::suite::{Buffer, noise};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

const THREADS: usize = 64;

/// Numbers below others, one after another.
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut drawn = 1000 * seed;
    move |below| {
        drawn += 1;
        noise(drawn) as u64 % below
    }
}

/// Has threads meet, or pass a barrier, now and then.
fn go_on(order: &mut Order, random: &mut impl FnMut(u64) -> u64) {
    match random(20) {
        0 => order.pass_barrier(),
        1 => order.meet(32 * random(2) as usize, [u32::MAX, 0xFF, 0xF0F0][random(3) as usize]),
        _ => {}
    }
}

/// An access to 64 bytes: offset, width and operation.
fn access(least: u64, random: &mut impl FnMut(u64) -> u64) -> (u64, u64, Access) {
    let width = least << random(3);
    let operation = [Access::Load, Access::Load, Access::Store][random(3) as usize];
    (width * random(64 / width), width, operation)
}

/// What one thread does.
fn row<W: Copy + Default>(place: u64, word: W) -> Row<W> {
    let mut row = Row::new();
    row.push(place, word);
    row
}

#[test]
fn entered_plainly_or_not_and_in_cells_or_bytes_the_same_accesses_to_shared_memory_are_suspicious() {
    let (mut plain, mut suspicious) = (0, 0);
    for seed in 0..500 {
        let (mut order, mut random) = (Order::new(THREADS), random(seed));
        order.begin(0);
        let (mut shadow, mut bytes) = (SharedShadow::new(), [SharedCell::default(); 64]);
        for step in 0..40 {
            go_on(&mut order, &mut random);
            // Narrow accesses make narrow cells, which stay.
            let least = if step < 10 || seed % 2 == 0 { 4 } else { 1 };
            let ((offset, width, operation), thread) = (access(least, &mut random), random(THREADS as u64) as usize);
            let now = SharedWord::new(order.now(thread));
            let found = shadow.touch(&row(offset, now), width, operation, &order);
            let touched = bytes[offset as usize..][..width as usize].iter_mut();
            let expected = touched.fold(false, |found, byte| byte.touch(operation, now, &order) | found);
            assert_eq!(found, expected, "seed {seed}");
            if found {
                // What comes behind one that was suspicious may be so or not, up to the next barrier.
                order.pass_barrier();
            }
            plain += u32::from(!found);
            suspicious += u32::from(found);
        }
    }
    assert!(plain > 500 && suspicious > 500, "{plain} plain, {suspicious} suspicious");
}

#[test]
fn loads_of_one_word_are_entered_together_as_one_by_one() {
    let (mut together, mut one_by_one) = (0, 0);
    for seed in 0..500 {
        let (mut order, mut random) = (Order::new(THREADS), random(seed));
        order.begin(0);
        let mut shadow = SharedShadow::new();
        for _ in 0..40 {
            go_on(&mut order, &mut random);
            let (offset, width, operation) = access(4, &mut random);
            let first = 32 * random(2) as usize;
            let words: Vec<_> = (first..first + 32).map(|thread| SharedWord::new(order.now(thread))).collect();
            if operation != Access::Load || !words.iter().all(|word| words[0].is_alike(*word)) {
                let now = words[random(32) as usize];
                shadow.touch(&row(offset, now), width, operation, &order);
                continue;
            }
            let mut other = SharedShadow { shift: shadow.shift, cells: shadow.cells.clone(), atomics: Vec::new() };
            if !shadow.touch_together(offset, width, words[0], &order) {
                one_by_one += 1;
                continue;
            }
            let mut all = Row::new();
            words.iter().for_each(|word| all.push(offset, *word));
            assert!(!other.touch(&all, width, Access::Load, &order), "seed {seed}");
            let cells =
                |shadow: &SharedShadow| shadow.cells.iter().map(|cell| (cell.load, cell.store)).collect::<Vec<_>>();
            assert!(cells(&shadow) == cells(&other), "seed {seed}");
            together += 1;
        }
    }
    assert!(together > 500 && one_by_one > 500, "{together} together, {one_by_one} one by one");
}

#[test]
fn accesses_side_by_side_are_entered_as_one_by_one() {
    let mut counted = [0; 2];
    for seed in 0..300 {
        let (mut order, mut random) = (Order::new(THREADS), random(seed));
        let buffer = match seed % 2 {
            0 => Buffer::input("buffer", 256, noise),
            _ => Buffer::output("buffer", 256, noise),
        };
        let buffer = buffer.expect("a small buffer");
        let [beside, alone] = [0; 2].map(|_| Shadow::new(&buffer).expect("its shadow"));
        let (mut shared_beside, mut shared_alone) = (SharedShadow::new(), SharedShadow::new());
        let mut claims = [0; 2];
        for step in 0..20 {
            go_on(&mut order, &mut random);
            if step % 7 == 0 {
                order.begin(random(3));
            }
            let (_, width, operation) = access(2, &mut random);
            let (place, first) = (width * random(1024 / width - 32 + 1), 32 * random(2) as usize);
            let word = GlobalWord::new(order.now(first));
            let (mut global, mut shared) = (Row::new(), Row::new());
            let words = std::array::from_fn(|lane| SharedWord::new(order.now(first + lane)));
            for (lane, now) in words.iter().enumerate() {
                global.push(place + lane as u64 * width, word.of_lane(lane));
                shared.push(place + lane as u64 * width, *now);
            }
            let found = beside.touch_side_by_side(place, width, operation, word, &mut claims[0]);
            assert_eq!(found, alone.touch(&global, width, operation, &mut claims[1]), "seed {seed}");
            counted[usize::from(found)] += 1;
            let found = shared_beside.touch_side_by_side(place, width, operation, &words, &order);
            assert_eq!(found, shared_alone.touch(&shared, width, operation, &order), "seed {seed}");
        }
        assert_eq!(claims[0], claims[1]);
        let cells = |shadow: &Shadow| shadow.cells().iter().map(|cell| cell.0.load(Relaxed)).collect::<Vec<_>>();
        assert!(cells(&beside) == cells(&alone), "seed {seed}");
    }
    assert!(counted[0] > 300 && counted[1] > 300, "{counted:?}");
}

#[test]
fn a_cell_that_two_claim_without_seeing_one_another_is_counted_twice() {
    let shadow = Shadow::new(&Buffer::output("buffer", 32, noise).expect("a small buffer")).expect("its shadow");
    let now = GlobalWord::new(Order::new(THREADS).now(0));
    let mut warp = Row::new();
    (0..32).for_each(|lane| warp.push(4 * lane, now.of_lane(lane as usize)));
    let mut claims = 0;
    assert!(!shadow.touch(&warp, 4, Access::Store, &mut claims));
    assert_eq!((claims, shadow.touched()), (32, 32), "every lane claims its own");
    // What another worker saw there before.
    shadow.cells()[7].0.store(0, Relaxed);
    assert!(!shadow.touch(&warp, 4, Access::Store, &mut claims));
    assert_eq!((claims, shadow.touched()), (33, 32), "the others are taken");
}

/// Blocks that read what their neighbours read are no reason to look again.
#[test]
fn loads_that_come_at_the_same_time_claim_each_cell_once() {
    const CELLS: u64 = 1 << 9;
    for round in 0..1000 {
        let shadow = Shadow::new(&Buffer::input("buffer", CELLS, noise).expect("a small buffer")).expect("its shadow");
        let arrived = AtomicUsize::new(0);
        let reads = |turn| {
            let mut order = Order::new(THREADS);
            order.begin(turn);
            let (now, mut claims) = (GlobalWord::new(order.now(0)), 0);
            // Side by side from the first one on: a barrier of the system would wake one after the other.
            arrived.fetch_add(1, SeqCst);
            while arrived.load(SeqCst) < 2 {
                std::hint::spin_loop();
            }
            for first in (0..CELLS).step_by(32) {
                assert!(!shadow.touch_side_by_side(4 * first, 4, Access::Load, now, &mut claims), "round {round}");
            }
            claims
        };
        let claims = std::thread::scope(|scope| {
            let other = scope.spawn(|| reads(0));
            reads(1) + other.join().expect("it reads")
        });
        assert_eq!((claims, shadow.touched()), (CELLS, CELLS), "round {round}");
    }
}

#[test]
fn entered_plainly_or_not_the_same_accesses_to_global_memory_are_suspicious() {
    let (mut plain, mut suspicious) = (0, 0);
    for seed in 0..500 {
        let (mut order, mut random) = (Order::new(THREADS), random(seed));
        let buffer = match seed % 2 {
            0 => Buffer::input("buffer", 16, noise),
            _ => Buffer::output("buffer", 16, noise),
        };
        let buffer = buffer.expect("a small buffer");
        let [short, long] = [0; 2].map(|_| Shadow::new(&buffer).expect("its shadow"));
        let mut claims = [0; 2];
        for step in 0..40 {
            go_on(&mut order, &mut random);
            if step % 10 == 0 {
                order.begin(random(3));
            }
            let ((offset, width, operation), thread) = (access(2, &mut random), random(THREADS as u64) as usize);
            let now = GlobalWord::new(order.now(thread));
            let found = short.touch(&row(offset, now), width, operation, &mut claims[0]);
            long.reach(&row(offset, now));
            let (cells, mut expected) = cells(width, long.shift);
            for cell in &long.cells()[(offset >> long.shift) as usize..][..cells] {
                let touched = cell.touch_again(operation, now, long.initialized);
                claims[1] += u64::from(touched.claimed);
                expected |= touched.suspicious;
            }
            assert_eq!(found, expected, "seed {seed}");
            plain += u32::from(!found);
            suspicious += u32::from(found);
        }
        assert_eq!(claims, [short.touched(), long.touched()], "each cell was claimed once");
    }
    assert!(plain > 500 && suspicious > 500, "{plain} plain, {suspicious} suspicious");
}

/// A histogram is no reason to look again: its zeros, its atomics, its loads, with barriers or meetings between them.
#[test]
fn atomics_on_shared_memory_are_suspicious_beside_plain_accesses_alone() {
    let mut order = Order::new(THREADS);
    order.begin(0);
    let mut shadow = SharedShadow::new();
    let mut touch = |order: &Order, thread: usize, access| {
        shadow.touch(&row(8, SharedWord::new(order.now(thread))), 4, access, order)
    };
    assert!(touch(&order, 0, Access::Atomic), "nobody has written");
    order.pass_barrier();
    assert!(!touch(&order, 0, Access::Store) && !touch(&order, 0, Access::Atomic), "its own");
    assert!(touch(&order, 1, Access::Atomic), "the store of thread 0");
    order.pass_barrier();
    assert!((0..THREADS).all(|thread| !touch(&order, thread, Access::Atomic)));
    assert!(touch(&order, 3, Access::Load), "the atomics of others");
    order.pass_barrier();
    assert!((0..THREADS).all(|thread| !touch(&order, thread, Access::Load)));
    assert!(touch(&order, 3, Access::Atomic), "the loads of others");
    order.pass_barrier();
    assert!((0..32).all(|lane| !touch(&order, lane, Access::Atomic)));
    order.meet(0, u32::MAX);
    assert!((0..32).all(|lane| !touch(&order, lane, Access::Load)), "of the lanes that met");
    assert!(touch(&order, 32, Access::Load));
    order.begin(1);
    assert!(touch(&order, 0, Access::Load), "of the block before");
}

/// Atomics meet one another within their scopes, whatever the blocks.
#[test]
fn atomics_on_global_memory_are_suspicious_beside_plain_accesses_and_those_of_too_small_a_scope() {
    let of = |turn, thread| {
        let mut order = Order::new(THREADS);
        order.begin(turn);
        GlobalWord::new(order.now(thread))
    };
    let first = [(Access::Load, 0), (Access::Store, 1), (Access::Atomic, 2), (Access::AtomicOfBlock, 3)];
    // Of another block, and of another thread of the same one.
    let expected = [
        [(false, false), (true, true), (true, true), (true, true)],
        [(true, true); 4],
        [(true, true), (true, true), (false, false), (true, false)],
        [(true, true), (true, true), (true, false), (true, false)],
    ];
    for (before, row_number) in first {
        for (after, column) in first {
            for (turn, is_expected) in [(1, expected[row_number][column].0), (0, expected[row_number][column].1)] {
                let shadow =
                    Shadow::new(&Buffer::input("buffer", 1, noise).expect("a small buffer")).expect("its shadow");
                let mut claims = 0;
                shadow.touch(&row(0, of(0, 0)), 4, before, &mut claims);
                let found = shadow.touch(&row(0, of(turn, 1)), 4, after, &mut claims);
                assert_eq!(found, is_expected, "{before:?}, then {after:?} of block {turn}");
            }
        }
    }
}
