//! Loads, stores, atomics.

use super::names::Named;
use super::operand::shown;
use super::{Failure, Lowering};
use crate::alu;
use crate::ast::{Instruction, Operand, StateSpace, Type};
use crate::atomic;
use crate::program::{Access, Action, Op, Value, Where};
use crate::registers::Class;
use engine::Instruction as Known;
use gpu::suite::{Operation, Space};

impl<'m, 'a> Lowering<'m, 'a> {
    pub(super) fn access(&mut self, instruction: &'m Instruction<'a>) -> Result<(), Failure> {
        let space = match instruction.modifiers().find_map(StateSpace::named) {
            None => Where::Generic,
            Some(StateSpace::Global) => Where::Global,
            Some(StateSpace::Constant) => Where::Constant,
            Some(StateSpace::Shared) => Where::Shared,
            Some(StateSpace::Local) => Where::Local,
            Some(StateSpace::Parameter) => Where::Parameter,
            Some(_) => return Err("this state space is not carried out".to_owned()),
        };
        let types: Vec<_> = instruction.modifiers().filter_map(Type::named).collect();
        let ty = *types.last().ok_or("it names no type")?;
        if !matches!(ty.bits(), 8 | 16 | 32 | 64) {
            return Err(format!("accesses of {} bits are not carried out", ty.bits()));
        }
        let is_atomic = matches!(instruction.opcode, "atom" | "red");
        let operands = &instruction.operands[..];
        match (instruction.opcode, operands) {
            ("ld" | "ldu", [target, address]) => {
                if space == Where::Parameter && self.known_parameter(target, address, ty)? {
                    return Ok(());
                }
                let parts = self.targets(target)?;
                self.push(instruction, Action::Load, space, address, ty, parts, &[])
            }
            ("st", [address, source]) => {
                let parts = self.sources(source, ty)?;
                self.push(instruction, Action::Store, space, address, ty, parts, &[])
            }
            ("atom", [target, address, values @ ..]) => {
                let parts = vec![self.any_target(target)?];
                self.push(instruction, self.atomic(instruction, ty)?, space, address, ty, parts, values)
            }
            ("red", [address, values @ ..]) => {
                self.push(instruction, self.atomic(instruction, ty)?, space, address, ty, vec![None], values)
            }
            _ if is_atomic => Err("its operands are none that it takes".to_owned()),
            _ => Err("it takes a register and an address".to_owned()),
        }
    }

    fn atomic(&self, instruction: &Instruction<'_>, ty: Type) -> Result<Action, Failure> {
        if instruction.modifiers().any(|modifier| matches!(modifier, "v2" | "v4" | "v8" | "noftz" | "vec"))
            && !ty.is_half()
        {
            return Err("atomics on vectors are not carried out".to_owned());
        }
        let found = instruction.modifiers().find_map(|name| atomic::find(name, ty));
        found.map(Action::Atomic).ok_or_else(|| "this atomic is not carried out".to_owned())
    }

    /// A load of a parameter whose place is known: a copy of a constant.
    fn known_parameter(&mut self, target: &Operand<'a>, address: &Operand<'a>, ty: Type) -> Result<bool, Failure> {
        let Operand::Address(Some(name), offset, _) = address else { return Ok(false) };
        let Some(Named::Parameter(variable, begin)) = self.scopes.get(name) else { return Ok(false) };
        let parts = self.targets(target)?;
        for (number, part) in parts.into_iter().enumerate() {
            let Some((class, slot)) = part else { continue };
            let behind = offset.wrapping_add(number as i64 * ty.bytes().cast_signed());
            let is_inside =
                u64::try_from(behind).is_ok_and(|behind| behind + ty.bytes() <= variable.bytes().unwrap_or(0));
            if !is_inside {
                return Err(format!(
                    "{} bytes at byte {behind} of the parameter `{name}`, which has {}",
                    ty.bytes(),
                    variable.bytes().unwrap_or(0)
                ));
            }
            let value = Value::Parameter {
                offset: begin.wrapping_add_signed(behind),
                bytes: ty.bytes() as u32,
                is_signed: ty.is_signed(),
            };
            let held = self.holding(class, value);
            self.emit_alu(alu::copy(class), slot, &[held])?;
        }
        Ok(true)
    }

    fn targets(&mut self, operand: &Operand<'a>) -> Result<Vec<Option<(Class, u32)>>, Failure> {
        match operand {
            Operand::Vector(parts) => parts.iter().map(|part| self.any_target(part)).collect(),
            _ => Ok(vec![self.any_target(operand)?]),
        }
    }

    fn sources(&mut self, operand: &Operand<'a>, ty: Type) -> Result<Vec<Option<(Class, u32)>>, Failure> {
        let class = alu::class_of(ty).ok_or("its type is not carried out")?;
        match operand {
            Operand::Vector(parts) => parts.iter().map(|part| self.any_source(part, class).map(Some)).collect(),
            _ => Ok(vec![Some(self.any_source(operand, class)?)]),
        }
    }

    pub(super) fn push(
        &mut self,
        instruction: &Instruction<'a>,
        action: Action,
        space: Where,
        address: &Operand<'a>,
        ty: Type,
        parts: Vec<Option<(Class, u32)>>,
        values: &[Operand<'a>],
    ) -> Result<(), Failure> {
        let width = ty.bytes() * parts.len() as u64;
        if !matches!(parts.len(), 1 | 2 | 4 | 8) || width > 32 {
            return Err(format!("{} elements of {} bytes are no access", parts.len(), ty.bytes()));
        }
        let own = alu::class_of(ty).ok_or("its type is not carried out")?;
        for (class, _) in parts.iter().flatten() {
            let bits = |class| match class {
                Class::Pred => 0,
                Class::Half => 16,
                Class::Narrow => 32,
                Class::Wide => 64,
            };
            if bits(*class) < bits(own).min(ty.bits()) {
                return Err(format!("a register is too narrow for elements of {} bits", ty.bits()));
            }
        }
        let mut operands = [(own, 0); 2];
        if let Action::Atomic(_) = action {
            let expected = if instruction.has("cas") { 2 } else { 1 };
            if values.len() != expected {
                return Err(format!("it has {} values, and takes {expected}", values.len()));
            }
            for (operand, value) in operands.iter_mut().zip(values) {
                *operand = self.any_source(value, own)?;
            }
        }
        let space = match address {
            // A parameter of a function that is called stands in the caller's own memory.
            Operand::Address(Some(name), ..) if space == Where::Parameter => match self.scopes.get(name) {
                Some(Named::Local(..)) => Where::Local,
                _ => Where::Parameter,
            },
            Operand::Address(..) => space,
            other => return Err(format!("{} is no address: write it in brackets", shown(other))),
        };
        let (address, offset) = self.address(address)?;
        let known = |space| {
            let operation = match action {
                Action::Load => Operation::Load,
                Action::Store => Operation::Store,
                Action::Atomic(_) => Operation::Atomic,
            };
            let mut known = Known::new(self.pc, space, operation, width.trailing_zeros() as u8);
            let past_l1 = ["cg", "cv", "volatile", "acquire", "mmio"];
            known.past_l1 |= space == Space::Global && instruction.modifiers().any(|own| past_l1.contains(&own));
            let is_integer = matches!(ty, Type::Unsigned(_) | Type::Signed(_));
            known.adds_integers = operation == Operation::Atomic && instruction.has("add") && is_integer;
            known
        };
        let instructions = [Space::Global, Space::Shared, Space::Constant].map(known);
        self.accesses.push(Access {
            action,
            space,
            address,
            offset,
            bytes: ty.bytes() as u32,
            is_signed: ty.is_signed(),
            parts,
            operands,
            instructions,
        });
        self.emit(Op::Access(self.accesses.len() as u32 - 1));
        Ok(())
    }
}
