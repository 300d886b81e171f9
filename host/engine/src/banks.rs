//! Shared and constant memory: from the addresses of one request to wavefronts.
//!
//! 32 banks of 4 bytes each serve one word a wavefront; a word that several lanes want is sent once. A wavefront serves
//! the whole warp at up to 4 bytes a lane, half of it at 8, a quarter at 16: 128 bytes. It serves twice as many lanes of a
//! load of which every active lane `n` is paired with lane `n ^ 1`, or every one with lane `n ^ 2`: that lane is inactive,
//! or goes to the same address. Stores are never paired.
//!
//! An atomic serves one lane a bank and wavefront, though several go to one word: so it was counted of additions of 32-bit integers
//! (`results/nvidia-h200/shared_atomics.tsv`). For floats and 64 bits `ptxas` makes a loop of it, which is not counted.

use crate::pattern::even_step;
use gpu::suite::Operation;

/// Banks, and words a wavefront.
pub const BANKS: usize = 32;

/// Bytes that a bank serves at a time.
pub const WIDTH: u64 = 4;

/// Whether lanes of 4-byte words all go to different banks: the common case, one wavefront.
fn distinct_banks(addresses: &[u64; 32], mask: u32) -> bool {
    let mut banks = 0u32;
    for (lane, address) in addresses.iter().enumerate() {
        banks |= (mask >> lane & 1) << (address / 4 % 32);
    }
    banks.count_ones() == mask.count_ones()
}

/// Wavefronts of one request: `addresses` in bytes by lane, of which those in `mask` are active, `width` bytes each.
pub fn wavefronts(addresses: &[u64; 32], mask: u32, width: u64, operation: Operation) -> u64 {
    let step = if width == 4 && mask == u32::MAX { even_step(addresses) } else { None };
    if let Some(wavefronts) = step.and_then(|step| evenly_spaced(step, width, operation)) {
        return wavefronts;
    }
    wavefronts_of_part(addresses, mask, mask, width, operation)
}

/// Wavefronts of those lanes of a request that are in `part`: they come without the other active ones, whose lines the tag stage
/// looks up at another time.
pub(crate) fn wavefronts_of_part(addresses: &[u64; 32], part: u32, mask: u32, width: u64, operation: Operation) -> u64 {
    if width == 4 && distinct_banks(addresses, part) {
        return 1;
    }
    let lanes_together = lanes_of_part_together(addresses, part, mask, width, operation);
    (0..32)
        .step_by(lanes_together)
        .map(|first| {
            let group = part >> first & (u32::MAX >> (32 - lanes_together));
            of_group(&addresses[first..], group, width, operation)
        })
        .sum()
}

/// Wavefronts of a request of all lanes, each `step` bytes behind the one before it, if that is enough to know.
#[inline]
pub(crate) fn evenly_spaced(step: i64, width: u64, operation: Operation) -> Option<u64> {
    match step {
        0 if width <= 4 && operation != Operation::Atomic => Some(1),
        // A stride of `s` words comes back to the first bank after `32 / gcd(s, 32)` lanes.
        _ if width == 4 && step % 4 == 0 => Some(1 << (step / 4).trailing_zeros().min(5)),
        _ => None,
    }
}

/// How many neighbouring lanes the wavefronts of a request serve at a time: lanes of different groups never conflict.
pub fn lanes_together(addresses: &[u64; 32], mask: u32, width: u64, operation: Operation) -> usize {
    lanes_of_part_together(addresses, mask, mask, width, operation)
}

fn lanes_of_part_together(addresses: &[u64; 32], part: u32, mask: u32, width: u64, operation: Operation) -> usize {
    let paired = || operation == Operation::Load && paired(addresses, part, mask);
    match width {
        0..=4 => 32,
        8 if paired() => 32,
        8 => 16,
        _ if paired() => 16,
        _ => 8,
    }
}

/// The wavefronts that as many bytes would need without a conflict; never more than the request took.
pub fn ideal_wavefronts(wavefronts: u64, lanes: u64, width: u64) -> u64 {
    wavefronts.min((lanes * width).div_ceil(4 * BANKS as u64))
}

/// Constant memory: how many different addresses the lanes in `mask` want, each of which takes a pass.
pub fn distinct(addresses: &[u64; 32], mask: u32) -> u64 {
    let first_to_want = |lane: &usize| {
        let earlier = (0..*lane).any(|other| mask >> other & 1 == 1 && addresses[other] == addresses[*lane]);
        mask >> lane & 1 == 1 && !earlier
    };
    (0..32).filter(first_to_want).count() as u64
}

/// Whether each lane `n` in `part` is paired with lane `n ^ 1`, or each with `n ^ 2`: that lane is inactive, or is in the part too
/// and goes to the same address.
fn paired(addresses: &[u64; 32], part: u32, mask: u32) -> bool {
    let is_in = |lanes: u32, lane: usize| lanes >> lane & 1 == 1;
    let is_paired = |lane, other| !is_in(mask, other) || is_in(part, other) && addresses[lane] == addresses[other];
    [1, 2].into_iter().any(|xor| (0..32).all(|lane| !is_in(part, lane) || is_paired(lane, lane ^ xor)))
}

/// The most lanes in `mask` that go to one bank, whether to the same word or not.
pub(crate) fn most_of_a_bank(addresses: &[u64], mask: u32, width: u64) -> u64 {
    of_group(addresses, mask, width, Operation::Atomic)
}

/// The most distinct words that one bank has to send to the lanes in `mask`; of an atomic those of each lane.
fn of_group(addresses: &[u64], mask: u32, width: u64, operation: Operation) -> u64 {
    // 128 bytes a wavefront, and as many again where pairs of lanes share.
    let mut words = [0u64; 64];
    let mut count = 0usize;
    let mut rising = true;
    let mut lanes = mask;
    let words_each = width.div_ceil(4);
    while lanes != 0 {
        let word = addresses[lanes.trailing_zeros() as usize] / 4;
        lanes &= lanes - 1;
        for word in word..word + words_each {
            match count.checked_sub(1).map(|last| words[last].cmp(&word)) {
                Some(std::cmp::Ordering::Equal) if operation != Operation::Atomic => continue,
                Some(std::cmp::Ordering::Greater) => rising = false,
                _ => {}
            }
            words[count] = word;
            count += 1;
        }
    }
    let words = &mut words[..count];
    if !rising {
        words.sort_unstable();
    }
    let mut load = [0u8; BANKS];
    let mut most = 0;
    let mut last = None;
    for &word in &*words {
        if last != Some(word) || operation == Operation::Atomic {
            let bank = &mut load[word as usize % BANKS];
            *bank += 1;
            most = most.max(*bank);
            last = Some(word);
        }
    }
    most.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wavefronts and ideal wavefronts of a load by lanes `active`, from element `index(lane)`.
    fn of(width: u64, active: impl Fn(u64) -> bool, index: impl Fn(u64) -> u64) -> (u64, u64) {
        by(Operation::Load, width, active, index)
    }

    fn by(operation: Operation, width: u64, active: impl Fn(u64) -> bool, index: impl Fn(u64) -> u64) -> (u64, u64) {
        let mut addresses = [0; 32];
        let mut mask = 0u32;
        for lane in 0..32 {
            if active(lane) {
                addresses[lane as usize] = width * index(lane);
                mask |= 1 << lane;
            }
        }
        let wavefronts = wavefronts(&addresses, mask, width, operation);
        (wavefronts, ideal_wavefronts(wavefronts, mask.count_ones().into(), width))
    }

    fn all(_: u64) -> bool {
        true
    }

    /// As measured on an H200 with one-warp kernels.
    #[test]
    fn every_measured_pattern_is_counted_as_the_hardware_counts_it() {
        for (width, linear, one) in [(4, (1, 1), (1, 1)), (8, (2, 2), (1, 1)), (16, (4, 4), (2, 2))] {
            assert_eq!(of(width, all, |lane| lane), linear, "linear, {width} bytes");
            assert_eq!(of(width, all, |_| 3), one, "one address, {width} bytes");
        }
        assert_eq!(of(8, all, |lane| lane / 2), (1, 1));
        assert_eq!(of(16, all, |lane| lane / 2), (2, 2));
        assert_eq!(of(16, all, |lane| lane / 4), (2, 2));
        assert_eq!(of(8, all, |lane| lane % 16), (2, 2));
        assert_eq!(of(16, all, |lane| lane % 16), (4, 4));
        assert_eq!(of(4, all, |lane| 2 * lane), (2, 1));
        assert_eq!(of(4, all, |lane| 32 * lane), (32, 1));
        assert_eq!(of(4, all, |lane| 33 * lane), (1, 1));
        assert_eq!(of(8, all, |lane| 2 * lane), (4, 2));
        assert_eq!(of(16, all, |lane| 2 * lane), (8, 4));
        assert_eq!(of(8, |lane| lane % 8 == 0, |lane| lane), (2, 1));
        assert_eq!(of(16, |lane| lane % 8 == 0, |lane| lane), (4, 1));
        assert_eq!(of(8, |lane| lane <= 16, |lane| lane), (2, 2));
        assert_eq!(of(16, |lane| lane <= 16, |lane| lane), (3, 3));
    }

    #[test]
    fn loads_are_paired_with_inactive_lanes_too_and_stores_with_none() {
        let even = |lane| lane % 2 == 0;
        assert_eq!(of(8, even, |lane| lane / 2).0, 1, "even lanes");
        assert_eq!(of(8, |lane| lane < 31, |lane| lane / 2).0, 1, "all lanes but the last");
        assert_eq!(of(16, even, |lane| lane / 2).0, 2, "even lanes, 16 bytes");
        assert_eq!(by(Operation::Store, 8, all, |lane| lane / 2).0, 2, "store");
        assert_eq!(by(Operation::Store, 16, all, |lane| lane / 2).0, 4, "store, 16 bytes");
    }

    #[test]
    fn additions_of_integers_take_as_many_wavefronts_as_an_h200_counted() {
        let recorded = include_str!("../../../results/nvidia-h200/shared_atomics.tsv");
        let mut rows = 0;
        for row in recorded.lines().filter(|row| row.starts_with("integers, used")) {
            // `integers, used, 2 words 32 apart`, instructions, wavefronts.
            let fields: Vec<_> = row.split('\t').collect();
            let number = |text: &str| text.parse::<u64>().expect("a number");
            let words: Vec<_> = fields[0].split(' ').collect();
            let (count, apart) = (number(words[2]), number(words[4]));
            let wavefronts = by(Operation::Atomic, 4, all, |lane| lane % count * apart).0;
            assert_eq!(wavefronts, number(fields[2]), "{row}");
            rows += 1;
        }
        assert_eq!(rows, 8);
    }

    /// 180 requests of random lanes to random elements, as an H100 counted them.
    #[test]
    fn wide_requests_take_as_many_wavefronts_as_were_counted_on_an_h100() {
        let counted = include_str!("../../../results/nvidia-h100/shared_wavefronts.tsv");
        let mut rows = 0;
        for row in counted.lines().skip(1) {
            let [width, operation, mask, elements, expected] = row.split('\t').collect::<Vec<_>>()[..] else {
                panic!("no row of five columns: {row}")
            };
            let width: u64 = width.parse().expect("a width");
            let operation = match operation {
                "load" => Operation::Load,
                "store" => Operation::Store,
                _ => panic!("no operation: {row}"),
            };
            let mask = u32::from_str_radix(mask.trim_start_matches("0x"), 16).expect("a mask");
            let mut addresses = [0; 32];
            for (address, element) in addresses.iter_mut().zip(elements.split(',')) {
                *address = width * element.parse::<u64>().expect("an element");
            }
            let expected: u64 = expected.parse().expect("wavefronts");
            assert_eq!(wavefronts(&addresses, mask, width, operation), expected, "{row}");
            rows += 1;
        }
        assert_eq!(rows, 180);
    }

    #[test]
    fn a_stride_of_s_words_conflicts_gcd_of_s_and_32_ways() {
        for stride in 1..=64u64 {
            let gcd = 1 << stride.trailing_zeros().min(5);
            assert_eq!(of(4, all, |lane| stride * lane), (gcd, 1), "stride {stride}");
        }
    }

    /// What a request costs is not counted again where it begins elsewhere.
    #[test]
    fn a_request_that_begins_some_words_further_on_takes_as_many_wavefronts() {
        for (width, case) in [1, 2, 4, 8, 16].into_iter().flat_map(|width| (0..200).map(move |case| (width, case))) {
            let random = |number: u64| u64::from(gpu::suite::noise(1000 * case + number).to_bits() >> 3);
            let mask = if case % 2 == 0 { u32::MAX } else { random(0) as u32 };
            let addresses: [u64; 32] =
                std::array::from_fn(|lane| width * (random(lane as u64 + 1) % [4, 40, 400][case as usize % 3]));
            let moved = addresses.map(|address| address + (random(40) * WIDTH).next_multiple_of(width));
            for operation in [Operation::Load, Operation::Store] {
                let of = |addresses| wavefronts(addresses, mask, width, operation);
                assert_eq!(of(&addresses), of(&moved), "{operation:?} {addresses:?} {mask:#x}");
            }
        }
    }

    #[test]
    fn a_word_wanted_by_several_lanes_is_sent_once_in_any_order() {
        assert_eq!(of(4, all, |lane| [5, 37, 5, 37][lane as usize % 4]), (2, 1));
        assert_eq!(of(1, all, |lane| lane), (1, 1), "bytes of eight words");
        assert_eq!(of(2, all, |lane| 31 - lane), (1, 1), "halves of sixteen words");
    }
}
