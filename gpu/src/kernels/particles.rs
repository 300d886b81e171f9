//! Particles: the same update on records, on arrays, and on records of arrays.
//!
//! ```text
//!  AoS:     x y z u v w m c | x y z u v w m c | …     a warp's x: 32 sectors, 4 bytes of each
//!  AoSoA:   x × 32 | y × 32 | … | c × 32 | x × 32 …   a warp's x: one line, its y the next
//!  SoA:     x x x x x x x x x x x x x x x x x x …     a warp's x: one line, its y in another array
//! ```
//!
//! Each kernel moves `n` particles in place: `position += velocity * dt`. The records hold 8 floats, of which mass and
//! charge go unused, or 4: a position and one speed for its three axes.

use crate::device::prelude::*;

/// Records of 8 floats, a particle a thread, a float an access.
///
/// **Look for** 32 sectors a request, loads and stores alike: each lane's float lies in a sector of its own. **Cost**
/// nine requests of 8 lines each; that the six loads meet in the same sectors only the L1 can mend.
#[kernel]
pub unsafe fn particles_aos(particles: GlobalMut<f32>, n: usize, dt: f32) {
    let i = thread::index_x();
    if i < n {
        let at = 8 * i;
        // Every access of the warp steps 32 bytes a lane.
        let x = fma(particles.load(at + 3), dt, particles.load(at));
        let y = fma(particles.load(at + 4), dt, particles.load(at + 1));
        let z = fma(particles.load(at + 5), dt, particles.load(at + 2));
        particles.store(at, x);
        particles.store(at + 1, y);
        particles.store(at + 2, z);
    }
}

/// Like [`particles_aos`], with what the update needs of each record read as a vector of 16 bytes and one of 8, and the
/// first written back.
///
/// **Look for** three requests instead of nine, of 32 sectors each, used to a half or a quarter. **Cost** one component of
/// the velocity is written for nothing; mass and charge still travel in the sector of the other two.
#[kernel]
pub unsafe fn particles_aos_vec4(particles: GlobalMut<f32>, n: usize, dt: f32) {
    let i = thread::index_x();
    if i < n {
        // Both loads step 32 bytes a lane through the same eight lines.
        let mut first = particles.cast::<F32x4>().load(2 * i);
        let second = particles.cast::<F32x2>().load(4 * i + 2);
        first.x = fma(first.w, dt, first.x);
        first.y = fma(second.x, dt, first.y);
        first.z = fma(second.y, dt, first.z);
        // The store rewrites one velocity with what it was.
        particles.cast::<F32x4>().store(2 * i, first);
    }
}

/// Like [`particles_aos_vec4`], with two lanes a particle: each loads half of the record, 16 bytes, and stores it; what the
/// first needs of the second's velocity comes by shuffles.
///
/// **Look for** two requests of 16 sectors in 4 lines, the ideal, for 16 particles. **Cost** mass and charge are written back too, but
/// no sector more moves: the update needs something of both sectors of each record, so that no order of the same accesses
/// makes this layout faster than a pass over all of it.
#[kernel]
pub unsafe fn particles_aos_pair(particles: GlobalMut<f32>, n: usize, dt: f32) {
    let vectors = particles.cast::<F32x4>();
    let (i, first) = (thread::index_x(), warp::lane_id().is_multiple_of(2));
    let mut half = F32x4::splat(0.0);
    if i < 2 * n {
        // The warp loads four lines.
        half = vectors.load(i);
    }
    // All lanes shuffle, also those behind the last particle.
    let (v, w) = (warp::shuffle_down(warp::FULL, half.x, 1), warp::shuffle_down(warp::FULL, half.y, 1));
    if first {
        half.x = fma(half.w, dt, half.x);
        half.y = fma(v, dt, half.y);
        half.z = fma(w, dt, half.z);
    }
    if i < 2 * n {
        // The warp stores the same four.
        vectors.store(i, half);
    }
}

/// Records of 32 particles: 32 x side by side, then 32 y, and so on.
///
/// **Look for** 4 sectors in 1 line for every request: lane and place in the group are the same number. **Cost** the
/// last group is allocated whole; the index needs a division by 32, which is a shift.
#[kernel]
pub unsafe fn particles_aosoa(particles: GlobalMut<f32>, n: usize, dt: f32) {
    let i = thread::index_x();
    if i < n {
        let at = i / 32 * 256 + i % 32;
        // Every access of the warp is one line of its group.
        let x = fma(particles.load(at + 96), dt, particles.load(at));
        let y = fma(particles.load(at + 128), dt, particles.load(at + 32));
        let z = fma(particles.load(at + 160), dt, particles.load(at + 64));
        particles.store(at, x);
        particles.store(at + 32, y);
        particles.store(at + 64, z);
    }
}

/// An array for each component.
///
/// **Look for** the 4 sectors of [`particles_aosoa`]. **Cost** six pointers, and six places of memory open at a time;
/// mass and charge are not even passed.
#[kernel]
pub unsafe fn particles_soa(
    x: GlobalMut<f32>,
    y: GlobalMut<f32>,
    z: GlobalMut<f32>,
    vx: Global<f32>,
    vy: Global<f32>,
    vz: Global<f32>,
    n: usize,
    dt: f32,
) {
    let i = thread::index_x();
    if i < n {
        // Every access of the warp is one line of its array.
        let (px, py, pz) = (x.load(i), y.load(i), z.load(i));
        x.store(i, fma(vx.load(i), dt, px));
        y.store(i, fma(vy.load(i), dt, py));
        z.store(i, fma(vz.load(i), dt, pz));
    }
}

/// Like [`particles_aos`], with records of 4 floats: half the step.
///
/// **Look for** 16 sectors in 4 lines a request. **Cost** each of the seven requests asks for the same 16 sectors
/// again.
#[kernel]
pub unsafe fn particles_quad_aos(particles: GlobalMut<f32>, n: usize, dt: f32) {
    let i = thread::index_x();
    if i < n {
        let at = 4 * i;
        // Every access of the warp steps 16 bytes a lane.
        let speed = particles.load(at + 3);
        let x = fma(speed, dt, particles.load(at));
        let y = fma(speed, dt, particles.load(at + 1));
        let z = fma(speed, dt, particles.load(at + 2));
        particles.store(at, x);
        particles.store(at + 1, y);
        particles.store(at + 2, z);
    }
}

/// Like [`particles_quad_aos`], with the whole record in one vector of 16 bytes.
///
/// **Look for** 16 sectors, now the ideal, in one load and one store. **Cost** the speed is written back unchanged: a
/// record that fits a vector makes an array of structures as good as a structure of arrays.
#[kernel]
pub unsafe fn particles_quad_aos_vec4(particles: GlobalMut<f32>, n: usize, dt: f32) {
    let i = thread::index_x();
    if i < n {
        let vectors = particles.cast::<F32x4>();
        // The warp loads four lines, and stores the same four.
        let F32x4 { x, y, z, w } = vectors.load(i);
        vectors.store(i, F32x4 { x: fma(w, dt, x), y: fma(w, dt, y), z: fma(w, dt, z), w });
    }
}

/// Like [`particles_soa`], with the four components of the small record.
///
/// **Look for** 4 sectors a request. **Cost** seven requests where [`particles_quad_aos_vec4`] has two.
#[kernel]
pub unsafe fn particles_quad_soa(
    x: GlobalMut<f32>,
    y: GlobalMut<f32>,
    z: GlobalMut<f32>,
    w: Global<f32>,
    n: usize,
    dt: f32,
) {
    let i = thread::index_x();
    if i < n {
        // Every access of the warp is one line of its array.
        let (px, py, pz, speed) = (x.load(i), y.load(i), z.load(i), w.load(i));
        x.store(i, fma(speed, dt, px));
        y.store(i, fma(speed, dt, py));
        z.store(i, fma(speed, dt, pz));
    }
}

family! {
    /// On a GPU a gibibyte of the larger records.
    const PARTICLES: Axis =
        Axis { on_gpu: &[Value::Count(1 << 25)], in_simulator: &[Value::Count(1 << 18)], ..Axis::ELEMENTS };

    /// The family's entry.
    pub static FAMILY: Family = Family {
        name: "particles",
        summary: "one update on an array of structures, on a structure of arrays, and between the two",
        axes: &[PARTICLES],
        kernels: &[
            Entry { kernel: particles_aos::KERNEL, plan: |case| aos(case, BIG, &FLOATS, &FLOATS[..3]) },
            Entry { kernel: particles_aos_vec4::KERNEL, plan: |case| aos(case, BIG, &[(0, 4), (4, 2)], &[(0, 4)]) },
            Entry { kernel: particles_aos_pair::KERNEL, plan: pair },
            Entry { kernel: particles_aosoa::KERNEL, plan: aosoa },
            Entry { kernel: particles_soa::KERNEL, plan: |case| soa(case, BIG, &["x", "y", "z", "vx", "vy", "vz"]) },
            Entry { kernel: particles_quad_aos::KERNEL, plan: |case| aos(case, QUAD, &FLOATS[..4], &FLOATS[..3]) },
            Entry { kernel: particles_quad_aos_vec4::KERNEL, plan: |case| aos(case, QUAD, &[(0, 4)], &[(0, 4)]) },
            Entry { kernel: particles_quad_soa::KERNEL, plan: |case| soa(case, QUAD, &["x", "y", "z", "w"]) },
        ],
    };

    /// A record: how many floats it has, how many of them the update uses, and which of them moves each axis.
    #[derive(Clone, Copy)]
    struct Record {
        floats: u64,
        used: u64,
        velocity: [u64; 3],
    }
    const BIG: Record = Record { floats: 8, used: 6, velocity: [3, 4, 5] };
    const QUAD: Record = Record { floats: 4, used: 4, velocity: [3, 3, 3] };

    const DT: f32 = 0.001;

    impl Record {
        /// A field of particle `i` before the update, the same in every layout.
        fn before(self, i: u64, field: u64) -> f32 {
            noise(self.floats * i + field)
        }

        /// The same field after it.
        fn after(self, i: u64, field: u64) -> f32 {
            let before = self.before(i, field);
            let velocity = self.velocity.get(field as usize);
            velocity.map_or(before, |&velocity| libm::fmaf(self.before(i, velocity), DT, before))
        }
    }

    /// What all layouts have in common. The fields that the update uses are read once, and the position is written.
    fn plan(case: &Case, record: Record) -> Result<Plan, PlanError> {
        let n = case.elements();
        Ok(Plan::new(Launch::linear(n, 256)?)
            .scalar("n", n)
            .scalar("dt", DT)
            .bytes(product("the number of bytes", &[4 * (record.used + 3), n])?))
    }

    /// Single floats from the first on.
    const FLOATS: [(u64, u64); 6] = [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)];

    /// Records side by side. A lane's accesses to its own: the first float of each, and how many.
    fn aos(case: &Case, record: Record, loads: &[(u64, u64)], stores: &[(u64, u64)]) -> Result<Plan, PlanError> {
        let n = case.elements();
        let size = 4 * record.floats;
        let len = product("the number of floats", &[record.floats, n])?;
        let (before, after) = (
            move |i| record.before(i / record.floats, i % record.floats),
            move |i| record.after(i / record.floats, i % record.floats),
        );
        let counts = |first, width| {
            warps(n, move |warp, lanes| {
                Progression { first: 32 * warp * size + 4 * first, step: size, lanes, width }.global()
            })
        };
        let plan = plan(case, record)?.buffer(Buffer::in_place("particles", len, before, after)?);
        let plan = loads.iter().fold(plan, |plan, &(first, floats)| {
            plan.loads("particles", 4 * floats as u32, counts(first, 4 * floats))
        });
        Ok(stores.iter().fold(plan, |plan, &(first, floats)| {
            plan.stores("particles", 4 * floats as u32, counts(first, 4 * floats))
        }))
    }

    /// Large records by halves, a lane each.
    fn pair(case: &Case) -> Result<Plan, PlanError> {
        let halves = product("the number of threads", &[2, case.elements()])?;
        let lines = warps(halves, |warp, lanes| Progression::linear(512 * warp, lanes, 16).global());
        let mut plan = aos(case, BIG, &[], &[])?;
        plan.launch = Launch::linear(halves, 256)?;
        Ok(plan.loads("particles", 16, lines).stores("particles", 16, lines))
    }

    fn aosoa(case: &Case) -> Result<Plan, PlanError> {
        let n = case.elements();
        let len = product("the number of floats", &[256, n.div_ceil(32)])?;
        // Beyond the last particle the group holds what nothing changes.
        let particle = |at: u64| (at / 256 * 32 + at % 32, at % 256 / 32);
        let before = move |at| BIG.before(particle(at).0, particle(at).1);
        let after = move |at| if particle(at).0 < n { BIG.after(particle(at).0, particle(at).1) } else { before(at) };
        let line = warps(n, |_, lanes| Progression::linear(0, lanes, 4).global());
        Ok(plan(case, BIG)?
            .buffer(Buffer::in_place("particles", len, before, after)?)
            .loads("particles", 4, line * 6)
            .stores("particles", 4, line * 3))
    }

    fn soa(case: &Case, record: Record, fields: &[&'static str]) -> Result<Plan, PlanError> {
        let n = case.elements();
        let line = warps(n, |warp, lanes| Progression::linear(128 * warp, lanes, 4).global());
        let mut plan = plan(case, record)?;
        for (field, name) in (0..).zip(fields) {
            let before = move |i| record.before(i, field);
            plan = if field < 3 {
                plan.buffer(Buffer::in_place(name, n, before, move |i| record.after(i, field))?).stores(name, 4, line)
            } else {
                plan.buffer(Buffer::input(name, n, before)?)
            };
            plan = plan.loads(name, 4, line);
        }
        Ok(plan)
    }
}
