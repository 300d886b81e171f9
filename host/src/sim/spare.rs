//! Memory of simulations that have ended, for those to come: to get it from the system anew takes longer than to fill it.

use super::memory::PAGE;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// How many words are kept at most: 256 MiB.
const MOST: usize = 256 << 17;

/// What is kept, by the number of words.
#[derive(Default)]
struct Spare {
    by_len: BTreeMap<usize, Vec<Vec<u64>>>,
    words: usize,
}

static SPARE: Mutex<Spare> = Mutex::new(Spare { by_len: BTreeMap::new(), words: 0 });

fn spare() -> MutexGuard<'static, Spare> {
    SPARE.lock().expect("no panic under this lock")
}

/// So many words, each of which is `word`.
pub(super) fn take(len: usize, word: u64) -> Vec<u64> {
    let mut spare = spare();
    let kept = spare.by_len.get_mut(&len).and_then(Vec::pop);
    spare.words -= kept.as_ref().map_or(0, Vec::len);
    drop(spare);
    match kept {
        Some(mut words) => {
            words.fill(word);
            words
        }
        None => vec![word; len],
    }
}

/// Keeps words that are not needed any more, as far as there is room: those of whole pages, which others will need too.
pub(super) fn keep(pages: impl Iterator<Item = Vec<u64>>) {
    let mut freed = 0;
    for words in pages {
        let mut spare = spare();
        if words.len() as u64 >= PAGE / 8 && spare.words + words.len() <= MOST {
            spare.words += words.len();
            spare.by_len.entry(words.len()).or_default().push(words);
        } else {
            freed += words.len();
        }
    }
    if freed > MOST {
        trim();
    }
}

/// Gives what was freed back to the system: glibc holds on to that, for each thread of simulations that have ended.
fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_handed_out_again_with_nothing_left_in_it() {
        // A length that no page has.
        let len = PAGE as usize + 1;
        let words = take(len, 1);
        assert_eq!(words, vec![1; len]);
        let place = words.as_ptr();
        keep([words].into_iter());
        let words = take(len, 2);
        assert_eq!((words.as_ptr(), &words), (place, &vec![2; len]));
        let others = take(len, 3);
        assert_ne!(others.as_ptr(), place, "it is handed out once");
    }
}
