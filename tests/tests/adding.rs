//! The kernels that people begin from, that of `cargo xtask new` and those of `docs/adding-a-kernel.md`: they give their reference, and
//! their counts are as stated.

use busload_tests::{cases, checked_and_counted, on_threads};
use gpu::device;
use gpu::device::prelude::*;
use std::sync::Arc;

#[path = "../../xtask/src/new/template.rs"]
pub mod template;

/// Like [`copy_coalesced`], backwards: the last lane of a warp reads the first element of its line.
///
/// **Look for** the same 4 sectors: the order of the lanes does not matter. **Cost** none.
#[kernel]
pub unsafe fn copy_reversed(src: Global<f32>, dst: GlobalMut<f32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        // Each warp still touches 32 neighbours.
        dst.store(i, src.load(n - 1 - i));
    }
}

#[kernel]
pub unsafe fn histogram_global(src: Global<u32>, bins: GlobalMut<u32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        // A warp loads one line, and adds to 32 bins side by side.
        bins.atomic_add(src.load(i) as usize, 1);
    }
}

family! {
    /// Those of the documentation.
    pub static FAMILY: Family = Family {
        name: "documented",
        summary: "the kernels of the documentation",
        axes: &[Axis::ELEMENTS],
        kernels: &[
            Entry { kernel: histogram_global::KERNEL, plan },
            Entry {
                kernel: copy_reversed::KERNEL,
                plan: |case| {
                    let n = case.elements();
                    Ok(Plan::new(Launch::linear(n, 256)?)
                        .buffer(Buffer::input("src", n, noise)?)
                        .buffer(Buffer::output("dst", n, move |i| noise(n - 1 - i))?)
                        .scalar("n", n)
                        .bytes(product("the number of bytes", &[8, n])?)
                        .loads("src", 4, warps(n, |warp, lanes| Progression::linear(4 * (n - 32 * warp - lanes), lanes, 4).global()))
                        .stores("dst", 4, warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global())))
                },
            },
        ],
    };

    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        // Element `i` is `i % 64`: bin `b` is added to once in 64 elements, and once more if the rest reaches it.
        let reference = move |b| (n / 64 + u64::from(b < n % 64)) as u32;
        Ok(Plan::new(Launch::linear(n, 256)?)
            .buffer(Buffer::input("src", n, |i| (i % 64) as u32)?)
            .buffer(Buffer::zeroed("bins", 64, reference)?)
            .scalar("n", n)
            .bytes(product("the number of bytes", &[4, n])? + 4 * 64)
            .loads("src", 4, warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global()))
            .atomics("bins", 4, warps(n, |_, lanes| Progression::linear(0, lanes, 4).global())))
    }
}

/// Holds every kernel of a family to its reference and its counts.
fn holds(family: &Family) {
    assert!(!family.kernels.is_empty(), "{} has no kernel", family.name);
    for entry in family.kernels {
        for case in cases(family) {
            let plan = (entry.plan)(&case).unwrap_or_else(|error| panic!("{} on {case}: {error}", entry.kernel.name));
            checked_and_counted(entry.kernel, &Arc::new(plan), &on_threads(2));
        }
    }
}

#[test]
fn a_new_family_gives_its_reference_and_its_closed_form() {
    holds(&template::FAMILY);
}

#[test]
fn the_kernels_of_the_documentation_give_their_reference_and_their_closed_form() {
    holds(&FAMILY);
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    let this = plain(include_str!("adding.rs"));
    let blocks = include_str!("../../docs/adding-a-kernel.md").split("```rust\n").skip(1);
    let blocks: Vec<_> = blocks.map(|block| block.split("```").next().unwrap_or_default()).collect();
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        assert!(this.contains(&plain(block)), "this is not tried here:\n{block}");
    }
}
