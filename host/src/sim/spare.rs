//! Memory of simulations that have ended, for those to come: to get it from the system anew takes longer than to fill it.

use super::pages::PAGE;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// How many words are kept at most: 256 MiB.
const MOST: usize = 256 << 17;

/// What is kept, by the number of words.
#[derive(Default)]
struct Spare {
    by_len: BTreeMap<usize, Vec<Box<[u64]>>>,
    words: usize,
}

static SPARE: Mutex<Spare> = Mutex::new(Spare { by_len: BTreeMap::new(), words: 0 });

fn spare() -> MutexGuard<'static, Spare> {
    SPARE.lock().expect("no panic under this lock")
}

/// So many words, which hold anything.
pub(super) fn take(len: usize) -> Box<[u64]> {
    let mut spare = spare();
    let kept = spare.by_len.get_mut(&len).and_then(Vec::pop);
    spare.words -= kept.as_ref().map_or(0, |words| words.len());
    drop(spare);
    kept.unwrap_or_else(|| vec![0; len].into_boxed_slice())
}

/// Keeps words that are not needed any more, as far as there is room: of whole pages, which others will need too.
pub(super) fn keep(words: impl Iterator<Item = Box<[u64]>>) {
    let mut freed = 0;
    for words in words {
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
    fn what_is_kept_is_handed_out_again_once() {
        // A length that no page has.
        let len = PAGE as usize + 1;
        let words = take(len);
        assert_eq!(words.len(), len);
        let place = words.as_ptr();
        keep([words].into_iter());
        let words = take(len);
        assert_eq!((words.as_ptr(), words.len()), (place, len));
        let other = take(len);
        assert_ne!(other.as_ptr(), place, "it is handed out once");
    }
}
