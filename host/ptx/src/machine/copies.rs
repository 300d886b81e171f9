//! The copies of a block that have begun and not arrived.

use engine::{Instruction, Pc};

/// The copies of a block that have not arrived.
#[derive(Default)]
pub(super) struct Copies {
    /// In the order in which they began.
    pub(super) copies: Vec<UnderWay>,
    /// How many groups each lane of each warp has made up.
    pub(super) groups: Vec<[u32; 32]>,
    /// Who copies to each word of shared memory, and by which instruction, if the sanitizer looks.
    pub(super) words: Vec<Option<(u32, Pc)>>,
    /// How many words that are.
    watched: usize,
}

/// A copy by some lanes of a warp.
pub(super) struct UnderWay {
    pub(super) warp: usize,
    pub(super) lanes: u32,
    /// How many groups each lane had made up before.
    pub(super) groups: [u32; 32],
    pub(super) cells: [*mut u8; 32],
    pub(super) places: [u64; 32],
    pub(super) data: [[u64; 32]; 2],
    pub(super) instruction: Instruction,
}

impl Copies {
    /// Those of a block of so many warps.
    pub(super) fn new(warps: usize) -> Self {
        Self { groups: vec![[0; 32]; warps], ..Self::default() }
    }

    /// Another block begins.
    pub(super) fn clear(&mut self) {
        self.copies.clear();
        self.groups.fill([0; 32]);
        if self.watched > 0 {
            self.words.fill(None);
            self.watched = 0;
        }
    }

    /// Whether the sanitizer looks for copies that have not arrived.
    #[inline(always)]
    pub(super) fn are_under_way(&self) -> bool {
        self.watched > 0
    }

    /// The lanes have made up a group.
    pub(super) fn commit(&mut self, warp: usize, lanes: u32) {
        let lane_of = |(lane, _): &(usize, &mut u32)| lanes >> lane & 1 == 1;
        self.groups[warp]
            .iter_mut()
            .enumerate()
            .filter(lane_of)
            .for_each(|(_, groups)| *groups = groups.saturating_add(1));
    }

    /// Has words watched, or no longer.
    pub(super) fn watch(&mut self, place: u64, width: u64, by: Option<(u32, Pc)>) {
        let words = (place / 4) as usize..(place + width).div_ceil(4) as usize;
        if words.end > self.words.len() {
            self.words.resize(words.end, None);
        }
        for word in &mut self.words[words] {
            self.watched = self.watched + usize::from(by.is_some()) - usize::from(word.is_some());
            *word = by;
        }
    }
}
