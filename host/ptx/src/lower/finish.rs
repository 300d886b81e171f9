//! From what is lowered to a program: labels become places, and lanes that part are told where they meet.

use super::Lowering;
use super::call::FRAME_ALIGN;
use super::operand::RESERVED;
use crate::assigned::watched;
use crate::ast::Function;
use crate::error::LowerError;
use crate::flow::{Leads, meeting_points};
use crate::intern::intern;
use crate::program::{Inst, NONE, Op, Program, STACK};
use crate::watch::Watch;

/// Ways that branches by tables lead, at most.
const MOST_WAYS: usize = 1 << 22;

impl<'m, 'a> Lowering<'m, 'a> {
    pub(super) fn finish(mut self, function: &Function<'_>) -> Result<Program, LowerError> {
        self.guard = (NONE, false);
        self.emit(Op::Exit);
        let end = self.code.len() as u32 - 1;
        self.behind_the_entry();
        if let Some((place, detail)) = self.error {
            return Err(LowerError::At { place, detail, others: self.others });
        }
        let ways =
            |inst: &Inst| if let Op::Table { table, .. } = inst.op { self.tables[table as usize].len() } else { 0 };
        if self.code.iter().map(ways).sum::<usize>() > MOST_WAYS {
            let detail = format!("the tables of the `brx` of `{}` lead more than {MOST_WAYS} ways in all", self.entry);
            return Err(LowerError::at(function.place, detail));
        }
        let routines = self.routines();
        let places: Vec<u32> = self.labels.iter().map(|label| label.unwrap_or(end)).collect();
        let place = |label: &mut u32| *label = places.get(*label as usize).copied().unwrap_or(end);
        self.tables.iter_mut().flatten().for_each(place);
        for inst in &mut self.code {
            if let Op::Branch { target, .. } = &mut inst.op {
                place(target);
            }
        }
        // The entry and each function by itself.
        let mut begins: Vec<_> = [0].into_iter().chain(routines.iter().map(|routine| routine.entry)).collect();
        begins.push(self.code.len() as u32);
        let mut of_entry = None;
        for part in begins.windows(2) {
            let (begin, code) = (part[0], &mut self.code[part[0] as usize..part[1] as usize]);
            let leads: Vec<_> = code.iter().map(|inst| leads(inst, &self.tables, begin)).collect();
            for (inst, found) in code.iter_mut().zip(meeting_points(&leads, NONE)) {
                if let Op::Branch { meet, .. } | Op::Table { meet, .. } = &mut inst.op {
                    *meet = if found == NONE { NONE } else { begin + found };
                }
            }
            of_entry.get_or_insert(leads);
        }
        let leads = of_entry.unwrap_or_default();
        let block = function.directives.iter().find(|(name, _)| *name == ".reqntid").map(|(_, numbers)| {
            std::array::from_fn(|axis| numbers.get(axis).map_or(1, |number| u32::try_from(*number).unwrap_or(u32::MAX)))
        });
        let mut program = Program {
            name: intern(self.entry),
            code: self.code,
            accesses: self.accesses,
            exchanges: self.exchanges,
            matrices: self.matrices,
            exactness: self.exactness,
            copies: self.copies,
            bulks: self.bulks,
            tables: self.tables,
            fixed: self.fixed_list,
            sizes: self.sizes,
            reserved: self.shared.iter().position(|(name, _)| *name == RESERVED).map(|number| number as u32),
            shared: Vec::leak(self.shared),
            variables: self.variables,
            local_bytes: match self.stack {
                Some(_) => self.local_bytes.next_multiple_of(FRAME_ALIGN) + STACK,
                None => self.local_bytes,
            },
            routines,
            call_sites: self.call_sites,
            stack: self.stack,
            parameters: self.parameters,
            watch: Watch::default(),
            block,
        };
        let names = self.names;
        program.watch = watched(&program, &leads, |place| names.get(&place).map_or("a register", |name| intern(name)));
        let Program { code, watch, .. } = &mut program;
        watch.uses.keys().for_each(|at| code[*at as usize].watched = true);
        Ok(program)
    }
}

/// Where an instruction leads, counted from the begin of its function.
fn leads(inst: &Inst, tables: &[Vec<u32>], begin: u32) -> Leads {
    let table = |table: u32| tables[table as usize].iter().map(|target| target.wrapping_sub(begin)).collect();
    let always = inst.guard == NONE;
    match inst.op {
        Op::Branch { target, .. } if always => Leads::Away(vec![target.wrapping_sub(begin)]),
        Op::Branch { target, .. } => Leads::Maybe(vec![target.wrapping_sub(begin)]),
        Op::Table { table: number, .. } if always => Leads::Away(table(number)),
        Op::Table { table: number, .. } => Leads::Maybe(table(number)),
        Op::Return => Leads::Nowhere,
        Op::Exit if always => Leads::Nowhere,
        Op::Exit => Leads::MaybeNowhere,
        Op::Trap if always => Leads::Away(Vec::new()),
        _ => Leads::On,
    }
}
