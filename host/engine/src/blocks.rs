//! Which blocks of a grid run.

/// The blocks of a grid that a simulation runs: all, the first ones, or some of every so many and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Blocks of the grid.
    pub total: u64,
    /// From one block of a sample to the first one after it that has others between: 1 if all run, or all of the first ones.
    pub step: u64,
    /// Blocks in a row of a sample.
    pub row: u64,
    /// At most so many run.
    pub most: u64,
}

impl Blocks {
    /// All of a grid if there are no more than `max`, else a sample of about as many: at a thousand places or more, and no more than
    /// 64 in a row, which mostly touch the same pages. The step is odd, so that it goes through all columns of a grid whose width
    /// is a power of two.
    pub fn choose(total: u64, max: u64) -> Self {
        let row = if total <= max { 1 } else { (max / 1024).clamp(1, 64) };
        let step = if total <= max { 1 } else { (total.div_ceil(max.max(1)) * row) | 1 };
        Self { total, step, row, most: total }
    }

    /// The first of a grid, in the order in which a GPU begins them.
    pub fn first(total: u64, most: u64) -> Self {
        Self { total, step: 1, row: 1, most: most.min(total) }
    }

    /// How many run.
    pub fn count(&self) -> u64 {
        let last = self.total - 1;
        let (rows, place) = (last / self.step, last % self.step);
        // The last block of the grid runs in any case.
        (rows * self.row + (place + 1).min(self.row) + u64::from(place >= self.row)).min(self.most)
    }

    /// Whether all run.
    pub fn complete(&self) -> bool {
        self.step == 1 && self.most == self.total
    }

    /// The number of the `i`-th of them.
    pub(crate) fn get(&self, i: u64) -> u64 {
        (i / self.row * self.step + i % self.row).min(self.total - 1)
    }
}

/// Blocks are numbered with x fastest, then y, then z.
pub fn block_idx(grid: [u32; 3], block: u64) -> [u32; 3] {
    let [x, y, _] = grid.map(u64::from);
    [block % x, block / x % y, block / x / y].map(|i| i as u32)
}

/// Threads are numbered with x fastest, then y, then z.
pub fn thread_idx([width, height, _]: [u32; 3], thread: u32) -> [u32; 3] {
    [thread % width, thread / width % height, thread / width / height]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_the_grid_in_rows_and_has_its_last_block() {
        for (total, max) in
            [(1, 1), (2, 1), (391, 10), (1000, 999), (4096, 1024), (1 << 20, 5000), (39_062_500, 131_073)]
        {
            let blocks = Blocks::choose(total, max);
            let run: Vec<_> = (0..blocks.count()).map(|i| blocks.get(i)).collect();
            assert!(run.windows(2).all(|pair| pair[0] < pair[1]), "{blocks:?}");
            assert_eq!((run[0], run[run.len() - 1]), (0, total - 1), "{blocks:?}");
            assert!((max / 3..=max + 1).contains(&blocks.count()), "{blocks:?}: {} blocks", blocks.count());
            assert_eq!(blocks.complete(), total <= max, "{blocks:?}");
            let rows = 1 + run.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count() as u64;
            assert!(blocks.complete() || rows >= (max / 3).min(1000), "{blocks:?}: {rows} rows");
        }
    }

    #[test]
    fn all_of_a_grid_run_and_the_first_ones() {
        let all = Blocks::choose(7, 7);
        assert!(all.complete() && (0..all.count()).map(|i| all.get(i)).eq(0..7));
        let first = Blocks::first(1 << 30, 5);
        assert!(!first.complete() && (0..first.count()).map(|i| first.get(i)).eq(0..5));
    }
}
