//! A block's shared memory, and the sanitizer's record of who touched it.
//!
//! Two accesses race when different threads make them, one writes, and nothing orders them: no barrier of the block
//! between them and, within a warp, no meeting of all its lanes either. The record keeps, for each cell, the last write
//! and two reads by different threads: if anybody else read since the last barrier, one of the two is somebody else.
//! Cells are words, until the first narrower access makes them as narrow.

use super::finding::{Finding, Kind, Position};
use super::requests::{Request, Site};
use gpu::suite::{Operation, POISON};

/// Static shared memory a block may declare.
const STATIC_LIMIT: u32 = 48 << 10;

/// Where dynamic shared memory begins: past every static array.
const DYNAMIC: u32 = 64 << 10;

/// A moment, as far as order goes: how many barriers the block, and how many meetings the warp, has passed. Barriers
/// are counted on from block to block, so that what an earlier block did is never taken for unordered.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Epoch {
    pub(super) block: u32,
    pub(super) warp: u32,
}

/// An access to a cell. The default one lies before every barrier.
#[derive(Clone, Copy, Default)]
struct Touch {
    thread: u32,
    epoch: Epoch,
    site: Site,
}

impl Touch {
    /// Whether nothing orders this access before one by `thread` at `epoch`.
    fn races_with(&self, thread: u32, epoch: Epoch) -> bool {
        let same_warp = self.thread / 32 == thread / 32;
        self.thread != thread && self.epoch.block == epoch.block && (!same_warp || self.epoch.warp == epoch.warp)
    }
}

#[derive(Clone, Copy, Default)]
struct Cell {
    write: Touch,
    reads: [Touch; 2],
}

/// A read of bytes that nobody had written yet when its lane came by.
struct EarlyRead {
    offset: u32,
    width: u32,
    thread: u32,
    site: Site,
}

/// A static array, or the dynamic one.
struct Array {
    name: &'static str,
    offset: u32,
    bytes: u32,
}

pub(super) struct SharedMemory {
    /// 16-byte cells, so that every offset is as aligned as in the real memory.
    bytes: Vec<u128>,
    written: Vec<bool>,
    cells: Vec<Cell>,
    /// Bytes a cell, as a power of two.
    cell_shift: u32,
    arrays: Vec<Array>,
    static_bytes: u32,
    early: Vec<EarlyRead>,
}

impl SharedMemory {
    pub(super) fn new(dynamic_bytes: u32) -> Self {
        let mut memory = Self {
            bytes: Vec::new(),
            written: Vec::new(),
            cells: Vec::new(),
            cell_shift: 2,
            arrays: Vec::new(),
            static_bytes: 0,
            early: Vec::new(),
        };
        if dynamic_bytes > 0 {
            memory.arrays.push(Array { name: "dynamic shared memory", offset: DYNAMIC, bytes: dynamic_bytes });
            memory.grow(DYNAMIC + dynamic_bytes);
        }
        memory
    }

    /// Forgets everything a block wrote; arrays stay where they are.
    pub(super) fn reset(&mut self) {
        self.bytes.fill(u128::from_ne_bytes([POISON; 16]));
        self.written.fill(false);
        self.early.clear();
    }

    fn grow(&mut self, bytes: u32) {
        let cells = bytes.div_ceil(16) as usize;
        self.bytes.resize(cells, u128::from_ne_bytes([POISON; 16]));
        self.written.resize(16 * cells, false);
        self.cells.resize(cells * (16 >> self.cell_shift), Cell::default());
    }

    pub(super) fn dynamic(&self) -> u32 {
        DYNAMIC
    }

    /// The offset of the static array `name`, placed at the first call.
    pub(super) fn array(&mut self, name: &'static str, bytes: usize) -> Result<u32, String> {
        if let Some(array) = self.arrays.iter().find(|array| array.name == name) {
            return Ok(array.offset);
        }
        let offset = self.static_bytes.next_multiple_of(16);
        let end =
            u32::try_from(bytes).ok().and_then(|bytes| offset.checked_add(bytes)).filter(|end| *end <= STATIC_LIMIT);
        let Some(end) = end else {
            return Err(format!(
                "the array `{name}` of {bytes} bytes takes the block past the {STATIC_LIMIT} bytes of static shared memory"
            ));
        };
        self.arrays.push(Array { name, offset, bytes: end - offset });
        self.static_bytes = end;
        self.grow(end.max(self.bytes.len() as u32 * 16));
        Ok(offset)
    }

    /// The offset of element `index` of `width` bytes from `base` on, or none if it lies outside the array.
    #[inline(always)]
    pub(super) fn resolve(&self, base: u64, index: u64, width: u64) -> Option<u64> {
        let array = self.arrays.iter().find(|array| u64::from(array.offset) == base)?;
        // The index of shared memory has 32 bits: nothing overflows.
        (index * width + width <= array.bytes.into()).then_some(base + index * width)
    }

    /// What an access that `resolve` refuses missed.
    #[cold]
    pub(super) fn missed(&self, base: u64, index: u64, width: u64) -> String {
        let Some(array) = self.arrays.iter().find(|array| u64::from(array.offset) == base) else {
            return "dynamic shared memory, of which the launch gives the block none".into();
        };
        let elements = u64::from(array.bytes) / width;
        format!("element {index} of `{}`, which has {elements} of {width} bytes", array.name)
    }

    /// The name of the array that an offset lies in, and the offset within it.
    pub(super) fn name(&self, offset: u64) -> (&'static str, u64) {
        let array = self.arrays.iter().find(|array| (offset.wrapping_sub(array.offset.into())) < array.bytes.into());
        array.map_or(("shared memory", offset), |array| (array.name, offset - u64::from(array.offset)))
    }

    /// Copies from shared memory to `value`, and notes a read of what nobody wrote.
    ///
    /// # Safety
    /// `offset` comes from [`SharedMemory::resolve`] for `width`; `value` has room for as many bytes.
    #[inline(always)]
    pub(super) unsafe fn load(&mut self, offset: u64, width: usize, value: *mut u8, thread: u32, site: Site) {
        let range = offset as usize..offset as usize + width;
        // SAFETY: the range lies in the memory.
        unsafe { copy(self.bytes.as_ptr().cast::<u8>().add(range.start), value, width) };
        if !all_written(&self.written[range]) {
            self.note_early(EarlyRead { offset: offset as u32, width: width as u32, thread, site });
        }
    }

    #[cold]
    fn note_early(&mut self, read: EarlyRead) {
        if self.early.len() < 256 {
            self.early.push(read);
        }
    }

    /// Copies from `value` to shared memory.
    ///
    /// # Safety
    /// As [`SharedMemory::load`].
    #[inline(always)]
    pub(super) unsafe fn store(&mut self, offset: u64, width: usize, value: *const u8) {
        let range = offset as usize..offset as usize + width;
        // SAFETY: the range lies in the memory.
        unsafe { copy(value, self.bytes.as_mut_ptr().cast::<u8>().add(range.start), width) };
        match &mut self.written[range] {
            // One store for a word, not a call.
            [a, b, c, d] => (*a, *b, *c, *d) = (true, true, true, true),
            bytes => bytes.fill(true),
        }
    }

    /// Enters a request into the record; returns the first race it takes part in.
    pub(super) fn touch(&mut self, request: &Request, first_thread: u32, epoch: Epoch) -> Option<Race> {
        let mut race = None;
        let width = request.site.width() as u32;
        if width < 1 << self.cell_shift {
            // Narrower than a cell: each cell's record is handed down to its parts.
            let parts = (1 << self.cell_shift) / width as usize;
            self.cells = self.cells.iter().flat_map(|cell| std::iter::repeat_n(*cell, parts)).collect();
            self.cell_shift = width.trailing_zeros();
        }
        let shift = self.cell_shift;
        let writes = request.site.operation() != Operation::Load;
        let mut lanes = request.mask;
        while lanes != 0 {
            let lane = lanes.trailing_zeros();
            lanes &= lanes - 1;
            let offset = request.addresses[lane as usize] as u32;
            let touch = Touch { thread: first_thread + lane, epoch, site: request.site };
            for cell in &mut self.cells[(offset >> shift) as usize..=((offset + width - 1) >> shift) as usize] {
                let other = if writes { cell.write(touch) } else { cell.read(touch) };
                if let (Some(other), None) = (other, &race) {
                    race =
                        Some(Race { offset, earlier: other.site, earlier_thread: other.thread, thread: touch.thread });
                }
            }
        }
        race
    }

    /// The reads since the last barrier of what nobody has written even now. (Where somebody has, it is a race.)
    pub(super) fn take_uninitialized(&mut self) -> Vec<(u64, u32, Site)> {
        let early = std::mem::take(&mut self.early);
        let still = early.iter().filter(|read| {
            let range = read.offset as usize..(read.offset + read.width) as usize;
            !all_written(&self.written[range])
        });
        still.map(|read| (read.offset.into(), read.thread, read.site)).collect()
    }
}

/// Copies a value of `width` bytes.
///
/// # Safety
/// As `copy_nonoverlapping` of bytes.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, width: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            _ => std::ptr::copy_nonoverlapping(from, to, width),
        }
    }
}

#[inline(always)]
fn all_written(bytes: &[bool]) -> bool {
    match bytes {
        // One comparison for a word.
        [a, b, c, d] => a & b & c & d,
        _ => bytes.iter().all(|written| *written),
    }
}

impl Cell {
    /// Records a write; returns an access that it races with.
    fn write(&mut self, touch: Touch) -> Option<Touch> {
        let racing = |other: &Touch| other.races_with(touch.thread, touch.epoch);
        let found = [self.write, self.reads[0], self.reads[1]].into_iter().find(racing);
        self.write = touch;
        found
    }

    /// Records a read; returns a write that it races with.
    fn read(&mut self, touch: Touch) -> Option<Touch> {
        let [first, second] = &mut self.reads;
        let other = first.epoch.block == touch.epoch.block && first.thread != touch.thread;
        *if other { second } else { first } = touch;
        Some(self.write).filter(|write| write.races_with(touch.thread, touch.epoch))
    }
}

/// Two accesses that race: the earlier one in the order of the simulation, and the thread of the later one.
pub(super) struct Race {
    pub(super) offset: u32,
    pub(super) earlier: Site,
    pub(super) earlier_thread: u32,
    pub(super) thread: u32,
}

impl Race {
    /// The report of it: `later` is the site of the later access, `thread_idx` names a thread of the block.
    pub(super) fn finding(
        &self,
        memory: &SharedMemory,
        later: Site,
        block: [u32; 3],
        thread_idx: impl Fn(u32) -> [u32; 3],
    ) -> Finding {
        let (name, offset) = memory.name(self.offset.into());
        let verb = |site: Site| match site.operation() {
            Operation::Load => "reads",
            Operation::Store => "writes",
            Operation::Atomic => "adds to",
        };
        let other = super::finding::triple(thread_idx(self.earlier_thread));
        Finding {
            kind: Kind::Race,
            at: Some(Position::from(later.at())),
            other: Some(Position::from(self.earlier.at())),
            block,
            thread: thread_idx(self.thread),
            detail: format!(
                "a thread {} byte {offset} of `{name}`, which thread {other} {}, and no barrier orders the two",
                verb(later),
                verb(self.earlier),
            ),
        }
    }
}
