//! What the simulator counts, and what its warps do, in kernels of one warp: the measured tables of the hardware.

use busload::sim::Outcome;
use busload_tests::{checked, launch, memory, on_threads, one_warp};
use gpu::device::Value;
use gpu::device::prelude::*;
use gpu::suite::{Buffer, Counts, Kernel, Operation, Plan, PlanError, noise};
use std::sync::Arc;

/// The counts of a region of an outcome.
fn counts(outcome: &Outcome, region: &str, operation: Operation, width: u64) -> Counts {
    outcome.regions[&(region.to_owned(), operation, width)]
}

/// Runs a kernel that must find its own plan's expectations met.
fn run(kernel: Kernel, plan: Result<Plan, PlanError>) -> Outcome {
    checked(kernel, &Arc::new(plan.expect("a small plan")), &on_threads(2))
}

/// Lanes that take no part.
const NONE: u32 = u32::MAX;

/// Each lane loads the element that `index` names, unless it is [`NONE`], from global memory.
#[device]
unsafe fn load_global<T: Value>(index: Global<u32>, src: Global<f32>) {
    let element = index.load(warp::lane_id() as usize);
    if element != NONE {
        src.cast::<T>().load(element as usize);
    }
}

#[kernel]
unsafe fn global_4(index: Global<u32>, src: Global<f32>) {
    load_global::<f32>(index, src);
}

#[kernel]
unsafe fn global_8(index: Global<u32>, src: Global<f32>) {
    load_global::<F32x2>(index, src);
}

#[kernel]
unsafe fn global_16(index: Global<u32>, src: Global<f32>) {
    load_global::<F32x4>(index, src);
}

/// The same from shared memory.
#[device]
unsafe fn load_shared<T: Value>(tile: Shared<f32, 4096>, index: Global<u32>, src: Global<f32>) {
    for i in steps(warp::lane_id()..4096, 32) {
        tile.store(i, src.load(i as usize));
    }
    sync_threads();
    let element = index.load(warp::lane_id() as usize);
    if element != NONE {
        tile.cast::<T>().load(element);
    }
}

#[kernel]
unsafe fn shared_4(index: Global<u32>, src: Global<f32>) {
    let tile = shared!([f32; 4096]);
    load_shared::<f32>(tile, index, src);
}

#[kernel]
unsafe fn shared_8(index: Global<u32>, src: Global<f32>) {
    let tile = shared!([f32; 4096]);
    load_shared::<F32x2>(tile, index, src);
}

#[kernel]
unsafe fn shared_16(index: Global<u32>, src: Global<f32>) {
    let tile = shared!([f32; 4096]);
    load_shared::<F32x4>(tile, index, src);
}

/// The counts of one load of `region` by `kernel`, whose lanes load the elements that `index` gives.
fn one_load(kernel: Kernel, region: &str, width: u64, index: fn(u32) -> u32) -> Counts {
    let plan = || {
        Ok(one_warp()
            .buffer(Buffer::input("index", 32, move |lane| index(lane as u32))?)
            .buffer(Buffer::input("src", 4096, noise)?))
    };
    counts(&run(kernel, plan()), region, Operation::Load, width)
}

#[test]
fn global_loads_cost_the_sectors_and_lines_measured_on_an_h200() {
    type Row = (&'static str, Kernel, u64, fn(u32) -> u32, [u64; 4]);
    let rows: [Row; 13] = [
        ("linear", global_4::KERNEL, 4, |lane| lane, [1, 4, 4, 1]),
        ("reversed", global_4::KERNEL, 4, |lane| 31 - lane, [1, 4, 4, 1]),
        ("one address", global_4::KERNEL, 4, |_| 7, [1, 1, 1, 1]),
        ("stride 2", global_4::KERNEL, 4, |lane| 2 * lane, [1, 8, 4, 2]),
        ("stride 8", global_4::KERNEL, 4, |lane| 8 * lane, [1, 32, 4, 8]),
        ("16 lanes", global_4::KERNEL, 4, |lane| if lane < 16 { lane } else { NONE }, [1, 2, 2, 1]),
        ("offset 1", global_4::KERNEL, 4, |lane| lane + 1, [1, 5, 4, 2]),
        ("8 bytes, linear", global_8::KERNEL, 8, |lane| lane, [1, 8, 8, 2]),
        ("16 bytes, linear", global_16::KERNEL, 16, |lane| lane, [1, 16, 16, 4]),
        ("16 bytes, stride 2", global_16::KERNEL, 16, |lane| 2 * lane, [1, 32, 16, 8]),
        ("8 bytes, one address", global_8::KERNEL, 8, |_| 7, [1, 1, 1, 1]),
        ("in any order", global_4::KERNEL, 4, |lane| (lane * 13 + 5) % 32, [1, 4, 4, 1]),
        ("nobody but lane 31", global_4::KERNEL, 4, |lane| if lane == 31 { 0 } else { NONE }, [1, 1, 1, 1]),
    ];
    for (pattern, kernel, width, index, expected) in rows {
        let counts = one_load(kernel, "src", width, index);
        assert_eq!([counts.requests, counts.sectors, counts.sectors_ideal, counts.lines], expected, "{pattern}");
    }
}

#[test]
fn shared_loads_cost_the_wavefronts_measured_on_an_h200() {
    const NO: Option<(u64, u64)> = None;
    const fn is(wavefronts: u64, ideal: u64) -> Option<(u64, u64)> {
        Some((wavefronts, ideal))
    }
    type Row = (&'static str, fn(u32) -> u32, [Option<(u64, u64)>; 3]);
    let rows: [Row; 10] = [
        ("linear", |lane| lane, [is(1, 1), is(2, 2), is(4, 4)]),
        ("one address", |_| 3, [is(1, 1), is(1, 1), is(2, 2)]),
        ("lane / 2", |lane| lane / 2, [NO, is(1, 1), is(2, 2)]),
        ("lane / 4", |lane| lane / 4, [NO, NO, is(2, 2)]),
        ("lane % 16", |lane| lane % 16, [NO, is(2, 2), is(4, 4)]),
        ("stride 2", |lane| 2 * lane, [is(2, 1), is(4, 2), is(8, 4)]),
        ("stride 32", |lane| 32 * lane, [is(32, 1), NO, NO]),
        ("stride 33", |lane| 33 * lane, [is(1, 1), NO, NO]),
        ("lanes 0, 8, 16, 24", |lane| if lane % 8 == 0 { lane } else { NONE }, [NO, is(2, 1), is(4, 1)]),
        ("lanes 0 to 16", |lane| if lane <= 16 { lane } else { NONE }, [NO, is(2, 2), is(3, 3)]),
    ];
    let kernels = [(shared_4::KERNEL, 4), (shared_8::KERNEL, 8), (shared_16::KERNEL, 16)];
    for (pattern, index, expected) in rows {
        for ((kernel, width), expected) in kernels.into_iter().zip(expected) {
            let Some(expected) = expected else { continue };
            let counts = one_load(kernel, "tile", width, index);
            assert_eq!((counts.wavefronts, counts.wavefronts_ideal), expected, "{pattern}, {width} bytes");
            assert_eq!(counts.requests, 1, "{pattern}, {width} bytes");
        }
    }
}

#[kernel]
unsafe fn divergent_steps(src: Global<f32>) {
    let lane = warp::lane_id();
    for k in steps(0..4u32, 1) {
        if (lane + k) & 1 == 1 {
            src.load(lane as usize);
        }
    }
}

#[kernel]
unsafe fn divergent_each(src: Global<f32>) {
    let lane = warp::lane_id();
    for k in each([0, 1, 2, 3]) {
        if (lane + k) & 1 == 1 {
            src.load(lane as usize);
        }
    }
}

#[kernel]
unsafe fn divergent_unrolled(src: Global<f32>) {
    let lane = warp::lane_id();
    unroll!(for k in [0, 1, 2, 3] {
        if (lane + k) & 1 == 1 {
            src.load(lane as usize);
        }
    });
}

/// Runs a kernel of one warp over an input, and gives the counts of its loads.
fn loads(kernel: Kernel, len: u64) -> Counts {
    let plan = Buffer::input("src", len, noise).map(|src| one_warp().buffer(src));
    counts(&run(kernel, plan), "src", Operation::Load, 4)
}

#[test]
fn a_divergent_loop_makes_a_request_an_iteration_though_each_lane_loads_in_every_other() {
    for kernel in [divergent_steps::KERNEL, divergent_each::KERNEL, divergent_unrolled::KERNEL] {
        let counts = loads(kernel, 32);
        let counts = (counts.requests, counts.lanes, counts.sectors, counts.sectors_ideal, counts.lines);
        assert_eq!(counts, (4, 64, 16, 8, 4), "{}", kernel.name);
    }
}

#[kernel]
unsafe fn nested_loops(src: Global<f32>) {
    let lane = warp::lane_id();
    for outer in steps(0..3u32, 1) {
        for inner in steps(0..lane % 4, 1) {
            src.load((outer + inner) as usize);
        }
        src.load(outer as usize);
    }
}

#[kernel]
unsafe fn trip_counts(src: Global<f32>) {
    let lane = warp::lane_id();
    for k in steps(0..lane, 1) {
        src.load(k as usize);
    }
}

#[test]
fn nested_loops_make_a_request_for_each_pair_of_iterations_that_any_lane_is_in() {
    let counts = loads(nested_loops::KERNEL, 32);
    // The inner loop: 3 iterations of 24, 16 and 8 lanes; after it, all.
    assert_eq!((counts.requests, counts.lanes), (3 * (3 + 1), 3 * (24 + 16 + 8 + 32)));
}

#[test]
fn lanes_that_leave_a_loop_early_are_missing_from_later_requests() {
    let counts = loads(trip_counts::KERNEL, 32);
    assert_eq!((counts.requests, counts.lanes, counts.sectors), (31, 31 * 32 / 2, 31));
}

#[kernel]
unsafe fn unrolled(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    unroll!(for j in [0, 32, 64, 96] {
        dst.store((lane + j) as usize, src.load((lane + j) as usize));
    });
}

#[test]
fn an_unrolled_access_is_one_source_position_with_a_request_a_copy() {
    let plan = || {
        Ok(one_warp().buffer(Buffer::input("src", 128, noise)?).buffer(Buffer::output("dst", 128, noise)?).loads(
            "src",
            4,
            Counts::default(),
        ))
    };
    let outcome = run(unrolled::KERNEL, plan());
    let sites: Vec<_> = outcome.sites.iter().map(|site| (site.operation, site.counts.requests)).collect();
    assert_eq!(sites.len(), 2, "{sites:?}");
    assert!(sites.contains(&(Operation::Load, 4)) && sites.contains(&(Operation::Store, 4)), "{sites:?}");
    assert_eq!(outcome.sites[0].position.line, outcome.sites[1].position.line);
}

#[kernel]
unsafe fn reduce(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    let mut sum = src.load(lane as usize);
    for delta in each([16, 8, 4, 2, 1]) {
        sum += warp::shuffle_down(warp::FULL, sum, delta);
    }
    if lane == 0 {
        dst.store(0, sum);
    }
}

#[kernel]
unsafe fn butterfly(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    let mut sum = src.load(lane as usize);
    for xor in each([16, 8, 4, 2, 1]) {
        sum += warp::shuffle_xor(warp::FULL, sum, xor);
    }
    dst.store(lane as usize, sum);
}

#[kernel]
unsafe fn broadcast(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    dst.store(lane as usize, warp::shuffle(warp::FULL, src.load(lane as usize), 5));
}

/// One half of the warp exchanges values without the other.
#[kernel]
unsafe fn half_warp(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    let value = src.load(lane as usize);
    if lane < 16 {
        dst.store(lane as usize, warp::shuffle_xor(0xFFFF, value, 15));
    } else {
        dst.store(lane as usize, value);
    }
}

/// A plan of one warp from `src`, whose elements are their indices, to `dst`.
fn indices_to(len: u64, expected: fn(u64) -> f32) -> Result<Plan, PlanError> {
    Ok(one_warp().buffer(Buffer::input("src", 64, |i| i as f32)?).buffer(Buffer::output("dst", len, expected)?))
}

#[test]
fn shuffles_bring_each_lane_the_value_it_asks_for() {
    run(reduce::KERNEL, indices_to(1, |_| 496.0));
    run(butterfly::KERNEL, indices_to(32, |_| 496.0));
    run(broadcast::KERNEL, indices_to(32, |_| 5.0));
    run(half_warp::KERNEL, indices_to(32, |lane| if lane < 16 { 15 - lane } else { lane } as f32));
}

#[kernel]
unsafe fn through_shared_memory(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    let tile = shared!([f32; 32]);
    tile.store(lane, src.load(lane as usize));
    sync_warp(warp::FULL);
    dst.store(lane as usize, tile.load(31 - lane));
}

#[kernel]
unsafe fn through_dynamic_memory(src: Global<f32>, dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    let tile = dynamic_shared::<f32>();
    tile.store(lane, src.load(lane as usize));
    sync_threads();
    dst.store(lane as usize, tile.load(31 - lane));
}

#[test]
fn a_warp_that_meets_may_read_what_its_other_lanes_wrote() {
    let outcome = run(through_shared_memory::KERNEL, indices_to(32, |lane| (31 - lane) as f32));
    assert_eq!(counts(&outcome, "tile", Operation::Load, 4).wavefronts, 1);
}

#[test]
fn dynamic_shared_memory_is_as_large_as_the_launch_says() {
    let mut plan = indices_to(32, |lane| (31 - lane) as f32).expect("a small plan");
    plan.launch.shared_bytes = 128;
    let outcome = run(through_dynamic_memory::KERNEL, Ok(plan));
    let wavefronts: u64 = outcome.sites.iter().map(|site| site.counts.wavefronts).sum();
    assert_eq!(wavefronts, 2);
}

#[kernel]
unsafe fn add_all(src: Global<f32>, sum: GlobalMut<f32>, ticket: GlobalMut<u32>, order: GlobalMut<u32>) {
    let i = thread::index_x();
    sum.atomic_add(0, src.load(i));
    if thread::thread_idx_x() == 0 {
        order.store(thread::block_idx_x() as usize, ticket.atomic_add(0, 1));
    }
}

#[test]
fn atomic_additions_of_many_blocks_give_the_same_bits_on_any_number_of_threads() {
    let (blocks, threads) = (200, 64);
    let plan = || -> Result<_, PlanError> {
        Ok(Plan::new(launch([blocks, 1, 1], [threads, 1, 1]))
            // Held to the exact sum below.
            .buffer(Buffer::zeroed("sum", 1, |_| 0.0f32)?.within(f64::INFINITY))
            .buffer(Buffer::input("src", (blocks * threads).into(), |i| 0.1 + noise(i) * 1e-6)?)
            .buffer(Buffer::zeroed("ticket", 1, move |_| blocks)?)
            .buffer(Buffer::output("order", blocks.into(), |block| block as u32)?))
    };
    let plan = Arc::new(plan().expect("a small plan"));
    let [one, two, three] = [1, 2, 3].map(|threads| checked(add_all::KERNEL, &plan, &on_threads(threads)));
    let of = |outcome| memory(&plan, outcome);
    assert!(of(&one) == of(&two) && of(&one) == of(&three));
    let sum = f32::from_bits(of(&one)[0][0] as u32);
    let exact: f64 = (0..u64::from(blocks * threads)).map(|i| f64::from(0.1 + noise(i) * 1e-6)).sum();
    assert!((f64::from(sum) / exact - 1.0).abs() < 1e-4, "{sum} is not near {exact}");
    let adds = counts(&one, "sum", Operation::Atomic, 4);
    assert_eq!((adds.requests, adds.sectors, adds.lanes), (400, 400, 12_800));
}

#[kernel]
unsafe fn coordinates(lane: GlobalMut<u32>, place: GlobalMut<u32>, block: GlobalMut<u32>) {
    let (x, y, z) = (thread::thread_idx_x(), thread::thread_idx_y(), thread::thread_idx_z());
    let (width, height) = (thread::block_dim_x(), thread::block_dim_y());
    let (bx, by, bz) = (thread::block_idx_x(), thread::block_idx_y(), thread::block_idx_z());
    let number = bx + thread::grid_dim_x() * (by + thread::grid_dim_y() * bz);
    let threads = width * height * thread::block_dim_z();
    let i = (number * threads + x + width * (y + height * z)) as usize;
    lane.store(i, warp::lane_id());
    place.store(i, x + 100 * y + 10_000 * z);
    block.store(i, bx + 100 * by + 10_000 * bz);
}

#[test]
fn threads_and_blocks_are_numbered_with_x_fastest_and_the_last_warp_may_be_partial() {
    for (grid, block) in [([2, 3, 2], [4, 3, 5]), ([3, 2, 1], [11, 5, 1]), ([1, 1, 3], [1, 1, 33])] {
        let threads = |[x, y, z]: [u32; 3]| u64::from(x * y * z);
        let split = move |i: u64, [x, y, _]: [u32; 3]| {
            let i = i as u32;
            i % x + 100 * (i / x % y) + 10_000 * (i / x / y)
        };
        let (per_block, n) = (threads(block), threads(block) * threads(grid));
        let plan = || {
            Ok(Plan::new(launch(grid, block))
                .buffer(Buffer::output("lane", n, move |i| (i % per_block % 32) as u32)?)
                .buffer(Buffer::output("place", n, move |i| split(i % per_block, block))?)
                .buffer(Buffer::output("block", n, move |i| split(i / per_block, grid))?))
        };
        let outcome = run(coordinates::KERNEL, plan());
        let stores = counts(&outcome, "lane", Operation::Store, 4);
        assert_eq!((stores.requests, stores.lanes), (threads(grid) * per_block.div_ceil(32), n), "{block:?}");
    }
}

#[kernel]
unsafe fn cache_paths(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = warp::lane_id() as usize;
    let sum = src.load(i) + src.load_cg(i) + src.load_nc(i) + src.load_cs(i);
    dst.store(i, fma(sum, 2.0, 1.0));
    dst.load(i);
}

#[test]
fn every_path_through_the_caches_loads_the_same_and_counts_the_same() {
    let outcome = run(cache_paths::KERNEL, indices_to(32, |i| (8 * i) as f32 + 1.0));
    let loads = counts(&outcome, "src", Operation::Load, 4);
    assert_eq!((loads.requests, loads.sectors, loads.lines), (4, 16, 4));
    assert_eq!(outcome.sites.len(), 6);
}

#[kernel]
unsafe fn lanes_that_end(dst: GlobalMut<f32>) {
    let lane = warp::lane_id();
    if lane < 16 {
        sync_warp(warp::FULL);
        dst.store(lane as usize, 1.0);
    }
}

#[test]
fn a_warp_does_not_wait_for_lanes_that_have_ended() {
    let dst = Buffer::partial_output("dst", 32, |i| (i < 16).then_some(1.0f32));
    run(lanes_that_end::KERNEL, dst.map(|dst| one_warp().buffer(dst)));
}
