//! The machine held to what probes measured.

mod data_stage;
mod issue;
mod l1;
mod lsu;
mod memory;
mod scheduler;

use super::events::key;
use super::*;
use engine::Pc;
use engine::trace::{Flow, Line, Lines, TAG_BANKS, Traced, WHOLE_BLOCK, What, tag_bank};
use gpu::suite::noise;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How the requests of warps follow one another: so many loads of each in flight, and a request after so many instructions.
#[derive(Clone, Copy)]
struct Pace(u32, u16);

impl Pace {
    /// Has the requests of a trace follow one another so.
    fn set(self, mut trace: Trace) -> Trace {
        let Self(in_flight, instructions) = self;
        let mut issued = BTreeMap::<u16, u32>::new();
        for request in &mut trace.requests {
            if request.warp == WHOLE_BLOCK {
                issued.clear();
            }
            let is_load = matches!(request.what, What::Load { .. } | What::SharedLoad | What::Constant);
            let needs = match request.what {
                // ptxas issues first what follows it.
                What::SharedStore => 0,
                _ if is_load => {
                    let issued = issued.entry(request.warp).or_default();
                    *issued += 1;
                    // All that are in flight together are used before another is issued.
                    if (*issued - 1).is_multiple_of(in_flight) { u64::MAX } else { 0 }
                }
                _ => u64::MAX,
            };
            request.flow = Flow { issue: instructions, chain: 5 * instructions / 2, needs, after: 0 };
        }
        trace
    }
}

/// Has a warp load 4 bytes from each of so many lines, with a wavefront for each.
fn load(trace: &mut Trace, at: Pc, warp: u16, lines: u16, number: impl Fn(u64) -> u64) {
    let numbers = (0..u64::from(lines)).map(number);
    let touched: Lines = numbers.map(|number| Line { number, bytes: [4, 0, 0, 0] }).collect();
    let mut banks = [0; TAG_BANKS];
    touched.iter().for_each(|line| banks[tag_bank(line.number)] += 1);
    let tag_wavefronts = banks.into_iter().max().expect("there are banks");
    let (what, lines_end) = (What::Load { past_l1: false }, trace.add_lines(&touched));
    let (wavefronts, miss_wavefronts) = (lines, lines);
    trace.requests.push(Traced {
        warp,
        what,
        at,
        wavefronts,
        miss_wavefronts,
        tag_wavefronts,
        lines_end,
        flow: Flow::default(),
    });
}

/// A barrier of the block.
fn wait(trace: &mut Trace, at: Pc) {
    let (warp, what, lines_end) = (WHOLE_BLOCK, What::Wait, trace.add_lines(&[]));
    trace.requests.push(Traced {
        warp,
        what,
        at,
        wavefronts: 0,
        miss_wavefronts: 0,
        tag_wavefronts: 0,
        lines_end,
        flow: Flow::default(),
    });
}

/// When a block of [`one_block`] is launched: long after the L2 has its lines.
const BEGIN: f64 = 1e7;

/// An SM of an H200 with one block, each of whose warps has so many loads in flight, and so many lines in the L2.
fn one_block(trace: Trace, in_flight: u32, known: u64) -> Machine {
    one_block_of(trace, Pace(in_flight, 1), 224, known)
}

/// The same at this pace, and with so many KiB of L1.
fn one_block_of(trace: Trace, pace: Pace, l1_kib: u64, known: u64) -> Machine {
    blocks_of(vec![trace], pace, l1_kib, known)
}

/// The same with these blocks.
fn blocks_of(traces: Vec<Trace>, pace: Pace, l1_kib: u64, known: u64) -> Machine {
    let chip = Chip { sm_count: 1, ..Chip::load("h200").expect("is built in") };
    let mut machine = Machine::new(&chip, traces.len() as u64, l1_kib << 10, u64::MAX);
    for number in 0..known {
        machine.memory.read(0, number, 1, 0.0);
    }
    machine.scheduler.free.clear();
    for (slot, trace) in traces.into_iter().enumerate() {
        machine.launch(pace.set(trace), slot, BEGIN, 0.0);
    }
    machine
}

/// An SM whose L1 has the first 128 lines, and whose warps start so many cycles after it has.
fn warps_that_begin(trace: Trace, pace: Pace, when: &[f64]) -> Machine {
    let (at, mut first) = (crate::pc(), Trace::default());
    (0..4).for_each(|i| load(&mut first, at, 0, 32, |lane| 32 * i + lane));
    let mut machine = one_block_of(first, pace, 224, 1 << 10);
    while machine.happen().is_some() {}
    machine.scheduler.free.clear();
    machine.launch(pace.set(trace), 0, LATER, 0.0);
    machine.events.clear();
    for (warp, when) in when.iter().enumerate() {
        machine.events.schedule(LATER + when, Event::Warp { slot: 0, warp });
    }
    machine
}

/// When all that was before is over.
const LATER: f64 = 2.0 * BEGIN;

/// A whole H200 whose SMs each have eight blocks of eight warps, each of which makes these requests, with so many lines in the L2.
fn eight_blocks(pace: Pace, known: u64, requests: impl Fn(&mut Trace, u64, u16)) -> Machine {
    let chip = Chip::load("h200").expect("is built in");
    let mut machine = Machine::new(&chip, 8, 224 << 10, u64::MAX);
    for number in 0..known {
        machine.memory.read(0, number, 1, 0.0);
        machine.memory.read(4, number, 1, 0.0);
    }
    machine.scheduler.free.clear();
    for slot in 0..8 * u64::from(chip.sm_count) {
        let mut trace = Trace::default();
        (0..8).for_each(|warp| requests(&mut trace, slot, warp));
        machine.launch(pace.set(trace), slot as usize, BEGIN + slot as f64, 0.0);
    }
    machine
}
