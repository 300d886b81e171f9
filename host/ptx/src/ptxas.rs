//! What ptxas makes of a program's branches, as far as it decides which loads of a warp are in flight together.
//!
//! It issues the loads of a basic block first, as soon as their addresses are known. Short branches become predicates, and then belong to
//! the block. A loop that counts by a constant and stores nothing is unrolled four times: by what it made of `gpu/ptx` and of kernels that
//! nvcc compiled, for `sm_90`.

use crate::program::{Action, NONE, Op, Program, Value};
use crate::registers::OWN;
use crate::uses::Uses;

/// Rounds of a loop that become one.
const UNROLLED: u8 = 4;

/// Instructions that a branch skips at most if it becomes a predicate.
const PREDICATED: usize = 8;

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

/// Says of each instruction of a program whether a block ends there.
pub(crate) fn kinds(program: &Program, uses: &Uses) -> Vec<Kind> {
    let code = &program.code;
    let is_constant = |slot: u32| {
        let holds = |fixed: &crate::program::Fixed| fixed.slot == slot && matches!(fixed.value, Value::Bits(_));
        slot != NONE && slot & OWN == 0 && program.fixed.iter().any(holds)
    };
    let counts = |at: usize| match code[at].op {
        Op::Alu { slots, .. } => {
            let [target] = uses.writes(at as u32) else { return false };
            uses.reads(at as u32).contains(target) && slots[1..3].iter().any(|slot| is_constant(*slot))
        }
        _ => false,
    };
    let kind = |at: usize| match code[at].op {
        Op::Branch { target, .. } if target as usize <= at => {
            let body = target as usize..=at;
            let repeats = body.clone().any(counts)
                && body.clone().all(|other| match code[other].op {
                    Op::Branch { target, .. } => other == at || target as usize > other,
                    Op::Access(number) => matches!(program.accesses[number as usize].action, Action::Load),
                    Op::Alu { .. } | Op::Clock { .. } | Op::ActiveMask { .. } => true,
                    _ => false,
                });
            Kind::Loops(if repeats { UNROLLED } else { 1 })
        }
        Op::Branch { target, .. } => {
            let skipped = at + 1..target as usize;
            let is_plain = |op: &Op| matches!(op, Op::Alu { .. } | Op::Access(_));
            let short = skipped.len() <= PREDICATED && code[skipped].iter().all(|inst| is_plain(&inst.op));
            if short && code[at].guard != NONE { Kind::Inside } else { Kind::Ends }
        }
        Op::Table { .. } => Kind::Ends,
        _ => Kind::Inside,
    };
    (0..code.len()).map(kind).collect()
}
