//! Accesses to shared memory by any lanes to any elements, to be counted on a GPU: what wavefronts depend on that no kernel of
//! the suite tries.

use gpu::device::prelude::*;

/// Two kernels: lanes load from a tile of zeros, or store zeros to one, at the elements that `elements` names. A lane for which
/// it names none stays out.
macro_rules! patterns {
    ($($load:ident $store:ident $element:ty, $zero:expr;)*) => { $(
        #[kernel]
        pub unsafe fn $load(elements: Global<u32>, dst: GlobalMut<f32>) {
            let tile = shared!([$element; 512]);
            let lane = warp::lane_id();
            for i in steps(lane..512, 32) {
                tile.store(i, $zero);
            }
            sync_threads();
            let element = elements.load(lane as usize);
            if element < 512 {
                dst.cast::<$element>().store(lane as usize, tile.load(element));
            }
        }

        #[kernel]
        pub unsafe fn $store(elements: Global<u32>, dst: GlobalMut<f32>) {
            let tile = shared!([$element; 512]);
            let lane = warp::lane_id();
            for i in steps(lane..512, 32) {
                tile.store(i, $zero);
            }
            sync_threads();
            let element = elements.load(lane as usize);
            if element < 512 {
                tile.store(element, $zero);
            }
            sync_threads();
            dst.cast::<$element>().store(lane as usize, tile.load(lane));
        }
    )* };
}
patterns! {
    pattern_load_u8 pattern_store_u8 u8, 0;
    pattern_load_u16 pattern_store_u16 u16, 0;
    pattern_load_f32x2 pattern_store_f32x2 F32x2, F32x2 { x: 0.0, y: 0.0 };
    pattern_load_f32x4 pattern_store_f32x4 F32x4, F32x4 { x: 0.0, y: 0.0, z: 0.0, w: 0.0 };
}

/// A block's threads in three dimensions, whose warps reach over the ends of rows: each loads from a row of `pitch` words.
#[kernel]
pub unsafe fn pattern_rows(dst: GlobalMut<f32>, pitch: u32) {
    let tile = shared!([f32; 8192]);
    let (x, y, z) = (thread::thread_idx_x(), thread::thread_idx_y(), thread::thread_idx_z());
    let row = z * thread::block_dim_y() + y;
    tile.store(row * pitch + x, x as f32);
    sync_threads();
    dst.store((row * thread::block_dim_x() + x) as usize, tile.load(row * pitch + x));
}

host_only! {
    extern crate std;

    use gpu::suite::{Buffer, Kernel, Launch, Plan, PlanError};
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    /// A launch to be counted.
    pub struct Pattern {
        /// Its name: the kernel's, and what it is launched on.
        pub name: String,
        /// The kernel.
        pub kernel: Kernel,
        /// The launch.
        pub plan: Plan,
    }

    /// Masks of lanes, and the elements that the lanes go to, as they were counted on an H100: a row for each width and operation.
    const LISTED: &str = include_str!("../../../results/nvidia-h100/shared_wavefronts.tsv");

    /// No element.
    const NONE: u32 = u32::MAX;

    const WIDE: [[Kernel; 2]; 2] = [
        [pattern_load_f32x2::KERNEL, pattern_store_f32x2::KERNEL],
        [pattern_load_f32x4::KERNEL, pattern_store_f32x4::KERNEL],
    ];
    const NARROW: [[Kernel; 2]; 2] = [
        [pattern_load_u8::KERNEL, pattern_store_u8::KERNEL],
        [pattern_load_u16::KERNEL, pattern_store_u16::KERNEL],
    ];

    /// All launches.
    ///
    /// # Errors
    /// If a buffer is too large.
    pub fn patterns() -> Result<Vec<Pattern>, PlanError> {
        let mut patterns = Vec::new();
        for (number, elements) in listed().into_iter().enumerate() {
            for kernel in WIDE.into_iter().flatten() {
                patterns.push(Pattern { name: format!("{} {number}", kernel.name), kernel, plan: one_warp(elements)? });
            }
        }
        // Of one word, of neighbouring words in turn, in order and in reverse, of one bank, and by some lanes of a word alone.
        type Elements = (&'static str, fn(u32) -> u32);
        let of: [Elements; 7] = [
            ("one element", |_| 5),
            ("one word", |lane| lane % 2),
            ("linear", |lane| lane),
            ("reversed", |lane| 31 - lane),
            ("two words", |lane| lane % 4 / 2 + lane % 2 * 8),
            ("one bank", |lane| lane * 128 % 512 + lane / 4 % 2),
            ("odd lanes", |lane| if lane % 2 == 1 { 3 * lane } else { NONE }),
        ];
        for (name, element) in of {
            for kernel in NARROW.into_iter().chain(WIDE).flatten() {
                let elements = core::array::from_fn(|lane| element(lane as u32));
                patterns.push(Pattern { name: format!("{} {name}", kernel.name), kernel, plan: one_warp(elements)? });
            }
        }
        for block @ [x, y, z] in [[8, 4, 4], [5, 3, 7], [3, 3, 3], [16, 2, 1], [1, 40, 1], [33, 2, 2]] {
            for pitch in [x, x + 1, 32, 33] {
                let plan = Plan::new(Launch { grid: [1; 3], block, shared_bytes: 0 });
                let (width, threads) = (u64::from(x), u64::from(x * y * z));
                let plan = plan.buffer(Buffer::output("dst", threads, move |i| (i % width) as f32)?).scalar("pitch", pitch.max(x));
                let name = format!("pattern_rows {x}x{y}x{z} {pitch}");
                patterns.push(Pattern { name, kernel: pattern_rows::KERNEL, plan });
            }
        }
        Ok(patterns)
    }

    /// The elements of each list, of which the file has one for each width and operation, one after another.
    fn listed() -> Vec<[u32; 32]> {
        let mut lists: Vec<[u32; 32]> = Vec::new();
        for row in LISTED.lines().skip(1) {
            let [_, _, mask, elements, _] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("no row of five columns: {row}") };
            let mask = u32::from_str_radix(mask.trim_start_matches("0x"), 16).expect("a mask");
            let mut list = [NONE; 32];
            for (lane, element) in elements.split(',').enumerate().filter(|(lane, _)| mask >> lane & 1 == 1) {
                list[lane] = element.parse().expect("an element");
            }
            if lists.last() != Some(&list) {
                lists.push(list);
            }
        }
        lists
    }

    /// A warp whose lanes go to these elements, and an output that stays zero.
    fn one_warp(elements: [u32; 32]) -> Result<Plan, PlanError> {
        let plan = Plan::new(Launch { grid: [1; 3], block: [32, 1, 1], shared_bytes: 0 });
        let plan = plan.buffer(Buffer::input("elements", 32, move |i| elements[i as usize])?);
        Ok(plan.buffer(Buffer::zeroed("dst", 128, |_| 0.0f32)?))
    }
}
