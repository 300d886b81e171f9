//! What NVIDIA's assembler makes of the committed PTX, for three architectures: no kernel spills, each has the occupancy that it is made
//! for, and no access is split or widened.

use busload::ptx::{EMBEDDED, Ptx};
use busload_tests::{case, kernels, kernels_under_test, set_difference};
use gpu::suite::{Axis, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An A100's, an H100's and H200's, and a B200's.
const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90", "sm_100"];

/// Registers of an SM of each of them.
const REGISTERS: u32 = 65_536;

/// How many blocks of these kernels an SM holds, as their docs and `docs/tuning.md` have it: registers allow no fewer.
const BLOCKS_PER_SM: [(&str, u32); 9] = [
    ("transpose_tiles_vec4_swizzled", 4),
    ("transpose_types_f64_vec2", 8),
    ("transpose_types_f16_packed", 3),
    ("transpose_types_i8_packed", 2),
    ("transpose_ragged_whole_sectors", 4),
    ("reduce_vec4_tiles", 4),
    ("sgemm_warp_tile", 2),
    ("sgemm_pipelined_scalar", 2),
    ("sgemm_pipelined_vec4", 2),
];

/// A program of the CUDA toolkit; none if this machine has no such.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/local/cuda/bin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        eprintln!("skipped: {name} is not in PATH (pip's nvidia-cuda-nvcc-cu12 and nvidia-cuda-nvdisasm have it)");
    }
    found
}

/// What a program printed, which must succeed: standard output and standard error.
fn printed(command: &mut Command) -> [String; 2] {
    let output = command.output().expect("a program");
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert!(output.status.success(), "{command:?}: {err}");
    [out, err]
}

/// Assembles the committed PTX; what ptxas says of it.
fn assembled(ptxas: &Path, architecture: &str, folder: &Path) -> (PathBuf, String) {
    let (ptx, cubin) = (folder.join("kernels.ptx"), folder.join(format!("{architecture}.cubin")));
    std::fs::write(&ptx, EMBEDDED).expect("a file");
    let mut command = Command::new(ptxas);
    let arguments = ["-v".to_owned(), format!("-arch={architecture}"), "-o".to_owned(), cubin.display().to_string()];
    let [_, said] = printed(command.args(arguments).arg(ptx));
    (cubin, said)
}

/// What the assembler says of a kernel.
#[derive(Debug, Default, PartialEq)]
struct Resources {
    registers: u32,
    /// Bytes of stack frame, of spill stores and of spill loads.
    memory: [u32; 3],
}

/// That of each, by its name.
fn resources(said: &str) -> BTreeMap<String, Resources> {
    let mut all = BTreeMap::<String, Resources>::new();
    let mut name = String::new();
    for line in said.lines() {
        let numbers = || line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u32>().ok());
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            rest.split('\'').next().unwrap_or_default().clone_into(&mut name);
        } else if line.contains("bytes stack frame") {
            all.entry(name.clone()).or_default().memory =
                numbers().collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{line}"));
        } else if let Some((_, rest)) = line.split_once(": Used ") {
            let count = rest.split(' ').next().and_then(|word| word.parse().ok());
            all.entry(name.clone()).or_default().registers = count.unwrap_or_else(|| panic!("{line}"));
        }
    }
    all
}

/// The plan of a kernel on the first of its defaults for a GPU that can be planned.
fn plan(axes: &[Axis], plan: fn(&gpu::suite::Case) -> Result<Plan, gpu::suite::PlanError>) -> Plan {
    let case = case(axes.iter().map(|axis| (axis.name, axis.in_simulator[0])).collect());
    plan(&case).expect("the first default")
}

#[test]
fn no_kernel_spills_and_registers_allow_the_occupancy_that_it_is_made_for() {
    let Some(ptxas) = program("ptxas") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for architecture in ARCHITECTURES {
        let (_, said) = assembled(&ptxas, architecture, folder.path());
        let all = resources(&said);
        for (family, entry) in kernels_under_test() {
            let name = entry.kernel.name;
            let of = all.get(name).unwrap_or_else(|| panic!("{name} was not assembled for {architecture}"));
            assert_eq!(of.memory, [0; 3], "{name} for {architecture}: stack, spill stores, spill loads");
            let threads = plan(family.axes, entry.plan).launch.block_threads();
            // A warp takes registers by 256: 8 a lane.
            let registers = threads.next_multiple_of(32) * of.registers.next_multiple_of(8);
            let blocks = BLOCKS_PER_SM.iter().find(|(of, _)| *of == name).map_or(1, |(_, blocks)| *blocks);
            assert!(
                registers * blocks <= REGISTERS,
                "{name} for {architecture}: {} registers a thread let an SM hold {} blocks of {threads} threads, not {blocks}",
                of.registers,
                REGISTERS / registers
            );
        }
    }
    let names: BTreeSet<_> = kernels().iter().map(|(_, entry)| entry.kernel.name).collect();
    assert!(BLOCKS_PER_SM.iter().all(|(name, _)| names.contains(name)), "a kernel of the table is gone");
}

/// The accesses of each kernel to global and shared memory, as the disassembly has them: space, direction and width in bytes.
fn accesses(text: &str) -> BTreeMap<&str, BTreeSet<(&'static str, &'static str, u64)>> {
    let mut all = BTreeMap::<_, BTreeSet<_>>::new();
    let mut name = "";
    for line in text.lines() {
        if let Some(section) = line.trim().strip_prefix(".text.").and_then(|line| line.strip_suffix(':')) {
            name = section;
            all.entry(name).or_default();
            continue;
        }
        // What is never executed pads asynchronous copies.
        let Some((_, instruction)) = line.split_once("*/").filter(|_| !line.contains("@!PT ")) else { continue };
        let mut words = instruction.split_whitespace().skip_while(|word| word.starts_with('@'));
        let mut parts = words.next().unwrap_or_default().split('.');
        let (space, direction) = match parts.next() {
            Some("LDG") => ("global", "load"),
            Some("STG") => ("global", "store"),
            Some("LDS") => ("shared", "load"),
            Some("STS") => ("shared", "store"),
            Some("LDL" | "STL" | "LD" | "ST") => ("local or generic", "access"),
            _ => continue,
        };
        let mut width = parts.filter_map(|part| match part {
            "U8" | "S8" => Some(1),
            "U16" | "S16" => Some(2),
            "64" => Some(8),
            "128" => Some(16),
            _ => None,
        });
        all.entry(name).or_default().insert((space, direction, width.next_back().unwrap_or(4)));
    }
    all
}

#[test]
fn the_assembler_splits_and_widens_no_access() {
    let (Some(ptxas), Some(disassembler)) = (program("ptxas"), program("nvdisasm")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let ptx = Ptx::embedded();
    let mut differences = Vec::new();
    for architecture in ARCHITECTURES {
        let (cubin, _) = assembled(&ptxas, architecture, folder.path());
        let [text, _] = printed(Command::new(&disassembler).arg("-c").arg(cubin));
        let all = accesses(&text);
        for (name, in_ptx) in ptx.entries() {
            let in_ptx: BTreeSet<_> = in_ptx
                .iter()
                .filter_map(|access| match (access.space, access.operation) {
                    ("global", "load") => Some(("global", "load", access.width)),
                    ("global", "store") => Some(("global", "store", access.width)),
                    ("shared", "load") => Some(("shared", "load", access.width)),
                    ("shared", "store") => Some(("shared", "store", access.width)),
                    _ => None,
                })
                .collect();
            let in_machine_code =
                all.get(name).unwrap_or_else(|| panic!("{name} is not in the code for {architecture}"));
            let sides = set_difference(("in the PTX", &in_ptx), ("in the machine code", in_machine_code));
            differences.extend(sides.into_iter().map(|side| format!("{name} for {architecture}, {side}")));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn what_the_tools_print_is_understood() {
    let said = "ptxas info    : Compiling entry function 'copy' for 'sm_90'\nptxas info    : Function properties for copy\n    \
                8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n\
                ptxas info    : Used 42 registers, used 0 barriers, 8 bytes cumulative stack size\n";
    let of_copy = Resources { registers: 42, memory: [8, 4, 12] };
    assert_eq!(resources(said), BTreeMap::from([("copy".to_owned(), of_copy)]));
    let text = ".text.copy:\n        /*0110*/               @P0 LDG.E.128 R4, desc[UR4][R4.64] ;\n        \
                /*0120*/              @!PT LDS RZ, [RZ] ;\n        /*0130*/                   STS.U16 [R6], R4 ;\n        \
                /*0140*/                   STL [R1], R4 ;\n        /*0150*/                   IADD3 R1, R1, 1, RZ ;\n";
    let of_copy = [("global", "load", 16), ("shared", "store", 2), ("local or generic", "access", 4)];
    assert_eq!(accesses(text), BTreeMap::from([("copy", of_copy.into())]));
}
