//! What a block's warps asked for, request by request and in order: what a model of the machine behind them is fed with.

use crate::banks;
use crate::coalesce::{LINE, SECTOR};
use crate::instruction::Pc;
use crate::request::Request;
use arrayvec::ArrayVec;
use gpu::suite::{AtomicKind, Operation, Space};

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
    /// Added to global memory in the L2, or did something else to it in one indivisible step.
    Atomic {
        /// Lanes that wait for others of the request: of each sector as many as go to one address at most, but one.
        waiting: u16,
    },
    /// Read shared memory.
    SharedLoad,
    /// Wrote shared memory.
    SharedStore,
    /// Added to shared memory.
    SharedAtomic {
        /// Of a loop of compare-and-swaps, the most distinct words that its lanes want of one bank; 0 of what is no loop.
        words: u16,
    },
    /// Read constant memory.
    Constant,
    /// Waited for the block, or for other lanes of the warp.
    Wait,
    /// Issued instructions that access nothing.
    Instructions,
}

/// What a warp did before a request, and what the request depends on.
///
/// Instructions of a warp issue in order. One stalls until its operands are there; so does all that comes behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Issue slots that the warp's instructions took since its last request, those of this one included.
    pub issue: u16,
    /// Cycles since the issue of its last request that those take, one after another where they depend on one another, however soon loads
    /// arrive.
    pub chain: u16,
    /// The loads of the warp on which it depends, by way of arithmetic or since others that come before do: bit 0 is the last one before
    /// it, bit 1 the one before that, and so on.
    pub needs: u64,
    /// Cycles from the arrival of the last of these to its issue.
    pub after: u16,
}

impl Default for Flow {
    /// That of a request of which nothing is known: it comes right behind the one before, and once all loads have arrived.
    fn default() -> Self {
        Self { issue: 1, chain: 4, needs: u64::MAX, after: 0 }
    }
}

/// One request of a warp, or its wait.
#[derive(Clone, Copy, Debug)]
pub struct Traced {
    /// The warp's number in its block; that of no warp for a barrier of the block.
    pub warp: u16,
    /// What it did.
    pub what: What,
    /// Where.
    pub at: Pc,
    /// Data-stage wavefronts, if all of its lines hit.
    pub wavefronts: u16,
    /// The same if all of them miss: each tag-stage wavefront then has data-stage wavefronts of its own.
    pub miss_wavefronts: u16,
    /// Tag-stage wavefronts of the L1.
    pub tag_wavefronts: u16,
    /// Its lines end here among those of the block; those of the request before it end where they begin.
    pub lines_end: LinesEnd,
    /// What comes before it.
    pub flow: Flow,
}

/// A line of 128 bytes that a request touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its simulated address, divided by the size of a line.
    pub number: u64,
    /// Bytes of each of its sectors that lanes ask for, those of several lanes counted once.
    pub bytes: [u8; 4],
}

/// The lines of a request, in the order in which lanes first touch them.
pub type Lines = ArrayVec<Line, 32>;

/// Lines in a row of a request that lie equally far apart, with the same bytes of each.
#[derive(Clone, Copy, Debug)]
struct Row {
    first: u64,
    /// How far the next one is from each: the difference of their numbers, which wraps around.
    apart: u64,
    count: u8,
    bytes: [u8; 4],
}

/// Where the lines of a request end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinesEnd(u32);

/// The warp of a barrier.
pub const WHOLE_BLOCK: u16 = u16::MAX;

/// What a block asked for.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Its requests: in order for each warp, and with the barriers of the block between them.
    pub requests: Vec<Traced>,
    /// The lines that they touch. Lanes mostly have theirs equally far apart, and a block may touch many millions of lines.
    rows: Vec<Row>,
    /// How many lines of a warp to keep: once it has touched them, its requests are left out.
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
    pub fn new(limit: u32) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The trace so far, leaving an empty one.
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.limit))
    }

    /// The lines that request number `number` touches.
    pub fn lines_of(&self, number: usize) -> Lines {
        let begin = number.checked_sub(1).map_or(0, |before| self.requests[before].lines_end.0);
        let rows = &self.rows[begin as usize..self.requests[number].lines_end.0 as usize];
        rows.iter().flat_map(Row::lines).collect()
    }

    /// Adds the lines of the next request, and says where they end.
    pub fn add_lines(&mut self, lines: &[Line]) -> LinesEnd {
        let begin = self.rows.len();
        for line in lines {
            if !self.rows[begin..].last_mut().is_some_and(|row| row.takes(line)) {
                self.rows.push(Row { first: line.number, apart: 0, count: 1, bytes: line.bytes });
            }
        }
        LinesEnd(self.rows.len() as u32)
    }

    /// Adds a request, the wavefronts that it takes if not those of any other, and what comes before it.
    pub fn add(&mut self, warp: u32, request: &Request<'_>, wavefronts: Option<u64>, flow: Flow) {
        let warp_number = warp as usize;
        if self.touched.len() <= warp_number {
            self.touched.resize(warp_number + 1, 0);
        }
        if self.touched[warp_number] >= self.limit {
            return;
        }
        let instruction = request.instruction;
        let (addresses, mask, width) = (&request.addresses(), request.mask, instruction.width());
        let what = match (instruction.space, instruction.operation) {
            (Space::Shared, Operation::Load) => What::SharedLoad,
            (Space::Shared, Operation::Store) => What::SharedStore,
            (Space::Shared, Operation::Atomic) => {
                let words = || banks::wavefronts(addresses, mask, width, Operation::Store) as u16;
                What::SharedAtomic { words: if instruction.kind == AtomicKind::Loop { words() } else { 0 } }
            }
            (Space::Constant, _) => What::Constant,
            (Space::Global, Operation::Load) => What::Load { past_l1: instruction.past_l1 },
            (Space::Global, Operation::Store) => What::Store,
            (Space::Global, Operation::Atomic) => What::Atomic { waiting: waiting(addresses, mask) },
        };
        let wavefronts = match (what, wavefronts) {
            (What::SharedStore, Some(wavefronts)) => wavefronts,
            (What::Constant, _) => banks::distinct(addresses, mask),
            _ => banks::wavefronts(addresses, mask, width, instruction.operation) * instruction.values(),
        };
        let (mut lines, mut missed, mut tags) = (Lines::new(), 0, 0);
        if instruction.space == Space::Global {
            (lines, missed, tags) = l1_wavefronts(addresses, mask, width, instruction.operation);
        }
        self.touched[warp_number] += 1 + lines.len() as u32;
        self.push(warp as u16, what, instruction.pc, [wavefronts, missed, tags], &lines, flow);
    }

    /// Adds that a warp, or the whole block, waited, or that a warp issued instructions that access nothing: unless nothing more is kept
    /// of it.
    pub fn wait(&mut self, warp: u16, what: What, at: Pc, flow: Flow) {
        let goes_on = |touched: &u32| *touched < self.limit;
        let kept = match warp {
            WHOLE_BLOCK => self.touched.is_empty() || self.touched.iter().any(goes_on),
            warp => self.touched.get(usize::from(warp)).is_none_or(goes_on),
        };
        if kept {
            if let Some(touched) = self.touched.get_mut(usize::from(warp)) {
                *touched += u32::from(what == What::Instructions);
            }
            self.push(warp, what, at, [0; 3], &[], flow);
        }
    }

    fn push(&mut self, warp: u16, what: What, at: Pc, wavefronts: [u64; 3], lines: &[Line], flow: Flow) {
        let [wavefronts, miss_wavefronts, tag_wavefronts] = wavefronts.map(|wavefronts| wavefronts as u16);
        let lines_end = self.add_lines(lines);
        self.requests.push(Traced { warp, what, at, wavefronts, miss_wavefronts, tag_wavefronts, lines_end, flow });
    }
}

impl Row {
    /// Whether the row goes on with this line: then it does.
    fn takes(&mut self, line: &Line) -> bool {
        let apart = if self.count == 1 { line.number.wrapping_sub(self.first) } else { self.apart };
        let goes_on = line.bytes == self.bytes && line.number == self.number(apart, self.count);
        if goes_on {
            (self.apart, self.count) = (apart, self.count + 1);
        }
        goes_on
    }

    fn number(&self, apart: u64, place: u8) -> u64 {
        self.first.wrapping_add(apart.wrapping_mul(u64::from(place)))
    }

    fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        (0..self.count).map(|place| Line { number: self.number(self.apart, place), bytes: self.bytes })
    }
}

/// Lanes of an atomic that wait for others of it: of each sector as many as go to one address at most, but one.
fn waiting(addresses: &[u64; 32], mask: u32) -> u16 {
    let mut active: ArrayVec<u64, 32> =
        (0..32).filter(|lane| mask >> lane & 1 == 1).map(|lane| addresses[lane]).collect();
    active.sort_unstable();
    let of_sector = active.chunk_by(|one, other| one / SECTOR == other / SECTOR);
    let most = of_sector.map(|sector| sector.chunk_by(u64::eq).map(<[u64]>::len).max().unwrap_or(1) - 1);
    most.sum::<usize>() as u16
}

/// The lines of a request to global memory, its data-stage wavefronts if all of them miss, and its tag-stage wavefronts.
fn l1_wavefronts(addresses: &[u64; 32], mask: u32, width: u64, operation: Operation) -> (Lines, u64, u64) {
    let mut lines = Lines::new();
    let mut lanes = [0u32; 32];
    let mut rest = mask;
    while rest != 0 {
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        let (number, sector) = (addresses[lane] / LINE, (addresses[lane] % LINE / SECTOR) as usize);
        let known = lines.iter().rposition(|line| line.number == number);
        let place = known.unwrap_or_else(|| {
            lines.push(Line { number, bytes: [0; 4] });
            lines.len() - 1
        });
        // A lane that asks for what another asks for adds nothing.
        let again = (0..lane).any(|other| lanes[place] >> other & 1 == 1 && addresses[other] == addresses[lane]);
        lanes[place] |= 1 << lane;
        if !again {
            lines[place].bytes[sector] += width as u8;
        }
    }
    // The k-th line of each tag bank is looked up in the k-th wavefront.
    let mut of_tags = [0u32; 32];
    let mut load = [0usize; TAG_BANKS];
    for (line, lanes) in lines.iter().zip(lanes) {
        let bank = tag_bank(line.number);
        of_tags[load[bank]] |= lanes;
        load[bank] += 1;
    }
    let tags = load.into_iter().max().unwrap_or(0);
    let wavefronts =
        of_tags[..tags].iter().map(|part| banks::wavefronts_of_part(addresses, *part, mask, width, operation)).sum();
    (lines, wavefronts, tags as u64)
}

/// Banks of the L1's tags.
pub const TAG_BANKS: usize = 4;

/// The bank of the L1's tags that a line belongs to: four, and each looks one line up at a time. Found by the wavefronts that an H200 counts
/// of loads of lines whose numbers differ in few bits: those up to the 21st by `banks` of `counted.cu`, those above likewise, of which no
/// count is kept.
pub fn tag_bank(number: u64) -> usize {
    let parity = |mask: u64| (number & mask).count_ones() as usize & 1;
    parity(0x15EF_7AB5) | parity(0x1B55_AF6F) << 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::{Instruction, Position};
    use gpu::suite::noise;
    use std::collections::BTreeSet;

    /// What an H200 and an H100 counted of 512 loads of four lines each, where buffers began 256 bytes after a page: 662 tag-stage wavefronts.
    #[test]
    fn four_lines_in_a_row_take_one_tag_wavefront_where_they_begin_at_a_multiple_of_four() {
        let wavefronts = |begin: u64| -> u64 {
            let load = |first: u64| {
                l1_wavefronts(
                    &std::array::from_fn(|lane| 128 * first + 16 * lane as u64),
                    u32::MAX,
                    16,
                    Operation::Load,
                )
                .2
            };
            (0..512).map(|number| load(4 * number + begin)).sum()
        };
        assert_eq!([0, 2].map(wavefronts), [512, 662]);
    }

    /// A load of `width` bytes from global memory by a whole warp, each lane from the element that `index` names.
    struct Load(u64, [u64; 32]);

    impl Load {
        fn request(&self) -> Request<'_> {
            let pc = Pc::of(Position { file: file!(), line: line!(), column: 1 });
            let load = Instruction::new(pc, Space::Global, Operation::Load, self.0.trailing_zeros() as u8);
            Request::new(load, u32::MAX, None, 0, &self.1)
        }
    }

    fn load(width: u64, index: impl Fn(u64) -> u64) -> Load {
        Load(width, std::array::from_fn(|lane| index(lane as u64)))
    }

    /// Wavefronts of a load: of the tag stage, and of the data stage if its lines miss and if they hit; its lines.
    fn wavefronts_of(load: &Load) -> ([u16; 3], Lines) {
        let mut trace = Trace::new(u32::MAX);
        trace.add(0, &load.request(), None, Flow::default());
        let [traced] = trace.requests[..] else { panic!("{} requests", trace.requests.len()) };
        assert_eq!(traced.what, What::Load { past_l1: false });
        ([traced.tag_wavefronts, traced.miss_wavefronts, traced.wavefronts], trace.lines_of(0))
    }

    /// As counted on an H200 with kernels of one warp.
    #[test]
    fn every_measured_stride_takes_as_many_wavefronts_as_on_the_hardware() {
        for (width, stride, expected) in [
            (4, 2, [1, 2, 2]),
            (4, 5, [2, 2, 1]),
            (4, 16, [4, 16, 16]),
            (4, 32, [8, 32, 32]),
            (4, 33, [8, 8, 1]),
            (16, 1, [1, 4, 4]),
            (16, 3, [3, 6, 4]),
            (16, 12, [11, 26, 16]),
        ] {
            let (counted, _) = wavefronts_of(&load(width, |lane| stride * lane));
            assert_eq!(
                counted, expected,
                "stride {stride}, {width} bytes: tag stage, data stage missed, data stage hit"
            );
        }
        // What they take if their lines hit was not counted.
        for (width, stride, expected) in
            [(4, 9, [3, 3]), (4, 12, [3, 6]), (4, 24, [6, 12]), (16, 8, [8, 32]), (16, 24, [11, 32])]
        {
            let ([tags, missing, _], _) = wavefronts_of(&load(width, |lane| stride * lane));
            assert_eq!([tags, missing], expected, "stride {stride}, {width} bytes: tag stage, data stage missed");
        }
    }

    /// What `banks` of `counted.cu` counted on an H200 and an H100: tag-stage wavefronts of loads of lines that lie so far apart.
    #[test]
    fn lines_belong_to_banks_of_the_tags_as_on_the_hardware() {
        for (apart, counted) in [
            (33, 16),
            (511, 9),
            (513, 8),
            (1025, 8),
            (4095, 9),
            (4097, 8),
            (8193, 8),
            (16385, 8),
            (32769, 8),
            (65535, 17),
        ] {
            let ([tags, ..], _) = wavefronts_of(&load(4, |lane| 32 * apart * lane));
            assert_eq!(tags, counted, "32 lines, {apart} apart");
        }
        // Which of these four, each of another bank, is looked up after a line whose number has one of the bits from the tenth on.
        let with = [1, 2, 1, 16, 1, 16, 2, 1, 16, 1, 16, 2];
        for (bit, with) in (9..).zip(with) {
            let after = |other: &u64| {
                wavefronts_of(&load(4, |lane| 32 * if lane % 2 == 0 { *other } else { 1 << bit })).0[0] == 2
            };
            assert_eq!([0, 1, 2, 16].into_iter().filter(after).collect::<Vec<_>>(), [with], "bit {bit}");
        }
    }

    #[test]
    fn lines_stand_in_the_order_of_the_lanes_with_the_bytes_asked_for() {
        let (_, lines) = wavefronts_of(&load(16, |lane| 31 - lane));
        assert_eq!(lines[..], [3, 2, 1, 0].map(|number| Line { number, bytes: [32; 4] }));
        let (_, lines) = wavefronts_of(&load(4, |lane| 40 * lane % 80));
        assert_eq!(lines[..], [(0, [4, 0, 0, 0]), (1, [0, 4, 0, 0])].map(|(number, bytes)| Line { number, bytes }));
    }

    #[test]
    fn one_address_takes_one_wavefront_and_its_bytes_count_once() {
        for (width, data) in [(4, 1), (8, 1), (16, 2)] {
            let (counted, lines) = wavefronts_of(&load(width, |_| 1));
            assert_eq!(counted, [1, data, data], "{width} bytes");
            assert_eq!(lines[..], [Line { number: 0, bytes: [width as u8, 0, 0, 0] }]);
        }
    }

    #[test]
    fn lanes_anywhere_touch_each_line_once_and_take_as_many_wavefronts_as_the_fullest_bank_has_lines() {
        for seed in 0..100 {
            let index = |lane| noise(32 * seed + lane) as u64 % 1024;
            let ([tags, missing, at_hand], lines) = wavefronts_of(&load(4, index));
            let distinct = |divisor: u64| (0..32).map(|lane| index(lane) / divisor).collect::<BTreeSet<_>>();
            assert_eq!(lines.iter().map(|line| line.number).collect::<BTreeSet<_>>(), distinct(32));
            assert_eq!(lines.len(), distinct(32).len(), "no line twice");
            let bytes: usize = lines.iter().flat_map(|line| line.bytes).map(usize::from).sum();
            assert_eq!(bytes, 4 * distinct(1).len());
            let fullest = (0..4).map(|bank| lines.iter().filter(|line| tag_bank(line.number) == bank).count()).max();
            assert_eq!(Some(usize::from(tags)), fullest);
            assert!(missing >= at_hand.max(tags), "each tag-stage wavefront takes a data-stage one at least");
        }
    }

    #[test]
    fn a_warp_that_touched_enough_lines_is_left_out() {
        let [line, lines] = [1, 32].map(|stride| load(4, move |lane| stride * lane));
        let [line, lines] = [&line, &lines].map(Load::request);
        let mut trace = Trace::new(4);
        for _ in 0..5 {
            trace.add(1, &line, None, Flow::default());
        }
        trace.add(0, &lines, None, Flow::default());
        trace.add(0, &line, None, Flow::default());
        trace.wait(0, What::Wait, line.instruction.pc, Flow::default());
        trace.wait(1, What::Wait, line.instruction.pc, Flow::default());
        trace.wait(WHOLE_BLOCK, What::Wait, line.instruction.pc, Flow::default());
        // A request and its line make two.
        let kept = |warp| trace.requests.iter().filter(move |request| request.warp == warp).map(|request| request.what);
        let loaded = What::Load { past_l1: false };
        assert_eq!(kept(1).collect::<Vec<_>>(), [loaded, loaded], "nobody waits who asks for nothing more");
        assert_eq!(kept(0).collect::<Vec<_>>(), [loaded], "each warp has a limit of its own");
        assert_eq!(kept(WHOLE_BLOCK).count(), 0, "no warp goes on");
        let lines = (0..trace.requests.len()).map(|number| trace.lines_of(number).len());
        assert_eq!(lines.sum::<usize>(), 2 + 32);
        assert_eq!(trace.take().requests.len(), 3);
        trace.add(1, &line, None, Flow::default());
        assert_eq!(trace.requests.len(), 1, "the next block begins anew");
    }
}
