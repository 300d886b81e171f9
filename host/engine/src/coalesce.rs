//! Global memory: from the addresses of one request to sectors and lines.
//!
//! Both are unions over the whole warp, at every width: a sector that several lanes touch is fetched once.

use crate::pattern::even_step;

/// Bytes of a sector, the unit that memory and caches move.
pub const SECTOR: u64 = 32;

/// Bytes of a line, the unit that a cache's tag stands for.
pub const LINE: u64 = 128;

/// Distinct sectors, lines and addresses of one request: `addresses` in bytes, of the active lanes alone. No access
/// straddles a sector, since each is aligned to its width.
pub fn touched(addresses: &[u64]) -> (u64, u64, u64) {
    if let Some(step) = even_step(addresses) {
        return evenly_spaced(addresses[0], step, addresses.len() as u64);
    }
    let rising = addresses.is_sorted();
    if rising || addresses.is_sorted_by(|a, b| a >= b) {
        return (runs(addresses, SECTOR), runs(addresses, LINE), runs(addresses, 1));
    }
    let mut sorted = [0; 32];
    let sorted = &mut sorted[..addresses.len()];
    sorted.copy_from_slice(addresses);
    sorted.sort_unstable();
    (runs(sorted, SECTOR), runs(sorted, LINE), runs(sorted, 1))
}

/// The same of so many lanes, each `step` bytes behind the one before it.
#[inline]
pub(crate) fn evenly_spaced(first: u64, step: i64, lanes: u64) -> (u64, u64, u64) {
    let last = first.wrapping_add((step * (lanes as i64 - 1)).cast_unsigned());
    // No unit between the first and the last is left out, unless each lane steps over a whole one.
    let units = |unit| match step.unsigned_abs() < unit {
        true => (first / unit).abs_diff(last / unit) + 1,
        false => lanes,
    };
    (units(SECTOR), units(LINE), if step == 0 { 1 } else { lanes })
}

/// The sectors that as many bytes would touch side by side; never more than the request touched.
pub fn ideal_sectors(sectors: u64, lanes: u64, width: u64) -> u64 {
    sectors.min((lanes * width).div_ceil(SECTOR))
}

/// How often the unit changes along monotonic addresses, the first included.
fn runs(addresses: &[u64], unit: u64) -> u64 {
    let changes = addresses.windows(2).filter(|pair| pair[0] / unit != pair[1] / unit).count() as u64;
    if addresses.is_empty() { 0 } else { changes + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn counts(width: u64, address: impl Fn(u64) -> Option<u64>) -> (u64, u64, u64) {
        let addresses: Vec<u64> = (0..32).filter_map(address).collect();
        let (sectors, lines, _) = touched(&addresses);
        (sectors, ideal_sectors(sectors, addresses.len() as u64, width), lines)
    }

    /// Sectors, ideal sectors, lines: as measured on an H200 with one-warp kernels.
    #[test]
    fn every_measured_pattern_is_counted_as_the_hardware_counts_it() {
        assert_eq!(counts(4, |lane| Some(4 * lane)), (4, 4, 1), "linear");
        assert_eq!(counts(4, |lane| Some(4 * (31 - lane))), (4, 4, 1), "reversed");
        assert_eq!(counts(4, |_| Some(64)), (1, 1, 1), "one address");
        assert_eq!(counts(4, |lane| Some(8 * lane)), (8, 4, 2), "stride 2");
        assert_eq!(counts(4, |lane| Some(32 * lane)), (32, 4, 8), "stride 8");
        assert_eq!(counts(4, |lane| (lane < 16).then_some(4 * lane)), (2, 2, 1), "16 lanes");
        assert_eq!(counts(4, |lane| Some(4 * (lane + 1))), (5, 4, 2), "offset 1");
        assert_eq!(counts(8, |lane| Some(8 * lane)), (8, 8, 2), "8 bytes, linear");
        assert_eq!(counts(16, |lane| Some(16 * lane)), (16, 16, 4), "16 bytes, linear");
        assert_eq!(counts(16, |lane| Some(32 * lane)), (32, 16, 8), "16 bytes, stride 2");
    }

    /// Evenly spaced addresses are told by their ends alone, and others one by one.
    #[test]
    fn evenly_spaced_addresses_touch_what_their_units_say() {
        for step in (-300..300).step_by(4).chain([-4096, 4096]) {
            for first in [1 << 20, (1 << 20) + 28, (1 << 20) + 124] {
                for lanes in 1..=32 {
                    let addresses: Vec<u64> = (0..lanes).map(|lane| (first + lane * step) as u64).collect();
                    let distinct = |unit| addresses.iter().map(|a| a / unit).collect::<BTreeSet<_>>().len() as u64;
                    let expected = (distinct(SECTOR), distinct(LINE), distinct(1));
                    assert_eq!(touched(&addresses), expected, "{lanes} lanes from {first}, {step} apart");
                }
            }
        }
    }

    #[test]
    fn the_order_of_the_lanes_does_not_matter() {
        let permuted = |lane: u64| Some(4 * ((lane * 13 + 5) % 32));
        assert_eq!(counts(4, permuted), (4, 4, 1));
    }

    #[test]
    fn an_address_that_several_lanes_want_counts_once() {
        assert_eq!(touched(&[64; 32]), (1, 1, 1));
        assert_eq!(touched(&[0, 4, 0, 4, 0, 4]), (1, 1, 2), "not sorted");
        assert_eq!(touched(&[0, 0, 4, 256]), (2, 2, 3), "sorted");
    }
}
