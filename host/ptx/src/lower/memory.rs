//! Loads, stores, atomics.

use super::fence::{scope_of_access, scope_of_atomic};
use super::names::Named;
use super::operand::shown;
use super::{Failure, Lowering};
use crate::alu;
use crate::ast::{Instruction, Operand, StateSpace, Type};
use crate::program::{Access, Action, Op, Part, Value, Where};
use crate::registers::Class;
use engine::Instruction as Known;
use gpu::suite::{AtomicKind, Operation, Space};

/// An address: its state space, a register, and bytes behind what that holds.
pub(super) type Place = (Where, ((Class, u32), i64));

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
        if !matches!(ty.bits(), 8 | 16 | 32 | 64 | 128) {
            return Err(format!("accesses of {} bits are not carried out", ty.bits()));
        }
        let operands = Self::without_policy(instruction);
        if matches!(instruction.opcode, "atom" | "red") {
            return self.atomics(instruction, space, ty, operands);
        }
        // 128 bits are two words.
        let element = if ty == Type::Bits(128) { Type::Bits(64) } else { ty };
        match (instruction.opcode, operands) {
            ("ld" | "ldu", [target, address]) => {
                if space == Where::Parameter && self.known_parameter(target, address, ty)? {
                    return Ok(());
                }
                let parts = self.targets(target)?;
                self.push(instruction, Action::Load, space, address, element, parts, &[])
            }
            ("st", [address, source]) => {
                let parts = self.sources(source, element)?;
                self.push(instruction, Action::Store, space, address, element, parts, &[])
            }
            _ => Err("it takes a register and an address".to_owned()),
        }
    }

    /// The operands without the cache policy that may stand last, which has no effect here.
    pub(super) fn without_policy(instruction: &'m Instruction<'a>) -> &'m [Operand<'a>] {
        match instruction.operands.split_last() {
            Some((_, rest)) if instruction.has("L2::cache_hint") => rest,
            _ => &instruction.operands,
        }
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

    /// The registers of a value, or of the elements of a vector; two of one of 128 bits.
    pub(super) fn targets(&mut self, operand: &Operand<'a>) -> Result<Vec<Part>, Failure> {
        let mut all = Vec::new();
        for part in elements(operand) {
            match self.halves(part)? {
                Some(slots) => all.extend(slots.map(|slot| Some((Class::Wide, slot)))),
                None => all.push(self.any_target(part)?),
            }
        }
        Ok(all)
    }

    pub(super) fn sources(&mut self, operand: &Operand<'a>, ty: Type) -> Result<Vec<Part>, Failure> {
        let class = alu::class_of(ty).ok_or("its type is not carried out")?;
        let mut all = Vec::new();
        for part in elements(operand) {
            match self.halves(part)? {
                Some(slots) => all.extend(slots.map(|slot| Some((Class::Wide, slot)))),
                None => all.push(Some(self.any_source(part, class)?)),
            }
        }
        Ok(all)
    }

    /// Emits an access to an address as it is written.
    pub(super) fn push(
        &mut self,
        instruction: &Instruction<'a>,
        action: Action,
        space: Where,
        address: &Operand<'a>,
        ty: Type,
        parts: Vec<Part>,
        values: &[Operand<'a>],
    ) -> Result<(), Failure> {
        let own = alu::class_of(ty).ok_or("its type is not carried out")?;
        let mut operands = Vec::new();
        if let Action::Atomic(_) = action {
            let expected = if instruction.has("cas") { 2 } else { 1 };
            if values.len() != expected {
                return Err(format!("it has {} values, and takes {expected}", values.len()));
            }
            operands = values.iter().map(|value| self.any_source(value, own)).collect::<Result<_, _>>()?;
        }
        let (space, address) = self.placed(instruction, space, address)?;
        self.push_at(instruction, action, space, address, ty, parts, &operands)
    }

    /// An address as it is written: its state space, a register, and bytes behind what that holds.
    pub(super) fn placed(
        &mut self,
        instruction: &Instruction<'a>,
        space: Where,
        address: &Operand<'a>,
    ) -> Result<Place, Failure> {
        let space = match address {
            // A parameter of a function that is called stands in the caller's own memory.
            Operand::Address(Some(name), ..) if space == Where::Parameter => match self.scopes.get(name) {
                Some(Named::Local(..) | Named::Framed(..)) => Where::Local,
                _ => Where::Parameter,
            },
            Operand::Address(..) => space,
            other => {
                return Err(format!(
                    "{} is no address of `{}`: write it in brackets",
                    shown(other),
                    instruction.opcode
                ));
            }
        };
        Ok((space, self.address(address)?))
    }

    /// Emits an access to a register's address, and bytes behind it; `values` are the operands of an atomic.
    pub(super) fn push_at(
        &mut self,
        instruction: &Instruction<'a>,
        action: Action,
        space: Where,
        (address, offset): ((Class, u32), i64),
        ty: Type,
        parts: Vec<Part>,
        values: &[(Class, u32)],
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
        operands.iter_mut().zip(values).for_each(|(operand, value)| *operand = *value);
        let known = |space| {
            let operation = match action {
                Action::Load => Operation::Load,
                Action::Store => Operation::Store,
                Action::Atomic(_) => Operation::Atomic,
            };
            let mut known = Known::new(self.pc, space, operation, width.trailing_zeros() as u8);
            let past_l1 = ["cg", "cv", "volatile", "acquire", "mmio"];
            known.scope = match operation {
                Operation::Atomic => scope_of_atomic(instruction),
                Operation::Load | Operation::Store => scope_of_access(instruction, space),
            };
            known.past_l1 |= space == Space::Global && instruction.modifiers().any(|own| past_l1.contains(&own));
            let is_integer = matches!(ty, Type::Unsigned(_) | Type::Signed(_));
            let is_wide_or_float = width == 8 || matches!(ty, Type::Float(_) | Type::F16x2 | Type::Bf16 | Type::Bf16x2);
            known.kind = match (operation, space) {
                (Operation::Atomic, Space::Shared) if instruction.has("cas") => AtomicKind::Swap,
                (Operation::Atomic, Space::Shared) if is_wide_or_float && !instruction.has("exch") => AtomicKind::Loop,
                (Operation::Atomic, _) if instruction.has("add") && is_integer => AtomicKind::AddsIntegers,
                _ => AtomicKind::Plain,
            };
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

/// The elements of a vector, or the one operand that is none.
fn elements<'o, 'a>(operand: &'o Operand<'a>) -> &'o [Operand<'a>] {
    match operand {
        Operand::Vector(parts) => parts,
        one => std::slice::from_ref(one),
    }
}
