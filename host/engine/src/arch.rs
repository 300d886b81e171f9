//! How GPUs of each generation turn one request to global memory into transactions.
//!
//! | architecture | compute capability | unit served | transactions |
//! | --- | --- | --- | --- |
//! | `cc10` | 1.0, 1.1 | half a warp | one segment of 16 words (two of 128 bytes at 16 bytes a lane) if lane `k` wants word `k` of it, else 32 bytes a lane |
//! | `cc12` | 1.2, 1.3 | half a warp | segments of 128 bytes (32 and 64 for 1 and 2 bytes a lane), halved while one half is enough |
//! | `cc20` | 2.x | a warp; half of it at 8 bytes a lane, a quarter at 16 | lines of 128 bytes; segments of 32 for stores and for loads past the L1 |
//! | `cc70` | 7.0 and later | a warp | sectors of 32 bytes |
//!
//! The first three as the CUDA C Programming Guide has them, appendix "Compute Capabilities".

use crate::coalesce::{LINE, SECTOR};

/// A generation of GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arch {
    /// Compute capability 1.0 and 1.1: the lanes' order counts.
    Cc10,
    /// 1.2 and 1.3: segments that shrink.
    Cc12,
    /// 2.x: lines of the L1.
    Cc20,
    /// 7.0 and later: sectors.
    #[default]
    Cc70,
}

/// Transactions of one request, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transactions {
    /// How many.
    pub count: u64,
    /// Bytes that they move.
    pub bytes: u64,
}

impl std::ops::AddAssign for Transactions {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

impl Arch {
    /// All, from the oldest.
    pub const ALL: [Arch; 4] = [Arch::Cc10, Arch::Cc12, Arch::Cc20, Arch::Cc70];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Arch::Cc10 => "cc10",
            Arch::Cc12 => "cc12",
            Arch::Cc20 => "cc20",
            Arch::Cc70 => "cc70",
        }
    }

    /// The transactions of one request: `addresses` in bytes by lane, of which those in `mask` are active, `width` bytes
    /// each; `past_l1` for a store, and for a load that bypasses the L1.
    pub fn transactions(self, addresses: &[u64; 32], mask: u32, width: u64, past_l1: bool) -> Transactions {
        let lanes_together = match (self, width) {
            (Arch::Cc10 | Arch::Cc12, _) | (Arch::Cc20, 8) => 16,
            (Arch::Cc20, 16) => 8,
            (Arch::Cc20 | Arch::Cc70, _) => 32,
        };
        let mut sum = Transactions::default();
        for first in (0..32).step_by(lanes_together) {
            let active = (first..first + lanes_together).filter(|lane| mask >> lane & 1 == 1);
            let lanes: Vec<(u64, u64)> = active.map(|lane| ((lane - first) as u64, addresses[lane])).collect();
            if !lanes.is_empty() {
                sum += match self {
                    Arch::Cc10 => in_order(&lanes, width),
                    Arch::Cc12 => shrinking(lanes, width),
                    Arch::Cc20 if past_l1 => units(&lanes, SECTOR),
                    Arch::Cc20 => units(&lanes, LINE),
                    Arch::Cc70 => units(&lanes, SECTOR),
                };
            }
        }
        sum
    }
}

/// 1.0 and 1.1: one segment if each lane wants the word of its number in it.
fn in_order(lanes: &[(u64, u64)], width: u64) -> Transactions {
    let segment = 16 * width;
    let (lane, address) = lanes[0];
    let start = address.wrapping_sub(lane * width);
    let in_place =
        start.is_multiple_of(segment) && lanes.iter().all(|(lane, address)| *address == start + lane * width);
    match width {
        4 | 8 if in_place => Transactions { count: 1, bytes: segment },
        16 if in_place => Transactions { count: 2, bytes: segment },
        _ => Transactions { count: lanes.len() as u64, bytes: 32 * lanes.len() as u64 },
    }
}

/// 1.2 and 1.3: the segment of the lowest lane that is left, as small as the lanes in it allow, until none is left.
fn shrinking(mut lanes: Vec<(u64, u64)>, width: u64) -> Transactions {
    let segment = match width {
        1 => 32,
        2 => 64,
        _ => 128,
    };
    let mut sum = Transactions::default();
    while let Some((_, address)) = lanes.first() {
        let mut start = address / segment * segment;
        let (served, left): (Vec<_>, Vec<_>) =
            lanes.iter().partition(|(_, address)| address / segment * segment == start);
        let mut size = segment;
        while size > 32 {
            let half = size / 2;
            let upper = served.iter().all(|(_, address)| *address >= start + half);
            if !upper && served.iter().any(|(_, address)| address + width > start + half) {
                break;
            }
            start += if upper { half } else { 0 };
            size = half;
        }
        sum += Transactions { count: 1, bytes: size };
        lanes = left;
    }
    sum
}

/// Distinct aligned units.
fn units(lanes: &[(u64, u64)], unit: u64) -> Transactions {
    let mut units: Vec<u64> = lanes.iter().map(|(_, address)| address / unit).collect();
    units.sort_unstable();
    units.dedup();
    Transactions { count: units.len() as u64, bytes: unit * units.len() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transactions and bytes of a warp whose lane `k` accesses element `index(k)` of `width` bytes, if any.
    fn of(arch: Arch, width: u64, index: impl Fn(u64) -> Option<u64>) -> (u64, u64) {
        let mut mask = 0;
        let addresses = std::array::from_fn(|lane| {
            let index = index(lane as u64);
            mask |= u32::from(index.is_some()) << lane;
            256 + width * index.unwrap_or_default()
        });
        let Transactions { count, bytes } = arch.transactions(&addresses, mask, width, false);
        (count, bytes)
    }

    /// All of 1.0, 1.2, 2.0 and today, for one half warp: the guide's examples speak of half warps.
    fn half(width: u64, index: impl Fn(u64) -> u64) -> [(u64, u64); 4] {
        Arch::ALL.map(|arch| of(arch, width, |lane| (lane < 16).then(|| index(lane))))
    }

    /// "A simple access pattern": the k-th thread accesses the k-th word, all or not all taking part.
    #[test]
    fn words_in_order_from_an_aligned_segment_are_one_transaction() {
        assert_eq!(half(4, |lane| lane), [(1, 64), (1, 64), (1, 128), (2, 64)]);
        assert_eq!(half(8, |lane| lane), [(1, 128), (1, 128), (1, 128), (4, 128)]);
        assert_eq!(half(16, |lane| lane), [(2, 256), (2, 256), (2, 256), (8, 256)]);
        let some = |lane: u64| (lane < 16 && lane != 3).then_some(lane);
        assert_eq!(of(Arch::Cc10, 4, some), (1, 64), "one thread fewer is no matter");
        assert_eq!(of(Arch::Cc10, 4, Some), (2, 128), "a warp is two half warps");
        assert_eq!(of(Arch::Cc12, 4, Some), (2, 128));
        assert_eq!(of(Arch::Cc20, 4, Some), (1, 128));
        assert_eq!(of(Arch::Cc70, 4, Some), (4, 128));
    }

    /// The same with two words exchanged: 1.0 and 1.1 want the order, later ones do not.
    #[test]
    fn words_out_of_order_are_serialized_by_the_first_generation_alone() {
        let exchanged = |lane: u64| [0, 2, 1].get(lane as usize).copied().unwrap_or(lane);
        assert_eq!(half(4, exchanged), [(16, 512), (1, 64), (1, 128), (2, 64)]);
    }

    /// "A sequential but misaligned access pattern": within one segment of 128 bytes, and across two.
    #[test]
    fn misaligned_words_are_serialized_or_take_what_they_touch() {
        assert_eq!(half(4, |lane| lane + 1), [(16, 512), (1, 128), (1, 128), (3, 96)]);
        // Words 24 to 39: 32 bytes below the boundary of 128, 32 above.
        assert_eq!(half(4, |lane| lane + 24), [(16, 512), (2, 64), (2, 256), (2, 64)]);
        // Words 25 to 40: 28 bytes below, 36 above, which takes a segment of 64.
        assert_eq!(half(4, |lane| lane + 25), [(16, 512), (2, 96), (2, 256), (3, 96)]);
    }

    /// "Strided accesses": a stride of 2 wastes half of a segment; from 32 words on each thread takes one of its own.
    #[test]
    fn a_stride_takes_more_and_more_segments() {
        assert_eq!(half(4, |lane| 2 * lane), [(16, 512), (1, 128), (1, 128), (4, 128)]);
        assert_eq!(half(4, |lane| 32 * lane), [(16, 512), (16, 512), (16, 2048), (16, 512)]);
    }

    #[test]
    fn narrow_words_never_coalesce_on_the_first_generation_and_take_small_segments_on_the_second() {
        assert_eq!(half(1, |lane| lane), [(16, 512), (1, 32), (1, 128), (1, 32)]);
        assert_eq!(half(2, |lane| lane), [(16, 512), (1, 32), (1, 128), (1, 32)]);
        assert_eq!(half(2, |lane| lane + 8), [(16, 512), (1, 64), (1, 128), (2, 64)]);
    }

    #[test]
    fn past_the_l1_the_third_generation_moves_segments_of_32_bytes() {
        let addresses = std::array::from_fn(|lane| 128 * lane as u64);
        let Transactions { count, bytes } = Arch::Cc20.transactions(&addresses, u32::MAX, 4, true);
        assert_eq!((count, bytes), (32, 1024));
        let Transactions { count, bytes } = Arch::Cc20.transactions(&addresses, u32::MAX, 4, false);
        assert_eq!((count, bytes), (32, 4096));
    }
}
