//! Work in pieces on several threads: on as many as the system starts, and on the calling one in any case.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread::{self, Builder};

/// As many threads as the machine runs at a time.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What `work` makes of each piece, in the order of the pieces, on `threads` threads at most.
pub fn map<P: Send, T: Send>(
    pieces: impl ExactSizeIterator<Item = P> + Send,
    threads: usize,
    work: impl Fn(P) -> T + Sync,
) -> Vec<T> {
    let others = threads.min(pieces.len()).saturating_sub(1);
    let pieces = Mutex::new(pieces.enumerate());
    let next = || pieces.lock().expect("no panic under this lock").next();
    let part = || std::iter::from_fn(next).map(|(number, piece)| (number, work(piece))).collect::<Vec<_>>();
    let mut done = thread::scope(|scope| {
        // Where the system starts no more threads, those that there are do the rest.
        let others = (0..others).map_while(|_| Builder::new().spawn_scoped(scope, part).ok()).collect::<Vec<_>>();
        let mut done = part();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_worked_on_once_and_what_is_made_of_them_keeps_their_order() {
        for threads in [0, 1, 2, 7, 2000] {
            let mut words = [0; 1000];
            let made = map(words.chunks_mut(3).enumerate(), threads, |(number, words)| {
                words.iter_mut().for_each(|word| *word += 1);
                number
            });
            assert!(made.into_iter().eq(0..334), "{threads} threads");
            assert!(words.iter().all(|word| *word == 1), "{threads} threads");
        }
        assert!(map(0..0, 4, |piece| piece).is_empty());
    }
}
