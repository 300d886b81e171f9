//! The L2's slices: each serves its requests in order, at its share of the L2's bandwidth.
//!
//! Reads that cross to the far L2 partition complete in order as well (probe `overtaking`).

pub(super) struct Slices {
    /// When each slice of each partition is free.
    slices: Vec<Vec<f64>>,
    /// When the last far read of each queue of each slice of a partition completes.
    far_reads: Vec<Vec<f64>>,
    queues: usize,
    /// When all slices would be free if their work were shared equally.
    pub(super) free: f64,
    pub(super) busy_cycles: f64,
}

impl Slices {
    /// Idle ones, so many of each partition, each with so many queues for far reads.
    pub(super) fn new(partitions: usize, slices: usize, queues: usize) -> Self {
        Self {
            slices: vec![vec![0.0; slices]; partitions],
            far_reads: vec![vec![0.0; slices * queues]; partitions],
            queues,
            free: 0.0,
            busy_cycles: 0.0,
        }
    }

    /// Has a slice serve a request that arrives now, for which all slices together would take so many cycles, and says when that is done.
    pub(super) fn serve(&mut self, partition: usize, slice: usize, cycles: f64, now: f64) -> f64 {
        self.busy_cycles += cycles;
        self.free = now.max(self.free) + cycles;
        let cycles = self.alone(partition, cycles);
        let free = &mut self.slices[partition][slice];
        *free = now.max(*free) + cycles;
        *free
    }

    /// How many cycles one slice takes for what all of them together would take so many for.
    pub(super) fn alone(&self, partition: usize, cycles: f64) -> f64 {
        cycles * (self.slices.len() * self.slices[partition].len()) as f64
    }

    /// When a read that crosses to the far partition completes which would at `ready`, if it did not queue behind those before.
    pub(super) fn complete_far_read(&mut self, partition: usize, slice: usize, number: u64, ready: f64) -> f64 {
        let queue = slice * self.queues + number as usize % self.queues;
        let last = &mut self.far_reads[partition][queue];
        *last = last.max(ready);
        *last
    }
}
