//! Sequences of which the answer is known, through a timer that hands them out.

use super::*;

/// A sample of each number, from 0, the warm-up's first; it takes as long as it says, and a millisecond more.
struct Sequence<F> {
    sample: F,
    next: u32,
    elapsed: Duration,
    recovered: u32,
}

fn sequence<F: FnMut(u32) -> Option<(f64, Option<u32>)>>(sample: F) -> Sequence<F> {
    Sequence { sample, next: 0, elapsed: Duration::ZERO, recovered: 0 }
}

impl<F: FnMut(u32) -> Option<(f64, Option<u32>)>> Timer for Sequence<F> {
    type Error = &'static str;

    fn sample(&mut self, _: L2) -> Result<Sample, &'static str> {
        let (ms, sm_mhz) = (self.sample)(self.next).ok_or("lost")?;
        self.next += 1;
        self.elapsed += Duration::from_secs_f64((ms + 1.0) / 1e3);
        Ok(Sample { ms, sm_mhz, ticks: None })
    }

    fn elapsed(&self) -> Duration {
        self.elapsed
    }

    fn recover(&mut self) {
        self.recovered += 1;
        self.elapsed += Duration::from_millis(50);
    }
}

/// Without warm-up, so that samples are numbered as they are kept, and without an end by time.
const PLAIN: Sampling = Sampling { warm_up: 0, max_time_s: f64::INFINITY, ..Sampling::DEFAULT };

fn taken(sampling: &Sampling, sample: impl FnMut(u32) -> Option<(f64, Option<u32>)>) -> Taken {
    measure(sampling, L2::Cold, Some(1500), &mut sequence(sample)).expect("samples")
}

fn ms(taken: &Taken) -> Vec<f64> {
    taken.samples.iter().map(|sample| sample.ms).collect()
}

/// Times about 1 ms that scatter as a normal distribution does, by so much of a share.
fn normal(seed: u64, share: f64) -> impl FnMut(u32) -> Option<(f64, Option<u32>)> {
    let mut random = fastrand::Rng::with_seed(seed);
    move |_| {
        let (radius, angle) = ((-2.0 * (1.0 - random.f64()).ln()).sqrt(), random.f64() * std::f64::consts::TAU);
        Some((1.0 + share * radius * angle.cos(), Some(2000)))
    }
}

#[test]
fn warm_up_is_not_sampled_and_the_order_is_kept() {
    let clock = [50.0, 40.0, 2.0, 4.0, 1.0, 900.0];
    let sampling = Sampling { warm_up: 2, ..Sampling::exactly(4, Series::Cold) };
    let taken = taken(&sampling, |i| clock.get(i as usize).map(|ms| (*ms, None)));
    assert_eq!((taken.stopped, taken.discarded), (Stopped::Samples, 0));
    let timed = taken.timed(L2::Cold, 6_000_000, Some(4.0), None);
    assert_eq!(timed.samples_ms, [2.0, 4.0, 1.0, 900.0]);
    assert_eq!((timed.median_ms, timed.min_ms, timed.gbps), (3.0, 1.0, 2.0));
    assert_eq!((timed.share_of_copy, timed.share_of_peak), (Some(0.5), None));
    assert!(timed.sm_mhz.is_empty(), "no clock was read");
}

#[test]
fn a_timer_that_fails_ends_the_measurement() {
    for (warm_up, last) in [(1, 0), (1, 3), (0, 0), (3, 7)] {
        let sampling = Sampling { warm_up, ..Sampling::exactly(9, Series::Cold) };
        let failed = measure(&sampling, L2::Cold, None, &mut sequence(|i| (i < last).then_some((1.0, None))));
        assert_eq!(failed, Err(NotTaken::Failed("lost")));
    }
}

#[test]
fn calm_times_end_with_the_fewest_samples_and_a_number_is_exact() {
    let calm = taken(&PLAIN, normal(1, 0.001));
    assert_eq!((calm.samples.len(), calm.stopped), (30, Stopped::Noise));
    let same = taken(&PLAIN, |_| Some((1.0, None)));
    assert_eq!((same.samples.len(), same.stopped), (30, Stopped::Noise));
    for count in [1, 2, 1000] {
        let exact = taken(&Sampling::exactly(count, Series::Cold), normal(1, 0.3));
        assert_eq!((exact.samples.len(), exact.stopped), (count as usize, Stopped::Samples));
    }
    // Of fewer than five samples there is no noise.
    let few = taken(&Sampling { min_samples: 1, ..PLAIN }, |_| Some((1.0, None)));
    assert_eq!((few.samples.len(), few.stopped), (5, Stopped::Noise));
}

#[test]
fn times_that_drift_end_by_time_and_the_median_is_the_middle() {
    // A thousandth more each time.
    let sampling = Sampling { max_time_s: 0.5, ..PLAIN };
    let taken = taken(&sampling, |i| Some((1.0 + f64::from(i) / 1000.0, None)));
    assert_eq!(taken.stopped, Stopped::MaxTime);
    // A sample and what lies around it take 2 ms and a thousandth more each time: 224 of them half a second.
    let count = (1..).find(|n| 2.0 * f64::from(*n) + f64::from(n * (n - 1)) / 2000.0 >= 500.0).expect("some");
    assert_eq!(taken.samples.len(), count as usize);
    let timed = taken.timed(L2::Cold, 1, None, None);
    let middle = 1.0 + f64::from(count - 1) / 2000.0;
    assert!((timed.median_ms - middle).abs() < 1e-12, "{}", timed.median_ms);
    let [low, high] = timed.interval_ms;
    assert!(low < middle && middle < high && high - low < 0.06, "{low} to {high}");
    assert!((timed.mad_ms - f64::from(count) / 4000.0).abs() < 1e-3 && timed.outliers.is_empty(), "{timed:?}");
}

#[test]
fn times_of_two_kinds_show_in_every_statistic() {
    let taken = taken(&PLAIN, |i| Some((if i.is_multiple_of(2) { 1.0 } else { 2.0 }, None)));
    assert_eq!(taken.stopped, Stopped::SteadyNoise);
    let count = taken.samples.len() as f64;
    let timed = taken.timed(L2::Cold, 1, None, None);
    assert_eq!((timed.median_ms, timed.mad_ms, timed.p5_ms, timed.p95_ms), (1.5, 0.5, 1.0, 2.0));
    assert_eq!(timed.interval_ms, [1.0, 2.0], "the median may be either");
    let noise = (count / (count - 1.0)).sqrt() / 3.0;
    assert!((timed.noise.expect("many samples") - noise).abs() < 1e-12, "{timed:?}");
    assert!(timed.outliers.is_empty());
}

#[test]
fn an_outlier_is_named_and_moves_no_median() {
    let sampling = Sampling { warm_up: 0, ..Sampling::exactly(40, Series::Cold) };
    let with = |far: f64| {
        let mut times = normal(7, 0.002);
        taken(&sampling, move |i| times(i).map(|(ms, mhz)| (if i == 17 { far } else { ms }, mhz))).timed(
            L2::Cold,
            1,
            None,
            None,
        )
    };
    let (without, far) = (with(1.0), with(3.0));
    assert_eq!((without.outliers, far.outliers), (vec![], vec![17]));
    assert!((without.median_ms - far.median_ms).abs() < 1e-3);
    // Steps of the events' clock are no outliers, though most samples are equal.
    let steps = taken(&sampling, |i| Some((if i.is_multiple_of(10) { 0.010_01 } else { 0.01 }, None)));
    assert_eq!(steps.timed(L2::Cold, 1, None, None).outliers, [0; 0]);
}

#[test]
fn samples_at_a_low_clock_are_discarded_counted_and_others_taken() {
    let (calm, mut times) = (taken(&PLAIN, normal(8, 0.002)), normal(8, 0.002));
    let mut sequence = sequence(|i| match i % 3 {
        1 => Some((3.0, Some(1499))),
        _ => times(i).map(|(ms, _)| (ms, Some(1500))),
    });
    let taken = measure(&PLAIN, L2::Cold, Some(1500), &mut sequence).expect("samples");
    assert_eq!((ms(&taken), taken.stopped), (ms(&calm), calm.stopped), "as if they had not been");
    assert_eq!((taken.discarded, sequence.recovered), (15, 15));
    let timed = taken.timed(L2::Cold, 1, None, None);
    assert_eq!((timed.discarded, timed.sm_mhz), (15, vec![1500; 30]));
    // Without a clock, or without one to hold it to, all count.
    let low = |i: u32| Some((1.0, i.is_multiple_of(2).then_some(100)));
    let all = measure(&PLAIN, L2::Cold, None, &mut self::sequence(low)).expect("samples");
    assert_eq!((all.samples.len(), all.discarded), (30, 0));
    assert!(all.timed(L2::Cold, 1, None, None).sm_mhz.is_empty(), "some clocks were not read");
}

#[test]
fn a_clock_that_stays_low_is_waited_for_and_then_said() {
    let mut stuck = sequence(|_| Some((1.0, Some(700))));
    let none = measure(&PLAIN, L2::Cold, Some(1500), &mut stuck);
    // Each takes 2 ms and 50 ms of rest, until 2 seconds are over.
    assert_eq!(none, Err(NotTaken::Throttled { discarded: 40, lowest: 1500, mhz: 700 }));
    let said = none.expect_err("no sample").to_string();
    assert!(said.contains("below 1500 MHz, at last at 700") && said.contains("--min-clock 0"), "{said}");
    let some = taken(&PLAIN, |i| Some((1.0, Some(if i < 12 { 2000 } else { 700 }))));
    assert_eq!((some.samples.len(), some.stopped, some.discarded), (12, Stopped::Throttled, 40));
    // A launch that takes longer than that is tried three times.
    let slow = taken(&PLAIN, |i| Some((5000.0, Some(if i == 0 { 2000 } else { 700 }))));
    assert_eq!((slow.samples.len(), slow.discarded), (1, 3));
}

#[test]
fn entropy_ends_when_no_new_times_turn_up() {
    let sampling = Sampling { stop: Stop::Entropy, ..PLAIN };
    let same = taken(&sampling, |_| Some((1.0, None)));
    assert_eq!((same.samples.len(), same.stopped), (30, Stopped::Entropy));
    // Of times that are all new the entropy of n is log2 n, which rises by 0.048 degrees a sample at n = 1722.
    let new = taken(&sampling, |i| Some((1.0 + f64::from(i) * 1e-6, None)));
    assert!((1722..2022).contains(&new.samples.len()), "{}", new.samples.len());
}
