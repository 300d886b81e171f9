//! Histogram: how often each value occurs.

use busload::prelude::*;

/// An atomic addition to global memory for each element.
///
/// **Look for** atomics of a warp to one address. **Cost** serialised.
#[kernel]
pub unsafe fn histogram_global(src: Global<u32>, bins: GlobalMut<u32>, n: usize) {
    let i = thread::index_x();
    if i < n {
        bins.atomic_add(src.load(i) as usize, 1);
    }
}

family! {
    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "histogram",
        summary: "how often each value occurs",
        axes: &[Axis::ELEMENTS],
        kernels: &[Entry { kernel: histogram_global::KERNEL, plan }],
    };

    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        Ok(Plan::new(Launch::linear(n, 256)?)
            .buffer(Buffer::input("src", n, |i| (i % 64) as u32)?)
            .buffer(Buffer::zeroed("bins", 64, move |i| (n / 64 + u64::from(i < n % 64)) as u32)?)
            .scalar("n", n)
            .bytes(4 * n + 256))
    }
}
