//! Loops without an end: a condition that never comes true, a step of nothing, a flag that nobody sets in time.

use gpu::device::prelude::*;

#[kernel]
pub unsafe fn endless_condition(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let forever = each(0..); // A: each
    for _ in forever {
        if src.load(i) < 0.0 {
            // L: src.load
            break;
        }
    }
    dst.store(i, src.load(i));
}

#[kernel]
pub unsafe fn endless_condition_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    for _ in each(0..) {
        if src.load(i) >= 0.0 {
            break;
        }
    }
    dst.store(i, src.load(i));
}

#[kernel]
pub unsafe fn endless_step(src: Global<f32>, dst: GlobalMut<f32>, step: usize) {
    let indices = steps(thread::index_x()..32, step - thread::count_x()); // A: steps
    for i in indices {
        // L: indices
        let value = src.load(i);
        dst.store(i, value);
    }
}

#[kernel]
pub unsafe fn endless_step_twin(src: Global<f32>, dst: GlobalMut<f32>, step: usize) {
    for i in steps(thread::index_x()..32, step) {
        let value = src.load(i);
        dst.store(i, value);
    }
}

#[kernel]
pub unsafe fn endless_flag(dst: GlobalMut<f32>, flags: GlobalMut<u32>) {
    let i = thread::index_x();
    let forever = each(0..); // A: each
    for _ in forever {
        let flag = flags.load_cg(i);
        if flag == 1 {
            // L: flag
            break;
        }
    }
    dst.store(i, 1.0);
}

#[kernel]
pub unsafe fn endless_flag_twin(dst: GlobalMut<f32>, flags: GlobalMut<u32>) {
    let i = thread::index_x();
    flags.store(i, 1);
    for _ in each(0..) {
        let flag = flags.load_cg(i);
        if flag == 1 {
            break;
        }
    }
    dst.store(i, 1.0);
}

#[kernel]
pub unsafe fn endless_barriers(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    for _ in each(0..) {
        sync_threads(); // A: sync_threads
        if src.load(i) < 0.0 {
            break;
        }
    }
    dst.store(i, src.load(i));
}

#[kernel]
pub unsafe fn endless_barriers_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    for _ in each(0..100) {
        sync_threads();
        if src.load(i) < 0.0 {
            break;
        }
    }
    dst.store(i, src.load(i));
}

#[kernel]
pub unsafe fn endless_half_warps(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let half = if i < 16 { 0xFFFF } else { 0xFFFF_0000 };
    for _ in each(0..) {
        sync_warp(half); // A: sync_warp
        if src.load(i) < 0.0 {
            break;
        }
    }
    dst.store(i, src.load(i));
}

#[kernel]
pub unsafe fn endless_half_warps_twin(src: Global<f32>, dst: GlobalMut<f32>) {
    let i = thread::index_x();
    let half = if i < 16 { 0xFFFF } else { 0xFFFF_0000 };
    for _ in each(0..100) {
        sync_warp(half);
        if src.load(i) < 0.0 {
            break;
        }
    }
    dst.store(i, src.load(i));
}

host_only! {
    use crate::{Bug, Class, threads};
    use gpu::suite::{Buffer, Launch, Plan, PlanError};

    /// One warp, and a flag for each thread.
    fn flags() -> Result<Plan, PlanError> {
        let launch = Launch { grid: [1; 3], block: [32, 1, 1], shared_bytes: 0 };
        Ok(Plan::new(launch).buffer(Buffer::output("dst", 32, |_| 1.0f32)?).buffer(Buffer::zeroed("flags", 32, |_| 1u32)?))
    }

    /// The bugs of this file.
    pub static BUGS: &[Bug] = &[
        Bug {
            class: Class::NonTerminating,
            kernel: endless_condition::KERNEL,
            twin: endless_condition_twin::KERNEL,
            plan: || threads(1, 32, |i| i as f32),
            report: "does not end: a thread has made more than 16384 accesses and loop steps, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::NonTerminating,
            kernel: endless_step::KERNEL,
            twin: endless_step_twin::KERNEL,
            plan: || Ok(threads(1, 32, |i| i as f32)?.scalar("step", 32u64)),
            report: "does not end: a thread has made more than 16384 accesses and loop steps, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::NonTerminating,
            kernel: endless_flag::KERNEL,
            twin: endless_flag_twin::KERNEL,
            plan: flags,
            report: "does not end: a thread has made more than 16384 accesses and loop steps, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::NonTerminating,
            kernel: endless_barriers::KERNEL,
            twin: endless_barriers_twin::KERNEL,
            plan: || threads(1, 64, |i| i as f32),
            report: "does not end: the block has passed more than 256 barriers, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
        Bug {
            class: Class::NonTerminating,
            kernel: endless_half_warps::KERNEL,
            twin: endless_half_warps_twin::KERNEL,
            plan: || threads(1, 32, |i| i as f32),
            report: "does not end: the block has passed more than 256 barriers, at {A} \
                     (thread (0, 0, 0), block (0, 0, 0))",
        },
    ];
}
