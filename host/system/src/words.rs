//! Memory for simulations: addresses for as much as a launch has, behind which the system puts memory where it is touched. What a
//! simulation had, others get, since it takes longer to have it from the system anew than to fill it.

use crate::pages::PAGE;
use memmap2::{MmapOptions, MmapRaw};
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::{Mutex, MutexGuard};

/// How many bytes are kept at most: 256 MiB.
const MOST: usize = 256 << 20;

/// What is kept, by its size.
#[derive(Default)]
struct Spare {
    by_size: BTreeMap<usize, Vec<MmapRaw>>,
    bytes: usize,
}

static SPARE: Mutex<Spare> = Mutex::new(Spare { by_size: BTreeMap::new(), bytes: 0 });

fn spare() -> MutexGuard<'static, Spare> {
    SPARE.lock().expect("no panic under this lock")
}

/// Bytes that are kept.
pub fn kept() -> u64 {
    spare().bytes as u64
}

/// Gives the system back what is kept.
fn release() {
    *spare() = Spare::default();
}

/// The system gives no addresses for so many bytes.
#[derive(Debug, thiserror::Error)]
#[error("{bytes} bytes in one piece are needed, and the system gives none: {reason}; choose a smaller size")]
pub struct Refused {
    /// How many bytes.
    pub bytes: usize,
    /// What the system says.
    pub reason: std::io::Error,
}

/// Memory that holds anything, and is kept for others once it is dropped.
#[derive(Debug)]
pub struct Words {
    memory: ManuallyDrop<MmapRaw>,
}

impl Words {
    /// So many words.
    ///
    /// # Errors
    /// If the system gives no addresses for them.
    pub fn take(len: usize) -> Result<Self, Refused> {
        let bytes = 8 * len;
        let mut spare = spare();
        let kept = spare.by_size.get_mut(&bytes).and_then(Vec::pop);
        spare.bytes -= kept.as_ref().map_or(0, MmapRaw::len);
        drop(spare);
        // Of what a large launch has, a sample of its blocks touches little.
        let anew = || MmapOptions::new().len(bytes).no_reserve_swap().map_anon().map(MmapRaw::from);
        let memory = kept.map_or_else(anew, Ok).or_else(|_| {
            // What is kept may be what is missing.
            release();
            anew()
        });
        let memory = memory.map_err(|reason| Refused { bytes, reason })?;
        Ok(Self { memory: ManuallyDrop::new(memory) })
    }

    /// Where they begin.
    #[inline(always)]
    pub fn start(&self) -> *mut u64 {
        self.memory.as_mut_ptr().cast()
    }

    /// How many they are.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "there is no use for it")]
    pub fn len(&self) -> usize {
        self.memory.len() / 8
    }
}

impl Drop for Words {
    /// Keeps them, as far as there is room: whole pages, which others will need too.
    fn drop(&mut self) {
        // SAFETY: nobody uses it after this.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        let (bytes, mut spare) = (memory.len(), spare());
        if bytes as u64 >= PAGE && spare.bytes + bytes <= MOST {
            spare.bytes += bytes;
            spare.by_size.entry(bytes).or_default().push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_handed_out_again_once() {
        // A length that no page has.
        let take = || Words::take(PAGE as usize + 1).expect("so little can be had");
        let words = take();
        assert_eq!(words.len(), PAGE as usize + 1);
        let place = words.start();
        drop(words);
        let again = take();
        assert_eq!(again.start(), place);
        assert_ne!(take().start(), place, "it is handed out once");
    }

    #[test]
    fn as_many_addresses_can_be_had_as_a_buffer_may_have_and_no_more_than_there_are() {
        let words = Words::take(1 << 37).expect("a tebibyte of addresses");
        // SAFETY: the word is one of them.
        unsafe { words.start().add(words.len() - 1).write(1) };
        let refused = Words::take(1 << 57).expect_err("more than a machine has").to_string();
        assert!(
            refused.contains("1152921504606846976 bytes") && refused.contains("choose a smaller size"),
            "{refused}"
        );
    }
}
