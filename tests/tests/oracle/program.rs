//! A random program: a tree of statements, and the kernel that runs it.

use gpu::device::prelude::*;
use gpu::suite::Operation;

/// Words of a buffer, and of the block's array.
pub(super) const WORDS: u32 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Region {
    Src,
    Dst,
    Tile,
}

impl Region {
    pub(super) fn name(self) -> &'static str {
        match self {
            Region::Src => "src",
            Region::Dst => "dst",
            Region::Tile => "tile",
        }
    }
}

/// A thread goes to word `by_thread * thread + by_step * step + from`, wherever that is round the buffer; blocks to words of
/// their own if they are `apart`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) region: Region,
    pub(super) operation: Operation,
    /// One word, or two.
    pub(super) words: u32,
    pub(super) by_thread: u32,
    pub(super) by_step: u32,
    pub(super) from: u32,
    pub(super) apart: bool,
}

impl Access {
    pub(super) fn word(&self, block: u32, thread: u32, step: u32) -> u32 {
        let part = if self.apart && self.region != Region::Tile { WORDS / 2 } else { WORDS };
        let word = (self.by_thread * thread + self.by_step * step + self.from) % part;
        (word + if part < WORDS { block % 2 * part } else { 0 }) / self.words * self.words
    }
}

#[derive(Clone, Debug)]
pub(super) enum Statement {
    Access(Access),
    /// The lanes in a mask do one thing, the others another.
    If(u32, Vec<Statement>, Vec<Statement>),
    /// So many iterations, and so many more in every third lane each.
    Loop(u32, u32, Vec<Statement>),
    /// All of the block meet.
    Block,
    /// The lanes in a mask meet.
    Warp(u32),
    /// The lanes in a mask take the value of the lowest.
    Shuffle(u32),
    Return,
}

pub(super) struct Program {
    pub(super) blocks: u32,
    pub(super) threads: u32,
    /// Whether the output holds zeros before.
    pub(super) zeroed: bool,
    pub(super) statements: Vec<Statement>,
}

impl Program {
    pub(super) fn trips(fixed: u32, more: u32, thread: u32) -> u32 {
        fixed + more * (thread % 3)
    }
}

/// Runs a tree, whose address it is given.
#[kernel]
pub(super) unsafe fn interpreted(src: Global<u32>, dst: GlobalMut<u32>, program: u64) {
    let tile = shared!([u32; 512]);
    // The test keeps it alive.
    let program = &*std::ptr::with_exposed_provenance::<Program>(program as usize);
    run(&program.statements, 0, src, dst, tile);
}

/// Whether the thread goes on.
unsafe fn run(
    statements: &[Statement],
    step: u32,
    src: Global<u32>,
    dst: GlobalMut<u32>,
    tile: Shared<u32, 512>,
) -> bool {
    let thread = thread::thread_idx_x();
    for statement in each(statements) {
        // SAFETY: the launch's contract; what goes wrong in spite of it the simulator finds.
        let goes_on = unsafe {
            match statement {
                Statement::Access(access) => {
                    make(access, access.word(thread::block_idx_x(), thread, step), src, dst, tile);
                    true
                }
                Statement::If(lanes, yes, no) => {
                    // Each part is a place of its own.
                    for (part, taken) in each([no, yes].into_iter().zip(0..)) {
                        if lanes >> warp::lane_id() & 1 == taken && !run(part, step, src, dst, tile) {
                            return false;
                        }
                    }
                    true
                }
                Statement::Loop(fixed, more, body) => {
                    for step in steps(0..Program::trips(*fixed, *more, thread), 1) {
                        if !run(body, step, src, dst, tile) {
                            return false;
                        }
                    }
                    true
                }
                Statement::Block => {
                    sync_threads();
                    true
                }
                Statement::Warp(mask) => {
                    sync_warp(*mask);
                    true
                }
                Statement::Shuffle(mask) => {
                    warp::shuffle(*mask, 1.0, mask.trailing_zeros());
                    true
                }
                Statement::Return => false,
            }
        };
        if !goes_on {
            return false;
        }
    }
    true
}

unsafe fn make(access: &Access, word: u32, src: Global<u32>, dst: GlobalMut<u32>, tile: Shared<u32, 512>) {
    let (index, pair) = (word as usize, F32x2 { x: 0.0, y: 0.0 });
    // SAFETY: every word lies in its buffer.
    unsafe {
        match (access.region, access.operation, access.words) {
            (Region::Src, _, 1) => drop(src.load(index)),
            (Region::Src, ..) => drop(src.cast::<F32x2>().load(index / 2)),
            (Region::Dst, Operation::Load, 1) => drop(dst.load(index)),
            (Region::Dst, Operation::Load, _) => drop(dst.cast::<F32x2>().load(index / 2)),
            (Region::Dst, Operation::Store, 1) => dst.store(index, 0),
            (Region::Dst, Operation::Store, _) => dst.cast::<F32x2>().store(index / 2, pair),
            (Region::Dst, Operation::Atomic, _) => drop(dst.atomic_add(index, 0)),
            (Region::Tile, Operation::Load, 1) => drop(tile.load(word)),
            (Region::Tile, Operation::Load, _) => drop(tile.cast::<F32x2>().load(word / 2)),
            (Region::Tile, _, 1) => tile.store(word, 0),
            (Region::Tile, ..) => tile.cast::<F32x2>().store(word / 2, pair),
        }
    }
}
