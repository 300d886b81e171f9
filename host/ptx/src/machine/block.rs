//! A block: runs its warps one after another, each to the next barrier.

use super::copies::Copies;
use super::dependence::Dependence;
use super::hand::Hand;
use super::job::Job;
use super::warp::{Arrived, State, Warp};
use crate::program::{NONE, Op, Reduction, Value};
use crate::registers::{Class, Lanes, Narrow, Pred, Registers, Wide, has_vectors};
use engine::{Finding, Kind, Machine, Page, Worker, triple};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Runs blocks, one after another, on the calling thread.
pub(crate) struct Runner {
    pub(super) job: Arc<Job>,
    pub(super) worker: Worker,
    pub(super) registers: Registers,
    pub(super) warps: Vec<Warp>,
    /// What each access found at hand the last time.
    pub(super) hands: Vec<Hand>,
    /// The local memory of the block's threads, one after another.
    pub(super) local: Vec<u8>,
    /// What requests depend on, if they are traced.
    pub(super) dependence: Option<Dependence>,
    /// The threads that came to barriers of some of them.
    pub(super) arrived: Arrived,
    /// For each byte of it a bit, whether it has been written; empty if that is not watched.
    pub(super) local_marks: Vec<u8>,
    /// For each warp and each register of it that is watched, which lanes have been written.
    pub(super) assigned: Vec<u32>,
    /// Of barriers and accesses, whether the access comes behind the barrier and not before it.
    pub(super) behind: FxHashMap<(u32, u32), bool>,
    /// Copies that have not arrived.
    pub(super) copies: Copies,
    /// What the block has printed.
    pub(super) page: Page,
    /// Whether the block cannot go on.
    pub(super) stopped: bool,
    /// Whether the processor has wide vectors.
    pub(super) has_vectors: bool,
}

impl Runner {
    pub(super) fn new(job: Arc<Job>) -> Self {
        let threads = job.launch.plan.launch.block_threads() as usize;
        let warps = threads.div_ceil(32);
        let program = &job.program;
        let mut runner = Self {
            dependence: job.schedule.as_ref().map(|schedule| Dependence::new(Arc::clone(schedule), warps)),
            worker: Worker::new(Arc::clone(&job.launch)),
            registers: Registers::new(program.sizes, warps),
            warps: (0..warps).map(|_| Warp::new()).collect(),
            hands: vec![Hand::NONE; program.accesses.len()],
            local: vec![0; program.local_bytes as usize * threads],
            arrived: Arrived::default(),
            local_marks: Vec::new(),
            assigned: Vec::new(),
            behind: FxHashMap::default(),
            copies: Copies::new(warps),
            page: Page::default(),
            stopped: false,
            has_vectors: has_vectors(),
            job,
        };
        runner.lay(|_| true, [0; 3]);
        if runner.watches() {
            runner.local_marks = vec![0; runner.local.len().div_ceil(8)];
            runner.assigned = vec![0; warps * runner.job.program.watch.names.len()];
        }
        runner
    }

    /// Lays down what stands in those slots that no instruction writes.
    fn lay(&mut self, which: impl Fn(Value) -> bool, block_idx: [u32; 3]) {
        let program = Arc::clone(&self.job.program);
        for fixed in program.fixed.iter().filter(|fixed| which(fixed.value)) {
            for warp in 0..if fixed.value.is_of_warp() { self.warps.len() } else { 1 } {
                let values = self.job.value(fixed.value, fixed.class, warp, block_idx);
                self.registers.select(warp);
                match fixed.class {
                    Class::Pred => Pred::set(&mut self.registers, fixed.slot, u32::MAX, &values.map(|bit| bit != 0)),
                    Class::Half | Class::Narrow => {
                        Narrow::set(&mut self.registers, fixed.slot, u32::MAX, &values.map(|word| word as u32));
                    }
                    Class::Wide => Wide::set(&mut self.registers, fixed.slot, u32::MAX, &values),
                }
            }
        }
    }

    fn begin(&mut self, turn: u64) {
        self.worker.begin(turn);
        self.stopped = false;
        self.forget_arrivals();
        self.copies.clear();
        self.forget_writes();
        let block_idx = self.worker.block_idx();
        self.lay(Value::is_of_block, block_idx);
        self.clear_reserved();
        let threads = self.job.launch.plan.launch.block_threads() as usize;
        for (number, warp) in self.warps.iter_mut().enumerate() {
            warp.begin(u32::MAX >> 32usize.saturating_sub(threads - 32 * number));
            if let Some(dependence) = &mut self.dependence {
                dependence.begin(number);
            }
        }
    }

    /// Runs each warp to its end or to a barrier: false if the block cannot go on.
    fn run_warps(&mut self) -> bool {
        for warp in 0..self.warps.len() {
            if self.warps[warp].state == State::Runs {
                self.registers.select(warp);
                if self.dependence.is_some() { self.run_warp::<true>(warp) } else { self.run_warp::<false>(warp) }
            }
            if self.stopped || self.job.launch.is_exhausted() {
                return false;
            }
        }
        true
    }

    /// All warps have ended or wait at a barrier: lets them go on; false if all have ended, or that is a finding.
    fn release(&mut self) -> bool {
        if let Some(goes_on) = self.pass_partly() {
            return goes_on;
        }
        let waiting = |(number, warp): (usize, &Warp)| match warp.state {
            State::Waits { at, number: barrier } => Some((number, at, barrier)),
            _ => None,
        };
        let all: Vec<_> = self.warps.iter().enumerate().filter_map(waiting).collect();
        let Some(&(first, at, barrier)) = all.first() else {
            self.worker.end();
            return false;
        };
        let program = Arc::clone(&self.job.program);
        let pc = |at: u32| program.code[at as usize].pc;
        let elsewhere = all.iter().find(|(_, other, number)| pc(*other) != pc(at) || *number != barrier);
        if let Some(&(other, there, _)) = elsewhere {
            let [here, there] = [at, there].map(|at| pc(at).position());
            let [thread, other] = [first, other].map(|warp| self.first_thread(warp));
            let who = triple(self.job.launch.thread_idx(other as u32));
            let detail = format!("a thread waits at this barrier while thread {who} waits at another");
            self.worker.find(thread, Kind::DivergentBarrier, Some(here), Some(there), detail);
            return false;
        }
        if let Some((other, there)) = self.passed_by(at) {
            let [here, there] = [pc(at), there].map(|pc| Some(pc.position()));
            let who = triple(self.job.launch.thread_idx((32 * other) as u32));
            let detail = format!(
                "a thread waits at this barrier, which thread {who} passed by on its way to an access that both make"
            );
            self.worker.find(self.first_thread(first), Kind::DivergentBarrier, here, there, detail);
            return false;
        }
        let pc = pc(at);
        if !self.worker.pass_barrier(|| pc) {
            return false;
        }
        self.reduce(&all);
        for (warp, ..) in all {
            let warp = &mut self.warps[warp];
            (warp.state, warp.last) = (State::Runs, NONE);
        }
        true
    }

    /// What a barrier makes of the predicates of the threads that come there.
    pub(super) fn reduce(&mut self, all: &[(usize, u32, u32)]) {
        let program = Arc::clone(&self.job.program);
        let reduction = |at: u32| match program.code[at as usize].op {
            Op::Barrier { reduction, .. } | Op::PartialBarrier { reduction, .. } => reduction,
            _ => None,
        };
        let (mut count, mut threads) = (0, 0);
        for &(warp, at, _) in all {
            let Some((_, _, source)) = reduction(at) else { return };
            self.registers.select(warp);
            let live = self.warps[warp].live;
            count += (self.registers.preds.get(source) & live).count_ones();
            threads += live.count_ones();
        }
        for &(warp, at, _) in all {
            let Some((kind, target, _)) = reduction(at) else { return };
            self.registers.select(warp);
            let live = self.warps[warp].live;
            match kind {
                Reduction::Count => Narrow::set(&mut self.registers, target, live, &[count; 32]),
                Reduction::And => Pred::set(&mut self.registers, target, live, &[count == threads; 32]),
                Reduction::Or => Pred::set(&mut self.registers, target, live, &[count > 0; 32]),
            }
        }
    }

    /// The lowest thread of a warp that has not ended.
    pub(super) fn first_thread(&self, warp: usize) -> usize {
        32 * warp + self.warps[warp].live.trailing_zeros() as usize % 32
    }
}

impl Machine for Job {
    type Runner = Runner;

    fn runner(self: &Arc<Self>, _: usize) -> Runner {
        Runner::new(Arc::clone(self))
    }

    /// Every loop of the machine counts its rounds, so none is silent.
    fn watch(&self) -> Option<Finding> {
        None
    }
}

impl engine::Runner for Runner {
    fn run(&mut self, _: u64, turn: u64) {
        self.begin(turn);
        while self.run_warps() && self.release() {}
        if !self.page.is_empty() {
            self.job.launch.print(turn, std::mem::take(&mut self.page));
        }
    }

    fn worker(&mut self) -> &mut Worker {
        &mut self.worker
    }
}
