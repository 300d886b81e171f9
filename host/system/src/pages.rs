//! Memory is made ready page by page, as it is touched: a simulation of a few blocks touches little of what the launch has.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Bytes of a page: as many as a system gives at a time. Of rows that lie further apart than this a few blocks touch little, as those of a
/// transpose do.
pub const PAGE: u64 = 1 << 12;

/// Which pages are ready, of memory that several workers touch.
#[derive(Debug)]
pub struct Pages {
    ready: Box<[OnceLock<()>]>,
    /// Which of them a worker has set out to make ready.
    claimed: Box<[AtomicBool]>,
    /// How many are not ready yet.
    missing: AtomicUsize,
}

impl Pages {
    /// So many pages, none of which is ready.
    pub fn new(count: usize) -> Self {
        Self {
            ready: (0..count).map(|_| OnceLock::new()).collect(),
            claimed: (0..count).map(|_| AtomicBool::new(false)).collect(),
            missing: AtomicUsize::new(count),
        }
    }

    /// Sees to it that a page is ready: if it is not, `make` makes it so. Nobody else touches it before that has ended.
    #[inline(always)]
    pub fn reach(&self, page: usize, make: impl Fn(usize)) {
        if self.ready[page].get().is_none() {
            self.first_touch(page, make);
        }
    }

    /// Who finds another worker at work on the page makes the next one ready meanwhile: blocks that run at the same time
    /// mostly lie side by side.
    #[cold]
    fn first_touch(&self, page: usize, make: impl Fn(usize)) {
        let claim = |page: usize| self.claimed.get(page).is_some_and(|claimed| !claimed.swap(true, Relaxed));
        let make = |page: usize| {
            self.ready[page].get_or_init(|| {
                make(page);
                self.missing.fetch_sub(1, Release);
            });
        };
        if !claim(page) && claim(page + 1) {
            make(page + 1);
        }
        make(page);
    }

    /// Whether a page is ready; false if there is no such page.
    #[inline]
    pub fn is_ready(&self, page: usize) -> bool {
        self.ready.get(page).is_some_and(|ready| ready.get().is_some())
    }

    /// Whether all are.
    #[inline]
    pub fn are_ready(&self) -> bool {
        self.missing.load(Acquire) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_made_ready_once_whoever_comes_by() {
        const COUNT: usize = 100;
        let pages = Pages::new(COUNT);
        let made: Vec<_> = (0..COUNT).map(|_| AtomicUsize::new(0)).collect();
        let make = |page: usize| {
            made[page].fetch_add(1, Relaxed);
        };
        assert!(!pages.is_ready(0) && !pages.is_ready(COUNT) && !pages.are_ready());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for (page, made) in made.iter().enumerate() {
                        pages.reach(page, make);
                        assert_eq!(made.load(Relaxed), 1);
                    }
                });
            }
        });
        assert!((0..COUNT).all(|page| pages.is_ready(page)) && pages.are_ready());
    }
}
