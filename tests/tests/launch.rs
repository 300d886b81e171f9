//! Launches of a test: what they hold a kernel to, and what they say.

use busload::launch::{Builder, Report};
use busload::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Twice each element.
#[kernel]
unsafe fn double(src: Global<f32>, dst: GlobalMut<f32>, n: u32) {
    let i = thread::index_x();
    if i < n as usize {
        dst.store(i, 2.0 * src.load(i));
    }
}

/// Columns of a tile whose rows are as long as there are banks; its neighbour's row is read without a barrier if `barrier` is 0.
#[kernel]
unsafe fn columns(dst: GlobalMut<u32>, barrier: u32) {
    let tile = shared!([u32; 32 * 32]);
    let (x, y) = (thread::thread_idx_x(), thread::thread_idx_y());
    tile.store(y * 32 + x, y * 32 + x);
    if barrier == 1 {
        sync_threads();
    }
    let value = tile.load(x * 32 + y);
    dst.store((y * 32 + x) as usize, value);
}

/// Three sums of neighbours.
#[kernel]
unsafe fn neighbours(src: Global<u32>, dst: GlobalMut<u32>) {
    let i = thread::index_x();
    let (left, right) = (src.load(i), src.load(i + 2));
    dst.store(i, left + src.load(i + 1) + right);
}

fn doubled(factor: f32) -> Builder {
    let src: Vec<f32> = (0..1000u16).map(f32::from).collect();
    let expected: Vec<f32> = src.iter().map(|value| factor * value).collect();
    busload::launch(double::KERNEL).threads(1000).block(256).input("src", src).output("dst", expected).scalar("n", 1000)
}

fn transposed(barrier: u32) -> Builder {
    let expected: Vec<u32> = (0..1024).map(|i| i % 32 * 32 + i / 32).collect();
    busload::launch(columns::KERNEL).block((32, 32)).output("dst", expected).scalar("barrier", barrier)
}

fn summed() -> Report {
    let src: Vec<u32> = (0..66).collect();
    let expected: Vec<u32> = (0..64).map(|i| 3 * i + 3).collect();
    busload::launch(neighbours::KERNEL).grid(2).block(32).input("src", src).output("dst", expected).run()
}

/// What a panic says.
fn panics<T>(act: impl FnOnce() -> T) -> String {
    let Err(said) = catch_unwind(AssertUnwindSafe(act)) else { panic!("it does not panic") };
    let literal = said.downcast_ref::<&str>().map(|text| (*text).to_owned());
    said.downcast_ref::<String>().cloned().or(literal).expect("text")
}

fn refused(launch: Builder) -> String {
    launch.examine().expect_err("it is not to run").to_string()
}

#[test]
fn a_run_that_is_right_is_held_to_its_counts() {
    let report = doubled(2.0).run();
    report
        .at("load src")
        .assert_sectors_per_request(4.0 - 3.0 / 32.0)
        .assert_requests(32)
        .assert_coalesced()
        .assert_used(1.0);
    report.at("dst.store(i").assert_requests(32);
    report.assert_clean().assert_conflict_free().assert_coalesced();
    assert_eq!(report.at("store dst").counts().lanes, 1000);
    let line = report.at("store dst").positions()[0].line;
    assert_eq!(report.at_line(line).counts().requests, 64, "both accesses stand in this line");
    let text = report.to_string();
    assert!(text.contains("load src") && text.contains("dst.store(i, 2.0 * src.load(i));"), "{text}");
}

#[test]
fn run_says_what_is_wrong_with_a_result() {
    let said = panics(|| doubled(3.0).run());
    assert!(
        said.starts_with("`double`: a result is wrong: 999 of 1000 elements of `dst` are wrong: [1] is 2"),
        "{said}"
    );
    let report = doubled(3.0).examine().expect("it runs");
    assert_eq!(report.wrong().map(|wrong| wrong.kind), Some("verification"));
    // Its counts mean nothing.
    assert!(panics(|| report.at("load src")).contains("a result is wrong"));
    assert!(doubled(3.0).within(1e9).scalar("n", 1000).examine().is_err(), "a value that is given twice");
}

#[test]
fn run_says_what_the_sanitizer_found_with_both_lines() {
    let said = panics(|| transposed(0).run());
    for part in ["`columns`: the sanitizer found", "race", "tile.store(y * 32 + x", "tile.load(x * 32 + y)"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let report = transposed(0).examine().expect("it runs");
    assert!(!report.findings().is_empty() && report.wrong().is_some_and(|wrong| wrong.kind == "findings"));
}

#[test]
fn an_assertion_that_fails_says_where_and_why() {
    let report = transposed(1).run();
    report.at("store tile").assert_conflict_free();
    report.at("load tile").assert_wavefronts_per_request(32.0);
    for said in [
        panics(|| report.at("load tile").assert_wavefronts_per_request(1.0).counts()),
        panics(|| report.assert_conflict_free().findings().len()),
    ] {
        for part in [
            "`load tile` of `columns` was to",
            "let value = tile.load(x * 32 + y);",
            "^ load tile: 32 requests, 32.00 wavefronts each (ideal 1.00)",
            "want 32 words of bank 0",
            "→ Pad `tile`",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    let said = panics(|| report.at("load tile").assert_sectors_per_request(4.0).counts());
    assert!(said.contains("was to need 4.00 sectors a request"), "{said}");
}

#[test]
fn names_that_are_none_or_several_list_what_there_is() {
    let report = summed();
    let said = panics(|| report.at("load source"));
    assert!(said.starts_with("`load source` names no access of `neighbours`, whose accesses are\n"), "{said}");
    assert!(said.contains("load src") && said.contains("store dst"), "{said}");
    let said = panics(|| report.at("load src"));
    assert!(said.starts_with("`load src` names 3 accesses of `neighbours`"), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("load src ")).count(), 3, "{said}");
    assert_eq!(report.all("load src").counts().requests, 6);
    assert_eq!(report.at("src.load(i + 2)").counts().requests, 2, "of two in the line, the one named");
    assert!(panics(|| report.at_line(1)).contains("stands in line 1"));
}

#[test]
fn a_launch_that_cannot_be_is_refused_with_the_way_out() {
    let kernel = double::KERNEL;
    let launch = || busload::launch(kernel).grid(1).block(32);
    for (launch, says) in [
        (busload::launch(kernel).threads(32), "add `.block(256)`"),
        (launch(), "has no buffer `src`"),
        (launch().input("src", vec![0u32; 32]).output("dst", vec![0f32; 32]).scalar("n", 32), "f32"),
        (launch().block(2048), "CUDA takes"),
        (launch().within(0.1), "put it after its own"),
        (launch().in_place("dst", vec![0f32; 4], vec![0f32; 5]), "4 elements before the launch and 5 afterwards"),
    ] {
        let said = refused(launch);
        assert!(said.starts_with("`double` was not run: ") && said.contains(says), "{says}: {said}");
    }
}

#[test]
fn families_are_held_to_what_they_say() {
    busload::assert_families(&[&gpu::kernels::offset::FAMILY]);
    assert!(panics(|| busload::assert_families(&[])).contains("no kernel"));
    let wrong = gpu::suite::Family {
        name: "wrong",
        summary: "",
        axes: &[],
        kernels: &[gpu::suite::Entry {
            kernel: double::KERNEL,
            plan: |_| {
                let launch = gpu::suite::Launch::linear(32, 32)?;
                let (src, dst) = (
                    gpu::suite::Buffer::input("src", 32, |i| i as f32)?,
                    gpu::suite::Buffer::output("dst", 32, |i| i as f32)?,
                );
                Ok(gpu::suite::Plan::new(launch).buffer(src).buffer(dst).scalar("n", 32u32))
            },
        }],
    };
    let said = panics(|| busload::assert_families(&[&wrong]));
    assert!(said.contains("`double`: a result is wrong: 31 of 32"), "{said}");
}
