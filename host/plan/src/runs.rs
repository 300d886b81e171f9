//! What two runs left in a GPU's memory, compared with its reference.

use crate::verify::{Actual, Check, Written};
use gpu::suite::{Before, Buffer};
use rustc_hash::FxHasher;
use std::collections::BTreeMap;
use std::hash::Hasher;
use system::parallel;

/// Hashes of what a run left where all is to be written, by buffer and first element.
pub type Hashes = BTreeMap<(&'static str, u64), Vec<u64>>;

/// Bytes that a thread hashes at a time.
const HASHED: usize = 1 << 20;

impl Check<'_> {
    /// Compares the bytes from element `start` on, of a buffer that stood poisoned before the run if it is to be written. What is the
    /// same after both runs, the kernel wrote in both: where it is to write all, the first run has told whether it is right.
    pub fn compare_bytes(&mut self, start: u64, bytes: &[u8], poison: u8, first_run: &mut Hashes) {
        let buffer = self.buffer();
        let hash = |piece: &[u8]| {
            let mut hasher = FxHasher::default();
            hasher.write(piece);
            hasher.finish()
        };
        let hashes = parallel::map(bytes.chunks(HASHED), parallel::threads(), hash);
        if first_run.get(&(buffer.name, start)) == Some(&hashes) {
            return;
        }
        let size = buffer.element.size() as usize;
        self.compare(start, (bytes.len() / size) as u64, |i| {
            element(buffer, poison, &bytes[(i - start) as usize * size..][..size])
        });
        if self.wants_all() {
            first_run.insert((buffer.name, start), hashes);
        }
    }
}

/// An element, by its bytes.
fn element(buffer: &Buffer, poison: u8, bytes: &[u8]) -> Actual {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let as_before = matches!(buffer.before, Before::Poison) && bytes.iter().all(|byte| *byte == poison);
    let written = if as_before { Written::Unknown } else { Written::All };
    Actual { bits: u64::from_le_bytes(word), written }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Mismatch;
    use gpu::suite::{OTHER_POISON, POISON};

    /// What comes of `dst` on a GPU whose memory is as `written` says after a run, of the bytes that it writes.
    fn judged(buffer: &Buffer, written: impl Fn(u64) -> Vec<Option<u8>>) -> Result<(), Mismatch> {
        judged_by_runs(buffer, [&written, &written])
    }

    /// The same of two runs that write other bytes.
    fn judged_by_runs(buffer: &Buffer, written: [&dyn Fn(u64) -> Vec<Option<u8>>; 2]) -> Result<(), Mismatch> {
        let mut first_run = Hashes::default();
        [POISON, OTHER_POISON].into_iter().zip(written).try_for_each(|(poison, written)| {
            let mut check = Check::new(buffer);
            let bytes: Vec<u8> = (0..buffer.len).flat_map(written).map(|byte| byte.unwrap_or(poison)).collect();
            let half = buffer.len / 2;
            let (one, other) = bytes.split_at((half * buffer.element.size()) as usize);
            check.compare_bytes(0, one, poison, &mut first_run);
            check.compare_bytes(half, other, poison, &mut first_run);
            check.finish()
        })
    }

    #[test]
    fn a_run_that_is_right_excuses_no_other() {
        let all = Buffer::output("dst", 8, |i| i as u32).expect("a small buffer");
        let right = |i: u64| (i as u32).to_le_bytes().map(Some).to_vec();
        let wrong = |i: u64| ((i as u32) & 5).to_le_bytes().map(Some).to_vec();
        assert!(judged_by_runs(&all, [&right, &right]).is_ok());
        for runs in [[&right as &dyn Fn(u64) -> Vec<Option<u8>>, &wrong], [&wrong, &right], [&wrong, &wrong]] {
            let mismatch = judged_by_runs(&all, runs).expect_err("one run is wrong");
            assert_eq!((mismatch.wrong, mismatch.first[0].0), (4, 2), "{mismatch}");
        }
    }

    #[test]
    fn on_a_gpu_two_runs_tell_what_was_not_written() {
        for expected in [u32::MAX, 0, 0xFF00, 7] {
            let all = Buffer::output("dst", 8, move |_| expected).expect("a small buffer");
            let bytes = || expected.to_le_bytes().map(Some).to_vec();
            assert!(judged(&all, |_| bytes()).is_ok(), "{expected}");
            for missing in 0..4 {
                let but_one = |i| {
                    let mut bytes = bytes();
                    if i == 5 {
                        bytes[missing] = None;
                    }
                    bytes
                };
                let mismatch = judged(&all, but_one).expect_err("a byte is not written");
                assert_eq!((mismatch.wrong, mismatch.first[0].0), (1, 5), "{mismatch}");
            }
            assert!(judged(&all, |i| if i == 5 { vec![None; 4] } else { bytes() }).is_err(), "{expected}");
        }
        let some = Buffer::partial_output("dst", 8, |i| (i < 4).then_some(1u32)).expect("a small buffer");
        let with =
            |beyond: Option<u8>| move |i| if i < 4 { 1u32.to_le_bytes().map(Some).to_vec() } else { vec![beyond; 4] };
        assert!(judged(&some, with(None)).is_ok());
        for beyond in [POISON, OTHER_POISON, 1] {
            assert!(judged(&some, with(Some(beyond))).is_err(), "{beyond}");
        }
        let ticks = Buffer::clock("dst", 1).expect("a small buffer");
        let mismatch = judged(&ticks, |_| vec![None; 4]).expect_err("no ticks").to_string();
        assert!(mismatch.contains("[0] is not written, or NaN (0xffffffff)"), "{mismatch}");
    }
}
