//! The plain model: what a program asks for, and what is wrong with it.

use super::program::{Access, Program, Region, Statement};
use busload::sim::Kind;
use gpu::suite::{Counts, Operation};
use std::collections::{BTreeMap, BTreeSet};

/// A place of the tree: which statement of each list around it, in which iteration.
type Place = Vec<u32>;

/// What a thread does.
enum Event {
    Access(Place, Access, u32),
    Block,
    Warp(Place, u32),
}

/// What thread number `thread` of a block does; false if it returns.
fn events(statements: &[Statement], at: &Place, block: u32, thread: u32, step: u32, out: &mut Vec<Event>) -> bool {
    for (statement, number) in statements.iter().zip(0..) {
        let mut here = at.clone();
        here.push(number);
        let goes_on = match statement {
            Statement::Access(access) => {
                out.push(Event::Access(here, *access, access.word(block, thread, step)));
                true
            }
            Statement::If(lanes, yes, no) => {
                let taken = lanes >> (thread % 32) & 1;
                here.push(taken);
                events(if taken == 1 { yes } else { no }, &here, block, thread, step, out)
            }
            Statement::Loop(fixed, more, body) => (0..Program::trips(*fixed, *more, thread)).all(|step| {
                let mut here = here.clone();
                here.push(step);
                events(body, &here, block, thread, step, out)
            }),
            Statement::Block => {
                out.push(Event::Block);
                true
            }
            Statement::Warp(mask) => {
                out.push(Event::Warp(here, *mask));
                true
            }
            // It exchanges registers, and orders nothing.
            Statement::Shuffle(_) => true,
            Statement::Return => false,
        };
        if !goes_on {
            return false;
        }
    }
    true
}

/// An access to a word, with what its thread knew: how much of what each thread of its block did lies before.
struct Touch {
    block: u32,
    thread: u32,
    operation: Operation,
    knew: Vec<u32>,
}

impl Touch {
    fn comes_before(&self, other: &Touch) -> bool {
        self.block == other.block && self.knew[self.thread as usize] <= other.knew[self.thread as usize]
    }
}

/// What is expected of a program.
pub(super) struct Expected {
    pub(super) counts: BTreeMap<(String, Operation, u64), Counts>,
    pub(super) findings: BTreeSet<Kind>,
}

type Requests = BTreeMap<(u32, u32, Place), (Access, Vec<(u32, u32)>)>;

pub(super) fn expected(program: &Program) -> Expected {
    let mut requests = Requests::new();
    let mut touches: BTreeMap<(Region, u32, u32), Vec<Touch>> = BTreeMap::new();
    for block in 0..program.blocks {
        let mut threads: Vec<_> = (0..program.threads)
            .map(|thread| {
                let mut out = Vec::new();
                events(&program.statements, &Vec::new(), block, thread, 0, &mut out);
                out.into_iter().peekable()
            })
            .collect();
        let mut knows = vec![vec![0; threads.len()]; threads.len()];
        (0..threads.len()).for_each(|thread| knows[thread][thread] = 1);
        let meet = |knows: &mut Vec<Vec<u32>>, who: &[usize]| {
            let all: Vec<u32> =
                (0..knows.len()).map(|of| who.iter().map(|&thread| knows[thread][of]).max().unwrap()).collect();
            for &thread in who {
                knows[thread].clone_from(&all);
                knows[thread][thread] += 1;
            }
        };
        loop {
            for (thread, events) in threads.iter_mut().enumerate() {
                while let Some(Event::Access(place, access, word)) =
                    events.next_if(|event| matches!(event, Event::Access(..)))
                {
                    let key = (block, thread as u32 / 32, place);
                    requests.entry(key).or_insert((access, Vec::new())).1.push((thread as u32 % 32, word));
                    for word in word..word + access.words {
                        let of = if access.region == Region::Tile { block } else { 0 };
                        touches.entry((access.region, of, word)).or_default().push(Touch {
                            block,
                            thread: thread as u32,
                            operation: access.operation,
                            knew: knows[thread].clone(),
                        });
                    }
                }
            }
            // Lanes of a warp that wait for one another; else all of the block, and those that have returned are no obstacle.
            let mut meetings: BTreeMap<(usize, Place), Vec<usize>> = BTreeMap::new();
            for (thread, events) in threads.iter_mut().enumerate() {
                if let Some(Event::Warp(place, _)) = events.peek() {
                    meetings.entry((thread / 32, place.clone())).or_default().push(thread);
                }
            }
            let met = meetings.into_values().find(|who| {
                let Some(&Event::Warp(_, mask)) = threads[who[0]].peek() else { return false };
                let first = who[0] / 32 * 32;
                let named = (first..threads.len().min(first + 32)).filter(|thread| mask >> (thread % 32) & 1 == 1);
                let named: Vec<_> = named.collect();
                named.iter().all(|thread| who.contains(thread) || threads[*thread].peek().is_none())
            });
            if let Some(who) = met {
                meet(&mut knows, &who);
                who.iter().for_each(|&thread| drop(threads[thread].next()));
            } else if threads.iter_mut().any(|events| events.peek().is_some()) {
                let all: Vec<_> = (0..threads.len()).collect();
                meet(&mut knows, &all);
                for events in &mut threads {
                    let event = events.next();
                    assert!(matches!(event, None | Some(Event::Block)), "the model is stuck");
                }
            } else {
                break;
            }
        }
    }
    let mut counts: BTreeMap<(String, Operation, u64), Counts> = BTreeMap::new();
    for (access, lanes) in requests.into_values() {
        let key = (access.region.name().to_owned(), access.operation, 4 * u64::from(access.words));
        *counts.entry(key).or_default() += cost(&access, &lanes);
    }
    let findings = touches.iter().flat_map(|((region, ..), touches)| verdict(program, *region, touches)).collect();
    Expected { counts, findings }
}

/// What a request costs: units touched, and the most words that a bank has to send at a time.
fn cost(access: &Access, lanes: &[(u32, u32)]) -> Counts {
    let (count, width) = (lanes.len() as u64, 4 * u64::from(access.words));
    let mut counts = Counts { requests: 1, lanes: count, ..Counts::default() };
    if access.region != Region::Tile {
        let units = |words: u32| lanes.iter().map(|(_, word)| word / words).collect::<BTreeSet<_>>().len() as u64;
        (counts.sectors, counts.lines) = (units(8), units(32));
        counts.sectors_ideal = counts.sectors.min((count * width).div_ceil(32));
        return counts;
    }
    let word_of: BTreeMap<u32, u32> = lanes.iter().copied().collect();
    let paired =
        |xor: u32| word_of.iter().all(|(lane, word)| word_of.get(&(lane ^ xor)).is_none_or(|other| other == word));
    let is_paired = access.operation == Operation::Load && (paired(1) || paired(2));
    let together = if access.words == 1 || is_paired { 32 } else { 16 };
    counts.wavefronts = (0..32)
        .step_by(together as usize)
        .map(|first| {
            let served = word_of.range(first..first + together);
            let words: BTreeSet<u32> = served.flat_map(|(_, word)| *word..*word + access.words).collect();
            (0..32).map(|bank| words.iter().filter(|word| *word % 32 == bank).count() as u64).max().unwrap_or(0)
        })
        .sum();
    counts.wavefronts_ideal = counts.wavefronts.min((count * width).div_ceil(128));
    counts
}

/// What is wrong with the accesses to a word.
fn verdict(program: &Program, region: Region, touches: &[Touch]) -> BTreeSet<Kind> {
    let initialized = region == Region::Src || region == Region::Dst && program.zeroed;
    let is_other = |a: &Touch, b: &Touch| (a.block, a.thread) != (b.block, b.thread);
    let races = |a: &Touch, b: &Touch| {
        let both = |operation| a.operation == operation && b.operation == operation;
        is_other(a, b) && !both(Operation::Load) && !both(Operation::Atomic) && !a.comes_before(b) && !b.comes_before(a)
    };
    let mut found = BTreeSet::new();
    for (number, touch) in touches.iter().enumerate() {
        if touches[..number].iter().any(|earlier| races(earlier, touch)) {
            found.insert(Kind::Race);
        }
        // What races with a read is a race. The accesses of a thread stand in their order.
        let is_written = |(other_number, other): (usize, &Touch)| {
            other.operation != Operation::Load
                && match is_other(other, touch) {
                    true => other.comes_before(touch) || races(other, touch),
                    false => other_number < number,
                }
        };
        let reads = touch.operation != Operation::Store;
        if reads && !initialized && !touches.iter().enumerate().any(is_written) {
            found.insert(Kind::Uninitialized);
        }
    }
    found
}
