//! Which registers may be read before they are written, and what is made of them: those are watched while a program runs.
//!
//! A register is assigned where every way that leads there writes it. Arithmetic on one that is not makes another; to go by it, to store
//! it or to hand it to other lanes is an error.

use crate::flow::{Leads, block_starts};
use crate::program::{Exchanged, NONE, Op, Program};
use crate::registers::{Class, OWN};
use crate::uses::Uses;
use crate::watch::{Makes, Use, Watch};

/// Words that are spent on what is assigned where, at most: beyond that every register is watched that may be read first.
const MOST_WORDS: usize = 1 << 23;

/// Those of a program whose instructions lead to one another like this. `name` says what the register is called that
/// stands in a slot of a bank.
pub(crate) fn watched(program: &Program, leads: &[Leads], name: impl Fn((usize, u32)) -> &'static str) -> Watch {
    let uses = Uses::of(program);
    let mut watched = unassigned(program, &uses, leads);
    if !watched.contains(&true) {
        return Watch::default();
    }
    let mut changed = true;
    while changed {
        changed = false;
        for at in 0..program.code.len() as u32 {
            let (from, to) = match program.code[at as usize].op {
                Op::Alu { .. } => (uses.reads(at), uses.writes(at)),
                Op::Exchange(number) => match shuffled(program, &uses, number) {
                    Some((source, target)) => (&[source][..], &[target][..]),
                    None => continue,
                },
                _ => continue,
            };
            if from.iter().any(|register| watched[*register as usize]) {
                to.iter().for_each(|register| changed |= !std::mem::replace(&mut watched[*register as usize], true));
            }
        }
    }
    let registers = (0..watched.len() as u32).filter(|register| watched[*register as usize]);
    let mut own = Watch::default();
    let mut places = vec![None; watched.len()];
    for (place, register) in (0..).zip(registers) {
        places[register as usize] = Some(place);
        own.names.push(name(uses.place(register)));
    }
    for at in 0..program.code.len() as u32 {
        let found = use_of(program, &uses, at, &places);
        let is_shuffle = matches!(found.makes, Some(Makes::Shuffled { .. }));
        if is_shuffle || found.guard.is_some() || !found.reads.is_empty() || !found.writes.is_empty() {
            own.uses.insert(at, found);
        }
    }
    own
}

/// The register whose lanes a shuffle hands on, and the one that it hands them to.
fn shuffled(program: &Program, uses: &Uses, number: u32) -> Option<(u32, u32)> {
    let exchange = &program.exchanges[number as usize];
    let is_shuffle = matches!(exchange.what, Exchanged::Up | Exchanged::Down | Exchanged::Butterfly | Exchanged::Index);
    let (source, target) = (uses.number(exchange.source), exchange.target.and_then(|target| uses.number(target)));
    source.zip(target).filter(|_| is_shuffle)
}

fn use_of(program: &Program, uses: &Uses, at: u32, places: &[Option<u32>]) -> Use {
    let inst = &program.code[at as usize];
    let [mut reads, writes] = [uses.reads(at), uses.writes(at)];
    let mut guard = None;
    // The guard is the last that is read.
    if inst.guard != NONE
        && inst.guard & OWN != 0
        && let Some((last, rest)) = reads.split_last()
    {
        (guard, reads) = (places[*last as usize], rest);
    }
    let place = |register: &u32| places[*register as usize];
    let mut own = Use {
        guard,
        reads: reads.iter().filter_map(place).collect(),
        writes: writes.iter().filter_map(place).collect(),
        makes: None,
    };
    if let Op::Exchange(number) = inst.op
        && let Some((source, target)) = shuffled(program, uses, number)
        && let (Some(from), Some(to)) = (place(&source), place(&target))
    {
        // What is read first is the source.
        own.reads = reads.iter().skip(1).filter_map(place).collect();
        own.writes.retain(|register| *register != to);
        own.makes = Some(Makes::Shuffled { source: from, target: to });
    }
    if let Op::Alu { slots, classes: all, .. } = inst.op {
        let classes: Vec<_> = all.iter().collect();
        let owned = |source: usize| slots[source + 1] & OWN != 0;
        own.makes = Some(match classes[..] {
            // A selection. What stands in a slot that no warp has for itself is known.
            [target, one, other, Class::Pred] if target == one && target == other && owned(2) => {
                let mut next = reads.iter();
                let of = [0, 1].map(|source| if owned(source) { next.next().and_then(place) } else { None });
                Makes::Chosen { predicate: next.next().and_then(place), of }
            }
            [target, one, ..] if (all.joins() || target as u8 > one as u8) && reads.len() > 1 => {
                if own.reads.len() < reads.len() {
                    own.reads.clear();
                }
                Makes::OfParts
            }
            _ => Makes::OfAll,
        });
    }
    own
}

/// The registers that may be read before they are written.
fn unassigned(program: &Program, uses: &Uses, leads: &[Leads]) -> Vec<bool> {
    let count = uses.count();
    let starts = block_starts(leads);
    let blocks = starts.len() - 1;
    let mut before = vec![false; count];
    program.fixed.iter().filter_map(|fixed| uses.number((fixed.class, fixed.slot))).for_each(|register| {
        before[register as usize] = true;
    });
    let is_certain = |at: usize| program.code[at].guard == NONE;
    // Those that a block reads first count alone.
    let mut place = vec![None; count];
    let mut candidates = Vec::new();
    let mut written = vec![usize::MAX; count];
    for block in 0..blocks {
        for at in starts[block]..starts[block + 1] {
            for &register in uses.reads(at as u32) {
                let number = register as usize;
                if written[number] != block && place[number].is_none() && !before[number] {
                    place[number] = Some(candidates.len());
                    candidates.push(register);
                }
            }
            if is_certain(at) {
                uses.writes(at as u32).iter().for_each(|register| written[*register as usize] = block);
            }
        }
    }
    let mut found = vec![false; count];
    let words = candidates.len().div_ceil(64);
    if blocks.saturating_mul(words) > MOST_WORDS {
        candidates.iter().for_each(|register| found[*register as usize] = true);
        return found;
    }
    let mut of = vec![0; leads.len() + 1];
    (0..blocks).for_each(|block| of[starts[block]..starts[block + 1]].fill(block));
    let enter = |set: &mut [u64], at: usize| {
        if is_certain(at) {
            for place in uses.writes(at as u32).iter().filter_map(|register| place[*register as usize]) {
                set[place / 64] |= 1 << (place % 64);
            }
        }
    };
    let mut assigned = vec![u64::MAX; blocks * words];
    if blocks > 0 {
        assigned[..words].fill(0);
    }
    let mut waiting = vec![true; blocks];
    let mut changed = blocks > 0;
    // In the order of the text most is known at once; what leads back is gone through again.
    while std::mem::take(&mut changed) {
        for block in 0..blocks {
            // What nobody has come to leads nowhere.
            if !std::mem::take(&mut waiting[block]) {
                continue;
            }
            let mut set = assigned[block * words..][..words].to_vec();
            (starts[block]..starts[block + 1]).for_each(|at| enter(&mut set, at));
            let last = starts[block + 1] - 1;
            for next in followers(leads, last).filter(|next| *next < leads.len()) {
                let to = &mut assigned[of[next] * words..][..words];
                let less = to.iter().zip(&set).any(|(to, set)| to & !set != 0);
                to.iter_mut().zip(&set).for_each(|(to, set)| *to &= set);
                if less {
                    waiting[of[next]] = true;
                    changed = true;
                }
            }
        }
    }
    for block in 0..blocks {
        let mut set = assigned[block * words..][..words].to_vec();
        for at in starts[block]..starts[block + 1] {
            for &register in uses.reads(at as u32) {
                if let Some(place) = place[register as usize] {
                    found[register as usize] |= set[place / 64] >> (place % 64) & 1 == 0;
                }
            }
            enter(&mut set, at);
        }
    }
    found
}

/// Where an instruction leads.
fn followers(leads: &[Leads], at: usize) -> impl Iterator<Item = usize> {
    let (targets, goes_on) = match &leads[at] {
        Leads::On | Leads::MaybeNowhere => (&[][..], true),
        Leads::Maybe(targets) => (&targets[..], true),
        Leads::Away(targets) => (&targets[..], false),
        Leads::Nowhere => (&[][..], false),
    };
    targets.iter().map(|target| *target as usize).chain(goes_on.then_some(at + 1))
}
