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
    /// Each bit of the lane's number flips the same bits of the address: an exclusive or, as in a swizzle.
    Xor,
    /// None of these.
    Irregular,
}

/// Bytes from each address to the next, if they are the same throughout; none of fewer than two addresses.
#[inline(always)]
pub(super) fn even_step(addresses: &[u64]) -> Option<i64> {
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
        let flipped = |lane: usize| {
            let bits = (0..5).filter(|bit| lane >> bit & 1 == 1);
            bits.fold(first, |address, bit| address ^ first ^ active[1 << bit])
        };
        if n == 32 && (0..32).all(|lane| active[lane] == flipped(lane)) { Self::Xor } else { Self::Irregular }
    }
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
        assert_eq!(of(u32::MAX, |lane| 128 * lane + 4 * (lane ^ 5)), Pattern::Xor);
        assert_eq!(of(u32::MAX, |lane| lane * lane * 4), Pattern::Irregular);
        assert_eq!(of(1 << 7, |lane| 4 * lane), Pattern::Single);
    }

    #[test]
    fn only_active_lanes_count() {
        assert_eq!(of(0x1111_1111, |lane| if lane % 4 == 0 { lane } else { 999 }), Pattern::Even { step: 4 });
        assert_eq!(of(0b1011, |lane| lane * lane), Pattern::Irregular);
    }
}
