//! Calls that are carried out as such: of functions that call themselves, and by address. All others are inlined.
//!
//! A function that is called has registers of its own, which an activation of it keeps while another one runs, and a frame in local
//! memory behind those of its callers: its parameters, results and variables.

use super::names::Named;
use super::operand::shown;
use super::{Failure, Lowering};
use crate::alu;
use crate::ast::{Block, Constant, Function, Instruction, Operand, StateSpace, Statement, Variable};
use crate::intern::intern;
use crate::program::{Call, Callee, Fixed, Op, Passed, Routine, Value};
use crate::registers::{Class, Sizes, lanes};

/// Where frames begin is a multiple of it.
pub(super) const FRAME_ALIGN: u64 = 32;

/// Functions that are called as such, at most.
const MOST_FUNCTIONS: usize = 1 << 12;

/// A function that is called as such, and what is known of it once it is lowered.
pub(super) struct Pending<'m, 'a> {
    function: &'m Function<'a>,
    routine: Option<Routine>,
}

/// The frame of the function that is being lowered, if it is called as such.
#[derive(Clone, Copy, Default)]
pub(super) struct Frame {
    bytes: u64,
}

impl Frame {
    /// Room for a variable: where it begins.
    pub(super) fn room(&mut self, variable: &Variable<'_>, most: u64) -> Option<u64> {
        let begin = self.bytes.checked_next_multiple_of(variable.align.clamp(8, FRAME_ALIGN))?;
        let end = begin.checked_add(variable.bytes()?).filter(|end| *end <= most)?;
        self.bytes = end;
        Some(begin)
    }
}

/// Whether a function takes memory from its stack while it runs.
pub(super) fn takes_stack(block: &Block<'_>) -> bool {
    block.statements.iter().any(|statement| match statement {
        Statement::Instruction(instruction) => matches!(instruction.opcode, "alloca" | "stackrestore"),
        Statement::Block(inner) => takes_stack(inner),
        _ => false,
    })
}

impl<'m, 'a> Lowering<'m, 'a> {
    /// The number of a function of the module that is called as such.
    pub(super) fn function_number(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.pending.iter().position(|pending| pending.function.name == name) {
            return Some(number as u32);
        }
        let function = *self.module_functions.get(name)?;
        if function.is_entry || self.pending.len() >= MOST_FUNCTIONS {
            return None;
        }
        self.stack();
        self.pending.push(Pending { function, routine: None });
        Some(self.pending.len() as u32 - 1)
    }

    /// The registers that say where the frame of the function that runs begins, and where the next one may.
    pub(super) fn stack(&mut self) -> [u32; 2] {
        if let Some(stack) = self.stack {
            return stack;
        }
        let stack = [self.scratch(Class::Wide), self.scratch(Class::Wide)];
        self.fixed_list.extend(stack.map(|slot| Fixed { class: Class::Wide, slot, value: Value::Stack }));
        self.stack = Some(stack);
        stack
    }

    /// Calls a function by its name, or by the address in a register.
    pub(super) fn call_out(
        &mut self,
        name: &str,
        returns: &'m [Operand<'a>],
        arguments: &'m [Operand<'a>],
    ) -> Result<(), Failure> {
        let callee = match self.function_number(name) {
            Some(number) => Callee::Function(number),
            None => Callee::Address(self.register(name, Class::Wide)?),
        };
        self.stack();
        let declared = self.module_functions.get(name).map_or(&[][..], |function| &function.parameters);
        let mut passed = Vec::new();
        for (number, operand) in arguments.iter().enumerate() {
            // A constant is as wide as the parameter.
            let class = declared.get(number).and_then(|variable| alu::class_of(variable.ty));
            passed.push(self.passed(operand, class.unwrap_or(Class::Narrow), false)?);
        }
        let arguments = passed;
        let returns =
            returns.iter().map(|operand| self.passed(operand, Class::Narrow, true)).collect::<Result<Vec<_>, _>>()?;
        self.call_sites.push(Call { callee, arguments, returns });
        self.emit(Op::Call(self.call_sites.len() as u32 - 1));
        Ok(())
    }

    /// Where the caller has an argument, or takes a result.
    fn passed(&mut self, operand: &Operand<'a>, class: Class, is_result: bool) -> Result<Passed, Failure> {
        if let Operand::Name(name) = operand {
            match self.scopes.get(name) {
                Some(Named::Local(variable, begin)) => {
                    let bytes = variable.bytes().unwrap_or(0);
                    return Ok(Passed::Memory { begin, bytes, is_framed: false });
                }
                Some(Named::Framed(variable, begin)) => {
                    let bytes = variable.bytes().unwrap_or(0);
                    return Ok(Passed::Memory { begin, bytes, is_framed: true });
                }
                _ => {}
            }
        }
        if *operand == Operand::Sink {
            return Ok(Passed::Nothing);
        }
        let found = match is_result {
            true => self.any_target(operand)?,
            false => Some(self.any_source(operand, class)?),
        };
        let (class, slot) = found.ok_or_else(|| format!("{} cannot be passed", shown(operand)))?;
        Ok(Passed::Register(class, slot))
    }

    /// `alloca`, `stacksave`, `stackrestore`: memory behind the frame.
    pub(super) fn stack_memory(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let [_, top] = self.stack();
        match (instruction.opcode, instruction.operands.as_slice()) {
            ("alloca", [target, size, align @ ..]) => {
                let align = match align {
                    [] => 8,
                    [Operand::Constant(Constant::Integer(align))] if align.is_power_of_two() && *align <= 1 << 10 => {
                        (*align).max(8)
                    }
                    _ => return Err("an alignment is a power of two up to 1024".to_owned()),
                };
                let (class, size) = self.any_source(size, Class::Wide)?;
                let bytes = self.scratch(Class::Wide);
                self.emit_alu(alu::resized(class, Class::Wide, None), bytes, &[size])?;
                let below = self.holding(Class::Wide, Value::Bits(align - 1));
                let up = lanes!(Wide <- |top: Wide, below: Wide| top.saturating_add(below) & !below);
                self.emit_alu(up, top, &[top, below])?;
                self.give(target, top)?;
                let eighths = self.holding(Class::Wide, Value::Bits(7));
                self.emit_alu(
                    lanes!(Wide <- |top: Wide, bytes: Wide, below: Wide| {
                        top.saturating_add(bytes).saturating_add(below) & !below
                    }),
                    top,
                    &[top, bytes, eighths],
                )
            }
            ("stacksave", [target]) => self.give(target, top),
            ("stackrestore", [source]) => {
                let (class, source) = self.any_source(source, Class::Wide)?;
                self.emit_alu(alu::resized(class, Class::Wide, None), top, &[source])
            }
            _ => Err("its operands are none that it takes".to_owned()),
        }
    }

    fn give(&mut self, target: &Operand<'a>, wide: u32) -> Result<(), Failure> {
        match self.any_target(target)? {
            Some((class, slot)) => self.emit_alu(alu::resized(Class::Wide, class, None), slot, &[wide]),
            None => Ok(()),
        }
    }

    /// Lowers the functions that are called as such, behind the entry, and finds what variables hold at first: those name functions, and
    /// functions name variables.
    pub(super) fn behind_the_entry(&mut self) {
        let mut next = 0;
        loop {
            while let Some(function) = self.pending.get(next).map(|pending| pending.function) {
                let routine = self.function(function);
                if let Some(pending) = self.pending.get_mut(next) {
                    pending.routine = Some(routine);
                }
                next += 1;
            }
            if let Err((place, failure)) = self.initial_contents() {
                return self.fail(place, failure);
            }
            if next >= self.pending.len() {
                return;
            }
        }
    }

    /// Those functions, lowered.
    pub(super) fn routines(&mut self) -> Vec<Routine> {
        self.pending.drain(..).filter_map(|pending| pending.routine).collect()
    }

    fn function(&mut self, function: &'m Function<'a>) -> Routine {
        let (entry, first) = (self.code.len() as u32, self.sizes.map(|sizes| sizes.own));
        let scopes = self.scopes.take();
        self.scopes.enter();
        self.frame = Some(Frame::default());
        self.place = function.place;
        self.positions.forget();
        self.pc = self.positions.at(function.place);
        let parameters = self.formals(&function.parameters);
        let returns = self.formals(&function.returns);
        let end = self.new_label();
        self.calls.push((function.name, end));
        if let Some(body) = &function.body {
            self.block(body);
        }
        self.calls.pop();
        self.guard = (crate::program::NONE, false);
        self.labels[end as usize] = Some(self.code.len() as u32);
        self.emit(Op::Return);
        self.scopes = scopes;
        let frame = self.frame.take().unwrap_or_default();
        let ranges = [0, 1, 2].map(|bank: usize| {
            let Sizes { own, .. } = self.sizes[bank];
            (first[bank], own)
        });
        // Each takes some, so that no recursion is without an end.
        let bytes = frame.bytes.max(1).next_multiple_of(FRAME_ALIGN);
        Routine { name: intern(function.name), entry, parameters, returns, registers: ranges, bytes }
    }

    /// Where a function has its parameters or results.
    fn formals(&mut self, variables: &'m [Variable<'a>]) -> Vec<Passed> {
        let mut all = Vec::new();
        for variable in variables {
            if variable.space == StateSpace::Parameter {
                self.declare(variable);
                if let Some(Named::Framed(_, begin)) = self.scopes.get(variable.name) {
                    all.push(Passed::Memory { begin, bytes: variable.bytes().unwrap_or(0), is_framed: true });
                }
                continue;
            }
            self.declarations += 1;
            let register = Named::Register { declaration: self.declarations, ty: variable.ty, vector: 1, range: None };
            self.scopes.add(variable.name, register);
            match alu::class_of(variable.ty) {
                Some(class) => {
                    let slot = self.scratch(class);
                    self.slots.insert((self.declarations, 0), slot);
                    all.push(Passed::Register(class, slot));
                }
                None => {
                    self.fail(
                        variable.place,
                        format!("`{}` is a parameter of 128 bits, which is not carried out", variable.name),
                    );
                }
            }
        }
        all
    }
}
