//! What observers are told of a run, and what comes of one that breaks off.

use busload::cases::{self, Selection, Sizes};
use busload::sim::trace::{Observer, Trace, Traced, WHOLE_BLOCK, What};
use busload::sim::{Options, simulate};
use busload::suite::BUSLOAD;
use gpu::suite::Value;
use std::sync::{Arc, Mutex};

/// Keeps the traces of all blocks.
#[derive(Debug, Default)]
struct Kept(Mutex<Vec<Trace>>);

impl Observer for Kept {
    fn block(&self, trace: Trace) {
        self.0.lock().expect("no panic under this lock").push(trace);
    }

    fn lines_a_warp(&self) -> u32 {
        u32::MAX
    }
}

#[test]
fn a_barrier_stands_once_in_a_block_and_blocks_come_in_order() {
    let kernels = Some(cases::kernel(&BUSLOAD, "sync_tiled").expect("a kernel"));
    let values = [("elements".to_owned(), vec![Value::Count(8 * 256)])].into();
    let runs = Selection { kernels, values }.runs(&BUSLOAD, Sizes::Small, 1).expect("a run");
    let [run] = &runs[..] else { panic!("{} runs", runs.len()) };
    let kept = Arc::new(Kept::default());
    let options = Options { threads: 3, observer: Some(kept.clone()), ..Options::default() };
    let outcome = simulate(run.kernel, run.plan.clone(), &options, &|_, _| ()).expect("it can be simulated");
    assert!(outcome.findings.is_empty());
    let traces = kept.0.lock().expect("no panic under this lock");
    assert_eq!(traces.len(), 8);
    for (block, trace) in (0..).zip(traces.iter()) {
        let barriers = trace.requests.iter().filter(|request| request.warp == WHOLE_BLOCK);
        // Two a round, and one at the end.
        assert_eq!(barriers.filter(|barrier| barrier.what == What::Wait).count(), 2 * 8 + 1);
        let first = traces[0].lines_of(0)[0].number;
        assert_eq!(trace.lines_of(0)[0].number, first + 8 * block, "a block reads 8 lines");
        for warp in 0..8 {
            let of_warp = |request: &&Traced| request.warp == warp || request.warp == WHOLE_BLOCK;
            let order: Vec<_> = trace.requests.iter().filter(of_warp).map(|request| request.what).collect();
            assert_eq!(order[0], What::Load { past_l1: false });
            assert_eq!(order[1], What::SharedStore);
            assert_eq!(order[order.len() - 2..], [What::SharedLoad, What::Store]);
        }
    }
}

/// Breaks off at the first block.
#[derive(Debug)]
struct Breaks;

impl Observer for Breaks {
    fn block(&self, _: Trace) {
        panic!("as it must");
    }

    fn lines_a_warp(&self) -> u32 {
        1
    }
}

#[test]
fn a_worker_that_breaks_off_is_an_error_and_nobody_waits_for_it() {
    // Its blocks wait for one another.
    let kernels = Some(cases::kernel(&BUSLOAD, "reduce_grid_stride").expect("a kernel"));
    let runs = Selection { kernels, ..Default::default() };
    let run = runs.runs(&BUSLOAD, Sizes::Small, 108).expect("a run").swap_remove(0);
    let options = Options { threads: 3, observer: Some(Arc::new(Breaks)), ..Options::default() };
    let error = simulate(run.kernel, run.plan, &options, &|_, _| ()).err().expect("it breaks off");
    assert_eq!(error.kind(), "simulator");
    assert!(error.to_string().starts_with("the simulator broke off: as it must; "), "{error}");
}
