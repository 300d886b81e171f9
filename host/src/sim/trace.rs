//! What a block's warps asked for, request by request and in order: what a model of the machine behind them is fed with.

use super::banks;
use super::coalesce::{LINE, SECTOR};
use super::requests::Request;
use gpu::device::host::Space;
use gpu::suite::Operation;
use std::panic::Location;

/// What a warp did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Read global memory through the L1, or past it.
    Load {
        /// Whether it goes to the L2 in any case.
        past_l1: bool,
    },
    /// Wrote global memory.
    Store,
    /// Added to global memory in the L2.
    Atomic,
    /// Read shared memory.
    SharedLoad,
    /// Wrote shared memory, or added to it.
    SharedStore,
    /// Read constant memory.
    Constant,
    /// Waited for the block, or for other lanes of the warp.
    Wait,
}

/// One request of a warp, or its wait.
#[derive(Clone, Copy, Debug)]
pub struct Traced {
    /// The warp's number in its block; that of no warp for a barrier of the block.
    pub warp: u16,
    /// What it did.
    pub what: What,
    /// Where.
    pub at: &'static Location<'static>,
    /// Passes through the banks that deliver its data, if all of it is at hand.
    pub wavefronts: u16,
    /// The same if none of it is, and the lines come four at a time.
    pub wavefronts_missing: u16,
    /// Passes through the tags of the L1.
    pub tags: u16,
    /// Its lines in [`Trace::lines`] end here; those of the request before it end where they begin.
    pub lines_end: u32,
}

/// A line of 128 bytes that a request touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its simulated address, divided by the size of a line.
    pub number: u64,
    /// Bytes of each of its sectors that lanes ask for, those of several lanes counted once.
    pub bytes: [u8; 4],
}

/// The warp of a barrier.
pub const WHOLE_BLOCK: u16 = u16::MAX;

/// What a block asked for.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Its requests: in order for each warp, and with the barriers of the block between them.
    pub requests: Vec<Traced>,
    /// The lines that they touch.
    pub lines: Vec<Line>,
    /// Requests that were left out, since their warps had touched too many lines.
    pub left_out: u64,
    /// How many lines of a warp to keep.
    limit: u32,
    /// Lines of each warp so far.
    touched: Vec<u32>,
}

/// Is told what blocks asked for, one after another in the order of the grid.
pub trait Observer: Send + Sync + std::fmt::Debug {
    /// The next block has asked for this.
    fn block(&self, trace: Trace);

    /// How many lines of each warp are enough.
    fn lines_a_warp(&self) -> u32;
}

impl Trace {
    /// A trace that keeps so many lines of a warp at most.
    pub(super) fn new(limit: u32) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The trace so far, leaving an empty one.
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.limit))
    }

    /// Adds a request.
    pub(super) fn add(&mut self, warp: u32, request: &Request) {
        let warp_number = warp as usize;
        if self.touched.len() <= warp_number {
            self.touched.resize(warp_number + 1, 0);
        }
        if self.touched[warp_number] >= self.limit {
            self.left_out += 1;
            return;
        }
        let site = request.site;
        let what = match (site.space(), site.operation()) {
            (Space::Shared, Operation::Load) => What::SharedLoad,
            (Space::Shared, _) => What::SharedStore,
            (Space::Constant, _) => What::Constant,
            (Space::Global, Operation::Load) => What::Load { past_l1: site.is_past_l1() },
            (Space::Global, Operation::Store) => What::Store,
            (Space::Global, Operation::Atomic) => What::Atomic,
        };
        let (addresses, mask, width) = (&request.addresses, request.mask, site.width());
        let (mut missing, mut tags) = (0, 0);
        let wavefronts = match what {
            What::Constant => banks::distinct(addresses, mask),
            _ => banks::wavefronts(addresses, mask, width),
        };
        if site.space() == Space::Global {
            (missing, tags) = self.add_lines(addresses, mask, width);
        }
        let begin = self.requests.last().map_or(0, |request| request.lines_end);
        self.touched[warp_number] += 1 + self.lines.len() as u32 - begin;
        self.push(warp as u16, what, site.at(), [wavefronts, missing, tags]);
    }

    /// Adds that a warp, or the whole block, waited.
    pub(super) fn wait(&mut self, warp: u16, at: &'static Location<'static>) {
        self.push(warp, What::Wait, at, [0; 3]);
    }

    fn push(&mut self, warp: u16, what: What, at: &'static Location<'static>, passes: [u64; 3]) {
        let [wavefronts, wavefronts_missing, tags] = passes.map(|passes| passes as u16);
        let lines_end = self.lines.len() as u32;
        self.requests.push(Traced { warp, what, at, wavefronts, wavefronts_missing, tags, lines_end });
    }

    /// Adds the lines of a request in the order in which lanes first touch them, and returns its wavefronts if they come
    /// four at a time.
    fn add_lines(&mut self, addresses: &[u64; 32], mask: u32, width: u64) -> (u64, u64) {
        let begin = self.lines.len();
        let mut lanes = [0u32; 32];
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let (number, sector) = (addresses[lane] / LINE, (addresses[lane] % LINE / SECTOR) as usize);
            let known = self.lines[begin..].iter().rposition(|line| line.number == number);
            let place = known.unwrap_or_else(|| {
                self.lines.push(Line { number, bytes: [0; 4] });
                self.lines.len() - 1 - begin
            });
            // A lane that asks for what another asks for adds nothing.
            let again = (0..lane).any(|other| lanes[place] >> other & 1 == 1 && addresses[other] == addresses[lane]);
            lanes[place] |= 1 << lane;
            if !again {
                self.lines[begin + place].bytes[sector] += width as u8;
            }
        }
        // The k-th line of each tag bank goes through in the k-th pass.
        let mut passes = [0u32; 32];
        let mut load = [0usize; 4];
        for (line, lanes) in self.lines[begin..].iter().zip(lanes) {
            let bank = tag_bank(line.number);
            passes[load[bank]] |= lanes;
            load[bank] += 1;
        }
        let tags = load.into_iter().max().unwrap_or(0);
        (passes[..tags].iter().map(|mask| banks::wavefronts(addresses, *mask, width)).sum(), tags as u64)
    }
}

/// The bank of the L1's tags that a line belongs to: four, and each looks one line up at a time. The lower nine bits were
/// found by the passes of 83 patterns on an H200, all of which they give to the unit; the bits above are taken to do as much.
fn tag_bank(number: u64) -> usize {
    let folded = number ^ number >> 9 ^ number >> 18;
    let parity = |mask: u64| (folded & mask).count_ones() as usize & 1;
    parity(0b0_1011_0101) | parity(0b1_0110_1111) << 1
}
