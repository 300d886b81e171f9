//! What a kernel prints: in the order of the blocks, and to a bound.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Bytes of a launch's text that are kept: what comes first.
const MOST: usize = 1 << 20;

/// What a kernel printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The text, block after block.
    pub text: String,
    /// Bytes behind it that were dropped.
    pub dropped: u64,
}

/// What a block printed: the bytes that are kept, and how many there were.
#[derive(Debug, Default)]
pub struct Page {
    kept: Vec<u8>,
    all: u64,
}

impl Page {
    /// Adds bytes.
    pub fn print(&mut self, bytes: &[u8]) {
        let room = MOST - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.all += bytes.len() as u64;
    }

    /// Whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.all == 0
    }
}

/// What the blocks of a launch print, whoever runs them.
#[derive(Default)]
pub(crate) struct Pages(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    pages: BTreeMap<u64, Page>,
    bytes: usize,
}

impl Pages {
    /// Takes what the `turn`-th block printed. Of all that was kept so far the last goes, where it is too much.
    pub(crate) fn add(&self, turn: u64, page: Page) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += page.kept.len();
        kept.pages.insert(turn, page);
        let Kept { pages, bytes } = &mut *kept;
        for page in pages.values_mut().rev() {
            let excess = bytes.saturating_sub(MOST).min(page.kept.len());
            page.kept.truncate(page.kept.len() - excess);
            *bytes -= excess;
            if *bytes <= MOST {
                break;
            }
        }
    }

    /// The text of the blocks up to the `last` turn.
    pub(crate) fn up_to(&self, last: u64) -> Printed {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut bytes, mut all) = (Vec::new(), 0);
        for page in kept.pages.range(..=last).map(|(_, page)| page) {
            bytes.extend_from_slice(&page.kept);
            all += page.all;
        }
        let dropped = all - bytes.len() as u64;
        Printed { text: String::from_utf8_lossy(&bytes).into_owned(), dropped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(byte: u8, bytes: usize) -> Page {
        let mut page = Page::default();
        page.print(&vec![byte; bytes]);
        page
    }

    #[test]
    fn the_first_bytes_in_the_order_of_the_blocks_are_kept_whatever_came_first() {
        let blocks = [(0, page(b'a', MOST / 2)), (1, page(b'b', MOST)), (2, page(b'c', 2 * MOST))];
        let pages = Pages::default();
        blocks.into_iter().rev().for_each(|(turn, page)| pages.add(turn, page));
        let Printed { text, dropped } = pages.up_to(u64::MAX);
        assert_eq!((text.len(), dropped), (MOST, 5 * MOST as u64 / 2));
        assert!(text.starts_with('a') && text.ends_with('b'));
        let first = pages.up_to(0);
        assert_eq!((first.text.len(), first.dropped), (MOST / 2, 0));
    }
}
