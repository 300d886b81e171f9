//! What the kernels must keep: results, and what they ask of the memory system. No GPU is needed.

use own_crate::FAMILIES;
use own_crate::histogram::{BINS, histogram_global, histogram_shared, histogram_warps, occurrences, value};
use own_crate::stencil::{stencil_global, stencil_tiled};

/// A launch of a stencil on a matrix of ones, whose means are ones.
fn on_ones(kernel: busload::Kernel) -> busload::launch::Report {
    let ones = vec![1.0f32; 128 * 64];
    let launch = busload::launch(kernel).grid((4, 8)).block((32, 8)).input("src", ones.clone()).output("dst", ones);
    launch.scalar("width", 128).scalar("height", 64).run()
}

/// A launch of a histogram of 4096 elements.
fn of_values(kernel: busload::Kernel) -> busload::launch::Report {
    let values: Vec<u32> = (0..4096).map(value).collect();
    let bins: Vec<u32> = (0..BINS.into()).map(|bin| occurrences(bin, 4096)).collect();
    busload::launch(kernel).grid(4).block(256).input("src", values).zeroed("bins", bins).scalar("n", 4096).run()
}

#[test]
fn every_kernel_is_right() {
    busload::assert_families(FAMILIES);
}

#[test]
fn neighbours_to_the_left_and_to_the_right_cost_a_sector_more() {
    let report = on_ones(stencil_global::KERNEL);
    report.at("let middle").assert_sectors_per_request(4.0);
    report.at("src.load(at(y, x.max(1) - 1, width))").assert_sectors_per_request(4.75);
    report.at("store dst").assert_coalesced();
    report.all("load src").assert_requests(5 * 128 * 64 / 32);
}

#[test]
fn a_tile_has_no_bank_conflicts_and_loads_a_quarter_as_much() {
    let report = on_ones(stencil_tiled::KERNEL);
    report.assert_conflict_free();
    report.all("load tile").assert_wavefronts_per_request(1.0);
    report.at("load src").assert_requests(32 * 11);
}

#[test]
fn bins_of_the_block_leave_two_requests_a_block_to_global_memory() {
    of_values(histogram_global::KERNEL).at("atomic bins").assert_requests(4096 / 32);
    of_values(histogram_shared::KERNEL).at("atomic bins").assert_requests(4 * 2);
    let report = of_values(histogram_warps::KERNEL);
    report.at("atomic bins").assert_requests(4 * 2).assert_coalesced();
    report.at("load src").assert_coalesced();
}

/// What a failing assertion says: the access, its line, its counts, and why.
#[test]
#[should_panic(expected = "`load src` of `stencil_global` was to need 4.00 sectors a request")]
fn an_assertion_that_does_not_hold() {
    on_ones(stencil_global::KERNEL).at("let left").assert_sectors_per_request(4.0);
}
