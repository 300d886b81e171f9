//! Copies to shared memory that have begun and not arrived: which words they go to, and whose they are.

use crate::finding::{Kind, triple};
use crate::instruction::{Instruction, Pc};
use crate::worker::Worker;
use gpu::suite::Operation;

/// The words of a block's shared memory that copies are under way to, as far as the sanitizer looks.
#[derive(Default)]
pub struct UnderWay {
    /// The thread that copies to each word, and where it began to.
    words: Vec<Option<(u32, Pc)>>,
    /// How many words that are.
    watched: usize,
}

impl UnderWay {
    /// Another block begins.
    pub fn clear(&mut self) {
        if self.watched > 0 {
            self.words.fill(None);
            self.watched = 0;
        }
    }

    /// Whether there are any.
    #[inline(always)]
    pub fn is_any(&self) -> bool {
        self.watched > 0
    }

    /// A copy by a thread to `width` bytes at `place` has begun, or has arrived.
    pub fn watch(&mut self, place: u64, width: u64, by: Option<(u32, Pc)>) {
        let words = (place / 4) as usize..(place + width).div_ceil(4) as usize;
        if words.end > self.words.len() {
            self.words.resize(words.end, None);
        }
        for word in &mut self.words[words] {
            self.watched = self.watched + usize::from(by.is_some()) - usize::from(word.is_some());
            *word = by;
        }
    }

    /// Whose copy is under way to one of `width` bytes at `place`, and where it began.
    pub fn find(&self, place: u64, width: u64) -> Option<(u32, Pc)> {
        let [begin, end] = [place / 4, (place + width).div_ceil(4)].map(|word| (word as usize).min(self.words.len()));
        self.words[begin..end].iter().find_map(|by| *by)
    }
}

impl Worker {
    /// Records that `thread` touches a place in shared memory, to which another copies, or itself.
    #[cold]
    pub fn find_under_way(&mut self, thread: usize, instruction: Instruction, place: u64, copy: (u32, Pc)) {
        let (name, offset) = self.shared.name(place);
        let (width, (copier, pc)) = (instruction.width(), copy);
        let who = triple(self.thread_idx(copier));
        let verb = if instruction.operation == Operation::Load { "reads" } else { "writes" };
        let detail = format!(
            "a thread {verb} {width} bytes at byte {offset} of `{name}`, to which a copy of thread {who} is under way: it \
             arrives when that thread waits for its group (`cp.async.wait_group`), and for others behind a barrier"
        );
        let [at, other] = [instruction.pc, pc].map(|pc| Some(pc.position()));
        self.find(thread, Kind::Race, at, other, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::Position;

    #[test]
    fn a_copy_is_found_by_any_of_its_words_until_it_arrives() {
        let pc = Pc::of(Position { file: "kernel.rs", line: 3, column: 1 });
        let mut copies = UnderWay::default();
        assert!(!copies.is_any() && copies.find(0, 16).is_none());
        copies.watch(16, 8, Some((5, pc)));
        let found = |copies: &UnderWay, place, width| copies.find(place, width).map(|(thread, _)| thread);
        assert_eq!([found(&copies, 0, 16), found(&copies, 8, 16), found(&copies, 21, 1)], [None, Some(5), Some(5)]);
        assert_eq!((found(&copies, 24, 4), found(&copies, 1 << 20, 4)), (None, None));
        copies.watch(20, 4, None);
        assert!(copies.is_any());
        copies.watch(16, 4, None);
        assert!(!copies.is_any() && copies.find(16, 8).is_none());
    }
}
