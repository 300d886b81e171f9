//! Counts in closed form.

use super::Counts;
use alloc::vec::Vec;

/// The accesses of one warp at evenly spaced addresses: lane `k` of the first `lanes` accesses `width` bytes at byte
/// `first + k * step`.
///
/// Its counts are closed forms: the model that the simulator, which looks at every address, is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progression {
    /// The byte address of lane 0, relative to the 256-byte alignment of buffers and the 128-byte one of shared arrays.
    pub first: u64,
    /// Bytes from one lane to the next.
    pub step: u64,
    /// Active lanes.
    pub lanes: u64,
    /// Bytes a lane.
    pub width: u64,
}

impl Progression {
    /// Lanes side by side, from byte `first` on.
    pub const fn linear(first: u64, lanes: u64, width: u64) -> Self {
        Self { first, step: width, lanes, width }
    }

    /// How many aligned units of `unit` bytes the lanes touch: all from the first to the last while a step is no
    /// longer than a unit, and one a lane beyond that.
    const fn units(self, unit: u64) -> u64 {
        if self.step > unit {
            self.lanes
        } else {
            (self.first + (self.lanes - 1) * self.step) / unit - self.first / unit + 1
        }
    }

    /// As one request to global memory; none if no lane is active.
    pub fn global(self) -> Counts {
        if self.lanes == 0 {
            return Counts::default();
        }
        let sectors = self.units(32);
        Counts {
            requests: 1,
            lanes: self.lanes,
            sectors,
            sectors_ideal: sectors.min((self.lanes * self.width).div_ceil(32)),
            lines: self.units(128),
            ..Counts::default()
        }
    }

    /// As one request to global memory together with `behind`: further lanes of the same warp, which begin behind the
    /// last of these. The two can share no more than the unit in which the one ends and the other begins.
    pub fn global_with(self, behind: Self) -> Counts {
        if self.lanes == 0 || behind.lanes == 0 {
            return self.global() + behind.global();
        }
        let last = self.first + (self.lanes - 1) * self.step;
        assert!(last < behind.first, "the second progression begins behind the last of the first");
        let both = self.global() + behind.global();
        let sectors = both.sectors - u64::from(last / 32 == behind.first / 32);
        Counts {
            requests: 1,
            sectors,
            sectors_ideal: sectors.min((self.lanes * self.width + behind.lanes * behind.width).div_ceil(32)),
            lines: both.lines - u64::from(last / 128 == behind.first / 128),
            ..both
        }
    }

    /// As one request to shared memory; none if no lane is active.
    ///
    /// A wavefront serves 128 bytes: all 32 lanes at up to 4 bytes each, 16 at 8, 8 at 16. For lanes `p` at a time, the
    /// 32 banks are `p` places as wide as an element (a word, for the narrow ones), and a step of `e` elements comes
    /// back to a place after `p / gcd(e, p)` lanes. So `p` lanes take `gcd(e, p)` wavefronts, and a rest of `r` lanes
    /// takes `r` divided by that period, rounded up. Two steps are unlike the others:
    ///
    /// - less than a word: the lanes fill consecutive words, of which there are fewer than banks: 1 wavefront;
    /// - none: a word that several lanes read is sent once. Of elements wider than a word, a load takes half as many
    ///   wavefronts as a store: [`Self::shared_load`] and [`Self::shared_store`].
    pub fn shared(self) -> Counts {
        let alike = self.step > 0 || self.width <= 4 || self.lanes < 2;
        assert!(alike, "loads and stores of one wide element differ: say `shared_load` or `shared_store`");
        self.shared_store()
    }

    /// As one load from shared memory: where all lanes go to one address, lanes `n` and `n ^ 1` are paired, and a wavefront
    /// serves twice as many lanes, up to the whole warp.
    pub fn shared_load(self) -> Counts {
        self.wavefronts(2)
    }

    /// As one store to shared memory, whose lanes are never paired.
    pub fn shared_store(self) -> Counts {
        self.wavefronts(1)
    }

    /// A wavefront serves `paired` times as many lanes where all go to one address.
    fn wavefronts(self, paired: u64) -> Counts {
        if self.lanes == 0 {
            return Counts::default();
        }
        let place = self.width.max(4);
        let together = 128 / place;
        let wavefronts = if self.step == 0 {
            self.lanes.div_ceil((together * paired).min(32))
        } else if self.step < place {
            assert!(self.width < 4, "a step of {} is none of {} bytes", self.step, self.width);
            1
        } else {
            assert!(self.step.is_multiple_of(place), "the closed form is that of steps of whole words and elements");
            let gcd = 1 << (self.step / place).trailing_zeros().min(together.trailing_zeros());
            self.lanes / together * gcd + (self.lanes % together).div_ceil(together / gcd)
        };
        let wavefronts_ideal = wavefronts.min((self.lanes * self.width).div_ceil(128));
        Counts { requests: 1, lanes: self.lanes, wavefronts, wavefronts_ideal, ..Counts::default() }
    }
}

/// One request to constant memory, whose lanes read so many distinct addresses.
pub fn constant(lanes: u64, addresses: u64) -> Counts {
    Counts { requests: 1, lanes, wavefronts: addresses, wavefronts_ideal: 1, ..Counts::default() }
}

/// One request to global memory at any addresses, `width` bytes a lane; none if there is no address. For patterns that
/// data decides: the union of the units touched, as the hardware is measured to count it.
pub fn scattered(addresses: impl IntoIterator<Item = u64>, width: u64) -> Counts {
    let mut addresses: Vec<u64> = addresses.into_iter().collect();
    addresses.sort_unstable();
    let units = |unit: u64| {
        let mut units: Vec<u64> = addresses.iter().map(|address| address / unit).collect();
        units.dedup();
        units.len() as u64
    };
    let (lanes, sectors) = (addresses.len() as u64, units(32));
    Counts {
        requests: lanes.min(1),
        lanes,
        sectors,
        sectors_ideal: sectors.min((lanes * width).div_ceil(32)),
        lines: units(128),
        ..Counts::default()
    }
}

/// `n` items handled by full warps and one last, partial warp: the counts of a warp given its index and its lanes,
/// where every full warp costs the same.
pub fn warps(n: u64, warp: impl Fn(u64, u64) -> Counts) -> Counts {
    let full = if n < 32 { Counts::default() } else { warp(0, 32) * (n / 32) };
    let rest = if n.is_multiple_of(32) { Counts::default() } else { warp(n / 32, n % 32) };
    full + rest
}

/// The sum over `n` items whose counts repeat every `period`, as those of rows do that begin alike in their lines.
pub fn periodic(n: u64, period: u64, counts: impl Fn(u64) -> Counts) -> Counts {
    (0..n.min(period)).map(|i| counts(i) * (n - i).div_ceil(period)).sum()
}

/// A row-major matrix of elements `width` bytes wide, by warps that each move up to 32 neighbours of a row: a row's
/// place in its line repeats after 128 / `width` rows, a warp's in the row after 4 warps.
pub fn along_rows(rows: impl Into<u64>, columns: impl Into<u64>, width: u64) -> Counts {
    let columns = columns.into();
    periodic(rows.into(), 128 / width, |y| {
        let warp = |x, lanes| Progression::linear(width * (y * columns + x), lanes, width).global();
        periodic(columns / 32, 4, |w| warp(32 * w, 32)) + warp(columns - columns % 32, columns % 32)
    })
}

/// An asynchronous copy of 16 bytes a lane, past the L1, by `lanes` neighbours: from byte `from` of a line on to the start of another. Its
/// load and its store. What goes to one sector comes from one, or in part from the next, with its halves exchanged or not; and what
/// goes to a line likewise, all lanes as far.
pub fn copied_past_l1(from: u64, lanes: u64) -> [Counts; 2] {
    let ways = |unit: u64| {
        let way = |lane: u64| {
            let [from, to] = [from / 16 + lane, lane];
            (from / unit, to / unit, (from ^ to) % unit)
        };
        (0..lanes).filter(|lane| (0..*lane).all(|before| way(before) != way(*lane))).count() as u64
    };
    let load = Progression::linear(from, lanes, 16).global();
    let store = Progression::linear(0, lanes, 16).shared_store();
    if lanes == 0 {
        return [load, store];
    }
    let (sectors, wavefronts) = (ways(2), ways(8));
    [
        Counts { sectors, sectors_ideal: sectors.min((16 * lanes).div_ceil(32)), ..load },
        Counts { wavefronts, wavefronts_ideal: wavefronts.min((16 * lanes).div_ceil(128)), ..store },
    ]
}

/// The same matrix by warps that each move up to 32 neighbours of a column, lane `k` in row `k`: a column's place in its
/// line repeats after 128 / `width` columns, a warp's in the column after 4 warps.
pub fn down_columns(rows: impl Into<u64>, columns: impl Into<u64>, width: u64) -> Counts {
    let (rows, columns) = (rows.into(), columns.into());
    let step = width * columns;
    periodic(columns, 128 / width, |x| {
        let warp = |y, lanes| Progression { first: width * x + y * step, step, lanes, width }.global();
        periodic(rows / 32, 4, |w| warp(32 * w, 32)) + warp(rows - rows % 32, rows % 32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wavefronts and ideal ones of a load by `lanes` lanes, `step` elements of `width` bytes apart.
    fn wavefronts(width: u64, step: u64, lanes: u64) -> (u64, u64) {
        let counts = Progression { first: 0, step: step * width, lanes, width }.shared_load();
        assert_eq!((counts.requests, counts.lanes), (1, lanes));
        (counts.wavefronts, counts.wavefronts_ideal)
    }

    /// As measured on an H200 with one-warp kernels.
    #[test]
    fn every_measured_progression_in_shared_memory_has_its_closed_form() {
        for (width, one, linear, stride_2) in
            [(4, (1, 1), (1, 1), (2, 1)), (8, (1, 1), (2, 2), (4, 2)), (16, (2, 2), (4, 4), (8, 4))]
        {
            assert_eq!(wavefronts(width, 0, 32), one, "one address, {width} bytes");
            assert_eq!(wavefronts(width, 1, 32), linear, "linear, {width} bytes");
            assert_eq!(wavefronts(width, 2, 32), stride_2, "stride 2, {width} bytes");
        }
        assert_eq!(wavefronts(4, 32, 32), (32, 1));
        assert_eq!(wavefronts(4, 33, 32), (1, 1));
        assert_eq!(wavefronts(8, 1, 17), (2, 2));
        assert_eq!(wavefronts(16, 1, 17), (3, 3));
    }

    #[test]
    fn narrow_elements_share_words_and_conflict_by_whole_words() {
        for width in [1, 2] {
            assert_eq!(wavefronts(width, 1, 32), (1, 1), "linear, {width} bytes");
            assert_eq!(wavefronts(width, 32, 32), (8 * width, 1), "a pitch of 32 elements, {width} bytes");
            assert_eq!(wavefronts(width, 32 + 4 / width, 32), (1, 1), "a word more, {width} bytes");
        }
    }

    #[test]
    fn wide_elements_conflict_within_their_half_or_quarter_of_the_warp() {
        for (width, step, lanes, expected) in [
            (8, 32, 32, (32, 2)),
            (8, 33, 32, (2, 2)),
            (8, 32, 20, (20, 2)),
            (8, 4, 21, (4 + 2, 2)),
            (16, 8, 32, (32, 4)),
            (16, 4, 11, (4 + 2, 2)),
            (8, 0, 31, (1, 1)),
            (16, 0, 31, (2, 2)),
            (16, 0, 1, (1, 1)),
        ] {
            assert_eq!(wavefronts(width, step, lanes), expected, "{width} bytes, step {step}, {lanes} lanes");
        }
    }

    #[test]
    fn stores_by_all_lanes_to_one_address_take_as_many_wavefronts_as_to_different_ones() {
        for (width, lanes, expected) in [(4, 32, 1), (8, 32, 2), (8, 16, 1), (8, 17, 2), (16, 32, 4), (16, 9, 2)] {
            let store = |step| Progression { first: 0, step, lanes, width }.shared_store().wavefronts;
            assert_eq!([store(0), store(width)], [expected; 2], "{width} bytes, {lanes} lanes");
        }
    }

    #[test]
    fn two_progressions_of_one_request_touch_the_union_of_their_units() {
        let cases = (0..64).flat_map(|k| [4, 8, 16].map(|width| (k * width, (k * 7 % 13) * width, width)));
        for (first, gap, width) in cases {
            let lower = Progression::linear(first, 1 + first % 16, width);
            let upper = Progression::linear(first + lower.lanes * width + gap, 16, width);
            let addresses = |p: Progression| (0..p.lanes).map(move |lane| p.first + lane * p.step);
            let union = scattered(addresses(lower).chain(addresses(upper)), width);
            assert_eq!(lower.global_with(upper), union, "{lower:?} {upper:?}");
        }
    }

    #[test]
    fn the_rows_of_a_matrix_add_up_warp_by_warp() {
        let matrices = [(130u64, 65u64, 1), (131, 97, 2), (33, 300, 4), (40, 129, 8), (1, 1, 16), (200, 128, 1)];
        for (rows, columns, width) in matrices {
            let row = |y: u64| {
                let warp = |x: u64| Progression::linear(width * (y * columns + x), 32.min(columns - x), width).global();
                (0..columns).step_by(32).map(warp).sum::<Counts>()
            };
            assert_eq!(along_rows(rows, columns, width), (0..rows).map(row).sum(), "{rows}x{columns}, {width} bytes");
        }
    }

    #[test]
    fn the_columns_of_a_matrix_add_up_warp_by_warp() {
        let matrices = [(130u64, 65u64, 1), (131, 97, 2), (300, 33, 4), (40, 5, 8), (1, 1, 16), (200, 128, 1)];
        for (rows, columns, width) in matrices {
            let column = |x: u64| {
                let warp = |y: u64| scattered((y..rows.min(y + 32)).map(|y| width * (y * columns + x)), width);
                (0..rows).step_by(32).map(warp).sum::<Counts>()
            };
            let sum = (0..columns).map(column).sum();
            assert_eq!(down_columns(rows, columns, width), sum, "{rows}x{columns}, {width} bytes");
        }
    }
}
