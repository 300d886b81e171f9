//! Kernels with planted bugs, a file a class of bugs, each beside a twin that differs in the bug alone.
//!
//! A comment `// A: load`, which may stand alone in the line below, marks the call of `load` on its line as the position `{A}` of the
//! expected report, in the scope of its kernel; a mark that is a word stands in a function that kernels call. `{kernel}` is where the
//! kernel itself stands. The crate compiles for a GPU as the suite does, so that other tools can be held to the same bugs.

#![no_std]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features, missing_docs, clippy::missing_safety_doc))]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch, link_llvm_intrinsics, stdarch_nvptx))]

pub mod alignment;
pub mod atomics;
pub mod barriers;
pub mod bounds;
pub mod copies;
pub mod endless;
pub mod fences;
pub mod patterns;
pub mod races;
pub mod shuffles;
pub mod uninitialized;
pub mod votes;

gpu::device::host_only! {
    use gpu::device::host::Kernel;
    use gpu::suite::{Buffer, Launch, Plan, PlanError};

    /// A class of bugs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Class {
        /// An access outside a buffer.
        OutOfBoundsGlobal,
        /// An access outside a shared array.
        OutOfBoundsShared,
        /// An access of global memory that is not aligned to its width.
        MisalignedGlobal,
        /// The same of shared memory.
        MisalignedShared,
        /// A read of an output that nobody wrote.
        UninitializedGlobal,
        /// A read of shared memory that nobody wrote.
        UninitializedShared,
        /// Accesses of global memory that nothing orders.
        GlobalRace,
        /// Accesses of shared memory that nothing orders, though there are barriers.
        SharedRace,
        /// Accesses of shared memory with no barrier between them.
        MissingBarrier,
        /// A barrier that not all threads reach.
        DivergentBarrier,
        /// A copy under way to shared memory that is touched.
        CopyUnderWay,
        /// A shuffle, a vote, a match or a reduction with lanes that take no part in it, or not as the others do.
        InactiveLane,
        /// A loop without an end.
        NonTerminating,
    }

    impl Class {
        /// Every class.
        pub const ALL: [Class; 13] = [
            Class::OutOfBoundsGlobal,
            Class::OutOfBoundsShared,
            Class::MisalignedGlobal,
            Class::MisalignedShared,
            Class::UninitializedGlobal,
            Class::UninitializedShared,
            Class::GlobalRace,
            Class::SharedRace,
            Class::MissingBarrier,
            Class::DivergentBarrier,
            Class::CopyUnderWay,
            Class::InactiveLane,
            Class::NonTerminating,
        ];

        /// Its name in tables.
        pub const fn name(self) -> &'static str {
            match self {
                Class::OutOfBoundsGlobal => "out of bounds, global",
                Class::OutOfBoundsShared => "out of bounds, shared",
                Class::MisalignedGlobal => "misaligned, global",
                Class::MisalignedShared => "misaligned, shared",
                Class::UninitializedGlobal => "uninitialized, global",
                Class::UninitializedShared => "uninitialized, shared",
                Class::GlobalRace => "race, global",
                Class::SharedRace => "race, shared",
                Class::MissingBarrier => "missing barrier",
                Class::DivergentBarrier => "divergent barrier",
                Class::CopyUnderWay => "copy under way",
                Class::InactiveLane => "inactive lane",
                Class::NonTerminating => "does not end",
            }
        }
    }

    /// A planted bug.
    pub struct Bug {
        /// What kind of bug.
        pub class: Class,
        /// The kernel with it.
        pub kernel: Kernel,
        /// The kernel without it.
        pub twin: Kernel,
        /// Launch and buffers of both, with what the twin makes of them.
        pub plan: fn() -> Result<Plan, PlanError>,
        /// What the simulator says of it, in full.
        pub report: &'static str,
    }

    /// Every bug.
    pub fn bugs() -> impl Iterator<Item = &'static Bug> {
        [
            bounds::BUGS,
            alignment::BUGS,
            uninitialized::BUGS,
            races::BUGS,
            atomics::BUGS,
            fences::BUGS,
            barriers::BUGS,
            copies::BUGS,
            shuffles::BUGS,
            votes::BUGS,
            endless::BUGS,
        ]
        .into_iter()
        .flatten()
    }

    /// From `src`, whose elements are their indices, to `dst`, each with an element for every thread of so many blocks.
    fn threads(blocks: u32, threads: u32, expected: fn(u64) -> f32) -> Result<Plan, PlanError> {
        let n = u64::from(blocks) * u64::from(threads);
        Ok(src(blocks, threads, n)?.buffer(Buffer::output("dst", n, expected)?))
    }

    /// So many threads, and one buffer.
    fn alone(blocks: u32, threads: u32, buffer: Buffer) -> Plan {
        Plan::new(Launch { grid: [blocks, 1, 1], block: [threads, 1, 1], shared_bytes: 0 }).buffer(buffer)
    }

    /// So many threads, and `src` with `n` elements, which are their indices.
    fn src(blocks: u32, threads: u32, n: u64) -> Result<Plan, PlanError> {
        let launch = Launch { grid: [blocks, 1, 1], block: [threads, 1, 1], shared_bytes: 0 };
        Ok(Plan::new(launch).buffer(Buffer::input("src", n, |i| i as f32)?))
    }
}
