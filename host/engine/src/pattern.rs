//! How the address of a request moves as the lane rises.

/// How the addresses of one request's active lanes follow from the lanes' order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// One lane asks alone.
    Single,
    /// Every lane is as many bytes behind the one before it; 0 is one address for all.
    Even {
        /// Bytes from lane to lane.
        step: i64,
    },
    /// The lanes fall into rows, evenly spaced within each, and the rows evenly spaced too.
    Rows {
        /// Lanes a row.
        lanes: u32,
        /// Bytes from lane to lane within a row.
        step: i64,
        /// Bytes from the start of a row to the start of the next.
        row_step: i64,
    },
    /// The lanes fall into rows as above, and these into groups of rows, evenly spaced too.
    Groups {
        /// Lanes a row.
        lanes: u32,
        /// Bytes from lane to lane within a row.
        step: i64,
        /// Rows a group.
        rows: u32,
        /// Bytes from the start of a row to the start of the next within a group.
        row_step: i64,
        /// Bytes from the start of a group to the start of the next.
        group_step: i64,
    },
    /// Each bit of the lane's number flips the same bits of the address, and this is no sum: an exclusive or, as in a swizzle.
    Xor,
    /// None of these.
    Irregular,
}

/// Bytes from each address to the next, if they are the same throughout; none of fewer than two addresses.
#[inline(always)]
pub(crate) fn even_step(addresses: &[u64]) -> Option<i64> {
    let [first, second, ..] = *addresses else { return None };
    let step = second.wrapping_sub(first);
    // Not left early: so it is done on several addresses at a time.
    let (mut differ, mut expected) = (0, first);
    for address in addresses {
        differ |= address ^ expected;
        expected = expected.wrapping_add(step);
    }
    (differ == 0).then_some(step.cast_signed())
}

impl Pattern {
    /// The pattern of the lanes in `mask`, at `addresses` by lane.
    pub fn of(addresses: &[u64; 32], mask: u32) -> Self {
        let mut active = [0i64; 32];
        let mut n = 0;
        for (lane, address) in addresses.iter().enumerate() {
            active[n] = *address as i64;
            n += (mask >> lane & 1) as usize;
        }
        let active = &active[..n];
        let [first, second, ..] = *active else { return Self::Single };
        let step = second - first;
        let Some(row) = (1..n).find(|&i| active[i] - active[i - 1] != step) else { return Self::Even { step } };
        let row_step = active[row] - first;
        let in_rows = |(i, address): (usize, &i64)| *address == active[i % row] + (i / row) as i64 * row_step;
        // Three lanes are in rows wherever they are.
        if n > 3 && active.iter().enumerate().all(in_rows) {
            return Self::Rows { lanes: row as u32, step, row_step };
        }
        if n == 32 && is_exclusive_or(active) {
            return Self::Xor;
        }
        let start = |row_number: usize| first + row_number as i64 * row_step;
        let starts = || active.iter().step_by(row).enumerate();
        let rows = starts().find(|(number, address)| **address != start(*number)).map_or(0, |(number, _)| number);
        let group = row * rows;
        if group == 0 || n <= group + 2 {
            return Self::Irregular;
        }
        let group_step = active[group] - first;
        let in_groups = |(i, address): (usize, &i64)| {
            *address == active[i % row] + (i % group / row) as i64 * row_step + (i / group) as i64 * group_step
        };
        if active.iter().enumerate().all(in_groups) {
            return Self::Groups { lanes: row as u32, step, rows: rows as u32, row_step, group_step };
        }
        Self::Irregular
    }
}

/// Whether each bit of the lane's number flips the same bits of the address. Where each only adds bits of its own, or takes them
/// away, it is a sum.
fn is_exclusive_or(active: &[i64]) -> bool {
    let first = active[0];
    let flips = [1, 2, 4, 8, 16].map(|lane| first ^ active[lane]);
    let flipped = |lane: usize| (0..5).filter(|bit| lane >> bit & 1 == 1).fold(first, |at, bit| at ^ flips[bit]);
    let steps = [1, 2, 4, 8, 16].map(|lane| active[lane] - first);
    let one_way = steps.iter().all(|step| *step >= 0) || steps.iter().all(|step| *step <= 0);
    let all = steps.iter().fold(0, |all, step| all | step.unsigned_abs());
    let apart = steps.iter().map(|step| step.unsigned_abs().count_ones()).sum::<u32>() == all.count_ones();
    !(one_way && apart) && (0..32).all(|lane| active[lane] == flipped(lane))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mask: u32, address: impl Fn(u64) -> u64) -> Pattern {
        Pattern::of(&std::array::from_fn(|lane| address(lane as u64)), mask)
    }

    #[test]
    fn each_pattern_is_told_from_the_others() {
        assert_eq!(of(u32::MAX, |lane| 4 * lane), Pattern::Even { step: 4 });
        assert_eq!(of(u32::MAX, |lane| 4 * (31 - lane)), Pattern::Even { step: -4 });
        assert_eq!(of(u32::MAX, |_| 64), Pattern::Even { step: 0 });
        assert_eq!(of(0x1FFF, |lane| 512 * lane), Pattern::Even { step: 512 });
        assert_eq!(of(u32::MAX, |lane| lane / 8 * 4), Pattern::Rows { lanes: 8, step: 0, row_step: 4 });
        assert_eq!(of(u32::MAX, |lane| lane % 8 * 4), Pattern::Rows { lanes: 8, step: 4, row_step: 0 });
        assert_eq!(
            of(u32::MAX, |lane| lane / 16 * 1024 + lane % 16 * 4),
            Pattern::Rows { lanes: 16, step: 4, row_step: 1024 }
        );
        for constant in [2, 5] {
            assert_eq!(of(u32::MAX, |lane| 128 * lane + 4 * (lane ^ constant)), Pattern::Xor, "{constant}");
        }
        assert_eq!(
            of(u32::MAX, |lane| lane / 8 * 128 + 16 * ((lane % 8) ^ (lane / 8))),
            Pattern::Xor,
            "chunks of 16 bytes"
        );
        assert_eq!(of(u32::MAX, |lane| lane * lane * 4), Pattern::Irregular);
        assert_eq!(of(1 << 7, |lane| 4 * lane), Pattern::Single);
    }

    /// Sums of digits of the lane's number are no exclusive or, wherever they begin.
    #[test]
    fn rows_in_groups_are_told_from_a_swizzle() {
        let groups =
            |lanes, step, rows, row_step, group_step| Pattern::Groups { lanes, step, rows, row_step, group_step };
        for first in [0, 28, 4096] {
            assert_eq!(of(u32::MAX, |lane| first + lane / 2 % 4 * 4), groups(2, 0, 4, 4, 0), "from {first}");
            assert_eq!(of(u32::MAX, |lane| first + 12 - lane / 2 % 4 * 4), groups(2, 0, 4, -4, 0), "from {first}");
            assert_eq!(
                of(u32::MAX, |lane| first + lane % 4 * 4 + lane / 4 % 4 * 64 + lane / 16 * 4096),
                groups(4, 4, 4, 64, 4096),
                "from {first}"
            );
        }
        assert_eq!(of(0xFFF, |lane| lane / 2 % 2 * 8 + lane / 4 * 96), groups(2, 0, 2, 8, 96));
        assert_eq!(
            of(0x3F, |lane| [0, 4, 64, 68, 96, 100][lane as usize % 6]),
            Pattern::Irregular,
            "one group and a row"
        );
        // Four digits are too many.
        let digits = |lane: u64| lane % 2 * 4 + lane / 2 % 2 * 64 + lane / 4 % 2 * 8 + lane / 8 * 4096;
        assert_eq!(of(u32::MAX, digits), Pattern::Irregular);
    }

    #[test]
    fn only_active_lanes_count() {
        assert_eq!(of(0x1111_1111, |lane| if lane % 4 == 0 { lane } else { 999 }), Pattern::Even { step: 4 });
        assert_eq!(of(0b1011, |lane| lane * lane), Pattern::Irregular);
    }
}
