//! Branches, ends, calls.

use super::call::takes_stack;
use super::names::Named;
use super::operand::shown;
use super::{Failure, Lowering};
use crate::alu;
use crate::ast::{Function, Instruction, Operand, StateSpace};
use crate::program::{NONE, Op};
use crate::registers::Class;

/// Calls that are inlined in one another, and in all; others are carried out as calls.
const DEEPEST_CALLS: usize = 64;
const MOST_CALLS: usize = 1 << 14;

impl<'m, 'a> Lowering<'m, 'a> {
    pub(super) fn control(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        match (instruction.opcode, instruction.operands.as_slice()) {
            ("bra", [Operand::Name(name)]) => {
                let target = self.label(name)?;
                self.emit(Op::Branch { target, meet: NONE });
            }
            ("brx", [index, Operand::Name(name)]) => {
                let index = self.source(index, Class::Narrow)?;
                let Some(Named::Targets(table)) = self.scopes.get(name) else {
                    return Err(format!("there are no `.branchtargets` named `{name}` here"));
                };
                self.emit(Op::Table { index, table, meet: NONE });
            }
            ("ret", []) => match self.calls.last() {
                Some(&(_, target)) => self.emit(Op::Branch { target, meet: NONE }),
                None => self.emit(Op::Exit),
            },
            ("exit", []) => self.emit(Op::Exit),
            ("trap", []) => self.emit(Op::Trap),
            ("call", operands) => return self.call(operands),
            _ => return Err("its operands are none that it takes".to_owned()),
        }
        Ok(())
    }

    /// A call: what is called is lowered in its place.
    fn call(&mut self, operands: &'m [Operand<'a>]) -> Result<(), Failure> {
        let none: &[Operand<'a>] = &[];
        let (returns, name, arguments) = match operands {
            [Operand::List(returns), Operand::Name(name), Operand::List(arguments), ..] => {
                (&returns[..], name, &arguments[..])
            }
            [Operand::List(returns), Operand::Name(name)] => (&returns[..], name, none),
            [Operand::Name(name), Operand::List(arguments), ..] => (none, name, &arguments[..]),
            [Operand::Name(name)] => (none, name, none),
            _ => return Err("its operands are none that it takes".to_owned()),
        };
        if !self.module_functions.contains_key(name) && self.external(name, returns, arguments)? {
            return Ok(());
        }
        let Some(&function) = self.module_functions.get(name) else {
            return match self.scopes.register(name) {
                Some(_) => self.guarded(|lowering| lowering.call_out(name, returns, arguments)),
                None => Err(format!("`{name}` has no body in this module: link it in")),
            };
        };
        if (returns.len(), arguments.len()) != (function.returns.len(), function.parameters.len()) {
            return Err(format!(
                "`{name}` takes {} parameters and returns {}, and not {} and {}",
                function.parameters.len(),
                function.returns.len(),
                arguments.len(),
                returns.len()
            ));
        }
        // What calls itself, or is called too often, is not inlined; nor what gives memory back when it returns.
        let is_within = self.calls.iter().any(|(called, _)| called == name);
        let is_beyond = self.calls.len() >= DEEPEST_CALLS || self.inlined >= MOST_CALLS;
        if is_within || is_beyond || function.body.as_ref().is_some_and(takes_stack) {
            return self.guarded(|lowering| lowering.call_out(name, returns, arguments));
        }
        self.inlined += 1;
        self.guarded(|lowering| lowering.inline(function, returns, arguments))
    }

    /// Emits something that takes its lanes elsewhere: those for which the guard does not hold go round it.
    fn guarded(&mut self, emit: impl FnOnce(&mut Self) -> Result<(), Failure>) -> Result<(), Failure> {
        let behind = self.new_label();
        let (guard, negated) = std::mem::replace(&mut self.guard, (NONE, false));
        if guard != NONE {
            self.guard = (guard, !negated);
            self.emit(Op::Branch { target: behind, meet: NONE });
            self.guard = (NONE, false);
        }
        emit(self)?;
        self.labels[behind as usize] = Some(self.code.len() as u32);
        Ok(())
    }

    fn inline(
        &mut self,
        function: &'m Function<'a>,
        returns: &'m [Operand<'a>],
        arguments: &'m [Operand<'a>],
    ) -> Result<(), Failure> {
        // What stands in the caller's own memory is taken as it is; registers are copied.
        let formal = function.parameters.iter().zip(arguments).map(|pair| (pair, true));
        let formal = formal.chain(function.returns.iter().zip(returns).map(|pair| (pair, false)));
        let mut names = Vec::new();
        let mut results = Vec::new();
        for ((variable, operand), is_argument) in formal {
            if variable.space == StateSpace::Parameter {
                let Operand::Name(name) = operand else {
                    return Err(format!("{} is no `.param` variable", shown(operand)));
                };
                match self.scopes.get(name) {
                    Some(Named::Local(own, begin)) if own.bytes() >= variable.bytes() => {
                        names.push((variable.name, Named::Local(variable, begin)));
                    }
                    Some(Named::Framed(own, begin)) if own.bytes() >= variable.bytes() => {
                        names.push((variable.name, Named::Framed(variable, begin)));
                    }
                    _ => return Err(format!("`{name}` is no `.param` variable as large as `{}`", variable.name)),
                }
                continue;
            }
            self.declarations += 1;
            let register = Named::Register { declaration: self.declarations, ty: variable.ty, vector: 1, range: None };
            names.push((variable.name, register));
            let class = alu::class_of(variable.ty).ok_or("registers of 128 bits are not carried out")?;
            let slot = self.scratch(class);
            self.slots.insert((self.declarations, 0), slot);
            if is_argument {
                let source = self.source(operand, class)?;
                self.emit_alu(alu::copy(class), slot, &[source])?;
            } else {
                results.push((operand, class, slot));
            }
        }
        let (scopes, pc, place) = (self.scopes.take(), self.pc, self.place);
        self.scopes.enter();
        names.into_iter().for_each(|(name, named)| self.scopes.add(name, named));
        let inner = self.new_label();
        self.calls.push((function.name, inner));
        self.positions.forget();
        if let Some(body) = &function.body {
            self.block(body);
        }
        self.calls.pop();
        (self.scopes, self.pc, self.place, self.guard) = (scopes, pc, place, (NONE, false));
        self.labels[inner as usize] = Some(self.code.len() as u32);
        for (operand, class, slot) in results {
            let target = self.target(operand, class)?;
            self.emit_alu(alu::copy(class), target, &[slot])?;
        }
        self.positions.resume(pc);
        Ok(())
    }
}
