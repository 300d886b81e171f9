//! The L2 and the memory of a chip, as a launch is replayed on them.

use super::cache::{self, Cache, NEIGHBOURS, SPREAD, Such, mixed, share};
use super::chip::{Chip, Constants};
use super::{Busy, Traffic};
use engine::coalesce::{LINE, SECTOR};
use engine::trace::Line;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Lines that no buffer has.
const LINES_OF_OTHERS: u64 = 1 << 56;

/// All sectors of a line.
const WHOLE: u8 = 0b1111;

/// The L2 and the memory behind it.
pub(super) struct Memory {
    constants: Constants,
    /// The partitions of the L2. A line of memory belongs to one; a multiprocessor goes to the one that it is at, which holds what
    /// it got from another as well.
    l2: Vec<Cache>,
    /// When each slice of each partition has done what it took, and when all would have if that were shared equally.
    slices: Vec<Vec<f64>>,
    /// When the reads of each cluster of multiprocessors are there that are on their way.
    reads: Vec<BinaryHeap<Reverse<u64>>>,
    /// Those that wait until one of these is.
    waiting: Vec<VecDeque<Waiting>>,
    /// When each slice has done what it took of each cluster, by cluster, partition and slice.
    taken: Vec<Taken>,
    /// When that is done which was asked for last.
    served: f64,
    /// When the last of those reads is there that each queue of each slice of a partition has on its way to others.
    behind: Vec<Vec<f64>>,
    pub(super) l2_free: f64,
    /// When the last of those slices is done that something was asked of since this was 0.
    pub(super) slices_free: f64,
    /// The same of the banks of the memory, those of a channel together.
    banks: Vec<f64>,
    pub(super) dram_free: f64,
    /// When the request came that is served.
    now: f64,
    /// When the last addition is done.
    pub(super) added: f64,
    /// Cycles that the memory was busy lately.
    load: f64,
    /// Regions of memory that it has at hand.
    regions: AtHand,
    /// How many lines are dirty.
    pub(super) dirty_lines: usize,
    /// Reads of each group of multiprocessors that are on their way, by line.
    flying: Vec<[Read; READS]>,
    pub(super) traffic: Traffic,
    /// Sectors read that were written in part.
    pub(super) completed: f64,
    pub(super) busy: Busy,
}

/// Sectors of a line that a multiprocessor of a group is to read.
struct Waiting {
    sm: usize,
    group: usize,
    number: u64,
    wanted: u8,
}

/// Sectors of a line on their way to so many multiprocessors, when the last of them arrives, and until when others of the group can
/// have them come along.
#[derive(Clone, Copy, Default)]
struct Read {
    number: u64,
    sectors: u8,
    readers: usize,
    arrives: f64,
    open: f64,
}

/// Queues of a slice of the L2 for reads of lines of another partition, none of which overtakes another, whether the slice has the line
/// or not: by the probe `overtaking`.
const QUEUES: usize = 2;

/// Lines of a piece of memory that belongs to one channel.
const OF_A_CHANNEL: u64 = 2;

/// Pieces of a page of memory, of which dirty lines are written together: by the probe `pages`.
const PAGE: u64 = 4;

/// What a page costs for pieces both of whose lines were stored to together, as a share of what it costs for one line of each: by the
/// probe `pages`.
const BOTH_LINES: f64 = 0.5;

/// Banks of a channel, each of which serves what waits for it in order: as many as a pseudo-channel of HBM3 has. What waits for a bank
/// that many wait for comes late, so that the last of many lines does: by the probe `waits`.
const BANKS: usize = 16;

/// Cycles after the L2 has what is read in which reads of a group join those before: by the probe `neighbours`.
const TOGETHER: f64 = 60.0;

/// Places for reads of a group: two of lines that share one are not both known. With more of them the rows of an embedding
/// that lanes read one by one would come from the L2 less often than an H200 counts.
const READS: usize = 1 << 9;

impl Memory {
    pub(super) fn new(chip: &Chip, constants: Constants) -> Self {
        let bytes = (L2_SHARE * (chip.l2_bytes / chip.l2_partitions) as f64) as u64;
        let clusters = constants.groups * CLUSTERS_OF_A_GROUP;
        Self {
            constants,
            l2: (0..chip.l2_partitions).map(|_| Cache::new(bytes, chip.l2_partitions)).collect(),
            slices: vec![vec![0.0; chip.dram_channels]; chip.l2_partitions as usize],
            reads: vec![BinaryHeap::new(); clusters],
            waiting: (0..clusters).map(|_| VecDeque::new()).collect(),
            taken: vec![Taken::default(); clusters * chip.dram_channels * chip.l2_partitions as usize],
            served: 0.0,
            behind: vec![vec![0.0; chip.dram_channels * QUEUES]; chip.l2_partitions as usize],
            l2_free: 0.0,
            slices_free: 0.0,
            banks: vec![0.0; chip.dram_channels * BANKS],
            dram_free: 0.0,
            now: 0.0,
            added: 0.0,
            load: 0.0,
            regions: AtHand::new(constants.region_lines, constants.lines_at_hand),
            dirty_lines: 0,
            flying: vec![[Read::default(); READS]; constants.groups],
            traffic: Traffic::default(),
            completed: 0.0,
            busy: Busy::default(),
        }
    }

    /// As a flush leaves it that wrote to as many lines as the L2 has.
    pub(super) fn flushed(chip: &Chip, constants: Constants) -> Self {
        let mut before = Self::new(chip, constants);
        for i in 0..chip.l2_bytes / LINE {
            let line = Line { number: LINES_OF_OTHERS + i, bytes: [SECTOR as u8; 4] };
            before.write(i as usize, &line, WHOLE, 0.0);
        }
        let Self { l2, dirty_lines, .. } = before;
        Self { l2, dirty_lines, ..Self::new(chip, constants) }
    }

    /// What is looked at first of a line: see [`Cache::glance`].
    pub(super) fn glance(&self, number: u64) -> u32 {
        self.l2.iter().fold(0, |all, partition| all ^ partition.glance(number))
    }

    /// Takes the slice of a partition of the L2 that a line belongs to for a request of so many of its sectors, and says when that
    /// is done. All slices together would take so many cycles for it at least.
    fn take_l2(&mut self, partition: usize, number: u64, sectors: u8, cycles: f64) -> f64 {
        let cycles = (f64::from(sectors.count_ones()) / self.constants.l2_sectors).max(cycles);
        self.busy.l2 += cycles;
        self.l2_free = self.now.max(self.l2_free) + cycles;
        let (channel, all) = (self.channel(number), self.slices.len() * self.slices[partition].len());
        let free = &mut self.slices[partition][channel];
        *free = self.now.max(*free) + cycles * all as f64;
        self.slices_free = self.slices_free.max(*free);
        *free
    }

    /// Reads sectors of a line for a multiprocessor of a cluster and a group, once the slice has room for another of its requests. Says when
    /// it is sent, and when they arrive. That is not known yet if the cluster has no room for another read on its way: then it waits
    /// ([`send_next`](Self::send_next)), and nothing else does.
    pub(super) fn read_for(
        &mut self,
        cluster: usize,
        group: usize,
        sm: usize,
        number: u64,
        wanted: u8,
        at: f64,
    ) -> (f64, Option<f64>) {
        if self.waiting[cluster].is_empty() && self.has_room(cluster, at) {
            let (sent, arrives) = self.send(cluster, group, number, wanted, at);
            return (sent, Some(arrives));
        }
        self.waiting[cluster].push_back(Waiting { sm, group, number, wanted });
        (at, None)
    }

    /// When a cluster has room for the first of its reads that wait, if one does.
    pub(super) fn next_send(&self, cluster: usize) -> Option<f64> {
        let first = self.reads[cluster].peek().filter(|_| !self.waiting[cluster].is_empty());
        first.map(|Reverse(first)| f64::from_bits(*first))
    }

    /// Sends the first of the reads of a cluster that wait, if there is room, and says for which multiprocessor, of which line and when that
    /// arrives.
    pub(super) fn send_next(&mut self, cluster: usize, now: f64) -> Option<(usize, u64, f64)> {
        if !self.has_room(cluster, now) {
            return None;
        }
        let Waiting { sm, group, number, wanted } = self.waiting[cluster].pop_front()?;
        let (_, arrives) = self.send(cluster, group, number, wanted, now);
        Some((sm, number, arrives))
    }

    /// Whether a cluster has room for another read on its way.
    fn has_room(&mut self, cluster: usize, at: f64) -> bool {
        let reads = &mut self.reads[cluster];
        while reads.peek().is_some_and(|Reverse(first)| f64::from_bits(*first) <= at) {
            reads.pop();
        }
        reads.len() < READS_OF_A_CLUSTER
    }

    /// Reads what a cluster has room for, once the slice has, and says when it is sent, and when it arrives.
    fn send(&mut self, cluster: usize, group: usize, number: u64, wanted: u8, at: f64) -> (f64, f64) {
        let queue = self.queue(cluster, self.near(group), number);
        let sent = self.room(queue, at);
        let arrives = self.read(group, number, wanted, sent);
        self.take_room(queue, sent);
        self.reads[cluster].push(Reverse(arrives.to_bits()));
        (sent, arrives)
    }

    /// Writes to a line for a multiprocessor of a cluster and a group, once the slice has room for another request of the cluster, and says
    /// when that is.
    pub(super) fn write_for(&mut self, cluster: usize, group: usize, line: &Line, alone: u8, at: f64) -> f64 {
        let queue = self.queue(cluster, self.home(line.number), line.number);
        let sent = if alone != 0 { self.room(queue, at) } else { at };
        self.write(group, line, alone, sent);
        if alone != 0 {
            self.take_room(queue, sent);
        }
        sent
    }

    /// The place in `taken` of a cluster's requests for lines like this, in a partition.
    fn queue(&self, cluster: usize, partition: usize, number: u64) -> usize {
        let slices = self.slices[partition].len();
        (cluster * self.slices.len() + partition) * slices + self.channel(number)
    }

    /// When a slice has room for another request of a cluster, from `at` on.
    fn room(&mut self, queue: usize, at: f64) -> f64 {
        self.taken[queue].room(at)
    }

    /// Has the request that was sent then take up room until it is served, if a slice had to.
    fn take_room(&mut self, queue: usize, sent: f64) {
        if self.served > sent {
            self.taken[queue].add(self.served);
        }
    }

    /// The channel of the memory that a line belongs to, and the slice of a partition of the L2. Pieces that follow one another
    /// belong to one after another, as many as there are; to which the first of them does is as if at random.
    fn channel(&self, number: u64) -> usize {
        one_after_another(number / OF_A_CHANNEL, self.channels()) as usize
    }

    /// The bank of the memory that a line belongs to. Pieces of a channel that follow one another belong to its banks as those of
    /// memory do to the channels.
    fn bank(&self, number: u64) -> usize {
        let (next, of) = (number / OF_A_CHANNEL / self.channels(), BANKS as u64);
        let epoch = (self.now / EPOCH) as u64;
        self.channel(number) * BANKS + (next.wrapping_add(mixed((next / of) ^ (epoch << 40))) % of) as usize
    }

    /// The lines of the page of memory that a line belongs to: one each of pieces of a channel that follow one another, which of them is as
    /// if at random.
    fn page(&self, number: u64) -> [u64; PAGE as usize] {
        let (of, channel, turn) =
            (self.channels(), self.channel(number) as u64, number / OF_A_CHANNEL / self.channels());
        let line = |turn: u64| mixed(turn * of + channel) % OF_A_CHANNEL;
        let which = number + line(turn);
        std::array::from_fn(|i| {
            let turn = turn / PAGE * PAGE + i as u64;
            let piece = turn * of + (channel + of - one_after_another(turn * of, of)) % of;
            piece * OF_A_CHANNEL + (which + line(turn)) % OF_A_CHANNEL
        })
    }

    fn channels(&self) -> u64 {
        (self.banks.len() / BANKS) as u64
    }

    /// Reads sectors of a line for a multiprocessor of a group, and says when they are there. Those that the L2 has not sent yet to
    /// others of the group come with them.
    pub(super) fn read(&mut self, group: usize, number: u64, wanted: u8, sent: f64) -> f64 {
        let place = (hash(number) >> 32) as usize % READS;
        let mut known = self.flying[group][place];
        if known.number != number || known.open <= sent || known.readers == self.constants.coalesced {
            known = Read { number, ..Read::default() };
        }
        let lacks = wanted & !known.sectors;
        self.now = sent;
        self.served = sent;
        if lacks != 0 {
            let served = self.take_l2(self.near(group), number, lacks, 0.0);
            self.served = served;
            self.traffic.l2_reads += f64::from(lacks.count_ones());
            let there = self.fetch(self.near(group), number, lacks, served);
            let way = if there > served { self.constants.way_from_memory } else { self.constants.way_from_l2 };
            let arrives = there + self.constants.latency_l2 + way * self.way(number, group);
            known.open = known.open.max(there + TOGETHER);
            known.arrives = known.arrives.max(arrives);
        }
        self.flying[group][place] = Read { sectors: known.sectors | lacks, readers: known.readers + 1, ..known };
        known.arrives
    }

    /// Adds to sectors of a line, in the L2, once what was added to it before is done.
    pub(super) fn add(&mut self, number: u64, touched: u8, sent: f64) {
        let cycles = self.constants.l2_store + f64::from(touched.count_ones()) * self.constants.l2_partial;
        let home = self.home(number);
        self.now = sent;
        let served = self.take_l2(home, number, touched, cycles);
        self.traffic.l2_writes += f64::from(touched.count_ones());
        self.fetch(home, number, touched, served);
        if let Some(mut known) = self.l2[home].peek(number) {
            known.added = served.max(known.ready).max(known.added) + self.constants.addition;
            self.added = self.added.max(known.added);
        }
        self.soil(number, touched, DIRTY_IN_PART);
    }

    /// Writes to a line from a group of multiprocessors: to some of its sectors `alone`, to others together with an earlier
    /// store. Whole sectors that go to another partition of the L2 are left in that of the group as well; parts of sectors are
    /// taken not to be.
    pub(super) fn write(&mut self, group: usize, line: &Line, alone: u8, sent: f64) {
        let partial = (0..4).filter(|sector| alone >> sector & 1 == 1 && line.bytes[*sector] < SECTOR as u8).count();
        let cycles = self.constants.l2_store + partial as f64 * self.constants.l2_partial;
        let [home, near] = [self.home(line.number), self.near(group)];
        self.now = sent;
        self.served = sent;
        if alone != 0 {
            self.served = self.take_l2(home, line.number, alone, cycles);
        }
        self.traffic.l2_writes += f64::from(alone.count_ones());
        let most = match (self.write_at(home, line), partial) {
            (true, _) => DIRTY_OF_COMING,
            (false, 0) => DIRTY_WHOLE,
            (false, _) => DIRTY_IN_PART,
        };
        if near != home && line.bytes.iter().all(|bytes| bytes % SECTOR as u8 == 0) {
            self.write_at(near, line);
        }
        self.soil(line.number, sectors(line), most);
    }

    /// Has a partition of the L2 hold what is written to a line, and says whether it comes for that.
    fn write_at(&mut self, partition: usize, line: &Line) -> bool {
        let now = self.now;
        let (mut known, was_here, gone) = self.l2[partition].touch(line.number);
        known.stored(now);
        for sector in 0..4 {
            known.written[sector] = known.written[sector].saturating_add(line.bytes[sector]).min(SECTOR as u8);
            known.valid |= u8::from(known.written[sector] == SECTOR as u8) << sector;
        }
        drop(known);
        self.evict(gone);
        !was_here
    }

    /// Sees to it that sectors are in a partition of the L2, and says when they are.
    fn fetch(&mut self, partition: usize, number: u64, wanted: u8, at: f64) -> f64 {
        let home = self.home(number);
        let mut ready = at;
        let mut lacks = wanted;
        if partition != home {
            let (mut known, _, gone) = self.l2[partition].touch(number);
            (lacks, ready) = (pairs(wanted & !known.valid) & !known.valid, known.ready.max(at));
            known.valid |= lacks;
            drop(known);
            self.evict(gone);
        }
        if lacks != 0 {
            ready = self.fetch_home(partition, home, number, lacks, at);
            if let Some(mut known) = self.l2[partition].peek(number) {
                known.ready = ready;
            }
        }
        if partition != home {
            let queue = self.channel(number) * QUEUES + number as usize % QUEUES;
            let behind = &mut self.behind[partition][queue];
            *behind = behind.max(ready);
            ready = *behind;
        }
        ready
    }

    /// Sees to it that sectors are in the partition of the L2 that they belong to, and says when they are.
    fn fetch_home(&mut self, partition: usize, home: usize, number: u64, wanted: u8, at: f64) -> f64 {
        let (mut known, _, gone) = self.l2[home].touch(number);
        let lacks = pairs(wanted & !known.valid) & !known.valid;
        known.valid |= lacks;
        let mut ready = known.ready.max(at);
        drop(known);
        if lacks != 0 {
            self.traffic.dram_reads += f64::from(lacks.count_ones());
            let begins = self.transfer(number, lacks.count_ones(), at);
            ready = begins + self.constants.latency_dram * self.distance(partition, number) + self.delay(number);
            if let Some(mut known) = self.l2[home].peek(number) {
                known.ready = ready;
            }
        }
        self.evict(gone);
        ready
    }

    /// The partition of the L2 that a line of memory belongs to.
    fn home(&self, number: u64) -> usize {
        let (partitions, block) = (self.l2.len() as u64, number / NEIGHBOURS);
        (block.wrapping_add(mixed(block / partitions)) % partitions) as usize
    }

    /// The partition of the L2 that a group of multiprocessors is at: two in a row are taken to be at the same.
    fn near(&self, group: usize) -> usize {
        group / 2 % self.l2.len()
    }

    /// How far a line of memory is from a partition of the L2, as a factor of the mean: those of its own are near, others far.
    fn distance(&self, partition: usize, number: u64) -> f64 {
        let spread = if self.l2.len() > 1 { self.constants.spread } else { 0.0 };
        1.0 + if self.home(number) == partition { -spread } else { spread }
    }

    /// How long the way of some is to the slice of a line, from -1, the shortest, to 1: as if at random.
    pub(super) fn way(&self, number: u64, of: usize) -> f64 {
        2.0 * share((self.channel(number) * 1024 + of) as u64) - 1.0
    }

    /// Cycles that the memory needs for a line beyond what it mostly does: few lines need any, as if it were refreshed.
    fn delay(&self, number: u64) -> f64 {
        self.constants.late * (1.0 - share(number / NEIGHBOURS) / self.constants.late_share).max(0.0)
    }

    /// Marks sectors of a line as dirty. Of its set, few lines with sectors of which only a part is known stay dirty, and so many in all:
    /// of more, the one touched longest ago is written back.
    fn soil(&mut self, number: u64, touched: u8, most: usize) {
        let home = self.home(number);
        let Some(mut known) = self.l2[home].peek(number) else { return };
        self.dirty_lines += usize::from(known.dirty == 0);
        known.dirty |= touched;
        let in_part = known.is_known_in_part();
        drop(known);
        if in_part && let Some(oldest) = self.l2[home].beyond(number, KNOWN_IN_PART, Such::KnownInPart) {
            self.write_back(home, oldest);
        }
        if let Some(oldest) = self.l2[home].beyond(number, most, Such::Dirty) {
            self.write_back(home, oldest);
        }
    }

    /// Writes a dirty line back, which stays, and is younger than some others.
    fn write_back(&mut self, home: usize, number: u64) {
        self.l2[home].make_younger(number, YOUNGER);
        let Some(mut known) = self.l2[home].peek(number) else { return };
        let written = *known;
        known.page_begun = false;
        known.valid |= known.dirty;
        known.dirty = 0;
        drop(known);
        self.evict(Some(written));
    }

    /// Writes what is dirty of a line that goes; a sector of which only a part was written is read first.
    fn evict(&mut self, gone: Option<cache::Line>) {
        let Some(gone) = gone.filter(|gone| gone.dirty != 0) else { return };
        self.dirty_lines -= 1;
        let (dirty, partial) = (gone.dirty.count_ones(), (gone.dirty & !gone.valid).count_ones());
        self.traffic.dram_reads += f64::from(partial);
        self.traffic.dram_writes += f64::from(dirty);
        self.completed += f64::from(partial);
        self.take_l2(self.home(gone.number), gone.number, 0, f64::from(partial) * self.constants.l2_completion);
        let again = if partial != 0 { self.read_cycles(gone.number, partial) } else { 0.0 };
        let page = if gone.page_begun { 0.0 } else { self.begin_page(&gone) };
        let cycles = again + self.moving_cycles(dirty) + page;
        let begins = self.take_dram(gone.number, cycles, self.now);
        self.served = self.served.max(begins - WRITES_AHEAD);
    }

    /// Begins to write to the page of a line, and says how many cycles the memory takes for that: once for all lines of the page that are
    /// dirty now, and the other of their pieces if they were stored to together. Those are written as soon as they go.
    fn begin_page(&mut self, gone: &cache::Line) -> f64 {
        let (mut pieces, mut of_both) = (0, 0);
        for number in self.page(gone.number) {
            let line = if number == gone.number { Some(*gone) } else { self.begin_along(number, |_| true) };
            let Some(line) = line else { continue };
            let other = number ^ (OF_A_CHANNEL - 1);
            pieces += 1;
            of_both += u32::from(self.begin_along(other, |other| other.is_stored_with(&line)).is_some());
        }
        self.page_cycles(gone.dirty.count_ones(), pieces, of_both)
    }

    /// Has a page be begun for one more of its lines, if that is dirty and `such`, and says which.
    fn begin_along(&mut self, number: u64, such: impl Fn(&cache::Line) -> bool) -> Option<cache::Line> {
        let home = self.home(number);
        let mut known = self.l2[home].peek(number)?;
        let begins = known.dirty != 0 && !known.page_begun && such(&known);
        known.page_begun |= begins;
        begins.then_some(*known)
    }

    /// Cycles that the memory takes to read so many sectors of one line.
    fn read_cycles(&mut self, number: u64, sectors: u32) -> f64 {
        let moving = self.moving_cycles(sectors);
        if self.regions.find(number) { moving } else { at_once(moving, self.constants.dram_read) }
    }

    /// Cycles that the memory takes to write so many sectors each of lines of so many pieces of a page, of both lines of some, beyond those to
    /// move them. If they are of all pieces, there are none: what it takes then is in the time to move them.
    fn page_cycles(&self, sectors: u32, pieces: u32, of_both: u32) -> f64 {
        let moving = self.moving_cycles(sectors);
        let more = at_once(moving, self.constants.dram_write) - moving;
        let (pieces, of_both) = (f64::from(pieces), f64::from(of_both));
        let of_pieces = pieces - of_both * (1.0 - BOTH_LINES);
        of_pieces / pieces * more * (PAGE as f64 - pieces) / (PAGE - 1) as f64
    }

    /// Cycles to move so many sectors of one line.
    fn moving_cycles(&self, sectors: u32) -> f64 {
        f64::from(sectors).max(self.constants.dram_least) * self.constants.dram_sector
    }

    /// Takes the bank of a line, from `at` on, for what all banks together would take so many cycles for, and says when that begins.
    fn take_dram(&mut self, number: u64, cycles: f64, at: f64) -> f64 {
        let idle = (at - self.dram_free).max(0.0);
        self.load = self.load * (-(idle + cycles) / LATELY).exp() + cycles;
        self.busy.dram += cycles;
        self.dram_free = self.dram_free.max(at) + cycles;
        let (bank, all) = (self.bank(number), self.banks.len() as f64);
        let free = &mut self.banks[bank];
        let begins = at.max(*free);
        // What another slice asks for before then does not wait for this.
        *free = self.now.max(*free) + cycles * all;
        begins
    }

    /// Moves sectors of a line from memory, and says when its turn has come.
    fn transfer(&mut self, number: u64, sectors: u32, at: f64) -> f64 {
        let cycles = self.read_cycles(number, sectors);
        let begins = self.take_dram(number, cycles, at);
        // The closer to its full rate, the longer the queues, long before it is reached.
        let share = (self.load / LATELY).min(MOST_LOADED);
        begins + self.constants.dram_queue * share * share / (1.0 - share)
    }
}

/// What takes two things at once that take so long, most of which they do side by side.
fn at_once(one: f64, other: f64) -> f64 {
    one.max(other) + 0.1 * one.min(other)
}

/// Lines of a set of the L2 that may have sectors of which only a part is known.
const KNOWN_IN_PART: usize = 2;

/// Lines of a set that may be dirty when a store has another come, when one writes whole sectors of one that is here, and when one writes
/// parts of sectors: by the probe `in_step`.
const DIRTY_OF_COMING: usize = 7;
const DIRTY_WHOLE: usize = 8;
const DIRTY_IN_PART: usize = 9;

/// Cycles after which other lines than before belong to the same bank: which do matters while they wait, and it is not always the same
/// ones that wait for long (`abreast`).
const EPOCH: f64 = 4000.0;

/// Reads of a cluster that are on their way, beyond which the next waits: each has the same share of an L2 that has enough to do, whatever it
/// has of multiprocessors, by the probe `shares`. That leaves 4000 to 6000 open; the passes of `pattern_random` chose.
const READS_OF_A_CLUSTER: usize = 5000;

/// Requests of a cluster that a slice takes in advance, fitted to `embedding`.
const OF_A_CLUSTER: usize = 60;

/// Requests that a slice of the L2 has taken of a cluster: when each is served, in the order in which they are, in a ring.
#[derive(Clone)]
struct Taken {
    /// When the first and the last of them are.
    first: f64,
    last: f64,
    begin: usize,
    count: usize,
    served: [f64; OF_A_CLUSTER],
}

impl Default for Taken {
    fn default() -> Self {
        Self { first: 0.0, last: 0.0, begin: 0, count: 0, served: [0.0; OF_A_CLUSTER] }
    }
}

impl Taken {
    /// When there is room for another, from `at` on.
    fn room(&mut self, mut at: f64) -> f64 {
        while self.count > 0 {
            if self.first > at {
                if self.count < OF_A_CLUSTER {
                    break;
                }
                at = self.first;
            }
            self.begin = (self.begin + 1) % OF_A_CLUSTER;
            self.count -= 1;
            self.first = self.served[self.begin];
        }
        at
    }

    /// Adds one that is served then, and no sooner than those before it. There is room for it.
    fn add(&mut self, served: f64) {
        self.last = if self.count > 0 { self.last.max(served) } else { served };
        self.first = if self.count > 0 { self.first } else { served };
        self.served[(self.begin + self.count) % OF_A_CLUSTER] = self.last;
        self.count += 1;
    }
}

/// Cycles until a write to memory begins, beyond which the request of the L2 that it goes for counts as one that waits: fitted to
/// `embedding`, of which the oldest blocks get ahead of the others then.
const WRITES_AHEAD: f64 = 3000.0;

/// Clusters of a group of multiprocessors: by the probe `shares` six groups of an H100 have a cluster of two pairs beside two of three, the
/// other two have three of three.
pub(super) const CLUSTERS_OF_A_GROUP: usize = 3;

/// The share of the L2 that has room for lines, fitted to `embedding`: by `in_step` it is rather more.
const L2_SHARE: f64 = 0.97;

/// Lines of a set that are younger than one that is written back, at most: fitted to `embedding`, of whose small tables fewer lines stay
/// if it is as young as if it were touched, and more if it is as old as it was.
const YOUNGER: usize = 10;

/// Cycles over which the load of the memory is averaged.
const LATELY: f64 = 4000.0;

/// Pieces of memory, of so many lines each, that a line was moved of not long ago.
struct AtHand {
    lines: u64,
    pieces: Vec<u64>,
}

impl AtHand {
    fn new(lines: u64, at_hand: u64) -> Self {
        Self { lines, pieces: vec![u64::MAX; (at_hand / lines) as usize] }
    }

    /// Whether the piece that a line belongs to is at hand. It is from now on.
    fn find(&mut self, number: u64) -> bool {
        let piece = number / self.lines;
        let place = (hash(piece) >> 32) as usize % self.pieces.len();
        std::mem::replace(&mut self.pieces[place], piece) == piece
    }
}

/// The queue grows no longer than at this share of the full rate: what is beyond waits for its turn anyway.
const MOST_LOADED: f64 = 0.75;

/// Which of so many comes next: one after another, each once in turn, from any one on.
fn one_after_another(next: u64, of: u64) -> u64 {
    next.wrapping_add(mixed(next / of)) % of
}

/// Spreads the bits of a number.
fn hash(number: u64) -> u64 {
    number.wrapping_mul(SPREAD)
}

/// The sectors of a line that are asked for.
pub(super) fn sectors(line: &Line) -> u8 {
    (0..4).filter(|sector| line.bytes[*sector] != 0).fold(0, |mask, sector| mask | 1 << sector)
}

/// The pairs of sectors that any of these belongs to: memory is read 64 bytes at a time.
fn pairs(sectors: u8) -> u8 {
    let either = (sectors | sectors >> 1) & 0b0101;
    either | either << 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu::suite::noise;

    fn h200() -> (Constants, Memory) {
        let chip = Chip::load("h200").expect("is built in");
        let constants = Constants::of(&chip);
        (constants, Memory::new(&chip, constants))
    }

    #[test]
    fn a_slice_takes_so_many_requests_of_a_cluster_and_another_once_the_first_is_served() {
        let mut taken = Taken::default();
        for round in 0..3 {
            let begin = 1e3 * f64::from(round);
            for i in 1..=OF_A_CLUSTER {
                assert_eq!(taken.room(begin), begin, "number {i} of round {round}");
                // None is served before the one that came before it.
                taken.add(begin + if i % 2 == 1 { i as f64 } else { 0.0 });
            }
            assert_eq!(taken.room(begin), begin + 1.0, "it is full until the first two are served");
            assert_eq!(taken.count, OF_A_CLUSTER - 2);
            taken.add(begin + 100.0);
            assert_eq!((taken.room(begin + 1.0), taken.count), (begin + 1.0, OF_A_CLUSTER - 1));
            assert_eq!((taken.room(begin + 99.0), taken.count), (begin + 99.0, 1));
        }
        assert_eq!((taken.room(1e4), taken.count), (1e4, 0));
    }

    #[test]
    fn up_to_four_reads_of_neighbours_on_their_way_are_one_to_the_l2() {
        let (constants, mut memory) = h200();
        assert_eq!((constants.groups, constants.coalesced), (8, 4));
        let first = memory.read(0, 7, 0b0011, 0.0);
        assert_eq!(memory.read(0, 7, 0b0001, 1.0), first, "it comes with the first");
        let third = memory.read(0, 7, 0b0110, 2.0);
        assert!(third >= first);
        assert_eq!(memory.traffic.l2_reads, 3.0, "one sector was not on its way");
        assert_eq!(memory.read(0, 7, 0b0111, 3.0), third);
        assert_eq!(memory.traffic.l2_reads, 3.0);
        memory.read(0, 7, 0b0111, 4.0);
        assert_eq!(memory.traffic.l2_reads, 6.0, "the fifth goes by itself");
        memory.read(1, 7, 0b0111, 5.0);
        assert_eq!(memory.traffic.l2_reads, 9.0, "another group");
        let arrived = memory.read(1, 7, 0b0111, 1e6);
        assert_eq!((memory.traffic.l2_reads, arrived > 1e6), (12.0, true), "the one before is no longer on its way");
        assert_eq!(memory.traffic.dram_reads, 4.0, "memory reads pairs of sectors, once");
    }

    /// What the probe `neighbours` counted on an H200: for how many of two reads of the same sectors, one of which comes so many cycles
    /// later, the L2 is asked once.
    #[test]
    fn reads_of_neighbours_join_until_the_l2_has_sent_what_they_read() {
        const READS: u64 = 4096;
        let joined = |later: f64, known: bool| {
            let (_, mut memory) = h200();
            let joins = (0..READS).filter(|number| {
                let (number, at) = (33 * number, 1e5 * (1 + number) as f64);
                if known {
                    memory.read(0, number, 1, at - 5e4);
                }
                memory.read(0, number, 1, at);
                let before = memory.traffic.l2_reads;
                memory.read(0, number, 1, at + later);
                memory.traffic.l2_reads == before
            });
            joins.count() as f64 / READS as f64
        };
        for (later, known, measured) in [
            (20.0, true, 1.0),
            (100.0, true, 0.0),
            (200.0, false, 1.0),
            (400.0, false, 0.55),
            (500.0, false, 0.45),
            (600.0, false, 0.16),
            (1000.0, false, 0.02),
        ] {
            let predicted = joined(later, known);
            let error = (predicted - measured).abs();
            assert!(error < 0.35, "{later} cycles later, known {known}: {predicted:.2} for {measured}");
        }
    }

    /// What the probe `ways` measured on an H200: the variance, by groups on one side, of the cycles that reads of a line take. That is
    /// the covariance within groups less that of others.
    #[test]
    fn ways_differ_more_where_memory_has_what_is_read() {
        const LINES: u64 = 128;
        let chip = Chip { l2_bytes: 60 << 12, ..Chip::load("h200").expect("is built in") };
        let constants = Constants::of(&chip);
        for (known, measured) in [(true, 30.0), (false, 330.0)] {
            let mut variance = 0.0;
            for line in 0..LINES {
                let took = [0, 1, 4, 5].map(|group| {
                    let (number, mut memory) = (33 * line, Memory::new(&chip, constants));
                    if known {
                        memory.read(group, number, 1, 0.0);
                    }
                    memory.read(group, number, 1, 1e5) - 1e5
                });
                let mean = took.iter().sum::<f64>() / 4.0;
                variance += took.iter().map(|cycles| (cycles - mean).powi(2)).sum::<f64>() / 3.0 / LINES as f64;
            }
            assert!((variance / measured - 1.0).abs() < 0.2, "known {known}: {variance:.0} for {measured}");
        }
    }

    /// What the probe `partitions` counted on an H200, whose L2 is sixteen times as large: the share of the sectors read that comes
    /// from memory.
    #[test]
    fn what_both_partitions_of_the_l2_read_is_in_both() {
        let chip = Chip { l2_bytes: 60 << 16, ..Chip::load("h200").expect("is built in") };
        let constants = Constants::of(&chip);
        let from_memory = |sixteenths: u64, own: bool, stores: bool| {
            let mut memory = Memory::new(&chip, constants);
            let (lines, mut at) = (sixteenths << 9, 0.0);
            let whole = |number| Line { number, bytes: [SECTOR as u8; 4] };
            for i in 0..16 * lines {
                let (sm, drawn) = ((noise(2 * i) as usize) % 128, noise(2 * i + 1) as u64);
                let number = if own { sm as u64 * (lines / 128) + drawn % (lines / 128) } else { drawn % lines };
                at += 1e4;
                memory.read(sm * constants.groups / 132, number, WHOLE, at);
                if stores {
                    memory.write(sm * constants.groups / 132, &whole((1 << 33) + i), WHOLE, at);
                }
            }
            memory.traffic.dram_reads / (64 * lines) as f64
        };
        for (mebibytes, own, stores, measured) in [
            (24, false, false, 0.0626),
            (32, false, false, 0.0929),
            (40, false, false, 0.1890),
            (64, false, false, 0.4331),
            (40, true, false, 0.0629),
            (48, true, false, 0.0695),
            (64, true, false, 0.2866),
            (8, false, true, 0.1211),
            (16, false, true, 0.2964),
            (32, false, true, 0.5473),
        ] {
            let predicted = from_memory(mebibytes, own, stores);
            let error = predicted / measured - 1.0;
            assert!(error.abs() < 0.13, "{mebibytes} MiB, own {own}, stores {stores}: {predicted:.4} for {measured}");
        }
    }

    /// What `in_step` of `counted.cu` counted on an H200, whose L2 is sixteen times as large: how many sectors are read and written back
    /// for each line that is loaded from or stored to, of so many twelfths of 50 MiB that every multiprocessor comes back to in step with
    /// all others, sixteen times.
    #[test]
    fn the_lines_of_the_l2_touched_last_stay() {
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Access {
            Load,
            Part,
            Whole,
        }
        use Access::*;
        let chip = Chip { l2_bytes: 60 << 16, ..Chip::load("h200").expect("is built in") };
        let constants = Constants::of(&chip);
        let step = 132 * 16;
        let moved = |what: Access, apart: u64, round: u64| {
            let (mut memory, mut at) = (Memory::new(&chip, constants), 0.0);
            for (i, thread) in (0..16 * round).flat_map(|i| (0..step).map(move |thread| (i, thread))) {
                let (number, group) =
                    ((i % round * step + thread) * apart, thread as usize / 16 * constants.groups / 132);
                at += 1e4;
                match what {
                    Load => _ = memory.read(group, number, 1, at),
                    Part => memory.write(group, &Line { number, bytes: [4, 0, 0, 0] }, 1, at),
                    Whole => memory.write(group, &Line { number, bytes: [SECTOR as u8; 4] }, WHOLE, at),
                }
            }
            [memory.traffic.dram_reads, memory.traffic.dram_writes].map(|sectors| sectors / (16 * round * step) as f64)
        };
        for (what, apart, round, measured) in [
            (Load, 1, 8, [0.125, 0.0]),
            (Load, 1, 10, [0.284, 0.0]),
            (Load, 1, 11, [1.016, 0.0]),
            (Load, 1, 12, [1.917, 0.0]),
            (Load, 4, 8, [0.217, 0.0]),
            (Load, 4, 12, [1.566, 0.0]),
            (Load, 4, 16, [1.986, 0.0]),
            (Part, 1, 6, [0.048, 0.043]),
            (Part, 1, 8, [0.052, 0.343]),
            (Part, 1, 10, [0.061, 0.908]),
            (Part, 1, 13, [0.063, 0.964]),
            (Part, 1, 14, [0.340, 0.971]),
            (Part, 1, 16, [0.942, 0.983]),
            (Part, 4, 6, [0.049, 0.160]),
            (Part, 4, 8, [0.056, 0.494]),
            (Part, 4, 12, [0.246, 0.923]),
            (Part, 4, 16, [0.758, 0.981]),
            (Whole, 1, 6, [0.0, 0.017]),
            (Whole, 1, 8, [0.0, 2.569]),
            (Whole, 1, 10, [0.0, 3.828]),
            (Whole, 4, 6, [0.0, 0.785]),
            (Whole, 4, 8, [0.0, 2.373]),
            (Whole, 4, 12, [0.0, 3.777]),
        ] {
            let predicted = moved(what, apart, round);
            // Of lines that are loaded two sectors are read each, of those that are stored to whole four written.
            let of_lines = [if what == Load { 2.0 } else { 1.0 }, if what == Whole { 4.0 } else { 1.0 }];
            for (i, sectors) in of_lines.into_iter().enumerate() {
                let error = (predicted[i] - measured[i]).abs() / sectors;
                assert!(error < 0.27, "{what:?}, every {apart}., {round} steps: {predicted:.3?} for {measured:.3?}");
            }
        }
    }

    /// What the probe `write_backs` counted on an H200, whose L2 is sixteen times as large: the shares of the sectors stored to that
    /// are read, or written back, before the end.
    #[test]
    fn few_lines_stay_known_in_part_and_not_all_stay_dirty() {
        let chip = Chip { l2_bytes: 60 << 16, ..Chip::load("h200").expect("is built in") };
        let shares = |bytes: u8, sixteenths: u64| {
            let mut memory = Memory::new(&chip, Constants::of(&chip));
            let lines = sixteenths << 9;
            for number in 0..lines {
                memory.write(number as usize, &Line { number, bytes: [bytes; 4] }, WHOLE, 0.0);
            }
            [memory.traffic.dram_reads, memory.traffic.dram_writes].map(|moved| moved / (4 * lines) as f64)
        };
        for (mebibytes, read) in [(8, 0.0589), (16, 0.5128), (24, 0.7870), (32, 0.8103), (64, 0.8944), (256, 0.9727)] {
            let [predicted, _] = shares(4, mebibytes);
            assert!(
                (predicted - read).abs() < 0.1,
                "4 bytes a sector, {mebibytes} MiB: {predicted:.4} for {read} read"
            );
        }
        for (mebibytes, written) in
            [(16, 0.0001), (24, 0.0250), (28, 0.0870), (32, 0.1867), (64, 0.6025), (256, 0.8997)]
        {
            let [read, predicted] = shares(32, mebibytes);
            let error = (predicted - written).abs();
            assert!(error < 0.03, "whole sectors, {mebibytes} MiB: {predicted:.4} for {written} written");
            assert_eq!(read, 0.0, "whole sectors, {mebibytes} MiB");
        }
    }

    /// What the probe `flushes` measured: how many microseconds longer a sector of each line takes to read after 256 MiB were written than
    /// once these were read, in the mean of 128 MiB to 1 GiB.
    #[test]
    fn what_a_flush_wrote_is_written_back() {
        for (name, measured) in [("h200", 8.1), ("h100-sxm", 9.7)] {
            let chip = Chip::load(name).expect("is built in");
            let constants = Constants::of(&chip);
            let microseconds = |mut memory: Memory| {
                for number in 0..(256 << 20) / LINE {
                    memory.read(number as usize / 4 % constants.groups, number, 1, 0.0);
                }
                memory.dram_free / chip.clock_ghz / 1e3
            };
            let [dirty, clean] = [Memory::flushed, Memory::new].map(|l2| microseconds(l2(&chip, constants)));
            let error = (dirty - clean) / measured - 1.0;
            assert!(error.abs() < 0.25, "{name}: {:.1} for {measured}", dirty - clean);
        }
    }

    /// What the probe `pages` measured, where all is 64 times as large: how much longer it takes to move 1 GiB, window by window, of each
    /// first every so manieth piece of so many lines, than one line after another.
    #[test]
    fn lines_that_lie_apart_cost_the_memory_more() {
        const LINES: u64 = (1 << 24) / LINE;
        /// In which the memory moves 64 lines.
        const CYCLES: f64 = 4.0;
        let cycles = |name: &str, lines: u64, every: u64, window: u64, stores: bool| {
            let chip = Chip::load(name).expect("is built in");
            let constants = Constants::of(&chip);
            let constants = Constants { lines_at_hand: constants.lines_at_hand / 64, ..constants };
            let mut memory = Memory::new(&Chip { l2_bytes: chip.l2_bytes / 64, ..chip }, constants);
            for moved in 0..LINES {
                let (first, turn, sweep) = (moved / window * window, moved % window / lines, window / lines / every);
                let number = first + (turn % sweep * every + turn / sweep) * lines + moved % lines;
                let at = CYCLES * moved as f64;
                if stores {
                    memory.write(0, &Line { number, bytes: [SECTOR as u8; 4] }, WHOLE, at);
                } else {
                    memory.read(moved as usize / 4 % 2, number, WHOLE, at);
                }
            }
            memory.busy.dram / (memory.traffic.dram_reads + memory.traffic.dram_writes)
        };
        let check = |name, [lines, every, window]: [u64; 3], stores, measured: f64, within| {
            let predicted = cycles(name, lines, every, window, stores) / cycles(name, 1, 1, LINES, stores);
            let error = (predicted - measured).abs();
            let case = format!("{name}, every {every}. {lines} lines of {window}, stores {stores}");
            assert!(error < within, "{case}: {predicted:.3} for {measured}");
        };
        for (every, measured) in [(2, 1.00), (4, 1.02), (8, 1.07), (32, 1.10)] {
            check("h200", [1, every, LINES], false, measured, 0.1);
        }
        for (pieces, h200, h100) in [
            ([1, 2, LINES], 1.17, 1.04),
            ([1, 4, LINES], 1.30, 1.08),
            ([1, 8, LINES], 1.31, 1.11),
            ([1, 32, LINES], 1.40, 1.15),
            ([1, 256, LINES], 1.31, 1.14),
            ([2, 2, LINES], 1.02, 1.01),
            ([2, 8, LINES], 1.08, 1.02),
            ([2, 32, LINES], 1.07, 1.04),
            ([2, 256, LINES], 1.09, 1.02),
            ([1, 4, 1 << 10], 1.05, 1.01),
            ([1, 4, 1 << 12], 1.16, 1.03),
            ([1, 4, 1 << 13], 1.23, 1.06),
            ([1, 4, 1 << 15], 1.30, 1.08),
            ([1, 32, 1 << 10], 1.04, 1.02),
            ([1, 32, 1 << 12], 1.12, 1.04),
            ([1, 32, 1 << 13], 1.17, 1.06),
            ([1, 32, 1 << 15], 1.30, 1.11),
            ([1, 256, 1 << 10], 1.02, 1.01),
            ([1, 256, 1 << 12], 1.12, 1.03),
            ([1, 256, 1 << 13], 1.16, 1.06),
            ([1, 256, 1 << 15], 1.24, 1.10),
            ([2, 256, 1 << 10], 1.00, 1.00),
            ([2, 256, 1 << 13], 1.04, 1.01),
            ([2, 256, 1 << 15], 1.07, 1.01),
        ] {
            check("h200", pieces, true, h200, 0.14);
            check("h100-sxm", pieces, true, h100, 0.05);
        }
    }

    #[test]
    fn a_sector_that_is_completed_keeps_the_l2_busy() {
        let (constants, mut memory) = h200();
        let partial = |number| Line { number, bytes: [4, 0, 0, 0] };
        let lines = 1 << 19;
        for number in 0..lines {
            memory.write(0, &partial(number), 1, 0.0);
        }
        let stores = lines as f64 * (constants.l2_store + constants.l2_partial);
        let Memory { completed, traffic, l2_free, .. } = memory;
        assert!(completed > 0.5 * lines as f64 && completed == traffic.dram_reads, "{completed} of {lines}");
        assert!((l2_free / (stores + completed * constants.l2_completion) - 1.0).abs() < 1e-6, "{l2_free}");
    }

    /// What the probe `overtaking` measured on an H200: while so many multiprocessors have each a read of memory on its way, the share of
    /// another's reads of lines that the L2 has that take 135 cycles longer than they do alone.
    #[test]
    fn a_read_of_another_partitions_line_waits_for_those_before() {
        const READS: u64 = 128;
        let run = |others: u64, run: u64| {
            let (constants, mut memory) = h200();
            let groups = constants.groups;
            for number in 0..2 * 4096 {
                memory.read(number as usize / 4096, number % 4096, 1, 0.0);
            }
            let mut events: BinaryHeap<_> =
                (0..=others).map(|who| Reverse(((1e5 + who as f64).to_bits(), who))).collect();
            let (mut reads, mut late) = (0, 0);
            while reads < READS {
                let Reverse((at, who)) = events.pop().expect("all go on");
                let at = f64::from_bits(at);
                let arrives = if who == 0 {
                    let arrives = memory.read(0, 1057 * (reads + READS * run) % 4096, 1, at);
                    reads += 1;
                    late += u32::from(arrives - at > constants.latency_l2 + 135.0);
                    arrives
                } else {
                    let number = (1 << 20) + mixed(at.to_bits() ^ who << 32 ^ run) % (1 << 23);
                    memory.read(who as usize % groups, number, 1, at)
                };
                events.push(Reverse(((arrives + 40.0).to_bits(), who)));
            }
            f64::from(late) / READS as f64
        };
        let share = |others| (0..16).map(|number| run(others, number)).sum::<f64>() / 16.0;
        assert_eq!(share(0), 0.0);
        for (others, measured) in [(16, 0.024), (64, 0.061), (128, 0.107), (512, 0.306), (1024, 0.414)] {
            let (predicted, error) = (share(others), (share(others) - measured).abs());
            assert!(error < 0.1, "{others} others: {predicted:.3} for {measured}");
        }
    }

    /// What the probe `lateness` measured on an H200: how many cycles longer the median and the slowest tenth of loads of so many lines
    /// at random take than the fastest tenth of loads of one line.
    #[test]
    fn the_more_lines_a_load_has_the_later_is_the_last() {
        let (_, mut memory) = h200();
        let mut at = 0.0;
        let mut percentiles = |lines: u64| {
            let mut took: Vec<f64> = (0..4096)
                .map(|load| {
                    at += 1e5;
                    let numbers = (0..lines).map(|lane| mixed(lines << 32 | load << 5 | lane) % (1 << 25));
                    numbers.fold(0.0, |last: f64, number| last.max(memory.read(0, number, 1, at) - at))
                })
                .collect();
            took.sort_unstable_by(f64::total_cmp);
            [10, 50, 90].map(|percent| took[percent * took.len() / 100])
        };
        let [fastest, ..] = percentiles(1);
        for (lines, median, slow) in [(2, 208, 474), (4, 239, 571), (8, 344, 674), (16, 521, 729), (32, 607, 757)] {
            let [_, predicted @ ..] = percentiles(lines).map(|took| took - fastest);
            for (predicted, measured) in predicted.into_iter().zip([median, slow]) {
                let error = (predicted - f64::from(measured)).abs();
                assert!(error < 120.0, "{lines} lines: {predicted:.0} for {measured}");
            }
        }
    }
}
