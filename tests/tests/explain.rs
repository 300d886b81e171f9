//! `explain`: sentences made from addresses, every kernel of the suite, and the command as a person meets it.

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use busload::cases::Run;
use busload::explain::{self, Access, Explanation};
use busload::sim::{Options, Outcome, Pattern};
use busload_tests::{case, counterexamples, kernels, launch, on_threads, simulate};
use gpu::device::prelude::*;
use gpu::suite::{Axis, Buffer, Case, Entry, Family, Kernel, Plan, Value, noise};
use predicates::prelude::*;
use std::path::Path;
use std::sync::Arc;

fn options(threads: usize) -> Options {
    Options { sampling: Some(explain::SAMPLING), ..on_threads(threads) }
}

/// Where a lane accesses nothing.
const NOWHERE: u32 = u32::MAX;

/// Elements of each array below.
const ELEMENTS: u64 = 1 << 16;

#[device]
fn thread_number() -> u32 {
    thread::thread_idx_x() + thread::block_dim_x() * thread::thread_idx_y()
}

/// Loads the element that `index` names from global memory.
#[kernel]
unsafe fn global_at(index: Global<u32>, src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread_number();
    let element = index.load(i as usize);
    if element != NOWHERE {
        dst.store(i as usize, src.load(element as usize));
    }
}

/// As [`global_at`], 16 bytes a lane.
#[kernel]
unsafe fn global_at_vec4(index: Global<u32>, src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread_number();
    dst.store(i as usize, src.cast::<F32x4>().load(index.load(i as usize) as usize).x);
}

/// Stores into the element that `index` names of shared memory.
#[kernel]
unsafe fn shared_at(index: Global<u32>) {
    let tile = shared!([f32; 4096]);
    let i = thread_number();
    tile.store(index.load(i as usize), i as f32);
}

/// As [`shared_at`], 8 bytes a lane.
#[kernel]
unsafe fn shared_at_vec2(index: Global<u32>) {
    let tile = shared!([F32x2; 2048]);
    let i = thread_number();
    let element = index.load(i as usize);
    if element != NOWHERE {
        tile.store(element, F32x2 { x: i as f32, y: 0.0 });
    }
}

/// Loads the 16 bytes that `index` names of shared memory, once all of it is written.
#[kernel]
unsafe fn shared_load_vec4(index: Global<u32>) {
    let tile = shared!([F32x4; 32]);
    let i = thread_number();
    tile.store(i, F32x4 { x: 0.0, y: 0.0, z: 0.0, w: 0.0 });
    sync_threads();
    tile.load(index.load(i as usize));
}

/// As [`shared_load_vec4`], 4 bytes a lane.
#[kernel]
unsafe fn shared_load(index: Global<u32>) {
    let tile = shared!([f32; 32]);
    let i = thread_number();
    tile.store(i, 0.0);
    sync_threads();
    tile.load(index.load(i as usize));
}

/// Loads two neighbours.
#[kernel]
unsafe fn two_in_a_line(index: Global<u32>, src: Global<f32>, dst: GlobalMut<f32>) {
    let i = index.load(thread_number() as usize) as usize;
    dst.store(i, src.load(2 * i) + src.load(2 * i + 1));
}

/// Loads the word that `index` names of constant memory.
#[kernel]
unsafe fn constant_at(index: Global<u32>) {
    let table = constant!([u32; 64]);
    table.load(index.load(thread_number() as usize));
}

static NO_FAMILY: Family = Family { name: "none", summary: "kernels of tests", axes: &[], kernels: &[] };

/// The access of a kernel above to the array that its lanes index, in one block.
fn access(kernel: Kernel, block: [u32; 3], index: impl Fn(u64) -> u32 + Send + Sync + 'static) -> Access {
    let threads = block.iter().map(|&n| u64::from(n)).product();
    let mut plan = Plan::new(launch([1; 3], block)).buffer(Buffer::input("index", threads, index).expect("small"));
    if kernel.parameters.len() > 1 {
        plan = plan.buffer(Buffer::input("src", ELEMENTS, noise).expect("small"));
        plan = plan.buffer(Buffer::output("dst", threads, noise).expect("small"));
    }
    if !kernel.constants.is_empty() {
        plan = plan.buffer(Buffer::constant("table", 64, |i| i as u32).expect("small"));
    }
    let run = Run { family: &NO_FAMILY, kernel, case: case(Vec::new()), plan: Arc::new(plan) };
    let outcome = simulate(kernel, &run.plan, &options(1));
    assert!(outcome.findings.is_empty(), "{}", outcome.findings[0]);
    // The last one, where an array is filled first.
    let indexed = |access: &Access| ["src", "tile", "table"].contains(&access.region.as_str());
    Explanation::new(&run, &outcome).accesses.into_iter().rfind(indexed).expect("the indexed access")
}

const WARP: [u32; 3] = [32, 1, 1];

/// The sentence about that access of a block of one warp.
fn of_a_warp(kernel: Kernel, index: impl Fn(u64) -> u64 + Send + Sync + 'static) -> String {
    access(kernel, WARP, move |lane| index(lane) as u32).why
}

#[test]
fn the_sentence_about_global_memory_names_step_lines_and_share() {
    assert_eq!(
        of_a_warp(global_at::KERNEL, |lane| lane),
        "As thread_idx_x rises by 1, the address in `src` rises by 4 bytes: 32 lanes touch 4 sectors in 1 line, \
         as few as can hold their 128 bytes (every request)."
    );
    assert_eq!(
        of_a_warp(global_at::KERNEL, |lane| 4096 - lane),
        "As thread_idx_x rises by 1, the address in `src` falls by 4 bytes: 32 lanes touch 5 sectors in 2 lines, \
         one more than they would fill, for the first request begins 4 bytes into one (every request)."
    );
    assert_eq!(
        of_a_warp(global_at::KERNEL, |lane| 1024 * lane),
        "As thread_idx_x rises by 1, the address in `src` rises by 4096 bytes: 32 lanes touch 32 sectors in 32 lines, \
         4 of every 32 bytes moved are used (every request)."
    );
    assert_eq!(
        of_a_warp(global_at::KERNEL, |_| 7),
        "All active lanes want one address in `src`: 32 lanes touch 1 sector in 1 line, as few as can hold their \
         4 bytes (every request)."
    );
    assert_eq!(
        of_a_warp(global_at::KERNEL, |lane| lane / 8),
        "Every 8 lanes want one address in `src`, which then rises by 4 bytes: 32 lanes touch 1 sector in 1 line, \
         as few as can hold their 16 bytes (every request)."
    );
    assert_eq!(
        of_a_warp(global_at::KERNEL, |lane| lane % 4 * 3),
        "From lane to lane, the address in `src` rises by 12 bytes, and after 4 lanes it begins again: 32 lanes touch \
         2 sectors in 1 line, 8 of every 32 bytes moved are used (every request)."
    );
    assert_eq!(
        of_a_warp(global_at::KERNEL, |lane| lane * lane * lane),
        "From lane to lane, the address in `src` follows no stride: 32 lanes touch 31 sectors in 29 lines, 12.9 % of \
         the bytes moved are used (every request)."
    );
    assert_eq!(
        of_a_warp(global_at::KERNEL, |lane| if lane == 9 { 3 } else { NOWHERE.into() }),
        "One lane alone wants 4 bytes of `src`: 1 lane touches 1 sector in 1 line, as few as can hold their 4 bytes \
         (every request)."
    );
    assert_eq!(
        of_a_warp(global_at::KERNEL, |lane| if lane % 2 == 0 { 8 * lane } else { NOWHERE.into() }),
        "From one active lane to the next, the address in `src` rises by 64 bytes: 16 lanes touch 16 sectors in \
         8 lines, 4 of every 32 bytes moved are used (every request)."
    );
    assert_eq!(
        of_a_warp(global_at_vec4::KERNEL, |lane| 2 * lane),
        "As thread_idx_x rises by 1, the address in `src` rises by 32 bytes: 32 lanes touch 32 sectors in 8 lines, \
         16 of every 32 bytes moved are used (every request)."
    );
}

#[test]
fn the_sentence_about_shared_memory_names_lanes_and_bank() {
    assert_eq!(
        of_a_warp(shared_at::KERNEL, |lane| 32 * lane),
        "As thread_idx_x rises by 1, the address in `tile` rises by 128 bytes, and in the first request lanes 0, 1, \
         2, …, 31 want 32 words of bank 0: 32 wavefronts instead of 1 (every request)."
    );
    assert_eq!(
        of_a_warp(shared_at::KERNEL, |lane| 33 * lane),
        "As thread_idx_x rises by 1, the address in `tile` rises by 132 bytes: no bank conflict, 1 wavefront for \
         32 lanes of 4 bytes (every request)."
    );
    assert_eq!(
        of_a_warp(shared_at::KERNEL, |lane| 2 * lane + 1),
        "As thread_idx_x rises by 1, the address in `tile` rises by 8 bytes, and in the first request lanes 0 and 16 \
         want 2 words of bank 1, and so in 15 other banks: 2 wavefronts instead of 1 (every request)."
    );
    assert_eq!(
        of_a_warp(shared_at::KERNEL, |lane| 32 * lane + (lane ^ 5)),
        "Each bit of the lane's number flips bits of the address in `tile` by exclusive or, as in a swizzle: no bank \
         conflict, 1 wavefront for 32 lanes of 4 bytes (every request)."
    );
    assert_eq!(
        of_a_warp(shared_at_vec2::KERNEL, |lane| 8 * lane),
        "As thread_idx_x rises by 1, the address in `tile` rises by 64 bytes, and in the first request lanes 0, 2, 4, \
         …, 14 want 8 words of bank 0, and so in 3 other banks: 16 wavefronts instead of 2 (every request). A wavefront \
         serves a half warp at 8 bytes a lane."
    );
    assert_eq!(
        of_a_warp(shared_at_vec2::KERNEL, |lane| if lane % 31 == 0 { lane } else { NOWHERE.into() }),
        "From one active lane to the next, the address in `tile` rises by 248 bytes: 2 wavefronts instead of 1, \
         though no bank has two words to send at a time (every request). A wavefront serves a half warp at 8 bytes a lane."
    );
    let load = |kernel, index: fn(u64) -> u64| of_a_warp(kernel, index);
    let rule = "twice as much for a load in which each active lane n has a partner, n ^ 1 for all or n ^ 2 for all, that is \
                inactive or wants the same address";
    assert_eq!(
        load(shared_load_vec4::KERNEL, |lane| lane),
        format!(
            "As thread_idx_x rises by 1, the address in `tile` rises by 16 bytes: no bank conflict, 4 wavefronts for 32 lanes \
             of 16 bytes (every request). A wavefront serves a quarter warp at 16 bytes a lane, and {rule}: so not here."
        )
    );
    assert_eq!(
        load(shared_load_vec4::KERNEL, |lane| lane / 2),
        format!(
            "Every 2 lanes want one address in `tile`, which then rises by 16 bytes: no bank conflict, 2 wavefronts for \
             32 lanes of 16 bytes (every request). A wavefront serves a quarter warp at 16 bytes a lane, and {rule}: so here."
        )
    );
    assert_eq!(
        load(shared_load::KERNEL, |lane| lane / 2 % 4),
        "Every 2 lanes want one address in `tile`, which then rises by 4 bytes, and after 8 lanes it begins again: no bank \
         conflict, 1 wavefront for 32 lanes of 4 bytes (every request)."
    );
}

#[test]
fn the_sentence_about_constant_memory_counts_addresses() {
    assert_eq!(
        of_a_warp(constant_at::KERNEL, |_| 5),
        "All active lanes want one address in `table`: one pass will do (every request)."
    );
    assert_eq!(
        of_a_warp(constant_at::KERNEL, |lane| lane / 4),
        "Every 4 lanes want one address in `table`, which then rises by 4 bytes: 32 lanes want 8 addresses, each in a \
         pass of its own (every request)."
    );
}

#[test]
fn the_index_that_moves_is_named_where_the_block_tells_it() {
    let sentence = |block, index: fn(u64) -> u64| access(global_at::KERNEL, block, move |i| index(i) as u32).why;
    let column = sentence([16, 2, 1], |i| i % 16 * 256 + i / 16);
    let moves = "As thread_idx_x rises by 1, the address in `src` rises by 1024 bytes, and as thread_idx_y rises by 1, \
                 every 16 lanes, it rises by 4 bytes: ";
    assert!(column.starts_with(moves), "{column}");
    let linear = sentence([16, 4, 1], |i| i);
    let moves = "From lane to lane, the address in `src` rises by 4 bytes, also where a row of 16 threads ends and \
                 thread_idx_y rises: ";
    assert!(linear.starts_with(moves), "{linear}");
    let one_wide = sentence([1, 32, 1], |i| 64 * i);
    assert!(
        one_wide.starts_with("As thread_idx_y rises by 1, the address in `src` rises by 256 bytes: "),
        "{one_wide}"
    );
    // Where a row ends differs from warp to warp.
    let odd = sentence([24, 4, 1], |i| 2 * i);
    assert!(odd.starts_with("From lane to lane, the address in `src` rises by 8 bytes: "), "{odd}");
}

#[test]
fn the_sentence_is_about_the_most_frequent_pattern_and_says_how_frequent() {
    let irregular = |i: u64| if i < 32 { i * i * i % 4093 } else { 8 * i };
    let why = access(global_at::KERNEL, [128, 1, 1], move |i| irregular(i) as u32).why;
    assert!(why.contains(" rises by 32 bytes: ") && why.ends_with(" (75.0 % of the requests)."), "{why}");
}

#[test]
fn bytes_that_several_lanes_want_are_used_once_and_excess_is_what_other_addresses_would_save() {
    let broadcast = access(global_at::KERNEL, WARP, |_| 7);
    assert_eq!((broadcast.site.used, broadcast.site.sectors, broadcast.excess), (Some(4), Some(1), 0));
    let strided = access(global_at::KERNEL, WARP, |lane| 1024 * lane as u32);
    assert_eq!((strided.site.used, strided.site.sectors, strided.excess), (Some(128), Some(32), 28 * 32));
    let conflict = access(shared_at::KERNEL, WARP, |lane| 32 * lane as u32);
    assert_eq!((conflict.site.used, conflict.site.wavefronts, conflict.excess), (None, Some(32), 31 * 128));
}

#[test]
fn accesses_of_one_line_are_told_apart() {
    let second = access(two_in_a_line::KERNEL, WARP, |i| i as u32);
    let column = second.site.column;
    assert_eq!(second.name, format!("load src (column {column}, 4 bytes)"));
    assert_eq!(access(global_at::KERNEL, WARP, |i| i as u32).name, "load src");
}

/// The explanation of a kernel of the suite on a shape.
fn of_suite(name: &str) -> Explanation {
    let (family, entry) = kernels().into_iter().find(|(_, entry)| entry.kernel.name == name).expect("a kernel");
    let value = |axis: &Axis| match axis.in_simulator[0] {
        Value::Shape(..) => Value::Shape(256, 256),
        value => value,
    };
    let case = case(family.axes.iter().map(|axis| (axis.name, value(axis))).collect());
    let plan = (entry.plan)(&case).unwrap_or_else(|error| panic!("{name} on {case}: {error}"));
    explained(&Run { family, kernel: entry.kernel, case, plan: Arc::new(plan) }, 2).0
}

/// What is counted of each request of an access, on average.
fn average(explanation: &Explanation, name: &str) -> f64 {
    let access = explanation.accesses.iter().find(|access| access.name == name);
    let site = &access.unwrap_or_else(|| panic!("{} has no {name}", explanation.kernel)).site;
    site.sectors.or(site.wavefronts).expect("a count") as f64 / site.requests as f64
}

/// The kernels that do what is advised count what was said.
#[test]
fn a_remedy_gives_the_count_that_it_names() {
    for (slow, access, change, fast, fixed) in [
        (
            "transpose_tiled",
            "load tile",
            "Pad `tile` by 1 word after every 32, to rows of 33",
            "transpose_padded",
            "load tile",
        ),
        (
            "transpose_tiled",
            "load tile",
            "Swizzle `tile`, in rows of 32 words",
            "transpose_tiles_swizzled",
            "load tile",
        ),
        (
            "padding_none",
            "load dynamic shared memory",
            "Pad `dynamic shared memory` by 1 word",
            "padding_word",
            "load dynamic shared memory",
        ),
        (
            "transpose_naive",
            "store dst",
            "Swap the axes for this access alone, through a tile",
            "transpose_padded",
            "store dst",
        ),
        ("matrix_row_sums_thread", "load src", "Swap the axes: ", "matrix_row_sums_warp", "load src"),
        (
            "particles_aos",
            "load particles (column 31, 4 bytes)",
            "Put the elements of `particles`",
            "particles_soa",
            "load x",
        ),
        ("particles_quad_aos", "load particles", "Load 16 bytes a lane", "particles_quad_aos_vec4", "load particles"),
    ] {
        let explanation = of_suite(slow);
        let has = |candidate: &&Access| candidate.name.starts_with(access) && candidate.excess > 0;
        let found = explanation.accesses.iter().find(has).unwrap_or_else(|| panic!("{slow} has no {access}"));
        let remedy = found.remedies.iter().find(|remedy| remedy.change.starts_with(change));
        let remedy = remedy.unwrap_or_else(|| panic!("{slow}: {:?}", found.remedies));
        assert_eq!(remedy.after, average(&of_suite(fast), fixed), "{slow}: {remedy}");
        assert!(explain::text(&explanation).contains(&format!("    → {remedy}\n")), "{slow}");
    }
}

#[test]
fn where_no_change_helps_that_is_said() {
    let scattered = access(global_at::KERNEL, WARP, |lane| (lane * lane * lane) as u32);
    assert_eq!(scattered.advice, ["None of the changes tried on its addresses lowers this count."]);
    let linear = access(global_at::KERNEL, WARP, |lane| lane as u32);
    assert!(linear.advice.is_empty(), "there is no excess: {:?}", linear.advice);
    let shifted = access(global_at::KERNEL, WARP, |lane| lane as u32 + 1);
    assert_eq!(
        shifted.advice,
        [
            "Let requests begin at multiples of 32 bytes: move the start of `src`, or pad its rows: 4.00 sectors a request \
          instead of 5.00."
        ]
    );
    let divergent = access(constant_at::KERNEL, WARP, |lane| lane as u32);
    assert_eq!(divergent.advice, ["Read `table` from shared memory: 1.00 wavefronts a request instead of 32.00."]);
}

#[test]
fn counts_are_mapped_to_the_metrics_of_nsight_compute() {
    let tiled = of_suite("transpose_tiled");
    let text = explain::text(&tiled);
    for metric in [
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "memory_l2_theoretical_sectors_global",
        "memory_l1_wavefronts_shared_ideal",
        "l1tex__data_bank_conflicts_pipe_lsu.sum also counts arbitration",
    ] {
        assert!(text.contains(metric), "{metric}");
    }
    let naive = explain::text(&of_suite("transpose_naive"));
    assert!(!naive.contains("shared_ideal") && !naive.contains("arbitration"), "it touches no shared memory");
}

/// A small case of a family: its defaults, but for the size.
fn small(family: &Family) -> Case {
    let value = |axis: &Axis| match axis.in_simulator[0] {
        Value::Shape(..) => Value::Shape(97, 65),
        Value::Count(_) if axis.name == Axis::ELEMENTS.name => Value::Count(4099),
        value => value,
    };
    case(family.axes.iter().map(|axis| (axis.name, value(axis))).collect())
}

fn run(family: &'static Family, entry: &Entry) -> Run {
    let case = small(family);
    let plan = (entry.plan)(&case).unwrap_or_else(|error| panic!("{} on {case}: {error}", entry.kernel.name));
    Run { family, kernel: entry.kernel, case, plan: Arc::new(plan) }
}

fn explained(run: &Run, threads: usize) -> (Explanation, Outcome) {
    let outcome = simulate(run.kernel, &run.plan, &options(threads));
    (Explanation::new(run, &outcome), outcome)
}

#[test]
fn every_kernel_is_explained_on_its_source_and_the_same_on_any_number_of_threads() {
    for (family, entry) in kernels() {
        let run = run(family, entry);
        let name = run.kernel.name;
        let (explanation, outcome) = explained(&run, 1);
        let text = explain::text(&explanation);
        assert!(!explanation.accesses.is_empty(), "{name} touches no memory");
        assert!(text.contains(&format!("fn {name}(")), "{name}: its source is not there");
        for ((access, site), sampled) in explanation.accesses.iter().zip(&outcome.sites).zip(&outcome.sampled) {
            let stands_in = |excerpt: &&explain::Excerpt| excerpt.contains(&access.site.file, access.site.line);
            assert_eq!(explanation.source.iter().filter(stands_in).count(), 1, "{name}, line {}", access.site.line);
            assert!(text.contains(&access.why) && access.why.ends_with('.'), "{name}: {}", access.why);
            assert!(access.site.used.is_none_or(|used| used <= 32 * site.counts.sectors), "{name}: {access:?}");
            let requests = sampled.tallies.iter().map(|tally| tally.total.requests).sum::<u64>();
            assert_eq!(requests, site.counts.requests, "{name}: each request has one pattern");
        }
        let [once, again] =
            [explanation, explained(&run, 3).0].map(|explanation| serde_json::to_string(&explanation).expect("JSON"));
        assert!(once == again, "{name} is explained differently on three threads");
        let unsampled = simulate(run.kernel, &run.plan, &on_threads(1));
        assert_eq!(unsampled.sites, outcome.sites, "{name}: to look at requests changes their counts");
        assert!(unsampled.sampled.is_empty());
    }
}

#[test]
fn samples_are_bounded_and_of_the_first_and_the_last_block() {
    let (family, entry) = kernels().into_iter().find(|(_, entry)| entry.kernel.name == "copy_coalesced").expect("it");
    let run = run(family, entry);
    let (explanation, outcome) = explained(&run, 2);
    let last = run.plan.launch.grid[0] - 1;
    for (access, sampled) in explanation.accesses.iter().zip(&outcome.sampled) {
        let blocks: Vec<_> = access.samples.iter().map(|request| request.block[0]).collect();
        assert_eq!(blocks.iter().filter(|block| **block == 0).count(), 8, "a request each of eight warps");
        assert!(blocks.contains(&last) && blocks.iter().all(|block| [0, last].contains(block)), "{blocks:?}");
        assert!(matches!(sampled.tallies[0].pattern, Pattern::Even { step: 4 }));
        assert_eq!(sampled.tallies[0].example.block, [0; 3]);
    }
}

fn busload(folder: &Path, arguments: &[&str]) -> Assert {
    Command::new(env!("CARGO_BIN_EXE_busload-under-test")).current_dir(folder).args(arguments).assert()
}

#[test]
fn what_cannot_be_explained_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, reason) in [
        (&["transpose_paded"][..], "transpose_paded is no kernel; the nearest are transpose_padded"),
        (&["transpose_"], "transpose_ is no kernel"),
        (&[], "KERNEL"),
        (&["transpose_naive", "--shape", "64,128"], "--shape 64x64,128x128: one case at a time is explained"),
        (&["transpose_naive", "--stride", "2"], "--stride means nothing to the selected kernels"),
        (&["transpose_naive", "--shape", "0"], "at least 1"),
        (&["transpose_naive", "--html", "missing/page.html"], "--html missing/page.html: no file can be written there"),
        (&["transpose_naive", "--html", "."], "this is no file"),
        (&["transpose_naive", "--html", "page.html", "--json", "missing/out.json"], "no file can be written there"),
        (&["transpose_naive", "--html", "-", "--json", "-"], "standard output takes one of them"),
    ] {
        let assert = busload(folder.path(), &[&["explain"], arguments].concat()).code(2).stdout("");
        assert.stderr(predicate::str::contains(reason).and(predicate::str::contains("panicked").not()));
    }
    let wrong = counterexamples()[0].1.kernel.name;
    let assert = busload(folder.path(), &["explain", wrong, "--html", "page.html"]).code(1).stdout("");
    assert.stderr(predicate::str::contains(wrong).and(predicate::str::contains("findings")));
    assert_eq!(folder.path().read_dir().expect("the folder").count(), 0, "a file was left");
}

#[test]
fn the_terminal_shows_the_kernel_alone_and_the_page_its_neighbours_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = ["explain", "transpose_tiled", "--shape", "97x65"];
    let files = ["--html", "page.html", "--json", "out.json"];
    let text = busload(folder.path(), &[&small[..], &files].concat()).success().get_output().stdout.clone();
    let text = String::from_utf8(text).expect("text");
    assert!(text.starts_with("transpose_tiled on 97x65: 3x4 blocks of 32x8 threads, simulated: all\n"), "{text}");
    assert!(text.contains("▶ The worst is line ") && !text.contains("transpose_padded("), "{text}");
    assert!(busload(folder.path(), &small).success().get_output().stdout == text.as_bytes());
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("out.json")).expect("the file")).expect("JSON");
    let names: Vec<_> = json["kernels"].as_array().expect("kernels").iter().map(|kernel| &kernel["kernel"]).collect();
    assert_eq!(names, ["transpose_naive_strided_load", "transpose_tiled", "transpose_padded"]);
    assert_eq!((&json["schema"], &json["shown"]), (&2.into(), &1.into()));
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("the page");
    assert!(page.starts_with("<!doctype html>") && page.contains("transpose_padded"));
    for outside in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "the page asks for {outside}");
    }
    let printed = busload(folder.path(), &[&small[..], &["--html", "-"]].concat()).success();
    assert!(printed.get_output().stdout == page.as_bytes());
}
