//! Atomics: of one element, or of a vector of them, which is carried out as one of words of 64 bits.

use super::{Failure, Lowering};
use crate::alu;
use crate::ast::{Instruction, Operand, Type};
use crate::atomic;
use crate::program::{Action, Part, Value, Where};
use crate::registers::Class;

impl<'m, 'a> Lowering<'m, 'a> {
    /// `atom` and `red`: the operands without a cache policy.
    pub(super) fn atomics(
        &mut self,
        instruction: &'m Instruction<'a>,
        space: Where,
        ty: Type,
        operands: &'m [Operand<'a>],
    ) -> Result<(), Failure> {
        let none = Operand::Sink;
        let (target, address, values) = match (instruction.opcode, operands) {
            ("atom", [target, address, values @ ..]) => (target, address, values),
            ("red", [address, values @ ..]) => (&none, address, values),
            _ => return Err("its operands are none that it takes".to_owned()),
        };
        if instruction.has("async") {
            return Err("asynchronous reductions are not carried out".to_owned());
        }
        let found = instruction.modifiers().find_map(|name| atomic::find(name, ty));
        let action = found.map(Action::Atomic).ok_or("this atomic is not carried out")?;
        let is_vector = instruction.modifiers().any(|modifier| matches!(modifier, "v2" | "v4" | "v8"));
        if is_vector || ty == Type::Bits(128) {
            if is_vector && (!instruction.has("add") && !ty.is_half() || instruction.has("cas")) {
                return Err(
                    "of atomics on vectors, sums are carried out, and of halves the lower and the higher".to_owned()
                );
            }
            return self.of_words(instruction, action, space, ty, target, address, values);
        }
        let parts = vec![self.any_target(target)?];
        self.push(instruction, action, space, address, ty, parts, values)
    }

    /// One of several elements, side by side in words.
    fn of_words(
        &mut self,
        instruction: &'m Instruction<'a>,
        action: Action,
        space: Where,
        ty: Type,
        target: &Operand<'a>,
        address: &Operand<'a>,
        values: &[Operand<'a>],
    ) -> Result<(), Failure> {
        let [value] = values else { return Err("it takes one vector of values".to_owned()) };
        let (class, ty) = match ty {
            Type::Bits(128) => (Class::Wide, Type::Bits(64)),
            _ => (alu::class_of(ty).ok_or("its type is not carried out")?, ty),
        };
        let parts = self.sources(value, ty)?;
        let bytes = ty.bytes() * parts.len() as u64;
        let (word, count) = match bytes {
            4 => (Type::Bits(32), 1),
            8 | 16 => (Type::Bits(64), bytes as usize / 8),
            _ => return Err(format!("{} elements of {} bytes are no access", parts.len(), ty.bytes())),
        };
        let whole = alu::class_of(word).unwrap_or(Class::Wide);
        let each = parts.len() / count;
        let mut words = Vec::new();
        for parts in parts.chunks(each) {
            let slots: Vec<_> = parts.iter().flatten().map(|(_, slot)| *slot).collect();
            let joined = self.scratch(whole);
            let alu = if each == 1 { alu::copy(whole) } else { alu::joined(whole, class, each) };
            self.emit_alu(alu, joined, &slots)?;
            words.push((whole, joined));
        }
        let targets = match target {
            Operand::Sink => vec![None; parts.len()],
            _ => self.targets(target)?,
        };
        if targets.len() != parts.len() {
            return Err(format!("{} registers are given for {} elements", targets.len(), parts.len()));
        }
        let olds: Vec<Part> = words.iter().map(|_| Some((whole, self.scratch(whole)))).collect();
        let address = self.placed(instruction, space, address)?;
        self.push_at(instruction, action, address.0, address.1, word, olds.clone(), &words)?;
        for (number, part) in targets.into_iter().enumerate() {
            let (Some((own, slot)), Some(Some((_, old)))) = (part, olds.get(number / each)) else { continue };
            let shift = self.holding(Class::Narrow, Value::Bits(u64::from(ty.bits()) * (number % each) as u64));
            let alu = if each == 1 { alu::copy(own) } else { alu::part(whole, own) };
            let sources = [*old, shift];
            self.emit_alu(alu, slot, &sources[..if each == 1 { 1 } else { 2 }])?;
        }
        Ok(())
    }
}
