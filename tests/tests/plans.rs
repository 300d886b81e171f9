//! Plans as people write them: without counts, with wrong ones, without outputs, and such as fit no kernel or GPU.

use busload::bench;
use busload::cases::Run;
use busload::explain::{self, Explanation};
use busload::front;
use busload::predict::{Chip, Effort};
use busload::report;
use busload::sim::{self, Options, SimulationError};
use busload_tests::{case, kernels, launch, on_threads, one_warp, root};
use gpu::device::prelude::*;
use gpu::suite::{Buffer, Kernel, Plan, PlanError};
use std::sync::Arc;

/// A kernel of the suite on its first case, with its plan changed.
fn run(name: &str, change: fn(Plan) -> Plan) -> Run {
    let (family, entry) = kernels().into_iter().find(|(_, entry)| entry.kernel.name == name).expect(name);
    let case = case(family.axes.iter().map(|axis| (axis.name, axis.in_simulator[0])).collect());
    let plan = (entry.plan)(&case).unwrap_or_else(|error| panic!("{name} on {case}: {error}"));
    Run { family, kernel: entry.kernel, case, plan: Arc::new(change(plan)) }
}

/// What a run is called in the table.
fn simulated(run: &Run) -> (busload::record::Record, String) {
    let (record, _) = bench::simulate(run, &on_threads(2), &|_, _| ());
    let table = report::table(std::slice::from_ref(&record));
    (record, table)
}

#[test]
fn a_plan_without_counts_is_verified_and_says_so() {
    let without = run("transpose_naive", |plan| Plan { expected: Vec::new(), ..plan });
    let (record, table) = simulated(&without);
    assert!(record.verified && record.error.is_none(), "{:?}", record.error);
    assert!(table.contains("yes, counts not stated"), "{table}");
    assert!(!record.simulated.expect("it was simulated").counts_stated);

    let options = Options { sampling: Some(explain::SAMPLING), ..on_threads(2) };
    let (_, outcome) = bench::simulate(&without, &options, &|_, _| ());
    let text = explain::text(&Explanation::new(&without, &outcome.expect("nothing is wrong")));
    assert!(text.lines().next().is_some_and(|line| line.ends_with("simulated: all; counts not stated")), "{text}");

    let (record, table) = simulated(&run("transpose_naive", |plan| plan));
    assert!(record.simulated.expect("it was simulated").counts_stated && !table.contains("not stated"), "{table}");
}

#[test]
fn of_wrong_counts_those_that_differ_are_said() {
    let wrong = run("transpose_naive", |mut plan| {
        plan.expected[0].counts.sectors += 5;
        plan.expected[0].counts.lines -= 1;
        plan
    });
    let (record, table) = simulated(&wrong);
    let error = record.error.expect("the counts are wrong");
    // 1024x1024 elements, 4 sectors and a line for each 32.
    let text = std::fs::read_to_string(root().join(wrong.kernel.file)).expect("the family's file");
    let access = "dst.store(at(x, y, height), src.load(at(y, x, width)));";
    let line = 1 + text.lines().position(|line| line.trim() == access).expect("the access");
    let expected = format!(
        "loads of `src` at 4 bytes (gpu/src/kernels/transpose.rs:{line}): the family's closed form gives 131077 sectors, 32767 \
         lines, the simulator counted 131072 sectors, 32768 lines\nWork out by hand which of the two is wrong"
    );
    assert!(error.message.starts_with(&expected), "{}", error.message);
    assert!(error.kind == "counts" && table.contains("no: counts"), "{table}");
    // One access is stated, and the others are not.
    let in_part = run("transpose_naive", |mut plan| {
        plan.expected.truncate(1);
        plan
    });
    let error = simulated(&in_part).0.error.expect("the stores are not stated").message;
    assert!(error.starts_with("stores of `dst` at 4 bytes (gpu/src/kernels/transpose.rs:"), "{error}");
    assert!(error.contains("the family's closed form gives 0 requests"), "{error}");
    // Of one that is stated no line makes any.
    let too_much = run("transpose_naive", |plan| plan.atomics("dst", 4, gpu::suite::constant(1, 1)));
    let error = simulated(&too_much).0.error.expect("there are no atomics").message;
    assert!(error.starts_with("atomics of `dst` at 4 bytes (no line makes them): "), "{error}");
    // It states that it makes no access, and makes some.
    let none = run("transpose_naive", |mut plan| {
        plan.expected.iter_mut().for_each(|expected| expected.counts = Default::default());
        plan
    });
    assert_eq!(simulated(&none).0.error.expect("there are accesses").kind, "counts");
}

#[kernel]
unsafe fn reads(src: Global<f32>) {
    src.load(warp::lane_id() as usize);
}

#[kernel]
unsafe fn copies(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id() as usize;
    dst.store(lane, src.load(lane));
}

/// Why a kernel is not simulated.
fn refused(kernel: Kernel, plan: Result<Plan, PlanError>) -> String {
    let plan = Arc::new(plan.expect("a small plan"));
    match sim::simulate(kernel, plan, &on_threads(2), &|_, _| ()) {
        Err(error @ SimulationError::Plan(_)) => error.to_string(),
        Err(error) => panic!("{}: {error}", kernel.name),
        Ok(_) => panic!("{} was simulated", kernel.name),
    }
}

#[test]
fn a_kernel_without_output_runs_and_is_not_called_verified() {
    let src = Buffer::input("src", 32, |i| i as f32).expect("a small buffer");
    let (family, _) = kernels()[0];
    let run = Run { family, kernel: reads::KERNEL, case: case(Vec::new()), plan: Arc::new(one_warp().buffer(src)) };
    let (record, table) = simulated(&run);
    assert!(!record.verified && record.error.is_none(), "{:?}", record.error);
    assert!(table.contains("no output, counts not stated"), "{table}");
}

#[test]
fn what_the_library_is_given_must_fit_too() {
    let src = || Buffer::input("src", 32, |i| i as f32);
    let dst = || Buffer::output("dst", 32, |i| i as f32);
    let input = || Buffer::input("dst", 32, |i| i as f32);
    let ints = || Buffer::input("src", 32, |i| i as u32);
    let plan = |launch| Ok(Plan::new(launch).buffer(src()?).buffer(dst()?));
    let says = |plan, what: &str| {
        let error = refused(copies::KERNEL, plan);
        assert!(error.contains(what) && error.contains("`copies`"), "{error}");
    };
    says(
        input().and_then(|dst| Ok(one_warp().buffer(src()?).buffer(dst))),
        "is an input in the plan, and the kernel may write",
    );
    says(ints().and_then(|src| Ok(one_warp().buffer(src).buffer(dst()?))), "are f32 in `copies` and u32 in its plan");
    says(src().and_then(|twice| Ok(one_warp().buffer(src()?).buffer(twice).buffer(dst()?))), "gives `src` twice");
    says(plan(launch([0, 1, 1], [32, 1, 1])), "along x are 0, and CUDA takes 1 to 2147483647");
    says(plan(launch([1, 1, 65_536], [32, 1, 1])), "along z are 65536, and CUDA takes 1 to 65535");
    says(plan(launch([1; 3], [32, 0, 1])), "along y are 0, and CUDA takes 1 to 1024");
    says(plan(launch([1; 3], [u32::MAX; 3])), "along x are 4294967295, and CUDA takes 1 to 1024");
}

#[test]
fn a_launch_is_predicted_on_chips_that_can_run_it_alone() {
    let shared = |bytes| {
        let src = Buffer::input("src", 32, |i| i as f32).expect("a small buffer");
        let dst = Buffer::output("dst", 32, |i| i as f32).expect("a small buffer");
        let mut plan = one_warp().buffer(src).buffer(dst);
        plan.launch.shared_bytes = bytes;
        let (family, _) = kernels()[0];
        Run { family, kernel: copies::KERNEL, case: case(Vec::new()), plan: Arc::new(plan) }
    };
    let predict = |bytes, chip| front::predict(&shared(bytes), &Chip::load(chip).expect(chip), Effort::default());
    for (chip, most) in [("a100-80", 163 << 10), ("h200", 227 << 10)] {
        assert!(predict(most, chip).is_ok(), "{chip}");
        let error = predict(most + 1, chip).expect_err(chip).to_string();
        assert!(error.contains(&(most + 1).to_string()) && error.contains(&most.to_string()), "{error}");
    }
}
