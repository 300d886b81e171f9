//! What a newcomer gets wrong, and what is said of it: the thing, its value, and the way out. What rustc says stands in `diagnostics.rs`.

use busload::bench;
use busload::cases::{self, Run, Selection, Sizes};
use busload::fit;
use busload::suite::Suite;
use busload_tests::{case, on_threads};
use gpu::device::prelude::*;
use gpu::suite::{Axis, Buffer, Case, Entry, Family, Kernel, Launch, Plan, PlanError, Progression, Value, warps};
use std::sync::Arc;

#[kernel]
pub unsafe fn newcomer_copy(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        dst.store(i, src.load(i)); // HERE: the copy
    }
}

#[kernel]
pub unsafe fn newcomer_plain_loop(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        let mut sum = 0.0;
        for _ in 0..2 {
            sum += src.load(i); // HERE: the plain loop
        }
        dst.store(i, sum / 2.0);
    }
}

#[kernel]
pub unsafe fn newcomer_branch(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let tile = shared!([f32; 256]);
    let (i, thread) = (thread::index_x(), thread::thread_idx_x());
    if i < n {
        tile.store(thread, src.load(i));
        if thread < 128 {
            sync_threads(); // HERE: the barrier in a branch
        }
        dst.store(i, tile.load(thread));
    }
}

#[kernel]
pub unsafe fn newcomer_forgotten(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    newcomer_copy(src, dst, n);
}

static FAMILY: Family = Family {
    name: "newcomer",
    summary: "kernels of the tests",
    axes: &[Axis::ELEMENTS],
    kernels: &[
        Entry { kernel: newcomer_copy::KERNEL, plan: |case| copy(case, Launch::linear(case.elements(), 256)?) },
        Entry { kernel: newcomer_plain_loop::KERNEL, plan: |case| copy(case, Launch::linear(case.elements(), 256)?) },
        Entry { kernel: newcomer_branch::KERNEL, plan: |case| copy(case, Launch::linear(case.elements(), 256)?) },
    ],
};

static SUITE: Suite = Suite::of_package("newcomer", env!("CARGO_MANIFEST_DIR"), &[&FAMILY]);

/// Without counts.
fn copy(case: &Case, launch: Launch) -> Result<Plan, PlanError> {
    let n = case.elements();
    Ok(Plan::new(launch)
        .buffer(Buffer::input("src", n, |i| i as f32)?)
        .buffer(Buffer::output("dst", n, |i| i as f32)?)
        .scalar("n", n)
        .bytes(8 * n))
}

fn line(n: u64) -> gpu::suite::Counts {
    warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global())
}

/// A thousand elements.
fn thousand() -> Case {
    case(vec![("elements", Value::Count(1000))])
}

fn run(kernel: Kernel, plan: Result<Plan, PlanError>) -> Run {
    let plan = Arc::new(plan.expect("a small plan"));
    Run { family: &FAMILY, kernel, case: thousand(), plan }
}

/// What is said of a kernel that fails.
fn said(kernel: Kernel, plan: Result<Plan, PlanError>) -> String {
    let (record, _) = bench::simulate(&run(kernel, plan), &on_threads(2), &|_, _| ());
    record.error.expect("it is wrong").message
}

/// Why an entry is refused before anything runs.
fn refused(plan: fn(&Case) -> Result<Plan, PlanError>) -> String {
    let entry = Entry { kernel: newcomer_copy::KERNEL, plan };
    Run::new(&FAMILY, &entry, thousand()).err().expect("it does not fit").to_string()
}

/// The line of this file that says `HERE` and this.
fn place(name: &str) -> String {
    let mark = format!("// HERE: {name}");
    let line = include_str!("newcomer.rs").lines().position(|line| line.ends_with(&mark)).expect("a mark");
    format!("{}:{}", file!(), line + 1)
}

fn holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
}

#[test]
fn a_kernel_that_is_in_no_list_is_told_where_to_go() {
    let error = cases::kernels(&SUITE, "newcomer_forgotten").expect_err("it has no entry").to_string();
    holds(&error, &["newcomer_forgotten is a kernel of ", "newcomer.rs that no entry has", "enter it in the list"]);
    // It is said too where others are asked for with it.
    let all: Vec<_> = cases::unlisted(&SUITE, None).map(|error| error.to_string()).collect();
    assert_eq!(all, [error]);
    let copies = cases::kernels(&SUITE, "newcomer_copy").expect("it has an entry");
    assert_eq!(cases::unlisted(&SUITE, Some(&copies)).count(), 0);
}

#[test]
fn a_kernel_that_is_listed_twice_is_named() {
    static TWICE: Family = Family {
        kernels: &[
            Entry { kernel: newcomer_copy::KERNEL, plan: |case| copy(case, Launch::linear(1, 32)?) },
            Entry { kernel: newcomer_copy::KERNEL, plan: |case| copy(case, Launch::linear(1, 32)?) },
        ],
        ..FAMILY_OF_TWO
    };
    const FAMILY_OF_TWO: Family =
        Family { name: "newcomer", summary: "kernels of the tests", axes: &[Axis::ELEMENTS], kernels: &[] };
    static SUITE: Suite = Suite::of_package("newcomer", env!("CARGO_MANIFEST_DIR"), &[&TWICE]);
    let error = Selection::default().runs(&SUITE, Sizes::Small, 108).err().expect("it is listed twice").to_string();
    assert_eq!(error, "`newcomer_copy` is listed twice: leave one of its entries in the families' lists");
}

#[test]
fn a_parameter_of_another_type_a_buffer_too_few_or_too_many_and_no_reference_are_named() {
    let ints = |case: &Case| {
        let mut plan = copy(case, Launch::linear(1000, 256)?)?;
        plan.buffers[0] = Buffer::input("src", 1000, |i| i as u32)?;
        Ok(plan)
    };
    holds(&refused(ints), &["the elements of `src` are f32 in `newcomer_copy` and u32 in its plan", "the same type"]);
    let negative = |case: &Case| {
        let mut plan = copy(case, Launch::linear(1000, 256)?)?;
        plan.scalars.clear();
        Ok(plan.scalar("n", -1i32))
    };
    holds(&refused(negative), &["`n` of `newcomer_copy` is -1 in the plan, which is no u64", "of that type"]);
    let few = |case: &Case| {
        let mut plan = copy(case, Launch::linear(1000, 256)?)?;
        plan.buffers.remove(0);
        Ok(plan)
    };
    holds(&refused(few), &["has no buffer `src`: add it to the family's entry"]);
    let many =
        |case: &Case| Ok(copy(case, Launch::linear(1000, 256)?)?.buffer(Buffer::input("index", 8, |i| i as u32)?));
    holds(&refused(many), &["gives `index`, which is none of its parameters (`src`, `dst`, `n`): take it out"]);
    let unreferenced = |case: &Case| {
        let mut plan = copy(case, Launch::linear(1000, 256)?)?;
        plan.buffers[1] = Buffer::input("dst", 1000, |i| i as f32)?;
        Ok(plan)
    };
    holds(&refused(unreferenced), &["`dst` of `newcomer_copy` is an input", "say what it holds afterwards"]);
}

#[test]
fn a_launch_that_leaves_elements_untouched_is_told_how_many_and_what_grid_covers_them() {
    let said = said(newcomer_copy::KERNEL, Launch::linear(512, 256).and_then(|launch| copy(&thousand(), launch)));
    holds(
        &said,
        &[
            "488 of 1000 elements of `dst` are wrong: [512] is not written, expected 512",
            "488 of 1000 elements are not written, the first is [512]; the launch has 2 blocks of 256 threads",
            "1000 take 4 blocks: `Launch::linear(1000, 256)` has as many",
        ],
    );
}

#[test]
fn wrong_counts_name_the_line_what_was_expected_and_what_was_found() {
    let launch = Launch::linear(1000, 256);
    let plan = launch
        .and_then(|launch| Ok(copy(&thousand(), launch)?.loads("src", 4, line(1000)).stores("dst", 4, line(992))));
    let said = said(newcomer_copy::KERNEL, plan);
    let expected = format!("stores of `dst` at 4 bytes ({}): ", place("the copy"));
    holds(
        &said,
        &[
            &expected,
            "the family's closed form gives 31 requests, 992 lanes, 124 sectors",
            "the simulator counted 32 requests, 1000 lanes, 125 sectors",
            "Work out by hand which of the two is wrong",
        ],
    );
    assert!(!said.contains("loads of"), "{said}");
}

#[test]
fn a_loop_past_the_facade_and_a_barrier_in_a_branch_are_named_with_the_way_out() {
    let plan = || Launch::linear(1000, 256).and_then(|launch| copy(&thousand(), launch));
    let looped = said(newcomer_plain_loop::KERNEL, plan());
    holds(&looped, &["open grouping: a lane comes by this access twice", "`steps`, `each` or `unroll!`"]);
    holds(&looped, &[&place("the plain loop")]);
    let branch = said(newcomer_branch::KERNEL, plan());
    holds(&branch, &["divergent barrier: a thread waits at this barrier", &place("the barrier in a branch")]);
    holds(&branch, &["divergent barrier: take the barrier out of the branch: every thread of the block"]);
}

#[test]
fn of_counts_that_are_not_stated_what_fits_them_is_said() {
    let run = run(newcomer_copy::KERNEL, Launch::linear(1000, 256).and_then(|launch| copy(&thousand(), launch)));
    let (record, _) = bench::simulate(&run, &on_threads(2), &|_, _| ());
    assert!(record.error.is_none() && !record.simulated.expect("it ran").counts_stated);
    let text = fit::text(&run, &on_threads(2)).expect("its counts are linear");
    holds(
        &text,
        &[
            "newcomer_copy: its counts are not stated. At --elements 4096, 8192, 12288, 20480 the simulator counts, with n elements:",
            "\n  loads of `src` at 4 bytes: requests n/32, lanes n, sectors n/8, ideal sectors n/8, lines n/32",
            "\n  stores of `dst` at 4 bytes: requests n/32,",
        ],
    );
}
