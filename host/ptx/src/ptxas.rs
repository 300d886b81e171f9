//! What ptxas makes of a program's branches, as far as it decides which loads of a warp are in flight together.
//!
//! It issues the loads of a basic block first, as soon as their addresses are known. Short branches become predicates, and then belong to
//! the block: their instructions are issued even if no lane of a warp carries them out. A loop that counts by a constant, and stores to no
//! memory that it loads from, is unrolled four times. All that is so by what it made of `gpu/ptx` and of kernels that nvcc compiled, for
//! `sm_90`.

use crate::cost::Cost;
use crate::program::{Action, Fixed, Inst, NONE, Op, Program, Value, Where};
use crate::registers::OWN;
use crate::uses::Uses;
use rustc_hash::{FxHashMap, FxHashSet};

/// Rounds of a loop that become one.
const UNROLLED: u8 = 4;

/// Issue slots of what a branch skips, at most, if it becomes a predicate.
const PREDICATED: u32 = 14;

/// Instructions of a program, and of all loops together, beyond which nothing is looked for.
const MOST: usize = 1 << 20;

/// What an instruction is to the order of loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It ends nothing.
    Inside,
    /// A block ends there.
    Ends,
    /// A loop ends its round there, of which so many are one.
    Loops(u8),
}

/// What decides on the order of a program's loads.
pub(crate) struct Schedule {
    pub(crate) uses: Uses,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) costs: Vec<Cost>,
    /// Of each branch that becomes a predicate, the instructions on either way: that of lanes which do not take it, and of those that do.
    predicated: FxHashMap<u32, [Vec<u32>; 2]>,
}

impl Schedule {
    pub(crate) fn of(program: &Program) -> Self {
        let uses = Uses::of(program);
        let predicated = predicated(program);
        Self { kinds: kinds(program, &uses, &predicated), costs: costs(program, &uses), uses, predicated }
    }

    /// What a warp issues without a lane if all of its lanes take the branch at `at`, or none does.
    pub(crate) fn skipped(&self, at: u32, all_take_it: bool) -> &[u32] {
        self.predicated.get(&at).map_or(&[], |ways| &ways[usize::from(!all_take_it)])
    }
}

/// The branches that become predicates.
fn predicated(program: &Program) -> FxHashMap<u32, [Vec<u32>; 2]> {
    let ways = |(at, inst): (u32, &Inst)| match inst.op {
        Op::Branch { target, meet } if inst.guard != NONE => {
            let ways = [way(program, at + 1, meet)?, way(program, target, meet)?];
            let slots =
                |way: &Vec<u32>| way.iter().map(|at| u32::from(program.code[*at as usize].cost.slots)).sum::<u32>();
            (ways.iter().map(slots).sum::<u32>() <= PREDICATED).then_some((at, ways))
        }
        _ => None,
    };
    (0..).zip(&program.code).filter_map(ways).collect()
}

/// The instructions from one to another, if no other way leads on from any of them, and they are few.
fn way(program: &Program, mut at: u32, end: u32) -> Option<Vec<u32>> {
    let mut way = Vec::new();
    while at != end {
        let inst = program.code.get(at as usize)?;
        if way.len() > 4 * PREDICATED as usize {
            return None;
        }
        way.push(at);
        at = match inst.op {
            Op::Alu { .. } | Op::Access(_) => at + 1,
            Op::Branch { target, .. } if inst.guard == NONE => target,
            _ => return None,
        };
    }
    Some(way)
}

/// Says of each instruction of a program whether a block ends there.
fn kinds(program: &Program, uses: &Uses, predicated: &FxHashMap<u32, [Vec<u32>; 2]>) -> Vec<Kind> {
    let code = &program.code;
    let kind = |(at, inst): (u32, &Inst)| match inst.op {
        Op::Branch { .. } if inst.guard != NONE && !predicated.contains_key(&at) => Kind::Ends,
        Op::Table { .. } => Kind::Ends,
        _ => Kind::Inside,
    };
    let mut kinds: Vec<_> = (0..).zip(code).map(kind).collect();
    let before = before(program);
    let edges = back_edges(program);
    let heads: FxHashSet<u32> = edges.iter().map(|(_, head)| *head).collect();
    let mut left = MOST;
    for &(from, head) in &edges {
        let Some(body) = body(&before, from, head, &mut left) else { continue };
        let is_innermost = body.iter().all(|other| *other == head || !heads.contains(other));
        let repeats =
            is_innermost && is_plain(program, &body) && body.iter().any(|at| counts(program, uses, &body, *at));
        kinds[from as usize] = Kind::Loops(if repeats { UNROLLED } else { 1 });
    }
    kinds
}

/// Whether a loop neither waits nor stores to memory that it loads from.
fn is_plain(program: &Program, body: &FxHashSet<u32>) -> bool {
    let (mut loaded, mut stored) = (Vec::new(), Vec::new());
    for at in body {
        match program.code[*at as usize].op {
            Op::Access(number) => {
                let access = &program.accesses[number as usize];
                match access.action {
                    Action::Load => loaded.push(access.space),
                    Action::Store => stored.push(access.space),
                    Action::Atomic(_) => return false,
                }
            }
            Op::Alu { .. } | Op::Clock { .. } | Op::ActiveMask { .. } | Op::Branch { .. } => {}
            _ => return false,
        }
    }
    !stored.iter().any(|space| *space == Where::Generic || loaded.contains(space))
}

/// Where an instruction leads.
fn next(program: &Program, at: u32) -> Vec<u32> {
    let Inst { op, guard, .. } = program.code[at as usize];
    let mut next = match op {
        Op::Branch { target, .. } => vec![target],
        Op::Table { table, .. } => program.tables[table as usize].clone(),
        Op::Exit | Op::Trap => Vec::new(),
        _ => vec![at + 1],
    };
    if guard != NONE && next != [at + 1] {
        next.push(at + 1);
    }
    next.retain(|other| (*other as usize) < program.code.len());
    next
}

/// What each instruction is reached from.
fn before(program: &Program) -> Vec<Vec<u32>> {
    let mut before = vec![Vec::new(); program.code.len()];
    for at in 0..program.code.len() as u32 {
        next(program, at).into_iter().for_each(|other| before[other as usize].push(at));
    }
    before
}

/// The branches that lead back to the head of a loop, each with the head.
fn back_edges(program: &Program) -> Vec<(u32, u32)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        Open,
        Done,
    }
    let (mut seen, mut edges) = (vec![Seen::Not; program.code.len()], Vec::new());
    let mut open = Vec::new();
    if !seen.is_empty() {
        seen[0] = Seen::Open;
        open.push((0, next(program, 0)));
    }
    while let Some((at, rest)) = open.last_mut() {
        let at = *at;
        match rest.pop() {
            Some(other) => match seen[other as usize] {
                Seen::Not => {
                    seen[other as usize] = Seen::Open;
                    open.push((other, next(program, other)));
                }
                Seen::Open => edges.push((at, other)),
                Seen::Done => {}
            },
            None => {
                seen[at as usize] = Seen::Done;
                open.pop();
            }
        }
    }
    edges
}

/// The instructions of the loop that `from` closes; none if there are too many to look at.
fn body(before: &[Vec<u32>], from: u32, head: u32, left: &mut usize) -> Option<FxHashSet<u32>> {
    let (mut body, mut waiting) = (FxHashSet::from_iter([head]), vec![from]);
    while let Some(at) = waiting.pop() {
        if body.insert(at) {
            *left = left.checked_sub(1)?;
            waiting.extend(&before[at as usize]);
        }
    }
    Some(body)
}

/// The register that an instruction makes of another one and a constant, and that other one.
fn with_constant(program: &Program, uses: &Uses, at: u32) -> Option<(u32, u32)> {
    let is_constant = |slot: u32| {
        let holds = |fixed: &Fixed| fixed.slot == slot && matches!(fixed.value, Value::Bits(_));
        slot & OWN == 0 && program.fixed.iter().any(holds)
    };
    match (program.code[at as usize].op, uses.reads(at), uses.writes(at)) {
        (Op::Alu { slots, .. }, &[from], &[to]) if slots[1..3].iter().any(|slot| is_constant(*slot)) => {
            Some((to, from))
        }
        _ => None,
    }
}

/// Whether an instruction of a loop counts its rounds: it adds a constant to a register, in place or by way of another one.
fn counts(program: &Program, uses: &Uses, body: &FxHashSet<u32>, at: u32) -> bool {
    let Some((to, from)) = with_constant(program, uses, at) else { return false };
    to == from || body.iter().any(|other| (uses.reads(*other), uses.writes(*other)) == (&[to], &[from]))
}

/// What each instruction of a program costs: the addition of a constant to an address is part of the access.
fn costs(program: &Program, uses: &Uses) -> Vec<Cost> {
    let mut is_address = vec![true; uses.count()];
    for (at, inst) in (0..).zip(&program.code) {
        let address = match inst.op {
            Op::Access(number) if program.accesses[number as usize].makes_requests() => uses.reads(at).first(),
            _ => None,
        };
        let others = uses.reads(at).iter().skip(usize::from(address.is_some()));
        others.for_each(|register| is_address[*register as usize] = false);
    }
    let cost = |(at, inst): (u32, &Inst)| match with_constant(program, uses, at) {
        Some((to, _)) if is_address[to as usize] => Cost::default(),
        _ => inst.cost,
    };
    (0..).zip(&program.code).map(cost).collect()
}
