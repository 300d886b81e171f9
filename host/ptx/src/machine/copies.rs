//! The copies of a block that have begun and not arrived.

use engine::{Instruction, UnderWay};

/// The copies of a block that have not arrived.
#[derive(Default)]
pub(super) struct Copies {
    /// In the order in which they began.
    pub(super) copies: Vec<Copy>,
    /// How many groups each lane of each warp has made up.
    pub(super) groups: Vec<[u32; 32]>,
    /// Where they go, if the sanitizer looks.
    pub(super) under_way: UnderWay,
}

/// A copy by some lanes of a warp.
pub(super) struct Copy {
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
        self.under_way.clear();
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
}
