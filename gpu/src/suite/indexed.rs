//! Accesses by a list of indices that moves on: the `id`-th goes to `indices[id % len] + delta * (id / len)`.

use super::{Counts, PlanError, format, scattered};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// `n` accesses to elements of 8 bytes by a list of indices that moves `delta` elements on each time it begins anew.
///
/// All that is asked of it is answered from the list, whose length is that of one round: an index and those that it moves on to are
/// an arithmetic progression, and two of these meet only if they have the same remainder by `delta`.
#[derive(Clone, Debug)]
pub struct Indexed {
    indices: Arc<[u64]>,
    delta: u64,
    n: u64,
    progressions: Arc<[Along]>,
}

/// The progression of one index: the elements `remainder + delta * (first + i)` for `i` below `count`. Sorted, those that meet are
/// neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Along {
    remainder: u64,
    first: u64,
    count: u64,
    /// Which index of the list.
    place: u64,
}

/// Accesses for which counts are summed one by one, at most: a period of some patterns has more.
const MOST_SUMMED: u64 = 1 << 22;

impl Indexed {
    /// So many accesses by a list.
    ///
    /// # Errors
    /// If the list is empty, there is no access, or an element has no number in 40 bits.
    pub fn new(what: &str, indices: Vec<u64>, delta: u64, n: u64) -> Result<Self, PlanError> {
        let len = indices.len() as u64;
        if len == 0 || n == 0 {
            return Err(PlanError(format!("{what} has {len} indices for {n} accesses: give it one at least")));
        }
        let rounds = n.div_ceil(len);
        let greatest = indices.iter().copied().max().unwrap_or_default();
        let last = delta.checked_mul(rounds - 1).and_then(|moved| moved.checked_add(greatest));
        if last.is_none_or(|last| last >= 1 << 37) {
            return Err(PlanError(format!(
                "{what} goes up to element {greatest} + {delta} * {}, a tebibyte or more: choose smaller indices, a smaller delta \
                 or a smaller count",
                rounds - 1
            )));
        }
        let along = |(place, &index): (usize, &u64)| {
            let place = place as u64;
            let count = n / len + u64::from(place < n % len);
            let (first, remainder) = (index.checked_div(delta).unwrap_or(0), index.checked_rem(delta).unwrap_or(index));
            Along { remainder, first, count, place }
        };
        let mut progressions: Vec<_> = indices.iter().enumerate().map(along).filter(|along| along.count > 0).collect();
        progressions.sort_unstable();
        Ok(Self { indices: indices.into(), delta, n, progressions: progressions.into() })
    }

    /// The element that the `id`-th access goes to.
    pub fn at(&self, id: u64) -> u64 {
        let len = self.len();
        self.indices[(id % len) as usize] + self.delta * (id / len)
    }

    /// The indices of the list.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> u64 {
        self.indices.len() as u64
    }

    /// The list.
    pub fn indices(&self) -> Arc<[u64]> {
        Arc::clone(&self.indices)
    }

    /// How far it moves on.
    pub fn delta(&self) -> u64 {
        self.delta
    }

    /// How many elements a buffer needs.
    pub fn extent(&self) -> u64 {
        let last = |along: &Along| self.indices[along.place as usize] + self.delta * (along.count - 1);
        self.progressions.iter().map(last).max().unwrap_or_default() + 1
    }

    /// How many elements are touched at all: progressions that meet are one longer one.
    pub fn distinct(&self) -> u64 {
        let (mut sum, mut before) = (0, None);
        for along in self.progressions.iter() {
            let count = if self.delta == 0 { 1 } else { along.count };
            let end = along.first + count;
            let covered = match before {
                Some((remainder, covered)) if remainder == along.remainder => covered,
                _ => 0,
            };
            sum += end.saturating_sub(covered.max(along.first));
            before = Some((along.remainder, end.max(covered)));
        }
        sum
    }

    /// An access that goes to the element; none if none does.
    pub fn access_to(&self, element: u64) -> Option<u64> {
        let (first, remainder) =
            (element.checked_div(self.delta).unwrap_or(0), element.checked_rem(self.delta).unwrap_or(element));
        // The last progression that begins no later is the longest of those that do, by one at most.
        let behind = self.progressions.partition_point(|along| (along.remainder, along.first) <= (remainder, first));
        let along = self.progressions[..behind].last().filter(|along| along.remainder == remainder)?;
        let round = first - along.first;
        (round < along.count).then_some(along.place + self.len() * round)
    }

    /// Whether two accesses go to one element.
    pub fn meets(&self) -> bool {
        self.meetings().next().is_some() || (self.delta == 0 && self.n > self.len())
    }

    /// The places of neighbouring progressions that meet, and how many rounds the first is ahead where they do.
    fn meetings(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let beside = self.progressions.windows(2).filter(|pair| pair[0].remainder == pair[1].remainder);
        beside.filter_map(|pair| {
            let ahead = pair[1].first - pair[0].first;
            (ahead < pair[0].count).then_some((pair[0].place, pair[1].place, ahead))
        })
    }

    /// Where accesses go to one element, the greatest number by which all that is numbered `source(place) + step * round` for them is
    /// equally far on: what they store is the same if it repeats every so many. 0 if no two meet.
    pub fn common(&self, source: impl Fn(u64) -> u64, step: u64) -> u64 {
        let apart = self.meetings().map(|(one, other, ahead)| {
            (i128::from(source(one)) + i128::from(step) * i128::from(ahead) - i128::from(source(other))).unsigned_abs()
        });
        // A progression that stands still meets itself in the next round.
        let still = (self.delta == 0 && self.n > self.len()).then_some(u128::from(step));
        apart.chain(still).fold(0, |common, apart| gcd(common, (apart % (1 << 64)) as u64))
    }

    /// Its requests by blocks of so many threads, an access a thread; none if they do not repeat for too long.
    pub fn counts(&self, block: u64) -> Option<Counts> {
        // A round that moved by whole lines costs what the first did.
        let len = self.len();
        let blocks = lcm(len, block) / len;
        let rounds = blocks * (16 / gcd(16, blocks.wrapping_mul(self.delta)));
        requests(self.n, block, len * rounds, |ids| scattered(ids.map(|id| 8 * self.at(id)), 8))
    }
}

/// The requests of `n` threads in blocks of `block`, where those of every `period`, a multiple of `block`, cost the same; none if that is too long.
pub fn requests(n: u64, block: u64, period: u64, request: impl Fn(Range<u64>) -> Counts) -> Option<Counts> {
    if n.min(period) > MOST_SUMMED {
        return None;
    }
    let of = |ids: Range<u64>| {
        let blocks = ids.clone().step_by(block as usize).map(|first| first..ids.end.min(first + block));
        let warps = blocks.flat_map(|ids| ids.clone().step_by(32).map(move |first| first..ids.end.min(first + 32)));
        warps.map(&request).sum::<Counts>()
    };
    let whole = n / period;
    Some(if whole > 0 { of(0..period) * whole } else { Counts::default() } + of(whole * period..n))
}

/// The greatest common divisor; with 0, the other.
pub fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The least common multiple of two numbers above 0, or the greatest number there is.
pub fn lcm(a: u64, b: u64) -> u64 {
    (a / gcd(a, b)).saturating_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec;

    fn lists() -> Vec<Indexed> {
        let lists = [
            vec![0, 1, 2, 3, 4, 5, 6, 7],
            vec![0, 24, 48, 72, 96, 120, 144],
            vec![5, 0, 5, 3, 40],
            vec![1333, 0, 1, 2, 36, 37, 38, 72],
            vec![7],
        ];
        let of = |list: &Vec<u64>| {
            let each = |delta| [1, 3, 7, 8, 40, 41, 600].map(|n| Indexed::new("it", list.clone(), delta, n).expect("small"));
            [0, 1, 2, 3, 8, 24, 36, 100].map(each).into_iter().flatten().collect::<Vec<_>>()
        };
        lists.iter().flat_map(of).collect()
    }

    #[test]
    fn what_is_told_from_the_list_is_what_each_access_tells() {
        for list in lists() {
            let mut to = BTreeMap::<u64, Vec<u64>>::new();
            (0..list.n).for_each(|id| to.entry(list.at(id)).or_default().push(id));
            assert_eq!(list.distinct(), to.len() as u64, "{list:?}");
            assert_eq!(list.extent(), to.keys().max().expect("some") + 1, "{list:?}");
            assert_eq!(list.meets(), to.values().any(|ids| ids.len() > 1), "{list:?}");
            for element in 0..list.extent() + 3 {
                match (list.access_to(element), to.get(&element)) {
                    (Some(id), Some(ids)) => assert!(ids.contains(&id), "{element}: {list:?}"),
                    (None, None) => (),
                    (told, ids) => panic!("{element}: {told:?}, {ids:?}: {list:?}"),
                }
            }
            // What repeats so often is the same for all accesses to an element.
            let common = list.common(|place| place, list.len());
            assert_eq!(common == 0, !list.meets(), "{list:?}");
            for ids in to.values().filter(|_| common > 0) {
                assert!(ids.iter().all(|id| id % common == ids[0] % common), "{ids:?} by {common}: {list:?}");
            }
        }
    }

    #[test]
    fn requests_that_repeat_are_counted_once() {
        for list in lists() {
            for block in [1, 7, 8, 32, 40, 64] {
                let blocks = (0..list.n).step_by(block).map(|first| first..list.n.min(first + block as u64));
                let warps = blocks.flat_map(|ids| ids.clone().step_by(32).map(move |first| first..ids.end.min(first + 32)));
                let sum = warps.map(|ids| scattered(ids.map(|id| 8 * list.at(id)), 8)).sum::<Counts>();
                assert_eq!(list.counts(block as u64), Some(sum), "{block}: {list:?}");
            }
        }
    }

    #[test]
    fn what_no_buffer_holds_is_refused() {
        for (indices, delta, n) in [(vec![], 1, 1), (vec![0], 1, 0), (vec![1 << 37], 0, 1), (vec![0], 1 << 36, 3), (vec![0, 1], u64::MAX, 9)] {
            assert!(Indexed::new("the pattern", indices.clone(), delta, n).is_err(), "{indices:?} {delta} {n}");
        }
    }
}
