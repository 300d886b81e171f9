//! Cache path: the same loads through the L1, past it or through it for once, by whole warps and by half warps.
//!
//! ```text
//!  half a warp:   ■ ■ … ■ . . … .     half a line: 2 sectors of its 4, by every path
//! ```

use crate::device::prelude::*;

/// A copy by the first `lanes` lanes of each warp, loads through the L1 and the L2.
///
/// **Look for** 2 sectors a request with half the lanes: a line is fetched by the sector, also through the L1. **Cost**
/// the line's other half stays reserved in the L1, unused.
#[kernel]
pub unsafe fn cache_path_cached(src: Global<f32>, dst: GlobalMut<f32>, n: usize, lanes: u32) {
    let i = thread::index_x();
    if i < n && warp::lane_id() < lanes {
        // Each warp touches the first `lanes` elements of one line.
        dst.store(i, src.load(i));
    }
}

/// Like [`cache_path_cached`], with loads past the L1 (`ld.global.cg`, CUDA's `__ldcg`).
///
/// **Look for** the same sectors. **Cost** none where nothing is read twice.
#[kernel]
pub unsafe fn cache_path_cg(src: Global<f32>, dst: GlobalMut<f32>, n: usize, lanes: u32) {
    let i = thread::index_x();
    if i < n && warp::lane_id() < lanes {
        // Each warp touches the first `lanes` elements of one line.
        dst.store(i, src.load_cg(i));
    }
}

/// Like [`cache_path_cg`], through the read-only path (`ld.global.nc`, CUDA's `__ldg`).
///
/// **Look for** the same sectors. **Cost** nothing may write the buffer during the launch; in return the compiler may
/// move the load, and it goes through the L1 again.
#[kernel]
pub unsafe fn cache_path_nc(src: Global<f32>, dst: GlobalMut<f32>, n: usize, lanes: u32) {
    let i = thread::index_x();
    if i < n && warp::lane_id() < lanes {
        // Each warp touches the first `lanes` elements of one line.
        dst.store(i, src.load_nc(i));
    }
}

/// Like [`cache_path_nc`], with loads that are to be evicted first (`ld.global.cs`, CUDA's `__ldcs`).
///
/// **Look for** the same sectors: how long a line stays does not change what is fetched. **Cost** who reads it again
/// finds it gone sooner.
#[kernel]
pub unsafe fn cache_path_cs(src: Global<f32>, dst: GlobalMut<f32>, n: usize, lanes: u32) {
    let i = thread::index_x();
    if i < n && warp::lane_id() < lanes {
        // Each warp touches the first `lanes` elements of one line.
        dst.store(i, src.load_cs(i));
    }
}

family! {
    const LANES: Axis = Axis::counted(
        "lanes",
        "Active lanes of each warp, 1 to 32, for cache_path",
        1,
        32,
        &[Value::Count(32), Value::Count(16)],
    );

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "cache_path",
        summary: "loads through the L1, past it, read-only and streaming, by whole and by half warps",
        axes: &[Axis::ELEMENTS, LANES],
        kernels: &[
            Entry { kernel: cache_path_cached::KERNEL, plan },
            Entry { kernel: cache_path_cg::KERNEL, plan },
            Entry { kernel: cache_path_nc::KERNEL, plan },
            Entry { kernel: cache_path_cs::KERNEL, plan },
        ],
    };

    fn plan(case: &Case) -> Result<Plan, PlanError> {
        let (n, active) = (case.elements(), case.count("lanes"));
        let launch = Launch::linear(n, 256)?;
        let moved = n / 32 * active + (n % 32).min(active);
        let counts = warps(n, |warp, lanes| Progression::linear(128 * warp, lanes.min(active), 4).global());
        Ok(Plan::new(launch)
            .buffer(Buffer::input("src", n, noise)?)
            .buffer(Buffer::partial_output("dst", n, move |i| (i % 32 < active).then(|| noise(i)))?)
            .scalar("n", n)
            .scalar("lanes", active as u32)
            .bytes(product("the number of bytes", &[8, moved])?)
            .loads("src", 4, counts)
            .stores("dst", 4, counts))
    }
}
